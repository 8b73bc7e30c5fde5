"""
The report on one request as typed objects: its attempts with their states and awaiting steps, its lock
record, and the advice on what to do next.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal, Self

from steponce.aws import times
from steponce.callbacks.step import ANSWERING, PENDING, AwaitingStep
from steponce.camelcase import json_object
from steponce.failure import Failure
from steponce.locks.record import Intervention, Lock
from steponce.next_step import NextStep
from steponce.workflow import COMPLETED, FAILED, INPROGRESS, OUTCOMES, RELEASE_LOCK, RELEASED, WORK

GONE = "GONE"
"""The status of an execution that Step Functions does not know, and of a step whose record has expired."""

HIDDEN = "HIDDEN"
"""The status of an execution that cannot be described from here. It counts as alive."""

LEASED = "LEASED"
"""The status of a guarded call that holds a lock, until its lease ends."""

Diagnosis = Literal[
    "starting",
    "running",
    "overdue",
    "completed",
    "failed",
    "waits for a person",
    "unsettled",
    "unwritten",
    "released",
    "expired",
    "rate limited",
    "turned away",
]
"""
    starting            its execution runs and has not taken the lock yet
    running             the owner of its lock is alive, or it works without a lock
    overdue             the owner of its lock is alive, and takes longer than expected
    completed           the result is on record
    failed              a final failure is on record, or the execution ended before it took the lock
    waits for a person  a failure that is not final is on record
    unsettled           the lock is open and its owner is dead
    unwritten           the owner is dead and its work is done, but the result is too large to record
    released            nothing happened; anyone may take the lock
    expired             the record is gone or has expired
    rate limited        its user has had all requests of the window; nothing happened
    turned away         another request has the lock token, and does not answer for this one
