"""Every shape of a message is seen as the same thing, and asks for what the trigger's paths find in it."""

from __future__ import annotations

import base64
import gzip
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from steponce.errors import (
    InvalidLockToken,
    InvalidPayload,
    InvalidRequest,
    InvalidRequestId,
    InvalidSetting,
    MissingKey,
)
from steponce.triggers import messages
from steponce.triggers.messages import original_of, see
from steponce.triggers.start_request import RequestPaths, StartRequest
from tests.unit.triggers.world import FAILED_INVOCATION, ORDER, World, function, notification, sqs_record

TEXT = json.dumps(ORDER)
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
PATHS = RequestPaths("messageId", "body")
BYTES = base64.b64encode(b"\x00\xff").decode()
SQS_ATTRIBUTES = {
    "customer": {"stringValue": "c-é", "stringListValues": [], "binaryListValues": [], "dataType": "String"},
    "count": {"stringValue": "3", "dataType": "Number"},
    "list": {"stringValue": '["a"]', "dataType": "String.Array"},
    "bytes": {"binaryValue": BYTES, "dataType": "Binary"},
}
SNS_ATTRIBUTES = {
    "customer": {"Type": "String", "Value": "c-é"},
    "count": {"Type": "Number", "Value": "3"},
    "list": {"Type": "String.Array", "Value": '["a"]'},
    "bytes": {"Type": "Binary", "Value": BYTES},
}
SAME = {
    "attributes": {"customer": "c-é", "count": "3", "list": '["a"]', "bytes": BYTES},
    "body": ORDER,
    "sentAt": "2026-01-31T12:00:00.000Z",
}
FIFO = {
    "ApproximateReceiveCount": "1",
    "SentTimestamp": "1769860800000",
    "SequenceNumber": "18849496460467696128",
    "MessageGroupId": "g",
    "MessageDeduplicationId": "d",
}


def find_request(came: SQSRecord, paths: RequestPaths) -> StartRequest:
    """Nothing here is an event that was laid aside."""
    return messages.find_request(came, paths, RequestPaths("id", "detail"))


def record(body: str = TEXT, **more: Any) -> SQSRecord:
    return SQSRecord(sqs_record(body, **more))


@pytest.mark.parametrize(
    ("message_id", "came"),
    [
        ("m-1", record(messageAttributes=SQS_ATTRIBUTES)),
        ("m-1", record(messageAttributes=SQS_ATTRIBUTES, queue="requests.fifo", attributes=FIFO)),
        ("sns-1", record(notification(TEXT, MessageAttributes=SNS_ATTRIBUTES, Subject="An order"))),
    ],
    ids=["direct or raw", "fifo", "topic"],
)
def test_a_message_is_seen_as_the_same_whichever_way_it_came(message_id: str, came: SQSRecord):
    """Only the id says who gave it."""
    assert SAME | {"messageId": message_id} == see(came)
    assert StartRequest(message_id, ORDER, None, NOON) == find_request(came, PATHS)


def test_a_notification_s_time_is_when_it_was_published():
    """Not when it reached the queue."""
    later = {"SentTimestamp": "1769864400000"}
    assert NOON == find_request(record(notification(TEXT), attributes=later), PATHS).requested_at


@pytest.mark.parametrize("sent", [{}, {"SentTimestamp": "soon"}, {"SentTimestamp": "9" * 30}, None])
def test_a_message_without_a_time_is_asked_now(sent: Any):
    """The client's clock says when."""
    assert None is find_request(record(attributes=sent), PATHS).requested_at


@pytest.mark.parametrize("sent", ["soon", "2016-12-31T23:59:60Z"])
def test_a_letter_without_a_readable_time_is_asked_now(sent: str):
    """Anybody may have written it. It does not come back a hundred times for that."""
    text = json.dumps({"shape": "message", "messageId": "first", "sentAt": sent})
    came = record(messageAttributes={"steponceLetter": {"stringValue": text, "dataType": "String"}})
    assert StartRequest("first", ORDER) == find_request(came, PATHS)


def test_what_only_looks_like_a_notification_is_a_payload():
    """The envelope of SNS has all its parts."""
    like = {"Type": "Notification", "MessageId": "x"}
    assert like == find_request(record(json.dumps(like)), PATHS).payload


