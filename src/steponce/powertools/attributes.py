"""
Tables whose attributes have other names than the stack's, or a composite key.

Only the names differ: requests are written for the stack's table, and translated on their way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

STOCK_ATTRIBUTES: Mapping[str, str] = {
    "key_attr": "lockToken",
    "expiry_attr": "ttl",
    "data_attr": "result",
    "validation_key_attr": "payloadHash",
}
"""
With these, Powertools' own DynamoDBPersistenceLayer writes to the stack's table what everything here reads:
`DynamoDBPersistenceLayer(table_name=…, **STOCK_ATTRIBUTES)`.
"""

_OF_A_LOCK = frozenset(
    (
        *("lockToken", "requestId", "executionName", "callId", "lockedBy", "attempt", "payloadHash"),
        *("status", "openStatus", "result", "failure", "interventions"),
        *("created", "expectedCompletion", "actualCompletion", "leaseUntil", "expiresAt", "ttl"),
        "workTimeoutSeconds",
    )
)
"""The attributes of a lock record. They keep their names unless others are given."""

_EXPRESSIONS = ("ConditionExpression", "UpdateExpression")
_WORD = re.compile(r"(?<![#:\w])\w+")
"""A word of an expression that is neither a placeholder nor a value."""


@dataclass(frozen=True)
class Attributes:
    """
    Where a table keeps what a lock record says.

    Args:
        names: The table's name of each attribute, by its name on the stack's table; `lockToken` is the sort
            key of a table that has one.
        partition: Name and value of that table's partition key; None where `lockToken` is the partition key.

    Raises:
        ValueError: two attributes would be one.
    """

    names: Mapping[str, str]
    partition: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        taken = [*self.names.values(), *(_OF_A_LOCK - self.names.keys())]
        taken += [self.partition[0]] if self.partition else []
        twice = sorted({name for name in taken if taken.count(name) > 1})
        if twice:
            raise ValueError(f"Two attributes cannot both be called {twice[0]!r}. Give each its own name.")

    def client(self, dynamodb: DynamoDBClient) -> DynamoDBClient:
        """A client for such a table; the given one where nothing differs."""
        renamed = {ours: theirs for ours, theirs in self.names.items() if ours != theirs}
        if not renamed and self.partition is None:
            return dynamodb
        return cast("DynamoDBClient", _Translated(dynamodb, renamed, self.partition))


class _Translated:
    """What guards ask of DynamoDB, for a table with other names."""

    def __init__(
        self, dynamodb: DynamoDBClient, names: Mapping[str, str], partition: tuple[str, str] | None
    ) -> None:
        self._dynamodb = dynamodb
        self._names = names
        self._ours = {theirs: ours for ours, theirs in names.items()}
        self._partition = partition

    def get_item(self, **request: Any) -> dict[str, Any]:
        answer: dict[str, Any] = dict(self._dynamodb.get_item(**self._translated(request)))
        return answer | {name: self._from_them(answer[name]) for name in ("Item",) if name in answer}

    def put_item(self, **request: Any) -> None:
        with self._refusals():
            self._dynamodb.put_item(**self._translated(request))

    def update_item(self, **request: Any) -> None:
        with self._refusals():
            self._dynamodb.update_item(**self._translated(request))

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """The record that a refused write brings, with our names."""
        try:
            yield
        except ClientError as error:
            refused: dict[str, Any] = cast("dict[str, Any]", error.response)
            if "Item" in refused:
                refused["Item"] = self._from_them(refused["Item"])
            raise

    def _translated(self, request: Mapping[str, Any]) -> dict[str, Any]:
        made = dict(request)
        for place in ("Key", "Item"):
            if place in request:
                made[place] = self._to_them(request[place])
        given = request.get("ExpressionAttributeNames", {})
        names = {holder: self._names.get(name, name) for holder, name in given.items()}
        for expression in _EXPRESSIONS:
            if expression in request:
                bare = self._names.keys() & set(_WORD.findall(request[expression]))
                names |= {f"#{name}": self._names[name] for name in bare}
                made[expression] = _WORD.sub(self._placeholder, request[expression])
        return made | ({"ExpressionAttributeNames": names} if names else {})

    def _placeholder(self, word: re.Match[str]) -> str:
        return f"#{word[0]}" if word[0] in self._names else word[0]

    def _to_them(self, item: Mapping[str, Any]) -> dict[str, Any]:
        renamed = {self._names.get(name, name): value for name, value in item.items()}
        partition = {self._partition[0]: {"S": self._partition[1]}} if self._partition else {}
        return renamed | partition

    def _from_them(self, item: Mapping[str, Any]) -> dict[str, Any]:
        partition = self._partition[0] if self._partition else None
        return {self._ours.get(name, name): value for name, value in item.items() if name != partition}
