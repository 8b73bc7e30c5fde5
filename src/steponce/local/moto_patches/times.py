"""The text form of times in the context object."""

from __future__ import annotations

import datetime


def aws_time(moment: datetime.datetime) -> str:
    """
    `YYYY-MM-DDTHH:MM:SS.mmmZ`, as AWS writes it; definitions compare such texts.

    At a whole second AWS leaves out the `.000`. So among the times of one second this text is the latest.
    """
    text = moment.astimezone(datetime.UTC).isoformat(timespec="milliseconds")
    return text.removesuffix("+00:00").removesuffix(".000") + "Z"
