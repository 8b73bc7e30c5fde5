"""An older update never overwrites a newer one, and a deletion stays one."""

from __future__ import annotations

import asyncio
import traceback
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from steponce import InvalidAsOf, InvalidRequest, Unavailable, updates
from steponce.errors import RecordUnreadable
from steponce.updates import item
from tests.unit.limits.world import dies_after, dies_before, lost_and_repeated
from tests.unit.updates.world import KEY, LOCKS, TABLE, World

MORNING = datetime(2026, 1, 31, 9, tzinfo=UTC)


def test_an_update_is_applied_and_says_what_is_there(world: World) -> None:
    """One write; what it does not name stays as it is."""
    assert world.update(1, "event-1", name="Ann", city="Bern")
    found = world.update(2, "event-2", city="Basel")
    there = {"customerId": "7", "name": "Ann", "city": "Basel", "asOf": Decimal(2), "writer": "event-2"}
    assert updates.Update(True, there, 2, "event-2") == found
    assert there == world.read()
    assert ["update_item", "update_item", "get_item"] == world.names()


def test_an_older_update_is_stale_and_learns_what_is_there(world: World) -> None:
    """Without a read."""
    world.update(2, "event-2", city="Basel")
    found = world.update(1, "event-1", city="Bern")
    assert not found
    there = {"customerId": "7", "city": "Basel", "asOf": Decimal(2), "writer": "event-2"}
    assert updates.Update(False, there, 2, "event-2") == found
    assert ["update_item", "update_item"] == world.names()


def test_the_same_time_belongs_to_its_first_writer(world: World) -> None:
    """Who may repeat its update; another is refused."""
    assert world.update(1, "event-1", city="Bern")
    assert not world.update(1, "event-2", city="Basel")
    assert world.update(1, "event-1", city="Bern")
    assert "Bern" == world.read()["city"]


@pytest.mark.parametrize("fault", [dies_before, dies_after], ids=lambda fault: fault.__name__)
def test_after_no_answer_the_same_call_is_safe(world: World, fault: Any) -> None:
    """Whether the write took effect or not."""
    world.faults = [fault]
    with pytest.raises(Unavailable):
        world.update(1, "event-1", city="Bern")
    assert world.update(1, "event-1", city="Bern")
    assert "Bern" == world.read()["city"]


def test_a_lost_answer_is_no_conflict(world: World) -> None:
    """botocore repeats the write by itself, and finds its own."""
    world.faults = [lost_and_repeated, lost_and_repeated]
    assert world.update(1, "event-1", city="Bern")
    assert world.delete(2, "event-2")


def test_a_deletion_leaves_a_tombstone_and_nothing_else(world: World) -> None:
    """Which no reader sees, and which an older update does not bring back."""
    world.update(1, "event-1", name="Ann", city="Bern")
    assert updates.Update(True, None, 3, "event-3") == world.delete(3, "event-3", kept_seconds=60)
    assert {
        "customerId": {"S": "7"},
        "asOf": {"N": "3"},
        "writer": {"S": "event-3"},
        "deleted": {"BOOL": True},
        "ttl": {"N": str(int(world.now.timestamp()) + 60)},
    } == world.item()
    assert None is world.read()
    assert updates.Update(False, None, 3, "event-3") == world.update(2, "event-2", city="Basel")
    assert None is world.read()


def test_a_deletion_that_comes_first_wins_nevertheless(world: World) -> None:
    """It leaves its tombstone where nothing was."""
    assert world.delete(2, "event-2")
    assert not world.update(1, "event-1", city="Bern")
    assert not world.delete(1, "event-1")
    assert None is world.read()


def test_a_newer_update_turns_a_tombstone_into_a_record(world: World) -> None:
    """Which no longer expires, and has nothing from before the deletion."""
    world.update(1, "event-1", name="Ann")
    world.delete(2, "event-2")
    assert world.update(3, "event-3", city="Basel")
    assert {"customerId", "city", "asOf", "writer"} == set(world.item() or {})


