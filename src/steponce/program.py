"""How the program `steponce` is typed here, for hints that can be pasted."""

from __future__ import annotations

import os
import shlex
import shutil
import sysconfig
from pathlib import Path


def program() -> str:
    """
    `steponce` where the shell finds the one that is installed with this Python, else its path.

    Relative to the current directory where it lies below it: `.venv/bin/steponce`.
    """
    own = Path(sysconfig.get_path("scripts")) / "steponce"
    found = shutil.which("steponce")
    if not own.exists() or (found and Path(found).samefile(own)):
        return "steponce"
    below = os.path.relpath(own)
    if below.startswith(os.pardir):
        return shlex.quote(str(own))
    return shlex.quote(below if os.sep in below else os.path.join(os.curdir, below))  # noqa: PTH118 - Path drops ./
