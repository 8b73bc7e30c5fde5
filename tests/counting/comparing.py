"""What was driven, beside what cost says."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

import pytest

from steponce.cost import Usage, paths
from steponce.cost.definition import ways_of_catch, ways_on
from steponce.cost.loops import loops_of
from steponce.cost.path import Path, each
from tests.counting.answers import Machine, states
from tests.counting.drives import Drive, Driven, Subject

Explore = Callable[[Sequence[Drive], dict[str, int], bool], list[list[Driven]]]
"""As `exploring.explore`, wherever it runs."""

Names = tuple[str, ...]


@dataclass
class Compared:
    """
    The paths of a machine.

    Attributes:
        found: What cost says of each path.
        driven: Those that an execution took, and used the same on.
        wrong: What is not as cost says, in words.
    """

    found: dict[Names, Usage]
    driven: set[Names] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)

    @property
    def missed(self) -> list[str]:
        """The paths that nothing has taken."""
        return [" > ".join(path) for path in self.found if path not in self.driven]


def compare(subject: Subject, explore: Explore, *, is_thorough: bool) -> Compared:
    """Drive a machine along its paths."""
    first = subject.drives[0]
    found = [path for path in all_paths(first) if path.states[: len(subject.begins)] == subject.begins]
    most: Counter[str] = Counter()
    for path in found:
        most |= Counter({name: times * first.items for name, times in Counter(path.states).items()})
    compared = Compared({path.states: path.usage for path in found})
    known = {_seen(first, path.states): path for path in found}
    assert len(known) == len(found), "two paths look the same"
    for run in itertools.chain(*explore(subject.drives, most, is_thorough)):
        states, between = _of_two_rounds(first.definition, run.states)
        path = known.get(_of_one_item(first, _seen(first, states)))
        if path is None or run.fails != path.fails:
            compared.wrong += _complaint(first, run, found)
            continue
        says = sum(between, replace(path.usage, not_priced=()))
        if run.usage != says:
            compared.wrong.append(f"{' > '.join(run.states)}: {run.usage}, and cost says {says}")
        else:
            compared.driven.add(path.states)
    return compared


def _of_two_rounds(machine: Machine, names: Names) -> tuple[Names, list[Usage]]:
    """The first and the last round of a loop; and the usage of the states between them, as cost has it."""
    if max(Counter(names).values()) <= 2:
        return names, []
    top = machine["States"]
    onward = {name: [*ways_on(state), *ways_of_catch(state)] for name, state in top.items()}
    for head in {loop for loops in loops_of(machine["StartAt"], onward).values() for loop in loops}:
        places = [place for place, name in enumerate(names) if name == head]
        if len(places) > 2:
            between = names[places[1] : places[-1]]
            return (
                (*names[: places[1]], *names[places[-1] :]),
                [paths.own_usage(name, top[name], item_kb=1) for name in between],
            )
    return names, []


def all_paths(drive: Drive) -> list[Path]:
    """Every path that cost finds, with all its states."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "MOST", 1_000_000)
        walker = paths.Walker(1, drive.items, lambda _: Decimal(0), alike=each)
        return walker.paths(drive.definition)


def untried_steps(compared: Compared) -> set[tuple[str, str]]:
    """The steps from a state to the next of all paths, which no run has made."""

    def steps(those: Iterable[Names]) -> set[tuple[str, str]]:
        return {step for path in those for step in itertools.pairwise(path)}

    return steps(compared.found) - steps(compared.driven)


def _seen(drive: Drive, names: Names) -> Names:
    """Branches and items run beside each other, in any order."""
    has_order = not any(
        state["Type"] == "Map" or len(state.get("Branches", [])) > 1
        for _, state, _ in states(drive.definition)
    )
    return names if has_order else tuple(sorted(names))


def _of_one_item(drive: Drive, names: Names) -> Names:
    """The states of all items but one left out."""
    if drive.items == 1:
        return names
    rounds = {
        name: drive.items ** sum(one["Type"] == "Map" for one in around)
        for name, _, around in states(drive.definition)
    }
    return tuple(name for name, times in sorted(Counter(names).items()) for _ in range(times // rounds[name]))


def _complaint(drive: Drive, run: Driven, found: Sequence[Path]) -> list[str]:
    """A failure that nothing catches ends a path in its middle; else cost does not know this path."""
    entered = Counter(run.states)
    is_beginning = any(entered <= Counter(path.states) for path in found)
    if run.fails and is_beginning and _may_be_uncaught(drive, run):
        return []
    return [f"{' > '.join(run.states)} ends with {run.error}, and cost does not know the path"]


def _may_be_uncaught(drive: Drive, run: Driven) -> bool:
    """Whether it ends in a state with no Catch for this error."""
    last = {name: state for name, state, _ in states(drive.definition)}[run.states[-1]]
    names = {name for catcher in last.get("Catch", []) for name in catcher["ErrorEquals"]}
    return last["Type"] != "Fail" and run.error not in names
