"""A request that is cancelled does not run: whatever is on its way finds that on record."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from steponce.aws import times
from steponce.errors import OwnerHidden, RecordChanged, Refused, RequestNotFound, Unavailable
from steponce.executions import CANCELLATION
from steponce.failure import Failure
from steponce.locks.record import Lock
from steponce.next_step import NextStep
from steponce.operator import cancel as cancellation
from steponce.operator.cancel import Cancelled, cancel
from steponce.operator.cancel_report import meaning, what_was_done
from steponce.operator.cancellable import Running, find_running
from steponce.operator.locks import Operator
from steponce.operator.next_steps import steps_after_cancel
from steponce.request.names import name_of
from steponce.workflow import COMPLETED, FAILED, INPROGRESS, RELEASED
from tests.fakes.errors import client_error
from tests.unit.one_machine import HASH, LONG_AGO, PAYLOAD, TO_WORK, WORK_TIMEOUT, World, arn, envelope
from tests.unit.two_machines import REFUNDS, at_refunds

PAST, TTL = "2020-01-01T00:00:00.000Z", 4_000_000_000
CANCELLED = Failure("Cancelled", "A person has cancelled this request.")


def cancelled(world: World) -> Lock:
    """The record after the request is cancelled."""
    lock = cancel(
        world.machine, find_running(world.machine, "order-1"), by="alice", why="sent by mistake"
    ).lock
    assert lock is not None
    assert lock == world.lock()
    return lock


def says_so(world: World, lock: Lock) -> None:
    """Whoever asks gets the answer, and nothing is started."""
    assert (FAILED, CANCELLED, None, HASH) == (lock.status, lock.failure, lock.open_status, lock.payload_hash)
    assert lock.ttl is not None
    assert (lock.expires_at or "") > times.now_text()
    assert "alice" == lock.interventions[-1].by
    assert "sent by mistake" in lock.interventions[-1].why
    again = world.client.start("order-1", PAYLOAD, check_owner=True)
    assert ("FAILED", CANCELLED) == (again.status, Failure(again.error, again.cause))
    assert [] == world.sfn.started


@pytest.mark.parametrize("given", [envelope(), {"payload": PAYLOAD}], ids=["by the client", "by hand"])
@pytest.mark.parametrize("states", [(), ("IsRequestPrepared",), ("PrepareRequest",)])
def test_a_request_that_has_no_record_yet_is_cancelled_on_record(world: World, given: Any, states: Any):
    """It was on its way to the lock, which it will not get."""
    world.execution("order-1", "RUNNING", *states, given=given)

    lock = cancelled(world)

    assert "ABORTED" == world.sfn.executions[arn("order-1")]["status"]
    assert (arn("order-1"), "order-1", 1) == (lock.locked_by, lock.request_id, lock.attempt)
    assert "cancelled" == lock.interventions[-1].what
    says_so(world, lock)


def test_a_later_attempt_is_cancelled_by_its_lock_token(world: World):
    """After 90 days nothing but its record names it, and nothing but that token leads to the record."""
    world.execution("order-1--3", "RUNNING", *TO_WORK, given=envelope("acme/1"))
    world.put("acme/1", lockedBy=arn("order-1--3"), executionName="order-1--3", attempt=3)
    with pytest.raises(RequestNotFound):
        find_running(world.machine, "order-1")
    running = find_running(world.machine, "order-1", "acme/1")
    assert (arn("order-1--3"), "acme/1", True) == (running.execution_arn, running.lock_token, running.is_open)
    assert running.holds_the_lock


@pytest.mark.parametrize("given", [envelope(), {"payload": PAYLOAD}], ids=["by the client", "by hand"])
@pytest.mark.parametrize("status", ["RUNNING", "FAILED"])
def test_another_lock_token_is_not_the_requests(world: World, given: Any, status: str):
    """It would be cancelled instead, and the execution be stopped."""
    world.execution("order-1", status, given=given)
    with pytest.raises(RequestNotFound, match="with the lock token 'acme/1'"):
        find_running(world.machine, "order-1", "acme/1")
    token = find_running(world.machine, "order-1").lock_token
    assert token == find_running(world.machine, "order-1", token).lock_token


@pytest.mark.parametrize("closed", ["FAILED", "ABORTED", "TIMED_OUT"])
def test_a_request_that_waits_to_be_sent_again_is_cancelled(world: World, closed: str):
    """Nothing of it runs, and nothing will when its message comes."""
    world.execution("order-1", closed, *TO_WORK, "ReleaseLock", error="RetryLater")
    world.put(status=RELEASED, openStatus=None, ttl=TTL, attempt=3, failure='{"Error": "RetryLater"}')
    running = find_running(world.machine, "order-1")
    assert not running.is_open

    lock = cancelled(world)

    assert 3 == lock.attempt
    assert meaning(running, lock).startswith(
        "No execution of it was running. A later start, also of another request"
    )
    says_so(world, lock)
    with pytest.raises(Refused, match=r"is cancelled already \(cancelled by alice: sent by mistake\)\."):
        find_running(world.machine, "order-1")


def test_an_execution_by_hand_under_an_attempt_s_name_is_not_cancelled(world: World):
    """It has brought its own lock token, so it is another request."""
    world.execution("order-1", "FAILED", *TO_WORK, "ReleaseLock", error="RetryLater")
    world.put(status=RELEASED, openStatus=None, ttl=TTL)
    given = {"payload": PAYLOAD, "lockToken": "m/other"}
    world.execution("order-1--2", "RUNNING", *TO_WORK, given=given)

    says_so(world, cancelled(world))

    assert "RUNNING" == world.sfn.executions[arn("order-1--2")]["status"]


def test_a_request_whose_first_attempt_is_forgotten_is_cancelled_under_its_lock_token(world: World):
    """Its next attempt tells the token. A record of another token would give a second answer."""
    world.execution("order-1--2", "RUNNING", *TO_WORK, given=envelope("acme/1"))
    world.put("acme/1", "order-1--2", attempt=2)

    lock = cancel(
        world.machine, find_running(world.machine, "order-1"), by="alice", why="sent by mistake"
    ).lock

    assert lock == world.lock("acme/1")
    assert ("FAILED", "FAILED#3") == (lock.status, lock.open_status)
    assert world.machine.locks.get("m/order-1") is None


def test_a_request_that_is_visible_only_now_is_cancelled_under_its_lock_token(world: World):
    """DescribeExecution may not know it at the first look; without it the id makes another token."""
    looks = 0

    def show_at_the_second_look(operation: str, _about: str) -> None:
        nonlocal looks
        looks += operation == "describe_execution"
        if looks == 2:
            world.execution("order-1", "RUNNING", "IsRequestPrepared", given=envelope("acme/1"))

    world.sfn.before_call = show_at_the_second_look
    running = find_running(world.machine, "order-1")

    assert "acme/1" == running.lock_token
    cancel(world.machine, running, by="alice", why="sent by mistake")
    assert (CANCELLED, None) == (world.lock("acme/1").failure, world.machine.locks.get("m/order-1"))


def test_a_request_that_was_turned_away_is_cancelled_when_its_key_is_free(world: World):
    """The record is another request's, which has released it: it answers for all who have the key."""
    world.execution("order-1", "FAILED", "AcquireLock", error="AlreadyInProgress")
    world.put(
        name="order-9", callId="call-9", status=RELEASED, openStatus=None, ttl=TTL, payloadHash="another"
    )

    lock = cancelled(world)

    assert arn("order-1") == lock.locked_by
    says_so(world, lock)


