"""JSON from a file or from standard input."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from steponce.errors import InvalidPayload
from steponce.request.strict_json import LONGEST_TEXT, read_strictly

STDIN = "-"
_PAYLOAD = 'Expected is one JSON object, like {"orderId": "1", "amount": 500}.'


def read_payload(file: str) -> dict[str, Any]:
    """Read a payload, one JSON object; arguments and errors as `read_json`."""
    return read_object(file, _PAYLOAD)


def read_object(file: str, expected: str) -> dict[str, Any]:
    """Read one JSON object; arguments and errors as `read_json`."""
    found = read_json(file, expected)
    if not isinstance(found, dict):
        raise InvalidPayload(f"{_name(file)} holds a JSON {_kind(found)}. {expected}")
    return found


def read_json(file: str, expected: str, most: int = LONGEST_TEXT) -> Any:
    """
    Read any JSON value, as `read_strictly` does.

    Args:
        file: A path, or `-` for standard input.
        expected: A sentence that says what should be there.
        most: How many bytes it may have; by default what any payload may have.

    Raises:
        PayloadTooLarge: it has more; the rest was not read.
        InvalidPayload: with the file, line and column, and what was expected; never with the content.
    """
    name = _name(file)
    try:
        if file == STDIN:
            raw = sys.stdin.buffer.read(most + 1)
        else:
            with Path(file).open("rb") as opened:
                raw = opened.read(most + 1)
    except OSError as error:
        raise InvalidPayload(
            f"{name} cannot be read: {error.strerror}. Name a file, or - for stdin."
        ) from None
    return read_strictly(raw, name, expected, most)


def _name(file: str) -> str:
    return "standard input" if file == STDIN else file


def _kind(value: Any) -> str:
    kinds = {list: "array", str: "string", bool: "boolean", type(None): "null"}
    return kinds.get(type(value), "number")
