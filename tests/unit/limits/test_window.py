"""Windows: where they begin and end, and what they are called."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steponce.limits.window import Window

TOKYO = timezone(timedelta(hours=9))


def utc(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-{text}+00:00")


@pytest.mark.parametrize(
    ("window", "at", "start", "end"),
    [
        ("minute", "01-31T23:59:59.999", "01-31T23:59", "02-01T00:00"),
        ("hour", "01-31T12:00", "01-31T12:00", "01-31T13:00"),
        ("day", "01-31T23:59:59.999", "01-31T00:00", "02-01T00:00"),
        ("day", "02-01T00:00", "02-01T00:00", "02-02T00:00"),
        (90, "01-31T00:01:29", "01-31T00:00", "01-31T00:01:30"),
        (604_800, "01-31T12:00", "01-29T00:00", "02-05T00:00"),
    ],
)
def test_a_window_holds_its_beginning_and_not_its_end(
    window: str | int, at: str, start: str, end: str
) -> None:
    """A week begins on Thursday, as 1970 did."""
    found = Window.of(window)
    assert (utc(start), utc(end)) == (found.start(utc(at)), found.end(utc(at)))


def test_a_window_is_cut_in_utc_whatever_the_zone_of_the_event() -> None:
    """Nine in Tokyo is midnight."""
    at = datetime(2026, 2, 1, 8, 59, 59, tzinfo=TOKYO)
    assert utc("01-31T00:00") == Window.of("day").start(at)
    assert UTC == Window.of("day").start(at).tzinfo


TIMES = st.datetimes(datetime(1900, 1, 1), datetime(9000, 1, 1), timezones=st.just(UTC))


@given(st.integers(1, 31_622_400), TIMES)
def test_a_time_is_in_one_window_of_the_right_length(seconds: int, at: datetime) -> None:
    """Before 1970, too; and the next window begins where it ends."""
    window = Window.of(seconds)
    start, end = window.start(at), window.end(at)
    assert start <= at < end
    assert timedelta(seconds=seconds) == end - start
    assert end == window.start(end)


@given(st.integers(1, 31_622_400) | st.sampled_from(["minute", "hour", "day"]))
def test_a_window_is_found_by_its_name(given_: str | int) -> None:
    """One length has one name, however it was said."""
    window = Window.of(given_)
    assert window == Window.named(window.name)
    assert "minute" == Window.of(60).name


@pytest.mark.parametrize("wrong", ["week", "", "60", 0, -1, 1.5, True, None, 31_622_401])
def test_what_is_no_window_is_refused(wrong: Any) -> None:
    """With what would be one."""
    with pytest.raises(ValueError, match="minute, hour, day, or seconds"):
        Window.of(wrong)
