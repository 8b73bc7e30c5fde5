"""A change takes effect only while its attempt holds the lock, with nothing between asking and writing."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from botocore.exceptions import ClientError

from steponce import InvalidRequest, LockLost, RetryLater, Unavailable, updates
from steponce.errors import RecordUnreadable
from steponce.guards.guard import DISABLED
from steponce.locks import claim
from steponce.updates import mine
from tests.unit.limits.world import dies_after, dies_before, lost_and_repeated
from tests.unit.shared_clients import shared
from tests.unit.updates.world import KEY, LOCKS, TABLE, World, after, cancelled

CONFLICT = cancelled("TransactionConflict", "None")


@pytest.fixture(autouse=True)
def process(monkeypatch: pytest.MonkeyPatch) -> None:
    """One in which no attempt has passed a check before."""
    monkeypatch.setattr(claim, "_passed", OrderedDict())


def change(world: World, work: Any, **changes: Any) -> None:
    """A change of the customer by some work."""
    updates.update_if_mine(
        work, TABLE, KEY, changes or {"city": "Bern"}, locks_table=LOCKS, dynamodb=world.dynamodb
    )


def test_the_holder_s_change_takes_effect(world: World) -> None:
    """In one transaction, and without a read."""
    world.put(name={"S": "Ann"}, note={"S": "x"})
    change(world, world.lock(2), city="Bern", note=updates.REMOVE)
    assert {"customerId": "7", "name": "Ann", "city": "Bern"} == world.read()
    assert "transact_write_items" == world.names()[0]


@pytest.mark.parametrize(
    ("attempt", "status", "call_id"),
    [
        (3, "INPROGRESS", "call-3"),
        (3, "INPROGRESS", "call-2"),
        (2, "INPROGRESS", "another"),
        (2, "COMPLETED", "call-2"),
        (2, "FAILED", "call-2"),
        (2, "RELEASED", "call-2"),
    ],
)
def test_an_attempt_without_its_lock_changes_nothing(
    world: World, attempt: int, status: str, call_id: str
) -> None:
    """Whatever became of the record; the error says what."""
    work = world.lock(2)
    world.lock(attempt, status, call_id)
    with pytest.raises(LockLost, match=f"is now {status}, of attempt {attempt}. Nothing was written"):
        change(world, work)
    assert None is world.item()


def test_a_lock_that_is_gone_is_lost(world: World) -> None:
    """An operator has erased the record."""
    work = world.lock(2)
    shared("dynamodb").delete_item(TableName=LOCKS, Key={"lockToken": {"S": work["lockToken"]}})
    with pytest.raises(LockLost, match="there is no such record"):
        change(world, work)


def test_there_is_nothing_between_asking_and_writing(world: World) -> None:
    """The lock is taken over when the change is on its way already."""
    work = world.lock(1)
    world.faults = [after(lambda: world.lock(2))]
    with pytest.raises(LockLost):
        change(world, work)
    assert None is world.item()


def test_a_damaged_lock_record_is_named(world: World) -> None:
    """It says what another program has done to it."""
    work = world.lock(1)
    shared("dynamodb").put_item(
        TableName=LOCKS, Item={"lockToken": {"S": work["lockToken"]}, "status": {"S": "?"}}
    )
    with pytest.raises(RecordUnreadable):
        change(world, work)
    assert None is world.item()


# -- Others, and lost answers ------------------------------------------------------------------------


def test_a_conflict_is_tried_again(world: World) -> None:
    """With one token, so that DynamoDB makes it once."""
    work = world.lock(1)
    world.faults = [
        CONFLICT,
        cancelled("None", "TransactionConflict"),
        cancelled("None", "ThrottlingError"),
        cancelled("ProvisionedThroughputExceeded", "None"),
    ]
    change(world, work)
    assert "Bern" == world.read()["city"]
    tokens = [arguments["ClientRequestToken"] for name, arguments in world.calls if name[0] == "t"]
    assert (5, 1) == (len(tokens), len(set(tokens)))


def test_others_get_time_to_be_done(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pause before each further try, and none after the last."""
    slept: list[float] = []
    monkeypatch.setattr(mine.time, "sleep", slept.append)
    monkeypatch.setattr(mine, "_FIRST_PAUSE_SECONDS", 0.05)
    world.faults = [CONFLICT] * mine.TRIES
    with pytest.raises(RetryLater):
        change(world, world.lock(1))
    assert mine.TRIES - 1 == len(slept)
    assert 0 < sum(slept) < 3.2


