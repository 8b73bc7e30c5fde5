"""
Tasks that wait for a token.

moto gives a retried task its old token, with the old answer in it. It takes answers after a time-out, can
take two, and loses the cause of a failure. It accepts an answer before the history has it, and loses it if
the execution is stopped at once. Here each attempt has a token of its own and at most one outcome. The
outcome is in the history before its sender gets an answer.
"""

from __future__ import annotations

import math
import threading
import time
from itertools import takewhile
from typing import Any

from moto.core.exceptions import AWSError
from moto.stepfunctions.parser.api import HistoryEventType
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import (
    state_task_service_callback as callback,
)
from moto.stepfunctions.parser.asl.eval.callback.callback import (
    CallbackEndpoint,
    CallbackOutcome,
    CallbackOutcomeFailure,
    CallbackOutcomeSuccess,
    CallbackOutcomeTimedOut,
    HeartbeatTimedOut,
)
from moto.stepfunctions.parser.asl.eval.environment import Environment
from moto.stepfunctions.parser.models import StepFunctionsParserBackend

from steponce.local import stack_time
from steponce.local.moto_patches.strict_json import strict_json
from steponce.local.moto_patches.timeouts import output_in_time, take_output
from steponce.workflow import WORKFLOW_LIMIT

_OUTCOMES = (HistoryEventType.TaskSucceeded, HistoryEventType.TaskFailed)

_attempts: dict[str, Attempt] = {}


class Attempt(CallbackEndpoint):
    """One attempt of a waiting task: open until it is answered, times out or is given up."""

    def __init__(self, token: str, env: Environment) -> None:
        super().__init__(callback_id=token)
        self._env = env
        self._frame: Environment | None = None
        self._changed = threading.Condition()
        self._open = True
        self._beaten = False
        self._heartbeat_seconds: int | None = None

    def settle(self, outcome: CallbackOutcome) -> bool:
        """Accept the outcome if it is the first and not too late."""
        with self._changed:
            if not (self._open and self._env.is_running()):
                return False
            self._open = False
            self._outcome = outcome
            self._changed.notify_all()
            return True

    def answer(self, outcome: CallbackOutcome) -> bool:
        """As `settle`, and return when the history has it, or has the end of the execution instead."""
        with self._changed:
            seen, is_called = self._newest_events(), self._frame is None
            if not self.settle(outcome):
                return False
        if is_called:
            return True  # a function that answers while it is still called would wait for itself
        while self._env.is_running() and self._newest_events() == seen:
            time.sleep(0.002)
        return self._has_arrived(seen)

    def _has_arrived(self, seen: list[int]) -> bool:
        """Whether the history has an outcome of the task after these events."""
        history = self._env.event_manager
        with history.ending_lock:
            news = takewhile(lambda event: event["id"] > max(seen), reversed(history._history_event_list))
            return any(event["type"] in _OUTCOMES and event["previousEventId"] in seen for event in news)

    def beat(self) -> bool:
        """Note a heartbeat if the attempt is open."""
        with self._changed:
            if not (self._open and self._env.is_running()):
                return False
            self._beaten = True
            self._changed.notify_all()
            return True

    def close(self) -> CallbackOutcome | None:
        """Take no answer from now on; the outcome that came before, if one did."""
        with self._changed:
            self._open = False
            self._changed.notify_all()
            return self._outcome

    def setup_heartbeat_endpoint(self, heartbeat_seconds: int) -> Attempt:
        """moto's name for: the heartbeat clock starts now."""
        self._heartbeat_seconds = heartbeat_seconds
        return self

    def wait_for_outcome(self, frame: Environment) -> CallbackOutcome | HeartbeatTimedOut:
        """Wait for the outcome, for a missing heartbeat, or for the attempt to be given up."""
        with self._changed:
            self._frame = frame
            while self._open:
                self._beaten = False
                if not self._wait_for_sign():
                    self._open = False
                    return HeartbeatTimedOut()
            return self._outcome or CallbackOutcomeTimedOut(callback_id=self.callback_id)

    def _wait_for_sign(self) -> bool:
        """Wait for a heartbeat or for the end of the attempt; false if the heartbeat is missing."""
        most = math.inf if self._heartbeat_seconds is None else self._heartbeat_seconds
        end = stack_time.monotonic() + most
        while self._open and not self._beaten:
            left = end - stack_time.monotonic()
            if left <= 0:
                return False
            self._changed.wait(stack_time.stretch(None if left == math.inf else left))
        return True

    def _newest_events(self) -> list[int]:
        """The numbers of the newest events of the task, which has a success, and of its state, a failure."""
        frames = [self._env] if self._frame is None else [self._env, self._frame]
        return [frame.event_history_context.last_published_event_id for frame in frames]


def install() -> None:
    """Put this module's patches in place."""
    callback.StateTaskServiceCallback._evaluate_with_timeout = _evaluate_attempt
    callback.StateTaskServiceCallback._eval_wait_for_task_token = _wait_for_token
    StepFunctionsParserBackend.send_task_success = _send_task_success
    StepFunctionsParserBackend.send_task_failure = _send_task_failure
    StepFunctionsParserBackend.send_task_heartbeat = _send_task_heartbeat


def _evaluate_attempt(task: callback.StateTaskServiceCallback, env: Environment) -> None:
    """One try of a task; if it waits for something, with a new token."""
    if task.resource.condition is None:
        take_output(task, env, output_in_time(task, env))
        return
    token = env.states.context_object.update_task_token()
    attempt = Attempt(token, env)
    _attempts[token] = attempt
    env.callback_pool_manager._pool[token] = attempt
    try:
        # Accepted at the last moment: its sender got a 200, so it counts.
        output = output_in_time(task, env, lambda: attempt.close() is not None)
    finally:
        attempt.close()
    take_output(task, env, output)


def _wait_for_token(
    _task: callback.StateTaskServiceCallback, *, env: Environment, callback_endpoint: Attempt, **_others: Any
) -> CallbackOutcome | HeartbeatTimedOut:
    return callback_endpoint.wait_for_outcome(env)


def _send_task_success(_backend: StepFunctionsParserBackend, task_token: str, outcome: str) -> None:
    if len(outcome.encode()) > WORKFLOW_LIMIT:
        raise AWSError(f"'output' is longer than {WORKFLOW_LIMIT} bytes", "ValidationException")
    try:
        strict_json(outcome)
    except ValueError as error:
        raise AWSError(f"Invalid Output: {error}", "InvalidOutput") from None
    _accept(_attempt(task_token).answer(CallbackOutcomeSuccess(task_token, outcome)))


def _send_task_failure(
    _backend: StepFunctionsParserBackend, task_token: str, error: str | None = None, cause: str | None = None
) -> None:
    _accept(_attempt(task_token).answer(CallbackOutcomeFailure(task_token, error, cause)))


def _send_task_heartbeat(_backend: StepFunctionsParserBackend, task_token: str) -> None:
    _accept(_attempt(task_token).beat())


def _attempt(token: str) -> Attempt:
    if token not in _attempts:
        raise AWSError("Invalid Token: 'Invalid token'", "InvalidToken")
    return _attempts[token]


def _accept(accepted: bool) -> None:
    if not accepted:
        raise AWSError("Task Timed Out: 'Provided task does not exist anymore'", "TaskTimedOut")
