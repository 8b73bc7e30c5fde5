"""
One call of `Client.start`: starts an execution under a free name, or finds what answers already.

The first StartExecution has the execution name that is made of the request id. If that is taken, the lock
record decides:

    it has an answer        the call gets this answer
    it is in progress       the request is running
    its owner is dead       the next attempt starts, and settles the lock
    it is free, or missing  an open attempt answers, else the next attempt starts
"""

from __future__ import annotations

from botocore.exceptions import ClientError

from steponce.aws import times
from steponce.aws.errors import answering, error_code, expect_content, is_refusal
from steponce.errors import OwnerHidden, TooManyAttempts, Unavailable
from steponce.executions import Execution
from steponce.locks.record import Lock
from steponce.request.attempts import Attempts
from steponce.request.comparison import Comparison
from steponce.request.envelope import Envelope
from steponce.request.machine import Machine, is_owner_open
from steponce.request.names import MAX_ATTEMPT, attempt_name
from steponce.request.newest import running_without_lock
from steponce.request.next_attempts import DeadOwner, expect_written
from steponce.request.receipt import Receipt
from steponce.workflow import INPROGRESS

_READINGS = 3


class Start:
    """The call: its envelope, and whether it asks for the owner of a lock before that is overdue."""

    def __init__(self, machine: Machine, envelope: Envelope, *, check_owner: bool) -> None:
        self._machine = machine
        self._request_id = envelope.requestId
        self._envelope = envelope
        self._attempts = Attempts(machine, envelope.requestId)
        self._comparison = Comparison(machine, envelope)
        self._check_owner = check_owner
        self.sent_twice = False

    def run(self) -> Receipt:
        """
        Start the request under the first free name, unless a record or an execution answers for it.

        A call makes at most two StartExecution calls. It describes three executions, and more only to find
        the newest of several attempts that no record names, after another caller was quicker, or while
        DescribeExecution does not show an attempt that was started. If the record is released, and does not
        name the newest attempt, the one that it names is described as well.
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

    def _refused_before(self, execution: Execution, attempt: int) -> Receipt | None:
        """The record is another request's. Check whether it refused this id, or this id has another key."""
        self._comparison.expect_same_key(execution)
        if not execution.failure.refuses_a_duplicate:
            return None
        self._comparison.expect_payload_of(execution)
        return self._failed(attempt, execution, duplicate=True, is_free=False)

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
            return self._failed(last, newest, duplicate=True, is_free=True)
        redriven = self._redriven(lock)
        if redriven is not None:
            return redriven
        receipt = self._start_next(last + 1)
        if receipt.duplicate:
            self._comparison.expect_same_request(self._attempts.describe_started(last + 1))
        return receipt

    def _redriven(self, lock: Lock | None) -> Receipt | None:
        """The attempt that was redriven after its lock was released, if it runs. The first is closed."""
        found = running_without_lock(self._machine, lock, self._request_id, self._attempts.arn(1))
        if found is None:
            return None
        execution, arn = found
        self._comparison.expect_payload_of(execution)
        return Receipt.running(self._request_id, self._envelope.lockToken, arn, duplicate=True)

    def _by_execution(self, attempt: int, execution: Execution, lock: Lock | None) -> Receipt | None:
        mine = self._comparison.is_of_this_call(execution)
        if execution.is_open:
            self._comparison.expect_payload_of(execution)
            return self._running(attempt, duplicate=not mine)
        if self._read_lock() != lock:
            return None
        if execution.status == "SUCCEEDED":
            return self._running(attempt, duplicate=not mine)
        return self._failed(attempt, execution, duplicate=not mine, is_free=True)

    def _after_a_death(self, lock: Lock, now: str, owner: Execution | None) -> Receipt | None:
        """The lock's owner is dead. Start the next attempt, which settles it, unless one does so already."""
        answer = self._by_record(lock, now)
        if answer.execution_arn != lock.locked_by:
            return answer
        expect_written(self._machine, self._request_id, lock, owner)
        dead = DeadOwner(self._machine, lock, owner)
        for number, execution in dead.attempts_after(self._attempts):
            if execution is None:
                return None if self._read_lock() != lock else self._start_next(number)
            if execution.is_open:
                return self._by_execution(number, execution, lock)
            if dead.is_too_early_after(execution):
                return answer
        return None if self._read_lock() != lock else self._start_next(dead.attempt_of_now())

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
        if self.sent_twice:
            execution = self._machine.describe(self._attempts.name, attempt)
            mine = execution is not None and self._comparison.is_of_this_call(execution)
        return self._running(attempt, duplicate=not mine)

    def _start_execution(self, attempt: int) -> bool:
        """Call StartExecution. Returns whether the name was free. An SDK's retry gets a 200."""
        try:
            with answering("Step Functions"):
                started = self._machine.sfn.start_execution(
                    stateMachineArn=self._machine.start_arn,
                    name=attempt_name(self._attempts.name, attempt),
                    input=self._envelope.to_json(),
                )
        except ClientError as error:
            if error_code(error) == "ExecutionAlreadyExists":
                self.sent_twice |= not is_refusal(error)
                return False
            raise
        expect_content("Step Functions", started)
        return True

    def _read_lock(self) -> Lock | None:
        return self._machine.locks.get(self._envelope.lockToken)

    def _answer(self, lock: Lock, now: str, *, duplicate: bool) -> Receipt:
        results = self._machine.results
        return Receipt.from_lock(self._request_id, lock, results, duplicate=duplicate, now=now)

    def _running(self, attempt: int, *, duplicate: bool) -> Receipt:
        arn = self._attempts.arn(attempt)
        return Receipt.running(self._request_id, self._envelope.lockToken, arn, duplicate=duplicate)

    def _failed(self, attempt: int, execution: Execution, *, duplicate: bool, is_free: bool) -> Receipt:
        token, arn, answer = self._envelope.lockToken, self._attempts.arn(attempt), execution.answer
        return Receipt.failed(self._request_id, token, arn, answer, duplicate=duplicate, is_free=is_free)
