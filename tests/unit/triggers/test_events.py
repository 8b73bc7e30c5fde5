"""Every kind of event is seen as the same thing, with an id that is the same however often it comes."""

from __future__ import annotations

import base64
import copy
import json
from typing import Any

import pytest

from steponce.errors import InvalidPayload, InvalidRequest
from steponce.triggers.events import find_request, original_of, see, single_events
from steponce.triggers.start_request import RequestPaths
from tests.unit.triggers.world import ORDER, check_message, example_event

PATHS = RequestPaths("id", "detail")
NOON = "2026-01-31T12:00:00.000Z"


def notification(**said: Any) -> dict[str, Any]:
    """A record of S3, with other things said of the object."""
    record = copy.deepcopy(example_event("start_from_bucket")["Records"][0])
    record["s3"]["object"] |= said
    return record


def object_event(detail_type: str = "Object Created", **said: Any) -> dict[str, Any]:
    """What EventBridge says of the same object."""
    told = {
        "key": "2026/order é.json",
        "size": 64,
        "etag": "d41d8cd98f00b204e9800998ecf8427e",
        "version-id": "096fKKXTRTtl3on89fVO.nfljtsv6qko",
        "sequencer": "0055AED6DCD90281E5",
    }
    return {
        "version": "0",
        "id": "17793124-05d4-b198-2fde-7ededc63b103",
        "detail-type": detail_type,
        "source": "aws.s3",
        "account": "123456789012",
        "time": "2026-01-31T12:00:00Z",
        "region": "us-east-1",
        "resources": ["arn:aws:s3:::example-orders"],
        "detail": {
            "version": "0",
            "bucket": {"name": "example-orders"},
            "object": told | said,
            "request-id": "C3D13FE58DE4C810",
            "requester": "123456789012",
            "reason": "PutObject",
        },
    }


def test_an_event_of_the_bus_is_seen_as_it_is():
    """Its id, time, source and detail."""
    event = example_event("start_from_event")
    seen = {"id": event["id"], "time": NOON, "source": "com.example.shop", "detail": ORDER}
    assert seen == see(event)
    assert (event["id"], ORDER) == (find_request(event, PATHS).request_id, find_request(event, PATHS).payload)


@pytest.mark.parametrize("of", [{"a": 1, "b": 2}, {"b": 2.0, "a": 1}])
def test_equal_details_have_one_id(of: dict[str, Any]):
    """Also by functions that see the order of keys, and how a number is written."""
    event = example_event("start_from_event") | {"detail": {"of": of}}
    assert '{"a":1,"b":2}' == find_request(event, RequestPaths("to_string(detail.of)", "detail")).request_id


def test_a_rule_that_fires_twice_for_one_time_asks_once():
    """The event's own id differs each time; the scheduled time does not."""
    first = example_event("start_from_schedule")
    again = first | {"id": "another"}
    name = "steponce-StartSchedule-1A2B3C4D5E6F 2026-01-31T02:00:00Z"
    assert name == find_request(first, PATHS).request_id == find_request(again, PATHS).request_id
    assert name != find_request(first | {"time": "2026-02-01T02:00:00Z"}, PATHS).request_id


def test_a_scheduler_s_event_has_its_detail_as_text():
    """EventBridge Scheduler writes JSON in JSON."""
    event = example_event("start_from_schedule") | {
        "source": "aws.scheduler",
        "resources": ["arn:aws:scheduler:us-east-1:123456789012:schedule/default/nightly"],
        "detail": "{}",
    }
    asked = find_request(event, PATHS)
    assert ("default/nightly 2026-01-31T02:00:00Z", {}) == (asked.request_id, asked.payload)


def test_both_ways_of_a_bucket_ask_for_one_request():
    """Same id and same payload, so that the second is a duplicate and no mismatch."""
    assert find_request(object_event(), PATHS) == find_request(notification(), PATHS)
    asked = find_request(notification(), PATHS)
    version, sequencer = "096fKKXTRTtl3on89fVO.nfljtsv6qko", "0055AED6DCD90281E5"
    assert f"example-orders/2026/order é.json {version} {sequencer}" == asked.request_id
    assert "2026/order é.json" == asked.payload["object"]["key"]


def test_a_plus_in_a_key_is_encoded_in_a_notification_only():
    """EventBridge gets the key as it is."""
    plain, encoded = object_event(key="a+b c%20"), notification(key="a%2Bb+c%2520")
    assert "a+b c%20" == find_request(plain, PATHS).payload["object"]["key"]
    assert find_request(plain, PATHS) == find_request(encoded, PATHS)


def test_a_bucket_without_versions_asks_for_one_request_as_well():
    """There the version is absent, in both."""
    plain, record = object_event(), notification()
    del plain["detail"]["object"]["version-id"], record["s3"]["object"]["versionId"]
    assert find_request(plain, PATHS) == find_request(record, PATHS)
    assert " null " in find_request(plain, PATHS).request_id


