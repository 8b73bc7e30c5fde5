"""
What can go wrong, as one tree:

    SteponceError
    ├── InvalidRequest (ValueError)      nothing was started; mend the request
    │   ├── InvalidRequestId
    │   ├── InvalidEventTime             too far in the future, or too old to be counted
    │   ├── InvalidLockToken
    │   ├── InvalidPayload               not JSON, or not what the schema asks for
    │   ├── MissingKey                   a JMESPath expression found nothing to take as the key
    │   ├── PayloadTooLarge
    │   ├── InvalidAnswer                a callback's answer is not one
    │   └── OutputTooLarge               a callback's answer is larger than Step Functions takes
    ├── InvalidSetting (ValueError)      an environment variable or Output is missing or malformed
    ├── Conflict                         the id or key is taken; nothing was started
    │   ├── PayloadMismatch              by another payload
    │   └── LockTokenMismatch            by another business key
    ├── StepAlreadyAnswered              a run waits twice under one step name
    ├── Forbidden                        a callback link is forged, expired or not meant for this
    ├── Refused                          an operator's command does not fit the record; nothing was written
    │   └── RecordChanged                it is not any more what the operator was shown
    ├── RecordUnreadable                 something else has written to a record; nothing was decided by it
    ├── OwnerHidden                      the execution that holds a lock cannot be asked for from here
    ├── LockNotFound (LookupError)       no record has this lock token, nor is it a request's that has one
    ├── RequestNotFound (LookupError)    nobody has started it, or its record has expired
    ├── StackNotFound (LookupError)      no stack of this name is deployed
    ├── NotFinished                      asked for the result of a request that still runs
    ├── RequestFailed                    asked for the result of a request that failed
    ├── AlreadyInProgress                another call of a guard holds the key, and may still work
    ├── DuplicateRefused                 a guard that refuses duplicates met a request that is completed
    ├── NotRecorded                      a guard's work is done, and its result is not on record
    │   └── CompletionRefused            because somebody else answers for its lock by now
    ├── ResultNotKept                    raised in the work: its large result could not be put into the bucket
    ├── ResultUnreadable                 a large result cannot be read from its bucket; its work is done
    │   ├── ResultGone                   it was deleted
    │   ├── ResultAltered                it is not what was kept
    │   └── ResultForbidden              the caller may not read it, or not there
    ├── Unsettled                        its execution is closed and nobody has written down how it ended
    ├── WaitTimeout (TimeoutError)       still running after the time the caller wanted to wait
    ├── TooManyAttempts                  every name for a next attempt is taken
    ├── Unavailable                      AWS throttled or did not answer; safe to try again
    ├── LockLost                         raised in the work: somebody else owns the lock now, do nothing
    └── RetryLater                       raise it in your work: nothing happened, try again later

The class names of the last two and of ResultNotKept are error names of the workflow, so they do not change.
RecordUnreadable is one, too: the workflow ends with it where it meets such a record.
"""

from __future__ import annotations

_LONGEST_SHOWN = 200


def shown(text: object) -> str:
    """A text from outside as an error message shows it: in quotes, and cut off where it gets long."""
    if isinstance(text, str) and len(text) > _LONGEST_SHOWN:
        return f"{text[:_LONGEST_SHOWN]!r}…"
    return repr(text)


class SteponceError(Exception):
    """Anything that this package raises on purpose."""


class InvalidRequest(SteponceError, ValueError):
    """The request cannot be started as it is; nothing was started or written."""


class InvalidRequestId(InvalidRequest):
    """The request id is empty, blank or not text."""


class InvalidEventTime(InvalidRequest):
    """The event's time has no zone, is in the future, or is too old for its window's counts to be there."""


class InvalidLockToken(InvalidRequest):
    """The lock token is empty, blank, not text or longer than a DynamoDB key may be."""


class InvalidPayload(InvalidRequest):
    """The payload is not JSON, or not an envelope that the workflow knows."""


class MissingKey(InvalidRequest):
    """The payload lacks the part that was to become the lock token or the payload hash."""


class PayloadTooLarge(InvalidRequest):
    """The envelope leaves too little of a workflow's 262,144 bytes for the result."""


class InvalidAnswer(InvalidRequest):
    """A callback's answer lacks something, or has something that no answer has."""


