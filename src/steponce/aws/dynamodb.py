"""
Reads DynamoDB items attribute by attribute, in their typed form (`{"status": {"S": "COMPLETED"}}`).

Any program with permission can write to a table, so an item may hold anything. An attribute that this package
or its workflow would not write raises RecordUnreadable, which names the record and the attribute. No reader
returns a record with empty fields. boto3's TypeDeserializer is not used, because it accepts every type, and
these readers check the type.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, NoReturn, TypeVar

from steponce.aws import times
from steponce.errors import ANOTHER_PROGRAM, RecordUnreadable

Record = TypeVar("Record")

Item = Mapping[str, Any]
"""One item as boto3's client gives it."""

Skip = Callable[[RecordUnreadable, Item], object]
"""Is called with each unreadable item that a list leaves out."""

MOST = 2**53 - 1
"""The largest whole number that JSON carries everywhere."""


class Attributes:
    """
    One item, read with type checks.

    Args:
        item: The item in its typed form.
        key: The name of the table's key attribute. Its value names the record in errors.
        what_next: What to do about a damaged record, for errors.

    Each method raises RecordUnreadable if the attribute is of another type or form. The `optional` methods
    return None for an absent attribute; the others raise.
    """

    def __init__(self, item: Item, key: str, what_next: str = ANOTHER_PROGRAM) -> None:
        self._item = item
        self._what_next = what_next
        self.key = "without a key"
        self.key = self.text(key)

    def text(self, name: str) -> str:
        """A text that is not empty."""
        found = self.optional_text(name)
        return self.refuse(name, "is missing") if found is None else found

    def optional_text(self, name: str) -> str | None:
        """A text that is not empty, or None."""
        found = self._typed(name, "S", "text")
        return self.refuse(name, "is empty") if found == "" else found

    def whole(self, name: str, *, least: int) -> int:
        """A whole number, from `least` to MOST."""
        found = self.optional_whole(name, least=least)
        return self.refuse(name, "is missing") if found is None else found

    def optional_whole(self, name: str, *, least: int, most: int = MOST) -> int | None:
        """A whole number from `least` to `most`, or None."""
        digits = self._typed(name, "N", "a number")
        if digits is None:
            return None
        if not (digits.isascii() and digits.isdecimal() and len(digits) <= len(str(MOST))):
            self.refuse(name, f"is no whole number from {least} to {most}")
        found = int(digits)
        return found if least <= found <= most else self.refuse(name, f"is not from {least} to {most}")

    def time(self, name: str) -> str:
        """A time, as UTC text."""
        found = self.optional_time(name)
        return self.refuse(name, "is missing") if found is None else found

    def optional_time(self, name: str) -> str | None:
        """A time as UTC text, or None."""
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
        """The value of a JSON text. None if the attribute is absent, and for JSON's null."""
        text = self.optional_text(name)
        try:
            return None if text is None else _loads(text)
        except (ValueError, RecursionError):  # too deep, or a number that no float or int can be
            return self.refuse(name, "is no JSON")

    def refuse(self, name: str, problem: str) -> NoReturn:
        """Raise RecordUnreadable. The problem never quotes the value, which may be a payload or a token."""
        raise RecordUnreadable(self.key, name, problem, self._what_next) from None

    def _typed(self, name: str, kind: str, in_words: str) -> str | None:
        given = self._item.get(name)
        if given is None:
            return None
        found = given.get(kind) if isinstance(given, (dict, Mapping)) else None  # dict is asked faster
        return found if isinstance(found, str) else self.refuse(name, f"is not {in_words}")


def in_range(name: str, since: str | None, until: str | None) -> tuple[str, dict[str, Any]]:
    """
    A key condition for the sort key: its text is from one to the other, both included.

    An end that is None is left out, not replaced by the least or the latest time. So what another program has
    written there is found, whatever it is.

    Returns:
        The condition, as it follows that of the partition key, and its values.
    """
    if since is None and until is None:
        return "", {}
    if until is None:
        return f" AND {name} >= :since", {":since": {"S": since}}
    if since is None:
        return f" AND {name} <= :until", {":until": {"S": until}}
    return f" AND {name} BETWEEN :since AND :until", {":since": {"S": since}, ":until": {"S": until}}


def read_each(items: Iterable[Item], read: Callable[[Item], Record], skip: Skip | None) -> Iterator[Record]:
    """
    Read the items of one page.

    Args:
        items: The page's items, in their typed form.
        read: Reads one item, or raises RecordUnreadable.
        skip: Is called with each unreadable item. If it is None, the first unreadable item raises.
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


def unchanged_or_gone(item: Item, key: str, names: Sequence[str]) -> dict[str, Any]:
    """
    The condition of a delete that must find these attributes unchanged.

    It holds for an item that is gone, so a delete whose answer was lost can be repeated.

    Args:
        item: The item as it was read, in its typed form.
        key: The name of its partition key.
        names: The attributes to compare. One that the item lacks must still be absent.

    Returns:
        Arguments for DeleteItem.
    """
    conditions, values = [], {}
    for number, name in enumerate(names):
        if name in item:
            conditions.append(f"#n{number} = :v{number}")
            values[f":v{number}"] = item[name]
        else:
            conditions.append(f"attribute_not_exists(#n{number})")
    compared = {f"#n{number}": name for number, name in enumerate(names)}
    return {
        "ConditionExpression": f"attribute_not_exists(#key) OR {' AND '.join(conditions)}",
        "ExpressionAttributeNames": {"#key": key, **compared},
        **({"ExpressionAttributeValues": values} if values else {}),
    }


def _loads(text: str) -> Any:
    return json.loads(text, parse_constant=_not_json, parse_float=_finite)


def _finite(digits: str) -> float:
    """Refuse 1e400, which Python reads as infinity and cannot write as JSON."""
    number = float(digits)
    return number if isfinite(number) else _not_json(digits)


def _not_json(constant: str) -> NoReturn:
    """Refuse NaN and the infinities, which Python's parser accepts and JSON does not have."""
    raise ValueError(constant)
