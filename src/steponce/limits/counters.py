"""
Counting a request at one counter or at several: each of them counts it, or none does.

Nothing is ever half done. One counter with a set takes one conditional UpdateItem; everything else is one
TransactWriteItems. A caller that dies leaves a request that is counted or one that is not, and its repetition
finds out which.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from botocore.exceptions import ClientError

from steponce.aws.dynamodb import Item
from steponce.aws.errors import answering, error_code, is_conflict
from steponce.aws.pauses import pauses
from steponce.errors import Unavailable
from steponce.limits.record import SET_MEMBERS, Count, Counter

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

TRIES = 12
"""How often a request that conflicts with others at a counter is tried. The pauses take at most 6 seconds."""

_FIRST_PAUSE_SECONDS = 0.02
_LONGEST_PAUSE_SECONDS = 1.0

Result = Literal["counted", "before", "full"]
Written = Literal["done", "refused", "busy"]

_BUSY = frozenset({"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"})

_NEW_MEMBER = "NOT contains(members, :member)"
_BY_SET = (
    "attribute_not_exists(#count) AND "
    "(attribute_not_exists(members) OR "
    f"(attribute_type(members, :set) AND {_NEW_MEMBER} AND size(members) < :limit))"
)
_BY_NUMBER = (
    "(attribute_not_exists(#count) AND attribute_not_exists(members)) OR "
    f"(#count < :room AND (attribute_not_exists(members) OR {_NEW_MEMBER}))"
)
_AS_SEEN = "size(members) = :seen"
_FACTS = "who = :who, windowStart = :start, #limit = :limit, #ttl = :ttl"
_NAMES = {"#count": "count", "#limit": "limit", "#ttl": "ttl"}


@dataclass
class Tally:
    """
    What is known of a request at one counter.

    Args:
        counter: Which one.
        record: As it was last read; None: not read yet, or not there.
        counted: How many the counter had counted then, this request among them if it has.
        has_item: Whether the request is known to have an item of its own.
        result: Whether it is counted now, was counted before, or finds the counter full; None: not known.
    """

    counter: Counter
    record: Count | None = None
    counted: int = 0
    has_item: bool = False
    result: Result | None = None

    @property
    def left(self) -> int:
        """How many more the counter takes, as far as is known."""
        return max(0, self.counter.limit - self.counted)

    @property
    def is_by_number(self) -> bool:
        """Whether the counter has the form with a number, or gets it with its first request."""
        if self.record is None:
            return self.counter.limit > SET_MEMBERS
        return self.record.number is not None

    @property
    def has_outgrown_its_set(self) -> bool:
        """Whether the limit was raised since the window began, beyond what a set is for."""
        return not self.is_by_number and self.counter.limit > SET_MEMBERS

    def see(self, record: Count | None) -> None:
        """Take note of the record as it is."""
        self.record = record
        self.counted = record.counted if record else 0


class Counters:
    """
    The counters of one table or of several, in one account and region.

    Args:
        dynamodb: The client that reads and writes.
    """

    def __init__(self, dynamodb: DynamoDBClient) -> None:
        self._dynamodb = dynamodb

    def admit(self, counters: Sequence[Counter], member: str) -> list[Tally]:
        """
        Count a request at every counter, unless one of them is full.

        Args:
            counters: All different.
            member: The request's digest.

        Returns:
            One tally each, in their order. If one result is `full`, none is `counted`.

        Raises:
            Unavailable: no answer, or too many others at a counter. The same call is safe to try again.
            RecordUnreadable: something else has written to a record.
        """
        tallies = [Tally(counter) for counter in counters]
        if len(tallies) > 1 or tallies[0].is_by_number:
            self._look(tallies, member)
        waits = pauses(_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS)
        for more in reversed(range(TRIES)):
            wanted = [tally for tally in tallies if tally.result is None]
            if not wanted or any(tally.result == "full" for tally in tallies):
                return tallies
            written = self._write(wanted, member)
            if written == "done":
                return tallies
            if written == "busy" and more:
                time.sleep(next(waits))
                self._look(wanted, member)
        raise Unavailable(
            f"Too many others count at {', '.join(repr(counter.key) for counter in counters)} at once. The "
            "same call is safe to try again; if it is often so, spread the limit over shards.",
            throttled=True,
        )

    def look(self, counters: Sequence[Counter], member: str | None) -> list[Tally]:
        """
        Say what `admit` would find, without counting; a result of None means that there is room.

        Args:
            counters: Which ones.
            member: The request's digest; None: of a request that was never counted.

        Raises:
            As `admit`.
        """
        tallies = [Tally(counter) for counter in counters]
        self._look(tallies, member, thoroughly=True)
        return tallies

    def _look(self, tallies: Sequence[Tally], member: str | None, *, thoroughly: bool = False) -> None:
        for tally in tallies:
            item = self._item(tally.counter, tally.counter.item_key)
            tally.see(Count.from_item(item) if item else None)
            self._judge(tally, member, thoroughly=thoroughly)

    def _judge(self, tally: Tally, member: str | None, *, thoroughly: bool = False) -> None:
        """
        Judge the request by the record.

        The request's own item is read after the counter, and only then: if it is not there once the counter
        is full, it never will be. In the other order the request could be counted between the two reads.
        """
        record = tally.record
        if record is None:
            return
        is_full = record.counted >= tally.counter.limit
        if member is not None:
            if record.number is not None and not tally.has_item and (is_full or thoroughly):
                tally.has_item = self._item(tally.counter, _own_key(tally.counter, member)) is not None
            if tally.has_item or member in record.members:
                tally.result = "before"
                return
        if is_full:
            tally.result = "full"

    def _item(self, counter: Counter, key: Mapping[str, Any]) -> Item | None:
        with answering("DynamoDB"):
            found = self._dynamodb.get_item(TableName=counter.table, Key=key, ConsistentRead=True)
        return found.get("Item")

    def _write(self, wanted: Sequence[Tally], member: str) -> Written:
        """Count the request at all of these counters. A refused write has them judged again."""
        grown = [tally for tally in wanted if tally.has_outgrown_its_set]
        if grown:
            return self._give_number(grown[0], member)
        if len(wanted) == 1 and not wanted[0].is_by_number:
            return self._add_to_set(wanted[0], member)
        return self._transact(wanted, member)

    def _add_to_set(self, tally: Tally, member: str) -> Written:
        """One write; a refusal brings the record along."""
        try:
            with answering("DynamoDB"):
                done = self._dynamodb.update_item(
                    **_set_update(tally.counter, member),
                    ReturnValues="ALL_NEW",
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
        except ClientError as error:
            if error_code(error) != "ConditionalCheckFailedException":
                raise
            item: Any = error.response.get("Item")
            if not item:
                raise
            tally.see(Count.from_item(item))
            self._judge(tally, member)
            return "refused"
        except Unavailable as error:
            return _busy(error)
        tally.see(Count.from_item(done["Attributes"]))
        tally.result = "counted"
        return "done"

    def _give_number(self, tally: Tally, member: str) -> Written:
        """Turn a set, which stays as it is, into a number that goes on from its size."""
        try:
            with answering("DynamoDB"):
                self._dynamodb.update_item(
                    TableName=tally.counter.table,
                    Key=tally.counter.item_key,
                    UpdateExpression="SET #count = :size",
                    ConditionExpression="attribute_not_exists(#count) AND size(members) = :size",
                    ExpressionAttributeNames={"#count": "count"},
                    ExpressionAttributeValues={":size": {"N": str(tally.counted)}},
                )
        except ClientError as error:  # the set has grown, or another caller has done it
            if error_code(error) != "ConditionalCheckFailedException":
                raise
        except Unavailable as error:
            return _busy(error)
        self._look([tally], member)
        return "refused"

    def _transact(self, wanted: Sequence[Tally], member: str) -> Written:
        """
        One transaction for all of them.

        botocore sends its token again with every repetition, so that a transaction whose answer was lost is
        made once. After the ten minutes for which DynamoDB knows a token, the conditions refuse it.
        """
        actions = [(tally, action) for tally in wanted for action in _actions(tally, member)]
        try:
            with answering("DynamoDB"):
                self._dynamodb.transact_write_items(
                    TransactItems=[action for _, action in actions], ClientRequestToken=uuid.uuid4().hex
                )
        except ClientError as error:
            if error_code(error) != "TransactionCanceledException":
                raise
            reasons: Any = error.response.get("CancellationReasons", [])
            return self._cancelled(error, actions, [str(one.get("Code")) for one in reasons], member)
        except Unavailable as error:
            return _busy(error)
        for tally in wanted:
            tally.counted, tally.result = tally.counted + 1, "counted"
        return "done"

    def _cancelled(
        self,
        error: ClientError,
        actions: Sequence[tuple[Tally, TransactWriteItemTypeDef]],
        codes: Sequence[str],
        member: str,
    ) -> Written:
        """Why DynamoDB refused these writes, by its code for each."""
        if "ConditionalCheckFailed" in codes:
            for (tally, action), code in zip(actions, codes, strict=True):
                tally.has_item |= "Put" in action and code == "ConditionalCheckFailed"
            self._look([tally for tally, action in actions if "Update" in action], member)
            return "refused"
        if _BUSY.intersection(codes):
            return "busy"
        raise error


def _busy(error: Unavailable) -> Written:
    """Whether others are at the item; anything else goes on to the caller."""
    if is_conflict(error):
        return "busy"
    raise error


def _own_key(counter: Counter, member: str) -> dict[str, Any]:
    return {"limitKey": {"S": counter.key}, "member": {"S": member}}


def _set_update(counter: Counter, member: str) -> Any:
    """The write that adds a request to a set, alone or as a part of a transaction."""
    return {
        "TableName": counter.table,
        "Key": counter.item_key,
        "UpdateExpression": f"ADD members :members SET {_FACTS}",
        "ConditionExpression": _BY_SET,
        "ExpressionAttributeNames": _NAMES,
        "ExpressionAttributeValues": _values(counter, member)
        | {":members": {"SS": [member]}, ":set": {"S": "SS"}},
    }


def _actions(tally: Tally, member: str) -> Iterator[TransactWriteItemTypeDef]:
    """The parts of a transaction that count a request at one counter."""
    counter = tally.counter
    if not tally.is_by_number:
        yield {"Update": _set_update(counter, member)}
        return
    yield {
        "Put": {
            "TableName": counter.table,
            "Item": _own_key(counter, member) | {"ttl": {"N": str(counter.ttl)}},
            "ConditionExpression": "attribute_not_exists(limitKey)",
        }
    }
    yield {
        "Update": {
            "TableName": counter.table,
            "Key": counter.item_key,
            "UpdateExpression": f"SET #count = if_not_exists(#count, :zero) + :one, {_FACTS}",
            "ConditionExpression": _BY_NUMBER if not _grows(tally) else f"({_BY_NUMBER}) AND {_AS_SEEN}",
            "ExpressionAttributeNames": _NAMES,
            "ExpressionAttributeValues": _values(counter, member) | _numbers(tally),
        }
    }


def _grows(tally: Tally) -> bool:
    """Whether a workflow may go on adding to the set beside the number, as it does after a reset."""
    return tally.record is not None and tally.record.forgiven is not None and bool(tally.record.members)


def _numbers(tally: Tally) -> dict[str, Any]:
    """How many more the number may count, beside those that a workflow has counted since a reset."""
    record = tally.record
    beside = 0 if record is None or record.number is None else record.counted - record.number
    seen = {":seen": {"N": str(len(record.members))}} if record is not None and _grows(tally) else {}
    room = {":room": {"N": str(tally.counter.limit - beside)}}
    return {":zero": {"N": "0"}, ":one": {"N": "1"}} | room | seen


def _values(counter: Counter, member: str) -> dict[str, Any]:
    return {
        ":member": {"S": member},
        ":limit": {"N": str(counter.limit)},
        ":who": {"S": counter.who},
        ":start": {"S": counter.start},
        ":ttl": {"N": str(counter.ttl)},
    }
