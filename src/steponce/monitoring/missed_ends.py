"""
Resends the messages of executions that ended without an answer, and whose end no event reported.

A status event normally brings such a message back, but AWS delivers status events on a best-effort basis.
So each round lists the executions that ended badly since the last round, in the order of their ends. It
resends each message that no later attempt carries on. The lock table keeps the round's place, so a monitor
that was down continues where it stopped. A round that dies after sending and before it stores its place
sends some messages twice. A second message is a duplicate and starts nothing.

The list costs the workflow neither a state nor a write, and it contains every kind of end. A marker on the
lock record would miss executions that never held a lock, or died before they could write.

The list knows starts, and no ends. So each round would have to list back for as long as an execution may run.
Now and then a round notes the start of the oldest execution that is open. What ends later started no earlier,
so later rounds list back to that start only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import nsmallest
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from botocore.exceptions import ClientError

from steponce.aws import times
from steponce.aws.errors import answering
from steponce.aws.pace import LISTS_PER_SECOND, Pace
from steponce.errors import Unavailable
from steponce.executions import HistoryTooLong, reading_until
from steponce.locks.table import Locks
from steponce.monitoring.rounds import FallenBehind
from steponce.monitoring.search_position import Bound, SearchPosition
from steponce.triggers.ended import SEARCHED_AFTER, examine
from steponce.triggers.resend import Resender
from steponce.triggers.written_letters import WrittenLetters

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient
    from mypy_boto3_stepfunctions.type_defs import ExecutionListItemTypeDef

FIRST_LOOK = timedelta(days=1)
"""How far a machine's first round looks back."""

LONGEST_LOOK = timedelta(days=14)
"""How far any round looks back: a queue keeps a message no longer."""

FALLEN_BEHIND = timedelta(days=1)
"""How far the search may lag behind before it reports so. After a burst or an outage it catches up."""

_MOST_OF_A_LOOK = 0.75
"""What has had so much of a look's time is not examined again."""

MOST_ENDS = 10_000
"""How many ends a round examines at most. It keeps them in memory."""

_ENDED_BADLY = ("FAILED", "TIMED_OUT", "ABORTED")
_PAGE = 1_000
_ANY_LENGTH = timedelta(days=366)  # an execution runs for a year at the most

Page = TypeVar("Page")


class End(NamedTuple):
    """An end of an execution, in the order in which ends are examined."""

    at: datetime
    execution_arn: str
    redrive_count: int


@dataclass
class Looked:
    """
    What one look at the missed ends did.

    Args:
        resent: How many messages were resent.
        dead_lettered: How many messages were dead-lettered: their tries were used up, or their answers may
            have expired.
        left: How many ends were left to the next round.
    """

    resent: int = 0
    dead_lettered: int = 0
    left: int = 0


