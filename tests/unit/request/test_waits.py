"""Who waits with a payload gets no answer that is another payload's."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import timedelta
from fractions import Fraction
from typing import Any

import pytest
from moto import mock_aws

from steponce.aws import times
from steponce.errors import InvalidRequest, PayloadMismatch, RequestNotFound, Unsettled, WaitTimeout
from steponce.executions import NAME_KEPT
from steponce.request.settings import RequestRules
from steponce.request.wait import NOT_YET_VISIBLE_SECONDS
from steponce.workflow import COMPLETED, FAILED, RELEASED
from tests.unit.one_machine import PAYLOAD, TO_WORK, World, arn, envelope
from tests.unit.rate_limited import cause_until

ANOTHER = {"payload": {"orderId": "2"}, "payloadHash": "another"}
TTL = 4_000_000_000
PAST = "2020-01-01T00:00:00.000Z"
DONE = {"status": COMPLETED, "openStatus": None, "ttl": TTL, "result": "7"}
HELD = {"status": FAILED, "openStatus": "FAILED#3", "failure": '{"Error": "Boom", "Cause": null}'}


class Waiting(World):
    """One machine, and a clock that a sleep moves on."""

    def __init__(self) -> None:
        super().__init__()
        self.passed = 0.0

    def sleep(self, seconds: float) -> None:
        self.passed += seconds

    def another(self, status: str, record: dict[str, Any]) -> None:
        """The first attempt died before its lock. Somebody started the id with another payload."""
        self.execution("order-1", "TIMED_OUT", "AcquireLock", error="States.Timeout")
        self.execution("order-1--2", status, *TO_WORK, given=envelope() | ANOTHER, error="Boom")
        if record:
            self.put(name="order-1--2", callId="call-2", payloadHash="another", **record)

    def show_second_attempt(self, status: str, record: dict[str, Any] | None = None) -> None:
        """Let DescribeExecution show the second attempt from the second time on that it is asked for."""
        looks: list[str] = []

        def look(_operation: str, about: str) -> None:
            looks.append(about)
            if looks.count(arn("order-1--2")) == 2:
                self.execution("order-1--2", status, *TO_WORK)
                if record:
                    self.put(name="order-1--2", callId="call-2", **record)

        self.sfn.before_call = look


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[Waiting]:
    """Tables of this test's own."""
    with mock_aws():
        found = Waiting()
        monkeypatch.setattr(time, "monotonic", lambda: found.passed)
        monkeypatch.setattr(time, "sleep", found.sleep)
        yield found


@pytest.mark.parametrize(
    ("status", "record"),
    [
        ("RUNNING", {}),
        ("RUNNING", {"status": "INPROGRESS"}),
        ("SUCCEEDED", DONE),
        ("FAILED", HELD),
        ("FAILED", HELD | {"status": RELEASED, "openStatus": None, "ttl": TTL}),
        ("FAILED", {}),
    ],
    ids=["not yet locked", "running", "completed", "failed", "released", "without a lock"],
)
def test_an_answer_for_another_payload_is_refused(world: Waiting, status: str, record: dict[str, Any]):
    """Whatever it is. Only who names no payload gets it, since an id may be all that one has."""
    world.another(status, record)
    with pytest.raises(PayloadMismatch, match=r"'order-1' \(lock token 'm/order-1'\).* use a new id"):
        world.client.wait("order-1", payload=PAYLOAD)
    assert NOT_YET_VISIBLE_SECONDS < world.passed < 2 * NOT_YET_VISIBLE_SECONDS

    if status == "RUNNING":
        with pytest.raises(WaitTimeout):
            world.client.wait("order-1", timeout_seconds=10)
    else:
        assert world.client.wait("order-1").status in (COMPLETED, FAILED)


