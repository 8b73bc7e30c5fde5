"""
The event patterns of EventBridge: what PutRule refuses, and which events one matches.

Source: README of github.com/aws/event-ruler, which EventBridge matches with, and its JsonRuleCompiler.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from steponce.local.template.pattern_operators import RESERVED, Condition, read_condition

# For the name of each field, with dots: its conditions, one of which must hold.
_Fields = Mapping[str, list[Condition | None]]

_OR = "$or"
_MOST_ALTERNATIVES = 1000


class InvalidPattern(ValueError):
    """AWS refuses the pattern: which field, and why in a sentence that begins after the field's name."""

    def __init__(self, field_name: str, problem: str) -> None:
        super().__init__(f"{field_name!r} {problem}")
        self.field_name = field_name
        self.problem = problem


class Pattern:
    """What events must have."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        """
        Read a pattern.

        Raises:
            InvalidPattern: PutRule refuses it. Wildcards that are only too complex are not refused here.
        """
        self._alternatives = [dict(sorted(one.items())) for one in _alternatives(given, "", [{}])]
        self._names = {name for fields in self._alternatives for name in fields}

    def matches(self, event: Mapping[str, Any]) -> bool:
        """Whether it matches an event. The time is at most that of each combination on each value."""
        root = _Node()
        _collect(event, "", root, self._names)
        return any(_match(fields, root) for fields in self._alternatives)


def _alternatives(part: Mapping[str, Any], prefix: str, found: list[_Fields]) -> list[_Fields]:
    """
    Add the fields of one object of a pattern to each alternative. `$or` multiplies these.

    Source: EventBridge User Guide, "Comparison operators": PutRule takes 1,000 combinations of `$or`.
    """
    if not part:
        raise InvalidPattern(prefix.rstrip(".") or "{}", "must not be an object without fields")
    for key, value in part.items():
        if _is_or(key, value):
            if len(found) * len(value) > _MOST_ALTERNATIVES:
                raise InvalidPattern(_OR, f"makes more than {_MOST_ALTERNATIVES} combinations")
            found = [one for branch in value for one in _alternatives(branch, prefix, found)]
        elif isinstance(value, dict):
            found = _alternatives(value, f"{prefix}{key}.", found)
        elif isinstance(value, list) and value:
            conditions = _conditions(key, value)
            found = [{**fields, f"{prefix}{key}": conditions} for fields in found]
        else:
            raise InvalidPattern(key, "must be an object or a list that is not empty")
    return found


def _is_or(key: str, value: Any) -> bool:
    """Whether this is the operator, and not a field of that name."""
    return (
        key == _OR
        and isinstance(value, list)
        and len(value) > 1
        and all(isinstance(one, dict) and not one.keys() & RESERVED for one in value)
    )


def _conditions(key: str, listed: list[Any]) -> list[Condition | None]:
    try:
        return [read_condition(one) for one in listed]
    except ValueError as error:
        raise InvalidPattern(key, str(error)) from None


@dataclass
class _Node:
    """The values of an event, or of an object in an array. The objects in its arrays are nodes below it."""

    values: dict[str, list[Any]] = field(default_factory=dict)
    arrays: list[list[_Node]] = field(default_factory=list)
    names: set[str] = field(default_factory=set)  # also those of its arrays

    def may_be(self, name: str, conditions: list[Condition | None]) -> bool:
        """Whether the field matches without a choice of an element."""
        if name not in self.names:
            return None in conditions
        values = self.values.get(name, [])
        return any(condition and condition(value) for condition in conditions for value in values)


def _collect(part: Any, name: str, node: _Node, wanted: set[str]) -> None:
    """Note the values of the fields that the pattern names. Arrays leave no trace in a name."""
    if isinstance(part, dict):
        for key, value in part.items():
            _collect(value, f"{name}.{key}" if name else key, node, wanted)
    elif isinstance(part, list):
        elements = []
        for value in part:
            inside = _Node() if isinstance(value, dict | list) else node
            _collect(value, name, inside, wanted)
            if inside is not node and inside.names:
                elements.append(inside)
                node.names |= inside.names
        if elements:
            node.arrays.append(elements)
    elif name in wanted:
        node.values.setdefault(name, []).append(part)
        node.names.add(name)


def _match(fields: _Fields, node: _Node) -> bool:
    """
    Whether each field has a value that matches, all of them in one element of each array.

    A field that two arrays have, since its name has a dot in one of them, must match in the first.

    Source: README of event-ruler, "JSON Array Matching".
    """
    rest = {name: conditions for name, conditions in fields.items() if not node.may_be(name, conditions)}
    for elements in node.arrays:
        if not rest:
            return True
        names = set().union(*(element.names for element in elements))
        inside = {name: conditions for name, conditions in rest.items() if name in names}
        if inside and not any(_match(_with_value(inside), element) for element in elements):
            return False
        rest = {name: conditions for name, conditions in rest.items() if name not in names}
    return not rest


def _with_value(fields: _Fields) -> _Fields:
    """The first field chooses the element, for which it must have a value: in the array, it exists."""
    first, conditions = next(iter(fields.items()))
    return {**fields, first: [condition for condition in conditions if condition]}
