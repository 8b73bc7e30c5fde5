"""The doors for messages and events on a running stack: queues, the real functions, the real workflow."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from steponce.local import LocalStack
from steponce.request import name_of
from tests.conftest import TEMPLATE
from tests.engines import Parts
from tests.unit.doors_world import sqs_record
from tests.workflow.faults import Faults
from tests.workflow.scene import UNREACHABLE, VISA, Scene

EVENTS = Path(__file__).parents[2] / "events"
ODD = ' über/1 "é" \u2028\x7f\x01\ufffe 😀 '

needs_deliveries = pytest.mark.defect(engine="Step Functions Local", row="no-status-events")


def _doors(parts: Parts, name: str, **parameters: str) -> Iterator[Scene]:
    parameters |= {
        "QueueRequestIdPath": "attributes.requestId || body.orderId",
        "QueueLockTokenPath": "attributes.key || body.orderId",
        "ResendBaseSeconds": "1",
        "ResendMaxSeconds": "2",
    }
    faults = Faults()
    options = parts.options(name, {"lambda": faults.through})
    with LocalStack.from_template(TEMPLATE, name=name, parameters=parameters, **options) as stack:
        yield Scene(stack, faults)


@pytest.fixture(scope="module")
def doors(parts: Parts) -> Iterator[Scene]:
    """A stack that delivers: the request id is an attribute or in the body, and so is the key."""
    yield from _doors(parts, "doors", FifoQueue="yes")


@pytest.fixture(scope="module")
def hasty_doors(parts: Parts) -> Iterator[Scene]:
    """The same, where a message is sent again only twice."""
    yield from _doors(parts, "hasty", ResendTries="2")


def put(scene: Scene, payload: Mapping[str, Any] | str, queue: str = "RequestsQueueUrl", **more: Any) -> None:
    """Send a message; keywords that SendMessage does not know are attributes."""
    known = {name: more.pop(name) for name in ("MessageGroupId", "MessageDeduplicationId") if name in more}
    scene.stack.boto3("sqs").send_message(
        QueueUrl=scene.stack.outputs[queue],
        MessageBody=payload if isinstance(payload, str) else json.dumps(payload),
        MessageAttributes={k: {"DataType": "String", "StringValue": v} for k, v in more.items()},
        **known,
    )


def invoke(scene: Scene, function: str, event: Mapping[str, Any]) -> dict[str, Any]:
    answer = scene.stack.boto3("lambda").invoke(
        FunctionName=f"{scene.stack.name}-{function}", Payload=json.dumps(event)
    )
    assert "FunctionError" not in answer, scene.stack.logs(f"{scene.stack.name}-{function}")
    return dict(json.loads(answer["Payload"].read()))


def status_event(scene: Scene, execution_name: str, *, with_input: bool = True) -> dict[str, Any]:
    """What EventBridge says when an execution has failed."""
    execution = scene.closed(execution_name)
    detail = {name: execution[name] for name in ("executionArn", "stateMachineArn", "name", "status")}
    detail["inputDetails"] = {"included": with_input}
    detail["input"] = execution["input"] if with_input else None
    return {"source": "aws.states", "detail": detail}


def answered(scene: Scene, request_id: str, key: str) -> Any:
    """The receipt, once the last attempt of a request has ended well."""
    name = name_of(request_id)

    def receipt() -> Any:
        newest, _ = scene.client.machine.newest(name, 1)
        if newest is None or newest.status != "SUCCEEDED":
            return None
        return scene.client.status(request_id, lock_token=key)

    return scene.eventually(receipt)


def told(scene: Scene, request_id: str, name: str = "status") -> list[str]:
    """What the function behind the queue has written of a request."""
    text = scene.stack.logs(f"{scene.stack.name}-StartFromQueueFunction")
    lines = [json.loads(line) for line in text.split("\n") if '"message":"asked"' in line]
    return [line.get(name) for line in lines if line["request_id"] == request_id]


def fates(scene: Scene, request_id: str) -> list[str]:
    return told(scene, request_id, "fate")


def by_queue(scene: Scene, bodies: list[str]) -> None:
    entries = [{"Id": str(n), "MessageBody": body} for n, body in enumerate(bodies)]
    queue = scene.stack.outputs["RequestsQueueUrl"]
    scene.stack.boto3("sqs").send_message_batch(QueueUrl=queue, Entries=entries)


def by_topic(scene: Scene, bodies: list[str]) -> None:
    entries = [{"Id": str(n), "Message": body} for n, body in enumerate(bodies)]
    topic = scene.stack.outputs["RequestsTopicArn"]
    scene.stack.boto3("sns").publish_batch(TopicArn=topic, PublishBatchRequestEntries=entries)


def all_charges(scene: Scene) -> Counter[str]:
    """How often the card provider was called for each key."""
    pages = scene.stack.boto3("dynamodb").get_paginator("scan")
    found = pages.paginate(TableName=scene.stack.outputs["ChargesTable"], ConsistentRead=True)
    return Counter(item["lockToken"]["S"] for page in found for item in page["Items"])


def dead_letters(scene: Scene) -> list[dict[str, Any]]:
    """Take what has been laid aside so far."""
    sqs, url = scene.stack.boto3("sqs"), scene.stack.outputs["RequestsDeadLetterQueueUrl"]
    found: list[dict[str, Any]] = []
    while messages := sqs.receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
    ).get("Messages"):
        found += messages
        for message in messages:
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return found


@pytest.mark.timeout(300)
@pytest.mark.parametrize("requests", [40, pytest.param(200, marks=pytest.mark.full)])
def test_five_messages_of_each_of_many_requests_charge_each_once(doors: Scene, requests: int):
    """In random order, some by the queue, some by the topic, and some delivered again."""
    begun = doors.new_id("bulk")
    ids = [f"{begun}-{number}" for number in range(requests)]
    messages = ids * 5
    random.Random(4).shuffle(messages)
    bodies = [json.dumps(VISA | {"orderId": request_id}) for request_id in messages]

    def deliver(start: int) -> None:
        batch = bodies[start : start + 10]
        if start % 50 == 0:
            by_queue(doors, batch)
        elif start % 50 == 20:
            by_topic(doors, batch)
        else:
            records = [sqs_record(body, f"{start}-{n}") for n, body in enumerate(batch)]
            for _ in range(1 + (start % 50 == 10)):
                answer = invoke(doors, "StartFromQueueFunction", {"Records": records})
                assert {"batchItemFailures": []} == answer

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(deliver, range(0, len(bodies), 10)))

    doors.eventually(lambda: set(ids) <= set(all_charges(doors)))
    doors.eventually(lambda: _is_empty(doors))
    assert dict.fromkeys(ids, 1) == {one: times for one, times in all_charges(doors).items() if one in ids}
    assert sorted(ids) == doors.executions(begun)
    assert [] == dead_letters(doors)


@needs_deliveries
def test_a_request_that_can_be_done_only_later_is_done_later(doors: Scene):
    """Under its first id, however odd, and once."""
    request_id, key = ODD + doors.new_id("later"), doors.new_id("key")
    put(doors, UNREACHABLE | {"orderId": request_id}, key=key)

    receipt = answered(doors, request_id, key)

    assert ("COMPLETED", 1) == (receipt.status, len(doors.charges(key)))
    name = name_of(request_id)
    again = json.loads(doors.execution(f"{name}--2")["input"])["redelivery"]
    assert {"requestId": request_id, "tries": 1} == again
    assert [] == doors.executions(f"{name}--3")


@pytest.mark.parametrize("with_input", [True, False], ids=["input included", "input left out"])
def test_the_re_sender_brings_back_what_could_not_be_done(doors: Scene, with_input: bool):
    """Told of it twice, and late: it is charged once. The id may have any character."""
    request_id, key = ODD + doors.new_id("again"), doors.new_id("key")
    body = json.dumps(UNREACHABLE | {"orderId": request_id})
    record = sqs_record(body, messageAttributes={"key": {"dataType": "String", "stringValue": key}})
    invoke(doors, "StartFromQueueFunction", {"Records": [record]})
    event = status_event(doors, name_of(request_id), with_input=with_input)
    assert "RetryLater" == doors.execution(name_of(request_id))["error"]

    for _ in range(2):
        assert {"fate": "resent"} == invoke(doors, "ResendRequestFunction", event)

    assert "COMPLETED" == answered(doors, request_id, key).status
    assert {"fate": "left alone"} == invoke(doors, "ResendRequestFunction", event)
    doors.eventually(lambda: _is_empty(doors))
    assert 1 == len(doors.charges(key))


@needs_deliveries
def test_a_request_whose_key_is_held_is_answered_when_the_first_is_done(doors: Scene):
    """It comes back until then, and is answered from the first one's record; the work runs once."""
    first, second, key = doors.new_id("first"), doors.new_id("second"), doors.new_id("held")
    with doors.working(key):
        doors.client.start(first, VISA, lock_token=key)
        doors.eventually(lambda: doors.lock(key))
        put(doors, VISA, requestId=second, key=key)
        doors.eventually(lambda: "resent" in fates(doors, second))

    doors.eventually(lambda: "COMPLETED" in told(doors, second))
    assert ["started", *["resent"] * (len(fates(doors, second)) - 2), "replayed"] == fates(doors, second)
    receipt = doors.client.status(second, lock_token=key)
    assert ("COMPLETED", True) == (receipt.status, receipt.duplicate)
    assert doors.client.status(first, lock_token=key).result == receipt.result
    assert ([second], 1) == (doors.executions(second), len(doors.charges(key)))
    assert [] == dead_letters(doors)


