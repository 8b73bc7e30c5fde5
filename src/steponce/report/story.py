"""
A request's whole story, as typed objects: its attempts, the states they went through, the answers they
waited for, the lock record, and what is going on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal, Self

from steponce.aws import times
from steponce.callbacks.awaiting import ANSWERING, PENDING, AwaitingStep
from steponce.camelcase import json_object
from steponce.locks.record import Failure, Intervention, Lock
from steponce.workflow import COMPLETED, FAILED, INPROGRESS, RELEASED

GONE = "GONE"
"""Status of an execution that Step Functions does not describe (forgotten, or too new), or of a step."""

HIDDEN = "HIDDEN"
"""Status of an execution that cannot or may not be asked for from here; it counts as alive."""

LEASED = "LEASED"
"""Status of plain Python that holds a lock, until its lease ends."""

Situation = Literal[
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
    "turned away",
]
"""
    starting            its execution runs and has not taken the lock yet
    running             the owner of its lock lives
    overdue             likewise, and longer than expected
    completed           the result is on record
    failed              a final error is on record, or the execution ended before it took the lock
    waits for a person  an error that is not final is on record
    unsettled           the lock is open and its owner is closed
    unwritten           likewise, after work that is done and too large to record
    released            nothing happened; anyone may take the lock
    expired             the record is gone or has served its time
    turned away         the lock token is another request's, which does not answer for this one
"""


@dataclass(frozen=True)
class Trouble:
    """An error on the way: a failed try, a time-out, a failed branch. `error` may be missing."""

    time: str
    event: str
    error: str | None


@dataclass
class Visit:
    """One state entered. Times are UTC text; `exited` is None while it lasts, and in a Fail state."""

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
    A step that waits, or waited, for an answer from outside. The task token is no part of a story.

    Args:
        awaiting_step_id: What an answer names.
        state: The state that waits.
        step: The step's own name.
        status: PENDING, ANSWERING, ANSWERED, LATE, or GONE where the record has expired.
        entered: When the wait began; None where the record has expired.
        expires_at: When the state times out, at the latest.
        expired: Whether that time is over.
        outcome: Of its answer, `success` or `failure`; None before.
        answer: The answer itself; None unless it was asked for.
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

    @property
    def is_open(self) -> bool:
        return self.status in (PENDING, ANSWERING)

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
        )


@dataclass(frozen=True)
class Attempt:
    """
    One execution of the request.

    `error` is its name only. `cause` and `payload` are None unless they were asked for: Step Functions
    quotes a state's input in some causes. The cause of a cancelled one is always there: it says who
    cancelled it, and why. `resent` is how often the request had come back before, if it came as a message.
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
    visits: list[Visit] = field(default_factory=list)
    awaiting_steps: list[Waiting] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        return self.status in ("RUNNING", "PENDING_REDRIVE", HIDDEN, LEASED)

    @property
    def last_state(self) -> str:
        return self.visits[-1].state if self.visits else ""

    @property
    def waits_for(self) -> Waiting | None:
        """The step whose answer keeps it, if it is that which it is in."""
        found = [one for one in self.awaiting_steps if one.is_open and one.state == self.last_state]
        return found[-1] if found and self.is_open else None


@dataclass(frozen=True)
class Record:
    """
    The lock record as people want it: `overdue` and `expired` are decided, the result is parsed.

    `interventions` is what others than the owner did to it, oldest first. `lease_until` is until when an
    owner that is no execution holds it at the latest. `execution_name` is its execution's, if it has one.
    Of a large result that nobody has read, `result` is the reference to it; `unread` says why it could not be
    read.
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
        """Whether it is final, so that whoever asks gets it while it lasts."""
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
        """What made the record what it is, if somebody other than its owner did."""
        last = self.interventions[-1] if self.interventions else None
        return last if last is not None and last.at == self.actual_completion else None


@dataclass(frozen=True)
class Story:
    """
    What there is to know of one request.

    Args:
        request_id: As it was given.
        lock_token: The business key; None where neither the caller nor any execution tells it.
        situation: What is going on, in a word.
        summary: What is going on and what to do next, in a sentence or two.
        record: The lock record; None where there is none.
        attempts: The request's executions, oldest first.
        holder: Another request's execution, where it is that one which has the lock.
    """

    request_id: str
    lock_token: str | None
    situation: Situation
    summary: str
    record: Record | None
    attempts: list[Attempt]
    holder: Attempt | None

    def to_dict(self) -> dict[str, Any]:
        """The same as a JSON object, with names in camelCase, and with each state's duration."""
        told = json_object(self)
        for attempt, data in zip(self.executions(), _executions(told), strict=True):
            for visit, entry in zip(attempt.visits, data["visits"], strict=True):
                entry["seconds"] = visit.seconds
        return told

    def executions(self) -> Iterator[Attempt]:
        """The attempts, then the holder."""
        yield from self.attempts
        if self.holder is not None:
            yield self.holder


def _executions(told: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [*told["attempts"], *([told["holder"]] if told["holder"] else [])]


def _seconds(start: str, end: str | None) -> float | None:
    if end is None:
        return None
    passed: timedelta = times.from_text(end) - times.from_text(start)
    return passed.total_seconds()
