"""Answers that come as the execution ends; no engine, only its history."""

import threading
from types import SimpleNamespace

import pytest
from moto.stepfunctions.parser.api import HistoryEventType
from moto.stepfunctions.parser.asl.eval.callback.callback import CallbackOutcomeSuccess

from steponce.local.moto_patches.callbacks import Attempt

WAITING = 5


class Env(SimpleNamespace):
    """An execution that waits, and ends as soon as its task is answered."""

    def __init__(self, *events):
        context = SimpleNamespace(last_published_event_id=WAITING)
        history = SimpleNamespace(ending_lock=threading.RLock(), _history_event_list=[])
        super().__init__(event_history_context=context, event_manager=history)
        self._events, self._asked = events, 0

    def is_running(self):
        self._asked += 1
        if self._asked > 1:
            self.event_manager._history_event_list[:] = self._events
            self.event_history_context.last_published_event_id = self._events[-1]["id"]
        return self._asked == 1


def event(number, kind, previous):
    return {"id": number, "type": kind, "previousEventId": previous}


ABORTED = event(7, HistoryEventType.ExecutionAborted, 0)


def test_an_answer_of_a_function_that_is_still_called_does_not_wait_for_the_history():
    """The call may return just then. What follows it was not taken for the answer's outcome."""
    env = Env(event(6, HistoryEventType.TaskSubmitted, WAITING), ABORTED)
    attempt = Attempt("token", env)
    settle = attempt.settle

    def settle_and_return(outcome):
        settled = settle(outcome)
        attempt._frame = env
        return settled

    attempt.settle = settle_and_return
    assert attempt.answer(CallbackOutcomeSuccess("token", "{}"))


@pytest.mark.parametrize(
    ("between", "accepted"),
    [
        ([event(6, HistoryEventType.TaskSucceeded, WAITING)], True),
        ([event(6, HistoryEventType.TaskSucceeded, 3)], False),
        ([], False),
    ],
    ids=["in time", "another task's", "too late"],
)
def test_an_answer_counts_if_the_history_had_it_before_the_end(between, accepted):
    """A sender was told `accepted`, and the execution had been stopped without the answer."""
    env = Env(*between, ABORTED)
    attempt = Attempt("token", env)
    attempt._frame = env
    assert accepted is attempt.answer(CallbackOutcomeSuccess("token", "{}"))
