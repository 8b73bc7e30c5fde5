"""The text form of times in the context object."""

from __future__ import annotations

import datetime


def aws_time(moment: datetime.datetime) -> str:
    """`YYYY-MM-DDTHH:MM:SS.mmmZ`, as AWS writes it; definitions compare such texts."""
    text = moment.astimezone(datetime.UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
