"""
What is known of an execution's data on a path.

A Pass writes its Result, or what its Parameters say, and the error that a catcher takes by its name has this
name. What other states write is not known. Where it is not certain what a state leaves of its input, nothing
is known after it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum, auto
from typing import Any

from steponce.cost.catching import ALL, BRANCH_FAILED, TASK_FAILED, is_open
from steponce.cost.definition import State

Place = tuple[str, ...]
"""`("failure", "Error")` is `$.failure.Error`."""

Known = frozenset[tuple[Place, str]]
"""Places, none of which is inside of another; each with its value as JSON, or with SOME_TEXT."""

NOTHING: Known = frozenset()
SOME_TEXT = ""

_NAMES_ONLY = re.compile(r"\$(?:\.[A-Za-z_]\w*)*")


class Unsure(Enum):
    """What is there instead of a known value."""

    ANYTHING = auto()
    SOME_TEXT = auto()
    ABSENT = auto()


def place_of(path: Any) -> Place | None:
    """The place of a path that consists of names; None for any other."""
    if not isinstance(path, str) or not _NAMES_ONLY.fullmatch(path):
        return None
    return tuple(path.split(".")[1:])


def value_at(place: Place, known: Known) -> Any:
    """The value at a place, or one of Unsure."""
    for at, text in known:
        if place[: len(at)] == at:
            if text == SOME_TEXT:
                return Unsure.SOME_TEXT if place == at else Unsure.ANYTHING
            value = json.loads(text)
            for name in place[len(at) :]:
                if not isinstance(value, dict) or name not in value:
                    return Unsure.ABSENT
                value = value[name]
            return value
    return Unsure.ANYTHING


def after_success(state: State, known: Known) -> Known:
    """What is known after a state that did not fail."""
    if {"InputPath", "OutputPath", "Output"} & {*state, *_fields_of_rules(state)}:
        return NOTHING
    if state.get("Type") in ("Choice", "Wait"):
        return known
    return _with(known, state, dict(_written_by_pass(state)) if state.get("Type") == "Pass" else {})


def after_error(state: State, catcher: Mapping[str, Any], known: Known) -> Known:
    """What is known after a catcher has taken the error of a state."""
    if {"OutputPath", "Output"} & {*state, *catcher}:
        return NOTHING
    names = [str(name) for name in catcher.get("ErrorEquals", [])]
    has_name = not any(name in (ALL, TASK_FAILED, BRANCH_FAILED) or is_open(name) for name in names)
    before = NOTHING if "InputPath" in state else known
    return _with(before, catcher, {("Error",): SOME_TEXT} if has_name else {})


def about(known: Known, places: Iterable[Place]) -> Known:
    """What of it helps to know the values at these places."""
    asked = list(places)
    return frozenset(one for one in known if any(_overlap(one[0], place) for place in asked))


def _fields_of_rules(state: State) -> set[str]:
    """The fields of a Choice's rules. In JSONata a rule may have an Output."""
    return {str(name) for rule in state.get("Choices", []) if isinstance(rule, dict) for name in rule}


def _written_by_pass(state: State) -> Iterator[tuple[Place, str]]:
    if "Result" in state:
        if "Parameters" not in state:  # which of them counts is not documented
            yield (), json.dumps(state["Result"])
    elif isinstance(state.get("Parameters"), dict):
        for name, value in state["Parameters"].items():
            if isinstance(value, str) and name.endswith(".$"):
                if value.startswith("States.Format("):
                    yield (name.removesuffix(".$"),), SOME_TEXT
            elif not isinstance(value, dict | list):
                yield (name,), json.dumps(value)


def _with(known: Known, writer: Mapping[str, Any], written: Mapping[Place, str]) -> Known:
    """What is known after a result, of which this much is known, went to the ResultPath of its writer."""
    path = writer.get("ResultPath", "$")
    if path is None:
        return known
    place = place_of(path)
    if place is None:
        return NOTHING
    left = {one for one in known if not _overlap(one[0], place)}
    certain = {((*place, *at), text) for at, text in written.items() if "${" not in text}
    return frozenset(left | certain)


def _overlap(some: Place, other: Place) -> bool:
    return all(one == another for one, another in zip(some, other, strict=False))
