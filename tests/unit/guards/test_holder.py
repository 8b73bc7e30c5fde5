"""The fence of an owner that is no execution: what it writes too late, it does not write."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from steponce.aws import times
from steponce.failure import Failure
from steponce.guards.holder import Holder
from steponce.locks.table import Locks
from steponce.request.settings import RequestRules
from tests.fakes.tables import create_table
from tests.rules.documents import machine
from tests.unit.shared_clients import shared

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
KEY = "acme/charge/o-12"
FAILURE = Failure("Declined", "no")

WRITES: dict[str, Callable[[Holder], object]] = {
    "extend": lambda holder: holder.extend(600),
    "complete": lambda holder: holder.complete('"done"'),
    "fail": lambda holder: holder.fail(FAILURE),
    "release": lambda holder: holder.release(FAILURE),
    "hold": lambda holder: holder.hold(FAILURE),
    "give back": lambda holder: holder.give_back(FAILURE),
}
every_write = pytest.mark.parametrize("write", WRITES.values(), ids=list(WRITES))


@pytest.fixture
def locks(monkeypatch: pytest.MonkeyPatch) -> Iterator[Locks]:
    """An empty table, at noon."""
    monkeypatch.setattr(times, "now", lambda: NOW)
    with mock_aws():
        create_table(shared("dynamodb"), "LocksTable", "locks")
        yield Locks(shared("dynamodb"), "locks")


def holder() -> Holder:
    """A process that wants the lock."""
    return Holder(
        shared("dynamodb"),
        "locks",
        lock_token=KEY,
        request_id="o-12",
        payload_hash="0" * 64,
        locked_by="process/here/1",
        rules=RequestRules(key_prefix="shop"),
    )


@every_write
def test_a_holder_writes_while_the_lock_is_its_own(locks: Locks, write: Callable[[Holder], object]):
    """The counterpart of the tests below: each of these writes changes the record."""
    mine = holder()
    assert None is mine.acquire(60)
    before = locks.get(KEY)

    assert None is write(mine)

    assert before != locks.get(KEY)


@every_write
def test_a_late_holder_writes_nothing_over_its_successor(
    locks: Locks, write: Callable[[Holder], object], monkeypatch: pytest.MonkeyPatch
):
    """It was taken over, by another call of the same process."""
    late, successor = holder(), holder()
    late.acquire(60)
    monkeypatch.setattr(times, "now", lambda: NOW + timedelta(seconds=61))
    first = locks.get(KEY)
    assert first is not None
    assert None is successor.take_over(first, 60)
    before = locks.get(KEY)

    refused = write(late)

    assert before == locks.get(KEY)
    assert write is WRITES["give back"] or before == refused


@every_write
@pytest.mark.parametrize("part", ["call_id", "locked_by", "attempt"])
def test_each_part_of_the_fence_alone_stops_a_write(
    locks: Locks, write: Callable[[Holder], object], part: str
):
    """Whatever else a record has in common with the holder."""
    mine = holder()
    mine.acquire(60)
    before = locks.get(KEY)
    setattr(mine, part, 7 if part == "attempt" else "another")

    write(mine)

    assert before == locks.get(KEY)


def test_a_lease_that_was_extended_is_not_taken_over(locks: Locks):
    """The record was read before."""
    mine, other = holder(), holder()
    mine.acquire(60)
    seen = locks.get(KEY)
    assert seen is not None
    mine.extend(600)

    assert locks.get(KEY) == other.take_over(seen, 60)
    assert mine.call_id == locks.get(KEY).call_id


def test_a_copy_of_an_extension_that_arrives_late_does_not_shorten_the_lease(locks: Locks):
    """A timed-out try of boto3 may land after a later extension. Its holder relies on the longer lease."""
    mine, table = holder(), Recording()
    mine.acquire(60)
    mine._dynamodb = table
    mine.extend(600)
    mine.extend(3600)

    table.repeat(0)

    assert mine.lease_until == locks.get(KEY).lease_until


def test_a_copy_of_a_take_over_that_arrives_late_does_not_shorten_the_lease(
    locks: Locks, monkeypatch: pytest.MonkeyPatch
):
    """The new owner has extended its lease meanwhile."""
    dead, successor, table = holder(), holder(), Recording()
    dead.acquire(60)
    monkeypatch.setattr(times, "now", lambda: NOW + timedelta(seconds=61))
    successor._dynamodb = table
    assert None is successor.take_over(locks.get(KEY), 60)
    successor.extend(3600)

    table.repeat(0)

    assert successor.lease_until == locks.get(KEY).lease_until


def test_a_shorter_extension_after_a_lost_answer_keeps_the_longer_lease(locks: Locks):
    """The lost extension has taken effect, and the holder did not hear of it."""
    mine = holder()
    mine.acquire(60)
    known = mine.lease_until
    mine.extend(3600)
    longer, mine.lease_until = mine.lease_until, known

    assert None is mine.extend(90)

    assert longer == mine.lease_until == locks.get(KEY).lease_until


def test_a_lock_is_taken_under_the_workflow_s_condition_and_with_its_attributes(locks: Locks):
    """Only a holder has a lease, and only an execution has a name and a work time-out."""
    first, second, table = holder(), holder(), Recording()
    first.acquire(60)
    first.release(FAILURE)
    second._dynamodb = table
    second.acquire(60)
    put, update = table.calls

    acquire = machine("run_once")["States"]["AcquireLock"]["Parameters"]
    free = update["ConditionExpression"].removeprefix("attempt = :before AND ")
    both = f"{put['ConditionExpression']} OR (NOT callId = :callId AND {free})"
    assert acquire["ConditionExpression"] == both

    of_executions = {"executionName", "workTimeoutSeconds"}
    written = names(acquire, "SET") - of_executions | {"leaseUntil"}
    assert written | {"lockToken"} == set(put["Item"])
    assert written == names(update, "SET")
    assert names(acquire, "REMOVE") - {"leaseUntil"} | of_executions == names(update, "REMOVE")


class Recording:
    """A DynamoDB client that keeps the arguments of its calls."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    def put_item(self, **call: Any) -> Any:
        self.calls.append(call)
        return shared("dynamodb").put_item(**call)

    def update_item(self, **call: Any) -> Any:
        self.calls.append(call)
        return shared("dynamodb").update_item(**call)

    def repeat(self, number: int) -> None:
        """A copy of a write arrives late."""
        with suppress(ClientError):
            shared("dynamodb").update_item(**self.calls[number])


