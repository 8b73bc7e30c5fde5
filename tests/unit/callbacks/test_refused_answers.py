"""Answers that Step Functions refuses, throttles or does not show yet."""

from __future__ import annotations

import traceback
from unittest.mock import Mock

import pytest

from steponce.callbacks.answer import Answer
from steponce.callbacks.awaiting import AwaitingSteps
from steponce.callbacks.resolver import Callbacks
from steponce.callbacks.step import PENDING
from steponce.errors import InvalidAnswer, SteponceError
from tests.fakes.errors import client_error
from tests.unit.callbacks.scene import BEAT, NO, YES, FaultAt, waiting

pytestmark = pytest.mark.usefixtures("day_after")


@pytest.mark.parametrize("hidden", range(1, 5))
def test_a_history_that_lags_is_never_taken_for_the_whole(hidden: int):
    """A stopped or answered step whose end does not show yet is unavailable, not late."""
    scene = waiting()
    scene.answer_raw(NO)
    scene.wait.finish()
    scene.wait.lag(hidden)

    verdict = scene.resolve(YES)

    assert verdict == ("conflict" if hidden < 3 else "unavailable")
    assert "conflict" == scene.settle()


@pytest.mark.parametrize("code", ["ValidationException", "InvalidOutput"])
def test_an_answer_that_step_functions_refuses_does_not_block_the_step(code: str):
    """Its sender is told, the claim is given back, and the next answer is taken."""
    scene = waiting()
    scene.wait.sfn.refuse("send_task_failure", code)

    with pytest.raises(InvalidAnswer, match="does not accept this answer"):
        scene.callbacks().resolve(scene.step.id, NO)

    assert PENDING == scene.status()
    assert "accepted" == scene.resolve(YES)


def test_a_refused_answer_whose_sender_died_does_not_block_the_step():
    """Whoever finds it takes it out, and goes on with the own one."""
    scene = waiting()
    scene.wait.sfn.refuse("send_task_failure", "ValidationException")
    assert "died" == scene.resolve(NO, FaultAt(3, "die before"))

    assert "accepted" == scene.resolve(YES)
    assert [YES] == scene.wait.got


@pytest.mark.parametrize("code", ["AccessDeniedException", "KmsAccessDeniedException"])
def test_an_error_of_the_set_up_is_told_by_its_name(code: str):
    """Not by its text, in which AWS may quote the token; when it is mended the answer goes its way."""
    scene = waiting()
    scene.wait.sfn.refuse("send_task_success", client_error(code, scene.step.task_token))

    with pytest.raises(SteponceError, match=rf"refused the answer with {code}\.$") as refused:
        scene.callbacks().resolve(scene.step.id, YES)
    assert refused.value.__suppress_context__
    assert scene.step.task_token not in "".join(traceback.format_exception(refused.value))

    assert "duplicate" == scene.settle()


def test_an_answer_that_boto3_has_sent_before_its_refusal_may_have_arrived():
    """The first time it got no answer. The same one again finds out what the workflow got."""
    scene = waiting()
    error = client_error("ExpiredTokenException")
    error.response["ResponseMetadata"]["RetryAttempts"] = 1
    scene.wait.sfn.lose_answers("send_task_success", error=error)

    with pytest.raises(SteponceError, match=r"may have arrived then\. Send the same answer again\.$"):
        scene.callbacks().resolve(scene.step.id, YES)
    assert "duplicate" == scene.settle()


@pytest.mark.parametrize("code", ["TaskTimedOut", "TaskDoesNotExist", "InvalidToken"])
def test_a_token_that_step_functions_does_not_take_any_more_is_used_up(code: str):
    """Whatever it is called, the history says what the workflow got."""
    scene = waiting()
    scene.wait.time_out()
    scene.wait.finish()
    scene.wait.sfn.refuse("send_task_success", client_error(code))

    assert "late" == scene.resolve(YES)


def test_an_answer_that_was_sent_needs_no_history():
    """Its events may not show yet, and a long history would be read for each answer."""
    scene = waiting()
    scene.wait.sfn.refuse("get_execution_history", "ThrottlingException")

    assert "accepted" == scene.resolve(YES)


def test_a_refused_heartbeat_is_no_answer_that_is_refused():
    """There is no plainer heartbeat. The error is told, and the step goes on waiting."""
    scene = waiting()
    scene.wait.sfn.refuse("send_task_heartbeat", "ValidationException")

    with pytest.raises(SteponceError, match=r"refused the answer with ValidationException\.$"):
        scene.callbacks().resolve(scene.step.id, BEAT)
    assert PENDING == scene.status()


@pytest.mark.parametrize(("answer", "sent"), [(Answer("failure", error="E"), {"error": "E"}), (NO, None)])
def test_a_failure_is_sent_with_what_it_has(answer: Answer, sent: dict[str, str] | None):
    """boto3 refuses a cause that is None, and nobody could answer with an error alone."""
    scene, given = waiting(), Mock()
    Callbacks(AwaitingSteps(scene.table, "steps"), given).resolve(scene.step.id, answer)
    wanted = sent or {"error": answer.error, "cause": answer.cause}
    given.send_task_failure.assert_called_once_with(taskToken=scene.step.task_token, **wanted)


def test_throttling_is_unavailable():
    """The answer is claimed, and goes with the next call."""
    scene = waiting()
    scene.throttle()

    assert ["unavailable", "unavailable"] == [scene.resolve(YES), scene.resolve(NO)]
    assert "duplicate" == scene.settle(YES)
