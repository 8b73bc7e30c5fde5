"""
Cancels a request, so that it does not run again: it stops the execution, and records the failure `Cancelled`.

The record prevents further runs. An execution that has not taken its lock, one that was started by hand, and
a message that is resent all find `Cancelled` there. The record is written before the execution is stopped, so
a command that dies in between has already prevented further runs.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

from steponce.aws import times
from steponce.aws.errors import answering
from steponce.errors import OwnerHidden, RecordChanged, Refused, Unavailable
from steponce.executions import CANCELLATION, CANCELLED, Execution
from steponce.failure import Failure
from steponce.locks.record import Lock, ttl_of
from steponce.next_step import NextStep
from steponce.operator.cancellable import Running, is_cancelled, is_free, step_for
from steponce.recovery.owner import settle_owner
from steponce.request.machine import Machine, is_owner_open
from steponce.request.newest import running_without_lock
from steponce.workflow import CAUSE_LIMIT, FAILED, INPROGRESS

_SEEN_WITHIN_SECONDS = 15.0
"""How long `cancel` waits until the end of the stopped execution is visible."""


@dataclass(frozen=True)
class Cancelled:
    """
    What `cancel` has done.

    Args:
        lock: The lock record afterwards. None if there is none.
        ended_by_itself: Whether the execution ran when the operator looked, and ended before it was stopped.
    """

    lock: Lock | None
    ended_by_itself: bool = False


def cancel(machine: Machine, running: Running, *, by: str, why: str) -> Cancelled:
    """
    Cancel a request, and settle the lock that it held by the same rules as the monitor.

    If the request has no record, or a free one, the record becomes FAILED with `Cancelled`. That is the
    answer for every later request with its lock token. A lock that another request holds is not changed.

    The fences: a free record is replaced only if it is still free, and an owner's lock is settled only while
    that owner holds it. So a request that runs again keeps its lock.

    Raises:
        Refused: its work is done, and a person must record its result.
        RecordChanged: it ended by itself and this command has recorded nothing, somebody else stopped it, or
            it runs again or has run.
        OwnerHidden: the execution has ended, and how its lock's owner ended may not be looked at.
            Nobody else has settled the lock meanwhile.
        Unavailable: no answer, or its end is not visible yet; the same command is safe to try again.

    Source: StopExecution API reference (an execution that is closed stays as it is).
    """
    stopped = Failure(CANCELLED, f"{by}: {why}"[:CAUSE_LIMIT])
    _answer(machine, running, by=by, why=why)
    if running.is_open:
        with answering("Step Functions"):
            machine.sfn.stop_execution(
                executionArn=running.execution_arn, error=CANCELLED, cause=str(stopped.cause)
            )
    done = _settled(machine, running, stopped, by=by, why=why)
    if not running.is_open and done.lock is not None and _has_run(machine, running, done.lock):
        raise RecordChanged(
            f"Request {running.request_id!r} has run since you looked: its record is {done.lock.status}, of "
            f"{done.lock.locked_by}. Look again.",
            next_steps=[step_for(machine, running, "show request")],
        )
    return done


def _settled(machine: Machine, running: Running, stopped: Failure, *, by: str, why: str) -> Cancelled:
    """Wait until the end of the execution can be seen, and settle what it leaves. Raises as `cancel`."""
    by_itself, hidden = False, None
    for _ in _looks():
        execution = machine.describe_arn(running.execution_arn)
        if running.is_open if execution is None else execution.is_open:
            continue  # its end cannot be seen yet
        if running.is_open and execution is not None and not _ended_so(execution, stopped):
            by_itself = True
            _expect_own_answer(machine, running, execution, by=by, why=why)
        try:
            is_settled = _is_settled(machine, running, stopped, by)
        except OwnerHidden as error:
            hidden = error
            continue  # the stack may look, and settles the lock meanwhile
        if is_settled and _answer(machine, running, by=by, why=why):
            lock = _lock_of(machine, running)
            if running.lock_token is None or not is_free(lock):
                return Cancelled(lock, by_itself)  # else another request has released it just now
    raise hidden or _unseen(running)


def _answer(machine: Machine, running: Running, *, by: str, why: str) -> bool:
    """
    Record that a request is cancelled, unless another outcome is on record or another request holds its lock.

    Returns:
        Whether this is done. False while a dead execution's lock must be settled first.

    Raises:
        RecordChanged: another attempt of it runs.
    """
    if running.lock_token is None:
        return True
    for _ in range(3):
        lock = machine.locks.get(running.lock_token)
        if lock is not None and not is_free(lock):
            return not _is_left(machine, running, lock)
        redriven = running_without_lock(machine, lock, running.request_id, running.execution_arn)
        if redriven is not None:
            raise _runs_again(machine, running, redriven[1])
        if machine.locks.cancel(lock, _record_of(machine, running, lock), by=by, why=why):
            return True
    raise RecordChanged(
        f"The record {running.lock_token!r} keeps changing, so the request is not cancelled. Look again.",
        next_steps=[step_for(machine, running, "show request")],
    )


def _has_run(machine: Machine, running: Running, lock: Lock) -> bool:
    """Whether a record is that of an attempt of this request which began after the operator looked."""
    seen = running.lock.call_id if running.lock else None
    return machine.made(lock, running.request_id) and lock.call_id != seen and not is_cancelled(lock)


def _is_left(machine: Machine, running: Running, lock: Lock) -> bool:
    """Whether an open lock belongs to this request, and its owner is dead or about to be."""
    if lock.status != INPROGRESS or not machine.made(lock, running.request_id):
        return False
    if lock.locked_by == running.execution_arn:
        return True
    try:
        alive = is_owner_open(machine.owner(lock), lock)
    except OwnerHidden:
        return False
    if alive:
        raise _runs_again(machine, running, lock.locked_by)
    return True


def _runs_again(machine: Machine, running: Running, execution_arn: str) -> RecordChanged:
    return RecordChanged(
        f"Request {running.request_id!r} runs again, as {execution_arn}, and is not cancelled. Cancel that "
        "one.",
        next_steps=[step_for(machine, running, "cancel request")],
    )


def _record_of(machine: Machine, running: Running, lock: Lock | None) -> Lock:
    """The record of a cancelled request. It replaces a free one."""
    now = times.now()
    expires_at = times.to_text(times.after(now, machine.rules.retention_seconds))
    return Lock(
        lock_token=str(running.lock_token),
        status=FAILED,
        locked_by=running.execution_arn,
        call_id=str(running.given.get("callId") or uuid.uuid4().hex),
        request_id=running.request_id,
        attempt=lock.attempt if lock else 1,
        created=times.to_text(now),
        expected_completion=times.to_text(now),
        payload_hash=machine.payload_hash_of(running.given) or "unknown",
        actual_completion=times.to_text(now),
        failure=CANCELLATION,
        expires_at=expires_at,
        ttl=ttl_of(expires_at),
        interventions=lock.interventions if lock else (),
        execution_name=running.execution_arn.rpartition(":")[2],
    )


def _looks() -> Iterator[None]:
    """Look again and again, until the time is over."""
    end = time.monotonic() + _SEEN_WITHIN_SECONDS
    while True:
        yield
        if time.monotonic() > end:
            return
        time.sleep(0.2)


def _unseen(running: Running) -> Unavailable:
    seen = "is stopped, but" if running.is_open else "was redriven since you looked, or"
    return Unavailable(
        f"The execution {running.execution_arn} {seen} how it ended cannot be seen yet. The same command "
        "settles its lock later, and so does the stack by itself."
    )


def _ended_so(execution: Execution, stopped: Failure) -> bool:
    """Whether an execution ended by this command: it was stopped, or found `Cancelled` in the record."""
    if execution.status == "FAILED" and execution.failure.error == CANCELLED:
        return True
    return execution.failure == stopped


def _expect_own_answer(
    machine: Machine, running: Running, execution: Execution, *, by: str, why: str
) -> None:
    """Raise RecordChanged unless this command's `Cancelled` is on record, for good."""
    lock = _lock_of(machine, running)
    if lock is not None and lock.interventions and is_cancelled(lock):
        last = lock.interventions[-1]
        if (by, "cancelled", why) == (last.by, last.what, last.why):
            return
    raise RecordChanged(
        f"The execution {running.execution_arn} has changed since you looked: {_how(execution)}, and not "
        "by this command. Look again.",
        next_steps=[step_for(machine, running, "show request")],
    )


