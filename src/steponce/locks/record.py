"""The lock record: its attributes, and the interventions in it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Self

from steponce.aws import times
from steponce.aws.dynamodb import Attributes, Item
from steponce.failure import Failure
from steponce.workflow import (
    COMPLETED,
    FAILED,
    INPROGRESS,
    LONGEST_TIMEOUT,
    RELEASED,
)

_EXECUTION = "arn:"
"""What the owner's name begins with if it is an execution."""

POWERTOOLS = "Powertools"
"""Who holds a record that Powertools' own DynamoDB layer has written: it does not say more."""

LETTERS = "steponce:letter:"
"""What a key of the lock table begins with if it marks a dead letter. No lock token begins like this."""

KEPT_AFTER_EXPIRY = timedelta(days=1)
"""
How long DynamoDB keeps a workflow's record after it has expired. The record answers nobody any more. It shows
the search for lost messages that there was an answer.
"""

_OURS_ALONE = ("callId", "lockedBy", "requestId", "attempt", "created", "expectedCompletion")


@dataclass(frozen=True)
class Intervention:
    """
    A change of a record by somebody other than its owner.

    Args:
        at: When, as UTC text.
        by: Who: the name of a function or of a person.
        what: completed, failed, held, released or cancelled.
        why: The reason, in words.
    """

    at: str
    by: str
    what: str
    why: str


def ttl_of(expires_at: str) -> int:
    """The `ttl` of a workflow's record that expires then, in epoch seconds."""
    deleted = times.after(times.from_text(expires_at), KEPT_AFTER_EXPIRY.total_seconds())
    return times.epoch_seconds(times.to_text(deleted))


