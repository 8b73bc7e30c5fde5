"""One machine, and an operator."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from moto import mock_aws

from steponce.operator import cancel as cancellation
from steponce.operator.locks import Operator
from tests.unit.one_machine import WORK_TIMEOUT, World


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Tables of this test's own."""
    monkeypatch.setattr(cancellation, "_SEEN_WITHIN_SECONDS", 0)
    with mock_aws():
        yield World()


@pytest.fixture
def alice(world: World) -> Operator:
    return Operator(world.machine, by="alice", work_timeout_seconds=WORK_TIMEOUT)
