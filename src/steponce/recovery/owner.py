"""
Decides whether the owner of an open lock is dead, and records the outcome that it left.

`settle_owner` makes this decision for everyone: the workflow (through the function check_owner), the status
rule, the schedule and the commands. So they never disagree. It asks Step Functions for the execution and its
history. Time counts in three cases only. The work of an execution that died in it counts as alive for its
time-out. An execution that cannot be found counts as alive for 15 minutes. A guard's lock has no execution to
ask; its lease decides.

If the owner's work was another execution, which it had started and waited for, that child is asked, too. A
child that runs is a live owner, and its end is the end of the work.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

from steponce.aws import times
from steponce.errors import OwnerHidden
from steponce.executions import (
    YOUNG,
    Execution,
    OpenWork,
    describe_execution,
    find_envelope,
    looking_at,
    runs_on,
)
from steponce.failure import Failure
from steponce.locks.record import Lock
from steponce.locks.table import Locks
from steponce.recovery.child import Child, look_at_child
from steponce.recovery.history import History
from steponce.recovery.leases import hold_after_lease, lease_is_over
from steponce.recovery.outcomes import End, hold_unknown, is_there, write_cancelled, write_outcome
from steponce.recovery.work import longest_work, works_until
from steponce.workflow import BEFORE_WORK, INPROGRESS, OUTCOMES, RELEASE_LOCK, TAKING_OVER, TOO_LARGE, WORK

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient

Verdict = Literal["alive", "settled", "idle", "unknown", "unwritten"]
"""
What is known of an owner:
    alive      it runs, or its work may still run
    settled    it is dead, and its outcome is on record
    idle       it died before its work began, so nothing happened
    unknown    it died during its work, which may have taken effect
    unwritten  its work is done, but no record can hold the result
"""

WhenOutcomeUnknown = Literal["hold", "take-over"]


@dataclass(frozen=True)
class Finding:
    """
    What `settle_owner` found.

    Args:
        verdict: See `Verdict`.
        redrive_count: How often the owner has been redriven.
        state: The state that it died in. None while it is alive, or if its history does not tell.
        failure: The failure that ReleaseLock was about to write, else the execution's own. None as `state`.
        wrote: Whether this call changed the record.
        reason: Why the owner could not be described. Then the verdict is `alive`. Else empty.
    """

    verdict: Verdict
    redrive_count: int = 0
    state: str | None = None
    failure: Failure | None = None
    wrote: bool = False
    reason: str = ""

    @property
    def is_finalisation_failure(self) -> bool:
        """Whether the work was done, and its owner died before it could record the outcome."""
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
    Find out whether a lock's owner is dead. If it is, record its outcome on its behalf.

    The lock of a cancelled owner is settled at once, because its work must not run again. If the owner was
    about to write an outcome, that outcome is written. Otherwise the request becomes FAILED as cancelled:
    finally if its work had not begun, and held for a person if it had.

    The fence of every write: the record must still have the owner's callId, execution and attempt, and be
    INPROGRESS. So an owner that finished or was redriven meanwhile keeps its own outcome.

    Args:
        lock: An INPROGRESS record, as it was read or as the open index has it. It is read again before
            anything is written.
        sfn: A Step Functions client that may describe executions and read their histories.
        locks: The table that `lock` is from.
        work_timeout_seconds: How long the work of this machine may run after its execution was stopped.
            Stopping an execution does not stop its Lambda. A record that says longer is believed.
        when_outcome_unknown: `hold` writes FAILED with OutcomeUnknown, for a person to settle. `take-over`
            writes nothing, so that the next request can take the lock over.
        by: The name that goes into the record's interventions.
        home: The ARN of the state machine that the lock belongs to, or any ARN of its region and account.
        cancelled: Treat a dead owner as cancelled with this failure, whatever it died of.

    Raises:
        Unavailable: Step Functions or DynamoDB did not answer; safe to try again.
    """
    if not lock.is_of_an_execution:
        hold = when_outcome_unknown == "hold" or cancelled is not None
        return _settle_leased(lock, locks, by, hold=hold)
    try:
        with looking_at(lock.locked_by):
            owner = describe_execution(sfn, lock.locked_by, home)
        work_timeout = _work_timeout(lock, owner, locks, work_timeout_seconds, home, cancelled)
        with looking_at(lock.locked_by):
            verdict, end = _look(lock, owner, sfn, work_timeout, cancelled)
    except OwnerHidden as hidden:
        # No permission to look does not show that the owner is dead.
        return Finding("alive", reason=str(hidden))
    wrote = False
    if end is not None and verdict == "settled":
        wrote = _write(lock, locks, lambda record: write_outcome(record, locks, end, by))
    elif end is not None and end.cancelled is not None and verdict != "unwritten":
        idle, verdict = verdict == "idle", "settled"
        wrote = _write(lock, locks, lambda record: write_cancelled(record, locks, end, idle, by))
    elif verdict == "unknown" and when_outcome_unknown == "hold":
        verdict = "settled"
        wrote = _write(lock, locks, lambda record: hold_unknown(record, locks, by))
    redrives = _redrives(owner, end.child if end else None)
    if verdict == "unknown" and owner and end is not None and works_until(None, owner.closed, work_timeout):
        # It died taking over. The owner before it may have been redriven, and have just passed its fence.
        return Finding("alive", redrives)
    if end is None:
        return Finding(verdict, redrives, wrote=wrote)
    return Finding(verdict, redrives, end.state, end.failure, wrote)


