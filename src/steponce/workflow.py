"""
Names and limits that the package shares with the workflow (`run_once.asl.json`).

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
"""The error of a request whose work may or may not have taken effect; a person decides."""

DUPLICATE_REFUSED = "DuplicateRefused"
"""The error of a workflow that is configured to refuse a duplicate instead of replaying its result."""

THROTTLED = "Lambda.TooManyRequestsException"
"""The only error of the Lambda service that proves that the function did not run."""

RELEASING = frozenset({RetryLater.__name__, THROTTLED})
"""Errors of the work after which nothing has happened, so that the workflow releases its lock."""

LOCK_HELD = frozenset({"AlreadyInProgress", "LockContended"})
"""Errors of an execution that another one kept from the lock. Its own work has not run."""

TOO_LARGE = frozenset({"ResultTooLarge", "States.DataLimitExceeded", "Function.ResponseSizeTooLarge"})
"""Errors of an execution whose work is done, with a result that it could not carry on to be recorded."""

BEFORE_WORK = frozenset(
    {
        "IsRequestPrepared",
        "PrepareRequest",
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
        "PayloadMismatch",
        "RecordUnreadable",
        "ReplayResult",
        "ReplayTooLarge",
        "DuplicateRefused",
        "ReleaseLock",
    }
)
"""
States of the holder in which nothing has happened. ReleaseLock says so of its work. Those from ReadLock on
are for whoever was refused the lock: AcquireLock's write took effect and its answer was lost, or a copy of it
arrived when the execution had gone on.
"""

TAKING_OVER = frozenset({"TakeOverLock", "ConfirmTakeover", "IsTakeoverConfirmed", "HoldLock"})
"""
States of a holder that took over from another. Its own work has not begun, but it has not made sure that
the first owner was not redriven, and its successor could not: the outcome is unknown, not idle.
"""

OUTCOMES = frozenset({"CompleteRequest", "RecordFinalError", "RecordError"})
"""States that write an outcome. Their input holds what they meant to write."""

WORKFLOW_LIMIT = 262_144
"""Bytes that Step Functions allows for an input, an output and a task's result."""

INIT_TIME = timedelta(seconds=10)
"""A Lambda's time-out counts from after its start-up, which may take so long. DoWork allows for it too."""
