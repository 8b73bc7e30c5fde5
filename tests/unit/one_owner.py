"""One lock, and the dead execution that held it."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from steponce.aws import times
from steponce.local.moto_patches.times import aws_time
from steponce.locks.record import Lock
from steponce.locks.table import Locks
from steponce.recovery import owner
from steponce.workflow import INPROGRESS
from tests.fakes.step_functions import StepFunctions
from tests.fakes.tables import create_table
from tests.unit.shared_clients import shared

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
WORK_TIMEOUT = 60
LONG_AGO, JUST_NOW = NOW - timedelta(hours=1), NOW - timedelta(seconds=WORK_TIMEOUT + 9)

KEPT_UNTIL = times.epoch_seconds("2026-05-02T13:00:00.000Z")
"""A day longer from NOW than ITEM was to be valid from its start."""

ITEM = {
    "lockToken": {"S": "shop/order-1"},
    "status": {"S": INPROGRESS},
    "openStatus": {"S": "INPROGRESS#3"},
    "lockedBy": {"S": "arn:execution:order-1"},
    "callId": {"S": "dead"},
    "executionName": {"S": "order-1"},
    "requestId": {"S": "order-1"},
    "attempt": {"N": "1"},
    "created": {"S": aws_time(LONG_AGO)},
    "expectedCompletion": {"S": times.to_text(NOW)},
    "payloadHash": {"S": "ab12"},
    "expiresAt": {"S": "2026-05-01T12:00:00.000Z"},
}
ENVELOPE = {"lockToken": "shop/order-1", "callId": "dead", "payload": {}}
BY_HAND = {"payload": {}}
RESULT = {"work": {"result": {"chargeId": "ch_1"}}}
FAILURE = {"failure": {"Error": "CardDeclined", "Cause": "no"}}
TO_WORK = [("IsRequestPrepared", ENVELOPE), ("AcquireLock", ENVELOPE), ("DoWork", ENVELOPE)]

STATES_AND_ENDS = ["ExecutionFailed", "ExecutionAborted", "ExecutionTimedOut", "ExecutionSucceeded"]


def history(*states: tuple[str, Any], end: str | None = "ExecutionFailed") -> list[dict[str, Any]]:
    """The events of an execution that entered these states, each with its input."""
    events: list[dict[str, Any]] = [{"type": "ExecutionStarted"}]
    for name, state_input in states:
        details = {"name": name, "input": json.dumps(state_input)}
        events.append({"type": "TaskStateEntered", "stateEnteredEventDetails": details})
    return events + [{"type": end}] * (end is not None)


def dead_owner(events: list[dict[str, Any]] | None = None, **described: Any) -> StepFunctions:
    """Step Functions with the owner of the lock, which failed long ago. Without events, it is forgotten."""
    sfn = StepFunctions()
    if events is not None:
        found = {"status": "FAILED", "stopDate": LONG_AGO, "input": json.dumps(ENVELOPE)} | described
        sfn.put(ITEM["lockedBy"]["S"], *events, **found)
    return sfn


class Stack:
    """A real table in moto with the dead owner's lock."""

    def __init__(self) -> None:
        self.dynamodb = shared("dynamodb")
        create_table(self.dynamodb, "LocksTable", "locks")
        self.locks = Locks(self.dynamodb, "locks")
        self.put()

    def put(self, **attributes: Any) -> None:
        """Write the record with some attributes changed."""
        self.dynamodb.put_item(TableName="locks", Item=ITEM | attributes)

    def item(self) -> dict[str, Any]:
        """The record as it is."""
        return self.dynamodb.get_item(TableName="locks", Key={"lockToken": ITEM["lockToken"]})["Item"]

    def lock(self) -> Lock:
        """The record as it is, read."""
        return Lock.from_item(self.item())

    def settle(
        self,
        events: list[dict[str, Any]] | None = None,
        unknown: owner.WhenOutcomeUnknown = "take-over",
        created: datetime = LONG_AGO,
        **described: Any,
    ) -> str:
        """The verdict on the owner of the record as it was at first."""
        return self.find(events, unknown, created, **described).verdict

    def find(
        self,
        events: list[dict[str, Any]] | None = None,
        unknown: owner.WhenOutcomeUnknown = "take-over",
        created: datetime = LONG_AGO,
        **described: Any,
    ) -> owner.Finding:
        """All that was found of it."""
        return owner.settle_owner(
            Lock.from_item(ITEM | {"created": {"S": aws_time(created)}}),
            dead_owner(events, **described),
            self.locks,
            work_timeout_seconds=WORK_TIMEOUT,
            when_outcome_unknown=unknown,
            by="check_owner",
        )
