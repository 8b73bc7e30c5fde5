"""One execution of `run_once.asl.json`: an actor that runs state after state."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from steponce.aws import times
from steponce.local.moto_patches.times import aws_time
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
from tests.simulation.tasks import Waiting

if TYPE_CHECKING:
    from tests.simulation.machine import Machine


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
            entered = aws_time(self._machine.turns.now)
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
        present = {name: value for name, value in details.items() if value is not None}
        links = {
            "id": len(events) + 1,
            "previousEventId": len(events),
        }  # no branches, so each follows the last
        at = {"timestamp": self._machine.turns.now}
        events.append({"type": kind} | links | at | {f"{details_of}EventDetails": present})

    def _choice(self, state: Mapping[str, Any], data: Data) -> tuple[str, Data]:
        return choose(state, data, self._context), data

    def _pass(self, state: Mapping[str, Any], data: Data) -> tuple[str | None, Data]:
        value = (
            state["Result"]
            if "Result" in state
            else render(state.get("Parameters", data), data, self._context)
        )
        return self._left(state, put(state.get("ResultPath", "$"), data, value))

    def _wait(self, state: Mapping[str, Any], data: Data) -> tuple[str | None, Data]:
        until = times.from_text(find(state["TimestampPath"], data, self._context))
        self._machine.turns.take(max(0, (until - self._machine.turns.now).total_seconds()))
        return self._left(state, data)

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
        resource = state["Resource"].partition(":::")[2]
        waits = resource.endswith(".waitForTaskToken")
        self._context["Task"] = {"Token": self._machine.new_token()} if waits else {}
        arguments = render(state["Parameters"], data, self._context)
        expect_texts(arguments)
        timeout = self._seconds("Timeout", state, data)
        service, _, action = resource.partition(":")
        of = {"resourceType": service, "resource": action}
        self._note("TaskScheduled", "taskScheduled", **of, parameters=json.dumps(arguments))
        if waits:
            heartbeat = self._seconds("Heartbeat", state, data)
            answer = self._try_to_wait(resource, arguments, timeout, heartbeat, of)
        else:
            answer = self._call(resource, arguments, timeout, of)
        return render(state["ResultSelector"], answer, self._context) if "ResultSelector" in state else answer

    def _call(self, resource: str, arguments: dict[str, Any], timeout: float, of: Mapping[str, str]) -> Data:
        """Call a service, and take what it answers."""
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
        return answer

    def _try_to_wait(
        self,
        resource: str,
        arguments: dict[str, Any],
        timeout: float,
        heartbeat: float,
        of: Mapping[str, str],
    ) -> Data:
        """Call a function, and wait for an answer with the task token, which may come before it returns."""
        if heartbeat >= timeout:
            raise Failed("States.Runtime", "The heartbeat is not less than the time-out")
        self._note("TaskStarted", "taskStarted", **of)
        waiting = Waiting(
            self._machine,
            lambda kind, details_of, **details: self._note(kind, details_of, **of, **details),
            token=self._context["Task"]["Token"],
            given=arguments["Payload"],
            seconds=timeout,
            heartbeat_seconds=heartbeat,
        )
        self._machine.begin_to_wait(self._arn, waiting)
        self._machine.turns.spawn(
            f"{waiting.given['step']} {waiting.token}",
            lambda: waiting.submit(lambda: self._machine.integrations[resource](arguments, timeout)),
        )
        waiting.wait(lambda: self._is_open)
        return waiting.output if waiting.over else None

    def _seconds(self, limit: str, state: Mapping[str, Any], data: Data) -> float:
        """The time-out or the heartbeat of a task."""
        path = state.get(f"{limit}SecondsPath")
        seconds = find(path, data, self._context) if path else state[f"{limit}Seconds"]
        if not isinstance(seconds, int) or seconds <= 0:
            raise Failed("States.Runtime", f"{limit}Seconds is {seconds!r}")
        return seconds

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
