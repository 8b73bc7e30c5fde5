"""One request in a list of requests, and which of them are wanted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

from steponce.aws import times
from steponce.executions import Execution, machine_of
from steponce.locks.record import Lock
from steponce.locks.reference import Kept
from steponce.locks.results import Results
from steponce.request.machine import Machine
from steponce.request.names import name_of, split_attempt
from steponce.workflow import COMPLETED, FAILED, INPROGRESS, RELEASED

Status = Literal["RUNNING", "COMPLETED", "FAILED", "RELEASED"]

_OF_RECORD: dict[str, Status] = {
    INPROGRESS: "RUNNING",
    COMPLETED: "COMPLETED",
    FAILED: "FAILED",
    RELEASED: "RELEASED",
}
_OF_EXECUTION: dict[str, Status] = {"RUNNING": "RUNNING", "SUCCEEDED": "COMPLETED"}


@dataclass(frozen=True)
class Wanted:
    """
    Which requests to list.

    Args:
        status: Only those of this status. None: all.
        since: Only those that began at this time or later (UTC text).
        until: Only those that began at this time or before (UTC text).
        under: Only those whose lock token begins so. Empty: all.
    """

    status: Status | None = None
    since: str | None = None
    until: str | None = None
    under: str = ""

    @property
    def has_executions(self) -> bool:
        """Whether executions without a record are wanted. `since` gives them an end."""
        return self.since is not None or self.status == "RUNNING"

    def spans(self, began: str) -> bool:
        """Whether a request that began at this time is wanted. One without a known time is."""
        return not began or (self.since or "") <= began <= (self.until or times.NEVER)


@dataclass(frozen=True)
class Request:
    """
    One request in the list. Times are UTC text.

    Args:
        request_id: As the caller gave it; of plain Python the key without its prefix.
        lock_token: Its business key. None if nothing tells it.
        status: RUNNING, COMPLETED, FAILED, or RELEASED: nothing happened, and it may start again.
        machine: The ARN of its state machine. None for plain Python.
        locked_by: The owner in its lock record. None if it has no record of its own.
        execution_arn: Its execution. None for plain Python.
        attempt: How often the lock was taken.
        created: When its lock was taken last; without a record, when its execution began.
        finished: When it ended. None while it runs.
        expires_at: When its record stops answering. None if it has none, or waits for a person.
        expired: Whether that time is over.
        waits_for_person: Whether its failure is not final, and a person decides.
        error: The error's name, if it failed. Never the cause.
        result_in: Where its result is kept: `record` or `bucket`. None if there is none.
    """

    request_id: str
    lock_token: str | None
    status: Status
    machine: str | None
    locked_by: str | None
    execution_arn: str | None
    attempt: int
    created: str | None
    finished: str | None
    expires_at: str | None = None
    expired: bool = False
    waits_for_person: bool = False
    error: str | None = None
    result_in: Literal["record", "bucket"] | None = None

    @classmethod
    def from_lock(cls, lock: Lock, results: Results) -> Self:
        """The request that has taken a lock last."""
        kept: Literal["record", "bucket"] = "bucket" if isinstance(results.of(lock), Kept) else "record"
        return cls(
            request_id=lock.request_id,
            lock_token=lock.lock_token,
            status=_OF_RECORD.get(lock.status, "FAILED"),
            machine=machine_of(lock.locked_by) if lock.is_of_an_execution else None,
            locked_by=lock.locked_by,
            execution_arn=lock.locked_by if lock.is_of_an_execution else None,
            attempt=lock.attempt,
            created=lock.taken_at or None,
            finished=lock.actual_completion,
            expires_at=lock.expires_at if lock.ttl is not None else None,
            expired=lock.status != RELEASED and lock.is_reusable(times.now_text()),
            waits_for_person=lock.waits_for_person,
            error=lock.failure.error if lock.failure else None,
            result_in=None if lock.result is None else kept,
        )

    @classmethod
    def from_execution(cls, machine: Machine, arn: str, started: str, execution: Execution) -> Self:
        """The request of an execution that has no record of its own."""
        return cls(
            request_id=id_of(arn, execution),
            lock_token=lock_token_of(machine, arn, execution),
            status=status_of(execution.status),
            machine=machine.arn,
            locked_by=None,
            execution_arn=arn,
            attempt=0,
            created=started,
            finished=execution.closed,
            error=execution.failure.error,
        )


def status_of(execution_status: str) -> Status:
    """The status of a request without a record, by that of its newest execution."""
    return _OF_EXECUTION.get(execution_status, "FAILED")


def id_of(arn: str, execution: Execution) -> str:
    """The caller's own id; for an execution that was started by hand, its name."""
    given = execution.input.get("requestId")
    return given if isinstance(given, str) and given else arn.rpartition(":")[2]


def lock_token_of(machine: Machine, arn: str, execution: Execution) -> str | None:
    """The lock token of an execution's request. None if it cannot be found."""
    name = split_attempt(arn.rpartition(":")[2])[0]
    is_by_hand = (
        "requestId" not in execution.input
    )  # its name is its id, from which its machine makes another
    return machine.lock_token_of(name_of(name) if is_by_hand else name, execution.input)
