"""Each test has its own world, and a clock that does not move."""

import pytest

from steponce.aws import times
from tests.unit.report.world import NOW, World


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """It shows NOW, also if the tests before took long."""
    monkeypatch.setattr(times, "now", lambda: NOW)


@pytest.fixture
def world() -> World:
    return World()