def test_an_answer_that_has_served_its_time_makes_room(world: World):
    """As it would for the next execution."""
    world.execution("order-1", "FAILED", "AcquireLock", error="LockContended")
    world.put(status=COMPLETED, openStatus=None, ttl=1, expiresAt=PAST, result="7", callId="call-9")

    lock = cancelled(world)

    assert lock.result is None
    says_so(world, lock)


@pytest.mark.parametrize("status", ["ABORTED", "FAILED"])
def test_a_lock_that_a_dead_execution_left_is_settled_as_cancelled(world: World, status: str):
    """It died of something else, before its work; else the next request would take it over."""
    world.execution("order-1", status, "IsRequestPrepared", "AcquireLock", error="States.Runtime")
    world.put()

    says_so(world, cancelled(world))


def test_a_dead_execution_in_its_work_leaves_the_question_to_a_person(world: World):
    """Nobody can know; nobody runs it again."""
    world.execution("order-1", "TIMED_OUT", *TO_WORK)
    world.put()

    lock = cancelled(world)

    assert (FAILED, "FAILED#3", "Cancelled") == (
        lock.status,
        lock.open_status,
        lock.failure and lock.failure.error,
    )


def test_work_that_is_done_is_not_called_cancelled(world: World):
    """Only its result is missing."""
    world.execution("order-1", "FAILED", *TO_WORK, "ResultTooLarge", error="ResultTooLarge")
    before = world.put()

    with pytest.raises(Refused, match=r"is done, .* complete the lock"):
        cancelled(world)
    assert before == world.lock()


def test_the_attempt_that_has_the_lock_is_the_one_that_is_stopped(world: World):
    """Another one has looked at it since, and has ended."""
    world.execution("order-1", "RUNNING", *TO_WORK)
    world.execution("order-1--2", "FAILED", "AcquireLock", error="AlreadyInProgress")
    world.put()

    cancelled(world)

    assert "ABORTED" == world.sfn.executions[arn("order-1")]["status"]


def test_a_redriven_execution_of_a_failed_request_is_stopped(world: World):
    """Another attempt came after it. The record stays, and waits for a person."""
    world.execution("order-1", "RUNNING", *TO_WORK)
    world.execution("order-1--2", "FAILED", "ReplayError", error="OutcomeUnknown")
    before = world.put(status=FAILED, openStatus="FAILED#3")

    assert before == cancelled(world)
    assert "ABORTED" == world.sfn.executions[arn("order-1")]["status"]


def test_a_dead_attempt_s_lock_is_settled_when_the_one_that_looks_at_it_is_stopped(world: World):
    """Else the monitor would release it, and the message would come back."""
    world.execution("order-1", "ABORTED", "AcquireLock")
    world.execution("order-1--2", "RUNNING", "CheckOwner", given=envelope() | {"callId": "call-2"})
    world.put()

    lock = cancelled(world)

    assert "ABORTED" == world.sfn.executions[arn("order-1--2")]["status"]
    says_so(world, lock)


def test_a_dead_attempt_s_lock_is_settled_though_a_later_attempt_was_turned_away(world: World):
    """Nothing runs, and the lock is still the first one's."""
    world.execution("order-1", "ABORTED", "IsRequestPrepared", "AcquireLock")
    world.put()
    later = envelope() | {"callId": "call-2"}
    world.execution("order-1--2", "FAILED", "AcquireLock", error="AlreadyInProgress", given=later)

    says_so(world, cancelled(world))


