"""The functions behind events and failed executions, with their real code."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steponce.errors import InvalidRequest, Unavailable
from steponce.request.names import name_of
from tests.unit.triggers.world import ORDER, Context, World, example_event, function, letter_of

WORLD = World()


@pytest.fixture(scope="module")
def trigger() -> Iterator[Any]:
    with function("start_from_event", WORLD) as module:
        yield module


@pytest.fixture(scope="module")
def resending() -> Iterator[Any]:
    with function("resend_request", WORLD) as module:
        yield module


@pytest.fixture(autouse=True)
def world() -> World:
    """A world in which nothing has happened."""
    return WORLD.clear()


def batch(name: str, **changed_ids: Any) -> dict[str, Any]:
    """The example's record several times, each with other ids."""
    (record,) = example_event(name)["Records"]
    records = []
    for changed in zip(*changed_ids.values(), strict=True):
        one = copy.deepcopy(record)
        for path, value in zip(changed_ids, changed, strict=True):
            *folders, last = path.split("__")
            place = one
            for folder in folders:
                place = place[folder]
            place[last] = value
        records.append(one)
    return {"Records": records}


@pytest.mark.parametrize(
    "name", ["start_from_event", "start_from_schedule", "start_from_bucket", "start_from_stream"]
)
def test_an_event_starts_one_request_however_often_it_comes(trigger: Any, world: World, name: str):
    """Under its own id, which the execution carries for the re-sender."""
    trigger.handler(example_event(name), Context())
    trigger.handler(example_event(name), Context())
    (started,) = world.inputs()
    assert 0 == started["redelivery"]["tries"]
    assert [name_of(started["redelivery"]["requestId"])] == world.sfn.names()
    assert [] == world.sent


def test_the_answer_says_what_became_of_an_event(trigger: Any):
    """Started, and then a duplicate."""
    request_id = example_event("start_from_event")["id"]
    outcome = {"requestId": request_id, "status": "RUNNING", "reason": None}
    first = trigger.handler(example_event("start_from_event"), Context())
    again = trigger.handler(example_event("start_from_event"), Context())
    assert {"outcomes": [outcome | {"disposition": "started", "replayed": False}]} == first
    assert {"outcomes": [outcome | {"disposition": "duplicate", "replayed": True}]} == again


def test_an_event_that_cannot_be_started_now_goes_into_the_queue(trigger: Any, world: World):
    """Lambda would try it for three minutes only; the queue has two weeks, and none of its tries is spent."""
    event = example_event("start_from_event")
    world.throttle(event["id"])
    (outcome,) = trigger.handler(event, Context())["outcomes"]
    assert ("resent", "Unavailable") == (outcome["disposition"], outcome["reason"])
    (message,) = world.resent()
    assert ORDER == json.loads(message["MessageBody"])
    attributes = {name: value["StringValue"] for name, value in message["MessageAttributes"].items()}
    assert (json.dumps(event["id"]), "0") == (attributes["steponceRequestId"], attributes["steponceTries"])
    assert [] == world.sfn.names()


def test_an_event_comes_back_while_the_queue_cannot_be_reached_either(trigger: Any, world: World):
    """Lambda tries it again."""
    world.throttle(example_event("start_from_event")["id"])
    world.queue_is_down = True
    with pytest.raises(Unavailable):
        trigger.handler(example_event("start_from_event"), Context())


def test_of_several_objects_all_are_tried_before_the_event_comes_back(trigger: Any, world: World):
    """The second time, only the one that failed is started."""
    event = batch("start_from_bucket", s3__object__sequencer=["1", "2", "3"])
    second = name_of("example-orders/2026/order é.json 096fKKXTRTtl3on89fVO.nfljtsv6qko 2")
    world.throttle(second)
    world.queue_is_down = True
    with pytest.raises(Unavailable):
        trigger.handler(event, Context())
    assert (2, False) == (len(world.sfn.executions), second in world.sfn.names())
    world.sfn.heal()
    dispositions = [one["disposition"] for one in trigger.handler(event, Context())["outcomes"]]
    assert ["duplicate", "started", "duplicate"] == dispositions


def test_of_a_stream_nothing_blocks_the_shard(trigger: Any, world: World):
    """Poison is laid aside, and what cannot be started now goes into the queue."""
    data = example_event("start_from_stream")["Records"][0]["kinesis"]["data"]
    event = batch("start_from_stream", eventID=["a", "b", "c"], kinesis__data=[data, data, "%"])
    world.throttle("b")
    assert {"batchItemFailures": []} == trigger.handler(event, Context())
    assert (["a"], 1, 1) == (world.sfn.names(), len(world.resent()), len(world.dead()))


