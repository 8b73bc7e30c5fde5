"""The lock record: its attributes, its statuses, and what was done to it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

INPROGRESS = "INPROGRESS"
COMPLETED = "COMPLETED"
FAILED = "FAILED"
RELEASED = "RELEASED"

OUTCOME_UNKNOWN = "OutcomeUnknown"


@dataclass(frozen=True)
class Failure:
    """An error as Step Functions reports it; either part may be missing."""

    error: str | None
    cause: str | None

    @classmethod
    def from_json(cls, text: str) -> Self:
        found = json.loads(text)
        return cls.from_catch(found) if isinstance(found, dict) else cls(None, text)

    @classmethod
    def from_catch(cls, caught: Mapping[str, Any]) -> Self:
        """Read the object that a Catch puts into the state's data: `{"Error": …, "Cause": …}`."""
        return cls(caught.get("Error"), caught.get("Cause"))

    def to_json(self) -> str:
        return json.dumps({"Error": self.error, "Cause": self.cause}, ensure_ascii=False)


@dataclass(frozen=True)
class Intervention:
    """
    What somebody other than the owner did to a record.

    Args:
        at: When, as UTC text.
        by: Who: a function of ours, or a person's name.
        what: completed, failed, held or released.
        why: In words.
    """

    at: str
    by: str
    what: str
    why: str


@dataclass(frozen=True)
class Lock:
    """One lock record, as read. Times are UTC text, `ttl` is epoch seconds, `result` is JSON text."""

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

    @classmethod
    def from_item(cls, item: Mapping[str, Mapping[str, Any]]) -> Self:
        """Read a DynamoDB item in its typed form (`{"status": {"S": "COMPLETED"}}`)."""

        def text(name: str) -> str | None:
            return item.get(name, {}).get("S")

        def number(name: str) -> int | None:
            return int(item[name]["N"]) if "N" in item.get(name, {}) else None

        failure = text("failure")
        return cls(
            lock_token=text("lockToken") or "",
            status=text("status") or "",
            locked_by=text("lockedBy") or "",
            call_id=text("callId") or "",
            request_id=text("requestId") or "",
            attempt=number("attempt") or 0,
            created=text("created") or "",
            expected_completion=text("expectedCompletion") or "",
            payload_hash=text("payloadHash"),
            open_status=text("openStatus"),
            actual_completion=text("actualCompletion"),
            result=text("result"),
            failure=Failure.from_json(failure) if failure is not None else None,
            expires_at=text("expiresAt"),
            ttl=number("ttl"),
            interventions=tuple(Intervention(**one) for one in json.loads(text("interventions") or "[]")),
        )

    def is_reusable(self, now: str) -> bool:
        """
        Whether anyone may take this record, as AcquireLock's condition has it.

        A lock in progress is never reusable: only its owner's death frees it, not a clock. A failure
        that waits for a person has no `ttl`, and stays as well.
        """
        if self.status == RELEASED:
            return True
        expired = self.ttl is not None and self.expires_at is not None and self.expires_at < now
        return self.status in (COMPLETED, FAILED) and expired