# -- races and deaths in between -------------------------------------------------------------------
def test_an_execution_that_takes_its_lock_meanwhile_is_settled(world: World, monkeypatch: pytest.MonkeyPatch):
    """Its write comes between the look and ours, which is refused."""
    world.execution("order-1", "RUNNING", "IsRequestPrepared", "AcquireLock")
    write = world.machine.locks.cancel

    def late(*arguments: Any, **options: Any) -> bool:
        if world.machine.locks.get("m/order-1") is None:
            world.put()
        return write(*arguments, **options)

    monkeypatch.setattr(world.machine.locks, "cancel", late)
    says_so(world, cancelled(world))


def test_an_execution_that_begins_its_work_meanwhile_is_stopped_there(world: World):
    """It is the execution that the operator saw, so this is no other run; a person decides about its work."""
    world.execution("order-1", "RUNNING", *TO_WORK)
    running = find_running(world.machine, "order-1")
    world.put()

    done = cancel(world.machine, running, by="alice", why="sent by mistake")

    assert done.lock == world.lock()
    assert (FAILED, "FAILED#3", "Cancelled") == (
        world.lock().status,
        world.lock().open_status,
        (world.lock().failure or Failure(None, None)).error,
    )


def test_an_execution_that_ends_by_the_answer_itself_is_cancelled(world: World):
    """It was refused the lock, and replayed what stands there, before the stop arrived."""
    world.execution("order-1", "RUNNING", "IsRequestPrepared")

    def end(operation: str, _about: str) -> None:
        if operation == "stop_execution":
            world.sfn.close("order-1", "FAILED", "Cancelled", "bob: first")

    world.sfn.before_call = end
    says_so(world, cancelled(world))


@pytest.mark.parametrize("times_dead", [1, 2])
def test_a_command_that_died_in_between_has_kept_the_request_from_running(world: World, times_dead: int):
    """The record is written before anything is stopped; the same command does the rest."""
    world.execution("order-1", "RUNNING", "IsRequestPrepared")
    world.sfn.refuse("stop_execution", KeyboardInterrupt())
    for _ in range(times_dead):
        with pytest.raises(KeyboardInterrupt):
            cancelled(world)
        assert (FAILED, "Cancelled") == (world.lock().status, (world.lock().failure or CANCELLED).error)

    world.sfn.heal()
    says_so(world, cancelled(world))
    assert 1 == len(world.lock().interventions)


def test_a_write_whose_answer_was_lost_is_not_a_conflict(world: World, monkeypatch: pytest.MonkeyPatch):
    """The repeated one is refused by the first."""
    world.execution("order-1", "RUNNING", "IsRequestPrepared")
    write = world.machine.locks.cancel
    monkeypatch.setattr(world.machine.locks, "cancel", lambda *a, **k: write(*a, **k) and write(*a, **k))
    says_so(world, cancelled(world))


def ended_without_an_outcome(world: World, error: str) -> Running:
    """A request that ran when the operator looked. Its message is to come again."""
    world.execution("order-1", "RUNNING", *TO_WORK)
    if error == "RetryLater":
        world.put()
    running = find_running(world.machine, "order-1")
    if error == "RetryLater":
        world.put(status=RELEASED, openStatus=None, ttl=TTL, failure='{"Error": "RetryLater", "Cause": null}')
    world.sfn.close("order-1", "FAILED", error)
    return running


@pytest.mark.parametrize("error", ["RetryLater", "AlreadyInProgress", "LockContended", "LimitChanged"])
def test_a_request_that_ends_without_an_outcome_meanwhile_is_cancelled(world: World, error: str):
    """That is on record for good, and the command says so."""
    running = ended_without_an_outcome(world, error)

    done = cancel(world.machine, running, by="alice", why="sent by mistake")

    says_so(world, world.lock())
    told = meaning(running, done.lock, by_itself=done.ended_by_itself)
    assert told.startswith("Its execution had ended by itself. A later start")


@pytest.mark.parametrize(("by", "why"), [("bob", "sent by mistake"), ("alice", "something else")])
def test_a_request_that_another_command_has_cancelled_meanwhile_has_changed(world: World, by: str, why: str):
    """The reason that is on record is not this command's."""
    running = ended_without_an_outcome(world, "RetryLater")
    first = cancel(world.machine, running, by=by, why=why)

    with pytest.raises(RecordChanged, match="it is FAILED, and not by this command"):
        cancel(world.machine, running, by="alice", why="sent by mistake")
    assert first.lock == world.lock()


def test_an_earlier_cancellation_in_the_same_words_is_not_this_command_s(world: World):
    """The request has run again since, and completed while the operator thought."""
    world.execution("order-1", "RUNNING", *TO_WORK)
    before = {"by": "alice", "what": "cancelled", "why": "sent by mistake", "at": PAST}
    world.put(interventions=json.dumps([before]))
    running = find_running(world.machine, "order-1")
    world.put(status=COMPLETED, openStatus=None, ttl=TTL, result="7", interventions=json.dumps([before]))
    world.sfn.close("order-1", "SUCCEEDED")

    with pytest.raises(RecordChanged, match="it is SUCCEEDED, and not by this command"):
        cancel(world.machine, running, by="alice", why="sent by mistake")


