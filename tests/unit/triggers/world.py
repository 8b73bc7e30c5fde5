"""A small world for the triggers: executions by name, lock records, and queues that take what SQS takes."""

from __future__ import annotations

import base64
import contextlib
import importlib.util
import json
import re
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Self
from unittest import mock

import boto3

from steponce.request.names import attempt_name, name_of
from tests.fakes.errors import client_error
from tests.fakes.step_functions import StepFunctions

FUNCTIONS = Path(__file__).parents[3] / "functions"
EVENTS = Path(__file__).parents[3] / "events"
MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:steponce-run-once"
QUEUE, DEAD = "https://queue/requests", "https://queue/dead"
ORDER = {"orderId": "1", "amount": 500, "card": "tok_visa"}
FAILED_INVOCATION = {
    "version": "1.0",
    "timestamp": "2026-01-31T12:00:00.000Z",
    "requestContext": {
        "requestId": "e4b46cbf-b738-4880-8a18-4e4b4d1d4a4e",
        "functionArn": "arn:aws:lambda:us-east-1:123456789012:function:steponce-StartFromEvent:$LATEST",
        "condition": "RetriesExhausted",
        "approximateInvokeCount": 3,
    },
    "requestPayload": {"orderId": "1"},
    "responseContext": {"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"},
    "responsePayload": {"errorMessage": "x"},
}
SETTINGS = {
    "AWS_DEFAULT_REGION": "us-east-1",
    "POWERTOOLS_TRACE_DISABLED": "true",
    "POWERTOOLS_METRICS_NAMESPACE": "steponce",
    "POWERTOOLS_SERVICE_NAME": "steponce",
    "RunOnceStateMachineArn": MACHINE,
    "LocksTable": "steponce-LocksTable",
    "KeyPrefix": "steponce-run-once",
    "RetentionSeconds": "7776000",
    "ExpectedSeconds": "300",
    "LockTokenPath": "",
    "PayloadHashPath": "",
    "QueueRequestIdPath": "messageId",
    "QueueLockTokenPath": "",
    "QueuePayloadPath": "body",
    "QueueConcurrency": "2",
    "QueueMappings": "1",
    "StartsPerSecond": "100000",
    "EventRequestIdPath": "id",
    "EventLockTokenPath": "",
    "EventPayloadPath": "detail",
    "RequestsQueueUrl": QUEUE,
    "RequestsDeadLetterQueueUrl": DEAD,
    "ResendTries": "3",
    "ResendBaseSeconds": "5",
    "ResendMaxSeconds": "900",
}


def example_event(name: str) -> dict[str, Any]:
    """One of the repository's example events."""
    return json.loads((EVENTS / f"{name}.json").read_text())


class World:
    """Stands in for boto3 and a Session, and for the clients of DynamoDB and SQS."""

    def __init__(self, *, queue_is_down: bool = False) -> None:
        self.sfn = StepFunctions(MACHINE)
        self.meta = self.sfn.meta
        self._lock = threading.Lock()
        self.clear()
        self.queue_is_down = queue_is_down

    def clear(self) -> Self:
        """Nothing has happened. Functions keep their clients."""
        self.sfn.clear()
        self.locks: dict[str, dict[str, Any]] = {}
        self.sent: list[dict[str, Any]] = []
        self.queue_is_down = self.table_is_full = False
        return self

    def client(self, service: str, **_options: Any) -> Any:
        return self.sfn if service == "stepfunctions" else self

    def throttle(self, *names: str) -> None:
        """Let StartExecution refuse these names."""
        for name in names:
            self.sfn.refuse("start_execution", "ThrottlingException", name)

    def get_item(self, *, Key: Mapping[str, Any], **_rest: Any) -> dict[str, Any]:
        found = self.locks.get(Key["lockToken"]["S"])
        return {} if found is None else {"Item": found}

    def put_item(self, *, Item: Mapping[str, Any], **_rest: Any) -> None:
        if self.table_is_full:
            raise client_error("ThrottlingException", status=400)
        self.locks[Item["lockToken"]["S"]] = dict(Item)

    def send_message(self, **message: Any) -> None:
        if self.queue_is_down:
            raise client_error("ServiceUnavailable", status=503)
        check_message(message)
        with self._lock:
            self.sent.append(message)

    def hold(self, lock_token: str, request_id: str, payload_hash: str, attempt: int = 1) -> None:
        """Let an execution of this request have the lock."""
        name = attempt_name(name_of(request_id), attempt)
        text = {
            "lockToken": lock_token,
            "status": "INPROGRESS",
            "lockedBy": self.sfn.arn(name),
            "callId": "0" * 32,
            "executionName": name,
            "requestId": request_id,
            "created": "2026-01-31T12:00:00.000Z",
            "expectedCompletion": "9999-01-31T12:05:00.000Z",
            "payloadHash": payload_hash,
            "expiresAt": "9999-05-01T12:00:00.000Z",
        }
        self.locks[lock_token] = {key: {"S": value} for key, value in text.items()} | {"attempt": {"N": "1"}}

    def inputs(self) -> list[dict[str, Any]]:
        return [json.loads(one["input"]) for one in self.sfn.executions.values()]

    def dead(self) -> list[dict[str, Any]]:
        return [one for one in self.sent if one["QueueUrl"] == DEAD]

    def resent(self) -> list[dict[str, Any]]:
        return [one for one in self.sent if one["QueueUrl"] == QUEUE]

    def input_of(self, request_id: str) -> dict[str, Any]:
        return dict(json.loads(self.sfn.executions[self.sfn.arn(name_of(request_id))]["input"]))