def names(call: Mapping[str, str], clause: str) -> set[str]:
    """The attributes that one clause of an update changes."""
    sets, _, removes = call["UpdateExpression"].removeprefix("SET ").partition(" REMOVE ")
    parts = removes.split(", ") if clause == "REMOVE" else re.findall(r"([#\w]+) = ", sets)
    return {part.strip("#") for part in parts}


@pytest.mark.parametrize("part", ["status", "callId", "lockedBy", "attempt"])
def test_each_part_of_a_take_over_s_fence_alone_stops_it(locks: Locks, part: str):
    """An operator who settles the lock of a dead guard leaves its lease, its owner and its attempt in it."""
    dead, successor = holder(), holder()
    dead.acquire(60)
    seen = locks.get(KEY)
    assert seen is not None
    shared("dynamodb").update_item(
        TableName="locks",
        Key={"lockToken": {"S": KEY}},
        UpdateExpression="SET #part = :other",
        ExpressionAttributeNames={"#part": part},
        ExpressionAttributeValues={":other": OTHERS[part]},
    )
    before = locks.get(KEY)

    assert before == successor.take_over(seen, 60)

    assert before == locks.get(KEY)


def test_a_lock_that_a_person_settled_is_not_taken_over(locks: Locks):
    """Nothing of the record but its status says so: its lease, owner and attempt are the dead guard's."""
    dead, successor = holder(), holder()
    dead.acquire(60)
    seen = locks.get(KEY)
    assert seen is not None
    assert locks.complete(seen, '"paid"', by="ops", why="the provider says so")

    refused = successor.take_over(seen, 60)

    assert refused is not None
    assert ("COMPLETED", '"paid"') == (refused.status, refused.result)
    assert refused == locks.get(KEY)


OTHERS: dict[str, Any] = {
    "status": {"S": "FAILED"},
    "callId": {"S": "another"},
    "lockedBy": {"S": "process/there/2"},
    "attempt": {"N": "7"},
}


def test_a_lock_that_others_had_since_it_was_read_is_not_taken(locks: Locks):
    """It is free again, and its attempt has grown. Two attempts of one number would tell nobody apart."""
    first, second, third = holder(), holder(), holder()
    first.acquire(60)
    first.release(FAILURE)

    class Slow(Recording):
        def update_item(self, **call: Any) -> Any:
            third.acquire(60)
            third.release(FAILURE)
            return super().update_item(**call)

    second._dynamodb = Slow()
    refused = second.acquire(60)

    assert refused is not None
    assert (2, third.call_id) == (refused.attempt, locks.get(KEY).call_id)
