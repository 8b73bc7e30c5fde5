"""DynamoDB that notes its calls, and whose writes go wrong as a test wants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from tests.unit.shared_clients import shared

WRITES = ("update_item", "put_item", "transact_write_items")

Call = Callable[[], Any]
Fault = Callable[[Call], Any]


class Watching(Protocol):
    """
    Who watches.

    Args:
        calls: Gets the name and the arguments of each read and write of items.
        faults: For the next writes, in their order. None: the write is made.
    """

    calls: list[tuple[str, dict[str, Any]]]
    faults: list[Fault | None]


class WatchedDynamoDB:
    """boto3's client inside of `mock_aws`."""

    def __init__(self, watching: Watching) -> None:
        self._watching = watching

    def __getattr__(self, name: str) -> Any:
        real = getattr(shared("dynamodb"), name)
        if name not in (*WRITES, "get_item"):
            return real

        def call(**arguments: Any) -> Any:
            self._watching.calls.append((name, arguments))
            faults = self._watching.faults
            fault = faults.pop(0) if name in WRITES and faults else None
            return real(**arguments) if fault is None else fault(lambda: real(**arguments))

        return call
