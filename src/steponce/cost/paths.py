"""
Every path through a definition, with its usage.

A path begins with StartAt and ends where the execution ends: with a state that says so, with Succeed or with
Fail. It follows every choice, and every Catch that may get an error. A Task that fails where nothing catches
it ends the execution, too; that path is left out, because it is the beginning of another one. A path returns
to the beginning of a loop once.

The states are copied for the second time in a loop, so that no way leads in a circle. Each copy then needs to
know only how it can end, and what is alike can be merged: thousands of choices one after the other are no
more work than a few.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache, partial, reduce
from typing import Any

from steponce.cost.calls import usage_of_call
from steponce.cost.catching import ANY, NONE, Outcome, caught, errors_of_fail
from steponce.cost.copies import Copies, Copy
from steponce.cost.definition import (
    Machine,
    State,
    branches_of,
    ends,
    processor_of,
    states_of,
)
from steponce.cost.errors import CannotPrice
from steponce.cost.path import Path, by_usage, ending
from steponce.cost.usage import Usage

MOST = 500
"""How many different paths are kept on the way; beyond it only the cheapest and dearest of each ending."""

_TOLERANCES = tuple(
    f"ToleratedFailure{what}{path}" for what in ("Count", "Percentage") for path in ("", "Path")
)


@dataclass(frozen=True)
class Walker:
    """
    Finds the paths of a definition.

    Args:
        item_kb: The size of each item of DynamoDB in KB.
        items: How many items each Map gets.
        dollars: The price of a usage, which says which paths are kept if there are too many.
        through: States of interest.
        alike: Paths with the same answer become one: `each`, `by_usage` or `by_outcome`.
    """

    item_kb: float
    items: int
    dollars: Callable[[Usage], Decimal]
    through: frozenset[str] = frozenset()
    alike: Callable[[Path], Any] = by_usage

    def paths(self, machine: Machine, *, has_catch: bool = False) -> list[Path]:
        """
        The paths of a definition, or of the machine in a Map or in a branch of a Parallel.

        Args:
            machine: The definition.
            has_catch: Something around the machine catches errors, so a path may end in a Task that fails.

        Raises:
            CannotPrice: it is not a definition, none of its paths ends, or its loops are nested too deeply.
        """
        states, start = states_of(machine)
        inside = cache(lambda name: self._inside(name, states[name], has_catch))
        copies = Copies(start, states, lambda name: dict.fromkeys(path.outcome for path in inside(name)))
        found: dict[Copy, list[Path]] = {}

        def after(copy: Copy, outcome: Outcome) -> Iterator[Path]:
            for target in copies.after(copy, outcome):
                yield from found[target]

        for copy in copies.last_first():
            name = copy.state
            found[copy] = self._merged(
                self._from(states[name], inside(name), partial(after, copy), has_catch)
            )
        paths = found[copies.first]
        if not paths:
            raise CannotPrice(f"No path from {start!r} ends: its loop has no exit.")
        return paths

    def _from(
        self,
        state: State,
        inside: Iterable[Path],
        onward: Callable[[Outcome], Iterator[Path]],
        has_catch: bool,
    ) -> Iterator[Path]:
        """The paths that begin with one state. `onward` gives the paths that may follow an outcome of it."""
        for path in inside:
            yield from (path.then(other) for other in onward(path.outcome))
            left, said = caught(state, path.errors).left, caught(state, path.said).left
            fails_outside = path.in_task and has_catch and bool(left)
            if path.fails:
                if said or (has_catch and left):
                    yield replace(path, errors=left, said=said)
            elif ends(state):
                yield replace(path, in_task=fails_outside, errors=left if fails_outside else ANY)
            elif fails_outside:
                yield replace(path, fails=True, errors=left)

    def _inside(self, name: str, state: State, has_catch: bool) -> list[Path]:
        """What a state uses itself, in each way that it can go."""
        kind = state.get("Type")
        alone = Path((name,), name, own_usage(name, state, self.item_kb), through=self.through & {name})
        has_catch = has_catch or "Catch" in state
        if kind == "Parallel":
            branches = [self.paths(branch, has_catch=has_catch) for branch in branches_of(state)]
            return reduce(self._beside, branches, [alone])
        if kind == "Map":
            return self._merged(self._of_items(state, alone, has_catch))
        if kind == "Fail":
            errors = errors_of_fail(state) if has_catch else ANY
            return [replace(alone, fails=True, errors=errors, said=errors)]
        return [replace(alone, in_task=kind == "Task")]

    def _beside(self, some: Sequence[Path], branch: Sequence[Path]) -> list[Path]:
        """Each way of some branches with each way of one more. One that fails does not stop the others."""
        return self._merged(one.around(other) for one, other in itertools.product(some, branch))

    def _of_items(self, state: State, alone: Path, has_catch: bool) -> Iterator[Path]:
        """
        Each way of a Map's items, which all go the same way.

        A Map may also fail while it reads its items or writes its results.
        """
        if "ItemReader" in state:
            yield replace(alone, fails=True, in_task=True)
        alone = replace(alone, in_task="ResultWriter" in state)
        processor = processor_of(state)
        rounds = _rounds(state, self.items)
        if not rounds:
            yield alone
            return
        tolerates = _tolerates_failures(state)
        for path in self.paths(processor, has_catch=has_catch or tolerates):
            path = replace(path, usage=_of_child(processor, path.usage) * rounds)
            if path.fails and tolerates:
                yield alone.around(replace(path, fails=False, in_task=False, errors=ANY, said=NONE))
            if _child_of(processor):  # a failed child execution has another error for the Map
                path = replace(path, errors=ANY, said=ANY if path.said else NONE)
            yield alone.around(path)

    def _merged(self, paths: Iterable[Path]) -> list[Path]:
        found: dict[Any, Path] = {}
        most = 2 * MOST
        for path in paths:
            key = self.alike(path)
            same = found.get(key)
            found[key] = path if same is None else replace(same, count=same.count + path.count)
            if len(found) > most:
                found = self._extremes(found)
                most = max(most, 2 * len(found))
        return list((self._extremes(found) if len(found) > MOST else found).values())

    def _extremes(self, found: Mapping[Any, Path]) -> dict[Any, Path]:
        """The cheapest and the dearest of each ending; whatever comes before, they stay the extremes."""
        by_end: dict[Any, list[tuple[Any, Path]]] = {}
        for key, path in found.items():
            by_end.setdefault(ending(path), []).append((key, path))
        kept: dict[Any, Path] = {}
        for same in by_end.values():
            same.sort(key=lambda entry: self.dollars(entry[1].usage))
            kept |= dict([same[0], same[-1]])
        return kept


def own_usage(name: str, state: State, item_kb: float) -> Usage:
    """What a state uses once, without the states inside of it."""
    usage = Usage(transitions=1)
    if state.get("Type") == "Task":
        usage += usage_of_call(name, state, item_kb)
    if state.get("Type") == "Map":
        usage += _around_items(name, state)
    return usage


def _rounds(state: State, items: int) -> int:
    """How often a Map's machine runs: once for each item or batch."""
    batch = state.get("ItemBatcher", {}).get("MaxItemsPerBatch", 1)
    return math.ceil(items / batch) if isinstance(batch, int) and batch > 0 else items


def _tolerates_failures(state: State) -> bool:
    """Whether a Map may go on though items have failed."""
    return any(state.get(name, 0) != 0 for name in _TOLERANCES)


def _around_items(name: str, state: State) -> Usage:
    """Reading a Map's items, writing its results, and Express executions cost by what they meet."""
    parts = [f"{key} {state[key].get('Resource')}" for key in ("ItemReader", "ResultWriter") if key in state]
    if _child_of(processor_of(state)) == "EXPRESS":
        parts.append("the duration of Express executions")
    return Usage(not_priced=tuple((name, part) for part in parts))


def _of_child(processor: Machine, usage: Usage) -> Usage:
    """The usage of one round; in a distributed Map it is an execution of its own, whose start is billed."""
    child = _child_of(processor)
    if child == "EXPRESS":
        return replace(usage, transitions=1)
    return usage + Usage(transitions=1) if child else usage


def _child_of(processor: Machine) -> str | None:
    """The type of a distributed Map's executions; None for a Map that has none."""
    config = processor.get("ProcessorConfig", {})
    return str(config["ExecutionType"]) if config.get("Mode") == "DISTRIBUTED" else None
