"""What a report is made of: executions with their histories, records and awaiting steps, all made up."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import boto3

from steponce import Client
from steponce.aws import times
from steponce.callbacks.step import AwaitingStep
from steponce.locks.record import Lock
from steponce.request.canonical import canonical_json, sha256
from tests.fakes.step_functions import MACHINE, StepFunctions

SESSION = boto3.Session("a", "b", region_name="eu-west-1")
NOW = times.now()
TOKEN = "AQCEAAAAKgAAAAM-a-task-token"
FAR = "2999-01-01T00:00:00.000Z"
PAST = "2020-01-01T00:00:00.000Z"
PAYLOAD = {"card": "tok_secret"}
HASH = sha256(canonical_json(PAYLOAD))


def arn(name: str) -> str:
    return f"{MACHINE.replace(':stateMachine:', ':execution:')}:{name}"


def at(seconds: float) -> str:
    return times.to_text(NOW + timedelta(seconds=seconds))


class FakeLocks:
    """What each read of the record finds, the last one for ever."""

    def __init__(self) -> None:
        self.readings: list[Lock | None] = [None]
        self.asked: list[str] = []

    def get(self, lock_token: str) -> Lock | None:
        self.asked.append(lock_token)
        return self.readings.pop(0) if len(self.readings) > 1 else self.readings[0]


class FakeSteps:
    """Awaiting steps by their ids."""

    def __init__(self, *steps: AwaitingStep) -> None:
        self._steps = {step.id: step for step in steps}

    def get(self, step_id: str) -> AwaitingStep | None:
        return self._steps.get(step_id)


class World:
    """A client whose Step Functions and lock table are made up."""

    def __init__(self) -> None:
        self.client = Client(MACHINE, "locks", session=SESSION)
        self.sfn = self.client.machine.sfn = StepFunctions(MACHINE)
        self.locks = self.client.machine.locks = FakeLocks()

    def execution(self, name: str, status: str, *states: str, error: str | None = None, **more: Any) -> None:
        closed = {} if status == "RUNNING" else {"stopDate": NOW + timedelta(seconds=9)}
        request_id = name.partition("--")[0]
        envelope = {"requestId": request_id, "lockToken": "m/order-1", "payload": PAYLOAD, "callId": "call-1"}
        failure = {} if error is None else {"error": error, "cause": f"quotes {PAYLOAD}"}
        events = [event("ExecutionStarted", 0)]
        for state in states:
            events.append(event("TaskStateEntered", len(events), state))
            events.append(event("TaskStateExited", len(events), state))
        found = {"startDate": NOW, "input": json.dumps(envelope)} | closed | failure | more
        self.sfn.put(name, *numbered(events), status=status, **found)

    def waits(self, name: str, output: Any) -> None:
        """The execution's last state has called a function, which returned this, and waits."""
        events = self.sfn.histories[arn(name)]
        if events[-1]["type"] == "TaskStateExited":
            events.pop()
        parameters = json.dumps({"Payload": {"taskToken": TOKEN}})
        events.append(event("TaskScheduled", 7, taskScheduledEventDetails={"parameters": parameters}))
        text = output if isinstance(output, str) else json.dumps(output)
        events.append(event("TaskSubmitted", 8, taskSubmittedEventDetails={"output": text}))
        self.sfn.histories[arn(name)] = numbered(events)

    def record(self, status: str, **more: Any) -> Lock:
        lock = Lock(
            lock_token="m/order-1",
            status=status,
            locked_by=arn("order-1"),
            call_id="call-1",
            request_id="order-1",
            attempt=1,
            created=at(0),
            expected_completion=FAR,
            expires_at=FAR,
            execution_name="order-1",
        )
        lock = replace(lock, **more)
        self.locks.readings = [lock]
        return lock


def event(kind: str, seconds: float, state: str | None = None, **details: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"type": kind, "timestamp": NOW + timedelta(seconds=seconds)} | details
    if state is not None:
        made["stateEnteredEventDetails" if kind.endswith("Entered") else "stateExitedEventDetails"] = {
            "name": state,
            "input": json.dumps(PAYLOAD),
        }
    return made


def numbered(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each event follows the one before it, unless it says otherwise."""
    return [{"previousEventId": number - 1} | one | {"id": number} for number, one in enumerate(events, 1)]
