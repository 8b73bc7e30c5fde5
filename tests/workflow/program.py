"""The installed program, as a shell runs it."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

from steponce.cli import commands
from tests.patience import PATIENCE_SECONDS

PROGRAM = str(Path(sys.executable).with_name("steponce"))

Answer = tuple[int, dict[str, Any]]
Run = Callable[..., Answer]


def environment(home: Path) -> dict[str, str]:
    """
    The shell's, with the facts' folder and without an account or a stack.

    Nor with a states engine: the run's own stacks have the one port that Step Functions Local knows.
    """
    ours = {
        key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "STEPONCE_STATES_"))
    }
    ours.pop("STEPONCE_STACK", None)
    return ours | {"STEPONCE_HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}


def run_in_a_pipe(home: Path, *arguments: str, payload: Any = None) -> Answer:
    """Run the program in a pipe: its exit code and its one object."""
    done = subprocess.run(
        [PROGRAM, *arguments],
        input=None if payload is None else json.dumps(payload),
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert 1 == done.stdout.count("\n"), done.stderr
    return done.returncode, json.loads(done.stdout)


def run_here(home: Path, *arguments: str, payload: Any = None) -> Answer:
    """The same in this process, which costs a second less; a test of each command runs the program."""
    text = "" if payload is None else json.dumps(payload)
    with (
        patch.dict(os.environ, environment(home), clear=True),
        patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8")),
        redirect_stdout(io.StringIO()) as told,
        redirect_stderr(io.StringIO()) as errors,
    ):
        code = commands.run(list(arguments))
    assert 1 == told.getvalue().count("\n"), errors.getvalue()
    return code, json.loads(told.getvalue())
