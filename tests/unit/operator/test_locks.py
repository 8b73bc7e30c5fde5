"""What an operator may do to a record, and that two of them, or one and a workflow, never cross."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from unittest import mock
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError, CredentialRetrievalError, ReadTimeoutError

from steponce import Guard
from steponce.aws import times
from steponce.errors import (
    InvalidPayload,
    LockNotFound,
    NotRecorded,
    OutputTooLarge,
    RecordChanged,
    Refused,
    ResultForbidden,
    StartRefused,
    StartUnknown,
    Unavailable,
)
from steponce.failure import Failure
from steponce.locks.record import Lock
from steponce.locks.results import Results
from steponce.locks.table import Locks
from steponce.next_step import NextStep
from steponce.operator.allowed import LockAction
from steponce.operator.cancel import cancel
from steponce.operator.cancellable import find_running
from steponce.operator.locks import Operator, result_text
from steponce.operator.next_steps import next_steps
from steponce.operator.records import find_lock, open_locks
from steponce.request.envelope import Envelope
from steponce.request.names import name_of
from steponce.workflow import COMPLETED, FAILED, INPROGRESS, RELEASED
from tests.fakes.errors import client_error
from tests.unit.locks.large import bucket
from tests.unit.one_machine import HASH, PAYLOAD, TO_WORK, WORK_TIMEOUT, World, arn, envelope
from tests.unit.shared_clients import SharedClients

ACTIONS: list[LockAction] = ["release", "complete", "retry"]
PAST = "2020-01-01T00:00:00.000Z"
TTL = 4_000_000_000


@pytest.fixture
def bob(world: World) -> Operator:
    return Operator(world.machine, by="bob", work_timeout_seconds=WORK_TIMEOUT)


def last(lock: Lock) -> tuple[str, str, str]:
    """Who did what to a record last, and why."""
    done = lock.interventions[-1]
    return done.by, done.what, done.why


# -- which record ----------------------------------------------------------------------------------
def test_a_record_is_found_by_its_token_and_by_its_request(world: World):
    """Also where the request had a key of its own: its execution tells."""
    world.put()
    world.execution("pay-7", "RUNNING", given=envelope("acme/charge/7"))
    world.put("acme/charge/7", "pay-7")

    found = [
        find_lock(world.machine, key).lock_token for key in ("m/order-1", "order-1", "acme/charge/7", "pay-7")
    ]
    assert ["m/order-1", "m/order-1", "acme/charge/7", "acme/charge/7"] == found


def test_a_record_is_found_by_a_request_whose_first_attempt_is_forgotten(world: World):
    """Its next attempt tells the lock token, which every attempt of a request has."""
    world.execution("order-1--2", "FAILED", *TO_WORK, "RecordError", given=envelope("acme/1"))
    lock = world.put("acme/1", "order-1--2", status=FAILED, openStatus="FAILED#3")

    assert lock == find_lock(world.machine, "order-1")
    assert "acme/1" == world.client.status("order-1").lock_token


def test_a_record_is_found_by_the_id_that_it_has_on_record(world: World):
    """That is the caller's own, whatever its execution is called."""
    slug = name_of("order/1")
    lock = world.put(f"m/{slug}", f"{slug}--2", requestId="order/1")

    assert lock == find_lock(world.machine, "order/1") == find_lock(world.machine, lock.request_id)
    with pytest.raises(LockNotFound):
        find_lock(world.machine, slug)


def test_a_key_that_is_one_records_token_and_anothers_request_is_ambiguous(world: World):
    """Nobody guesses which of them is meant. Each can be named, although the ids may be the same."""
    records = [world.put("order-1", lockedBy="process/host/7"), world.put()]

    with pytest.raises(Refused, match=r"lock token of request 'order-1', and also .* 'm/order-1'") as raised:
        find_lock(world.machine, "order-1")

    steps = raised.value.next_steps
    assert records == [find_lock(world.machine, step.key, by_token=True) for step in steps]


def test_a_key_that_is_its_own_requests_token_is_not_ambiguous(world: World):
    """Both ways lead to one record."""
    world.execution("order-1", "RUNNING", given=envelope("order-1"))
    world.put("order-1")

    assert "order-1" == find_lock(world.machine, "order-1").lock_token


@pytest.mark.parametrize("key", ["order-1", " ", "m/order-1"])
def test_a_record_that_is_not_there_is_said_so(world: World, key: str):
    """With the list of what is, as the next step."""
    with pytest.raises(LockNotFound) as raised:
        find_lock(world.machine, key)
    assert (NextStep("list locks"),) == raised.value.next_steps


def test_open_locks_come_from_all_shards_the_longest_overdue_first(world: World):
    """And of the statuses that are asked for."""
    for number in range(10):
        status = FAILED if number % 2 else INPROGRESS
        day = f"2026-01-{20 - number:02}T00:00:00.000Z"
        world.put(f"m/{number}", status=status, openStatus=f"{status}#{number}", expectedCompletion=day)

    def tokens(*statuses: str, **until: str) -> str:
        return "".join(lock.lock_token[-1] for lock in open_locks(world.machine, *statuses, **until))

    assert "9876543210" == tokens(INPROGRESS, FAILED)
    assert "97531" == tokens(FAILED)
    assert "86" == tokens(INPROGRESS, expected_until="2026-01-15T00:00:00.000Z")


def test_open_locks_are_found_in_the_default_shards_of_a_stack_that_has_fewer(world: World):
    """A guard that does not know the stack's number has written them."""
    world.machine.rules = replace(world.machine.rules, open_shards=1)
    guard = Guard("locks", session=SharedClients("eu-west-1"))
    for number in range(20):
        with pytest.raises(ZeroDivisionError), guard.begin(f"m/{number}", PAYLOAD):
            raise ZeroDivisionError
    assert {f"m/{number}" for number in range(20)} == {
        lock.lock_token for lock in open_locks(world.machine, FAILED)
    }


