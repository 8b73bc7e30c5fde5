"""What a guard's errors and records say of a lock and of the work's own error."""

from __future__ import annotations

from steponce.errors import RequestFailed
from steponce.failure import Failure
from steponce.locks.record import Lock
from steponce.workflow import CAUSE_LIMIT, FAILED, INPROGRESS

_EXCEPTIONS = vars(BaseExceptionGroup)["exceptions"]
"""The errors of a group, which a subclass may hide."""


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
    """
    An error as a record can keep it. It may be anybody's, with a name and a text of any form.

    The cause of an exception group names the errors in it: its own text has only their number.
    """
    text = _text_of(error)
    if _is_group(error):
        text = f"{text}: {_texts_in(error)}"
    return Failure(_name_of(error), _stored(text))


def without_text(error: BaseException) -> Failure:
    """An error by its name alone."""
    return Failure(_name_of(error), "The error's text was not read.")


def _texts_in(group: BaseException) -> str:
    """The names and texts of a group's errors, also of groups in it, up to the length of a cause."""
    found, length, left = list[str](), 0, [group]
    while left and length < CAUSE_LIMIT:
        error = left.pop()
        if _is_group(error):
            left.extend(reversed(_EXCEPTIONS.__get__(error)))
            continue
        found.append(f"{_name_of(error)}: {_text_of(error)[:CAUSE_LIMIT]}")
        length += len(found[-1])
    return "; ".join(found)


def _is_group(error: BaseException) -> bool:
    """By its type alone: it may raise when it is asked for its class."""
    return issubclass(type(error), BaseExceptionGroup)


def _text_of(error: BaseException) -> str:
    try:
        return str.__str__(str(error))  # a subclass of str may cut and encode itself in its own way
    except Exception as unwritten:  # its own `__str__` failed
        return f"The error has no text ({_name_of(unwritten)})."


def _name_of(error: BaseException) -> str:
    """The name of its class, which a metaclass may hide."""
    return _stored(vars(type)["__name__"].__get__(type(error)))


def _stored(text: str) -> str:
    """What DynamoDB stores: a file's name may hold half a character."""
    return text[:CAUSE_LIMIT].encode(errors="backslashreplace").decode()[:CAUSE_LIMIT]
