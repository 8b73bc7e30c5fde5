"""
The owner of an open lock: does it live, and if not, what did it leave?

`settle_owner` is the one place that decides, for the workflow (by the function check_owner) and for
everything that watches over it, so that no two of them decide differently. No clock decides: the
execution is asked, then its history.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from botocore.exceptions import ClientError

from steponce.aws import times
from steponce.aws.errors import answering, error_code
from steponce.errors import OwnerHidden
from steponce.locks import Locks
from steponce.records import OUTCOME_UNKNOWN, Failure, Lock

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

BEFORE_WORK = frozenset(
    {
        "IsRequestPrepared",
        "PrepareRequest",
        "AcquireLock",
        "ReadLock",
        "IsLockHeld",
        "KeepLock",
        "IsTriedBefore",
        "StartCounting",
        "CountTry",
        "LockContended",
        "CheckOwner",
        "IsOwnerAlive",
        "AlreadyInProgress",
        "PayloadMismatch",
        "RecordUnreadable",
        "ReplayResult",
        "ReplayTooLarge",
        "DuplicateRefused",
        "ReleaseLock",
    }
)
"""
States of the holder in which nothing has happened. ReleaseLock says so of its work. Those from ReadLock on
are for whoever was refused the lock: AcquireLock's write took effect and its answer was lost, or a copy of it
arrived when the execution had gone on.
"""

OUTCOMES = frozenset({"CompleteRequest", "RecordFinalError", "RecordError"})
"""States that write an outcome. Their input holds what they meant to write."""

TOO_LARGE = frozenset({"ResultTooLarge", "States.DataLimitExceeded", "Function.ResponseSizeTooLarge"})
"""Errors of an execution whose work is done, with a result that it could not carry on to be recorded."""

THROTTLED = "Lambda.TooManyRequestsException"
"""The one error of the Lambda service that says that the function has not run."""

_ENDED = ("Function.", "Runtime.", "Sandbox.", "Extension.")
"""Errors with which Lambda's own runtime says that an invocation is over, its time-out among them."""

TAKING_OVER = frozenset({"TakeOverLock", "ConfirmTakeover", "IsTakeoverConfirmed", "HoldLock"})
"""
States of a holder that took over from another. Its own work has not begun, but it has not made sure that
the first owner was not redriven, and its successor could not: the outcome is unknown, not idle.
"""

EXECUTION_ENDS = frozenset({"ExecutionSucceeded", "ExecutionFailed", "ExecutionAborted", "ExecutionTimedOut"})

CANCELLED = "Cancelled"
"""
The error with which an execution is stopped so that its request shall not run again. Its cause says who
wanted that, and why.
"""

_SAID_LIMIT = 1_000
"""Characters of a cancellation's cause in an intervention; a record keeps many of these, in 400 KB."""

_UNKNOWN = ("ExecutionDoesNotExist", "InvalidArn")
_DENIED = ("AccessDeniedException", "KmsAccessDeniedException")
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

    @property
    def is_cancelled(self) -> bool:
        """Whether somebody stopped it so that its request shall not run again."""
        return self.status == "ABORTED" and self.failure.error == CANCELLED


@dataclass(frozen=True)
class Finding:
    """
    What became of a lock's owner.

    Args:
        verdict: See `Verdict`.
        redrive_count: How often the owner has been redriven.
        state: The state that it died in; None where it lives, or nobody can know.
        failure: As `state`: what ReleaseLock was about to write, else the execution's own error.
        wrote: Whether this look has changed the record.
        reason: Why nobody could look, where the verdict is `alive` for that; else empty.
    """

    verdict: Verdict
    redrive_count: int = 0
    state: str | None = None
    failure: Failure | None = None
    wrote: bool = False
    reason: str = ""

    @property
    def is_finalisation_failure(self) -> bool:
        """Whether the work was done, and its owner could not write that down."""
        return self.verdict == "unwritten" or (self.wrote and self.state in OUTCOMES)


def describe_execution(sfn: SFNClient, execution_arn: str, home: str | None = None) -> Execution | None:
    """
    Ask for an execution.

    Args:
        sfn: A client that may describe it.
        execution_arn: The execution.
        home: Any ARN of the region and account that `sfn` asks. What belongs to others it would call unknown.

    Returns:
        None if Step Functions does not know it (any more, or yet).

    Raises:
        OwnerHidden: it is not to be found from `home`, so nobody here knows whether it lives.
        Unavailable: throttled, or no answer; safe to ask again.
    """
    if home is not None and _is_elsewhere(execution_arn, home):
        raise OwnerHidden(
            f"The execution {execution_arn} is in another region or account, where nobody can ask for it "
            "from here. It counts as alive. Look there."
        )
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


def runs_on(state_machine_arn: str, execution_arn: str) -> bool:
    """Whether an execution is one of this state machine."""
    return execution_arn.startswith(f"{state_machine_arn.replace(':stateMachine:', ':execution:')}:")


