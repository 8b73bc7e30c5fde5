"""Times are text that compares as time does."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steponce.aws import times

MOMENTS = st.datetimes(
    datetime(1970, 1, 2),
    datetime(9999, 12, 30),
    timezones=st.builds(timezone, st.timedeltas(timedelta(hours=-14), timedelta(hours=14))),
)


@given(MOMENTS, MOMENTS)
def test_text_compares_as_time_does(one: datetime, other: datetime) -> None:
    """In whole milliseconds, in any zone."""
    earlier, later = sorted([one, other])
    assert times.to_text(earlier) <= times.to_text(later)


@given(MOMENTS)
def test_what_is_written_reads_as_the_same_millisecond(moment: datetime) -> None:
    """Less than a millisecond is lost, and always downwards."""
    lost = moment - times.from_text(times.to_text(moment))
    assert timedelta(0) <= lost < timedelta(milliseconds=1)


@given(MOMENTS)
def test_text_has_one_form(moment: datetime) -> None:
    """24 characters, ending in Z."""
    text = times.to_text(moment)
    assert (24, "Z") == (len(text), text[-1])


@pytest.mark.parametrize(
    ("expected", "time"),
    [
        ("2026-01-31T12:00:00.000Z", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31T12:00:00.999Z", datetime(2026, 1, 31, 12, 0, 0, 999_999, tzinfo=UTC)),
        ("2026-01-31T12:00:00.000Z", datetime(2026, 1, 31, 14, tzinfo=timezone(timedelta(hours=2)))),
        ("0987-01-31T12:00:00.000Z", datetime(987, 1, 31, 12, tzinfo=UTC)),
    ],
)
def test_a_time_has_this_text(expected: str, time: datetime) -> None:
    """The form, by example."""
    assert expected == times.to_text(time)


def test_a_time_without_a_zone_is_refused() -> None:
    """Nobody can say when it is."""
    with pytest.raises(ValueError, match="has no zone"):
        times.to_text(datetime(2026, 1, 31))
    with pytest.raises(ValueError, match="has no zone"):
        times.from_text("2026-01-31T12:00:00")


def test_none_seconds_later_is_never() -> None:
    """And never is the last time that the text can say."""
    assert times.NEVER == times.to_text(times.after(times.now(), None))


@pytest.mark.parametrize("seconds", [1e12, 1e300, float("inf")])
def test_no_time_is_later_than_never(seconds: float) -> None:
    """However long the retention."""
    assert times.NEVER == times.to_text(times.after(times.now(), seconds))


def test_seconds_are_added() -> None:
    """Fractions too."""
    start = datetime(2026, 1, 31, tzinfo=UTC)
    assert datetime(2026, 1, 31, 0, 1, 0, 500_000, tzinfo=UTC) == times.after(start, 60.5)


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        (1_769_860_800, "2026-01-31T12:00:00.000Z"),
        (1_769_860_801, "2026-01-31T12:00:00.001Z"),
        (1_769_860_801, "2026-01-31T12:00:00.999Z"),
        (1_769_860_800, "2026-01-31T14:00:00+02:00"),
        (0, "1970-01-01T00:00:00.000Z"),
    ],
)
def test_a_ttl_is_rounded_up(expected: int, text: str) -> None:
    """DynamoDB never deletes a record that is not yet reusable."""
    assert expected == times.epoch_seconds(text)


@given(MOMENTS)
def test_a_ttl_is_never_before_its_time(moment: datetime) -> None:
    """And less than a second after it."""
    text = times.to_text(moment)
    assert 0 <= times.epoch_seconds(text) - times.from_text(text).timestamp() < 1


def test_the_ttl_of_never_is_a_time_that_python_can_say() -> None:
    """Whoever shows a record's ttl as a time must not trip over it."""
    assert 9999 == datetime.fromtimestamp(times.epoch_seconds(times.NEVER), UTC).year


def test_the_clock_has_a_zone() -> None:
    """And reads as it is written."""
    assert UTC == times.now().tzinfo
    earliest = times.to_text(times.now())
    assert earliest <= times.now_text() <= times.to_text(times.now())
