"""
JSON text from outside: read within a size, and refused with a reason, which never quotes the content.

Equal texts give one form, whatever the sender's order of keys is; see `in_one_form`.
"""

from __future__ import annotations

import json
from typing import Any

from steponce.errors import InvalidPayload, PayloadTooLarge, shown
from steponce.request.canonical import in_one_form
from steponce.workflow import WORKFLOW_LIMIT

LONGEST_TEXT = 6 * WORKFLOW_LIMIT
"""Bytes that a text may have: what a workflow can carry, each byte sent as an escape of six characters."""


def read_strictly(text: str | bytes, what: str, expected: str = "", most: int = LONGEST_TEXT) -> Any:
    """
    Read any JSON value. The canonical form refuses what is left: numbers that JSON cannot carry.

    Args:
        text: What came; bytes are UTF-8, perhaps with a byte order mark.
        what: What to call it in an error message.
        expected: A sentence that says what should be there, for a text that is no JSON.
        most: How many bytes or characters it may have.

    Raises:
        PayloadTooLarge: it has more; it was not read.
        InvalidPayload: it is not JSON, or nested too deeply, or has a key twice or an endless number.
    """
    if len(text) > most:
        raise PayloadTooLarge(f"{what} has more than {most:,} bytes. Send less.")
    if isinstance(text, bytes):
        text = _decoded(text, what)
    try:
        return parsed(text, what)
    except json.JSONDecodeError as error:
        place = f"{what}, line {error.lineno}, column {error.colno}"
        raise InvalidPayload(f"{place}: {error.msg}. {expected}".rstrip()) from None


def json_or_text(text: str, what: str) -> Any:
    """
    Read any JSON value as `read_strictly` does. Text that is no JSON stays text.

    Raises:
        InvalidPayload: it is JSON, but nested too deeply, or has a key twice or an endless number.
    """
    try:
        return parsed(text, what)
    except json.JSONDecodeError:
        return text


def parsed(text: str, what: str) -> Any:
    """
    Parse JSON.

    Raises:
        json.JSONDecodeError: it is not JSON.
        InvalidPayload: as `json_or_text`.
    """
    try:
        return json.loads(text, object_pairs_hook=lambda pairs: _object(pairs, what), parse_float=_number)
    except (json.JSONDecodeError, InvalidPayload):
        raise
    except ValueError:  # Python converts no more than 4,300 digits
        raise InvalidPayload(f"{what} has a number with thousands of digits. Send it as text.") from None
    except RecursionError:
        raise InvalidPayload(f"{what} is nested too deeply. Send a flatter one.") from None


def _decoded(text: bytes, what: str) -> str:
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise InvalidPayload(f"{what}, line {line}: this is not UTF-8. Send UTF-8 text.") from None


def _object(pairs: list[tuple[str, Any]], what: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise InvalidPayload(
                f"{what} has the key {shown(key)} twice in one object, and only one value can be meant. "
                "Remove the other."
            )
        found[key] = value
    return dict(sorted(found.items()))


def _number(text: str) -> Any:
    return in_one_form(float(text))