class OutputTooLarge(InvalidRequest):
    """A callback's output, error or cause, or a result given by hand, is larger than Step Functions takes."""


class InvalidSetting(SteponceError, ValueError):
    """An environment variable, or a stack's Output, is missing or malformed; the message says which."""


class StepAlreadyAnswered(SteponceError):
    """This step of this run has its answer; a second wait needs a step name of its own."""


class Forbidden(SteponceError):
    """The callback link does not allow this."""


class Conflict(SteponceError):
    """The request id or lock token belongs to another request; nothing was started."""


class PayloadMismatch(Conflict):
    """The id or key was used with another payload."""


class LockTokenMismatch(Conflict):
    """The id was used with another lock token."""


class Refused(SteponceError):
    """An operator's command would do harm, or has nothing to do, as the record is; nothing was written."""


class RecordChanged(Refused):
    """Somebody has changed the record, or what runs, since the operator was shown it."""


class RecordUnreadable(SteponceError):
    """
    A record is not as this package and its workflow write it, so nobody can tell what it says.

    `key` is its lock token or awaiting-step id, `attribute` what is wrong with it, `problem` in which way.
    """

    def __init__(self, key: str, attribute: str, problem: str) -> None:
        super().__init__(
            f"The record {key!r} cannot be read: its attribute {attribute} {problem}. Something else writes "
            "to the table. Mend the attribute there; or delete the record, once nothing of it runs."
        )
        self.key = key
        self.attribute = attribute
        self.problem = problem

    def public(self) -> dict[str, str]:
        """What may be shown and logged."""
        return {"key": self.key, "attribute": self.attribute, "problem": self.problem}


class OwnerHidden(SteponceError):
    """
    Nobody here can or may ask for the execution that holds a lock: it is in another region or account, or the
    permission is missing. It counts as alive.
    """


class LockNotFound(SteponceError, LookupError):
    """There is no lock record of this name."""


class RequestNotFound(SteponceError, LookupError):
    """Neither a record nor an execution answers to this request id."""


class StackNotFound(SteponceError, LookupError):
    """CloudFormation knows no stack of this name in this account and region."""


class NotFinished(SteponceError):
    """The request still runs, so there is no result yet."""


class RequestFailed(SteponceError):
    """
    The request ended in an error, which is its answer to everyone who asks.

    `error` and `cause` are as the work gave them; either may be None.
    """

    def __init__(self, message: str, error: str | None, cause: str | None) -> None:
        super().__init__(message)
        self.error = error
        self.cause = cause


class AlreadyInProgress(SteponceError):
    """
    Somebody else holds the lock, and still works or may still work. Nothing happened; ask again later.

    `locked_by` is the holder, `lease_until` (UTC text) the end of its lease; None where it is an execution.
    """

    def __init__(self, message: str, locked_by: str, lease_until: str | None) -> None:
        super().__init__(message)
        self.locked_by = locked_by
        self.lease_until = lease_until


class DuplicateRefused(SteponceError):
    """The request is completed, and the guard is to refuse duplicates instead of answering them."""


class NotRecorded(SteponceError):
    """
    The work is done, and its result is not on record. It must not be run again for that.

    `lock_token` names the record, `result` is what the work returned.
    """

    def __init__(self, message: str, lock_token: str, result: object) -> None:
        super().__init__(message)
        self.lock_token = lock_token
        self.result = result


class CompletionRefused(NotRecorded):
    """The work was late: its lease had ended, and somebody else answers for its lock by now."""


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
    """The execution that holds the lock is closed, and how it ended is not on record yet."""


class WaitTimeout(SteponceError, TimeoutError):
    """The request still runs; waiting again is free of side effects."""


class Unavailable(SteponceError):
    """
    AWS throttled the call (`throttled`) or did not answer. The same call is safe to try again.
    """

    def __init__(self, message: str, *, throttled: bool = False) -> None:
        super().__init__(message)
        self.throttled = throttled


class TooManyAttempts(SteponceError):
    """Every name for a next attempt of this request is taken by a closed execution."""


class LockLost(SteponceError):
    """This attempt does not hold the lock any more; its work must not take effect."""


class RetryLater(SteponceError):
    """Raised by the work: nothing has happened yet, so the workflow may try again."""
