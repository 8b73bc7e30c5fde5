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
from typing import Any, NamedTuple

from steponce.lint.asl import as_object, inner_machines, objects, reachable, states, transitions
from steponce.lint.calls import Call
from steponce.lint.fields import state_complaints
from steponce.lint.values import JSONATA, JSONPATH, is_whole
from steponce.workflow import LONGEST_TIMEOUT

STANDARD = "STANDARD"
EXPRESS = "EXPRESS"

_LONGEST = 1_048_576
_LONGEST_NAME = 80
_WHOLE = "The state machine"
_MACHINE = {"Comment", "StartAt", "States", "TimeoutSeconds", "Version", "QueryLanguage"}
_INNER = {"Comment", "StartAt", "States", "QueryLanguage", "ProcessorConfig"}


class Refusal(NamedTuple):
    """
    Why AWS would not create a state machine.

    Attributes:
        kind: Which of `KINDS`.
        state: The state that it is about. For a machine in a Map or a branch: "Each.ItemProcessor". Empty for
            the whole state machine.
        text: What is wrong.
    """

    kind: str
    state: str
    text: str


KINDS = (
    "invalid-definition",
    "missing-target",
    "unreachable-state",
    "duplicate-name",
    "states-all-not-last",
    "heartbeat-timeout",
)


def complaints(text: str, kind: str = STANDARD) -> list[str]:
    """
    Why AWS would not create a state machine with this definition; each with the state that it is about.

    Args:
        text: The definition.
        kind: STANDARD or EXPRESS.
    """
    if len(text) > _LONGEST:
        return [f"The definition has {len(text):,} characters; {_LONGEST:,} are allowed."]
    try:
        definition = json.loads(text)
    except ValueError as error:
        return [f"The definition is not JSON: {error}."]
    return [f"{refusal.state or _WHOLE}: {refusal.text}" for refusal in refusals(definition, kind)]


def refusals(definition: Any, kind: str = STANDARD) -> list[Refusal]:
    """The same for a definition that is given as parsed JSON."""
    if not isinstance(definition, dict):
        return [Refusal("invalid-definition", "", "the definition is not a JSON object.")]
    spoken = definition.get("QueryLanguage", JSONPATH)
    express = _express(definition) if kind == EXPRESS else ()
    return [*_machine(definition, "", spoken), *express, *_duplicates(definition)]


def refusals_before_substitution(definition: Any, kind: str = STANDARD) -> list[Refusal]:
    """
    The same for a definition whose placeholders, `${Name}`, are still there.

    Nobody knows what one of them becomes. So nothing is said about a value that holds one; and where one
    names the next state, nothing about states that cannot be reached.
    """
    unknown = isinstance(definition, dict) and any(
        "${" in part[key] for _, state in states(definition) for part, key in transitions(state)
    )
    return [
        refusal
        for refusal in refusals(definition, kind)
        if "${" not in refusal.text and not (unknown and refusal.kind == "unreachable-state")
    ]


def _machine(machine: dict[str, Any], where: str, language: Any) -> Iterator[Refusal]:
    """A machine, or the one inside a Map or a Parallel's branch."""
    yield from (Refusal("invalid-definition", where, text) for text in _machine_fields(machine, where))
    states = machine.get("States")
    if not isinstance(states, dict) or not states:
        return
    yield from _transitions(machine.get("StartAt"), states, where)
    for name, state in states.items():
        spoken = state.get("QueryLanguage", language) if isinstance(state, dict) else language
        yield from _state(name, state, spoken)
        if language == JSONATA and spoken == JSONPATH:
            text = f"QueryLanguage cannot be {JSONPATH}, because the state machine is in {JSONATA}."
            yield Refusal("invalid-definition", name, text)
        for inside, inner in inner_machines(state) if isinstance(state, dict) else ():
            yield from _machine(inner, f"{name}.{inside}", language)


