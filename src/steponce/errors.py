"""
All errors of this package, as one tree:

    SteponceError
    ├── InvalidRequest (ValueError)      the request is invalid; nothing was started
    │   ├── InvalidRequestId
    │   ├── InvalidEventTime             too far in the future, or too old to be counted
    │   ├── InvalidAsOf                  no whole number or time with a zone, or not what orders the record
    │   ├── InvalidLockToken
    │   ├── InvalidPayload               not JSON, or not what the schema allows
    │   ├── MissingKey                   a JMESPath expression found no key in the payload
    │   ├── PayloadTooLarge
    │   ├── InvalidAnswer                a callback's answer is malformed
    │   └── OutputTooLarge               a callback's answer is larger than Step Functions allows
    ├── InvalidSetting (ValueError)      an environment variable or Output is missing or malformed
    ├── Conflict                         the id or key is taken
    │   ├── PayloadMismatch              by another payload
    │   └── LockTokenMismatch            by another business key
    ├── StepAlreadyAnswered              a run waits again under the name of a step that has its answer
    ├── StepNameTaken                    a run waits twice at once under one step name, or was redriven
    ├── Forbidden                        a callback link is forged or expired, or allows another outcome only
    ├── Refused                          an operator's command does not fit the record; nothing was written
    │   └── RecordChanged                the record changed after the operator saw it
    ├── RecordUnreadable                 another program has damaged a record
    ├── OwnerHidden                      the execution that holds a lock cannot be described from here
    ├── LockNotFound (LookupError)       no record has this lock token or request id
    ├── RequestNotFound (LookupError)    the request was never started, or its record has expired
    ├── StackNotFound (LookupError)      no stack of this name is deployed
    ├── MachineNotFound (LookupError)    the stack has no workflow of this name
    ├── MachineAmbiguous (LookupError)   several workflows are meant; name one
    ├── NotFinished                      the request still runs, so it has no result
    ├── RequestFailed                    the request failed, so it has no result
    │   └── RateLimited                  its user has had all requests of the window; nothing happened
    ├── AlreadyInProgress                another call of a guard holds the key, and may still work
    ├── DuplicateRefused                 the request is completed, and the guard refuses duplicates
    ├── NotRecorded                      the work is done, but its result is not on record
    │   └── CompletionRefused            because another owner has its lock
    ├── ResultNotKept                    raised in the work: its large result could not be put into the bucket
    ├── ResultUnreadable                 a large result cannot be read from its bucket; its work is done
    │   ├── ResultGone                   it was deleted
    │   ├── ResultAltered                it is not what was kept
    │   └── ResultForbidden              the caller may not read it, or not there
    ├── Unsettled                        the request's owner is dead, and its outcome is not on record
    ├── WaitTimeout (TimeoutError)       the request still runs after the time to wait
    ├── TooManyAttempts                  every name for a next attempt is taken
    ├── StartRefused                     AWS refused the start of an operator's retry; its lock is released
    ├── StartUnknown                     an operator's retry may have started the next attempt; look first
    ├── Unavailable                      AWS throttled or did not answer; safe to try again
    ├── LockLost                         raised in the work: another owner has the lock, so do nothing
    └── RetryLater                       raise it in your work: nothing happened, try again later

The workflow uses the class names LockLost, RateLimited, RetryLater, RecordUnreadable and ResultNotKept as
error names, so they do not change.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from steponce.next_step import NextStep

_LONGEST_SHOWN = 200
_LARGEST_SHOWN_BITS = 1_024
_SCALARS = (str, int, float, Decimal, date, timedelta)


def shown(value: object) -> str:
    """
    Quote a value from outside for an error message.

    A long text is cut off. A dict in place of a text may be a whole payload, so only its type is told.
    """
    if isinstance(value, str) and len(value) > _LONGEST_SHOWN:
        return f"{value[:_LONGEST_SHOWN]!r}…"
    if isinstance(value, int) and value.bit_length() > _LARGEST_SHOWN_BITS:  # Python writes 4,300 digits
        return "a number that is too large"
    return repr(value) if value is None or isinstance(value, _SCALARS) else f"<{type(value).__name__}>"


def _restored(kind: type[SteponceError], args: tuple[object, ...], state: dict[str, Any]) -> SteponceError:
    error = kind.__new__(kind, *args)
    error.args = args  # OSError, a base of WaitTimeout, leaves this to `__init__`
    error.__dict__.update(state)
    return error


class SteponceError(Exception):
    """
    The base of all errors that this package raises.

    Attributes:
        next_steps: What a person can do about the error, in the order in which it makes sense. May be empty.
    """

    def __init__(self, *args: object, next_steps: Iterable[NextStep] = ()) -> None:
        super().__init__(*args)
        self.next_steps = tuple(next_steps)

    def __reduce__(self) -> tuple[Any, ...]:
        """Cross process boundaries whole: by default Python makes an error anew from its message alone."""
        return _restored, (type(self), self.args, self.__dict__)


class InvalidRequest(SteponceError, ValueError):
    """The request is invalid; nothing was started or written."""


class InvalidRequestId(InvalidRequest):
    """The request id is empty, blank or not text."""


class InvalidEventTime(InvalidRequest):
    """The event's time has no zone, is in the future, or is too old for its window's counts to be there."""


class InvalidAsOf(InvalidRequest):
    """`as_of` is neither a whole number nor a time with a zone, or is of another kind than the record's."""


