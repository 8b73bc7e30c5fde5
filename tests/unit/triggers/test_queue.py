"""
The function behind the queue, with its real code.

The invariant: every message of a batch is started or known already, sent again, laid aside with its reason,
or among the batch item failures. Nothing starts without an id, and nothing starts twice.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steponce.aws import times
from steponce.errors import InvalidRequestId
from steponce.request.canonical import canonical_json, sha256
from steponce.request.names import name_of
from steponce.triggers.ended import Unanswered
from steponce.triggers.start_request import StartRequest
from steponce.triggers.written_letters import end_of
from tests.rules import documents
from tests.unit.aws.pace_clock import PaceClock
from tests.unit.triggers.world import (
    ORDER,
    Context,
    World,
    function,
    letter_of,
    notification,
    received,
    sqs_record,
)

TEXT = json.dumps(ORDER)
HASH = sha256(canonical_json(ORDER))
WORLD = World()


@pytest.fixture(scope="module")
def trigger() -> Iterator[Any]:
    """The default paths: the id is the message's."""
    with function("start_from_queue", WORLD) as module:
        yield module


@pytest.fixture(scope="module")
def keyed_trigger() -> Iterator[Any]:
    """The id and the lock token are in the body."""
    paths = {"QueueRequestIdPath": "body.id", "QueueLockTokenPath": "body.key"}
    with function("start_from_queue", WORLD, **paths, QueuePayloadPath="body.order") as module:
        yield module


@pytest.fixture(autouse=True)
def world() -> World:
    """A world in which nothing has happened."""
    return WORLD.clear()


def failures(module: Any, *records: dict[str, Any]) -> list[str]:
    """Send a batch; the ids of the messages that come back."""
    answer = module.handler({"Records": list(records)}, Context())
    return sorted(one["itemIdentifier"] for one in answer["batchItemFailures"])


def keyed(request_id: Any, key: Any, message_id: str = "m-1") -> dict[str, Any]:
    return sqs_record(json.dumps({"id": request_id, "key": key, "order": ORDER}), message_id)


def counted(printed: str) -> dict[str, float]:
    """The sums of the metrics that were written to the log."""
    (line,) = [line for line in printed.splitlines() if '"_aws"' in line]
    written = json.loads(line)
    return {name: sum(values) for name, values in written.items() if isinstance(values, list)}


def test_a_batch_of_ten_ends_as_it_should(trigger: Any, world: World, capsys: pytest.CaptureFixture[str]):
    """Three duplicates, one poison and one throttled; the other five start, and only one comes back."""
    failures(trigger, sqs_record(TEXT, "new-1"))
    capsys.readouterr()
    world.throttle("throttled")
    batch = [sqs_record(TEXT, f"new-{n}") for n in (1, 1, 1, 2, 3, 4, 5, 6)]
    batch += [sqs_record("no JSON", "poison"), sqs_record(TEXT, "throttled")]

    assert ["throttled"] == failures(trigger, *batch)

    assert {f"new-{n}" for n in range(1, 7)} == set(world.sfn.names())
    (letter,) = world.dead()
    reason = letter["MessageAttributes"]["steponceReason"]["StringValue"]
    assert ("no JSON", True) == (letter["MessageBody"], reason.startswith("InvalidPayload: "))
    told = {"Started": 5, "Duplicates": 3, "Replays": 0, "Resent": 0, "DeadLettered": 1}
    assert told == counted(capsys.readouterr().out)


def test_each_outcome_is_told_with_id_status_and_whether_it_was_there(
    trigger: Any, caplog: pytest.LogCaptureFixture
):
    """One line for each message, without what is in it."""
    failures(trigger, sqs_record(TEXT, "twice"))
    failures(trigger, sqs_record(TEXT, "twice"))
    failures(trigger, sqs_record("tok_visa", "poison"))
    lines = [vars(line) for line in caplog.records]
    told = [
        (line["disposition"], line["requestId"], line["status"], line["replayed"], line["reason"])
        for line in lines
    ]
    assert [
        ("started", "twice", "RUNNING", False, None),
        ("duplicate", "twice", "RUNNING", True, None),
        ("dead-lettered", None, None, False, "InvalidPayload"),
    ] == told
    assert "tok_visa" not in str(lines)


