"""
The states of a machine, copied for the second time in a loop, so that no way leads in a circle.

There are more copies for what is known where a state begins. The second time in a loop stands for every later
one, so nothing is known when it begins.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

from steponce.cost.catching import Outcome
from steponce.cost.choosing import known_after, places_asked
from steponce.cost.definition import State, ways_of_catch, ways_on
from steponce.cost.errors import CannotPrice
from steponce.cost.knowledge import NOTHING, Known, Place, about
from steponce.cost.loops import finished, loops_of

DEEPEST = 5
"""How many loops may be inside of each other. Each one more has three times as many copies."""

MOST = 4
"""How many copies a state has for what is known; beyond it nothing is."""


class Copy(NamedTuple):
    """
    A state on some path.

    Attributes:
        state: Its name.
        begun: For each loop around it how often the path has been at its beginning: twice at most.
        known: What is known where it begins.
    """

    state: str
    begun: tuple[int, ...]
    known: Known = NOTHING


class Copies:
    """
    The copies that can be reached.

    Args:
        start: The first state.
        states: Of the machine.
        outcomes: Gives the ways in which a state may end, by its name.

    Raises:
        CannotPrice: too many loops are inside of each other.
    """

    def __init__(
        self, start: str, states: Mapping[str, State], outcomes: Callable[[str], Collection[Outcome]]
    ) -> None:
        self._states, self._outcomes = states, outcomes
        self._asked: dict[Place, bool] = {}
        for place, compares in (asked for state in states.values() for asked in places_asked(state)):
            self._asked[place] = compares or self._asked.get(place, False)
        targets = {name: [*ways_on(state), *ways_of_catch(state)] for name, state in states.items()}
        self._loops = loops_of(start, targets)
        deepest = max(self._loops, key=lambda state: len(self._loops[state]))
        if len(self._loops[deepest]) > DEEPEST:
            raise CannotPrice(
                f"{deepest!r} is in {len(self._loops[deepest])} loops that are inside of each other. Up to "
                f"{DEEPEST} can be priced. Put the inner ones into a machine of their own."
            )
        self.first = Copy(start, self._entered(start, ()))
        self._kinds: dict[tuple[str, tuple[int, ...]], set[Known]] = {}

    def after(self, copy: Copy, outcome: Outcome) -> Iterator[Copy]:
        """The copies that may follow a copy with this outcome. A loop does not begin for a third time."""
        here = self._loops[copy.state]
        for target, known in known_after(self._states[copy.state], copy.known, outcome).items():
            shared = sum(1 for _ in _common(here, self._loops[target]))
            begun = self._entered(target, copy.begun[:shared])
            if max(begun, default=0) <= 2:
                yield Copy(target, begun, self._kept(target, begun, known))

    def _kept(self, state: str, begun: tuple[int, ...], known: Known) -> Known:
        """What a copy is made for; always the same for the same."""
        if self._begins_again(state, begun):
            return NOTHING
        asked = about(known, self._asked)
        kinds = self._kinds.setdefault((state, begun), set())
        if len(kinds) < MOST:
            kinds.add(asked)
        return asked if asked in kinds else NOTHING

    def _begins_again(self, state: str, begun: tuple[int, ...]) -> bool:
        loops = self._loops[state]
        return bool(loops) and loops[-1] == state and begun[-1] == 2

    def _entered(self, state: str, begun: tuple[int, ...]) -> tuple[int, ...]:
        """How often loops have begun once a state is entered, from how often those around it had before."""
        loops = self._loops[state]
        counts = [*begun, *(0 for _ in loops[len(begun) :])]
        if loops and loops[-1] == state:
            counts[-1] += 1
        return tuple(counts)

    def last_first(self) -> list[Copy]:
        """All copies, each after those that it may lead to."""
        return finished([self.first], self._after_all)

    def _after_all(self, copy: Copy) -> Iterator[Copy]:
        for outcome in self._outcomes(copy.state):
            yield from self.after(copy, outcome)


def _common(some: tuple[str, ...], others: tuple[str, ...]) -> Iterator[str]:
    for one, other in zip(some, others, strict=False):
        if one != other:
            return
        yield one
