"""What comes back later keeps its id, waits longer each time, and ends among the dead letters."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from hypothesis import given
from hypothesis import strategies as st

from steponce.aws import times
from steponce.errors import PayloadTooLarge, Unavailable
from steponce.locks.table import Locks
from steponce.triggers.dead_letters import DeadLetters
from steponce.triggers.messages import find_request
from steponce.triggers.resend import Resender, find_request_to_resend
from steponce.triggers.start_request import RequestPaths, StartRequest
from tests.unit.triggers.world import (
    DEAD,
    FAILED_INVOCATION,
    MACHINE,
    ORDER,
    QUEUE,
    World,
    letter_of,
    notification,
    received,
)

EVENT = Path(__file__).parents[3] / "events" / "resend_request.json"
LOCKS = Locks(World(), "locks")
PATHS = RequestPaths("messageId", "body")
NOON = times.from_text("2026-01-31T12:00:00.000Z")
PAYLOAD_HASH = json.loads(json.loads(EVENT.read_text())["detail"]["input"])["payloadHash"]
TOKEN = "steponce-run-once/order-1"
EXPIRED = {
    "status": {"S": "FAILED"},
    "expiresAt": {"S": "2026-01-31T12:05:00.000Z"},
    "ttl": {"N": "1769861100"},
}
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)


def resender(world: World, tries: int = 3, base: float = 5, longest: float = 900) -> Resender:
    dead = DeadLetters(world, DEAD)
    return Resender(world, QUEUE, dead, tries=tries, base_seconds=base, max_seconds=longest)


def detail(**changed: Any) -> dict[str, Any]:
    """Of an execution that ended RetryLater."""
    return json.loads(EVENT.read_text())["detail"] | changed


@given(
    request_id=TEXT,
    lock_token=st.none() | TEXT,
    payload=st.dictionaries(TEXT, TEXT | st.none() | st.integers(-9, 9)),
    requested_at=st.none() | st.just(NOON),
    tries=st.integers(0, 2),
    count_at=st.none() | st.just(NOON),
)
def test_a_request_survives_the_hop(request_id, lock_token, payload, requested_at, tries, count_at):
    """Whatever characters it has, it is asked the same again, with one try more."""
    world = World()
    asked = StartRequest(request_id, payload, lock_token, requested_at, tries, count_at)

    assert "resent" == resender(world).send_again(asked, "RetryLater", "here")

    (message,) = world.resent()
    again = find_request(_record(message), PATHS, PATHS)
    assert StartRequest(request_id, payload, lock_token, requested_at, tries + 1, count_at) == again


@pytest.mark.parametrize("payload", [json.loads(notification("{}")), FAILED_INVOCATION])
def test_a_payload_that_aws_wrote_is_still_the_payload(payload: dict[str, Any]):
    """A bus may carry notifications and Lambda's failures. Neither is unpacked or refused the second time."""
    world = World()
    asked = StartRequest("the event's id", payload, None, NOON)
    resender(world).send_again(asked, "RetryLater", "here")
    resender(world).lay_aside(asked, "why", "here")
    for message, tries in zip(world.sent, (1, 0), strict=True):
        again = find_request(_record(message), PATHS, PATHS)
        assert replace(asked, tries=tries) == again


def test_each_wait_is_about_twice_as_long_as_the_one_before():
    """Somewhere in the upper half, and never longer than the longest."""
    for tries, longest in enumerate([5, 10, 20, 40, 80, 160, 320, 600, 600, 600]):
        world = World()
        for _ in range(60):
            resender(world, tries=99, longest=600).send_again(
                StartRequest("a", ORDER, tries=tries), "E", "here"
            )
        delays = {one["DelaySeconds"] for one in world.resent()}
        assert longest / 2 - 1 <= min(delays)
        assert max(delays) <= longest
        assert len(delays) > 2


def test_no_wait_is_longer_than_sqs_allows():
    """Whatever the setting says, and however often it was sent."""
    world = World()
    resender(world, tries=9_999, longest=86_400).send_again(
        StartRequest("a", ORDER, tries=5_000), "E", "here"
    )
    assert 450 <= world.resent()[0]["DelaySeconds"] <= 900


