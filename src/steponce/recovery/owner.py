"""
The owner of an open lock: does it live, and if not, what did it leave?

`settle_owner` is the one place that decides, for the workflow (by the function check_owner) and for
everything that watches over it, so that no two of them decide differently. No clock decides: the
execution is asked, then its history. Only plain Python that holds a lock cannot be asked: it has a lease.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from steponce.aws import times
from steponce.errors import OwnerHidden
from steponce.executions import (
    CANCELLED,
    EXECUTION_ENDS,
    YOUNG,
    Execution,
    describe_execution,
    execution_events,
    looking_at,
    read_input,
)
from steponce.locks.record import Failure, Lock
from steponce.locks.table import Locks
from steponce.workflow import (
    BEFORE_WORK,
    INIT_TIME,
    OUTCOME_UNKNOWN,
    OUTCOMES,
    TAKING_OVER,
    THROTTLED,
    TOO_LARGE,
)

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

_ENDED = ("Function.", "Runtime.", "Sandbox.", "Extension.")
"""Errors with which Lambda's own runtime says that an invocation is over, its time-out among them."""

_SAID_LIMIT = 1_000
"""Characters of a cancellation's cause in an intervention; a record keeps many of these, in 400 KB."""


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
    if not lock.is_of_an_execution:
        hold = when_outcome_unknown == "hold" or cancelled is not None
        return _settle_leased(lock, locks, by, hold=hold)
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


def lease_is_over(lock: Lock) -> bool:
    """
    Whether an owner that is no execution has had all the time that it asked for; False for an execution.

    Args:
        lock: A whole record: the open index does not hold leases. Without any lease it is waited for as for
            an execution that cannot be described. Of Powertools' own records nobody else decides the end.
    """
    if lock.is_of_an_execution or lock.is_of_powertools:
        return False
    young = times.to_text(times.from_text(lock.created) + YOUNG)
    return (lock.lease_until or young) < times.now_text()


def hold_after_lease(lock: Lock, locks: Locks, *, by: str) -> bool:
    """Leave a lock whose lease is over to a person, unless its owner has extended it or settled it."""
    cause = (
        f"The lease of {lock.locked_by} was over at {lock.lease_until} without a word from it, so nobody "
        "knows whether its work took effect. Look for its log, then complete or release the lock."
    )
    return locks.hold(lock, Failure(OUTCOME_UNKNOWN, cause), by=by, why="its lease is over")


def _settle_leased(lock: Lock, locks: Locks, by: str, *, hold: bool) -> Finding:
    """Nobody can ask this owner, so its lease decides; and that as it is now, since it may be extended."""
    record = locks.reread(lock)
    if record is None:
        return Finding("settled")
    if not lease_is_over(record):
        return Finding("alive")
    return Finding("settled", wrote=hold_after_lease(record, locks, by=by)) if hold else Finding("unknown")


def is_gone(lock: Lock, sfn: SFNClient, redrive_count: int) -> bool:
    """
    Whether an owner that was found dead is still as dead: not running, not redriven since.

    Of one with a lease TakeOverLock itself has made sure.
    """
    if not lock.is_of_an_execution:
        return True
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
    if owner is not None and owner.is_open and owner.owns(lock):
        return "alive", None
    history = None if owner is None else _History.read(sfn, lock.locked_by)
    if owner is None or history is None:
        return "alive" if _age(lock.created) < YOUNG else "unknown", None
    owned = owner.owns(lock)
    if owned is None and history.call_id is not None:
        owned = history.call_id == lock.call_id
    if owner.is_open:
        return "unknown" if owned is False else "alive", None
    if not history.is_whole(owner):
        return "alive", None
    if not owned:
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
        return read_input(self.last_input_text)

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
