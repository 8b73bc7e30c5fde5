"""Steps that are retried or entered again, and what the history shows of their tries."""

from __future__ import annotations

import pytest

from tests.fakes.waiting_step import CRASH
from tests.unit.callbacks.scene import BEAT, NO, YES, FaultAt, Scene, waiting

pytestmark = pytest.mark.usefixtures("day_after")


def test_an_answer_to_a_step_that_is_about_to_be_retried_waits_for_the_retry():
    """It is claimed, cannot be sent yet, and goes with the newer token."""
    scene = waiting()
    scene.wait.time_out()
    assert "unavailable" == scene.resolve(YES)
    assert "unavailable" == scene.resolve(BEAT)

    scene.wait.retry()
    assert "unavailable" == scene.resolve(YES)
    scene.record()

    assert "duplicate" == scene.resolve(YES)
    assert [YES] == scene.wait.got


def test_a_late_step_that_is_entered_again_takes_an_answer():
    """The earlier one was told the truth: it was late, and is not applied now."""
    scene = waiting(retries=0)
    scene.wait.time_out()
    assert "late" == scene.resolve(NO)

    scene.again()

    assert "accepted" == scene.resolve(YES)
    assert [YES] == scene.wait.got
    assert "conflict" == scene.resolve(NO)


def test_a_record_that_never_stands_still_is_unavailable():
    """After some tries the call gives up; nothing is sent twice."""
    scene = waiting(retries=99)

    def gate(name: str) -> None:
        if name == "update_item":
            scene.wait.time_out()
            scene.retry_and_record()

    assert "unavailable" == scene.resolve(YES, gate)
    assert [] == scene.wait.got


def test_a_sibling_branch_is_not_taken_for_the_step():
    """Events of both branches stand mixed; they are told apart by what they follow from."""
    scene = waiting(retries=0)
    scene.wait.time_out()

    assert "late" == scene.resolve(YES)


@pytest.mark.parametrize("kind", ["TaskStartFailed", "TaskSubmitFailed"])
def test_a_try_that_never_began_brought_no_answer(kind: str):
    """The step is late only when the state has been left: a retry may follow."""
    scene = Scene()
    scene.record_only()
    scene.wait.fail_to_start(kind)
    assert "unavailable" == scene.resolve(YES)

    assert "duplicate" == scene.settle(YES)
    assert [YES] == scene.wait.got


def test_a_token_that_a_retry_keeps_counts_for_its_last_try():
    """moto gives every try of a state the same token."""
    scene = waiting()
    scene.wait.time_out()
    scene.wait.retry()
    first, second = scene.wait.tokens
    for event in scene.wait.events:
        scheduled = event.get("taskScheduledEventDetails", {"parameters": ""})
        scheduled["parameters"] = scheduled["parameters"].replace(second, first)
    scene.answer_raw(YES)

    assert "accepted" == scene.resolve(YES)


def test_an_answer_on_its_way_goes_along_when_the_step_is_entered_again():
    """Nobody knows yet whether it arrived, so it answers the second wait too; another name avoids that."""
    scene = waiting()
    assert "died" == scene.resolve(YES, FaultAt(3, "die after"))
    scene.again()

    assert "duplicate" == scene.resolve(YES)
    assert [YES, YES] == scene.wait.got


def test_a_retry_after_an_accepted_failure_is_no_second_chance():
    """Who retries on the answer's own error name sees StepAlreadyAnswered; the answer stands."""
    scene = waiting()
    assert "accepted" == scene.resolve(NO)
    scene.again()

    assert (None, CRASH) == (scene.wait.token, scene.wait.events[-1]["taskFailedEventDetails"]["cause"])
    assert "duplicate" == scene.resolve(NO)