# -- what may be done ------------------------------------------------------------------------------
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("status", [INPROGRESS, FAILED])
def test_nothing_is_done_while_the_owner_runs(world: World, alice: Operator, action: LockAction, status: str):
    """Also of a failed one that somebody has redriven; the message says how to end it."""
    world.execution("order-1", "RUNNING", *TO_WORK)
    lock = world.put(status=status, openStatus=f"{status}#3")

    with pytest.raises(Refused, match="still runs") as raised:
        alice.prepare(action, lock)
    assert (NextStep("cancel request", "order-1"),) == raised.value.next_steps


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("status", [INPROGRESS, FAILED])
def test_nothing_is_done_while_the_execution_that_is_the_work_runs(
    world: World, alice: Operator, action: LockAction, status: str
):
    """Its owner is dead, and AWS has not stopped it."""
    lock = world.put(status=status, openStatus=f"{status}#3")
    child = world.start_child(lock)

    with pytest.raises(Refused, match=f"{child}.*still runs"):
        alice.prepare(action, lock)
    assert lock == world.lock()

    events = world.sfn.histories[arn("order-1")]
    world.execution("order-1", "RUNNING", *TO_WORK)  # redriven: to stop its work alone would be a failure
    world.sfn.histories[arn("order-1")] = events
    with pytest.raises(Refused, match="cancel it") as raised:
        alice.prepare(action, lock)
    assert (NextStep("cancel request", "order-1"),) == raised.value.next_steps


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("end", ["FAILED", "TIMED_OUT"])
@pytest.mark.parametrize("status", [INPROGRESS, FAILED])
def test_the_functions_of_an_execution_that_is_the_work_are_waited_for(
    world: World, alice: Operator, action: LockAction, end: str, status: str
):
    """It has outlived its owner by an hour. Its own end does not end its functions."""
    failure = json.dumps({"Error": "States.TaskFailed", "Cause": None}) if status == FAILED else None
    lock = world.put(status=status, openStatus=f"{status}#3", failure=failure)
    child = world.start_child(lock)
    world.sfn.close(child, end, "States.Timeout")

    with pytest.raises(Refused, match="may still run until"):
        alice.prepare(action, lock)

    world.sfn.close(child, end, "States.Timeout", at=datetime.now(UTC) - timedelta(seconds=WORK_TIMEOUT + 11))
    assert world.lock() == alice.prepare(action, world.lock())


@pytest.mark.parametrize("error", ["StepFunctions.ExecutionAlreadyExistsException", "States.TaskFailed"])
def test_a_lock_whose_work_is_an_execution_that_has_succeeded_is_not_freed(
    world: World, alice: Operator, error: str
):
    """The answer of its start was lost, or it was redriven. A retry would do the work again."""
    lock = world.put(status=FAILED, openStatus="FAILED#3", failure=json.dumps({"Error": error, "Cause": "x"}))
    child = world.start_child(lock)
    world.sfn.executions[child]["output"] = '{"paid":7}'
    world.sfn.close(child, "SUCCEEDED", at=datetime.now(UTC) - timedelta(seconds=WORK_TIMEOUT + 11))

    for action in ("release", "retry"):
        with pytest.raises(Refused, match=f"{child}.*has succeeded.* output") as raised:
            alice.prepare(action, lock)
        assert (NextStep("complete lock", lock.lock_token),) == raised.value.next_steps
    with pytest.raises(Refused, match="has succeeded"):
        alice.release(lock, "it was prepared before the redrive")
    assert lock == world.lock() == alice.prepare("complete", lock)


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize(
    "answered",
    [
        {"status": COMPLETED, "result": "1"},
        {"status": FAILED, "failure": '{"Error": "CardDeclined", "Cause": null}'},
    ],
    ids=["completed", "final error"],
)
def test_a_final_answer_never_changes(
    world: World, alice: Operator, action: LockAction, answered: dict[str, Any]
):
    """Somebody may have got it; to run the work again takes another request, and no command that erases."""
    lock = world.put(openStatus=None, ttl=TTL, **answered)

    with pytest.raises(Refused, match=r"does not change\. To run .* another id and another lock token\.$"):
        alice.prepare(action, lock)
    assert lock == world.lock()


@pytest.mark.parametrize("action", ACTIONS)
def test_an_answer_that_has_expired_is_left_alone(world: World, alice: Operator, action: LockAction):
    """The lock is free as it is."""
    lock = world.put(status=COMPLETED, result="1", openStatus=None, ttl=1, expiresAt=PAST)

    with pytest.raises(Refused, match="served its time"):
        alice.prepare(action, lock)


def test_who_released_a_lock_without_a_failure_and_why_is_for_operators_alone(world: World, alice: Operator):
    """Whoever asks gets the failure."""
    done = alice.release(world.put(), "on the fraud watch list")

    assert Failure("Released", "A person has released the lock of this request.") == done.failure
    assert ("alice", "released", "on the fraud watch list") == last(done)


def test_a_free_lock_is_not_released_again(world: World, alice: Operator):
    """But it may still be completed, if the work turns out to have taken effect, or tried again."""
    lock = world.put(status=RELEASED, openStatus=None, ttl=TTL)

    with pytest.raises(Refused, match="free already"):
        alice.prepare("release", lock)
    assert [lock, lock] == [alice.prepare("complete", lock), alice.prepare("retry", lock)]


def test_a_status_that_nobody_knows_is_not_touched(world: World, alice: Operator):
    """Somebody else's record."""
    with pytest.raises(Refused, match="'EXPIRED', which this version does not know"):
        alice.prepare("release", world.put(status="EXPIRED", openStatus=None))


@pytest.mark.parametrize("action", ACTIONS)
def test_what_a_dead_owner_meant_to_write_is_written_first(world: World, alice: Operator, action: LockAction):
    """Releasing its lock would run work again that is done."""
    given = envelope() | {"work": {"result": {"chargeId": "ch_1"}}}
    world.execution("order-1", "ABORTED", *TO_WORK, "CompleteRequest", given=given)

    with pytest.raises(Refused, match="is COMPLETED, completed by alice"):
        alice.prepare(action, world.put())
    assert {"chargeId": "ch_1"} == json.loads(world.lock().result or "")


