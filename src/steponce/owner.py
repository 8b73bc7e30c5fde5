"""
The owner of an open lock: does it live, and if not, what did it leave?

`settle_owner` is the one place that decides, for the workflow (by the function check_owner) and for
everything that watches over it, so that no two of them decide differently. No clock decides: the
execution is asked, then its history.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from botocore.exceptions import ClientError

from steponce import times
from steponce.aws import answering, error_code
from steponce.records import OUTCOME_UNKNOWN, Failure, Lock, Locks

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient
    from mypy_boto3_stepfunctions.type_defs import HistoryEventTypeDef

Verdict = Literal["alive", "settled", "idle", "unknown", "unwritten"]
"""
What is known of an owner:
    alive      it runs, or its work may still run
    settled    it is dead, and how it ended is on record now
    idle       it died before its work began; nothing happened
    unknown    it died during its work; it may have taken effect or not
    unwritten  its work is done, but no record can hold the result
"""

WhenOutcomeUnknown = Literal["hold", "take-over"]

YOUNG = timedelta(minutes=15)
"""So long an execution may be too new to be described: DescribeExecution is eventually consistent."""

INIT_TIME = timedelta(seconds=10)
"""A Lambda's time-out counts from after its start-up, which may take so long. DoWork allows for it too."""

BEFORE_WORK = frozenset({"IsRequestPrepared", "PrepareRequest", "AcquireLock", "ReleaseLock"})
"""States of the holder in which nothing has happened. ReleaseLock says so of its work."""

OUTCOMES = frozenset({"CompleteRequest", "RecordFinalError", "RecordError"})
"""States that write an outcome. Their input holds what they meant to write."""

TOO_LARGE = frozenset({"ResultTooLarge", "States.DataLimitExceeded", "Function.ResponseSizeTooLarge"})
"""Errors of an execution whose work is done, with a result that it could not carry on to be recorded."""

TAKING_OVER = frozenset({"TakeOverLock", "ConfirmTakeover", "IsTakeoverConfirmed", "HoldLock"})
"""
States of a holder that took over from another. Its own work has not begun, but it has not made sure that
the first owner was not redriven, and its successor could not: the outcome is unknown, not idle.
"""


EXECUTION_ENDS = frozenset({"ExecutionSucceeded", "ExecutionFailed", "ExecutionAborted", "ExecutionTimedOut"})


_UNKNOWN = ("ExecutionDoesNotExist", "InvalidArn")
_NAMELESS = {"ABORTED": "ExecutionAborted", "TIMED_OUT": "States.Timeout"}


@dataclass(frozen=True)
class Execution:
    """What DescribeExecution says of the execution that holds a lock."""

    status: str
    redrive_count: int
    closed: str | None
    input: Mapping[str, Any]
    failure: Failure

    @property
    def is_open(self) -> bool:
        return self.status in ("RUNNING", "PENDING_REDRIVE")


def describe_execution(sfn: SFNClient, execution_arn: str) -> Execution | None:
    """
    Ask for an execution.

    Returns:
        None if Step Functions does not know it (any more, or yet).

    Raises:
        Unavailable: throttled, or no answer; safe to ask again.
    """
    try:
        with answering("Step Functions"):
            answer = sfn.describe_execution(executionArn=execution_arn)
    except ClientError as error:
        if error_code(error) in _UNKNOWN:
            return None
        raise
    closed = answer.get("stopDate")
    return Execution(
        status=answer["status"],
        redrive_count=answer.get("redriveCount", 0),
        closed=None if closed is None else times.to_text(closed),
        input=_object(answer.get("input", "{}")),
        failure=Failure(answer.get("error") or _NAMELESS.get(answer["status"]), answer.get("cause")),
    )


def execution_events(sfn: SFNClient, execution_arn: str) -> list[HistoryEventTypeDef] | None:
    """
    Read an execution's history to its end, which may lag behind what has happened.

    Returns:
        None if Step Functions does not know the execution, any more or yet.

    Raises:
        Unavailable: throttled, or no answer; safe to ask again.
    """
    try:
        with answering("Step Functions"):
            pages = sfn.get_paginator("get_execution_history").paginate(executionArn=execution_arn)
            return [event for page in pages for event in page["events"]]
    except ClientError as error:
        if error_code(error) in _UNKNOWN:
            return None
        raise


def _object(text: str) -> Mapping[str, Any]:
    """An execution's input, which is any JSON; ours are objects."""
    found = json.loads(text)
    return found if isinstance(found, dict) else {}


