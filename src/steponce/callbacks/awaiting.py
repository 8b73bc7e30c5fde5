"""
The table of awaiting steps.

    PENDING  --claim-->  ANSWERING  --delivered-->  ANSWERED
       \\______________________\\____ too late ____>  LATE

Every write is conditional. An answer is stored before it is sent, so any call that finds ANSWERING can send
it. If the workflow enters a LATE step again, the step is PENDING again with a newer token.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from steponce.aws import times
from steponce.aws.dynamodb import Item, Skip, in_range, read_each, unchanged_or_gone
from steponce.aws.errors import answering, error_code
from steponce.callbacks.answer import Answer
from steponce.callbacks.step import ANSWERED, ANSWERING, LATE, PENDING, AwaitingStep
from steponce.errors import StepAlreadyAnswered, StepNameTaken, SteponceError, Unavailable
from steponce.request.names import OPEN_SHARDS, shard_of

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

KEPT = timedelta(days=30)
"""How long a record is kept after its step expired. So a later answer still gets `duplicate` or `late`."""

STATUS_AND_TRY = ("status", "enteredAt", "retryCount")
"""Attributes that identify the state of a record: a delete compares them."""

_TRIES = 5

# The stored try is older: it entered the state earlier, or it is an earlier retry of the same entry.
_NEWER = "(enteredAt < :enteredAt OR (enteredAt = :enteredAt AND retryCount < :retryCount))"


class AwaitingSteps:
    """
    The table of awaiting steps.

    Args:
        dynamodb: A DynamoDB client.
        table: The table's name.
        open_shards: How many shards its open index has; see `RequestRules`.
    """

    def __init__(self, dynamodb: DynamoDBClient, table: str, *, open_shards: int = OPEN_SHARDS) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._open_shards = open_shards

    def get(self, step_id: str) -> AwaitingStep | None:
        """
        Read one record with a consistent read.

        Returns:
            None if there is no record.

        Raises:
            RecordUnreadable: another program has damaged the record.
            Unavailable: no answer; safe to try again.
        """
        item = self._item(step_id)
        return None if item is None else AwaitingStep.from_item(item)

    def open(self, *, skip: Skip | None = None) -> list[AwaitingStep]:
        """
        List all steps that still wait, the earliest expiry first.

        Args:
            skip: Is called with each unreadable record. If it is None, the first unreadable record raises.
        """
        # An answer may be claimed between the two lists.
        found = dict.fromkeys(step_id for status in (PENDING, ANSWERING) for step_id in self.ids(status))
        items = (item for item in map(self._item, found) if item is not None)
        steps = read_each(items, AwaitingStep.from_item, skip)
        waiting = [step for step in steps if step.status in (PENDING, ANSWERING)]
        return sorted(waiting, key=lambda step: step.expires_at)

    def ids(self, status: str, *, since: str | None = None, until: str | None = None) -> Iterator[str]:
        """
        List the ids of the steps that still wait, page by page, from every shard of the open index.

        Args:
            status: PENDING or ANSWERING.
            since: The earliest expiry to list (UTC text). None: all.
            until: The latest expiry to list (UTC text). None: all.

        Returns:
            The ids in the index. It may lag behind the table, so `get` a record before you write to it.
        """
        expires, values = in_range("expiresAt", since, until)
        for shard in range(self._open_shards):
            with answering("DynamoDB"):
                pages = self._dynamodb.get_paginator("query").paginate(
                    TableName=self._table,
                    IndexName="OpenSteps",
                    KeyConditionExpression=f"openStatus = :open{expires}",
                    ExpressionAttributeValues={":open": {"S": f"{status}#{shard}"}, **values},
                    ProjectionExpression="awaitingStepId",
                )
                for page in pages:
                    yield from (item["awaitingStepId"]["S"] for item in page["Items"])

    def under(
        self, prefix: str, *, consistent: bool = True, skip: Skip | None = None
    ) -> Iterator[AwaitingStep]:
        """
        List every step whose lock token begins with a prefix. This scans the whole table, page by page.

        Args:
            prefix: Plain text. A record whose lock token itself is damaged is not found.
            consistent: Whether the scan misses nothing that was written before. Otherwise it costs half.
            skip: As for `open`.
        """
        pages = self._dynamodb.get_paginator("scan").paginate(
            TableName=self._table,
            FilterExpression="begins_with(lockToken, :prefix)",
            ExpressionAttributeValues={":prefix": {"S": prefix}},
            ConsistentRead=consistent,
        )
        with answering("DynamoDB"):
            for page in pages:
                yield from read_each(page["Items"], AwaitingStep.from_item, skip)

    def erase(self, step: AwaitingStep) -> bool:
        """Delete a record, if its status and try are still those of `step`. Returns whether they were."""
        return self.erase_unreadable(
            {
                "awaitingStepId": {"S": step.id},
                "status": {"S": step.status},
                "enteredAt": {"S": step.entered_at},
                "retryCount": {"N": str(step.retry_count)},
            }
        )

    def erase_unreadable(self, item: Item) -> bool:
        """Delete a record, readable or not, whose status and try are this item's. True if it is gone."""
        try:
            with answering("DynamoDB"):
                self._dynamodb.delete_item(
                    TableName=self._table,
                    Key={"awaitingStepId": item["awaitingStepId"]},
                    **unchanged_or_gone(item, "awaitingStepId", STATUS_AND_TRY),
                )
        except ClientError as error:
            if error_code(error) == "ConditionalCheckFailedException":
                return False
            raise
        return True

    def record(self, step: AwaitingStep) -> None:
        """
        Store a step's task token. A retry's newer token replaces the stored one.

        The fence protects two invariants. An older token never replaces a newer one. An answer that was
        claimed under an older token stays, and is sent with the newer one.

        A redriven execution enters no state anew: EnteredTime is the first one, and RetryCount starts at 0.

        Raises:
            StepAlreadyAnswered: this step of this run has its answer. A second wait needs another step name.
            StepNameTaken: another token of the same entry into the state is on record, and this one is no
                later retry. It is another item's of a Map, or that of a redriven execution.
            Unavailable: DynamoDB did not answer; safe to try again.
        """
        values = _values(step)
        refreshed = (":taskToken", ":enteredAt", ":retryCount", ":expiresAt", ":answerBy", ":ttl")
        for _ in range(_TRIES):
            # First write: no record yet, or a newer try of a step that waits or was late.
            # Second write: a newer try of a step whose answer is claimed. It keeps status and answer.
            waits = self._update(
                step.id,
                "SET #status = :pending, openStatus = :open, step = :step, taskToken = :taskToken, "
                "execution = :execution, requestId = :requestId, lockToken = :lockToken, callId = :callId, "
                "attempt = :attempt, enteredAt = :enteredAt, retryCount = :retryCount, "
                "expiresAt = :expiresAt, answerBy = :answerBy, #ttl = :ttl",
                f"attribute_not_exists(awaitingStepId) OR (#status IN (:pending, :late) AND {_NEWER})",
                values | {":pending": PENDING, ":late": LATE, ":open": self._open_status(PENDING, step.id)},
            ) or self._update(
                step.id,
                "SET taskToken = :taskToken, enteredAt = :enteredAt, retryCount = :retryCount, "
                "expiresAt = :expiresAt, answerBy = :answerBy, #ttl = :ttl",
                f"#status = :answering AND {_NEWER}",
                {name: values[name] for name in refreshed} | {":answering": ANSWERING},
            )
            if waits:
                return
            stored = self.get(step.id)
            if stored is not None and (
                stored.task_token == step.task_token or stored.entered_at > step.entered_at
            ):
                return  # this try is stored already, or the state was entered again since
            if stored is not None and stored.status == ANSWERED:
                raise StepAlreadyAnswered(
                    f"The step {step.step!r} of this run has its answer already. "
                    "Give a second wait in the same run a step name of its own."
                )
            if stored is not None and not stored.is_older_than(step):
                raise StepNameTaken(
                    f"Another wait of this run is on record as the step {step.step!r}, and this try is no "
                    "later one. Give each item of a Map a step name of its own. After a redrive no step "
                    "waits again."
                )
        raise Unavailable("The record of this step keeps changing. Try again.")

    def claim(self, step: AwaitingStep, answer: Answer, call: str) -> AwaitingStep | None:
        """
        Store an answer before it is sent.

        The fence protects the invariant that a step gets at most one answer: of two claims one finds the
        status PENDING, and a claim under an old token finds another token.

        Returns:
            The record as it is now. None if the claim was refused. A repeated claim whose first reply was
            lost is refused too; the record's `claim` says whose answer it holds.
        """
        # Not claimed: PENDING. The token is the one that the answer will use: taskToken.
        return self._update(
            step.id,
            "SET #status = :answering, answer = :answer, claim = :claim, answeredAt = :answeredAt, "
            "openStatus = :open",
            "#status = :pending AND taskToken = :taskToken",
            {
                ":answering": ANSWERING,
                ":answer": answer.to_json(),
                ":claim": call,
                ":answeredAt": times.now_text(),
                ":open": self._open_status(ANSWERING, step.id),
                ":pending": PENDING,
                ":taskToken": step.task_token,
            },
        )

    def release(self, step: AwaitingStep) -> AwaitingStep | None:
        """
        Remove a claimed answer that Step Functions refuses, so that the step can get another one.

        The fence protects an answer of another call, and one that is sent again with a newer token.

        Returns:
            As `claim`.
        """
        # Still claimed: ANSWERING. Under the same token: taskToken. By the same call: claim.
        return self._update(
            step.id,
            "SET #status = :pending, openStatus = :open REMOVE answer, claim, answeredAt",
            "#status = :answering AND taskToken = :taskToken AND claim = :claim",
            {
                ":pending": PENDING,
                ":open": self._open_status(PENDING, step.id),
                ":answering": ANSWERING,
                ":taskToken": step.task_token,
                ":claim": step.claim or "",
            },
        )

    def close(self, step: AwaitingStep, arrived: Answer | None) -> AwaitingStep | None:
        """
        Record what the workflow got with this token: ANSWERED with that answer, or LATE.

        The fence protects a newer try: a close under an old token does not end the wait of a retry. It
        protects an answer that was claimed since the record was read: the workflow may have got that one.
        It also keeps a closed record as it is.

        Args:
            step: The record as it was read, PENDING or ANSWERING.
            arrived: The answer that the workflow got. None if it got none in time.

        Returns:
            As `claim`.
        """
        # Neither closed nor claimed since: status. Not tried again since: taskToken.
        values: dict[str, str | int] = {":was": step.status, ":taskToken": step.task_token}
        condition = "#status = :was AND taskToken = :taskToken"
        if arrived is None:
            update = "SET #status = :status REMOVE openStatus, answer, claim, answeredAt"
            return self._update(step.id, update, condition, values | {":status": LATE})
        update = "SET #status = :status, answer = :answer, answeredAt = :answeredAt REMOVE openStatus"
        claimed_at = step.answered_at if step.answer == arrived else None
        values |= {
            ":status": ANSWERED,
            ":answer": arrived.to_json(),
            ":answeredAt": claimed_at or times.now_text(),
        }
        return self._update(step.id, update, condition, values)

    def _item(self, step_id: str) -> Item | None:
        with answering("DynamoDB"):
            return self._dynamodb.get_item(
                TableName=self._table, Key={"awaitingStepId": {"S": step_id}}, ConsistentRead=True
            ).get("Item")

    def _open_status(self, status: str, step_id: str) -> str:
        return f"{status}#{shard_of(step_id, self._open_shards)}"

    def _update(
        self, step_id: str, update: str, condition: str, values: Mapping[str, str | int]
    ) -> AwaitingStep | None:
        names = {"#status": "status"} | ({"#ttl": "ttl"} if "#ttl" in update else {})
        try:
            with answering("DynamoDB"):
                now = self._dynamodb.update_item(
                    TableName=self._table,
                    Key={"awaitingStepId": {"S": step_id}},
                    UpdateExpression=update,
                    ConditionExpression=condition,
                    ExpressionAttributeNames=names,
                    ExpressionAttributeValues={
                        name: {"N": str(value)} if isinstance(value, int) else {"S": value}
                        for name, value in values.items()
                    },
                    ReturnValues="ALL_NEW",
                )
        except ClientError as error:
            if error_code(error) == "ConditionalCheckFailedException":
                return None
            # AWS may quote the task token, and this text ends in logs.
            raise SteponceError(f"DynamoDB refused the step with {error_code(error)}.") from None
        return AwaitingStep.from_item(now["Attributes"])


def _values(step: AwaitingStep) -> dict[str, str | int]:
    kept_until = times.to_text(times.after(times.from_text(step.expires_at), KEPT.total_seconds()))
    return {
        ":step": step.step,
        ":taskToken": step.task_token,
        ":execution": step.execution,
        ":requestId": step.request_id,
        ":lockToken": step.lock_token,
        ":callId": step.call_id,
        ":attempt": step.attempt,
        ":enteredAt": step.entered_at,
        ":retryCount": step.retry_count,
        ":expiresAt": step.expires_at,
        ":answerBy": step.answer_by,
        ":ttl": times.epoch_seconds(kept_until),
    }
