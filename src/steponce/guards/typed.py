"""Converts stored results of guarded functions back to the types of their annotations."""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Any, Union, get_args, get_origin
from uuid import UUID

from steponce.guards import models
from steponce.guards.annotations import fields, is_typeddict, keys_of, meant_by
from steponce.guards.plain import plain, plain_kept

MISFITS = (TypeError, ValueError, KeyError, AttributeError, ArithmeticError, RecursionError)
"""
What `restore` raises for a value that does not fit a type. `Decimal` raises an ArithmeticError for a text
that is no number. An alias that names itself among its choices raises a RecursionError.
"""


_LARGEST_EXPONENT = 125
"""Of a number of DynamoDB. The text of a larger one is no number that it has read."""


def keep(result: Any, kind: Any) -> Any:
    """
    Convert a result to JSON from which `restore` makes it again, if there is such a form.

    Args:
        result: What the work returned.
        kind: The type or annotation of the result.

    Raises:
        InvalidPayload: as `plain`.
    """
    written = plain(result)
    try:
        kept = plain_kept(result)
    except Exception:  # a serializer of its own may count on the aliases
        return written
    is_needed = written != kept and not _gives_back(written, result, kind)
    return kept if is_needed and _gives_back(kept, result, kind) else written


def _gives_back(value: Any, result: Any, kind: Any) -> bool:
    try:
        return bool(restore(value, kind) == result)
    except Exception:  # the classes' own comparisons may raise anything
        return False


def restore(value: Any, kind: Any) -> Any:
    """
    Convert what `plain` returned back to a value of an annotated type.

    Args:
        value: Parsed JSON.
        kind: A type or an annotation. One that this module does not know leaves the value unchanged.

    Raises:
        MISFITS: the value does not fit the type.
    """
    kind = meant_by(kind)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is typing.Literal:
        return _restore_literal(value, arguments)
    if origin in (Union, types.UnionType):
        return _restore_one_of(value, arguments)
    if origin is tuple:
        if not isinstance(value, list):
            raise TypeError("The value is no tuple.")
        kinds = arguments[:1] * len(value) if arguments[-1:] == (...,) else arguments
        return tuple(restore(item, one) for item, one in zip(value, kinds, strict=True))
    if isinstance(origin, type) and not _has_fields(origin):
        return _restore_collection(value, origin, arguments[-1] if arguments else Any)
    if not isinstance(origin or kind, type):
        return value
    try:
        return _restore_class(value, kind)
    except MISFITS:
        raise
    except Exception as error:  # the class's own, as of a `__post_init__`
        raise ValueError(f"{kind} does not take the value ({type(error).__name__}).") from error


def _restore_collection(value: Any, kind: type, of: Any) -> Any:
    """Convert to a list or a dict, whose items or values are of a type."""
    if issubclass(kind, Mapping):
        return {key: restore(item, of) for key, item in value.items()}
    if isinstance(value, list) and issubclass(kind, Iterable):
        return [restore(item, of) for item in value]
    if issubclass(kind, Sequence) and not isinstance(value, kind):
        raise TypeError(f"The value is no {kind.__name__}.")
    return value


def _restore_one_of(value: Any, kinds: Sequence[Any]) -> Any:
    """
    Convert to the type of a union that the value fits.

    If it fits several, those count of which `plain` makes the same value again. Of `str | date`, which both
    fit a text, the first one counts, but `Sequence[str]` only if no other does. Two classes that fit raise
    TypeError, because a replay must not give another class than the first call.
    """
    kinds = [kind for kind in map(meant_by, kinds) if not _has_another_literal(value, kind)]
    if value is None and type(None) in kinds:
        return None
    others = _with_other_names(kinds, value)
    likely = [kind for kind in kinds if kind not in others]
    fitting = _fitting(value, likely) or _fitting(value, others)
    if isinstance(value, str) and any(kind is int for kind, _ in fitting):
        fitting = [(kind, found) for kind, found in fitting if kind is not float]  # a whole Decimal fits both
    if len(fitting) > 1:
        fitting = [(kind, found) for kind, found in fitting if _is_same(value, kind, found)]
    with_fields = [(type(found), found) for kind, found in fitting if _has_fields(kind)]
    if not fitting or any(one != with_fields[0] for one in with_fields):
        raise TypeError(f"The value does not fit one of {', '.join(map(str, kinds))}.")
    return min(fitting, key=lambda fit: _is_unchanged(value, *fit))[1]


