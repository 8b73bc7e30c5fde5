"""Compares the request of a start with the records and attempts that it finds: key, payload, rate limit."""

from __future__ import annotations

from datetime import timedelta

from steponce.aws import times
from steponce.errors import LockTokenMismatch, Unavailable
from steponce.executions import Execution
from steponce.locks.record import Lock
from steponce.request.belonging import payload_mismatch, payload_mismatch_of
from steponce.request.envelope import Envelope
from steponce.request.machine import Machine
from steponce.request.names import name_of

REFUSAL_STANDS = timedelta(seconds=10)
"""How long a refusal by the rate limit is repeated without a new execution for the same request."""


class Comparison:
    """What a start has asked for. Everything that answers it must be for the same."""

    def __init__(self, machine: Machine, envelope: Envelope) -> None:
        self._machine = machine
        self._envelope = envelope
        self._request_id = envelope.requestId

    def is_of_this_call(self, execution: Execution) -> bool:
        """Whether this very call has started an execution."""
        return bool(execution.input.get("callId") == self._envelope.callId)

    def expect_same_key(self, execution: Execution) -> None:
        """
        Refuse a second lock token for one id. Under a second lock token the work would run twice.

        An id keeps its lock token also after a release, so everyone who asks for the id finds one record.

        Args:
            execution: An attempt of this request.

        Raises:
            LockTokenMismatch: it has another lock token.
        """
        other = self._machine.lock_token_asked_for(name_of(self._request_id), execution)
        if other not in (None, self._envelope.lockToken):
            raise LockTokenMismatch(
                f"Request {self._request_id!r} was started with the lock token {other!r}, not "
                f"{self._envelope.lockToken!r}. Send the first lock token again, or use a new id."
            )

    def expect_payload_of_record(self, lock: Lock) -> None:
        """Refuse this start if a record is for another payload."""
        if not lock.has_payload(self._envelope.payloadHash):
            raise payload_mismatch_of(self._machine, lock, self._request_id)

    def expect_payload_of(self, execution: Execution) -> None:
        """Refuse this start if an attempt has another payload."""
        if not self._has_payload_of(execution):
            raise payload_mismatch(self._request_id, self._envelope.lockToken)

    def expect_same_request(self, execution: Execution) -> None:
        """
        Refuse this start if a quicker caller's attempt has another lock token or payload.

        That attempt has no record yet. If it is closed, it may have released its lock, so the caller may try
        again.
        """
        self.expect_same_key(execution)
        if execution.is_open:
            self.expect_payload_of(execution)
        elif not self._has_payload_of(execution):
            raise Unavailable(
                f"Another start of request {self._request_id!r}, with another payload, has just ended. "
                "Try again."
            )

    def was_just_refused(self, execution: Execution) -> bool:
        """
        Whether the rate limit has refused this very request a moment ago, and would refuse it again.

        Only for a moment, because an operator may reset or raise the limit at any time. Not for a message:
        it would be acknowledged, and nothing would bring it back. A caller that does not know the limit knows
        no windows, so it asks the machine again once the window is over.
        """
        resets_at, limit = execution.failure.resets_at, self._envelope.limit
        if resets_at is None or self._envelope.redelivery is not None:
            return False
        if limit is None and resets_at <= times.now():
            return False
        counted_alike = execution.input.get("limit") == limit
        since = times.to_text(times.now() - REFUSAL_STANDS)
        return self._has_payload_of(execution) and counted_alike and (execution.closed or "") > since

    def _has_payload_of(self, execution: Execution) -> bool:
        return self._machine.payload_hash_of(execution.input) == self._envelope.payloadHash