def test_another_request_that_takes_the_key_meanwhile_keeps_it(world: World, monkeypatch: pytest.MonkeyPatch):
    """It is fenced by what was read; and it is said that this one may run after that."""
    world.execution("order-1", "FAILED", *TO_WORK, error="RetryLater")
    world.put(status=RELEASED, openStatus=None, ttl=TTL)
    running, write = find_running(world.machine, "order-1"), world.machine.locks.cancel
    theirs: list[Lock] = []

    def late(*arguments: Any, **options: Any) -> bool:
        theirs.append(world.put(name="order-9", callId="call-9", attempt=2))
        return write(*arguments, **options)

    monkeypatch.setattr(world.machine.locks, "cancel", late)
    lock = cancel(world.machine, running, by="alice", why="x").lock

    assert theirs[:1] == [lock]
    assert "held by another request" in meaning(running, lock)
    assert [NextStep("inspect lock", "m/order-1")] == steps_after_cancel(theirs[0])


def test_another_request_that_releases_the_key_meanwhile_leaves_it_cancelled(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    """It held the lock when the cancellation was to be recorded. Then nothing kept this one from running."""
    world.execution("order-1", "RUNNING", "IsRequestPrepared")
    theirs = {"name": "order-9", "callId": "call-9"}
    world.put(**theirs)
    running, read = find_running(world.machine, "order-1"), world.machine.locks.get
    reads: list[str] = []

    def look(lock_token: str) -> Lock | None:
        reads.append(lock_token)
        if len(reads) == 4:  # the last look, after the record was found to be another request's
            world.put(**theirs, status=RELEASED, openStatus=None, ttl=TTL)
        return read(lock_token)

    monkeypatch.setattr(world.machine.locks, "get", look)
    monkeypatch.setattr(cancellation, "_SEEN_WITHIN_SECONDS", 15)
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)
    says_so(world, cancel(world.machine, running, by="alice", why="sent by mistake").lock)


def test_a_next_attempt_that_takes_the_lock_meanwhile_is_told_of(world: World):
    """Its message has come back; it is to be cancelled itself."""
    world.execution("order-1", "FAILED", *TO_WORK, error="RetryLater")
    world.put(status=RELEASED, openStatus=None, ttl=TTL)
    running = find_running(world.machine, "order-1")
    world.execution("order-1--2", "RUNNING", *TO_WORK, given=envelope() | {"callId": "call-2"})
    mine = world.put(name="order-1--2", callId="call-2", attempt=2)

    with pytest.raises(RecordChanged, match=r"runs again, as .*order-1--2, and is not cancelled"):
        cancel(world.machine, running, by="alice", why="x")
    assert mine == world.lock()
    assert "Cancelled" == (cancelled(world).failure or CANCELLED).error


def redriven_after_release(world: World, newest: str = "FAILED") -> None:
    """The work of order-1 runs again after a person has released its lock. A later attempt has no lock."""
    world.execution("order-1", "RUNNING", *TO_WORK)
    world.sfn.executions[arn("order-1")] |= {"redriveCount": 1, "startDate": LONG_AGO}
    world.execution("order-1--2", newest, "AcquireLock", given=envelope() | {"callId": "call-2"})
    world.put(status=RELEASED, openStatus=None, ttl=TTL)


@pytest.mark.parametrize("newest", ["FAILED", "RUNNING"])
def test_an_execution_that_was_redriven_after_its_release_is_stopped(world: World, newest: str):
    """It said that no execution was running. The later attempt finds the answer on record."""
    redriven_after_release(world, newest)
    running = find_running(world.machine, "order-1")
    lock = cancelled(world)
    statuses = [world.sfn.executions[arn(name)]["status"] for name in ("order-1", "order-1--2")]
    assert (["ABORTED", newest], arn("order-1")) == (statuses, lock.locked_by)
    said = meaning(running, lock)
    assert said.startswith("Its execution is stopped. A later start")
    assert "It had been redriven, and ran without the lock. So its work may have taken effect" in said
    beside = f"Another execution of the request, {arn('order-1--2')}, runs without the lock."
    assert (beside in said) == (newest == "RUNNING")
    says_so(world, lock)


def test_a_refusal_names_an_execution_that_was_redriven_beside_the_record(world: World):
    """It said that nothing of the request runs."""
    redriven_after_release(world)
    world.put(name="order-1--2", callId="call-2", status="FAILED", openStatus=None, ttl=TTL)
    with pytest.raises(Refused, match=f"{arn('order-1')}, runs without the lock.* stop it in Step Functions"):
        find_running(world.machine, "order-1")


@pytest.mark.parametrize(
    ("newest", "record"), [("FAILED", None), ("RUNNING", None), ("FAILED", "order-1--2")]
)
def test_a_first_attempt_that_was_redriven_is_stopped_though_no_record_names_it(
    world: World, newest: str, record: str | None
):
    """`start` says that it runs. `cancel` wrote the final answer beside its work."""
    redriven_after_release(world, newest)
    world.dynamodb.delete_item(TableName="locks", Key={"lockToken": {"S": "m/order-1"}})
    if record is not None:
        world.put(name=record, callId="call-2", status=RELEASED, openStatus=None, ttl=TTL)
    running = find_running(world.machine, "order-1")
    lock = cancelled(world)
    statuses = [world.sfn.executions[arn(name)]["status"] for name in ("order-1", "order-1--2")]
    assert ["ABORTED", newest] == statuses
    assert "its work may have taken effect" in meaning(running, lock)
    says_so(world, lock)


def test_an_execution_that_is_redriven_while_the_operator_thinks_gets_no_answer(world: World):
    """The record was final then, and no command found what runs. The same command cancels it."""
    redriven_after_release(world)
    again = world.sfn.executions[arn("order-1")]
    world.sfn.executions[arn("order-1")] = again | {"status": "FAILED", "stopDate": LONG_AGO}
    running = find_running(world.machine, "order-1")
    assert (arn("order-1--2"), False) == (running.execution_arn, running.is_open)
    world.sfn.executions[arn("order-1")], before = again, world.lock()

    with pytest.raises(RecordChanged, match=r"runs again, as .*:order-1, and is not cancelled") as raised:
        cancel(world.machine, running, by="alice", why="x")

    assert ([NextStep("cancel request", "order-1")], before) == (list(raised.value.next_steps), world.lock())
    says_so(world, cancelled(world))


