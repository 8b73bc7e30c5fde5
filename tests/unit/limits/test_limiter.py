"""The limiter: each request is counted once and gets the same answer, and never more than the limit do."""

from __future__ import annotations

import asyncio
import itertools
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from steponce import Admission, Limiter, Unavailable, admit_all, admit_all_async
from steponce.aws import times
from steponce.errors import InvalidEventTime, InvalidRequest, InvalidRequestId, RecordUnreadable
from steponce.limiter import KEPT_SECONDS
from steponce.limits import counters
from steponce.limits.record import COUNTER, SET_MEMBERS, member_of
from tests.fakes.watched_dynamodb import Call
from tests.rules.documents import whole_template
from tests.unit.limits.world import (
    NOON,
    TABLE,
    World,
    conflict,
    conflict_of_one,
    dies_after,
    dies_before,
    lost_and_repeated,
)
from tests.unit.shared_clients import shared

MIDNIGHT = datetime(2026, 2, 1, tzinfo=UTC)

CONFLICT = {"set": conflict_of_one, "number": conflict}
"""As a single write hears of it, and as a transaction does."""

both_forms = pytest.mark.usefixtures("form")


def admitted(limiter: Limiter, *ids: str, user: str = "ann", at: datetime | None = None) -> str:
    """The ids that are admitted, one after the other."""
    return " ".join(one for one in ids if limiter.admit(user, one, at))


@both_forms
def test_a_window_takes_so_many_and_no_more(world: World) -> None:
    """The answers count down, and say when the window ends."""
    limiter = world.limiter(limit=2)
    assert [
        Admission(True, False, 1, MIDNIGHT),
        Admission(True, False, 0, MIDNIGHT),
        Admission(False, False, 0, MIDNIGHT, ("requests/day",)),
    ] == [limiter.admit("ann", one, NOON) for one in "abc"]


@both_forms
def test_a_repetition_gets_the_same_answer_and_counts_nothing(world: World) -> None:
    """Whether it was admitted or refused, and also after the window was full."""
    limiter = world.limiter(limit=2)
    first = {one: limiter.admit("ann", one).admitted for one in "abc"}

    for one in "abcabc":
        again = limiter.admit("ann", one)
        assert (first[one], first[one], 0) == (again.admitted, again.counted_before, again.remaining)
    assert [2] == [count.counted for count in world.counts()]


@both_forms
def test_users_windows_and_names_are_counted_apart(world: World) -> None:
    """Also users whose names look like each other's keys."""
    day = world.limiter(limit=1)
    others = [world.limiter(limit=1, window="hour"), world.limiter(limit=1, name="letters")]
    assert "a" == admitted(day, "a", "b")
    for user in ("bob", "ann#2026-01-31T00:00:00.000Z", "day/ann", "ann "):
        assert "a" == admitted(day, "a", "b", user=user)
    for limiter in others:
        assert "a" == admitted(limiter, "a", "b")
    assert 7 == len(world.counts())


@both_forms
def test_a_redelivery_after_midnight_counts_for_yesterday(world: World) -> None:
    """The window is cut from the event's own time."""
    limiter = world.limiter(limit=1)
    late = MIDNIGHT - timedelta(seconds=1)
    world.now = MIDNIGHT + timedelta(hours=8)
    assert limiter.admit("ann", "a", late).admitted
    again = limiter.admit("ann", "a", late)
    today = limiter.admit("ann", "b", MIDNIGHT)
    assert (True, True, MIDNIGHT) == (again.admitted, again.counted_before, again.resets_at)
    assert (True, MIDNIGHT + timedelta(days=1)) == (today.admitted, today.resets_at)
    assert not limiter.admit("ann", "c", late)


@both_forms
def test_without_a_time_the_clock_s_window_counts(world: World) -> None:
    """So a request that comes again in the next window counts there too."""
    limiter = world.limiter(limit=1)
    assert MIDNIGHT == limiter.admit("ann", "a").resets_at
    world.now = MIDNIGHT
    assert not limiter.admit("ann", "a").counted_before


