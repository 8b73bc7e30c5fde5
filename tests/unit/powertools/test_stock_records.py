"""What Powertools' own DynamoDB layer writes into our table is read for what it is, and never written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import pytest
from aws_lambda_powertools.utilities.idempotency import idempotent_function
from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyAlreadyInProgressError,
    IdempotencyPersistenceLayerError,
    IdempotencyValidationError,
)
from hypothesis import given
from hypothesis import strategies as st
from moto import mock_aws

from steponce import AlreadyInProgress, Guard, Receipt
from steponce.aws import times
from steponce.aws.dynamodb import Item
from steponce.cli import commands, target
from steponce.errors import RecordUnreadable, Refused
from steponce.locks.record import POWERTOOLS, Lock
from steponce.locks.results import Results
from steponce.operator.erasure import erase, find_kept
from steponce.recovery.leases import lease_is_over
from steponce.recovery.owner import Finding, settle_owner
from steponce.report.story import Record
from steponce.workflow import COMPLETED, INPROGRESS
from tests.unit.cli.test_locks import OUTPUTS, FakeStack
from tests.unit.one_machine import PAYLOAD, World
from tests.unit.powertools.world import ORDER, PREFIX, begin, config, finish, ours, stock
from tests.unit.shared_clients import SharedClients
from tests.unit.test_unreadable import VALUES, damaged

DONE = {"charge": "ch-1"}
BEGUN: Item = {
    "lockToken": {"S": "acme/charge#1"},
    "status": {"S": INPROGRESS},
    "ttl": {"N": "1790000000"},
    "in_progress_expiration": {"N": "1789996460000"},
}
ENDED: Item = BEGUN | {"status": {"S": COMPLETED}, "result": {"S": "null"}, "payloadHash": {"S": "ab"}}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """One machine, which every command reaches, in a pipe."""
    with mock_aws():
        found = World()
        monkeypatch.setattr(target.Target, "reach", lambda _target: FakeStack(found, OUTPUTS))
        yield found


def theirs(world: World, **options: Any) -> Any:
    """Powertools' own layer on the machine's table."""
    return stock(boto3_client=world.dynamodb, **options)


def raw(world: World, key: str) -> Item:
    """A record as DynamoDB has it."""
    found: Item = world.dynamodb.get_item(TableName="locks", Key={"lockToken": {"S": key}})["Item"]
    return found


def guard(**options: Any) -> Guard:
    """A guard on the machine's table."""
    return Guard("locks", session=SharedClients("eu-west-1"), **options)


def must_not_run(
    world: World, *, of_call: Mapping[str, Any] | None = None, **options: Any
) -> Callable[..., Any]:
    """A function behind our store with these options. A record answers for it."""

    @idempotent_function(
        data_keyword_argument="order",
        key_prefix=PREFIX,
        config=config(**of_call or {}),
        persistence_store=ours(boto3_client=world.dynamodb, **options),
    )
    def charge(order: Any) -> Any:
        raise AssertionError(order)

    return charge


def left_behind(world: World) -> str:
    """A record in progress whose time is over, as a Lambda leaves it that has timed out; its key."""
    return begin(theirs(world), seconds=-3_600)


LEFT = {"in progress": lambda world: begin(theirs(world)), "timed out": left_behind}
each_in_progress = pytest.mark.parametrize("leave", LEFT.values(), ids=list(LEFT))
Leave = Callable[[World], str]


@each_in_progress
def test_a_record_in_progress_is_powertools_own(world: World, leave: Leave) -> None:
    """Nobody else's clock ends it."""
    lock = world.machine.locks.get(leave(world))
    assert lock is not None
    assert (INPROGRESS, POWERTOOLS, True) == (lock.status, lock.locked_by, lock.is_of_powertools)
    assert raw(world, lock.lock_token)["in_progress_expiration"]["N"] == str(
        int(times.from_text(str(lock.lease_until)).timestamp() * 1_000)
    )
    assert {False} == {lock.is_reusable(times.NEVER), lease_is_over(lock)}
    assert lock.is_leased(times.NEVER)


