"""
What AWS refuses when a state machine is created.

Only what CreateStateMachine certainly refuses is refused here, since users' own definitions run on this
stack, too. statelint is no substitute: it takes Assign in JSONPath states, filters in paths and JSONata
time-outs for mistakes, all of which AWS accepts, and it misses heartbeats, retriers and resources.

Source: Amazon States Language specification; Step Functions API reference, ValidateStateMachineDefinition.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from steponce.local.template.definition_fields import JSONATA, JSONPATH, state_complaints

_LONGEST = 1_048_576
_LONGEST_NAME = 80
_LONGEST_TIMEOUT = 99_999_999
_MACHINE = {"Comment", "StartAt", "States", "TimeoutSeconds", "Version", "QueryLanguage"}
_INNER = {"Comment", "StartAt", "States", "QueryLanguage", "ProcessorConfig"}


def complaints(text: str) -> list[str]:
    """Why AWS would not create a state machine with this definition; each with the state that it is about."""
    if len(text) > _LONGEST:
        return [f"The definition has {len(text):,} characters; {_LONGEST:,} are allowed."]
    try:
        definition = json.loads(text)
    except ValueError as error:
        return [f"The definition is not JSON: {error}."]
    if not isinstance(definition, dict):
        return ["The definition is not a JSON object."]
    return [*_machine(definition, "", definition.get("QueryLanguage", JSONPATH)), *_names(definition)]


def _machine(machine: dict[str, Any], where: str, language: str) -> Iterator[str]:
    """A machine, or the one inside of a Map or of a Parallel's branch."""
    place = where or "The state machine"
    for field in sorted(set(machine) - (_INNER if where else _MACHINE)):
        yield f"{place}: there is no field {field!r}."
    if not where and not _is_timeout(machine.get("TimeoutSeconds", 1)):
        yield f"{place}: TimeoutSeconds must be a whole number from 1 to {_LONGEST_TIMEOUT:,}."
    if machine.get("QueryLanguage", JSONPATH) not in (JSONPATH, JSONATA):
        yield f"{place}: QueryLanguage must be {JSONPATH} or {JSONATA}."
    states = machine.get("States")
    if not isinstance(states, dict) or not states:
        yield f"{place}: States must be an object with at least one state."
        return
    yield from _transitions(machine.get("StartAt"), states, place)
    for name, state in states.items():
        if len(name) > _LONGEST_NAME:
            yield f"{name}: a state's name has at most {_LONGEST_NAME} characters."
        if not isinstance(state, dict):
            yield f"{name}: a state must be an object."
            continue
        spoken = state.get("QueryLanguage", language)
        yield from (f"{name}: {text}" for text in state_complaints(state, spoken))
        for inside, inner in _inner_machines(state):
            yield from _machine(inner, f"{name}.{inside}", spoken)


def _transitions(start: Any, states: dict[str, Any], place: str) -> Iterator[str]:
    """Every target exists, and every state can be reached."""
    if not isinstance(start, str) or start not in states:
        yield f"{place}: StartAt must name one of its states, and is {start!r}."
        return
    graph = {name: list(_targets(state)) for name, state in states.items()}
    for name, targets in graph.items():
        for target in sorted(set(targets) - set(states)):
            yield f"{name}: it leads to {target!r}, and there is no such state beside it."
    seen, waiting = {start}, [start]
    while waiting:
        onward = set(graph.get(waiting.pop(), [])) & set(states) - seen
        seen |= onward
        waiting += onward
    for name in states:
        if name not in seen:
            yield f"{name}: the state is not reachable; nothing leads there from StartAt."


def _targets(state: Any) -> Iterator[str]:
    if not isinstance(state, dict):
        return
    rules = [part for key in ("Choices", "Catch") for part in _objects(state.get(key))]
    for part in [state, *rules]:
        for key in ("Next", "Default"):
            if isinstance(part.get(key), str):
                yield part[key]


def _names(definition: dict[str, Any]) -> Iterator[str]:
    """A history tells states by their names only."""
    for name, times in Counter(_all_names(definition)).items():
        if times > 1:
            yield f"{name}: {times} states of the state machine have this name."


def _all_names(machine: dict[str, Any]) -> Iterator[str]:
    states = machine.get("States")
    for name, state in states.items() if isinstance(states, dict) else ():
        yield name
        for _, inner in _inner_machines(state):
            yield from _all_names(inner)


def _inner_machines(state: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    if not isinstance(state, dict):
        return
    for place, branch in enumerate(_objects(state.get("Branches"))):
        yield f"Branches[{place}]", branch
    for key in ("Iterator", "ItemProcessor"):
        if isinstance(state.get(key), dict):
            yield key, state[key]


def _objects(value: Any) -> list[dict[str, Any]]:
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []


def _is_timeout(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _LONGEST_TIMEOUT
