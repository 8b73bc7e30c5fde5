"""
Reads events from EventBridge, schedules, S3 and Kinesis into one uniform shape:

    {"id": …, "time": "2026-01-31T12:00:00.000Z", "source": …, "detail": …}

    EventBridge   The event's own id, time, source and detail.
    a schedule    The id is the rule's name and the scheduled time. A second event for one time has the same
                  id.
    S3            The id is bucket, key, version and sequencer. The detail has what both kinds of S3 events
                  have in common, so a notification and an EventBridge event of one change are one request.
    Kinesis       The id is the record's eventID. The detail is the JSON in its data; the text if it is no
                  JSON, the Base64 if it is no text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote_plus

from aws_lambda_powertools.utilities.data_classes import EventBridgeEvent
from aws_lambda_powertools.utilities.data_classes.kinesis_stream_event import KinesisStreamRecord
from aws_lambda_powertools.utilities.data_classes.s3_event import S3EventRecord

from steponce.aws import times
from steponce.errors import InvalidRequest, shown
from steponce.request.canonical import in_one_form
from steponce.request.strict_json import json_or_text
from steponce.triggers.dead_letters import Letter, Original
from steponce.triggers.sqs import MAX_MESSAGE_BYTES, escaped
from steponce.triggers.start_request import RequestPaths, StartRequest, expect_readable

SCHEDULED = "Scheduled Event"
SCHEDULES = ("aws.events", "aws.scheduler")
"""The detail-type of a schedule's events, and their sources."""

_NOTIFIED = {
    "ObjectCreated": "Object Created",
    "ObjectRemoved": "Object Deleted",
    "LifecycleExpiration": "Object Deleted",  # EventBridge has one kind for both
}

_BYTES_OF_ATTRIBUTES = 4 * 1024
_IDENTIFYING = ("version", "id", "detail-type", "source", "account", "time", "region")


def single_events(event: Any) -> list[Mapping[str, Any]]:
    """
    The events of one invocation. S3 may send several, EventBridge sends one.

    Raises:
        InvalidRequest: what was sent is no JSON object, or has a record that is none.
    """
    if not isinstance(event, Mapping):
        raise InvalidRequest(
            f"The event is no JSON object, but of the type {type(event).__name__}. Send one event of "
            "EventBridge, S3 or Kinesis. EventBridge Pipes send lists; let a pipe send to the requests "
            "queue, and let QueueRequestIdPath find the record's own id, since a pipe may send one record "
            "twice."
        )
    records = event.get("Records")
    if not isinstance(records, list):
        return [event]
    for number, record in enumerate(records, 1):
        if not isinstance(record, Mapping):
            raise InvalidRequest(
                f"Record {number} of the event is no JSON object, but of the type {type(record).__name__}. "
                "Send the records as S3 or Kinesis writes them."
            )
    return records


def find_request(event: Mapping[str, Any], paths: RequestPaths) -> StartRequest:
    """
    Find the request in an event, or in one record of S3 or Kinesis.

    Raises:
        InvalidRequest: there is no valid request in it; the message says why.
    """
    expect_readable(_size_of(event))
    seen = see(in_one_form(event))
    return paths.find(seen, None if seen["time"] is None else times.from_text(seen["time"]))


def see(event: Mapping[str, Any]) -> dict[str, Any]:
    """
    Convert an event to the uniform shape.

    Raises:
        InvalidRequest: the event is of no known kind, or lacks fields of its kind.
    """
    try:
        if event.get("eventSource") == "aws:kinesis":
            return _of_stream(KinesisStreamRecord(dict(event)))
        if event.get("eventSource") == "aws:s3":
            return _of_notification(S3EventRecord(dict(event)))
        return _of_bus(EventBridgeEvent(dict(event)))
    except InvalidRequest:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise InvalidRequest(
            f"This is no event of EventBridge, S3 or Kinesis, or it is incomplete ({type(error).__name__}). "
            "Send one of these."
        ) from None