def test_another_call_has_another_token(world: World) -> None:
    """A change that is made, taken back and made again is made again."""
    work = world.lock(1)
    for city in ("Bern", "Basel", "Bern"):
        change(world, work, city=city)
    assert 3 == len({arguments["ClientRequestToken"] for _, arguments in world.calls})
    assert "Bern" == world.read()["city"]


def test_conflicts_without_end_mean_retry_later(world: World) -> None:
    """Nothing was written, so the workflow may try again."""
    work = world.lock(1)
    world.faults = [CONFLICT] * mine.TRIES
    with pytest.raises(RetryLater, match="Nothing was written"):
        change(world, work)
    assert mine.TRIES == len(world.calls)
    assert None is world.item()


def test_conflicts_after_an_earlier_change_are_no_reason_to_repeat_it(world: World) -> None:
    """The first change, and what the work did beside it, would happen again."""
    work = world.lock(1)
    change(world, work)
    world.faults = [CONFLICT] * mine.TRIES
    with pytest.raises(Unavailable, match="another effect"):
        change(world, work, city="Basel")
    assert "Bern" == world.read()["city"]


def test_conflicts_after_a_change_without_an_answer_are_no_reason_to_repeat_it(world: World) -> None:
    """The same attempt makes the call again, as it may. The first one was written."""
    work = world.lock(1)
    world.faults = [dies_after] * mine.TRIES + [CONFLICT] * mine.TRIES
    with pytest.raises(Unavailable, match="did not answer"):
        change(world, work)
    with pytest.raises(Unavailable, match="another effect"):
        change(world, work)
    assert "Bern" == world.read()["city"]


@pytest.mark.parametrize("fault", [dies_before, dies_after, lost_and_repeated], ids=lambda one: one.__name__)
def test_a_lost_answer_is_no_conflict(world: World, fault: Any) -> None:
    """The same transaction again finds the lock as it was."""
    work = world.lock(1)
    world.faults = [fault]
    change(world, work)
    assert "Bern" == world.read()["city"]


@pytest.mark.parametrize("last", [dies_after, CONFLICT], ids=["no-answer", "conflict"])
def test_an_unknown_outcome_is_not_retry_later(world: World, last: Any) -> None:
    """One try may have been written, so this is not RetryLater."""
    work = world.lock(1)
    world.faults = [dies_before] + [last] * (mine.TRIES - 1)
    with pytest.raises(Unavailable):
        change(world, work)


def test_conflicts_after_a_send_that_boto3_has_repeated_are_not_retry_later(world: World) -> None:
    """The first send may still be on its way. The work ran again after it had been written."""
    work = world.lock(1)
    world.faults = [cancelled("TransactionConflict", "None", retries=1)] + [CONFLICT] * (mine.TRIES - 1)
    with pytest.raises(Unavailable, match="may have been written"):
        change(world, work)
    world.faults = [CONFLICT] * mine.TRIES
    with pytest.raises(Unavailable, match="another effect"):
        change(world, work, city="Basel")


def test_a_lock_that_is_lost_after_an_answer_was_lost_says_so(world: World) -> None:
    """The try before may have been written. "Nothing was written" was wrong then."""
    work = world.lock(1)
    world.lock(2)
    world.faults = [dies_before]
    with pytest.raises(LockLost, match=r"A try before may have been written\.$"):
        change(world, work)


