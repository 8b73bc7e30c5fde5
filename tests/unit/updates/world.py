"""A table of customers and one of locks in moto, and a client whose calls can go wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from steponce import Guard, updates
from steponce.aws import times
from steponce.updates import conflicts, mine
from tests.fakes.watched_dynamodb import Call, Fault, WatchedDynamoDB
from tests.unit.limits.world import NOON
from tests.unit.shared_clients import shared

TABLE = "customers"
LOCKS = "locks"
KEY = {"customerId": "7"}


def cancelled(*reasons: str, retries: int = 0) -> Fault:
    """DynamoDB makes none of a transaction, for a reason to each item; boto3 has sent it again so often."""

    def fault(_call: Call) -> Any:
        raise ClientError(
            {
                "Error": {"Code": "TransactionCanceledException", "Message": "cancelled"},
                "CancellationReasons": [{"Code": reason} for reason in reasons],
                "ResponseMetadata": {"RetryAttempts": retries},
            },
            "TransactWriteItems",
        )

    return fault


def after(event: Callable[[], Any]) -> Fault:
    """Something happens between the caller's last look and its write."""

    def fault(call: Call) -> Any:
        event()
        return call()

    return fault


@dataclass
class World:
    """What an update sees, and what it has done. Faults are for the next writes; None: the write is made."""

    now: Any = NOON
    customer: str = "7"
    faults: list[Fault | None] = field(default_factory=list)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def anew(self) -> None:
        """Begin again with a new customer and a new lock, which costs less than empty tables."""
        self.customer, self.faults, self.calls = str(int(self.customer) + 1), [], []

    @property
    def key(self) -> dict[str, str]:
        """The customer's key."""
        return {"customerId": self.customer}

    @property
    def dynamodb(self) -> Any:
        """A client whose next writes go as `faults` say."""
        return WatchedDynamoDB(self)

    def client(self, _service: str, **_options: Any) -> Any:
        """As of a session."""
        return self.dynamodb

    def guard(self) -> Guard:
        """A guard on the lock table."""
        session: Any = self
        return Guard(LOCKS, session=session)

    def update(self, as_of: Any, writer: str = "w", **changes: Any) -> updates.Update:
        """An update of the customer."""
        return updates.update_if_newer(
            TABLE, self.key, changes, as_of=as_of, writer=writer, dynamodb=self.dynamodb
        )

    def delete(self, as_of: Any, writer: str = "w", **options: Any) -> updates.Update:
        """A deletion of the customer."""
        return updates.delete_if_newer(
            TABLE, self.key, as_of=as_of, writer=writer, dynamodb=self.dynamodb, **options
        )

    def read(self) -> dict[str, Any] | None:
        """The customer."""
        return updates.read(TABLE, self.key, dynamodb=self.dynamodb)

    def item(self) -> dict[str, Any] | None:
        """The customer, or its tombstone, as DynamoDB has it."""
        found = shared("dynamodb").get_item(TableName=TABLE, Key={"customerId": {"S": self.customer}})
        return found.get("Item")

    def put(self, **attributes: dict[str, Any]) -> None:
        """What another program writes."""
        shared("dynamodb").put_item(TableName=TABLE, Item={"customerId": {"S": self.customer}, **attributes})

    def lock(self, attempt: int, status: str = "INPROGRESS", call_id: str | None = None) -> dict[str, Any]:
        """A lock record of an execution, and what its work is given."""
        call_id = call_id or f"call-{attempt}"
        texts = {
            "lockToken": f"shop/order-{self.customer}",
            "status": status,
            "lockedBy": f"arn:execution:order-1--{attempt}",
            "executionName": f"order-1--{attempt}",
            "callId": call_id,
            "requestId": "order-1",
            "created": "2026-01-31T12:00:00.000Z",
            "expectedCompletion": "2026-01-31T12:05:00.000Z",
        }
        item = {name: {"S": text} for name, text in texts.items()} | {"attempt": {"N": str(attempt)}}
        shared("dynamodb").put_item(TableName=LOCKS, Item=item)
        return {"lockToken": texts["lockToken"], "callId": call_id, "attempt": attempt, "payload": {}}

    def names(self) -> list[str]:
        """The operations that were called, in their order."""
        return [name for name, _ in self.calls]


@contextmanager
def empty_world() -> Iterator[World]:
    """Empty tables, a clock at noon, and no time lost in pauses."""
    world = World()
    with pytest.MonkeyPatch.context() as patch, mock_aws():
        patch.setattr(times, "now", lambda: world.now)
        for module in (conflicts, mine):
            patch.setattr(module, "_FIRST_PAUSE_SECONDS", 0)
        for table, key in ((TABLE, "customerId"), (LOCKS, "lockToken")):
            shared("dynamodb").create_table(
                TableName=table,
                BillingMode="PAY_PER_REQUEST",
                KeySchema=[{"AttributeName": key, "KeyType": "HASH"}],
                AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"}],
            )
        yield world
