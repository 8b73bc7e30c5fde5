"""Whether an operator may change a lock record. A check that fails raises Refused, with the reason."""

from __future__ import annotations

from typing import Literal

from steponce.aws import times
from steponce.errors import OwnerHidden, Refused
from steponce.executions import machine_of
from steponce.locks.record import Lock
from steponce.next_step import NextStep
from steponce.recovery.child import Child
from steponce.recovery.leases import lease_is_over
from steponce.recovery.owner import left_by
from steponce.request.machine import Machine
from steponce.workflow import COMPLETED, FAILED, INPROGRESS, RELEASED

LockAction = Literal["release", "complete", "retry"]


def expect_own(machine: Machine, lock: Lock) -> None:
    """
    Refuse what was made by another machine, or by Powertools' own layer. Plain Python's is no machine's.

    Another machine does other work, for another time, which only its own stack knows; this one would run
    its own work in its place. What Powertools' own layer has written only that layer changes.
    """
    if lock.is_of_powertools:
        raise Refused(
            f"The record {lock.lock_token!r} is {lock.status}, and was written by Powertools' own layer. "
            f"No command changes it: that layer ends it, or DynamoDB deletes it at {lock.expires_at}."
        )
    if lock.is_of_an_execution and not machine.holds(lock):
        raise Refused(
            f"The record {lock.lock_token!r} is not this machine's ({machine.arn}): it was made by "
            f"{lock.locked_by}. Nothing was written. Look at it with the stack of that machine. If that "
            "machine is gone, no command changes the record.",
            next_steps=[NextStep("inspect lock", lock.lock_token, machine=machine_of(lock.locked_by))],
        )


def expect_dead(machine: Machine, lock: Lock, work_timeout_seconds: float) -> Child | None:
    """
    Refuse while the owner runs, was redriven, or its work may still run.

    Args:
        machine: The machine with the lock table.
        lock: The record.
        work_timeout_seconds: How long the machine's work may run. A record that says longer is believed.

    Returns:
        The execution that the owner has started for its work; None if it has started none.
    """
    if lock.open_status is None:
        return None
    if not lock.is_of_an_execution:
        _expect_lease_over(lock)
        return None
    try:
        owner = machine.owner(lock)
        if owner is not None and owner.owns(lock) is False:
            owner = None  # another execution has its name now
        if owner is not None and owner.is_open:
            raise Refused(
                f"The execution {lock.locked_by} of {lock.lock_token!r} still runs. "
                "Wait, or cancel it first.",
                next_steps=[
                    NextStep(
                        "cancel request",
                        lock.request_id,
                        lock_token=machine.token_to_give(lock.request_id, lock.lock_token),
                    )
                ],
            )
        left = left_by(lock, owner, machine.sfn)
    except OwnerHidden as hidden:
        raise Refused(str(hidden)) from None
    if not left.is_visible:
        raise Refused(
            f"What the execution {lock.locked_by} has left cannot be seen yet. Try again in a minute."
        )
    work = left.open_work(lock, owner, work_timeout_seconds)
    if work is not None and work.execution_arn is not None:
        raise Refused(
            f"The execution {work.execution_arn}, which is the work of {lock.lock_token!r}, still runs. Wait "
            "for its end, or stop it first."
        )
    if lock.status == FAILED and work is not None:
        error = (lock.failure and lock.failure.error) or "an error without a name"
        raise Refused(
            f"The record {lock.lock_token!r} is FAILED with {error}, which does not say that the work is "
            f"over: it may still run until {work.until}; try again then."
        )
    return left.child


def expect_no_result(lock: Lock, child: Child | None) -> None:
    """
    Refuse to free a lock whose work is an execution that has succeeded.

    Its owner may have recorded a failure all the same: the answer of the call that started the execution was
    lost, or the execution was redriven.
    """
    if child is not None and child.state == "succeeded":
        raise Refused(
            f"The execution {child.arn}, which is the work of {lock.lock_token!r}, has succeeded. So the "
            "work is done. Complete the lock with the output of that execution.",
            next_steps=[NextStep("complete lock", lock.lock_token)],
        )


def expect_unanswered(action: LockAction, lock: Lock) -> None:
    """Refuse if the record is final, or free where the action needs one that is not."""
    if lock.status == RELEASED:
        if action == "release":
            raise Refused(f"The lock {lock.lock_token!r} is free already; the next start runs it.")
        return
    if lock.is_reusable(times.now_text()):
        raise Refused(
            f"The answer of {lock.lock_token!r} has served its time, and the lock is free. Start it again."
        )
    if lock.status in (COMPLETED, FAILED) and lock.open_status is None:
        raise Refused(
            f"{lock.lock_token!r} is {state_of(lock)}, which is its answer to everyone who asks and does not "
            "change. To run the work again, start it under another id and another lock token."
        )
    if lock.status not in (INPROGRESS, FAILED):
        raise Refused(
            f"The status of {lock.lock_token!r} is {lock.status!r}, which this version does not know. "
            "Something else writes to the table; look at the record."
        )


def state_of(lock: Lock) -> str:
    """A record's status, error and last intervention, in words."""
    error = f" with {lock.failure.error or 'an error without a name'}" if lock.failure else ""
    last = lock.interventions[-1] if lock.interventions else None
    done = f", {last.what} by {last.by}" if last and last.at == lock.actual_completion else ""
    return f"{lock.status}{error if lock.status == FAILED else ''}{done}"


def _expect_lease_over(lock: Lock) -> None:
    """Refuse while a guard holds the lock and its lease is not over."""
    if lock.status == INPROGRESS and not lease_is_over(lock):
        raise Refused(
            f"The lock {lock.lock_token!r} is held by {lock.locked_by}, which no command can stop, until "
            f"{lock.lease_until or 'it is old enough'}. Nothing was written; try again then."
        )
