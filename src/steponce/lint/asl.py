"""
Walks through a definition in Amazon States Language, given as parsed JSON.

A part of the wrong type is left out, without an error: `lint.definitions` says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Machine = dict[str, Any]
"""A machine, or the one in a Map or in a branch of a Parallel."""

State = dict[str, Any]

TEMPLATES = ("Parameters", "ResultSelector", "ItemSelector", "Assign")
"""The fields of a state in JSONPath whose value is an object that is filled at run time."""


def states(machine: Machine) -> Iterator[tuple[str, State]]:
    """Every state with its name, those in Maps and Parallels too."""
    for one in machines(machine):
        yield from own_states(one)


def own_states(machine: Machine) -> Iterator[tuple[str, State]]:
    """The states of a machine itself."""
    yield from (
        (name, state) for name, state in as_object(machine.get("States")).items() if isinstance(state, dict)
    )


def machines(machine: Machine) -> Iterator[Machine]:
    """The machine itself, and every one inside."""
    yield machine
    for _, state in own_states(machine):
        for _, inner in inner_machines(state):
            yield from machines(inner)


def inner_machines(state: State) -> Iterator[tuple[str, Machine]]:
    """The machines in a Map or a Parallel, each with its place: `ItemProcessor`, `Branches[0]`."""
    for place, branch in enumerate(objects(state.get("Branches"))):
        yield f"Branches[{place}]", branch
    for key in ("Iterator", "ItemProcessor"):
        if isinstance(state.get(key), dict):
            yield key, state[key]


def transitions(state: State) -> Iterator[tuple[dict[str, Any], str]]:
    """The parts of a state that name a next one, each with the field that does."""
    for part in [state, *objects(state.get("Choices")), *objects(state.get("Catch"))]:
        yield from ((part, key) for key in ("Next", "Default") if isinstance(part.get(key), str))


def reachable(graph: Mapping[str, Sequence[str]], *starts: str) -> set[str]:
    """Every state that can be reached, the starts included."""
    seen: set[str] = set()
    waiting = list(starts)
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += graph.get(name, [])
    return seen


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects in a list. Empty for every other value."""
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []


def as_object(value: Any) -> dict[str, Any]:
    """The value, if it is an object; else an empty one."""
    return value if isinstance(value, dict) else {}
