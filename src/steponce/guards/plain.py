"""Converts arguments and results of guarded functions to JSON's types."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeGuard
from uuid import UUID

from steponce.errors import InvalidPayload
from steponce.request.canonical import MAX_DEPTH

if TYPE_CHECKING:
    from pydantic import BaseModel


def plain(value: Any) -> Any:
    """
    Convert a result to JSON's types: dataclasses and pydantic models to objects, enums to their values, and
    dates, UUIDs and decimals to text. Other values stay unchanged, and `canonical_json` may refuse them.

    Raises:
        InvalidPayload: it holds itself, or is nested too deeply.
    """
    return _converted(value, _masked)


def plain_argument(value: Any) -> Any:
    """
    As `plain`, for an argument of a call: with the secrets of pydantic models, which their JSON masks.

    Otherwise two calls that differ in a secret alone would be the same request. A record has only their hash.
    """
    return _converted(value, _with_secrets)


def _converted(value: Any, of_model: Callable[[BaseModel], Any]) -> Any:
    try:
        return _plain(value, of_model)
    except RecursionError:
        raise InvalidPayload(
            f"A value of this call holds itself, or is nested too deeply. Send a flatter one, of at most "
            f"{MAX_DEPTH} levels."
        ) from None


def _plain(value: Any, of_model: Callable[[BaseModel], Any]) -> Any:
    if isinstance(value, Enum):
        return _plain(value.value, of_model)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return {field.name: _plain(getattr(value, field.name), of_model) for field in fields}
    if is_model(type(value)):
        return of_model(value)
    if isinstance(value, Mapping):
        return {key: _plain(item, of_model) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, of_model) for item in value]
    if isinstance(value, date):  # a datetime is one
        return value.isoformat()
    return str(value) if isinstance(value, UUID | Decimal) else value


def _masked(model: BaseModel) -> Any:
    return model.model_dump(mode="json")


def _with_secrets(model: BaseModel) -> Any:
    return _revealed(model.model_dump(), _masked(model))


def _revealed(value: Any, masked: Any) -> Any:
    """What the JSON of a model's value has, with the secrets of that value. Both have the same order."""
    if _is_secret(value):
        return str(value.get_secret_value())
    if isinstance(value, Mapping) and isinstance(masked, dict) and len(value) == len(masked):
        pairs = zip(value.values(), masked.items(), strict=True)
        return {key: _revealed(item, mask) for item, (key, mask) in pairs}
    if isinstance(value, list | tuple) and isinstance(masked, list) and len(value) == len(masked):
        return [_revealed(*pair) for pair in zip(value, masked, strict=True)]
    return masked


def has_secret(value: Any) -> bool:
    """Whether what a model was dumped to holds a secret of pydantic."""
    if isinstance(value, Mapping):
        return any(map(has_secret, value.values()))
    return any(map(has_secret, value)) if isinstance(value, list | tuple) else _is_secret(value)


def _is_secret(value: Any) -> bool:
    return hasattr(value, "get_secret_value")


def is_model(kind: type) -> TypeGuard[type[BaseModel]]:
    """Whether a class is a pydantic model. This does not import pydantic."""
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and issubclass(kind, pydantic.BaseModel)
