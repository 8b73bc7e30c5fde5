"""
The names and limits that the package shares with the workflow (`run_once.asl.json`).

A rule test compares them with the definition.
"""

from __future__ import annotations

from datetime import timedelta

from steponce.errors import RetryLater

INPROGRESS = "INPROGRESS"
COMPLETED = "COMPLETED"
FAILED = "FAILED"
RELEASED = "RELEASED"

STATUSES = frozenset({INPROGRESS, COMPLETED, FAILED, RELEASED})
"""Every status of a lock record."""

OUTCOME_UNKNOWN = "OutcomeUnknown"
"""The error of a request whose work may have taken effect. A person decides."""

DUPLICATE_REFUSED = "DuplicateRefused"
"""The error of a workflow that is configured to refuse a duplicate instead of replaying its result."""

THROTTLED = "Lambda.TooManyRequestsException"
"""The only error of the Lambda service that proves that a function did not run."""

RELEASING = frozenset({RetryLater.__name__, THROTTLED})
"""Errors of the work that mean that nothing happened. The workflow releases its lock after them."""

LOCK_HELD = frozenset({"AlreadyInProgress", "LockContended", "ReplayTooLarge"})
"""
Errors of an execution that did not get the lock, because another one held it. Its work has not run. A record
that is too large to be read may be an answer, or a released one.
"""

MISMATCH = "PayloadMismatch"
"""The error of an execution whose lock token was used with another payload. Nothing has happened."""

RATE_LIMITED = "RateLimited"
"""The error of an execution whose user has had all requests of a window. Nothing has happened."""

NEXT_WINDOW = "AwaitNextWindow"
"""The state in which such an execution of a message waits, before it ends and its message comes again."""

LIMIT_CHANGED = "LimitChanged"
"""The error of an execution that began while its rate limit was deployed. Nothing has happened."""

UNANSWERED = RELEASING | LOCK_HELD | {RATE_LIMITED, LIMIT_CHANGED}
"""Errors of an execution that ended without an answer for its request."""

RESULT_TOO_LARGE = "ResultTooLarge"
"""
The error of an execution whose work is done, and whose result is not on record, or which was told so of
another one's work. The state in which it ends has the same name.
"""

TOO_LARGE = frozenset({RESULT_TOO_LARGE, "States.DataLimitExceeded", "Function.ResponseSizeTooLarge"})
"""Errors of an execution whose work is done, but whose result is too large to be recorded."""

RELEASE_LOCK = "ReleaseLock"
"""The state of an execution whose work has said that nothing happened."""

BEFORE_WORK = frozenset(
    {
        "IsRequestPrepared",
        "PrepareRequest",
        "IsRequestCounted",
        "LimitChanged",
        "CountRequest",
        "IsCallerWaiting",
        NEXT_WINDOW,
        "RateLimited",
        "AcquireLock",
        "ReadLock",
        "IsLockHeld",
        "IsPowertoolsRecord",
        "KeepLock",
        "IsTriedBefore",
        "StartCounting",
        "CountTry",
        "LockContended",
        "CheckOwner",
        "IsOwnerAlive",
        "AlreadyInProgress",
        MISMATCH,
        "RecordUnreadable",
        "ReplayResult",
        "ReplayError",
        "ReplayTooLarge",
        "DuplicateRefused",
        RELEASE_LOCK,
    }
)
"""
States in which the work has not happened. In ReleaseLock the work itself has said so. The states from
ReadLock on are for an execution that did not get the lock; it may hold the lock nevertheless, if
AcquireLock's reply was lost or its write took effect late. The states from CountRequest to RateLimited are
for workflows with a rate limit, before the lock.
"""

READING = "ReadLock"
"""The state of an execution that did not get the lock: there was a record that kept it away."""

WORK = "DoWork"
"""The state that begins the work. If it starts another execution, that one is asked for its end, too."""

TAKING_OVER = frozenset({"TakeOverLock", "ConfirmTakeover", "IsTakeoverConfirmed", "HoldLock"})
"""
States of an execution that takes over a lock. Its own work has not begun, but it is not confirmed that the
first owner was not redriven. So the outcome is unknown, and not idle.
"""

FAILING = frozenset({"IsErrorNamed", "RequestFailed", "FailedWithoutCause", "FailedWithoutReason"})
"""States in which an execution names its error. The state before them has settled what became of the lock."""

OUTCOMES = frozenset({"CompleteRequest", "RecordFinalError", "RecordError"})
"""States that write an outcome. Their input holds it."""

ANSWERING_STATES = OUTCOMES | {"ReplayError", "DuplicateRefused", RESULT_TOO_LARGE}
"""States of an execution that gives its request an answer. Its message must not come again."""

WORKFLOW_LIMIT = 262_144
"""Bytes that Step Functions allows for an input, an output and a task's result."""

LONGEST_TIMEOUT = 99_999_999
"""Seconds that Step Functions allows for a time-out, a heartbeat and a pause."""

CAUSE_LIMIT = 32_768
"""Characters of a cause that Step Functions takes, in SendTaskFailure and StopExecution."""

INIT_TIME = timedelta(seconds=10)
"""How long a Lambda may take to start. Its time-out counts from then on. DoWork's time-out includes it."""
