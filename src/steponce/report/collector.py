"""
Collects the report on a request from DescribeExecution, GetExecutionHistory and the records.

Each source may be gone: AWS forgets executions after 90 days, and records expire. The report then has what
the other sources tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from steponce.aws import times
from steponce.callbacks.awaiting import AwaitingSteps
from steponce.client import Client
from steponce.errors import OwnerHidden, RequestNotFound, ResultUnreadable
from steponce.executions import Execution, execution_events, looking_at, machine_of
from steponce.locks.record import Lock
from steponce.next_step import NextStep
from steponce.recovery.owner import Work, work_of
from steponce.report.diagnosis import Case
from steponce.report.story import GONE, HIDDEN, LEASED, Attempt, Record, Story, Visit, Waiting
from steponce.report.visits import Visits
from steponce.request.belonging import answers_too, is_own, made_it
from steponce.request.machine import has_other_token, is_attempt_of
from steponce.request.names import name_of, split_attempt
from steponce.workflow import INPROGRESS, NEXT_WINDOW

_READINGS = 3
_GAP = 20
"""How many attempts that cannot be described are listed one by one."""


def collect(
    client: Client,
    request_id: str,
    *,
    lock_token: str | None = None,
    steps: AwaitingSteps | None = None,
    with_payload: bool = False,
    deployed_seconds: float = 0,
) -> Story:
    """
    Collect the report on a request.

    Args:
        client: A client of the machine that runs the request.
        request_id: The id that it was started with.
        lock_token: The lock token that it was started with. Default: the executions' input names it.
        steps: The table of awaiting steps. None: the report has no awaiting steps.
        with_payload: Whether to include payloads, causes and answers, which may be confidential.
        deployed_seconds: The time-out that the machine's work has now, if it is known. A record that says
            longer is believed.

    Raises:
        RequestNotFound: the request has neither a record nor an execution with this lock token.
        OwnerHidden: its executions may not be looked at from here.
        InvalidRequestId: the id is invalid.
        Unavailable: throttled or no answer; safe to try again.
    """
    return _Collector(client, request_id, lock_token, steps, with_payload, deployed_seconds).collect()


def collect_owner(client: Client, lock: Lock, *, steps: AwaitingSteps | None = None) -> Attempt:
    """Report on the owner of a lock. It is GONE if another execution now has its name."""
    number = _attempt_of(lock)
    collector = _Collector(client, lock.request_id, lock.lock_token, steps, with_payload=False)
    if not lock.is_of_an_execution:
        return collector.read_owner(lock)
    owner = collector.read(number, lock.locked_by)
    return Attempt(number, lock.locked_by, GONE) if collector.owner_is_stranger(lock) else owner


class _Collector:
    """Collects one report."""

    def __init__(
        self,
        client: Client,
        request_id: str,
        lock_token: str | None,
        steps: AwaitingSteps | None,
        with_payload: bool,
        deployed_seconds: float = 0,
    ) -> None:
        self._client = client
        self._request_id = request_id
        self._given_token = lock_token
        self._steps = steps
        self._with_payload = with_payload
        self._deployed_seconds = deployed_seconds
        self._name = name_of(request_id)
        self._executions: dict[str, Execution] = {}

    def collect(self) -> Story:
        for _ in range(_READINGS):
            story, lock = self._collect_once()
            # An execution may have taken its lock, and even ended, since the record was read.
            if story.lock_token is None or lock == self._client.machine.locks.get(story.lock_token):
                break
        return story

    def _collect_once(self) -> tuple[Story, Lock | None]:
        first = self._attempt(1)
        token = self._token(first)
        lock = self._client.machine.locks.get(token) if token else None
        attempts = self._attempts(first, lock)
        holder = self._holder(lock, attempts)
        if not (lock and lock.request_id == self._request_id) and not self._is_known(token, attempts):
            raise RequestNotFound(
                f"There is no request {self._request_id!r}, or its record and its execution have expired. "
                "Check its id and its lock token.",
                next_steps=[] if lock is None else [self._look(lock)],
            )
        record = None if lock is None else self._record(lock, [*attempts, *([holder] if holder else [])])
        case = Case(
            self._request_id,
            token and self._client.machine.token_to_give(self._request_id, token),
            None if lock is None else self._client.machine.token_to_give(lock.request_id, lock.lock_token),
            lock,
            record,
            attempts,
            holder,
            lock is not None and self.owner_is_stranger(lock),
            lock is not None and self._is_answered(lock, attempts[-1]),
            Work() if lock is None else self._work(lock),
        )
        advice = case.judge()
        story = Story(
            request_id=self._request_id,
            lock_token=token,
            diagnosis=advice.diagnosis,
            summary=advice.summary,
            record=record,
            attempts=attempts,
            holder=holder,
            next_steps=advice.next_steps,
        )
        return story, lock

    def _look(self, lock: Lock) -> NextStep:
        """How to look at a lock that another request has."""
        is_here = self._client.machine.holds(lock) or not lock.is_of_an_execution
        return NextStep(
            "inspect lock", lock.lock_token, machine=None if is_here else machine_of(lock.locked_by)
        )

    def _work(self, lock: Lock) -> Work:
        """What is known of the work of a lock's owner, if the record has no answer yet."""
        machine = self._client.machine
        deployed = self._deployed_seconds if machine.holds(lock) else 0
        return work_of(lock, self._executions.get(lock.locked_by), machine.sfn, deployed)

    def _is_known(self, token: str | None, attempts: list[Attempt]) -> bool:
        """Whether the request has an execution with this lock token. A caller may have given a wrong one."""
        known = [one for attempt in attempts if (one := self._executions.get(attempt.execution_arn))]
        if not known or token is None:
            return bool(known)
        return not has_other_token(known[-1], token)

    def owner_is_stranger(self, lock: Lock) -> bool:
        """Whether another execution now has the name of the lock's owner."""
        execution = self._executions.get(lock.locked_by)
        return execution is not None and execution.owns(lock) is False

    def _is_answered(self, lock: Lock, newest: Attempt) -> bool:
        """Whether a record tells the request's outcome. Nothing else can if its newest attempt is unknown."""
        machine, execution = self._client.machine, self._executions.get(newest.execution_arn)
        if execution is None:
            return True
        if lock.is_reusable(times.now_text()):
            return made_it(machine, lock, self._request_id, execution, newest.number)
        if execution.is_open and lock.status == INPROGRESS:
            return True  # the attempt waits for the owner, or settles the lock
        if is_own(machine, lock, self._request_id):
            return True
        return not execution.is_open and answers_too(machine, lock, self._request_id, execution)

    def _record(self, lock: Lock, executions: list[Attempt]) -> Record:
        """
        The record for people, with a large result read.

        It is not overdue while its owner waits for an answer, unless the time of one such answer is over.
        """
        record = Record.from_lock(lock)
        waits = [step for one in executions if one.execution_arn == lock.locked_by for step in one.waits_for]
        overdue = record.overdue and (not waits or any(step.expired for step in waits))
        try:
            result = self._client.machine.results.read(lock)
        except ResultUnreadable as error:
            return replace(record, overdue=overdue, unread=str(error))
        return replace(record, overdue=overdue, result=result)

    def _token(self, first: Attempt) -> str | None:
        if self._given_token is not None:
            return self._given_token
        execution = self._executions.get(first.execution_arn)
        return self._client.machine.lock_token_of_request(self._request_id, execution)

    def _attempts(self, first: Attempt, lock: Lock | None) -> list[Attempt]:
        """Every attempt up to the newest known one. After a dead owner the numbers may have a gap."""
        execution = self._executions.get(first.execution_arn)
        known = self._client.machine.recorded_attempt(lock, self._request_id, execution)
        # If the first is forgotten already, the second may still be known.
        reach = known if first.status != GONE else max(known, 2)
        attempts = [first]
        while attempts[-1].number < reach or attempts[-1].status != GONE:
            last = attempts[-1]
            jumps = last.status == GONE and known - last.number > _GAP
            attempts.append(self._attempt(known if jumps else last.number + 1))
        while attempts[-1].number > known and not self._is_own_attempt(attempts[-1], first):
            attempts.pop()
        return attempts

    def _is_own_attempt(self, attempt: Attempt, first: Attempt) -> bool:
        execution = self._executions.get(attempt.execution_arn)
        if execution is None:
            return False
        return is_attempt_of(execution, self._request_id, self._executions.get(first.execution_arn))

    def _holder(self, lock: Lock | None, attempts: list[Attempt]) -> Attempt | None:
        if lock is None or any(one.execution_arn == lock.locked_by for one in attempts):
            return None
        return self.read_owner(lock)

    def read_owner(self, lock: Lock) -> Attempt:
        """Report on the owner of a lock: an execution or a guarded call."""
        number = _attempt_of(lock)
        if lock.is_leased(times.now_text()):
            return Attempt(number, lock.locked_by, LEASED, lock.created)
        return self.read(number, lock.locked_by)

    def _attempt(self, number: int) -> Attempt:
        """Report on one attempt. A hidden one is an error, because it does not tell which one is the last."""
        return self._visible(number, self._client.machine.execution_arn(self._name, number))

    def read(self, number: int, arn: str) -> Attempt:
        """Report on one execution, as far as it may be looked at from here."""
        try:
            return self._visible(number, arn)
        except OwnerHidden:
            return Attempt(number, arn, HIDDEN)

    def _visible(self, number: int, arn: str) -> Attempt:
        """Report on one execution, as far as Step Functions still knows it."""
        with looking_at(arn):
            execution = self._client.machine.describe_arn(arn)
        if execution is None:
            return Attempt(number, arn, GONE)
        self._executions[arn] = execution
        started, visits = self._history(arn)
        now_in = visits.open() if execution.is_open else []
        attempt = Attempt(
            number=number,
            execution_arn=arn,
            status=execution.status,
            started=started,
            stopped=execution.closed,
            redrive_count=execution.redrive_count,
            error=execution.failure.error,
            cause=execution.failure.cause if execution.is_cancelled else None,
            resent=_resent(execution),
            limited_until=_limited_until(execution, visits.all),
            visits=visits.all,
            awaiting_steps=[] if self._steps is None else self._waiting(visits, now_in, self._steps),
            current_states=list(dict.fromkeys(visit.state for visit in now_in)),
        )
        if not self._with_payload:
            return attempt
        return replace(attempt, cause=execution.failure.cause, payload=_payload(execution))

    def _waiting(self, visits: Visits, now_in: Sequence[Visit], steps: AwaitingSteps) -> list[Waiting]:
        """The awaiting steps in a history, with what their records say now."""
        found, open_visits = [], {id(visit) for visit in now_in}
        for step_id, visit in visits.asked.items():
            step, left = steps.get(step_id), id(visit) not in open_visits
            if step is not None:
                one = Waiting.from_step(step, visit.state, with_answer=self._with_payload)
                found.append(replace(one, left=left))
            elif step_id in visits.recorded:
                found.append(replace(visits.recorded[step_id], left=left))
        return found

    def _history(self, arn: str) -> tuple[str | None, Visits]:
        started, visits = None, Visits()
        for event in execution_events(self._client.machine.sfn, arn) or []:
            started = started or times.to_text(event["timestamp"])
            visits.add(event)
        return started, visits


def _attempt_of(lock: Lock) -> int:
    """The attempt's number in the name of a lock's execution."""
    return split_attempt(lock.execution_name or "")[1]


def _resent(execution: Execution) -> int:
    redelivery = execution.input.get("redelivery")
    tries = redelivery.get("tries") if isinstance(redelivery, Mapping) else None
    return tries if isinstance(tries, int) else 0


def _limited_until(execution: Execution, visits: Sequence[Visit]) -> str | None:
    """When the window ends, if the rate limit has refused the execution, or it waits for that end."""
    refused = execution.failure.resets_at
    if refused is not None:
        return times.to_text(refused)
    limit = execution.input.get("limit")
    waits = execution.is_open and visits and visits[-1].state == NEXT_WINDOW
    return limit.get("resetsAt") if waits and isinstance(limit, Mapping) else None


def _payload(execution: Execution) -> Any:
    return execution.input.get("payload")
