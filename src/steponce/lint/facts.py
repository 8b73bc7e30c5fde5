"""
What is known of a JSON value that flows through a machine: which paths are there.

A path is a tuple of names: ("order", "id") for `$.order.id`. Facts are a set of such paths. A path that is
not among them may be there or not, unless the value around it is known whole: then every name in it is
known, and what is missing is missing on some way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any

Path = tuple[str, ...]
Facts = frozenset[Path]

WHOLE = "(whole)"
"""After a path: all that is in it is known."""

TEXT = "(text)"
"""After a path: its value is text."""

OPTIONAL = "(optional)"
"""After a path: the machine has asked whether it is there."""

_DEEPEST = 300
"""How many names of a path are read. What is deeper in a value is not known."""

_STEP = re.compile(r"\.([\w-]+)|\['([^']*)'\]|(\[\d+\])")
_IN_CALL = re.compile(r"\$\$?[\w.]*")
_TEXT_IN_CALL = re.compile(r"'[^']*'")


@lru_cache(4096)
def parse(text: str) -> Path | None:
    """The names that a path begins with, at most 300; None for a path into variables or the context."""
    if not text.startswith("$") or text[1:2] not in ("", ".", "["):
        return None
    found: list[str] = []
    place = 1
    while len(found) < _DEEPEST and (match := _STEP.match(text, place)):
        found.append(next(part for part in match.groups() if part is not None))
        place = match.end()
    return tuple(found)


def there(*paths: Path) -> Facts:
    """The paths and everything above them."""
    return frozenset(path[:length] for path in paths for length in range(1, len(path) + 1))


def put(facts: Facts, place: Path | None, result: Facts) -> Facts:
    """The output that a ResultPath makes from an input and a result; None keeps the input."""
    if place is None:
        return facts
    if not place:
        return result
    kept = {path for path in facts if path[: len(place)] != place}
    return frozenset(kept) | there(place) | {place + path for path in result}


def below(facts: Facts, place: Path) -> Facts:
    """What is known of the value at a path."""
    return frozenset(
        path[len(place) :] for path in facts if len(path) > len(place) and path[: len(place)] == place
    )


def is_there(path: Path, facts: AbstractSet[Path]) -> bool:
    """Whether the path is there for certain."""
    return not path or path in facts


def may_be_missing(path: Path, facts: AbstractSet[Path]) -> bool:
    """Whether it is known that the path may be missing."""
    for length in range(1, len(path) + 1):
        first = path[:length]
        if not is_there(first, facts):
            return (*first[:-1], WHOLE) in facts or any(
                (*path[:n], OPTIONAL) in facts for n in range(length, len(path) + 1)
            )
    return False


def of_template(value: Any) -> Facts:
    """What is known of a template's result: Parameters, ResultSelector or Result. `x.$` is named x."""
    if not isinstance(value, dict):
        return frozenset()
    found: set[Path] = {(WHOLE,)}
    for key, part in value.items():
        path = (key.removesuffix(".$"),)
        found.add(path)
        if not key.endswith(".$"):
            found |= {path + inner for inner in of_template(part)}
    return frozenset(found)


def read_by(value: Any, key: str = "") -> Iterable[str]:
    """Every path that a template reads, also in intrinsic functions."""
    if isinstance(value, dict):
        return [path for name, part in value.items() for path in read_by(part, name)]
    if isinstance(value, list):
        return [path for part in value for path in read_by(part, key)]
    return paths_in(value) if key.endswith(".$") and isinstance(value, str) else []


def paths_in(text: str) -> list[str]:
    """The paths that a field reads: its own, or those in its call of functions."""
    if not text.startswith("States."):
        return [text]
    return _IN_CALL.findall(_TEXT_IN_CALL.sub("", text))