@pytest.mark.parametrize("request_id", ["\ud800", "x" * 190_000])
def test_text_that_cannot_be_an_id_is_not_logged(
    keyed_trigger: Any, caplog: pytest.LogCaptureFixture, request_id: str
):
    """A line with half a character cannot be written, and a payload in the wrong place would fill the log."""
    failures(keyed_trigger, keyed(request_id, "k"))
    (line,) = [vars(line) for line in caplog.records]
    assert ("dead-lettered", None, "InvalidRequestId") == (
        line["disposition"],
        line["requestId"],
        line["reason"],
    )


def test_the_execution_knows_whom_to_send_again(trigger: Any, world: World):
    """And when it was asked, by the message's own time."""
    failures(trigger, sqs_record(TEXT, "an id"))
    failures(trigger, sqs_record(notification(TEXT), "another"))
    told = [(one["redelivery"], one["requestedAt"], one["payload"]) for one in world.inputs()]
    noon = "2026-01-31T12:00:00.000Z"
    assert [
        ({"requestId": "an id", "tries": 0}, noon, ORDER),
        ({"requestId": "sns-1", "tries": 0}, noon, ORDER),
    ] == told


def test_starts_run_side_by_side(trigger: Any, world: World):
    """A batch takes as long as its slowest start, not as all of them."""
    three = threading.Barrier(3)

    def wait_for_others(operation: str, about: str) -> None:
        if operation == "start_execution" and int(about[-1]) < 3:
            three.wait(timeout=30)

    world.sfn.before_call = wait_for_others
    assert [] == failures(trigger, *[sqs_record(TEXT, f"m-{n}") for n in range(10)])
    assert not three.broken


def test_a_finished_request_is_answered_by_its_record(trigger: Any, world: World):
    """Acknowledged, whether it ended well or not; nothing is sent anywhere."""
    failures(trigger, sqs_record(TEXT, "done"))
    world.hold("steponce-run-once/done", "done", HASH)
    for status in ("COMPLETED", "FAILED"):
        world.locks["steponce-run-once/done"]["status"] = {"S": status}
        assert [] == failures(trigger, sqs_record(TEXT, "done"))
    assert ([], 1) == (world.sent, len(world.sfn.executions))


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (sqs_record("no JSON"), "InvalidPayload"),
        (sqs_record(json.dumps({"text": "x" * 200_000})), "PayloadTooLarge"),
        (sqs_record('{"number": NaN}'), "InvalidPayload"),
        (sqs_record(TEXT, "\ud800"), "InvalidRequestId"),
    ],
)
def test_poison_goes_to_the_dead_letters_with_its_reason(
    trigger: Any, world: World, record: dict[str, Any], reason: str
):
    """Not round and round."""
    assert [] == failures(trigger, record)
    (letter,) = world.dead()
    assert record["body"] == letter["MessageBody"]
    assert letter["MessageAttributes"]["steponceReason"]["StringValue"].startswith(f"{reason}: ")
    assert [] == world.sfn.names()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ('{"amount": 5, "amount": 900}', "has the key 'amount' twice"),
        ('{"order": [{"amount": 5, "amount": 5}]}', "has the key 'amount' twice"),
        ('{"a":' * 20_000 + "1" + "}" * 20_000, "nested too deeply"),
        ('{"a": ' + "9" * 5_000 + "}", "a number with thousands of digits"),
    ],
)
@pytest.mark.parametrize("wrap", [str, notification])
def test_a_body_that_the_http_api_refuses_is_refused_here_too(
    trigger: Any, world: World, wrap: Any, body: str, reason: str
):
    """One of two amounts would be charged, and nobody would hear of the other."""
    assert [] == failures(trigger, sqs_record(wrap(body)))
    (letter,) = world.dead()
    assert reason in letter["MessageAttributes"]["steponceReason"]["StringValue"]
    assert [] == world.sfn.names()


def test_another_payload_under_an_id_is_poison(trigger: Any, world: World):
    """It would never be started, however often it came."""
    failures(trigger, sqs_record(TEXT, "taken"))
    world.hold("steponce-run-once/taken", "taken", HASH)
    assert [] == failures(trigger, sqs_record('{"orderId": "2"}', "taken"))
    (letter,) = world.dead()
    assert "PayloadMismatch" in letter["MessageAttributes"]["steponceReason"]["StringValue"]
    assert "taken" == letter_of(letter)["requestId"]