@dataclass(frozen=True)
class Lock:
    """
    One lock record, as read. Times are UTC text, `ttl` is epoch seconds, `result` is JSON text.

    `request_id` is the caller's own, of the request that took the lock last; of plain Python it is the key
    without its prefix. `execution_name` is that of its execution; None for plain Python.

    `work_timeout_seconds` is the time-out of one try of the work, in the workflow that holds the lock. None
    for plain Python, and for a lock that was read from the open index.

    Of a record that Powertools' own layer has written (`is_of_powertools`) `call_id` and `created` are empty
    and `attempt` is 0. Only that layer writes to it: it is read, replayed and waited for.
    """

    lock_token: str
    status: str
    locked_by: str
    call_id: str
    request_id: str
    attempt: int
    created: str
    expected_completion: str
    payload_hash: str | None = None
    open_status: str | None = None
    actual_completion: str | None = None
    result: str | None = None
    failure: Failure | None = None
    expires_at: str | None = None
    ttl: int | None = None
    interventions: tuple[Intervention, ...] = ()
    lease_until: str | None = None
    execution_name: str | None = None
    work_timeout_seconds: int | None = None
    is_of_powertools: bool = False

    @classmethod
    def from_item(cls, item: Item) -> Self:
        """
        Read a DynamoDB item in its typed form (`{"status": {"S": "COMPLETED"}}`).

        Raises:
            RecordUnreadable: an attribute is missing, or has a form that the workflow never writes.
        """
        read = Attributes(item, "lockToken")
        read.optional_json("result")
        if "ttl" in item and not item.keys() & set(_OURS_ALONE):
            return cls._of_powertools(read)
        return cls(
            lock_token=read.key,
            status=read.text("status"),
            locked_by=read.text("lockedBy"),
            call_id=read.text("callId"),
            request_id=read.text("requestId"),
            attempt=read.whole("attempt", least=1),
            created=read.time("created"),
            expected_completion=read.time("expectedCompletion"),
            payload_hash=read.optional_text("payloadHash"),
            open_status=read.optional_text("openStatus"),
            actual_completion=read.optional_time("actualCompletion"),
            result=read.optional_text("result"),
            failure=_failure(read),
            expires_at=read.optional_time("expiresAt"),
            ttl=read.optional_whole("ttl", least=0),
            interventions=read_interventions(read),
            lease_until=read.optional_time("leaseUntil"),
            execution_name=_execution_name(read),
            work_timeout_seconds=read.optional_whole("workTimeoutSeconds", least=1, most=LONGEST_TIMEOUT),
        )

    @classmethod
    def _of_powertools(cls, read: Attributes) -> Self:
        status, until = read.text("status"), read.optional_whole("in_progress_expiration", least=0)
        result, ttl = read.optional_text("result"), read.optional_whole("ttl", least=0)
        if status not in (INPROGRESS, COMPLETED):
            read.refuse("status", "is none that Powertools writes")
        if status == COMPLETED and result is None:
            read.refuse("result", "is missing")
        lease_until = None if until is None else _time(read, "in_progress_expiration", until / 1000)
        return cls(
            lock_token=read.key,
            status=status,
            locked_by=POWERTOOLS,
            call_id="",
            request_id=read.key,
            attempt=0,
            created="",
            expected_completion=lease_until or times.NEVER,
            payload_hash=read.optional_text("payloadHash"),
            result=result,
            expires_at=_time(read, "ttl", ttl or 0),
            ttl=ttl,
            lease_until=lease_until,
            is_of_powertools=True,
        )

    @property
    def is_of_an_execution(self) -> bool:
        """Whether its owner is an execution. The owner of a guard's lock is none, and has a lease instead."""
        return self.locked_by.startswith(_EXECUTION)

    @property
    def waits_for_person(self) -> bool:
        """Whether it is a failure that is not final: a person decides what becomes of the request."""
        return self.status == FAILED and self.open_status is not None

    @property
    def taken_at(self) -> str:
        """
        When it was taken, as text that sorts among other times. Empty for a record of Powertools' own layer.

        `created` is what the workflow has written, and what the fence compares.
        """
        return self.created and times.to_text(times.from_text(self.created))

    def work_timeout(self, default_seconds: float) -> timedelta:
        """
        How long the work may run after its execution was stopped: what the record says, else the default.

        Stopping an execution does not stop its Lambda.
        """
        known = self.work_timeout_seconds
        return timedelta(seconds=default_seconds if known is None else known)

    @property
    def retention_seconds(self) -> float | None:
        """How long its answer is kept, as the request's own rules said. None means for ever."""
        if self.expires_at is None or self.expires_at == times.NEVER:
            return None
        return (times.from_text(self.expires_at) - times.from_text(self.created)).total_seconds()

    def has_payload(self, payload_hash: str | None) -> bool:
        """
        Whether a request with this payload hash may have the record's answer.

        Powertools hashes its own way, and only if it is configured to, so the key alone decides.
        """
        return self.is_of_powertools or self.payload_hash == payload_hash

    def is_leased(self, now: str) -> bool:
        """
        Whether a guard holds the lock and its lease is not over.

        A lock of Powertools' own layer counts as leased until that layer, or DynamoDB's TTL, ends its record.
        """
        if self.status != INPROGRESS or self.is_of_an_execution:
            return False
        if self.is_of_powertools:
            return True
        return self.lease_until is not None and self.lease_until >= now

    def is_reusable(self, now: str) -> bool:
        """
        Whether anyone may take this lock. It is the same rule as AcquireLock's condition.

        A lock in progress never expires by a clock. A failure that waits for a person has no `ttl`, and does
        not expire either. A record of Powertools' own layer is not taken until DynamoDB deletes it.
        """
        if self.is_of_powertools:
            return False
        if self.status == RELEASED:
            return True
        expired = self.ttl is not None and self.expires_at is not None and self.expires_at < now
        return self.status in (COMPLETED, FAILED) and expired


def _execution_name(read: Attributes) -> str | None:
    """Every execution writes its own."""
    is_of_an_execution = read.text("lockedBy").startswith(_EXECUTION)
    return read.text("executionName") if is_of_an_execution else read.optional_text("executionName")


def _time(read: Attributes, name: str, epoch: float) -> str:
    try:
        return times.to_text(datetime.fromtimestamp(epoch, UTC))
    except (ValueError, OverflowError, OSError):
        return read.refuse(name, "is no time")


def _failure(read: Attributes) -> Failure | None:
    text = read.optional_text("failure")
    if text is None:
        return None
    read.optional_json("failure")
    failure = Failure.from_json(text)
    if not all(part is None or isinstance(part, str) for part in (failure.error, failure.cause)):
        read.refuse("failure", "is no error with a cause")
    return failure


def read_interventions(read: Attributes) -> tuple[Intervention, ...]:
    """What people did to a record, the newest last."""
    found = read.optional_json("interventions")
    if found is None:
        return ()
    names = {field.name for field in fields(Intervention)}
    for one in found if isinstance(found, list) else [None]:
        given = one if isinstance(one, dict) else {}
        if set(given) != names or not all(isinstance(text, str) for text in given.values()):
            read.refuse("interventions", "is no list of interventions")
    return tuple(Intervention(**one) for one in found)
