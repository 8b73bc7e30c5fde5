"""A table for limits in moto, a clock that tests set, and a client whose calls can go wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ClientError, ConnectTimeoutError

from steponce import Limiter
from steponce.limits.record import COUNTER, Count
from steponce.limits.table import Limits
from tests.fakes.tables import create_table
from tests.fakes.watched_dynamodb import Call, Fault, WatchedDynamoDB
from tests.unit.shared_clients import shared

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
TABLE = "limits"


def make_table(dynamodb: Any, name: str) -> None:
    """The table as the template has it."""
    create_table(dynamodb, "LimitsTable", name)


def dies_before(_call: Call) -> Any:
    """The write does not arrive."""
    raise ConnectTimeoutError(endpoint_url="dynamodb")


def dies_after(call: Call) -> Any:
    """The write takes effect, and nobody hears of it."""
    call()
    raise ConnectTimeoutError(endpoint_url="dynamodb")


def conflict(_call: Call) -> Any:
    """Somebody else's transaction has the item."""
    raise ClientError(
        {
            "Error": {"Code": "TransactionCanceledException", "Message": "cancelled"},
            "CancellationReasons": [{"Code": "None"}, {"Code": "TransactionConflict"}],
        },
        "TransactWriteItems",
    )


def conflict_of_one(_call: Call) -> Any:
    """The same, as UpdateItem hears of it."""
    raise ClientError(
        {"Error": {"Code": "TransactionConflictException", "Message": "conflict"}}, "UpdateItem"
    )


def lost_and_repeated(call: Call) -> Any:
    """botocore repeats the write, by itself, on an engine that has forgotten its token."""
    call()
    return call()


@dataclass
class World:
    """What a limiter sees, and what it has done. Faults are for the next writes; None: the write is made."""

    now: datetime = NOON
    faults: list[Fault | None] = field(default_factory=list)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def client(self, service: str, **_options: Any) -> Any:
        """As of a session."""
        assert "dynamodb" == service
        return WatchedDynamoDB(self)

    def limiter(self, limit: int = 3, window: str | int = "day", **options: Any) -> Limiter:
        """A limiter on the table."""
        session: Any = self
        return Limiter(TABLE, limit=limit, window=window, session=session, **options)

    @property
    def limits(self) -> Limits:
        """The table, for people."""
        return Limits(self.client("dynamodb"), TABLE)

    def items(self) -> list[dict[str, Any]]:
        """Everything in the table."""
        return list(shared("dynamodb").scan(TableName=TABLE, ConsistentRead=True)["Items"])

    def counts(self) -> list[Count]:
        """The counters."""
        return [Count.from_item(item) for item in self.items() if item["member"]["S"] == COUNTER]

    def names(self) -> list[str]:
        """The operations that were called, in their order."""
        return [name for name, _ in self.calls]
