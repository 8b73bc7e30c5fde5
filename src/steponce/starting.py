"""One call of `Client.start`: find a name to start under, or what answers for the names that are taken."""

from __future__ import annotations

from botocore.exceptions import ClientError

from steponce import times
from steponce.aws import answering, error_code
from steponce.errors import LockTokenMismatch, PayloadMismatch, TooManyAttempts, Unsettled
from steponce.machine import Machine
from steponce.owner import TOO_LARGE, Execution
from steponce.receipt import Receipt
from steponce.records import INPROGRESS, Lock
from steponce.request import Envelope, attempt_name

MAX_NEW_ATTEMPTS = 100
"""How many names one call tries before it says that something is wrong."""

DUPLICATE_REFUSED = "DuplicateRefused"


class Start:
    """The call: whose request it is, its envelope, and the names it goes through."""

    def __init__(
        self, machine: Machine, request_id: str, name: str, envelope: Envelope, *, check_owner: bool
    ) -> None:
        self._machine = machine
        self._request_id = request_id
        self._name = name
        self._envelope = envelope
        self._check_owner = check_owner

    def run(self) -> Receipt:
        """Start the request under the first name that is free, unless something answers for it."""
        attempt = 1
        for _ in range(MAX_NEW_ATTEMPTS):
            if self._start_execution(attempt):
                return self._running(attempt, duplicate=False)
            found = self._find(attempt)
            if isinstance(found, Receipt):
                return found
            attempt = found
        raise TooManyAttempts(
            f"Request {self._request_id!r} has had {attempt - 1} attempts, all closed. "
            f"Look at one of them: {self._machine.execution_arn(self._name, 1)}"
        )

    def _start_execution(self, attempt: int) -> bool:
        """Start it, unless the name is taken. An SDK's retry of the same bytes gets a 200 for its own."""
        try:
            with answering("Step Functions"):
                self._machine.sfn.start_execution(
                    stateMachineArn=self._machine.arn,
                    name=attempt_name(self._name, attempt),
                    input=self._envelope.to_json(),
                )
        except ClientError as error:
            if error_code(error) == "ExecutionAlreadyExists":
                return False
            raise
        return True

    def _find(self, attempt: int) -> Receipt | int:
        """What answers for a taken name; or, where nothing does any more, the attempt to try next."""
        lock = self._read_lock()
        if lock is not None and lock.call_id == self._envelope.callId:
            return Receipt.from_lock(self._request_id, lock, duplicate=False)
        if lock is None or lock.is_reusable(times.now_text()):
            return self._find_execution(attempt, lock)
        if not self._machine.is_own(lock, self._name):
            refused = self._refused_before(attempt)
            if refused is not None:
                return refused
        self._expect_same_payload(lock.payload_hash)
        overdue = self._check_owner or lock.expected_completion < times.now_text()
        if lock.status == INPROGRESS and overdue and not self._machine.is_alive(lock):
            return self._after_a_death(attempt, lock)
        return Receipt.from_lock(self._request_id, lock, duplicate=True)

    def _find_execution(self, attempt: int, lock: Lock | None) -> Receipt | int:
        """No record answers: either the execution has not taken its lock yet, or it is over and done with."""
        execution = self._machine.describe(self._name, attempt)
        if execution is None:
            return self._running(attempt, duplicate=True)
        self._expect_same_key(execution)
        mine = execution.input.get("callId") == self._envelope.callId
        if execution.is_open:
            self._expect_same_payload(self._machine.payload_hash_of(execution.input))
            return self._running(attempt, duplicate=not mine)
        if self._read_lock() != lock:
            return attempt
        if mine and execution.status != "SUCCEEDED":
            arn = self._machine.execution_arn(self._name, attempt)
            token = self._envelope.lockToken
            return Receipt.failed(self._request_id, token, arn, execution.failure, duplicate=False)
        if mine:
            return self._running(attempt, duplicate=False)
        return max(attempt, self._machine.attempt_of(lock, self._name)) + 1

    def _after_a_death(self, attempt: int, lock: Lock) -> Receipt | int:
        """The lock's owner is closed: the next attempt settles it, unless one is at it already."""
        owner = self._machine.describe_arn(lock.locked_by)
        if owner is not None and owner.failure.error in TOO_LARGE:
            raise Unsettled(
                f"Request {self._request_id!r}: its work is done, and its result is too large to be recorded "
                f"({lock.locked_by}). Look the result up, and complete the lock by hand."
            )
        taken = self._machine.describe(self._name, attempt)
        if taken is not None and taken.is_open:
            return self._running(attempt, duplicate=True)
        if self._read_lock() != lock:
            return attempt
        return max(attempt, self._machine.attempt_of(lock, self._name)) + 1

    def _refused_before(self, attempt: int) -> Receipt | None:
        """The record is another request's. This id may have been turned away, or have another key."""
        execution = self._machine.describe(self._name, attempt)
        if execution is None:
            return None
        self._expect_same_key(execution)
        if execution.failure.error != DUPLICATE_REFUSED:
            return None
        token, arn = self._envelope.lockToken, self._machine.execution_arn(self._name, attempt)
        return Receipt.failed(self._request_id, token, arn, execution.failure, duplicate=True)

    def _expect_same_payload(self, payload_hash: str | None) -> None:
        if payload_hash != self._envelope.payloadHash:
            raise PayloadMismatch(
                f"Request {self._request_id!r} (lock token {self._envelope.lockToken!r}) was started with "
                "another payload. Send the first payload again, or use a new id."
            )

    def _expect_same_key(self, execution: Execution) -> None:
        """One id is one key: under a second one its work would run twice."""
        other = self._machine.lock_token_of(self._name, execution.input)
        if other is None or other == self._envelope.lockToken:
            return
        lock = self._machine.locks.get(other)
        if execution.is_open or (lock is not None and not lock.is_reusable(times.now_text())):
            raise LockTokenMismatch(
                f"Request {self._request_id!r} was started with the lock token {other!r}, not "
                f"{self._envelope.lockToken!r}. Send the first lock token again, or use a new id."
            )

    def _read_lock(self) -> Lock | None:
        return self._machine.locks.get(self._envelope.lockToken)

    def _running(self, attempt: int, *, duplicate: bool) -> Receipt:
        arn = self._machine.execution_arn(self._name, attempt)
        return Receipt.running(self._request_id, self._envelope.lockToken, arn, duplicate=duplicate)
