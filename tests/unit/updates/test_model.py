"""Any order, repetition and death of updates, attempts and loops, against models."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steponce import LockLost, Unavailable, updates
from tests.unit.limits.world import dies_after, dies_before, lost_and_repeated
from tests.unit.updates.world import LOCKS, TABLE, Fault, World, after, cancelled

FAULTS: st.SearchStrategy[Any] = st.sampled_from(
    [None, None, None, dies_before, dies_after, lost_and_repeated]
)
CONFLICT = cancelled("None", "TransactionConflict")
ZONES = st.integers(-14, 14).map(lambda hours: timezone(timedelta(hours=hours)))
NUMBERS = st.integers(-(10**38) + 1, 10**38 - 1) | st.integers(-3, 3)
MOMENTS = st.integers(-2, 2).map(lambda one: datetime(2026, 1, 31, tzinfo=UTC) + timedelta(microseconds=one))
TIMES = st.tuples(
    MOMENTS | st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC)), ZONES
).map(lambda moment: moment[0].astimezone(moment[1]))

UPDATES = st.lists(  # the time of each, and what it says; None: a deletion
    st.tuples(st.integers(1, 6), st.sampled_from(["Bern", "Basel", None])), min_size=1, max_size=6
)
ATTEMPTS = st.lists(  # the next attempt takes the lock, or one of the last changes something
    st.just("take")
    | st.tuples(st.integers(0, 3), st.lists(FAULTS | st.sampled_from(["take", CONFLICT]), max_size=3)),
    max_size=10,
)


@given(pair=st.tuples(NUMBERS, NUMBERS) | st.tuples(TIMES, TIMES))
def test_dynamodb_compares_as_python_does(one_world: World, pair: tuple[Any, Any]) -> None:
    """Whatever the numbers, and whatever the zones."""
    world, (first, second) = one_world, pair
    world.anew()
    world.update(first, "a")
    assert (second > first) == world.update(second, "b").applied
    assert max(first, second) == world.update(min(first, second), "c").as_of


@given(data=st.data(), made=UPDATES)
def test_any_order_ends_with_the_newest(one_world: World, data: st.DataObject, made: list[Any]) -> None:
    """A record never goes back, not for a moment. Of one time, the update that was written first stays."""
    world = one_world
    world.anew()
    numbers = range(len(made))
    again = data.draw(st.lists(st.sampled_from(numbers), max_size=6))
    there: tuple[int, int] | None = None  # the time and the number of the update that the record is from
    for number in data.draw(st.permutations([*numbers, *again])):
        as_of, city = made[number]
        world.faults = data.draw(st.lists(FAULTS, max_size=2))
        applied = until_answered(world, number, as_of, city)
        assert (there is None or as_of > there[0] or (as_of, number) == there) == applied
        there = (as_of, number) if applied or there is None else there
        found = world.read()
        assert made[there[1]][1] == (found["city"] if found else None)
    assert there is not None
    assert max(as_of for as_of, _ in made) == there[0]


def until_answered(world: World, number: int, as_of: int, city: str | None) -> bool:
    """The same update again and again, as a queue would deliver it."""
    while True:
        try:
            if city is None:
                return world.delete(as_of, f"event-{number}").applied
            return world.update(as_of, f"event-{number}", city=city).applied
        except Unavailable:
            continue


@pytest.mark.full
@given(steps=ATTEMPTS)
def test_two_attempts_never_both_write(one_world: World, steps: list[Any]) -> None:
    """From the moment when the next attempt has the lock, the one before it changes nothing."""
    world = one_world
    world.anew()
    works = [world.lock(1)]
    written: list[tuple[int, int]] = []  # the attempt that wrote, and the holder at that moment

    def take() -> None:
        works.append(world.lock(len(works) + 1))

    def watched(fault: Fault | None) -> Fault:
        def write(call: Any) -> Any:
            if fault == "take":
                take()
            before = world.item()
            try:
                return fault(call) if callable(fault) else call()
            finally:
                if before != world.item():
                    written.append((int((world.item() or {})["change"]["N"]), len(works)))

        return write

    for number, step in enumerate(steps):
        if step == "take":
            take()
            continue
        back, faults = step
        work = works[max(0, len(works) - 1 - back)]
        world.faults = [watched(fault) for fault in [*faults, None, None, None, None]]
        changes = {"change": work["attempt"], "number": number}
        try:
            updates.update_if_mine(
                work, TABLE, world.key, changes, locks_table=LOCKS, dynamodb=world.dynamodb
            )
        except LockLost:
            assert work["attempt"] < len(works)
        else:
            assert (world.read() or {})["number"] == number
    assert [] == [(writer, holder) for writer, holder in written if writer != holder]


@given(loops=st.lists(st.lists(FAULTS | st.just("other"), max_size=3), max_size=6))
def test_every_increment_counts_once(one_world: World, loops: list[list[Any]]) -> None:
    """Other writers come between, and answers are lost: each increment that was reported counts once."""
    world = one_world
    world.anew()
    record = updates.Versioned(TABLE, world.key, dynamodb=world.dynamodb)
    expected = 0

    def count() -> None:
        updates.retry_on_conflict(record.read, one_more, record.write)

    def other() -> None:
        nonlocal expected
        faults, world.faults = world.faults, []
        count()
        world.faults = faults
        expected += 1

    for faults in loops:
        world.faults = [after(other) if fault == "other" else fault for fault in faults]
        written = next((fault for fault in faults if fault != "other"), None)
        try:
            count()
            expected += 1
        except Unavailable:
            expected += written is dies_after
        assert expected == (world.read() or {"count": 0})["count"]


def one_more(seen: dict[str, Any] | None) -> dict[str, Any]:
    """Count."""
    return {**(seen or {}), "count": (seen or {"count": Decimal(0)})["count"] + 1}