def test_a_tombstone_without_end_has_no_ttl(world: World) -> None:
    """By default it is kept for 40 days."""
    world.delete(1, kept_seconds=None)
    assert "ttl" not in (world.item() or {})
    assert world.delete(1, kept_seconds=1)
    world.delete(2)
    assert int(world.now.timestamp()) + 40 * 86_400 == int((world.item() or {})["ttl"]["N"])


@pytest.mark.parametrize("seconds", [0, -1, 1.5, True, "60"])
def test_a_tombstone_is_kept_for_whole_seconds(world: World, seconds: Any) -> None:
    """Nothing is written of a deletion that says otherwise."""
    with pytest.raises(InvalidRequest, match="whole seconds"):
        world.delete(1, kept_seconds=seconds)
    assert [] == world.calls


def test_a_record_may_have_a_ttl_of_its_own(world: World) -> None:
    """As long as each update says it."""
    world.update(1, ttl=1_800_000_000)
    assert Decimal(1_800_000_000) == world.read()["ttl"]
    world.update(2, city="Bern")
    assert "ttl" not in world.read()


def test_a_record_without_an_order_is_older_than_any_update(world: World) -> None:
    """It was there before."""
    world.put(name={"S": "Ann"})
    assert world.update(-5, city="Bern")
    assert "Ann" == world.read()["name"]


@pytest.mark.parametrize("deleted", [{"BOOL": False}, {"S": "no"}, {"NULL": True}])
def test_a_record_s_own_deleted_is_no_tombstone(world: World, deleted: dict[str, Any]) -> None:
    """It was there before, as a flag of the user's own."""
    world.put(name={"S": "Ann"}, deleted=deleted)
    assert "Ann" == world.read()["name"]
    world.put(name={"S": "Ann"}, deleted=deleted, asOf={"N": "5"}, writer={"S": "another"})
    stale = world.update(1, city="Bern")
    assert (False, "Ann") == (stale.applied, stale.item["name"])


def test_an_order_that_another_program_has_written_alone_is_one(world: World) -> None:
    """It has no writer, so it is nobody's to repeat."""
    world.put(asOf={"N": "5"})
    stale = world.update(5, city="Bern")
    assert (False, 5, None) == (stale.applied, stale.as_of, stale.writer)
    assert world.update(6, city="Bern")


def test_names_of_any_kind_are_names(world: World) -> None:
    """Reserved words, dots, spaces, and what looks like a placeholder."""
    odd = {"status": 1, "a.b": 2, "a b": 3, "#c0": 4, ":at": 5, "size": 6, "ä[0]": 7, "name": 8}
    assert odd == {name: value for name, value in world.update(1, **odd).item.items() if name in odd}
    gone = world.update(2, **dict.fromkeys(odd, updates.REMOVE))
    assert {"customerId", "asOf", "writer"} == set(gone.item)


def test_a_key_of_two_attributes_is_a_key(world: World) -> None:
    """Its names may be reserved words as well."""
    world.dynamodb.create_table(
        TableName="orders",
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[
            {"AttributeName": "user", "KeyType": "HASH"},
            {"AttributeName": "order.date", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": "user", "AttributeType": "S"},
            {"AttributeName": "order.date", "AttributeType": "N"},
        ],
    )
    key = {"user": "ann", "order.date": 20260131}
    options: dict[str, Any] = {"writer": "w", "dynamodb": world.dynamodb}
    assert updates.update_if_newer("orders", key, {"total": 5}, as_of=1, **options)
    assert Decimal(5) == updates.read("orders", key, dynamodb=world.dynamodb)["total"]
    assert updates.delete_if_newer("orders", key, as_of=2, **options)
    assert None is updates.read("orders", key, dynamodb=world.dynamodb)


# -- What orders -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        (9, 10),
        (-1, 0),
        (2**53, 2**53 + 1),
        (10**38 - 2, 10**38 - 1),
        (MORNING, MORNING + timedelta(microseconds=1)),
        (MORNING.replace(microsecond=999_999), MORNING + timedelta(seconds=1)),
        (datetime(999, 1, 1, tzinfo=UTC), MORNING),
        (MORNING.astimezone(timezone(timedelta(hours=14))), MORNING + timedelta(seconds=1)),
    ],
)
def test_the_comparison_is_exact(world: World, older: Any, newer: Any) -> None:
    """To the last digit and the last microsecond, in any zone."""
    assert world.update(older, "a")
    assert world.update(newer, "b")
    found = world.update(older, "a")
    assert (False, newer) == (found.applied, found.as_of)


