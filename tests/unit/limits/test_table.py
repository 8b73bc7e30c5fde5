"""A user's counters as people see them, and what a reset changes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steponce.aws import times
from steponce.aws.dynamodb import Item, read_each
from steponce.errors import RecordUnreadable
from steponce.limits.record import SET_MEMBERS, Count, key_of, member_of
from steponce.limits.window import Window
from steponce.locks.table import KEPT_INTERVENTIONS
from tests.fakes.watched_dynamodb import Call
from tests.unit.limits.world import NOON, TABLE, World, lost_and_repeated
from tests.unit.shared_clients import shared
from tests.unit.test_unreadable import SECRET, VALUES, damaged

NOON_TEXT = times.to_text(NOON)
WHO = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30).filter(str.strip)
COUNTER: Item = {
    "limitKey": {"S": "requests/day/ann#2026-01-31T00:00:00.000Z"},
    "member": {"S": "counter"},
    "who": {"S": "ann"},
    "windowStart": {"S": "2026-01-31T00:00:00.000Z"},
    "limit": {"N": "8"},
    "members": {"SS": ["a", "b"]},
    "count": {"N": "3"},
    "forgiven": {"N": "1"},
    "ttl": {"N": "1777636800"},
    "interventions": {"S": '[{"at": "2026", "by": "ann", "what": "reset", "why": "x"}]'},
}


@given(
    name=st.text(st.characters(exclude_characters="/", exclude_categories=["Cs"]), min_size=1, max_size=9),
    window=st.integers(1, 31_622_400),
    who=WHO
    | st.sampled_from(["a#2026-01-31T00:00:00.000Z", "a/b", "a#3/10", "x#2026-01-31T00:00:00.000Z#1/2"]),
    at=st.datetimes(timezones=st.just(UTC), min_value=datetime(1971, 1, 1), max_value=datetime(9000, 1, 1)),
    shard=st.sampled_from(["", "3/10"]),
)
def test_a_key_says_whose_it_is(name: str, window: int, who: str, at: datetime, shard: str) -> None:
    """Whatever the user is called."""
    cut = Window.of(window)
    item = COUNTER | {"limitKey": {"S": key_of(name, cut, who, at, shard)}}
    count = Count.from_item(item)
    assert (f"{name}/{cut.name}", who, shard or None) == (count.name, count.who, count.shard)
    assert (cut.start(at), cut.end(at)) == (count.start, count.end)


@given(data=st.data())
def test_whatever_is_in_a_counter_nothing_else_is_raised(data: Any) -> None:
    """It is read, or refused with one of its attributes, and what that holds is not quoted."""
    damage = data.draw(st.dictionaries(st.sampled_from(sorted(COUNTER)), VALUES, min_size=1, max_size=3))
    skipped: list[RecordUnreadable] = []
    item = damaged(COUNTER, damage, "limitKey")
    found = list(read_each([item], Count.from_item, lambda error, _: skipped.append(error)))
    assert 1 == len(found) + len(skipped)
    for error in skipped:
        assert error.attribute in damage
        assert SECRET not in str(error)


@pytest.mark.parametrize(
    "key",
    ["x", "requests/day/ann", "requests/week/ann#2026-01-31T00:00:00.000Z", "requests/day/ann#not-a-time"],
)
def test_what_has_another_key_is_no_counter(key: str) -> None:
    """Something else writes to the table."""
    with pytest.raises(RecordUnreadable, match="limitKey"):
        Count.from_item(COUNTER | {"limitKey": {"S": key}})


def test_a_full_set_costs_what_a_transaction_costs() -> None:
    """So no set is larger: DynamoDB bills a write unit for each KB begun, and two in a transaction."""

    def units(members: int) -> int:
        item = COUNTER | {"members": {"SS": [member_of(str(n)) for n in range(members)]}}
        del item["count"], item["interventions"]
        return -(-size_of(item | {"who": {"S": "u" * 36}}) // 1_024)

    transaction = 2 + 2
    assert transaction == units(SET_MEMBERS)
    assert transaction < units(SET_MEMBERS + 40)
    average = sum(map(units, range(1, SET_MEMBERS + 1))) / SET_MEMBERS
    assert 2.1 < average < 2.4
    assert 100 < units(5_000) < 120


def size_of(item: Item) -> int:
    """Bytes of an item as DynamoDB counts them; a number about a byte for two digits, and one."""
    sizes: dict[str, Callable[[Any], int]] = {
        "S": len,
        "N": lambda digits: len(digits) // 2 + 2,
        "SS": lambda texts: 3 + sum(len(text) + 1 for text in texts),
    }
    return sum(
        len(name) + sizes[kind](value) for name, typed in item.items() for kind, value in typed.items()
    )


@pytest.mark.usefixtures("form")
def test_a_user_s_counters_are_listed_the_newest_first(world: World) -> None:
    """Of all limits and windows, and of this user alone."""
    day, hour = world.limiter(), world.limiter(window="hour", name="letters")
    day.admit("ann", "a", NOON - timedelta(days=1))
    day.admit("ann", "b", NOON)
    hour.admit("ann", "b", NOON)
    day.admit("anna", "b", NOON)
    found = [(count.name, count.start, count.counted) for count in world.limits.of("ann")]
    midnight = NOON.replace(hour=0)
    assert [
        ("letters/hour", NOON, 1),
        ("requests/day", midnight, 1),
        ("requests/day", midnight - timedelta(days=1), 1),
    ] == found
    assert ["letters/hour", "requests/day"] == [count.name for count in world.limits.at("ann", NOON)]


def test_only_counters_whose_window_runs_are_read_for_a_moment(world: World) -> None:
    """A user may have tens of thousands of minutes on record."""
    minutes = world.limiter(window="minute")
    for ago in range(5):
        minutes.admit("ann", "a", NOON - timedelta(minutes=ago))
    world.calls.clear()
    assert [NOON] == [count.start for count in world.limits.at("ann", NOON)]
    assert 1 == world.names().count("get_item")


def test_a_counter_that_cannot_be_read_is_told_of(world: World) -> None:
    """The others are listed."""
    world.limiter().admit("ann", "a")
    world.limiter(window="hour").admit("ann", "a")
    item = next(item for item in world.items() if "/hour/" in item["limitKey"]["S"])
    shared("dynamodb").put_item(TableName=TABLE, Item=item | {"limit": {"S": "x"}})
    skipped: list[RecordUnreadable] = []
    found = list(world.limits.of("ann", skip=lambda error, _: skipped.append(error)))
    assert ["requests/day"] == [count.name for count in found]
    assert ["limit"] == [error.attribute for error in skipped]


@pytest.mark.usefixtures("form")
def test_a_reset_lets_a_window_begin_anew_and_forgets_nobody(world: World) -> None:
    """Who was admitted stays so and costs nothing; who was refused may come again."""
    limiter = world.limiter(limit=2)
    assert [True, True, False] == [limiter.admit("ann", one).admitted for one in "abc"]
    (count,) = world.limits.of("ann")
    assert world.limits.reset(count, by="eve", why="a bug of ours")
    assert 2 == limiter.peek("ann").remaining
    assert [(True, True, 2), (True, False, 1), (True, False, 0), (False, False, 0), (True, True, 0)] == [
        (answer.admitted, answer.counted_before, answer.remaining)
        for answer in (limiter.admit("ann", one) for one in "acdeb")
    ]
    (after,) = world.limits.of("ann")
    (told,) = after.interventions
    assert ("eve", "reset from 2", "a bug of ours") == (told.by, told.what, told.why)


def test_a_workflow_goes_on_adding_to_a_set_that_was_reset(world: World) -> None:
    """Its requests count, and the next reset forgives them too."""
    world.limiter(limit=2).admit("ann", "a")
    for allowance in ("3", "4"):
        (count,) = world.limits.of("ann")
        assert world.limits.reset(count, by="eve", why="w")
        (item,) = world.items()
        assert {"N": allowance} == item["allowance"]
        shared("dynamodb").put_item(
            TableName=TABLE, Item=item | {"members": {"SS": [*item["members"]["SS"], f"w-{allowance}"]}}
        )
        assert [1] == [one.counted for one in world.limits.of("ann")]
        assert not world.limits.reset(count, by="eve", why="as it was shown before")


@pytest.mark.usefixtures("form")
def test_a_counter_that_has_counted_meanwhile_is_not_reset(world: World) -> None:
    """The person has seen another number."""
    limiter = world.limiter(limit=3)
    limiter.admit("ann", "a")
    (count,) = world.limits.of("ann")
    limiter.admit("ann", "b")
    assert not world.limits.reset(count, by="eve", why="w")
    assert [2] == [one.counted for one in world.limits.of("ann")]


@pytest.mark.usefixtures("form")
def test_a_counter_that_is_full_again_after_another_reset_is_not_reset(world: World) -> None:
    """Two people have seen the same full counter, and one of them took longer."""
    limiter = world.limiter(limit=1)
    for request in "ab":
        limiter.admit("ann", request)
        (seen,) = world.limits.of("ann")
        assert world.limits.reset(seen, by="eve", why="w")
    limiter.admit("ann", "c")
    assert not world.limits.reset(seen, by="bob", why="as it was shown before")
    assert [1] == [one.counted for one in world.limits.of("ann")]


@pytest.mark.usefixtures("form")
def test_a_reset_whose_answer_was_lost_is_made_once(world: World) -> None:
    """botocore repeats it, and it says that it was made."""
    limiter = world.limiter(limit=3)
    limiter.admit("ann", "a")
    (count,) = world.limits.of("ann")
    world.faults = [lost_and_repeated]
    assert world.limits.reset(count, by="eve", why="w")
    assert [0] == [one.counted for one in world.limits.of("ann")]


@pytest.mark.usefixtures("form")
def test_a_reset_whose_answer_was_lost_was_made_though_another_followed(world: World) -> None:
    """It said that the counter had changed, and was left."""
    limiter = world.limiter(limit=3)
    limiter.admit("ann", "a")
    (count,) = world.limits.of("ann")

    def lost_and_repeated_late(call: Call) -> Any:
        call()
        (reset,) = world.limits.of("ann")
        assert world.limits.reset(reset, by="bob", why="too")
        return call()

    world.faults = [lost_and_repeated_late, None]
    assert world.limits.reset(count, by="eve", why="w")
    assert ["eve", "bob"] == [one.by for one in next(world.limits.of("ann")).interventions]


def test_a_record_keeps_the_newest_interventions(world: World) -> None:
    """It must not grow without end."""
    limiter = world.limiter(limit=1)
    for n in range(KEPT_INTERVENTIONS + 2):
        limiter.admit("ann", str(n))
        (count,) = world.limits.of("ann")
        assert world.limits.reset(count, by="eve", why=str(n))
    (count,) = world.limits.of("ann")
    assert [str(n) for n in range(2, KEPT_INTERVENTIONS + 2)] == [one.why for one in count.interventions]


def test_a_request_has_the_digest_that_it_always_had() -> None:
    """Counted by an earlier release, it is not counted again by this one."""
    assert "C6_iIVbSaYwUO4YEBEbTZg" == member_of("order-1")
