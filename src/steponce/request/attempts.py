"""The attempts of one request, as one call of `Client.start` sees them."""

from __future__ import annotations

import time

from steponce.errors import Unavailable
from steponce.executions import Execution
from steponce.locks.record import Lock
from steponce.request.machine import Machine, has_other_token, is_attempt_of
from steponce.request.names import name_of
from steponce.request.newest import newest_after, newest_of_request
from steponce.workflow import INPROGRESS

_PAUSES_SECONDS = (0, 0.1, 0.2, 0.4)


class Attempts:
    """
    The attempts, by their numbers.

    Attributes:
        request_id: As the caller gave it.
        name: The execution name that is made of it.
    """

    def __init__(self, machine: Machine, request_id: str) -> None:
        self.request_id = request_id
        self.name = name_of(request_id)
        self._machine = machine
        self._closed: dict[int, Execution] = {}

    def arn(self, attempt: int) -> str:
        """The ARN of an attempt's execution."""
        return self._machine.execution_arn(self.name, attempt)

    def describe(self, attempt: int) -> Execution | None:
        """Describe an attempt, a closed one once in this call. None if Step Functions does not know it."""
        found = self._closed.get(attempt) or self._machine.describe(self.name, attempt)
        if found is not None and not found.is_open:
            self._closed[attempt] = found
        return found

    def describe_started(self, attempt: int) -> Execution:
        """
        Describe an attempt whose name is taken. DescribeExecution may show it only after a moment.

        Raises:
            Unavailable: it is not shown yet. Its lock token and payload have to be compared first.
        """
        for pause in _PAUSES_SECONDS:
            time.sleep(pause)
            execution = self.describe(attempt)
            if execution is not None:
                return execution
        raise Unavailable(
            f"Request {self.request_id!r} was started a moment ago, and cannot be compared with this start "
            "yet. Try again."
        )

    def newest_since(self, lock: Lock | None, first: Execution) -> tuple[Execution | None, int]:
        """
        Find the newest attempt, from the one that has made a record that is free by now.

        Args:
            lock: The record under the request's lock token.
            first: The first attempt.

        Returns:
            The execution and its number. The next number is free. The execution is None if it is a second or
            later attempt that has made the record. So is another request's, which was started by hand under
            the name of an attempt, or long ago.
        """
        recorded = self._machine.recorded_attempt(lock, self.request_id, first)
        newest, last = newest_after(self._machine, self.name, recorded, first if recorded == 1 else None)
        if newest is not None and last > 1 and not is_attempt_of(newest, self.request_id, first):
            newest = None
        return newest, last

    def to_ask(self, lock: Lock) -> tuple[Execution, int]:
        """
        Find the attempt that says whether another request's record has refused this id.

        That is the newest one with the record's lock token. A first attempt that succeeded since the record
        was taken has replayed it, and no attempt follows. While another request is in progress, callers poll.
        Then the newest is looked for only if one of the first two was refused.
        """
        first = self.describe_started(1)
        has_replayed = first.status == "SUCCEEDED" and "" < lock.taken_at <= (first.closed or "")
        if first.is_open or has_replayed:
            return first, 1
        known, number = first, 1
        if lock.status == INPROGRESS and not first.failure.refuses_a_duplicate:
            second = self.describe(2)
            is_own = second is not None and is_attempt_of(second, self.request_id, first)
            if second is None or not (is_own and second.failure.refuses_a_duplicate):
                return first, 1
            known, number = second, 2
        newest, attempt = newest_of_request(self._machine, self.request_id, number, known)
        while attempt > 1 and newest is not None and has_other_token(newest, lock.lock_token):
            newest, attempt = self.describe(attempt - 1), attempt - 1  # it was started by hand
        return (newest, attempt) if newest is not None else (first, 1)
