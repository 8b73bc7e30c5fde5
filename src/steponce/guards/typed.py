"""Between Python's types and JSON: arguments and results of guarded functions, by their annotations."""

from __future__ import annotations

import dataclasses
import sys
import types
import typing
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeGuard, Union, get_args, get_origin, get_type_hints
from uuid import UUID

if TYPE_CHECKING:
    from pydantic import BaseModel


def plain(value: Any) -> Any:
    """
    A value as JSON has it: dataclasses and pydantic models as objects, enums by value, and times, UUIDs and
    decimals as text. What JSON has no form for is left as it is, for `canonical_json` to refuse.
    """
    if isinstance(value, Enum):
        return plain(value.value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if _is_model(type(value)):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, date):  # a datetime is one
        return value.isoformat()
    return str(value) if isinstance(value, UUID | Decimal) else value


def restore(value: Any, kind: Any) -> Any:
    """
    The value of an annotated type that `plain` has made this of.

    Args:
        value: Parsed JSON.
        kind: A type or an annotation; what is not known here leaves the value as it is.

    Raises:
        TypeError, ValueError, KeyError: the value does not fit.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is typing.Annotated:
        return restore(value, arguments[0])
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
    """The first kind that the value fits."""
    if value is None and type(None) in kinds:
        return None
    for kind in kinds:
        try:
            found = restore(value, kind)
        except (TypeError, ValueError, KeyError, AttributeError):
            continue
        if not isinstance(kind, type) or isinstance(found, kind) or typing.is_typeddict(kind):
            return found
    raise TypeError(f"The value fits none of {', '.join(map(str, kinds))}.")


def _restore_class(value: Any, kind: type) -> Any:
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        given = {name: restore(item, hints.get(name, Any)) for name, item in value.items()}
        made = {field.name for field in dataclasses.fields(kind) if field.init}
        return kind(**{name: item for name, item in given.items() if name in made})
    if typing.is_typeddict(kind):
        hints = get_type_hints(kind)
        return {name: restore(item, hints.get(name, Any)) for name, item in value.items()}
    if _is_model(kind):
        return kind.model_validate(value)
    if issubclass(kind, date):
        return kind.fromisoformat(value)
    if issubclass(kind, tuple):
        return kind(value)
    return kind(value) if issubclass(kind, Enum | UUID | Decimal) else value


def _is_model(kind: type) -> TypeGuard[type[BaseModel]]:
    """Whether a class is one of pydantic's, which is not imported for that."""
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and issubclass(kind, pydantic.BaseModel)


def result_type(function: Any) -> Any:
    """The annotation of what a function returns; Any where there is none, or it cannot be resolved."""
    try:
        return get_type_hints(function).get("return", Any)
    except (NameError, TypeError, AttributeError):
        return Any
