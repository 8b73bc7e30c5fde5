"""The installed program, as a shell runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
        timeout=60,
    )
    assert 1 == done.stdout.count("\n"), done.stderr
    return done.returncode, json.loads(done.stdout)


def until(question: Callable[[], Any]) -> None:
    """Ask again and again until the answer is true."""
    end = time.monotonic() + 15
    while not question():
        assert time.monotonic() < end, "it has not come true in time"
        time.sleep(0.1)