@pytest.mark.parametrize("own_end", ["TIMED_OUT", "SUCCEEDED"])
def test_the_key_may_be_another_request_s_by_now(world: Waiting, own_end: str):
    """Order 9 took it while nobody held it. The wait said to start again, and the start refused."""
    world.execution(
        "order-1", own_end, "AcquireLock", error="States.Timeout" if own_end == "TIMED_OUT" else None
    )
    world.put(name="order-9", payloadHash="another", **DONE)
    with pytest.raises(PayloadMismatch):
        world.client.start("order-1", PAYLOAD)
    with pytest.raises(PayloadMismatch):
        world.client.wait("order-1", payload=PAYLOAD)
    if own_end == "TIMED_OUT":
        found = world.client.status("order-1")
        assert ("FAILED", "States.Timeout", False) == (found.status, found.error, found.may_run_again)


def test_an_answer_for_the_same_payload_is_given_however_it_is_written(world: Waiting):
    """The hash is that of the canonical text."""
    world.execution("order-1", "SUCCEEDED", *TO_WORK)
    world.put(**DONE)
    assert 7 == world.client.wait("order-1", payload=dict(reversed(PAYLOAD.items()))).result


def test_only_the_part_that_the_machine_compares_counts(world: Waiting):
    """As for a start."""
    world.machine.rules = rules = RequestRules(key_prefix="m", payload_hash_path="orderId")
    world.execution("order-1", "SUCCEEDED", *TO_WORK)
    world.put(**DONE | {"payloadHash": rules.payload_hash(PAYLOAD)})
    assert 7 == world.client.wait("order-1", payload=PAYLOAD | {"card": "another"}).result
    with pytest.raises(InvalidRequest, match="'orderId'"):
        world.client.wait("order-1", payload={})


def test_an_expired_answer_for_another_payload_is_not_the_last_word(world: Waiting):
    """The new attempt may not be visible at once."""
    world.execution("order-1", "SUCCEEDED", *TO_WORK, given=envelope() | ANOTHER)
    world.put(expiresAt=PAST, payloadHash="another", **DONE)
    world.show_second_attempt("SUCCEEDED", DONE | {"result": "8"})
    assert 8 == world.client.wait("order-1", payload=PAYLOAD).result


CORRECTED = {
    "in progress": {"status": "INPROGRESS"},
    "completed": DONE,
    "failed": HELD,
}


@pytest.mark.parametrize("record", CORRECTED.values(), ids=CORRECTED)
def test_who_corrects_the_payload_gets_the_answer_under_the_key(world: Waiting, record: dict[str, Any]):
    """Order 1 was turned away with a wrong payload. With that of order 9, a start and a wait say the same."""
    turned_away: dict[str, Any] = {"error": "PayloadMismatch", "given": envelope() | ANOTHER}
    world.execution("order-9", "RUNNING", given=envelope() | {"callId": "call-9"})
    world.execution("order-1", "FAILED", "AcquireLock", "ReadLock", **turned_away)
    world.put(name="order-9", callId="call-9", **record)

    started = world.client.start("order-1", PAYLOAD)
    if started.status == "RUNNING":
        with pytest.raises(WaitTimeout):
            world.client.wait("order-1", timeout_seconds=10, payload=PAYLOAD)
    else:
        waited = world.client.wait("order-1", payload=PAYLOAD)
        same = ("status", "result", "error", "execution_arn", "duplicate")
        assert [getattr(started, name) for name in same] == [getattr(waited, name) for name in same]

    own = world.client.status("order-1")
    assert ("FAILED", "PayloadMismatch", False) == (own.status, own.error, own.may_run_again)


def test_who_corrects_the_payload_waits_for_the_attempt_that_is_being_turned_away(world: Waiting):
    """It does not hide the answer for longer than it runs."""
    world.execution("order-1", "RUNNING", "AcquireLock", given=envelope() | ANOTHER)
    world.put(name="order-9", callId="call-9", **DONE)
    assert "RUNNING" == world.client.start("order-1", PAYLOAD).status
    with pytest.raises(WaitTimeout):
        world.client.wait("order-1", timeout_seconds=10, payload=PAYLOAD)

    world.sfn.close("order-1", "FAILED", "PayloadMismatch")
    assert 7 == world.client.wait("order-1", payload=PAYLOAD).result