@pytest.mark.parametrize("action", ["release", "retry"])
def test_work_that_is_done_is_not_run_again(world: World, alice: Operator, action: LockAction):
    """Its result was too large to record, so only completing is left."""
    world.execution("order-1", "FAILED", *TO_WORK, error="ResultTooLarge")
    lock = world.put()

    with pytest.raises(Refused) as raised:
        alice.prepare(action, lock)
    assert (NextStep("complete lock", "m/order-1"),) == raised.value.next_steps
    assert lock == alice.prepare("complete", lock)


@pytest.mark.parametrize(
    ("state", "error", "allowed"), [("AcquireLock", "Stopped", True), ("DoWork", "Stopped", False)]
)
def test_work_that_may_still_run_is_waited_for(
    world: World, alice: Operator, state: str, error: str, allowed: bool
):
    """Stopping an execution does not stop its Lambda; but before the work there is none."""
    world.execution("order-1", "ABORTED", state, error=error, closed=datetime.now(UTC))
    lock = world.put()

    if allowed:
        assert lock == alice.prepare("release", lock)
        assert RELEASED == alice.release(lock, "stuck").status
    else:
        with pytest.raises(Refused, match=r"may (still )?run"):
            alice.prepare("release", lock)


def test_the_work_of_a_cancelled_request_is_waited_for_as_well(world: World, alice: Operator):
    """Its record waits for a person at once, and the message says until when."""
    world.execution("order-1", "ABORTED", *TO_WORK, error="Cancelled", cause="x", closed=datetime.now(UTC))
    lock = world.put()

    with pytest.raises(Refused, match=r"may still run until \d{4}-.*try again then"):
        alice.prepare("release", lock)
    assert (FAILED, "FAILED#3") == (world.lock().status, world.lock().open_status)


def test_an_owner_that_nobody_knows_is_dead_after_a_while(world: World, alice: Operator):
    """Too new to be described it may run; later it is forgotten."""
    young = world.put(created=times.now_text())
    with pytest.raises(Refused, match="cannot be seen yet"):
        alice.prepare("release", young)

    old = world.put()
    assert old == alice.prepare("release", old)


def test_another_execution_under_the_owners_name_is_not_the_owner(world: World, alice: Operator):
    """Names come back after 90 days; a callId never does."""
    lock = world.held()
    world.execution("order-1", "RUNNING", given=envelope() | {"callId": "of today"})

    assert lock == alice.prepare("release", lock)


# -- doing it --------------------------------------------------------------------------------------
def test_a_released_lock_says_who_released_it_and_why(world: World, alice: Operator):
    """And keeps the failure that it had."""
    done = alice.release(alice.prepare("release", world.held()), "nothing was charged")

    assert (RELEASED, None, Failure("Boom", None)) == (done.status, done.open_status, done.failure)
    assert ("alice", "released", "nothing was charged") == last(done)


def test_a_completed_lock_answers_from_now_on(world: World, alice: Operator):
    """With the result, off the open index, and with an end."""
    done = alice.complete(alice.prepare("complete", world.held()), '{"chargeId":"ch_1"}', "it was charged")

    assert (COMPLETED, '{"chargeId":"ch_1"}', None) == (done.status, done.result, done.open_status)
    assert done.ttl is not None
    assert ("alice", "completed", "it was charged") == last(done)


def test_a_retry_starts_the_next_attempt_with_the_same_request(world: World, alice: Operator):
    """Payload, key, time and re-sender are those of the dead execution; the call is a new one."""
    more = {"requestedAt": "2026-01-31T12:00:00.000Z", "redelivery": {"requestId": "order-1", "tries": 1}}
    world.held()
    world.execution("order-1", "FAILED", *TO_WORK, error="Boom", given=envelope() | more)
    lock = alice.prepare("retry", world.lock())

    released, receipt = alice.retry(lock, alice.payload_of(lock), "the bug is mended")

    (started,) = world.sfn.started
    assert ("order-1--2", PAYLOAD, "m/order-1", HASH) == (
        started["name"],
        started["payload"],
        started["lockToken"],
        started["payloadHash"],
    )
    assert more == {name: started[name] for name in more}
    assert started["callId"] != "call-1"
    assert (RELEASED, "RUNNING", arn("order-1--2")) == (
        released.status,
        receipt.status,
        receipt.execution_arn,
    )


def test_a_retry_keeps_the_place_in_the_window_that_admitted_the_request(world: World, alice: Operator):
    """A message's own window was full, so it was counted in a later one. The retry is no request more."""
    world.machine.rules = replace(world.machine.rules, rate_limit=1, rate_limit_path="orderId")
    sent, admitted = (times.now() - timedelta(days=days) for days in (3, 2))
    given = Envelope.make(
        "order-1", PAYLOAD, world.machine.rules, requested_at=sent, count_at=admitted
    ).to_dict()
    world.held()
    world.execution("order-1", "FAILED", *TO_WORK, error="Boom", given=given)
    lock = alice.prepare("retry", world.put(status=FAILED, openStatus="FAILED#3", callId=given["callId"]))

    alice.retry(lock, alice.payload_of(lock), "the bug is mended")

    (started,) = world.sfn.started
    assert (given["limit"], given["requestedAt"]) == (started["limit"], started["requestedAt"])


def test_a_retry_whose_window_is_forgotten_counts_now(world: World, alice: Operator):
    """A failure waits for a person without an end; the counts of its window do not."""
    world.machine.rules = replace(world.machine.rules, rate_limit=1, rate_limit_path="orderId")
    now = times.now()
    with mock.patch.object(times, "now", return_value=now - timedelta(days=45)):
        given = Envelope.make("order-1", PAYLOAD, world.machine.rules, requested_at=times.now()).to_dict()
    given["redelivery"] = {"requestId": "order-1", "tries": 3}
    world.held()
    world.execution("order-1", "FAILED", *TO_WORK, error="Boom", given=given)
    lock = alice.prepare("retry", world.put(status=FAILED, openStatus="FAILED#3", callId=given["callId"]))

    alice.retry(lock, alice.payload_of(lock), "the bug is mended")

    (started,) = world.sfn.started
    assert given["requestedAt"] == started["requestedAt"]
    assert times.from_text(started["limit"]["resetsAt"]) > now
    assert times.from_text(started["redelivery"]["countAt"]) >= now.replace(microsecond=0)  # also if resent