@pytest.mark.parametrize(
    ("path", "request_id"),
    [
        ("attributes.customer", "c-é"),
        ("attributes.count", "3"),
        ("body.orderId", "1"),
        ("body.amount", "500"),
        ("join('/', [attributes.customer, body.orderId])", "c-é/1"),
    ],
)
def test_the_id_is_found_by_a_path(path: str, request_id: str):
    """In an attribute or in the body; a whole number becomes text."""
    came = record(messageAttributes=SQS_ATTRIBUTES)
    assert request_id == find_request(came, RequestPaths(path, "body")).request_id


@pytest.mark.parametrize(
    "body", [{}, {"id": None}, {"id": True}, {"id": " "}, {"id": ""}, {"id": []}, {"id": {}}, {"id": 1.5}]
)
def test_there_is_no_start_without_an_id(body: dict[str, Any]):
    """Neither blank text nor anything that is no text or whole number is one."""
    with pytest.raises(InvalidRequestId, match="no start without an id"):
        find_request(record(json.dumps(body)), RequestPaths("body.id", "body"))


def test_one_and_one_point_nought_are_one_id():
    """JSON has one kind of number."""
    assert "1" == find_request(record('{"id": 1.0}'), RequestPaths("body.id", "body")).request_id


@pytest.mark.parametrize("body", ['{"of": {"a": 1, "b": 2}}', '{"of": {"b": 2.0, "a": 1}}'])
def test_equal_bodies_have_one_id_and_one_lock_token(body: str):
    """Also by functions that see the order of keys, and how a number is written."""
    paths = RequestPaths("to_string(body.of)", "body", "join('-', map(&to_string(@), values(body.of)))")
    found = find_request(record(body), paths)
    assert ('{"a":1,"b":2}', "1-2") == (found.request_id, found.lock_token)


@pytest.mark.parametrize("number", ["NaN", "1e400", "123456789012345678901234567890"])
def test_a_number_that_cannot_be_carried_is_no_id(number: str):
    """Nobody would know which request it means."""
    with pytest.raises(InvalidRequest):
        find_request(record(f'{{"id": {number}}}'), RequestPaths("body.id", "body"))


@pytest.mark.parametrize(
    "body", ["", "no JSON", "[1]", '"text"', "null", "1", "{", "[" * 100_000, "\ufeff{}"]
)
def test_a_payload_is_a_json_object(body: str):
    """And the error does not quote it."""
    with pytest.raises(InvalidPayload) as caught:
        find_request(record(body), PATHS)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (base64.b64encode(TEXT.encode()).decode(), "powertools_json(powertools_base64(body))"),
        (
            base64.b64encode(gzip.compress(TEXT.encode(), mtime=0)).decode(),
            "powertools_json(powertools_base64_gzip(body))",
        ),
        (json.dumps({"data": TEXT}), "powertools_json(body.data)"),
    ],
)
def test_an_encoded_payload_is_found_by_a_path(body: str, path: str):
    """Powertools' functions decode it."""
    assert ORDER == find_request(record(body), RequestPaths("messageId", path)).payload


@pytest.mark.parametrize("body", ["%%%", "AAAA", base64.b64encode(b"\x1f\x8b\x08").decode(), "é"])
def test_what_cannot_be_decoded_is_refused(body: str):
    """Whatever the decoder raises."""
    with pytest.raises(InvalidRequest):
        find_request(record(body), RequestPaths("messageId", "powertools_json(powertools_base64_gzip(body))"))


@pytest.mark.parametrize("of_topic", [False, True])
def test_the_order_of_attributes_does_not_make_another_request(of_topic: bool):
    """Neither SQS nor SNS promises one."""
    paths = RequestPaths("join('/', values(attributes))", "body")
    ids = set()
    for names in (("tenant", "order"), ("order", "tenant")):
        given = {
            name: {"Type": "String", "Value": name, "dataType": "String", "stringValue": name}
            for name in names
        }
        body = notification(TEXT, MessageAttributes=given)
        came = record(body) if of_topic else record(messageAttributes=given)
        ids.add(find_request(came, paths).request_id)
    assert {"order/tenant"} == ids


def test_the_record_of_an_invocation_that_succeeded_is_a_message():
    """A function may send its result on, by a destination for success."""
    succeeded = {"requestContext": FAILED_INVOCATION["requestContext"] | {"condition": "Success"}}
    body = json.dumps(FAILED_INVOCATION | succeeded | {"responsePayload": ORDER})
    assert find_request(record(body), RequestPaths("messageId", "body.responsePayload")).payload == ORDER


