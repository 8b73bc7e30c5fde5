"""How many calls a start makes, whatever the history; and that polling a dead owner starts nothing."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from moto import mock_aws

from steponce import Receipt
from steponce.aws import times
from steponce.errors import (
    InvalidRequest,
    LockTokenMismatch,
    PayloadMismatch,
    RateLimited,
    Refused,
    RequestNotFound,
    TooManyAttempts,
    Unavailable,
    Unsettled,
    WaitTimeout,
)
from steponce.executions import NAME_KEPT, YOUNG
from steponce.locks.record import Lock
from steponce.next_step import NextStep
from steponce.operator.cancel import cancel
from steponce.operator.cancellable import find_running
from steponce.operator.locks import Operator
from steponce.operator.records import lock_of_request
from steponce.report.collector import collect
from steponce.request.names import MAX_ATTEMPT, name_of
from steponce.request.settings import LONGEST_WORK_SECONDS, RequestRules
from steponce.workflow import COMPLETED, FAILED, INIT_TIME, INPROGRESS, RELEASED
from tests import covering
from tests.fakes.errors import client_error
from tests.unit.one_machine import PAYLOAD, TO_WORK, World, arn, envelope
from tests.unit.rate_limited import cause_until

WAIT = timedelta(seconds=LONGEST_WORK_SECONDS) + INIT_TIME
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
BEFORE = NOW - timedelta(hours=1)
PAST = "2020-01-01T00:00:00.000Z"
TTL = 4_000_000_000
ANOTHER_PAYLOAD = {"payload": {"orderId": "2"}, "payloadHash": "another"}


class Counting(World):
    """One machine whose calls are counted, and a clock that the test moves."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.calls = self.sfn.calls

    def attempts(self, *numbers: int, closed: datetime = NOW, error: str = "AlreadyInProgress") -> None:
        """Attempts that have ended without the lock."""
        for number in numbers:
            self.execution(f"order-1--{number}", "FAILED", "AcquireLock", error=error, closed=closed)

    def dead(
        self, error: str = "Stopped", closed: datetime = NOW, name: str = "order-1", **record: Any
    ) -> Lock:
        """The record of an owner that was stopped in its work."""
        self.execution(name, "ABORTED", *TO_WORK, error=error, closed=closed)
        return self.put(name=name, expectedCompletion=PAST, created=PAST, **record)

    def by_hand(self, lock_token: str, status: str, error: str | None = None) -> None:
        """Order-1 was started with a payload. Its machine made the lock token."""
        self.execution("order-1", status, "PrepareRequest", given={"payload": PAYLOAD}, error=error)
        entered = {"name": "AcquireLock", "input": json.dumps(envelope(lock_token))}
        self.sfn.histories[arn("order-1")].insert(
            1, {"type": "TaskStateEntered", "timestamp": NOW, "id": 2, "stateEnteredEventDetails": entered}
        )

    def another_by_hand(self, status: str) -> None:
        """Another request, which somebody started under the name of the second attempt of order-1."""
        given = {"payload": {"orderId": "9"}, "lockToken": "m/other"}
        self.execution("order-1--2", status, given=given, error="CardDeclined")

    def ask(self, request_id: str = "order-1") -> Receipt:
        """Start it, within the calls that are allowed."""
        self.calls.clear()
        receipt = self.client.start(request_id, PAYLOAD)
        assert 2 >= self.calls["start_execution"], self.calls
        assert 3 >= self.calls["describe_execution"], self.calls
        return receipt

    def started(self) -> list[str]:
        """The names of the executions that were started since."""
        names = [one["name"] for one in self.sfn.started]
        self.sfn.started.clear()
        return names

    def end(self, name: str, error: str = "AlreadyInProgress") -> None:
        """Let an execution that was started end now, without the lock."""
        self.sfn.close(arn(name), "FAILED", error, None, self.now)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counting]:
    """Tables of this test's own."""
    with mock_aws():
        found = Counting()
        monkeypatch.setattr(times, "now", lambda: found.now)
        monkeypatch.setattr(time, "sleep", lambda _seconds: None)
        yield found


# -- a dead owner ----------------------------------------------------------------------------------
@pytest.mark.full
def test_polling_a_dead_owner_asks_once_while_its_work_may_run_and_once_after(world: Counting):
    """Hundreds of polls make two executions; the second settles the lock."""
    world.dead()
    for _ in range(200):
        receipt = world.ask()
        assert "RUNNING" == receipt.status
        if started := world.started():
            assert (["order-1--2"], False) == (started, receipt.duplicate)
            world.now += timedelta(seconds=1)
            world.end("order-1--2")
        else:
            assert (True, arn("order-1")) == (receipt.duplicate, receipt.execution_arn)
    assert 2 == len(world.sfn.executions)

    world.now = NOW + WAIT
    receipts = [world.ask() for _ in range(200)]

    assert ["order-1--3"] == world.started()
    assert [False, *[True] * 199] == [one.duplicate for one in receipts]
    assert {arn("order-1--3")} == {one.execution_arn for one in receipts}


@pytest.mark.parametrize(
    ("states", "is_unwritten"),
    [
        (TO_WORK, True),
        ([*TO_WORK, "IsConfirmationWanted"], True),
        ([*TO_WORK, "CompleteRequest"], False),
        ([*TO_WORK, "ReleaseLock"], False),
        (["AcquireLock"], False),
        (["AcquireLock", "ReadLock", "ReplayError", "IsErrorNamed", "RequestFailed"], False),
        (["AcquireLock", "ReadLock", "CheckOwner", "IsOwnerAlive", "ResultTooLarge"], False),
    ],
    ids=[
        "the work",
        "after it",
        "its record",
        "its release",
        "before it",
        "another one's",
        "told of another's",
    ],
)
def test_a_result_too_large_for_its_record_alone_is_not_for_a_person(
    world: Counting, states: Sequence[str], is_unwritten: bool
):
    """The next attempt finds it in the history and records it. `show` advised that start, which refused."""
    world.execution("order-1", "FAILED", *states, error="States.DataLimitExceeded", closed=NOW)
    world.put(expectedCompletion=PAST)
    if is_unwritten:
        with pytest.raises(Unsettled, match="too large to be recorded"):
            world.client.start("order-1", PAYLOAD)
    assert [] == world.started()
    if not is_unwritten:
        assert ("RUNNING", False) == ((receipt := world.ask()).status, receipt.duplicate)
        assert ["order-1--2"] == world.started()


def test_a_result_too_large_whose_history_may_not_be_read_is_for_a_person(world: Counting):
    """Its work must not run again."""
    world.execution("order-1", "FAILED", *TO_WORK, error="States.DataLimitExceeded", closed=NOW)
    world.put(expectedCompletion=PAST)
    world.sfn.refuse("get_execution_history", "AccessDeniedException")
    with pytest.raises(Unsettled, match="too large to be recorded"):
        world.client.start("order-1", PAYLOAD)


@pytest.mark.parametrize("seconds", [5, LONGEST_WORK_SECONDS + 5])
def test_a_dead_owner_s_record_says_how_long_its_work_may_run(world: Counting, seconds: int):
    """Its machine may be another than the client's."""
    world.dead(workTimeoutSeconds=seconds)
    world.attempts(2)
    over = NOW + timedelta(seconds=seconds) + INIT_TIME

    world.now = over - timedelta(seconds=1)
    assert ("RUNNING", []) == (world.ask().status, world.started())
    world.now = over
    assert (False, 1) == (world.ask().duplicate, len(world.started()))


