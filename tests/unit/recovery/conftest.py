"""The table of a dead owner's lock, at twelve, which the test files share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from moto import mock_aws

from steponce.aws import times
from tests.unit.one_owner import NOW, Stack


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is twelve."""
    monkeypatch.setattr(times, "now", lambda: NOW)


@pytest.fixture(scope="module")
def aws() -> Iterator[Stack]:
    """One table for the module."""
    with mock_aws():
        yield Stack()


@pytest.fixture
def stack(aws: Stack) -> Stack:
    """The dead owner's lock, as it left it."""
    aws.put()
    return aws
