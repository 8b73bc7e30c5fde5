"""
A request's whole story: its attempts, the states they went through, the lock record, and what to do now.

Gathered from DescribeExecution, GetExecutionHistory and one read of the record. Any of them may have
nothing to say any more (AWS forgets executions after 90 days, a record expires); the others still tell.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from typing import Any, Literal

from botocore.exceptions import ClientError

from steponce import times
from steponce.aws import answering, error_code
from steponce.client import Client
from steponce.errors import MissingKey, RequestNotFound
from steponce.owner import BEFORE_WORK, OUTCOMES, TOO_LARGE, YOUNG, Execution, describe_execution
from steponce.records import COMPLETED, FAILED, INPROGRESS, RELEASED, Failure, Lock
from steponce.request import attempt_name, name_of, split_attempt

GONE = "GONE"
"""Status of an execution that Step Functions does not describe: forgotten, or too new."""

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

_READINGS = 3
_FOLLOWS_THE_LOCK = frozenset({"AlreadyInProgress", "LockContended"})
_TRIES = frozenset({"TaskScheduled", "LambdaFunctionScheduled", "ActivityScheduled"})


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
class Attempt:
    """
    One execution of the request.

    `error` is its name only. `cause` and `payload` are None unless they were asked for: Step Functions
    quotes a state's input in some causes.
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
    visits: list[Visit] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        return self.status in ("RUNNING", "PENDING_REDRIVE")

    @property
    def last_state(self) -> str:
        return self.visits[-1].state if self.visits else ""


@dataclass(frozen=True)
class Record:
    """The lock record as people want it: `overdue` and `expired` are decided, the result is parsed."""

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

    @property
    def answers(self) -> bool:
        """Whether it is final, so that whoever asks gets it while it lasts."""
        return self.status in (COMPLETED, FAILED) and not self.on_open_index

    @classmethod
    def from_lock(cls, lock: Lock) -> Record:
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
        )


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
        """The same as a JSON object, with each state's duration."""
        told = asdict(self)
        for attempt, data in zip(self.executions(), _executions(told), strict=True):
            for visit, entry in zip(attempt.visits, data["visits"], strict=True):
                entry["seconds"] = visit.seconds
        return told

    def executions(self) -> Iterator[Attempt]:
        """The attempts, then the holder."""
        yield from self.attempts
        if self.holder is not None:
            yield self.holder


def tell(
    client: Client, request_id: str, *, lock_token: str | None = None, with_payload: bool = False
) -> Story:
    """
    Gather a request's story.

    Args:
        client: Of the machine that runs the request.
        request_id: As it was started.
        lock_token: As it was started; without it, the executions tell.
        with_payload: Keep each attempt's payload and cause, which may hold what should not be shown.

    Raises:
        RequestNotFound: neither a record nor an execution answers to it.
        InvalidRequestId: the id cannot be one.
        Unavailable: throttled or no answer; safe to ask again.
    """
    return _Teller(client, request_id, lock_token, with_payload).tell()