def _settle_leased(lock: Lock, locks: Locks, by: str, *, hold: bool) -> Finding:
    """Settle a guard's lock by its lease. It is read again, because the guard may have extended it."""
    record = locks.reread(lock)
    if record is None:
        return Finding("settled")
    if not lease_is_over(record):
        return Finding("alive")
    return Finding("settled", wrote=hold_after_lease(record, locks, by=by)) if hold else Finding("unknown")


def is_gone(lock: Lock, sfn: SFNClient, redrive_count: int) -> bool:
    """
    Whether an owner that was found dead is still dead: it does not run, and was not redriven since.

    Always True for a guard's lock: the condition of TakeOverLock has compared its lease.
    """
    if not lock.is_of_an_execution:
        return True
    try:
        with looking_at(lock.locked_by):
            owner = describe_execution(sfn, lock.locked_by)
            if owner is None or owner.owns(lock) is False:
                return True  # forgotten, or another execution has its name now, as this one may
            if owner.is_open:
                return False
            history = History.read(sfn, lock.locked_by)
            child = None if history is None else _child(lock, history, sfn)
    except OwnerHidden:
        return False
    return _redrives(owner, child) == redrive_count and (child is None or child.state != "running")


@dataclass(frozen=True)
class Left:
    """
    What an owner may have left running.

    Args:
        child: The execution that it has started for its work. None if there is none, or if Step Functions
            does not know it.
        has_open_tasks: Whether a task of its work may go on, whatever error the work ended with.
        is_visible: Whether the whole history can be seen. If not, it may have started more.
    """

    child: Child | None = None
    has_open_tasks: bool = False
    is_visible: bool = True

    @property
    def done_by(self) -> str | None:
        """The execution that is the whole work, and has succeeded. None if there is none."""
        return self.child.arn if self.child is not None and self.child.state == "succeeded" else None

    def open_work(self, lock: Lock, owner: Execution | None, deployed_seconds: float) -> OpenWork | None:
        """
        What may still run of the work. Nothing does if the execution that is the work has succeeded.

        Args:
            lock: The lock, as it was read. Its failure may prove that the work has ended.
            owner: As for `left_by`.
            deployed_seconds: The time-out that the work has now. A record that says longer is believed.
        """
        child = self.child
        if child is not None and child.state == "running":
            return OpenWork(execution_arn=child.arn)
        if self.done_by is not None:
            return None
        since = lock.actual_completion if owner is None else owner.closed
        if child is not None:  # it may have ended long after its owner
            since = max(since or "", child.execution.closed or "")
        failure = None if self.has_open_tasks else lock.failure
        until = works_until(failure, since, longest_work(lock, deployed_seconds))
        return None if until is None else OpenWork(until)


def left_by(lock: Lock, owner: Execution | None, sfn: SFNClient) -> Left:
    """
    What a lock's owner has left of its work, by its history.

    Args:
        lock: The lock, as it was read.
        owner: Its owner, which is closed. None if Step Functions does not know it, or if another execution
            has its name now.
        sfn: As for `settle_owner`.

    Raises:
        OwnerHidden: it or its child may not be looked at from here.
        Unavailable: Step Functions did not answer; safe to try again.
    """
    if not lock.is_of_an_execution:
        return Left()
    with looking_at(lock.locked_by):
        history = History.read(sfn, lock.locked_by)
    if history is None:
        return Left(is_visible=_age(lock.created) >= YOUNG)
    if history.call_id not in (None, lock.call_id):
        return Left()  # it is that of the execution which has its name now
    child = None if history.child_arn is None else look_at_child(lock, history.child_arn, sfn)
    return Left(child, history.open_tasks > 0, owner is None or history.is_whole(owner))