def _is_elsewhere(execution_arn: str, home: str) -> bool:
    """Whether an execution has another partition, region or account; an owner without an ARN has none."""
    there, here = execution_arn.split(":"), home.split(":")
    return there[0] == "arn" and there[2:3] == ["states"] and [there[1], *there[3:5]] != [here[1], *here[3:5]]


@contextmanager
def looking_at(execution_arn: str) -> Iterator[None]:
    """Turn a missing permission inside the block into `OwnerHidden`: it says nothing of the execution."""
    try:
        yield
    except ClientError as error:
        if error_code(error) not in _DENIED:
            raise
        raise OwnerHidden(
            f"The execution {execution_arn} may not be looked at from here ({error_code(error)}). It counts "
            "as alive. Allow states:DescribeExecution and states:GetExecutionHistory on it, or look there."
        ) from error


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
    by: str,
    home: str | None = None,
    cancelled: Failure | None = None,
) -> Finding:
    """
    Find out what became of a lock's owner, and write down on its behalf what it could not.

    What a cancelled owner left is settled at once, since nobody is to run its work again: an outcome that it
    was about to write is written; else the request has FAILED as cancelled, finally if its work had not
    begun, and for a person to look at if it had.

    Args:
        lock: An INPROGRESS record, as it was read or as the open index has it. It is read again before
            anything is written, and the write is fenced by its callId, execution and attempt.
        sfn: A Step Functions client that may describe executions and read their histories.
        locks: The table that `lock` is from.
        work_timeout_seconds: Stopping an execution does not stop its Lambda: so long its work may go on.
        when_outcome_unknown: `hold` writes FAILED with OutcomeUnknown and leaves it to a person;
            `take-over` leaves it to whoever asks next.
        by: Who settles, for the record.
        home: The state machine whose lock this is to be, or any ARN of its region and account.
        cancelled: Settle a dead owner as if it had been stopped with this, though it died of something else.

    Raises:
        Unavailable: Step Functions or DynamoDB did not answer; safe to try again.
    """
    work_timeout = timedelta(seconds=work_timeout_seconds)
    try:
        with looking_at(lock.locked_by):
            owner = describe_execution(sfn, lock.locked_by, home)
            verdict, end = _look(lock, owner, sfn, work_timeout, cancelled)
    except OwnerHidden as hidden:
        # Who cannot ask must not conclude that it is dead.
        return Finding("alive", reason=str(hidden))
    wrote = False
    if end is not None and verdict == "settled":
        wrote = _write(lock, locks, lambda record: _write_outcome(record, locks, end, by))
    elif end is not None and end.cancelled is not None and verdict != "unwritten":
        idle, verdict = verdict == "idle", "settled"
        wrote = _write(lock, locks, lambda record: _write_cancelled(record, locks, end, idle, by))
    elif verdict == "unknown" and when_outcome_unknown == "hold":
        verdict = "settled"
        wrote = _write(lock, locks, lambda record: _hold(record, locks, by))
    redrives = owner.redrive_count if owner else 0
    if verdict == "unknown" and owner and end is not None and works_until(None, owner.closed, work_timeout):
        # It died taking over: the one before it may have been redriven, and have passed its fence just then.
        return Finding("alive", redrives)
    if end is None:
        return Finding(verdict, redrives, wrote=wrote)
    return Finding(verdict, redrives, end.state, end.failure, wrote)


def is_gone(lock: Lock, sfn: SFNClient, redrive_count: int) -> bool:
    """Whether an owner that was found dead is still as dead: not running, not redriven since."""
    try:
        with looking_at(lock.locked_by):
            owner = describe_execution(sfn, lock.locked_by)
    except OwnerHidden:
        return False
    return owner is None or (not owner.is_open and owner.redrive_count == redrive_count)


def works_until(failure: Failure | None, since: str | None, work_timeout: timedelta) -> str | None:
    """
    Until when work may still run whose execution has closed or has recorded an error.

    Neither stopping an execution nor an error of the service between ends a Lambda. Only its own word does:
    until then it may run for its whole time-out, counted from the moment at which it was last heard of. Not
    from its start: Step Functions may have sent it once more just before it gave up.

    Args:
        failure: What its execution recorded; None where it died without hearing of any end.
        since: When it closed, or recorded that (UTC text).
        work_timeout: How long the work may take.

    Returns:
        UTC text; None where the work is over for certain.
    """
    if since is None or (failure is not None and proves_the_end(failure.error)):
        return None
    until = times.after(times.from_text(since), (work_timeout + INIT_TIME).total_seconds())
    return times.to_text(until) if times.now() < until else None


def proves_the_end(error: str | None) -> bool:
    """
    Whether an error of the work says that its function is over, or never ran.

    What a function raises is named by a class, without a dot; Lambda's runtime has prefixes of its own. All
    others are somebody else's, who only stopped hearing of it: `States.Timeout`, `Lambda.ServiceException`,
    `Lambda.Unknown`, an error without a name, and our own for an outcome that nobody knows.
    """
    if not error or error in (CANCELLED, OUTCOME_UNKNOWN):
        return False
    return "." not in error or error == THROTTLED or error.startswith(_ENDED)