def test_an_attempt_that_looked_before_the_death_does_not_count(world: Counting):
    """It was turned away by an owner that lived; what died before its work is settled at once."""
    world.dead()
    world.attempts(2, closed=NOW - timedelta(seconds=1))

    world.ask()

    assert ["order-1--3"] == world.started()


@pytest.mark.parametrize("many", [3, 100, 1_000])
def test_a_start_makes_few_calls_however_many_have_looked_in_vain(world: Counting, many: int):
    """The name follows from the death and the time: whoever asks until the next is due gets one execution."""
    world.dead()
    world.attempts(*range(2, many + 1))
    assert ("RUNNING", []) == (world.ask().status, world.started())

    rounds = []
    for number in (1, 2, 4):
        world.now = NOW + WAIT * number
        receipts = [world.ask() for _ in range(20)]
        assert [False, *[True] * 19] == [one.duplicate for one in receipts]
        rounds += world.started()
        world.end(rounds[-1])
        assert ("RUNNING", []) == (world.ask().status, world.started())

    assert 3 == len(set(rounds))


def test_polling_while_what_the_owner_had_started_runs_on_starts_little(world: Counting):
    """A machine may outlive the workflow that started it by weeks: each attempt finds it alive."""
    world.dead()
    world.attempts(2, 3)
    started = []
    for number in range(10 * 3):
        world.now = NOW + WAIT + timedelta(hours=8) * number
        receipt = world.ask()
        assert "RUNNING" == receipt.status
        if new := world.started():
            started += new
            world.end(new[-1])
    assert 9 <= len(started) <= 20


def test_the_attempt_that_settles_is_known_by_the_record(world: Counting):
    """Wherever the count is, it goes on from there."""
    for number in (7, 731_234):
        world.sfn.executions.clear()
        world.execution("order-1", "FAILED")
        world.dead(name=f"order-1--{number}")
        world.ask()
        assert [f"order-1--{number + 1}"] == world.started()


@pytest.mark.parametrize("many", [2, 1_000])
def test_a_key_mate_s_polling_is_as_cheap(world: Counting, many: int):
    """The dead owner is another request's."""
    world.dead(name="order-9", closed=NOW)
    world.execution("order-1", "FAILED", "AcquireLock", error="AlreadyInProgress")
    world.attempts(*range(2, many + 1))
    assert ("RUNNING", []) == (world.ask().status, world.started())

    world.now = NOW + WAIT
    receipts = [world.ask() for _ in range(10)]

    assert 1 == len(world.started())
    assert [False, *[True] * 9] == [one.duplicate for one in receipts]


def test_an_old_refusal_answers_nobody_whose_newest_attempt_was_not_refused(world: Counting):
    """The owner of the lock is dead. The message of the newest attempt got that refusal as its answer."""
    world.dead(name="order-9")
    world.execution("order-1", "FAILED", "ReleaseLock", error="RetryLater", closed=BEFORE)
    world.attempts(2, error="DuplicateRefused", closed=BEFORE)
    refused = world.client.start("order-1", PAYLOAD)
    assert ("FAILED", arn("order-1--2")) == (refused.status, refused.execution_arn)

    world.attempts(3, error="RetryLater", closed=BEFORE)
    asked = [world.client.start("order-1", PAYLOAD), world.client.status("order-1")]
    assert ["RUNNING"] * 2 == [one.status for one in asked]


def test_attempts_of_the_time_before_a_death_do_not_count(world: Counting):
    """The next name is the one after the newest, where everybody looks for it."""
    world.dead(name="order-9")
    world.execution("order-1", "FAILED", "ReleaseLock", error="RetryLater", closed=BEFORE)
    world.attempts(2, 3, closed=BEFORE, error="RetryLater")
    world.client.start("order-1", PAYLOAD)
    assert ["order-1--4"] == world.started()
    assert arn("order-1--4") == world.client.start("order-1", PAYLOAD).execution_arn

    world.end("order-1--4")
    assert ("RUNNING", []) == (world.client.start("order-1", PAYLOAD).status, world.started())


def test_two_attempts_after_a_death_get_the_next_names(world: Counting):
    """The first one ended before it. A name of its own would be looked for by nobody but the record."""
    world.dead(name="order-9")
    world.execution("order-1", "FAILED", "ReleaseLock", error="RetryLater", closed=BEFORE)
    for number in (2, 3):
        world.client.start("order-1", PAYLOAD)
        assert [f"order-1--{number}"] == world.started()
        world.now += WAIT
        world.attempts(number, closed=world.now)
    world.client.start("order-1", PAYLOAD)
    (name,) = world.started()
    assert 1_000 <= int(name.rpartition("--")[2])


def test_an_open_attempt_settles_the_lock_of_a_dead_key_mate(world: Counting):
    """No second one is started beside it."""
    world.dead(name="order-9")
    world.execution("order-1", "RUNNING", "AcquireLock")
    found = world.ask()
    assert ("RUNNING", arn("order-1"), []) == (found.status, found.execution_arn, world.started())


def test_an_owner_that_cannot_be_described_is_asked_about_once_while_it_may_be_too_new(world: Counting):
    """And again when it cannot be that any more."""
    world.execution("order-1", "FAILED", "AcquireLock", error="AlreadyInProgress")
    world.put(name="order-1--2", created=times.to_text(NOW), expectedCompletion=PAST)
    world.attempts(3, closed=NOW + timedelta(seconds=1))

    world.now = NOW + YOUNG - timedelta(seconds=1)
    assert (True, []) == (world.ask().duplicate, world.started())
    world.now = NOW + YOUNG
    world.ask()
    assert ["order-1--4"] == world.started()


def test_racers_after_a_death_get_one_execution_and_one_is_told_so(world: Counting):
    """The other starts the same name a moment later."""
    world.dead()

    def be_quicker(operation: str, about: str) -> None:
        if (operation, about) == ("start_execution", arn("order-1--2")):
            world.execution("order-1--2", "RUNNING", given=envelope() | {"callId": "another"})

    world.sfn.before_call = be_quicker
    receipt = world.ask()

    assert (True, arn("order-1--2")) == (receipt.duplicate, receipt.execution_arn)


def test_the_next_attempt_is_compared_if_the_owner_has_released_its_lock_meanwhile(world: Counting):
    """The owner was looked at because it held the lock a moment ago. Then another caller came."""
    world.execution("order-1", "FAILED", *TO_WORK, "ReleaseLock", error="RetryLater")
    world.put(expectedCompletion=PAST)

    def be_quicker(operation: str, about: str) -> None:
        if (operation, about) == ("describe_execution", arn("order-1--2")):
            world.put(status=RELEASED, openStatus=None, ttl=TTL)
            world.execution("order-1--2", "RUNNING", given=envelope() | ANOTHER_PAYLOAD)

    world.sfn.before_call = be_quicker
    with pytest.raises(PayloadMismatch):
        world.ask()


ANSWERED: dict[str, Any] = {"status": COMPLETED, "openStatus": None, "ttl": TTL, "result": "7"}


def test_the_answer_of_an_execution_that_ends_meanwhile_is_told(world: Counting):
    """There was no record yet when the start looked for one. Another attempt would only replay it."""
    world.execution("order-1", "RUNNING", *TO_WORK)

    def end_now(operation: str, _about: str) -> None:
        if operation == "describe_execution":
            world.execution("order-1", "SUCCEEDED", *TO_WORK)
            world.put(**ANSWERED)

    world.sfn.before_call = end_now
    assert (COMPLETED, 7) == ((receipt := world.ask()).status, receipt.result)
    assert [] == world.started()