def test_one_moment_in_two_zones_is_one_moment(world: World) -> None:
    """So it belongs to its first writer."""
    assert world.update(MORNING, "a")
    assert not world.update(MORNING.astimezone(timezone(timedelta(hours=-9))), "b")


@pytest.mark.parametrize(
    "as_of",
    [
        datetime(2026, 1, 31, 9),
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))),
        MORNING.date(),
        "2026-01-31T09:00:00Z",
        1.5,
        Decimal(1),
        True,
        None,
        10**38,
    ],
)
def test_what_cannot_order_is_refused(world: World, as_of: Any) -> None:
    """Before anything is asked of DynamoDB."""
    with pytest.raises(InvalidAsOf):
        world.update(as_of)
    with pytest.raises(InvalidAsOf):
        world.delete(as_of)
    assert [] == world.calls


@pytest.mark.parametrize(("first", "second"), [(1, MORNING), (MORNING, 1), (MORNING, 10**38 - 1)])
def test_numbers_and_times_do_not_mix(world: World, first: Any, second: Any) -> None:
    """A record is ordered by one of the two, and nothing is written by the other."""
    world.update(first, city="Bern")
    with pytest.raises(InvalidAsOf, match="Nothing was written"):
        world.update(second, city="Basel")
    with pytest.raises(InvalidAsOf, match="Nothing was written"):
        world.delete(second)
    assert "Bern" == world.read()["city"]


@pytest.mark.parametrize("as_of", [{"S": "2026-01-31T08:00:00Z"}, {"S": "0"}, {"BOOL": True}])
def test_an_order_that_another_program_has_written_is_named(world: World, as_of: dict[str, Any]) -> None:
    """Texts of two formats do not compare, so nothing is written over them."""
    world.put(asOf=as_of)
    with pytest.raises(RecordUnreadable, match="asOf"):
        world.update(MORNING, city="Bern")
    assert {"customerId": {"S": "7"}, "asOf": as_of} == world.item()


@pytest.mark.parametrize("writer", ["", " ", None, 7, "\ud800"])
def test_a_writer_has_a_name(world: World, writer: Any) -> None:
    """Without a name no repetition could be recognised."""
    with pytest.raises(InvalidRequest, match="writer"):
        world.update(1, writer)
    assert [] == world.calls


# -- What is changed ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["customerId", "asOf", "writer", "deleted"])
def test_the_key_and_what_orders_are_not_for_changes(world: World, name: str) -> None:
    """The update writes them by itself."""
    with pytest.raises(InvalidRequest, match=name):
        updates.update_if_newer(TABLE, KEY, {name: "x"}, as_of=1, writer="w", dynamodb=world.dynamodb)
    assert [] == world.calls


@pytest.mark.parametrize("name", ["asOf", "writer", "deleted", "ttl"])
def test_a_key_has_no_attribute_that_an_update_writes(world: World, name: str) -> None:
    """A tombstone would have the key's value there: it would count as a record, or as another writer's."""
    key = {"customerId": "7", name: "x"}
    with pytest.raises(InvalidRequest, match=f"'{name}' is part of the key"):
        updates.update_if_newer(TABLE, key, {"city": "Bern"}, as_of=1, writer="w", dynamodb=world.dynamodb)
    with pytest.raises(InvalidRequest, match=f"'{name}' is part of the key"):
        updates.delete_if_newer(TABLE, key, as_of=1, writer="w", dynamodb=world.dynamodb)
    assert [] == world.calls


