"""
Updates and deletions that an older one never overwrites.

A record carries `asOf` and `writer` of the update that it is from. A deletion leaves a tombstone with the
same two, so that an older update that comes late does not bring the record back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steponce.aws import times
from steponce.aws.redelivery import LATEST_REDELIVERY_SECONDS
from steponce.errors import InvalidRequest
from steponce.updates.item import Changes, ItemOf, Written, plain
from steponce.updates.order import AsOf, Order, read_as_of

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

KEPT_SECONDS = LATEST_REDELIVERY_SECONDS
"""How long a tombstone is kept, unless said otherwise."""

_OWN = ("asOf", "writer", "deleted")
_TTL = "ttl"
_TOMBSTONE = {"deleted": {"BOOL": True}}


@dataclass(frozen=True)
class Update:
    """
    What became of an update. In a condition it is true if the update was applied.

    Args:
        applied: Whether the record is now as the update says. False: a newer update is there, or one of the
            same time by another writer, and nothing was written.
        item: The record as it is now, with `asOf` and `writer`; numbers are Decimals. None: it is deleted.
        as_of: Of the update that the record is from.
        writer: Of the same.
    """

    applied: bool
    item: dict[str, Any] | None
    as_of: AsOf | None
    writer: str | None

    def __bool__(self) -> bool:
        return self.applied


def update_if_newer(
    table: str,
    key: Mapping[str, Any],
    changes: Mapping[str, Any],
    *,
    as_of: AsOf,
    writer: str,
    dynamodb: DynamoDBClient | None = None,
) -> Update:
    """
    Change a record, unless a newer update has changed it already. One conditional UpdateItem.

    Safe to repeat: the same writer's update of the same time is written again.

    Args:
        table: The table's name.
        key: The record's key: names and values of one attribute or two, none of them called `asOf`, `writer`,
            `deleted` or `ttl`.
        changes: By name: a new value, or REMOVE. Other attributes stay. `asOf` orders the record as a whole,
            so let an update carry everything that it may change. A `ttl` that is not among the changes is
            removed, since it may be a tombstone's. So is the record's `deleted`, which changes may not name.
        as_of: What orders the updates of the record, from the event itself: a whole number of at most 38
            digits (a version, a sequence number), or a datetime with a zone, exact to the microsecond.
        writer: What names this update whenever it comes: the id of its event or request.
        dynamodb: Your own client. Default: one with boto3's defaults, made once.

    Raises:
        InvalidAsOf: `as_of` cannot order, or the record is ordered by times and this is a number, or the
            other way round. Nothing was written.
        InvalidRequest: the key, a change or the writer cannot be used. Nothing was written.
        RecordUnreadable: another program has written the record's `asOf`. Nothing was written.
        Unavailable: DynamoDB did not answer. The same call is safe to try again.
    """
    order = Order.of(as_of, writer)
    item = ItemOf(table, key, dynamodb, {*_OWN, _TTL})
    written = Changes(changes, {*key, *_OWN})
    written.set("asOf", order.as_of)
    written.set("writer", {"S": writer})
    written.remove("deleted")
    if _TTL not in changes:
        written.remove(_TTL)
    made = item.update(**written.arguments(order.values), ConditionExpression=order.condition)
    return _answer(item, order, made)


async def update_if_newer_async(
    table: str,
    key: Mapping[str, Any],
    changes: Mapping[str, Any],
    *,
    as_of: AsOf,
    writer: str,
    dynamodb: DynamoDBClient | None = None,
) -> Update:
    """As `update_if_newer`, without blocking the event loop. A cancelled call may have written."""
    return await asyncio.to_thread(
        update_if_newer, table, key, changes, as_of=as_of, writer=writer, dynamodb=dynamodb
    )


def delete_if_newer(
    table: str,
    key: Mapping[str, Any],
    *,
    as_of: AsOf,
    writer: str,
    kept_seconds: int | None = KEPT_SECONDS,
    dynamodb: DynamoDBClient | None = None,
) -> Update:
    """
    Delete a record, unless a newer update has changed it. It leaves a tombstone, also where nothing was.

    The tombstone has the key, `asOf`, `writer`, `deleted` (true) and `ttl` (epoch seconds), and nothing else
    of the record. A newer update turns it into a record again.

    Args:
        table, key, as_of, writer, dynamodb: As for `update_if_newer`.
        kept_seconds: How long the tombstone is kept, from now on. An older update that comes later than that
            brings the record back. None: for ever. The table's TTL must be on, for the attribute `ttl`.

    Raises:
        As `update_if_newer`.
    """
    if kept_seconds is not None and not _is_whole(kept_seconds):
        raise InvalidRequest(f"kept_seconds is {kept_seconds!r}. Give whole seconds, 1 or more, or None.")
    order = Order.of(as_of, writer)
    item = ItemOf(table, key, dynamodb, {*_OWN, _TTL})
    tombstone: dict[str, Any] = {"asOf": order.as_of, "writer": {"S": writer}, **_TOMBSTONE}
    if kept_seconds is not None:
        ends = times.to_text(times.after(times.now(), kept_seconds))
        tombstone[_TTL] = {"N": str(times.epoch_seconds(ends))}
    made = item.put(tombstone, ConditionExpression=order.condition, ExpressionAttributeValues=order.values)
    return _answer(item, order, made)


async def delete_if_newer_async(
    table: str,
    key: Mapping[str, Any],
    *,
    as_of: AsOf,
    writer: str,
    kept_seconds: int | None = KEPT_SECONDS,
    dynamodb: DynamoDBClient | None = None,
) -> Update:
    """As `delete_if_newer`, without blocking the event loop. A cancelled call may have written."""
    return await asyncio.to_thread(
        delete_if_newer,
        table,
        key,
        as_of=as_of,
        writer=writer,
        kept_seconds=kept_seconds,
        dynamodb=dynamodb,
    )


def read(
    table: str, key: Mapping[str, Any], *, dynamodb: DynamoDBClient | None = None
) -> dict[str, Any] | None:
    """
    Read a record consistently. A tombstone counts as no record.

    Returns:
        Its attributes, with `asOf` and `writer`; numbers are Decimals. None: there is none, or it is deleted.

    Raises:
        InvalidRequest: the key cannot be used.
        Unavailable: DynamoDB did not answer; safe to try again.
    """
    found = ItemOf(table, key, dynamodb).get()
    return None if found is None else _living(found)


async def read_async(
    table: str, key: Mapping[str, Any], *, dynamodb: DynamoDBClient | None = None
) -> dict[str, Any] | None:
    """As `read`, without blocking the event loop."""
    return await asyncio.to_thread(read, table, key, dynamodb=dynamodb)


def _answer(item: ItemOf, order: Order, made: Written) -> Update:
    found = made.item or {}
    if not made.done:
        order.expect_same_kind(found, item.label)
    return Update(
        applied=made.done,
        item=_living(found),
        as_of=read_as_of(found, item.label),
        writer=found.get("writer", {}).get("S"),
    )


def _living(item: Mapping[str, Any]) -> dict[str, Any] | None:
    return None if item.get("deleted") == _TOMBSTONE["deleted"] else plain(item)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