def test_the_answer_of_this_call_s_own_execution_is_told(world: Counting, monkeypatch: pytest.MonkeyPatch):
    """AWS's answer was lost and the SDK repeated the call. The execution has failed finally since."""
    start = world.sfn.start_execution

    def lose(**given: Any) -> None:
        start(**given)
        raise client_error("ExecutionAlreadyExists")

    def end_now(operation: str, _about: str) -> None:
        if operation == "describe_execution":
            failure = '{"Error": "CardDeclined", "Cause": null}'
            world.sfn.close(arn("order-1"), "FAILED", "CardDeclined")
            call_id = world.sfn.started[0]["callId"]
            world.put(status=FAILED, openStatus=None, ttl=TTL, failure=failure, callId=call_id)

    monkeypatch.setattr(world.sfn, "start_execution", lose)
    world.sfn.before_call = end_now
    receipt = world.client.start("order-1", PAYLOAD)
    assert ("CardDeclined", False, False) == (receipt.error, receipt.may_run_again, receipt.duplicate)


@pytest.mark.parametrize("in_vain", [(), (2, 3)])
def test_the_answer_of_a_dead_owner_that_is_settled_meanwhile_is_told(
    world: Counting, in_vain: Sequence[int]
):
    """The monitor has read it back. Another attempt would only replay it."""
    world.dead()
    world.attempts(*in_vain)
    world.now = NOW + WAIT

    def settle(operation: str, about: str) -> None:
        if (operation, about) == ("describe_execution", arn(f"order-1--{max(in_vain, default=2)}")):
            world.put(created=PAST, **ANSWERED)

    world.sfn.before_call = settle
    assert (COMPLETED, 7) == ((receipt := world.ask()).status, receipt.result)
    assert [] == world.started()


def test_a_start_whose_answer_was_lost_is_no_duplicate(world: Counting):
    """The SDK repeats it and is told that the name is taken: by this very call."""
    world.dead()
    error = client_error("ExecutionAlreadyExists")
    error.response["ResponseMetadata"]["RetryAttempts"] = 1
    world.sfn.lose_answers("start_execution", "order-1--2", error)

    receipt = world.client.start("order-1", PAYLOAD)

    assert (False, arn("order-1--2")) == (receipt.duplicate, receipt.execution_arn)


# -- no record answers -----------------------------------------------------------------------------
@pytest.mark.parametrize("many", [1, 2, 100, 1_000])
def test_the_record_says_which_attempt_was_the_last(world: Counting, many: int):
    """After any number of releases."""
    name = "order-1" if many == 1 else f"order-1--{many}"
    world.execution("order-1", "FAILED", *TO_WORK)
    world.attempts(*range(2, many + 1))
    world.put(name=name, status=RELEASED, openStatus=None, ttl=TTL, callId="call-9")

    world.ask()

    assert [f"order-1--{many + 1}"] == world.started()


@pytest.mark.parametrize("later", [0, 1])
@covering.first(2, "released", [1, 2, 100])
def test_an_attempt_that_was_redriven_after_its_release_is_running(
    world: Counting, released: int, later: int
):
    """The next attempt took the free lock, and worked beside it."""
    name = "order-1" if released == 1 else f"order-1--{released}"
    world.execution("order-1", "FAILED", *TO_WORK)
    world.attempts(*range(2, released + 1 + later))
    world.execution(name, "RUNNING", *TO_WORK)
    world.put(name=name, status=RELEASED, openStatus=None, ttl=TTL)

    for _ in range(2):
        receipt = world.client.start("order-1", PAYLOAD) if later else world.ask()
        assert ("RUNNING", True, arn(name)) == (receipt.status, receipt.duplicate, receipt.execution_arn)
        assert 3 + later >= world.calls["describe_execution"]
        world.calls.clear()
    assert [] == world.started()
    status = world.client.status("order-1")
    assert ("RUNNING", arn(name)) == (status.status, status.execution_arn)

    world.execution(name, "RUNNING", *TO_WORK, given=envelope() | ANOTHER_PAYLOAD)
    with pytest.raises(PayloadMismatch):
        world.client.start("order-1", PAYLOAD)
    with pytest.raises(PayloadMismatch):
        world.client.wait("order-1", timeout_seconds=0, payload=PAYLOAD)


@pytest.mark.parametrize("many", [1, 2, 3, 4, 5, 99, 100, 1_000])
def test_without_a_record_the_last_attempt_is_found_by_a_search_that_doubles(world: Counting, many: int):
    """Exactly the next name, in few steps."""
    world.execution("order-1", "FAILED", *TO_WORK)
    world.attempts(*range(2, many + 1))

    receipt = world.client.start("order-1", PAYLOAD)

    assert [f"order-1--{many + 1}"] == world.started()
    assert (False, 2) == (receipt.duplicate, world.calls["start_execution"])
    assert 2 * many.bit_length() + 1 >= world.calls["describe_execution"]


def test_older_attempts_that_are_forgotten_do_not_mislead(world: Counting):
    """After 90 days the first name is free again, the ninth not yet: the next free one is taken."""
    world.execution("order-1", "FAILED", *TO_WORK, error="RetryLater")
    world.attempts(2, 3, 4, 9, 10)
    world.put(name="order-1--4", status=RELEASED, openStatus=None, ttl=TTL, callId="call-9")
    assert ["order-1--5"] == [world.ask() and world.started()[0]]

    world.attempts(5, 6, 7, 8)
    world.put(name="order-1--8", status=RELEASED, openStatus=None, ttl=TTL, callId="call-9")
    world.client.start("order-1", PAYLOAD)
    assert ["order-1--11"] == world.started()


def test_a_record_is_its_request_s_whatever_its_execution_is_called(world: Counting):
    """The caller's own id says whose it is; the execution's name says which attempt."""
    name = name_of("order/1")
    world.execution(f"{name}--2", "FAILED", *TO_WORK, error="RetryLater", given=envelope(f"m/{name}"))
    world.execution(name, "FAILED", *TO_WORK, error="RetryLater", given=envelope(f"m/{name}"))
    lock = world.put(
        f"m/{name}", f"{name}--2", requestId="order/1", status=RELEASED, openStatus=None, ttl=TTL
    )

    assert (2, 0) == (
        world.machine.attempt_of(lock, "order/1"),
        world.machine.attempt_of(lock, name),
    )
    world.client.start("order/1", PAYLOAD)
    (started,) = world.sfn.started
    assert (f"{name}--3", "order/1") == (started["name"], started["requestId"])


def test_an_execution_by_hand_under_any_name_has_a_record_of_its_own(world: Counting):
    """Its name is its request id, and the client makes another name of it."""
    lock = world.put(f"m/{name_of('order.1')}", "order.1")

    assert (1, lock.locked_by) == (
        world.machine.attempt_of(lock, "order.1"),
        world.client.status("order.1").execution_arn,
    )


def test_a_request_that_is_called_like_another_one_s_attempt_is_its_own(world: Counting):
    """They share a key, and the second attempt of the one has it."""
    lock = world.put(name="order-1--2")

    assert [2, 0] == [world.machine.attempt_of(lock, one) for one in ("order-1", "order-1--2")]


def test_an_attempt_on_its_way_to_the_lock_is_found(world: Counting):
    """By start, and by status."""
    world.execution("order-1", "FAILED", *TO_WORK)
    world.attempts(2, 3)
    world.execution("order-1--4", "RUNNING", given=envelope() | {"callId": "another"})

    assert arn("order-1--4") == world.client.start("order-1", PAYLOAD).execution_arn
    assert arn("order-1--4") == world.client.status("order-1").execution_arn
    assert [] == world.started()