class InvalidLockToken(InvalidRequest):
    """The lock token is empty, blank, not text or longer than a DynamoDB key may be."""


class InvalidPayload(InvalidRequest):
    """The payload is not JSON, or not an envelope that the workflow knows."""


class MissingKey(InvalidRequest):
    """The payload lacks the part that becomes the lock token or the payload hash."""


class PayloadTooLarge(InvalidRequest):
    """The envelope leaves too little of a workflow's 262,144 bytes for the result."""


class InvalidAnswer(InvalidRequest):
    """A callback's answer has missing, unknown or malformed fields."""


class OutputTooLarge(InvalidRequest):
    """A callback's output, error or cause, or a result given by hand, is too large for Step Functions."""


class InvalidSetting(SteponceError, ValueError):
    """An option, an environment variable or an Output is missing or malformed; the message says which."""


class StepAlreadyAnswered(SteponceError):
    """This step of this run has its answer. A second wait needs another step name."""


class StepNameTaken(SteponceError):
    """
    A wait that is no later one has this step name in this run: another item's, or that of before a redrive.

    No answer to the step can reach the wait that got this error.
    """


class Forbidden(SteponceError):
    """The callback link does not allow this."""


class Conflict(SteponceError):
    """The request id or lock token belongs to another request. A start that says so has started nothing."""


class PayloadMismatch(Conflict):
    """The id or key was used with another payload."""


class LockTokenMismatch(Conflict):
    """The id was used with another lock token."""


class Refused(SteponceError):
    """An operator's command would do harm to this record, or has nothing to do. Nothing was written."""


class RecordChanged(Refused):
    """The record, or the execution, changed after the operator saw it."""


ANOTHER_PROGRAM = (
    "Another program writes to the table. Correct the attribute there; or delete the record, once its "
    "execution and its work have ended. Without its lock record the next start runs the work again."
)
"""What to do about a damaged record, if it is no counter of a limit."""


class RecordUnreadable(SteponceError):
    """
    A record has a form that this package and its workflow never write, or a result of another type than the
    guarded function's.

    Attributes:
        key: The record's lock token or awaiting-step id.
        attribute: The name of the damaged attribute.
        problem: What is wrong with it. The value is never quoted.
    """

    def __init__(self, key: str, attribute: str, problem: str, what_next: str = ANOTHER_PROGRAM) -> None:
        super().__init__(
            f"The record {key!r} cannot be read: its attribute {attribute} {problem}. {what_next}"
        )
        self.key = key
        self.attribute = attribute
        self.problem = problem

    def public(self) -> dict[str, str]:
        """The fields that may be shown and logged."""
        return {"key": self.key, "attribute": self.attribute, "problem": self.problem}


class OwnerHidden(SteponceError):
    """
    The execution that holds a lock cannot be described from here. It counts as alive.

    It is in another region or account, or the permission is missing.
    """


class LockNotFound(SteponceError, LookupError):
    """No lock record has this lock token or request id."""


class RequestNotFound(SteponceError, LookupError):
    """Neither a record nor an execution belongs to this request id."""


class StackNotFound(SteponceError, LookupError):
    """This account and region have no stack of this name."""


