"""The requests of one caller, started and read through the client that all share."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from steponce.client import Client
from steponce.errors import (
    InvalidRequestId,
    RecordUnreadable,
    RequestNotFound,
    Unavailable,
    Unsettled,
    WaitTimeout,
)
from steponce.http_api.callers import Scope
from steponce.request.names import name_of
from steponce.request.receipt import Receipt


@dataclass(frozen=True)
class Found:
    """
    What is known of a request.

    Args:
        receipt: Of the request; RUNNING as well while its end is not on record.
        unsettled: Whether its execution is closed, and its end is not on record yet.
    """

    receipt: Receipt
    unsettled: bool = False


class CallersRequests:
    """
    One caller's requests, for the time of one call.

    Args:
        client: For the machine; its rules are narrowed to the caller's scope.
        scope: The caller's.
    """

    def __init__(self, client: Client, scope: Scope) -> None:
        self._client = client
        self._scope = scope
        self._rules = scope.rules(client.rules)
        self._began = time.monotonic()

    def start(self, key: str, payload: Mapping[str, Any]) -> Found:
        """
        Start a request, or find the one already started.

        Raises:
            InvalidRequest, PayloadMismatch, LockTokenMismatch, Unavailable: as `Client.start`.
        """
        request_id = self._scope.request_id(key)
        token = self._rules.lock_token(name_of(request_id), payload)
        try:
            return Found(self._client.start(request_id, payload, lock_token=token))
        except Unsettled:
            return Found(Receipt.running(request_id, token, "", duplicate=True), unsettled=True)

    def follow(self, started: Found, payload: Mapping[str, Any], seconds: float) -> Found:
        """
        Wait for the end of what `start` has found; that it was started stands, whatever happens now.

        Raises:
            PayloadMismatch: it ended without a lock, and its key is used with another payload by now.
        """
        receipt = started.receipt
        if receipt.status != "RUNNING" or started.unsettled:
            return started
        try:
            done = self._wait(receipt.request_id, receipt.lock_token, seconds, payload)
        except (WaitTimeout, RequestNotFound, RecordUnreadable, Unavailable):
            return started
        except Unsettled:
            return Found(receipt, unsettled=True)
        return Found(done.as_duplicate(receipt.duplicate or done.duplicate))

    def read(self, key: str, seconds: float) -> Found:
        """
        Say what is known of a request, after a wait for its end.

        Raises:
            RequestNotFound: this caller has started none with this key, even if another caller has.
            Unavailable: as `Client.status`.
        """
        request_id = self._scope.request_id(key)
        try:
            token = self._lock_token(request_id)
            if seconds:
                try:
                    return Found(self._wait(request_id, token, seconds))
                except WaitTimeout:
                    pass
                except Unsettled:
                    receipt = self._client.status(request_id, lock_token=token)
                    return Found(receipt, unsettled=receipt.status == "RUNNING")  # it may be settled by now
            return Found(self._client.status(request_id, lock_token=token))
        except InvalidRequestId:
            raise RequestNotFound("Nobody can have started this.") from None

    def _lock_token(self, request_id: str) -> str | None:
        """The lock token if it follows from the request id: then no execution must be described."""
        if self._rules.lock_token_path is not None:
            return None
        return self._rules.lock_token(name_of(request_id), {})

    def _wait(
        self, request_id: str, token: str | None, seconds: float, payload: Mapping[str, Any] | None = None
    ) -> Receipt:
        """Wait, counting from when the call came in."""
        left = max(0.0, seconds - (time.monotonic() - self._began))
        return self._client.wait(request_id, timeout_seconds=left, lock_token=token, payload=payload)