@pytest.mark.parametrize("newest", ["order-1", "order-1--2"])
def test_an_id_keeps_its_lock_token_after_a_release(world: Counting, newest: str):
    """Otherwise two callers could run one request under two lock tokens."""
    world.execution("order-1", "FAILED", *TO_WORK, error="RetryLater")
    world.execution(newest, "FAILED", *TO_WORK, error="RetryLater")
    world.put(name=newest, status=RELEASED, openStatus=None, ttl=TTL)

    with pytest.raises(LockTokenMismatch, match=r"with the lock token 'm/order-1'.* Send the first"):
        world.client.start("order-1", PAYLOAD, lock_token="m/other")
    assert [] == world.started()
    assert not world.ask().duplicate


@pytest.mark.parametrize("given", [None, {"payload": PAYLOAD, "lockToken": "m/order-1"}])
def test_under_another_lock_token_there_is_no_such_request(world: Counting, given: dict[str, Any] | None):
    """Nobody can have started it under that one, also not by hand."""
    world.execution("order-1", "RUNNING", *TO_WORK, given=given)
    with pytest.raises(RequestNotFound):
        world.client.status("order-1", lock_token="m/other")
    assert "RUNNING" == world.client.status("order-1").status


@pytest.mark.parametrize("token", ["", " ", 5, "x" * 2_049, "\udcff"])
def test_what_can_be_no_lock_token_is_not_looked_for(world: Counting, token: Any):
    """DynamoDB refuses such a key with an error of its own."""
    with pytest.raises(InvalidRequest):
        world.client.status("order-1", lock_token=token)


def test_a_first_attempt_by_hand_may_have_no_lock_token(world: Counting):
    """Its payload has none where the rules look. The next attempt has one, and the request keeps it."""
    world.machine.rules = RequestRules(key_prefix="m", lock_token_path="orderId")
    world.execution("order-1", "FAILED", "PrepareRequest", given={"payload": {"amount": 5}})
    assert not world.ask().duplicate
    assert ("m/1", "RUNNING") == (
        world.client.status("order-1").lock_token,
        world.client.status("order-1").status,
    )
    with pytest.raises(LockTokenMismatch):
        world.client.start("order-1", {"orderId": "2"})


@pytest.mark.parametrize(
    ("status", "record"), [("SUCCEEDED", COMPLETED), ("ABORTED", INPROGRESS), ("RUNNING", INPROGRESS)]
)
@pytest.mark.parametrize("path", [None, "customer"])
def test_a_first_attempt_by_hand_has_the_lock_token_of_its_history(
    world: Counting, status: str, record: str, path: str | None
):
    """The rules of its machine were others, or this client does not know them. The work ran twice."""
    world.machine.rules = RequestRules(key_prefix="new", lock_token_path=path)
    world.by_hand("old/order-1", status)
    world.put("old/order-1", status=record, result="7", ttl=TTL)

    with pytest.raises(LockTokenMismatch, match="with the lock token 'old/order-1'"):
        world.client.start("order-1", PAYLOAD | {"customer": "c-1"})
    assert [] == world.started()
    assert "order-1" == world.client.start("order-1", PAYLOAD, lock_token="old/order-1").request_id


@pytest.mark.parametrize("path", [None, "orderId"])
def test_who_asks_for_a_request_by_hand_asks_for_the_lock_token_of_its_history(
    world: Counting, path: str | None
):
    """By the new rules, its order is another request's, whose answer or lock it must not touch."""
    world.machine.rules = RequestRules(key_prefix="new", lock_token_path=path)
    world.by_hand("old/order-1", "SUCCEEDED")
    world.put("old/order-1", status=COMPLETED, openStatus=None, result="7", ttl=TTL)
    world.execution("order-2", "SUCCEEDED", given=envelope("new/1") | {"requestId": "order-2"})
    world.put("new/1", "order-2", status=COMPLETED, openStatus=None, result="8", ttl=TTL)

    found = world.client.status("order-1")

    assert ("old/order-1", 7) == (found.lock_token, found.result)
    assert world.lock("old/order-1") == lock_of_request(world.machine, "order-1")
    with pytest.raises(Refused, match="Nothing of request 'order-1' runs"):
        find_running(world.machine, "order-1")


def test_a_request_by_hand_is_cancelled_under_the_lock_token_of_its_history(world: Counting):
    """Under the one of the new rules, everyone who asks for that order would get Cancelled."""
    world.machine.rules = RequestRules(key_prefix="new", lock_token_path="orderId")
    world.by_hand("old/order-1", "FAILED", error="RetryLater")
    world.put("old/order-1", status=RELEASED, openStatus=None, ttl=TTL)

    cancel(world.machine, find_running(world.machine, "order-1"), by="alice", why="x")

    assert FAILED == world.lock("old/order-1").status
    assert world.machine.locks.get("new/1") is None


def test_a_first_attempt_by_hand_that_was_released_keeps_the_lock_token_of_its_history(world: Counting):
    """The caller that names it gets the next attempt."""
    world.machine.rules = RequestRules(key_prefix="new")
    world.by_hand("old/order-1", "FAILED", error="RetryLater")
    world.put("old/order-1", status=RELEASED, openStatus=None, ttl=TTL)

    with pytest.raises(LockTokenMismatch, match="with the lock token 'old/order-1'"):
        world.client.start("order-1", PAYLOAD)
    world.client.start("order-1", PAYLOAD, lock_token="old/order-1")
    assert ["order-1--2"] == world.started()


def test_a_quicker_caller_s_payload_is_compared(world: Counting):
    """Both find the first attempt released. The slower one must not get the answer to another payload."""
    world.execution("order-1", "FAILED", *TO_WORK, error="RetryLater")

    def be_quicker(operation: str, about: str) -> None:
        if (operation, about) == ("start_execution", arn("order-1--2")):
            world.execution("order-1--2", "RUNNING", given=envelope() | ANOTHER_PAYLOAD)

    world.sfn.before_call = be_quicker
    with pytest.raises(PayloadMismatch):
        world.ask()
    assert [] == world.started()


def test_a_quicker_caller_s_lock_token_is_compared(world: Counting):
    """It can be another one if the first attempt was started by hand and had none."""
    world.machine.rules = RequestRules(key_prefix="m", lock_token_path="orderId")
    world.execution("order-1", "FAILED", "PrepareRequest", given={"payload": {}})

    def be_quicker(operation: str, about: str) -> None:
        if (operation, about) == ("start_execution", arn("order-1--2")):
            world.execution("order-1--2", "RUNNING", given=envelope("m/2"))

    world.sfn.before_call = be_quicker
    with pytest.raises(LockTokenMismatch):
        world.ask()


def test_a_quicker_caller_that_has_released_its_lock_does_not_count_as_running(world: Counting):
    """Nothing of this request runs."""
    world.execution("order-1", "FAILED", *TO_WORK, error="RetryLater")

    def be_quicker(operation: str, about: str) -> None:
        if (operation, about) == ("start_execution", arn("order-1--2")):
            world.execution("order-1--2", "FAILED", error="RetryLater", given=envelope() | ANOTHER_PAYLOAD)

    world.sfn.before_call = be_quicker
    with pytest.raises(Unavailable):
        world.ask()
    world.ask()
    assert ["order-1--3"] == world.started()


@pytest.mark.parametrize("status", ["RUNNING", "FAILED", "SUCCEEDED"])
def test_an_execution_by_hand_under_an_attempt_s_name_is_no_second_key(world: Counting, status: str):
    """It has brought its own lock token, so it is another request, and its end is not this one's."""
    world.execution("order-1", "FAILED", *TO_WORK, error="RetryLater")
    world.put(status=RELEASED, openStatus=None, ttl=TTL, failure='{"Error": "RetryLater", "Cause": null}')
    world.another_by_hand(status)
    world.put("m/other", "order-1--2", status=COMPLETED, openStatus=None, ttl=TTL, requestId="order-1--2")

    found = world.client.status("order-1")

    assert ("FAILED", "RetryLater", arn("order-1")) == (found.status, found.error, found.execution_arn)
    world.client.start("order-1", PAYLOAD)
    assert ["order-1--3"] == world.started()