def test_the_lock_token_is_found_by_a_path():
    """It is used as it is; none, where the trigger has no path for it."""
    paths = RequestPaths("messageId", "body", "body.orderId")
    assert ("1", None) == (find_request(record(), paths).lock_token, find_request(record(), PATHS).lock_token)


def test_a_lock_token_that_is_missing_is_an_error():
    """The request would run under a key that nobody meant."""
    with pytest.raises(InvalidLockToken):
        find_request(record("{}"), RequestPaths("messageId", "body", "body.orderId"))


def test_a_trigger_with_a_broken_path_takes_nothing_in():
    """Or every message would be at fault."""
    with pytest.raises(InvalidSetting, match="no JMESPath"):
        RequestPaths("messageId", "body[")
    with pytest.raises(MissingKey, match="nothing_of_the_kind"):
        find_request(record(), RequestPaths("nothing_of_the_kind(body)", "body"))


@pytest.mark.parametrize("name", ["start_from_queue", "start_from_event", "http_api"])
def test_a_function_with_a_broken_path_takes_no_request(name: str):
    """It does not start, so messages wait, and nobody hears that the payload is wrong."""
    wrong = {"LockTokenPath": "order-id", "HttpAccess": "open", "ResultBucket": "off"}
    with pytest.raises(InvalidSetting, match="LockTokenPath is 'order-id'"), function(name, World(), **wrong):
        pass


def test_the_attributes_of_the_re_sender_win():
    """Whatever the trigger's paths say."""
    ours = {
        "steponceRequestId": {"stringValue": '"first \\u0000 id"', "dataType": "String"},
        "steponceLockToken": {"stringValue": '"acme/é"', "dataType": "String"},
        "steponceRequestedAt": {"stringValue": "2026-01-31T12:00:00.000Z", "dataType": "String"},
        "steponceTries": {"stringValue": "2", "dataType": "Number"},
    }
    came = record(messageAttributes=ours, attributes={"SentTimestamp": "1769999999999"})
    again = StartRequest("first \x00 id", ORDER, "acme/é", NOON, 2)
    assert again == find_request(came, RequestPaths("body.orderId", "nothing", "nothing"))
    assert {"requestId": "first \x00 id", "tries": 2} == again.redelivery


def test_a_publisher_does_not_choose_another_s_request():
    """Nothing of ours comes by a topic. With these it got the answer that somebody else's key has."""
    given = {"steponceTries": "0", "steponceRequestId": '"mallory/1"', "steponceLockToken": '"m/alice/77"'}
    written = {name: {"Type": "String", "Value": value} for name, value in given.items()}
    came = record(notification(TEXT, MessageAttributes=SNS_ATTRIBUTES | written))
    assert SAME | {"messageId": "sns-1"} == see(came)
    assert StartRequest("sns-1", ORDER, None, NOON) == find_request(came, PATHS)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("steponceTries", "many"),
        ("steponceTries", "-1"),
        ("steponceTries", "٣"),
        ("steponceRequestId", "order-1"),
        ("steponceRequestId", '""'),
        ("steponceRequestId", None),
        ("steponceLockToken", "1"),
        ("steponceRequestedAt", "soon"),
    ],
)
def test_attributes_of_ours_that_somebody_has_spoilt_are_refused(name: str, value: str | None):
    """No start under an id that is a guess."""
    good = {"steponceRequestId": '"order-1"', "steponceTries": "1"}
    given = {k: {"stringValue": v, "dataType": "String"} for k, v in (good | {name: value}).items() if v}
    with pytest.raises(InvalidRequest):
        find_request(record(messageAttributes=given), PATHS)


def test_the_original_can_be_sent_as_it_came():
    """With its attributes, in SendMessage's words."""
    original = original_of(record(messageAttributes=SQS_ATTRIBUTES))
    assert TEXT == original.body
    assert "arn:aws:sqs:us-east-1:123456789012:requests m-1" == original.source
    assert {"DataType": "Binary", "BinaryValue": b"\x00\xff"} == original.attributes["bytes"]
    assert {"DataType": "Number", "StringValue": "3"} == original.attributes["count"]
