"""One call of `Client.start`: starts an execution under a free name, or finds what answers already."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Self

from botocore.exceptions import ClientError

from steponce.aws import times
from steponce.aws.errors import answering, error_code
from steponce.errors import (
    OwnerHidden,
    TooManyAttempts,
    Unavailable,
    Unsettled,
)
from steponce.executions import YOUNG, Execution, looking_at, states_entered
from steponce.locks.record import Lock
from steponce.next_step import NextStep
from steponce.request.attempts import Attempts
from steponce.request.canonical import sha256
from steponce.request.comparison import Comparison
from steponce.request.envelope import Envelope
from steponce.request.machine import Machine, is_attempt_of, is_owner_open
from steponce.request.names import MAX_ATTEMPT, attempt_name
from steponce.request.receipt import Receipt
from steponce.request.settings import RequestRules
from steponce.workflow import (
    BEFORE_WORK,
    INIT_TIME,
    INPROGRESS,
    OUTCOMES,
    TAKING_OVER,
    TOO_LARGE,
)

_READINGS = 3
_FIRST_OF_MANY = 1_000


class Start:
    """The call: its envelope, and the names it goes through."""

    def __init__(self, machine: Machine, envelope: Envelope, *, check_owner: bool) -> None:
        self._machine = machine
        self._request_id = envelope.requestId
        self._envelope = envelope
        self._attempts = Attempts(machine, envelope.requestId)
        self._comparison = Comparison(machine, envelope)
        self._check_owner = check_owner
        self._sent_twice = False

    def run(self) -> Receipt:
        """
        Start the request under the first free name, unless a record or an execution answers for it.

        A call makes at most two StartExecution calls. It describes three executions, and more only to find
        the newest of several attempts that no record names, after another caller was quicker, or while
        DescribeExecution does not show an attempt that was started.
        """
        if self._start_execution(1):
            return self._running(1, duplicate=False)
        for _ in range(_READINGS):
            found = self._find()
            if found is not None:
                return found
        raise Unavailable(f"The record of request {self._request_id!r} keeps changing. Try again.")

    def run_as(self, attempt: int) -> Receipt:
        """Start the request as this attempt, if its name is still free."""
        if self._start_execution(attempt):
            return self._running(attempt, duplicate=False)
        return self.run()

    def expect_same_key(self, execution: Execution) -> None:
        """
        Refuse this start if an attempt of its request has another lock token.

        Raises:
            LockTokenMismatch: it has one.
        """
        self._comparison.expect_same_key(execution)

    def _start_execution(self, attempt: int) -> bool:
        """Call StartExecution. Returns whether the name was free. An SDK's retry gets a 200."""
        try:
            with answering("Step Functions"):
                self._machine.sfn.start_execution(
                    stateMachineArn=self._machine.start_arn,
                    name=attempt_name(self._attempts.name, attempt),
                    input=self._envelope.to_json(),
                )
        except ClientError as error:
            if error_code(error) == "ExecutionAlreadyExists":
                self._sent_twice = error.response.get("ResponseMetadata", {}).get("RetryAttempts", 0) > 0
                return False
            raise
        return True

    def _find(self) -> Receipt | None:
        """Find what answers for a taken name, or start the next attempt. None if the record changed."""
        lock, now = self._read_lock(), times.now_text()
        if lock is not None and lock.call_id == self._envelope.callId:
            return self._answer(lock, now, duplicate=False)
        if lock is None or lock.is_reusable(now):
            return self._without_answer(lock)
        if lock.status == INPROGRESS and (self._check_owner or lock.expected_completion < now):
            try:
                owner = self._machine.owner(lock)
            except OwnerHidden:
                return self._by_record(lock, now)
            is_alive = is_owner_open(owner, lock)
            return self._by_record(lock, now) if is_alive else self._after_a_death(lock, now, owner)
        return self._by_record(lock, now)

    def _by_record(self, lock: Lock, now: str) -> Receipt:
        """
        Answer from the record, unless it refused this id before.

        Args:
            lock: The record.
            now: When it was read. It may expire until the answer is there, and answers nevertheless.
        """
        known, attempt = None, 0
        if not self._machine.made(lock, self._request_id):
            known, attempt = self._attempts.to_ask(lock)
            refused = self._refused_before(known, attempt)
            if refused is not None:
                return refused
        self._comparison.expect_payload_of_record(lock)
        if known is not None and known.is_open and lock.status != INPROGRESS:
            return self._running(attempt, duplicate=True)  # it is about to replay or to refuse this answer
        return self._answer(lock, now, duplicate=True)

    def _answer(self, lock: Lock, now: str, *, duplicate: bool) -> Receipt:
        results = self._machine.results
        return Receipt.from_lock(self._request_id, lock, results, duplicate=duplicate, now=now)

    def _without_answer(self, lock: Lock | None) -> Receipt | None:
        """No record answers. An execution may not have its lock yet, or all attempts may have ended."""
        first = self._attempts.describe_started(1)
        self._comparison.expect_same_key(first)
        if first.is_open or self._comparison.is_of_this_call(first):
            return self._by_execution(1, first, lock)
        newest, last = self._attempts.newest_since(lock, first)
        if newest is not None and last > 1:
            self._comparison.expect_same_key(newest)
        if newest is not None and newest.is_open:
            return self._by_execution(last, newest, lock)
        if self._read_lock() != lock:
            return None
        if newest is not None and self._comparison.was_just_refused(newest):
            token, arn = self._envelope.lockToken, self._attempts.arn(last)
            return Receipt.failed(self._request_id, token, arn, newest.answer, duplicate=True, is_free=True)
        receipt = self._start_next(last + 1)
        if receipt.duplicate:
            self._comparison.expect_same_request(self._attempts.describe_started(last + 1))
        return receipt

    def _by_execution(self, attempt: int, execution: Execution, lock: Lock | None) -> Receipt | None:
        mine = self._comparison.is_of_this_call(execution)
        if execution.is_open:
            self._comparison.expect_payload_of(execution)
            return self._running(attempt, duplicate=not mine)
        if self._read_lock() != lock:
            return None
        if execution.status == "SUCCEEDED":
            return self._running(attempt, duplicate=not mine)
        token, arn = self._envelope.lockToken, self._attempts.arn(attempt)
        return Receipt.failed(
            self._request_id, token, arn, execution.answer, duplicate=not mine, is_free=True
        )

    def _after_a_death(self, lock: Lock, now: str, owner: Execution | None) -> Receipt | None:
        """
        The lock's owner is dead: start the next attempt, which settles the lock, unless one does so already.

        The first attempt starts at once, because most dead owners leave nothing to wait for. While the
        owner's work may still run, a second attempt would find the same, so polling starts none. After two
        attempts in vain (for example while an execution runs on that the owner had started for its work),
        there is one more after one time-out of the work, after two, four and so on, and one each day. The
        monitor settles the lock meanwhile. Its name follows from the death and the time, so all callers
        choose the same.
        """
        answer = self._by_record(lock, now)
        if answer.execution_arn != lock.locked_by:
            return answer
        if owner is not None and self._is_unwritten(owner, lock):
            raise Unsettled(
                f"Request {self._request_id!r}: its work is done, and its result is too large to be recorded "
                f"({lock.locked_by}). Look the result up, and complete the lock by hand.",
                next_steps=[NextStep("complete lock", lock.lock_token)],
            )
        death = _Death.of(lock, owner, self._machine.rules)
        attempt = self._machine.attempt_of(lock, self._request_id)  # 0: another request's lock
        for number, execution in self._attempts_after(attempt, death.since):
            if execution is None:
                return None if self._read_lock() != lock else self._start_next(number)
            if not is_attempt_of(execution, self._request_id):
                continue  # another request, started by hand under this name
            if execution.is_open:
                return self._by_execution(number, execution, lock)
            if death.may_still_work and (execution.closed or "") >= death.since:
                return answer
        return None if self._read_lock() != lock else self._start_next(death.attempt_of_now(lock))

    def _attempts_after(self, attempt: int, since: str) -> Iterator[tuple[int, Execution | None]]:
        """
        The next two attempts, and a third if one of the two ended before that time.

        If both did, the newest, and the free name after it if that one did as well.
        """
        yield attempt + 1, (first := self._attempts.describe(attempt + 1))
        yield attempt + 2, (second := self._attempts.describe(attempt + 2))
        in_vain = [one for one in (first, second) if one and (one.closed or "") >= since]
        if len(in_vain) == 1:
            yield attempt + 3, self._attempts.describe(attempt + 3)
        elif not in_vain:
            newest, last = self._machine.newest_after(self._attempts.name, attempt + 2, second)
            yield last, newest
            if newest is None or (newest.closed or "") < since:
                yield last + 1, None

    def _is_unwritten(self, owner: Execution, lock: Lock) -> bool:
        """
        Whether the work is done, and its result too large for the workflow.

        A result that only its record could not take was in the input of the state that writes it. From there
        the next attempt records it.
        """
        if owner.failure.error not in TOO_LARGE or owner.owns(lock) is False:
            return False
        try:
            with looking_at(lock.locked_by):
                entered = states_entered(self._machine.sfn, lock.locked_by)
        except OwnerHidden:
            return True  # it must not run again
        is_over = not entered.isdisjoint(OUTCOMES | {"ReleaseLock"})
        return not (is_over or entered <= BEFORE_WORK | TAKING_OVER)

    def _start_next(self, attempt: int) -> Receipt:
        """Start an attempt whose name was free a moment ago. Another caller may have been quicker."""
        if attempt > MAX_ATTEMPT:
            raise TooManyAttempts(
                f"Request {self._request_id!r} has had {attempt - 1:,} attempts, all closed; there is no "
                f"name for another. Use a new id. The first is {self._attempts.arn(1)}"
            )
        if self._start_execution(attempt):
            return self._running(attempt, duplicate=False)
        mine = False
        if self._sent_twice:
            execution = self._machine.describe(self._attempts.name, attempt)
            mine = execution is not None and self._comparison.is_of_this_call(execution)
        return self._running(attempt, duplicate=not mine)

    def _refused_before(self, execution: Execution, attempt: int) -> Receipt | None:
        """The record is another request's. Check whether it refused this id, or this id has another key."""
        self._comparison.expect_same_key(execution)
        if not execution.failure.refuses_a_duplicate:
            return None
        self._comparison.expect_payload_of(execution)
        token, arn = self._envelope.lockToken, self._attempts.arn(attempt)
        return Receipt.failed(self._request_id, token, arn, execution.answer, duplicate=True, is_free=False)

    def _read_lock(self) -> Lock | None:
        return self._machine.locks.get(self._envelope.lockToken)

    def _running(self, attempt: int, *, duplicate: bool) -> Receipt:
        arn = self._attempts.arn(attempt)
        return Receipt.running(self._request_id, self._envelope.lockToken, arn, duplicate=duplicate)


@dataclass(frozen=True)
class _Death:
    """When a lock's owner died, and how long its work may go on after that."""

    since: str
    wait: timedelta

    @classmethod
    def of(cls, lock: Lock, owner: Execution | None, rules: RequestRules) -> Self:
        """The death of an owner that is closed, or that Step Functions does not know (it may be too new)."""
        if owner is None or owner.closed is None:
            return cls(lock.created, YOUNG)
        if owner.owns(lock) is False:
            return cls(lock.created, INIT_TIME)
        return cls(owner.closed, lock.work_timeout(rules.work_timeout_seconds) + INIT_TIME)

    @property
    def may_still_work(self) -> bool:
        return self._passed() < self.wait

    def attempt_of_now(self, lock: Lock) -> int:
        """An attempt's number that is hardly taken, and the same for all callers until the next is due."""
        passed = self._passed()
        doubled, days = (passed // self.wait).bit_length(), passed // timedelta(days=1)
        digest = sha256(f"{lock.call_id}/{lock.attempt}/{doubled}/{days}")
        return _FIRST_OF_MANY + int(digest[:8], 16) % (MAX_ATTEMPT - 2 * _FIRST_OF_MANY)

    def _passed(self) -> timedelta:
        return times.now() - times.from_text(self.since)