@dataclass(frozen=True)
class Work:
    """
    What is known of the work of a closed owner whose lock is open.

    Args:
        open: What may still run. None if nothing does, or if that is not known.
        done_by: The execution that is the whole work, and has succeeded. None if there is none.
        child_arn: The execution in which an owner without an outcome has left its work. None if in none.
    """

    open: OpenWork | None = None
    done_by: str | None = None
    child_arn: str | None = None


def work_of(lock: Lock, owner: Execution | None, sfn: SFNClient, deployed_seconds: float = 0) -> Work:
    """
    What is known of the work of a closed owner, whether it has recorded a failure or nothing.

    The commands of operators refuse a lock while this says that its work may run. Arguments and errors as
    for `unsettled_work`.
    """
    if not lock.waits_for_person:
        return _unsettled(lock, owner, sfn, deployed_seconds)
    if owner is not None and owner.owns(lock) is False:
        owner = None  # another execution has its name now
    is_known = lock.work_timeout_seconds is not None or deployed_seconds > 0
    if not lock.is_of_an_execution or (owner is not None and owner.is_open):
        return Work()
    try:
        left = left_by(lock, owner, sfn)
    except OwnerHidden as hidden:
        return Work(OpenWork(hidden=str(hidden)))
    work = left.open_work(lock, owner, deployed_seconds)
    if work is not None and work.execution_arn is None and not is_known:
        work = None
    return Work(work, left.done_by)


def unsettled_work(
    lock: Lock, owner: Execution | None, sfn: SFNClient, deployed_seconds: float = 0
) -> OpenWork | None:
    """
    What may still run of the work of a dead owner that has recorded nothing.

    A function may run for longer if a deployment has raised the work's time-out since.

    Args:
        lock: The lock, as it was read.
        owner: Its owner. None if Step Functions does not know it.
        sfn: As for `settle_owner`.
        deployed_seconds: The time-out that the work has now, if it is known. A record that says longer is
            believed.

    Returns:
        None if nothing runs, or that is not known.

    Raises:
        Unavailable: Step Functions did not answer; safe to try again.
    """
    return _unsettled(lock, owner, sfn, deployed_seconds).open


def _unsettled(lock: Lock, owner: Execution | None, sfn: SFNClient, deployed_seconds: float) -> Work:
    """As `work_of`, for an owner that has recorded nothing."""
    is_known = lock.work_timeout_seconds is not None or deployed_seconds > 0
    if lock.status != INPROGRESS or owner is None or owner.is_open or not is_known:
        return Work()
    try:
        with looking_at(lock.locked_by):
            history = History.read(sfn, lock.locked_by)
            child = None if history is None else _child(lock, history, sfn)
    except OwnerHidden as hidden:
        return Work() if owner.owns(lock) is False else Work(OpenWork(hidden=str(hidden)))
    if history is None or not history.is_whole(owner):
        return Work()
    owned = owner.owns(lock)
    if not (history.call_id == lock.call_id if owned is None else owned):
        return Work()
    child_arn = history.child_arn if _has_child(history) else None
    work_timeout, end = longest_work(lock, deployed_seconds), _end(owner, history, None, child)
    if _verdict_by_end(end, owner, work_timeout) != "alive":
        return Work(child_arn=child_arn)
    if child is not None and child.state == "running":
        return Work(OpenWork(execution_arn=child.arn), child_arn=child_arn)
    until = works_until(None, child.execution.closed if child else owner.closed, work_timeout)
    return Work(None if until is None else OpenWork(until), child_arn=child_arn)


def _work_timeout(
    lock: Lock,
    owner: Execution | None,
    locks: Locks,
    deployed_seconds: float,
    home: str | None,
    cancelled: Failure | None,
) -> timedelta:
    """
    How long the work may run after its execution was stopped.

    The record of a closed owner is read again where it does not say it, because the open index leaves it out.
    What is deployed concerns the owners of this machine. For another machine on the table the record decides.
    """
    is_asked = owner is not None and not owner.is_open and cancelled is None
    record = locks.reread(lock) if is_asked and lock.work_timeout_seconds is None else None
    if home is not None and runs_on(home, lock.locked_by):
        return longest_work(record or lock, deployed_seconds)
    return (record or lock).work_timeout(deployed_seconds)


