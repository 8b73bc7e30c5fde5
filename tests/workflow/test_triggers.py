"""The triggers for messages and events on a running stack: queues, the real functions, the real workflow."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import random
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from botocore.exceptions import ClientError

from steponce.cli import commands
from steponce.local import LocalStack, write_facts
from steponce.local.delivery.destinations import invocation_record
from steponce.request.names import name_of
from steponce.request.newest import newest_under
from tests.conftest import TEMPLATE
from tests.engines import Parts
from tests.unit.triggers.world import FUNCTIONS, SETTINGS, Context, sqs_record
from tests.workflow.faults import Faults
from tests.workflow.relay import Answer, Relay, serve
from tests.workflow.scene import UNREACHABLE, VISA, Scene

EVENTS = Path(__file__).parents[2] / "events"
ODD = ' über/1 "é" \u2028\x7f\x01\ufffe 😀 '

THROTTLED = Answer(
    400,
    [("Content-Type", "application/x-amz-json-1.0")],
    json.dumps({"__type": "ThrottlingException", "message": "Rate exceeded"}).encode(),
)
QUOTA, BURST = 2, 8
CONFIRMED = VISA | {"confirm": True}

needs_deliveries = pytest.mark.defect(engine="Step Functions Local", row="no-status-events")


def _triggers(parts: Parts, name: str, **parameters: str) -> Iterator[Scene]:
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
def triggers(parts: Parts) -> Iterator[Scene]:
    """A stack that delivers: the request id is an attribute or in the body, and so is the key."""
    yield from _triggers(parts, "triggers", FifoQueue="yes")


@pytest.fixture(scope="module")
def hasty_triggers(parts: Parts) -> Iterator[Scene]:
    """The same, where a message is sent again only twice."""
    yield from _triggers(parts, "hasty", ResendTries="2")


@pytest.fixture
def bus(hasty_triggers: Scene, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The function behind events, in this process, for which Step Functions has a quota."""
    left = threading.Semaphore(QUOTA)

    class Quota(Relay):
        def answer(self, body: bytes) -> Answer:
            starts = self.headers.get("X-Amz-Target", "").endswith("StartExecution")
            if starts and not left.acquire(blocking=False):
                return THROTTLED
            return self.forward(endpoints["states"], body)

    endpoints, outputs = hasty_triggers.stack.endpoints, hasty_triggers.stack.outputs
    places = {
        "AWS_ENDPOINT_URL": endpoints["aws"],
        "AWS_ENDPOINT_URL_DYNAMODB": endpoints["dynamodb"],
        "AWS_ENDPOINT_URL_SFN": serve(Quota),
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
    }
    for name, value in (SETTINGS | dict(outputs) | places).items():
        monkeypatch.setenv(name, value)
    spec = importlib.util.spec_from_file_location("throttled_app", FUNCTIONS / "start_from_event" / "app.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
        newest, _ = newest_under(scene.client.machine, name, 1)
        if newest is None or newest.status != "SUCCEEDED":
            return None
        return scene.client.status(request_id, lock_token=key)

    return scene.eventually(receipt)


def told(scene: Scene, request_id: str, name: str = "status") -> list[str]:
    """What the function behind the queue has written of a request."""
    text = scene.stack.logs(f"{scene.stack.name}-Requests-StartFromQueueFunction")
    lines = [json.loads(line) for line in text.split("\n") if '"message":"message processed"' in line]
    return [line.get(name) for line in lines if line["requestId"] == request_id]


def dispositions(scene: Scene, request_id: str) -> list[str]:
    return told(scene, request_id, "disposition")


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


def operate(home: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    """What an operator's command answers in a pipe; in this process, since a start of another takes long."""
    answer = io.StringIO()
    with redirect_stdout(answer), mock.patch.dict(os.environ, {"STEPONCE_HOME": str(home)}):
        code = commands.run(arguments)
    return code, json.loads(answer.getvalue())


def letters(scene: Scene, home: Path, **like: Any) -> list[dict[str, Any]]:
    """What an operator sees of the letters that are like this; the program is asked once there are any."""
    queues = [scene.stack.outputs[name] for name in ("RequestsDeadLetterQueueUrl", "DeadEventsQueueUrl")]
    if not any(_counts(scene, queue) for queue in queues):
        return []
    _, told = operate(home, "letters", "list", "--local")
    return [one for one in told["letters"] if like.items() <= one.items()]


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
@pytest.mark.parametrize("requests", [6, pytest.param(200, marks=pytest.mark.full)])
def test_five_messages_of_each_of_many_requests_charge_each_once(triggers: Scene, requests: int):
    """In random order, some by the queue, some by the topic, and some delivered again."""
    begun = triggers.new_id("bulk")
    ids = [f"{begun}-{number}" for number in range(requests)]
    messages = ids * 5
    random.Random(4).shuffle(messages)
    bodies = [json.dumps(VISA | {"orderId": request_id}) for request_id in messages]

    def deliver(start: int) -> None:
        batch = bodies[start : start + 10]
        if start % 50 == 0:
            by_queue(triggers, batch)
        elif start % 50 == 20:
            by_topic(triggers, batch)
        else:
            records = [sqs_record(body, f"{start}-{n}") for n, body in enumerate(batch)]
            for _ in range(1 + (start % 50 == 10)):
                answer = invoke(triggers, "Requests-StartFromQueueFunction", {"Records": records})
                assert {"batchItemFailures": []} == answer

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(deliver, range(0, len(bodies), 10)))

    triggers.eventually(lambda: set(ids) <= set(all_charges(triggers)))
    triggers.eventually(lambda: _is_empty(triggers))
    assert dict.fromkeys(ids, 1) == {one: times for one, times in all_charges(triggers).items() if one in ids}
    assert sorted(ids) == triggers.executions(begun)
    assert [] == dead_letters(triggers)


@needs_deliveries
def test_a_request_that_can_be_done_only_later_is_done_later(triggers: Scene):
    """Under its first id, however odd, and once."""
    request_id, key = ODD + triggers.new_id("later"), triggers.new_id("key")
    put(triggers, UNREACHABLE | {"orderId": request_id}, key=key)

    receipt = answered(triggers, request_id, key)

    assert ("COMPLETED", 1) == (receipt.status, len(triggers.charges(key)))
    name = name_of(request_id)
    again = json.loads(triggers.execution(f"{name}--2")["input"])["redelivery"]
    assert {"requestId": request_id, "tries": 1} == again
    assert [] == triggers.executions(f"{name}--3")


@pytest.mark.parametrize("with_input", [True, False], ids=["input included", "input left out"])
def test_the_re_sender_brings_back_what_could_not_be_done(triggers: Scene, with_input: bool):
    """Told of it twice, and by the stack itself: it is charged once. The id may have any character."""
    request_id, key = ODD + triggers.new_id("again"), triggers.new_id("key")
    body = json.dumps(UNREACHABLE | {"orderId": request_id})
    record = sqs_record(body, messageAttributes={"key": {"dataType": "String", "stringValue": key}})
    invoke(triggers, "Requests-StartFromQueueFunction", {"Records": [record]})
    event = status_event(triggers, name_of(request_id), with_input=with_input)
    assert "RetryLater" == triggers.execution(name_of(request_id))["error"]

    for _ in range(2):  # by then the message that the stack sent may have been answered
        assert invoke(triggers, "Requests-ResendRequestFunction", event)["disposition"] in (
            "resent",
            "left alone",
        )

    assert "COMPLETED" == answered(triggers, request_id, key).status
    assert {"disposition": "left alone"} == invoke(triggers, "Requests-ResendRequestFunction", event)
    triggers.eventually(lambda: _is_empty(triggers))
    assert 1 == len(triggers.charges(key))


@needs_deliveries
def test_a_request_whose_key_is_held_is_answered_when_the_first_is_done(triggers: Scene):
    """It comes back until then, and is answered from the first one's record; the work runs once."""
    first, second, key = triggers.new_id("first"), triggers.new_id("second"), triggers.new_id("held")
    with triggers.working(key):
        triggers.client.start(first, VISA, lock_token=key)
        triggers.eventually(lambda: triggers.lock(key))
        put(triggers, VISA, requestId=second, key=key)
        triggers.eventually(lambda: "resent" in dispositions(triggers, second))

    triggers.eventually(lambda: "COMPLETED" in told(triggers, second))
    assert ["started", *["resent"] * (len(dispositions(triggers, second)) - 2), "replayed"] == dispositions(
        triggers, second
    )
    receipt = triggers.client.status(second, lock_token=key)
    assert ("COMPLETED", True) == (receipt.status, receipt.duplicate)
    assert triggers.client.status(first, lock_token=key).result == receipt.result
    assert ([second], 1) == (triggers.executions(second), len(triggers.charges(key)))
    assert [] == dead_letters(triggers)


@needs_deliveries
@pytest.mark.timeout(300)
def test_a_request_that_comes_back_too_often_ends_among_the_dead_letters(
    hasty_triggers: Scene, tmp_path: Path
):
    """With its id, and with what it ended with; put back while the key is still held, it is not lost."""
    request_id, key = hasty_triggers.new_id("tired"), hasty_triggers.new_id("held")
    holder = hasty_triggers.new_id("holder")
    hasty_triggers.client.start(holder, CONFIRMED, lock_token=key)
    hasty_triggers.eventually(lambda: hasty_triggers.lock(key))
    write_facts(hasty_triggers.stack.facts(), tmp_path)

    put(hasty_triggers, CONFIRMED, requestId=request_id, key=key)

    (letter,) = hasty_triggers.eventually(lambda: letters(hasty_triggers, tmp_path, requestId=request_id))
    assert "AlreadyInProgress: resent 2 times." == letter["reason"]
    assert ("request", 2) == (letter["kind"], letter["tries"])
    seen = len(dispositions(hasty_triggers, request_id))

    code, told = operate(tmp_path, "letters", "redrive", letter["id"], "--local")

    assert (0, [letter["id"]]) == (code, [one["id"] for one in told["letters"]])
    hasty_triggers.eventually(lambda: dispositions(hasty_triggers, request_id)[seen:])
    assert "resent" == dispositions(hasty_triggers, request_id)[seen]
    (again,) = hasty_triggers.eventually(lambda: letters(hasty_triggers, tmp_path, requestId=request_id))
    shown = operate(tmp_path, "letters", "show", again["id"], "--local")[1]
    assert CONFIRMED == json.loads(shown["body"])
    hasty_triggers.stop(holder)


@needs_deliveries
@pytest.mark.timeout(300)
def test_a_message_whose_finished_key_has_another_payload_is_laid_aside(
    hasty_triggers: Scene, tmp_path: Path
):
    """Its own id is new, so only its execution finds out; the letter says why, and nothing is charged."""
    first, second = hasty_triggers.new_id("first"), hasty_triggers.new_id("other")
    key = hasty_triggers.new_id("key")
    write_facts(hasty_triggers.stack.facts(), tmp_path)
    assert "COMPLETED" == hasty_triggers.run(first, VISA, lock_token=key).status

    put(hasty_triggers, VISA | {"amount": 700}, requestId=second, key=key)

    (letter,) = hasty_triggers.eventually(lambda: letters(hasty_triggers, tmp_path, requestId=second))
    assert f"PayloadMismatch: The lock token {key!r} was used with another payload." == letter["reason"]
    assert 1 == len(hasty_triggers.charges(key))


@needs_deliveries
@pytest.mark.timeout(300)
def test_what_lambda_gives_up_can_start_nothing(hasty_triggers: Scene, tmp_path: Path):
    """Its record lies in a queue of its own; the command says what to do, and the trigger knows it, too."""
    write_facts(hasty_triggers.stack.facts(), tmp_path)
    sqs, outputs = hasty_triggers.stack.boto3("sqs"), hasty_triggers.stack.outputs
    arn = "arn:aws:lambda:us-east-1:123456789012:function:hasty-Requests-StartFromEventFunction"
    record = invocation_record(arn, {"id": "1", "detail": VISA}, {"errorType": "Runtime.ExitError"})
    sqs.send_message(QueueUrl=outputs["DeadEventsQueueUrl"], MessageBody=json.dumps(record))

    (letter,) = letters(hasty_triggers, tmp_path, queue="events")
    code, told = operate(tmp_path, "letters", "redrive", letter["id"], "--local")
    assert (3, "Refused") == (code, told["error"]["type"])
    assert f"aws lambda invoke --function-name {arn} " in told["error"]["next"][0]

    put(hasty_triggers, json.dumps(record), requestId="moved by hand")
    (laid,) = hasty_triggers.eventually(
        lambda: letters(hasty_triggers, tmp_path, queue="queue", requestId=None)
    )
    assert "InvalidRequest: This is no request" in laid["reason"]
    assert [] == hasty_triggers.executions("moved")


def test_poison_is_laid_aside_at_once(triggers: Scene):
    """With the reason; what came with it is started."""
    good = triggers.new_id("good")
    put(triggers, "no JSON", requestId="poison")
    put(triggers, VISA, requestId=good, key=good)

    (letter,) = triggers.eventually(lambda: dead_letters(triggers))
    assert "no JSON" == letter["Body"]
    assert letter["MessageAttributes"]["steponceReason"]["StringValue"].startswith("InvalidPayload: ")
    assert "COMPLETED" == answered(triggers, good, good).status


def test_a_large_order_that_doubles_in_a_notification_is_started(triggers: Scene):
    """SNS takes it, so the queue behind has to."""
    order = triggers.new_id("large")
    text = json.dumps(VISA | {"orderId": order, "text": '"' * 80_000})
    triggers.stack.boto3("sns").publish(TopicArn=triggers.stack.outputs["RequestsTopicArn"], Message=text)
    assert "COMPLETED" == answered(triggers, order, order).status


def test_a_producer_without_a_deduplication_id_hears_so(triggers: Scene):
    """A hash of the body would drop an order that differs in its attributes only."""
    with pytest.raises(ClientError, match="ContentBasedDeduplication"):
        put(triggers, VISA, "RequestsFifoQueueUrl", requestId="a", MessageGroupId="g")


def test_messages_of_a_fifo_queue_are_started(triggers: Scene):
    """One after the other in their group."""
    ids = [triggers.new_id("fifo") for _ in range(3)]
    for one in ids:
        put(
            triggers,
            VISA,
            "RequestsFifoQueueUrl",
            requestId=one,
            key=one,
            MessageGroupId="g",
            MessageDeduplicationId=one,
        )
    assert ["COMPLETED"] * 3 == [answered(triggers, one, one).status for one in ids]
    began = [triggers.execution(one)["startDate"] for one in ids]
    assert sorted(began) == began


@pytest.mark.timeout(300)
def test_events_above_the_quota_are_all_started(bus: Any, hasty_triggers: Scene):
    """None is lost, none is laid aside, and each is charged once."""
    event = json.loads((EVENTS / "start_from_event.json").read_text())
    ids = [hasty_triggers.new_id("burst") for _ in range(BURST)]
    events = [event | {"id": one, "detail": VISA | {"orderId": one}} for one in ids]
    with ThreadPoolExecutor(BURST) as threads:
        answers = list(threads.map(lambda event: bus.handler(event, Context()), events))
    dispositions = sorted(answer["outcomes"][0]["disposition"] for answer in answers)
    assert ["resent"] * (BURST - QUOTA) + ["started"] * QUOTA == dispositions
    hasty_triggers.eventually(lambda: set(ids) <= set(hasty_triggers.executions("burst-")))
    done = [hasty_triggers.client.wait(one) for one in ids]
    assert {"COMPLETED"} == {one.status for one in done}
    assert [1] * BURST == [len(hasty_triggers.charges(one.lock_token)) for one in done]
    assert [] == [one for one in dead_letters(hasty_triggers) if "burst-" in str(one)]


@pytest.mark.parametrize(
    ("example", "function", "request_id"),
    [
        ("start_from_queue", "Requests-StartFromQueueFunction", "059f36b4-87a3-44ab-83d2-661975830a7d"),
        ("start_from_fifo_queue", "Requests-StartFromQueueFunction", "0d1a2b3c-4e5f-4a6b-8c7d-9e0f1a2b3c4d"),
        ("start_from_topic", "Requests-StartFromQueueFunction", "95df01b4-ee98-5cb9-9903-4c221d41eb5e"),
        ("start_from_event", "Requests-StartFromEventFunction", "6a7e8feb-b491-4cf7-a9f1-bf3703467718"),
        (
            "start_from_schedule",
            "Requests-StartFromEventFunction",
            "steponce-StartSchedule-1A2B3C4D5E6F 2026-01-31T02:00:00Z",
        ),
        (
            "start_from_stream",
            "Requests-StartFromEventFunction",
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
    return not _counts(scene, scene.stack.outputs["RequestsQueueUrl"])


def _counts(scene: Scene, queue: str) -> int:
    """How many messages a queue has, seen or not."""
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    names.append("ApproximateNumberOfMessagesDelayed")
    told = scene.stack.boto3("sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=names)
    return sum(int(number) for number in told["Attributes"].values())