def test_after_the_last_try_a_person_has_to_look():
    """The dead letter says why, and put back into the queue it has all its tries again."""
    world = World()
    asked = StartRequest("order-1", ORDER, "key", NOON, tries=3)

    assert "dead-lettered" == resender(world, tries=3).send_again(asked, "RetryLater", "the execution")

    (letter,) = world.dead()
    assert [] == world.resent()
    assert "RetryLater: resent 3 times." == letter["MessageAttributes"]["steponceReason"]["StringValue"]
    about = {"shape": "request", "source": "the execution", "requestId": "order-1", "tries": 3}
    assert about == letter_of(letter)
    assert StartRequest("order-1", ORDER, "key", NOON, 0) == find_request(_record(letter), PATHS, PATHS)


def test_a_message_too_large_to_be_sent_is_an_error():
    """It stays where it is then."""
    world = World()
    with pytest.raises(PayloadTooLarge):
        resender(world).send_again(StartRequest("a", {"text": "\uffff" * 180_000}), "RetryLater", "here")
    assert [] == world.sent


def test_a_throttled_queue_is_no_loss():
    """The caller hears of it."""
    world = World(queue_is_down=True)
    with pytest.raises(Unavailable):
        resender(world).send_again(StartRequest("a", ORDER), "RetryLater", "here")


@pytest.mark.parametrize("error", ["RetryLater", "AlreadyInProgress", "States.Timeout", "DynamoDB.Oops"])
def test_an_execution_without_an_answer_on_record_comes_back(error: str):
    """As it was asked, from what its input says, whatever it died of."""
    asked = StartRequest("order-1", ORDER, "steponce-run-once/order-1", NOON, 0)
    assert (asked, error) == find_request_to_resend(detail(error=error), World().sfn, LOCKS)


@pytest.mark.parametrize(
    ("status", "comes_back"),
    [("COMPLETED", False), ("FAILED", False), ("INPROGRESS", True), ("RELEASED", True)],
)
def test_a_record_with_an_answer_ends_it(status: str, comes_back: bool):
    """What has an answer does not come back; what is open or free does."""
    asked, _ = find_request_to_resend(detail(), World().sfn, locks_with(status, PAYLOAD_HASH))
    assert comes_back == (asked is not None)


def test_its_own_answer_ends_it_after_the_record_has_expired():
    """The execution has got it, however late its end is reported. Another run would have its effect again."""
    world = World()
    world.hold(TOKEN, "order-1", PAYLOAD_HASH)
    call_id = json.loads(detail()["input"])["callId"]
    world.locks[TOKEN] |= EXPIRED | {"callId": {"S": call_id}}
    late = detail(error="CardDeclined")
    assert (None, "CardDeclined") == find_request_to_resend(late, world.sfn, Locks(world, "locks"))


@pytest.mark.parametrize("is_deleted", [True, False])
@pytest.mark.parametrize(
    ("last", "error", "comes_back"),
    [
        ("RecordFinalError", "CardDeclined", False),
        ("RecordError", "Boom", False),
        ("ReplayError", "CardDeclined", False),
        ("DuplicateRefused", "DuplicateRefused", False),
        ("CheckOwner", "Lambda.ServiceException", True),
        ("AlreadyInProgress", "AlreadyInProgress", True),
        ("ReplayTooLarge", "ReplayTooLarge", True),
    ],
)
def test_an_answer_ends_it_after_its_record_is_gone(
    is_deleted: bool, last: str, error: str, comes_back: bool
):
    """DynamoDB may have deleted it, or another request has taken the lock token since."""
    world = World()
    if not is_deleted:
        world.hold(TOKEN, "order-9", PAYLOAD_HASH)
        world.locks[TOKEN] |= EXPIRED
    entered = [{"stateEnteredEventDetails": {"name": state}} for state in ("AcquireLock", last)]
    world.sfn.put("order-1", *entered, status="FAILED")

    asked, _ = find_request_to_resend(detail(error=error), world.sfn, Locks(world, "locks"))

    assert comes_back == (asked is not None)


@pytest.mark.parametrize(
    ("status", "comes_back"),
    [("COMPLETED", False), ("FAILED", False), ("INPROGRESS", True), ("RELEASED", True)],
)
def test_a_record_too_large_to_be_read_is_no_answer_by_itself(status: str, comes_back: bool):
    """A released record may be too large, too: it has the error of the attempt that released it."""
    world = World()
    world.hold(TOKEN, "order-9", PAYLOAD_HASH)
    world.locks[TOKEN]["status"] = {"S": status}
    entered = [{"stateEnteredEventDetails": {"name": state}} for state in ("ReadLock", "ReplayTooLarge")]
    world.sfn.put("order-1", *entered, status="FAILED")

    ended = detail(error="ReplayTooLarge")
    asked, _ = find_request_to_resend(ended, world.sfn, Locks(world, "locks"))

    assert comes_back == (asked is not None)


