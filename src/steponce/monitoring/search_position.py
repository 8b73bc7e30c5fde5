"""
What the search for missed ends remembers between its rounds: one item of the lock table.

The item's key is a blank, which no lock token is. It has two attributes for each machine: the place, and the
bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from steponce.aws import times
from steponce.aws.dynamodb import Attributes
from steponce.aws.errors import answering, error_code
from steponce.locks.table import PLACE

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


_FURTHEST_AHEAD = timedelta(hours=1)
"""How far ahead the times of a bound may be. A round writes one of 16 minutes."""

_DAMAGED = (
    "Somebody else has written it. Correct the attribute there. Do not delete the record: the search would "
    "begin a day back."
)


@dataclass(frozen=True)
class Bound:
    """
    How far back to list for ends of a certain time: no execution that ends later started earlier.

    Args:
        ends_after: It holds for ends from this time on.
        started: The earliest start of these executions.
    """

    ends_after: datetime
    started: datetime


class SearchPosition:
    """
    The time up to which a machine's ends have been examined, and the bounds of later searches.

    Args:
        dynamodb: A DynamoDB client that may read and update the table.
        table: The name of the lock table.
        machine_arn: The ARN of the state machine.
    """

    def __init__(self, dynamodb: DynamoDBClient, table: str, machine_arn: str) -> None:
        self._dynamodb = dynamodb
        self._item: Any = {"TableName": table, "Key": {"lockToken": {"S": PLACE}}}
        self._machine_arn = machine_arn
        self._bounds = f"{machine_arn} bounds"

    def read(self) -> datetime | None:
        """
        Read the place: all ends before this time have been examined. None before the first round.

        Raises:
            RecordUnreadable: another program has damaged the item.
            Unavailable: no answer; safe to try again.
        """
        item = self._read()
        text = item.optional_time(self._machine_arn)
        if text is None:
            return None
        place = times.from_text(text)
        if place > times.now() or text != times.to_text(place):
            # It could not move forward, and each round would examine nothing, or the same again.
            item.refuse(self._machine_arn, "is no past time like 2026-01-31T12:00:00.000Z")
        return place

    def move(self, to: datetime) -> None:
        """
        Store the place. The fence: a place only moves forward, so a slow round does not undo a later one.

        Raises:
            Unavailable: no answer; safe to try again.
        """
        try:
            with answering("DynamoDB"):
                self._dynamodb.update_item(
                    **self._item,
                    UpdateExpression="SET #machine = :to",
                    # First round: not_exists. Only forward: less than.
                    ConditionExpression="attribute_not_exists(#machine) OR #machine < :to",
                    ExpressionAttributeNames={"#machine": self._machine_arn},
                    ExpressionAttributeValues={":to": {"S": times.to_text(to)}},
                )
        except ClientError as error:
            if error_code(error) != "ConditionalCheckFailedException":
                raise

    def bounds(self) -> list[Bound]:
        """
        Read the bounds. There are none before the first round.

        Raises:
            As `read`.
        """
        item = self._read()
        texts = (item.optional_text(self._bounds) or "").split()
        try:
            found = [times.from_text(text) for text in texts]
            bounds = [Bound(*pair) for pair in zip(found[::2], found[1::2], strict=True)]
        except ValueError:
            item.refuse(self._bounds, "is no list of times")
        now = times.now()
        if any(one.started > now or one.ends_after > now + _FURTHEST_AHEAD for one in bounds):
            item.refuse(self._bounds, "has a time in the future")
        return bounds

    def store_bounds(self, bounds: list[Bound]) -> None:
        """
        Store the bounds. A bound is true whichever round has stored it, so two rounds at once do no harm.

        Raises:
            Unavailable: no answer; safe to try again.
        """
        pairs = [f"{times.to_text(one.ends_after)} {times.to_text(one.started)}" for one in bounds]
        with answering("DynamoDB"):
            self._dynamodb.update_item(
                **self._item,
                UpdateExpression="SET #bounds = :bounds",
                ExpressionAttributeNames={"#bounds": self._bounds},
                ExpressionAttributeValues={":bounds": {"S": " ".join(pairs)}},
            )

    def _read(self) -> Attributes:
        with answering("DynamoDB"):
            item = self._dynamodb.get_item(**self._item, ConsistentRead=True).get("Item")
        return Attributes(item or self._item["Key"], "lockToken", _DAMAGED)
