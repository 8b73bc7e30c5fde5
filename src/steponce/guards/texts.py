"""What a guard's errors and records say of a lock and of the work's own error."""

from __future__ import annotations

from steponce.errors import RequestFailed
from steponce.locks.record import Failure, Lock
from steponce.workflow import CAUSE_LIMIT, FAILED, INPROGRESS


def as_error(record: Lock) -> RequestFailed:
    """What a failed request's record raises."""
    failure = record.failure or Failure(None, None)
    waits = " It waits for a person." if record.open_status is not None else ""
    cause = str(failure.cause).removesuffix(".")
    return RequestFailed(
        f"The request under {record.lock_token!r} failed with {failure.error}: {cause}.{waits}",
        failure.error,
        failure.cause,
    )


def lost(record: Lock) -> str:
    """Say how a lock was lost: the status and owner of its record now."""
    failure = f" with {record.failure.error}" if record.failure and record.status == FAILED else ""
    holder = f" by {record.locked_by}" if record.status == INPROGRESS else ""
    return f"The lock {record.lock_token!r} was lost: its record is now {record.status}{failure}{holder}."


def text_of(error: BaseException) -> str:
    """An error's text as a record can keep it. The error may be anybody's, and its text of any form."""
    try:
        text = str(error)[:CAUSE_LIMIT]
    except Exception as unwritten:  # its own `__str__` failed
        text = f"The error has no text ({type(unwritten).__name__})."
    return text.encode(errors="backslashreplace").decode()  # a file's name may hold half a character
