"""
Tasks that wait for an answer with a task token (`.waitForTaskToken`).

A token is for one try and takes one answer. The answer may come before the function has returned. The
heartbeat's clock starts when it has. Source: Step Functions Developer Guide, "Wait for a Callback with Task
Token".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from random import Random
from typing import Any

from botocore.exceptions import ClientError

from tests.fakes.errors import client_error
from tests.fakes.step_functions import StepFunctions
from tests.simulation.definition import Data, Failed
from tests.simulation.turns import Turns

UNACCEPTABLE = "unacceptable"
"""Step Functions refuses an output with this text."""

Note = Callable[..., None]
"""Adds an event to the history: its type, the prefix of its details' name, and the details."""


class Waiting:
    """
    One try of a task that waits.

    Args:
        tasks: Step Functions. The present actor is the execution.
        note: Adds an event to the history.
        token: The task token.
        given: The payload of the function.
        seconds, heartbeat_seconds: How long it waits in all, and for each heartbeat.

    Attributes:
        over: What ended it: the type of the event, and its details. None while it waits.
        answered: When the answer came. None if none did.
    """

    def __init__(
        self,
        tasks: WaitingTasks,
        note: Note,
        *,
        token: str,
        given: Mapping[str, Any],
        seconds: float,
        heartbeat_seconds: float,
    ) -> None:
        self.token, self.given = token, given
        self.over: tuple[str, Mapping[str, Any]] | None = None
        self.answered: datetime | None = None
        self._tasks, self._turns, self._random, self._note = tasks, tasks.turns, tasks.random, note
        self.actor = self._turns.actor
        self._heartbeat = timedelta(seconds=heartbeat_seconds)
        self._ends = self._turns.now + timedelta(seconds=seconds)
        self._beat_by: datetime | None = None

    @property
    def is_submitted(self) -> bool:
        """Whether the function has returned while it waited."""
        return self._beat_by is not None

    def submit(self, call: Callable[[], Data]) -> None:
        """Call the function. A failure of it is one of the task, unless the task is over."""
        try:
            returned = call()
        except Failed as failed:
            kinds = ("TaskFailed", "TaskSubmitFailed", "TaskStartFailed")
            kind = self._random.choice(kinds) if failed.error.startswith("Lambda.") else "TaskFailed"
            if failed.error != "States.Timeout":  # of which the execution itself takes care
                self.end(kind, {"error": failed.error, "cause": failed.cause})
            return
        if self.over is None:
            self._note("TaskSubmitted", "taskSubmitted", output=json.dumps(returned))
            self._beat_by = self._turns.now + self._heartbeat
            self._turns.wake(self.actor)

    def beat(self) -> None:
        """A heartbeat arrives."""
        if self.is_submitted:
            self._beat_by = self._turns.now + self._heartbeat

    def take(self, kind: str, details: Mapping[str, Any]) -> None:
        """The answer arrives."""
        self.answered = self._turns.now
        self._turns.note(f"ANSWER of {self.given['requestId']}/{self.given['step']}: {dict(details)}")
        self.end(kind, details)

    def end(self, kind: str, details: Mapping[str, Any]) -> None:
        """Whatever ends it first counts."""
        if self.over is None:
            self.over = kind, details
            self._tasks.end_task(self.token)
            self._note(kind, kind[0].lower() + kind[1:], **details)
            self._turns.wake(self.actor)

    def wait(self, is_open: Callable[[], bool]) -> None:
        """Wait until it is over, or its execution is closed."""
        while self.over is None and is_open():
            ends = min(self._ends, self._beat_by or self._ends)
            if ends > self._turns.now:
                self._turns.take((ends - self._turns.now).total_seconds())
                continue
            names = ("States.Timeout", "States.HeartbeatTimeout")
            error = self._random.choice(names) if ends < self._ends else "States.Timeout"
            self.end("TaskTimedOut", {"error": error})

    @property
    def output(self) -> Data:
        """
        What its state gets.

        Raises:
            Failed: it failed. A failure without error or cause has null or empty text in their place.
        """
        assert self.over is not None
        kind, details = self.over
        if kind == "TaskSucceeded":
            return json.loads(details["output"])
        raise Failed(*(details.get(name) or self._random.choice((None, "")) for name in ("error", "cause")))

    @property
    def answer(self) -> tuple[str, Mapping[str, Any]] | None:
        """The answer that it got."""
        return self.over if self.answered else None


class WaitingTasks(StepFunctions):
    """
    Step Functions with tasks that wait.

    Attributes:
        waits: Every try of a task that has waited, in order.
        began_to_wait: Gets each of them.
    """

    turns: Turns
    random: Random

    def clear(self) -> None:
        super().clear()
        self.waits: list[Waiting] = []
        self.began_to_wait: Callable[[Waiting], None] = lambda _waiting: None

    def new_token(self) -> str:
        """A token that no other try has."""
        return f"token-{len(self.waits):04}"

    def begin_to_wait(self, execution: str, waiting: Waiting) -> None:
        """From now on its token is accepted."""
        self.waits.append(waiting)
        self.expect_answer(execution, waiting.token, waiting.take)
        self.began_to_wait(waiting)

    def wake_waiting(self) -> None:
        """Let executions look whether they are closed."""
        for waiting in self.waits:
            if waiting.over is None:
                self.turns.wake(waiting.actor)

    def send_task_success(self, *, taskToken: str, output: str) -> None:
        if UNACCEPTABLE in output:
            raise client_error("InvalidOutput", output)
        super().send_task_success(taskToken=taskToken, output=output)

    def send_task_heartbeat(self, *, taskToken: str) -> None:
        super().send_task_heartbeat(taskToken=taskToken)
        next(one for one in self.waits if one.token == taskToken).beat()

    def _answer(self, operation: str, token: str, *event: Any) -> None:
        """Of a closed execution AWS may say that the task does not exist."""
        try:
            super()._answer(operation, token, *event)
        except ClientError as error:
            is_closed = self.executions[self._tasks[token].execution]["status"] != "RUNNING"
            if is_closed and self.random.random() < 0.5:
                raise client_error("TaskDoesNotExist", token) from error
            raise
