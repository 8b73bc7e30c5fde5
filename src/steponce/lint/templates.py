"""What the templates of a state may say: Parameters and the like, its variables, its JSONata."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from steponce.lint.asl import TEMPLATES, objects
from steponce.lint.values import is_call, is_half_an_expression, is_path, is_variable

_NOT_EVALUATED = {"Comment", "Branches", "ItemProcessor", "Iterator"}


def jsonpath_complaints(state: dict[str, Any]) -> Iterator[str]:
    """About the fields that are read at run time, `name.$`."""
    for key in TEMPLATES:
        for part in _nested(state.get(key)):
            for field in part:
                yield from (f"{key}: {text}" for text in _field(field, part))


def _field(field: str, part: dict[str, Any]) -> Iterator[str]:
    if not field.endswith(".$"):
        return
    value = part[field]
    if not is_path(value) and not (isinstance(value, str) and is_call(value)):
        yield f"{field!r} must be a path or a call of an intrinsic function, and is {value!r}."
    if field.removesuffix(".$") in part:
        yield f"{field!r} and {field.removesuffix('.$')!r} make one field. Remove one of them."


def jsonata_complaints(state: dict[str, Any]) -> Iterator[str]:
    """About texts that are nearly an expression."""
    for field, value in state.items():
        for text in _texts(value) if field not in _NOT_EVALUATED else ():
            if is_half_an_expression(text):
                yield f"{field}: an expression begins with {{% and ends with %}}, and this is {text!r}."


def variable_complaints(state: dict[str, Any]) -> Iterator[str]:
    """About the names of the variables that the state, its rules and its catchers assign."""
    for part in [state, *objects(state.get("Choices")), *objects(state.get("Catch"))]:
        assigned = part.get("Assign", {})
        if not isinstance(assigned, dict):
            yield f"Assign must be an object, and is {assigned!r}."
            continue
        for name in assigned:
            if not is_variable(name.removesuffix(".$")):
                yield (
                    f"Assign: a variable's name is an identifier of up to 80 characters and not 'states', "
                    f"and this is {name!r}."
                )


def _nested(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in a template."""
    if isinstance(value, dict):
        yield value
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in parts:
        yield from _nested(part)


def _texts(value: Any) -> Iterator[str]:
    """Every text in a value but the comments of rules and handlers."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from _texts(part) if key != "Comment" else ()
