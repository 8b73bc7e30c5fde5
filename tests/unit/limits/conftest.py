"""An empty table for each test, at noon; and the two forms of a counter."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from moto import mock_aws

from steponce.aws import times
from steponce.limits import counters
from tests.unit.limits.world import TABLE, World, make_table
from tests.unit.shared_clients import shared


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """An empty table, a clock at noon, and no time lost in pauses."""
    found = World()
    monkeypatch.setattr(times, "now", lambda: found.now)
    monkeypatch.setattr(counters, "_FIRST_PAUSE_SECONDS", 0)
    with mock_aws():
        make_table(shared("dynamodb"), TABLE)
        yield found


@pytest.fixture(params=["set", "number"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Counters of the one form or the other, for limits that a test can reach."""
    if request.param == "number":
        monkeypatch.setattr(counters, "SET_MEMBERS", 0)
    return str(request.param)