@pytest.mark.parametrize("value", [1.5, MORNING, object(), Decimal("1" * 39)])
def test_what_dynamodb_cannot_store_is_named(world: World, value: Any) -> None:
    """With what can be stored instead."""
    with pytest.raises(InvalidRequest, match="'price' cannot be stored"):
        world.update(1, price=value)
    assert [] == world.calls


def test_what_dynamodb_cannot_store_is_not_quoted(world: World) -> None:
    """Only its type is told: it may be a whole payload."""
    for value in (SimpleNamespace(card="4111"), "4111\ud800"):
        with pytest.raises(InvalidRequest) as raised:
            world.update(1, price=value)
        assert "4111" not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize(
    "changes",
    [
        {"tags": set()},
        {"tags": [{"deep": set()}]},
        {"tags": {1: 2}},
        {"tags": {"half": "\ud800"}},
        {"tags": {"one", "\ud800"}},
        {"tags \ud800": 1},
        {"tags \ud800": updates.REMOVE},
        {"": 1},
        {5: 1},
        [("tags", 1)],
        None,
    ],
)
def test_what_boto3_takes_and_dynamodb_does_not_is_refused(world: World, changes: Any) -> None:
    """Before anything is asked of DynamoDB, by each function that writes."""
    with pytest.raises(InvalidRequest, match=r"cannot be stored|no dict"):
        updates.update_if_newer(TABLE, world.key, changes, as_of=1, writer="w", dynamodb=world.dynamodb)
    with pytest.raises(InvalidRequest):
        updates.update_if_mine(
            world.lock(1), TABLE, world.key, changes, locks_table=LOCKS, dynamodb=world.dynamodb
        )
    with pytest.raises(InvalidRequest, match=r"cannot be stored|no dict"):
        updates.Versioned(TABLE, world.key, dynamodb=world.dynamodb).write(None, changes)
    assert [] == world.calls


@pytest.mark.parametrize("key", [{"id": "7"}, {"customerId": 7}, {"customerId": "7", "more": "1"}])
def test_a_key_that_is_not_the_table_s_is_an_invalid_request(world: World, key: dict[str, Any]) -> None:
    """It was DynamoDB's own error."""
    with pytest.raises(InvalidRequest, match="nothing was written"):
        updates.update_if_newer(TABLE, key, {"city": "Bern"}, as_of=1, writer="w", dynamodb=world.dynamodb)


@pytest.mark.parametrize("key", [None, {}, "7", {"customerId": "\ud800"}])
def test_what_is_no_key_is_an_invalid_request(world: World, key: Any) -> None:
    """For stages as well."""
    with pytest.raises(InvalidRequest):
        updates.read(TABLE, key, dynamodb=world.dynamodb)
    with pytest.raises(InvalidRequest):
        updates.hold_stage(TABLE, key, "charge", "run-1", dynamodb=world.dynamodb)
    with pytest.raises(InvalidRequest):
        updates.let_go_of_stages(TABLE, key, {"charge": "run-1"}, dynamodb=world.dynamodb)
    assert [] == world.calls


def test_an_item_that_is_too_large_is_an_invalid_request(world: World) -> None:
    """DynamoDB stores 400 KB."""
    with pytest.raises(InvalidRequest, match="size"):
        world.update(1, text="x" * 500_000)
    with pytest.raises(InvalidRequest, match="size"):
        updates.Versioned(TABLE, world.key, dynamodb=world.dynamodb).write(None, {"text": "x" * 500_000})
    assert "text" not in (world.item() or {})  # moto makes an empty item of the refused update