@pytest.mark.parametrize(
    "junk", [{"requestedAt": "yesterday"}, {"limit": {"windowStart": "noon"}}, {"redelivery": ["x"]}]
)
def test_a_retry_leaves_out_what_somebody_wrote_into_the_envelope_by_hand(
    world: World, alice: Operator, junk: dict[str, Any]
):
    """The payload and the lock token are enough for the next attempt."""
    world.held()
    world.execution("order-1", "FAILED", *TO_WORK, error="Boom", given=envelope() | junk)
    lock = alice.prepare("retry", world.lock())

    _, receipt = alice.retry(lock, alice.payload_of(lock), "the bug is mended")

    (started,) = world.sfn.started
    assert arn("order-1--2") == receipt.execution_arn
    assert all(started.get(name) != value for name, value in junk.items())


def test_a_retry_of_a_slugged_request_stays_that_request(world: World, alice: Operator):
    """It keeps the caller's own id, and its next attempt's name is made of that."""
    slug = name_of("order/1")
    world.execution(slug, "FAILED", *TO_WORK, error="Boom", given=envelope(f"m/{slug}"))
    lock = world.put(f"m/{slug}", slug, requestId="order/1", status=FAILED, openStatus="FAILED#3")

    _, receipt = alice.retry(lock, alice.payload_of(lock), "again")

    (started,) = world.sfn.started
    assert (f"{slug}--2", "order/1") == (started["name"], started["requestId"])
    assert "order/1" == receipt.request_id


def test_a_retry_starts_an_attempt_of_its_own_beside_one_that_runs(world: World, alice: Operator):
    """That one has read the failure by now, and is about to answer with it."""
    lock = world.held()
    world.execution("order-1--2", "RUNNING", "IsRequestPrepared", "AcquireLock", "ReadLock")

    _, receipt = alice.retry(lock, alice.payload_of(lock), "the bug is mended")

    assert ["order-1--3"] == [one["name"] for one in world.sfn.started]
    assert (arn("order-1--3"), False) == (receipt.execution_arn, receipt.duplicate)


def test_a_repeated_retry_finds_the_attempt_of_the_first_one(world: World, alice: Operator):
    """It is on its way to the lock, which is free. Another one beside it would be one too many."""
    lock = alice.prepare("retry", alice.release(world.held(), "first half"))
    world.execution("order-1--2", "RUNNING", "IsRequestPrepared")

    _, receipt = alice.retry(lock, alice.payload_of(lock), "second half")

    assert ([], arn("order-1--2"), "RUNNING") == (world.sfn.started, receipt.execution_arn, receipt.status)


def test_a_retry_goes_past_an_execution_by_hand_under_the_name_of_an_attempt(world: World, alice: Operator):
    """It is another request, and its lock token is none of this one's."""
    lock = world.held()
    by_hand = {"payload": PAYLOAD, "lockToken": "acme/1", "callId": "call-2"}
    world.execution("order-1--2", "FAILED", *TO_WORK, given=by_hand)

    alice.retry(lock, alice.payload_of(lock), "again")

    assert ["order-1--3"] == [one["name"] for one in world.sfn.started]


ORDER_9: dict[str, Any] = {"requestId": "order-9", "callId": "call-9", "attempt": 2}


def change_after_release(world: World, monkeypatch: pytest.MonkeyPatch, **attributes: Any) -> None:
    """Let others change the record just after this command has released its lock."""
    write = world.machine.locks.release

    def release_and_change(*arguments: Any, **options: Any) -> bool:
        written = write(*arguments, **options)
        world.put(**attributes)
        return written

    monkeypatch.setattr(world.machine.locks, "release", release_and_change)


@pytest.mark.parametrize("status", [COMPLETED, FAILED])
def test_what_others_settle_in_the_middle_of_a_retry_is_not_started_again(
    world: World, alice: Operator, monkeypatch: pytest.MonkeyPatch, status: str
):
    """It said that it was tried again, and started an attempt that found the answer."""
    lock = world.held()
    change_after_release(world, monkeypatch, status=status, openStatus=None, ttl=TTL)
    with pytest.raises(RecordChanged, match=f"since its release: it is {status}.* Nothing was started"):
        alice.retry(lock, alice.payload_of(lock), "again")
    assert [] == world.sfn.started


def test_a_lock_that_another_request_has_taken_and_released_is_free(
    world: World, alice: Operator, monkeypatch: pytest.MonkeyPatch
):
    """The record is of that one by now. The next look would not find this request under its lock token."""
    lock = world.held()
    change_after_release(world, monkeypatch, status=RELEASED, openStatus=None, ttl=TTL, **ORDER_9)
    alice.retry(lock, alice.payload_of(lock), "again")
    assert ["order-1--2"] == [one["name"] for one in world.sfn.started]


@pytest.mark.parametrize("status", [INPROGRESS, COMPLETED])
def test_a_lock_that_another_request_takes_in_the_middle_of_a_retry_is_left_to_it(
    world: World, alice: Operator, monkeypatch: pytest.MonkeyPatch, status: str
):
    """It said that it was tried again, and started an attempt that found the other one."""
    lock = world.held()
    change_after_release(world, monkeypatch, status=status, **ORDER_9)
    with pytest.raises(RecordChanged, match=f"it is {status} of order-9. Nothing was started"):
        alice.retry(lock, alice.payload_of(lock), "again")
    assert [] == world.sfn.started


@pytest.mark.parametrize("others", [Locks.erase, partial(Locks.complete, result="1", by="bob", why="paid")])
def test_what_others_did_to_a_released_lock_is_not_started_again(
    world: World, alice: Operator, others: Callable[[Locks, Lock], object]
):
    """The operator looked at a released record. Its customer may be erased by now."""
    world.execution("order-1", "FAILED", *TO_WORK, "ReleaseLock", error="RetryLater")
    lock = world.put(status=RELEASED, openStatus=None, ttl=TTL)
    payload = alice.payload_of(lock)
    others(world.machine.locks, lock)

    with pytest.raises(RecordChanged, match="has changed since"):
        alice.retry(lock, payload, "again")
    assert [] == world.sfn.started


