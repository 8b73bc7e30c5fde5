"""
One call of `Client.status`: what is known about a request now.

The lock record decides. Executions are described only if no record answers, or if the record may be that of
an earlier request with the same id.
"""

from __future__ import annotations

from steponce.aws import times
from steponce.errors import PayloadMismatch, RequestNotFound
from steponce.executions import Execution
from steponce.locks.record import Lock
from steponce.request.belonging import answers_too, is_own, made_it, payload_mismatch, payload_mismatch_of
from steponce.request.envelope import check_lock_token
from steponce.request.machine import Machine, has_other_token
from steponce.request.names import name_of
from steponce.request.newest import newest_beside, newest_of_request, running_without_lock
from steponce.request.receipt import Receipt

_READINGS = 3


class Lookup:
    """
    The call: whose status it asks for, under which lock token, and with which payload.

    Args:
        machine: The request's machine.
        request_id: As the caller gave it.
        lock_token: The one that the request was started with. None: its first attempts tell it.
        payload_hash: Of the payload that the answer must be for. None: of any.

    Attributes:
        by_id_alone: Whether the record answers only because it has this id. Its execution is forgotten, it is
            a guard's, or another machine's. Or an execution was started since, and is not visible yet.
    """

    by_id_alone = False

    def __init__(
        self, machine: Machine, request_id: str, lock_token: str | None, payload_hash: str | None = None
    ) -> None:
        self._machine = machine
        self._request_id = request_id
        self._payload_hash = payload_hash
        self._name = name_of(request_id)
        if lock_token is not None:
            check_lock_token(lock_token)
        else:
            lock_token = machine.lock_token_of_request(request_id, machine.describe(self._name, 1))
        if lock_token is None:
            raise self._not_found()
        self._lock_token = lock_token

    def run(self) -> Receipt:
        """
        Read the record, and the newest attempt where no record answers.

        Raises:
            RequestNotFound: neither is known.
            PayloadMismatch: what is known is the answer for another payload.
        """
        for _ in range(_READINGS):
            lock, now = self._read_lock(), times.now_text()
            mismatch, receipt, self.by_id_alone = None, None, False
            try:
                if lock is None or lock.is_reusable(now):
                    receipt = self._by_attempt(lock, now)
                elif is_own(self._machine, lock, self._request_id):
                    return self._answer(lock, now)
                else:
                    receipt = self._by_another(lock, now)
            except PayloadMismatch as error:
                mismatch = error
            if receipt is not None and receipt.status == "RUNNING":
                break
            # The execution may have taken its lock, and even ended, between the two reads.
            if self._read_lock() == lock:
                break
        if receipt is None:
            raise mismatch or self._not_found()
        return receipt

    def _by_another(self, lock: Lock, now: str) -> Receipt | None:
        """The record is another request's, or an earlier one's with this id. None if it tells nothing."""
        newest, attempt = newest_of_request(self._machine, self._request_id, 1)
        if newest is None or self._machine.lock_token_asked_for(self._name, newest) != self._lock_token:
            self.by_id_alone = lock.request_id == self._request_id
            return self._answer(lock, now) if self.by_id_alone else None
        if newest.is_open:
            if not lock.has_payload(self._payload_hash):
                self._expect_payload_of(newest)
            return self._running(self._arn(attempt))
        if answers_too(self._machine, lock, self._request_id, newest, self._payload_hash):
            return self._answer(lock, now)
        if not newest.failure.turns_away:
            self._expect_payload_of_record(lock)
        return None if newest.status == "SUCCEEDED" else self._failed(newest, attempt, is_free=False)

    def _by_attempt(self, lock: Lock | None, now: str) -> Receipt | None:
        """No record answers, so the newest attempt does. It may not have its lock yet. None without one."""
        newest, attempt = newest_beside(self._machine, lock, self._request_id)
        if newest is not None and has_other_token(newest, self._lock_token):
            return None
        if newest is not None and newest.is_open:
            self._expect_payload_of(newest)
            return self._running(self._arn(attempt))
        redriven = running_without_lock(self._machine, lock, self._request_id, self._arn(attempt))
        if redriven is not None:
            execution, arn = redriven
            self._expect_payload_of(execution)
            return self._running(arn)
        if lock is not None:
            is_known_by_id = newest is None and lock.request_id == self._request_id
            if is_known_by_id or (newest and made_it(self._machine, lock, self._request_id, newest, attempt)):
                return self._answer(lock, now)
        if newest is None or newest.status == "SUCCEEDED":
            return None
        return self._failed(newest, attempt, is_free=True)

    def _read_lock(self) -> Lock | None:
        return self._machine.locks.get(self._lock_token)

    def _answer(self, lock: Lock, now: str) -> Receipt:
        """`now` is when the record was read. It may expire while executions are described."""
        self._expect_payload_of_record(lock)
        results, duplicate = self._machine.results, not self._machine.made(lock, self._request_id)
        return Receipt.from_lock(self._request_id, lock, results, duplicate=duplicate, now=now)

    def _arn(self, attempt: int) -> str:
        return self._machine.execution_arn(self._name, attempt)

    def _running(self, arn: str) -> Receipt:
        return Receipt.running(self._request_id, self._lock_token, arn, duplicate=False)

    def _failed(self, execution: Execution, attempt: int, *, is_free: bool) -> Receipt:
        self._expect_payload_of(execution)
        arn, token, answer = self._arn(attempt), self._lock_token, execution.answer
        return Receipt.failed(self._request_id, token, arn, answer, duplicate=False, is_free=is_free)

    def _expect_payload_of(self, execution: Execution) -> None:
        if self._payload_hash not in (None, self._machine.payload_hash_of(execution.input)):
            raise payload_mismatch(self._request_id, self._lock_token)

    def _expect_payload_of_record(self, lock: Lock) -> None:
        if self._payload_hash is not None and not lock.has_payload(self._payload_hash):
            raise payload_mismatch_of(self._machine, lock, self._request_id)

    def _not_found(self) -> RequestNotFound:
        return RequestNotFound(
            f"There is no request {self._request_id!r}, or its record has expired. If it was started a "
            "moment ago, ask again. Otherwise check its id and its lock token."
        )
