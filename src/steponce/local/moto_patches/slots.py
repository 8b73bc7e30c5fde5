"""
How many executions run at once, and which comes next.

A slot is the right to run. An execution releases it while it only waits: for an answer from outside, for a
point in time, for branches of its own. It returns before executions that have not begun.

What waits for a slot holds none, so slots alone never deadlock. But work that holds a slot may wait for work
that has none yet. If no slot changes hands for a while, the next in the queue runs without one.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE_SECONDS = 3.0


class Slots:
    """
    A fixed number of slots, and the queues for them.

    Args:
        number: How many run at once.
        patience_seconds: After this time without a change one more is admitted.
    """

    def __init__(self, number: int, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._patience_seconds = patience_seconds
        self._changed = threading.Condition()
        self._free = number
        self._returning: deque[Slot] = deque()
        self._new: deque[Slot] = deque()
        self._last_change = 0.0
        self._watched = False

    def enqueue(self, slot: Slot, *, returning: bool) -> None:
        """Grant the slot as soon as one is free; the caller holds the lock."""
        if not self._waiting:
            self._last_change = time.monotonic()
        (self._returning if returning else self._new).append(slot)
        self._fill()
        if self._waiting:
            self._watch()

    def remove(self, slot: Slot) -> None:
        """Wait no more; the caller holds the lock."""
        for waiting in (self._returning, self._new):
            if slot in waiting:
                waiting.remove(slot)

    def release_one(self) -> None:
        """A slot was released; the caller holds the lock."""
        self._free += 1
        self._fill()

    @property
    def lock(self) -> threading.Condition:
        """Guards all slots."""
        return self._changed

    @property
    def _waiting(self) -> bool:
        return bool(self._returning or self._new)

    def _fill(self) -> None:
        while self._free > 0 and self._waiting:
            self._admit()

    def _admit(self) -> None:
        self._free -= 1  # below zero for each that runs without
        self._last_change = time.monotonic()
        (self._returning or self._new).popleft().grant()

    def _watch(self) -> None:
        if self._watched:
            self._changed.notify()
        else:
            self._watched = True
            threading.Thread(target=self._admit_when_stuck, daemon=True).start()

    def _admit_when_stuck(self) -> None:
        with self._changed:
            while True:
                left = self._last_change + self._patience_seconds - time.monotonic()
                if not self._waiting:
                    self._changed.wait()
                elif left > 0:
                    self._changed.wait(left)
                else:
                    self._admit()


class Slot:
    """The slot of one thread of interpretation: an execution's, or a branch's."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._lock = slots.lock
        self._held = False
        self._gone = False
        self._turn: threading.Event | None = None

    def request(self, *, returning: bool = False) -> None:
        """Join the queue, or stay in it."""
        with self._lock:
            if not (self._held or self._gone or self._turn):
                self._turn = threading.Event()
                self._slots.enqueue(self, returning=returning)

    def wait(self) -> None:
        """Return when the slot is held, or not wanted any more."""
        with self._lock:
            turn = self._turn
        if turn:
            turn.wait()

    def grant(self) -> None:
        """The slot is this one's now; the caller holds the lock."""
        self._held = True
        self._end_wait()

    def release(self) -> None:
        """Let another run."""
        with self._lock:
            if self._held:
                self._held = False
                self._slots.release_one()

    def abandon(self) -> None:
        """Wait no more, now or later; what is held stays held."""
        with self._lock:
            self._gone = True
            if self._turn:
                self._slots.remove(self)
                self._end_wait()

    def close(self) -> None:
        """The end: nothing is held or waited for any more."""
        self.abandon()
        self.release()

    @contextmanager
    def released(self) -> Iterator[None]:
        """Let another run while the block only waits."""
        self.release()
        try:
            yield
        finally:
            self.request(returning=True)
            self.wait()

    def _end_wait(self) -> None:
        if self._turn:
            self._turn.set()
        self._turn = None