@pytest.mark.parametrize("status", ["COMPLETED", "FAILED"])
def test_the_answer_to_another_payload_is_no_answer(status: str):
    """Another request took the key in the meantime, and the message must not vanish for it."""
    asked, _ = find_request_to_resend(detail(), World().sfn, locks_with(status, "another payload"))
    assert asked is not None


def test_a_message_whose_key_has_another_payload_is_laid_aside_at_once():
    """It would be refused however often it came. The letter says which key, and asks for the same."""
    world = World()
    locks = locks_with("COMPLETED", "another payload")
    asked, why = find_request_to_resend(detail(error="PayloadMismatch"), world.sfn, locks)
    assert asked is not None

    assert "dead-lettered" == resender(world).send_again(asked, why, "the execution")

    (letter,) = world.dead()
    reason = letter["MessageAttributes"]["steponceReason"]["StringValue"]
    assert reason.startswith("PayloadMismatch: ")
    assert "'steponce-run-once/order-1'" in reason
    assert asked == find_request(_record(letter), PATHS, PATHS)


def test_work_that_fails_with_a_mismatch_of_its_own_is_answered():
    """Its error is on the record of its own payload."""
    locks = locks_with("FAILED", PAYLOAD_HASH)
    assert None is find_request_to_resend(detail(error="PayloadMismatch"), World().sfn, locks)[0]


def locks_with(status: str, payload_hash: str) -> Locks:
    """The table with a record under the execution's key."""
    world = World()
    world.hold("steponce-run-once/order-1", "order-1", payload_hash)
    world.locks["steponce-run-once/order-1"]["status"] = {"S": status}
    return Locks(world, "locks")


def limited(window_end: str, **redelivery: str) -> str:
    """The input of an execution whose request counts in a window."""
    given = json.loads(detail()["input"])
    given["redelivery"] |= redelivery
    return json.dumps(given | {"limit": {"resetsAt": window_end}})


def test_what_the_rate_limit_refused_counts_when_it_comes_again():
    """Its own window stays full; its own time stays what it was."""
    before = times.now()
    old = limited("2026-01-31T13:00:00.000Z", countAt="2026-01-31T12:30:00.000Z")
    asked, _ = find_request_to_resend(detail(error="RateLimited", input=old), World(), LOCKS)
    assert asked is not None
    assert asked.count_at is not None
    assert before <= asked.count_at <= times.now()
    assert NOON == asked.requested_at


@pytest.mark.parametrize(("error", "waits"), [("RateLimited", True), ("RetryLater", False)])
def test_what_the_rate_limit_refused_counts_in_the_window_of_its_arrival(error: str, waits: bool):
    """A window of a minute would be full and over when the message arrives. What was admitted stays there."""
    world = World()
    asked = StartRequest("order-1", ORDER, "key", NOON, 2, NOON)

    resender(world, base=1800, longest=900).send_again(asked, error, "here")

    (message,) = world.resent()
    arrives = NOON + timedelta(seconds=message["DelaySeconds"] if waits else 0)
    assert arrives == find_request(_record(message), PATHS, PATHS).count_at


@pytest.mark.parametrize("carries", [True, False])
def test_what_the_rate_limit_refused_never_counts_in_the_same_window(carries: bool):
    """Though this clock may be late; and an older client's execution has come without its window."""
    given = limited("2999-01-01T00:00:00.000Z") if carries else detail()["input"]
    asked, _ = find_request_to_resend(detail(error="RateLimited", input=given), World(), LOCKS)
    assert asked is not None
    assert asked.count_at is not None
    assert carries == (times.from_text("2999-01-01T00:00:00.000Z") == asked.count_at)


