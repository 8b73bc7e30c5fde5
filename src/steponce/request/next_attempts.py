"""
What follows the death of a lock's owner: the attempts that may settle the lock, and when the next one is due.

The first attempt starts at once, because most dead owners leave nothing to wait for. While the owner's work
may still run, a second attempt would find the same, so polling starts none. After two attempts in vain (for
example while an execution runs on that the owner had started for its work), there is one more after one
time-out of the work, after two, four and so on, and one each day. The monitor settles the lock meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from steponce.aws import times
from steponce.errors import OwnerHidden, Unsettled
from steponce.executions import YOUNG, Execution, looking_at, states_entered
from steponce.locks.record import Lock
from steponce.next_step import NextStep
from steponce.request.attempts import Attempts
from steponce.request.canonical import sha256
from steponce.request.machine import Machine, is_attempt_of
from steponce.request.names import MAX_ATTEMPT
from steponce.request.newest import newest_after
from steponce.workflow import INIT_TIME, OUTCOMES, RELEASE_LOCK, TOO_LARGE, WORK

_FIRST_OF_MANY = 1_000


class DeadOwner:
    """
    The dead owner of a lock: when it died, and how long its work may go on after that.

    Args:
        machine: The machine of the request that asks for the lock. The owner may be another request's.
        lock: The lock.
        execution: The owner. None for a guarded call, and if Step Functions does not know the execution,
            which may be too new.
    """

    def __init__(self, machine: Machine, lock: Lock, execution: Execution | None) -> None:
        self._machine = machine
        self._lock = lock
        if execution is None or execution.closed is None:
            self._since, self._wait = lock.created, YOUNG
        elif execution.owns(lock) is False:
            self._since, self._wait = lock.created, INIT_TIME
        else:
            work_timeout = lock.work_timeout(machine.rules.longest_work_seconds)
            self._since, self._wait = execution.closed, work_timeout + INIT_TIME

    def attempts_after(self, attempts: Attempts) -> Iterator[tuple[int, Execution | None]]:
        """
        Find the attempts that may settle the lock: those after the one that has made the record.

        Another request may have such a name, if it was started by hand. It is left out.

        Args:
            attempts: The attempts of the request that asks for the lock.

        Returns:
            The number and the execution of each, while they are described. None: the name is free.
        """
        for number, execution in self._names_after(attempts):
            if execution is None or is_attempt_of(execution, attempts.request_id):
                yield number, execution

    def is_too_early_after(self, closed: Execution) -> bool:
        """Whether this attempt was in vain, and the next would be as well, because the work may still run."""
        return self._passed() < self._wait and self._is_in_vain(closed)

    def attempt_of_now(self) -> int:
        """
        The number of the attempt that is due if all others were in vain.

        It is hardly taken. It follows from the death and the time, so all callers choose the same until the
        next one is due.
        """
        passed = self._passed()
        doubled, days = (passed // self._wait).bit_length(), passed // timedelta(days=1)
        digest = sha256(f"{self._lock.call_id}/{self._lock.attempt}/{doubled}/{days}")
        return _FIRST_OF_MANY + int(digest[:8], 16) % (MAX_ATTEMPT - 2 * _FIRST_OF_MANY)

    def _names_after(self, attempts: Attempts) -> Iterator[tuple[int, Execution | None]]:
        """
        The next two attempts, and a third if one of the two was in vain.

        If both ended before the death, the newest, and the free name after it if that one did as well.
        """
        recorded = self._machine.attempt_of(self._lock, attempts.request_id)  # 0: another request's lock
        yield recorded + 1, (first := attempts.describe(recorded + 1))
        yield recorded + 2, (second := attempts.describe(recorded + 2))
        in_vain = [one for one in (first, second) if self._is_in_vain(one)]
        if len(in_vain) == 1:
            yield recorded + 3, attempts.describe(recorded + 3)
        elif not in_vain:
            newest, last = newest_after(self._machine, attempts.name, recorded + 2, second)
            yield last, newest
            if not self._is_in_vain(newest):
                yield last + 1, None

    def _is_in_vain(self, execution: Execution | None) -> bool:
        """Whether an attempt has ended since the death, and has left the lock as it was."""
        return execution is not None and (execution.closed or "") >= self._since

    def _passed(self) -> timedelta:
        return times.now() - times.from_text(self._since)


def expect_written(machine: Machine, request_id: str, lock: Lock, owner: Execution | None) -> None:
    """
    Refuse a start if the work of a dead owner is done, and its result is too large for the workflow.

    Args:
        machine: As for `DeadOwner`.
        request_id: As the caller gave it.
        lock: The lock.
        owner: As for `DeadOwner`.

    Raises:
        Unsettled: a person has to look the result up.
    """
    try:
        is_done = is_unwritten(machine, lock, owner)
    except OwnerHidden:
        is_done = True  # it must not run again
    if is_done:
        raise unwritten(request_id, lock)


def unwritten(request_id: str, lock: Lock) -> Unsettled:
    """The error for work that is done: a person has to look its result up."""
    return Unsettled(
        f"Request {request_id!r}: its work is done, and its result is too large to be recorded "
        f"({lock.locked_by}). Look the result up, and complete the lock by hand.",
        next_steps=[NextStep("complete lock", lock.lock_token)],
    )


def is_unwritten(machine: Machine, lock: Lock, owner: Execution | None) -> bool:
    """
    Whether the work of a dead owner is done, and its result is too large for the workflow.

    A result that only its record could not take was in the input of the state that writes it. From there the
    next attempt records it.

    Args:
        machine: As for `DeadOwner`.
        lock: The lock.
        owner: As for `DeadOwner`.

    Raises:
        OwnerHidden: the owner's history may not be read.
    """
    if owner is None or owner.failure.error not in TOO_LARGE or owner.owns(lock) is False:
        return False
    with looking_at(lock.locked_by):
        entered = states_entered(machine.sfn, lock.locked_by)
    is_over = not entered.isdisjoint(OUTCOMES | {RELEASE_LOCK})
    return WORK in entered and not is_over
