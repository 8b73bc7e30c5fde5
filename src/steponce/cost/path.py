"""One path through a definition, and which paths are alike."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Any

from steponce.cost.catching import ANY, NONE, Errors, Outcome
from steponce.cost.usage import Usage


@dataclass(frozen=True)
class Path:
    """
    A path, or several that are alike.

    Attributes:
        states: The states in the order in which they are entered. A Parallel and a Map are followed by the
            states inside, those of a Map once. Of several paths it is the first that was found.
        end: The state that ends it.
        usage: What it uses.
        count: How many paths this one stands for.
        fails: It ends with Fail, or with a Task that failed.
        through: The states of interest that it goes through.
        in_task: Its last state is a Task whose failure a Catch further out would get: it may fail, or has.
        errors: The error that a Catch further out would get.
        said: Those of these errors that a Fail raises. They end the execution if nothing catches them.
    """

    states: tuple[str, ...]
    end: str
    usage: Usage
    count: int = 1
    fails: bool = False
    through: frozenset[str] = frozenset()
    in_task: bool = False
    errors: Errors = ANY
    said: Errors = NONE

    @property
    def outcome(self) -> Outcome:
        """How it ends, for what is around it."""
        return Outcome(self.fails, self.in_task, self.errors)

    def then(self, other: Path) -> Path:
        """This path, and then the other."""
        return Path(
            self.states + other.states,
            other.end,
            self.usage + other.usage,
            self.count * other.count,
            other.fails,
            self.through | other.through,
            other.in_task,
            other.errors,
            other.said,
        )

    def around(self, inside: Path) -> Path:
        """This state with a path inside of it. A failure inside is one of this state."""
        both = self.then(inside)
        failing = [path for path in (self, inside) if path.fails]
        ending = failing[0] if failing else self
        may_fail = [path for path in (self, inside) if path.fails or path.in_task]
        return replace(
            both,
            end=ending.end,
            fails=ending.fails,
            in_task=bool(may_fail) and all(path.in_task for path in failing),
            errors=reduce(or_, [path.errors for path in may_fail]) if may_fail else ANY,
            said=reduce(or_, [path.said for path in failing], NONE),
        )


def each(path: Path) -> Any:
    """Paths are alike that enter the same states."""
    return path.states, *ending(path)


def by_usage(path: Path) -> Any:
    """Paths are alike that end in one state and use the same."""
    return path.usage, *ending(path)


def by_outcome(path: Path) -> Any:
    """The key by which paths are counted: how they end, and whether everything on them has a price."""
    return path.outcome, path.said, path.through, bool(path.usage.not_priced)


def ending(path: Path) -> tuple[Any, ...]:
    """What the states around a path need to know of it to go on."""
    return path.end, path.outcome, path.said, path.through