@pytest.mark.parametrize("refusal", ["PayloadMismatch", "DuplicateRefused"])
def test_a_refusal_is_not_the_last_word_once_the_key_is_free(world: Waiting, refusal: str):
    """The next attempt may not be visible at once. Its caller got the refusal of the attempt before it."""
    world.execution("order-1", "FAILED", "AcquireLock", "ReadLock", error=refusal)
    released = {"status": RELEASED, "openStatus": None, "ttl": TTL, "payloadHash": "another"}
    world.put(name="order-9", callId="call-9", **released)
    assert world.client.status("order-1").may_run_again
    world.show_second_attempt("SUCCEEDED", DONE)
    assert 7 == world.client.wait("order-1", payload=PAYLOAD).result


ALIKE = {
    "a guard's": {"lockedBy": "process/host/1"},
    "another machine's": {"lockedBy": arn("order-1").replace(":m:", ":refunds:")},
    "an earlier request's": {"callId": "call-0", "created": times.to_text(times.now() - NAME_KEPT)},
}


@pytest.mark.parametrize("record", ALIKE.values(), ids=ALIKE)
def test_a_record_that_only_has_the_id_is_not_the_last_word(world: Waiting, record: dict[str, Any]):
    """An execution that has just started is not visible yet. The other's result was told as its own."""
    world.put(payloadHash="another", **DONE | record)

    def show(_operation: str, _about: str) -> None:
        if world.passed > 1:
            world.sfn.before_call = None
            world.execution("order-1", "FAILED", error="PayloadMismatch")

    world.sfn.before_call = show
    found = world.client.wait("order-1")
    assert ("FAILED", "PayloadMismatch", None) == (found.status, found.error, found.result)


@pytest.mark.parametrize("record", ALIKE.values(), ids=ALIKE)
def test_a_record_that_only_has_the_id_answers_if_no_execution_appears(
    world: Waiting, record: dict[str, Any]
):
    """A guard's call has none, and after 90 days it is forgotten. Who else's answer it is, is told."""
    world.put(**DONE | record)
    found = world.client.wait("order-1", timeout_seconds=1, payload=PAYLOAD)
    assert (7, "lockedBy" in record) == (found.result, found.duplicate)
    assert found == world.client.status("order-1")
    assert NOT_YET_VISIBLE_SECONDS <= world.passed < NOT_YET_VISIBLE_SECONDS + 0.1


SHORT = {
    "unknown": (None, {}, RequestNotFound),
    "released": ("FAILED", {"status": RELEASED, "openStatus": None, "ttl": TTL}, None),
    "expired": ("SUCCEEDED", DONE | {"expiresAt": PAST}, None),
    "another payload's": ("SUCCEEDED", DONE | {"payloadHash": "another"}, PayloadMismatch),
}


@pytest.mark.parametrize(("status", "record", "error"), SHORT.values(), ids=SHORT)
@pytest.mark.parametrize("seconds", [0, 1, 1.9])
def test_a_short_wait_says_what_does_not_run(
    world: Waiting, seconds: float, status: str | None, record: dict[str, Any], error: type[Exception] | None
):
    """It said "still runs. Wait again" for ever. It needs the two seconds in which an attempt may appear."""
    if status is not None:
        world.execution("order-1", status, *TO_WORK)
        world.put(**record)
    with pytest.raises(error) if error else nullcontext():
        world.client.wait("order-1", timeout_seconds=seconds, payload=PAYLOAD)
    assert NOT_YET_VISIBLE_SECONDS <= world.passed < NOT_YET_VISIBLE_SECONDS + 0.1


@pytest.mark.parametrize("record", [DONE, HELD], ids=["completed", "failed"])
def test_an_answer_on_record_is_told_at_once(world: Waiting, record: dict[str, Any]):
    """No attempt can follow it unseen, so nobody waits for one."""
    world.execution("order-1", "SUCCEEDED" if record is DONE else "FAILED", *TO_WORK)
    world.put(**record)
    assert record["status"] == world.client.wait("order-1").status
    assert 0 == world.passed


