"""
Recognises what AWS itself writes into a queue. It is JSON, but no request.

Records about its own failures go to a queue that no function reads. If a person moves one into the requests
queue, its function recognises the record and dead-letters it. So it does with the message by which SNS or S3
tries out a queue that they are to send to.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from steponce.next_step import NextStep
from steponce.triggers.events import SCHEDULED, SCHEDULES, id_of_schedule

_SUBSCRIPTIONS = ("SubscriptionConfirmation", "UnsubscribeConfirmation")
_OTHER_PATHS = (
    "If EventRequestIdPath, EventPayloadPath or EventLockTokenPath has another value than its default, take "
    "the id, payload or lock token that it finds."
)


@dataclass(frozen=True)
class Foreign:
    """
    A message of AWS's own.

    Args:
        kind: What it is, and which service wrote it.
        reason: What AWS says about it.
        source: The ARN of the function, rule, stream or topic; the name of the bucket.
        advice: What to do, since it cannot be redriven.
        next_steps: The same as steps.
    """

    kind: str
    reason: str
    source: str
    advice: str
    next_steps: tuple[NextStep, ...]


def foreign_record(body: Any, attributes: Mapping[str, str]) -> Foreign | None:
    """
    Recognise a message of AWS's own by the fields that only AWS writes.

    Args:
        body: The message's JSON.
        attributes: Its text attributes.

    Returns:
        None for every other message, also for Lambda's record of an invocation that succeeded.

    Source: Lambda Developer Guide, "Capturing records of asynchronous invocations" and "Retaining discarded
    records of a Kinesis stream"; EventBridge User Guide, "Using dead-letter queues"; SNS Developer Guide,
    "Sending Amazon SNS messages to an Amazon SQS queue in a different account"; S3 User Guide, "Event
    message structure".
    """
    if {"RULE_ARN", "TARGET_ARN", "ERROR_CODE"} <= set(attributes):
        advice, step = _how_to_deliver(body, attributes["RULE_ARN"], attributes["TARGET_ARN"])
        return Foreign(
            "event that EventBridge could not deliver",
            f"{attributes['ERROR_CODE']}: {attributes.get('ERROR_MESSAGE', '')}".rstrip(": "),
            attributes["RULE_ARN"],
            advice,
            (step,),
        )
    if not isinstance(body, Mapping):
        return None
    return _of_a_subscription(body) or _of_a_bucket(body) or _of_an_invocation(body)


def _of_a_subscription(body: Mapping[str, Any]) -> Foreign | None:
    kind = body.get("Type")
    if kind not in _SUBSCRIPTIONS or not _has(body, ("TopicArn", "Token", "SubscribeURL")):
        return None
    return Foreign(
        f"{kind} of SNS",
        "SNS asks whether a topic may send to this queue",
        str(body["TopicArn"]),
        "To let the topic send to this queue, open the SubscribeURL in the body.",
        (),
    )


def _of_a_bucket(body: Mapping[str, Any]) -> Foreign | None:
    if body.get("Event") != "s3:TestEvent" or body.get("Service") != "Amazon S3":
        return None
    return Foreign(
        "test of S3",
        "a bucket was told to notify this queue, or a topic that sends to it",
        str(body.get("Bucket")),
        "Nothing is missing.",
        (),
    )


def _of_an_invocation(body: Mapping[str, Any]) -> Foreign | None:
    context = body.get("requestContext")
    if not isinstance(context, Mapping) or not _has(context, ("requestId", "functionArn", "condition")):
        return None
    # Lambda writes the ARN with `:$LATEST`. A policy for the function does not allow to invoke that ARN.
    function = str(context["functionArn"]).removesuffix(":$LATEST")
    condition = str(context["condition"])
    if isinstance(batch := body.get("KinesisBatchInfo"), Mapping):
        return Foreign(
            "batch of a stream that Lambda gave up",
            condition,
            str(batch.get("streamArn")),
            f"The records are in the stream until it forgets them. Read shard {batch.get('shardId')} from "
            f"{batch.get('startSequenceNumber')} to {batch.get('endSequenceNumber')}. Start each record as a "
            "request under its own id, so that a record that was started is not started again. Its id is its "
            f"eventID, {batch.get('shardId')}:SEQUENCE_NUMBER, and its payload is the JSON in its data. "
            f"{_OTHER_PATHS} Do not put a record into the stream again, since it gets another eventID there.",
            (NextStep("start request"),),
        )
    if "requestPayload" in body and condition != "Success":
        return Foreign(
            "invocation that Lambda gave up",
            condition,
            function,
            "Look into the function's log. Then save requestPayload as event.json, and send it to the "
            "function.",
            (NextStep("invoke function", function),),
        )
    return None


def _how_to_deliver(body: Any, rule: str, target: str) -> tuple[str, NextStep]:
    """EventBridge keeps an event as it was, and not what the rule's InputTransformer makes of it."""
    event = body if isinstance(body, Mapping) else {}
    is_schedule = event.get("source") in SCHEDULES and event.get("detail-type") == SCHEDULED
    if not (is_schedule and isinstance(event.get("time"), str)):
        return (
            "Remove the cause. Then save the body as event.json, and send it to the target.",
            NextStep("invoke function", target),
        )
    return (
        "Remove the cause. The body has no payload, since the rule adds it on the way. Save the value of the "
        "parameter SchedulePayload as a file, and start the request with it. The id is the rule's name and "
        f"the scheduled time. {_OTHER_PATHS}",
        NextStep("start request", id_of_schedule(rule, event["time"])),
    )


def _has(mapping: Mapping[str, Any], names: Collection[str]) -> bool:
    return all(isinstance(mapping.get(name), str) for name in names)
