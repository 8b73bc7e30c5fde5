"""Until when the work of a closed execution may still run."""

from __future__ import annotations

from datetime import timedelta

from steponce.aws import times
from steponce.executions import CANCELLED
from steponce.failure import Failure
from steponce.locks.record import Lock
from steponce.workflow import INIT_TIME, OUTCOME_UNKNOWN, THROTTLED

_ENDED = ("Function.", "Runtime.", "Sandbox.", "Extension.")
"""Prefixes of the errors by which Lambda's runtime reports that an invocation ended, as by its time-out."""


def longest_work(lock: Lock, deployed_seconds: float) -> timedelta:
    """
    How long the work of a stopped execution may run.

    The record has the time-out with which its execution started. A deployment that has raised it since gave
    the new one to the function at once.

    Args:
        lock: The lock, with the work's time-out if it was not read from the open index.
        deployed_seconds: The time-out that the work of the lock's machine has now.
    """
    return max(lock.work_timeout(deployed_seconds), timedelta(seconds=deployed_seconds))


def works_until(failure: Failure | None, since: str | None, work_timeout: timedelta) -> str | None:
    """
    Until when work may still run after its execution closed or recorded an error.

    Neither stopping an execution nor an error of the service ends a Lambda. Unless the function itself
    reported its end, it may run for its whole time-out. That counts from the execution's end and not from the
    function's start, because Step Functions may have invoked the function again just before the end.

    Args:
        failure: The failure that the execution recorded. None if it recorded none.
        since: When the execution closed or recorded it (UTC text).
        work_timeout: The work's time-out.

    Returns:
        UTC text. None if the work is certainly over.
    """
    if since is None or (failure is not None and proves_the_end(failure.error)):
        return None
    until = times.after(times.from_text(since), (work_timeout + INIT_TIME).total_seconds())
    return times.to_text(until) if times.now() < until else None


def proves_the_end(error: str | None) -> bool:
    """
    Whether an error of the work proves that its function ended, or never ran.

    A function's own errors are named after their class, without a dot. Lambda's runtime uses prefixes of its
    own. All other errors only say that somebody stopped waiting for the function: `States.Timeout`,
    `Lambda.ServiceException`, `Lambda.Unknown`, an error without a name, `OutcomeUnknown` and `Cancelled`.
    """
    if not error or error in (CANCELLED, OUTCOME_UNKNOWN):
        return False
    return "." not in error or error == THROTTLED or error.startswith(_ENDED)
