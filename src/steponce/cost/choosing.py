"""Where a state leads, and which ways a Choice does not go because of what is known."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from steponce.cost.catching import Outcome, catchers_after
from steponce.cost.definition import State, ways_on
from steponce.cost.knowledge import (
    NOTHING,
    Known,
    Place,
    Unsure,
    after_error,
    after_success,
    of_both,
    place_of,
    value_at,
)

Rule = Mapping[str, Any]

_KINDS: Mapping[str, Callable[[Any], bool]] = {
    "IsPresent": lambda value: value is not Unsure.ABSENT,
    "IsString": lambda value: value is Unsure.SOME_TEXT or isinstance(value, str),
    "IsNumeric": lambda value: _is_number(value),
    "IsBoolean": lambda value: isinstance(value, bool),
    "IsNull": lambda value: value is None,
}
_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "StringEquals": lambda value, other: bool(value == other),
    "BooleanEquals": lambda value, other: bool(value == other),
    "NumericEquals": lambda value, other: bool(value == other),
    "NumericLessThan": lambda value, other: bool(value < other),
    "NumericLessThanEquals": lambda value, other: bool(value <= other),
    "NumericGreaterThan": lambda value, other: bool(value > other),
    "NumericGreaterThanEquals": lambda value, other: bool(value >= other),
}
"""Of two values of the kind in the name. Other comparisons may have any answer."""
_BESIDE = ("Next", "Assign", "Comment", "Output")
"""The fields of a rule that are no part of its condition."""


def known_after(state: State, known: Known, outcome: Outcome) -> dict[str, Known]:
    """
    Where a state may lead, and what is known there.

    Args:
        state: The state.
        known: What is known where it begins.
        outcome: How it ends.
    """
    found: dict[str, Known] = {}
    if not outcome.fails:
        asked = NOTHING if "InputPath" in state else known
        ways = _ways_of_choice(state, asked) if "Choices" in state else ways_on(state)
        found = dict.fromkeys(ways, after_success(state, known))
    for catcher, errors in catchers_after(state, outcome):
        target, there = str(catcher.get("Next")), after_error(state, catcher, known, errors)
        found[target] = of_both(found[target], there) if target in found else there
    return found


def places_asked(state: State) -> Iterator[tuple[Place, bool]]:
    """The places that the rules of a Choice read, each with whether the rule compares the value there."""
    waiting: list[Rule] = [rule for rule in state.get("Choices", []) if isinstance(rule, dict)]
    while waiting:
        rule = waiting.pop()
        waiting += _parts(rule)
        if (place := place_of(rule.get("Variable"))) is not None:
            yield place, any(name in rule for name in _COMPARISONS)


def _ways_of_choice(state: State, known: Known) -> list[str]:
    """Its first rule that is true, and those before it that may be."""
    found: list[str] = []
    refused: set[frozenset[str]] = set()
    for rule in state["Choices"]:
        answer = _answer(rule, known) if isinstance(rule, dict) else False
        if answer is None:
            needed = _undecided(rule, known)
            if needed in refused or any(frozenset({part}) in refused for part in needed):
                continue  # whenever this rule is true, an earlier one is
            if "Condition" not in rule:  # JSONata may be random
                refused.add(needed)
        if answer is not False and rule.get("Next") is not None:
            found.append(str(rule["Next"]))
        if answer is True:
            break
    else:
        found += [str(state["Default"])] if "Default" in state else []
    return found or ways_on(state)


def _undecided(rule: Rule, known: Known) -> frozenset[str]:
    """The parts of a rule that are not decided yet, as JSON. The rule is true if all of them are."""
    parts = rule.get("And", [{name: value for name, value in rule.items() if name not in _BESIDE}])
    return frozenset(json.dumps(part, sort_keys=True) for part in parts if _answer(part, known) is None)


def _answer(rule: Rule, known: Known) -> bool | None:
    """Whether a rule is true; None if it may be either."""
    if "Not" in rule:
        answer = _answer(rule["Not"], known)
        return None if answer is None else not answer
    for name, decisive in (("And", False), ("Or", True)):
        if name in rule:
            answers = {_answer(part, known) for part in rule[name]}
            return decisive if decisive in answers else None if None in answers else not decisive
    place = place_of(rule.get("Variable"))
    value = Unsure.ANYTHING if place is None else value_at(place, known)
    return None if value is Unsure.ANYTHING else _of_value(rule, value)


def _of_value(rule: Rule, value: Any) -> bool | None:
    for name, is_kind in _KINDS.items():
        if isinstance(rule.get(name), bool) and (value is not Unsure.ABSENT or name == "IsPresent"):
            return is_kind(value) is rule[name]
    for name, compare in _COMPARISONS.items():
        if name in rule and _are_alike(name, value, rule[name]):
            return compare(value, rule[name])
    return None


def _are_alike(comparison: str, *values: Any) -> bool:
    """Whether a comparison is one of such values. What it says of others is not known."""
    if comparison.startswith("String"):
        return all(isinstance(value, str) and "${" not in value for value in values)
    is_kind = _KINDS["IsNumeric" if comparison.startswith("Numeric") else "IsBoolean"]
    return all(map(is_kind, values))


def _parts(rule: Rule) -> list[Rule]:
    return [*rule.get("And", []), *rule.get("Or", []), *([rule["Not"]] if "Not" in rule else [])]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
