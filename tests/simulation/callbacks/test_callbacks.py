"""Every schedule of callbacks keeps every promise; and the simulation finds what it is to find."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulation.callbacks.examine import examine
from tests.simulation.callbacks.planted import PLANTED
from tests.simulation.story import ToldFaults
from tests.simulation.test_simulation import PARAMETERS, expect_found, read_thrice

pytestmark = pytest.mark.filterwarnings("ignore:No application metrics")  # a function that fails counts none

SEEDS = 2
"""Schedules in one test."""

FEW, MANY = range(1), range(1, 6)

NOT_SIMULATED = (
    "a failure with the raw task token before the function has returned",  # docs/callbacks.md
    "waits in a Map or a Parallel",
    "redriven executions",
    "sizes",
)
"""The docs tell of the first. The others have tests of their own."""


def _parts() -> list[object]:
    return [*FEW, *(pytest.param(part, marks=pytest.mark.full) for part in MANY)]


@pytest.mark.parametrize("part", _parts())
@pytest.mark.parametrize("parameters", PARAMETERS.values(), ids=PARAMETERS)
def test_every_schedule_keeps_every_promise(parameters: dict[str, Any], part: int) -> None:
    """Whatever a seed lets happen, each answer gets one true verdict, and no step waits for ever."""
    for seed in range(part * SEEDS, (part + 1) * SEEDS):
        examined = examine(seed, **parameters)

        assert [] == examined.complaints, "\n".join([f"seed {seed}", *examined.trace])


@pytest.mark.full
def test_a_seed_gives_the_same_schedule_again() -> None:
    """What a seed has found can be looked at as often as it takes."""
    for seed in range(3):
        assert examine(seed).trace == examine(seed).trace


@pytest.mark.full
def test_the_schedules_reach_every_state_of_a_wait() -> None:
    """Answers without an error or a cause end in states of their own."""
    left = {"AwaitConfirmation", "AwaitApproval", "AskAgain", "CompleteRequest", "RecordFinalError"}
    left |= {"RequestFailed", "FailedWithoutCause", "FailedWithoutReason"}
    for seed in range(100):
        left -= examine(seed).states
        if not left:
            break

    assert left == set()


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
