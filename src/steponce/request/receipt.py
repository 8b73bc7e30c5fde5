"""The receipt: what a caller learns about a request."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Self

from steponce.aws import times
from steponce.camelcase import json_object
from steponce.failure import Failure
from steponce.locks.record import Lock
from steponce.locks.reference import Kept
from steponce.workflow import COMPLETED, INPROGRESS

if TYPE_CHECKING:
    from steponce.locks.results import Results

Status = Literal["RUNNING", "COMPLETED", "FAILED"]

_STATUS: dict[str, Status] = {INPROGRESS: "RUNNING", COMPLETED: "COMPLETED"}


class _Result:
    """The field `result`: one that is kept in a bucket is read from there when it is first asked for."""

    def __get__(self, receipt: Receipt | None, _owner: type | None = None) -> Any:
        if receipt is None:
            raise AttributeError("result")  # which says to `dataclass` that there is no default
        found = vars(receipt)["result"]
        if isinstance(found, Kept):
            found = vars(receipt)["result"] = found.read()
        return found

    def __set__(self, receipt: Receipt, value: Any) -> None:
        vars(receipt)["result"] = value


@dataclass(frozen=True)
class Receipt:
    """
    What is known about a request.

    Args:
        request_id: As the caller gave it.
        lock_token: The request's business key.
        status: RUNNING, COMPLETED or FAILED.
        duplicate: From `start`: whether this call started nothing. From `status` and `wait`: whether the
            answer is another request's with the same lock token.
        result: The result of the work, if COMPLETED. A large one is read from the stack's bucket on first
            use, which raises ResultUnreadable if it cannot be read there, and Unavailable.
        error: The error's name, if FAILED. None if the work gave none.
        cause: The error's text, if FAILED. None if the work gave none.
        execution_arn: The execution that does or did the work.
        attempt: How often the lock was taken. 0 before the first time.
        may_run_again: Whether the next start runs the request. Either its record was released or has expired,
            also with a result. Or it is FAILED without a record, and no other request has the lock token.
        waits_for_person: Whether a person decides what becomes of the request. It is FAILED, and nobody knows
            whether its work took effect; the next answer may be another one.
    """

    request_id: str
    lock_token: str
    status: Status
    duplicate: bool
    result: Any = _Result()
    error: str | None = None
    cause: str | None = None
    execution_arn: str = ""
    attempt: int = 0
    may_run_again: bool = False
    waits_for_person: bool = False

    def __repr__(self) -> str:
        """Without reading anything."""
        return f"Receipt({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    def __getstate__(self) -> dict[str, Any]:
        """For another process, or a deep copy: a result that is kept in a bucket is read before."""
        return vars(self) | {"result": self.result}

    def __copy__(self) -> Self:
        """Without reading anything."""
        return type(self)(**vars(self))

    @property
    def resets_at(self) -> datetime | None:
        """
        If the machine's rate limit has refused the request: when the window ends, in UTC. Else None.

        A refusal comes before the lock. After it, whoever answers a waiting step may choose the same words.
        """
        return Failure(self.error, self.cause).resets_at if self.attempt == 0 else None

    @property
    def kept_bytes(self) -> int | None:
        """The size of a result that is in the stack's bucket and was not read yet; None for any other."""
        found = vars(self)["result"]
        return found.reference.bytes if isinstance(found, Kept) else None

    def as_duplicate(self, duplicate: bool) -> Self:
        """The same, found or started by another call. Nothing is read, as `dataclasses.replace` would."""
        return type(self)(**vars(self) | {"duplicate": duplicate})

    def to_dict(self) -> dict[str, Any]:
        """The same as a JSON object, with names in camelCase."""
        return json_object(self)

    @classmethod
    def running(cls, request_id: str, lock_token: str, execution_arn: str, *, duplicate: bool) -> Self:
        """The receipt of an execution that does not hold its lock yet."""
        return cls(request_id, lock_token, "RUNNING", duplicate, None, None, None, execution_arn, 0)

    @classmethod
    def failed(
        cls,
        request_id: str,
        lock_token: str,
        execution_arn: str,
        failure: Failure,
        *,
        duplicate: bool,
        is_free: bool,
    ) -> Self:
        """
        The receipt of an execution that failed and left no record.

        Args:
            request_id: As the caller gave it.
            lock_token: The request's business key.
            execution_arn: The execution.
            failure: Its error and cause.
            duplicate: As the receipt's.
            is_free: Whether no record answers for the lock token now, so that the next start runs.
        """
        return cls(
            request_id=request_id,
            lock_token=lock_token,
            status="FAILED",
            duplicate=duplicate,
            result=None,
            error=failure.error,
            cause=failure.cause,
            execution_arn=execution_arn,
            may_run_again=is_free,
        )

    @classmethod
    def from_lock(
        cls, request_id: str, lock: Lock, results: Results, *, duplicate: bool, now: str | None = None
    ) -> Self:
        """
        The receipt of a lock record. A released record counts as FAILED; the request may start again.

        Args:
            request_id: As the caller gave it.
            lock: The record.
            results: Where its result is, if that is large.
            duplicate: As the receipt's.
            now: When the record was found (UTC text). A caller who has found it valid then must not get a
                receipt that says the opposite a moment later. Default: this moment.
        """
        failure = lock.failure or Failure(None, None)
        return cls(
            request_id=request_id,
            lock_token=lock.lock_token,
            status=_STATUS.get(lock.status, "FAILED"),
            duplicate=duplicate,
            result=results.of(lock),
            error=failure.error,
            cause=failure.cause,
            execution_arn=lock.locked_by,
            attempt=lock.attempt,
            may_run_again=lock.is_reusable(now or times.now_text()),
            waits_for_person=lock.waits_for_person,
        )
