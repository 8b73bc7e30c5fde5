"""A user's counters, for people: lists and resets them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from steponce.aws import times
from steponce.aws.dynamodb import Skip, read_each
from steponce.aws.errors import answering, error_code
from steponce.errors import RecordUnreadable
from steponce.limits.record import COUNTER, USERS_INDEX, Count, parts_of
from steponce.locks.record import Intervention

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_PAGE = 100


class Limits:
    """
    The LimitsTable.

    Args:
        dynamodb: The client that reads and writes.
        table: Its name.

    Every method raises Unavailable if DynamoDB did not answer; the same call is safe to try again.
    """

    def __init__(self, dynamodb: DynamoDBClient, table: str) -> None:
        self._dynamodb = dynamodb
        self._table = table

    def of(self, who: str, *, skip: Skip | None = None) -> Iterator[Count]:
        """
        Go through a user's counters, the newest window first.

        Args:
            who: The user, as it was given to the limiter.
            skip: Gets each record that cannot be read. None: the first of them ends the list.

        Returns:
            Each as the table has it now, read consistently. The index that names them may lag behind: a
            counter appears in it a moment after its first request.
        """
        return self._read(self._keys(who), skip)

    def at(self, who: str, time: datetime, *, name: str | None = None) -> list[Count]:
        """
        Those of a user's counters whose window holds a moment; the others are not read.

        Args:
            who: The user, as it was given to the limiter.
            time: The moment.
            name: Only those of this limit, as `mails/day`. None: of all.

        Raises:
            RecordUnreadable: something else has written to one of these.
        """
        return list(self._read(key for key in self._keys(who) if _may_be(key, time, name)))

    def _keys(self, who: str) -> Iterator[str]:
        with answering("DynamoDB"):
            pages = self._dynamodb.get_paginator("query").paginate(
                TableName=self._table,
                IndexName=USERS_INDEX,
                KeyConditionExpression="who = :who",
                ExpressionAttributeValues={":who": {"S": who}},
                ScanIndexForward=False,
                PaginationConfig={"PageSize": _PAGE},
            )
            for page in pages:
                yield from (item["limitKey"]["S"] for item in page["Items"])

    def _read(self, keys: Iterable[str], skip: Skip | None = None) -> Iterator[Count]:
        found = (self._item(key) for key in keys)
        return read_each((item for item in found if item), Count.from_item, skip)

    def reset(self, count: Count, *, by: str, why: str) -> bool:
        """
        Reset a counter to 0, if it still is as it was read.

        What was counted stays known: those requests stay admitted, and are not counted again. A request that
        was refused may be admitted when it comes again.

        Args:
            count: As it was shown.
            by: Who does it, and `why`; kept with the record, which keeps 20 such entries.

        Returns:
            Whether the counter was as it was shown. One that was reset since is not, even if full again.
        """
        reset = Intervention(times.now_text(), by, f"reset from {count.counted}", why)
        changes, conditions, values = _anew(count)
        values |= {":interventions": {"S": count.interventions_json(reset)}}
        try:
            with answering("DynamoDB"):
                self._dynamodb.update_item(
                    TableName=self._table,
                    Key=_key(count.key),
                    UpdateExpression=f"SET interventions = :interventions, {', '.join(changes)}",
                    ConditionExpression=" AND ".join(conditions),
                    ExpressionAttributeNames={"#count": "count"},
                    ExpressionAttributeValues=values,
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
        except ClientError as error:
            if error_code(error) != "ConditionalCheckFailedException":
                raise
            there: Any = error.response.get("Item", {})
            return _has(there, reset)  # made, and its answer was lost
        return True

    def _item(self, key: str) -> Any:
        with answering("DynamoDB"):
            found = self._dynamodb.get_item(TableName=self._table, Key=_key(key), ConsistentRead=True)
        return found.get("Item")


def _anew(count: Count) -> tuple[list[str], list[str], dict[str, Any]]:
    """The changes that let a counter begin at 0, the conditions that it is as shown, and their values."""
    changes, values = ["#count = :zero"], {":zero": {"N": "0"}}
    conditions = []
    shown = {
        "#count": None if count.number is None else {"N": str(count.number)},
        "interventions": {"S": count.interventions_json()} if count.interventions else None,
    }
    for attribute, value in shown.items():
        if value is None:
            conditions.append(f"attribute_not_exists({attribute})")
        else:
            placeholder = f":shown_{attribute.strip('#')}"
            conditions.append(f"{attribute} = {placeholder}")
            values[placeholder] = value
    if count.members:
        conditions.append("size(members) = :members")
        changes += ["forgiven = :members", "allowance = :allowance"]
        values[":members"] = {"N": str(len(count.members))}
        values[":allowance"] = {"N": str(len(count.members) + count.limit)}
    return changes, conditions, values


def _has(item: Any, reset: Intervention) -> bool:
    """Whether a reset is among the interventions of a counter."""
    try:
        return bool(item) and reset in Count.from_item(item).interventions
    except RecordUnreadable:
        return False


def _may_be(key: str, time: datetime, name: str | None) -> bool:
    """
    Whether a counter is of this limit, and its window holds a moment.

    One whose key does not tell is of no limit that can be named. Else its record says what is wrong.
    """
    try:
        own, _, start, end, _ = parts_of(key)
    except ValueError:
        return name is None
    return name in (None, own) and start <= time < end


def _key(key: str) -> dict[str, Any]:
    return {"limitKey": {"S": key}, "member": {"S": COUNTER}}
