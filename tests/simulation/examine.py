"""Runs one schedule, and judges it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from moto import mock_aws

from steponce.local.moto_patches import expressions, pace
from tests.simulation.judge import judge
from tests.simulation.planted import NOTHING, Planted
from tests.simulation.schedule import Schedule
from tests.simulation.story import Story
from tests.simulation.turns import NeverEnds

expressions.install()
pace.install()


@dataclass(frozen=True)
class Examined:
    """
    What one schedule showed.

    Args:
        complaints: Every broken promise.
        trace: What happened, a line each.
        states: Which states its executions entered.
        missed: The faults of a story that have not happened.
    """

    complaints: list[str]
    trace: list[str]
    states: frozenset[str]
    missed: frozenset[str]


def examine(
    source: int | Story,
    planted: Planted = NOTHING,
    kind: type[Schedule] = Schedule,
    judge: Callable[[Any], list[str]] = judge,
    **parameters: Any,
) -> Examined:
    """
    Run the schedule of a seed, or of a story.

    Args:
        source: The seed, which decides everything that happens; or the story.
        planted: A fault to plant.
        kind: The schedule.
        judge: Judges a schedule of that kind.
        parameters: As of `Schedule`.
    """
    with mock_aws(), planted.planted():
        schedule = kind(source, planted.change, **parameters)
        try:
            schedule.run()
            complaints = judge(schedule)
        except NeverEnds as error:
            complaints = [f"never ends: {error}"]
        states = frozenset().union(*(end.states for end in schedule.installation.ends))
        trace = [_line(*one) for one in schedule.turns.trace]
        return Examined(complaints, trace, states, frozenset(schedule.faults.planned))


def _line(passed: timedelta, actor: str, what: str) -> str:
    return f"{str(passed)[:-3]:>22}  {actor:25}  {what}"
