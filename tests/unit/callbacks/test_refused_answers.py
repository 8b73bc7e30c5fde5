"""Answers that Step Functions refuses, throttles or does not show yet."""

from __future__ import annotations

import traceback

import pytest

from steponce.callbacks.step import PENDING
from steponce.errors import InvalidAnswer, SteponceError
from tests.fakes.errors import client_error
from tests.unit.callbacks.scene import NO, YES, FaultAt, waiting

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


def test_an_answer_that_step_functions_refuses_does_not_block_the_step():
    """Its sender is told, the claim is given back, and the next answer is taken."""
    scene = waiting()
    scene.wait.sfn.refuse("send_task_failure", "ValidationException")

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


def test_throttling_is_unavailable():
    """The answer is claimed, and goes with the next call."""
    scene = waiting()
    scene.throttle()

    assert ["unavailable", "unavailable"] == [scene.resolve(YES), scene.resolve(NO)]
    assert "duplicate" == scene.settle(YES)
