"""Converts between times and the UTC text of records and envelopes, `YYYY-MM-DDTHH:MM:SS.mmmZ`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

NEVER = "9999-12-31T23:59:59.000Z"
"""The latest time that the text form has. A record that expires then never expires."""

_NEVER = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


def now() -> datetime:
    """The current time, as an aware UTC datetime."""
    return datetime.now(UTC)


def now_text() -> str:
    """The current time, as text."""
    return to_text(now())


def to_text(time: datetime) -> str:
    """
    Write a time. Such texts sort as their times do.

    Step Functions writes `$$.State.EnteredTime` in this form too, but without `.000` at a whole second.

    Raises:
        ValueError: the time has no zone, or is beyond the calendar in UTC.
    """
    if time.tzinfo is None:
        raise ValueError(f"The time {time.isoformat()} has no zone. Give it one, for example UTC.")
    try:
        in_utc = time.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"The time {time.isoformat()} is beyond the calendar.") from None
    return in_utc.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def from_text(text: str) -> datetime:
    """
    Read a time in ISO 8601 with a zone, such as `to_text` writes.

    Raises:
        ValueError: the text is no time, has no zone, or is beyond the calendar.
    """
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError(f"The time {text!r} has no zone. End it with Z for UTC.")
    try:
        return time.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"The time {text!r} is beyond the calendar.") from None


def after(time: datetime, seconds: float | None) -> datetime:
    """Add seconds to a time. None means never."""
    if seconds is None:
        return _NEVER
    try:
        return min(time + timedelta(seconds=seconds), _NEVER)
    except OverflowError:
        return _NEVER


def epoch_seconds(text: str) -> int:
    """The time as DynamoDB's TTL needs it: whole seconds since 1970, rounded up."""
    return -int(-from_text(text).timestamp() // 1)
