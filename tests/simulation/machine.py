"""Step Functions that runs `run_once.asl.json`: each execution is an actor."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from random import Random
from typing import Any

from steponce.aws import times
from tests.fakes.errors import client_error
from tests.fakes.step_functions import StepFunctions
from tests.simulation.definition import (
    Data,
    Failed,
    choose,
    evaluate,
    expect_texts,
    find,
    matches,
    put,
    render,
)
from tests.simulation.turns import Turns

MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:steponce-run-once"

Integrations = Mapping[str, Callable[[dict[str, Any], float], Data]]
"""By service and action, for example `dynamodb:getItem`: gets the arguments and the time-out of a task."""


class Machine(StepFunctions):
    """
    A state machine whose executions run.

    DescribeExecution and GetExecutionHistory are eventually consistent: they may lag behind.

    Args:
        turns: The actors.
        random: Chooses the lags.
        definition: The state machine's definition.
        integrations: What its tasks call.
        ended: Gets the ARN of each execution that ends.
    """

    def __init__(
        self,
        turns: Turns,
        random: Random,
        definition: Mapping[str, Any],
        integrations: Integrations,
        ended: Callable[[str], None],
    ) -> None:
        super().__init__(MACHINE, definition)
        self.turns, self.random = turns, random
        self.integrations = integrations
        self._ended = ended
        self._longest_lag = random.choice((0, 2, 2, 30))
        tasks = [name for name, state in definition["States"].items() if state["Type"] == "Task"]
        self._doom = random.choice(tasks) if random.random() < 0.5 else None
        self._lags: dict[str, float] = {}

    def put(self, which: str, *events: dict[str, Any], status: str = "RUNNING", **described: Any) -> None:
        super().put(which, *events, status=status, **{"startDate": self.turns.now} | described)
        self._lags[self.arn(which)] = self.random.choice((0, 1)) * self.random.uniform(0, self._longest_lag)

    def close(
        self,
        which: str,
        status: str,
        error: str | None = None,
        cause: str | None = None,
        at: datetime | None = None,
    ) -> None:
        super().close(which, status, error, cause, at or self.turns.now)
        self.turns.note(f"{which.rpartition(':')[2]} ends: {status} {error or ''}")
        self._ended(self.arn(which))

    def meets_its_end(self, arn: str, state: str) -> None:
        """
        Stop the first execution that enters the state that the seed has chosen, soon after that.

        Otherwise it would be rare that one dies between two calls, because most states are over in a moment.
        """
        if state == self._doom:
            self._doom = None
            self.turns.spawn("end", lambda: self.stop(arn), after=self.random.choice((0, 0.2, 1, 30)))

    def stop(self, arn: str) -> None:
        """End an execution as no state of it would."""
        if self.executions[arn]["status"] == "RUNNING":
            ends = (("ABORTED", None), ("TIMED_OUT", None), ("FAILED", "States.Runtime"))
            self.close(arn, *self.random.choice(ends))

    def forget_old(self) -> None:
        """Forget what closed more than 90 days ago."""
        before = self.turns.now - timedelta(days=90)
        for arn, execution in list(self.executions.items()):
            if execution.get("stopDate", self.turns.now) < before:
                self.forget(arn)

    def start_execution(self, *, stateMachineArn: str, name: str, input: str = "{}") -> dict[str, Any]:
        known = self.arn(name) in self.executions
        answer = super().start_execution(stateMachineArn=stateMachineArn, name=name, input=input)
        if not known:
            self.turns.note(f"starts {name}")
            self.turns.spawn(f"execution {name}", Run(self, self.arn(name)).run)
        return answer

    def describe_execution(self, *, executionArn: str) -> dict[str, Any]:
        found = super().describe_execution(executionArn=executionArn)
        seen_until = self._seen_until(executionArn)
        if found["startDate"] > seen_until:
            raise client_error("ExecutionDoesNotExist", executionArn)
        if found.get("stopDate", seen_until) > seen_until:
            hidden = ("stopDate", "error", "cause", "output")
            return {name: value for name, value in found.items() if name not in hidden} | {
                "status": "RUNNING"
            }
        return found

    def _history_pages(self, *, executionArn: str, **limits: object) -> Iterator[dict[str, Any]]:
        seen_until = self._seen_until(executionArn)
        events = self.histories.get(executionArn, [])
        self.shown[executionArn] = sum(one.get("timestamp", seen_until) <= seen_until for one in events)
        return super()._history_pages(executionArn=executionArn, **limits)

    def _seen_until(self, arn: str) -> datetime:
        return self.turns.now - timedelta(seconds=self._lags.get(arn, 0))


class Run:
    """One execution, from its first state to its end."""

    def __init__(self, machine: Machine, arn: str) -> None:
        self._machine, self._arn = machine, arn
        self._context: dict[str, Any] = {"Execution": {"Id": arn, "Name": arn.rpartition(":")[2]}}

    @property
    def _is_open(self) -> bool:
        return self._machine.executions[self._arn]["status"] == "RUNNING"

    def run(self) -> None:
        """Run state after state until it ends, or was ended by somebody else."""
        states = self._machine.definition["States"]
        name, data = (
            self._machine.definition["StartAt"],
            json.loads(self._machine.executions[self._arn]["input"]),
        )
        while self._is_open:
            state = states[name]
            entered = times.to_text(self._machine.turns.now)
            self._context["State"] = {"Name": name, "EnteredTime": entered, "RetryCount": 0}
            self._note(f"{state['Type']}StateEntered", "stateEntered", name=name, input=json.dumps(data))
            self._machine.meets_its_end(self._arn, name)
            try:
                following, data = getattr(self, f"_{state['Type'].lower()}")(state, data)
            except Failed as failed:
                if self._is_open:
                    self._machine.close(self._arn, "FAILED", failed.error, failed.cause)
                return
            if following is None and self._is_open:
                self._machine.executions[self._arn]["output"] = json.dumps(data)
                self._machine.close(self._arn, "SUCCEEDED")
                return
            name = following

    def _note(self, kind: str, details_of: str, **details: Any) -> None:
        if not self._is_open:
            return
        events = self._machine.histories[self._arn]
        named = {f"{details_of}EventDetails": details}
        events.append({"type": kind, "id": len(events) + 1, "timestamp": self._machine.turns.now} | named)

    def _choice(self, state: Mapping[str, Any], data: Data) -> tuple[str, Data]:
        return choose(state, data, self._context), data

    def _pass(self, state: Mapping[str, Any], data: Data) -> tuple[str | None, Data]:
        value = (
            state["Result"]
            if "Result" in state
            else render(state.get("Parameters", data), data, self._context)
        )
        return self._left(state, put(state.get("ResultPath", "$"), data, value))

    def _fail(self, state: Mapping[str, Any], data: Data) -> tuple[str, Data]:
        told = [
            state.get(field)
            or (evaluate(path, data, self._context) if (path := state.get(f"{field}Path")) else None)
            for field in ("Error", "Cause")
        ]
        raise Failed(*told)

    def _task(self, state: Mapping[str, Any], data: Data) -> tuple[str | None, Data]:
        tried = [0] * len(state.get("Retry", []))
        while True:
            try:
                value = self._try(state, data)
            except Failed as failed:
                wait = self._wait_to_retry(state, tried, failed.error)
                if wait is None:
                    return self._catch(state, data, failed)
                self._machine.turns.take(wait)
                self._context["State"]["RetryCount"] += 1
            else:
                return self._left(state, put(state.get("ResultPath", "$"), data, value))
            if not self._is_open:
                return "", data

    def _try(self, state: Mapping[str, Any], data: Data) -> Data:
        """One try of a task, with its events."""
        arguments = render(state["Parameters"], data, self._context)
        expect_texts(arguments)
        path = state.get("TimeoutSecondsPath")
        timeout = find(path, data, self._context) if path else state["TimeoutSeconds"]
        resource = state["Resource"].partition(":::")[2]
        service, _, action = resource.partition(":")
        of = {"resourceType": service, "resource": action}
        self._note("TaskScheduled", "taskScheduled", **of, parameters=json.dumps(arguments))
        began = self._machine.turns.now
        try:
            answer = self._machine.integrations[resource](arguments, timeout)
            if (self._machine.turns.now - began).total_seconds() > timeout:
                raise Failed("States.Timeout")
        except Failed as failed:
            kind = "TaskTimedOut" if failed.error == "States.Timeout" else "TaskFailed"
            self._note(kind, kind[0].lower() + kind[1:], **of, error=failed.error, cause=failed.cause)
            raise
        self._note("TaskSucceeded", "taskSucceeded", **of, output=json.dumps(answer))
        return render(state["ResultSelector"], answer, self._context) if "ResultSelector" in state else answer

    def _wait_to_retry(self, state: Mapping[str, Any], tried: list[int], error: str) -> float | None:
        for number, retrier in enumerate(state.get("Retry", [])):
            if matches(retrier["ErrorEquals"], error):
                if tried[number] >= retrier["MaxAttempts"]:
                    return None
                longest = retrier["IntervalSeconds"] * retrier["BackoffRate"] ** tried[number]
                tried[number] += 1
                return self._machine.random.uniform(0, min(longest, retrier["MaxDelaySeconds"]))
        return None

    def _catch(self, state: Mapping[str, Any], data: Data, failed: Failed) -> tuple[str, Data]:
        for catcher in state.get("Catch", []):
            if matches(catcher["ErrorEquals"], failed.error):
                told = {"Error": failed.error, "Cause": failed.cause}
                return catcher["Next"], put(catcher.get("ResultPath", "$"), data, told)
        raise failed

    def _left(self, state: Mapping[str, Any], data: Data) -> tuple[str | None, Data]:
        output = find(state["OutputPath"], data, self._context) if "OutputPath" in state else data
        return (None if state.get("End") else state["Next"]), output