def test_a_short_wait_for_what_runs_is_short(world: Waiting):
    """As its caller said."""
    world.execution("order-1", "RUNNING")
    with pytest.raises(WaitTimeout, match="still runs after 1 s"):
        world.client.wait("order-1", timeout_seconds=1)
    assert 1 == pytest.approx(world.passed)


@pytest.mark.parametrize(
    "seconds", [float("nan"), "30", None, 10**400, 10**5_000], ids=["NaN", "text", "none", "large", "larger"]
)
def test_a_wait_is_told_a_number_of_seconds(world: Waiting, seconds: Any):
    """With NaN it had no end."""
    world.execution("order-1", "SUCCEEDED")
    world.put(**DONE)
    with pytest.raises(InvalidRequest, match="Give a number of seconds"):
        world.client.wait("order-1", timeout_seconds=seconds)


def test_any_number_of_seconds_will_do(world: Waiting):
    """As a library of numbers has its own."""
    world.execution("order-1", "SUCCEEDED")
    world.put(**DONE)
    timeout: Any = Fraction(3)
    assert "COMPLETED" == world.client.wait("order-1", timeout_seconds=timeout).status


@pytest.mark.parametrize("own_end", [DONE, HELD], ids=["completed", "failed"])
def test_a_mismatch_with_a_record_that_has_changed_since_is_none(world: Waiting, own_end: dict[str, Any]):
    """Order 9 releases the key after it was read, and order 1 takes it and ends before it is described."""
    world.execution("order-1", "RUNNING", "AcquireLock")
    world.put(name="order-9", callId="call-9", payloadHash="another")

    def take_and_end(operation: str, _about: str) -> None:
        if operation == "describe_execution" and world.passed > NOT_YET_VISIBLE_SECONDS:
            world.sfn.before_call = None
            world.sfn.close("order-1", "SUCCEEDED" if own_end is DONE else "FAILED", "Boom")
            world.put(**own_end)

    world.sfn.before_call = take_and_end
    found = world.client.wait("order-1", payload=PAYLOAD, lock_token="m/order-1")
    assert own_end["status"] == found.status


def test_who_waits_behind_another_key_mate_for_another_payload_is_told(world: Waiting):
    """Neither the attempt that runs under the id nor the record of its key is for this payload."""
    world.execution("order-1", "RUNNING", "AcquireLock", given=envelope() | ANOTHER)
    world.put(name="order-9", callId="call-9", payloadHash="another")
    with pytest.raises(PayloadMismatch):
        world.client.wait("order-1", payload=PAYLOAD)


@pytest.mark.parametrize(
    "record",
    [DONE | {"expiresAt": PAST}, {"status": RELEASED, "openStatus": None, "ttl": TTL}],
    ids=["expired", "released"],
)
def test_a_free_record_of_another_request_says_nothing_of_one_that_nobody_knows(
    world: Waiting, record: dict[str, Any]
):
    """Order 9 had the key before."""
    world.put(name="order-9", **record)
    with pytest.raises(RequestNotFound):
        world.client.status("order-1", lock_token="m/order-1")


@pytest.mark.parametrize("is_released", [False, True], ids=["deleted", "released"])
def test_a_request_that_succeeded_is_not_called_failed_without_its_record(world: Waiting, is_released: bool):
    """Only the record has its result. Who redrives by hand what has released its lock gets none there."""
    world.execution("order-1", "SUCCEEDED", *TO_WORK)
    if is_released:
        world.put(status=RELEASED, openStatus=None, ttl=TTL)
    with pytest.raises(RequestNotFound):
        world.client.status("order-1", lock_token="m/order-1")


def test_a_dead_owner_that_is_settled_while_it_is_looked_at_leaves_an_answer(world: Waiting):
    """Nobody has to start the request again for it."""
    world.execution("order-1", "TIMED_OUT", *TO_WORK, error="States.Timeout")
    world.put()

    def settle(operation: str, _about: str) -> None:
        if operation == "describe_execution" and world.passed >= NOT_YET_VISIBLE_SECONDS:
            world.sfn.before_call = None
            world.put(**DONE)

    world.sfn.before_call = settle
    assert 7 == world.client.wait("order-1", lock_token="m/order-1").result


