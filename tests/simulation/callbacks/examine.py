"""Runs one schedule of callbacks, and judges it."""

from __future__ import annotations

from typing import Any

from tests.simulation.callbacks.judge import judge
from tests.simulation.callbacks.schedule import CallbackSchedule
from tests.simulation.examine import Examined
from tests.simulation.examine import examine as examine_any
from tests.simulation.planted import NOTHING, Planted
from tests.simulation.story import Story


def examine(source: int | Story, planted: Planted = NOTHING, **parameters: Any) -> Examined:
    """Run the schedule of a seed or a story. As the function of the same name for requests."""
    return examine_any(source, planted, CallbackSchedule, judge, **parameters)
