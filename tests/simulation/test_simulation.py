"""Every schedule keeps every promise; and the simulation finds what it is to find."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from random import Random
from threading import Lock
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.simulation import turns
from tests.simulation.examine import Examined, examine
from tests.simulation.faults import is_read
from tests.simulation.planted import PLANTED, Planted
from tests.simulation.story import Story, ToldFaults, by_hand, by_message, by_operator, stopped
from tests.simulation.wiring import definition

pytestmark = pytest.mark.filterwarnings("ignore:No application metrics")  # a function that fails counts none

SEEDS = 2
"""Schedules in one test."""

PARAMETERS: dict[str, dict[str, Any]] = {
    "hold": {},
    "take over": {"when_outcome_unknown": "take-over"},
    "refuse": {"when_completed": "refuse"},
    "letters put back": {"puts_back": True},
}
WITH_LIMIT = PARAMETERS | {"rate limit": {"rate_limit": True}}
FEW, MANY = range(1), range(1, 15)

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


_call = ToldFaults.call


def read_thrice(
    self: ToldFaults, operation: str, method: Callable[..., Any], arguments: dict[str, Any], *, mortal: bool
) -> Any:
    """Make a call. A read is made twice more before, as if there were other code."""
    for _ in range(2 if is_read(operation) and arguments else 0):  # what comes in pages has no arguments
        self.turns.take()
        with suppress(ClientError):
            method(**arguments)
    return _call(self, operation, method, arguments, mortal=mortal)


@cache
def examine_once(parameters: str, seed: int) -> Examined:
    """Examine a schedule at which several tests look."""
    return examine(seed, **WITH_LIMIT[parameters])


def promises(examined: Examined) -> set[str]:
    """Which kinds of promises were broken."""
    return {complaint.partition(":")[0] for complaint in examined.complaints}


def expect_found(planted: Planted, examine: Callable[..., Examined]) -> None:
    """The story of a fault breaks a promise with it. Without it none is broken, and all goes as told."""
    sound = examine(planted.story)
    assert [] == sound.complaints, "\n".join(sound.trace)
    assert not sound.missed
    assert {planted.breaks} <= promises(examine(planted.story, planted))


def _parts() -> list[object]:
    return [*FEW, *(pytest.param(part, marks=pytest.mark.full) for part in MANY)]


@pytest.mark.parametrize("part", _parts())
@pytest.mark.parametrize("parameters", WITH_LIMIT)
def test_every_schedule_keeps_every_promise(parameters: str, part: int) -> None:
    """Whatever a seed lets happen, work runs once, answers agree, and nothing is lost or stuck."""
    for seed in range(part * SEEDS, (part + 1) * SEEDS):
        examined = examine_once(parameters, seed)

        assert [] == examined.complaints, "\n".join([f"seed {seed}", *examined.trace])


def test_a_message_that_an_error_on_record_has_answered_is_not_lost() -> None:
    """Its own execution ended before there was an answer. A person released the lock later."""
    acts = (by_hand(0, "first"), by_message(10, "second"), stopped(20, "first"), by_operator(1_500))
    examined = examine(Story(acts, work="slow", faults={"event for resend_request": "lost"}))

    assert [] == examined.complaints, "\n".join(examined.trace)
    assert not examined.missed
    assert any("says yes to release" in line for line in examined.trace)


@pytest.mark.full
def test_a_seed_gives_the_same_schedule_again() -> None:
    """What a seed has found can be looked at as often as it takes."""
    for seed in range(5):
        assert examine_once("hold", seed).trace == examine(seed).trace


@pytest.mark.full
def test_the_schedules_reach_every_state() -> None:
    """No state of the workflow is left out, but for those with tests of their own."""
    left = definition("replay")["States"].keys() - set().union(*NOT_SIMULATED.values())
    for seed, parameters in itertools.product(range(MANY.stop * SEEDS), WITH_LIMIT):
        left -= examine_once(parameters, seed).states
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


@pytest.mark.full
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(name: str) -> None:
    """The simulation can fail: the story of each fault breaks a promise with it, and none without it."""
    expect_found(PLANTED[name], examine)


@pytest.mark.full
@pytest.mark.parametrize("name", PLANTED)
def test_a_story_does_not_depend_on_the_number_of_calls(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call more in the client or in a function changes no story."""
    monkeypatch.setattr(ToldFaults, "call", read_thrice)
    expect_found(PLANTED[name], examine)
