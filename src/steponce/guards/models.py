"""What a pydantic model is as an argument and as a result. This does not import pydantic by itself."""

from __future__ import annotations

import dataclasses
import inspect
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeGuard

from steponce.errors import InvalidPayload
from steponce.request.canonical import canonical_json

if TYPE_CHECKING:
    from pydantic import BaseModel


def is_model(kind: type) -> TypeGuard[type[BaseModel]]:
    """Whether a class is a pydantic model."""
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and issubclass(kind, pydantic.BaseModel)


def as_argument(model: BaseModel) -> Any:
    """
    The JSON of a model, with what tells it from another one: the secrets that its JSON masks, and fields of a
    subclass that its JSON lacks. Sets are sorted, since each process has them in another order.

    A field that is excluded is none of it, and one with a serializer of its own is what that makes of it.

    Raises:
        InvalidPayload: a field holds an iterator.
    """
    return _whole(model, model.model_dump(mode="json", warnings=False))


def as_result(model: BaseModel) -> Any:
    """
    The JSON of a model from which `restore` makes it again.

    A class that forbids or keeps other fields would not take its computed ones for what they are.
    """
    keeps_to_fields = model.model_config.get("extra") in ("forbid", "allow")
    return model.model_dump(mode="json", by_alias=False, round_trip=keeps_to_fields, warnings=False)


def restore(value: Any, kind: type[BaseModel]) -> BaseModel:
    """
    Make a model of what `as_result` has given, which has the names of the fields and not their aliases.

    Raises:
        ValueError: the value does not fit the class, or it has a mask in place of a secret.
    """
    knows_names = "by_name" in inspect.signature(kind.model_validate_json).parameters  # since pydantic 2.11
    options: Any = {"by_name": True} if knows_names else {}
    found = kind.model_validate_json(json.dumps(value), **options)
    if _has_secret(found.model_dump(warnings=False)):
        raise ValueError("The stored result has a mask in place of a secret.")
    return found


def _whole(value: Any, written: Any) -> Any:
    """What JSON has of a value, and what it lacks of it. Both have the same order."""
    if _is_secret(value):
        return str(value.get_secret_value())
    if hasattr(value, "__next__"):
        raise InvalidPayload("A field of a model holds an iterator, which can be read once. Give it a list.")
    if getattr(value, "__pydantic_root_model__", False):
        return _whole(value.root, written)
    if isinstance(written, dict) and (fields := _fields(value)) is not None:
        return written | {name: _whole(*pair) for name, pair in _with_json(fields, written)}
    if isinstance(value, Mapping) and isinstance(written, dict) and len(value) == len(written):
        pairs = zip(value.values(), written.items(), strict=True)
        return {key: _whole(item, text) for item, (key, text) in pairs}
    if isinstance(value, Sequence | AbstractSet) and isinstance(written, list) and len(value) == len(written):
        items = [_whole(*pair) for pair in zip(value, written, strict=True)]
        return sorted(items, key=canonical_json) if isinstance(value, AbstractSet) else items
    return written


def _fields(value: Any) -> dict[str, Any] | None:
    """The fields of a model or a dataclass by their names in JSON. None if a value is none of them."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
    if not is_model(type(value)):
        return None
    by_alias = value.model_config.get("serialize_by_alias", False)
    found = dict(value.__pydantic_extra__ or {})
    for name, field in type(value).model_fields.items():
        if name in value.__dict__ and not (field.exclude or getattr(field, "exclude_if", None)):
            found[field.serialization_alias or name if by_alias else name] = value.__dict__[name]
    return found


def _with_json(
    fields: Mapping[str, Any], written: Mapping[str, Any]
) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Each field with its JSON. That of the whole lacks the fields which only a subclass has."""
    to_json = sys.modules["pydantic_core"].to_jsonable_python
    for name, value in fields.items():
        if name in written:
            yield name, (value, written[name])
        elif not hasattr(value, "__next__"):
            with suppress(ValueError):  # it has no JSON
                yield name, (value, to_json(value))


def _has_secret(value: Any) -> bool:
    """Whether what a model was dumped to holds a secret of pydantic."""
    if isinstance(value, Mapping):
        return any(map(_has_secret, value.values()))
    is_many = isinstance(value, list | tuple | set | frozenset)
    return any(map(_has_secret, value)) if is_many else _is_secret(value)


def _is_secret(value: Any) -> bool:
    return hasattr(value, "get_secret_value")