def test_a_message_whose_record_is_damaged_is_laid_aside(trigger: Any, world: World):
    """It would come back a hundred times, and nobody would hear why."""
    failures(trigger, sqs_record(TEXT, "taken"))
    world.hold("steponce-run-once/taken", "taken", HASH)
    world.locks["steponce-run-once/taken"]["attempt"] = {"N": "1.5"}
    assert [] == failures(trigger, sqs_record(TEXT, "taken"))
    (letter,) = world.dead()
    assert "RecordUnreadable" in letter["MessageAttributes"]["steponceReason"]["StringValue"]


def test_poison_comes_back_while_the_dead_letters_cannot_be_reached(trigger: Any, world: World):
    """Nothing is lost."""
    world.queue_is_down = True
    assert ["poison"] == failures(trigger, sqs_record("no JSON", "poison"), sqs_record(TEXT, "good"))
    assert ["good"] == world.sfn.names()


def test_a_batch_that_fails_whole_comes_back_whole(trigger: Any, world: World):
    """As an answer, not as an error: what else is in flight goes on."""
    world.throttle("a", "b")
    assert ["a", "b"] == failures(trigger, sqs_record(TEXT, "a"), sqs_record(TEXT, "b"))


def test_what_cannot_be_started_in_time_comes_back(world: World):
    """Rather than let the function run into its time-out, with all that is in the batch."""
    with function("start_from_queue", world, StartsPerSecond="0.01", QueueConcurrency="1") as slow:
        assert 5 == len(failures(slow, *[sqs_record(TEXT, f"m-{n}") for n in range(15)]))
    assert (10, []) == (world.sfn.calls["start_execution"], world.sent)


def test_in_a_fifo_queue_a_group_stops_at_its_first_failure(trigger: Any, world: World):
    """Other groups go on; the order within each is kept."""
    world.throttle("b2")
    batch = [
        sqs_record(TEXT, f"{group}{n}", "requests.fifo", attributes={"MessageGroupId": group})
        for n in (1, 2, 3)
        for group in "ab"
    ]
    assert ["b2", "b3"] == failures(trigger, *batch)
    assert ["a1", "b1", "a2", "a3"] == world.sfn.names()


def test_poison_does_not_stop_a_fifo_group(trigger: Any, world: World):
    """It is laid aside, and the next one's turn comes."""
    attributes = {"MessageGroupId": "g"}
    batch = [
        sqs_record("no JSON", "a", "requests.fifo", attributes=attributes),
        sqs_record(TEXT, "b", "requests.fifo", attributes=attributes),
    ]
    assert [] == failures(trigger, *batch)
    assert (1, ["b"]) == (len(world.dead()), world.sfn.names())


def test_a_whole_fifo_batch_may_come_back(trigger: Any, world: World):
    """As an answer as well."""
    world.throttle("a")
    record = sqs_record(TEXT, "a", "requests.fifo", attributes={"MessageGroupId": "g"})
    assert ["a"] == failures(trigger, record)


def test_a_request_whose_key_another_one_holds_comes_back_later(keyed_trigger: Any, world: World):
    """Sent again with its own id and one try more, as long as no execution carries this message on."""
    failures(keyed_trigger, keyed("mine", "key"))
    world.sfn.close("mine", "FAILED", "AlreadyInProgress", "")
    world.hold("key", "other", HASH)
    world.sfn.put("other", input=json.dumps({"callId": "0" * 32}))
    asked_again = {"requestId": "mine", "tries": 0}
    assert asked_again == world.input_of("mine")["redelivery"]

    assert [] == failures(keyed_trigger, _sent_again("mine", "key", 1))

    (message,) = world.resent()
    attributes = {name: value["StringValue"] for name, value in message["MessageAttributes"].items()}
    assert ('"mine"', '"key"', "2") == (
        attributes["steponceRequestId"],
        attributes["steponceLockToken"],
        attributes["steponceTries"],
    )
    assert [] == failures(keyed_trigger, received(message))
    assert "3" == world.resent()[1]["MessageAttributes"]["steponceTries"]["StringValue"]
    assert [] == failures(keyed_trigger, received(world.resent()[1]))
    assert 1 == len(world.dead())


@pytest.mark.parametrize("other", [{"lockToken": "other key"}, {"payload": {}, "payloadHash": "other"}])
def test_a_request_comes_back_though_its_id_runs_for_another_message(
    keyed_trigger: Any, world: World, other: dict[str, Any]
):
    """Two messages have one id. The running execution brings back its own message only."""
    failures(keyed_trigger, keyed("mine", "key"))
    world.sfn.close("mine", "FAILED", "AlreadyInProgress", "")
    world.sfn.put("mine--2", input=json.dumps(world.input_of("mine") | other))
    world.hold("key", "other", HASH)

    assert [] == failures(keyed_trigger, keyed("mine", "key"))

    assert 1 == len(world.resent())


