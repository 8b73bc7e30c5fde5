"""What goes on in the engine: tasks, invocations and deliveries."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_changed = threading.Condition()
_going_on = 0
_begun = 0


def begin() -> None:
    """Something goes on from now on, until `end`, which may be on another thread."""
    global _going_on, _begun
    with _changed:
        _going_on += 1
        _begun += 1


def end() -> None:
    """It is over."""
    global _going_on
    with _changed:
        _going_on -= 1
        _changed.notify_all()


@contextmanager
def counted() -> Iterator[None]:
    """It goes on during the block."""
    begin()
    try:
        yield
    finally:
        end()


def is_quiet_within(seconds: float) -> bool:
    """Wait until nothing goes on; false if something still does after this time."""
    with _changed:
        return _changed.wait_for(lambda: _going_on == 0, seconds)


def begun() -> int:
    """How much has begun so far. If it grows, something happened."""
    with _changed:
        return _begun
