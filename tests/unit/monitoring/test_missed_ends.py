"""Ends that no event has reported: whose message comes back, how often, and what the next round does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from steponce.aws import times
from steponce.aws.pace import Pace
from steponce.errors import PayloadTooLarge, RecordUnreadable, Unavailable
from steponce.executions import CANCELLED
from steponce.locks.table import PLACE, Locks
from steponce.monitoring import missed_ends
from steponce.monitoring.missed_ends import (
    FIRST_LOOK,
    LONGEST_LOOK,
    MOST_ENDS,
    Looked,
    MissedEnds,
)
from steponce.monitoring.search_position import SearchPosition
from steponce.triggers.ended import SEARCHED_AFTER
from steponce.triggers.start_request import StartRequest
from steponce.triggers.written_letters import WrittenLetters, end_of
from tests.fakes.errors import client_error
from tests.fakes.step_functions import PAGE, StepFunctions
from tests.fakes.tables import create_table
from tests.unit.one_owner import ITEM, NOW
from tests.unit.shared_clients import shared

MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:m"
LONGEST_RUN = timedelta(days=2)
OLD_ENOUGH = NOW - SEARCHED_AFTER - timedelta(minutes=1)
KEY = "shop/o"


class World:
    """The table in moto, and a queue that notes what it is sent."""

    def __init__(self) -> None:
        self.dynamodb = shared("dynamodb")
        create_table(self.dynamodb, "LocksTable", "locks")
        self.sfn = StepFunctions(MACHINE, {"TimeoutSeconds": LONGEST_RUN.total_seconds()})
        self.sent: list[tuple[str, int, str]] = []
        self.letters: list[tuple[str, str]] = []
        self.skipped: list[tuple[str, str]] = []
        self.refuses: dict[str, Exception] = {}
        self.place = SearchPosition(self.dynamodb, "locks", MACHINE)
        self.written = WrittenLetters(self.dynamodb, "locks")
        self.locks: Any = Locks(self.dynamodb, "locks")
        self.pages = 0
        self.a_page_takes = 0.0
        self.sfn.before_call = self._count

    def _count(self, operation: str, _about: str) -> None:
        """Count what is read."""
        self.pages += operation == "get_execution_history"

    def objection(self, asked: StartRequest, why: str) -> str | None:
        """What the re-sender says."""
        return f"{why}: no more" if asked.tries >= 9 or why == "PayloadMismatch" else None

    def send_again(self, asked: StartRequest, why: str, source: str) -> str:
        """What the re-sender does."""
        assert asked.lock_token == KEY
        name = source.rpartition(":")[2]
        if name in self.refuses:
            raise self.refuses[name]
        self.sent.append((name, asked.tries, why))
        return "resent"

    def lay_aside(self, _asked: StartRequest, reason: str, source: str) -> None:
        """What the re-sender does with a letter."""
        self.letters.append((source.rpartition(":")[2], reason.partition(":")[0]))

    def put(self, **attributes: Any) -> None:
        """The record of the key."""
        self.dynamodb.put_item(TableName="locks", Item=ITEM | {"lockToken": {"S": KEY}} | attributes)

    def end(
        self,
        name: str,
        ended: datetime = OLD_ENOUGH,
        *,
        status: str = "FAILED",
        error: str = "States.Timeout",
        tries: int | None = 0,
        **given_otherwise: Any,
    ) -> None:
        """An execution that ended; it came as a message, unless tries is None."""
        given: dict[str, Any] = {
            "lockToken": KEY,
            "callId": name,
            "payload": {"n": name.partition("--")[0]},
            "requestedAt": times.to_text(NOW),
        } | given_otherwise
        if tries is not None:
            given["redelivery"] = {"requestId": name.partition("--")[0], "tries": tries}
        dates = {"startDate": ended - timedelta(seconds=5), "stopDate": ended}
        self.sfn.put(name, status=status, error=error, input=json.dumps(given), **dates)

    def look(self, seconds: float = 100, per_second: float = 1e6, pace: Any = None) -> Looked:
        """One round's look."""
        ends = MissedEnds(
            self.sfn,
            MACHINE,
            self.locks,
            self,
            self.written,
            self.place,
        )
        self.pages = 0
        return ends.look(
            seconds_left=lambda: seconds - self.pages * self.a_page_takes,
            per_second=per_second,
            pace=pace or Pace(1e6),
            skip=lambda error, arn: self.skipped.append((type(error).__name__, arn.rpartition(":")[2])),
        )

    def names(self) -> list[str]:
        """Whose message was sent."""
        return [name for name, _, _ in self.sent]


