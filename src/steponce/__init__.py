"""A request runs at most once, and everyone who asks gets the same answer."""

from steponce.client import Client
from steponce.errors import (
    Conflict,
    InvalidRequest,
    LockLost,
    LockTokenMismatch,
    NotFinished,
    PayloadMismatch,
    RequestFailed,
    RequestNotFound,
    RetryLater,
    SteponceError,
    Unavailable,
    Unsettled,
    WaitTimeout,
)
from steponce.request.receipt import Receipt

__all__ = [
    "Client",
    "Conflict",
    "InvalidRequest",
    "LockLost",
    "LockTokenMismatch",
    "NotFinished",
    "PayloadMismatch",
    "Receipt",
    "RequestFailed",
    "RequestNotFound",
    "RetryLater",
    "SteponceError",
    "Unavailable",
    "Unsettled",
    "WaitTimeout",
]
