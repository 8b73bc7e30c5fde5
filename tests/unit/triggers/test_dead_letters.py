"""A dead letter that is put back asks for what its trigger asked for at first, whichever trigger it was."""

from __future__ import annotations

import base64
import copy
import json
import re
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from hypothesis import example, given, settings
from hypothesis import strategies as st

from steponce.aws import times
from steponce.errors import InvalidRequest, PayloadTooLarge
from steponce.next_step import NextStep
from steponce.request.canonical import canonical_json, sha256
from steponce.request.envelope import Envelope
from steponce.request.names import name_of
from steponce.request.settings import RequestRules
from steponce.triggers.dead_letters import IF_NOT_ANSWERED, DeadLetters, Letter, Original
from steponce.triggers.foreign_records import Foreign, foreign_record
from steponce.triggers.found_letters import DeadLetterQueue, Found
from steponce.triggers.messages import find_request, original, original_of, see
from steponce.triggers.resend import Resender
from steponce.triggers.sqs import MAX_MESSAGE_BYTES, fits, size_of
from steponce.triggers.start_request import MAX_READ_BYTES, RequestPaths, StartRequest
from tests.unit.triggers.world import (
    DEAD,
    FAILED_INVOCATION,
    ORDER,
    QUEUE,
    Context,
    World,
    check_message,
    example_event,
    function,
    letter_of,
    notification,
    received,
    sqs_record,
)

WORLD = World()
MESSAGE_PATHS, EVENT_PATHS = RequestPaths("messageId", "body"), RequestPaths("id", "detail")
RULES = RequestRules(key_prefix="steponce-run-once")
QUEUE_TAKES = 851_968
PATHS = {
    "QueueLockTokenPath": "body.orderId || body.key",
    "EventLockTokenPath": "detail.orderId || detail.object.key",
}


@pytest.fixture(scope="module")
def triggers() -> Iterator[dict[str, Any]]:
    """Both functions; the lock token is in what comes."""
    with (
        function("start_from_queue", WORLD, **PATHS) as queue,
        function("start_from_event", WORLD, **PATHS) as bus,
    ):
        yield {"queue": queue, "event": bus}


@pytest.fixture(autouse=True)
def world() -> World:
    """A world in which nothing has happened."""
    return WORLD.clear()


def bucket_event() -> dict[str, Any]:
    """What EventBridge says of the example's object."""
    said = example_event("start_from_bucket")["Records"][0]["s3"]
    told = {"key": "2026/order é.json", "size": 64, "etag": "e", "sequencer": said["object"]["sequencer"]}
    detail = {"version": "0", "bucket": {"name": said["bucket"]["name"]}, "object": told}
    return example_event("start_from_event") | {
        "source": "aws.s3",
        "detail-type": "Object Created",
        "detail": detail,
    }


def raw_message() -> dict[str, Any]:
    """With raw delivery SNS writes the payload itself, and its attributes become the queue's."""
    given = {"customer": {"dataType": "String", "stringValue": "c"}}
    return {"Records": [sqs_record(json.dumps(ORDER), "raw-1", messageAttributes=given)]}


WAYS = {
    "queue": ("queue", example_event("start_from_queue")),
    "fifo": ("queue", example_event("start_from_fifo_queue")),
    "topic": ("queue", example_event("start_from_topic")),
    "topic, raw": ("queue", raw_message()),
    "bus": ("event", example_event("start_from_event")),
    "schedule": ("event", example_event("start_from_schedule") | {"detail": ORDER}),
    "bucket": ("event", example_event("start_from_bucket")),
    "bucket by the bus": ("event", bucket_event()),
    "stream": ("event", example_event("start_from_stream")),
}


def asked(world: World) -> list[tuple[Any, ...]]:
    """What the executions were started with: id, payload, key, time, tries."""
    return [
        (one["redelivery"]["requestId"], one["payload"], one["lockToken"], one["requestedAt"])
        for one in world.inputs()
    ]