def _has_another_literal(value: Any, kind: Any) -> bool:
    """
    Whether a field with a Literal tells that a value is not of this class.

    It is asked first: if each class restored all levels of a value that holds itself before it came to this
    field, and so at each level, the time would double with each.
    """
    if not _has_fields(kind) or models.is_model(get_origin(kind) or kind):
        return False
    held = value
    if isinstance(value, list) and hasattr(kind, "_fields"):
        held = dict(zip(kind._fields, value, strict=False))
    if not isinstance(held, dict):
        return False
    options = {name: _options(hint) for name, hint in fields(kind).items() if name in held}
    return any(not _is_one_of(held[name], some) for name, some in options.items() if some is not None)


def _options(kind: Any) -> list[Any] | None:
    """The values of a Literal, or of a union of nothing but Literals and None. None for another type."""
    kind = meant_by(kind)
    is_union = get_origin(kind) in (Union, types.UnionType)
    members = [meant_by(one) for one in get_args(kind)] if is_union else [kind]
    if any(get_origin(one) is not typing.Literal and one is not types.NoneType for one in members):
        return None
    return [plain(option) for one in members for option in get_args(one) or (None,)]


def _is_one_of(value: Any, options: Sequence[Any]) -> bool:
    """Whether a value is one of these. Python takes True for 1, and JSON does not."""
    return any(value == option and isinstance(value, bool) == isinstance(option, bool) for option in options)


def _with_other_names(kinds: Sequence[Any], value: Any) -> list[Any]:
    """
    Of a union, the dataclasses and TypedDicts whose fields are not those of the value, if another's are.

    They are tried last: if each class restored all levels of a value that holds itself, and so at each level,
    the time would double with each.
    """
    if not isinstance(value, dict) or not any(_names(kind) == value.keys() for kind in kinds):
        return []
    return [kind for kind in kinds if _has_other_names(kind, value)]


def _has_other_names(kind: Any, value: Mapping[str, Any]) -> bool:
    names = _names(kind)
    if names is None or names == value.keys():
        return False
    return not (is_typeddict(kind) and value.keys() <= names)  # any of its names may be left out


