"""Cancelling a request: its execution is stopped, and the lock that it held is settled at once."""

from __future__ import annotations

import time
from dataclasses import dataclass

from steponce.aws import answering
from steponce.errors import RecordChanged, Refused, RequestNotFound, Unavailable
from steponce.machine import Machine
from steponce.operating import command, names_of
from steponce.owner import CANCELLED, Execution, settle_owner
from steponce.records import INPROGRESS, Lock

CAUSE_LIMIT = 32_768
"""Characters of a cause that StopExecution takes."""

_SEEN_WITHIN_SECONDS = 15.0
"""So long `cancel` waits until it can be seen how the execution that it stopped has ended."""


@dataclass(frozen=True)
class Running:
    """
    An execution that can be cancelled.

    Args:
        request_id: As it was given.
        execution_arn: Of the request's newest attempt.
        lock_token: The request's business key; None where it cannot be told.
        lock: The record of that key, whoever holds it; None where there is none.
        is_stopped: Whether it was cancelled before, and only its lock is left.
    """

    request_id: str
    execution_arn: str
    lock_token: str | None
    lock: Lock | None
    is_stopped: bool = False

    @property
    def holds_the_lock(self) -> bool:
        """Whether it is this execution that has the key."""
        return _holds(self.lock, self.execution_arn)


def find_running(machine: Machine, request_id: str) -> Running:
    """
    The execution of a request that runs, or one that was cancelled and has left its lock open.

    Raises:
        RequestNotFound: it has no execution.
        Refused: nothing of it runs.
        Unavailable: no answer; safe to ask again.
    """
    found = next((one for name in names_of(request_id) if (one := _newest(machine, name))), None)
    if found is None:
        raise RequestNotFound(
            f"There is no execution of a request {request_id!r}. Check its id, or look at what is open: "
            "steponce locks list"
        )
    execution, arn, token, lock = found
    running = Running(request_id, arn, token, lock, is_stopped=execution.is_cancelled)
    if not execution.is_open and not (running.is_stopped and running.holds_the_lock):
        raise Refused(
            f"Nothing of request {request_id!r} runs: its execution is {execution.status}. "
            f"What is to be done: {command('show', request_id)}"
        )
    return running


def cancel(machine: Machine, running: Running, *, by: str, why: str) -> Lock | None:
    """
    Stop an execution, and settle the lock that it held, as everything that watches over it would.

    Returns:
        The lock record afterwards; None where there is none.

    Raises:
        RecordChanged: it ended by itself, or somebody else stopped it.
        Unavailable: no answer, or its end cannot be seen yet; the same command is safe to try again.

    Source: StopExecution API reference (an execution that is closed stays as it is).
    """
    cause = f"{by}: {why}"[:CAUSE_LIMIT]
    if not running.is_stopped:
        with answering("Step Functions"):
            machine.sfn.stop_execution(executionArn=running.execution_arn, error=CANCELLED, cause=cause)
    end = time.monotonic() + _SEEN_WITHIN_SECONDS
    while not _is_settled(machine, running, by, cause):
        if time.monotonic() > end:
            raise Unavailable(
                f"The execution {running.execution_arn} is stopped, but how it ended cannot be seen yet. The "
                "same command settles its lock later, and so does the stack by itself."
            )
        time.sleep(0.2)
    return _lock_of(machine, running)


def _newest(machine: Machine, name: str) -> tuple[Execution, str, str | None, Lock | None] | None:
    """The newest execution of a name, its ARN, and its request's lock token with the record."""
    first = machine.describe(name, 1)
    token = machine.lock_token_of(name, first.input if first else {})
    lock = machine.locks.get(token) if token else None
    execution, attempt = machine.newest(name, max(1, machine.attempt_of(lock, name)))
    return (execution, machine.execution_arn(name, attempt), token, lock) if execution else None


def _is_settled(machine: Machine, running: Running, by: str, cause: str) -> bool:
    execution = machine.describe_arn(running.execution_arn)
    if execution is None or execution.is_open:
        return False
    by_this_command = running.is_stopped or execution.failure.cause == cause
    if not (execution.is_cancelled and by_this_command):
        raise RecordChanged(
            f"The execution {running.execution_arn} has changed since you looked: {_how(execution)}, and not "
            f"by this command. Look again: {command('show', running.request_id)}"
        )
    lock = _lock_of(machine, running)
    if lock is None or not _holds(lock, running.execution_arn):
        return True
    found = settle_owner(
        lock,
        machine.sfn,
        machine.locks,
        work_timeout_seconds=0,  # a cancelled owner is not waited for
        when_outcome_unknown="hold",
        by=by,
    )
    return found.verdict != "alive"


def _lock_of(machine: Machine, running: Running) -> Lock | None:
    return machine.locks.get(running.lock_token) if running.lock_token else None


def _holds(lock: Lock | None, execution_arn: str) -> bool:
    return lock is not None and (lock.status, lock.locked_by) == (INPROGRESS, execution_arn)


def _how(execution: Execution) -> str:
    if execution.is_cancelled:
        return f"it was cancelled by {execution.failure.cause}"
    return f"it is {execution.status}"
