"""Times as texts: those of the context object, and what a state takes for a time."""

from __future__ import annotations

import datetime
from typing import Any

from steponce.lint.values import is_timestamp


def aws_time(moment: datetime.datetime) -> str:
    """
    `YYYY-MM-DDTHH:MM:SS.mmmZ`, as AWS writes it; definitions compare such texts.

    At a whole second AWS leaves out the `.000`. So among the times of one second this text is the latest.
    """
    text = moment.astimezone(datetime.UTC).isoformat(timespec="milliseconds")
    return text.removesuffix("+00:00").removesuffix(".000") + "Z"


def time_of(text: Any) -> datetime.datetime | None:
    """The time of a timestamp; None if it is no text, or no timestamp on AWS."""
    try:
        return datetime.datetime.fromisoformat(text) if is_timestamp(text) else None
    except ValueError:  # the 30th of February
        return None