@pytest.mark.parametrize("value", [1, updates.REMOVE])
def test_more_changes_than_an_expression_holds_are_refused(world: World, value: Any) -> None:
    """Before DynamoDB refuses its length."""
    with pytest.raises(InvalidRequest, match=r"^1004 attributes"):
        world.update(1, **{f"a{number}": value for number in range(1_000)})
    assert [] == world.calls
    held = item.Changes({f"a{number}": 1 for number in range(280)}).arguments()
    assert len(held["UpdateExpression"]) <= 4_096


def test_a_table_without_a_name_is_an_invalid_request(world: World) -> None:
    """As where an environment variable is missing."""
    nameless: Any = None
    with pytest.raises(InvalidRequest, match="TableName"):
        updates.read(nameless, KEY, dynamodb=world.dynamodb)
    with pytest.raises(InvalidRequest, match="TableName"):
        updates.update_if_mine(
            world.lock(1), nameless, KEY, {"city": "Bern"}, locks_table=LOCKS, dynamodb=world.dynamodb
        )


def test_a_value_that_holds_itself_is_named(world: World) -> None:
    """It was a RecursionError."""
    parts: list[Any] = []
    parts.append(parts)
    with pytest.raises(InvalidRequest, match="'parts' cannot be stored: it is nested too deeply, or holds"):
        world.update(1, parts=parts)
    assert [] == world.calls


@pytest.mark.parametrize("key", [{}, {"customerId": 1.5}])
def test_a_key_that_cannot_be_is_named(world: World, key: dict[str, Any]) -> None:
    """Also of a read."""
    with pytest.raises(InvalidRequest):
        updates.read(TABLE, key, dynamodb=world.dynamodb)
    assert [] == world.calls


def test_an_update_without_changes_says_when_the_record_was_true(world: World) -> None:
    """It moves the order on, and an older update is stale then."""
    assert world.update(2)
    assert not world.update(1, city="Bern")


def test_no_record_is_read_as_none(world: World) -> None:
    """As a tombstone is."""
    assert None is world.read()


def test_a_record_is_read_consistently(world: World) -> None:
    """Who decides on an older copy may find nothing to change."""
    world.update(1, city="Bern")
    world.read()
    updates.Versioned(TABLE, KEY, dynamodb=world.dynamodb).read()
    reads = [arguments for name, arguments in world.calls if name == "get_item"]
    assert [True, True] == [arguments["ConsistentRead"] for arguments in reads]


def test_the_same_for_asyncio(world: World) -> None:
    """In threads."""

    async def all_of_them() -> list[Any]:
        options: dict[str, Any] = {"writer": "w", "dynamodb": world.dynamodb}
        return [
            (await updates.update_if_newer_async(TABLE, KEY, {"city": "Bern"}, as_of=1, **options)).applied,
            (await updates.read_async(TABLE, KEY, dynamodb=world.dynamodb))["city"],
            (await updates.delete_if_newer_async(TABLE, KEY, as_of=2, **options)).item,
            await updates.read_async(TABLE, KEY, dynamodb=world.dynamodb),
            (await updates.delete_if_newer_async(TABLE, KEY, as_of=3, kept_seconds=None, **options)).applied,
        ]

    assert [True, "Bern", None, None, True] == asyncio.run(all_of_them())
    assert "ttl" not in (world.item() or {})


def test_any_other_error_stays_what_it_is(world: World) -> None:
    """A table that is not there is nothing that passes."""
    with pytest.raises(Exception, match="ResourceNotFoundException"):
        updates.update_if_newer("nowhere", KEY, {}, as_of=1, writer="w", dynamodb=world.dynamodb)


def test_without_a_client_boto3_s_own_is_used(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the region and credentials of the environment."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    item.default_client.cache_clear()
    try:
        assert updates.update_if_newer(TABLE, KEY, {"city": "Bern"}, as_of=1, writer="w")
        assert "Bern" == (updates.read(TABLE, KEY) or {})["city"]
        updates.update_if_mine(world.lock(1), TABLE, KEY, {"city": "Basel"}, locks_table=LOCKS)
        assert "Basel" == (updates.read(TABLE, KEY) or {})["city"]
    finally:
        item.default_client.cache_clear()