@pytest.mark.parametrize("status", ["COMPLETED", "FAILED"])
def test_a_request_that_another_one_answers_does_not_come_back(keyed_trigger: Any, world: World, status: str):
    """The other one is finished, so there is an answer."""
    failures(keyed_trigger, keyed("mine", "key"))
    world.sfn.close("mine", "FAILED", "AlreadyInProgress", "")
    world.hold("key", "other", HASH)
    world.locks["key"]["status"] = {"S": status}
    assert [] == failures(keyed_trigger, _sent_again("mine", "key", 1))
    assert [] == world.sent


@pytest.mark.parametrize("attempt", [1, 2])
def test_a_request_that_runs_itself_does_not_come_back(keyed_trigger: Any, world: World, attempt: int):
    """Whichever of its attempts holds the lock."""
    failures(keyed_trigger, keyed("mine", "key"))
    world.hold("key", "mine", HASH, attempt)
    assert [] == failures(keyed_trigger, _sent_again("mine", "key", 1))
    assert [] == world.sent


def test_a_message_delivered_twice_does_not_become_two(keyed_trigger: Any, world: World):
    """Its open execution carries it on: how that ends brings it back."""
    failures(keyed_trigger, keyed("mine", "key"))
    world.hold("key", "other", HASH)
    assert [] == failures(keyed_trigger, keyed("mine", "key"))
    assert [] == world.sent


@pytest.mark.parametrize("tries", [0, 3])
def test_a_letter_put_back_is_not_dropped_for_an_execution_that_is_over(
    keyed_trigger: Any, world: World, tries: int
):
    """That one's message was laid aside; while another request holds the key, this one has to come back."""
    failures(keyed_trigger, _sent_again("mine", "key", tries))
    world.sfn.close("mine", "FAILED", "AlreadyInProgress", "")
    world.hold("key", "other", HASH)
    world.sfn.put("other", input=json.dumps({"callId": "0" * 32}))

    assert [] == failures(keyed_trigger, _sent_again("mine", "key", 0))

    assert ["1"] == [one["MessageAttributes"]["steponceTries"]["StringValue"] for one in world.resent()]


def _letter_of_an_end(trigger: Any, world: World, letters: Any) -> Any:
    """The letter of an end of `mine`, which DescribeExecution still shows as open."""
    failures(trigger, _sent_again("mine", "key", 3))
    asked, call_id = StartRequest("mine", json.loads(TEXT), "key"), world.inputs()[0]["callId"]
    end = end_of(world.sfn.arn("mine"), call_id, 0)
    ended = Unanswered(replace(asked, tries=99), "RetryLater", world.sfn.arn("mine"), end)
    ended.bring_back(trigger.starter._resender, letters)
    (letter,) = world.dead()
    world.sent.clear()
    return letter


def test_a_letter_put_back_at_once_is_not_dropped_for_the_execution_that_has_written_it(
    keyed_trigger: Any, world: World
):
    """Nor is one that somebody copies, without what the letter says of itself. The mark says it then."""
    letter = _letter_of_an_end(keyed_trigger, world, keyed_trigger.letters)
    for name in ("steponceLetter", "steponceLetterOf"):
        del letter["MessageAttributes"][name]

    assert [] == failures(keyed_trigger, received(letter))
    (resent,) = world.resent()
    assert [] == failures(keyed_trigger, received(resent))  # it still looks open

    assert ["1", "2"] == [one["MessageAttributes"]["steponceTries"]["StringValue"] for one in world.resent()]


class Unmarked:
    """No letter is marked yet."""

    def has(self, _end: str) -> bool:
        return False

    def add(self, _end: str) -> None:
        """It takes long."""


def test_a_letter_put_back_before_its_mark_is_not_dropped(keyed_trigger: Any, world: World):
    """A queue's redrive may be under way when the letter is sent. The mark follows the letter."""
    letter = _letter_of_an_end(keyed_trigger, world, Unmarked())
    assert [] == failures(keyed_trigger, received(letter))
    (resent,) = world.resent()
    assert [] == failures(keyed_trigger, received(resent))  # it still looks open

    assert ["1", "2"] == [one["MessageAttributes"]["steponceTries"]["StringValue"] for one in world.resent()]


