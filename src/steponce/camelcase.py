"""Dataclasses as JSON objects, with names in camelCase, like those in records, envelopes and events."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def json_object(instance: DataclassInstance) -> dict[str, Any]:
    """
    The fields of a dataclass, and of those in it, by their names in camelCase.

    What holds no dataclass stays as it is, however deep it is: it is JSON already, like a result.
    """
    return {_camel_case(field.name): _value(getattr(instance, field.name)) for field in fields(instance)}


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _value(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return json_object(value)
    if isinstance(value, (list, tuple)) and any(map(is_dataclass, value)):
        return [_value(one) for one in value]
    return value
