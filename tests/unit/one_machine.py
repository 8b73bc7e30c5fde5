"""One machine: tables in moto, and executions that a test makes up."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from steponce import Client
from steponce.aws import times
from steponce.callbacks.awaiting import AwaitingSteps
from steponce.callbacks.step import AwaitingStep
from steponce.locks.record import Lock
from steponce.recovery.child import name_of_child
from steponce.request.canonical import canonical_json, sha256
from steponce.request.names import split_attempt
from tests.fakes.step_functions import MACHINE, StepFunctions
from tests.fakes.tables import create_table
from tests.unit.shared_clients import SharedClients, shared

ARN = MACHINE
PAYLOAD = {"orderId": "1", "card": "tok_secret"}
WORK_TIMEOUT = 60
LONG_AGO = datetime.now(UTC) - timedelta(hours=1)
FAR = "2999-01-01T00:00:00.000Z"
TO_WORK = ("IsRequestPrepared", "AcquireLock", "DoWork")


def arn(name: str) -> str:
    return f"{ARN.replace(':stateMachine:', ':execution:')}:{name}"


def envelope(key: str = "m/order-1") -> dict[str, Any]:
    """What the execution of order-1 was started with."""
    return {
        "requestId": "order-1",
        "callId": "call-1",
        "lockToken": key,
        "payload": PAYLOAD,
        "payloadHash": HASH,
    }


HASH = sha256(canonical_json(PAYLOAD))


class World:
    """One machine with its tables."""

    def __init__(self) -> None:
        self.dynamodb = shared("dynamodb", "eu-west-1")
        create_table(self.dynamodb, "LocksTable", "locks")
        create_table(self.dynamodb, "AwaitingStepsTable", "steps")
        self.client = Client(ARN, "locks", session=SharedClients("eu-west-1"))
        self.machine = self.client.machine
        self.sfn = self.machine.sfn = StepFunctions(ARN)
        self.steps = AwaitingSteps(self.dynamodb, "steps")

    def execution(
        self,
        name: str,
        status: str,
        *states: str,
        error: str | None = None,
        cause: str | None = None,
        closed: datetime = LONG_AGO,
        given: dict[str, Any] | None = None,
    ) -> None:
        """An execution that entered these states, each with the execution's input."""
        told = json.dumps(given or envelope())
        entered = (
            {"type": "TaskStateEntered", "timestamp": LONG_AGO, "id": number}
            | {"stateEnteredEventDetails": {"name": state, "input": told}}
            for number, state in enumerate(states, 1)
        )
        self.sfn.put(name, *entered, input=told)
        if status != "RUNNING":
            self.sfn.close(name, status, error, cause, closed)

    def start_child(self, lock: Lock, status: str = "FAILED") -> str:
        """The ARN of an execution that runs, and is the work of order-1, which ended long ago."""
        machine = ARN.replace(":m", ":theirs")
        child = f"{machine.replace(':stateMachine:', ':execution:')}:{name_of_child(lock)}"
        output = json.dumps({"ExecutionArn": child})
        details = {"resourceType": "states", "resource": "startExecution.sync:2", "output": output}
        self.execution("order-1", status, *TO_WORK)
        event = {"type": "TaskSubmitted", "timestamp": LONG_AGO, "taskSubmittedEventDetails": details}
        self.sfn.histories[arn("order-1")].insert(-1, event)
        self.sfn.put(child)
        return child

    def put(self, key: str = "m/order-1", name: str = "order-1", **attributes: str | int | None) -> Lock:
        """Write a record: by default that of order-1, in progress; None leaves an attribute out."""
        now = times.to_text(LONG_AGO)
        owner = str(attributes.get("lockedBy", arn(name)))
        item = {
            "lockToken": key,
            "status": "INPROGRESS",
            "openStatus": "INPROGRESS#3",
            "lockedBy": owner,
            "callId": "call-1",
            "executionName": owner.rpartition(":")[2] if owner.startswith("arn:") else None,
            "requestId": split_attempt(name)[0],
            "attempt": 1,
            "created": now,
            "expectedCompletion": FAR,
            "expiresAt": FAR,
            "payloadHash": HASH,
        } | attributes
        typed: dict[str, Any] = {
            attribute: {"N" if isinstance(value, int) else "S": str(value)}
            for attribute, value in item.items()
            if value is not None
        }
        self.dynamodb.put_item(TableName="locks", Item=typed)
        return self.lock(key)

    def held(self, error: str = "Boom") -> Lock:
        """The record of order-1, whose work failed with an error that is no answer."""
        self.execution("order-1", "FAILED", *TO_WORK, "RecordError", error=error)
        return self.put(
            status="FAILED", openStatus="FAILED#3", failure=json.dumps({"Error": error, "Cause": None})
        )

    def lock(self, key: str = "m/order-1") -> Lock:
        """The record as it is now."""
        found = self.machine.locks.get(key)
        assert found is not None
        return found

    def step(
        self,
        token: str,
        status: str = "ANSWERED",
        step_id: str = "as_1",
        *,
        name: str = "confirmation",
        request_id: str = "order-1",
    ) -> None:
        """Write an awaiting step of a key."""
        event = {
            "step": name,
            "taskToken": "t",
            "enteredAt": times.to_text(LONG_AGO),
            "retryCount": 0,
            "timeoutSeconds": 60,
            "execution": arn(request_id),
            "requestId": request_id,
            "lockToken": token,
            "callId": step_id,
            "attempt": 1,
        }
        step = AwaitingStep.from_event(event)
        self.steps.record(step)
        if status != "PENDING":
            self.steps.close(step, None)