class MissedEnds:
    """
    Examines the executions of one machine that ended badly.

    Args:
        sfn: A Step Functions client that may describe the machine, list its executions and describe them.
        machine_arn: The ARN of the state machine.
        locks: Its lock table.
        resender: Resends messages.
        letters: The letters that ends have got.
        place: The place of the rounds.
    """

    def __init__(
        self,
        sfn: SFNClient,
        machine_arn: str,
        locks: Locks,
        resender: Resender,
        letters: WrittenLetters,
        place: SearchPosition,
    ) -> None:
        self._sfn = sfn
        self._machine_arn = machine_arn
        self._locks = locks
        self._resender = resender
        self._letters = letters
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
        Resend what no event has brought back since the last look.

        A transient error (no answer, throttled, no permission) ends the look, and the next look begins at
        that execution. After a permanent error the look goes on with the next execution. So it does after a
        history that takes longer to read than most of a look.

        Args:
            seconds_left: Returns how much time is left.
            per_second: How many executions may be described per second.
            pace: The rate limit that all descriptions of this round share.
            skip: Is called with each error, and the ARN of the execution or machine that it concerns.
        """
        looked, whole = Looked(), seconds_left()
        until = _as_written(times.now() - SEARCHED_AFTER)
        try:
            since = self._since(until)
            most = min(MOST_ENDS, max(1, int(per_second * seconds_left())))
            ends = nsmallest(most + 1, self._ends(since, until, seconds_left, looked))
        except Exception as error:
            skip(error, self._machine_arn)
            return looked
        left_at = self._examine(ends[:most], looked, whole, seconds_left=seconds_left, pace=pace, skip=skip)
        reached = left_at or (until if len(ends) <= most else ends[most].at)
        if until - reached > FALLEN_BEHIND:
            skip(FallenBehind(), self._machine_arn)
        try:
            self._place.move(reached)
            self._renew_bounds(reached, seconds_left)
        except (Unavailable, ClientError) as error:
            skip(error, self._machine_arn)
        return looked

    def _examine(
        self,
        ends: Sequence[End],
        looked: Looked,
        whole: float,
        *,
        seconds_left: Callable[[], float],
        pace: Pace,
        skip: Callable[[Exception, str], object],
    ) -> datetime | None:
        """
        Examine ends in their order.

        Args:
            whole: How much time the look had when it began.

        Returns:
            The time of the first end that is left to the next look. None if none is.
        """
        for end in ends:
            try:
                pace.turn(seconds_left())
            except Unavailable:  # no time left
                return end.at
            had = seconds_left()
            try:
                with reading_until(lambda: seconds_left() <= 0):
                    self._look_at(end, pace, looked)
            except HistoryTooLong as error:
                if had < whole * _MOST_OF_A_LOOK:  # the next look begins with it, and has more time
                    return end.at
                skip(error, end.execution_arn)
            except (Unavailable, ClientError) as error:
                skip(error, end.execution_arn)
                return end.at
            except Exception as error:
                skip(error, end.execution_arn)
            looked.left -= 1
        return None

    def _since(self, until: datetime) -> datetime:
        place = self._place.read()
        if place is not None:
            return max(place, until - LONGEST_LOOK)
        self._place.move(until - FIRST_LOOK)  # shows that the place can be stored, before anything is sent
        return until - FIRST_LOOK

    def _ends(
        self, since: datetime, until: datetime, seconds_left: Callable[[], float], looked: Looked
    ) -> Iterator[End]:
        """
        List the bad ends of this period, and count each as left.

        The list begins with the newest execution. It ends at one that started so early that it must have
        ended before the period, by a bound, or, as long as there is none, by the longest time that an
        execution may run. A deployment may have lowered that time, but not for executions that run.

        Source: ListExecutions API reference ("sorted by time, with the most recent execution first").
        """
        bounds = [one.started for one in self._place.bounds() if one.ends_after <= since]
        earliest, pace = max(bounds) if bounds else since - self._longest_run(), Pace(LISTS_PER_SECOND)
        for status in _ENDED_BADLY:
            for execution in self._list(status, pace, seconds_left):
                if execution["startDate"] < earliest:
                    break
                ended = execution.get("stopDate", execution["startDate"])
                if since <= _as_written(ended) < until:
                    looked.left += 1
                    yield End(ended, execution["executionArn"], execution.get("redriveCount", 0))

    def _renew_bounds(self, reached: datetime, seconds_left: Callable[[], float]) -> None:
        """
        Keep the newest bound that holds for the next round, and note another one if none is kept for later.

        SEARCHED_AFTER is the margin on both sides: for executions that the list does not show yet, and for
        clocks that differ.
        """
        known = sorted(self._place.bounds(), key=lambda one: one.ends_after)
        if known and known[-1].ends_after > reached:
            return
        began, pace = times.now(), Pace(LISTS_PER_SECOND)
        try:
            starts = [one["startDate"] for one in self._list("RUNNING", pace, seconds_left)]
        except Unavailable:
            return  # the next round tries again, and the bounds that are known go on holding
        bound = Bound(times.now() + SEARCHED_AFTER, min([began - SEARCHED_AFTER, *starts]))
        self._place.store_bounds([*known[-1:], bound])

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

    def _look_at(self, end: End, pace: Pace, looked: Looked) -> None:
        def turn() -> None:
            pace.turn(float("inf"))  # an examination that has begun is finished

        detail = {
            "executionArn": end.execution_arn,
            "stopDate": end.at.timestamp() * 1_000,
            "redriveCount": end.redrive_count,
        }
        found = examine(detail, self._sfn, self._locks, turn)
        if found is None:
            return
        disposition = found.bring_back(self._resender, self._letters)
        looked.resent += disposition == "resent"
        looked.dead_lettered += disposition == "dead-lettered"


def _each_in_time(pages: Iterable[Page], pace: Pace, seconds_left: Callable[[], float]) -> Iterator[Page]:
    """
    Fetch pages at a limited rate.

    Raises:
        Unavailable: there is no time for the next page.
    """
    rest = iter(pages)
    while True:
        if seconds_left() <= 0:
            raise Unavailable("There are more executions than this round has time to list.")
        pace.turn(seconds_left())
        try:
            page = next(rest)
        except StopIteration:
            return
        yield page


def _as_written(time: datetime) -> datetime:
    """Round a time to the precision of a stored place."""
    return times.from_text(times.to_text(time))
