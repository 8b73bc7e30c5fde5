"""Every schedule keeps every promise; and the simulation finds what it is to find."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from random import Random
from threading import Lock
from typing import Any

import pytest

from tests.simulation import turns
from tests.simulation.examine import examine
from tests.simulation.planted import PLANTED
from tests.simulation.wiring import definition

pytestmark = pytest.mark.filterwarnings("ignore:No application metrics")  # a function that fails counts none

SEEDS = 20
"""Schedules in one test."""

PARAMETERS: dict[str, dict[str, Any]] = {
    "hold": {},
    "take over": {"when_outcome_unknown": "take-over"},
    "refuse": {"when_completed": "refuse"},
}
WITH_LIMIT = PARAMETERS | {"rate limit": {"rate_limit": True}}
FEW, MANY = range(1), range(1, 3)

NOT_SIMULATED = {
    "callbacks, which have schedules of their own": {
        "AwaitConfirmation",
        "FailedWithoutCause",
        "FailedWithoutReason",
    },
    "a deployment that changes the rate limit": {"LimitChanged"},
    "sizes": {"ReplayTooLarge", "ResultTooLarge"},
    "records of others": {"IsPowertoolsRecord", "RecordUnreadable"},
    "redriven executions": {"HoldLock"},
    "a lock that is taken and freed five times": {"CountTry", "LockContended"},
}
"""States that the schedules do not reach, by what they would need. They have tests of their own."""


def _parts() -> list[object]:
    return [*FEW, *(pytest.param(part, marks=pytest.mark.full) for part in MANY)]


@pytest.mark.parametrize("part", _parts())
@pytest.mark.parametrize("parameters", WITH_LIMIT.values(), ids=WITH_LIMIT)
def test_every_schedule_keeps_every_promise(parameters: dict[str, Any], part: int) -> None:
    """Whatever a seed lets happen, work runs once, answers agree, and nothing is lost or stuck."""
    for seed in range(part * SEEDS, (part + 1) * SEEDS):
        examined = examine(seed, **parameters)

        assert [] == examined.complaints, "\n".join([f"seed {seed}", *examined.trace])


def test_a_seed_gives_the_same_schedule_again() -> None:
    """What a seed has found can be looked at as often as it takes."""
    for seed in range(5):
        assert examine(seed).trace == examine(seed).trace


def test_the_schedules_reach_every_state() -> None:
    """No state of the workflow is left out, but for those with tests of their own."""
    left = definition("replay")["States"].keys() - set().union(*NOT_SIMULATED.values())
    for seed, parameters in zip(range(100), itertools.cycle(WITH_LIMIT.values()), strict=False):
        left -= examine(seed, **parameters).states
        if not left:
            break

    assert left == set()


def test_an_actor_that_waits_for_another_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the name, such a schedule stands still and does not say why."""
    monkeypatch.setattr(turns, "STUCK_AFTER_SECONDS", 0.2)
    found, lock = turns.Turns(Random(0), datetime(2026, 1, 31, tzinfo=UTC)), Lock()

    def hold() -> None:
        with lock:
            for _ in range(10):
                found.take()

    for name in ("first", "second"):
        found.spawn(name, hold)

    with pytest.raises(turns.NeverEnds, match=r"(first|second) waits for another actor"):
        found.run()


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(name: str) -> None:
    """The simulation can fail. After a change of it, the fault may need another seed."""
    planted = PLANTED[name]
    examined = examine(planted.seed, planted, rate_limit=planted.rate_limit)

    assert examined.complaints, f"make simulate PLANT='{name}' finds another seed"