def test_a_retry_that_got_no_answer_can_be_repeated(world: World, alice: Operator):
    """The lock is free already, so only the start is left."""
    lock = alice.prepare("retry", alice.release(world.held(), "first half"))

    alice.retry(lock, alice.payload_of(lock), "second half")

    assert ("order-1--2", 1) == (world.sfn.started[0]["name"], len(world.lock().interventions))


SENT_TWICE = client_error("ExpiredTokenException")
SENT_TWICE.response["ResponseMetadata"]["RetryAttempts"] = 1


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (None, "Step Functions did not answer ("),
        (client_error("ThrottlingException"), "Step Functions said ThrottlingException. The lock"),
        (CredentialRetrievalError(provider="sso", error_msg="closed"), "closed. The lock"),
        (SENT_TWICE, "AWS refused Operation with ExpiredTokenException: Invalid: ''. The lock"),
    ],
    ids=["lost", "throttled", "logged out", "logged out after a lost answer"],
)
def test_a_retry_whose_start_may_have_taken_effect_is_not_called_safe_to_repeat(
    world: World, alice: Operator, error: Exception | None, said: str
):
    """Its attempt may have failed before somebody repeats it. The work would run once more, unseen."""
    lock = alice.prepare("retry", world.held())
    world.sfn.lose_answers("start_execution", error=error)
    with pytest.raises(StartUnknown) as told:
        alice.retry(lock, alice.payload_of(lock), "again")
    assert said in str(told.value)
    assert "Look before you repeat the command" in str(told.value)
    assert "try again" not in str(told.value).lower()
    assert (NextStep("show request", "order-1"),) == told.value.next_steps
    assert (["order-1--2"], RELEASED) == ([one["name"] for one in world.sfn.started], world.lock().status)


def test_a_retry_whose_start_boto3_has_sent_twice_is_not_called_refused(
    world: World, alice: Operator, monkeypatch: pytest.MonkeyPatch
):
    """Its name is taken, maybe by itself, and the call after that is refused. It has started something."""
    lock = alice.prepare("retry", world.held())
    payload, get = alice.payload_of(lock), world.machine.locks.get

    def refuse_after_the_start(lock_token: str) -> Lock | None:
        if world.sfn.started:
            raise client_error("ExpiredTokenException")
        return get(lock_token)

    taken = client_error("ExecutionAlreadyExists")
    taken.response["ResponseMetadata"]["RetryAttempts"] = 1
    world.sfn.lose_answers("start_execution", error=taken)
    monkeypatch.setattr(world.machine.locks, "get", refuse_after_the_start)
    with pytest.raises(StartUnknown, match="ExpiredTokenException"):
        alice.retry(lock, payload, "again")


def test_a_repeated_retry_whose_start_has_no_answer_is_not_called_safe_either(world: World, alice: Operator):
    """The lock was free already, and the attempt of the first one may have made it so."""
    lock = alice.prepare("retry", alice.release(world.held(), "first half"))
    world.sfn.lose_answers("start_execution")
    with pytest.raises(StartUnknown):
        alice.retry(lock, alice.payload_of(lock), "second half")


def test_a_retry_whose_start_is_refused_says_so(world: World, alice: Operator):
    """Nothing has started, and the same command is safe. It did not say that the lock is released."""
    lock = alice.prepare("retry", world.held())
    world.sfn.refuse("start_execution", "AccessDeniedException")
    with pytest.raises(StartRefused, match=r"AccessDeniedException.* is released, .* has started nothing"):
        alice.retry(lock, alice.payload_of(lock), "again")
    assert (RELEASED, []) == (world.lock().status, world.sfn.started)


def test_a_retry_without_an_answer_before_its_start_is_safe_to_repeat(
    world: World, alice: Operator, monkeypatch: pytest.MonkeyPatch
):
    """At the most its lock is free by then."""
    lock = alice.prepare("retry", world.held())
    payload = alice.payload_of(lock)
    write = world.machine.locks.release

    def release_unheard(*arguments: Any, **options: Any) -> bool:
        write(*arguments, **options)
        raise Unavailable("DynamoDB did not answer. The same call is safe to try again.")

    with monkeypatch.context() as lost:
        lost.setattr(world.machine.locks, "release", release_unheard)
        with pytest.raises(Unavailable):
            alice.retry(lock, payload, "again")
    assert (RELEASED, []) == (world.lock().status, world.sfn.started)
    alice.retry(alice.prepare("retry", world.lock()), payload, "again")
    assert ["order-1--2"] == [one["name"] for one in world.sfn.started]


def test_a_retry_under_another_lock_token_than_the_newest_attempt_s_is_refused(world: World, alice: Operator):
    """The machine was made anew, so the id was free again. The record is of the machine before."""
    free = world.put(status=RELEASED, openStatus=None, ttl=TTL)
    world.execution("order-1", "FAILED", *TO_WORK, given=envelope("acme/1") | {"callId": "call-2"})
    lock = alice.prepare("retry", free)

    with pytest.raises(Refused, match=r"newest attempt .* has the lock token 'acme/1'") as said:
        alice.retry(lock, {"payload": PAYLOAD}, "again")

    assert (NextStep("inspect lock", "acme/1"),) == said.value.next_steps
    assert ([], free) == (world.sfn.started, world.lock())


def test_a_retry_needs_the_payload(world: World, alice: Operator):
    """A forgotten execution, another one's input: it is said what to do instead, and nothing is written."""
    lock = world.held()
    world.execution("order-1", "FAILED", given=envelope() | {"payloadHash": "another"})
    with pytest.raises(Refused, match="does not hold the payload"):
        alice.payload_of(lock)

    world.sfn.executions.clear()
    with pytest.raises(Refused, match="is forgotten") as raised:
        alice.payload_of(lock)
    start = NextStep("start request", "order-1", lock_token="m/order-1")
    assert (NextStep("release lock", "m/order-1"), start) == raised.value.next_steps
    assert lock == world.lock()

    with pytest.raises(Refused, match=r"with it\. Start the request with that payload") as raised:
        alice.payload_of(alice.release(lock, "its log says no"))
    assert (start,) == raised.value.next_steps


