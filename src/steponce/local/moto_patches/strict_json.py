"""Reads JSON as AWS does: without NaN and infinities, which Python's parser accepts."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn


class NotFinite(ValueError):
    """The text has NaN, an infinity, or a number that is one in Python."""


def strict_json(text: str) -> Any:
    """
    Parse JSON text.

    Raises:
        JSONDecodeError: it is no JSON.
        NotFinite: it is JSON but for a number.
    """
    return json.loads(text, parse_constant=_refuse, parse_float=_finite)


def _finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _refuse(digits)


def _refuse(constant: str) -> NoReturn:
    raise NotFinite(f"The value {constant} is no JSON.")