@needs_deliveries
def test_a_request_that_comes_back_too_often_ends_among_the_dead_letters(hasty_doors: Scene):
    """With its id, and with what it ended with."""
    request_id, key = hasty_doors.new_id("tired"), hasty_doors.new_id("held")
    with hasty_doors.working(key):
        hasty_doors.client.start(hasty_doors.new_id("holder"), VISA, lock_token=key)
        hasty_doors.eventually(lambda: hasty_doors.lock(key))
        put(hasty_doors, VISA, requestId=request_id, key=key)
        (letter,) = hasty_doors.eventually(lambda: dead_letters(hasty_doors))

    told = {name: value["StringValue"] for name, value in letter["MessageAttributes"].items()}
    assert "AlreadyInProgress: sent again 2 times." == told["steponceReason"]
    assert json.dumps(request_id) == told["steponceRequestId"]
    assert VISA == json.loads(letter["Body"])


def test_poison_is_laid_aside_at_once(doors: Scene):
    """With the reason; what came with it is started."""
    good = doors.new_id("good")
    put(doors, "no JSON", requestId="poison")
    put(doors, VISA, requestId=good, key=good)

    (letter,) = doors.eventually(lambda: dead_letters(doors))
    assert "no JSON" == letter["Body"]
    assert letter["MessageAttributes"]["steponceReason"]["StringValue"].startswith("InvalidPayload: ")
    assert "COMPLETED" == answered(doors, good, good).status


