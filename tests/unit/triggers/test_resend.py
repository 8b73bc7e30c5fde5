"""What comes back later keeps its id, waits longer each time, and ends among the dead letters."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from hypothesis import given
from hypothesis import strategies as st

from steponce.aws import times
from steponce.errors import PayloadTooLarge, Unavailable
from steponce.triggers.dead_letters import DeadLetters
from steponce.triggers.messages import find_request
from steponce.triggers.resend import SHORTEST_DELAY_SECONDS, Resender
from steponce.triggers.start_request import RequestPaths, StartRequest
from tests.unit.triggers.world import (
    DEAD,
    FAILED_INVOCATION,
    ORDER,
    QUEUE,
    World,
    letter_of,
    notification,
    received,
)

PATHS = RequestPaths("messageId", "body")
NOON = times.from_text("2026-01-31T12:00:00.000Z")
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)


def resender(world: World, tries: int = 3, base: float = 5, longest: float = 900) -> Resender:
    dead = DeadLetters(world, DEAD)
    return Resender(world, QUEUE, dead, tries=tries, base_seconds=base, max_seconds=longest)


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


def test_a_letter_that_is_resent_still_says_whose_it_was():
    """The execution that it is the letter of does not carry it, however long that seems to be open."""
    world = World()
    resender(world).lay_aside(StartRequest("order-1", ORDER, letter_of="its end"), "why", "the execution")
    for written in (world.dead, world.resent, world.resent):
        again = find_request(_record(written()[-1]), PATHS, PATHS)
        assert "its end" == again.letter_of
        resender(world).send_again(again, "AlreadyInProgress", "the queue")


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


def test_no_wait_ends_before_the_end_of_its_execution_can_be_seen():
    """The message would count as a duplicate of the execution that it comes from."""
    world = World()
    for _ in range(60):
        resender(world, base=1, longest=1).send_again(StartRequest("a", ORDER), "E", "here")
        resender(world, base=1, longest=1).postpone(StartRequest("a", ORDER))
    assert {SHORTEST_DELAY_SECONDS} == {one["DelaySeconds"] for one in world.resent()}


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


def test_a_letter_of_a_request_that_is_laid_aside_asks_for_the_same():
    """And says why it was."""
    world = World()
    asked = StartRequest("order-1", ORDER, "steponce-run-once/order-1", NOON)

    resender(world).lay_aside(asked, "PayloadMismatch: another payload.", "the execution")

    (letter,) = world.dead()
    assert "PayloadMismatch: another payload." == letter["MessageAttributes"]["steponceReason"]["StringValue"]
    assert asked == find_request(_record(letter), PATHS, PATHS)


@pytest.mark.parametrize(("error", "waits"), [("RateLimited", True), ("RetryLater", False)])
def test_what_the_rate_limit_refused_counts_in_the_window_of_its_arrival(error: str, waits: bool):
    """A window of a minute would be full and over when the message arrives. What was admitted stays there."""
    world = World()
    asked = StartRequest("order-1", ORDER, "key", NOON, 2, NOON)

    resender(world, base=1800, longest=900).send_again(asked, error, "here")

    (message,) = world.resent()
    arrives = NOON + timedelta(seconds=message["DelaySeconds"] if waits else 0)
    assert arrives == find_request(_record(message), PATHS, PATHS).count_at


def _record(message: dict[str, Any]) -> SQSRecord:
    return SQSRecord(received(message))