class NoRecords:
    """A table without locks, which costs a test no time."""

    def get(self, _lock_token: str) -> None:
        return None


def arn(name: str) -> str:
    return f"{MACHINE.replace(':stateMachine:', ':execution:')}:{name}"


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """An empty table; it is twelve."""
    monkeypatch.setattr(times, "now", lambda: NOW)
    with mock_aws():
        yield World()


def later(monkeypatch: pytest.MonkeyPatch, **passed: float) -> None:
    """The clock goes on."""
    monkeypatch.setattr(times, "now", lambda: NOW + timedelta(**passed))


@pytest.mark.parametrize(
    ("error", "status", "record"),
    [
        ("RetryLater", "FAILED", "RELEASED"),
        ("AlreadyInProgress", "FAILED", "INPROGRESS"),
        ("LockContended", "FAILED", "RELEASED"),
        ("ReplayTooLarge", "FAILED", "RELEASED"),
        ("States.Timeout", "TIMED_OUT", None),
        ("Stopped", "ABORTED", None),
    ],
)
def test_what_ended_without_an_answer_comes_back_once(
    world: World, error: str, status: str, record: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its next round knows that it was looked at."""
    world.end("o-1", status=status, error=error, tries=2)
    if record:
        world.put(status={"S": record})

    assert Looked(resent=1) == world.look()
    assert [("o-1", 2, error)] == world.sent
    for minutes in (0, 5, 60, 3_000):
        later(monkeypatch, minutes=minutes)
        assert Looked() == world.look()
    assert [] == world.skipped


@pytest.mark.parametrize(
    ("end", "record"),
    [
        ({}, {"status": {"S": "COMPLETED"}, "result": {"S": "1"}}),
        ({}, {"status": {"S": "FAILED"}, "failure": {"S": '{"Error": "Declined"}'}}),
        ({"error": CANCELLED, "status": "ABORTED"}, None),
        ({"tries": None}, None),
    ],
    ids=["completed", "failed", "cancelled", "nobody's message"],
)
def test_what_has_an_answer_or_was_no_message_does_not_come_back(
    world: World, end: dict[str, Any], record: dict[str, Any] | None
) -> None:
    """A cancelled request never does."""
    world.end("o-1", **end)
    if record:
        world.put(**record)
    assert Looked() == world.look()
    assert [] == world.sent


def expired(at: datetime) -> dict[str, Any]:
    """The record of an answer that was valid until this time."""
    return {"status": {"S": "COMPLETED"}, "ttl": {"N": "1"}, "expiresAt": {"S": times.to_text(at)}}


@pytest.mark.parametrize(
    ("error", "record"),
    [
        ("AlreadyInProgress", expired(OLD_ENOUGH + timedelta(minutes=5))),
        ("RateLimited", expired(OLD_ENOUGH + timedelta(minutes=5))),
        ("AlreadyInProgress", None),
        ("LockContended", None),
        ("ReplayTooLarge", None),
        ("RetryLater", None),
    ],
    ids=[
        "held and expired",
        "limited and expired",
        "held and deleted",
        "contended and deleted",
        "too large",
        "released and deleted",
    ],
)
def test_a_message_whose_answer_may_have_expired_since_is_laid_aside(
    world: World, error: str, record: dict[str, Any] | None
) -> None:
    """Its event may have brought it back in time. Sent again, it would run the work a second time."""
    world.end("o-1", error=error)
    if record:
        world.put(**record)
    assert Looked(dead_lettered=1) == world.look()
    assert ([], [("o-1", error)]) == (world.sent, world.letters)


@pytest.mark.parametrize(
    ("state", "record", "found"),
    [
        ("DoWork", None, Looked(dead_lettered=1)),
        ("DoWork", {"lockedBy": {"S": arn("o-9")}, "status": {"S": "INPROGRESS"}}, Looked(dead_lettered=1)),
        ("DoWork", {"lockedBy": {"S": arn("o-1")}, "status": {"S": "RELEASED"}}, Looked(resent=1)),
        ("AcquireLock", None, Looked(resent=1)),
    ],
    ids=["its record is gone", "another has its lock token", "it was released", "it had no lock"],
)
def test_a_message_whose_work_has_run_and_whose_record_is_gone_is_laid_aside(
    world: World, state: str, record: dict[str, Any] | None, found: Looked
) -> None:
    """A person may have settled the record, and its answer may have expired since."""
    world.end("o-1", status="ABORTED", error="Stopped")
    world.sfn.histories[arn("o-1")].append({"stateEnteredEventDetails": {"name": state}})
    if record:
        world.put(**record)
    assert found == world.look()


@pytest.mark.parametrize(("hours", "found"), [(23, Looked(resent=1)), (25, Looked(dead_lettered=1))])
def test_a_message_whose_answer_may_be_deleted_is_laid_aside(world: World, hours: int, found: Looked) -> None:
    """An expired record is kept for a day. Before that, no record means that there was no answer."""
    world.end("o-1", NOW - timedelta(hours=hours), error="RateLimited")
    world.place.move(NOW - timedelta(hours=26))
    assert found == world.look()


def test_an_answer_that_had_expired_before_the_end_answered_nothing_after_it(world: World) -> None:
    """The lock token was used again after its retention."""
    world.end("o-1", error="RateLimited")
    world.put(**expired(OLD_ENOUGH - timedelta(seconds=1)))
    assert Looked(resent=1) == world.look()


def test_a_mismatch_that_a_later_attempt_carries_on_gets_no_letter(world: World) -> None:
    """The record with the other payload is gone, and the message was delivered once more."""
    world.end("o-1", error="PayloadMismatch")
    world.end("o-1--2", NOW, status="RUNNING")
    assert Looked() == world.look()
    assert ([], []) == (world.sent, world.letters)


def test_what_its_next_attempt_carries_on_does_not_come_back(world: World) -> None:
    """The event has arrived, so the message is on its way; its own end brings it back."""
    world.end("o-1")
    world.end("o-1--2", NOW, tries=1, status="RUNNING")
    world.look()
    assert [] == world.sent


@pytest.mark.parametrize(
    ("seconds", "status", "found"),
    [(-1, "FAILED", ["o-1"]), (-1, "SUCCEEDED", []), (0, "FAILED", []), (1, "FAILED", [])],
)
def test_an_attempt_that_failed_before_carries_nothing_on(
    world: World, seconds: int, status: str, found: list[str]
) -> None:
    """
    Its message came back while this one still ran, and was a duplicate.

    A message comes back after seconds. So that of an attempt that ended in the same moment found nothing that
    ran.
    """
    world.end("o-1")
    world.end("o-1--2", OLD_ENOUGH + timedelta(seconds=seconds), error=CANCELLED, status=status)
    world.look()
    assert found == world.names()


@pytest.mark.parametrize("other", [{"lockToken": "m/other"}, {"payload": {"n": "other"}}])
def test_an_attempt_of_another_message_carries_nothing_on(world: World, other: dict[str, Any]) -> None:
    """Two messages had one id. Each has its own key or payload, and its own end."""
    world.end("o-1")
    world.end("o-1--2", NOW, status="RUNNING", **other)
    world.look()
    assert ["o-1"] == world.names()


def test_true_is_another_payload_than_1(world: World) -> None:
    """Python takes them for equal, and JSON does not."""
    world.end("o-1", payload={"express": True})
    world.end("o-1--2", NOW, status="RUNNING", payload={"express": 1})
    world.look()
    assert ["o-1"] == world.names()


def test_an_attempt_that_came_by_hand_carries_nothing_on(world: World) -> None:
    """Its end brings no message back."""
    world.end("o-1--2")
    world.end("o-1--3", NOW, tries=None)
    world.look()
    assert ["o-1--2"] == world.names()


def test_a_young_end_is_left_to_its_event(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until a message that came back would be here."""
    world.end("o-1", NOW - SEARCHED_AFTER)
    assert Looked() == world.look()
    later(monkeypatch, seconds=1)
    assert Looked(resent=1) == world.look()


def test_a_message_that_came_too_often_is_laid_aside(world: World) -> None:
    """The re-sender knows how often is too often."""
    world.end("o-1", tries=9)
    assert Looked(dead_lettered=1) == world.look()
    assert [("o-1", "States.Timeout")] == world.letters


@pytest.mark.parametrize("redrives", [0, 1])
def test_what_its_event_has_laid_aside_gets_no_second_letter(world: World, redrives: int) -> None:
    """Unless the execution was redriven since. Then it has ended once more."""
    world.end("o-1", tries=9)
    world.sfn.executions[arn("o-1")]["redriveCount"] = redrives
    world.written.add(end_of(arn("o-1"), "o-1", 0))
    assert Looked(dead_lettered=redrives) == world.look()
    assert redrives == len(world.letters)


def test_the_letter_of_an_earlier_machine_s_execution_is_not_this_one_s(world: World) -> None:
    """A machine that was made anew gives its names, and so its ARNs, a second time."""
    world.end("o-1", tries=9)
    world.written.add(end_of(arn("o-1"), "of the machine before", 0))
    assert Looked(dead_lettered=1) == world.look()


def test_a_round_that_died_before_it_moved_on_writes_no_second_letter(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one examines the same end, and finds its mark."""
    world.place.move(OLD_ENOUGH - timedelta(minutes=1))
    world.end("o-1", tries=9)
    with monkeypatch.context() as patch:
        patch.setattr(world.place, "move", Mock(side_effect=Unavailable("x")))
        assert Looked(dead_lettered=1) == world.look()
    before = world.sfn.calls["describe_execution"]
    assert Looked() == world.look()
    assert (1, True) == (len(world.letters), world.sfn.calls["describe_execution"] > before)


def test_a_mismatch_whose_event_is_lost_gets_its_letter(world: World) -> None:
    """It never comes back by itself, so nothing else would carry it."""
    world.end("o-1", error="PayloadMismatch")
    assert Looked(dead_lettered=1) == world.look()
    assert ([], [("o-1", "PayloadMismatch")]) == (world.sent, world.letters)


def test_the_first_round_looks_a_day_back(world: World) -> None:
    """A machine that is older than its monitor."""
    world.put(status={"S": "RELEASED"}, created={"S": times.to_text(NOW - timedelta(days=9))})
    world.end("o-1", OLD_ENOUGH - FIRST_LOOK)
    world.end("o-2", OLD_ENOUGH - FIRST_LOOK + timedelta(minutes=2))
    world.look()
    assert ["o-2"] == world.names()


def test_a_monitor_that_was_down_goes_on_from_where_it_was(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a day, or for longer than a queue keeps a message."""
    world.put(status={"S": "RELEASED"})
    world.look()
    for hour in range(25):
        world.end(f"o-{hour}", NOW + timedelta(hours=hour))
    later(monkeypatch, hours=25)
    assert 25 == world.look().resent
    assert [f"o-{hour}" for hour in range(25)] == world.names()

    world.end("lost", NOW + timedelta(hours=26))
    world.end("kept", NOW + timedelta(hours=28))
    monkeypatch.setattr(times, "now", lambda: NOW + timedelta(hours=27) + LONGEST_LOOK + SEARCHED_AFTER)
    world.look()
    assert ["kept"] == world.names()[25:]


def test_a_burst_is_shared_by_rounds_and_each_end_looked_at_once(world: World) -> None:
    """A thousand, some at the same moment; the oldest ends first."""
    world.locks = NoRecords()
    for number in range(1_000):
        world.end(f"o-{number}", OLD_ENOUGH - timedelta(seconds=number // 3))
    left = []
    while not left or left[-1]:
        left.append(world.look(seconds=10, per_second=30).left)
    assert 4 == len(left)
    assert left[0] == 700
    sent = world.names()
    assert 1_000 == len(set(sent))
    assert len(sent) <= 1_000 + 2 * len(left)  # those of one moment, where a round ended among them
    ended = [world.sfn.executions[arn(name)]["stopDate"] for name in sent]
    assert sorted(ended) == ended


def test_a_search_that_cannot_keep_up_is_told_of(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two ends an hour, and one examined. A day behind it is told of in each round, long before 14 days."""
    world.look()
    for half_hour in range(2 * 72):
        world.end(f"o-{half_hour}", NOW + timedelta(minutes=30 * half_hour), tries=None)
    told = []
    for hour in range(1, 72):
        later(monkeypatch, hours=hour)
        world.look(seconds=1, per_second=1)
        told.append(len(world.skipped))
    assert (0, 0, 0, 1, 2) == tuple(told[hour - 1] for hour in (12, 24, 48, 49, 50))
    assert {("FallenBehind", "m")} == set(world.skipped)
    assert world.look(seconds=1_000).left == 0
    assert told[-1] == len(world.skipped)


def test_no_round_keeps_more_in_memory_than_it_says(world: World) -> None:
    """However fast it may ask."""
    assert MOST_ENDS <= 10_000
    for number in range(5):
        world.end(f"o-{number}", OLD_ENOUGH - timedelta(minutes=number))
    assert 3 == world.look(seconds=1, per_second=2).left


def test_no_rate_lets_a_round_keep_more_than_the_most(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The function's memory is limited, and the next round goes on."""
    monkeypatch.setattr(missed_ends, "MOST_ENDS", 2)
    for number in range(5):
        world.end(f"o-{number}", OLD_ENOUGH - timedelta(minutes=number))
    assert 3 == world.look().left
    assert ["o-4", "o-3"] == world.names()


def test_each_end_waits_for_its_turn(world: World) -> None:
    """DescribeExecution's quota is shared with the workflow itself."""
    for number in range(3):
        world.end(f"o-{number}")
    pace = Mock()
    world.look(seconds=100, pace=pace)
    assert 3 == [call.args for call in pace.turn.call_args_list].count((100,))


def test_what_has_no_turn_any_more_is_left_to_the_next_round(world: World) -> None:
    """And all that ended after it: the next round begins there."""
    world.end("o-1", OLD_ENOUGH - timedelta(minutes=1))
    world.end("o-2")

    def turn(seconds_left: float) -> None:
        if seconds_left <= 100:  # not that of an examination which has begun
            raise Unavailable("no time left")

    assert Looked(left=2) == world.look(pace=Mock(turn=turn))
    assert ([], []) == (world.sent, world.skipped)
    world.look()
    assert ["o-1", "o-2"] == world.names()


def test_a_history_for_which_too_little_time_is_left_begins_the_next_round(world: World) -> None:
    """In a whole round it can be read. What ended after it waits, or its message would be lost."""
    for minutes, pages in ((3, 30), (2, 80), (1, 1)):
        world.end(f"o-{pages}", OLD_ENOUGH - timedelta(minutes=minutes))
        world.sfn.histories[arn(f"o-{pages}")] = [{"type": "TaskStateExited"}] * (pages * PAGE)
    world.a_page_takes = 1.0
    world.look()
    assert (["o-30"], []) == (world.names(), world.skipped)
    world.look()
    assert (["o-30", "o-80", "o-1"], []) == (world.names(), world.skipped)


def test_each_page_of_a_list_waits_for_its_turn(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """ListExecutions has a quota of its own, which others in the account share."""
    pace = Mock()
    monkeypatch.setattr(missed_ends, "Pace", Mock(return_value=pace))
    world.look()
    assert world.sfn.calls["list_executions"] <= pace.turn.call_count


def test_a_round_that_is_short_or_slow_examines_one_end(world: World) -> None:
    """Else the search would stand still for ever."""
    world.end("o-1")
    assert Looked(resent=1) == world.look(seconds=1, per_second=0.5)


@pytest.mark.parametrize("error", [Unavailable("throttled"), client_error("AccessDeniedException")], ids=repr)
def test_a_place_that_cannot_be_moved_is_told_after_all_was_sent(
    world: World, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """What the round has sent is counted all the same. The next round sends it again, as duplicates."""
    world.look()
    world.end("o-1", NOW)
    later(monkeypatch, hours=1)
    monkeypatch.setattr(world.place, "move", Mock(side_effect=error))
    assert Looked(resent=1) == world.look()
    assert [(type(error).__name__, "m")] == world.skipped


def test_the_place_is_read_consistently(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """By an older copy a round would send again what the last one has sent."""
    asked: list[bool] = []
    read = world.dynamodb.get_item
    monkeypatch.setattr(
        world.dynamodb,
        "get_item",
        lambda **options: asked.append(options["ConsistentRead"]) or read(**options),
    )
    world.place.read()
    world.place.bounds()
    assert [True, True] == asked


def test_the_list_is_read_no_further_than_an_execution_can_last(world: World) -> None:
    """Neither the first page of a year's failures nor a page too many."""
    for number in range(2_500):
        world.end(f"o-{number}", OLD_ENOUGH - timedelta(minutes=9 * number), tries=None)
    world.look()
    assert 1 + 1 + 1 + 1 == world.sfn.calls["list_executions"]  # 1,000 of them are six days


def test_a_later_round_lists_back_to_the_oldest_execution_that_was_open(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was open is found, however old it is. All the old ends are listed only in the first rounds."""
    world.sfn.definition = {"TimeoutSeconds": timedelta(days=30).total_seconds()}
    for number in range(2_500):
        world.end(f"o-{number}", OLD_ENOUGH - timedelta(days=1, minutes=9 * number), tries=None)
    world.end("slow", NOW, tries=0)
    opened = NOW - timedelta(days=3)
    world.sfn.executions[arn("slow")] |= {"startDate": opened, "status": "RUNNING"}
    pages = []
    for minutes in range(0, 90, 5):
        later(monkeypatch, minutes=minutes)
        before = world.sfn.calls["list_executions"]
        world.look()
        pages.append(world.sfn.calls["list_executions"] - before)
    assert (3 + 1 + 1 + 1, 1 + 1 + 1) == (pages[0], pages[-1])

    ended = NOW + timedelta(minutes=90)
    world.sfn.executions[arn("slow")] |= {"status": "FAILED", "stopDate": ended}
    later(monkeypatch, minutes=90 + 17)
    assert Looked(resent=1) == world.look()


def test_an_execution_may_run_longer_than_the_definition_that_is_deployed_now(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TimeoutSeconds was lowered after it had started. It goes on by the definition that it started with."""
    world.end("slow", NOW, tries=0)
    opened = NOW - LONGEST_RUN / 2
    world.sfn.executions[arn("slow")] |= {"startDate": opened, "status": "RUNNING"}
    world.look()
    world.sfn.definition = {"TimeoutSeconds": 60}
    later(monkeypatch, minutes=40)
    world.look()

    world.sfn.executions[arn("slow")] |= {"status": "FAILED", "stopDate": NOW + timedelta(minutes=41)}
    later(monkeypatch, minutes=41 + 17)

    assert Looked(resent=1) == world.look()


PAST, TOMORROW = "2026-01-01T12:00:00.000Z", times.to_text(NOW + timedelta(days=1))


@pytest.mark.parametrize("text", ["yesterday", PAST, f"{PAST} {TOMORROW}", f"{TOMORROW} {PAST}"])
def test_damaged_bounds_are_named(world: World, text: str) -> None:
    """Nothing is examined, and nothing is moved, until somebody mends them."""
    world.look()
    names = {"#bounds": f"{MACHINE} bounds"}
    key = {"TableName": "locks", "Key": {"lockToken": {"S": PLACE}}, "ExpressionAttributeNames": names}
    values = {":bounds": {"S": text}}
    world.dynamodb.update_item(
        **key, UpdateExpression="SET #bounds = :bounds", ExpressionAttributeValues=values
    )
    world.end("o-1")
    assert Looked() == world.look()
    assert [("RecordUnreadable", "m")] == world.skipped


def test_a_round_that_cannot_list_what_is_open_keeps_the_bounds_that_it_has(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They hold for later ends, too, and the next round notes another one."""
    world.look()
    known, lists = world.place.bounds(), world.sfn.calls["list_executions"]

    def throttle_the_last(operation: str, _about: str) -> None:
        if operation == "list_executions" and world.sfn.calls[operation] == lists + 3:
            raise client_error("ThrottlingException")

    later(monkeypatch, hours=1)
    world.sfn.before_call = throttle_the_last
    assert Looked() == world.look()
    assert ([], known) == (world.skipped, world.place.bounds())
    world.sfn.before_call = None
    world.look()
    assert known == world.place.bounds()[:-1]


@pytest.mark.parametrize("error", [Unavailable("throttled"), client_error("AccessDeniedException")], ids=repr)
@pytest.mark.parametrize("where", ["describing", "sending"])
def test_what_may_pass_by_itself_is_tried_again_from_there(
    world: World, error: Exception, where: str
) -> None:
    """Nothing is lost, and what came before it does not come twice."""
    for number in range(4):
        world.end(f"o-{number}", OLD_ENOUGH - timedelta(minutes=9 - number))
    if where == "describing":
        world.sfn.refuse("describe_execution", error, "o-2")
    else:
        world.refuses["o-2"] = error
    assert Looked(resent=2, left=2) == world.look()
    assert [(type(error).__name__, "o-2")] == world.skipped

    world.sfn.heal()
    world.refuses.clear()
    assert Looked(resent=2) == world.look()
    assert ["o-0", "o-1", "o-2", "o-3"] == world.names()


@pytest.mark.parametrize("error", [PayloadTooLarge("large"), KeyError("payload"), ValueError("x")], ids=repr)
def test_what_does_not_pass_by_itself_keeps_nobody(world: World, error: Exception) -> None:
    """It is told of, once."""
    for number in range(3):
        world.end(f"o-{number}", OLD_ENOUGH - timedelta(minutes=9 - number))
    world.refuses["o-1"] = error
    assert Looked(resent=2) == world.look()
    assert [(type(error).__name__, "o-1")] == world.skipped
    assert Looked() == world.look()


@pytest.mark.parametrize(("seconds", "named"), [(80, []), (300, [("HistoryTooLong", "o-1")])])
def test_a_history_that_is_too_long_for_a_whole_round_keeps_nobody(
    world: World, seconds: int, named: list[tuple[str, str]]
) -> None:
    """A round that has no more time for it leaves it to the next one, which begins with it."""
    for number in range(3):
        world.end(f"o-{number}", OLD_ENOUGH - timedelta(minutes=9 - number // 2))  # two at once
        events = {0: 10, 1: seconds}.get(number, 1) * PAGE
        world.sfn.histories[arn(f"o-{number}")] = [{"type": "TaskStateExited"}] * events
    world.a_page_takes = 1.0
    for _ in range(3):
        world.look()
    assert named == world.skipped
    assert {"o-0", "o-1", "o-2"} - {name for _, name in named} == set(world.names())


def test_a_damaged_record_loses_nothing_and_keeps_nobody(world: World) -> None:
    """Nobody can tell whether it answers. The rounds go on, and a person has the letter."""
    world.put(attempt={"N": "1.5"})
    world.end("o-1", error="RetryLater")
    assert Looked(dead_lettered=1) == world.look()
    assert ([("o-1", "RetryLater")], []) == (world.letters, world.skipped)


@pytest.mark.parametrize("what", ["list_executions", "describe_state_machine", "place"])
def test_a_look_that_cannot_begin_moves_nothing(
    world: World, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one sends what it would have sent."""

    def throttled() -> Any:
        raise client_error("ThrottlingException")

    world.end("o-1")
    with monkeypatch.context() as patch:
        if what == "place":
            patch.setattr(world.place, "read", throttled)
        else:
            world.sfn.refuse(what, "ThrottlingException")
        assert Looked() == world.look()
    assert ([], ["m"]) == (world.sent, [name for _, name in world.skipped])
    world.sfn.heal()
    assert Looked(resent=1) == world.look()


def test_a_list_that_is_too_long_for_the_time_moves_nothing(world: World) -> None:
    """What began first is last in it."""
    world.end("o-1")
    assert Looked() == world.look(seconds=0)
    assert ([("Unavailable", "m")], []) == (world.skipped, world.sent)
    assert Looked(resent=1) == world.look()


def test_a_round_that_dies_before_it_says_how_far_it_came_is_made_up_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message is sent twice then, and is a duplicate."""
    world.look()
    world.end("o-1", NOW)

    def dies(_to: datetime) -> None:
        raise KeyboardInterrupt

    later(monkeypatch, minutes=17)
    with monkeypatch.context() as patch:
        patch.setattr(world.place, "move", dies)
        with pytest.raises(KeyboardInterrupt):
            world.look()
    world.look()
    assert ["o-1", "o-1"] == world.names()
    world.look()
    assert 2 == len(world.sent)


def test_nothing_is_sent_before_a_place_can_be_written(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without that permission every round would send all of it again."""

    def refused(_to: datetime) -> None:
        raise client_error("AccessDeniedException")

    world.end("o-1")
    monkeypatch.setattr(world.place, "move", refused)
    world.look()
    assert ([], [("ClientError", "m")]) == (world.sent, world.skipped)


def test_of_two_rounds_at_once_the_further_one_stays(world: World) -> None:
    """A place never goes back."""
    world.place.move(NOW)
    world.place.move(NOW - timedelta(minutes=5))
    assert NOW == world.place.read()
    other = SearchPosition(world.dynamodb, "locks", f"{MACHINE}-2")
    assert other.read() is None
    other.move(NOW - timedelta(days=1))
    assert NOW == world.place.read()


@pytest.mark.parametrize("text", ["zzz", TOMORROW, "9999-12-31T23:59:59.000Z", "20260101T120000Z"])
def test_a_damaged_place_is_told_of_and_nothing_is_sent(world: World, text: str) -> None:
    """From a wrong place everything would come again, or never."""
    item = {"lockToken": {"S": " "}, MACHINE: {"S": text}}
    world.dynamodb.put_item(TableName="locks", Item=item)
    world.end("o-1")
    assert Looked() == world.look()
    assert ([], [("RecordUnreadable", "m")]) == (world.sent, world.skipped)
    with pytest.raises(
        RecordUnreadable, match=r"Do not delete the record: the search would begin a day back\."
    ):
        world.place.read()


def test_a_place_that_cannot_be_written_for_a_reason_of_its_own_is_an_error(world: World) -> None:
    """A refusal that is no lost race."""
    with pytest.raises(ClientError):
        SearchPosition(world.dynamodb, "no table", MACHINE).move(NOW)
