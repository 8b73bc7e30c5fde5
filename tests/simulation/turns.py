"""
Actors that take turns.

Each actor is a thread, and only one of them runs at a time. It runs until it calls AWS or pauses. Then a
seeded random choice decides who is next. Time is simulated: it passes between turns only, and a pause takes
none of the true time. So a seed always gives the same schedule, however busy the machine is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random

MOST_TURNS = 30_000
"""More than any schedule needs: a loop without an end is a fault."""

STUCK_AFTER_SECONDS = 60.0
"""Of true time. A turn takes milliseconds."""

_LONGEST_TURN_SECONDS = 0.2
_MOMENT = timedelta(milliseconds=1)


class Died(BaseException):
    """The process of this actor is gone. No code can catch it."""


class NeverEnds(Exception):
    """A schedule has taken more turns than any that ends, or an actor waits for one whose turn it is not."""


def _taken() -> threading.Lock:
    """A lock that whoever acquires it waits for."""
    lock = threading.Lock()
    lock.acquire()
    return lock


@dataclass
class Actor:
    """
    One process.

    Attributes:
        name: For the trace.
        wakes: When it may run again.
        clock_error: How far its clock is ahead of the true time.
        deadline: When it is killed. None for what has no time limit.
        running: Released when it is its turn.
    """

    name: str
    wakes: datetime
    clock_error: timedelta
    deadline: datetime | None = None
    running: threading.Lock = field(default_factory=_taken)


class Turns:
    """
    The actors, and the simulated time.

    Attributes:
        now: The true time.
        trace: What happened, in order: after what time, to which actor, and what.
        crashes: Actors that ended with an exception, and the exception.
    """

    def __init__(self, random: Random, began: datetime) -> None:
        self.now = began
        self._began = began
        self.trace: list[tuple[timedelta, str, str]] = []
        self.crashes: list[tuple[str, Exception]] = []
        self._random = random
        self._actors: list[Actor] = []
        self._mine = threading.local()
        self._taken_turns = 0
        self._finished = _taken()
        self._left: list[str] = []
        self._whose = ""

    @property
    def actor(self) -> Actor:
        """Whose turn it is, asked by itself."""
        found: Actor = self._mine.actor
        return found

    @property
    def is_of_an_actor(self) -> bool:
        """Whether this thread is an actor."""
        return hasattr(self._mine, "actor")

    def seconds_to_next(self) -> float | None:
        """When the first of the other actors may run. None if there is no other."""
        others = [actor.wakes for actor in self._actors if actor is not self.actor]
        return max(0, (min(others) - self.now).total_seconds()) if others else None

    def clock(self) -> datetime:
        """The time on the clock of this thread's actor."""
        return self.now + self.actor.clock_error if self.is_of_an_actor else self.now

    def note(self, what: str) -> None:
        """Add a line to the trace."""
        self.trace.append((self.now - self._began, self.actor.name if self.is_of_an_actor else "-", what))

    def spawn(
        self,
        name: str,
        act: Callable[[], object],
        *,
        after: float = 0,
        clock_error: timedelta = timedelta(0),
        seconds: float | None = None,
    ) -> None:
        """
        Add an actor.

        Args:
            name: For the trace.
            act: What it does.
            after: In how many seconds it begins.
            clock_error: How far its clock is ahead.
            seconds: How long it may live once it has begun.
        """
        actor = Actor(name, self.now + timedelta(seconds=after), clock_error)
        self._actors.append(actor)

        def live() -> None:
            self._mine.actor = actor
            actor.running.acquire()
            if seconds is not None:
                actor.deadline = self.now + timedelta(seconds=seconds)
            try:
                self.go_on_if_alive()
                act()
            except Died:
                self.note("died")
            except Exception as error:
                self.note(f"crashed: {error!r}")
                self.crashes.append((actor.name, error))
            finally:
                self._actors.remove(actor)
                (self._choose().running if self._actors else self._finished).release()

        threading.Thread(target=live, daemon=True, name=name).start()

    def take(self, seconds: float = 0) -> None:
        """
        Let the others go on; come back after this time at the earliest.

        Raises:
            Died: its deadline has passed meanwhile.
        """
        actor = self.actor
        actor.wakes = self.now + timedelta(seconds=seconds)
        if actor.deadline is not None and actor.wakes > actor.deadline:
            actor.wakes = actor.deadline + _MOMENT
        chosen = self._choose()
        if chosen is not actor:
            chosen.running.release()
            actor.running.acquire()
        self.go_on_if_alive()
        if actor.deadline is not None and self.now > actor.deadline:
            raise Died

    def wake(self, actor: Actor) -> None:
        """Let an actor that pauses go on now."""
        actor.wakes = min(actor.wakes, self.now)

    def deadline_in(self, seconds: float) -> datetime:
        """The time in so many seconds."""
        return self.now + timedelta(seconds=seconds)

    def seconds_to_live(self) -> float:
        """How long this actor may still live; boto3 itself gives up after half a minute."""
        deadline = self.actor.deadline
        return 30 if deadline is None else min(30, (deadline - self.now).total_seconds())

    def go_on_if_alive(self) -> None:
        """
        Go on after a part of this actor has died.

        Raises:
            Died: the schedule is over.
        """
        if self._left:
            raise Died

    def run(self) -> None:
        """
        Let everybody act until nobody is left.

        Raises:
            NeverEnds: they do not come to an end.
        """
        if self._actors:
            self._choose().running.release()
            turn = self._taken_turns
            while not self._finished.acquire(timeout=STUCK_AFTER_SECONDS):
                if turn == self._taken_turns:
                    raise NeverEnds(f"{self._whose} waits for another actor, whose turn it is not.")
                turn = self._taken_turns
        if self._left:
            raise NeverEnds(f"These have not ended: {', '.join(self._left)}")

    def _choose(self) -> Actor:
        """Choose who is next, and let time pass."""
        self._taken_turns += 1
        if self._taken_turns > MOST_TURNS:
            self._left = self._left or sorted(actor.name for actor in self._actors)
            return self._actors[0]
        ready = [actor for actor in self._actors if actor.wakes <= self.now]
        if not ready:
            self.now = min(actor.wakes for actor in self._actors)
            ready = [actor for actor in self._actors if actor.wakes <= self.now]
        chosen = self._next_of(ready)
        self._whose = chosen.name
        return chosen

    def _next_of(self, ready: Sequence[Actor]) -> Actor:
        self.now += timedelta(seconds=self._random.uniform(0, _LONGEST_TURN_SECONDS))
        return self._random.choice(ready)
