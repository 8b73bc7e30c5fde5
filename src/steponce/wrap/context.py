"""
Rewrites references to the context object, so that they still mean the same.

Inside of the workflow the execution's input is the envelope, and the machine's input is its payload. So
`$$.Execution.Input` becomes `$$.Execution.Input.payload`. The rest of the context object is the workflow's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from steponce.lint.asl import Machine, State, states

_TEMPLATES = (
    "Parameters",
    "ResultSelector",
    "ItemSelector",
    "Assign",
    "Credentials",
    "ItemBatcher",
    "ItemReader",
    "ResultWriter",
)
_NOT_READ = ("Result", "Comment", "Branches", "Iterator", "ItemProcessor")
_TOKEN = re.compile(r"'(?:[^'\\]|\\.)*'?|\$\$(?P<steps>(?:\.\w+|\['[^']*'\])*)")
_STEP = re.compile(r"\.(\w+)|\['([^']*)'\]")
_INPUT = re.compile(r"^\$\$(?:\.\w+|\['[^']*'\]){2}")
_OF_THE_WORKFLOW = (("Execution", "Name"), ("Execution", "Id"), ("Execution", "RoleArn"))

Rewrite = Callable[[str], str]


def names_of(reference: str) -> list[str]:
    """`$$.Execution.Input[0].id` -> Execution, Input. An index or a filter, and what follows, is left out."""
    match = _TOKEN.match(reference)
    return [] if match is None else [dot or bracket for dot, bracket in _STEP.findall(match["steps"] or "")]


def references(state: State) -> Iterator[str]:
    """Every reference of a state to the context object, as far as its names go: `$$.Execution.Input.id`."""
    found: list[str] = []

    def note(reference: str) -> str:
        found.append(reference)
        return reference

    _rewrite_state(state, note)
    yield from found


def refusals(machine: Machine) -> Iterator[str]:
    """The references that cannot be rewritten to mean the same."""
    for name, state in states(machine):
        for reference in references(state):
            steps = names_of(reference)
            if steps in ([], ["Execution"]):
                yield (
                    f"{name}: it reads {reference} as a whole, and its Input differs inside the workflow. "
                    "Read the fields that you need one by one."
                )
        parameters = state.get("Parameters")
        if isinstance(parameters, dict) and "StateMachine" in str(parameters.get("StateMachineArn.$", "")):
            yield (
                f"{name}: it calls its own state machine by $$.StateMachine.Id, which would be the workflow."
            )


def notes(machine: Machine) -> Iterator[tuple[str, str]]:
    """The states that read a name or an ARN of the execution, and what they read."""
    for name, state in states(machine):
        for reference in references(state):
            if tuple(names_of(reference)[:2]) in _OF_THE_WORKFLOW:
                yield name, reference


def rewrite(machine: Machine, names_before: dict[str, str]) -> list[str]:
    """
    Rewrite each reference so that it means the same as before.

    Args:
        machine: It is changed.
        names_before: The former name of each state that has another one now.

    Returns:
        The names of the states that were changed.
    """
    changed = []
    for name, state in states(machine):
        before = names_before.get(name)

        def same(reference: str, before: str | None = before) -> str:
            steps = names_of(reference)
            if steps[:2] == ["Execution", "Input"]:
                # What follows stays as it is: a name such as `3ds-result` goes on after what was matched.
                return f"$$.Execution.Input.payload{_INPUT.sub('', reference)}"
            if steps == ["State", "Name"] and before is not None:
                return f"States.Format('{before}')"
            return reference

        if _rewrite_state(state, same):
            changed.append(name)
    return changed


def _rewrite_state(state: State, rewrite: Rewrite) -> bool:
    changed = False
    for key, value in state.items():
        if key in _NOT_READ:
            continue
        changed |= _rewrite_field(state, key, value, rewrite, in_template=key in _TEMPLATES)
    return changed


def _rewrite_field(part: Any, key: Any, value: Any, rewrite: Rewrite, *, in_template: bool) -> bool:
    """A field of a state, and what is in it. In a template only the fields that end in `.$` are read."""
    if isinstance(value, str):
        name = str(key)
        if not (name.endswith(".$") if in_template else name == "Variable" or name.endswith("Path")):
            return False
        text = _TOKEN.sub(lambda match: match[0] if match["steps"] is None else rewrite(match[0]), value)
        changed = text != value
        if changed:
            part[key] = text
        return changed
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    changed = False
    for name, one in list(inner):
        template = in_template or name in _TEMPLATES
        changed |= _rewrite_field(value, name, one, rewrite, in_template=template)
    return changed
