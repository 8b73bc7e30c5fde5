"""What a worker prints: whole lines, since all workers of a function write into one log."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class WholeLines(io.BufferedIOBase):
    """
    A stream that writes each line at once.

    `print` writes a line and then its end, and the Lambda runtime flushes after each write. So the lines of
    two workers would mix.

    Args:
        target: The file descriptor to write to. It is not closed.
    """

    def __init__(self, target: int) -> None:
        super().__init__()
        self._target = target
        self._begun: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: ReadableBuffer, /) -> int:
        """Write what ends a line, with what was written of that line before. Keep the rest."""
        lines, end, rest = bytes(data).rpartition(b"\n")
        if end:
            self._put(lines + end)
        if rest:
            self._begun.append(rest)
        return len(lines + end + rest)

    def finish(self) -> None:
        """Write a last line that has no end."""
        self._put(b"")

    def fileno(self) -> int:
        return self._target

    def _put(self, more: bytes) -> None:
        left, self._begun = b"".join([*self._begun, more]), []
        while left:
            left = left[os.write(self._target, left) :]
