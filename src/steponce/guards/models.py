"""What a pydantic model is as an argument and as a result. This does not import pydantic by itself."""

from __future__ import annotations

import inspect
import json
import sys
from collections import deque
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, TypeGuard

from steponce.errors import InvalidPayload
from steponce.request.canonical import canonical_json

if TYPE_CHECKING:
    from pydantic import BaseModel

_MANY = (list, tuple, deque, AbstractSet)


def is_model(kind: type) -> TypeGuard[type[BaseModel]]:
    """Whether a class is a pydantic model."""
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and issubclass(kind, pydantic.BaseModel)


def as_argument(model: BaseModel) -> Any:
    """
    The JSON of a model, with the secrets that it masks. Sets are sorted: each process has another order.

    As pydantic says, it lacks the fields that only a subclass of the annotated class has.

    Raises:
        InvalidPayload: a field holds an iterator.
    """
    return _revealed(_dump(model), _dump(model, mode="json"))


def as_result(model: BaseModel) -> Any:
    """The JSON of a model, for everyone who reads the record."""
    return _dump(model, mode="json")


def as_kept(model: BaseModel) -> Any:
    """
    The JSON of a model for its own class alone, with the names of its fields and without computed ones.

    A class that forbids other fields, or has other names in its JSON, does not take that back.
    """
    return (
        _dump(model, mode="json", by_alias=False, round_trip=True) if _is_plain(model) else as_result(model)
    )


def restore(value: Any, kind: type[BaseModel]) -> BaseModel:
    """
    Make a model of its JSON, which has the names of the fields and not their aliases.

    Raises:
        ValueError: the value does not fit the class, or it has a mask in place of a secret.
    """
    knows_names = "by_name" in inspect.signature(kind.model_validate_json).parameters  # since pydantic 2.11
    options: Any = {"by_name": True} if knows_names else {}
    found = kind.model_validate_json(json.dumps(value), **options)
    if _has_secret(found.model_dump()):
        raise ValueError("The stored result has a mask in place of a secret.")
    return found


def _dump(model: BaseModel, **options: Any) -> Any:
    """Dump a model, without pydantic's warnings: they quote values, and end in a Lambda's log."""
    if _is_plain(model):
        options["warnings"] = False
    return model.model_dump(**options)


def _is_plain(model: BaseModel) -> bool:
    """Whether a model is dumped by pydantic itself. An override takes what its author gave it."""
    return type(model).model_dump is sys.modules["pydantic"].BaseModel.model_dump


def _revealed(value: Any, masked: Any) -> Any:
    """What the JSON of a model's value has, with the secrets of that value. Both have the same order."""
    if _is_secret(value):
        return str(value.get_secret_value())
    if hasattr(value, "__next__"):
        raise InvalidPayload("A field of a model holds an iterator, which can be read once. Give it a list.")
    if isinstance(value, Mapping) and isinstance(masked, dict) and len(value) == len(masked):
        pairs = zip(value.values(), masked.items(), strict=True)
        return {key: _revealed(item, mask) for item, (key, mask) in pairs}
    if isinstance(value, _MANY) and isinstance(masked, list) and len(value) == len(masked):
        items = [_revealed(*pair) for pair in zip(value, masked, strict=True)]
        return sorted(items, key=canonical_json) if isinstance(value, AbstractSet) else items
    return masked


def _has_secret(value: Any) -> bool:
    """Whether what a model was dumped to holds a secret of pydantic."""
    if isinstance(value, Mapping):
        return any(map(_has_secret, value.values()))
    is_many = isinstance(value, _MANY)
    return any(map(_has_secret, value)) if is_many else _is_secret(value)


def _is_secret(value: Any) -> bool:
    return hasattr(value, "get_secret_value")
