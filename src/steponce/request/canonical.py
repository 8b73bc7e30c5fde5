"""
Canonical JSON: one text for one value, so that equal payloads have equal hashes.

Decided here, and tested:
- keys are sorted by code point, there are no spaces, the text is UTF-8 without unicode escapes, so key
  order, spacing and escapes of the sender make no difference;
- 1.0 is written as 1, and -0.0 as 0: JSON has one kind of number, and Step Functions reads them as
  JavaScript does;
- what JSON cannot carry, or Step Functions cannot carry unchanged, is refused with its place: NaN,
  infinities, whole numbers beyond 2**53 - 1, keys that are not text, lone surrogates, Decimal, dates;
- no value is nested deeper than 300 levels: Python's own limit depends on who calls, this one does not;
- text is not normalised: "é" in one code point and "é" in two are different values.

The time grows with the size of the value and with nothing else. Places are written for errors only.

Source: RFC 8785 (JCS) for the form of numbers, RFC 7493 (I-JSON) for their range.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from steponce.errors import InvalidPayload, PayloadTooLarge

MAX_SAFE_INTEGER = 2**53 - 1

MAX_DEPTH = 300
"""How many lists and objects may lie in each other. Step Functions' own limit is not documented."""

_LONGEST_PLACE = 200


def canonical_json(
    value: Any, where: str = "payload", *, limit: int | None = None, levels: int = MAX_DEPTH
) -> str:
    """
    Write a value as canonical JSON text.

    Args:
        value: dict, list, tuple, str, int, float, bool or None, nested as you like.
        where: What to call the value in an error message.
        limit: Bytes that the text may have. What is far larger is refused before it is written.
        levels: How many lists and objects may lie in each other.

    Raises:
        InvalidPayload: part of the value cannot be carried unchanged; the message says which.
        PayloadTooLarge: the text has more bytes than `limit`.
    """
    try:
        plain = _Walk(limit).plain(value, levels)
    except _Unfit as unfit:
        raise InvalidPayload(f"{_place(where, unfit.steps)} {unfit.problem}") from None
    except (_TooDeep, RecursionError):
        raise InvalidPayload(
            f"{where} is nested too deeply. Send a flatter one, of at most {levels} levels."
        ) from None
    except _TooLarge:
        raise PayloadTooLarge(f"{where} has more than the {limit:,} bytes that are allowed.") from None
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    size = len(text.encode())
    if limit is not None and size > limit:
        raise PayloadTooLarge(f"{where} has {size:,} bytes; {limit:,} are allowed.")
    return text


def in_one_form(value: Any) -> Any:
    """
    The form that equal values share: keys sorted, 1 for 1.0, lists for tuples, plain text.

    JMESPath searches this form. Its functions, such as `to_string` and `values`, tell 1 from 1.0, and one
    order of keys from another. What JSON cannot carry stays as it is, since nobody may look at that part.

    Raises:
        InvalidPayload: it is nested too deeply.
    """
    try:
        return _in_one_form(value)
    except RecursionError:
        raise InvalidPayload(
            f"A value is nested too deeply. Send a flatter one, of at most {MAX_DEPTH} levels."
        ) from None


def sha256(text: str) -> str:
    """The SHA-256 of a text's UTF-8 bytes, as 64 hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


class _Unfit(Exception):
    """Part of a value cannot be carried. `steps` lead to it, the innermost first."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        self.steps: list[str | int] = []


class _TooDeep(Exception):
    """More levels than are allowed."""


class _TooLarge(Exception):
    """What was seen so far is larger than allowed already."""


class _Walk:
    """
    One walk over a value, which makes of it what `json.dumps` writes in canonical form.

    Args:
        limit: Bytes that the text may have; None for any number. What is counted on the way is never more
            than the text will have: two bytes for each member of a list or an object, and each character.
    """

    def __init__(self, limit: int | None) -> None:
        self._left = math.inf if limit is None else limit

    def plain(self, value: Any, depth: int) -> Any:
        """The value in JSON's own types, nested `depth` levels deep at the most."""
        if isinstance(value, str):
            return self._text(value)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return _integer(value)
        if isinstance(value, float):
            return _number(value)
        if not isinstance(value, (list, tuple, Mapping)):
            raise _Unfit(f"is a {type(value).__name__}, which JSON has no form for. Send it as text.")
        if depth == 0:
            raise _TooDeep
        self._count(2 * len(value))
        return self._array(value, depth) if isinstance(value, (list, tuple)) else self._object(value, depth)

    def _object(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        plain = {}
        for key, item in value.items():
            if not isinstance(key, str):
                raise _Unfit(f"has a key that is a {type(key).__name__}. JSON keys are text.")
            self._text(key)
            try:
                plain[key] = self.plain(item, depth - 1)
            except _Unfit as unfit:
                unfit.steps.append(key)
                raise
        return plain

    def _array(self, value: Sequence[Any], depth: int) -> list[Any]:
        plain: list[Any] = []
        try:
            for item in value:
                is_done = type(item) is int and -MAX_SAFE_INTEGER <= item <= MAX_SAFE_INTEGER  # most often
                plain.append(item if is_done else self.plain(item, depth - 1))
        except _Unfit as unfit:
            unfit.steps.append(len(plain))
            raise
        return plain

    def _text(self, value: str) -> str:
        self._count(len(value))
        try:
            value.encode()
        except UnicodeEncodeError:
            raise _Unfit("holds half a character (a lone surrogate). Send whole text.") from None
        return value

    def _count(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise _TooLarge


def _in_one_form(value: Any) -> Any:
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, Mapping):
        return {key: _in_one_form(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, (list, tuple)):
        return [item if type(item) is int else _in_one_form(item) for item in value]
    return value


def _place(where: str, steps: Sequence[str | int]) -> str:
    """The way to a part of the value, cut off where it gets long."""
    place = where + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in reversed(steps))
    return place if len(place) <= _LONGEST_PLACE else f"{place[:_LONGEST_PLACE]}…"


def _integer(value: int) -> int:
    if abs(value) > MAX_SAFE_INTEGER:
        raise _Unfit("is beyond ±(2**53 - 1), where Step Functions would round it. Send it as text.")
    return int(value)


def _number(value: float) -> float:
    if not math.isfinite(value):
        raise _Unfit(f"is {value}, which JSON cannot carry. Send null or text.")
    return _integer(int(value)) if value.is_integer() else value