def test_a_wait_goes_on_to_the_attempt_that_follows_a_release(world: Counting):
    """Whatever error it had: an operator's retry releases the record, and then starts the attempt."""
    world.execution("order-1", "FAILED", *TO_WORK, error="States.Timeout")
    world.put(status=RELEASED, openStatus=None, ttl=TTL, failure='{"Error": "States.Timeout", "Cause": null}')

    looks: list[str] = []

    def start_the_attempt(_operation: str, about: str) -> None:
        looks.append(about)
        if looks.count(arn("order-1--2")) == 2:
            world.put(name="order-1--2", status=COMPLETED, openStatus=None, ttl=TTL, result="7")

    world.sfn.before_call = start_the_attempt
    assert ("COMPLETED", 7) == ((done := world.client.wait("order-1")).status, done.result)


@pytest.mark.parametrize("status", ["RUNNING", "FAILED"])
def test_an_execution_by_hand_under_an_attempt_s_name_settles_no_death(world: Counting, status: str):
    """The next name is free."""
    world.dead()
    world.another_by_hand(status)
    assert (False, ["order-1--3"]) == (world.ask().duplicate, world.started())


def test_an_execution_by_hand_under_an_attempt_s_name_names_no_lock_token(world: Counting):
    """The first attempt by hand had none, and nobody has started the request since."""
    world.machine.rules = RequestRules(key_prefix="m", lock_token_path="customer")
    world.execution("order-1", "FAILED", "PrepareRequest", given={"payload": {"orderId": "9"}})
    world.another_by_hand("SUCCEEDED")
    answer = {"result": "7", "payloadHash": world.machine.rules.payload_hash({"orderId": "9"})}
    world.put("m/other", "order-1--2", status=COMPLETED, ttl=TTL, requestId="order-1--2", **answer)
    with pytest.raises(RequestNotFound):
        world.client.status("order-1")


def test_an_open_execution_has_no_answer_yet_though_another_request_s_record_has_one(world: Counting):
    """Where duplicates are refused, the caller got the other request's result, and then the refusal."""
    world.put(name="order-9", status=COMPLETED, openStatus=None, ttl=TTL, result="7")
    world.execution("order-1", "RUNNING")
    assert ("RUNNING", arn("order-1")) == (world.ask().status, world.ask().execution_arn)
    world.sfn.close("order-1", "FAILED", "DuplicateRefused")
    assert ("FAILED", "DuplicateRefused") == (world.ask().status, world.ask().error)


@pytest.mark.parametrize(
    ("errors", "refused"),
    [(["AlreadyInProgress", "DuplicateRefused"], True), (["DuplicateRefused", "AlreadyInProgress"], False)],
)
def test_the_newest_attempt_says_whether_another_request_s_answer_was_refused(
    world: Counting, errors: list[str], refused: bool
):
    """`start` and `status` gave two answers where an attempt before it had ended otherwise."""
    world.put(name="order-9", status=COMPLETED, openStatus=None, ttl=TTL, result="7")
    world.execution("order-1", "FAILED", error=errors[0])
    world.attempts(2, error=errors[1])
    found = [world.ask(), world.client.status("order-1")]
    expected = ("FAILED", "DuplicateRefused", None) if refused else ("COMPLETED", None, 7)
    assert [expected] * 2 == [(one.status, one.error, one.result) for one in found]
    assert {arn("order-1--2") if refused else arn("order-9")} == {one.execution_arn for one in found}


def test_a_first_attempt_that_succeeded_before_the_record_was_taken_says_nothing_of_it(world: Counting):
    """Its own answer has expired, another request took the key, and its next attempt was refused."""
    answer = {"status": COMPLETED, "openStatus": None, "ttl": TTL, "result": "7"}
    world.put(name="order-9", created=times.to_text(NOW), **answer)
    world.execution("order-1", "SUCCEEDED", closed=NOW - timedelta(days=1))
    world.attempts(2, error="DuplicateRefused")
    found = [world.ask(), world.client.status("order-1")]
    assert [("FAILED", "DuplicateRefused")] * 2 == [(one.status, one.error) for one in found]

    world.execution("order-1", "SUCCEEDED", closed=NOW)
    assert (7, 1) == (world.ask().result, world.calls["describe_execution"])


def test_a_first_attempt_has_replayed_a_record_that_was_taken_at_a_whole_second(world: Counting):
    """Step Functions writes such a time without `.000`, and that text is the latest of its second."""
    answer = {"status": COMPLETED, "openStatus": None, "ttl": TTL, "result": "7"}
    world.put(name="order-9", created="2026-01-31T12:00:00Z", **answer)
    world.execution("order-1", "SUCCEEDED", closed=NOW + timedelta(milliseconds=400))
    assert (7, 1) == (world.ask().result, world.calls["describe_execution"])


REFUSED_ONCE = {
    "held": {"status": FAILED, "openStatus": "FAILED#3", "failure": '{"Error": "Boom", "Cause": null}'},
    "in progress": {"status": INPROGRESS},
}


FIRST_ENDED = {"succeeded": ("SUCCEEDED", None), "died": ("FAILED", "States.Timeout")}


@pytest.mark.parametrize("record", REFUSED_ONCE.values(), ids=REFUSED_ONCE)
@pytest.mark.parametrize("first", FIRST_ENDED.values(), ids=FIRST_ENDED)
def test_the_newest_attempt_was_refused_however_the_first_has_ended(
    world: Counting, first: tuple[str, str | None], record: dict[str, Any]
):
    """`start` told the record's outcome, and `status` the refusal."""
    status, error = first
    world.execution("order-1", status, closed=NOW - timedelta(days=1), error=error)
    world.attempts(2, error="DuplicateRefused")
    world.put(name="order-9", **{"created": times.to_text(NOW)} | record)
    found = [world.ask(), world.client.status("order-1")]
    assert [("FAILED", "DuplicateRefused")] * 2 == [(one.status, one.error) for one in found]


def test_an_attempt_by_hand_under_another_key_tells_nothing(world: Counting):
    """The one before it has the key that is asked for."""
    world.put(name="order-9", status=COMPLETED, openStatus=None, ttl=TTL, result="7")
    world.execution("order-1", "FAILED", error="DuplicateRefused")
    world.attempts(2, error="AlreadyInProgress")
    world.execution("order-1--3", "FAILED", error="Boom", given=envelope() | {"lockToken": "m/other"})
    assert (COMPLETED, 7) == ((found := world.client.start("order-1", PAYLOAD)).status, found.result)


def test_the_newest_attempt_is_about_to_replay_an_error_though_the_first_has_died(world: Counting):
    """`start` told the error already, and `status` said that the request runs."""
    world.execution("order-1", "FAILED", error="States.Timeout", closed=NOW - timedelta(days=1))
    world.execution("order-1--2", "RUNNING")
    world.put(name="order-9", **{"created": times.to_text(NOW)} | REFUSED_ONCE["held"])
    found = [world.ask(), world.client.status("order-1")]
    expected = ("RUNNING", arn("order-1--2"))
    assert [expected] * 2 == [(one.status, one.execution_arn) for one in found]


