"""What an attempt says of itself: that it holds a lock."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Self

from steponce.aws import times
from steponce.aws.dynamodb import Item
from steponce.errors import InvalidRequest, RetryLater, shown
from steponce.locks.record import Lock
from steponce.workflow import INPROGRESS

_HOLDS = (
    "callId = :callId AND attempt = :attempt AND #status = :inprogress "
    "AND (attribute_not_exists(leaseUntil) OR leaseUntil > :now)"
)

REMEMBERED = 10_000
"""How many attempts a process remembers. Only guards report that an attempt is over."""

_passed: OrderedDict[tuple[str, int], None] = OrderedDict()
"""The attempts, as callId and number, that may have had an effect in this process, the latest ones last."""


def note_passed(call_id: str, attempt: int) -> None:
    """Note that an attempt may have an effect from now on: it passed a check, or may have written."""
    _passed[call_id, attempt] = None
    _passed.move_to_end((call_id, attempt))
    while len(_passed) > REMEMBERED:
        _passed.popitem(last=False)


def may_have_acted(call_id: str, attempt: int) -> bool:
    """Whether an attempt may have had an effect in this process. Then RetryLater would repeat it."""
    return (call_id, attempt) in _passed


def nothing_done(text: str, call_id: str, attempt: int) -> RetryLater:
    """
    The RetryLater of a check or an update: this attempt has done nothing.

    The work's own says more: that nothing has happened at all. A guard tells them apart by `raised_by`.
    """
    error = RetryLater(text)
    error.raised_by = (call_id, attempt)
    return error


def forget(call_id: str, attempt: int) -> None:
    """Forget an attempt that is over. A process that guards many calls remembers those that it works on."""
    _passed.pop((call_id, attempt), None)


def told_by(work: object) -> tuple[str, str, int]:
    """
    The lock token, the callId and the attempt in the input that the workflow gives to the work.

    Raises:
        InvalidRequest: it is another input, as if the work got the payload alone.
    """
    given: Mapping[str, Any] = work if isinstance(work, Mapping) else {}
    for name, kind in (("lockToken", str), ("callId", str), ("attempt", int | Decimal)):
        value = given.get(name)
        if not isinstance(value, kind):
            raise InvalidRequest(
                f"The work's {name} is {shown(value)}. Nothing was written. Pass on the whole input that the "
                "workflow gives to the work."
            )
    return given["lockToken"], given["callId"], int(given["attempt"])


@dataclass(frozen=True)
class Claim:
    """
    Which attempt says that it holds which lock.

    Args:
        table: The name of the lock table.
        lock_token: The lock's key.
        call_id: Of the call that took the lock.
        attempt: The attempt with which it took the lock.
    """

    table: str
    lock_token: str
    call_id: str
    attempt: int

    @classmethod
    def of(cls, work: Mapping[str, Any], table: str) -> Self:
        """Read it from the input that the workflow gives to the work; errors as `told_by`."""
        return cls(table, *told_by(work))

    def condition(self) -> Any:
        """
        A ConditionCheck for a transaction: the lock is held, by this attempt, and its lease is not over.

        Only guards' locks have a lease. A refusal brings the lock record along.
        """
        return {
            "TableName": self.table,
            "Key": {"lockToken": {"S": self.lock_token}},
            "ConditionExpression": _HOLDS,
            "ExpressionAttributeNames": {"#status": "status"},
            "ExpressionAttributeValues": {
                ":callId": {"S": self.call_id},
                ":attempt": {"N": str(self.attempt)},
                ":inprogress": {"S": INPROGRESS},
                ":now": {"S": times.now_text()},
            },
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }

    def refusal(self, item: Item | None) -> str:
        """Say why the condition failed, for people: what the record says, if there is one."""
        who = f"Attempt {self.attempt} no longer holds the lock {self.lock_token!r}"
        if not item:
            return f"{who}: there is no such record."
        lock = Lock.from_item(item)
        if (lock.status, lock.call_id, lock.attempt) == (INPROGRESS, self.call_id, self.attempt):
            return f"{who}: its lease was over at {lock.lease_until}. Extend it first."
        return f"{who}: its record is now {lock.status}, of attempt {lock.attempt}."