"""


@dataclass(frozen=True)
class Trouble:
    """An error during a visit: a failed try, a time-out, a failed branch. `error` may be None."""

    time: str
    event: str
    error: str | None


@dataclass
class Visit:
    """One visit of a state. Times are UTC text. `exited` is None until it ends, and for a Fail state."""

    state: str
    entered: str
    exited: str | None = None
    tries: int = 0
    troubles: list[Trouble] = field(default_factory=list)

    @property
    def seconds(self) -> float | None:
        return _seconds(self.entered, self.exited)


@dataclass(frozen=True)
class Waiting:
    """
    A step that waits, or waited, for an answer from outside. It never contains the task token.

    Args:
        awaiting_step_id: The id that an answer names.
        state: The state that waits.
        step: The step's own name.
        status: PENDING, ANSWERING, ANSWERED, LATE, or GONE if the record has expired.
        entered: When the wait began (UTC text). None if the record has expired.
        expires_at: When the state times out at the latest (UTC text).
        expired: Whether that time is over.
        answer_by: When it ends if neither an answer nor a heartbeat comes before (UTC text). None if that is
            not on record.
        left: Whether the state has been left, or its execution has ended. The record may still be PENDING.
        outcome: The answer's outcome, `success` or `failure`. None before the answer.
        answer: The answer itself. None unless the caller asked for payloads.
    """

    awaiting_step_id: str
    state: str
    step: str
    status: str
    entered: str | None
    expires_at: str
    expired: bool
    outcome: str | None = None
    answer: Any = None
    answer_by: str | None = None
    left: bool = False

    @property
    def is_open(self) -> bool:
        return self.status in (PENDING, ANSWERING) and not self.left

    @classmethod
    def from_step(cls, step: AwaitingStep, state: str, *, with_answer: bool) -> Self:
        answer = step.answer
        return cls(
            awaiting_step_id=step.id,
            state=state,
            step=step.step,
            status=step.status,
            entered=step.entered_at,
            expires_at=step.expires_at,
            expired=step.expires_at < times.now_text(),
            outcome=answer.outcome if answer else None,
            answer=json.loads(answer.to_json()) if answer and with_answer else None,
            answer_by=step.answer_by,
        )


@dataclass(frozen=True)
class Attempt:
    """
    One execution of the request.

    `error` is the error's name only. `cause` and `payload` are None unless the caller asked for payloads,
    because Step Functions quotes a state's input in some causes. A cancelled execution always has its cause,
    which says who cancelled it, and why. `resent` is how often the request's message had been resent before.
    `limited_until` is when the window ends whose rate limit has refused it (UTC text). None if none has.
    `current_states` are the states that it is in: one of each branch of its Parallels and Maps. There is none
    between two states, and none after its end.
    """

    number: int
    execution_arn: str
    status: str
    started: str | None = None
    stopped: str | None = None
    redrive_count: int = 0
    error: str | None = None
    cause: str | None = None
    payload: Any = None
    resent: int = 0
    limited_until: str | None = None
    visits: list[Visit] = field(default_factory=list)
    awaiting_steps: list[Waiting] = field(default_factory=list)
    current_states: list[str] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        return self.status in ("RUNNING", "PENDING_REDRIVE", HIDDEN, LEASED)

    @property
    def last_state(self) -> str:
        return self.visits[-1].state if self.visits else ""

    @property
    def place(self) -> str:
        """The states that it is in, in words. Between two states the last one, and empty before the first."""
        *others, last = self.current_states or [self.last_state]
        return f"{', '.join(others)} and {last}" if others else last

    @property
    def has_worked(self) -> bool:
        """Whether it began the work, which has not said that nothing happened."""
        visited = {visit.state for visit in self.visits}
        return WORK in visited and RELEASE_LOCK not in visited

    def has_worked_since(self, released: str | None) -> bool:
        """Whether it was redriven, and may have worked, since its lock was released (UTC text)."""
        is_later = self.is_open or (self.stopped or "") > (released or "")
        return self.redrive_count > 0 and self.has_worked and is_later

    @property
    def works_again(self) -> bool:
        """Whether it was redriven, and is in its work. A state that writes an outcome is no work."""
        return self.redrive_count > 0 and self.is_open and self.has_worked and self.last_state not in OUTCOMES

    def worked_again_after(self, newest: Attempt) -> bool:
        """Whether it was redriven, has been in its work, and ended after the newest attempt had ended."""
        is_later = (self.stopped or "") > (newest.stopped or newest.started or "")
        return self.redrive_count > 0 and not self.is_open and self.has_worked and is_later

    @property
    def waits_for(self) -> list[Waiting]:
        """The open steps of the states that the execution is in, the one that ends first at the beginning."""
        found = [one for one in self.awaiting_steps if one.is_open] if self.is_open else []
        return sorted(found, key=lambda one: one.answer_by or one.expires_at)


@dataclass(frozen=True)
class Record:
    """
    The lock record for people: with `overdue` and `expired`, and the parsed result.

    `interventions` are the changes by others than the owner, oldest first. `lease_until` is when the lease of
    a guarded call ends; None if the owner is an execution. `execution_name` is the owner's name; None if the
    owner is no execution.
    `result` of a large result that was not read is the reference to it; `unread` says why it could not be.
    """

    lock_token: str
    status: str
    overdue: bool
    expired: bool
    on_open_index: bool
    locked_by: str
    request_id: str
    attempt: int
    created: str
    expected_completion: str
    actual_completion: str | None
    expires_at: str | None
    result: Any
    error: str | None
    cause: str | None
    interventions: tuple[Intervention, ...] = ()
    lease_until: str | None = None
    execution_name: str | None = None
    unread: str | None = None

    @property
    def answers(self) -> bool:
        """Whether it is final, so that later requests get it until it expires."""
        return self.status in (COMPLETED, FAILED) and not self.on_open_index

    @classmethod
    def from_lock(cls, lock: Lock) -> Self:
        now = times.now_text()
        failure = lock.failure or Failure(None, None)
        return cls(
            lock_token=lock.lock_token,
            status=lock.status,
            overdue=lock.status == INPROGRESS and lock.expected_completion < now,
            expired=lock.status != RELEASED and lock.is_reusable(now),
            on_open_index=lock.open_status is not None,
            locked_by=lock.locked_by,
            request_id=lock.request_id,
            attempt=lock.attempt,
            created=lock.created,
            expected_completion=lock.expected_completion,
            actual_completion=lock.actual_completion,
            expires_at=lock.expires_at,
            result=None if lock.result is None else json.loads(lock.result),
            error=failure.error,
            cause=failure.cause,
            interventions=lock.interventions,
            lease_until=lock.lease_until,
            execution_name=lock.execution_name,
        )

    @property
    def settled_by(self) -> Intervention | None:
        """The intervention that gave the record its outcome. None if its owner did."""
        last = self.interventions[-1] if self.interventions else None
        return last if last is not None and last.at == self.actual_completion else None


@dataclass(frozen=True)
class Story:
    """
    The report on one request.

    Args:
        request_id: As the caller gave it.
        lock_token: The business key. None if neither the caller nor any execution names it.
        diagnosis: What is going on, in a word.
        summary: What is going on, in a sentence or two.
        record: The lock record. None if there is none.
        attempts: The request's executions, oldest first.
        holder: The execution of another request, if that one holds the lock.
        next_steps: What to do next, in the order in which it makes sense.
    """

    request_id: str
    lock_token: str | None
    diagnosis: Diagnosis
    summary: str
    record: Record | None
    attempts: list[Attempt]
    holder: Attempt | None
    next_steps: tuple[NextStep, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The report as a JSON object, with names in camelCase, and with the duration of each visit."""
        report = json_object(self)
        for attempt, data in zip(self.executions(), _executions(report), strict=True):
            for visit, entry in zip(attempt.visits, data["visits"], strict=True):
                entry["seconds"] = visit.seconds
        return report

    def executions(self) -> Iterator[Attempt]:
        """The attempts, then the holder."""
        yield from self.attempts
        if self.holder is not None:
            yield self.holder


def _executions(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [*report["attempts"], *([report["holder"]] if report["holder"] else [])]


def _seconds(start: str, end: str | None) -> float | None:
    if end is None:
        return None
    passed: timedelta = times.from_text(end) - times.from_text(start)
    return passed.total_seconds()
