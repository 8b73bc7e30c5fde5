"""Finds what can be cancelled of a request, and what its record says of a cancellation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from steponce.aws import times
from steponce.errors import Refused, RequestNotFound
from steponce.executions import CANCELLATION, CANCELLED, Execution, machine_of
from steponce.locks.record import Lock
from steponce.next_step import Action, NextStep
from steponce.operator.allowed import expect_own
from steponce.request.machine import Machine, is_owner_open
from steponce.request.names import name_of
from steponce.request.newest import newest_beside, running_without_lock
from steponce.workflow import FAILED, INPROGRESS

_CLOCKS_DIFFER = timedelta(minutes=5)
"""How far this machine's clock may run ahead. AWS refuses calls from a clock that is further off."""


@dataclass(frozen=True)
class Running:
    """
    A request that can be cancelled.

    Args:
        request_id: As it was given.
        execution_arn: The execution that has its lock. If the lock is free, one that was redriven and runs.
            If there is none, its newest attempt.
        lock_token: The request's business key; None if it is not known.
        lock: The record of that key, also if another request holds it. None if there is none.
        is_open: Whether that execution runs. If not, the request waits to be sent again, or its execution has
            died and left its lock.
        given: What that execution was started with.
        is_redriven: Whether that execution was redriven, and runs.
        beside: Another execution of the request that runs without the lock, if one is known.
    """

    request_id: str
    execution_arn: str
    lock_token: str | None
    lock: Lock | None
    is_open: bool
    given: Mapping[str, Any] = field(repr=False, default_factory=dict)
    is_redriven: bool = False
    beside: str | None = None

    @property
    def holds_the_lock(self) -> bool:
        """Whether this execution holds the lock."""
        lock = self.lock
        return lock is not None and (lock.status, lock.locked_by) == (INPROGRESS, self.execution_arn)

    @property
    def works_without_lock(self) -> bool:
        """Whether this execution was redriven and runs, and the lock is free."""
        return self.is_redriven and is_free(self.lock)


def find_running(machine: Machine, request_id: str, lock_token: str | None = None) -> Running:
    """
    Find what can be cancelled of a request.

    That is an execution that runs, or the open lock of a dead execution, or a request without an outcome that
    may be resent or started again.

    Args:
        machine: The request's machine.
        request_id: As its caller gave it.
        lock_token: The one that it was started with. Default: its executions say it. None of them can if they
            are forgotten, while the attempt that the record names runs.

    Raises:
        InvalidRequestId: the id cannot be one.
        RequestNotFound: it has no execution with this lock token.
        Refused: it has its answer, is cancelled already, or waits for a person.
        Unavailable: no answer; safe to ask again.
    """
    name = name_of(request_id)
    found = _find(machine, request_id, name, lock_token)
    if found is None:
        _expect_no_plain_python(machine, request_id, lock_token or machine.lock_token_of(name, {}))
        under = f" with the lock token {lock_token!r}" if lock_token else ""
        raise RequestNotFound(
            f"There is no execution of a request {request_id!r}{under}. Check it, or list the open locks.",
            next_steps=[NextStep("list locks")],
        )
    running, status = found
    may_run_again = is_free(running.lock) and status != "SUCCEEDED" and running.lock_token is not None
    left = running.holds_the_lock or may_run_again
    if not running.is_open and not left:
        nothing_runs = f"Nothing of request {request_id!r} runs: its execution is {status}."
        if running.beside:
            nothing_runs = f"The execution of request {request_id!r} is {status}. {runs_beside(running)}"
        raise Refused(
            f"{done_before(running) or nothing_runs} Look at what to do.",
            next_steps=[step_for(machine, running, "show request")],
        )
    return running


def _expect_no_plain_python(machine: Machine, request_id: str, token: str | None) -> None:
    """Refuse if a guard or Powertools holds the request's lock: no command can stop that program."""
    lock = machine.locks.get(token) if token else None
    if lock is not None and lock.status == INPROGRESS and not lock.is_of_an_execution:
        expect_own(machine, lock)
        raise Refused(
            f"The lock of request {request_id!r} is held by {lock.locked_by}, which no command can stop. "
            f"Its lease ends at {lock.lease_until}; then release it.",
            next_steps=[NextStep("release lock", lock.lock_token)],
        )


