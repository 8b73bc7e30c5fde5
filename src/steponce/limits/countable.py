"""What can be counted: which user, and an event of which time."""

from __future__ import annotations

from datetime import datetime, timedelta

from steponce.aws.redelivery import LATEST_REDELIVERY_SECONDS
from steponce.errors import InvalidEventTime, InvalidRequest, shown
from steponce.limits.window import Window

AHEAD_SECONDS = 300
"""How far a sender's clock may be ahead of this one."""

KEPT_SECONDS = LATEST_REDELIVERY_SECONDS
"""How long a window's counts are kept after its end, unless said otherwise."""

_FORGOTTEN_LATER_SECONDS = 3_600
"""The record outlives what is asked of it by this, for clocks that differ from DynamoDB's."""

_MAX_WHO_BYTES = 1_024


def check_user(user: str) -> None:
    """
    Check that a text can be a user's.

    Raises:
        InvalidRequest: it is empty, blank, not text or longer than 1,024 bytes.
    """
    if not isinstance(user, str) or not user.strip() or size_of(user) > _MAX_WHO_BYTES:
        raise InvalidRequest(
            f"The user {shown(user)} cannot be limited. Give text of 1 to {_MAX_WHO_BYTES:,} bytes."
        )


def check_time(at: datetime, now: datetime, window: Window, kept: timedelta, *, then: str) -> None:
    """
    Check that an event of this time can be counted.

    Args:
        at: The event's own time.
        now: This clock.
        window: The limit's.
        kept: How long the counts of a window are kept after its end.
        then: What to do if the counts may be deleted.

    Raises:
        InvalidEventTime: the time is no datetime, has no zone, is over 300 seconds ahead of this clock, or is
            so old that the counts of its window may be deleted.
    """
    if not isinstance(at, datetime):
        raise InvalidEventTime(
            f"The time {shown(at)} is no datetime. Nothing was counted. Read a text with "
            "`datetime.fromisoformat` first."
        )
    if at.tzinfo is None:
        raise InvalidEventTime(f"The time {at.isoformat()} has no zone. Give it one, for example UTC.")
    if at > now + timedelta(seconds=AHEAD_SECONDS):
        raise InvalidEventTime(
            f"The time {at.isoformat()} is more than {AHEAD_SECONDS} seconds in the future. Nothing was "
            "counted. Set the sender's clock, or send the request again when it is due."
        )
    if _is_forgotten(at, now, window, kept):
        raise InvalidEventTime(
            f"The time {at.isoformat()} is so long ago that the counts of its window may be deleted. "
            f"Nothing was counted. {then}"
        )


def forgotten_at(at: datetime, window: Window, kept: timedelta) -> int:
    """When DynamoDB may delete the counts for an event of this time; epoch seconds."""
    return int((window.end(at) + kept + timedelta(seconds=_FORGOTTEN_LATER_SECONDS)).timestamp())


def size_of(text: str) -> int:
    """
    Bytes of a text.

    Raises:
        InvalidRequest: it holds half a character.
    """
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise InvalidRequest(f"{shown(text)} holds half a character. Give whole text.") from None


def _is_forgotten(at: datetime, now: datetime, window: Window, kept: timedelta) -> bool:
    try:
        return now >= window.end(at) + kept
    except OverflowError:  # near the first day of the calendar
        return True
