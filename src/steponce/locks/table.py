"""
Reads the LocksTable, and writes to it with fences.

The workflow writes from its own states. This module serves the client, which only reads, and the functions
and operators that settle locks of dead executions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Self

from botocore.exceptions import ClientError

from steponce.aws import times
from steponce.aws.dynamodb import Item, Skip, in_range, read_each, unchanged_or_gone
from steponce.aws.errors import answering, error_code, is_refusal
from steponce.failure import Failure
from steponce.locks.record import LETTERS, Intervention, Lock, ttl_of
from steponce.workflow import COMPLETED, FAILED, RELEASED

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import QueryOutputTypeDef

OWNER_AND_STATUS = ("status", "openStatus", "callId", "lockedBy", "attempt", "created")
"""Attributes that identify the state of an unreadable record: a delete compares them."""

PLACE = " "
"""The key of an item that is no lock record: there the monitor keeps how far it has looked."""

KEPT_INTERVENTIONS = 20
"""How many interventions a record keeps, the newest ones."""

_PAGE = 100

# Same owner: callId and lockedBy. Not redriven since: attempt. Not settled since: status. Not cancelled
# since: created, because a cancellation is FAILED, as a failure is that waits for a person, and names an
# execution that may have had the lock before.
_UNCHANGED = (
    "callId = :callId AND lockedBy = :execution AND attempt = :attempt AND created = :created "
    "AND #status = :was"
)


class Locks:
    """
    The table of lock records.

    Every write is fenced: it takes effect only while the record still has the owner, attempt, time of
    creation and status of the `lock` that was read. Otherwise it changes nothing and returns False. The fence
    protects the invariant that only a record's present owner, or an intervention that saw it dead, decides
    the request's outcome.

    Every write adds an intervention to the record, except a delete and the new fence before it.
    """

    def __init__(self, dynamodb: DynamoDBClient, table: str) -> None:
        self._dynamodb = dynamodb
        self._table = table

    @property
    def table(self) -> str:
        """The table's name."""
        return self._table

    def beside(self, table: str) -> Self:
        """Another table of lock records, by the same connection."""
        return type(self)(self._dynamodb, table)

    def get(self, lock_token: str) -> Lock | None:
        """
        Read one record with a consistent read.

        Returns:
            None if there is no record. So it is with the keys of the items that are no lock records: the
            monitor's place, and the marks of dead letters.

        Raises:
            RecordUnreadable: another program has damaged the record.
            Unavailable: no answer; safe to try again.
        """
        if lock_token == PLACE or lock_token.startswith(LETTERS):
            return None
        item = self._item({"S": lock_token})
        return None if item is None else Lock.from_item(item)

    def reread(self, lock: Lock) -> Lock | None:
        """Read the record again. None if its owner, attempt, time of creation or status has changed."""
        now = self.get(lock.lock_token)
        return now if now is not None and _fence(now) == _fence(lock) else None

    def is_unchanged(self, item: Item) -> bool:
        """Whether an unreadable record still has the owner and the status of this item."""
        now = self._item(item["lockToken"])
        return now is not None and all(now.get(name) == item.get(name) for name in OWNER_AND_STATUS)

    def open(
        self,
        status: str,
        shard: int,
        *,
        expected_from: str | None = None,
        expected_until: str | None = None,
        skip: Skip | None = None,
    ) -> Iterator[Lock]:
        """
        List one shard of the open index page by page, the longest overdue first.

        Args:
            status: INPROGRESS or FAILED.
            shard: The shard's number, from 0.
            expected_from: The earliest expectedCompletion to list (UTC text). None: all.
            expected_until: The latest expectedCompletion to list (UTC text). None: all.
            skip: Is called with each unreadable record. If it is None, the first unreadable record raises.

        Returns:
            The locks, without the attributes that the index lacks: payload hash, failure, expiry, lease. The
            index may lag behind the table, so `get` a record before you write to it.
        """
        due = in_range("expectedCompletion", expected_from, expected_until)
        # Pages are small, because the reader may take long over each lock.
        for page in self._open_pages(status, shard, *due, PaginationConfig={"PageSize": _PAGE}):
            yield from read_each(page["Items"], Lock.from_item, skip)

    def count_open(self, status: str, shard: int, *, created_before: str | None = None) -> int:
        """
        Count the locks in one shard of the open index.

        Args:
            status: INPROGRESS or FAILED.
            shard: The shard's number, from 0.
            created_before: Count those that were created before this time (UTC text). None: all.
        """
        values, older = {}, {}
        if created_before is not None:
            values = {":created": {"S": created_before}, ":text": {"S": "S"}}
            older = {"FilterExpression": "attribute_type(created, :text) AND created < :created"}
        pages = self._open_pages(status, shard, "", values, Select="COUNT", **older)
        return sum(page["Count"] for page in pages)

    def under(self, prefix: str, *, consistent: bool = True, skip: Skip | None = None) -> Iterator[Lock]:
        """
        List every record whose lock token begins with a prefix. This scans the whole table, page by page.

        Args:
            prefix: Plain text. Empty: all records.
            consistent: Whether the scan misses nothing that was written before. Otherwise it costs half.
            skip: As for `open`.
        """
        wanted = "begins_with(lockToken, :prefix)" if prefix else "lockToken <> :prefix"
        pages = self._dynamodb.get_paginator("scan").paginate(
            TableName=self._table,
            FilterExpression=f"{wanted} AND NOT begins_with(lockToken, :letters)",
            ExpressionAttributeValues={":prefix": {"S": prefix or PLACE}, ":letters": {"S": LETTERS}},
            ConsistentRead=consistent,
        )
        with answering("DynamoDB"):
            for page in pages:
                yield from read_each(page["Items"], Lock.from_item, skip)

    def complete(self, lock: Lock, result: str, *, by: str, why: str) -> bool:
        """Store the result (JSON text, at most about 390 KB) of a request whose work is done."""
        done = {"status": COMPLETED, "result": result}
        return self._settle(lock, done, ["failure"], Intervention(times.now_text(), by, "completed", why))

    def fail(self, lock: Lock, failure: Failure, *, by: str, why: str) -> bool:
        """Store a final failure. It is replayed to every later request, and expires as a result does."""
        done = {"status": FAILED, "failure": failure.to_json()}
        return self._settle(lock, done, [], Intervention(times.now_text(), by, "failed", why))

    def release(self, lock: Lock, failure: Failure, *, by: str, why: str) -> bool:
        """Free the lock at once. `failure` says why the last attempt has no outcome."""
        done = {"status": RELEASED, "failure": failure.to_json()}
        return self._settle(lock, done, [], Intervention(times.now_text(), by, "released", why))

    def hold(self, lock: Lock, failure: Failure, *, by: str, why: str) -> bool:
        """Store a failure that waits for a person: it stays on the open index and has no `ttl`."""
        shard = (lock.open_status or "#0").rpartition("#")[2]
        held = {"status": FAILED, "failure": failure.to_json(), "openStatus": f"{FAILED}#{shard}"}
        done = Intervention(times.now_text(), by, "held", why)
        return self._update(lock, _texts(held) | _intervened(lock, done), ["ttl"])

    def cancel(self, before: Lock | None, lock: Lock, *, by: str, why: str) -> bool:
        """
        Store the record of a cancelled request whose lock is free, or which has no record yet.

        The fence: the record is still the free one that was read, or is still absent. So a request that took
        the lock meanwhile keeps it.

        Args:
            before: The free record as it was read. None if there was none.
            lock: The new record: FAILED, finally.
        """
        done = Intervention(lock.actual_completion or times.now_text(), by, "cancelled", why)
        new: Item = {
            "status": {"S": lock.status},
            "lockedBy": {"S": lock.locked_by},
            "callId": {"S": lock.call_id},
            "executionName": {"S": lock.execution_name or ""},
            "requestId": {"S": lock.request_id},
            "created": {"S": lock.created},
            "expectedCompletion": {"S": lock.expected_completion},
            "payloadHash": {"S": lock.payload_hash or ""},
            "failure": {"S": (lock.failure or Failure(None, None)).to_json()},
            "expiresAt": {"S": lock.expires_at or times.NEVER},
            "ttl": {"N": str(lock.ttl)},
            "attempt": {"N": str(lock.attempt)},
            **_intervened(lock, done),
        }
        removes = ("result", "openStatus", "workTimeoutSeconds")
        if before is not None:
            return self._update(before, new, removes)
        return self._holds(
            self._dynamodb.update_item,
            new,
            Key={"lockToken": {"S": lock.lock_token}},
            ConditionExpression="attribute_not_exists(lockToken)",  # there is still no record
            **_change(new, removes),
        )

    def change_fence(self, lock: Lock, created: str) -> bool:
        """
        Give a free record another time of creation: whoever has read it before cannot write to it.

        Its owner stays, because a record with another callId would be of no execution.
        """
        return self._update(lock, {"created": {"S": created}})

    def erase(self, lock: Lock) -> bool:
        """Delete a record, under the same fence."""
        if lock.is_of_powertools:
            return self._holds(
                self._dynamodb.delete_item,
                None,
                Key={"lockToken": {"S": lock.lock_token}},
                ConditionExpression="attribute_not_exists(callId) AND #status = :was AND #ttl = :ttl",
                ExpressionAttributeNames={"#status": "status", "#ttl": "ttl"},
                ExpressionAttributeValues={":was": {"S": lock.status}, ":ttl": {"N": str(lock.ttl)}},
            )
        condition, values = _unchanged(lock)
        return self._holds(
            self._dynamodb.delete_item,
            None,
            Key={"lockToken": {"S": lock.lock_token}},
            ConditionExpression=condition,
            ExpressionAttributeNames={"#status": "status"},
            ExpressionAttributeValues=values,
        )

    def erase_unreadable(self, item: Item) -> bool:
        """Delete an unreadable record whose owner and status are those of this item. True if it is gone."""
        arguments = unchanged_or_gone(item, "lockToken", OWNER_AND_STATUS)
        return self._holds(
            self._dynamodb.delete_item, None, Key={"lockToken": item["lockToken"]}, **arguments
        )

    def _item(self, key: Mapping[str, Any]) -> Item | None:
        with answering("DynamoDB"):
            answer: Mapping[str, Any] = self._dynamodb.get_item(
                TableName=self._table, Key={"lockToken": dict(key)}, ConsistentRead=True
            )
        return answer.get("Item")

    def _open_pages(
        self, status: str, shard: int, more: str, values: Mapping[str, Any], **options: Any
    ) -> Iterator[QueryOutputTypeDef]:
        with answering("DynamoDB"):
            yield from self._dynamodb.get_paginator("query").paginate(
                TableName=self._table,
                IndexName="OpenLocks",
                KeyConditionExpression=f"openStatus = :open{more}",
                ExpressionAttributeValues={":open": {"S": f"{status}#{shard}"}, **values},
                **options,
            )

    def _settle(self, lock: Lock, sets: dict[str, str], removes: list[str], done: Intervention) -> bool:
        """Write a final outcome: the record leaves the open index, and gets its expiry."""
        expires_at = _kept_until(lock)
        kept = {"expiresAt": {"S": expires_at}, "ttl": {"N": str(ttl_of(expires_at))}}
        return self._update(lock, _texts(sets) | kept | _intervened(lock, done), [*removes, "openStatus"])

    def _update(self, lock: Lock, new: Item, removes: Sequence[str] = ()) -> bool:
        """Change a record under the fence of `lock`. Returns whether the fence held."""
        condition, values = _unchanged(lock)
        change = _change(new, removes)
        change["ExpressionAttributeNames"]["#status"] = "status"
        change["ExpressionAttributeValues"] |= values
        return self._holds(
            self._dynamodb.update_item,
            new,
            Key={"lockToken": {"S": lock.lock_token}},
            ConditionExpression=condition,
            **change,
        )

    def _holds(self, write: Any, new: Item | None, **arguments: Any) -> bool:
        """
        Make a conditional write. Returns whether its condition held.

        A write that boto3 has sent twice may be refused because the first one took effect.

        Args:
            write: The client's method.
            new: What an update writes. None: the record is deleted.
            arguments: As the method takes them, without the table.
        """
        try:
            with answering("DynamoDB"):
                write(TableName=self._table, **arguments)
        except ClientError as error:
            if error_code(error) != "ConditionalCheckFailedException":
                raise
            return not is_refusal(error) and self._is_as_written(arguments["Key"], new)
        return True

    def _is_as_written(self, key: Item, new: Item | None) -> bool:
        now = self._item(key["lockToken"])
        if now is None or new is None:
            return now is new
        return all(now.get(name) == value for name, value in new.items())


