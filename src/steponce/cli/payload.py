"""JSON from a file or from standard input, read more strictly than `json` does."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from steponce.errors import InvalidPayload

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


def read_json(file: str, expected: str) -> Any:
    """
    Read any JSON value. The canonical form refuses what is left: numbers that JSON cannot carry.

    Args:
        file: A path, or `-` for standard input.
        expected: A sentence that says what should be there.

    Raises:
        InvalidPayload: with the file, line and column, and what was expected; never with the content.
    """
    name = _name(file)
    try:
        raw = sys.stdin.buffer.read() if file == STDIN else Path(file).read_bytes()
    except OSError as error:
        raise InvalidPayload(
            f"{name} cannot be read: {error.strerror}. Name a file, or - for stdin."
        ) from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InvalidPayload(f"{name}, line {line}: this is not UTF-8. Save it as UTF-8 text.") from None
    return _parse(text, name, expected)


def _name(file: str) -> str:
    return "standard input" if file == STDIN else file


def _parse(text: str, name: str, expected: str) -> Any:
    def without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise InvalidPayload(
                    f"{name} has the key {key!r} twice in one object, and only one value can be meant. "
                    "Remove the other."
                )
            found[key] = value
        return found

    try:
        return json.loads(text, object_pairs_hook=without_duplicates)
    except json.JSONDecodeError as error:
        raise InvalidPayload(
            f"{name}, line {error.lineno}, column {error.colno}: {error.msg}. {expected}"
        ) from None
    except InvalidPayload:
        raise
    except ValueError:  # Python converts no more than 4,300 digits
        raise InvalidPayload(f"{name} has a number with thousands of digits. Send it as text.") from None
    except RecursionError:
        raise InvalidPayload(f"{name} is nested too deeply. Send a flatter object.") from None


def _kind(value: Any) -> str:
    kinds = {list: "array", str: "string", bool: "boolean", type(None): "null"}
    return kinds.get(type(value), "number")
