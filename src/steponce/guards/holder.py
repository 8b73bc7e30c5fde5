"""
The writes of a lock's holder in plain Python: the same attributes under the same conditions as the states of
the workflow make, so that each reads the other's records.

What is different is the lease: `leaseUntil` says when the holder will certainly be done, since nobody can ask
it. Every write is one conditional UpdateItem that its author may repeat.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from steponce.aws import times
from steponce.aws.errors import answering, error_code
from steponce.locks.record import Failure, Lock
from steponce.locks.results import Results
from steponce.request.names import shard_of
from steponce.request.settings import RequestRules
from steponce.workflow import COMPLETED, FAILED, INPROGRESS, RELEASED

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_FREE = (
    "attribute_not_exists(lockToken) OR (NOT callId = :callId AND (#status = :released OR (#status IN "
    "(:completed, :failed) AND attribute_exists(#ttl) AND expiresAt < :now)))"
)
_ITS_LEASE_IS_OVER = (
    "#status = :inprogress AND ((callId = :deadCallId AND lockedBy = :deadOwner AND attempt = :deadAttempt "
    "AND leaseUntil = :deadLease) OR (callId = :callId AND lockedBy = :owner AND attempt = :attempt))"
)
_MINE = "callId = :callId AND lockedBy = :owner AND attempt = :attempt AND "
_BEGUN = (
    "#status = :inprogress, openStatus = :open, callId = :callId, lockedBy = :owner, requestId = :requestId, "
    "created = :now, expectedCompletion = :lease, leaseUntil = :lease, payloadHash = :payloadHash, "
    "expiresAt = :expiresAt"
)
_NOTHING_LEFT = "REMOVE #ttl, #result, failure, actualCompletion, in_progress_expiration, executionName"


class Holder:
    """
    One call's claim on one lock. Its callId is unique to it, for ever.

    Args:
        dynamodb: The client to write with.
        table: The lock table.
        lock_token: The business key.
        request_id: What the record calls the request: the key without its prefix.
        payload_hash: SHA-256, which other calls under the key must share.
        locked_by: Who holds it, so that people find its log.
        rules: For shards and retention.
        expires_after_work: Whether the retention counts from the end of the work. Default: from its begin.

    Attributes:
        attempt: Of the record, once it is held; 0 before.
        lease_until: The end of the lease (UTC text), once it is held.

    Every method raises Unavailable if DynamoDB did not answer; the write may then have been made or not, and
    is safe to make again.
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

    def acquire(self, lease_seconds: float) -> Lock | None:
        """
        Take the lock if it is free.

        Returns:
            None: it is held now. Else the record that refused: one write, and no read.

        Raises:
            RecordUnreadable: something else has written to the record.
        """
        values = self._begin(lease_seconds) | {
            ":zero": {"N": "0"},
            ":one": {"N": "1"},
            ":released": {"S": RELEASED},
            ":completed": {"S": COMPLETED},
            ":failed": {"S": FAILED},
        }
        update = f"SET {_BEGUN}, attempt = if_not_exists(attempt, :zero) + :one {_NOTHING_LEFT}"
        return self._take(_FREE, update, values)

    def take_over(self, dead: Lock, lease_seconds: float) -> Lock | None:
        """
        Take the lock of a holder whose lease is over, unless it has extended it meanwhile; as `acquire`.

        The next attempt is a number and not a count, so that a copy of this write that arrives late changes
        nothing.
        """
        values = self._begin(lease_seconds) | {
            ":deadCallId": {"S": dead.call_id},
            ":deadOwner": {"S": dead.locked_by},
            ":deadAttempt": {"N": str(dead.attempt)},
            ":deadLease": {"S": str(dead.lease_until)},
            ":attempt": {"N": str(dead.attempt + 1)},
        }
        return self._take(_ITS_LEASE_IS_OVER, f"SET {_BEGUN}, attempt = :attempt {_NOTHING_LEFT}", values)

    def continues(self, lock: Lock) -> None:
        """Write from now on as the holder of a lock, which an earlier part of the same work has taken."""
        self.call_id, self.locked_by, self.attempt = lock.call_id, lock.locked_by, lock.attempt
        self.lease_until = lock.lease_until or ""

    def extend(self, lease_seconds: float) -> Lock | None:
        """Let the lease end so many seconds from now, if it would not end later; as `_write`."""
        lease = max(self.lease_until, _later(lease_seconds))
        values = {":lease": {"S": lease}}
        refused = self._write(
            f"{_MINE}#status = :inprogress", "SET leaseUntil = :lease, expectedCompletion = :lease", values
        )
        if refused is None:
            self.lease_until = lease
        return refused

    def keep(self, result: str, results: Results) -> str:
        """Put a large result (JSON text) into its bucket; what the record gets in its place."""
        return results.keep(
            result,
            lock_token=self.lock_token,
            call_id=self.call_id,
            retention_seconds=self._rules.retention_seconds,
        ).to_json()

    def complete(self, result: str) -> Lock | None:
        """Write the result (JSON text); as `_write`."""
        return self._finish(COMPLETED, "#result", result, f"#ttl = :ttl {_OFF_THE_INDEX}")

    def fail(self, failure: Failure) -> Lock | None:
        """Write a final answer, which is replayed to everyone who asks; as `_write`."""
        return self._finish(FAILED, "failure", failure.to_json(), f"#ttl = :ttl {_OFF_THE_INDEX}")

    def release(self, failure: Failure) -> Lock | None:
        """Let anyone take the lock at once, since nothing happened; as `_write`."""
        return self._finish(RELEASED, "failure", failure.to_json(), f"#ttl = :ttl {_OFF_THE_INDEX}")

    def hold(self, failure: Failure) -> Lock | None:
        """Write an error on the open index, without `ttl`, until a person settles it; as `_write`."""
        return self._finish(FAILED, "failure", failure.to_json(), "openStatus = :open REMOVE leaseUntil")

    def give_back(self, failure: Failure) -> None:
        """As `release`, where it is not known whether the lock was ever taken, nor under which attempt."""
        values = self._outcome(RELEASED, "failure", failure.to_json(), ":ttl")
        self._write(
            "callId = :callId AND lockedBy = :owner AND #status = :inprogress",
            "SET #status = :new, failure = :failure, actualCompletion = :now, #ttl = :ttl " + _OFF_THE_INDEX,
            values,
        )

    def finished(self, result: str) -> Lock:
        """The record as `complete` has written it."""
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

    def _take(self, condition: str, update: str, values: dict[str, Any]) -> Lock | None:
        """A refusal by our own record is a success whose answer was lost."""
        found = self._update(condition, update, values, ReturnValues="ALL_NEW")
        if isinstance(found, Lock):
            if (found.status, found.call_id, found.locked_by) != (INPROGRESS, self.call_id, self.locked_by):
                return found
            self.attempt = found.attempt
            return None
        self.attempt = int(found["attempt"]["N"])
        return None

    def _finish(self, status: str, name: str, text: str, rest: str) -> Lock | None:
        value = name.strip("#")
        if self._expires_after_work:
            self._expires_at = self._expiry()
        values = self._outcome(status, value, text, ":ttl" if ":ttl" in rest else ":open")
        values[":expiresAt"] = {"S": self._expires_at}
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
        """Write as the holder. None: it is written. Else the record that somebody else answers for by now."""
        values = values | {":inprogress": {"S": INPROGRESS}}
        if ":attempt" in condition:
            values[":attempt"] = {"N": str(self.attempt)}
        found = self._update(condition, update, values)
        return found if isinstance(found, Lock) else None

    def _update(
        self, condition: str, update: str, values: dict[str, Any], **options: Any
    ) -> Lock | dict[str, Any]:
        """What was written, or the record that refused; one that is gone refuses as RELEASED."""
        names = {f"#{name}": name for name in ("status", "ttl", "result") if f"#{name}" in condition + update}
        try:
            with answering("DynamoDB"):
                answer = self._dynamodb.update_item(
                    TableName=self._table,
                    Key={"lockToken": {"S": self.lock_token}},
                    ConditionExpression=condition,
                    UpdateExpression=update,
                    ExpressionAttributeNames=names,
                    ExpressionAttributeValues=values
                    | {":callId": {"S": self.call_id}, ":owner": {"S": self.locked_by}},
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                    **options,
                )
        except ClientError as error:
            if error_code(error) != "ConditionalCheckFailedException":
                raise
            item: Any = error.response.get("Item")
            return Lock.from_item(item) if item else self._gone()
        return dict(answer.get("Attributes", {}))

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