class _Teller:
    """Reads what there is, and judges it."""

    def __init__(self, client: Client, request_id: str, lock_token: str | None, with_payload: bool) -> None:
        self._client = client
        self._request_id = request_id
        self._given_token = lock_token
        self._with_payload = with_payload
        self._name = name_of(request_id)
        self._inputs: dict[str, Mapping[str, Any]] = {}

    def tell(self) -> Story:
        for _ in range(_READINGS):
            story, lock = self._tell_once()
            if lock is None or story.situation not in ("unsettled", "unwritten"):
                break
            # The execution may have finished between the two reads; then the record says so by now.
            if lock == self._client.locks.get(lock.lock_token):
                break
        return story

    def _tell_once(self) -> tuple[Story, Lock | None]:
        first = self._attempt(1)
        token = self._token(first)
        lock = self._client.locks.get(token) if token else None
        attempts = self._attempts(first, lock)
        holder = self._holder(lock, attempts)
        if lock is None and all(one.status == GONE for one in attempts):
            raise RequestNotFound(
                f"There is no request {self._request_id!r}, or its record and its execution have expired. "
                "Start it, or check its id. If it was started with a key, give that, too."
            )
        record = None if lock is None else Record.from_lock(lock)
        situation, summary = self._judge(record, lock, attempts, holder)
        return Story(self._request_id, token, situation, summary, record, attempts, holder), lock

    # -- reading -----------------------------------------------------------------------------------
    def _token(self, first: Attempt) -> str | None:
        if self._given_token is not None:
            return self._given_token
        try:
            return self._client.lock_token_of(self._name, self._inputs.get(first.execution_arn, {}))
        except MissingKey:  # it is in a payload that nobody can read any more
            return None

    def _attempts(self, first: Attempt, lock: Lock | None) -> list[Attempt]:
        """Every attempt up to the newest that is known; names are counted up without gaps."""
        owner, newest = split_attempt(lock.request_id) if lock else ("", 1)
        known = newest if owner == self._name else 1
        # Where the first is forgotten already, the second may still be known.
        reach = known if first.status != GONE else max(known, 2)
        attempts = [first]
        while len(attempts) < reach or attempts[-1].status != GONE:
            attempts.append(self._attempt(len(attempts) + 1))
        while len(attempts) > known and attempts[-1].status == GONE:
            attempts.pop()
        return attempts

    def _holder(self, lock: Lock | None, attempts: list[Attempt]) -> Attempt | None:
        if lock is None or any(one.execution_arn == lock.locked_by for one in attempts):
            return None
        return self._read(split_attempt(lock.request_id)[1], lock.locked_by)

    def _attempt(self, number: int) -> Attempt:
        machine = self._client.state_machine_arn.replace(":stateMachine:", ":execution:")
        return self._read(number, f"{machine}:{attempt_name(self._name, number)}")

    def _read(self, number: int, arn: str) -> Attempt:
        execution = describe_execution(self._client.sfn, arn)
        if execution is None:
            return Attempt(number, arn, GONE)
        self._inputs[arn] = execution.input
        started, visits = self._history(arn)
        attempt = Attempt(
            number=number,
            execution_arn=arn,
            status=execution.status,
            started=started,
            stopped=execution.closed,
            redrive_count=execution.redrive_count,
            error=execution.failure.error,
            visits=visits,
        )
        if not self._with_payload:
            return attempt
        return replace(attempt, cause=execution.failure.cause, payload=_payload(execution))

    def _history(self, arn: str) -> tuple[str | None, list[Visit]]:
        started, visits = None, _Visits()
        try:
            with answering("Step Functions"):
                for page in self._client.sfn.get_paginator("get_execution_history").paginate(
                    executionArn=arn
                ):
                    for event in page["events"]:
                        started = started or times.to_text(event["timestamp"])
                        visits.add(event)
        except ClientError as error:
            if error_code(error) != "ExecutionDoesNotExist":
                raise
        return started, visits.all

    # -- judging -----------------------------------------------------------------------------------
    def _judge(
        self, record: Record | None, lock: Lock | None, attempts: list[Attempt], holder: Attempt | None
    ) -> tuple[Situation, str]:
        newest = attempts[-1]
        if record is None or lock is None or record.expired or record.status == RELEASED:
            return self._without_record(record, newest)
        another = split_attempt(record.request_id)[0] != self._name
        if another and self._was_turned_away(record, newest):
            return "turned away", (
                f"It was turned away with {newest.error}: its lock token belongs to request "
                f"{record.request_id!r}. Look at that one, or start yours with another key."
            )
        holds = f"Request {record.request_id!r} has its lock token and answers for it. " if another else ""
        owners = [one for one in attempts if one.execution_arn == lock.locked_by]
        situation, summary = self._by_record(record, lock, holder or owners[0])
        return situation, holds + summary

    def _by_record(self, record: Record, lock: Lock, owner: Attempt) -> tuple[Situation, str]:
        error = record.error or "an error without a name"
        if record.status == COMPLETED:
            return "completed", (
                f"Completed at {record.actual_completion}. Whoever starts it again with this payload gets "
                f"this result, {_until(record)}."
            )
        if record.status == FAILED and not record.on_open_index:
            return "failed", (
                f"Failed finally with {error} at {record.actual_completion}. Whoever starts it again gets "
                f"this error, {_until(record)}; to try again, start a new request with another id."
            )
        if record.status == FAILED:
            return "waits for a person", (
                f"Failed with {error} at {record.actual_completion}, which is no final answer: it waits for "
                "a person. Find out whether the work took effect; until the record is settled, nothing else "
                "runs under this lock token."
            )
        if record.status == INPROGRESS:
            return self._in_progress(record, lock, owner)
        return "waits for a person", (
            f"The record's status is {record.status!r}, which this version does not know. Something else "
            "writes to the table; look at the record."
        )

    def _in_progress(self, record: Record, lock: Lock, owner: Attempt) -> tuple[Situation, str]:
        if owner.status == GONE:
            if times.now() - times.from_text(record.created) < YOUNG:
                return "running", f"Running; too new to be described. Wait for it: {self._command('wait')}"
            return "unsettled", self._settle("can no longer be described")
        if self._inputs[owner.execution_arn].get("callId", lock.call_id) != lock.call_id:
            return "unsettled", self._settle("is gone, and another one has its name")
        if not owner.is_open:
            if owner.error in TOO_LARGE and owner.last_state not in BEFORE_WORK | OUTCOMES:
                return "unwritten", (
                    f"The work is done, but its result could not be written down ({owner.error}). "
                    "It is not to be run again: a person must complete the record by hand."
                )
            return "unsettled", self._settle(f"is {owner.status}, last in {owner.last_state or 'no state'}")
        if record.overdue:
            return "overdue", (
                f"Overdue since {record.expected_completion}, but its owner lives: it is in "
                f"{owner.last_state or 'no state yet'}. Look there at what keeps it; do not start it "
                "under another id."
            )
        return "running", (
            f"Running normally, in {owner.last_state or 'no state yet'}, and expected by "
            f"{record.expected_completion}. Wait for it: {self._command('wait')}"
        )

    def _without_record(self, record: Record | None, newest: Attempt) -> tuple[Situation, str]:
        if newest.is_open:
            return "starting", (
                f"Attempt {newest.number} runs and does not hold the lock yet. "
                f"Wait for it: {self._command('wait')}"
            )
        if record is not None and record.status == RELEASED:
            return "released", (
                f"Nothing happened ({record.error or 'no reason given'}), and the lock is free. "
                f"Start it again: {self._command('start')}"
            )
        if record is not None:
            return "expired", (
                f"Its answer served until {record.expires_at}. The next start runs the work again."
            )
        if newest.status == "SUCCEEDED":
            return "expired", (
                "Its execution succeeded, but the record of it is gone. The next start runs the work again."
            )
        return "failed", (
            f"Its execution ended {newest.status} with {newest.error or 'an error without a name'}, and no "
            f"record answers for it. Once the cause is gone, start it again: {self._command('start')}"
        )

    def _was_turned_away(self, record: Record, newest: Attempt) -> bool:
        if newest.is_open or newest.status in ("SUCCEEDED", GONE):
            return False
        return newest.error not in _FOLLOWS_THE_LOCK and newest.error != record.error

    def _settle(self, how: str) -> str:
        return (
            f"The execution that holds its lock {how}, and nobody has written down how it ended. Settle it "
            f"with the same payload: {self._command('start', '--check-owner')}"
        )

    def _command(self, verb: str, *more: str) -> str:
        words = ["steponce", verb, shlex.quote(self._request_id)]
        words += ["FILE"] if verb == "start" else []
        words += ["--key", shlex.quote(self._given_token)] if self._given_token else []
        return " ".join([*words, *more])


