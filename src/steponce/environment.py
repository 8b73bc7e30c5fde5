"""
Typed settings, read from a function's environment variables or from a stack's Outputs.

A settings class is a frozen dataclass. The variable of each field has the field's name in PascalCase:
`locks_table` is `LocksTable`, which is also what the template calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, fields, is_dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from steponce.errors import InvalidSetting, shown

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Settings = TypeVar("Settings", bound="DataclassInstance")


def read(kind: type[Settings], variables: Mapping[str, str], *, required: Collection[str] = ()) -> Settings:
    """
    Read a settings class.

    Args:
        kind: A dataclass whose fields are `str`, `int` (a whole number that is not negative), `float`,
            `float | None` (None is written `never`), `str | None`, a Literal of texts, or settings classes.
            A settings class that has a `from_settings` of its own is read by it.
        variables: Texts by name. An empty text counts as a missing one.
        required: Variables that must be there although their fields have defaults.

    Raises:
        InvalidSetting: a variable is missing and its field has no default, or its text is not of the
            field's type.
    """
    hints = get_type_hints(kind)
    values: dict[str, Any] = {}
    for field in fields(kind):
        hint, name = hints[field.name], name_of(field.name)
        if hasattr(hint, "from_settings"):
            values[field.name] = hint.from_settings(variables)
        elif is_dataclass(hint) and isinstance(hint, type):
            values[field.name] = read(hint, variables)
        elif text := variables.get(name):
            values[field.name] = _value(name, text, hint)
        elif field.default is MISSING or name in required:
            raise InvalidSetting(
                f"The setting {name} is missing among the environment variables or Outputs. "
                f"Set it to {_reader(hint)[1]}."
            )
    return kind(**values)


def name_of(field: str) -> str:
    """The variable of a field."""
    return "".join(word.capitalize() for word in field.split("_"))


def _value(name: str, text: str, hint: Any) -> Any:
    convert, wanted = _reader(hint)
    try:
        return convert(text)
    except ValueError:
        raise InvalidSetting(f"The setting {name} is {shown(text)}. Set it to {wanted}.") from None


def _reader(hint: Any) -> tuple[Callable[[str], Any], str]:
    """How to read a text of this type, and what it has to be."""
    if get_origin(hint) is Literal:
        choices = get_args(hint)
        return (lambda text: choices[choices.index(text)]), " or ".join(choices)
    return _READERS[hint]


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(text)
    return int(text)


def _number(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(text)
    return number


def _number_or_never(text: str) -> float | None:
    return None if text == "never" else _number(text)


_READERS: Mapping[Any, tuple[Callable[[str], Any], str]] = {
    str: (str, "text"),
    str | None: (str, "text"),
    int: (_whole, "a whole number"),
    float: (_number, "a number"),
    float | None: (_number_or_never, "a number, or never"),
}
