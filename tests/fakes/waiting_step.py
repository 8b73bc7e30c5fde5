"""An execution that waits in one state for an answer: what its workflow does, on the fake Step Functions."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from steponce.aws import times
from steponce.callbacks.answer import Answer
from tests.fakes.step_functions import StepFunctions

BEGINNING = datetime(2026, 1, 31, 12, tzinfo=UTC)
EXECUTION = "arn:aws:states:us-east-1:123456789012:execution:run-once:order-1"
_RUNS = count()
CRASH = '{"errorMessage": "the bus is full", "errorType": "RuntimeError"}'


class WaitingStep:
    """
    An execution with one state that waits for a token, beside a sibling branch that waits for another.

    Args:
        retries: How often the state is retried after a time-out or when its function raises.
    """

    def __init__(self, retries: int = 1) -> None:
        self._call_id = f"call-{next(_RUNS)}"
        self.sfn = StepFunctions()
        self.sfn.put(EXECUTION)
        self.events = self.sfn.histories[EXECUTION]
        self.answers: list[tuple[int, Answer]] = []
        self.handed: list[dict[str, Any]] = []
        self._entry_of: dict[str, int] = {}
        self.tokens: list[str] = []
        self.token: str | None = None
        self.retries_left = retries
        self.entries = self.tries = 0
        self.is_inside = self.is_open = True
        self.is_submitted = False
        self._last = self._add("ExecutionStarted", 0)
        self._enter_both()
        self._sibling = self._scheduled("token-of-the-sibling", self._sibling)
        self.enter()
        details = {"output": '"for the sibling"'}
        self._sibling = self._add("TaskSucceeded", self._sibling, taskSucceededEventDetails=details)

    def enter(self) -> None:
        """The workflow enters the state, for the first time or again."""
        if self._is_cancelled:
            self._enter_both()
        self.entries, self.tries, self.is_inside = self.entries + 1, 0, True
        self._last = self._add("TaskStateEntered", self._last)
        self.retry()

    def retry(self) -> None:
        """The next try of the state begins, with a token of its own."""
        self.token = f"token-{len(self.tokens):04}"
        self.sfn.expect_answer(EXECUTION, self.token, self._get)
        self.tokens.append(self.token)
        self._entry_of[self.token] = self.entries
        self.handed.append(self._handed_over(self.token))
        self.tries, self.is_submitted = self.tries + 1, False
        self._last = self._scheduled(self.token, self._last)

    def submit(self) -> None:
        """The recording function returns."""
        if self.token is not None and not self.is_submitted:
            self._last = self._add("TaskSubmitted", self._last, taskSubmittedEventDetails={})
            self.is_submitted = True

    def crash(self) -> None:
        """The recording function raises."""
        if self.token is None or self.is_submitted:
            return
        self._end("TaskFailed", taskFailedEventDetails={"error": "RuntimeError", "cause": CRASH})
        self._retry_or_leave()

    def time_out(self) -> None:
        """Nobody has answered, or the heartbeat has stopped."""
        if self.token is None:
            return
        self._end("TaskTimedOut", taskTimedOutEventDetails={"error": "States.Timeout"})
        self._retry_or_leave()

    def abort(self) -> None:
        """
        The sibling branch fails, which a Catch of the whole Parallel handles.

        AWS links all that follows to that failure, and nothing to the branch that it cancels.
        """
        failed = self._add("TaskFailed", self._sibling, taskFailedEventDetails={"error": "Boom"})
        self._forget_token()
        self.is_inside = False
        self._add("TaskStateAborted", failed)
        self._add("TaskStateAborted", failed)
        parallel = self._add("ParallelStateFailed", failed)
        self._last = self._add("ParallelStateExited", parallel, stateExitedEventDetails={"name": "Both"})
        self._is_cancelled = True

    def fail_to_start(self, kind: str) -> None:
        """The function could not even be called."""
        self._end(kind)
        self.retries_left -= 1

    def lag(self, events: int = 0) -> None:
        """From now on the history shows nothing new, and not even the newest events."""
        self.sfn.shown[EXECUTION] = len(self.events) - events

    def catch_up(self) -> None:
        """The history shows everything again."""
        self.sfn.shown.clear()

    def stop(self) -> None:
        """Somebody stops the execution."""
        self._forget_token()
        self.is_inside, self.is_open = False, False
        self.sfn.stop_execution(executionArn=EXECUTION)

    def vanish(self) -> None:
        """Step Functions forgets the execution."""
        self._forget_token()
        self.is_inside, self.is_open = False, False
        self.sfn.forget(EXECUTION)

    def finish(self) -> None:
        """The execution runs to its end."""
        self.sfn.close(EXECUTION, "SUCCEEDED")
        self.is_open = False

    @property
    def got(self) -> list[Answer]:
        """All answers that the workflow got."""
        return [answer for _, answer in self.answers]

    def got_with(self, token: str) -> list[Answer]:
        """The answers that it got while it was in the state, which this token let it wait in."""
        return [answer for entry, answer in self.answers if entry == self._entry_of[token]]

    @property
    def is_between_tries(self) -> bool:
        """Whether a retry is to come."""
        return self.is_inside and self.token is None

    @property
    def lags(self) -> bool:
        """Whether the history may lack its newest events."""
        return EXECUTION in self.sfn.shown

    def take(self, token: str, answer: Answer) -> None:
        """An answer or heartbeat arrives with a token, from whomever."""
        if answer.outcome == "heartbeat":
            self.sfn.send_task_heartbeat(taskToken=token)
        elif answer.outcome == "success":
            self.sfn.send_task_success(taskToken=token, output=json.dumps(answer.output))
        else:
            self.sfn.send_task_failure(taskToken=token, error=answer.error, cause=answer.cause)

    def _get(self, event: str, details: dict[str, Any]) -> None:
        """The workflow gets an answer, and leaves the state."""
        if event == "TaskSucceeded":
            answer = Answer("success", json.loads(details["output"]))
            self._end(event, taskSucceededEventDetails=details)
        else:
            answer = Answer("failure", error=details.get("error"), cause=details.get("cause"))
            self._end(event, taskFailedEventDetails=details)
        self.answers.append((self.entries, answer))
        self._leave()

    def _handed_over(self, token: str) -> dict[str, Any]:
        """What the state hands to the recording function."""
        return {
            "step": "confirmation",
            "taskToken": token,
            "enteredAt": times.to_text(BEGINNING + timedelta(hours=self.entries)),
            "retryCount": self.tries,
            "timeoutSeconds": 3600,
            "execution": EXECUTION,
            "requestId": "order-1",
            "lockToken": "run-once/order-1",
            "callId": self._call_id,
            "attempt": 1,
        }

    def _enter_both(self) -> None:
        """The workflow enters the Parallel around the state and its sibling."""
        self._last = self._add("ParallelStateEntered", self._last, stateEnteredEventDetails={"name": "Both"})
        self._last = self._add("ParallelStateStarted", self._last)
        self._sibling = self._add("TaskStateEntered", self._last)
        self._is_cancelled = False

    def _end(self, kind: str, **details: Any) -> None:
        self._last = self._add(kind, self._last, **details)
        self._forget_token()

    def _forget_token(self) -> None:
        if self.token is not None:
            self.sfn.end_task(self.token)
            self.token = None

    def _retry_or_leave(self) -> None:
        self.retries_left -= 1
        if self.retries_left < 0:
            self._leave()

    def _leave(self) -> None:
        self._last, self.is_inside = self._add("TaskStateExited", self._last), False

    def _scheduled(self, token: str, previous: int) -> int:
        parameters = json.dumps({"FunctionName": "record", "Payload": {"taskToken": token}})
        scheduled = self._add("TaskScheduled", previous, taskScheduledEventDetails={"parameters": parameters})
        return self._add("TaskStarted", scheduled, taskStartedEventDetails={})

    def _add(self, kind: str, previous: int, **details: Any) -> int:
        self.events.append(
            {"id": len(self.events) + 1, "previousEventId": previous, "type": kind} | dict(details)
        )
        return len(self.events)