class _Visits:
    """Puts an execution's events to the states that they belong to."""

    def __init__(self) -> None:
        self.all: list[Visit] = []
        self._of_event: dict[int, Visit] = {}

    def add(self, event: Mapping[str, Any]) -> None:
        kind, time = event["type"], times.to_text(event["timestamp"])
        visit = self._of_event.get(event.get("previousEventId", 0))
        if "stateEnteredEventDetails" in event:
            visit = Visit(event["stateEnteredEventDetails"]["name"], time)
            self.all.append(visit)
        elif "stateExitedEventDetails" in event:
            visit = self._leaving(visit, event["stateExitedEventDetails"]["name"])
            if visit is not None:
                visit.exited = time
        elif visit is not None and not kind.startswith("Execution"):
            visit.tries += kind in _TRIES
            if kind.endswith(("Failed", "TimedOut")):
                details = event.get(f"{kind[0].lower()}{kind[1:]}EventDetails", {})
                visit.troubles.append(Trouble(time, kind, details.get("error")))
        if visit is not None:
            self._of_event[event["id"]] = visit

    def _leaving(self, visit: Visit | None, state: str) -> Visit | None:
        """A Parallel or Map state is left after an event of the last of its branches."""
        if visit is not None and visit.state == state and visit.exited is None:
            return visit
        still_in = [one for one in self.all if one.state == state and one.exited is None]
        return still_in[-1] if still_in else None


def _executions(told: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [*told["attempts"], *([told["holder"]] if told["holder"] else [])]


def _payload(execution: Execution) -> Any:
    return execution.input.get("payload")


def _until(record: Record) -> str:
    if record.expires_at is None or record.expires_at == times.NEVER:
        return "for ever"
    return f"until {record.expires_at}"


def _seconds(start: str, end: str | None) -> float | None:
    if end is None:
        return None
    passed: timedelta = times.from_text(end) - times.from_text(start)
    return passed.total_seconds()
