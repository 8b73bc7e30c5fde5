"""One stack with two workflows on one table: its own, and one that an Output of its own names."""

from __future__ import annotations

import json
from typing import Any

from steponce import Client
from steponce.callbacks.awaiting import AwaitingSteps
from steponce.locks.record import Lock
from tests.unit.one_machine import ARN, World, envelope
from tests.unit.shared_clients import SharedClients

REFUNDS = ARN.replace(":stateMachine:m", ":stateMachine:refunds")
"""The second workflow's state machine."""

OF_REFUNDS = {
    "stateMachineArn": REFUNDS,
    "locksTable": "locks",
    "keyPrefix": "refunds",
    "expectedSeconds": "60",
    "retentionSeconds": "never",
    "workTimeoutSeconds": "7",
    "lockTokenPath": "",
    "payloadHashPath": "",
    "rateLimit": "0",
}
OUTPUTS = {
    "RunOnceStateMachineArn": ARN,
    "LocksTable": "locks",
    "AwaitingStepsTable": "steps",
    "KeyPrefix": "m",
    "ExpectedSeconds": "300",
    "RetentionSeconds": "86400",
    "WorkTimeoutSeconds": "60",
    "OpenShards": "4",
    "RefundsWorkflow": json.dumps(OF_REFUNDS),
}


def at_refunds(name: str) -> str:
    """An execution of the second workflow."""
    return f"{REFUNDS.replace(':stateMachine:', ':execution:')}:{name}"


class TwoMachines(World):
    """Their tables, and one Step Functions for both."""

    def __init__(self) -> None:
        super().__init__()
        self.sfn.add_machine(REFUNDS)
        self.outputs = dict(OUTPUTS)
        self.steps = AwaitingSteps(self.dynamodb, "steps", open_shards=4)

    def client_of(self, machine: str | None = None) -> Client:
        """A client by the stack's Outputs."""
        found = Client.from_outputs(self.outputs, machine=machine, session=SharedClients("eu-west-1"))
        found.machine.sfn = self.sfn
        return found

    def damage(self, key: str) -> None:
        """Write a record whose time is a number."""
        self.put(key, key.rpartition("/")[2])
        self.dynamodb.update_item(
            TableName="locks",
            Key={"lockToken": {"S": key}},
            UpdateExpression="SET created = :number",
            ExpressionAttributeValues={":number": {"N": "7"}},
        )

    def held_by_refunds(self, name: str = "order-1", error: str = "Boom", **attributes: Any) -> Lock:
        """A request of the second workflow, whose work failed with an error that is no answer."""
        token = f"refunds/{name}"
        self.execution(at_refunds(name), "FAILED", "DoWork", error=error, given=envelope(token))
        failure = json.dumps({"Error": error, "Cause": None})
        given = {"status": "FAILED", "openStatus": "FAILED#3", "failure": failure} | attributes
        return self.put(token, name, lockedBy=at_refunds(name), **given)
