"""The states of a definition: which are there, and which lead where."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Machine = dict[str, Any]
State = dict[str, Any]


def states(machine: Machine) -> Iterator[tuple[str, State]]:
    """Every state with its name, including those inside a Map or a Parallel's branches."""
    for name, state in machine["States"].items():
        yield name, state
        for inner in inner_machines(state):
            yield from states(inner)


def machines(machine: Machine) -> Iterator[Machine]:
    """The machine itself, and every one inside it."""
    yield machine
    for state in machine["States"].values():
        for inner in inner_machines(state):
            yield from machines(inner)


def inner_machines(state: State) -> list[Machine]:
    """The machines of a Parallel's branches, or the one of a Map."""
    return [
        *state.get("Branches", []),
        *(state[key] for key in ("Iterator", "ItemProcessor") if key in state),
    ]


def transitions(state: State) -> Iterator[tuple[dict[str, Any], str]]:
    """The parts of a state that name a next state, each with the field that does."""
    for part in [state, *state.get("Choices", []), *state.get("Catch", [])]:
        yield from ((part, key) for key in ("Next", "Default") if key in part)


def edges(machine: Machine) -> dict[str, list[str]]:
    """The states that each state of a machine leads to. Inner machines have graphs of their own."""
    return {
        name: [part[key] for part, key in transitions(state)] for name, state in machine["States"].items()
    }


def is_action(state: State) -> bool:
    """Whether a state may have an effect: a Task, or what may hold one."""
    return state["Type"] in ("Task", "Parallel", "Map")


def catches(state: State, error: str) -> bool:
    """Whether a Catch of the state takes this error of its task."""
    names = {name for catcher in state.get("Catch", []) for name in catcher["ErrorEquals"]}
    return not names.isdisjoint({error, "States.ALL", "States.TaskFailed"})