def put_back(module: Any, letter: dict[str, Any]) -> None:
    """As the command does, and as the console does too: the letter, as it is, under a new message id."""
    answer = module.handler({"Records": [received(letter, "anew")]}, Context())
    assert {"batchItemFailures": []} == answer


@pytest.mark.parametrize("way", WAYS)
def test_a_letter_put_back_asks_for_the_same(triggers: dict[str, Any], world: World, way: str):
    """Laid aside because its id was taken by another payload; the other one is gone when it is put back."""
    trigger, came = WAYS[way]
    triggers[trigger].handler(copy.deepcopy(came), Context())
    (first,), (name,) = asked(world), world.sfn.names()
    world.clear()
    world.sfn.put(name)
    world.hold(first[2], first[0], "another payload")
    triggers[trigger].handler(copy.deepcopy(came), Context())
    (letter,) = world.dead()
    assert "PayloadMismatch" in letter["MessageAttributes"]["steponceReason"]["StringValue"]
    assert first[0] == letter_of(letter)["requestId"]
    world.clear()

    put_back(triggers["queue"], letter)

    assert [first] == asked(world)
    assert ([name], []) == (world.sfn.names(), world.sent)


@pytest.mark.parametrize("way", WAYS)
def test_a_letter_that_is_laid_aside_again_is_the_same_letter(
    triggers: dict[str, Any], world: World, way: str
):
    """However often it is put back too early."""
    trigger, came = WAYS[way]
    triggers[trigger].handler(copy.deepcopy(came), Context())
    (first,) = asked(world)
    world.hold(first[2], first[0], "another payload")
    letters = []
    triggers[trigger].handler(copy.deepcopy(came), Context())
    for _ in range(3):
        letters.append(world.dead()[-1])
        put_back(triggers["queue"], letters[-1])
    assert letters[0] == letters[1] == letters[2] == world.dead()[-1]


@pytest.mark.parametrize("way", WAYS)
def test_a_letter_of_what_had_no_payload_asks_once_the_trigger_is_mended(world: World, way: str):
    """The paths were wrong, so everything was laid aside; with the right ones it asks under its first id."""
    trigger, came = WAYS[way]
    wrong = {"QueuePayloadPath": "attributes.nothing", "EventPayloadPath": "nothing"}
    with function(f"start_from_{trigger}", world, **wrong) as module:
        module.handler(copy.deepcopy(came), Context())
    (letter,) = world.dead()
    assert [] == world.sfn.names()
    with function("start_from_queue", world, **PATHS) as queue:
        put_back(queue, letter)
    (again,) = asked(world)
    with function(f"start_from_{trigger}", world.clear(), **PATHS) as module:
        module.handler(copy.deepcopy(came), Context())
    assert [again] == asked(world)


def test_a_letter_of_a_request_that_came_back_too_often_has_all_its_tries(
    triggers: dict[str, Any], world: World
):
    """And its id, payload, key and time."""
    noon = times.from_text("2026-01-31T12:00:00.000Z")
    dead = DeadLetters(world, DEAD)
    resender = Resender(world, QUEUE, dead, tries=3, base_seconds=5, max_seconds=9)
    resender.send_again(StartRequest("a b", ORDER, "key", noon, 3), "RetryLater", "the execution")
    (letter,) = world.dead()
    put_back(triggers["queue"], letter)
    assert [("a b", ORDER, "key", "2026-01-31T12:00:00.000Z")] == asked(world)
    assert [{"requestId": "a b", "tries": 0}] == [one["redelivery"] for one in world.inputs()]


