"""What the rules of a Choice may say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from steponce.lint.values import JSONATA, is_expression, is_path, is_timestamp

_KINDS = ("String", "Numeric", "Timestamp")
_ORDERS = ("Equals", "LessThan", "GreaterThan", "LessThanEquals", "GreaterThanEquals")
_COMPARISONS = (
    {f"{kind}{order}{end}" for kind in _KINDS for order in _ORDERS for end in ("", "Path")}
    | {"BooleanEquals", "BooleanEqualsPath", "StringMatches"}
    | {f"Is{kind}" for kind in ("Null", "Present", "Numeric", "String", "Boolean", "Timestamp")}
)


def choice_complaints(state: dict[str, Any], language: str) -> Iterator[str]:
    """Why AWS would refuse this Choice."""
    rules = state.get("Choices")
    if not isinstance(rules, list) or not rules or not all(isinstance(rule, dict) for rule in rules):
        yield "Choices must be a list of rules, and not empty."
        return
    if not isinstance(state.get("Default", ""), str):
        yield "Default must be a state's name."
    for place, rule in enumerate(rules):
        where = f"Choices[{place}]"
        if not isinstance(rule.get("Next"), str):
            yield f"{where}: Next must be a state's name."
        rest = {key: part for key, part in rule.items() if key not in ("Next", "Comment", "Assign", "Output")}
        if language != JSONATA and "Output" in rule:
            yield f"{where} in {language} has no field 'Output'."
        if language != JSONATA:
            yield from _test(rest, where)
        elif set(rest) != {"Condition"}:
            yield f"{where}: a rule in {JSONATA} has a Condition, and no test beside it."
        elif not isinstance(rest["Condition"], bool) and not is_expression(rest["Condition"], language):
            yield f"{where}: Condition must be an expression, {{% … %}}, and is {rest['Condition']!r}."


def _test(test: Any, where: str) -> Iterator[str]:
    """One test of a rule, with the tests inside."""
    if not isinstance(test, dict):
        yield f"{where}: a test must be an object."
        return
    fields = set(test) - {"Comment"}
    if len(fields) == 1 and fields <= {"And", "Or"}:
        (key,) = fields
        parts = test[key]
        if not isinstance(parts, list) or not parts:
            yield f"{where}: {key} must be a list of tests, and not empty."
            return
        for place, part in enumerate(parts):
            yield from _test(part, f"{where}.{key}[{place}]")
    elif fields == {"Not"}:
        yield from _test(test["Not"], f"{where}.Not")
    elif "Variable" not in fields or len(fields) != 2 or not fields - {"Variable"} <= _COMPARISONS:
        yield f"{where}: a test is And, Or, Not, or a Variable with one comparison, and has {sorted(fields)}."
    else:
        yield from _comparison(test, where)


def _comparison(test: dict[str, Any], where: str) -> Iterator[str]:
    variable = test["Variable"]
    if not is_path(variable):
        yield f"{where}: Variable must be a path, which begins with $, and is {variable!r}."
    (operator,) = set(test) - {"Variable", "Comment"}
    value = test[operator]
    if not _may_be(operator, value):
        yield f"{where}: {operator} cannot be {value!r}."


def _may_be(operator: str, value: Any) -> bool:
    """Whether a comparison can have this value."""
    if operator.startswith("Is") or operator == "BooleanEquals":
        return isinstance(value, bool)
    if operator.endswith("Path"):
        return is_path(value)
    if operator.startswith("Numeric"):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return is_timestamp(value) if operator.startswith("Timestamp") else isinstance(value, str)