def test_a_letter_of_an_earlier_end_is_carried_on_by_an_execution_that_was_redriven(
    keyed_trigger: Any, world: World
):
    """It ends once more, and brings the message back then if there is no answer."""
    letter = _letter_of_an_end(keyed_trigger, world, Unmarked())
    world.sfn.executions[world.sfn.arn("mine")]["redriveCount"] = 1

    assert [] == failures(keyed_trigger, received(letter))
    assert [] == world.sent


def test_a_message_that_nobody_carries_on_is_sent_again(keyed_trigger: Any, world: World):
    """The execution was started by somebody who waits for its answer, but not for this message's."""
    keyed_trigger.client.start("mine", ORDER, lock_token="key")
    world.sfn.close("mine", "FAILED", "AlreadyInProgress", "")
    world.hold("key", "other", HASH)
    assert [] == failures(keyed_trigger, keyed("mine", "key"))
    assert "1" == world.resent()[0]["MessageAttributes"]["steponceTries"]["StringValue"]


def test_an_answer_that_comes_while_the_message_is_looked_at_answers_it(
    keyed_trigger: Any, world: World, monkeypatch: pytest.MonkeyPatch
):
    """A second delivery at the last try, as its request ends. It became a dead letter that was answered."""
    failures(keyed_trigger, _sent_again("mine", "key", 3))
    world.hold("key", "mine", HASH)
    looks = keyed_trigger.starter._is_cared_for

    def end_and_look(*given: Any) -> bool:
        world.sfn.close("mine", "SUCCEEDED")
        world.locks["key"] |= {"status": {"S": "COMPLETED"}, "result": {"S": "1"}}
        return bool(looks(*given))

    monkeypatch.setattr(keyed_trigger.starter, "_is_cared_for", end_and_look)
    assert [] == failures(keyed_trigger, _sent_again("mine", "key", 3))
    assert [] == world.sent


def test_a_message_is_not_dropped_for_a_caller_s_execution_that_still_runs(keyed_trigger: Any, world: World):
    """If that ends without an answer, nobody would bring the message back."""
    keyed_trigger.client.start("mine", ORDER, lock_token="key")
    world.hold("key", "mine", HASH)
    assert [] == failures(keyed_trigger, keyed("mine", "key"))
    world.sfn.close("mine", "FAILED", "RetryLater", "")
    world.locks["key"]["status"] = {"S": "RELEASED"}

    (message,) = world.resent()
    assert [] == failures(keyed_trigger, received(message))

    assert {"requestId": "mine", "tries": 1} == world.inputs()[1]["redelivery"]
    assert {"mine", "mine--2"} == set(world.sfn.names())


def test_a_request_that_runs_under_an_odd_name_is_known(keyed_trigger: Any, world: World):
    """Its name is a slug, its lock its own."""
    odd = "über/1 "
    failures(keyed_trigger, keyed(odd, "key"))
    world.hold("key", odd, HASH)
    assert [] == failures(keyed_trigger, keyed(odd, "key"))
    assert [] == world.sent


def test_a_request_that_is_called_like_the_owner_s_execution_is_another_one(keyed_trigger: Any, world: World):
    """The second attempt of `mine` has the lock; the request `mine--2` has to come back."""
    failures(keyed_trigger, keyed("mine--2", "key"))
    world.sfn.close(name_of("mine--2"), "FAILED", "AlreadyInProgress", "")
    world.hold("key", "mine", HASH, attempt=2)
    assert [] == failures(keyed_trigger, keyed("mine--2", "key"))
    assert ["1"] == [one["MessageAttributes"]["steponceTries"]["StringValue"] for one in world.resent()]


def test_a_message_that_is_sent_again_starts_the_next_attempt(trigger: Any, world: World):
    """Under its first id, once its lock is released."""
    failures(trigger, sqs_record(TEXT, "order-1"))
    world.sfn.close("order-1", "FAILED", "RetryLater", "")
    assert [] == failures(trigger, _sent_again("order-1", "steponce-run-once/order-1", 1))
    assert {"order-1", "order-1--2"} == set(world.sfn.names())
    redeliveries = [one["redelivery"] for one in world.inputs()]
    assert [{"requestId": "order-1", "tries": tries} for tries in (0, 1)] == redeliveries


