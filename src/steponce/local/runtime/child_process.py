"""
Child processes that speak in lines over their standard streams.

The child's standard input is its lifeline: it ends when that ends, so also when we are killed.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

from steponce.local.session import without_account

_STOP_SECONDS = 10.0


class ChildProcess:
    """A module of this package, run by this Python."""

    def __init__(self, module: str, arguments: list[str], log: Path) -> None:
        with log.open("ab") as errors:
            self._process = subprocess.Popen(  # noqa: S603 - our own module, no shell
                [sys.executable, "-P", "-m", module, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                # Nothing of the caller's AWS account.
                env=without_account(dict(os.environ)),
                # The terminal's Ctrl-C is for the stack's owner.
                start_new_session=True,
            )
        if not (self._process.stdin and self._process.stdout):
            raise RuntimeError("no pipes")  # never: both were asked for
        self._input, self._output = self._process.stdin, self._process.stdout

    def send(self, line: str) -> None:
        """Send a line; a dead child gets nothing, and `receive` then returns nothing."""
        with contextlib.suppress(BrokenPipeError):
            self._input.write(line.encode() + b"\n")
            self._input.flush()

    def receive(self) -> str:
        """The next line, empty at the end."""
        return self._output.readline().decode()

    def close(self) -> None:
        """Receive nothing any more. Not while another thread receives: it would wait for that."""
        self._output.close()

    def kill(self) -> None:
        """End it now."""
        self._process.kill()

    def stop(self) -> None:
        """End it by closing its input, or by force if that does not help."""
        with contextlib.suppress(BrokenPipeError):
            self._input.close()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
