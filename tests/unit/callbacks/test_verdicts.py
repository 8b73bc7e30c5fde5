"""The verdict on one answer after the other: accepted, duplicate, conflict, late or unknown."""

from __future__ import annotations

from typing import Any

import pytest

from steponce.aws import times
from steponce.callbacks.answer import Answer
from steponce.callbacks.awaiting import AwaitingSteps
from steponce.callbacks.step import ANSWERED, LATE, PENDING, AwaitingStep
from steponce.executions import YOUNG
from tests.unit.callbacks.scene import BEAT, MAYBE, NO, YES, FaultAt, Scene, waiting

pytestmark = pytest.mark.usefixtures("day_after")


@pytest.mark.parametrize("answer", [YES, NO, Answer("success"), Answer("failure")])
def test_the_first_answer_is_accepted_and_the_same_again_is_a_duplicate(answer: Answer):
    """The workflow gets it once, as it was given."""
    scene = waiting()

    assert "accepted" == scene.resolve(answer)
    assert "duplicate" == scene.resolve(answer)

    assert [answer] == scene.wait.got
    assert ANSWERED == scene.status()


@pytest.mark.parametrize(
    ("first", "other"),
    [
        (YES, NO),
        (NO, YES),
        (YES, MAYBE),
        (NO, Answer("failure", error="Declined")),
        (Answer("success", 1), Answer("success", True)),
    ],
)
def test_another_answer_is_a_conflict(first: Answer, other: Answer):
    """The first one stands."""
    scene = waiting()
    scene.resolve(first)

    assert "conflict" == scene.resolve(other)
    assert [first] == scene.wait.got


def test_an_answer_to_no_step_is_unknown():
    """Also before the step is on record."""
    assert "unknown" == Scene().resolve(YES)


def test_an_accepted_answer_costs_four_calls():
    """Read, claim, send, close; and a repeated one a single read."""
    calls: list[str] = []
    scene = waiting()

    scene.resolve(YES, calls.append)
    assert ["get_item", "update_item", "send_task_success", "update_item"] == calls
    scene.resolve(YES, calls.append)
    assert 5 == len(calls)


def test_a_heartbeat_is_accepted_while_the_step_waits():
    """As often as it comes, and the answer after it too."""
    scene = waiting()

    assert ["accepted"] * 3 + ["accepted"] == [scene.resolve(one) for one in (BEAT, BEAT, BEAT, YES)]
    assert "late" == scene.resolve(BEAT)


@pytest.mark.parametrize("raw", [YES, NO, Answer("failure"), Answer("success")])
@pytest.mark.parametrize("probe", [YES, NO, BEAT])
def test_an_answer_with_the_raw_token_closes_the_record_by_what_follows(raw: Answer, probe: Answer):
    """The record then tells the answer that the workflow got, whoever asked: an answer or a heartbeat."""
    scene = waiting()
    scene.answer_raw(raw)

    verdict = scene.resolve(probe)

    # An answer like the raw one may be the raw one: AWS does not tell a repeated call from another's.
    assert verdict == ("late" if probe == BEAT else "accepted" if probe == raw else "conflict")
    assert (ANSWERED, raw) == (scene.status(), scene.stored().answer)
    assert "duplicate" == scene.resolve(raw)


@pytest.mark.parametrize("output", ["1e30", '["\\ud800"]', "1e400", "1" * 5000, "[" * 990 + "]" * 990])
def test_a_raw_answer_that_we_would_refuse_is_a_conflict(output: str):
    """It is recorded all the same, also if Python cannot read it."""
    scene = waiting()
    scene.answer_raw(MAYBE)
    scene.wait.events[-2]["taskSucceededEventDetails"]["output"] = output

    assert ["conflict", "conflict", "late"] == [scene.ask(one) for one in (YES, YES, BEAT)]
    assert ANSWERED == scene.status()


def test_an_output_is_compared_as_json():
    """Step Functions may write it otherwise than we send it."""
    scene = waiting()
    scene.wait.take(scene.wait.tokens[0], Answer("success", {"b": 1.0, "a": "é"}))
    scene.wait.events[-2]["taskSucceededEventDetails"]["output"] = '{ "b": 1.0, "a": "\\u00e9" }'

    assert "accepted" == scene.ask(Answer("success", {"a": "é", "b": 1}))


@pytest.mark.parametrize("details", [{}, {"error": "", "cause": ""}, {"error": None, "cause": None}])
def test_a_failure_without_words_is_the_same_however_it_is_shown(details: dict[str, Any]):
    """Absent, empty and null are one."""
    scene = waiting()
    scene.answer_raw(Answer("failure"))
    scene.wait.events[-2]["taskFailedEventDetails"] = details

    assert "accepted" == scene.resolve(Answer.parse({"outcome": "failure"}))


@pytest.mark.parametrize("probe", [YES, NO, BEAT])
@pytest.mark.parametrize("end", ["time_out", "stop", "crash", "abort"])
def test_what_comes_after_the_step_is_over_is_late(probe: Answer, end: str):
    """Timed out, stopped, failed by its own function or aborted with its sibling: it got no answer."""
    scene = Scene(retries=0)
    scene.record_only()
    if end != "crash":
        scene.wait.submit()
    getattr(scene.wait, end)()

    assert ["late"] * 3 == [scene.resolve(one) for one in (probe, YES, BEAT)]
    assert LATE == scene.status()
    assert [] == scene.wait.got


def test_a_failure_is_known_by_its_words_even_before_the_function_returned():
    """The outside was quicker than the recorder, and the reply was lost: this failure is no crash."""
    scene = Scene()
    scene.record_only()

    assert "accepted" == scene.resolve(NO, FaultAt(3, "repeat"))
    assert [NO] == scene.wait.got


def test_an_answer_to_an_old_run_never_reaches_the_new_one():
    """Each run has an id of its own; the old one's is late."""
    scene = waiting()
    scene.wait.stop()
    new = AwaitingStep.from_event(scene.wait.handed[-1] | {"callId": "other", "taskToken": "token-new"})
    AwaitingSteps(scene.table, "steps").record(new)

    assert "late" == scene.resolve(YES)
    stored = AwaitingSteps(scene.table, "steps").get(new.id)
    assert stored is not None
    assert PENDING == stored.status


def test_an_execution_that_is_gone_was_too_late():
    """Step Functions forgets after 90 days; but a history that is young may just not be there yet."""
    scene, young = waiting(), waiting()
    scene.wait.vanish()
    young.wait.vanish()

    assert "late" == scene.resolve(YES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(times, "now", lambda: times.from_text(young.step.entered_at) + YOUNG)
        assert "unavailable" == young.ask(YES)
