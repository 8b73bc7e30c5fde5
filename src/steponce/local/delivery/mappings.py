"""
Event source mappings: the queues of a template whose messages a function gets.

As on AWS: a batch is deleted when its function succeeds, comes back when the function fails, and comes
back in part where the function names `batchItemFailures` and the mapping lets it. What has come back
as often as the queue's RedrivePolicy says goes to the dead-letter queue.

Not as on AWS: what failed is visible again after the queue's VisibilityTimeout or two seconds, whichever
is less, even if the function has asked for another time; nobody waits three minutes at a laptop.
"""

from __future__ import annotations

import base64
import contextlib
import json
import logging
import threading
import time
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NoReturn

from botocore.exceptions import BotoCoreError, ClientError

from steponce.local import activity
from steponce.local.template.plan import MappingPlan

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import DeleteMessageBatchRequestEntryTypeDef

_log = logging.getLogger(__name__)

_LONGEST_INVISIBLE_SECONDS = 2
_DEFAULT_INVISIBLE_SECONDS = 30
_PAGE = 10
_POLL_SECONDS = 20
_PAUSE_SECONDS = 0.1


class Mapping:
    """Polls one queue, and invokes one function with what it finds."""

    def __init__(
        self, plan: MappingPlan, queue_url: str, sqs: SQSClient, lambda_client: LambdaClient
    ) -> None:
        self._plan = plan
        self._url = queue_url
        self._sqs = sqs
        self._lambda = lambda_client
        self._free = threading.Semaphore(plan.concurrency)
        self._pool = ThreadPoolExecutor(plan.concurrency)
        own = int(plan.queue.attributes.get("VisibilityTimeout", _DEFAULT_INVISIBLE_SECONDS))
        self._invisible_seconds = min(own, _LONGEST_INVISIBLE_SECONDS)

    def start(self) -> None:
        """Poll from now on, until the process ends."""
        threading.Thread(target=self._poll, daemon=True).start()

    def _poll(self) -> NoReturn:
        while True:
            self._free.acquire()
            try:
                batch = self._gather()
            except (ClientError, BotoCoreError):
                # The queue is made after the engine has started, and a client may delete it.
                batch = []
                time.sleep(_PAUSE_SECONDS)
            if batch:
                self._pool.submit(self._deliver, batch)
            else:
                self._free.release()

    def _gather(self) -> list[dict[str, Any]]:
        """A batch: what the queue has, or what it gets within the batching window."""
        batch = self._receive(self._plan.batch_size, _POLL_SECONDS)
        if batch:
            activity.begin()
        deadline = time.monotonic() + self._plan.window_seconds
        with contextlib.suppress(ClientError, BotoCoreError):  # what is there already is delivered
            while batch and (missing := self._plan.batch_size - len(batch)):
                left = max(0, round(deadline - time.monotonic()))
                more = self._receive(missing, min(left, 1))
                if not more and not left:
                    break
                batch += more
        return batch

    def _receive(self, most: int, wait_seconds: int) -> list[dict[str, Any]]:
        answer = self._sqs.receive_message(
            QueueUrl=self._url,
            MaxNumberOfMessages=min(most, _PAGE),
            WaitTimeSeconds=wait_seconds,
            MessageSystemAttributeNames=["All"],
            MessageAttributeNames=["All"],
        )
        return [dict(message) for message in answer.get("Messages", [])]

    def _deliver(self, batch: list[dict[str, Any]]) -> None:
        try:
            self._bring(batch)
        finally:
            activity.end()

    def _bring(self, batch: list[dict[str, Any]]) -> None:
        try:
            failed = self._invoke(batch)
        except (ClientError, BotoCoreError) as error:
            failed = {message["MessageId"] for message in batch}
            _log.error("%s takes no messages of %s: %s", self._plan.function, self._plan.queue.name, error)
        finally:
            self._free.release()
        self._settle([message for message in batch if message["MessageId"] not in failed], keep=False)
        self._settle([message for message in batch if message["MessageId"] in failed], keep=True)

    def _invoke(self, batch: list[dict[str, Any]]) -> set[str]:
        """Invoke the function; the answer is the ids of what failed."""
        sent = {message["MessageId"] for message in batch}
        event = {"Records": [record(message, self._plan.queue_arn) for message in batch]}
        answer = self._lambda.invoke(FunctionName=self._plan.function, Payload=json.dumps(event))
        payload = answer["Payload"].read()
        if "FunctionError" in answer:
            _log.error(
                "%s failed on %d messages of %s.", self._plan.function, len(batch), self._plan.queue.name
            )
            return sent
        return failures(payload, sent) if self._plan.reports_failures else set()

    def _settle(self, messages: list[dict[str, Any]], *, keep: bool) -> None:
        """Delete them, or let them be seen again soon."""
        for start in range(0, len(messages), _PAGE):
            entries: list[DeleteMessageBatchRequestEntryTypeDef] = [
                {"Id": str(index), "ReceiptHandle": message["ReceiptHandle"]}
                for index, message in enumerate(messages[start : start + _PAGE])
            ]
            if keep:
                self._sqs.change_message_visibility_batch(
                    QueueUrl=self._url,
                    Entries=[{**entry, "VisibilityTimeout": self._invisible_seconds} for entry in entries],
                )
            else:
                self._sqs.delete_message_batch(QueueUrl=self._url, Entries=entries)


def failures(payload: bytes, sent: Collection[str]) -> set[str]:
    """
    The ids that a function's answer reports; all that were sent, if it reports what cannot be.

    Source: Lambda Developer Guide, "Implementing partial batch responses".
    """
    try:
        answer = json.loads(payload or b"null") or {}
        named = {item["itemIdentifier"] for item in answer.get("batchItemFailures") or []}
    except (ValueError, TypeError, KeyError, AttributeError):
        return set(sent)
    return named if named <= set(sent) else set(sent)


def record(message: dict[str, Any], queue_arn: str) -> dict[str, Any]:
    """
    A message as a function gets it.

    Source: Lambda Developer Guide, "Using Lambda with Amazon SQS".
    """
    attributes = {
        name: _attribute(attribute) for name, attribute in message.get("MessageAttributes", {}).items()
    }
    found = {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message["Attributes"],
        "messageAttributes": attributes,
        "md5OfBody": message["MD5OfBody"],
        "eventSource": "aws:sqs",
        "eventSourceARN": queue_arn,
        "awsRegion": queue_arn.split(":")[3],
    }
    if "MD5OfMessageAttributes" in message:
        found["md5OfMessageAttributes"] = message["MD5OfMessageAttributes"]
    return found


def _attribute(attribute: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "dataType": attribute["DataType"],
        "stringListValues": [],
        "binaryListValues": [],
    }
    if "StringValue" in attribute:
        found["stringValue"] = attribute["StringValue"]
    if "BinaryValue" in attribute:
        found["binaryValue"] = base64.b64encode(attribute["BinaryValue"]).decode()
    return found