def test_a_call_without_a_context_has_no_time(world: World) -> None:
    """Powertools writes no in-progress expiry then."""
    layer = theirs(world)
    layer.configure(config(), "f", PREFIX)
    with pytest.warns(UserWarning, match="remaining time"):
        layer.save_inprogress(ORDER)
    (lock,) = world.machine.locks.under(PREFIX)
    assert (None, times.NEVER) == (lock.lease_until, lock.expected_completion)
    assert not lease_is_over(lock)

    charge = must_not_run(world)
    with pytest.raises(IdempotencyAlreadyInProgressError):
        charge(order=ORDER)


@each_in_progress
def test_nobody_takes_a_record_in_progress(world: World, leave: Leave) -> None:
    """Neither guard nor our store, which take over what they may."""
    key = leave(world)
    before = raw(world, key)
    with (
        pytest.raises(AlreadyInProgress, match=r"held by Powertools\. Ask again"),
        guard(when_outcome_unknown="take-over").begin(key, ORDER),
    ):
        pass

    charge = must_not_run(world, when_outcome_unknown="take-over")
    with pytest.raises(IdempotencyAlreadyInProgressError):
        charge(order=ORDER)
    assert before == raw(world, key)


@each_in_progress
def test_nobody_settles_a_record_in_progress(world: World, leave: Leave) -> None:
    """Neither the check of an owner nor the monitor, whose index it is not on."""
    key = leave(world)
    lock, before = world.machine.locks.get(key), raw(world, key)
    assert lock is not None
    found = settle_owner(
        lock,
        world.machine.sfn,
        world.machine.locks,
        work_timeout_seconds=1,
        when_outcome_unknown="hold",
        by="test",
    )
    assert Finding("alive") == found
    assert [] == [one for shard in range(10) for one in world.machine.locks.open(INPROGRESS, shard)]
    assert before == raw(world, key)


def test_a_completed_record_is_replayed(world: World) -> None:
    """By guard and by our store; also past its time, until DynamoDB has deleted it."""
    for data, expired in ((ORDER, False), (ORDER | {"amount": 7}, True)):
        key = finish(theirs(world), DONE, data)
        if expired:
            world.dynamodb.put_item(TableName="locks", Item=raw(world, key) | {"ttl": {"N": "1700000000"}})
        before = raw(world, key)
        with guard(cache_size=9).begin(key, "another payload, which nobody can compare") as run:
            assert (True, DONE) == (run.replayed, run.result)

        charge = must_not_run(world)
        assert DONE == charge(order=data)
        assert before == raw(world, key)


def test_payloads_are_compared_as_powertools_did(world: World) -> None:
    """Where it was told to validate them, and our store is too."""
    options = {"event_key_jmespath": "orderId", "payload_validation_jmespath": "amount"}
    layer = theirs(world)
    layer.configure(config(**options), "f", PREFIX)
    layer.save_inprogress(ORDER, 1_000)
    layer.save_success(ORDER, DONE)

    charge = must_not_run(world, of_call=options)
    assert DONE == charge(order=ORDER)
    with pytest.raises(IdempotencyValidationError):
        charge(order=ORDER | {"amount": 7})


# -- The client and the commands -------------------------------------------------------------------


@each_in_progress
def test_the_client_says_that_it_runs(world: World, leave: Leave) -> None:
    """And starts nothing for it, again and again."""
    key = leave(world)
    assert not world.client.start("order-1", PAYLOAD, lock_token=key).duplicate
    world.sfn.close("order-1", "FAILED", "AlreadyInProgress")
    for check in (False, True):
        found = world.client.start("order-1", PAYLOAD, lock_token=key, check_owner=check)
        assert ("RUNNING", True) == (found.status, found.duplicate)
    assert "RUNNING" == world.client.status("order-1", lock_token=key).status
    assert 1 == len(world.sfn.started)


