"""
Finds the newest attempt of a request on one state machine.

The names of attempts are counted on without a gap, so the search doubles its steps and then halves them. Each
search gives an execution and its number; the next number is free. If Step Functions has forgotten some
attempts between others, it is the last one before the gap.
"""

from __future__ import annotations

from steponce.executions import Execution
from steponce.locks.record import Lock
from steponce.request.machine import Machine, is_attempt_of, is_owner_open
from steponce.request.names import MAX_ATTEMPT, name_of
from steponce.workflow import RELEASED


def newest_under(machine: Machine, name: str, attempt: int) -> tuple[Execution | None, int]:
    """Find the newest execution under the names of a request's attempts, from this attempt on."""
    return newest_after(machine, name, attempt, machine.describe(name, attempt))


def newest_after(
    machine: Machine, name: str, attempt: int, execution: Execution | None
) -> tuple[Execution | None, int]:
    """As `newest_under`, if the execution of `attempt` is known already."""
    last, step = attempt, 1
    while last + step <= MAX_ATTEMPT and (found := machine.describe(name, last + step)):
        execution, last = found, last + step
        step = last - attempt
    free = min(last + step, MAX_ATTEMPT + 1)
    while free - last > 1:
        middle = (last + free) // 2
        found = machine.describe(name, middle)
        if found is None:
            free = middle
        else:
            execution, last = found, middle
    return execution, last


def newest_of_request(
    machine: Machine, request_id: str, attempt: int, execution: Execution | None = None
) -> tuple[Execution | None, int]:
    """
    As `newest_under`, without executions that were started by hand under the names of attempts, and without
    the attempts of an earlier request with this id.

    They are other requests, and this one must not get their answers.

    Args:
        machine: The request's machine.
        request_id: As the caller gave it.
        attempt: Where the search starts.
        execution: The execution of that attempt, if it is known already.
    """
    name = name_of(request_id)
    first = execution or machine.describe(name, attempt)
    execution, last = newest_after(machine, name, attempt, first)
    while last > attempt and not (execution and is_attempt_of(execution, request_id, first)):
        last -= 1
        execution = machine.describe(name, last)
    return execution, last


def newest_beside(
    machine: Machine, lock: Lock | None, request_id: str, first: Execution | None = None
) -> tuple[Execution | None, int]:
    """
    As `newest_of_request`, from the attempt that has made a record, which may be free.

    Args:
        machine: The request's machine.
        lock: The record under the request's lock token.
        request_id: As the caller gave it.
        first: Its first attempt, if it is known already.
    """
    if first is None and machine.attempt_of(lock, request_id) > 1:
        first = machine.describe(name_of(request_id), 1)
    recorded = machine.recorded_attempt(lock, request_id, first)
    return newest_of_request(machine, request_id, recorded, first if recorded == 1 else None)


def running_without_lock(
    machine: Machine, lock: Lock | None, request_id: str, known: str = ""
) -> tuple[Execution, str] | None:
    """
    Find the attempt whose lock was released, if it runs. Somebody has redriven it, and it has no lock.

    Args:
        machine: The request's machine.
        lock: The record under the request's lock token.
        request_id: As the caller gave it.
        known: The ARN of an execution that is not described again. Default: none.

    Returns:
        The execution and its ARN. None if it does not run, is known, or the record is not a released one of
        this request.
    """
    if lock is None or lock.status != RELEASED or lock.locked_by == known:
        return None
    owner = machine.describe_arn(lock.locked_by) if machine.made(lock, request_id) else None
    return (owner, lock.locked_by) if owner is not None and is_owner_open(owner, lock) else None
