"""
Messages from a queue, all seen as the same thing:

    {"messageId": …, "attributes": {name: text}, "body": the JSON in it, "sentAt": "2026-01-31T12:00:00.000Z"}

whether they were sent to the queue or published to a topic, with raw delivery or without, and whether the
queue is FIFO or not. A published message has the id that SNS gave it; with raw delivery SNS hides that one,
so there it is the queue's own. Binary attributes are their Base64 text, as powertools_base64 takes it; a body
that is no JSON is its text.

A message that the re-sender sent says itself what is asked, in attributes of ours; they win over the door's
paths, so that the first id survives every hop. Whoever may send to the queue could write them too, but gains
nothing by it: such a sender may ask for any request with any id anyway. So it is with a dead letter that was
put back; see `letters`.
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
from steponce.triggers import events
from steponce.triggers.dead_letters import LETTER, OURS, Letter, Original
from steponce.triggers.failure_records import foreign_record
from steponce.triggers.resend import LOCK_TOKEN, REQUEST_ID, REQUESTED_AT, TRIES
from steponce.triggers.start_request import Asked, Door, expect_readable, json_or_text

_NOTIFICATION = ("MessageId", "TopicArn", "Message", "Timestamp")


# SNS writes it first.
_STARTS_AS_NOTIFICATION = re.compile(r'\s*\{\s*"Type"\s*:\s*"Notification"')


def asked_by(record: SQSRecord, door: Door, event_door: Door) -> Asked:
    """
    What a message asks for.

    Args:
        record: As Lambda got it from the queue.
        door: Where in a message the request is.
        event_door: Where in an event it is; for a letter of an event that was put back.

    Raises:
        InvalidRequest: nothing that could be started; the message says why.
    """
    if not _STARTS_AS_NOTIFICATION.match(record.body):
        expect_readable(len(record.body.encode("utf-8", "surrogatepass")))
    letter = _letter_of(record)
    if letter is not None and letter.shape == "event":
        event = json_or_text(record.body)
        if not isinstance(event, Mapping):
            raise InvalidRequest("The body of an event that was laid aside is no JSON object.")
        return events.asked_by(event, event_door)
    seen = see(record)
    foreign = foreign_record(seen["body"], seen["attributes"])
    if foreign is not None:
        raise InvalidRequest(f"This is no request: {foreign.kind}. {foreign.advice}")
    return _sent_again(seen) if TRIES in seen["attributes"] else door.ask(seen, _time_of(seen))


def original_of(record: SQSRecord) -> Original:
    """The message as it came, in the words of SendMessage; what was sent again has all its tries anew."""
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
    A message as it is kept.

    Args:
        body: Of the message.
        attributes: As SendMessage wants them.
        source: Where it came from, and its id there.
        message_id: The id that its queue gave it.
        sent_at: When it was sent, as UTC text.
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
    The message in its uniform shape.

    Raises:
        InvalidRequest: it says that it was laid aside, and not as a door does.
    """
    body = json_or_text(record.body)
    if _is_notification(body):
        notification = SNSMessage(body)
        expect_readable(len(notification.message.encode("utf-8", "surrogatepass")))
        return {
            "messageId": notification.message_id,
            "attributes": _attributes(body.get("MessageAttributes"), "Type", "Value", "Value"),
            "body": json_or_text(notification.message),
            "sentAt": _text_of_time(notification.timestamp),
        }
    letter, given = _letter_of(record), record.get("messageAttributes")
    attributes = _attributes(given, "dataType", "stringValue", "binaryValue")
    seen = {"messageId": record.message_id, "sentAt": _sent_at(record.get("attributes") or {})}
    if letter is not None:
        attributes = {name: value for name, value in attributes.items() if name not in OURS}
        attributes |= _attributes(letter.folded, "DataType", "StringValue", "BinaryValue")
        seen = {"messageId": letter.message_id or record.message_id, "sentAt": letter.sent_at}
    return {**seen, "attributes": attributes, "body": body}


def _letter_of(record: SQSRecord) -> Letter | None:
    """What the message says of itself, if it was laid aside before and put back."""
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
    """Attributes by name. SQS and SNS call the parts of one differently."""
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
