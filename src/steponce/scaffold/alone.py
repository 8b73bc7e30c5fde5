"""Lets one command at a time write a folder, where the file system has locks."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl


@contextmanager
def alone(folder: Path, refusal: Exception) -> Iterator[None]:
    """
    Run a block that writes a folder, alone.

    The system releases the lock when the process ends, also if it was killed.

    Args:
        folder: It need not exist, and is no link. Its lock is a file beside it.
        refusal: What is raised while another command writes the folder.
    """
    path = folder.with_name(f".{folder.name}.lock")
    lock = _lock(path, refusal)
    try:
        yield
    finally:
        if lock is not None:
            with suppress(OSError):
                if not os.fstat(lock).st_size:  # a file that has content was not made here
                    path.unlink()
            os.close(lock)


def _lock(path: Path, refusal: Exception) -> int | None:
    """A file that is locked, and is still there. None if there can be none."""
    if sys.platform == "win32":
        return None
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_there = os.path.samestat(os.fstat(lock), path.stat())
    except OSError as error:
        is_there = not isinstance(error, BlockingIOError | FileNotFoundError)
    if not is_there:
        os.close(lock)
        raise refusal
    return lock