def test_a_time_in_the_future_is_refused(world: World) -> None:
    """But for clocks that differ a little; else a sender could open windows as it likes."""
    limiter = world.limiter(limit=1, window="minute")
    assert limiter.admit("ann", "a", NOON + timedelta(seconds=300))
    with pytest.raises(InvalidEventTime, match="300 seconds in the future"):
        limiter.admit("ann", "b", NOON + timedelta(seconds=301))


def test_a_time_whose_counts_may_be_deleted_is_refused(world: World) -> None:
    """The record is there a little longer than events are taken."""
    limiter = world.limiter(limit=1)
    limiter.admit("ann", "a", NOON)
    world.now = MIDNIGHT + timedelta(days=40) - timedelta(seconds=1)
    assert limiter.admit("ann", "a", NOON).counted_before
    (item,) = world.items()
    assert int(item["ttl"]["N"]) >= world.now.timestamp() + 3_600
    world.now += timedelta(seconds=1)
    for refused in (limiter.admit, limiter.peek):
        with pytest.raises(InvalidEventTime, match="so long ago"):
            refused("ann", "a", NOON)
    assert world.limiter(kept_seconds=50 * 86_400).peek("ann", "a", NOON).counted_before


@pytest.mark.parametrize(
    "wrong",
    [datetime.min, datetime.min.replace(tzinfo=UTC), "2026-01-31T12:00:00Z", 1_769_860_800],
    ids=["no zone", "year 1", "text", "number"],
)
def test_a_time_that_nobody_can_place_is_refused(world: World, wrong: datetime) -> None:
    """Said as what it is, for any window."""
    for window in ("day", 604_800):
        with pytest.raises(InvalidEventTime):
            world.limiter(window=window).admit("ann", "a", wrong)


@both_forms
def test_an_admission_is_true_only_if_it_admits(world: World) -> None:
    """An answer that is always true in a condition would be a trap."""
    limiter = world.limiter(limit=1)
    assert limiter.admit("ann", "a")
    assert not limiter.admit("ann", "b")
    assert not limiter.peek("ann", "b")


@both_forms
def test_peek_says_what_admit_would(world: World) -> None:
    """And changes nothing."""
    limiter = world.limiter(limit=2)
    limiter.admit("ann", "a")
    before = world.items()
    assert Admission(True, True, 1, MIDNIGHT) == limiter.peek("ann", "a")
    assert Admission(True, False, 1, MIDNIGHT) == limiter.peek("ann", "b")
    assert Admission(True, False, 2, MIDNIGHT) == limiter.peek("bob")
    assert before == world.items()
    limiter.admit("ann", "b")
    assert Admission(False, False, 0, MIDNIGHT, ("requests/day",)) == limiter.peek("ann")
    assert limiter.peek("ann", "b")


@both_forms
def test_a_raised_limit_takes_effect_at_once(world: World) -> None:
    """Only so a refused request may be admitted later; nobody's admission goes when it is lowered."""
    low, high = world.limiter(limit=2), world.limiter(limit=3)
    assert "a b" == admitted(low, *"abc")
    assert "c" == admitted(high, *"cd")
    assert "a b c" == admitted(low, *"abcd")
    assert 0 == low.admit("ann", "a").remaining


@pytest.mark.parametrize("smaller", [1, 2])
def test_a_limit_may_outgrow_its_set(world: World, monkeypatch: pytest.MonkeyPatch, smaller: int) -> None:
    """The set goes on as a number; who counted with the old limit goes on with the number, too."""
    monkeypatch.setattr(counters, "SET_MEMBERS", 2)
    old, new = world.limiter(limit=smaller), world.limiter(limit=4)
    assert " ".join("ab"[:smaller]) == admitted(old, *"ab")
    assert "a b c d" == admitted(new, *"abcde")
    assert "a b c d" == admitted(old, *"abcdef")
    assert [4] == [count.number for count in world.counts()]


