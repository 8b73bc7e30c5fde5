"""
Which ends of executions have got their dead letter.

Two functions examine an end that went badly: one when its event arrives, and the search for lost events. The
second to come finds an item in the lock table, and writes no second letter. The letter is sent before the
item is written. So a function that dies between leaves a second letter, and never none.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

from steponce.aws import times
from steponce.aws.errors import answering
from steponce.locks.record import LETTERS
from steponce.request.canonical import sha256

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

KEPT = timedelta(days=15)
"""The search looks 14 days back, and a name may belong to another execution after 30."""


def end_of(execution_arn: str, call_id: object, redrive_count: int) -> str:
    """
    Name an end of an execution.

    Args:
        execution_arn: The execution. A machine that was made anew may give its ARN to another one.
        call_id: The `callId` in its input. No two starts have the same. By hand it may be anything.
        redrive_count: How often it had been redriven. A redriven execution ends once more.

    Returns:
        A digest of 64 hexadecimal digits. It holds nothing of the request.
    """
    known = call_id if isinstance(call_id, str) else None
    return sha256(json.dumps([execution_arn, known, redrive_count]))


class WrittenLetters:
    """
    The marks of letters in the lock table.

    Args:
        dynamodb: A DynamoDB client that may read the table, and put items under keys that begin with LETTERS.
        table: The name of the lock table.
    """

    def __init__(self, dynamodb: DynamoDBClient, table: str) -> None:
        self._dynamodb = dynamodb
        self._table = table

    def has(self, end: str) -> bool:
        """
        Whether an end, as `end_of` names it, has got its letter. A damaged item says no.

        Raises:
            Unavailable: no answer; safe to try again.
        """
        key = {"lockToken": {"S": LETTERS + end}}
        with answering("DynamoDB"):
            found = self._dynamodb.get_item(TableName=self._table, Key=key, ConsistentRead=True)
        return found.get("Item", {}).get("expiresAt", {}).get("S", "") > times.now_text()

    def add(self, end: str) -> None:
        """
        Note that an end has got its letter.

        Raises:
            Unavailable: no answer; safe to try again.
        """
        expires = times.now() + KEPT
        item = {
            "lockToken": {"S": LETTERS + end},
            "expiresAt": {"S": times.to_text(expires)},
            "ttl": {"N": str(int(expires.timestamp()))},
        }
        with answering("DynamoDB"):
            self._dynamodb.put_item(TableName=self._table, Item=item)
