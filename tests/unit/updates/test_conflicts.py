"""What is written was decided on what is there, or nothing is written."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from steponce import InvalidRequest, RetryLater, Unavailable, updates
from tests.rules.documents import ROOT
from tests.rules.prose import DOCUMENTS
from tests.unit.limits.world import dies_after, dies_before, lost_and_repeated
from tests.unit.updates.world import KEY, TABLE, World, after


@pytest.fixture
def record(world: World) -> updates.Versioned:
    """The customer, for the loop."""
    return updates.Versioned(TABLE, KEY, dynamodb=world.dynamodb)


def one_more(seen: dict[str, Any] | None) -> dict[str, Any]:
    """Count."""
    return {**(seen or {}), "count": (seen or {"count": 0})["count"] + 1}


def count(world: World, tries: int = 5) -> Any:
    """Count the customer's visits up by one."""
    record = updates.Versioned(TABLE, KEY, dynamodb=world.dynamodb)
    return updates.retry_on_conflict(record.read, one_more, record.write, tries=tries)


def test_what_was_decided_is_written(world: World) -> None:
    """Where nothing was, and on what is there."""
    assert {"count": 1} == count(world)
    assert 2 == count(world)["count"]
    assert Decimal(2) == world.read()["count"]


def test_a_conflict_is_decided_anew(world: World) -> None:
    """On what the other has written."""
    world.faults = [after(lambda: count(world)), None]
    assert 2 == count(world)["count"]
    world.faults = [after(lambda: count(world)), None]
    assert 4 == count(world)["count"]
    assert Decimal(4) == world.read()["count"]


@pytest.mark.parametrize("key", [{"version": 3}, {"docId": "7", "version": 3}])
def test_a_key_has_no_version(world: World, key: dict[str, Any]) -> None:
    """The key's would stay what it is, so that no conflict showed and updates were lost."""
    with pytest.raises(InvalidRequest, match="'version' is part of the key"):
        updates.Versioned(TABLE, key, dynamodb=world.dynamodb)
    updates.Versioned(TABLE, {"docId": "7", "Version": 3}, dynamodb=world.dynamodb)


def test_conflicts_without_end_mean_retry_later(world: World) -> None:
    """The tries are bounded, and nothing of this loop is written."""
    count(world)

    def other() -> None:
        faults, world.faults = world.faults, []
        count(world)
        world.faults = faults

    world.faults = [after(other)] * 3
    with pytest.raises(RetryLater, match="in each of 3 tries"):
        count(world, tries=3)
    assert Decimal(4) == world.read()["count"]


@pytest.mark.parametrize("in_asyncio", [False, True])
@pytest.mark.parametrize("decide", [lambda seen: seen, lambda _seen: None, dict])
def test_nothing_is_written_where_nothing_changes(
    world: World, record: updates.Versioned, decide: Any, in_asyncio: bool
) -> None:
    """A None of `decide` is no record, and the same again makes no new version."""
    count(world)
    before = world.item()
    world.calls.clear()
    if in_asyncio:
        loop = updates.retry_on_conflict_async(record.read_async, decide, record.write_async)
        found = asyncio.run(loop)
    else:
        found = updates.retry_on_conflict(record.read, decide, record.write)
    assert Decimal(1) == found["count"]
    assert ["get_item"] == world.names()
    assert before == world.item()


def test_where_nothing_is_nothing_may_stay(world: World, record: updates.Versioned) -> None:
    """None is what was read, and what is to be."""
    assert None is updates.retry_on_conflict(record.read, lambda seen: seen, record.write)
    assert None is world.item()


def test_decide_may_change_what_was_read(world: World, record: updates.Versioned) -> None:
    """It is a copy, so that the change is seen."""
    count(world)

    def in_place(seen: Any) -> Any:
        seen["tags"] = ["new"]
        return seen

    updates.retry_on_conflict(record.read, in_place, record.write)
    assert ["new"] == world.read()["tags"]


def test_a_lost_answer_is_no_conflict(world: World) -> None:
    """The write knows its own version again, and counts once."""
    for _ in range(2):
        world.faults = [lost_and_repeated]
        count(world)
    assert Decimal(2) == world.read()["count"]


@pytest.mark.parametrize("is_made", [True, False], ids=["made", "not made"])
def test_a_lost_answer_and_another_write_are_of_unknown_outcome(world: World, is_made: bool) -> None:
    """The other one may have read what this one wrote. Deciding again would count this one twice."""

    def lost_and_repeated_later(call: Any) -> Any:
        if is_made:
            call()
        count(world)
        with pytest.raises(ClientError) as refused:
            call()
        refused.value.response["ResponseMetadata"]["RetryAttempts"] = 1
        raise refused.value

    count(world)
    world.faults = [lost_and_repeated_later]
    with pytest.raises(Unavailable, match="may have taken effect"):
        count(world)
    assert Decimal(2 + is_made) == world.read()["count"]


@pytest.mark.parametrize("fault", [dies_before, dies_after], ids=lambda one: one.__name__)
def test_a_write_of_unknown_outcome_is_not_repeated(world: World, fault: Any) -> None:
    """It is not decided again: that might count twice."""
    world.faults = [fault]
    with pytest.raises(Unavailable):
        count(world)
    assert ["get_item", "put_item"] == world.names()


