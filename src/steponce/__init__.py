"""A request runs at most once, and everyone who asks gets the same answer."""

from __future__ import annotations

import importlib
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

_IMPORTED_WHEN_WANTED = {
    "Admission": "steponce.limiter",
    "Client": "steponce.client",
    "Guard": "steponce.guards.guard",
    "Limiter": "steponce.limiter",
    "Run": "steponce.guards.run",
    "admit_all": "steponce.limiter",
    "admit_all_async": "steponce.limiter",
}


if not TYPE_CHECKING:  # a type checker would take any name for one that is there

    def __getattr__(name: str) -> object:
        """Let a function that wants neither client nor guard, nor boto3, start without importing them."""
        if name not in _IMPORTED_WHEN_WANTED:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(_IMPORTED_WHEN_WANTED[name]), name)


def __dir__() -> list[str]:
    """All names, also before they are imported."""
    return sorted(globals().keys() | _IMPORTED_WHEN_WANTED.keys())
