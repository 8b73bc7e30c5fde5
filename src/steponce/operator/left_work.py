"""Finds what a cancelled request has left of its work: an execution that goes on, or a function."""

from __future__ import annotations

from botocore.exceptions import BotoCoreError, ClientError

from steponce.errors import OwnerHidden, Unavailable
from steponce.executions import OpenWork
from steponce.locks.record import Lock
from steponce.operator.cancellable import Running, is_cancelled
from steponce.recovery.owner import Work, left_by, work_of
from steponce.request.machine import Machine
from steponce.workflow import RELEASED


def work_left(machine: Machine, running: Running, lock: Lock | None, deployed_seconds: float) -> Work | None:
    """
    What is known of the work under a lock token after `cancel`, by the same rules as for a person's lock.

    A record that is final has left nothing, unless it stands in the place of one that a person had released
    or deleted. Then only an execution is looked for.

    Args:
        machine: The request's machine.
        running: The request, as it was found.
        lock: The record after `cancel`. None if there is none.
        deployed_seconds: The time-out that the machine's work has now. A record that says longer is believed.

    Returns:
        None if AWS did not say, or if another machine's execution holds the lock.
    """
    if lock is None or not machine.holds(lock):
        return None
    try:
        if lock.waits_for_person:
            return work_of(lock, machine.owner(lock), machine.sfn, deployed_seconds)
        before = _freed(running.lock, lock) if is_cancelled(lock) and not running.holds_the_lock else None
        return Work() if before is None else _running_child(machine, before)
    except OwnerHidden as hidden:
        return Work(OpenWork(hidden=str(hidden)))
    except (BotoCoreError, ClientError, Unavailable):
        return None


def _freed(before: Lock | None, cancelled: Lock) -> Lock | None:
    """The record whose owner may have left an execution. None if its end was looked at when it was freed."""
    if before is None:
        return cancelled  # it is gone, and the execution that is cancelled may have held it
    return before if before.status == RELEASED and before.interventions else None


def _running_child(machine: Machine, lock: Lock) -> Work:
    child = left_by(lock, None, machine.sfn).child
    is_running = child is not None and child.state == "running"
    return Work(OpenWork(execution_arn=child.arn)) if child is not None and is_running else Work()