def _is_settled(machine: Machine, running: Running, stopped: Failure, by: str) -> bool:
    """Whether the lock of an execution that has ended is settled."""
    lock = _lock_of(machine, running)
    if lock is None or lock.status != INPROGRESS or not _is_left(machine, running, lock):
        return True
    found = settle_owner(
        lock,
        machine.sfn,
        machine.locks,
        work_timeout_seconds=0,  # a cancelled owner is not waited for
        when_outcome_unknown="hold",
        by=by,
        home=machine.arn,
        cancelled=stopped,
    )
    if found.verdict == "unwritten":
        raise Refused(
            f"The work under {lock.lock_token!r} is done, and its result is not on record. Look it up, and "
            "complete the lock with it.",
            next_steps=[NextStep("complete lock", lock.lock_token)],
        )
    if found.reason:
        raise OwnerHidden(
            f"The execution {running.execution_arn} has ended, and the lock {lock.lock_token!r} is not "
            f"settled. {found.reason} Then the same command settles it."
        )
    return found.verdict != "alive"


def _lock_of(machine: Machine, running: Running) -> Lock | None:
    return machine.locks.get(running.lock_token) if running.lock_token else None


def _how(execution: Execution) -> str:
    if execution.is_cancelled:
        return f"it was cancelled by {execution.failure.cause}"
    return f"it is {execution.status}"