def _texts(values: Mapping[str, str]) -> dict[str, dict[str, str]]:
    return {name: {"S": text} for name, text in values.items()}


def _intervened(lock: Lock, done: Intervention) -> dict[str, dict[str, str]]:
    """What every write says of itself."""
    interventions = [asdict(one) for one in [*lock.interventions, done][-KEPT_INTERVENTIONS:]]
    return _texts(
        {"actualCompletion": done.at, "interventions": json.dumps(interventions, ensure_ascii=False)}
    )


def _change(new: Item, removes: Sequence[str]) -> dict[str, Any]:
    """The arguments of an update that sets and removes these attributes."""
    removed = f" REMOVE {', '.join(f'#{name}' for name in removes)}" if removes else ""
    return {
        "UpdateExpression": f"SET {', '.join(f'#{name} = :new_{name}' for name in new)}{removed}",
        "ExpressionAttributeNames": {f"#{name}": name for name in [*new, *removes]},
        "ExpressionAttributeValues": {f":new_{name}": value for name, value in new.items()},
    }


def _fence(lock: Lock) -> dict[str, dict[str, str]]:
    return {
        ":callId": {"S": lock.call_id},
        ":execution": {"S": lock.locked_by},
        ":attempt": {"N": str(lock.attempt)},
        ":created": {"S": lock.created},
        ":was": {"S": lock.status},
    }


def _unchanged(lock: Lock) -> tuple[str, dict[str, dict[str, str]]]:
    """The condition that a record is as it was read, and its values."""
    if lock.lease_until is None:
        return _UNCHANGED, _fence(lock)
    # A guard that has extended its lease is alive.
    return f"{_UNCHANGED} AND leaseUntil = :lease", _fence(lock) | {":lease": {"S": lock.lease_until}}


def _kept_until(lock: Lock) -> str:
    """When a record that is settled now expires: after its retention time, counted from now."""
    kept_until = times.to_text(times.after(times.now(), lock.retention_seconds))
    return max(lock.expires_at or times.NEVER, kept_until)
