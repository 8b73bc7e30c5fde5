"""
The lock record: its attributes, its statuses, and every write that Python makes to it.

The workflow makes the same writes from its own states; what is here serves the client (which reads)
and whoever settles what a dead execution left open (which writes on its behalf, under its fence).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from botocore.exceptions import ClientError

from steponce.aws import answering, error_code
from steponce.times import epoch_seconds, now_text

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

INPROGRESS = "INPROGRESS"
COMPLETED = "COMPLETED"
FAILED = "FAILED"
RELEASED = "RELEASED"

OUTCOME_UNKNOWN = "OutcomeUnknown"


_OWNER_IS_THE_SAME = "callId = :callId AND lockedBy = :execution AND #status = :inprogress"


@dataclass(frozen=True)
class Failure:
    """An error as Step Functions reports it; either part may be missing."""

    error: str | None
    cause: str | None

    @classmethod
    def from_json(cls, text: str) -> Self:
        found = json.loads(text)
        return cls.from_catch(found) if isinstance(found, dict) else cls(None, text)

    @classmethod
    def from_catch(cls, caught: Mapping[str, Any]) -> Self:
        """Read the object that a Catch puts into the state's data: `{"Error": …, "Cause": …}`."""
        return cls(caught.get("Error"), caught.get("Cause"))

    def to_json(self) -> str:
        return json.dumps({"Error": self.error, "Cause": self.cause}, ensure_ascii=False)


@dataclass(frozen=True)
class Lock:
    """One lock record, as read. Times are UTC text, `ttl` is epoch seconds, `result` is JSON text."""

    lock_token: str
    status: str
    locked_by: str
    call_id: str
    request_id: str
    attempt: int
    created: str
    expected_completion: str
    payload_hash: str | None = None
    open_status: str | None = None
    actual_completion: str | None = None
    result: str | None = None
    failure: Failure | None = None
    expires_at: str | None = None
    ttl: int | None = None

    @classmethod
    def from_item(cls, item: Mapping[str, Mapping[str, Any]]) -> Self:
        """Read a DynamoDB item in its typed form (`{"status": {"S": "COMPLETED"}}`)."""

        def text(name: str) -> str | None:
            return item.get(name, {}).get("S")

        def number(name: str) -> int | None:
            return int(item[name]["N"]) if "N" in item.get(name, {}) else None

        failure = text("failure")
        return cls(
            lock_token=text("lockToken") or "",
            status=text("status") or "",
            locked_by=text("lockedBy") or "",
            call_id=text("callId") or "",
            request_id=text("requestId") or "",
            attempt=number("attempt") or 0,
            created=text("created") or "",
            expected_completion=text("expectedCompletion") or "",
            payload_hash=text("payloadHash"),
            open_status=text("openStatus"),
            actual_completion=text("actualCompletion"),
            result=text("result"),
            failure=Failure.from_json(failure) if failure is not None else None,
            expires_at=text("expiresAt"),
            ttl=number("ttl"),
        )

    def is_reusable(self, now: str) -> bool:
        """
        Whether anyone may take this record, as AcquireLock's condition has it.

        A lock in progress is never reusable: only its owner's death frees it, not a clock. A failure
        that waits for a person has no `ttl`, and stays as well.
        """
        if self.status == RELEASED:
            return True
        expired = self.ttl is not None and self.expires_at is not None and self.expires_at < now
        return self.status in (COMPLETED, FAILED) and expired


class Locks:
    """
    The LocksTable, seen from Python.

    Every write is fenced: it takes effect only while the record still says what `lock` says of its
    owner, and does nothing (False) otherwise.
    """

    def __init__(self, dynamodb: DynamoDBClient, table: str) -> None:
        self._dynamodb = dynamodb
        self._table = table

    def get(self, lock_token: str) -> Lock | None:
        """Read one record, consistently; None where there is none."""
        with answering("DynamoDB"):
            answer = self._dynamodb.get_item(
                TableName=self._table, Key={"lockToken": {"S": lock_token}}, ConsistentRead=True
            )
        return Lock.from_item(answer["Item"]) if "Item" in answer else None

    def complete(self, lock: Lock, result: str) -> bool:
        """Write the result (JSON text, at most about 390 KB) of a request whose work is done."""
        return self._finish(lock, COMPLETED, "#result", result, settled=True)

    def fail(self, lock: Lock, failure: Failure, *, final: bool) -> bool:
        """
        Write how a request failed.

        Args:
            lock: The record as it was read.
            failure: Error and cause, as the work gave them.
            final: A final answer expires with the record's retention; any other failure stays on the
                open index, without `ttl`, until a person settles it.
        """
        return self._finish(lock, FAILED, "failure", failure.to_json(), settled=final)

    def _finish(self, lock: Lock, status: str, attribute: str, text: str, *, settled: bool) -> bool:
        shard = (lock.open_status or "#0").rpartition("#")[2]
        sets = f"#status = :status, actualCompletion = :now, {attribute} = :text"
        values = {
            ":status": {"S": status},
            ":now": {"S": now_text()},
            ":text": {"S": text},
            ":inprogress": {"S": INPROGRESS},
            ":callId": {"S": lock.call_id},
            ":execution": {"S": lock.locked_by},
        }
        names = {"#status": "status"} | ({"#result": "result"} if attribute == "#result" else {})
        if settled:
            update = f"SET {sets}, #ttl = :ttl REMOVE openStatus"
            values[":ttl"] = {"N": str(epoch_seconds(lock.expires_at or now_text()))}
            names["#ttl"] = "ttl"
        else:
            update = f"SET {sets}, openStatus = :open"
            values[":open"] = {"S": f"{status}#{shard}"}
        try:
            with answering("DynamoDB"):
                self._dynamodb.update_item(
                    TableName=self._table,
                    Key={"lockToken": {"S": lock.lock_token}},
                    UpdateExpression=update,
                    ConditionExpression=_OWNER_IS_THE_SAME,
                    ExpressionAttributeNames=names,
                    ExpressionAttributeValues=values,
                )
        except ClientError as error:
            if error_code(error) == "ConditionalCheckFailedException":
                return False
            raise
        return True