def test_what_the_rate_limit_admitted_stays_in_its_window():
    """Whatever it died of: it must not be counted twice."""
    moved = limited("2026-01-31T13:00:00.000Z", countAt="2026-01-31T12:30:00.000Z")
    asked, _ = find_request_to_resend(detail(error="RetryLater", input=moved), World(), LOCKS)
    assert asked is not None
    assert times.from_text("2026-01-31T12:30:00.000Z") == asked.count_at
    assert {"requestId": "order-1", "tries": 0, "countAt": "2026-01-31T12:30:00.000Z"} == asked.redelivery


def test_a_cancelled_request_does_not_come_back():
    """Somebody has decided so."""
    assert (None, "Cancelled") == find_request_to_resend(detail(error="Cancelled"), World().sfn, LOCKS)


def test_an_execution_that_somebody_waits_for_is_left_alone():
    """Its caller has the answer; nothing is asked of AWS for it."""
    given = json.loads(detail()["input"])
    del given["redelivery"]
    left = detail(input=json.dumps(given), error=None)
    assert None is find_request_to_resend(left, World().sfn, LOCKS)[0]


MALFORMED: list[dict[str, Any]] = [
    {"redelivery": None},
    {"redelivery": "order-1"},
    {"redelivery": {}},
    {"redelivery": {"requestId": "order-1"}},
    {"redelivery": {"requestId": 1, "tries": 0}},
    {"redelivery": {"requestId": " ", "tries": 0}},
    {"redelivery": {"requestId": "order-1", "tries": "many"}},
    {"redelivery": {"requestId": "order-1", "tries": float("inf")}},
    {"redelivery": {"requestId": "order-1", "tries": 0, "countAt": "soon"}},
    {"payload": ["no object"]},
    {"lockToken": None},
    {"lockToken": ""},
    {"lockToken": "k" * 2_049},
    {"requestedAt": "soon"},
    {"requestedAt": 7},
]


@pytest.mark.parametrize("changed", MALFORMED, ids=lambda changed: json.dumps(changed)[:60])
def test_an_execution_with_a_malformed_input_brings_no_message_back(changed: dict[str, Any]):
    """Somebody has started it by hand. The function does not fail, so the event is not dead-lettered."""
    given = json.dumps(json.loads(detail()["input"]) | changed)
    assert None is find_request_to_resend(detail(input=given), World().sfn, LOCKS)[0]


@pytest.mark.parametrize(
    "given", ['{"x": ' + "9" * 5_000 + "}", "[" * 100_000, "[]"], ids=["digits", "deep", "list"]
)
def test_an_execution_whose_input_python_cannot_read_brings_no_message_back(given: str):
    """Step Functions accepts such JSON from a start by hand."""
    assert None is find_request_to_resend(detail(input=given), World().sfn, LOCKS)[0]


def test_an_execution_with_a_malformed_rate_limit_brings_no_message_back():
    """The limit is read only after the rate limit has refused the request."""
    given = json.dumps(json.loads(detail()["input"]) | {"limit": "none"})
    refused = detail(input=given, error="RateLimited")
    assert None is find_request_to_resend(refused, World().sfn, LOCKS)[0]


@pytest.mark.parametrize("name", ["redelivery", "payload", "lockToken", "requestedAt"])
def test_an_execution_whose_input_lacks_a_field_brings_no_message_back(name: str):
    """A trigger sends all of these fields."""
    given = json.loads(detail()["input"])
    del given[name]
    assert None is find_request_to_resend(detail(input=json.dumps(given)), World().sfn, LOCKS)[0]


@pytest.mark.parametrize(
    "left_out",
    [{"error": None}, {"input": None, "inputDetails": {"included": False}}, {"input": None}, {"error": ""}],
)
def test_what_the_event_leaves_out_is_asked_for(left_out: dict[str, Any]):
    """A large input is not in it, and nor may the error be."""
    world = World()
    world.sfn.put("order-1", input=detail()["input"])
    world.sfn.close("order-1", "FAILED", "RetryLater", "")
    asked, error = find_request_to_resend(detail(**left_out), world.sfn, LOCKS)
    assert ("order-1", "RetryLater") == (asked and asked.request_id, error)


def test_an_execution_too_new_to_be_described_is_asked_for_again():
    """Nothing is decided without its input."""
    with pytest.raises(Unavailable, match=f"{MACHINE.replace(':stateMachine:', ':execution:')}:order-1"):
        find_request_to_resend(detail(input=None), World().sfn, LOCKS)


def _record(message: dict[str, Any]) -> SQSRecord:
    return SQSRecord(received(message))
