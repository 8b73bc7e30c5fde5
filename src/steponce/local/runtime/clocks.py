"""
The clock of a task's time-out.

It stands while the task's function waits for a free worker. On AWS a function has a worker at once or is
throttled; here there are a few workers, and a wait for one of them says nothing about the work.

The interpreter names a task's clock in a header of its call, which an HTTP proxy between the two passes on.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from steponce.local import stack_time

HEADER = "X-Steponce-Clock"

_by_id: dict[str, Clock] = {}
_here = threading.local()


class Clock:
    """
    How long a task has run.

    Args:
        seconds: Its time-out.
        wanted: Whether anybody still waits for the task.
    """

    def __init__(self, seconds: float, wanted: Callable[[], bool] = lambda: True) -> None:
        self.id = uuid.uuid4().hex
        self.wanted = wanted
        self._seconds = seconds
        self._changed = threading.Condition()
        self._used_seconds = 0.0
        self._running_since = stack_time.monotonic()
        self._stopped_by = 0
        self._finished = False

    def finish(self) -> None:
        """The task is over."""
        with self._changed:
            self._finished = True
            self._changed.notify_all()

    def wait(self) -> bool:
        """Wait until the task is over (true), or has used up its time (false)."""
        with self._changed:
            while not self._finished:
                left = None if self._stopped_by else self._seconds - self._used()
                if left is not None and left <= 0:
                    return False
                self._changed.wait(stack_time.stretch(left))
            return True

    @contextmanager
    def stopped(self) -> Iterator[Callable[[], None]]:
        """Stand still until the block ends or what it gets is called, whichever comes first."""
        is_stopped = True

        def go_on() -> None:
            nonlocal is_stopped
            with self._changed:
                if is_stopped:
                    is_stopped = False
                    self._stopped_by -= 1
                    self._running_since = stack_time.monotonic()
                    self._changed.notify_all()

        with self._changed:
            self._used_seconds = self._used()
            self._stopped_by += 1
            self._changed.notify_all()
        try:
            yield go_on
        finally:
            go_on()

    def _used(self) -> float:
        running = 0.0 if self._stopped_by else stack_time.monotonic() - self._running_since
        return self._used_seconds + running


@contextmanager
def on_this_thread(clock: Clock) -> Iterator[None]:
    """Name this clock in the calls of the block."""
    _by_id[clock.id] = _here.clock = clock
    try:
        yield
    finally:
        del _by_id[clock.id], _here.clock


def header() -> dict[str, str]:
    """The header that names this thread's clock."""
    clock = getattr(_here, "clock", None)
    return {HEADER: clock.id} if clock else {}


def named(clock_id: str | None) -> Clock | None:
    """The clock that a header names; None for the call of somebody who is no task, or has ended."""
    return _by_id.get(clock_id or "")