OTHERS = [{"callId": "call-9"}, {"lockedBy": arn("order-9"), "requestId": "order-9"}]


@pytest.mark.parametrize("other", OTHERS, ids=["the name's next owner", "another request's"])
def test_only_the_execution_whose_lock_was_released_is_stopped(world: World, other: dict[str, Any]):
    """Another one has its name now, or another request has released the lock."""
    world.execution("order-1", "FAILED", *TO_WORK)
    for name in ("order-1--2", "order-9"):
        world.execution(name, "RUNNING", *TO_WORK)
        world.sfn.executions[arn(name)]["startDate"] = LONG_AGO
    world.execution("order-1--3", "FAILED", "AcquireLock")
    world.put(name="order-1--2", status=RELEASED, openStatus=None, ttl=TTL, **other)
    running = find_running(world.machine, "order-1")
    assert (arn("order-1--3"), False) == (running.execution_arn, running.is_open)


def test_an_execution_that_has_just_released_its_lock_is_not_called_redriven(world: World):
    """It is on its way to its end."""
    world.execution("order-1", "RUNNING", *TO_WORK, "ReleaseLock")
    world.put(status=RELEASED, openStatus=None, ttl=TTL)
    running = find_running(world.machine, "order-1")
    assert "redriven" not in meaning(running, cancelled(world))


def second_attempt(world: World, *states: str, **record: Any) -> Lock:
    """The message of the request has come back. The attempt has ended like this."""
    world.execution("order-1--2", "FAILED", *TO_WORK, *states, given=envelope() | {"callId": "call-2"})
    return world.put(name="order-1--2", callId="call-2", attempt=2, **record)


@pytest.mark.parametrize(
    ("states", "record"),
    [
        (("CompleteRequest",), {"status": COMPLETED, "openStatus": None, "ttl": TTL, "result": '"ch_1"'}),
        (("RecordFinalError",), {"status": FAILED, "openStatus": None, "ttl": TTL}),
        (("RecordError",), {"status": FAILED, "openStatus": "FAILED#3"}),
        ((), {}),
    ],
    ids=["completed", "declined", "waits for a person", "dead in its work"],
)
@pytest.mark.parametrize("released", [True, False], ids=["released", "no record"])
def test_a_request_that_has_run_meanwhile_is_told_of(
    world: World, released: bool, states: tuple[str, ...], record: dict[str, Any]
):
    """It may have charged, so nobody hears that nothing of it was running."""
    world.execution("order-1", "FAILED", *TO_WORK, error="RetryLater")
    if released:
        world.put(status=RELEASED, openStatus=None, ttl=TTL)
    running = find_running(world.machine, "order-1")
    second_attempt(world, *states, **record)

    with pytest.raises(RecordChanged, match=r"has run since you looked: its record is [A-Z]+, of .*--2\."):
        cancel(world.machine, running, by="alice", why="x")


def test_a_request_that_waits_again_meanwhile_is_cancelled(world: World):
    """Its second attempt has ended as the first one."""
    world.execution("order-1", "FAILED", *TO_WORK, error="RetryLater")
    world.put(status=RELEASED, openStatus=None, ttl=TTL)
    running = find_running(world.machine, "order-1")
    second_attempt(world, "ReleaseLock", status=RELEASED, openStatus=None, ttl=TTL)

    cancel(world.machine, running, by="alice", why="sent by mistake")

    says_so(world, world.lock())


def test_an_answer_of_another_request_says_nothing_of_this_one(world: World):
    """It has taken the lock token and completed it while the operator thought."""
    world.execution("order-1", "FAILED", *TO_WORK, error="RetryLater")
    world.put(status=RELEASED, openStatus=None, ttl=TTL)
    running = find_running(world.machine, "order-1")
    theirs = world.put(
        name="order-9", callId="call-9", status=COMPLETED, openStatus=None, ttl=TTL, result="7"
    )

    lock = cancel(world.machine, running, by="alice", why="x").lock

    assert theirs == lock
    assert meaning(running, lock).startswith("No execution of it was running. Its lock token has an answer")
    assert "nothing" == what_was_done(running, lock)


def test_the_record_of_a_cancelled_request_still_says_what_people_did_before(world: World):
    """Somebody has released it, and the request waits to be sent again."""
    lock = world.held()
    Operator(world.machine, by="bob", work_timeout_seconds=WORK_TIMEOUT).release(lock, "not charged")
    world.put(
        status=RELEASED,
        openStatus=None,
        ttl=TTL,
        attempt=2,
        interventions=json.dumps([asdict(one) for one in world.lock().interventions]),
    )

    lock = cancelled(world)

    assert [("bob", "released"), ("alice", "cancelled")] == [(one.by, one.what) for one in lock.interventions]
    assert 2 == lock.attempt


def test_the_record_of_a_cancelled_request_has_its_id_and_its_execution(world: World):
    """As if the execution itself had written it."""
    name = name_of("order/1")
    world.execution(name, "RUNNING", "IsRequestPrepared", given=envelope(f"m/{name}"))

    lock = cancel(world.machine, find_running(world.machine, "order/1"), by="alice", why="x").lock

    assert lock is not None
    assert ("order/1", name) == (lock.request_id, lock.execution_name)


