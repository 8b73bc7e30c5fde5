"""Reads and resolves annotations: of functions and fields, and what aliases and type parameters mean."""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import types
import typing
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")

_QUALIFIERS = (typing.Annotated, typing.Final, typing.Required, typing.NotRequired)

_MOST_NAMES = 100
"""How many names are followed from an annotation to its type. An alias that names itself has no end."""

_UNRESOLVED = (NameError, TypeError, AttributeError, SyntaxError)
"""What resolving an annotation raises."""


def result_type(function: Any) -> Any:
    """
    The annotation of what a call returns. Any if there is none, or it cannot be resolved.

    Args:
        function: Also a `functools.partial`, or an object with a `__call__`.
    """
    if "return" not in _annotations_of(function):
        if isinstance(function, functools.partial):
            return result_type(function.func)
        if not isinstance(function, type) and not inspect.isroutine(function):
            function = type(function).__call__
    try:
        return get_type_hints(function).get("return", Any)
    except _UNRESOLVED:
        return _hint(function, "return", getattr(inspect.unwrap(function), "__globals__", {}))


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """The parameters of a function."""
    return _read(inspect.signature, function, "annotation_format")


def fields(kind: Any) -> dict[str, Any]:
    """The annotations of a class (`Page`), or of one with type arguments (`Page[Order]`), by field."""
    origin = get_origin(kind) or kind
    if not hasattr(origin, "__orig_bases__"):
        return _hints(origin)
    found: dict[str, Any] = {}
    arguments = _type_arguments(kind)
    for base in reversed(vars(origin).get("__orig_bases__", origin.__bases__)):
        named = get_origin(base) or base
        if isinstance(named, type) and named not in (Generic, Protocol):
            found |= fields(_filled(base, arguments))
    own = _annotations_of(origin)
    return found | {name: _filled(hint, arguments) for name, hint in _hints(origin).items() if name in own}


def is_typeddict(kind: Any) -> bool:
    """Whether a type is a TypedDict, of `typing` or of typing_extensions."""
    return isinstance(kind, type) and hasattr(kind, "__required_keys__")


def keys_of(typeddict: Any) -> set[str]:
    """The names that a TypedDict may have."""
    return set(typeddict.__required_keys__ | typeddict.__optional_keys__)


def meant_by(kind: Any) -> Any:
    """
    The type that a qualified one, a NewType, a `type` alias or a `typing.Tuple` stands for.

    An alias is resolved here, when its definition is first needed. Any if it cannot be.
    """
    for _ in range(_MOST_NAMES):
        origin = get_origin(kind)
        if origin in _QUALIFIERS:
            kind = get_args(kind)[0]
        elif hasattr(kind, "__supertype__"):  # a NewType
            kind = kind.__supertype__
        elif type(origin or kind).__name__ == "TypeAliasType":  # since Python 3.12
            try:
                kind = _filled(kind.__value__, _type_arguments(kind))
            except Exception:  # its definition is any expression
                return Any
        elif origin is tuple and not get_args(kind) and not isinstance(kind, types.GenericAlias):
            return tuple  # `typing.Tuple`, which has no arguments but an origin
        else:
            return kind
    return Any


def _type_arguments(kind: Any) -> dict[TypeVar, Any]:
    """What the type parameters of a class or an alias are. Empty if one is a ParamSpec or a TypeVarTuple."""
    origin = get_origin(kind) or kind
    parameters = getattr(origin, "__type_params__", ()) or getattr(origin, "__parameters__", ())
    if not all(isinstance(one, TypeVar) for one in parameters):
        return {}
    return dict(zip(parameters, get_args(kind), strict=False))


def _filled(kind: Any, arguments: dict[TypeVar, Any]) -> Any:
    """An annotation with these arguments in the place of its type parameters."""
    if isinstance(kind, TypeVar):
        return arguments.get(kind, Any)
    parameters = getattr(kind, "__parameters__", ()) if get_origin(kind) else ()
    if not all(isinstance(one, TypeVar) for one in parameters):
        return kind
    return kind[tuple(arguments.get(one, Any) for one in parameters)] if parameters else kind


def _hints(kind: type) -> dict[str, Any]:
    """The annotations of a class. Any for one that cannot be resolved."""
    try:
        return get_type_hints(kind)
    except _UNRESOLVED:
        return {
            name: _hint(one, name, vars(sys.modules[one.__module__]))
            for one in reversed(kind.__mro__)
            for name in _annotations_of(one)
        }


def _hint(owner: Any, name: str, names: dict[str, Any]) -> Any:
    """Resolve one annotation alone. Others may name what is imported for type checkers only."""
    try:
        alone = types.SimpleNamespace(__annotations__={name: _annotations_of(owner)[name]})
        return get_type_hints(alone, names)[name]
    except (*_UNRESOLVED, KeyError):
        return Any


def _annotations_of(owner: Any) -> dict[str, Any]:
    """The annotations of a function or a class, also those that cannot be resolved."""
    return _read(inspect.get_annotations, owner, "format")


def _read(read: Callable[..., T], owner: Any, option: str) -> T:
    """
    Read the annotations of a function or a class.

    Since Python 3.14 they are evaluated then, and what only type checkers import raises a NameError.

    Args:
        read: A function of `inspect`.
        option: Its option to leave such names as ForwardRefs.
    """
    try:
        return read(owner)
    except _UNRESOLVED as error:
        try:
            library = importlib.import_module("annotationlib")
        except ImportError:  # before Python 3.14, where the error has another reason
            raise error from None
    return read(owner, **{option: library.Format.FORWARDREF})
