"""Which loops a state belongs to."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)

Targets = Mapping[str, Sequence[str]]
"""Where each state may lead."""


def loops_of(start: str, targets: Targets) -> dict[str, tuple[str, ...]]:
    """
    The loops around each state, as the names of the states where they begin.

    A loop begins with the state of it that is reached first. Without this state, what is left of the loop
    may have loops of its own, which are inside of it.

    Returns:
        For each state that can be reached, its loops, the outermost first.
    """
    order = _reached(start, targets)
    places = {name: place for place, name in enumerate(order)}
    found: dict[str, tuple[str, ...]] = dict.fromkeys(order, ())
    waiting = [set(order)]
    while waiting:
        for loop in _knots(waiting.pop(), targets):
            head = min(loop, key=places.__getitem__)
            for name in loop:
                found[name] += (head,)
            waiting.append(loop - {head})
    return found


def _reached(start: str, targets: Targets) -> list[str]:
    """The states in the order in which they are reached."""
    order = {start: None}
    waiting = [start]
    while waiting:
        new = [target for name in waiting for target in targets[name] if target not in order]
        waiting = list(dict.fromkeys(new))
        order |= dict.fromkeys(waiting)
    return list(order)


def _knots(names: set[str], targets: Targets) -> Iterator[set[str]]:
    """The largest sets in which each state can be reached from each, and from itself."""
    onward = {name: [target for target in targets[name] if target in names] for name in names}
    back: dict[str, list[str]] = {name: [] for name in names}
    for name, found in onward.items():
        for target in found:
            back[target].append(name)
    left = set(names)
    for name in reversed(finished(sorted(names), onward.__getitem__)):
        if name in left:
            knot = _within(left, name, back)
            left -= knot
            if len(knot) > 1 or name in onward[name]:
                yield knot


def _within(names: set[str], start: str, targets: Targets) -> set[str]:
    """What can be reached from a state without leaving the names."""
    seen, waiting = {start}, [start]
    while waiting:
        new = {name for name in targets[waiting.pop()] if name in names and name not in seen}
        seen |= new
        waiting += new
    return seen


def finished(nodes: Iterable[Node], after: Callable[[Node], Iterable[Node]]) -> list[Node]:
    """Everything that can be reached from the nodes, each after what was first reached from it."""
    listed: list[Node] = []
    seen: set[Node] = set()
    for first in nodes:
        if first in seen:
            continue
        seen.add(first)
        way = [(first, iter(after(first)))]
        while way:
            node, rest = way[-1]
            target = next((one for one in rest if one not in seen), None)
            if target is None:
                listed.append(node)
                way.pop()
            else:
                seen.add(target)
                way.append((target, iter(after(target))))
    return listed
