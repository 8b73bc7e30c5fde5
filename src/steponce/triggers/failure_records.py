"""
Recognises the records that AWS writes about its own failures. They are JSON, but no requests.

AWS writes them to a queue of their own, which no function reads. If a person moves one into the requests
queue, its function recognises the record and dead-letters it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Foreign:
    """
    A record of a failure.

    Args:
        kind: Who wrote it, and of what.
        reason: What AWS says of it.
        source: The ARN of the function, rule or stream.
        advice: What to do, since it cannot be put back.
    """

    kind: str
    reason: str
    source: str
    advice: str


def foreign_record(body: Any, attributes: Mapping[str, str]) -> Foreign | None:
    """
    Know a record of a failure by what only AWS writes.

    Args:
        body: The message's JSON.
        attributes: Its attributes, as text.

    Returns:
        None for anything else.

    Source: Lambda Developer Guide, "Capturing records of asynchronous invocations" and "Retaining discarded
    records of a Kinesis stream"; EventBridge User Guide, "Using dead-letter queues".
    """
    if {"RULE_ARN", "TARGET_ARN", "ERROR_CODE"} <= set(attributes):
        target = attributes["TARGET_ARN"]
        return Foreign(
            "event that EventBridge could not deliver",
            f"{attributes['ERROR_CODE']}: {attributes.get('ERROR_MESSAGE', '')}".rstrip(": "),
            attributes["RULE_ARN"],
            f"Mend what it says; then {_invoke('the body', target)}",
        )
    context = body.get("requestContext") if isinstance(body, Mapping) else None
    if not isinstance(context, Mapping) or not _has(context, ("requestId", "functionArn", "condition")):
        return None
    function, condition = str(context["functionArn"]), str(context["condition"])
    if isinstance(batch := body.get("KinesisBatchInfo"), Mapping):
        return Foreign(
            "batch of a stream that Lambda gave up",
            condition,
            str(batch.get("streamArn")),
            f"The records are in the stream until it forgets them. Read shard {batch.get('shardId')} from "
            f"{batch.get('startSequenceNumber')} to {batch.get('endSequenceNumber')}, and put each into the "
            "stream again or start it with: steponce start REQUEST_ID FILE",
        )
    if "requestPayload" in body:
        return Foreign(
            "invocation that Lambda gave up",
            condition,
            function,
            f"Look into the function's log; then {_invoke('requestPayload', function)}",
        )
    return None


def _invoke(part: str, function: str) -> str:
    return (
        f"save {part} as event.json and send it: aws lambda invoke --function-name {function} "
        "--invocation-type Event --cli-binary-format raw-in-base64-out "
        "--payload file://event.json answer.json"
    )


def _has(mapping: Mapping[str, Any], names: Collection[str]) -> bool:
    return all(isinstance(mapping.get(name), str) for name in names)