def test_a_set_that_grows_while_it_becomes_a_number_loses_nobody(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody still counts with the old limit."""
    monkeypatch.setattr(counters, "SET_MEMBERS", 2)
    old, new = world.limiter(limit=2), world.limiter(limit=3)
    old.admit("ann", "a")

    def first(call: Any) -> Any:
        old.admit("ann", "b")
        return call()

    world.faults = [first]
    assert "c" == admitted(new, "c", "d")
    assert [3] == [count.counted for count in world.counts()]


def test_a_set_that_another_caller_has_made_a_number_goes_on_from_there(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both saw the set. Who comes second would take back what the first has counted since."""
    monkeypatch.setattr(counters, "SET_MEMBERS", 2)
    old, new = world.limiter(limit=2), world.limiter(limit=4)
    assert "a b" == admitted(old, *"ab")

    def first(call: Call) -> Any:
        assert "c" == admitted(new, "c")
        return call()

    world.faults = [first]
    assert "d" == admitted(new, *"de")
    assert [4] == [count.counted for count in world.counts()]


def test_who_counts_with_the_old_limit_cannot_add_to_a_set_that_became_a_number(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The set had room left. A request that only the set knows would be admitted beyond the limit."""
    monkeypatch.setattr(counters, "SET_MEMBERS", 2)
    old, new = world.limiter(limit=2), world.limiter(limit=3)
    assert "a" == admitted(old, "a")
    assert "b" == admitted(new, "b")
    assert "" == admitted(old, "c")
    assert [2] == [count.counted for count in world.counts()]


def test_a_set_that_begins_between_the_look_and_the_write_is_counted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody with the old limit was first. A number that begins beside it would forget that request."""
    monkeypatch.setattr(counters, "SET_MEMBERS", 2)
    old, new = world.limiter(limit=2), world.limiter(limit=3)

    def first(call: Call) -> Any:
        assert "a" == admitted(old, "a")
        return call()

    world.faults = [first]
    assert "b c" == admitted(new, *"bcd")
    assert [3] == [count.counted for count in world.counts()]


def test_a_refusal_to_make_a_number_is_no_growing_set(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is raised as it is, and not told as too many others after some tries."""
    monkeypatch.setattr(counters, "SET_MEMBERS", 2)
    assert "a b" == admitted(world.limiter(limit=2), *"ab")

    def refuse(_call: Call) -> Any:
        raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "UpdateItem")

    world.faults = [refuse] * counters.TRIES
    with pytest.raises(ClientError, match="AccessDenied"):
        world.limiter(limit=3).admit("ann", "c")


@both_forms
def test_counters_are_read_consistently(world: World) -> None:
    """An older copy would call a request refused that was counted a moment before."""
    limiter = world.limiter(limit=1)
    assert "a a" == admitted(limiter, *"aba")
    limiter.peek("ann", "a")
    assert {True} == {arguments["ConsistentRead"] for name, arguments in world.calls if name == "get_item"}


def test_a_small_limit_costs_one_write(world: World) -> None:
    """A fresh request, a repetition and a refusal alike: no read, and no transaction."""
    limiter = world.limiter(limit=1)
    for one in "aab":
        limiter.admit("ann", one)
    assert ["update_item"] * 3 == world.names()


def test_a_large_limit_costs_a_read_and_a_transaction(world: World) -> None:
    """Repetitions and refusals at a full counter only read: they do not hold up those who count elsewhere."""
    limiter = world.limiter(limit=SET_MEMBERS + 1)
    limiter.admit("ann", "a")
    assert ["get_item", "transact_write_items"] == world.names()
    shared("dynamodb").update_item(
        TableName=TABLE,
        Key={"limitKey": world.items()[0]["limitKey"], "member": {"S": "counter"}},
        UpdateExpression="SET #count = :full",
        ExpressionAttributeNames={"#count": "count"},
        ExpressionAttributeValues={":full": {"N": str(SET_MEMBERS + 1)}},
    )
    world.calls.clear()
    assert "a" == admitted(limiter, "a", "b")
    assert ["get_item"] * 4 == world.names()


@both_forms
@pytest.mark.parametrize("fault", [dies_before, dies_after])
def test_who_dies_at_the_write_counts_once_when_the_request_comes_again(world: World, fault: Any) -> None:
    """It had counted or it had not; nothing is ever half done."""
    limiter = world.limiter(limit=2)
    world.faults = [fault]
    with pytest.raises(Unavailable, match="safe to try again"):
        limiter.admit("ann", "a")
    assert "a b" == admitted(limiter, *"abc")
    assert [2] == [count.counted for count in world.counts()]


@both_forms
def test_a_write_that_is_made_twice_counts_once(world: World) -> None:
    """The conditions refuse the second, should DynamoDB have forgotten the transaction's token."""
    limiter = world.limiter(limit=2)
    world.faults = [lost_and_repeated]
    assert limiter.admit("ann", "a") == Admission(True, True, 1, MIDNIGHT)
    assert [1] == [count.counted for count in world.counts()]


@both_forms
@pytest.mark.parametrize(("taker", "answer"), [("b", (True, True)), ("c", (False, False))])
def test_the_last_place_is_taken_once(world: World, taker: str, answer: tuple[bool, bool]) -> None:
    """Somebody takes it between this call's look and its write: the same request's other copy, or another."""
    limiter = world.limiter(limit=2)
    limiter.admit("ann", "a")

    def taken_first(call: Any) -> Any:
        assert limiter.admit("ann", taker).admitted
        return call()

    world.faults = [taken_first]
    found = limiter.admit("ann", "b")
    assert answer == (found.admitted, found.counted_before)
    assert [2] == [count.counted for count in world.counts()]


@both_forms
def test_a_refusal_is_no_error_of_the_moment(world: World) -> None:
    """The request's own item is looked for after the counter was full, so its copy was not admitted since."""
    limiter = world.limiter(limit=1)
    limiter.admit("ann", "a")
    world.calls.clear()
    limiter.admit("ann", "b")
    reads = [given["Key"]["member"]["S"] for name, given in world.calls if name == "get_item"]
    assert reads in ([], ["counter", member_of("b")])


def test_a_transaction_has_a_token_of_its_own(world: World) -> None:
    """botocore repeats it with the same one; a new call is a new transaction."""
    limiter = world.limiter(limit=SET_MEMBERS + 1)
    for one in "ab":
        limiter.admit("ann", one)
    tokens = [given["ClientRequestToken"] for name, given in world.calls if name == "transact_write_items"]
    assert 2 == len(set(tokens))


def test_a_conflict_is_tried_again(world: World, form: str) -> None:
    """Another transaction had the counter for a moment."""
    world.faults = [CONFLICT[form]] * 5
    assert "a" == admitted(world.limiter(limit=1), *"ab")


def test_the_last_try_counts_as_any_other(world: World, form: str) -> None:
    """What it has written was told as not counted, and the caller had come again for nothing."""
    world.faults = [CONFLICT[form]] * (counters.TRIES - 1)
    assert "a" == admitted(world.limiter(limit=1), "a")


@pytest.mark.parametrize("code", ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"])
def test_a_transaction_that_found_the_counter_busy_is_tried_again(world: World, code: str) -> None:
    """DynamoDB names the reason for each of its parts. None of these says anything of the request."""

    def busy(_call: Call) -> Any:
        told = {
            "Error": {"Code": "TransactionCanceledException", "Message": "cancelled"},
            "CancellationReasons": [{"Code": "None"}, {"Code": code}],
        }
        raise ClientError(told, "TransactWriteItems")

    world.faults = [busy]
    assert "a" == admitted(world.limiter(limit=SET_MEMBERS + 1), "a")


def test_too_many_conflicts_are_an_error_that_may_be_tried_again(
    world: World, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With pauses that grow and differ, and an end."""
    pauses: list[float] = []
    monkeypatch.setattr(counters, "_FIRST_PAUSE_SECONDS", 0.02)
    monkeypatch.setattr(counters.time, "sleep", pauses.append)
    limiter = world.limiter(limit=1)
    world.faults = [CONFLICT[form]] * 100
    with pytest.raises(Unavailable, match=r"'requests/day/ann#.*shards") as caught:
        limiter.admit("ann", "a")
    assert caught.value.throttled
    assert 11 == len(pauses) == len(set(pauses))
    assert all(pause <= min(1, 0.02 * 2**n) for n, pause in enumerate(pauses))
    world.faults = []
    assert "a" == admitted(limiter, *"ab")


def test_a_transaction_that_fails_for_another_reason_is_an_error(world: World) -> None:
    """It is not tried for ever, nor taken for a refusal."""

    def invalid(_call: Any) -> Any:
        raise ClientError(
            {
                "Error": {"Code": "TransactionCanceledException", "Message": "cancelled"},
                "CancellationReasons": [{"Code": "ValidationError"}, {"Code": "None"}],
            },
            "TransactWriteItems",
        )

    world.faults = [invalid]
    with pytest.raises(ClientError, match="cancelled"):
        world.limiter(limit=SET_MEMBERS + 1).admit("ann", "a")


@both_forms
def test_several_limits_count_all_or_none(world: World) -> None:
    """The one that is full leaves the other as it was; a request that was counted stays so at both."""
    hour, day = world.limiter(limit=1, window="hour"), world.limiter(limit=2)
    limits = [(hour, "ann"), (day, "acme")]
    one_o_clock = NOON + timedelta(hours=1)
    assert Admission(True, False, 0, one_o_clock) == admit_all(limits, "a", NOON)
    assert Admission(False, False, 0, one_o_clock, ("requests/hour",)) == admit_all(limits, "b", NOON)
    assert {"requests/hour": 1, "requests/day": 1} == {one.name: one.counted for one in world.counts()}
    assert admit_all([(hour, "bob"), (day, "acme")], "c", NOON).admitted
    refused = admit_all([(hour, "ann"), (day, "acme")], "d", NOON)
    assert (("requests/hour", "requests/day"), MIDNIGHT) == (refused.refused_by, refused.resets_at)
    assert Admission(True, True, 0, one_o_clock) == admit_all(limits, "a", NOON)


@both_forms
def test_a_limit_that_has_counted_a_request_is_not_asked_again(world: World) -> None:
    """Although it is full by now."""
    hour, day = world.limiter(limit=1, window="hour"), world.limiter(limit=2)
    hour.admit("ann", "a")
    both = admit_all([(hour, "ann"), (day, "ann")], "a")
    assert (True, False) == (both.admitted, both.counted_before)
    assert {"requests/hour": 1, "requests/day": 1} == {one.name: one.counted for one in world.counts()}


@both_forms
def test_a_limit_that_has_counted_alone_counts_with_others(world: World) -> None:
    """In the form that it has: another one would refuse every further request."""
    hour, day = world.limiter(limit=2, window="hour"), world.limiter(limit=2)
    hour.admit("ann", "a")
    assert admit_all([(hour, "ann"), (day, "ann")], "b").admitted
    assert {"requests/hour": 2, "requests/day": 1} == {one.name: one.counted for one in world.counts()}


def test_a_transaction_gives_no_value_that_it_does_not_use(world: World) -> None:
    """DynamoDB refuses it then; moto does not."""
    limiter = world.limiter(limit=SET_MEMBERS + 1)
    assert "a b" == admitted(limiter, *"ab")
    written = [given for name, given in world.calls if name == "transact_write_items"]
    for update in [action["Update"] for given in written for action in given["TransactItems"][1:]]:
        said = f"{update['UpdateExpression']} {update['ConditionExpression']}"
        assert set(update["ExpressionAttributeValues"]) == set(re.findall(r":\w+", said))


@pytest.mark.parametrize("fault", [dies_before, dies_after, lost_and_repeated, conflict])
def test_several_limits_of_both_forms_survive_every_fault(
    world: World, monkeypatch: pytest.MonkeyPatch, fault: Any
) -> None:
    """A set and a number in one transaction."""
    monkeypatch.setattr(counters, "SET_MEMBERS", 2)
    limits = [(world.limiter(limit=2, window="hour"), "ann"), (world.limiter(limit=3), "ann")]
    for one in "abcd":
        world.faults = [fault]
        for _ in range(2):
            try:
                answer = admit_all(limits, one)
            except Unavailable:
                continue
        assert (one in "ab") == answer.admitted
    assert {"requests/hour": 2, "requests/day": 2} == {one.name: one.counted for one in world.counts()}


def test_limits_that_cannot_be_counted_at_once_are_refused(world: World) -> None:
    """A transaction takes each item once, and a hundred of them."""
    day = world.limiter()
    for wrong in ([], [(day, "ann"), (world.limiter(limit=9), "ann")], [(day, str(n)) for n in range(51)]):
        with pytest.raises(ValueError, match=r"limits cannot be|given twice"):
            admit_all(wrong, "a")
    assert admit_all([(day, str(n)) for n in range(50)], "a")


@both_forms
def test_shards_never_admit_more_than_the_limit(world: World) -> None:
    """And each request belongs to one of them, so that its answer stays."""
    limiter = world.limiter(limit=7, shards=3)
    ids = [f"r-{n}" for n in range(30)]
    first = {one: limiter.admit("ann", one).admitted for one in ids}
    assert first == {one: limiter.admit("ann", one).admitted for one in ids}
    assert 7 == sum(first.values())
    assert [2, 2, 3] == sorted(count.counted for count in world.counts())
    assert (0, False) == (limiter.peek("ann").remaining, limiter.peek("ann").admitted)


def test_shards_refuse_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """So much exactness is lost: with 2,000 in 10 shards the first refusal comes about a tenth too early."""
    limiter = Limiter.__new__(Limiter)
    monkeypatch.setattr(limiter, "_shards", 10, raising=False)
    firsts = []
    for run in range(20):
        loads = [0] * 10
        for n in itertools.count():
            shard = limiter._shard(member_of(f"{run}-{n}"))
            if loads[shard] == 200:
                firsts.append(n)
                break
            loads[shard] += 1
    assert 1_600 < min(firsts)
    assert 1_700 < sum(firsts) / len(firsts) < 1_900


def test_shards_of_a_size_for_sets_are_sets(world: World) -> None:
    """One write each, and no transaction."""
    world.limiter(limit=2 * SET_MEMBERS, shards=2).admit("ann", "a")
    assert ["update_item"] == world.names()


@both_forms
def test_a_limiter_serves_tasks(world: World) -> None:
    """The same calls, without blocking the event loop."""
    limiter, hour = world.limiter(limit=1), world.limiter(window="hour")

    async def call() -> list[bool]:
        first = await limiter.admit_async("ann", "a", at=NOON)
        seen = await limiter.peek_async("ann", "b", at=NOON)
        both = await admit_all_async([(limiter, "ann"), (hour, "ann")], "a", at=NOON)
        return [first.admitted, seen.admitted, both.admitted]

    assert [True, False, True] == asyncio.run(call())


@pytest.mark.parametrize(
    "wrong",
    [
        {"limit": 0},
        {"limit": 1.5},
        {"limit": True},
        {"window": "week"},
        {"shards": 0},
        {"shards": 4},
        {"name": "a/b"},
        {"name": " "},
        {"name": None},
        {"name": "n" * 256},
        {"kept_seconds": -1},
        {"kept_seconds": 3 * 10**11},
        {"kept_seconds": 10**14},
    ],
)
def test_a_limiter_that_makes_no_sense_is_refused(world: World, wrong: dict[str, Any]) -> None:
    """When it is made, not when it is used."""
    with pytest.raises(ValueError, match=r"Give|shards"):
        world.limiter(**wrong)


@pytest.mark.parametrize("wrong", ["", " ", None, 7, "x\ud800", "u" * 1_025])
def test_a_user_or_request_that_makes_no_sense_is_refused(world: World, wrong: Any) -> None:
    """Nothing is counted."""
    limiter = world.limiter()
    with pytest.raises(InvalidRequest):
        limiter.admit(wrong, "a")
    if wrong != "u" * 1_025:  # a request id may be of any length
        with pytest.raises(InvalidRequest):
            limiter.admit("ann", wrong)
    assert [] == world.items()


def test_an_empty_request_id_is_named_as_such(world: World) -> None:
    """The same error as of a start."""
    with pytest.raises(InvalidRequestId):
        world.limiter().admit("ann", "")


@both_forms
@pytest.mark.parametrize("damage", [("count", {"S": "many"}), ("members", {"N": "1"})])
def test_a_damaged_record_is_named(world: World, damage: tuple[str, dict[str, str]]) -> None:
    """Something else writes to the table; nothing is decided by it."""
    limiter = world.limiter(limit=2)
    limiter.admit("ann", "a")
    counter = next(item for item in world.items() if item["member"]["S"] == "counter")
    name, value = damage
    shared("dynamodb").put_item(TableName=TABLE, Item=counter | {name: value})
    with pytest.raises(RecordUnreadable, match=f"attribute {name} "):
        limiter.admit("ann", "b")


def test_counts_are_kept_longer_than_the_longest_redelivery() -> None:
    """In the queue, from retry to retry, and in the dead-letter queue until a person sends it again."""
    found = whole_template()
    tries, seconds = 1_000, found["Parameters"]["ResendMaxSeconds"]["MaxValue"]
    allowed = found["Parameters"]["ResendTries"]["AllowedPattern"]
    assert [True, False] == [bool(re.fullmatch(allowed, str(number))) for number in (tries, tries + 1)]
    queues = ("RequestsQueue", "RequestsDeadLetterQueue")
    kept = [found["Resources"][name]["Properties"]["MessageRetentionPeriod"] for name in queues]
    assert sum(kept) + tries * seconds < KEPT_SECONDS


def test_outputs_without_the_table_say_what_to_do() -> None:
    """The table is made only where it is wanted."""
    with pytest.raises(ValueError, match="Limits=yes"):
        Limiter.from_outputs({}, limit=1, window="day")


def test_the_clock_is_asked_once_for_a_request(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """At midnight the count and what is said of it belong to one window."""
    seconds = itertools.count()
    monkeypatch.setattr(times, "now", lambda: MIDNIGHT + timedelta(seconds=next(seconds) - 1))
    assert MIDNIGHT == world.limiter().admit("ann", "a").resets_at
    assert "2026-01-31" in world.counts()[0].key


@pytest.mark.parametrize("meanwhile", ["by number", "by a workflow"])
def test_what_a_workflow_has_counted_since_a_reset_leaves_less_room(world: World, meanwhile: str) -> None:
    """Also for a caller that has looked before the counter was full."""
    limiter = world.limiter()
    assert "a b c" == admitted(limiter, *"abc")
    assert world.limits.reset(world.counts()[0], by="eve", why="x")

    def count_in_a_workflow(*members: str) -> None:
        """As the state CountRequest does after a reset."""
        (counter,) = (item for item in world.items() if item["member"]["S"] == COUNTER)
        shared("dynamodb").update_item(
            TableName=TABLE,
            Key={name: counter[name] for name in ("limitKey", "member")},
            UpdateExpression="ADD members :members",
            ExpressionAttributeValues={":members": {"SS": members}},
        )

    def others_come_first(call: Call) -> Any:
        if meanwhile == "by number":
            assert "d e" == admitted(limiter, *"de")
        else:
            count_in_a_workflow("d", "e")
        return call()

    count_in_a_workflow("the first")
    world.faults += [None, others_come_first]  # the first write finds the form with a number
    assert not limiter.admit("ann", "f").admitted
    assert [3] == [count.counted for count in world.counts()]