def test_of_a_stream_only_what_failed_comes_back(trigger: Any, world: World):
    """By its sequence number, where the queue cannot be reached either."""
    event = batch("start_from_stream", eventID=["a", "b", "c"], kinesis__sequenceNumber=["1", "2", "3"])
    world.throttle("b")
    world.queue_is_down = True
    assert {"batchItemFailures": [{"itemIdentifier": "2"}]} == trigger.handler(event, Context())
    assert {"a", "c"} == set(world.sfn.names())


def test_poison_is_laid_aside_with_its_reason(trigger: Any, world: World):
    """As the event came; it does not come back."""
    event = example_event("start_from_event") | {"detail": ["no object"]}
    trigger.handler(event, Context())
    (letter,) = world.dead()
    assert event == json.loads(letter["MessageBody"])
    assert "InvalidPayload" in letter["MessageAttributes"]["steponceReason"]["StringValue"]
    assert {"shape": "event", "source": f"com.example.shop {event['id']}"} == letter_of(letter)


def test_a_stream_s_record_with_a_key_twice_is_laid_aside(trigger: Any, world: World):
    """As a message is. Nothing is started with one of two amounts."""
    event = example_event("start_from_stream")
    event["Records"][0]["kinesis"]["data"] = base64.b64encode(b'{"amount": 5, "amount": 900}').decode()
    assert {"batchItemFailures": []} == trigger.handler(event, Context())
    (letter,) = world.dead()
    reason = letter["MessageAttributes"]["steponceReason"]["StringValue"]
    assert "has the key 'amount' twice" in reason
    assert [] == world.sfn.names()


@pytest.mark.parametrize("detail", [{"text": "x" * 1_048_300}, {"text": "\ufffe" * 345_000}])
def test_an_event_that_no_letter_can_hold_is_laid_aside_without_its_content(
    trigger: Any, world: World, detail: Any
):
    """EventBridge takes 1 MB, and SQS wants room for the attributes. The letter says which event it was."""
    event = example_event("start_from_event") | {"detail": detail}
    trigger.handler(event, Context())
    (letter,) = world.dead()
    kept = json.loads(letter["MessageBody"])
    assert event | {"detail": None} == kept | {"detail": None, "resources": event["resources"]}
    assert "PayloadTooLarge" in letter["MessageAttributes"]["steponceReason"]["StringValue"]
    assert letter_of(letter)["source"].endswith(event["id"])


@pytest.mark.parametrize("record", [None, "text", 7, [ORDER]])
def test_a_record_that_is_no_object_is_refused_in_words(trigger: Any, world: World, record: Any):
    """Before a record beside it is started."""
    event = example_event("start_from_bucket")
    event["Records"].append(record)
    with pytest.raises(InvalidRequest, match=r"Record 2 .* is no JSON object"):
        trigger.handler(event, Context())
    assert [] == world.sfn.names()


@pytest.mark.parametrize("event", [[ORDER], "text", 7, None])
def test_an_event_that_is_no_object_is_refused_in_words(trigger: Any, event: Any):
    """A pipe sends a list of records. Whoever sent it learns what to send instead."""
    with pytest.raises(InvalidRequest, match=r"is no JSON object.*Pipes.*QueueRequestIdPath"):
        trigger.handler(event, Context())


def test_an_event_whose_key_another_one_holds_comes_back_by_the_queue(world: World):
    """If no execution carries it on, whose end would bring it back."""
    with function("start_from_event", world, EventLockTokenPath="detail.orderId") as trigger:
        request_id = example_event("start_from_event")["id"]
        trigger.client.start(request_id, ORDER, lock_token="1")
        world.sfn.close(request_id, "FAILED", "AlreadyInProgress", "")
        world.hold("1", "other", world.input_of(request_id)["payloadHash"])
        assert ["resent"] == [
            one["disposition"]
            for one in trigger.handler(example_event("start_from_event"), Context())["outcomes"]
        ]
        (message,) = world.resent()
        assert ORDER == json.loads(message["MessageBody"])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)
PLACES = {
    "start_from_event": ["id", "time", "source", "detail-type", "detail"],
    "start_from_schedule": ["id", "time", "resources", "detail"],
    "start_from_bucket": ["eventName", "eventTime", "s3", "eventSource"],
    "start_from_stream": ["eventID", "eventSource"],
}


@given(data=st.data(), name=st.sampled_from(sorted(PLACES)))
def test_whatever_an_event_lacks_it_is_started_with_an_id_or_laid_aside(trigger: Any, data: Any, name: str):
    """Nothing raises, and nothing is lost."""
    world = WORLD.clear()
    event = example_event(name)
    record = event["Records"][0] if "Records" in event else event
    for place in data.draw(st.lists(st.sampled_from(PLACES[name]), unique=True)):
        if data.draw(st.booleans()):
            del record[place]
        else:
            record[place] = data.draw(JSON)

    answer = trigger.handler(event, Context())

    assert 1 == len(world.sfn.executions) + len(world.dead())
    assert not answer.get("batchItemFailures")
    assert all(one["redelivery"]["requestId"].strip() for one in world.inputs())