@pytest.mark.parametrize("said", [{"sequencer": "0055AED6DCD90281E6"}, {"versionId": "v2"}, {"key": "b"}])
def test_another_object_is_another_request(said: dict[str, str]):
    """Written again, it has another sequencer."""
    assert (
        find_request(notification(), PATHS).request_id != find_request(notification(**said), PATHS).request_id
    )


DELETIONS = [
    "ObjectRemoved:Delete",
    "ObjectRemoved:DeleteMarkerCreated",
    "LifecycleExpiration:Delete",
    "LifecycleExpiration:DeleteMarkerCreated",
]


@pytest.mark.parametrize("name", [*DELETIONS, *(f"s3:{name}" for name in DELETIONS)])
def test_a_deletion_says_so(name: str):
    """A caller or the bucket's lifecycle may have deleted it. The work must not read the object."""
    record = notification() | {"eventName": name}
    assert "Object Deleted" == find_request(record, PATHS).payload["type"]
    assert find_request(object_event("Object Deleted", size=None, etag=""), PATHS).payload[
        "object"
    ].keys() == {
        "key",
        "version-id",
        "sequencer",
    }


def test_a_notification_that_starts_nothing_is_named():
    """The dead letter's reason names the kind, and says how such a change can start a request."""
    with pytest.raises(InvalidRequest, match=r"ObjectTagging:Put.*EventBridge"):
        find_request(notification() | {"eventName": "ObjectTagging:Put"}, PATHS)


def test_other_news_of_a_bucket_keep_the_id_of_the_event():
    """Tags have no sequencer."""
    event = object_event("Object Tags Added", sequencer=None)
    assert event["id"] == find_request(event, PATHS).request_id


def test_a_stream_s_record_asks_by_its_event_id():
    """The payload is the JSON in its data."""
    record = example_event("start_from_stream")["Records"][0]
    asked = find_request(record, PATHS)
    assert (record["eventID"], ORDER) == (asked.request_id, asked.payload)
    assert NOON == see(record)["time"]


@pytest.mark.parametrize("data", [b"no JSON", b"\xff\xfe", b"", b"[1]", b'{"half": '])
def test_a_stream_s_record_without_json_is_refused(data: bytes):
    """Text or not."""
    record = example_event("start_from_stream")["Records"][0]
    record["kinesis"]["data"] = base64.b64encode(data).decode()
    with pytest.raises(InvalidPayload):
        find_request(record, PATHS)


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"id": "1"},
        {"source": "aws.s3", "detail-type": "Object Created", "id": "1", "time": "x", "detail": {}},
        {"source": "aws.events", "detail-type": "Scheduled Event", "id": "1", "time": "", "resources": []}
        | {"detail": {}},
        {"eventSource": "aws:s3"},
        {"eventSource": "aws:s3", "s3": None, "eventName": "ObjectCreated:Put"},
        {"eventSource": "aws:kinesis", "kinesis": {}},
        {"eventSource": "aws:kinesis", "kinesis": {"approximateArrivalTimestamp": 1e300, "data": ""}},
        notification(sequencer=None),
        notification() | {"eventName": "ReducedRedundancyLostObject"},
        {"id": None, "time": NOON, "source": "x", "detail-type": "x", "detail": {}},
    ],
)
def test_a_broken_event_is_refused(event: dict[str, Any]):
    """No start under an id that is a guess."""
    with pytest.raises(InvalidRequest):
        find_request(event, PATHS)


def test_an_event_without_a_readable_time_is_asked_now():
    """The client's clock says when."""
    assert None is find_request(example_event("start_from_event") | {"time": "soon"}, PATHS).requested_at


def test_a_batch_is_several_events():
    """One of S3's may hold many; the bus sends one."""
    assert 2 == len(single_events({"Records": [notification(), notification()]}))
    assert [example_event("start_from_event")] == single_events(example_event("start_from_event"))


@pytest.mark.parametrize("name", ["start_from_event", "start_from_schedule", "start_from_stream"])
def test_the_original_can_be_read_back(name: str):
    """What a person finds among the dead letters is the event as it came."""
    event = single_events(example_event(name))[0]
    assert event == json.loads(original_of(event).body)


def test_a_record_that_no_message_can_hold_is_kept_without_its_data():
    """Otherwise it would block its shard; the stream has the data."""
    record = example_event("start_from_stream")["Records"][0]
    record["kinesis"]["data"] = "A" * 1_000_000
    original = original_of(record)
    check_message({"MessageBody": original.body})
    assert record["kinesis"]["sequenceNumber"] in original.body


def test_what_no_message_may_hold_is_escaped():
    """SQS takes neither lone surrogates nor U+FFFF."""
    event = example_event("start_from_event") | {"detail": {"a": "\uffff", "b": "\ud800", "c": "\x00"}}
    check_message({"MessageBody": original_of(event).body})
    assert event == json.loads(original_of(event).body)
