"""The clock of the tests that answer a waiting step."""

from __future__ import annotations

import pytest

from steponce.aws import times
from tests.unit.callbacks.scene import NOW


@pytest.fixture
def day_after(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the day after the step began to wait."""
    monkeypatch.setattr(times, "now", lambda: NOW)
