"""The lock table in moto for guards: it counts calls, lets them fail, and has a clock that tests set."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from steponce import Guard
from steponce.locks.record import Lock
from steponce.locks.table import Locks
from tests.unit.shared_clients import SharedClients, shared

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
KEY = "acme/charge/o-12"


@dataclass
class World:
    """The table, the calls that were made to it, and a clock that tests set."""

    now: datetime = NOW
    calls: list[str] = field(default_factory=list)
    fault: Callable[[dict[str, Any], Callable[[], Any]], Any] | None = None

    def pass_by(self, seconds: float) -> None:
        """Let time go by."""
        self.now += timedelta(seconds=seconds)

    def guard(self, **options: Any) -> Guard:
        """A guard on the table."""
        return Guard("locks", session=Session(self), **options)

    def lock(self, key: str = KEY) -> Lock:
        """The record as it is."""
        found = Locks(shared("dynamodb"), "locks").get(key)
        assert found is not None
        return found

    def item(self, key: str = KEY) -> dict[str, Any]:
        """The record as DynamoDB has it."""
        return shared("dynamodb").get_item(TableName="locks", Key={"lockToken": {"S": key}})["Item"]

    def put(self, **attributes: Any) -> None:
        """Change the record by hand."""
        typed = {n: {"N" if isinstance(v, int) else "S": str(v)} for n, v in attributes.items()}
        shared("dynamodb").put_item(TableName="locks", Item=self.item() | typed)


class Session(SharedClients):
    """A session whose DynamoDB counts calls, and may fail."""

    def __init__(self, world: World) -> None:
        super().__init__("us-east-1")
        self._world = world

    def client(self, service: str, **_options: Any) -> Any:
        return _Counting(self._world, shared(service))


_atomic = threading.RLock()
"""DynamoDB's writes are atomic; those of moto, called in threads, are not."""


class _Counting:
    def __init__(self, world: World, dynamodb: Any) -> None:
        self._world = world
        self._dynamodb = dynamodb

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._dynamodb, name)
        if name not in ("update_item", "get_item", "put_item", "delete_item"):
            return call

        def counted(**arguments: Any) -> Any:
            def forward() -> Any:
                with _atomic:
                    return call(**arguments)

            self._world.calls.append(name)
            return forward() if self._world.fault is None else self._world.fault(arguments, forward)

        return counted
