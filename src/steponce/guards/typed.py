"""Converts stored results of guarded functions back to the types of their annotations."""

from __future__ import annotations

import dataclasses
import inspect
import json
import sys
import types
import typing
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from steponce.guards.plain import has_secret, is_model, plain

if TYPE_CHECKING:
    from pydantic import BaseModel

MISFITS = (TypeError, ValueError, KeyError, AttributeError, ArithmeticError)
"""What `restore` raises for a value that does not fit a type. Decimal has an ArithmeticError for a text."""

_UNRESOLVED = (NameError, TypeError, AttributeError)
"""What resolving an annotation raises."""


def restore(value: Any, kind: Any) -> Any:
    """
    Convert what `plain` returned back to a value of an annotated type.

    Args:
        value: Parsed JSON.
        kind: A type or an annotation. One that this module does not know leaves the value unchanged.

    Raises:
        MISFITS: the value does not fit the type.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is typing.Annotated:
        return restore(value, arguments[0])
    if origin is typing.Literal:
        return _restore_literal(value, arguments)
    if origin in (Union, types.UnionType):
        return _restore_one_of(value, arguments)
    if origin is tuple:
        kinds = arguments[:1] * len(value) if arguments[-1:] == (...,) else arguments
        return tuple(restore(item, one) for item, one in zip(value, kinds, strict=True))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {key: restore(item, arguments[1]) for key, item in value.items()}
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return [restore(item, arguments[0]) for item in value]
    return _restore_class(value, kind) if isinstance(kind, type) else value


def _restore_one_of(value: Any, kinds: Sequence[Any]) -> Any:
    """
    Convert to the type of a union that the value fits.

    If it fits several, those count of which `plain` makes the same value again. Of `str | date`, which both
    fit a text, the first one counts. Two classes that fit raise TypeError, because a replay must not give
    another class than the first call.
    """
    if value is None and type(None) in kinds:
        return None
    fitting = [(kind, found) for kind in kinds for found in _fitting(value, kind)]
    if len(fitting) > 1:
        fitting = [(kind, found) for kind, found in fitting if _is_same(value, kind, found)]
    with_fields = [(type(found), found) for kind, found in fitting if _has_fields(kind)]
    if not fitting or any(one != with_fields[0] for one in with_fields):
        raise TypeError(f"The value does not fit one of {', '.join(map(str, kinds))}.")
    return fitting[0][1]


def _fitting(value: Any, kind: Any) -> list[Any]:
    """The value as a type of a union has it. Empty if it does not fit."""
    try:
        found = restore(value, kind)
    except MISFITS:
        return []
    is_kind = not isinstance(kind, type) or typing.is_typeddict(kind) or isinstance(found, kind)
    return [found] if is_kind else []


def _is_same(value: Any, kind: Any, found: Any) -> bool:
    """Whether a type has taken in all of a value, and has added nothing."""
    if typing.is_typeddict(kind) and not set(value) <= set(kind.__annotations__):
        return False
    return bool(plain(found) == value)


def _has_fields(kind: Any) -> bool:
    has_names = dataclasses.is_dataclass(kind) or typing.is_typeddict(kind) or hasattr(kind, "_fields")
    return has_names or (isinstance(kind, type) and is_model(kind))


def _restore_literal(value: Any, options: Sequence[Any]) -> Any:
    """Convert to the one of these values that the value is; an Enum's member is stored by its value."""
    for option in options:
        if plain(option) == value:
            return option
    raise ValueError(f"The value is none of {', '.join(map(repr, options))}.")


def _restore_class(value: Any, kind: type) -> Any:
    if dataclasses.is_dataclass(kind):
        hints = _hints(kind)
        given = {name: restore(item, hints.get(name, Any)) for name, item in value.items()}
        accepted = {field.name for field in dataclasses.fields(kind) if field.init}
        return kind(**{name: item for name, item in given.items() if name in accepted})
    if typing.is_typeddict(kind):
        hints = _hints(kind)
        return {name: restore(item, hints.get(name, Any)) for name, item in value.items()}
    if is_model(kind):
        return _restore_model(value, kind)
    if issubclass(kind, date):
        return kind.fromisoformat(value)
    if issubclass(kind, tuple):
        return _restore_tuple(value, kind)
    return kind(value) if issubclass(kind, Enum | UUID | Decimal) else value


def _restore_model(value: Any, kind: type[BaseModel]) -> BaseModel:
    """Convert to a pydantic model. `plain` gave JSON, with the names of the fields and not their aliases."""
    knows_names = "by_name" in inspect.signature(kind.model_validate_json).parameters  # since pydantic 2.11
    options: Any = {"by_name": True} if knows_names else {}
    found = kind.model_validate_json(json.dumps(value), **options)
    if has_secret(found.model_dump()):
        raise ValueError("The stored result has a mask in place of a secret.")
    return found


def _restore_tuple(value: Any, kind: type[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Convert to a subclass of tuple. A NamedTuple has a type for each item."""
    names = getattr(kind, "_fields", None)
    if names is None:
        return kind(value)
    hints = _hints(kind)
    return kind(*(restore(item, hints.get(name, Any)) for name, item in zip(names, value, strict=True)))


def result_type(function: Any) -> Any:
    """The annotation of a function's return value. Any if there is none, or it cannot be resolved."""
    try:
        return get_type_hints(function).get("return", Any)
    except _UNRESOLVED:
        return _hint(function, "return", getattr(inspect.unwrap(function), "__globals__", {}))


def _hints(kind: type) -> dict[str, Any]:
    """The annotations of a class. Any for one that cannot be resolved."""
    try:
        return get_type_hints(kind)
    except _UNRESOLVED:
        return {
            name: _hint(one, name, vars(sys.modules[one.__module__]))
            for one in reversed(kind.__mro__)
            for name in inspect.get_annotations(one)
        }


def _hint(owner: Any, name: str, names: dict[str, Any]) -> Any:
    """Resolve one annotation alone. Others may name what is imported for type checkers only."""
    annotations = inspect.get_annotations(owner)
    try:
        alone = types.SimpleNamespace(__annotations__={name: annotations[name]})
        return get_type_hints(alone, names)[name]
    except (*_UNRESOLVED, KeyError):
        return Any
