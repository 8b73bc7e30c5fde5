"""Converts arguments and results of guarded functions to JSON's types."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any
from uuid import UUID

from steponce.errors import InvalidPayload
from steponce.guards import models
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
    return _converted(value, models.as_result)


def plain_kept(value: Any) -> Any:
    """As `plain`, with the pydantic models in a form that is for their own classes alone."""
    return _converted(value, models.as_kept)


def plain_argument(value: Any) -> Any:
    """
    As `plain`, for an argument of a call: with all of a pydantic model, its secrets too.

    Otherwise two calls that differ in a secret alone would be the same request. A record has only their hash.
    """
    return _converted(value, models.as_argument)


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
    if models.is_model(type(value)):
        return of_model(value)
    if isinstance(value, Mapping):
        return {key: _plain(item, of_model) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, of_model) for item in value]
    if isinstance(value, date):  # a datetime is one
        return value.isoformat()
    return str(value) if isinstance(value, UUID | Decimal) else value
