"""
What is known of an execution's data on a path.

A Pass writes its Result, or what its Parameters say. An error that a catcher takes by its name has this name,
and that of a Fail has what the Fail says. What other states write is not known. Where it is not certain what
a state leaves of its input, nothing is known after it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from enum import Enum, auto
from typing import Any

from steponce.cost.catching import Catcher, Errors
from steponce.cost.definition import State

Place = tuple[str, ...]
"""`("failure", "Error")` is `$.failure.Error`."""

Known = frozenset[tuple[Place, str]]
"""Places, none of which is inside of another; each with its value as JSON, or with SOME_TEXT."""

NOTHING: Known = frozenset()
SOME_TEXT = ""

_NAMES_ONLY = re.compile(r"\$(?:\.[A-Za-z_]\w*)*")
_SUM = re.compile(r"States\.MathAdd\((?P<path>[^\s,]+), *(?P<more>-?\d+)\)")
_LARGEST_SUM = 2**31 - 1


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
    return _with(known, state, dict(_written_by_pass(state, known)) if state.get("Type") == "Pass" else {})


def after_error(state: State, catcher: Catcher, known: Known, errors: Errors) -> Known:
    """What is known after a catcher has taken the error of a state. The error is one of `errors`."""
    if {"OutputPath", "Output"} & {*state, *catcher}:
        return NOTHING
    before = NOTHING if "InputPath" in state else known
    return _with(before, catcher, dict(_written_by_error(errors)))


def of_both(some: Known, others: Known) -> Known:
    """What is known where two ways meet: only what is known on both."""
    there = dict(others)
    return frozenset(
        (place, text if text == there[place] else SOME_TEXT)
        for place, text in some
        if place in there and (text == there[place] or all(map(_is_text, (text, there[place]))))
    )


def about(known: Known, asked: Mapping[Place, bool]) -> Known:
    """
    The part of what is known that decides rules of Choices.

    Args:
        known: What is known.
        asked: The places that the rules read, and whether one of them compares the value there.
    """
    found = set()
    for place, text in known:
        compared = [compares for other, compares in asked.items() if _overlap(place, other)]
        if compared:
            found.add((place, SOME_TEXT if _is_text(text) and not any(compared) else text))
    return frozenset(found)


def _fields_of_rules(state: State) -> set[str]:
    """The fields of a Choice's rules. In JSONata a rule may have an Output."""
    return {str(name) for rule in state.get("Choices", []) if isinstance(rule, dict) for name in rule}


def _written_by_pass(state: State, known: Known) -> Iterator[tuple[Place, str]]:
    if "Result" in state:
        if "Parameters" not in state:  # which of them counts is not documented
            yield (), json.dumps(state["Result"])
    elif isinstance(state.get("Parameters"), dict):
        for name, value in state["Parameters"].items():
            if isinstance(value, str) and name.endswith(".$"):
                result = SOME_TEXT if value.startswith("States.Format(") else _sum(value, known)
                if result is not None:
                    yield (name.removesuffix(".$"),), result
            elif not isinstance(value, dict | list):
                yield (name,), json.dumps(value)


def _sum(expression: str, known: Known) -> str | None:
    """What States.MathAdd makes of a known number and a fixed one. None if the expression is another."""
    found = _SUM.fullmatch(expression)
    place = place_of(found["path"]) if found else None
    value = None if place is None else value_at(place, known)
    if not found or not isinstance(value, int) or isinstance(value, bool):
        return None
    result = value + int(found["more"])
    return str(result) if max(abs(value), abs(result)) <= _LARGEST_SUM else None


def _written_by_error(errors: Errors) -> Iterator[tuple[Place, str]]:
    if errors.named and "" not in errors.named:
        name, *others = errors.named
        yield ("Error",), SOME_TEXT if others or name.startswith("States.") else json.dumps(name)
    if errors.has_cause:
        yield ("Cause",), SOME_TEXT


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


def _is_text(text: str) -> bool:
    """Whether this JSON stands for a text."""
    return text == SOME_TEXT or text.startswith('"')


def _overlap(some: Place, other: Place) -> bool:
    return all(one == another for one, another in zip(some, other, strict=False))
