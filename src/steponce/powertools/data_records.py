"""A lock record as Powertools reads it."""

from __future__ import annotations

from aws_lambda_powertools.utilities.idempotency.persistence.datarecord import STATUS_CONSTANTS, DataRecord

from steponce.aws import times
from steponce.errors import RequestFailed
from steponce.locks.record import Lock


class FailedRecord(DataRecord):
    """
    A request that has failed: everyone who asks for its status gets its error.

    Powertools knows no failed records. It asks for the status outside of what it wraps in errors of its own,
    so the caller gets RequestFailed as it is.
    """

    def __init__(self, key: str, sort_key: str | None, payload_hash: str, failed: RequestFailed) -> None:
        super().__init__(key, payload_hash=payload_hash, sort_key=sort_key)
        self._failed = failed

    @property
    def status(self) -> str:
        raise self._failed


def in_progress(key: str, sort_key: str | None, payload_hash: str, lease_until: str | None) -> DataRecord:
    """
    A request whose lock is held.

    Powertools takes an end of a lease in the past for a record that has changed meanwhile, so it gets none: a
    lease that is over has been settled before this, but for Powertools' own records.
    """
    until = None if lease_until is None or lease_until < times.now_text() else _milliseconds(lease_until)
    return DataRecord(
        key,
        STATUS_CONSTANTS["INPROGRESS"],
        in_progress_expiry_timestamp=until,
        payload_hash=payload_hash,
        sort_key=sort_key,
    )


def completed(key: str, sort_key: str | None, payload_hash: str, lock: Lock) -> DataRecord:
    """A request that is done. A record that has expired and is not deleted yet gets no expiry time."""
    expires_at = lock.expires_at or times.NEVER  # `ttl` may be later
    return DataRecord(
        key,
        STATUS_CONSTANTS["COMPLETED"],
        expiry_timestamp=times.epoch_seconds(expires_at) if expires_at > times.now_text() else None,
        response_data=lock.result or "",
        payload_hash=payload_hash,
        sort_key=sort_key,
    )


def _milliseconds(text: str) -> int:
    return int(times.from_text(text).timestamp() * 1000)
