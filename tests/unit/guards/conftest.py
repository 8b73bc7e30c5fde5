"""The guards' table, which their test files share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from moto import mock_aws

from steponce.aws import times
from tests.fakes.tables import create_table
from tests.unit.guards.world import World
from tests.unit.shared_clients import shared


@pytest.fixture(scope="module")
def _table() -> Iterator[None]:
    with mock_aws():
        create_table(shared("dynamodb"), "LocksTable", "locks")
        yield


@pytest.fixture
def world(_table: None, monkeypatch: pytest.MonkeyPatch) -> World:
    """An empty table, at twelve."""
    for item in shared("dynamodb").scan(TableName="locks")["Items"]:
        shared("dynamodb").delete_item(TableName="locks", Key={"lockToken": item["lockToken"]})
    made = World()
    monkeypatch.setattr(times, "now", lambda: made.now)
    return made
