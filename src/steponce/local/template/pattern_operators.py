"""
What an event pattern may ask of one value: to be equal, or one operator.

Source: README of github.com/aws/event-ruler, which EventBridge matches with, and its JsonRuleCompiler for
what PutRule refuses.
"""

from __future__ import annotations

import ipaddress
import json
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

Condition = Callable[[Any], bool]

_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ONE_LIMIT = (["="], ["<"], ["<="], [">"], [">="])
_TWO_LIMITS = ([">", "<"], [">", "<="], [">=", "<"], [">=", "<="])
_WILDCARD = re.compile(r"(?:[^*\\]|\\[*\\]|\*(?!\*))*")
_OF_A_WILDCARD = re.compile(r"\\[*\\]|[^\\]")
_MASK = re.compile("[0-9]{1,3}")


def read_condition(given: Any) -> Condition | None:
    """
    One value of a list of a pattern.

    Returns:
        The test of a value of the event; None for `{"exists": false}`, which wants no value.

    Raises:
        ValueError: PutRule refuses it. The text says why, and begins after the field's name.
    """
    if isinstance(given, list):
        raise ValueError("must list texts, numbers, true, false, null or operators")
    if not isinstance(given, dict):
        return _equals(given)
    if len(given) != 1:
        raise ValueError(f"must have one operator in each object, not {', '.join(given) or 'none'}")
    name, operand = next(iter(given.items()))
    if name not in _OPERATORS:
        raise ValueError(f"has the operator {name!r}, which does not exist")
    try:
        return _OPERATORS[name](operand)
    except ValueError as error:
        raise ValueError(f"gives {name!r} {json.dumps(operand)}. It takes {error}") from None


def _expect(holds: bool, wanted: str) -> None:
    if not holds:
        raise ValueError(wanted)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _equals(given: Any) -> Condition:
    """As in JSON, where 1 and 1.0 are the same and 1 and true are not."""
    if _is_number(given):
        return lambda value: _is_number(value) and bool(value == given)
    return lambda value: type(value) is type(given) and bool(value == given)


def _on_text(test: Callable[[str], bool]) -> Condition:
    return lambda value: isinstance(value, str) and test(value)


def _exists(operand: Any) -> Condition | None:
    """An empty list is no value."""
    _expect(isinstance(operand, bool), "true or false")
    return (lambda _: True) if operand else None


def _affix(has: Callable[[str, str], bool]) -> Callable[[Any], Condition]:
    def read(operand: Any) -> Condition:
        is_folded = isinstance(operand, dict) and list(operand) == ["equals-ignore-case"]
        text = operand["equals-ignore-case"] if is_folded else operand
        _expect(isinstance(text, str), 'a text, or {"equals-ignore-case": a text}')
        return _on_text(lambda value: has(value.lower(), text.lower()) if is_folded else has(value, text))

    return read


def _equals_ignore_case(operand: Any) -> Condition:
    _expect(isinstance(operand, str), "a text")
    return _on_text(lambda value: value.lower() == operand.lower())


def _wildcard(operand: Any) -> Condition:
    _expect(
        isinstance(operand, str) and bool(_WILDCARD.fullmatch(operand)),
        "a text without ** and with a backslash only before * and another backslash",
    )
    between_stars = [""]
    for one in _OF_A_WILDCARD.findall(operand):
        if one == "*":
            between_stars.append("")
        else:
            between_stars[-1] += one[-1]
    return _on_text(lambda value: _is_like(between_stars, value))


def _is_like(between_stars: list[str], text: str) -> bool:
    """The first place of each part leaves the most room for those after it, so that none is tried again."""
    first, *others = between_stars
    if not others:
        return text == first
    *middle, last = others
    if not text.startswith(first):
        return False
    at = len(first)
    for part in middle:
        found = text.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return len(text) - len(last) >= at and text.endswith(last)


def _numeric(operand: Any) -> Condition:
    wanted = "a comparison and a number, or two of them for a range: first its bottom, then its top"
    _expect(isinstance(operand, list), wanted)
    signs, limits = operand[::2], operand[1::2]
    _expect((signs in _ONE_LIMIT or signs in _TWO_LIMITS) and len(limits) == len(signs), wanted)
    _expect(all(map(_is_number, limits)) and (len(limits) == 1 or limits[0] < limits[1]), wanted)
    tests = [(_COMPARISONS[sign], limit) for sign, limit in zip(signs, limits, strict=True)]
    return lambda value: _is_number(value) and all(holds(value, limit) for holds, limit in tests)


def _cidr(operand: Any) -> Condition:
    wanted = "a block of addresses such as 10.0.0.0/24"
    _expect(isinstance(operand, str) and bool(_MASK.fullmatch(operand.partition("/")[2])), wanted)
    try:
        block = ipaddress.ip_network(operand, strict=False)
    except ValueError:
        raise ValueError(wanted) from None

    def is_inside(value: str) -> bool:
        try:
            return ipaddress.ip_address(value) in block
        except ValueError:
            return False

    return _on_text(is_inside)


def _anything_but(operand: Any) -> Condition:
    """A list of the event matches if one of its values is another."""
    has_operator = isinstance(operand, dict) and len(operand) == 1 and next(iter(operand)) in _NEGATED
    name, given = next(iter(operand.items())) if has_operator else ("", operand)
    listed = given if isinstance(given, list) else [given]
    are_texts = all(isinstance(one, str) for one in listed)
    are_numbers = all(map(_is_number, listed))
    _expect(
        are_texts if has_operator else bool(listed) and (are_texts or are_numbers),
        f"texts or numbers, or an object with one of {', '.join(_NEGATED)} and texts",
    )
    _expect(name not in ("prefix", "suffix") or "" not in listed, "a prefix or suffix that is not empty")
    excluded = [_NEGATED.get(name, _equals)(one) for one in listed]
    return lambda value: not any(condition(value) for condition in excluded)


_NEGATED: Mapping[str, Callable[[Any], Condition]] = {
    "prefix": _affix(str.startswith),
    "suffix": _affix(str.endswith),
    "equals-ignore-case": _equals_ignore_case,
    "wildcard": _wildcard,
}
_OPERATORS: Mapping[str, Callable[[Any], Condition | None]] = {
    **_NEGATED,
    "anything-but": _anything_but,
    "cidr": _cidr,
    "exists": _exists,
    "numeric": _numeric,
}
# An object with one of these in the list of an "$or" makes it a field of that name.
RESERVED = {"exactly", "regex", "not-wildcard", "not-equals-ignore-case", *_COMPARISONS, *_OPERATORS}