def _express(machine: dict[str, Any]) -> Iterator[Refusal]:
    """
    What Express workflows cannot do.

    Of those that are the items of a distributed Map nothing is said: AWS may find out when they run.

    Source: the developer guide, "Choosing workflow type": they "do not support Run a Job (.sync) or Wait for
    Callback (.waitForTaskToken)", nor activities, nor distributed Maps.
    """
    for name, state in as_object(machine.get("States")).items():
        if not isinstance(state, dict):
            continue
        call = Call.of(state.get("Resource")) if state.get("Type") == "Task" else None
        if call is not None and (call.pattern or call.integration == "activity"):
            text = f"Resource: an Express workflow cannot wait for {call}. Use a Standard one."
            yield Refusal("invalid-definition", name, text)
        for _, inner in inner_machines(state):
            if as_object(inner.get("ProcessorConfig")).get("Mode") == "DISTRIBUTED":
                text = "an Express workflow cannot have a distributed Map. Use a Standard one."
                yield Refusal("invalid-definition", name, text)
            else:
                yield from _express(inner)


def _machine_fields(machine: dict[str, Any], where: str) -> Iterator[str]:
    for field in sorted(set(machine) - (_INNER if where else _MACHINE)):
        yield f"there is no field {field!r}."
    if not where and not is_whole(machine.get("TimeoutSeconds", 1), 1, LONGEST_TIMEOUT):
        given = machine["TimeoutSeconds"]
        yield f"TimeoutSeconds must be a whole number from 1 to {LONGEST_TIMEOUT:,}, and is {given!r}."
    if machine.get("QueryLanguage", JSONPATH) not in (JSONPATH, JSONATA):
        yield f"QueryLanguage must be {JSONPATH} or {JSONATA}."
    if not isinstance(machine.get("Comment", ""), str):
        yield f"Comment must be text, and is {machine['Comment']!r}."
    states = machine.get("States")
    if not isinstance(states, dict) or not states:
        yield "States must be an object with at least one state."


def _state(name: str, state: Any, language: Any) -> Iterator[Refusal]:
    if len(name) > _LONGEST_NAME:
        text = f"a state's name has at most {_LONGEST_NAME} characters."
        yield Refusal("invalid-definition", name, text)
    if not isinstance(state, dict):
        yield Refusal("invalid-definition", name, "a state must be an object.")
        return
    yield from (Refusal("invalid-definition", name, text) for text in state_complaints(state, language))
    for key in ("Retry", "Catch"):
        parts = objects(state.get(key))
        for place, part in enumerate(parts):
            names = part.get("ErrorEquals")
            alone = isinstance(names, list) and len(names) == 1 and place == len(parts) - 1
            if isinstance(names, list) and "States.ALL" in names and not alone:
                text = f"{key}[{place}]: States.ALL must stand alone, and in the last one."
                yield Refusal("states-all-not-last", name, text)
    heartbeat, timeout = state.get("HeartbeatSeconds"), state.get("TimeoutSeconds")
    if isinstance(heartbeat, int) and isinstance(timeout, int) and heartbeat >= timeout:
        text = f"HeartbeatSeconds ({heartbeat}) must be less than TimeoutSeconds ({timeout})."
        yield Refusal("heartbeat-timeout", name, text)


def _transitions(start: Any, states: dict[str, Any], where: str) -> Iterator[Refusal]:
    """Every target exists, and every state can be reached."""
    if not isinstance(start, str) or start not in states:
        text = f"StartAt must name one of its states, and is {start!r}."
        yield Refusal("missing-target", where, text)
        return
    graph = {name: _targets(state) for name, state in states.items()}
    for name, targets in graph.items():
        for target in sorted({target for target in targets if target not in states}):
            text = f"it leads to {target!r}, but there is no such state at its level."
            yield Refusal("missing-target", name, text)
    seen = reachable(graph, start)
    for name in states:
        if name not in seen:
            text = "the state is not reachable from StartAt."
            yield Refusal("unreachable-state", name, text)


def _targets(state: Any) -> list[str]:
    return [part[key] for part, key in transitions(state)] if isinstance(state, dict) else []


def _duplicates(definition: dict[str, Any]) -> Iterator[Refusal]:
    """A history identifies states only by name."""
    for name, times in Counter(name for name, _ in states(definition)).items():
        if times > 1:
            yield Refusal("duplicate-name", name, f"{times} states of the state machine have this name.")
