"""A lock table for Powertools' decorators, and what the tests ask of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from aws_lambda_powertools.utilities.idempotency import (
    BasePersistenceLayer,
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
)
from moto import mock_aws

from steponce.locks.record import Lock
from steponce.locks.table import Locks
from steponce.powertools import STOCK_ATTRIBUTES, LocksPersistence
from tests.fakes.tables import create_table
from tests.unit.shared_clients import shared


def ours(table: str = "locks", **options: Any) -> LocksPersistence:
    """Our store on the table."""
    return LocksPersistence(table, **{"boto3_client": shared("dynamodb"), **options})


def stock(**options: Any) -> DynamoDBPersistenceLayer:
    """Powertools' own, with the names of our attributes."""
    given = {"boto3_client": shared("dynamodb"), **STOCK_ATTRIBUTES, **options}
    return DynamoDBPersistenceLayer("locks", **given)


ORDER = {"orderId": "1", "amount": 500}
PREFIX = "acme/charge"


@dataclass
class Context:
    """Lambda's."""

    aws_request_id: str = "request-1"
    function_name: str = "shop"
    memory_limit_in_mb: int = 128
    invoked_function_arn: str = "arn:shop"
    milliseconds: int = 60_000

    def get_remaining_time_in_millis(self) -> int:
        return self.milliseconds


def config(**options: Any) -> IdempotencyConfig:
    """Powertools' options, in a Lambda that has a minute left."""
    return IdempotencyConfig(**{"lambda_context": Context(), **options})


def begin(store: BasePersistenceLayer, data: Any = ORDER, seconds: int = 60, **options: Any) -> str:
    """Begin a call of that store's which never ends; its key."""
    store.configure(config(**options), "f", PREFIX)
    store.save_inprogress(data, seconds * 1_000)
    return key_of(PREFIX, data)


def finish(store: BasePersistenceLayer, result: Any, data: Any = ORDER, **options: Any) -> str:
    """The same, which ends; its key."""
    key = begin(store, data, **options)
    store.save_success(data, result)
    return key


def key_of(prefix: str, data: Any, algorithm: str = "md5") -> str:
    """The key that Powertools makes of a payload."""
    text = json.dumps(data, sort_keys=True).encode()
    return f"{prefix}#{hashlib.new(algorithm, text).hexdigest()}"


@contextmanager
def table() -> Iterator[Locks]:
    """The stack's lock table, empty."""
    with mock_aws():
        create_table(shared("dynamodb"), "LocksTable", "locks")
        yield Locks(shared("dynamodb"), "locks")


def items(name: str = "locks") -> list[dict[str, Any]]:
    """Every record as DynamoDB has it."""
    found: list[dict[str, Any]] = shared("dynamodb").scan(TableName=name)["Items"]
    return found


def only(locks: Locks) -> Lock:
    """The one record that there is."""
    (item,) = items()
    found = locks.get(item["lockToken"]["S"])
    assert found is not None
    return found