@dataclass(frozen=True)
class _End:
    """How an owner died: its last state, what that was given, the error; and that again, if `cancelled`."""

    state: str
    input: Mapping[str, Any]
    failure: Failure
    cancelled: Failure | None


def _look(
    lock: Lock,
    owner: Execution | None,
    sfn: SFNClient,
    work_timeout: timedelta,
    cancelled: Failure | None,
) -> tuple[Verdict, _End | None]:
    """The verdict, `settled` where the end holds the outcome; and the end, if it was this lock's owner's."""
    if owner is not None and owner.is_open and owner.input.get("callId") == lock.call_id:
        return "alive", None
    history = None if owner is None else _History.read(sfn, lock.locked_by)
    if owner is None or history is None:
        return "alive" if _age(lock.created) < YOUNG else "unknown", None
    call_id = owner.input.get("callId", history.call_id)
    if owner.is_open:
        return "alive" if call_id in (None, lock.call_id) else "unknown", None
    if not history.is_whole(owner):
        return "alive", None
    if call_id != lock.call_id:
        # Names come back after 90 days, or with a stack made anew: this one is a stranger.
        return "unknown", None
    end = _end(owner, history, cancelled)
    verdict = _verdict_by_end(end, owner, work_timeout)
    return verdict, None if verdict == "alive" else end


def _verdict_by_end(end: _End, owner: Execution, work_timeout: timedelta) -> Verdict:
    if end.state in BEFORE_WORK:
        return "idle"
    if end.state in OUTCOMES:
        return "settled"
    if end.state in TAKING_OVER:
        return "unknown"
    if owner.failure.error in TOO_LARGE:
        return "unwritten"
    if end.cancelled is not None:
        return "unknown"
    return "alive" if works_until(None, owner.closed, work_timeout) else "unknown"


def _end(owner: Execution, history: _History, cancelled: Failure | None) -> _End:
    state, given = history.last_state, history.last_input
    failure = Failure.from_catch(given.get("failure", {})) if state == "ReleaseLock" else owner.failure
    return _End(state, given, failure, owner.failure if owner.is_cancelled else cancelled)


def _write(lock: Lock, locks: Locks, write: Callable[[Lock], bool]) -> bool:
    """Write to a record, of which there may be but an old copy. If it has changed, it needs no help."""
    record = locks.reread(lock)
    return record is not None and write(record)


def _write_outcome(lock: Lock, locks: Locks, end: _End, by: str) -> bool:
    """Write what an execution meant to write when it died."""
    why = f"{lock.locked_by} died in {end.state}; this is what it meant to write"
    if end.state == "CompleteRequest":
        result = json.dumps(end.input["work"]["result"], separators=(",", ":"), ensure_ascii=False)
        return locks.complete(lock, result, by=by, why=why)
    meant = Failure.from_catch(end.input["failure"])
    write = locks.fail if end.state == "RecordFinalError" else locks.hold
    return write(lock, meant, by=by, why=why)


def _write_cancelled(lock: Lock, locks: Locks, end: _End, idle: bool, by: str) -> bool:
    said = (end.cancelled and end.cancelled.cause) or "Nobody said why."
    # The failure is the next attempt's; an intervention stays.
    why = f"{lock.locked_by} was cancelled in {end.state} ({said[:_SAID_LIMIT]})"
    if idle:
        return locks.fail(lock, Failure(CANCELLED, said), by=by, why=why)
    cause = (
        f"{said.rstrip('.')}. The execution {lock.locked_by} was in its work, which may have taken effect. "
        "Look, then complete or release the lock."
    )
    return locks.hold(lock, Failure(CANCELLED, cause), by=by, why=why)


def _hold(lock: Lock, locks: Locks, by: str) -> bool:
    cause = (
        f"The execution {lock.locked_by} died during its work, so nobody knows whether it took effect. "
        "Look, then complete or release the lock."
    )
    return locks.hold(lock, Failure(OUTCOME_UNKNOWN, cause), by=by, why="its outcome is unknown")


@dataclass
class _History:
    """What an execution's events tell: the last state it entered, with its input, and its callId."""

    last_state: str = ""
    last_input_text: str = "{}"
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

    @property
    def last_input(self) -> Mapping[str, Any]:
        """Parsed when asked for: thousands of states may have had 256 KB each."""
        return _object(self.last_input_text)

    def is_whole(self, owner: Execution) -> bool:
        """Whether the end can be seen already: histories are eventually consistent, too."""
        return self.last_event in EXECUTION_ENDS and self.redrives == owner.redrive_count

    def _add(self, event: HistoryEventTypeDef) -> None:
        self.last_event = event["type"]
        self.redrives += event["type"] == "ExecutionRedriven"
        entered = event.get("stateEnteredEventDetails")
        if entered is not None:
            self.last_state, self.last_input_text = entered["name"], entered.get("input", "{}")
            if self.last_state == "AcquireLock" and self.call_id is None:
                self.call_id = self.last_input.get("callId")


def _age(time: str | None) -> timedelta:
    return times.now() - times.from_text(time) if time else timedelta.max
