"""A request runs at most once, and everyone who asks gets the same answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steponce.errors import (
    AlreadyInProgress,
    CompletionRefused,
    Conflict,
    DuplicateRefused,
    InvalidAsOf,
    InvalidEventTime,
    InvalidRequest,
    LockLost,
    LockTokenMismatch,
    MachineAmbiguous,
    MachineNotFound,
    NotFinished,
    NotRecorded,
    PayloadMismatch,
    RateLimited,
    RecordUnreadable,
    RequestFailed,
    RequestNotFound,
    ResultAltered,
    ResultForbidden,
    ResultGone,
    ResultNotKept,
    ResultUnreadable,
    RetryLater,
    SteponceError,
    Unavailable,
    Unsettled,
    WaitTimeout,
)
from steponce.request.receipt import Receipt
from steponce.when_wanted import imported_when_wanted

if TYPE_CHECKING:
    from steponce.client import Client
    from steponce.guards.guard import Guard
    from steponce.guards.run import Run
    from steponce.limiter import Admission, Limiter, admit_all, admit_all_async

__all__ = [
    "Admission",
    "AlreadyInProgress",
    "Client",
    "CompletionRefused",
    "Conflict",
    "DuplicateRefused",
    "Guard",
    "InvalidAsOf",
    "InvalidEventTime",
    "InvalidRequest",
    "Limiter",
    "LockLost",
    "LockTokenMismatch",
    "MachineAmbiguous",
    "MachineNotFound",
    "NotFinished",
    "NotRecorded",
    "PayloadMismatch",
    "RateLimited",
    "Receipt",
    "RecordUnreadable",
    "RequestFailed",
    "RequestNotFound",
    "ResultAltered",
    "ResultForbidden",
    "ResultGone",
    "ResultNotKept",
    "ResultUnreadable",
    "RetryLater",
    "Run",
    "SteponceError",
    "Unavailable",
    "Unsettled",
    "WaitTimeout",
    "admit_all",
    "admit_all_async",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = imported_when_wanted(
        __name__,
        {
            "Admission": "steponce.limiter",
            "Client": "steponce.client",
            "Guard": "steponce.guards.guard",
            "Limiter": "steponce.limiter",
            "Run": "steponce.guards.run",
            "admit_all": "steponce.limiter",
            "admit_all_async": "steponce.limiter",
        },
    )
