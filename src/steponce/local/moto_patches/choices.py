"""What a rule of a Choice state takes for a time."""

from __future__ import annotations

import datetime
from typing import Any

from moto.stepfunctions.parser.asl.component.state.choice.comparison.operator.implementations import (
    is_operator,
)

from steponce.lint.values import is_timestamp


def install() -> None:
    """Put this module's patch in place."""
    is_operator.IsTimestamp.string_to_timestamp = staticmethod(_time)


def _time(text: Any) -> datetime.datetime | None:
    """moto knows neither a fraction of a second nor an offset."""
    try:
        return datetime.datetime.fromisoformat(text) if is_timestamp(text) else None
    except ValueError:  # the 30th of February
        return None