def settle_owner(
    lock: Lock,
    sfn: SFNClient,
    locks: Locks,
    *,
    work_timeout_seconds: float,
    when_outcome_unknown: WhenOutcomeUnknown,
) -> tuple[Verdict, int]:
    """
    Find out what became of a lock's owner, and write down on its behalf what it could not.

    Args:
        lock: The record as it was read, INPROGRESS. Every write is fenced by its callId and execution.
        sfn: A Step Functions client that may describe executions and read their histories.
        locks: The table that `lock` is from.
        work_timeout_seconds: Stopping an execution does not stop its Lambda: so long its work may go on.
        when_outcome_unknown: `hold` writes FAILED with OutcomeUnknown and leaves it to a person;
            `take-over` leaves it to whoever asks next.

    Returns:
        The verdict, and how often the owner has been redriven.

    Raises:
        Unavailable: Step Functions or DynamoDB did not answer; safe to try again.
    """
    owner = describe_execution(sfn, lock.locked_by)
    verdict = _verdict(lock, owner, sfn, locks, timedelta(seconds=work_timeout_seconds))
    if verdict == "unknown" and when_outcome_unknown == "hold":
        _hold(lock, locks)
        verdict = "settled"
    return verdict, owner.redrive_count if owner else 0


def is_gone(lock: Lock, sfn: SFNClient, redrive_count: int) -> bool:
    """Whether an owner that was found dead is still as dead: not running, not redriven since."""
    owner = describe_execution(sfn, lock.locked_by)
    return owner is None or (not owner.is_open and owner.redrive_count == redrive_count)


def _verdict(
    lock: Lock, owner: Execution | None, sfn: SFNClient, locks: Locks, work_timeout: timedelta
) -> Verdict:
    if owner is not None and owner.is_open and owner.input.get("callId") == lock.call_id:
        return "alive"
    history = None if owner is None else _History.read(sfn, lock.locked_by)
    if owner is None or history is None:
        return "alive" if _age(lock.created) < YOUNG else "unknown"
    call_id = owner.input.get("callId", history.call_id)
    if owner.is_open:
        return "alive" if call_id in (None, lock.call_id) else "unknown"
    if not history.is_whole(owner):
        return "alive"
    if call_id != lock.call_id:
        # Names come back after 90 days, or with a stack made anew: this one is a stranger.
        return "unknown"
    return _verdict_by_state(lock, owner, history, locks, work_timeout)


def _verdict_by_state(
    lock: Lock, owner: Execution, history: _History, locks: Locks, work_timeout: timedelta
) -> Verdict:
    state = history.last_state
    if state in BEFORE_WORK:
        return "idle"
    if state in OUTCOMES:
        _write_outcome(lock, locks, state, history.last_input)
        return "settled"
    if state in TAKING_OVER:
        return "unknown"
    if owner.failure.error in TOO_LARGE:
        return "unwritten"
    return "alive" if _age(owner.closed) < work_timeout + INIT_TIME else "unknown"


def _write_outcome(lock: Lock, locks: Locks, state: str, meant: Mapping[str, Any]) -> None:
    """Write what an execution meant to write when it died. If the record has changed, it needs no help."""
    if state == "CompleteRequest":
        locks.complete(lock, json.dumps(meant["work"]["result"], separators=(",", ":"), ensure_ascii=False))
    else:
        locks.fail(lock, Failure.from_catch(meant["failure"]), final=state == "RecordFinalError")


def _hold(lock: Lock, locks: Locks) -> None:
    cause = (
        f"The execution {lock.locked_by} died during its work, so nobody knows whether it took effect. "
        "Look, then complete or release the lock."
    )
    locks.fail(lock, Failure(OUTCOME_UNKNOWN, cause), final=False)


@dataclass
class _History:
    """What an execution's events tell: the last state it entered, with its input, and its callId."""

    last_state: str = ""
    last_input: Mapping[str, Any] = field(default_factory=dict)
    call_id: str | None = None
    last_event: str = ""
    redrives: int = 0

    @classmethod
    def read(cls, sfn: SFNClient, execution_arn: str) -> _History | None:
        events = execution_events(sfn, execution_arn)
        if events is None:
            return None
        history = cls()
        for event in events:
            history._add(event)
        return history

    def is_whole(self, owner: Execution) -> bool:
        """Whether the end can be seen already: histories are eventually consistent, too."""
        return self.last_event in EXECUTION_ENDS and self.redrives == owner.redrive_count

    def _add(self, event: HistoryEventTypeDef) -> None:
        self.last_event = event["type"]
        self.redrives += event["type"] == "ExecutionRedriven"
        entered = event.get("stateEnteredEventDetails")
        if entered is not None:
            self.last_state, self.last_input = entered["name"], json.loads(entered.get("input", "{}"))
        if self.last_state == "AcquireLock" and self.call_id is None:
            self.call_id = self.last_input.get("callId")


def _age(time: str | None) -> timedelta:
    return times.now() - times.from_text(time) if time else timedelta.max
