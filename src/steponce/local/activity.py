"""Counts what runs in the engine: tasks, invocations and deliveries."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_changed = threading.Condition()
_going_on = 0
_begun = 0


def begin() -> None:
    """Count one more activity, until `end`, which may be called on another thread."""
    global _going_on, _begun
    with _changed:
        _going_on += 1
        _begun += 1


def end() -> None:
    """Count one activity less."""
    global _going_on
    with _changed:
        _going_on -= 1
        _changed.notify_all()


@contextmanager
def counted() -> Iterator[None]:
    """Count one more activity during the block."""
    begin()
    try:
        yield
    finally:
        end()


def is_quiet_within(seconds: float) -> bool:
    """Wait until nothing runs; false if something still runs after this time."""
    with _changed:
        return _changed.wait_for(lambda: _going_on == 0, seconds)


def begun() -> int:
    """How many activities have begun so far."""
    with _changed:
        return _begun