def test_a_retry_takes_no_payload_from_another_execution_under_the_owner_s_name(
    world: World, alice: Operator
):
    """Its machine compares a part of the payloads only, so the hash is the same."""
    lock = world.held()
    other = {"callId": "of today", "payload": PAYLOAD | {"card": "tok_of_another"}, "payloadHash": HASH}
    world.execution("order-1", "FAILED", *TO_WORK, error="Boom", given=envelope() | other)

    with pytest.raises(Refused, match="is forgotten, and its payload with it"):
        alice.payload_of(lock)


Do = Callable[[Operator, Lock], Lock]
release: Do = lambda operator, lock: operator.release(lock, "because")  # noqa: E731 - two words for a table
complete: Do = lambda operator, lock: operator.complete(lock, "1", "because")  # noqa: E731


@pytest.mark.parametrize("first", [release, complete], ids=["released", "completed"])
@pytest.mark.parametrize("second", [release, complete], ids=["release", "complete"])
def test_of_two_operators_one_is_told_that_the_record_has_changed(
    world: World, alice: Operator, bob: Operator, first: Do, second: Do
):
    """And by whom; what the first has written stays."""
    shown = world.held()
    done = first(alice, shown)

    with pytest.raises(RecordChanged, match=r"changed since you looked: it is \w+, \w+ by alice"):
        second(bob, shown)
    assert done == world.lock()


def test_of_two_results_given_under_one_name_and_reason_the_second_is_refused(world: World, alice: Operator):
    """Two scripts run as one user, and say why in the same words."""
    lock = alice.prepare("complete", world.held())
    alice.complete(lock, "1", "incident 42")

    with pytest.raises(RecordChanged, match=r"COMPLETED, completed by alice\. This command has not comp"):
        alice.complete(lock, "2", "incident 42")
    assert "1" == world.lock().result


@pytest.mark.parametrize("how", ["completed", "for another reason", "the time before"])
def test_what_one_person_did_otherwise_is_not_taken_for_this_command(
    world: World, alice: Operator, bob: Operator, how: str
):
    """Two scripts run as one user, or the lock was released in the same words before."""
    shown = world.held()
    if how == "completed":
        alice.complete(shown, "1", "incident 42")
    elif how == "for another reason":
        alice.release(shown, "incident 41")
    else:
        alice.release(shown, "incident 42")
        done = json.dumps([asdict(one) for one in world.lock().interventions])
        shown = world.put(status=FAILED, openStatus="FAILED#3", callId="call-2", interventions=done)
        bob.complete(shown, "1", "it was charged")
    before = world.lock()

    with pytest.raises(RecordChanged, match="This command has not released it"):
        alice.release(shown, "incident 42")
    assert before == world.lock()


def test_who_comes_second_is_not_told_that_nothing_was_written(world: World, alice: Operator, bob: Operator):
    """The first of both has recorded what the dead owner was about to record."""
    failure = {"Error": "Boom", "Cause": None}
    world.execution("order-1", "ABORTED", *TO_WORK, "RecordError", given=envelope() | {"failure": failure})
    shown = alice.prepare("release", world.put())
    bob.release(shown, "nothing happened")

    with pytest.raises(RecordChanged, match=r"released by bob\. This command has not released it") as raised:
        alice.release(shown, "not charged")
    assert "Nothing was written" not in str(raised.value)


@pytest.mark.parametrize("do", [release, complete], ids=["release", "complete"])
def test_a_workflow_that_took_the_lock_meanwhile_keeps_it(world: World, alice: Operator, do: Do):
    """Even if it failed again the same way."""
    shown = world.held()
    world.put(status=FAILED, openStatus="FAILED#3", callId="call-2", lockedBy=arn("order-1--2"), attempt=2)
    before = world.lock()

    with pytest.raises(RecordChanged):
        do(alice, shown)
    assert before == world.lock()


def test_a_lock_that_another_took_while_its_dead_owner_was_settled_is_not_released(
    world: World, alice: Operator
):
    """The other was stopped in its work just now, and its function may go on."""
    world.execution("order-1", "ABORTED", "IsRequestPrepared", "AcquireLock")
    seen = world.put()

    def another_takes_it(operation: str, _about: str) -> None:
        if operation == "get_execution_history":
            world.execution("order-1--2", "ABORTED", *TO_WORK, closed=times.now())
            world.put(name="order-1--2", callId="call-2", attempt=2)

    world.sfn.before_call = another_takes_it
    with pytest.raises(RecordChanged, match="it is INPROGRESS now, of attempt 2"):
        alice.prepare("release", seen)


@pytest.mark.parametrize("do", [release, complete], ids=["release", "complete"])
def test_a_cancellation_that_came_meanwhile_stays(world: World, alice: Operator, bob: Operator, do: Do):
    """It has the owner, the attempt and the status of the failure that waited for a person before."""
    shown = alice.prepare("release", world.held())
    bob.release(shown, "it did not happen")
    cancelled = cancel(world.machine, find_running(world.machine, "order-1"), by="bob", why="by mistake").lock

    with pytest.raises(RecordChanged, match="cancelled by bob"):
        do(alice, shown)
    assert cancelled == world.lock()


@pytest.mark.parametrize("do", [release, complete], ids=["release", "complete"])
def test_an_owner_redriven_while_the_operator_thinks_keeps_its_lock(world: World, alice: Operator, do: Do):
    """It is asked once more right before the write."""
    shown = alice.prepare("release", world.held())
    world.execution("order-1", "RUNNING", *TO_WORK)

    with pytest.raises(Refused, match="still runs"):
        do(alice, shown)
    assert shown == world.lock()


def test_a_record_that_is_gone_has_changed(world: World, alice: Operator):
    """Erased, while somebody looked at it."""
    shown = world.held()
    world.machine.locks.erase(shown)

    with pytest.raises(RecordChanged, match="it is gone") as raised:
        alice.release(shown, "because")
    assert (NextStep("show request", "order-1"),) == raised.value.next_steps


def test_a_write_whose_answer_was_lost_is_not_called_a_conflict(
    world: World, alice: Operator, monkeypatch: pytest.MonkeyPatch
):
    """The SDK repeats it, and the repetition is refused by its own first try."""
    shown, write = world.held(), world.machine.locks.release
    monkeypatch.setattr(world.machine.locks, "release", lambda *a, **k: write(*a, **k) and write(*a, **k))

    assert RELEASED == alice.release(shown, "because").status


