"""
Reading DynamoDB items attribute by attribute, in their typed form (`{"status": {"S": "COMPLETED"}}`).

A table is open to everything that may write to it, so an item may hold anything. What is not as this package
or its workflow writes it ends in RecordUnreadable, which names the record and the attribute, and never in a
record with empty fields. boto3's TypeDeserializer is not used: it turns any type into some value of Python's,
and here the type itself is the question.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from steponce.aws import times
from steponce.errors import RecordUnreadable

Record = TypeVar("Record")

Item = Mapping[str, Any]
"""One item as boto3's client gives it."""

Skip = Callable[[RecordUnreadable, Item], object]
"""Is told of an item that a list leaves out."""

MOST = 2**53 - 1
"""The largest whole number that JSON carries everywhere."""


class Attributes:
    """
    One item, and the questions that its readers ask.

    Args:
        item: In its typed form.
        key: The name of the table's key attribute, by which the record is named.

    Each method raises RecordUnreadable unless the attribute is what the method says; the `optional` ones give
    None where it is absent.
    """

    def __init__(self, item: Item, key: str) -> None:
        self._item = item
        self.key = "without a key"
        self.key = self.text(key)

    def text(self, name: str) -> str:
        """Text that is not empty."""
        found = self.optional_text(name)
        return self.refuse(name, "is missing") if found is None else found

    def optional_text(self, name: str) -> str | None:
        """The same."""
        found = self._typed(name, "S", "text")
        return self.refuse(name, "is empty") if found == "" else found

    def whole(self, name: str, *, least: int) -> int:
        """A whole number, from `least` to MOST."""
        found = self.optional_whole(name, least=least)
        return self.refuse(name, "is missing") if found is None else found

    def optional_whole(self, name: str, *, least: int) -> int | None:
        """The same."""
        digits = self._typed(name, "N", "a number")
        if digits is None:
            return None
        if not (digits.isascii() and digits.isdecimal() and len(digits) <= len(str(MOST))):
            self.refuse(name, f"is no whole number from {least} to {MOST}")
        found = int(digits)
        return found if least <= found <= MOST else self.refuse(name, f"is not from {least} to {MOST}")

    def time(self, name: str) -> str:
        """A time, as text."""
        found = self.optional_time(name)
        return self.refuse(name, "is missing") if found is None else found

    def optional_time(self, name: str) -> str | None:
        """The same."""
        found = self.optional_text(name)
        if found is not None:
            try:
                times.from_text(found)
            except ValueError:
                self.refuse(name, "is no time")
        return found

    def optional_texts(self, name: str) -> frozenset[str]:
        """A set of texts; empty where it is absent."""
        given = self._item.get(name)
        if given is None:
            return frozenset()
        found = given.get("SS") if isinstance(given, Mapping) else None
        if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
            self.refuse(name, "is no set of texts")
        return frozenset(found)

    def optional_json(self, name: str) -> Any:
        """What its JSON says; None also where it says null."""
        text = self.optional_text(name)
        try:
            return None if text is None else json.loads(text, parse_constant=_not_json)
        except (ValueError, RecursionError):  # too deep, or a number with thousands of digits
            return self.refuse(name, "is no JSON")

    def refuse(self, name: str, problem: str) -> NoReturn:
        """Say what is wrong with an attribute; never its value, which may be a payload or a token."""
        raise RecordUnreadable(self.key, name, problem)

    def _typed(self, name: str, kind: str, in_words: str) -> str | None:
        given = self._item.get(name)
        if given is None:
            return None
        found = given.get(kind) if isinstance(given, Mapping) else None
        return found if isinstance(found, str) else self.refuse(name, f"is not {in_words}")


def read_each(items: Iterable[Item], read: Callable[[Item], Record], skip: Skip | None) -> Iterator[Record]:
    """
    Read items one by one.

    Args:
        items: Of one page.
        read: Reads one, or raises RecordUnreadable.
        skip: Is told of each that cannot be read. None: the first of them ends the list.
    """
    for item in items:
        try:
            record = read(item)
        except RecordUnreadable as error:
            if skip is None:
                raise
            skip(error, item)
            continue
        yield record


def unchanged(item: Item, names: Sequence[str]) -> dict[str, Any]:
    """Arguments of a conditional write, for an item whose attributes of these names are still as here."""
    conditions, values = [], {}
    for number, name in enumerate(names):
        if name in item:
            conditions.append(f"#n{number} = :v{number}")
            values[f":v{number}"] = item[name]
        else:
            conditions.append(f"attribute_not_exists(#n{number})")
    return {
        "ConditionExpression": " AND ".join(conditions),
        "ExpressionAttributeNames": {f"#n{number}": name for number, name in enumerate(names)},
        **({"ExpressionAttributeValues": values} if values else {}),
    }


def _not_json(constant: str) -> NoReturn:
    """NaN and the infinities, which Python reads and JSON does not know."""
    raise ValueError(constant)
