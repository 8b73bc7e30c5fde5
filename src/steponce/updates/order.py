"""
What orders updates: `asOf`, a whole number or a time, and the writer, who may repeat its own update.

A whole number is stored as a number, and a time as UTC text with exactly six decimals. So both compare as
exactly as they do in Python, and a record can tell which of the two orders it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from steponce.errors import InvalidAsOf, InvalidRequest, RecordUnreadable, shown
from steponce.updates.item import typed

AsOf = int | datetime

_DIGITS = 38
"""How many digits a number of DynamoDB has."""

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
_WORDS = {"N": "whole numbers", "S": "times"}

# Older: of the same kind, and before. Or this update itself, made before: its answer was lost.
IS_NEWER = (
    "attribute_not_exists(asOf) OR (attribute_type(asOf, :kind) "
    "AND (asOf < :at OR (asOf = :at AND writer = :me)))"
)
_IS_NEWER_TIME = IS_NEWER.replace("(asOf, :kind)", "(asOf, :kind) AND size(asOf) = :size")


@dataclass(frozen=True)
class Order:
    """The place of one update among all others of its record."""

    as_of: dict[str, str]
    writer: str

    @classmethod
    def of(cls, as_of: AsOf, writer: str) -> Self:
        """
        Check what a caller gives.

        Raises:
            InvalidAsOf: `as_of` is neither a whole number nor a time with a zone.
            InvalidRequest: the writer is empty, not text, or cannot be stored.
        """
        if not isinstance(writer, str) or not writer.strip():
            raise InvalidRequest(
                f"The writer {shown(writer)} is empty or not text. Nothing was written. Give what names this "
                "update whenever it comes: the id of its event or request."
            )
        typed("writer", writer)
        return cls(_typed(as_of), writer)

    @property
    def kind(self) -> str:
        """N for a number, S for a time."""
        return next(iter(self.as_of))

    @property
    def condition(self) -> str:
        """The condition under which the update may be written."""
        return IS_NEWER if self.kind == "N" else _IS_NEWER_TIME

    @property
    def values(self) -> dict[str, Any]:
        """What the condition needs."""
        size = {":size": {"N": str(len(self.as_of["S"]))}} if self.kind == "S" else {}
        return {":kind": {"S": self.kind}, ":at": self.as_of, ":me": {"S": self.writer}, **size}

    def expect_same_kind(self, item: Mapping[str, Any], label: str) -> None:
        """
        Check that a record which refused the update can be compared with it.

        Raises:
            InvalidAsOf: it is ordered by the other kind.
            RecordUnreadable: another program has written its `asOf`.
        """
        read_as_of(item, label)
        (kind,) = item["asOf"]
        if kind != self.kind:
            raise InvalidAsOf(
                f"The record {label} is ordered by {_WORDS[kind]}, and this update by {_WORDS[self.kind]}. "
                "Nothing was written. Order all updates of a record by one of the two."
            )


def read_as_of(item: Mapping[str, Any], label: str) -> AsOf | None:
    """
    A record's `asOf` as Python has it; None if it has none.

    Raises:
        RecordUnreadable: another program has written it.
    """
    match item.get("asOf"):
        case None:
            return None
        case {"N": str(digits)} if re.fullmatch(r"-?\d+", digits):
            return int(digits)
        case {"S": str(text)} if _TIME.fullmatch(text):
            return datetime.fromisoformat(text)
    raise RecordUnreadable(label, "asOf", "is no whole number, and no UTC time with six decimals")


def _typed(as_of: AsOf) -> dict[str, str]:
    if isinstance(as_of, int) and not isinstance(as_of, bool):
        if abs(as_of) >= 10**_DIGITS:
            raise InvalidAsOf(f"as_of has more than {_DIGITS} digits. Nothing was written.")
        return {"N": str(as_of)}
    if not isinstance(as_of, datetime):
        raise InvalidAsOf(
            f"as_of is {shown(as_of)}. Nothing was written. Give a whole number, or a datetime with a zone."
        )
    if as_of.tzinfo is None or as_of.utcoffset() is None:
        raise InvalidAsOf(
            f"The time {as_of.isoformat()} has no zone. Nothing was written. Give it one, for example UTC."
        )
    try:
        utc = as_of.astimezone(UTC).replace(tzinfo=None)
    except OverflowError:
        raise InvalidAsOf(f"The time {as_of.isoformat()} is beyond the calendar in UTC.") from None
    return {"S": f"{utc.isoformat(timespec='microseconds')}Z"}