class MachineNotFound(SteponceError, LookupError):
    """The stack's Outputs name no workflow with this state machine; the message says which there are."""


class MachineAmbiguous(SteponceError, LookupError):
    """A name, or a request id, fits several workflows of the stack; the message says which."""


class NotFinished(SteponceError):
    """The request still runs, so there is no result yet."""


class RequestFailed(SteponceError):
    """
    The request failed. Later requests under its key get the same failure.

    Attributes:
        error: The error's name, as the work gave it. May be None.
        cause: The error's text, as the work gave it. May be None.
    """

    def __init__(
        self, message: str, error: str | None, cause: str | None, *, next_steps: Iterable[NextStep] = ()
    ) -> None:
        super().__init__(message, next_steps=next_steps)
        self.error = error
        self.cause = cause


class RateLimited(RequestFailed):
    """
    The request's user has had all requests of a window. Nothing happened; start it again later.

    Attributes:
        resets_at: When the window ends, in UTC. A request with an event time of its own counts in the next
            window if it is started again with `count_at` at that time or later.
    """

    def __init__(
        self,
        message: str,
        cause: str | None,
        resets_at: datetime,
        *,
        next_steps: Iterable[NextStep] = (),
    ) -> None:
        super().__init__(message, type(self).__name__, cause, next_steps=next_steps)
        self.resets_at = resets_at


class AlreadyInProgress(SteponceError):
    """
    Another call holds the lock, and may still work. Nothing happened; try again later.

    Attributes:
        locked_by: The owner of the lock.
        lease_until: When its lease ends (UTC text). None if the owner is an execution.
    """

    def __init__(self, message: str, locked_by: str, lease_until: str | None) -> None:
        super().__init__(message)
        self.locked_by = locked_by
        self.lease_until = lease_until


class DuplicateRefused(SteponceError):
    """The request is completed, and the guard's `when_completed` is `refuse`."""


class NotRecorded(SteponceError):
    """
    The work is done, but its result is not on record. The work must not run again.

    Attributes:
        lock_token: The record's lock token.
        result: What the work returned.
    """

    def __init__(
        self, message: str, lock_token: str, result: object, *, next_steps: Iterable[NextStep] = ()
    ) -> None:
        super().__init__(message, next_steps=next_steps)
        self.lock_token = lock_token
        self.result = result


class CompletionRefused(NotRecorded):
    """The work was late: its lease had ended, and another owner has its lock."""


class ResultNotKept(SteponceError):
    """A result is too large for its record, and its bucket did not take it. The work is done."""


class ResultUnreadable(SteponceError):
    """
    The request is completed, its record has the address of its result, and the result cannot be read there.

    The work must not be run again for that.
    """


class ResultGone(ResultUnreadable):
    """The object that holds the result, or this version of it, is deleted."""


class ResultAltered(ResultUnreadable):
    """The object is not what was kept, by its size or its SHA-256."""


class ResultForbidden(ResultUnreadable):
    """The object may not be read or deleted by this caller, or is in a bucket that is not the stack's."""


class Unsettled(SteponceError):
    """The owner of the request's lock is dead, and its outcome is not on record."""


class WaitTimeout(SteponceError, TimeoutError):
    """The request still runs. Waiting again does no harm."""


class Unavailable(SteponceError):
    """AWS throttled the call (then `throttled` is true) or did not answer. The call is safe to repeat."""

    def __init__(self, message: str, *, throttled: bool = False, next_steps: Iterable[NextStep] = ()) -> None:
        super().__init__(message, next_steps=next_steps)
        self.throttled = throttled


class TooManyAttempts(SteponceError):
    """Every name for a next attempt of this request is taken by a closed execution."""


class StartRefused(SteponceError):
    """AWS refused the start of a retry. Its lock is released by then; the same command is safe to repeat."""


class StartUnknown(SteponceError):
    """
    A retry has released its lock, and no answer came to the start of the next attempt, which may run.

    Look before you repeat the retry: if that attempt has failed already, the work runs once more.
    """


class LockLost(SteponceError):
    """This attempt no longer holds the lock. Its work must not take effect."""


class RetryLater(SteponceError):
    """
    Raised by the work: nothing has happened yet, so the workflow may try again.

    Attributes:
        raised_by: The callId and attempt whose check or update raised it. None: the work itself did.
    """

    raised_by: tuple[str, int] | None = None
