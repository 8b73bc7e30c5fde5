"""
How many executions run at once, and which comes next.

A place is the right to run. Whoever has one gives it back while it only waits: for an answer from outside,
for a point in time, for branches of its own. It comes back before those that have not begun.

Nobody who waits for a place holds one, so places alone never lock up. Work may hold one and wait for other
work, though, which waits for a place: if no place is taken for a while, the next in line runs without one.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE_SECONDS = 3.0


class Places:
    """
    So many places.

    Args:
        number: How many run at once.
        patience_seconds: After so long without a change one more is let in.
    """

    def __init__(self, number: int, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._patience_seconds = patience_seconds
        self._changed = threading.Condition()
        self._free = number
        self._coming_back: deque[Place] = deque()
        self._new: deque[Place] = deque()
        self._last_change = 0.0
        self._watched = False

    def stand_in_line(self, place: Place, *, comes_back: bool) -> None:
        """Let the place be taken as soon as one is free; the caller holds the lock."""
        if not self._waiting:
            self._last_change = time.monotonic()
        (self._coming_back if comes_back else self._new).append(place)
        self._fill()
        if self._waiting:
            self._watch()

    def leave_line(self, place: Place) -> None:
        """Wait no more; the caller holds the lock."""
        for line in (self._coming_back, self._new):
            if place in line:
                line.remove(place)

    def free_one(self) -> None:
        """Somebody has given a place back; the caller holds the lock."""
        self._free += 1
        self._fill()

    @property
    def lock(self) -> threading.Condition:
        """Guards all places."""
        return self._changed

    @property
    def _waiting(self) -> bool:
        return bool(self._coming_back or self._new)

    def _fill(self) -> None:
        while self._free > 0 and self._waiting:
            self._admit()

    def _admit(self) -> None:
        self._free -= 1  # below zero for each that runs without
        self._last_change = time.monotonic()
        (self._coming_back or self._new).popleft().admit()

    def _watch(self) -> None:
        if self._watched:
            self._changed.notify()
        else:
            self._watched = True
            threading.Thread(target=self._let_in_when_stuck, daemon=True).start()

    def _let_in_when_stuck(self) -> None:
        with self._changed:
            while True:
                left = self._last_change + self._patience_seconds - time.monotonic()
                if not self._waiting:
                    self._changed.wait()
                elif left > 0:
                    self._changed.wait(left)
                else:
                    self._admit()


class Place:
    """The place of one thread of interpretation: an execution's, or a branch's."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._lock = places.lock
        self._held = False
        self._gone = False
        self._turn: threading.Event | None = None

    def ask(self, *, comes_back: bool = False) -> None:
        """Stand in line, or stay in it."""
        with self._lock:
            if not (self._held or self._gone or self._turn):
                self._turn = threading.Event()
                self._places.stand_in_line(self, comes_back=comes_back)

    def wait(self) -> None:
        """Return when the place is held, or not wanted any more."""
        with self._lock:
            turn = self._turn
        if turn:
            turn.wait()

    def admit(self) -> None:
        """It is this one's turn; the caller holds the lock."""
        self._held = True
        self._end_wait()

    def give_back(self) -> None:
        """Let another run."""
        with self._lock:
            if self._held:
                self._held = False
                self._places.free_one()

    def abandon(self) -> None:
        """Wait no more, now or later; what is held stays held."""
        with self._lock:
            self._gone = True
            if self._turn:
                self._places.leave_line(self)
                self._end_wait()

    def close(self) -> None:
        """The end: nothing is held or waited for any more."""
        self.abandon()
        self.give_back()

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Let another run while the block only waits."""
        self.give_back()
        try:
            yield
        finally:
            self.ask(comes_back=True)
            self.wait()

    def _end_wait(self) -> None:
        if self._turn:
            self._turn.set()
        self._turn = None
