"""What an operator can do with a lock record. Each step may still be refused, with a reason."""

from __future__ import annotations

from functools import partial

from steponce.locks.record import Lock
from steponce.next_step import NextStep
from steponce.recovery.owner import Work
from steponce.workflow import FAILED, INPROGRESS, RELEASED

_UNKNOWN = Work()


def steps_after_cancel(lock: Lock, work: Work | None = None) -> list[NextStep]:
    """
    The commands after `cancel`.

    Args:
        lock: The record of its lock token, which may be another's.
        work: What is known of the work under it.
    """
    if lock.status == INPROGRESS:  # another request holds it, and goes on
        return [NextStep("inspect lock", lock.lock_token)]
    return next_steps(lock, runs=False, work=work or _UNKNOWN)


def next_steps(
    lock: Lock,
    *,
    runs: bool,
    own: bool = True,
    is_forgotten: bool = False,
    token: str | None = None,
    work: Work = _UNKNOWN,
    worked_since: bool = False,
) -> list[NextStep]:
    """
    The commands for a lock.

    Args:
        lock: The record.
        runs: Whether its owner runs.
        own: Whether its owner belongs to this machine. If not, there are no steps.
        is_forgotten: Whether its owner can no longer be described. Then its payload is gone, too.
        token: Its lock token, if its request has one of its own. Without it `show` finds nothing once the
            request's executions are forgotten.
        work: What is known of the work of a closed owner.
        worked_since: Whether its owner was redriven, and may have worked, since the lock was released.
    """
    step = partial(NextStep, key=lock.lock_token)
    if not own:
        return []
    retry = [step("retry lock")] if lock.is_of_an_execution and not is_forgotten else []
    if lock.status == RELEASED and worked_since:
        request = partial(NextStep, key=lock.request_id, lock_token=token)
        return [request("wait for request")] if runs else [step("complete lock"), request("start request")]
    if lock.status == RELEASED:
        return retry
    if lock.status not in (INPROGRESS, FAILED) or lock.open_status is None:
        return []
    if runs:
        cancel = NextStep("cancel request", lock.request_id, lock_token=token)
        return [cancel] if lock.is_of_an_execution else []
    if lock.status == INPROGRESS and lock.is_of_an_execution:  # how its owner ended decides what is allowed
        return [NextStep("show request", lock.request_id, lock_token=token)]
    if work.open is not None and work.open.until is None:
        return []  # each would be refused while an execution runs, or cannot be looked at
    if work.done_by is not None:
        return [step("complete lock")]
    return [step("complete lock"), *retry, step("release lock")]
