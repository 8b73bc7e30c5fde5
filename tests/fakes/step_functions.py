"""
A Step Functions client in memory.

It answers as AWS does: names, idempotent starts, closed executions, pages, task tokens. It runs no states: a
test plants executions and their events, lets them end, and says what a task does with its answer. A test can
also make calls fail, lose their answers, and let histories lag.
`tests/unit/local/moto_patches/test_fake_step_functions.py` compares it with the embedded engine.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from types import SimpleNamespace
from typing import Any

from botocore.exceptions import ReadTimeoutError

from steponce.aws import times
from tests.fakes.errors import client_error
from tests.unit.shared_clients import shared

MACHINE = "arn:aws:states:eu-west-1:123456789012:stateMachine:m"

LISTED = ("executionArn", "name", "startDate", "stopDate", "status", "redriveCount")
ENDS = {"SUCCEEDED": "Succeeded", "FAILED": "Failed", "ABORTED": "Aborted", "TIMED_OUT": "TimedOut"}

PAGE = 3
"""Events in one page of a history: few, so that readers meet more than one page."""

_NAME = re.compile(r"[^\s\x00-\x1f\x7f-\x9f<>{}\[\]?*\"#%\\^|~`$&,;:/]*")
_MOST_BYTES = 262_144

TakeAnswer = Callable[[str, dict[str, Any]], None]
"""Gets the type of the event that ends a task, and the event's details."""


@dataclass(frozen=True)
class Fault:
    """A call that fails: before it takes effect, or after that, so that only its answer is lost."""

    operation: str
    about: str | None
    error: BaseException
    after: bool


@dataclass
class Task:
    """A task of an execution that waits for an answer, or has ended."""

    execution: str
    take: TakeAnswer
    waits: bool = True


