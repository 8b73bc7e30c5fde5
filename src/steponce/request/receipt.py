"""The receipt: what one asker learns of a request."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal, Self

from steponce.camelcase import json_object
from steponce.locks.record import Failure, Lock
from steponce.workflow import COMPLETED, INPROGRESS

Status = Literal["RUNNING", "COMPLETED", "FAILED"]

_STATUS: dict[str, Status] = {INPROGRESS: "RUNNING", COMPLETED: "COMPLETED"}


@dataclass(frozen=True)
class Receipt:
    """
    What is known of a request.

    Args:
        request_id: As the caller gave it.
        lock_token: The business key that it runs under.
        status: RUNNING, COMPLETED or FAILED.
        duplicate: From `start`: this call started nothing. From `status` and `wait`: the answer is
            another request's, which had the same lock token.
        result: What the work answered, once COMPLETED.
        error: The error's name, once FAILED; None if the work gave none.
        cause: The error's text, likewise.
        execution_arn: The execution that does or did the work.
        attempt: Grows with every execution that took the lock; 0 while nobody has.
    """

    request_id: str
    lock_token: str
    status: Status
    duplicate: bool
    result: Any
    error: str | None
    cause: str | None
    execution_arn: str
    attempt: int

    def to_dict(self) -> dict[str, Any]:
        """The same as a JSON object, with names in camelCase."""
        return json_object(self)

    @classmethod
    def running(cls, request_id: str, lock_token: str, execution_arn: str, *, duplicate: bool) -> Self:
        """Of an execution that holds no lock yet."""
        return cls(request_id, lock_token, "RUNNING", duplicate, None, None, None, execution_arn, 0)

    @classmethod
    def failed(
        cls, request_id: str, lock_token: str, execution_arn: str, failure: Failure, *, duplicate: bool
    ) -> Self:
        """Of an execution that failed and left no record."""
        error, cause = failure.error, failure.cause
        return cls(request_id, lock_token, "FAILED", duplicate, None, error, cause, execution_arn, 0)

    @classmethod
    def from_lock(cls, request_id: str, lock: Lock, *, duplicate: bool) -> Self:
        """Of a record. One that was released has failed, and may be started again."""
        failure = lock.failure or Failure(None, None)
        return cls(
            request_id=request_id,
            lock_token=lock.lock_token,
            status=_STATUS.get(lock.status, "FAILED"),
            duplicate=duplicate,
            result=None if lock.result is None else json.loads(lock.result),
            error=failure.error,
            cause=failure.cause,
            execution_arn=lock.locked_by,
            attempt=lock.attempt,
        )