def test_the_client_has_its_result(world: World) -> None:
    """As the answer to a request with its key."""
    key = finish(theirs(world), DONE)
    world.client.start("order-1", PAYLOAD, lock_token=key)
    world.sfn.close("order-1", "SUCCEEDED")
    assert DONE == world.client.start("order-1", PAYLOAD, lock_token=key).result
    assert DONE == world.client.result("order-1", lock_token=key)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the one object."""
    code = commands.run(arguments)
    return code, json.loads(capsys.readouterr().out)


LEAVE = LEFT | {"completed": lambda world: finish(theirs(world), DONE)}


@pytest.mark.parametrize("leave", LEAVE.values(), ids=list(LEAVE))
def test_commands_show_it_and_write_nothing(
    world: World, leave: Leave, capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    """They say whose it is."""
    key = leave(world)
    before = raw(world, key)
    code, told = run(capsys, "locks", "inspect", key)
    assert (0, POWERTOOLS, []) == (code, told["record"]["lockedBy"], told["next"])
    result = tmp_path / "result.json"
    result.write_text("{}")
    for command in (["release", key], ["retry", key], ["complete", key, str(result)]):
        code, told = run(capsys, "locks", *command, "--yes", "--why", "x")
        assert (3, "Refused") == (code, told["error"]["type"])
        assert "written by Powertools' own layer" in told["error"]["message"]
    assert before == raw(world, key)


@pytest.mark.parametrize(
    ("leave", "status", "diagnosis", "words"),
    [
        (LEAVE["in progress"], "RUNNING", "running", "would be done by"),
        (LEAVE["timed out"], "RUNNING", "overdue", "deletes the record in the days after"),
        (LEAVE["completed"], "SUCCEEDED", "completed", "A later start gets that result, until 20"),
    ],
    ids=list(LEAVE),
)
def test_a_story_says_what_is_to_be_done(
    world: World, leave: Leave, status: str, diagnosis: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a request that met such a record."""
    key = leave(world)
    world.execution("order-1", status, "AcquireLock", given={"lockToken": key, "payload": PAYLOAD})
    code, told = run(capsys, "show", "order-1", "--key", key)
    assert (0, diagnosis) == (code, told["diagnosis"])
    assert words in told["summary"]


def test_a_customer_s_records_are_erased_with_the_rest(world: World) -> None:
    """Those that are completed; one in progress is waited for."""
    finish(theirs(world), DONE)
    kept = find_kept(world.machine, world.steps, PREFIX)
    assert (0, []) == (erase(world.machine, world.steps, kept), list(world.machine.locks.under(PREFIX)))

    finish(theirs(world), DONE)
    kept = find_kept(world.machine, world.steps, PREFIX)
    world.dynamodb.delete_item(TableName="locks", Key={"lockToken": {"S": kept.locks[0].lock_token}})
    begin(theirs(world))
    assert 1 == erase(world.machine, world.steps, kept)
    with pytest.raises(Refused, match="is in progress"):
        find_kept(world.machine, world.steps, PREFIX)


# -- The other way round -----------------------------------------------------------------------------


def test_powertools_own_layer_does_not_take_our_records(world: World) -> None:
    """It replays what is completed, and fails before the work where a record is open."""
    ran: list[Any] = []

    @idempotent_function(
        data_keyword_argument="order",
        key_prefix=PREFIX,
        config=config(),
        persistence_store=theirs(world),
    )
    def charge(order: Any) -> Any:
        ran.append(order)

    store = ours(boto3_client=world.dynamodb)
    key = begin(store)
    before = raw(world, key)
    with pytest.raises(IdempotencyPersistenceLayerError):
        charge(order=ORDER)
    assert before == raw(world, key)
    store.save_success(ORDER, DONE)
    assert DONE == charge(order=ORDER)
    assert [] == ran


# -- Damage ------------------------------------------------------------------------------------------


@given(
    st.sampled_from([BEGUN, ENDED]),
    st.dictionaries(st.sampled_from(sorted(ENDED)), VALUES, min_size=1, max_size=3),
)
def test_whatever_such_a_record_holds_nothing_else_is_raised(sound: Item, damage: dict[str, Any]) -> None:
    """It is read, or refused by name."""
    with suppress(RecordUnreadable):
        lock = Lock.from_item(damaged(sound, damage, "lockToken"))
        json.dumps(asdict(Receipt.from_lock("order-1", lock, Results(), duplicate=True)))
        json.dumps(asdict(Record.from_lock(lock)))
        assert not lock.is_reusable(times.NEVER)


@pytest.mark.parametrize("name", ["callId", "lockedBy", "requestId", "attempt", "created"])
def test_a_damaged_record_of_ours_is_not_taken_for_theirs(name: str) -> None:
    """It has one of the attributes that only ours have."""
    with pytest.raises(RecordUnreadable):
        Lock.from_item(ENDED | {name: {"S": "x"}})
