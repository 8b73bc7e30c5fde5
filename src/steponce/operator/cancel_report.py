"""What `cancel` has done, as data and in words."""

from __future__ import annotations

from typing import Literal

from steponce.aws import times
from steponce.executions import CANCELLED, OpenWork
from steponce.locks.record import Lock
from steponce.operator.cancellable import Running, is_own, runs_beside
from steponce.recovery.owner import Work
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
    "The work may still run: a function until its time-out has passed, and an execution that was started for "
    "it until that one ends. The commands for it are refused until then."
)

_WORKED_WITHOUT_LOCK = (
    "It had been redriven, and ran without the lock. So its work may have taken effect, and may still run: a "
    "function until its time-out has passed, and an execution that was started for it until that one ends."
)


def what_was_done(running: Running, lock: Lock | None, *, by_itself: bool = False) -> Done:
    """What `cancel` has done, in a word. Arguments as for `meaning`."""
    if lock is not None and _says_cancelled(running, lock):
        return "cancelled"
    if lock is not None and _has_ended_meanwhile(running, lock):
        return "recorded"
    return "stopped" if running.is_open and not by_itself else "nothing"


def meaning(running: Running, lock: Lock | None, *, by_itself: bool = False, work: Work | None = None) -> str:
    """What `cancel` has done, in words. `lock` and `by_itself` are of `Cancelled`, `work` of `work_left`."""
    return _together(_meaning(running, lock, by_itself=by_itself, work=work), runs_beside(running))


def _meaning(running: Running, lock: Lock | None, *, by_itself: bool, work: Work | None) -> str:
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
            return end + _cancelled(running, lock, work)
        case "recorded":
            return end + _own_outcome(lock, work)
        case _:
            return end + _answer_of_another(lock, work)


def _cancelled(running: Running, lock: Lock, work: Work | None) -> str:
    """What a record that says `Cancelled` means for later starts."""
    if lock.open_status is None:
        final = (
            f"A later start, also of another request with its lock token, gets the error {CANCELLED}"
            f"{_until(lock)}."
        )
        worked = _WORKED_WITHOUT_LOCK if running.works_without_lock else ""
        left = None if work is None else work.open
        goes_on = "" if left is None else f"{_goes_on(left)} The record does not stop it."
        return _together(final, worked, goes_on)
    held = "It was in its work, which may have taken effect: its record waits for a person."
    return _together(held, _may_run(work))


def _own_outcome(lock: Lock, work: Work | None) -> str:
    """What the outcome of the request's own work is, and whether that work has ended."""
    outcome = lock.status
    if lock.failure is not None and lock.status == FAILED:
        outcome += f" with {lock.failure.error or 'an error without a name'}"
    stays = "waits for a person" if lock.open_status is not None else f"stays{_until(lock)}"
    is_over = lock.failure is not None and proves_the_end(lock.failure.error)
    if lock.open_status is not None and not is_over:
        return _together(f"It is not cancelled: its outcome, {outcome}, {stays}.", _may_run(work))
    return f"Its work had ended, so it is not cancelled: its outcome, {outcome}, {stays}."


def _answer_of_another(lock: Lock, work: Work | None) -> str:
    """What a record that is not this request's means for its later starts."""
    if lock.open_status is not None:
        held = (
            f"The record of its lock token is {lock.status}, made by request {lock.request_id!r}, and waits "
            "for a person. After a release this request may run if it is started again."
        )
        return held if work is None else _together(held, _may_run(work))
    if lock.is_reusable(times.now_text()):
        return (
            f"The answer of its lock token, {lock.status}, has just expired, at {lock.expires_at}. "
            "If this request is started again, it may run."
        )
    return f"Its lock token has an answer already, which stays{_until(lock)}: {lock.status}."


def _may_run(work: Work | None) -> str:
    """What may still run under a record that waits for a person. Empty if nothing does."""
    if work is None:
        return _MAY_RUN
    if work.done_by is not None:
        return (
            f"But the execution {work.done_by}, which is its work, has succeeded. So the work is done. "
            "Complete the lock with the output of that execution."
        )
    if work.open is None:
        return ""
    if work.open.until is None:
        before = "Wait for its end, or stop it, and look again. No command changes the lock before."
        return f"{_goes_on(work.open)} {before}"
    until = f"{work.open.until} or later"
    return f"The work may still run until {until}. The commands for it are refused until then."


def _goes_on(work: OpenWork) -> str:
    """That an execution goes on, or that it cannot be looked at."""
    return (
        work.hidden
        or f"But the execution {work.execution_arn}, which it has started for its work, still runs."
    )


def _together(*sentences: str) -> str:
    return " ".join(filter(None, sentences))


def _has_ended_meanwhile(running: Running, lock: Lock) -> bool:
    """Whether a record has the outcome of this request's own work, which it had not when it was found."""
    before = running.lock
    is_new = before is None or before.call_id != lock.call_id or before.status == INPROGRESS
    return is_own(running, lock) and is_new and lock.status in (COMPLETED, FAILED)


def _says_cancelled(running: Running, lock: Lock) -> bool:
    """Whether a record says that this request is cancelled. Another's does if it is final."""
    is_cancelled = lock.failure is not None and lock.failure.error == CANCELLED
    return is_cancelled and (lock.open_status is None or is_own(running, lock))


def _until(lock: Lock) -> str:
    return "" if lock.expires_at in (None, times.NEVER) else f" until {lock.expires_at}"
