"""A request runs at most once, and everyone who asks gets the same answer."""

from steponce.client import Client
from steponce.errors import (
    AlreadyInProgress,
    CompletionRefused,
    Conflict,
    DuplicateRefused,
    InvalidRequest,
    LockLost,
    LockTokenMismatch,
    NotFinished,
    NotRecorded,
    PayloadMismatch,
    RequestFailed,
    RequestNotFound,
    RetryLater,
    SteponceError,
    Unavailable,
    Unsettled,
    WaitTimeout,
)
from steponce.guards.guard import Guard
from steponce.guards.run import Run
from steponce.request.receipt import Receipt

__all__ = [
    "AlreadyInProgress",
    "Client",
    "CompletionRefused",
    "Conflict",
    "DuplicateRefused",
    "Guard",
    "InvalidRequest",
    "LockLost",
    "LockTokenMismatch",
    "NotFinished",
    "NotRecorded",
    "PayloadMismatch",
    "Receipt",
    "RequestFailed",
    "RequestNotFound",
    "RetryLater",
    "Run",
    "SteponceError",
    "Unavailable",
    "Unsettled",
    "WaitTimeout",
]
