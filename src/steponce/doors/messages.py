"""
Messages from a queue, all seen as the same thing:

    {"messageId": …, "attributes": {name: text}, "body": the JSON in it, "sentAt": "2026-01-31T12:00:00.000Z"}

whether they were sent to the queue or published to a topic, with raw delivery or without, and whether the
queue is FIFO or not. A published message has the id that SNS gave it; with raw delivery SNS hides that one,
so there it is the queue's own. Binary attributes are their Base64 text, as powertools_base64 takes it; a body
that is no JSON is its text.

A message that the re-sender sent says itself what is asked, in attributes of ours; they win over the door's
paths, so that the first id survives every hop. Whoever may send to the queue could write them too, but gains
nothing by it: such a sender may ask for any request with any id anyway.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from aws_lambda_powertools.utilities.data_classes.sns_event import SNSMessage
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from steponce import times
from steponce.doors.asked import Asked, Door, json_or_text
from steponce.doors.resending import ABOUT, LOCK_TOKEN, REQUEST_ID, REQUESTED_AT, TRIES, Original
from steponce.errors import InvalidPayload, InvalidRequest

_NOTIFICATION = ("MessageId", "TopicArn", "Message", "Timestamp")


def asked_by(record: SQSRecord, door: Door) -> Asked:
    """
    What a message asks for.

    Raises:
        InvalidRequest: nothing that could be started; the message says why.
    """
    seen = see(record)
    if TRIES in seen["attributes"]:
        return _sent_again(seen)
    asked = door.ask(seen, _time_of(seen))
    if ABOUT in seen["attributes"]:  # laid aside before, and put back: a new message, but the same request
        return replace(asked, request_id=_json_text(seen["attributes"], ABOUT))
    return asked


def original_of(record: SQSRecord) -> Original:
    """The message as it came, in the words of SendMessage."""
    given = record.get("messageAttributes") or {}
    attributes = {name: _to_send(attribute) for name, attribute in given.items()}
    return Original(record.body, f"{record.event_source_arn} {record.message_id}", attributes)


def see(record: SQSRecord) -> dict[str, Any]:
    """The message in its uniform shape."""
    body = json_or_text(record.body)
    if _is_notification(body):
        notification = SNSMessage(body)
        return {
            "messageId": notification.message_id,
            "attributes": _attributes(body.get("MessageAttributes"), "Type", "Value", "Value"),
            "body": json_or_text(notification.message),
            "sentAt": _text_of_time(notification.timestamp),
        }
    given = record.get("messageAttributes")
    return {
        "messageId": record.message_id,
        "attributes": _attributes(given, "dataType", "stringValue", "binaryValue"),
        "body": body,
        "sentAt": _sent_at(record),
    }


def _to_send(attribute: Mapping[str, Any]) -> dict[str, Any]:
    value: dict[str, Any] = {"DataType": attribute["dataType"]}
    if attribute["dataType"].startswith("Binary"):
        return value | {"BinaryValue": base64.b64decode(attribute["binaryValue"])}
    return value | {"StringValue": attribute["stringValue"]}


def _is_notification(body: Any) -> bool:
    if not isinstance(body, dict) or body.get("Type") != "Notification":
        return False
    return all(isinstance(body.get(name), str) for name in _NOTIFICATION)


def _attributes(given: Any, kind: str, text: str, binary: str) -> dict[str, str]:
    """Attributes by name. SQS and SNS call the parts of one differently."""
    if not isinstance(given, Mapping):
        return {}
    found = {}
    for name, attribute in given.items():
        if not isinstance(attribute, Mapping):
            continue
        value = attribute.get(binary if str(attribute.get(kind)).startswith("Binary") else text)
        if isinstance(value, str):
            found[name] = value
    return found


def _sent_at(record: SQSRecord) -> str | None:
    try:
        return times.to_text(datetime.fromtimestamp(int(record.attributes.sent_timestamp) / 1000, UTC))
    except (KeyError, TypeError, ValueError, OverflowError, OSError):
        return None


def _text_of_time(text: str) -> str | None:
    try:
        return times.to_text(times.from_text(text))
    except ValueError:
        return None


def _time_of(seen: Mapping[str, Any]) -> datetime | None:
    return None if seen["sentAt"] is None else times.from_text(seen["sentAt"])


def _sent_again(seen: Mapping[str, Any]) -> Asked:
    attributes, payload = seen["attributes"], seen["body"]
    if not isinstance(payload, Mapping):
        raise InvalidPayload("The body of a message that was sent again is no JSON object.")
    if not re.fullmatch("[0-9]{1,9}", attributes[TRIES]):
        raise InvalidRequest(f"The attribute {TRIES} is no whole number.")
    at = attributes.get(REQUESTED_AT)
    try:
        requested_at = None if at is None else times.from_text(at)
    except ValueError:
        raise InvalidRequest(f"The attribute {REQUESTED_AT} is no time.") from None
    return Asked(
        _json_text(attributes, REQUEST_ID),
        payload,
        _json_text(attributes, LOCK_TOKEN) if LOCK_TOKEN in attributes else None,
        requested_at,
        int(attributes[TRIES]),
    )


def _json_text(attributes: Mapping[str, str], name: str) -> str:
    try:
        value = json.loads(attributes[name])
    except (KeyError, ValueError, RecursionError):
        value = None
    if not isinstance(value, str) or not value.strip():
        raise InvalidRequest(f"The attribute {name} of a message that was sent again is no JSON text.")
    return value