def test_an_unexpected_error_lets_the_message_come_back(trigger: Any, world: World):
    """Whatever it is, the others are started."""
    broken = sqs_record(TEXT, "broken", messageAttributes={"x": {"dataType": "String"}})
    assert ["broken"] == failures(trigger, broken, sqs_record(TEXT, "good"))
    assert ["good"] == world.sfn.names()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
BODIES = st.one_of(
    JSON.map(json.dumps),
    st.text(max_size=50),
    st.binary(max_size=50).map(lambda data: base64.b64encode(data).decode()),
    st.fixed_dictionaries({}, optional={"id": JSON, "key": JSON, "order": JSON}).map(json.dumps),
    st.builds(lambda i, k: json.dumps({"id": i, "key": k, "order": ORDER}), st.text(), st.text()),
)
ATTRIBUTES = st.dictionaries(
    st.sampled_from(["id", "steponceTries", "steponceRequestId", "steponceLockToken", "steponceRequestedAt"]),
    st.one_of(
        st.text(min_size=1, max_size=10).map(lambda text: {"dataType": "String", "stringValue": text}),
        st.text(min_size=1, max_size=10).map(
            lambda text: {"dataType": "String", "stringValue": json.dumps(text)}
        ),
        st.integers(-3, 9).map(lambda number: {"dataType": "Number", "stringValue": str(number)}),
        st.binary(min_size=1, max_size=9).map(
            lambda data: {"dataType": "Binary", "binaryValue": base64.b64encode(data).decode()}
        ),
    ),
    max_size=4,
)
MESSAGES = st.builds(
    lambda body, attributes, wrapped: (notification(body) if wrapped else body, attributes),
    BODIES,
    ATTRIBUTES,
    st.booleans(),
)


@given(messages=st.lists(MESSAGES, min_size=1, max_size=4), fifo=st.booleans())
def test_whatever_comes_nothing_is_lost_and_nothing_starts_without_an_id(
    keyed_trigger: Any, messages: list[tuple[str, Any]], fifo: bool
):
    """Each message has exactly one disposition, and every execution an id that is in a message."""
    world = WORLD.clear()
    queue = "requests.fifo" if fifo else "requests"
    for number, (body, attributes) in enumerate(messages):
        record = sqs_record(body, f"m-{number}", queue, messageAttributes=attributes)
        before = len(world.sfn.executions) + len(world.sent)
        came_back = failures(keyed_trigger, record)
        after = len(world.sfn.executions) + len(world.sent)
        assert came_back in ([], [record["messageId"]])
        assert after - before == 1 or (after == before and (came_back or world.sfn.executions))
        assert not (came_back and after > before)
    for execution in world.sfn.executions.values():
        given_id = json.loads(execution["input"])["redelivery"]["requestId"]
        assert given_id.strip()
        assert execution["name"] == name_of(given_id)


def test_an_id_that_is_no_text_never_gets_past_the_client():
    """The last line, should a trigger ever let one through."""
    with pytest.raises(InvalidRequestId):
        name_of(" ")


def _sent_again(request_id: str, lock_token: str, tries: int) -> dict[str, Any]:
    attributes = {
        "steponceRequestId": {"DataType": "String", "StringValue": json.dumps(request_id)},
        "steponceLockToken": {"DataType": "String", "StringValue": json.dumps(lock_token)},
        "steponceRequestedAt": {"DataType": "String", "StringValue": times.now_text()},
        "steponceTries": {"DataType": "Number", "StringValue": str(tries)},
    }
    return received({"MessageBody": TEXT, "MessageAttributes": attributes})


@pytest.mark.parametrize(("times_of_rate", "mappings"), [(20, 1), (10, 2)])
def test_every_batch_starts_a_message_at_the_slowest_share_of_the_rate(
    times_of_rate: int, mappings: int, monkeypatch: pytest.MonkeyPatch
):
    """With a smaller share each message of a backlog would be refused a hundred times, in five hours."""
    template = documents.whole_template()
    about = template["Parameters"]["QueueConcurrency"]["Description"]
    assert f"{times_of_rate} times" in about
    clock = PaceClock(monkeypatch)
    shares = {"QueueConcurrency": str(times_of_rate), "QueueMappings": str(mappings)}
    with function("start_from_queue", World(), StartsPerSecond="1", **shares) as module:
        for _ in range(10):
            module.pace.turn(0)
        module.pace.turn(template["Globals"]["Function"]["Timeout"] - module.TO_ANSWER_SECONDS)
    assert pytest.approx(20) == clock.slept
