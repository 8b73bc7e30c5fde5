"""The queues that get the records of invocations that functions failed."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from steponce.aws import times
from steponce.local.runtime.asynchronous import MOST_TRIES, Problem

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


class Destinations:
    """Sends a record of each event that is given up to the queue that the template names, if it names one."""

    def __init__(self, sqs: SQSClient, queue_url: Callable[[str], str], queues: Mapping[str, str]) -> None:
        self._sqs = sqs
        self._queue_url = queue_url
        self._queues = queues

    def give_up(self, function_arn: str, event: Any, problem: Problem) -> None:
        """The function has failed each try."""
        if function_arn in self._queues:
            url = self._queue_url(self._queues[function_arn].rpartition(":")[2])
            record = invocation_record(function_arn, event, problem)
            self._sqs.send_message(QueueUrl=url, MessageBody=json.dumps(record))


def invocation_record(function_arn: str, event: Any, problem: Problem) -> dict[str, Any]:
    """
    What Lambda writes of an invocation that it gave up.

    Source: Lambda Developer Guide, "Capturing records of Lambda asynchronous invocations".
    """
    return {
        "version": "1.0",
        "timestamp": times.now_text(),
        "requestContext": {
            "requestId": str(uuid.uuid4()),
            "functionArn": f"{function_arn}:$LATEST",
            "condition": "RetriesExhausted",
            "approximateInvokeCount": MOST_TRIES,
        },
        "requestPayload": event,
        "responseContext": {"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"},
        "responsePayload": problem,
    }