def _find(
    machine: Machine, request_id: str, name: str, given_token: str | None, first: Execution | None = None
) -> tuple[Running, str] | None:
    """What there is of a request, and its execution's status. `first` is its first attempt, if known."""
    first = first or machine.describe(name, 1)
    first_input = first.input if first else {}
    token = given_token or machine.lock_token_of_request(request_id, first)
    lock = machine.locks.get(token) if token else None
    recorded = machine.attempt_of(lock, request_id)
    newest, attempt = newest_beside(machine, lock, request_id, first)
    if first is None and newest is not None and attempt == 1:
        return _find(
            machine, request_id, name, given_token, newest
        )  # visible only now, and it knows its lock token
    found, arn = newest, machine.execution_arn(name, attempt)
    if lock is not None and lock.open_status is not None and recorded:
        holder = machine.describe_arn(lock.locked_by)  # a failed request's execution may have been redriven
        is_left = lock.status == INPROGRESS and not (newest and newest.is_open)
        if is_owner_open(holder, lock) or is_left:
            found, arn = holder or newest, lock.locked_by
    redriven = running_without_lock(machine, lock, request_id)
    if redriven is not None:
        found, arn = redriven
    elif first is not None and first.is_open and is_free(lock):
        found, arn = first, machine.execution_arn(name, 1)  # redriven, if there are others: a start finds it
    if found is None or (given_token and machine.lock_token_asked_for(name, found) != given_token):
        return None
    given, is_redriven = found.input or first_input, found.is_open and found.redrive_count > 0
    beside = _beside(machine, name, lock, arn, {attempt: newest, 1: first})
    return Running(request_id, arn, token, lock, found.is_open, given, is_redriven, beside), found.status


def _beside(
    machine: Machine, name: str, lock: Lock | None, found: str, attempts: Mapping[int, Execution | None]
) -> str | None:
    """Another attempt than the one found that was redriven and runs, or that runs while the lock is free."""
    for number, one in attempts.items():
        arn = machine.execution_arn(name, number)
        if one is not None and one.is_open and arn != found and (one.redrive_count or is_free(lock)):
            return arn
    return None


def runs_beside(running: Running) -> str:
    """That another execution of the request runs. Empty if none is known to."""
    if running.beside is None:
        return ""
    return (
        f"Another execution of the request, {running.beside}, runs without the lock. Look what it does, and "
        "stop it in Step Functions."
    )


def step_for(machine: Machine, running: Running, action: Action) -> NextStep:
    """A next step for a request. It names the lock token if the id alone does not give it."""
    token = running.lock_token and machine.token_to_give(running.request_id, running.lock_token)
    return NextStep(action, running.request_id, lock_token=token)


def done_before(running: Running) -> str:
    """That a request is cancelled already, and by whom; empty if its record does not say so."""
    lock = running.lock
    if lock is None or not lock.interventions or not is_own(running, lock) or not _was_cancelled(lock):
        return ""
    last = lock.interventions[-1]
    done = f"Request {running.request_id!r} is cancelled already ({last.what} by {last.by}: {last.why})."
    return f"{done} Its record waits for a person." if lock.open_status is not None else done


def is_cancelled(lock: Lock) -> bool:
    """Whether a record says `Cancelled` for good. One that waits for a person has another cause."""
    return (lock.status, lock.failure) == (FAILED, CANCELLATION)


def is_free(lock: Lock | None) -> bool:
    """
    Whether a record may be replaced. An answer must have expired by any clock that AWS accepts.

    The clock of this machine may run ahead, and then the answer still counts for others.
    """
    return lock is None or lock.is_reusable(times.to_text(times.now() - _CLOCKS_DIFFER))


def is_own(running: Running, lock: Lock) -> bool:
    """Whether a record is of this id on this machine."""
    machine = machine_of(running.execution_arn)
    return lock.request_id == running.request_id and machine_of(lock.locked_by) == machine


def _was_cancelled(lock: Lock) -> bool:
    """Whether a record says that a person has cancelled it, for good or until a person settles it."""
    failure = lock.failure
    if lock.status != FAILED or failure is None or failure.error != CANCELLED:
        return False
    return (failure.cause or "").startswith(str(CANCELLATION.cause))