def test_a_record_of_powertools_says_not_when_it_was_taken(world: Counting):
    """So a first attempt that has succeeded counted as its replay, and hid the refusal of the next one."""
    world.execution("order-1", "SUCCEEDED", closed=NOW - timedelta(days=1))
    world.attempts(2, error="DuplicateRefused")
    item = {"lockToken": {"S": "m/order-1"}, "status": {"S": COMPLETED}, "result": {"S": "7"}}
    item |= {"in_progress_expiration": {"N": "1789996460000"}, "ttl": {"N": str(TTL)}}
    world.dynamodb.put_item(TableName="locks", Item=item)
    found = [world.ask(), world.client.status("order-1")]
    assert [("FAILED", "DuplicateRefused")] * 2 == [(one.status, one.error) for one in found]


def test_a_refusal_that_the_work_raised_is_not_the_workflow_s(world: Counting):
    """A guard in the work refused. This request replayed that error, and a person completed the lock then."""
    world.put(name="order-9", status=COMPLETED, openStatus=None, ttl=TTL, result="7")
    raised = json.dumps({"errorType": "DuplicateRefused", "errorMessage": "Key order-9 is completed."})
    world.execution("order-1", "FAILED", error="DuplicateRefused", cause=raised)
    found = [world.ask(), world.client.status("order-1")]
    assert [("COMPLETED", 7)] * 2 == [(one.status, one.result) for one in found]


def test_another_payload_is_refused_also_under_the_id_of_a_refused_duplicate(world: Counting):
    """It was answered with the refusal, and as a message it was acknowledged, though nobody had run it."""
    world.put(name="order-9", status=COMPLETED, openStatus=None, ttl=TTL, result="7")
    world.execution("order-1", "FAILED", error="DuplicateRefused")
    with pytest.raises(PayloadMismatch):
        world.client.start("order-1", {"orderId": "2"})


def test_the_error_says_whose_payload_was_another_one(world: Counting):
    """It named the id, which had this payload alone, and advised a new id, to which the same happened."""
    world.put(name="order-9", payloadHash="another", status=COMPLETED, openStatus=None, ttl=TTL, result="7")
    world.execution("order-1", "FAILED", error="PayloadMismatch")
    with pytest.raises(
        PayloadMismatch, match=r"used by another request.* or use a new lock token under a new id\."
    ):
        world.client.start("order-1", PAYLOAD)

    world.put(payloadHash="another", status=COMPLETED, openStatus=None, ttl=TTL, result="7")
    with pytest.raises(PayloadMismatch, match=r"'order-1' .* was started with another payload\."):
        world.client.start("order-1", PAYLOAD)
    with pytest.raises(PayloadMismatch, match=r"'order-1' .* was started with another payload\."):
        world.client.wait("order-1", timeout_seconds=0, payload=PAYLOAD)


ELSEWHERE = {"by a guard": "process/host/1", "at another machine": arn("order-1").replace(":m:", ":refunds:")}
"""Who else can have the same id under the same lock token."""


@pytest.mark.parametrize("owner", ELSEWHERE.values(), ids=ELSEWHERE)
def test_the_same_id_elsewhere_is_another_request(world: Counting, owner: str):
    """Its result was the answer for this one's payload, and where duplicates are refused."""
    answer = {"status": COMPLETED, "openStatus": None, "ttl": TTL, "result": "7", "lockedBy": owner}
    world.put(payloadHash="another", **answer)
    world.execution("order-1", "FAILED", error="PayloadMismatch")
    found = world.client.status("order-1")
    assert ("FAILED", "PayloadMismatch", None) == (found.status, found.error, found.result)

    world.put(**answer)
    world.execution("order-1", "FAILED", error="DuplicateRefused")
    both = [world.ask(), world.client.status("order-1")]
    assert [("FAILED", "DuplicateRefused")] * 2 == [(one.status, one.error) for one in both]

    world.execution("order-1", "SUCCEEDED")
    replayed = world.client.status("order-1")
    assert (7, True) == (replayed.result, replayed.duplicate)


def test_what_has_run_elsewhere_only_is_known_by_its_id(world: Counting):
    """A guard's call has no execution."""
    world.put(lockedBy="process/host/1", status=COMPLETED, openStatus=None, ttl=TTL, result="7")
    assert 7 == world.client.status("order-1").result
    world.put(lockedBy="process/host/1", status=RELEASED, openStatus=None, ttl=TTL)
    assert world.client.status("order-1").may_run_again


def test_an_id_that_is_used_again_has_its_own_payload(world: Counting):
    """Its name was free again, and its record still answered with the result of the first payload."""
    answer = {"status": COMPLETED, "openStatus": None, "ttl": TTL, "result": "7", "callId": "call-9"}
    old = times.to_text(NOW - NAME_KEPT)
    world.put(payloadHash="another", created=old, **answer)
    world.execution("order-1", "FAILED", error="PayloadMismatch")
    found = world.client.status("order-1")
    assert ("FAILED", "PayloadMismatch", None) == (found.status, found.error, found.result)

    world.put(created=old, **answer)
    world.execution("order-1", "SUCCEEDED")
    replayed = world.client.status("order-1")
    assert (7, False) == (replayed.result, replayed.duplicate)


def test_an_old_record_answers_for_the_execution_that_made_it(world: Counting):
    """Also if a later attempt had another payload, or if the execution is forgotten."""
    old = times.to_text(NOW - NAME_KEPT)
    world.put(status=COMPLETED, openStatus=None, ttl=TTL, result="7", created=old)
    assert 7 == world.client.status("order-1").result
    world.execution("order-1", "SUCCEEDED", *TO_WORK)
    world.execution("order-1--2", "FAILED", error="PayloadMismatch", given=envelope() | ANOTHER_PAYLOAD)
    assert 7 == world.client.status("order-1").result


HELD = {"status": FAILED, "openStatus": "FAILED#3", "failure": '{"Error": "Boom", "Cause": null}'}


@pytest.mark.parametrize(
    ("outcome", "ended"),
    [
        ({"status": COMPLETED, "openStatus": None, "ttl": TTL, "result": "7"}, ("SUCCEEDED", None)),
        (HELD, ("FAILED", "Boom")),
    ],
)
def test_a_record_that_was_taken_since_it_was_read_is_read_again(
    world: Counting, outcome: dict[str, Any], ended: tuple[str, str | None]
):
    """The completed request was not found, and the failed one was told to start again."""
    world.put(name="order-9", payloadHash="another", **HELD)
    world.execution("order-1", "FAILED", error="PayloadMismatch")

    def release_and_run(_operation: str, about: str) -> None:
        if about == arn("order-1--2"):
            world.execution("order-1--2", ended[0], *TO_WORK, error=ended[1])
            world.put(name="order-1--2", **outcome)

    world.sfn.before_call = release_and_run
    found = world.client.status("order-1")

    expected = ("COMPLETED", 7, False) if ended[0] == "SUCCEEDED" else ("FAILED", None, False)
    assert expected == (found.status, found.result, found.may_run_again)