def _names(kind: Any) -> set[str] | None:
    """The names of the fields of a dataclass or a TypedDict. None if the type is none of them."""
    kind = get_origin(kind) or kind
    if is_typeddict(kind):
        return keys_of(kind)
    return {field.name for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else None


def _fitting(value: Any, kinds: Sequence[Any]) -> list[tuple[Any, Any]]:
    """The types of a union that the value fits, and the value as each of them has it."""
    return [(kind, found) for kind in kinds for found in _restored(value, kind)]


def _restored(value: Any, kind: Any) -> list[Any]:
    """The value as a type of a union has it. Empty if it does not fit."""
    try:
        found = restore(value, kind)
    except MISFITS:
        return []
    if kind is Any or (kind is float and type(found) is int):  # JSON has 250 for 250.0
        return [found]
    is_kind = not isinstance(kind, type) or is_typeddict(kind) or isinstance(found, kind)
    return [found] if is_kind else []


def _is_same(value: Any, kind: Any, found: Any) -> bool:
    """Whether a type has taken in all of a value, and has added nothing."""
    if is_typeddict(kind) and not set(value) <= keys_of(kind):
        return False
    return bool(plain(found) == value)


def _is_unchanged(value: Any, kind: Any, found: Any) -> bool:
    """Whether an abstract type of collection has a value that is none: a text is a Sequence, too."""
    return found is value and inspect.isabstract(get_origin(kind))


def _has_fields(kind: Any) -> bool:
    kind = get_origin(kind) or kind
    has_names = dataclasses.is_dataclass(kind) or is_typeddict(kind) or hasattr(kind, "_fields")
    return has_names or (isinstance(kind, type) and models.is_model(kind))


def _restore_literal(value: Any, options: Sequence[Any]) -> Any:
    """
    Convert to the one of these values that the value is; an Enum's member is stored by its value.

    For Python 1 is True. It counts if there is nothing nearer.
    """
    equal = [option for option in options if plain(option) == value]
    if not equal:
        raise ValueError(f"The value is none of {', '.join(map(repr, options))}.")
    return next((option for option in equal if _is_one_of(value, [plain(option)])), equal[0])


def _restore_class(value: Any, annotation: Any) -> Any:
    kind: type = get_origin(annotation) or annotation
    if dataclasses.is_dataclass(kind):
        return _restore_dataclass(value, kind, fields(annotation))
    if is_typeddict(kind):
        hints = fields(annotation)
        return {name: restore(item, hints.get(name, Any)) for name, item in value.items()}
    if models.is_model(kind):
        return models.restore(value, kind)
    if issubclass(kind, date):
        return kind.fromisoformat(value)
    if issubclass(kind, tuple):
        return _restore_tuple(value, kind, annotation)
    if issubclass(kind, Enum):
        return _restore_member(value, kind)
    if kind in (int, float) and isinstance(value, str):
        return _number(value, kind)
    return kind(value) if issubclass(kind, UUID | Decimal) else value


def _restore_dataclass(value: Mapping[str, Any], kind: Any, hints: Mapping[str, Any]) -> Any:
    """
    Convert to a dataclass.

    A field with `init=False` has its default. Without a fixed default, as an id or what is made of one, it
    would be another one for each caller, so it comes from the value.
    """
    given = {name: restore(item, hints.get(name, Any)) for name, item in value.items()}
    own = {field.name: field for field in dataclasses.fields(kind) if field.name in given}
    made = kind(**{name: given[name] for name, field in own.items() if field.init})
    for name, field in own.items():
        if not field.init and field.default is dataclasses.MISSING:
            object.__setattr__(made, name, given[name])
    return made


def _number(text: str, kind: type[int | float]) -> int | float | str:
    """
    The number that a Decimal's text is, as of an item that DynamoDB's resource has read.

    Any other text stays as it is, and under `int` that of a Decimal which is no whole number.
    """
    try:
        number = Decimal(text)
    except ArithmeticError:
        return text
    if str(number) != text or not number.is_finite() or number.adjusted() > _LARGEST_EXPONENT:
        return text
    is_exact = kind is float or number == number.to_integral_value()
    return kind(number) if is_exact else text


def _restore_member(value: Any, kind: type[Enum]) -> Enum:
    """
    Convert to a member of an Enum. It is stored by its value, or by what `plain` makes of that.

    The default that the class's `_missing_` may return counts only if no member is stored so.
    """
    stored = (member for member in kind if plain(member) == value)
    try:
        found = kind(value)
    except MISFITS:
        if (member := next(stored, None)) is None:
            raise
        return member
    return found if plain(found) == value else next(stored, found)


def _restore_tuple(value: Any, kind: type[tuple[Any, ...]], annotation: Any) -> tuple[Any, ...]:
    """Convert to a subclass of tuple. A NamedTuple has a type for each item."""
    if not isinstance(value, list):
        raise TypeError("The value is no tuple.")
    names = getattr(kind, "_fields", None)
    if names is None:
        return kind(value)
    hints = fields(annotation)
    return kind(*(restore(item, hints.get(name, Any)) for name, item in zip(names, value, strict=True)))