@pytest.mark.parametrize("given", [envelope(), {"payload": PAYLOAD}], ids=["by the client", "by hand"])
def test_of_two_operators_at_once_the_answer_is_one_s(world: World, given: Any):
    """Both were shown the same; both have the request cancelled."""
    world.execution("order-1", "FAILED", *TO_WORK, error="RetryLater", given=given)
    world.put(status=RELEASED, openStatus=None, ttl=TTL)
    alice, bob = (find_running(world.machine, "order-1") for _ in range(2))

    first = cancel(world.machine, alice, by="alice", why="sent by mistake").lock
    second = cancel(world.machine, bob, by="bob", why="as well").lock

    assert first == second
    says_so(world, world.lock())


def test_an_answer_stays_for_an_operator_whose_clock_runs_ahead(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    """For everyone else it has not expired yet."""
    world.execution("order-1", "RUNNING", "AcquireLock", given=envelope() | {"callId": "call-2"})
    expires = times.to_text(times.now() + timedelta(minutes=2))
    before = world.put(
        name="order-9", status=COMPLETED, openStatus=None, ttl=TTL, result="7", expiresAt=expires
    )
    ahead = times.now() + timedelta(minutes=4)
    monkeypatch.setattr(times, "now", lambda: ahead)
    running = find_running(world.machine, "order-1")

    lock = cancel(world.machine, running, by="alice", why="x").lock

    assert before == lock == world.lock()
    assert f"COMPLETED, has just expired, at {expires}." in meaning(running, before)
    monkeypatch.undo()
    assert meaning(running, before).endswith(f"which stays until {expires}: COMPLETED.")


@pytest.mark.parametrize("status", [COMPLETED, FAILED])
def test_an_answer_stays(world: World, status: str):
    """Of a request that ended while an execution of it was on its way."""
    world.execution("order-1", "RUNNING", "AcquireLock", given=envelope() | {"callId": "call-2"})
    before = world.put(
        name="order-9", status=status, openStatus=None, ttl=TTL, result="7", failure='{"Error": "E"}'
    )
    running = find_running(world.machine, "order-1")

    lock = cancel(world.machine, running, by="alice", why="x").lock

    assert before == lock
    assert "has an answer already, which stays" in meaning(running, lock)
    assert "stopped" == what_was_done(running, lock)


@pytest.mark.parametrize("error", ["E", "Cancelled"])
def test_a_record_that_waits_for_a_person_is_not_called_an_answer(world: World, error: str):
    """Once it is released, the request may run if it is started again. That one was cancelled, or was not."""
    world.execution("order-1", "RUNNING", "AcquireLock", given=envelope() | {"callId": "call-2"})
    failure = Failure(error, None).to_json()
    before = world.put(name="order-9", status=FAILED, openStatus="FAILED#3", failure=failure)
    running = find_running(world.machine, "order-1")

    lock = cancel(world.machine, running, by="alice", why="x").lock

    assert before == lock
    assert "made by request 'order-9', and waits for a person" in meaning(running, lock)
    assert "stopped" == what_was_done(running, lock)
    offered = [step.action for step in steps_after_cancel(before)]
    assert ["complete lock", "retry lock", "release lock"] == offered


def test_it_is_said_how_long_a_request_stays_cancelled(world: World):
    """A message that comes back later would run again."""
    world.execution("order-1", "RUNNING", "IsRequestPrepared")
    running = find_running(world.machine, "order-1")
    lock = cancelled(world)
    assert meaning(running, lock).endswith(f"gets the error Cancelled until {lock.expires_at}.")

    world.execution("order-2", "RUNNING", "IsRequestPrepared", given=envelope("m/order-2"))
    world.machine.rules = replace(world.machine.rules, retention_seconds=None)
    running = find_running(world.machine, "order-2")
    lock = cancel(world.machine, running, by="alice", why="x").lock or lock
    assert meaning(running, lock).endswith("gets the error Cancelled.")


def test_a_request_whose_key_cannot_be_told_is_stopped_and_that_is_said(world: World):
    """Its input is no payload, so it would not have run either."""
    world.machine.rules = type(world.machine.rules)("m", lock_token_path="key")
    world.execution("order-1", "RUNNING", "PrepareRequest", given={"payload": {}})
    running = find_running(world.machine, "order-1")

    assert Cancelled(None) == cancel(world.machine, running, by="alice", why="sent by mistake")
    assert "is not known" in meaning(running, None)
    assert "alice: sent by mistake" == world.sfn.executions[arn("order-1")]["cause"]
    assert "ABORTED" == world.sfn.executions[arn("order-1")]["status"]


@pytest.mark.parametrize("token", ["", " ", "x" * 2_049, "\ud800", 7], ids=ascii)
def test_a_request_with_a_lock_token_that_cannot_be_one_leaves_no_record(world: World, token: Any):
    """Its machine has refused it, so nothing of it can run. Under a blank key the monitor keeps its place."""
    world.execution("order-1", "FAILED", "PrepareRequest", given={"payload": PAYLOAD, "lockToken": token})

    with pytest.raises(Refused, match="Nothing of request 'order-1' runs"):
        find_running(world.machine, "order-1")


def test_what_was_never_started_is_not_found(world: World):
    """Nor is there a record for it."""
    with pytest.raises(RequestNotFound):
        find_running(world.machine, "order-1")
    assert world.machine.locks.get("m/order-1") is None


@pytest.mark.parametrize("status", ["RUNNING", "ABORTED"])
def test_the_request_of_the_same_id_at_another_machine_goes_on(world: World, status: str):
    """It has the lock token. It was cancelled if its execution had died, and if not, nothing was stopped."""
    world.sfn.add_machine(REFUNDS)
    world.execution(at_refunds("order-1"), status, *TO_WORK)
    before = world.put(lockedBy=at_refunds("order-1"))
    world.execution("order-1", "RUNNING", "CheckOwner", given=envelope() | {"callId": "call-2"})

    running = find_running(world.machine, "order-1")
    after = cancel(world.machine, running, by="alice", why="sent by mistake").lock

    assert before == after
    assert "ABORTED" == world.sfn.executions[arn("order-1")]["status"]
    assert f"held by another request ({at_refunds('order-1')})" in meaning(running, after)


def test_an_execution_that_was_redriven_meanwhile_is_not_called_stopped(world: World):
    """This command has stopped nothing, because nothing ran."""
    world.execution("order-1", "FAILED", *TO_WORK, "ReleaseLock", error="RetryLater")
    world.put(status=RELEASED, openStatus=None, ttl=TTL)
    running = find_running(world.machine, "order-1")
    world.execution("order-1", "RUNNING", *TO_WORK)

    with pytest.raises(Unavailable, match="was redriven since you looked, or how it ended"):
        cancel(world.machine, running, by="alice", why="sent by mistake")


@pytest.mark.parametrize("states", [("IsRequestPrepared", "AcquireLock"), TO_WORK], ids=["before", "in"])
def test_who_repeats_it_after_a_lost_answer_hears_that_it_is_done(world: World, states: tuple[str, ...]):
    """And by whom, before its work or in it."""
    world.execution("order-1", "RUNNING", *states)
    world.put()
    cancelled(world)

    with pytest.raises(Refused, match=r"is cancelled already \(.* by alice: .*sent by mistake") as raised:
        find_running(world.machine, "order-1")
    assert (NextStep("show request", "order-1"),) == raised.value.next_steps


@pytest.mark.parametrize("error", ["Cancelled", "Boom"])
@pytest.mark.parametrize("request_id", ["order-1", "order-9"])
def test_a_failure_that_no_person_has_caused_is_not_called_cancelled(
    world: World, error: str, request_id: str
):
    """An error of the work's own that is called so; another request's cancellation."""
    cause = CANCELLED.cause if request_id == "order-9" else "by the bank"
    world.execution("order-1", "FAILED", *TO_WORK, "RecordFinalError", error=error)
    held = [{"at": PAST, "by": "alice", "what": "held", "why": "x"}]
    world.put(
        name=request_id,
        status=FAILED,
        openStatus=None,
        ttl=TTL,
        failure=json.dumps({"Error": error, "Cause": cause}),
        interventions=json.dumps(held),
    )

    with pytest.raises(Refused, match="Nothing of request 'order-1' runs"):
        find_running(world.machine, "order-1")


def test_an_end_that_cannot_be_seen_yet_leaves_the_answer(world: World, monkeypatch: pytest.MonkeyPatch):
    """Whatever becomes of the stop."""
    world.execution("order-1", "RUNNING", "IsRequestPrepared")
    monkeypatch.setattr(world.sfn, "stop_execution", lambda **_: None)
    with pytest.raises(Unavailable, match="same command settles its lock later"):
        cancelled(world)
    assert "Cancelled" == (world.lock().failure or Failure(None, None)).error
    assert INPROGRESS != world.lock().status


def test_an_owner_whose_history_may_not_be_read_is_stopped_and_the_permission_is_named(world: World):
    """With the permission, the same command settles the lock."""
    world.execution("order-1", "RUNNING", *TO_WORK)
    before = world.put()

    def deny(operation: str, _about: str) -> None:
        if operation == "get_execution_history":
            raise client_error("AccessDeniedException")

    world.sfn.before_call = deny
    for _ in range(2):
        with pytest.raises(OwnerHidden, match=r"has ended, .* is not settled.*states:GetExecutionHistory"):
            cancelled(world)
        assert ("ABORTED", before) == (world.sfn.executions[arn("order-1")]["status"], world.lock())

    world.sfn.before_call = None
    assert "Cancelled" == (cancelled(world).failure or Failure(None, None)).error


def test_what_the_stack_settles_meanwhile_needs_no_history(world: World, monkeypatch: pytest.MonkeyPatch):
    """Its own functions may read it, and hear of the end within seconds."""
    monkeypatch.setattr(cancellation, "_SEEN_WITHIN_SECONDS", 15)
    world.execution("order-1", "RUNNING", *TO_WORK)
    lock = world.put()
    denied: list[str] = []

    def deny(operation: str, _about: str) -> None:
        if operation == "get_execution_history":
            if denied:
                world.machine.locks.hold(lock, CANCELLED, by="close_execution", why="it was cancelled")
            denied.append(operation)
            raise client_error("AccessDeniedException")

    world.sfn.before_call = deny

    assert "close_execution" == cancelled(world).interventions[-1].by
    assert 2 == len(denied)


# -- one that runs ---------------------------------------------------------------------------------
def cancelled_in(world: World, *states: str, given: dict[str, Any] | None = None) -> Lock:
    """The record of order-1 after it was cancelled in the last of these states."""
    world.execution("order-1", "RUNNING", *states, given=given)
    world.put()
    running = find_running(world.machine, "order-1")
    assert running.holds_the_lock
    lock = cancel(world.machine, running, by="alice", why="sent by mistake").lock
    assert lock is not None
    return lock


def test_a_request_that_is_cancelled_before_its_work_has_failed_for_good(world: World):
    """Nothing happened, and nothing will."""
    lock = cancelled_in(world, "IsRequestPrepared", "AcquireLock")

    assert (FAILED, None, CANCELLATION) == (lock.status, lock.open_status, lock.failure)
    assert "alice" == lock.interventions[-1].by
    assert lock.interventions[-1].why.endswith("(alice: sent by mistake)")


def test_a_request_that_is_cancelled_in_its_work_waits_for_a_person(world: World):
    """Nobody knows whether it took effect; who wanted it is on record."""
    lock = cancelled_in(world, *TO_WORK)

    assert (FAILED, "FAILED#3", "Cancelled") == (
        lock.status,
        lock.open_status,
        lock.failure and lock.failure.error,
    )
    assert "alice" not in str(lock.failure)
    assert lock.interventions[-1].why.endswith("was cancelled in DoWork (alice: sent by mistake)")


def test_a_request_that_is_cancelled_after_its_work_keeps_its_answer(world: World):
    """What it was about to write is written."""
    given = envelope() | {"work": {"result": 7}}

    lock = cancelled_in(world, *TO_WORK, "CompleteRequest", given=given)

    assert (COMPLETED, "7") == (lock.status, lock.result)


def test_a_request_that_holds_no_lock_is_cancelled_alone(world: World):
    """The lock is another's, who keeps it."""
    world.execution("order-1", "RUNNING", "AcquireLock")
    theirs = world.put(name="order-9", callId="call-9")
    running = find_running(world.machine, "order-1")

    assert (False, theirs) == (
        running.holds_the_lock,
        cancel(world.machine, running, by="alice", why="x").lock,
    )
    assert "ABORTED" == world.sfn.executions[arn("order-1")]["status"]


def test_the_newest_attempt_is_the_one_that_is_cancelled(world: World):
    """The others are closed."""
    world.execution("order-1", "FAILED", *TO_WORK)
    world.execution("order-1--2", "RUNNING", *TO_WORK)
    world.put(lockedBy=arn("order-1--2"))

    assert arn("order-1--2") == find_running(world.machine, "order-1").execution_arn


def test_a_closed_request_cannot_be_cancelled(world: World):
    """It is said how it ended, and where to look."""
    world.execution("order-1", "SUCCEEDED", *TO_WORK)

    with pytest.raises(Refused, match="is SUCCEEDED") as raised:
        find_running(world.machine, "order-1")
    assert (NextStep("show request", "order-1"),) == raised.value.next_steps
    with pytest.raises(RequestNotFound, match="no execution of a request 'order-2'"):
        find_running(world.machine, "order-2")


@pytest.mark.parametrize("ended", [("SUCCEEDED", None, None), ("ABORTED", "Cancelled", "bob: first")])
def test_a_request_that_ends_while_the_operator_thinks_is_not_cancelled(world: World, ended: tuple[Any, ...]):
    """By itself, or by somebody else: neither is what this operator did."""
    world.execution("order-1", "RUNNING", *TO_WORK)
    lock = world.put()
    running = find_running(world.machine, "order-1")
    world.sfn.close(arn("order-1"), *ended, datetime.now(UTC))

    with pytest.raises(
        RecordChanged, match=r"changed since you looked: it (is SUCCEEDED|was cancelled by bob: first)"
    ):
        cancel(world.machine, running, by="alice", why="x")
    assert lock == world.lock()


def test_a_cancellation_that_was_cut_short_is_finished_by_the_same_command(world: World):
    """The execution is stopped, and its lock was left."""
    world.execution("order-1", "ABORTED", *TO_WORK, error="Cancelled", cause="alice: x")
    world.put()

    lock = cancel(world.machine, find_running(world.machine, "order-1"), by="bob", why="still").lock

    assert lock is not None
    assert (FAILED, "Cancelled") == (lock.status, lock.failure and lock.failure.error)


def test_a_refusal_does_not_deny_what_was_recorded_before_it(world: World):
    """`cancel` died after it had stopped the execution. The next command records that, and refuses then."""
    world.execution(
        "order-1", "ABORTED", *TO_WORK, error="Cancelled", cause="alice: x", closed=datetime.now(UTC)
    )
    lock = world.put()
    operator = Operator(world.machine, by="bob", work_timeout_seconds=WORK_TIMEOUT)

    with pytest.raises(Refused, match="may still run until") as raised:
        operator.prepare("release", lock)

    assert FAILED == world.lock().status
    assert "Nothing was written" not in str(raised.value)


def test_what_powertools_own_layer_holds_is_not_said_to_be_released_later(world: World):
    """`cancel` advised `locks release`, which refuses every such record."""
    item = {"lockToken": {"S": "m/order-1"}, "status": {"S": "INPROGRESS"}, "ttl": {"N": str(TTL)}}
    item |= {"in_progress_expiration": {"N": "1789996460000"}}
    world.dynamodb.put_item(TableName="locks", Item=item)

    with pytest.raises(Refused, match=r"by Powertools' own layer\. No command changes it") as raised:
        find_running(world.machine, "order-1")
    assert not raised.value.next_steps


def test_an_end_that_cannot_be_seen_yet_is_said_so(world: World, monkeypatch: pytest.MonkeyPatch):
    """Histories are eventually consistent; the same command finishes it later."""
    world.execution("order-1", "RUNNING", *TO_WORK)
    world.put()
    running = find_running(world.machine, "order-1")
    monkeypatch.setattr(world.sfn, "stop_execution", lambda **_: None)

    with pytest.raises(Unavailable, match="same command settles its lock later"):
        cancel(world.machine, running, by="alice", why="x")