def _look(
    lock: Lock,
    owner: Execution | None,
    sfn: SFNClient,
    work_timeout: timedelta,
    cancelled: Failure | None,
) -> tuple[Verdict, End | None]:
    """
    The verdict, and how the owner ended.

    `settled` means here that the end holds the outcome. The end is None if the owner is alive, or if the
    execution that was found is not this lock's owner.
    """
    if owner is not None and owner.is_open:
        call_id = owner.input.get("callId") or find_envelope(sfn, lock.locked_by).get("callId")
        return "alive" if call_id in (None, lock.call_id) else "unknown", None
    history = None if owner is None else History.read(sfn, lock.locked_by)
    if owner is None or history is None:
        return "alive" if _age(lock.created) < YOUNG else "unknown", None
    owned = owner.owns(lock)
    if owned is None and history.call_id is not None:
        owned = history.call_id == lock.call_id
    if not history.is_whole(owner):
        return "alive", None
    if not owned:
        # A name can be used again after 90 days, or in a new stack. This execution is not the owner.
        return "unknown", None
    child = _child(lock, history, sfn)
    end = _end(owner, history, cancelled, child)
    if child is None and _has_child(history) and end.cancelled is None and _age(owner.closed) < YOUNG:
        return "alive", None  # it may have been started a moment before its owner died
    verdict = _verdict_by_end(end, owner, work_timeout)
    if verdict == "idle" and owner.was_over_at(lock.taken_at) and _age(lock.created) < YOUNG:
        return "alive", None  # it was redriven, and took the lock after this end
    return verdict, None if verdict == "alive" else end


def _verdict_by_end(end: End, owner: Execution, work_timeout: timedelta) -> Verdict:
    if end.state in BEFORE_WORK:
        return "idle"
    if end.state in OUTCOMES and is_there(end):
        return "settled"
    if end.state in OUTCOMES:
        return "unwritten" if end.state == "CompleteRequest" else "unknown"
    if end.state in TAKING_OVER:
        return "unknown"
    if owner.failure.error in TOO_LARGE:
        return "unwritten"
    if end.child is not None and end.child.state == "succeeded":
        return "settled"
    if end.cancelled is not None:
        return "unknown"
    if end.child is not None:
        return _verdict_by_child(end.child, work_timeout)
    return "alive" if works_until(None, owner.closed, work_timeout) else "unknown"


def _verdict_by_child(child: Child, work_timeout: timedelta) -> Verdict:
    """The verdict on an owner that died while it waited for its child, which has not succeeded."""
    if child.state == "running":
        return "alive"
    if child.state == "failed":
        return "settled"
    return "alive" if works_until(None, child.execution.closed, work_timeout) else "unknown"


def _has_child(history: History) -> bool:
    """Whether an owner died while it waited for an execution that it had started, or was about to start."""
    return history.last_state == WORK and history.child_arn is not None


def _child(lock: Lock, history: History, sfn: SFNClient) -> Child | None:
    """That execution. None if there is none, or if Step Functions does not know it."""
    if history.child_arn is None or not _has_child(history):
        return None
    return look_at_child(lock, history.child_arn, sfn)


def _redrives(owner: Execution | None, child: Child | None) -> int:
    """How often the owner and its child were redriven."""
    return (owner.redrive_count if owner else 0) + (child.execution.redrive_count if child else 0)


def _end(owner: Execution, history: History, cancelled: Failure | None, child: Child | None) -> End:
    state, given = history.last_state, history.last_input
    failure = Failure.from_catch(given.get("failure", {})) if state == RELEASE_LOCK else owner.failure
    return End(state, given, failure, owner.failure if owner.is_cancelled else cancelled, child)


def _write(lock: Lock, locks: Locks, write: Callable[[Lock], bool]) -> bool:
    """Write to the record as it is now, unless it has changed in what the fence compares."""
    record = locks.reread(lock)
    return record is not None and write(record)


def _age(time: str | None) -> timedelta:
    return times.now() - times.from_text(time) if time else timedelta.max