def bad_end(**since: float) -> dict[str, Any]:
    """The report of an execution that ended RetryLater, by default just now."""
    event = example_event("resend_request")
    ended = datetime.now(UTC) - timedelta(**since)
    event["detail"]["stopDate"] = round(ended.timestamp() * 1000)
    return event


def test_a_failed_execution_s_message_is_sent_again(resending: Any, world: World):
    """Once for each time one hears of it: a message too many is a duplicate."""
    assert {"disposition": "resent"} == resending.handler(bad_end(), Context())
    assert {"disposition": "resent"} == resending.handler(bad_end(), Context())
    first, second = world.resent()
    first.pop("DelaySeconds"), second.pop("DelaySeconds")
    assert first == second


@pytest.mark.parametrize(
    ("since", "disposition"), [({"minutes": 15}, "resent"), ({"minutes": 17}, "dead-lettered")]
)
def test_a_late_report_may_need_a_person(resending: Any, since: dict[str, float], disposition: str):
    """The message may have come back, been answered, and the answer's record may be gone."""
    assert {"disposition": disposition} == resending.handler(bad_end(**since), Context())


def test_what_ended_with_an_answer_is_left_alone(resending: Any, world: World):
    """So is what somebody waits for."""
    event = bad_end()
    given_input = json.loads(event["detail"]["input"])
    world.hold(given_input["lockToken"], "order-1", given_input["payloadHash"])
    world.locks[given_input["lockToken"]]["status"] = {"S": "COMPLETED"}
    assert {"disposition": "left alone"} == resending.handler(event, Context())
    assert [] == world.sent


def test_after_the_last_try_the_message_is_laid_aside(resending: Any, world: World):
    """It is counted so, once. A redriven execution ends once more."""
    event = used_up()
    assert {"disposition": "dead-lettered"} == resending.handler(event, Context())
    assert {"disposition": "left alone"} == resending.handler(event, Context())
    assert ([], 1) == (world.resent(), len(world.dead()))
    event["detail"]["redriveCount"] = 1
    assert {"disposition": "dead-lettered"} == resending.handler(event, Context())


def test_a_letter_that_was_not_sent_is_sent_at_the_next_report(resending: Any, world: World):
    """The mark follows the letter. Marked first, it would be lost."""
    world.queue_is_down = True
    with pytest.raises(Unavailable):
        resending.handler(used_up(), Context())
    world.queue_is_down = False
    assert {"disposition": "dead-lettered"} == resending.handler(used_up(), Context())


def test_a_letter_that_cannot_be_marked_counts(resending: Any, world: World):
    """If the function failed, Lambda would call it again, and each call would write a letter."""
    world.table_is_full = True
    assert {"disposition": "dead-lettered"} == resending.handler(used_up(), Context())
    assert 1 == len(world.dead())


def used_up() -> dict[str, Any]:
    """The report of an execution whose message has no tries left."""
    event = bad_end()
    given_input = json.loads(event["detail"]["input"])
    given_input["redelivery"]["tries"] = 3
    event["detail"]["input"] = json.dumps(given_input)
    return event


def test_an_execution_whose_input_python_cannot_read_has_nothing_open(world: World):
    """Step Functions accepts such JSON. If the function failed, the event would be dead-lettered."""
    event = example_event("close_execution")
    event["detail"]["input"] = "[" * 100_000
    settings = {"WorkTimeoutSeconds": "60", "WhenOutcomeUnknown": "hold"}
    with function("close_execution", world, **settings) as closing:
        assert {"verdict": "nothing open"} == closing.handler(event, Context())


@pytest.mark.parametrize("field", ["requestId", "lockToken"])
def test_what_somebody_gives_in_place_of_a_name_is_not_logged(
    world: World, caplog: pytest.LogCaptureFixture, field: str
):
    """An order, for example. PrepareRequest has refused it, so it has no lock."""
    event = example_event("close_execution")
    given = {"requestId": "order-1", "lockToken": "acme/1"} | {field: {"card": "4111"}}
    event["detail"]["input"] = json.dumps({"payload": ORDER, **given})
    settings = {"WorkTimeoutSeconds": "60", "WhenOutcomeUnknown": "hold"}
    with function("close_execution", world, **settings) as closing:
        assert {"verdict": "nothing open"} == closing.handler(event, Context())
    told = [vars(line) for line in caplog.records if line.message == "closed"]
    assert (1, False) == (len(told), "4111" in str(told))
