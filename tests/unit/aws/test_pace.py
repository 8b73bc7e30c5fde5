"""The pace holds for all threads together, and nobody waits in vain."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from steponce.aws.pace import Pace
from steponce.errors import Unavailable
from tests.unit.aws.pace_clock import PaceClock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> PaceClock:
    return PaceClock(monkeypatch)


def test_after_a_rest_a_burst_passes_at_once_and_then_the_rate_holds(clock: PaceClock):
    """Ten at once, then four a second; a rest earns another burst and no more."""
    pace = Pace(4)
    for _ in range(2):
        begin = clock.now
        for _ in range(10):
            pace.turn(60)
        assert 0 == clock.now - begin
        for _ in range(8):
            pace.turn(60)
        assert 2 == pytest.approx(clock.now - begin)
        clock.now += 3_600


def test_who_cannot_wait_so_long_is_turned_away_at_once(clock: PaceClock):
    """And takes nobody's turn."""
    pace = Pace(0.5, burst=1)
    pace.turn(0)
    begin = clock.now
    for _ in range(5):
        with pytest.raises(Unavailable) as caught:
            pace.turn(1.5)
        assert caught.value.throttled
    assert begin == clock.now
    pace.turn(2)
    assert 2 == pytest.approx(clock.now - begin)


def test_threads_share_the_pace():
    """Ten threads are no faster than one."""
    pace = Pace(100, burst=5)
    begin = time.monotonic()
    with ThreadPoolExecutor(10) as threads:
        list(threads.map(lambda _: pace.turn(60), range(45)))
    assert 0.38 <= time.monotonic() - begin
