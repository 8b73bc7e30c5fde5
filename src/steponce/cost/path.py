"""One path through a definition, and which paths are alike."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

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
        fails: It ends with Fail.
        through: The states of interest that it goes through.
    """

    states: tuple[str, ...]
    end: str
    usage: Usage
    count: int = 1
    fails: bool = False
    through: frozenset[str] = frozenset()

    def then(self, other: Path) -> Path:
        """This path, and then the other."""
        return Path(
            self.states + other.states,
            other.end,
            self.usage + other.usage,
            self.count * other.count,
            other.fails,
            self.through | other.through,
        )

    def around(self, inside: Path) -> Path:
        """This state with a path inside of it. A failure inside is one of this state."""
        ending = inside if inside.fails and not self.fails else self
        return replace(self.then(inside), end=ending.end, fails=ending.fails)


def each(path: Path) -> Any:
    """Paths are alike that enter the same states."""
    return path.states, path.end, path.fails


def by_usage(path: Path) -> Any:
    """Paths are alike that end in one state and use the same."""
    return path.end, path.fails, path.through, path.usage


def by_outcome(path: Path) -> Any:
    """Paths are alike that end well, or that fail, with prices for everything or not. For counting them."""
    return path.fails, path.through, bool(path.usage.not_priced)
