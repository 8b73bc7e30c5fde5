"""A world of its own for each test, in which time stands still."""

import pytest

from steponce.aws import times
from tests.unit.report.world import NOW, World


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """It stays NOW, however long the tests before took."""
    monkeypatch.setattr(times, "now", lambda: NOW)


@pytest.fixture
def world() -> World:
    return World()