def test_messages_of_a_fifo_queue_are_started(doors: Scene):
    """One after the other in their group."""
    ids = [doors.new_id("fifo") for _ in range(3)]
    for one in ids:
        put(
            doors,
            VISA,
            "RequestsFifoQueueUrl",
            requestId=one,
            key=one,
            MessageGroupId="g",
            MessageDeduplicationId=one,
        )
    assert ["COMPLETED"] * 3 == [answered(doors, one, one).status for one in ids]
    began = [doors.execution(one)["startDate"] for one in ids]
    assert sorted(began) == began


@pytest.mark.parametrize(
    ("example", "function", "request_id"),
    [
        ("start_from_queue", "StartFromQueueFunction", "059f36b4-87a3-44ab-83d2-661975830a7d"),
        ("start_from_fifo_queue", "StartFromQueueFunction", "0d1a2b3c-4e5f-4a6b-8c7d-9e0f1a2b3c4d"),
        ("start_from_topic", "StartFromQueueFunction", "95df01b4-ee98-5cb9-9903-4c221d41eb5e"),
        ("start_from_event", "StartFromEventFunction", "6a7e8feb-b491-4cf7-a9f1-bf3703467718"),
        (
            "start_from_schedule",
            "StartFromEventFunction",
            "steponce-StartSchedule-1A2B3C4D5E6F 2026-01-31T02:00:00Z",
        ),
        (
            "start_from_stream",
            "StartFromEventFunction",
            "shardId-000000000006:49590338271490256608559692538361571095921575989136588898",
        ),
    ],
)
def test_each_example_is_a_request(scene: Scene, example: str, function: str, request_id: str):
    """Invoked twice, it is charged once, under the id that its source gives it."""
    event = json.loads((EVENTS / f"{example}.json").read_text())
    invoke(scene, function, event)
    invoke(scene, function, event)
    receipt = scene.client.wait(request_id, timeout_seconds=100)
    assert "COMPLETED" == receipt.status
    requested_at = json.loads(scene.execution(name_of(request_id))["input"])["requestedAt"]
    assert requested_at.startswith("2026-01-31T")
    assert 1 == len(scene.charges(scene.key(name_of(request_id))))


def _is_empty(scene: Scene) -> bool:
    """Whether all messages have been dealt with."""
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    names.append("ApproximateNumberOfMessagesDelayed")
    told = scene.stack.boto3("sqs").get_queue_attributes(
        QueueUrl=scene.stack.outputs["RequestsQueueUrl"], AttributeNames=names
    )
    return not any(int(number) for number in told["Attributes"].values())