def id_of_schedule(arn: str, time: str) -> str:
    """The id of a schedule's event in the uniform shape: the name in the rule's ARN, and the time."""
    return f"{arn.partition('/')[2]} {time}"


def original_of(event: Mapping[str, Any]) -> Original:
    """
    The event as it arrived, ready to become a dead letter.

    What is too large for a message is kept without its content, so that it starts nothing when it is put
    back. A stream still has the data of its record. Of another event the fields remain that say which it was.
    """
    body = escaped(_json(event))
    source = f"{event.get('eventSource') or event.get('source')} {event.get('eventID') or event.get('id')}"
    size = len(body.encode())
    if event.get("eventSource") == "aws:kinesis" and size > MAX_MESSAGE_BYTES * 3 // 4:
        without = {name: value for name, value in event["kinesis"].items() if name != "data"}
        body = escaped(_json({**event, "kinesis": without}))
    elif size > MAX_MESSAGE_BYTES - _BYTES_OF_ATTRIBUTES:
        body = escaped(_json({name: event[name] for name in _IDENTIFYING if name in event}))
    return Original(Letter("event", source), body)


def _size_of(event: Mapping[str, Any]) -> int:
    """The event's size in bytes. A Kinesis record counts without its Base64 encoding."""
    size = len(_json(event).encode("utf-8", "surrogatepass"))
    return size * 3 // 4 if event.get("eventSource") == "aws:kinesis" else size


def _of_bus(event: EventBridgeEvent) -> dict[str, Any]:
    detail = json_or_text(event.detail, "The detail") if isinstance(event.detail, str) else event.detail
    seen = {"id": event.get_id, "time": _utc(event.time), "source": event.source, "detail": detail}
    if event.source in SCHEDULES and event.detail_type == SCHEDULED:
        return seen | {"id": id_of_schedule(event.resources[0], event.time)}
    if event.source == "aws.s3" and event.detail_type in _NOTIFIED.values():
        # Powertools' class would decode the key, but S3 does not encode it in EventBridge events.
        return seen | _of_object(event.detail_type, detail["bucket"]["name"], detail["object"])
    return seen


def _of_notification(record: S3EventRecord) -> dict[str, Any]:
    said = record.s3.get_object
    key = {"key": unquote_plus(said.key), "version-id": said.version_id, "etag": said.get("eTag")}
    kind = _NOTIFIED.get(record.event_name.removeprefix("s3:").partition(":")[0])
    if kind is None:
        raise InvalidRequest(
            f"A bucket's notification {shown(record.event_name)} starts no request; only "
            f"{', '.join(_NOTIFIED)} do. For other changes send the bucket's events to EventBridge."
        )
    seen = {"time": _utc(record.event_time), "source": "aws.s3"}
    return seen | _of_object(kind, record.s3.bucket.name, {**said.raw_event, **key})


def _of_object(kind: str, bucket: str, said: Mapping[str, Any]) -> dict[str, Any]:
    names = ("key", "version-id", "sequencer", "size", "etag")
    known = {name: said[name] for name in names if said.get(name) not in (None, "")}
    version = known.get("version-id", "null")
    return {
        "id": f"{bucket}/{known['key']} {version} {known['sequencer']}",
        "detail": {"type": kind, "bucket": {"name": bucket}, "object": known},
    }


def _of_stream(record: KinesisStreamRecord) -> dict[str, Any]:
    arrived = datetime.fromtimestamp(record.kinesis.approximate_arrival_timestamp, UTC)
    try:
        text = record.kinesis.data_as_text()
    except ValueError:
        detail = record.kinesis.data
    else:
        detail = json_or_text(text, "The record's data")
    return {
        "id": record.event_id,
        "time": times.to_text(arrived),
        "source": "aws.kinesis",
        "detail": detail,
    }


def _utc(text: str) -> str | None:
    try:
        return times.to_text(times.from_text(text))
    except ValueError:
        return None


def _json(event: Mapping[str, Any]) -> str:
    return json.dumps(event, ensure_ascii=False, separators=(",", ":"))
