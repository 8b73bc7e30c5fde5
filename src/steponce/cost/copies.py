"""The states of a machine, copied for the second time in a loop, so that no way leads in a circle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from steponce.cost.errors import CannotPrice
from steponce.cost.loops import Targets, finished, loops_of

DEEPEST = 5
"""How many loops may be inside of each other. Each one more has three times as many copies."""


class Copy(NamedTuple):
    """A state, and for each loop around it how often the path has been at its beginning: twice at most."""

    state: str
    begun: tuple[int, ...]


class Copies:
    """
    The copies that can be reached.

    Args:
        start: The first state.
        targets: Where each state may lead.

    Raises:
        CannotPrice: too many loops are inside of each other.
    """

    def __init__(self, start: str, targets: Targets) -> None:
        self._targets = targets
        self._loops = loops_of(start, targets)
        deepest = max(self._loops, key=lambda state: len(self._loops[state]))
        if len(self._loops[deepest]) > DEEPEST:
            raise CannotPrice(
                f"{deepest!r} is in {len(self._loops[deepest])} loops that are inside of each other. Up to "
                f"{DEEPEST} can be priced. Put the inner ones into a machine of their own."
            )
        self.first = Copy(start, self._entered(start, ()))

    def after(self, copy: Copy) -> Iterator[Copy]:
        """Where a copy may lead. A loop does not begin for a third time."""
        here = self._loops[copy.state]
        for target in self._targets[copy.state]:
            shared = sum(1 for _ in _common(here, self._loops[target]))
            begun = self._entered(target, copy.begun[:shared])
            if max(begun, default=0) <= 2:
                yield Copy(target, begun)

    def _entered(self, state: str, begun: tuple[int, ...]) -> tuple[int, ...]:
        """How often loops have begun once a state is entered, from how often those around it had before."""
        loops = self._loops[state]
        counts = [*begun, *(0 for _ in loops[len(begun) :])]
        if loops and loops[-1] == state:
            counts[-1] += 1
        return tuple(counts)

    def last_first(self) -> list[Copy]:
        """All copies, each after those that it may lead to."""
        return finished([self.first], self.after)


def _common(some: tuple[str, ...], others: tuple[str, ...]) -> Iterator[str]:
    for one, other in zip(some, others, strict=False):
        if one != other:
            return
        yield one