def take_and_complete(world: World) -> None:
    """The next attempt takes the released lock and completes it. The interventions stay in the record."""
    world.dynamodb.update_item(
        TableName="locks",
        Key={"lockToken": {"S": "m/order-1"}},
        UpdateExpression="SET #status = :completed, callId = :call, attempt = :attempt",
        ExpressionAttributeNames={"#status": "status"},
        ExpressionAttributeValues={
            ":completed": {"S": COMPLETED},
            ":call": {"S": "call-2"},
            ":attempt": {"N": "2"},
        },
    )


def complete_it(world: World) -> None:
    """Another operator knows its result."""
    bob = Operator(world.machine, by="bob", work_timeout_seconds=WORK_TIMEOUT)
    bob.complete(world.lock(), "1", "it was charged")


def erase_it(world: World) -> None:
    """Another operator erases the customer."""
    world.machine.locks.erase(world.lock())


@pytest.mark.parametrize(
    ("others", "repeats", "what"),
    [
        (erase_it, False, "it is gone"),
        (take_and_complete, True, "it is COMPLETED"),
        (complete_it, True, "it is COMPLETED, completed by bob"),
    ],
    ids=["erased", "run again", "completed"],
)
def test_who_has_written_is_told_so_though_others_were_quick(
    world: World,
    alice: Operator,
    monkeypatch: pytest.MonkeyPatch,
    others: Callable[[World], None],
    repeats: bool,
    what: str,
):
    """The command said that nothing was written, while its release had let the work run again."""
    shown, write = world.held(), world.machine.locks.release

    def release_and_go_on(*arguments: Any, **options: Any) -> bool:
        written = write(*arguments, **options)
        others(world)
        return write(*arguments, **options) if repeats else written

    monkeypatch.setattr(world.machine.locks, "release", release_and_go_on)
    with pytest.raises(RecordChanged, match=f"was released as you said, and has changed since: {what}"):
        alice.release(shown, "because")


def test_another_s_record_is_not_shown_as_completed(
    world: World, alice: Operator, monkeypatch: pytest.MonkeyPatch
):
    """The customer was erased right after the write, and the request has run anew."""
    shown, write = world.held(), world.machine.locks.complete

    def complete_and_run_anew(*arguments: Any, **options: Any) -> bool:
        written = write(*arguments, **options)
        erase_it(world)
        world.put(callId="call-2")
        return written

    monkeypatch.setattr(world.machine.locks, "complete", complete_and_run_anew)
    with pytest.raises(RecordChanged, match="was completed as you said, and has changed since: it is INPROG"):
        alice.complete(shown, "1", "because")


def test_a_retry_beside_a_start_with_another_payload_says_that_the_lock_is_free(
    world: World, alice: Operator
):
    """It told the operator to send the first payload again, and not what it had released."""
    lock = world.held()
    payload = alice.payload_of(lock)

    def another_starts(operation: str, _about: str) -> None:
        if operation == "start_execution":
            world.sfn.before_call = None
            world.execution("order-1--2", "RUNNING", given=envelope() | {"payload": {}, "payloadHash": "0"})

    world.sfn.before_call = another_starts
    with pytest.raises(RecordChanged, match=r"was free, and then somebody .* another payload") as raised:
        alice.retry(lock, payload, "again")
    assert (NextStep("show request", "order-1"),) == raised.value.next_steps
    assert RELEASED == world.lock().status


def test_who_cannot_know_whether_it_has_written_is_not_told_that_it_has_not(
    world: World, alice: Operator, monkeypatch: pytest.MonkeyPatch
):
    """Its answer was lost, and the record that would tell was erased. The request has run anew since."""
    shown, write = world.held(), world.machine.locks.release

    def lose_and_repeat(*arguments: Any, **options: Any) -> bool:
        assert write(*arguments, **options)
        erase_it(world)
        world.put(status=COMPLETED, openStatus=None, ttl=TTL, callId="call-2")
        return write(*arguments, **options)

    monkeypatch.setattr(world.machine.locks, "release", lose_and_repeat)
    with pytest.raises(RecordChanged, match=r"it is COMPLETED\. Look again"):
        alice.release(shown, "because")


@pytest.mark.parametrize(
    ("value", "text"), [({"b": 1, "a": 1.0}, '{"a":1,"b":1}'), (None, "null"), ("é", '"é"')]
)
def test_a_result_is_kept_in_its_canonical_form(value: Any, text: str):
    """Any JSON is a result."""
    assert text == result_text(value, Results())


def test_a_result_that_nobody_could_replay_is_refused():
    """Too large for a workflow, or nothing that JSON can carry."""
    assert 262_144 == len(result_text("x" * 262_142, Results()))
    with pytest.raises(OutputTooLarge, match="262,145 bytes; 262,144 are allowed"):
        result_text("x" * 262_143, Results())
    with pytest.raises(InvalidPayload):
        result_text(2**53, Results())


@pytest.mark.parametrize(
    ("status", "runs", "actions"),
    [
        (INPROGRESS, True, ["cancel request"]),
        (INPROGRESS, False, ["show request"]),
        (FAILED, False, ["complete lock", "retry lock", "release lock"]),
        (RELEASED, False, ["retry lock"]),
        (COMPLETED, False, []),
    ],
)
def test_the_next_steps_fit_the_record(world: World, status: str, runs: bool, actions: list[str]):
    """A final answer has none. How a dead owner ended decides what is allowed, and `show` judges that."""
    open_status = f"{status}#3" if status in (INPROGRESS, FAILED) else None
    lock = world.put("acme/o 1", status=status, openStatus=open_status)

    steps = next_steps(lock, runs=runs)
    assert actions == [step.action for step in steps]
    assert all(step.key == ("acme/o 1" if step.action.endswith("lock") else "order-1") for step in steps)