STREAM = {key: FAILED_INVOCATION[key] for key in ("version", "timestamp", "requestContext")} | {
    "KinesisBatchInfo": {
        "shardId": "shardId-000000000001",
        "startSequenceNumber": "1",
        "endSequenceNumber": "2",
        "batchSize": 2,
        "streamArn": "arn:aws:kinesis:us-east-1:123456789012:stream/orders",
    }
}
UNDELIVERED = {
    name: {"dataType": "String", "stringValue": value}
    for name, value in {
        "RULE_ARN": "arn:aws:events:us-east-1:123456789012:rule/steponce-StartRule",
        "TARGET_ARN": "arn:aws:lambda:us-east-1:123456789012:function:steponce-StartFromEvent",
        "ERROR_CODE": "NO_PERMISSIONS",
        "ERROR_MESSAGE": "Lambda denied access",
    }.items()
}
FOREIGN = {
    "invocation": (FAILED_INVOCATION, {}),
    "stream": (STREAM, {}),
    "bus": (example_event("start_from_event"), UNDELIVERED),
    "schedule": (example_event("start_from_schedule"), UNDELIVERED),
    "subscription": (
        {
            "Type": "SubscriptionConfirmation",
            "MessageId": "165545c9-2a5c-472c-8df2-7ff2be2b3b1b",
            "Token": "2336412f37",
            "TopicArn": "arn:aws:sns:us-east-1:210987654321:orders",
            "Message": "You have chosen to subscribe to the topic.",
            "SubscribeURL": "https://sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription",
            "Timestamp": "2026-01-31T12:00:00.000Z",
        },
        {},
    ),
    "bucket": (
        {
            "Service": "Amazon S3",
            "Event": "s3:TestEvent",
            "Time": "2026-01-31T12:00:00.000Z",
            "Bucket": "orders",
            "RequestId": "5582815E1AEA5ADF",
            "HostId": "8cLeGAmw098X5cv4",
        },
        {},
    ),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_what_aws_itself_writes_starts_nothing(triggers: dict[str, Any], world: World, kind: str):
    """Even if somebody moves it into the queue for requests by hand."""
    body, attributes = FOREIGN[kind]
    triggers["queue"].handler(
        {"Records": [sqs_record(json.dumps(body), "moved", messageAttributes=attributes)]}, Context()
    )
    (letter,) = world.dead()
    assert [] == world.sfn.names()
    assert "no request" in letter["MessageAttributes"]["steponceReason"]["StringValue"]


@pytest.mark.parametrize("version", ["", ":$LATEST", ":7", ":live"])
def test_the_function_of_an_invocation_is_named_as_the_operator_s_role_names_it(version: str):
    """Its policy has the plain ARN. A version or an alias is another function, which may have other code."""
    plain = "arn:aws:lambda:us-east-1:123456789012:function:steponce-StartFromEvent"
    context = FAILED_INVOCATION["requestContext"] | {"functionArn": f"{plain}{version}"}

    found = foreign_record(FAILED_INVOCATION | {"requestContext": context}, {})

    assert found is not None
    assert [plain + version.removesuffix(":$LATEST")] == [step.key for step in found.next_steps]


def test_a_record_of_a_batch_that_lambda_gave_up_is_started_under_the_id_that_it_had(
    triggers: dict[str, Any], world: World
):
    """Another record of the batch had failed, and this one was started. Its work must not run again."""
    came = example_event("start_from_stream")
    triggers["event"].handler(copy.deepcopy(came), Context())
    shard, _, number = came["Records"][0]["eventID"].partition(":")
    given_up = STREAM | {"KinesisBatchInfo": {**STREAM["KinesisBatchInfo"], "shardId": shard}}

    found = foreign_record(given_up, {})

    assert found is not None
    assert [NextStep("start request")] == list(found.next_steps)
    (advised,) = re.findall(r"its eventID, (\S+SEQUENCE_NUMBER)", found.advice)
    request_id = advised.replace("SEQUENCE_NUMBER", number)
    assert triggers["event"].client.start(request_id, ORDER, lock_token="1").duplicate
    assert 1 == len(world.sfn.executions)
    for path in ("EventRequestIdPath", "EventPayloadPath", "EventLockTokenPath"):
        assert path in found.advice


def undelivered(event: Any, rule: str) -> Foreign | None:
    """What EventBridge keeps of an event that it could not deliver: the event as it was."""
    texts = {name: value["stringValue"] for name, value in UNDELIVERED.items()} | {"RULE_ARN": rule}
    return foreign_record(event, texts)


def test_a_schedule_that_was_not_delivered_is_started_with_its_payload(
    triggers: dict[str, Any], world: World
):
    """EventBridge keeps no payload of it, and sent to the function as it is, it would run with none."""
    delivered = example_event("start_from_schedule") | {"detail": ORDER}
    (rule,) = delivered["resources"]
    kept = delivered | {"version": "0", "account": "123456789012", "region": "us-east-1", "detail": {}}

    found = undelivered(kept, rule)

    assert found is not None
    (step,) = found.next_steps
    assert "start request" == step.action
    assert "SchedulePayload" in found.advice
    triggers["event"].handler(delivered, Context())
    assert triggers["event"].client.start(step.key, ORDER, lock_token="1").duplicate
    assert 1 == len(world.sfn.executions)


@pytest.mark.parametrize("other", [{"source": "com.example"}, {"detail-type": "Order Placed"}])
def test_an_event_that_is_no_schedule_s_is_sent_to_its_function_as_it_is(other: dict[str, str]):
    """Only a schedule's rule adds a payload."""
    found = undelivered(
        example_event("start_from_schedule") | other, "arn:aws:events:us-east-1:1:rule/StartRule"
    )

    assert found is not None
    assert ["invoke function"] == [step.action for step in found.next_steps]


@pytest.mark.parametrize("body", [[], "x", None, {"source": {}, "detail-type": []}])
def test_whatever_stands_in_an_undelivered_event_it_is_recognised(body: Any):
    """Somebody may have spoilt it."""
    assert undelivered(body, "arn:aws:events:us-east-1:1:rule/StartRule") is not None


SPOILT = {
    "empty": "",
    "an empty object": "{}",
    "a list": "[]",
    "another shape": '{"shape":"x"}',
    "an attribute that is none": '{"shape":"event","attributes":{"a":1}}',
    "attributes in a list": '{"shape":"event","attributes":["a"]}',
    "no number of tries": '{"shape":"event","tries":"x"}',
    "tries without end": '{"shape":"event","tries":1e999}',
    "cut": "{",
    "too deep": "[" * 100_000,
}


@pytest.mark.parametrize("text", SPOILT.values(), ids=SPOILT)
def test_a_letter_that_somebody_has_spoilt_is_laid_aside(triggers: dict[str, Any], world: World, text: str):
    """No start under an id that is a guess."""
    given = {"steponceLetter": {"dataType": "String", "stringValue": text or " "}}
    triggers["queue"].handler(
        {"Records": [sqs_record(json.dumps(ORDER), messageAttributes=given)]}, Context()
    )
    assert ([], 1) == (world.sfn.names(), len(world.dead()))


TEXT = st.text(
    st.characters(codec="utf-8", exclude_characters="\ufffe\uffff", exclude_categories=["Cc", "Cs"])
)
VALUES = st.one_of(
    st.builds(lambda text: {"DataType": "String", "StringValue": text + "x"}, TEXT),
    st.builds(lambda data: {"DataType": "Binary", "BinaryValue": data + b"x"}, st.binary()),
    st.just({"DataType": "Number.int", "StringValue": "3"}),
)

SMALL = {"DataType": "String", "StringValue": "x"}
"""Attributes of this size are the ones that are folded, and not the large one beside them."""


@given(values=st.lists(VALUES, max_size=10), body=TEXT)
@example(values=[{"DataType": "String", "StringValue": '"\\' * 40_000}] * 10, body='"' * 50_000)
@example(values=[{"DataType": "Binary", "BinaryValue": b"\xff" * 85_000}] * 10, body="x")
@example(values=[{"DataType": "String", "StringValue": '"'}] * 9, body='"' * (QUEUE_TAKES - 100))
@example(values=[{"DataType": "String", "StringValue": '"\\' * 150_000}] + [SMALL] * 9, body='"' * 550_000)
@settings(max_examples=40)
def test_whatever_the_queue_takes_fits_into_a_letter_and_comes_back_whole(values: list[Any], body: str):
    """With ten attributes, near the limit of the queue, of characters that double."""
    attributes = {f"a{n}": value for n, value in enumerate(values)}
    body = body + "x"
    assert len(body.encode()) + sum(size_of(*one) for one in attributes.items()) <= QUEUE_TAKES
    came = received({"MessageBody": body, "MessageAttributes": attributes}, "first")
    world = World()
    reason = "InvalidPayload: " + "\x00\uffff" * 900

    DeadLetters(world, DEAD).give_up(
        original_of(SQSRecord(came)), reason, StartRequest("\x00é" * 900, {}, tries=4)
    )

    (letter,) = world.dead()
    assert see(SQSRecord(came)) == see(SQSRecord(received(letter, "anew")))


CHARACTERS = ["a", '"', "\\", "\n", "\x00", "\x7f", "é", "\ufffe", "\uffff", "😀", "\ue000"]


@given(unit=st.text(CHARACTERS, min_size=1, max_size=4), where=st.sampled_from(["payload", "id"]))
@example(unit="\uffff", where="payload")
@example(unit="\ufffe", where="id")
@settings(max_examples=12)
def test_what_was_admitted_can_be_sent_again_and_laid_aside(unit: str, where: str):
    """The largest request of each character; its message is read again, too."""
    largest = 196_608 - 600 if where == "payload" else 2_000  # bytes
    payload, request_id = {"text": ""}, "x"
    text = unit * (largest // len(canonical_json(unit).encode()))
    if where == "payload":
        payload["text"] = text
    else:
        request_id += text
    asked = StartRequest(request_id, payload, "key", times.from_text("2026-01-31T12:00:00.000Z"), 1)
    Envelope.make(name_of(request_id), payload, RULES, redelivery=asked.redelivery)
    for tries, box in ((9, "resent"), (1, "dead")):
        world = World()
        dead = DeadLetters(world, DEAD)
        Resender(world, QUEUE, dead, tries=tries, base_seconds=5, max_seconds=9).send_again(
            asked, "RetryLater", "\x00" * 2_000
        )
        (message,) = getattr(world, box)()
        check_message(message | {"QueueUrl": QUEUE})
        again = find_request(SQSRecord(received(message)), MESSAGE_PATHS, EVENT_PATHS)
        assert (request_id, payload, "key") == (again.request_id, again.payload, again.lock_token)


def test_the_largest_request_is_admitted_each_time_it_comes_again():
    """Its tries get more digits, and a rate limit adds a time."""

    def is_admitted(size: int, **redelivery: Any) -> bool:
        with suppress(PayloadTooLarge):
            given = {"requestId": "a", "tries": 0} | redelivery
            return bool(Envelope.make("a", {"text": "x" * size}, RULES, redelivery=given))
        return False

    largest = bisect_left(range(196_608), True, key=lambda size: not is_admitted(size)) - 1
    assert is_admitted(largest)
    assert 195_608 < largest
    for tries in (1, 9, 10, 999_999_999):
        assert is_admitted(largest, tries=tries, countAt="2026-01-31T12:00:00.000Z")
    assert is_admitted(largest, countAt="2026-01-31T12:00:00.000Z")


def test_a_large_notification_of_a_small_payload_is_read(triggers: dict[str, Any], world: World):
    """Every quote in it doubles, and the envelope comes on top."""
    payload = {"orderId": "1", "text": '"' * 90_000}
    body = notification(json.dumps(payload))
    assert len(body) > 262_144
    triggers["queue"].handler({"Records": [sqs_record(body)]}, Context())
    assert [payload] == [one["payload"] for one in world.inputs()]


@pytest.mark.parametrize("trigger", ["queue", "topic", "event", "stream"])
def test_what_is_too_large_is_refused_before_it_is_read(
    triggers: dict[str, Any], world: World, trigger: str, monkeypatch: pytest.MonkeyPatch
):
    """Neither JMESPath nor canonical JSON ever sees it; it is laid aside with its reason."""
    monkeypatch.setattr(RequestPaths, "find", lambda *_: pytest.fail("it was read"))
    large = {"orderId": "1", "text": "x" * MAX_READ_BYTES}
    bus = example_event("start_from_event") | {"detail": large}
    stream = example_event("start_from_stream")
    stream["Records"][0]["kinesis"]["data"] = base64.b64encode(json.dumps(large).encode()).decode()
    ways = {
        "queue": ("queue", {"Records": [sqs_record(json.dumps(large))]}),
        "topic": ("queue", {"Records": [sqs_record(notification(json.dumps(large)))]}),
        "event": ("event", bus),
        "stream": ("event", stream),
    }
    name, came = ways[trigger]
    triggers[name].handler(came, Context())
    (letter,) = world.dead()
    assert letter["MessageAttributes"]["steponceReason"]["StringValue"].startswith("PayloadTooLarge: ")


def test_a_letter_without_its_record_s_data_starts_nothing(world: World):
    """A large record's data stays in the stream. With a path that builds an object, the work ran without."""
    came = example_event("start_from_stream")
    came["Records"] = came["Records"][:1]
    came["Records"][0]["kinesis"]["data"] = base64.b64encode(b"a line of a log\n" * 45_000).decode()
    paths = {"EventPayloadPath": "{text: detail}"}
    with function("start_from_event", world, **paths) as module:
        module.handler(came, Context())
    (letter,) = world.dead()

    with function("start_from_queue", world, **paths) as queue:
        put_back(queue, letter)

    assert [] == world.inputs()
    assert "incomplete" in world.dead()[-1]["MessageAttributes"]["steponceReason"]["StringValue"]


@pytest.mark.parametrize("trigger", ["event", "stream"])
def test_a_letter_is_read_if_its_event_was(world: World, trigger: str):
    """Escapes or Base64 made it larger than what is read of a message."""
    large = {"orderId": "1", "text": "\uffff" * 110_000}
    came = example_event("start_from_event") | {"detail": large}
    if trigger == "stream":
        came = example_event("start_from_stream")
        data = json.dumps(large, ensure_ascii=False).encode()
        came["Records"][0]["kinesis"]["data"] = base64.b64encode(data).decode()
    small = {"EventPayloadPath": "{orderId: detail.orderId}"}
    with function("start_from_event", world, EventPayloadPath="detail.nothing") as module:
        module.handler(came, Context())
    (letter,) = world.dead()
    assert len(letter["MessageBody"].encode()) > MAX_READ_BYTES

    with function("start_from_queue", world, **small) as queue:
        put_back(queue, letter)

    assert [{"orderId": "1"}] == [one["payload"] for one in world.inputs()]


def test_a_letter_that_fits_nowhere_stays_where_it_is():
    """Its queue moves it to the dead letters by itself, whole, or Lambda to those of events."""
    world = World()
    came = Original(Letter("event", "x"), "x" * MAX_MESSAGE_BYTES)
    with pytest.raises(PayloadTooLarge):
        DeadLetters(world, DEAD).give_up(came, "why", None)
    assert ([], False) == (world.sent, fits(came.body, came.to_send("why")))


def test_what_the_queue_itself_has_given_up_keeps_its_id():
    """It has no letter's attributes yet; put back it gets them, with the id that its queue gave it."""
    attributes = {"customer": {"DataType": "String", "StringValue": "c"}}
    moved = original(json.dumps(ORDER), attributes, "queue", "first", "2026-01-31T12:00:00.000Z")
    message = {"MessageBody": moved.body, "MessageAttributes": moved.to_send()}
    again = see(SQSRecord(received(message, "anew")))
    assert ("first", "2026-01-31T12:00:00.000Z", {"customer": "c"}, ORDER) == (
        again["messageId"],
        again["sentAt"],
        again["attributes"],
        again["body"],
    )
    assert "steponceReason" not in message["MessageAttributes"]


def test_a_letter_of_many_attributes_has_them_in_the_same_order_again():
    """It folds the smallest ones, and a path may read all of them."""
    sent = {f"k{n}": {"dataType": "String", "stringValue": "v" * n} for n in range(1, 11)}
    came = SQSRecord(sqs_record(json.dumps(ORDER), "first", messageAttributes=sent))
    letter = {"MessageBody": came.body, "MessageAttributes": original_of(came).to_send("why")}
    again = SQSRecord(received(letter, "anew"))
    assert list(see(came)["attributes"].items()) == list(see(again)["attributes"].items())


def test_a_letter_put_back_keeps_what_sns_would_have_added():
    """Its sender gave it these attributes. SNS adds none to a letter that a trigger has written."""
    names = ("ErrorCode", "ErrorMessage", "RequestID")
    sent = {name: {"dataType": "String", "stringValue": name} for name in names}
    came = SQSRecord(sqs_record(json.dumps(ORDER), "first", messageAttributes=sent))
    message = {
        "MessageId": "m",
        "ReceiptHandle": "r",
        "Body": came.body,
        "MessageAttributes": original_of(came).to_send("why"),
        "Attributes": {"SentTimestamp": "1769860800000"},
    }
    _, attributes = Found.from_message(DeadLetterQueue("queue", DEAD, QUEUE), message).put_back()
    assert set(names) <= set(attributes)


@pytest.mark.parametrize("is_moved", [True, False])
def test_what_a_sender_gave_stays_with_a_message_that_sqs_has_moved(is_moved: bool):
    """SNS adds attributes of the same names to a notification that it could not deliver."""
    given = {
        name: {"DataType": "String", "StringValue": "x"}
        for name in ("ErrorCode", "ErrorMessage", "RequestID")
    }
    source = {"DeadLetterQueueSourceArn": "arn:aws:sqs:us-east-1:123456789012:requests"} if is_moved else {}
    message = {
        "MessageId": "m",
        "ReceiptHandle": "r",
        "Body": "{}",
        "MessageAttributes": given,
        "Attributes": {"SentTimestamp": "1769860800000", **source},
    }
    found = Found.from_message(DeadLetterQueue("queue", DEAD, QUEUE), message)
    _, attributes = found.put_back()
    assert (set(given) if is_moved else set()) == set(attributes) - {"steponceLetter"}
    assert ("ReceivedTooOften" if is_moved else "NotDelivered") == found.reason.partition(":")[0]


def test_the_end_of_a_long_reason_stays():
    """There it says whether the letter may be put back."""
    reason = f"The record {'x' * 2_000!r} cannot be read. {IF_NOT_ANSWERED}"
    told = Original(Letter("event", "x"), "{}").to_send(reason)["steponceReason"]["StringValue"]
    assert told.endswith(IF_NOT_ANSWERED)
    assert len(told) == 1_000


def test_an_event_s_letter_is_an_event():
    """Not a message that happens to hold one."""
    letter = {"steponceLetter": {"dataType": "String", "stringValue": '{"shape":"event"}'}}
    for body in ("no JSON", "[]", '{"orderId": "1"}'):
        with pytest.raises(InvalidRequest):
            find_request(SQSRecord(sqs_record(body, messageAttributes=letter)), MESSAGE_PATHS, EVENT_PATHS)


def test_a_letter_says_what_it_is_in_few_words():
    """Its attribute does not grow with what came."""
    text = Letter("message", "s" * 9_999, "é" * 9_999, 3, "m", "t").to_text()
    assert len(text.encode()) < 6_000
    assert sha256(text) == sha256(Letter.from_text(text).to_text())


@pytest.mark.parametrize("request_id", ["a" * 2_048, "é" * 1_024, "\x01" * 2_048], ids=ascii)
def test_a_long_request_id_is_whole(request_id: str):
    """Its beginning is another request's id, of which nobody has heard."""
    letter = Letter("event", "s3", request_id)
    assert request_id == Letter.from_text(letter.to_text()).request_id
    assert len(letter.to_text().encode()) < 16_384