@pytest.mark.parametrize(
    ("reason", "error"),
    [("ValidationError", InvalidRequest), ("ItemCollectionSizeLimitExceeded", ClientError)],
)
def test_a_change_that_cannot_be_made_is_not_tried_again(
    world: World, reason: str, error: type[Exception]
) -> None:
    """DynamoDB cancels the transaction for a key of another type, or an item that is too large."""
    work = world.lock(1)
    world.faults = [cancelled("None", reason)]
    with pytest.raises(error):
        change(world, work)
    assert 1 == len(world.calls)


def test_any_other_error_stays_what_it_is(world: World) -> None:
    """A table that is not there is nothing that passes."""
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        updates.update_if_mine(
            world.lock(1), TABLE, KEY, {"a": 1}, locks_table="nowhere", dynamodb=world.dynamodb
        )


@pytest.mark.parametrize("changes", [{}, {"customerId": "8"}, {"price": 1.5}])
def test_changes_that_cannot_be_are_refused(world: World, changes: dict[str, Any]) -> None:
    """Before anything is asked of DynamoDB."""
    with pytest.raises(InvalidRequest):
        updates.update_if_mine(world.lock(1), TABLE, KEY, changes, locks_table=LOCKS, dynamodb=world.dynamodb)
    assert [] == world.calls


# -- Who works ---------------------------------------------------------------------------------------


def test_another_input_than_the_work_s_is_refused(world: World) -> None:
    """Before DynamoDB sees it, whose client would quote it."""
    with pytest.raises(InvalidRequest, match="lockToken is <dict>"):
        change(world, {"lockToken": {"card": "secret"}})
    assert [] == world.calls


def test_without_a_name_the_environment_names_the_lock_table(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in the Lambda function, where the template sets LocksTable."""
    monkeypatch.setenv("LocksTable", LOCKS)
    updates.update_if_mine(world.lock(1), TABLE, KEY, {"amount": 5}, dynamodb=world.dynamodb)
    assert Decimal(5) == world.read()["amount"]


def test_the_run_of_a_guard_changes_while_it_holds_its_lock(world: World) -> None:
    """It knows its table."""
    with world.guard().begin("acme/7", {}) as run:
        updates.update_if_mine(run, TABLE, KEY, {"city": "Bern"}, dynamodb=world.dynamodb)
        run.complete("done")
    assert "Bern" == world.read()["city"]


def test_a_run_whose_lease_is_over_changes_nothing(world: World) -> None:
    """The next call may take its lock at any moment."""
    with world.guard().begin("acme/7", {}, lease_seconds=60) as run:
        world.now += timedelta(seconds=61)
        with pytest.raises(LockLost, match="its lease was over at"):
            updates.update_if_mine(run, TABLE, KEY, {"city": "Bern"}, dynamodb=world.dynamodb)
        run.complete("nothing")
    assert None is world.item()


def test_a_run_that_is_over_changes_nothing(world: World) -> None:
    """Nor does one that replays."""
    for _ in range(2):
        with world.guard().begin("acme/7", {}) as run:
            if not run.replayed:
                run.complete("done")
        with pytest.raises(RuntimeError, match="nothing to write"):
            updates.update_if_mine(run, TABLE, KEY, {"city": "Bern"}, dynamodb=world.dynamodb)
    assert None is world.item()


def test_where_guards_are_off_the_change_is_made(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests of other people's work have no lock table."""
    monkeypatch.setenv(DISABLED, "true")
    with world.guard().begin("acme/7", {}) as run:
        updates.update_if_mine(run, TABLE, KEY, {"city": "Bern"}, dynamodb=world.dynamodb)
        assert ["transact_write_items"] == world.names()
        world.faults = [CONFLICT] * mine.TRIES
        with pytest.raises(RetryLater):
            updates.update_if_mine(run, TABLE, KEY, {"city": "Basel"}, dynamodb=world.dynamodb)
        run.complete("done")
    assert "Bern" == world.read()["city"]


def test_the_same_for_asyncio(world: World) -> None:
    """In a thread."""
    asyncio.run(
        updates.update_if_mine_async(
            world.lock(1), TABLE, KEY, {"city": "Bern"}, locks_table=LOCKS, dynamodb=world.dynamodb
        )
    )
    assert "Bern" == world.read()["city"]