@pytest.mark.parametrize(
    ("states", "named"),
    [([], "complete lock"), (["CompleteRequest"], "start request")],
    ids=["its work is done", "the next attempt records it"],
)
def test_who_waits_for_a_result_that_is_too_large_is_told_what_helps(
    world: Waiting, states: list[str], named: str
):
    """It said to start the request, which said to complete the lock by hand; and the wait said so again."""
    ended = times.now() - timedelta(days=1)
    world.execution("order-1", "FAILED", *TO_WORK, *states, error="ResultTooLarge", closed=ended)
    world.put(takenAt=times.to_text(ended))
    with pytest.raises(Unsettled) as told:
        world.client.wait("order-1", lock_token="m/order-1")
    assert [named] == [step.action for step in told.value.next_steps]


def test_a_history_that_may_not_be_read_says_nothing_of_a_result(world: Waiting):
    """Nobody knows whether the work is done; `show` tells what is missing."""
    ended = times.now() - timedelta(days=1)
    world.execution("order-1", "FAILED", *TO_WORK, error="ResultTooLarge", closed=ended)
    world.put(takenAt=times.to_text(ended))
    world.sfn.refuse("get_execution_history", "AccessDeniedException")
    with pytest.raises(Unsettled, match="may not be looked at from here") as told:
        world.client.wait("order-1", lock_token="m/order-1")
    assert ["show request"] == [step.action for step in told.value.next_steps]


def test_a_result_that_is_completed_while_the_history_is_read_is_the_answer(world: Waiting):
    """A person has looked it up meanwhile."""
    world.execution("order-1", "FAILED", *TO_WORK, error="ResultTooLarge")
    world.put()

    def complete(operation: str, _about: str) -> None:
        if operation == "get_execution_history":
            world.sfn.before_call = None
            world.put(**DONE)

    world.sfn.before_call = complete
    assert 7 == world.client.wait("order-1", lock_token="m/order-1").result


def test_a_death_is_not_the_last_word_under_another_request_s_key(world: Waiting):
    """The next attempt may have started before order 9 took the key, and is not visible yet."""
    world.execution("order-1", "TIMED_OUT", "AcquireLock", error="States.Timeout")
    world.put(name="order-9", callId="call-9", payloadHash="another")
    world.show_second_attempt("RUNNING")
    with pytest.raises(WaitTimeout):
        world.client.wait("order-1", timeout_seconds=10)


def refused(world: Waiting, name: str) -> None:
    """Let the rate limit refuse an attempt, in a window that ends in an hour."""
    cause = cause_until(times.to_text(times.now() + timedelta(hours=1)))
    world.sfn.close(name, "FAILED", "RateLimited", cause)


def test_a_refusal_by_the_rate_limit_is_not_the_last_word_after_a_reset(world: Waiting):
    """The attempt that was started after the reset may not be visible at once."""
    world.execution("order-1", "RUNNING", "CountRequest")
    refused(world, "order-1")
    world.show_second_attempt("SUCCEEDED", DONE)
    assert 7 == world.client.wait("order-1", payload=PAYLOAD).result


@pytest.mark.parametrize("seen", [True, False])
def test_a_refusal_of_the_attempt_that_ran_is_told_at_once(world: Waiting, seen: bool):
    """Any other refusal is told after the time in which an attempt becomes visible."""
    world.execution("order-1", "RUNNING", "CountRequest")

    def refuse(operation: str, _about: str) -> None:
        if operation == "describe_execution" and world.passed > 0.1:
            world.sfn.before_call = None
            refused(world, "order-1")

    if seen:
        world.sfn.before_call = refuse
    else:
        refused(world, "order-1")
    found = world.client.wait("order-1")

    assert ("FAILED", "RateLimited", True) == (found.status, found.error, found.resets_at is not None)
    assert seen is (world.passed < 1)
