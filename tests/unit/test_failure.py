"""What is read from an error's name and cause."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from steponce.failure import Failure

CAUSE = "The rate limit of 5 is used up until {}. Nothing happened; start the request again then."


def test_the_rate_limit_says_when_its_window_ends():
    """In the words of the workflow's own state."""
    failure = Failure("RateLimited", CAUSE.format("2026-12-31T23:00:00.000Z"))
    assert datetime(2026, 12, 31, 23, tzinfo=UTC) == failure.resets_at
    assert Failure("Other", failure.cause).resets_at is None


@pytest.mark.parametrize(
    "time", ["2026-13-45T00:00:00.000Z", "2026-01-01T25:00:00.000Z", "0000-01-01T00:00:00.000Z"]
)
def test_a_time_that_is_none_is_somebody_elses(time: str):
    """The calendar does not have it, so the workflow has not written it."""
    assert Failure("RateLimited", CAUSE.format(time)).resets_at is None