def test_what_cannot_be_read_means_retry_later() -> None:
    """Nothing was decided, and nothing written."""

    def read() -> Any:
        raise Unavailable("DynamoDB said Throttling.")

    with pytest.raises(RetryLater, match="Throttling"):
        updates.retry_on_conflict(read, one_more, lambda _seen, _wanted: True)


@pytest.mark.parametrize("tries", [0, -1, 1.5, "5", None])
def test_the_loop_goes_round_at_least_once(tries: Any) -> None:
    """Before anything is read."""
    with pytest.raises(ValueError, match="1 or more"):
        updates.retry_on_conflict(dict, dict, lambda _seen, _wanted: True, tries=tries)


def test_a_record_that_was_made_anew_is_another(world: World, record: updates.Versioned) -> None:
    """Its version does not begin at one again."""
    count(world)
    seen = record.read()
    world.dynamodb.delete_item(TableName=TABLE, Key={"customerId": {"S": "7"}})
    assert not record.write(seen, {"count": 9})
    count(world)
    assert not record.write(seen, {"count": 9})
    assert not record.write(None, {"count": 9})
    assert Decimal(1) == world.read()["count"]


def test_a_record_from_before_gets_a_version(world: World, record: updates.Versioned) -> None:
    """Once; a write that has read it without one is refused then."""
    world.put(count={"N": "5"})
    seen = record.read()
    assert 6 == count(world)["count"]
    assert not record.write(seen, {"count": 9})


def test_a_record_without_a_version_that_is_deleted_meanwhile_is_not_brought_back(
    world: World, record: updates.Versioned
) -> None:
    """What is gone has no version either. The loop decides anew, on nothing."""
    world.put(count={"N": "5"})
    seen = record.read()
    world.dynamodb.delete_item(TableName=TABLE, Key={"customerId": {"S": "7"}})
    assert not record.write(seen, {"count": 6})
    assert None is world.item()


def test_another_program_s_version_is_a_version(world: World) -> None:
    """Of any type."""
    world.put(count={"N": "5"}, version={"N": "3"})
    assert 6 == count(world)["count"]


def test_what_dynamodb_cannot_store_is_named(world: World, record: updates.Versioned) -> None:
    """Nothing is written."""
    with pytest.raises(InvalidRequest, match="'price'"):
        record.write(None, {"price": 1.5})
    assert [] == world.calls


def test_the_same_for_asyncio(world: World, record: updates.Versioned) -> None:
    """Conflicts, an end to them, and what cannot be read."""

    async def of(tries: int = 5, decide: Any = one_more) -> Any:
        return await updates.retry_on_conflict_async(
            record.read_async, decide, record.write_async, tries=tries
        )

    world.faults = [after(lambda: count(world)), None]
    assert 2 == asyncio.run(of())["count"]
    assert Decimal(2) == asyncio.run(of(decide=lambda seen: seen))["count"]
    world.faults = [after(lambda: count(world)), None]
    with pytest.raises(RetryLater):
        asyncio.run(of(tries=1))
    assert Decimal(3) == world.read()["count"]


TYPED = """
def maybe(seen: dict | None) -> dict | None:
    return seen


def another(seen: dict | None) -> int:
    return 1


there = updates.retry_on_conflict(visits.read, lambda seen: {"count": 1}, visits.write)
perhaps: dict | None = updates.retry_on_conflict(visits.read, maybe, visits.write)


async def main() -> dict:
    await updates.retry_on_conflict_async(visits.read_async, maybe, visits.write_async)
    return await updates.retry_on_conflict_async(visits.read_async, one_more, visits.write_async)


def one() -> int:
    return 1


def next_or_none(seen: int) -> int | None:
    return seen + 1


number: int = updates.retry_on_conflict(one, next_or_none, lambda _seen, _wanted: True)
none: dict = updates.retry_on_conflict(visits.read, maybe, visits.write)  # wrong
wrong = updates.retry_on_conflict(visits.read, another, visits.write)
"""
"""More calls than the page has. The last two are wrong."""


@pytest.mark.full  # mypy takes seconds
def test_a_program_whose_types_are_checked_can_use_the_loop(tmp_path: Path) -> None:
    """As the page does: `read` of a Versioned may give None, and its `write` takes a record only."""
    (page,) = (one for one in DOCUMENTS if one.path.name == "ordered-updates.md")
    (block,) = (one for one in page.blocks("python") if "retry_on_conflict" in one)
    program = tmp_path / "program.py"
    program.write_text(block + TYPED)
    command = [sys.executable, "-m", "mypy", "--config-file=", f"--cache-dir={tmp_path}", str(program)]
    path = os.environ | {"MYPYPATH": str(ROOT / "src")}
    told = subprocess.run(command, env=path, capture_output=True, text=True, check=False).stdout
    wrong = [number for number, line in enumerate(program.read_text().splitlines(), 1) if "wrong" in line]
    assert wrong == [int(line.split(":")[1]) for line in told.splitlines() if ": error: " in line], told
