"""What AWS would bill of a run: by its history, and by the requests that the engine sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steponce.cost import Usage

if TYPE_CHECKING:
    from tests.counting.engine import Request, Run

WRITES = ("PutItem", "UpdateItem", "DeleteItem")
SCHEDULED = ("ActivityScheduled", "LambdaFunctionScheduled", "TaskScheduled")


def used(run: Run) -> Usage:
    """All of it. Each item is of 1 KB."""
    counted = Usage(transitions=transitions(run.types) + run.children)
    for request in run.requests:
        counted += _used_by(request)
    return counted


def transitions(events: list[str]) -> int:
    """States entered and tries repeated, which AWS bills, from the types of an execution's events."""
    entered = sum(event.endswith("StateEntered") for event in events)
    tries = sum(event in SCHEDULED for event in events)
    return entered + tries - events.count("TaskStateEntered")


def _used_by(request: Request) -> Usage:
    service, operation, body = request
    match service, operation:
        case "lambda", "Invoke":
            return Usage(lambda_calls=1)
        case "dynamodb", _ if operation in WRITES:
            return Usage(writes=1)
        case "dynamodb", "GetItem":
            return Usage(reads=1 if body.get("ConsistentRead") else 0.5)
        case "dynamodb", "TransactWriteItems":
            return Usage(writes=2 * len(body["TransactItems"]))
        case "sqs", "SendMessage":
            return Usage(sqs_fifo_requests=1) if "MessageGroupId" in body else Usage(sqs_requests=1)
        case "sns", "Publish" if "MessageGroupId" not in body:
            return Usage(sns_publishes=1)
        case "eventbridge" | "events", "PutEvents":
            return Usage(events=len(body["Entries"]))
        case "s3", "PutObject":
            return Usage(s3_puts=1)
    return Usage()