class StepFunctions:
    """
    One account's Step Functions. An argument `which` is a name of an execution of its first state machine, or
    any ARN.

    Attributes:
        executions: What DescribeExecution returns, by ARN, oldest first.
        histories: The events, by ARN, oldest first.
        started: The inputs that StartExecution accepted, with the names.
        started_at: The state machines, aliases and versions that StartExecution was asked for.
        calls: How often each operation was called, and each page read.
        shown: How many events of a history can be seen already, by ARN. By default all of them.
        before_call: Gets each call's operation, and the ARN or task token that it is about. What it raises
            is the call's answer.
    """

    def __init__(self, machine: str = MACHINE, definition: Mapping[str, Any] | None = None) -> None:
        self.machine = machine
        self.others: set[str] = set()
        self.definition = definition or {}
        self._lock = threading.RLock()
        self.meta = shared("stepfunctions").meta  # of a client that sends nothing
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.executions: dict[str, dict[str, Any]] = {}
        self.histories: dict[str, list[dict[str, Any]]] = {}
        self.started: list[dict[str, Any]] = []
        self.started_at: list[str] = []
        self.calls: Counter[str] = Counter()
        self.shown: dict[str, int] = {}
        self.before_call: Callable[[str, str], None] | None = None
        self._faults: list[Fault] = []
        self._tasks: dict[str, Task] = {}

    # -- What tests do -------------------------------------------------------------------------------

    def arn(self, which: str) -> str:
        """The ARN of an execution."""
        if which.startswith("arn:"):
            return which
        return f"{self.machine.replace(':stateMachine:', ':execution:')}:{which}"

    def add_machine(self, arn: str) -> None:
        """Create another state machine."""
        self.others.add(arn)

    def names(self) -> list[str]:
        """The names of all executions, oldest first."""
        return [arn.rpartition(":")[2] for arn in self.executions]

    def put(self, which: str, *events: dict[str, Any], status: str = "RUNNING", **described: Any) -> None:
        """Plant an execution with its history. `described` are more fields; None leaves a field out."""
        arn = self.arn(which)
        fields = {"executionArn": arn, "name": arn.rpartition(":")[2], "status": status, "input": "{}"}
        fields |= {"startDate": times.now(), "redriveCount": 0} | described
        self.executions[arn] = {name: value for name, value in fields.items() if value is not None}
        self.histories[arn] = list(events)

    def close(
        self,
        which: str,
        status: str,
        error: str | None = None,
        cause: str | None = None,
        at: datetime | None = None,
    ) -> None:
        """Let an execution end, with its last event. The default time is now."""
        arn, closed = self.arn(which), at or times.now()
        began = min(closed, self.executions[arn].get("startDate", closed))
        found = {"status": status, "startDate": began, "stopDate": closed, "error": error, "cause": cause}
        self.executions[arn] |= {name: value for name, value in found.items() if value is not None}
        events = self.histories.setdefault(arn, [])
        events.append({"type": f"Execution{ENDS[status]}", "timestamp": closed, "id": len(events) + 1})

    def forget(self, which: str) -> None:
        """Step Functions forgets an execution 90 days after its end."""
        del self.executions[self.arn(which)], self.histories[self.arn(which)]

    def expect_answer(self, which: str, token: str, take: TakeAnswer) -> None:
        """A task of this execution waits with this token from now on."""
        self._tasks[token] = Task(self.arn(which), take)

    def end_task(self, token: str) -> None:
        """The task does not wait any more: it has timed out, or its state was left."""
        self._tasks[token].waits = False

    def refuse(self, operation: str, error: str | BaseException, about: str | None = None) -> None:
        """
        Let calls fail from now on.

        Args:
            operation: As boto3 names the method.
            error: AWS's name of the error, or what is raised.
            about: The name or ARN of the execution, or the task token. Default: every call.
        """
        raised = client_error(error) if isinstance(error, str) else error
        self._faults.append(Fault(operation, about, raised, after=False))

    def lose_answers(self, operation: str, about: str | None = None, error: Exception | None = None) -> None:
        """Let calls take effect and fail then, by default with a read time-out."""
        lost = error or ReadTimeoutError(endpoint_url="https://aws")
        self._faults.append(Fault(operation, about, lost, after=True))

    def heal(self) -> None:
        """Nothing fails any more."""
        self._faults.clear()

    @contextmanager
    def _call(self, operation: str, about: str) -> Iterator[None]:
        """One call at a time; with its planted fault."""
        if self.before_call:
            self.before_call(operation, about)
        with self._lock:
            self.calls[operation] += 1
            fault = self._fault(operation, about) if self._faults else None
            if fault and not fault.after:
                raise fault.error
            yield
            if fault:
                raise fault.error

    def _fault(self, operation: str, about: str) -> Fault | None:
        names = (None, about, about.rpartition(":")[2])
        fits = (one for one in self._faults if one.operation == operation and one.about in names)
        return next(fits, None)

    def _known(self, arn: str) -> dict[str, Any]:
        if arn not in self.executions:
            raise client_error("ExecutionDoesNotExist", arn)
        return self.executions[arn]

    def _expect_machine(self, arn: str) -> None:
        if arn != self.machine and arn not in self.others:
            raise client_error("StateMachineDoesNotExist", arn)

    # -- The API -------------------------------------------------------------------------------------

    def start_execution(
        self,
        *,
        stateMachineArn: str,
        name: str,
        input: str = "{}",
    ) -> dict[str, Any]:
        """
        An open execution's name with the same input gives that execution; any other use is refused.

        An alias or a version of the machine is not in the execution's ARN. Source: Step Functions Developer
        Guide, "List executions associated with a version or alias".
        """
        machine = ":".join(stateMachineArn.split(":")[:7])
        arn = f"{machine.replace(':stateMachine:', ':execution:')}:{name}"
        with self._call("start_execution", arn):
            self._expect_machine(machine)
            self.started_at.append(stateMachineArn)
            if not 1 <= len(name) <= 80 or len(input.encode()) > _MOST_BYTES:
                raise client_error("ValidationException", name)
            if not _NAME.fullmatch(name):
                raise client_error("InvalidName", name)
            found = self.executions.get(arn)
            if found is None:
                given = json.loads(input)
                self.put(arn, {"type": "ExecutionStarted", "id": 1, "timestamp": times.now()}, input=input)
                found = self.executions[arn]
                self.started.append({"name": name} | given)
            elif found["status"] != "RUNNING" or found.get("input") != input:
                raise client_error("ExecutionAlreadyExists", arn)
            return {"executionArn": arn, "startDate": found["startDate"]}

    def describe_execution(self, *, executionArn: str) -> dict[str, Any]:
        with self._call("describe_execution", executionArn):
            return dict(self._known(executionArn))

    def describe_state_machine(self, *, stateMachineArn: str) -> dict[str, Any]:
        with self._call("describe_state_machine", stateMachineArn):
            self._expect_machine(stateMachineArn)
            return {"definition": json.dumps(self.definition)}

    def stop_execution(
        self, *, executionArn: str, error: str | None = None, cause: str | None = None
    ) -> dict[str, Any]:
        """A closed execution stays as it is."""
        with self._call("stop_execution", executionArn):
            if self._known(executionArn)["status"] == "RUNNING":
                self.close(executionArn, "ABORTED", error, cause)
            return {"stopDate": self.executions[executionArn]["stopDate"]}

    def get_paginator(self, operation: str) -> SimpleNamespace:
        """For histories and lists."""
        pages = {"get_execution_history": self._history_pages, "list_executions": self._list_pages}
        return SimpleNamespace(paginate=pages[operation])

    def _history_pages(self, *, executionArn: str, **_limits: object) -> Iterator[dict[str, Any]]:
        """In pages of PAGE events, whatever was asked for."""
        first = 0
        while True:
            with self._call("get_execution_history", executionArn):
                self._known(executionArn)
                events = self.histories.get(executionArn, [])[: self.shown.get(executionArn)]
            page = {"events": events[first : first + PAGE]}
            first += PAGE
            if first >= len(events):
                yield page
                return
            yield page | {"nextToken": str(first)}

    def _list_pages(
        self, *, stateMachineArn: str, PaginationConfig: Mapping[str, int], statusFilter: str | None = None
    ) -> Iterator[dict[str, Any]]:
        """Newest first."""
        whose = f"{stateMachineArn.replace(':stateMachine:', ':execution:')}:"
        with self._lock:
            every = [one for arn, one in self.executions.items() if arn.startswith(whose)]
        found = [one for one in every if statusFilter in (None, one["status"])]
        found.sort(key=lambda one: one["startDate"], reverse=True)
        size = PaginationConfig["PageSize"]
        for first in range(0, len(found) or 1, size):
            with self._call("list_executions", stateMachineArn):
                self._expect_machine(stateMachineArn)
            page = found[first : first + size]
            yield {"executions": [{name: one[name] for name in LISTED if name in one} for one in page]}

    def send_task_success(self, *, taskToken: str, output: str) -> None:
        self._answer("send_task_success", taskToken, "TaskSucceeded", {"output": output})

    def send_task_failure(
        self, *, taskToken: str, error: str | None = None, cause: str | None = None
    ) -> None:
        details = {"error": error, "cause": cause}
        present = {name: text for name, text in details.items() if text is not None}
        self._answer("send_task_failure", taskToken, "TaskFailed", present)

    def send_task_heartbeat(self, *, taskToken: str) -> None:
        self._answer("send_task_heartbeat", taskToken)

    def _answer(
        self, operation: str, token: str, event: str | None = None, details: dict[str, Any] | None = None
    ) -> None:
        """A task takes one answer; heartbeats do not end it."""
        with self._call(operation, token):
            task = self._tasks.get(token)
            if task is None:
                raise client_error("InvalidToken", token)
            execution = self.executions.get(task.execution)
            if execution is None:
                raise client_error("TaskDoesNotExist", token)
            if not task.waits or execution["status"] != "RUNNING":
                raise client_error("TaskTimedOut", token)
            if event:
                task.waits = False
                task.take(event, details or {})
