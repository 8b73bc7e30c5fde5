"""What another process must know of a running stack, in a file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steponce.local.errors import LocalStackError
from steponce.program import program

FOLDER = ".steponce"
_FILE = "stack.json"


def write_facts(facts: Mapping[str, Any], folder: str | Path = FOLDER) -> Path:
    """Write the facts of a running stack; returns the file, so that the stack can remove it."""
    path = Path(folder) / _FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    # Renaming is atomic: a reader gets the old facts or the new ones, never half.
    draft = path.with_suffix(f".{os.getpid()}")
    draft.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    draft.replace(path)
    return path


def read_facts(folder: str | Path = FOLDER) -> dict[str, Any]:
    """
    Read the facts of the stack that runs.

    Raises:
        LocalStackError: no stack runs.
    """
    path = Path(folder) / _FILE
    try:
        facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise LocalStackError(f"No local stack runs here. Start one with: {program()} up") from None
    if not _is_alive(int(facts["pid"])):
        raise LocalStackError(f"The local stack that ran here is gone. Start one with: {program()} up")
    return facts


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
