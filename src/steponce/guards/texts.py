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


def failure_of(error: BaseException) -> Failure:
    """An error as a record can keep it. It may be anybody's, with a name and a text of any form."""
    try:
        text = str.__str__(str(error))  # a subclass of str may cut and encode itself in its own way
    except Exception as unwritten:  # its own `__str__` failed
        text = f"The error has no text ({_name_of(unwritten)})."
    return Failure(_name_of(error), _stored(text))


def without_text(error: BaseException) -> Failure:
    """An error by its name alone."""
    return Failure(_name_of(error), "The error's text was not read.")


def _name_of(error: BaseException) -> str:
    """The name of its class, which a metaclass may hide."""
    return _stored(vars(type)["__name__"].__get__(type(error)))


def _stored(text: str) -> str:
    """What DynamoDB stores: a file's name may hold half a character."""
    return text[:CAUSE_LIMIT].encode(errors="backslashreplace").decode()[:CAUSE_LIMIT]
