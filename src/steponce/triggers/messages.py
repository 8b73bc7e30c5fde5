"""
Reads messages from SQS and SNS into one uniform shape:

    {"messageId": …, "attributes": {name: text}, "body": the JSON in it, "sentAt": "2026-01-31T12:00:00.000Z"}

The shape is the same for messages sent to a queue and published to a topic, with and without raw delivery,
and for standard and FIFO queues. A published message has the id that SNS gave it. Raw delivery hides that id,
so such a message has the queue's. Binary attributes become their Base64 text, which powertools_base64
decodes. A body that is no JSON stays text. JSON with a key twice is refused, as at every other trigger.

A resent message carries its request in attributes of its own. They win over the trigger's paths, so the first
request id stays the same. Its body is the payload, even if that looks like a notification. A redriven dead
letter works alike; see `dead_letters`. Anybody who may send to the queue can write these attributes, and so
name any request id and lock token, as docs/triggers.md says. Who may publish cannot: nothing of ours comes by
a topic.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from aws_lambda_powertools.utilities.data_classes.sns_event import SNSMessage
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from steponce.aws import times
from steponce.errors import InvalidPayload, InvalidRequest
from steponce.request.strict_json import json_or_text
from steponce.triggers import events
from steponce.triggers.dead_letters import LETTER, OURS, Letter, Original
from steponce.triggers.foreign_records import foreign_record
from steponce.triggers.resend import COUNT_AT, LETTER_OF, LOCK_TOKEN, REQUEST_ID, REQUESTED_AT, TRIES
from steponce.triggers.start_request import RequestPaths, StartRequest, expect_readable

_OUR_PREFIX = "steponce"
"""How the names of our own attributes begin. Only the queue brings them."""

_NOTIFICATION = ("MessageId", "TopicArn", "Message", "Timestamp")


# SNS writes it first.
_STARTS_AS_NOTIFICATION = re.compile(r'\s*\{\s*"Type"\s*:\s*"Notification"')


def find_request(record: SQSRecord, paths: RequestPaths, event_paths: RequestPaths) -> StartRequest:
    """
    Find the request in a message.

    Args:
        record: The message as Lambda received it.
        paths: The paths for a message.
        event_paths: The paths for an event, for a redriven letter of an event.

    Raises:
        InvalidRequest: there is no valid request in it; the message says why.
    """
    letter = _letter_of(record)
    if letter is not None and letter.shape == "event":
        # Of any size: escapes and Base64 may have made it larger.
        event = json_or_text(record.body, "The body")
        if not isinstance(event, Mapping):
            raise InvalidRequest("The body of a redriven event is no JSON object.")
        return events.find_request(event, event_paths)
    if not _STARTS_AS_NOTIFICATION.match(record.body):
        expect_readable(len(record.body.encode("utf-8", "surrogatepass")))
    seen = see(record)
    if TRIES in seen["attributes"]:
        return _sent_again(seen)
    foreign = foreign_record(seen["body"], seen["attributes"])
    if foreign is not None:
        raise InvalidRequest(
            f"This is no request: {foreign.kind}. {foreign.advice}", next_steps=foreign.next_steps
        )
    return paths.find(seen, _time_of(seen))


def original_of(record: SQSRecord) -> Original:
    """The message as it arrived, ready to become a dead letter. A resent message gets all its tries back."""
    given = record.get("messageAttributes") or {}
    attributes = {name: _to_send(attribute) for name, attribute in given.items()}
    return original(
        record.body,
        attributes,
        f"{record.event_source_arn} {record.message_id}",
        record.message_id,
        _sent_at(record.get("attributes") or {}),
    )


def original(
    body: str, attributes: Mapping[str, Mapping[str, Any]], source: str, message_id: str, sent_at: str | None
) -> Original:
    """
    A message, ready to become a dead letter.

    Args:
        body: The message's body.
        attributes: The message's attributes, in SendMessage's form.
        source: Its origin, and its id there.
        message_id: The id that its queue gave it.
        sent_at: When it was sent (UTC text).
    """
    known = _letter_in(attributes.get(LETTER, {}).get("StringValue"))
    given = {name: value for name, value in attributes.items() if name not in OURS}
    if known is not None:
        return Original(known, body, given)
    if TRIES in given:
        given[TRIES] = {"DataType": "Number", "StringValue": "0"}
        return Original(Letter("request", source), body, given)
    return Original(Letter("message", source, message_id=message_id, sent_at=sent_at), body, given)


def see(record: SQSRecord) -> dict[str, Any]:
    """
    Convert a message to the uniform shape.

    Raises:
        InvalidRequest: it has an attribute `steponceLetter` that no trigger wrote.
    """
    body = json_or_text(record.body, "The body")
    letter, given = _letter_of(record), record.get("messageAttributes")
    attributes = _attributes(given, "dataType", "stringValue", "binaryValue")
    if TRIES not in attributes and _is_notification(body):
        notification = SNSMessage(body)
        expect_readable(len(notification.message.encode("utf-8", "surrogatepass")))
        published = _attributes(body.get("MessageAttributes"), "Type", "Value", "Value")
        return {
            "messageId": notification.message_id,
            "attributes": {
                name: text for name, text in published.items() if not name.startswith(_OUR_PREFIX)
            },
            "body": json_or_text(notification.message, "The message of the notification"),
            "sentAt": _text_of_time(notification.timestamp),
        }
    seen = {"messageId": record.message_id, "sentAt": _sent_at(record.get("attributes") or {})}
    if letter is not None:
        attributes = {name: value for name, value in attributes.items() if name not in OURS}
        attributes |= _attributes(letter.folded, "DataType", "StringValue", "BinaryValue")
        seen = {
            "messageId": letter.message_id or record.message_id,
            "sentAt": _text_of_time(letter.sent_at or ""),
        }
    # SQS promises no order, and a letter's own comes last; what a path finds must not depend on that.
    return {**seen, "attributes": dict(sorted(attributes.items())), "body": body}


def _letter_of(record: SQSRecord) -> Letter | None:
    """The attribute `steponceLetter` of a redriven message, else None."""
    attribute = (record.get("messageAttributes") or {}).get(LETTER)
    text = attribute.get("stringValue") if isinstance(attribute, Mapping) else None
    return None if text is None else Letter.from_text(text)


def _letter_in(text: str | None) -> Letter | None:
    try:
        return None if text is None else Letter.from_text(text)
    except InvalidRequest:
        return None


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
    """Attributes by name. `kind`, `text` and `binary` are the field names that SQS or SNS uses."""
    if not isinstance(given, Mapping):
        return {}
    found = {}
    for name, attribute in given.items():
        if not isinstance(attribute, Mapping):
            continue
        value = attribute.get(binary if str(attribute.get(kind)).startswith("Binary") else text)
        if isinstance(value, bytes):
            value = base64.b64encode(value).decode()
        if isinstance(value, str):
            found[name] = value
    return found


def _sent_at(attributes: Mapping[str, Any]) -> str | None:
    try:
        return times.to_text(datetime.fromtimestamp(int(attributes["SentTimestamp"]) / 1000, UTC))
    except (KeyError, TypeError, ValueError, OverflowError, OSError):
        return None


def _text_of_time(text: str) -> str | None:
    try:
        return times.to_text(times.from_text(text))
    except ValueError:
        return None


def _time_of(seen: Mapping[str, Any]) -> datetime | None:
    return None if seen["sentAt"] is None else times.from_text(seen["sentAt"])


def _sent_again(seen: Mapping[str, Any]) -> StartRequest:
    attributes, payload = seen["attributes"], seen["body"]
    if not isinstance(payload, Mapping):
        raise InvalidPayload("The body of a resent message is no JSON object.")
    if not re.fullmatch("[0-9]{1,9}", attributes[TRIES]):
        raise InvalidRequest(f"The attribute {TRIES} is no whole number.")
    return StartRequest(
        _json_text(attributes, REQUEST_ID),
        payload,
        _json_text(attributes, LOCK_TOKEN) if LOCK_TOKEN in attributes else None,
        _time_in(attributes, REQUESTED_AT),
        int(attributes[TRIES]),
        _time_in(attributes, COUNT_AT),
        attributes.get(LETTER_OF),
    )


def _time_in(attributes: Mapping[str, str], name: str) -> datetime | None:
    try:
        return times.from_text(attributes[name]) if name in attributes else None
    except ValueError:
        raise InvalidRequest(f"The attribute {name} is no time.") from None


def _json_text(attributes: Mapping[str, str], name: str) -> str:
    try:
        value = json.loads(attributes[name])
    except (KeyError, ValueError, RecursionError):
        value = None
    if not isinstance(value, str) or not value.strip():
        raise InvalidRequest(f"The attribute {name} of a resent message is no JSON text.")
    return value
