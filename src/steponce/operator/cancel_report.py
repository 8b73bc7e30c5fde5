"""
What the record of its lock token says of a request that is cancelled, or is to be: as data, and in words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from steponce.aws import times
from steponce.executions import CANCELLATION, CANCELLED, machine_of
from steponce.locks.record import Lock
from steponce.recovery.work import proves_the_end
from steponce.workflow import COMPLETED, FAILED, INPROGRESS

Done = Literal["cancelled", "recorded", "stopped", "nothing"]
"""
What `cancel` has done:

    cancelled  the record says `Cancelled`
    recorded   the work had ended, and its own outcome is on record
    stopped    the execution is stopped, and the record is another request's, has an earlier answer, or is not
               known
    nothing    none of these
"""

_MAY_RUN = (
    "The work may still run until its time-out has passed, and the commands for it are refused until then."
)


@dataclass(frozen=True)
class Running:
    """
    A request that can be cancelled.

    Args:
        request_id: As it was given.
        execution_arn: The execution that has its lock, else its newest attempt.
        lock_token: The request's business key; None if it is not known.
        lock: The record of that key, also if another request holds it. None if there is none.
        is_open: Whether that execution runs. If not, the request waits to be sent again, or its execution has
            died and left its lock.
        given: What that execution was started with.
    """

    request_id: str
    execution_arn: str
    lock_token: str | None
    lock: Lock | None
    is_open: bool
    given: Mapping[str, Any] = field(repr=False, default_factory=dict)

    @property
    def holds_the_lock(self) -> bool:
        """Whether this execution holds the lock."""
        lock = self.lock
        return lock is not None and (lock.status, lock.locked_by) == (INPROGRESS, self.execution_arn)


def what_was_done(running: Running, lock: Lock | None, *, by_itself: bool = False) -> Done:
    """What `cancel` has done, in a word. Arguments as for `meaning`."""
    if lock is not None and _says_cancelled(running, lock):
        return "cancelled"
    if lock is not None and _has_ended_meanwhile(running, lock):
        return "recorded"
    return "stopped" if running.is_open and not by_itself else "nothing"


def meaning(running: Running, lock: Lock | None, *, by_itself: bool = False) -> str:
    """What `cancel` has done, in words. `lock` and `by_itself` are as in `Cancelled`."""
    end = "Its execution is stopped. " if running.is_open else "No execution of it was running. "
    if by_itself:
        end = "Its execution had ended by itself. "
    if running.lock_token is None:
        return end + "Its lock token is not known, so no record says that it is cancelled."
    if lock is None:
        return end + "There is no record any more."
    if lock.status == INPROGRESS:
        return (
            f"{end}Its lock token is held by another request ({lock.locked_by}), which goes on. Started "
            "again after that, this one may run."
        )
    match what_was_done(running, lock, by_itself=by_itself):
        case "cancelled":
            return end + _cancelled(lock)
        case "recorded":
            return end + _own_outcome(lock)
        case _:
            return end + _answer_of_another(lock)


def _cancelled(lock: Lock) -> str:
    """What a record that says `Cancelled` means for later starts."""
    if lock.open_status is None:
        return (
            f"A later start, also of another request with its lock token, gets the error {CANCELLED}"
            f"{_until(lock)}."
        )
    return f"It was in its work, which may have taken effect: its record waits for a person. {_MAY_RUN}"


def _own_outcome(lock: Lock) -> str:
    """What the outcome of the request's own work is, and whether that work has ended."""
    outcome = lock.status
    if lock.failure is not None and lock.status == FAILED:
        outcome += f" with {lock.failure.error or 'an error without a name'}"
    stays = "waits for a person" if lock.open_status is not None else f"stays{_until(lock)}"
    is_over = lock.failure is not None and proves_the_end(lock.failure.error)
    if lock.open_status is not None and not is_over:
        return f"It is not cancelled: its outcome, {outcome}, {stays}. {_MAY_RUN}"
    return f"Its work had ended, so it is not cancelled: its outcome, {outcome}, {stays}."


def _answer_of_another(lock: Lock) -> str:
    """What a record that is not this request's means for its later starts."""
    if lock.open_status is not None:
        return (
            f"The record of its lock token is {lock.status}, made by request {lock.request_id!r}, and waits "
            "for a person. After a release this request may run if it is started again."
        )
    if lock.is_reusable(times.now_text()):
        return (
            f"The answer of its lock token, {lock.status}, has just expired, at {lock.expires_at}. "
            "If this request is started again, it may run."
        )
    return f"Its lock token has an answer already, which stays{_until(lock)}: {lock.status}."


def done_before(running: Running) -> str:
    """That a request is cancelled already, and by whom; empty if its record does not say so."""
    lock = running.lock
    if lock is None or not lock.interventions or not _is_own(running, lock) or not _was_cancelled(lock):
        return ""
    last = lock.interventions[-1]
    done = f"Request {running.request_id!r} is cancelled already ({last.what} by {last.by}: {last.why})."
    return f"{done} Its record waits for a person." if lock.open_status is not None else done


def _has_ended_meanwhile(running: Running, lock: Lock) -> bool:
    """Whether a record has the outcome of this request's own work, which it had not when it was found."""
    before = running.lock
    is_new = before is None or before.call_id != lock.call_id or before.status == INPROGRESS
    return _is_own(running, lock) and is_new and lock.status in (COMPLETED, FAILED)


def _says_cancelled(running: Running, lock: Lock) -> bool:
    """Whether a record says that this request is cancelled. Another's does if it is final."""
    is_cancelled = lock.failure is not None and lock.failure.error == CANCELLED
    return is_cancelled and (lock.open_status is None or _is_own(running, lock))


def _is_own(running: Running, lock: Lock) -> bool:
    """Whether a record is of this id on this machine."""
    machine = machine_of(running.execution_arn)
    return lock.request_id == running.request_id and machine_of(lock.locked_by) == machine


def is_cancelled(lock: Lock) -> bool:
    """Whether a record says `Cancelled` for good. One that waits for a person has another cause."""
    return (lock.status, lock.failure) == (FAILED, CANCELLATION)


def _was_cancelled(lock: Lock) -> bool:
    """Whether a record says that a person has cancelled it, for good or until a person settles it."""
    failure = lock.failure
    if lock.status != FAILED or failure is None or failure.error != CANCELLED:
        return False
    return (failure.cause or "").startswith(str(CANCELLATION.cause))


def _until(lock: Lock) -> str:
    return "" if lock.expires_at in (None, times.NEVER) else f" until {lock.expires_at}"