# -- large results given by hand -------------------------------------------------------------------
def test_a_large_result_given_by_hand_goes_to_the_bucket(world: World, alice: Operator):
    """So a finished request whose result no record could hold gets its answer."""
    world.machine.results = bucket(region="eu-west-1")
    held = world.held()
    text = result_text({"pages": "x" * 300_000}, world.machine.results)

    done = alice.complete(alice.prepare("complete", held), text, "as its log says")

    assert len(done.result or "") < 500
    assert {"pages": "x" * 300_000} == world.client.result("order-1", lock_token=held.lock_token)


@pytest.mark.parametrize("has_bucket", [True, False])
def test_a_result_that_fits_into_the_record_stays_there(world: World, alice: Operator, has_bucket: bool):
    """Powertools' calls read no bucket. Without a bucket, the record takes as much as a workflow replays."""
    if has_bucket:
        world.machine.results = bucket(region="eu-west-1")
    text = result_text({"pages": "x" * (1_000 if has_bucket else 210_000)}, world.machine.results)

    done = alice.complete(alice.prepare("complete", world.held()), text, "as its log says")

    assert text == done.result
    assert not has_bucket or [] == world.machine.results.objects("m/order-1")


def completed_too_late(world: World, alice: Operator) -> pytest.ExceptionInfo[RecordChanged]:
    """Alice's result is kept in the bucket, and the record is another attempt's when she writes it."""
    world.machine.results = bucket(region="eu-west-1")
    shown = world.held()
    world.put(callId="call-2", attempt=2)
    with pytest.raises(RecordChanged, match="Look again") as raised:
        alice.complete(shown, f'"{"x" * 300_000}"', "as its log says")
    return raised


def test_a_large_result_that_no_record_took_is_deleted(world: World, alice: Operator):
    """The customer may have been erased meanwhile, and then nothing would lead to it."""
    completed_too_late(world, alice)

    assert [] == world.machine.results.objects("m/order-1")


@pytest.mark.parametrize(
    "failure",
    [
        client_error("ThrottlingException"),
        ReadTimeoutError(endpoint_url="x"),
        CredentialRetrievalError(provider="sso", error_msg="expired"),
    ],
    ids=repr,
)
def test_a_large_result_whose_record_was_not_written_is_named(
    world: World, alice: Operator, monkeypatch: pytest.MonkeyPatch, failure: Exception
):
    """It stayed in the bucket, and nobody was told where: a new one at each try."""
    world.machine.results = bucket(region="eu-west-1")
    shown = world.held()

    def refuse(**_arguments: Any) -> None:
        raise failure

    with monkeypatch.context() as patched:
        patched.setattr(world.machine.locks._dynamodb, "update_item", refuse)
        with pytest.raises(Unavailable, match="If the record does not name it, delete it") as raised:
            alice.complete(shown, f'"{"x" * 300_000}"', "as its log says")

    ((key, version),) = world.machine.results.objects("m/order-1")
    assert f"{key} (version {version})" in str(raised.value)


DENIED = "AccessDeniedException"
OF_KEY = (
    "KMS key access denied error: com.amazonaws.services.kms.model.AWSKMSException: The ciphertext refers to "
    "a customer master key that does not exist, does not exist in this region, or you are not allowed "
    "to access. (Service: AWSKMS; Status Code: 400; Error Code: AccessDeniedException; Request ID: 1)"
)
"""What DynamoDB says of a table whose key the caller may not use. The code is the same."""


@pytest.mark.parametrize(
    ("call", "code", "told", "says"),
    [
        ("update_item", DENIED, "not today.", "needs dynamodb:UpdateItem on the lock table. Add"),
        ("get_item", DENIED, "not today.", "needs dynamodb:GetItem on the lock table. Add"),
        ("update_item", DENIED, OF_KEY, "needs kms:Decrypt on the KMS key of the lock table. Add"),
        ("get_item", DENIED, OF_KEY, "needs kms:Decrypt on the KMS key of the lock table. Add"),
        ("update_item", "ExpiredTokenException", "not today.", "not today. Correct this, and"),
    ],
    ids=["write", "read", "write with a key", "read with a key", "token"],
)
def test_a_large_result_whose_record_may_not_be_written_says_what_is_missing(
    world: World, alice: Operator, monkeypatch: pytest.MonkeyPatch, call: str, code: str, told: str, says: str
):
    """It asked to try again, which no repetition helps: each would keep the result once more."""
    world.machine.results = bucket(region="eu-west-1")
    shown, text = world.held(), f'"{"x" * 300_000}"'
    operation = {"update_item": "UpdateItem", "get_item": "GetItem"}[call]
    refusal = ClientError({"Error": {"Code": code, "Message": told}}, operation)

    with monkeypatch.context() as patched:
        patched.setattr(world.machine.locks._dynamodb, call, Mock(side_effect=refusal))
        with pytest.raises(NotRecorded, match=says) as raised:
            alice.complete(shown, text, "as its log says")

    ((key, version),) = world.machine.results.objects("m/order-1")
    assert f"as {key} (version {version}). If the record does not name it" in str(raised.value)
    assert (shown.lock_token, text) == (raised.value.lock_token, raised.value.result)


@pytest.mark.parametrize("failure", [ResultForbidden("no"), Unavailable("no answer")], ids=repr)
def test_a_large_result_that_is_not_deleted_is_named(
    world: World, alice: Operator, monkeypatch: pytest.MonkeyPatch, failure: Exception
):
    """Somebody else may delete it."""

    def refuse(*_: Any) -> None:
        raise failure

    monkeypatch.setattr(Results, "delete", refuse)
    raised = completed_too_late(world, alice)

    ((key, version),) = world.machine.results.objects("m/order-1")
    assert f"as {key} (version {version}). It could not be deleted" in str(raised.value)
    assert (NextStep("inspect lock", "m/order-1"),) == raised.value.next_steps


def test_a_large_result_stays_if_only_the_answer_of_its_write_was_lost(
    world: World, alice: Operator, monkeypatch: pytest.MonkeyPatch
):
    """The repeated write is refused by the first."""
    world.machine.results = bucket(region="eu-west-1")
    write = world.machine.locks.complete
    monkeypatch.setattr(world.machine.locks, "complete", lambda *a, **k: write(*a, **k) and write(*a, **k))

    done = alice.complete(world.held(), f'"{"x" * 300_000}"', "as its log says")

    assert "x" * 300_000 == world.machine.results.read(done)
