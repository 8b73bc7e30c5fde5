"""
The fenced writes of a guarded call that holds a lock.

They write the same attributes under the same conditions as the workflow's states, so guards and workflows
read each other's records. Only the lease is different: nobody can ask whether a guarded call still runs, so
`leaseUntil` says when it is certainly over.

Every write is conditional, and its author may repeat it. Every write after `acquire` and `take_over` is
fenced by callId, owner and attempt. The fence protects the invariant that only the call that holds the lock
decides the outcome: a call whose lock was taken over changes nothing.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from steponce.aws import times
from steponce.aws.errors import answering, error_code, is_conflict
from steponce.aws.pauses import pauses
from steponce.errors import Unavailable
from steponce.failure import Failure
from steponce.locks.record import Lock
from steponce.locks.results import Results
from steponce.request.names import shard_of
from steponce.request.settings import RequestRules
from steponce.workflow import COMPLETED, FAILED, INPROGRESS, RELEASED

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_RETRIES = 8
_FIRST_PAUSE_SECONDS = 0.02
_LONGEST_PAUSE_SECONDS = 0.5

_NO_RECORD = "attribute_not_exists(lockToken)"
# The lock was released, or a final outcome has expired. Only a final outcome has a ttl. The attempt is still
# the one that was read, so no other call has begun since.
_FREE = (
    "attempt = :before AND (#status = :released OR (#status IN (:completed, :failed) "
    "AND attribute_exists(#ttl) AND expiresAt < :now))"
)
# Still the dead owner's, and its lease was not extended since it was read. A copy of this write that arrives
# late is refused, because it would shorten a lease that was extended since.
_ITS_LEASE_IS_OVER = (
    "#status = :inprogress AND callId = :deadCallId AND lockedBy = :deadOwner AND attempt = :deadAttempt "
    "AND leaseUntil = :deadLease"
)
# The fence. This call: callId and lockedBy. Not taken over since: attempt.
_MINE_AT_ANY_ATTEMPT = "callId = :callId AND lockedBy = :owner AND "
_MINE = f"{_MINE_AT_ANY_ATTEMPT}attempt = :attempt AND "
_BEGUN = {
    "status": ":inprogress",
    "openStatus": ":open",
    "callId": ":callId",
    "lockedBy": ":owner",
    "requestId": ":requestId",
    "created": ":now",
    "expectedCompletion": ":lease",
    "leaseUntil": ":lease",
    "payloadHash": ":payloadHash",
    "expiresAt": ":expiresAt",
}
"""The attributes that a record gets when its lock is taken, each with the placeholder of its value."""

_BEGIN_AGAIN = "SET " + ", ".join(
    f"{'#status' if name == 'status' else name} = {value}" for name, value in _BEGUN.items()
)
_NOTHING_LEFT = (
    "REMOVE #ttl, #result, failure, actualCompletion, in_progress_expiration, executionName, "
    "workTimeoutSeconds"
)


class Holder:
    """
    Writes the lock record for one guarded call. The call has a callId that no other call ever has.

    Args:
        dynamodb: A DynamoDB client that may put and update items.
        table: The name of the lock table.
        lock_token: The business key.
        request_id: The request's id in the record: the key without its prefix.
        payload_hash: SHA-256 of the payload. All calls under the key must share it.
        locked_by: The owner's name in the record, by which people find its log.
        rules: The rules for shards and retention.
        expires_after_work: Whether the retention counts from the end of the work. Default: from its begin.

    Attributes:
        attempt: The record's attempt while this call holds the lock. 0 before.
        lease_until: The end of the lease (UTC text) while this call holds the lock.
        may_have_taken_over: Whether this call's lock may be that of a dead owner, whose outcome is unknown.

    Every method raises Unavailable if DynamoDB did not answer. The write may have taken effect, and is safe
    to repeat.
    """

    def __init__(
        self,
        dynamodb: DynamoDBClient,
        table: str,
        *,
        lock_token: str,
        request_id: str,
        payload_hash: str,
        locked_by: str,
        rules: RequestRules,
        expires_after_work: bool = False,
    ) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._request_id = request_id
        self._rules = rules
        self._expires_after_work = expires_after_work
        self._expires_at = times.NEVER
        self.lock_token = lock_token
        self.payload_hash = payload_hash
        self.locked_by = locked_by
        self.call_id = uuid.uuid4().hex
        self.attempt = 0
        self.lease_until = ""
        self.may_have_taken_over = False

    def acquire(self, lease_seconds: float) -> Lock | None:
        """
        Take the lock if it is free.

        A PutItem writes a new record. If it is refused by a released or expired record, an UpdateItem takes
        that one.

        Returns:
            None if this call holds the lock now. Else the record that holds it. The refused write returns
            the record, so there is no read.

        Raises:
            RecordUnreadable: another program has damaged the record.
        """
        begun = self._begin(lease_seconds)
        found = self._taken(self._create(begun), 1)
        if found is None or not found.is_reusable(begun[":now"]["S"]):
            return found
        values = begun | {
            ":before": {"N": str(found.attempt)},
            ":released": {"S": RELEASED},
            ":completed": {"S": COMPLETED},
            ":failed": {"S": FAILED},
        }
        return self._take(_FREE, values, found.attempt + 1)

    def take_over(self, dead: Lock, lease_seconds: float) -> Lock | None:
        """
        Take over the lock of a guarded call whose lease is over. Returns and raises as `acquire`.

        The fence: the record still has the dead owner's callId, name, attempt and lease. An owner that
        extended its lease keeps the lock.
        """
        values = self._begin(lease_seconds) | {
            ":deadCallId": {"S": dead.call_id},
            ":deadOwner": {"S": dead.locked_by},
            ":deadAttempt": {"N": str(dead.attempt)},
            ":deadLease": {"S": str(dead.lease_until)},
        }
        self.may_have_taken_over = True  # before the write, whose answer may be lost
        return self._take(_ITS_LEASE_IS_OVER, values, dead.attempt + 1)

    def continues(self, lock: Lock) -> None:
        """Write from now on as the holder of a lock, which an earlier part of the same work has taken."""
        self.call_id, self.locked_by, self.attempt = lock.call_id, lock.locked_by, lock.attempt
        self.lease_until = lock.lease_until or ""

    def extend(self, lease_seconds: float) -> Lock | None:
        """
        Extend the lease to this many seconds from now. Returns as `_write`.

        It is never shortened, also not by a copy of this write that arrives late. If the record has a longer
        lease, an earlier extension took effect and its answer was lost.
        """
        lease = max(self.lease_until, _later(lease_seconds))
        refused = self._write(
            f"{_MINE}#status = :inprogress AND leaseUntil <= :lease",
            "SET leaseUntil = :lease, expectedCompletion = :lease",
            {":lease": {"S": lease}},
        )
        if refused is not None and not self._holds(refused):
            return refused
        self.lease_until = lease if refused is None else refused.lease_until or ""
        return None

    def keep(self, result: str, results: Results) -> str:
        """Put a large result (JSON text) into its bucket; what the record gets in its place."""
        return results.keep(
            result,
            lock_token=self.lock_token,
            call_id=self.call_id,
            retention_seconds=self._rules.retention_seconds,
        ).to_json()

    def complete(self, result: str) -> Lock | None:
        """Record the result (JSON text). Returns as `_write`."""
        return self._finish(COMPLETED, "#result", result, f"#ttl = :ttl {_OFF_THE_INDEX}")

    def fail(self, failure: Failure) -> Lock | None:
        """Record a final failure, which is replayed to later requests. Returns as `_write`."""
        return self._finish(FAILED, "failure", failure.to_json(), f"#ttl = :ttl {_OFF_THE_INDEX}")

    def release(self, failure: Failure) -> Lock | None:
        """Free the lock at once, because nothing happened. Returns as `_write`."""
        return self._finish(RELEASED, "failure", failure.to_json(), f"#ttl = :ttl {_OFF_THE_INDEX}")

    def hold(self, failure: Failure) -> Lock | None:
        """Record a failure that waits for a person: on the open index, without `ttl`. Returns as `_write`."""
        return self._finish(FAILED, "failure", failure.to_json(), "openStatus = :open REMOVE leaseUntil")

    def give_back(self, failure: Failure) -> None:
        """
        End the hold of a call whose work has not begun.

        The lock is released. One that may have been taken over is not: what became of the owner before is
        unknown. Only its lease ends, and the next call's own terms say what that means.

        The answer to the write that took the lock may be lost. Then the attempt is unknown, and the fence is
        callId and owner: this call has taken the lock at most once.
        """
        fence = _MINE if self.attempt else _MINE_AT_ANY_ATTEMPT
        if self.may_have_taken_over:
            update = "SET leaseUntil = :now, expectedCompletion = :now"
            values = {":now": {"S": times.now_text()}}
        else:
            update = "SET #status = :new, failure = :failure, actualCompletion = :now, #ttl = :ttl "
            update += _OFF_THE_INDEX
            values = self._outcome(RELEASED, "failure", failure.to_json(), ":ttl")
        self._write(f"{fence}#status = :inprogress", update, values)

    def finished(self, result: str) -> Lock:
        """The record that `complete` has written."""
        now = times.now_text()
        return Lock(
            lock_token=self.lock_token,
            status=COMPLETED,
            locked_by=self.locked_by,
            call_id=self.call_id,
            request_id=self._request_id,
            attempt=self.attempt,
            created=now,
            expected_completion=self.lease_until,
            payload_hash=self.payload_hash,
            actual_completion=now,
            result=result,
            expires_at=self._expires_at,
            ttl=times.epoch_seconds(self._expires_at),
        )

    def _begin(self, lease_seconds: float) -> dict[str, Any]:
        self.attempt = 0
        self.lease_until = _later(lease_seconds)
        self._expires_at = self._expiry()
        return {
            ":inprogress": {"S": INPROGRESS},
            ":open": {"S": f"{INPROGRESS}#{self._shard}"},
            ":requestId": {"S": self._request_id},
            ":now": {"S": times.now_text()},
            ":lease": {"S": self.lease_until},
            ":payloadHash": {"S": self.payload_hash},
            ":expiresAt": {"S": self._expires_at},
        }

    def _create(self, begun: dict[str, Any]) -> Lock | None:
        """Write a new record. Returns as `_send`."""
        values = begun | self._who()
        item = {name: values[value] for name, value in _BEGUN.items()}
        item |= {"lockToken": {"S": self.lock_token}, "attempt": {"N": "1"}}
        return self._send(self._dynamodb.put_item, Item=item, ConditionExpression=_NO_RECORD)

    def _take(self, condition: str, values: dict[str, Any], attempt: int) -> Lock | None:
        """
        Take the lock of an existing record. Returns as `acquire`.

        The write sets the attempt to a number instead of adding 1, so a delayed copy of it changes nothing.
        """
        update = f"{_BEGIN_AGAIN}, attempt = :attempt {_NOTHING_LEFT}"
        number = {":attempt": {"N": str(attempt)}}
        return self._taken(self._update(condition, update, values | number), attempt)

    def _taken(self, found: Lock | None, attempt: int) -> Lock | None:
        """
        Note the attempt if the lock is taken. Returns as `acquire`.

        A refusal by this call's own record is a success whose answer was lost. The lease of that one counts:
        it is an earlier one if the call is tried again.
        """
        if found is None:
            self.attempt = attempt
            return None
        if not self._has_taken(found):
            self.may_have_taken_over = False
            return found
        self.attempt, self.lease_until = found.attempt, found.lease_until or ""
        return None

    def _has_taken(self, lock: Lock) -> bool:
        mine = (INPROGRESS, self.call_id, self.locked_by)
        return (lock.status, lock.call_id, lock.locked_by) == mine

    def _holds(self, lock: Lock) -> bool:
        return self._has_taken(lock) and lock.attempt == self.attempt

    def _finish(self, status: str, name: str, text: str, rest: str) -> Lock | None:
        value = name.strip("#")
        if self._expires_after_work:
            self._expires_at = self._expiry()
        values = self._outcome(status, value, text, ":ttl" if ":ttl" in rest else ":open")
        values[":expiresAt"] = {"S": self._expires_at}
        # The fence; and the work is still in progress, or this is a repetition of the same outcome.
        condition = f"{_MINE}(#status = :inprogress OR (#status = :new AND {name} = :{value}))"
        update = (
            f"SET #status = :new, {name} = :{value}, actualCompletion = :now, expiresAt = :expiresAt, {rest}"
        )
        return self._write(condition, update, values)

    def _outcome(self, status: str, name: str, text: str, where: str) -> dict[str, Any]:
        places = {
            ":ttl": {"N": str(times.epoch_seconds(self._expires_at))},
            ":open": {"S": f"{FAILED}#{self._shard}"},
        }
        return {
            ":new": {"S": status},
            f":{name}": {"S": text},
            ":now": {"S": times.now_text()},
            where: places[where],
        }

    def _write(self, condition: str, update: str, values: dict[str, Any]) -> Lock | None:
        """Make a write under the fence. Returns None if it took effect, else the record of another owner."""
        values = values | {":inprogress": {"S": INPROGRESS}}
        if ":attempt" in condition:
            values[":attempt"] = {"N": str(self.attempt)}
        return self._update(condition, update, values)

    def _update(self, condition: str, update: str, values: dict[str, Any]) -> Lock | None:
        names = {f"#{name}": name for name in ("status", "ttl", "result") if f"#{name}" in condition + update}
        return self._send(
            self._dynamodb.update_item,
            Key={"lockToken": {"S": self.lock_token}},
            ConditionExpression=condition,
            UpdateExpression=update,
            ExpressionAttributeNames=names,
            ExpressionAttributeValues=values | self._who(),
        )

    def _send(self, write: Callable[..., object], **request: Any) -> Lock | None:
        """
        Make a write, and try again while a transaction of others is at the record.

        Returns:
            None if the write took effect, else the refusing record. A missing one is RELEASED.
        """
        for pause in islice(pauses(_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS), _RETRIES):
            try:
                return self._send_once(write, **request)
            except Unavailable as error:
                if not is_conflict(error):
                    raise
            time.sleep(pause)
        return self._send_once(write, **request)

    def _send_once(self, write: Callable[..., object], **request: Any) -> Lock | None:
        try:
            with answering("DynamoDB"):
                write(TableName=self._table, ReturnValuesOnConditionCheckFailure="ALL_OLD", **request)
        except ClientError as error:
            if error_code(error) != "ConditionalCheckFailedException":
                raise
            item: Any = error.response.get("Item")
            return Lock.from_item(item) if item else self._gone()
        return None

    def _who(self) -> dict[str, Any]:
        return {":callId": {"S": self.call_id}, ":owner": {"S": self.locked_by}}

    def _expiry(self) -> str:
        return times.to_text(times.after(times.now(), self._rules.retention_seconds))

    def _gone(self) -> Lock:
        now = times.now_text()
        return Lock(self.lock_token, RELEASED, "nobody", "none", self._request_id, 1, now, now)

    @property
    def _shard(self) -> str:
        return shard_of(self.lock_token, self._rules.open_shards)


_OFF_THE_INDEX = "REMOVE openStatus, leaseUntil"


def _later(seconds: float) -> str:
    return times.to_text(times.after(times.now(), seconds))
