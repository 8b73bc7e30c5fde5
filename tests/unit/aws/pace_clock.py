"""The clock of steponce.aws.pace, which sleeping moves on; everybody else's goes on as it is."""

from __future__ import annotations

import pytest


class PaceClock:
    """Nobody waits, and what would have been waited is counted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_000.0
        self.slept = 0.0
        monkeypatch.setattr("steponce.aws.pace.time", self)

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept += seconds