class Context:
    """What Lambda tells a function."""

    function_name = "trigger"
    memory_limit_in_mb = 256
    invoked_function_arn = "arn:aws:lambda:us-east-1:123456789012:function:trigger"
    aws_request_id = "0"

    def get_remaining_time_in_millis(self) -> int:
        return 30_000


@contextlib.contextmanager
def function(name: str, world: World, **settings: str) -> Iterator[ModuleType]:
    """A function's real code in that world."""
    with (
        mock.patch.dict("os.environ", SETTINGS | settings),
        mock.patch.object(boto3, "client", world.client),
        mock.patch.object(boto3, "Session", return_value=world),
    ):
        spec = importlib.util.spec_from_file_location(f"{name}_app", FUNCTIONS / name / "app.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module


def check_message(message: Mapping[str, Any]) -> None:
    """Refuse what SQS refuses. Source: SendMessage API reference."""
    attributes = message.get("MessageAttributes", {})
    texts = [message["MessageBody"]] + [v["StringValue"] for v in attributes.values() if "StringValue" in v]
    bytes_of_attributes = [v["BinaryValue"] for v in attributes.values() if "BinaryValue" in v]
    size = sum(len(text.encode()) for text in texts) + sum(map(len, bytes_of_attributes))
    size += sum(len(name) + len(value["DataType"]) for name, value in attributes.items())
    assert len(attributes) <= 10
    assert size <= (1_048_576 if message.get("QueueUrl") == DEAD else 851_968)
    assert all([*texts, *bytes_of_attributes])
    assert 0 <= message.get("DelaySeconds", 0) <= 900
    for text in texts:
        assert not re.search("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", text)


def received(message: Mapping[str, Any], message_id: str = "hop") -> dict[str, Any]:
    """A message that was sent, as Lambda gets it."""
    given = {name: _received(value) for name, value in message["MessageAttributes"].items()}
    return sqs_record(message["MessageBody"], message_id, messageAttributes=given)


def _received(attribute: Mapping[str, Any]) -> dict[str, Any]:
    if "BinaryValue" in attribute:
        binary = base64.b64encode(attribute["BinaryValue"]).decode()
        return {"dataType": attribute["DataType"], "binaryValue": binary}
    return {"dataType": attribute["DataType"], "stringValue": attribute["StringValue"]}


def letter_of(message: Mapping[str, Any]) -> dict[str, Any]:
    """What a dead letter says of itself."""
    return dict(json.loads(message["MessageAttributes"]["steponceLetter"]["StringValue"]))


def sqs_record(body: str, message_id: str = "m-1", queue: str = "requests", **more: Any) -> dict[str, Any]:
    """What SQS hands over for one message."""
    return {
        "messageId": message_id,
        "receiptHandle": "r",
        "body": body,
        "attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": "1769860800000"},
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:us-east-1:123456789012:{queue}",
        "awsRegion": "us-east-1",
    } | more


def notification(message: str, **more: Any) -> str:
    """What SNS writes into a queue without raw delivery."""
    envelope = {
        "Type": "Notification",
        "MessageId": "sns-1",
        "TopicArn": "arn:aws:sns:us-east-1:123456789012:requests",
        "Message": message,
        "Timestamp": "2026-01-31T12:00:00.000Z",
        "SignatureVersion": "1",
        "Signature": "EXAMPLE",
        "SigningCertURL": "https://sns.us-east-1.amazonaws.com/example.pem",
        "UnsubscribeURL": "https://sns.us-east-1.amazonaws.com/?Action=Unsubscribe",
    }
    return json.dumps(envelope | more)
