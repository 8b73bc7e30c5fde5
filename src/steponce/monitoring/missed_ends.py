"""
Executions that ended without an answer, and whose end no event has reported.

A request that came as a message comes back by the status event of its execution, and AWS delivers such events
as best it can. So every round looks at the executions of its machine that have ended badly since the round
before, in the order of their ends, and sends each message again that nothing carries on. How far it has come
is on record: a monitor that was down goes on from there, and an end is looked at once. Whoever dies between
sending and writing that down sends some messages twice, which are duplicates and start nothing.

Asking Step Functions costs the workflow nothing, neither a state nor a write, and misses no kind of end: a
marker on the lock record would miss whoever never had the lock, or died before it could write.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import nsmallest
from typing import TYPE_CHECKING, Any, TypeVar

from botocore.exceptions import ClientError

from steponce.aws import times
from steponce.aws.dynamodb import Attributes
from steponce.aws.errors import answering, error_code
from steponce.aws.pace import Pace
from steponce.errors import Unavailable
from steponce.executions import describe_execution
from steponce.locks.table import Locks
from steponce.request.names import attempt_name, split_attempt
from steponce.triggers.resend import Resender, asked_by_execution

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_stepfunctions import SFNClient
    from mypy_boto3_stepfunctions.type_defs import ExecutionListItemTypeDef

SEEN_AFTER = timedelta(minutes=16)
"""
An end is looked at when it is this old: longer than a message waits at the most before it comes again, so
that an end whose event has arrived has its next attempt by now; and than a list may lag behind.
"""

FIRST_LOOK = timedelta(days=1)
"""How far the first round of a machine looks back."""

LONGEST_LOOK = timedelta(days=14)
"""How far any round looks back: a queue keeps no message longer."""

MOST_ENDS = 10_000
"""How many ends a round keeps in memory, and looks at."""

LISTS_PER_SECOND = 2
"""ListExecutions allows 5 a second in large regions and 2 elsewhere, after a burst of 100."""

_ENDED_BADLY = ("FAILED", "TIMED_OUT", "ABORTED")
_PAGE = 1_000
_ANY_LENGTH = timedelta(days=366)  # an execution runs for a year at the most
_BLANK = " "

Page = TypeVar("Page")


class Place:
    """
    How far a machine's ends have been looked at, in an item of the lock table.

    Its key is blank, which no lock token is. It has an attribute for each machine.

    Args:
        dynamodb: A client that may read and update the table.
        table: The lock table.
        machine_arn: Whose place it is.
    """

    def __init__(self, dynamodb: DynamoDBClient, table: str, machine_arn: str) -> None:
        self._dynamodb = dynamodb
        self._item: Any = {"TableName": table, "Key": {"lockToken": {"S": _BLANK}}}
        self._machine_arn = machine_arn

    def read(self) -> datetime | None:
        """
        All ends before this time have been looked at; None before the first round.

        Raises:
            RecordUnreadable: something else has written to it.
            Unavailable: no answer; safe to ask again.
        """
        with answering("DynamoDB"):
            item = self._dynamodb.get_item(**self._item, ConsistentRead=True).get("Item")
        text = None if item is None else Attributes(item, "lockToken").optional_time(self._machine_arn)
        return None if text is None else times.from_text(text)

    def move(self, to: datetime) -> None:
        """Write it down, unless another round is further by now."""
        try:
            with answering("DynamoDB"):
                self._dynamodb.update_item(
                    **self._item,
                    UpdateExpression="SET #machine = :to",
                    ConditionExpression="attribute_not_exists(#machine) OR #machine < :to",
                    ExpressionAttributeNames={"#machine": self._machine_arn},
                    ExpressionAttributeValues={":to": {"S": times.to_text(to)}},
                )
        except ClientError as error:
            if error_code(error) != "ConditionalCheckFailedException":
                raise


@dataclass
class Looked:
    """
    What a look at the missed ends has brought.

    Args:
        resent: Messages that were sent again.
        dead_lettered: Messages that had come too often.
        left: Ends that are for the next round.
    """

    resent: int = 0
    dead_lettered: int = 0
    left: int = 0


class MissedEnds:
    """
    Looks at the executions of one machine that have ended badly.

    Args:
        sfn: A Step Functions client that may describe the machine, list its executions and describe those.
        machine_arn: The machine.
        locks: Its lock table.
        resender: Sends messages again.
        place: How far the rounds have come.
    """

    def __init__(
        self, sfn: SFNClient, machine_arn: str, locks: Locks, resender: Resender, place: Place
    ) -> None:
        self._sfn = sfn
        self._machine_arn = machine_arn
        self._locks = locks
        self._resender = resender
        self._place = place

    def look(
        self,
        *,
        seconds_left: Callable[[], float],
        per_second: float,
        pace: Pace,
        skip: Callable[[Exception, str], object],
    ) -> Looked:
        """
        Send again what has come back by no event since the last look.

        What may pass by itself (no answer, throttled, no permission) ends the look, and the next one begins
        there. What does not pass is left behind.

        Args:
            seconds_left: How much time there is.
            per_second: How many executions may be described in a second.
            pace: Of all who describe executions in this round.
            skip: Is told of an error, and of the execution or machine that it is about.
        """
        looked = Looked()
        until = _as_written(times.now() - SEEN_AFTER)
        try:
            since = self._since(until)
            most = min(MOST_ENDS, max(1, int(per_second * seconds_left())))
            ends = nsmallest(most + 1, self._ends(since, until, seconds_left, looked))
        except Exception as error:
            skip(error, self._machine_arn)
            return looked
        reached = until if len(ends) <= most else ends[most][0]
        for ended, execution_arn in ends[:most]:
            try:
                pace.turn(seconds_left())
            except Unavailable:  # its time is over; the rest is the next round's
                reached = ended
                break
            try:
                self._look_at(execution_arn, pace, looked)
            except (Unavailable, ClientError) as error:
                skip(error, execution_arn)
                reached = ended
                break
            except Exception as error:
                skip(error, execution_arn)
            looked.left -= 1
        try:
            self._place.move(reached)
        except (Unavailable, ClientError) as error:
            skip(error, self._machine_arn)
        return looked

    def _since(self, until: datetime) -> datetime:
        place = self._place.read()
        if place is not None:
            return max(place, until - LONGEST_LOOK)
        self._place.move(until - FIRST_LOOK)  # before anything is sent, to make sure that it can be written
        return until - FIRST_LOOK

    def _ends(
        self, since: datetime, until: datetime, seconds_left: Callable[[], float], looked: Looked
    ) -> Iterator[tuple[datetime, str]]:
        """
        The bad ends of this time, counted as left.

        The list begins with the newest execution, and one that began so early that it must have ended before
        is the last that matters.

        Source: ListExecutions API reference ("sorted by time, with the most recent execution first").
        """
        earliest, pace = since - self._longest_run(), Pace(LISTS_PER_SECOND)
        for status in _ENDED_BADLY:
            for execution in self._list(status, pace, seconds_left):
                if execution["startDate"] < earliest:
                    break
                ended = execution.get("stopDate", execution["startDate"])
                if since <= _as_written(ended) < until:
                    looked.left += 1
                    yield ended, execution["executionArn"]

    def _list(
        self, status: Any, pace: Pace, seconds_left: Callable[[], float]
    ) -> Iterator[ExecutionListItemTypeDef]:
        pages = self._sfn.get_paginator("list_executions").paginate(
            stateMachineArn=self._machine_arn, statusFilter=status, PaginationConfig={"PageSize": _PAGE}
        )
        with answering("Step Functions"):
            for page in _each_in_time(pages, pace, seconds_left):
                yield from page["executions"]

    def _longest_run(self) -> timedelta:
        """How long an execution of the machine may run."""
        with answering("Step Functions"):
            definition = self._sfn.describe_state_machine(stateMachineArn=self._machine_arn)["definition"]
        seconds = json.loads(definition).get("TimeoutSeconds")
        return timedelta(seconds=seconds) if seconds else _ANY_LENGTH

    def _look_at(self, execution_arn: str, pace: Pace, looked: Looked) -> None:
        asked, why = asked_by_execution({"executionArn": execution_arn}, self._sfn, self._locks)
        if asked is None:
            return
        pace.turn(float("inf"))  # what has begun is finished
        if self._is_carried_on(execution_arn):
            return
        if self._resender.send_again(asked, why, execution_arn) == "resent":
            looked.resent += 1
        else:
            looked.dead_lettered += 1

    def _is_carried_on(self, execution_arn: str) -> bool:
        """Whether the next attempt came as a message too: then its own end brings that back."""
        machine, _, name = execution_arn.rpartition(":")
        request, attempt = split_attempt(name)
        following = describe_execution(self._sfn, f"{machine}:{attempt_name(request, attempt + 1)}")
        return following is not None and "redelivery" in following.input


def _each_in_time(pages: Iterable[Page], pace: Pace, seconds_left: Callable[[], float]) -> Iterator[Page]:
    """
    Pages at their pace.

    Raises:
        Unavailable: there is no time for the next one.
    """
    rest = iter(pages)
    while True:
        if seconds_left() <= 0:
            raise Unavailable("More has ended badly than can be listed in this time.")
        pace.turn(seconds_left())
        try:
            page = next(rest)
        except StopIteration:
            return
        yield page


def _as_written(time: datetime) -> datetime:
    """A time as precise as a place on record."""
    return times.from_text(times.to_text(time))