RECORDS = {
    "no record": None,
    "the record of another request": {"status": COMPLETED, "openStatus": None, "ttl": TTL, "result": "7"},
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
@pytest.mark.parametrize("is_shown", [False, True])
def test_a_start_is_compared_with_the_first_one_or_not_answered(
    world: Counting, monkeypatch: pytest.MonkeyPatch, record: dict[str, Any] | None, is_shown: bool
):
    """
    DescribeExecution may not show the first one at once. The second one, with another payload, was RUNNING,
    and who waited then got the result of the first.
    """
    if record:
        world.put(name="order-9", **record)
    world.ask()
    world.sfn.refuse("describe_execution", "ExecutionDoesNotExist")
    monkeypatch.setattr(time, "sleep", lambda seconds: world.sfn.heal() if is_shown and seconds else None)

    with pytest.raises(PayloadMismatch if is_shown else Unavailable):
        world.client.start("order-1", {"orderId": "2"})


def test_the_next_attempt_is_compared_with_a_quicker_one_or_not_answered(world: Counting):
    """As above: the quicker caller's attempt is not visible yet."""
    world.execution("order-1", "FAILED", error="RetryLater")
    world.execution("order-1--2", "RUNNING")
    world.sfn.refuse("describe_execution", "ExecutionDoesNotExist", "order-1--2")
    with pytest.raises(Unavailable, match="'order-1' was started a moment ago"):
        world.client.start("order-1", {"orderId": "2"})


def test_an_owner_that_cannot_be_described_yet_is_waited_for(
    world: Counting, monkeypatch: pytest.MonkeyPatch
):
    """As `show` and the workflow do. It was called closed, with an outcome that is not on record."""
    passed = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: passed[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: passed.append(passed.pop() + seconds))
    world.put(created=times.to_text(NOW))
    with pytest.raises(WaitTimeout):
        world.client.wait("order-1", timeout_seconds=60)

    world.now += YOUNG
    with pytest.raises(Unsettled, match="not to be described"):
        world.client.wait("order-1", timeout_seconds=60)


def an_earlier_life(world: Counting, status: str, **earlier: Any) -> None:
    """After 90 days the first attempt's name is free again. That of the second one is not: it ended later."""
    world.execution("order-1--2", status, *TO_WORK, closed=NOW - timedelta(days=89), **earlier)


OTHER_KEY = {"given": envelope("m/order-2") | ANOTHER_PAYLOAD | {"callId": "call-0"}, "error": "Boom"}


@pytest.mark.parametrize("earlier", [{}, OTHER_KEY], ids=["the same request", "another payload and key"])
def test_an_attempt_of_an_earlier_life_says_nothing_of_this_one(world: Counting, earlier: dict[str, Any]):
    """Its end was told as the end of the request that runs."""
    an_earlier_life(world, "FAILED" if earlier else "SUCCEEDED", **earlier)
    assert not world.ask().duplicate
    assert ["order-1"] == world.started()
    assert ("RUNNING", arn("order-1")) == ((now := world.client.status("order-1")).status, now.execution_arn)

    world.end("order-1", "RetryLater")
    ended = world.client.status("order-1")
    assert ("FAILED", "RetryLater", True) == (ended.status, ended.error, ended.may_run_again)
    assert (False, ["order-1--3"]) == (world.ask().duplicate, world.started())
    assert arn("order-1--3") == world.client.status("order-1").execution_arn


@pytest.mark.parametrize(
    "left",
    [
        {"status": RELEASED},
        {"status": COMPLETED, "result": "7", "expiresAt": PAST},
        {"status": COMPLETED, "result": "7", "expiresAt": PAST, "payloadHash": "another"},
    ],
    ids=["released", "expired", "expired, of another payload"],
)
def test_a_record_of_an_earlier_life_says_nothing_of_this_one(world: Counting, left: dict[str, Any]):
    """The search for the newest attempt began at the one that had made the record."""
    an_earlier_life(world, "FAILED", error="OldBoom")
    world.put(
        name="order-1--2",
        callId="call-2",
        attempt=2,
        created=times.to_text(NOW - timedelta(days=90)),
        openStatus=None,
        ttl=TTL,
        **left,
    )
    assert not world.ask().duplicate
    found = world.client.status("order-1")
    assert ("RUNNING", arn("order-1")) == (found.status, found.execution_arn)
    assert arn("order-1") == find_running(world.machine, "order-1").execution_arn
    told = collect(world.client, "order-1")
    assert ("starting", [1]) == (told.diagnosis, [one.number for one in told.attempts])

    world.end("order-1", "States.Timeout")
    found = world.client.status("order-1")
    assert ("FAILED", "States.Timeout", True) == (found.status, found.error, found.may_run_again)


EXPIRED = {"openStatus": None, "ttl": TTL, "expiresAt": PAST}
ANSWERS = {
    "a result": {"status": COMPLETED, "result": "7"},
    "an error": {"status": FAILED, "failure": '{"Error": "CardDeclined", "Cause": null}'},
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_who_waits_for_a_new_attempt_does_not_get_the_expired_answer(
    world: Counting, monkeypatch: pytest.MonkeyPatch, answer: dict[str, str]
):
    """DescribeExecution may not find the attempt at once. The answer was returned as that of the attempt."""
    world.execution("order-1", "SUCCEEDED", *TO_WORK)
    world.put(**EXPIRED, **answer)
    assert (False, ["order-1--2"]) == (world.ask().duplicate, world.started())
    attempt = world.sfn.executions.pop(arn("order-1--2"))

    def show_and_end(_seconds: float) -> None:
        world.sfn.executions[arn("order-1--2")] = attempt
        world.put(name="order-1--2", callId="call-2", status=COMPLETED, openStatus=None, result="8", ttl=TTL)

    monkeypatch.setattr(time, "sleep", show_and_end)
    assert 8 == world.client.wait("order-1").result


def test_an_expired_record_does_not_answer_for_an_execution_that_did_not_make_it(world: Counting):
    """The id's name was free again after 90 days. The new execution's end was told as the old result."""
    world.put(status=COMPLETED, result="7", **EXPIRED)
    world.ask()
    world.end("order-1", error="AlreadyInProgress")
    found = world.client.status("order-1")
    assert ("FAILED", "AlreadyInProgress", None) == (found.status, found.error, found.result)


def test_who_may_read_only_the_table_gets_the_answer_of_an_old_record(world: Counting):
    """Whether its name was used again is not for this reader to see."""
    old = times.to_text(NOW - NAME_KEPT)
    world.put(status=COMPLETED, openStatus=None, ttl=TTL, result="7", created=old)
    world.sfn.refuse("describe_execution", "AccessDeniedException")
    assert 7 == world.client.status("order-1", lock_token="m/order-1").result


@pytest.mark.parametrize("status", [COMPLETED, INPROGRESS])
def test_an_execution_that_cannot_be_described_yet_may_have_another_lock_token(world: Counting, status: str):
    """With the dead owner of another request's lock, the next attempt ran beside it, under another token."""
    world.execution("order-9", "ABORTED", *TO_WORK)
    world.put(name="order-9", status=status, expectedCompletion=PAST, result="7", callId="call-9")
    world.execution("order-1", "RUNNING", *TO_WORK, given=envelope("m/other"))
    world.sfn.refuse("describe_execution", "ExecutionDoesNotExist", "order-1")
    with pytest.raises(Unavailable):
        world.ask()
    assert [] == world.started()
    world.sfn.heal()
    with pytest.raises(LockTokenMismatch):
        world.ask()


def test_when_no_name_is_left_it_is_said_so(world: Counting):
    """Instead of a name that Step Functions would not take."""
    world.execution("order-1", "FAILED")
    world.attempts(MAX_ATTEMPT)
    world.put(name=f"order-1--{MAX_ATTEMPT}", status=RELEASED, openStatus=None, ttl=TTL, callId="call-9")

    with pytest.raises(TooManyAttempts, match="no name for another"):
        world.client.start("order-1", PAYLOAD)


# -- locks retry -----------------------------------------------------------------------------------
@pytest.mark.parametrize("many", [1, 100, 1_000])
def test_a_retry_has_its_name_before_it_releases(world: Counting, many: int):
    """However many attempts have ended without the lock."""
    world.held()
    world.attempts(*range(2, many + 1))
    alice = Operator(world.machine, by="alice", work_timeout_seconds=60)
    lock = alice.prepare("retry", world.lock())

    _, receipt = alice.retry(lock, alice.payload_of(lock), "again")

    assert ([f"order-1--{many + 1}"], False) == (world.started(), receipt.duplicate)


def test_a_retry_without_a_name_leaves_the_lock(world: Counting):
    """It is not released for nothing."""
    world.held()
    world.execution(f"order-1--{MAX_ATTEMPT}", "FAILED", *TO_WORK)
    before = world.put(
        name=f"order-1--{MAX_ATTEMPT}", status=FAILED, openStatus="FAILED#3", failure='{"Error": "Boom"}'
    )
    alice = Operator(world.machine, by="alice", work_timeout_seconds=60)

    with pytest.raises(TooManyAttempts, match=r"Nothing was written\. Release the lock"):
        alice.retry(before, alice.payload_of(before), "again")
    assert before == world.lock()


def test_an_answer_is_one_read(world: Counting):
    """Nothing is described for it."""
    world.execution("order-1", "SUCCEEDED", *TO_WORK)
    world.put(status=COMPLETED, openStatus=None, ttl=TTL, result="7", callId="call-9")
    assert (7, Counter(start_execution=1)) == (world.ask().result, world.calls)
    world.put(status=INPROGRESS)
    assert ("RUNNING", Counter(start_execution=1)) == (world.ask().status, world.calls)


def test_a_failure_that_waits_for_a_person_is_told_from_a_final_one(world: Counting):
    """The record alone says it."""
    world.execution("order-1", "FAILED", *TO_WORK)
    failure = json.dumps({"Error": "Boom", "Cause": None})
    for final in (False, True):
        world.put(
            status=FAILED, failure=failure, openStatus=None if final else "FAILED#3", ttl=TTL * final or None
        )
        assert (not final, Counter(start_execution=1)) == (world.ask().waits_for_person, world.calls)
        assert (not final) == world.client.status("order-1").waits_for_person


def test_an_answer_that_expires_while_it_is_found_is_an_answer(world: Counting):
    """The key is another request's. The HTTP API told the caller of its result that nothing had happened."""
    soon = times.to_text(NOW + timedelta(seconds=1))
    world.put(name="order-9", status=COMPLETED, openStatus=None, ttl=TTL, result="7", expiresAt=soon)
    world.execution("order-1", "SUCCEEDED")

    def pass_time(operation: str, _about: str) -> None:
        world.now += timedelta(seconds=2 * (operation == "describe_execution"))

    world.sfn.before_call = pass_time
    found = [world.ask()]
    world.now = NOW
    found.append(world.client.status("order-1", lock_token="m/order-1"))
    assert [(7, False)] * 2 == [(one.result, one.may_run_again) for one in found]


def test_a_client_knows_how_long_its_stack_s_work_may_take():
    """By the Output; else as long as Lambda allows."""
    settings = {"KeyPrefix": "m", "ExpectedSeconds": "1", "RetentionSeconds": "never"}
    assert 900 == RequestRules.from_settings(settings).longest_work_seconds
    assert 7 == RequestRules.from_settings(settings | {"WorkTimeoutSeconds": "7"}).longest_work_seconds


# -- a refusal of the rate limit -------------------------------------------------------------------
LIMITED = RequestRules("m", rate_limit=1, rate_limit_window="hour", rate_limit_path="orderId")


@pytest.fixture
def refused(world: Counting) -> Counting:
    """A request that the rate limit has refused a second ago, and that is asked for again."""
    world.machine.rules = LIMITED
    end_refused(world, world.client.start("order-1", PAYLOAD))
    world.started()
    world.now += timedelta(seconds=1)
    return world


def end_refused(world: Counting, receipt: Receipt) -> None:
    """The limit refuses the execution that a call has started."""
    cause = cause_until("2026-01-31T13:00:00.000Z")
    world.sfn.close(receipt.execution_arn, "FAILED", "RateLimited", cause, world.now)


def test_polling_a_refused_request_starts_an_execution_now_and_then(refused: Counting):
    """The others get its answer; so a reset of the limit takes effect soon."""
    started = 0
    for _ in range(60):
        receipt = refused.client.start("order-1", PAYLOAD)  # no record says which attempt was the last
        if names := refused.started():
            started += 1
            assert ([f"order-1--{started + 1}"], False) == (names, receipt.duplicate)
            end_refused(refused, receipt)
        else:
            assert (True, "RateLimited", datetime(2026, 1, 31, 13, tzinfo=UTC)) == (
                receipt.duplicate,
                receipt.error,
                receipt.resets_at,
            )
        refused.now += timedelta(seconds=1)
    assert 6 == started


@pytest.mark.parametrize(
    "asked",
    [
        {"count_at": datetime(2026, 1, 31, 11, tzinfo=UTC)},
        {"requested_at": datetime(2026, 1, 31, 11, 59, tzinfo=UTC)},
        {"payload": PAYLOAD | {"amount": 5}},
        {"payload": PAYLOAD | {"orderId": "another user"}},
        {"redelivery": {"tries": 0}},
    ],
    ids=["another window", "another time", "another payload", "another user", "a message"],
)
def test_a_refusal_answers_for_nothing_else(refused: Counting, asked: dict[str, Any]):
    """Not for another window, payload or user; and a message would be lost by it."""
    assert not refused.client.start("order-1", **{"payload": PAYLOAD} | asked).duplicate
    assert ["order-1--2"] == refused.started()


def test_a_refusal_ends_with_its_window(refused: Counting):
    """Though it is a moment ago: now the request counts in the next one."""
    refused.now = datetime(2026, 1, 31, 12, 59, 59, tzinfo=UTC)
    end_refused(refused, refused.ask())
    refused.started()
    assert "RateLimited" == refused.ask().error
    refused.now = datetime(2026, 1, 31, 13, tzinfo=UTC)
    assert (False, ["order-1--3"]) == (refused.ask().duplicate, refused.started())


@pytest.mark.parametrize(("given", "named"), [(None, None), ("acme/1", "acme/1")])
def test_the_error_of_a_refused_request_names_its_own_lock_token(
    world: Counting, given: str | None, named: str | None
):
    """For the start that comes next; the default lock token follows from the id."""
    end_refused(world, world.client.start("order-1", PAYLOAD, lock_token=given))

    with pytest.raises(RateLimited) as refused:
        world.client.result("order-1")
    assert (NextStep("start request", "order-1", lock_token=named),) == refused.value.next_steps


def test_a_caller_that_does_not_know_the_limit_starts_again_after_its_window(world: Counting):
    """At the time that its receipt has named; before it, the refusal answers for it, too."""
    end_refused(world, world.client.start("order-1", PAYLOAD))
    world.started()
    world.now = datetime(2026, 1, 31, 12, 59, 59, tzinfo=UTC)
    end_refused(world, world.ask())
    assert (True, ["order-1--2"]) == (
        world.ask().resets_at == datetime(2026, 1, 31, 13, tzinfo=UTC),
        world.started(),
    )
    world.now = datetime(2026, 1, 31, 13, tzinfo=UTC)
    assert (False, ["order-1--3"]) == (world.ask().duplicate, world.started())


def test_work_that_raises_the_same_error_is_no_refusal(world: Counting):
    """Its cause says something else; nor is an execution that knew of no limit."""
    world.machine.rules = LIMITED
    world.execution("order-1", "FAILED", *TO_WORK, error="RateLimited", cause="busy", closed=NOW)
    assert (False, ["order-1--2"]) == (world.ask().duplicate, world.started())
    end_refused(world, Receipt.running("order-1", "m/order-1", arn("order-1--2"), duplicate=False))
    world.sfn.executions[arn("order-1--2")]["input"] = json.dumps(envelope())
    assert ["order-1--3"] == (world.ask() and world.started())
