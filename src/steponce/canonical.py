"""
Canonical JSON: one text for one value, so that equal payloads have equal hashes.

Decided here, and tested:
- keys are sorted by code point, there are no spaces, the text is UTF-8 without unicode escapes, so key
  order, spacing and escapes of the sender make no difference;
- 1.0 is written as 1, and -0.0 as 0: JSON has one kind of number, and Step Functions reads them as
  JavaScript does;
- what JSON cannot carry, or Step Functions cannot carry unchanged, is refused with its place: NaN,
  infinities, whole numbers beyond 2**53 - 1, keys that are not text, lone surrogates, Decimal, dates;
- text is not normalised: "é" in one code point and "é" in two are different values.

Source: RFC 8785 (JCS) for the form of numbers, RFC 7493 (I-JSON) for their range.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

from steponce.errors import InvalidPayload

MAX_SAFE_INTEGER = 2**53 - 1


def canonical_json(value: Any, where: str = "payload") -> str:
    """
    Write a value as canonical JSON text.

    Args:
        value: dict, list, tuple, str, int, float, bool or None, nested as you like.
        where: What to call the value in an error message.

    Raises:
        InvalidPayload: part of the value cannot be carried unchanged; the message says which.
    """
    try:
        plain = _plain(value, where)
    except RecursionError:
        raise InvalidPayload(f"{where} is nested too deeply. Send a flatter one.") from None
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def sha256(text: str) -> str:
    """The SHA-256 of a text's UTF-8 bytes, as 64 hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any, where: str) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value, where)
    if isinstance(value, int):
        return _integer(value, where)
    if isinstance(value, float):
        return _number(value, where)
    if isinstance(value, Mapping):
        return {_key(key, where): _plain(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, f"{where}[{index}]") for index, item in enumerate(value)]
    raise InvalidPayload(f"{where} is a {type(value).__name__}, which JSON has no form for. Send it as text.")


def _key(key: Any, where: str) -> str:
    if not isinstance(key, str):
        raise InvalidPayload(f"{where} has the key {key!r}, which is not text. JSON keys are text.")
    return _text(key, where)


def _text(value: str, where: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidPayload(f"{where} holds half a character (a lone surrogate). Send whole text.") from None
    return value


def _integer(value: int, where: str) -> int:
    if abs(value) > MAX_SAFE_INTEGER:
        raise InvalidPayload(
            f"{where} is beyond ±(2**53 - 1), where Step Functions would round it. Send it as text."
        )
    return int(value)


def _number(value: float, where: str) -> float:
    if not math.isfinite(value):
        raise InvalidPayload(f"{where} is {value}, which JSON cannot carry. Send null or text.")
    return _integer(int(value), where) if value.is_integer() else value
