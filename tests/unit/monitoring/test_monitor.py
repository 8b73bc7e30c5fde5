"""One round of the monitor: what it looks at, in what time, and what it counts."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from moto import mock_aws

from steponce.aws import times
from steponce.callbacks.answer import Answer
from steponce.callbacks.awaiting import AwaitingSteps
from steponce.callbacks.resolver import Callbacks
from steponce.callbacks.step import ANSWERED, ANSWERING, LATE, PENDING, AwaitingStep
from steponce.errors import RecordUnreadable, Unavailable
from steponce.executions import CANCELLED
from steponce.locks.table import Locks
from steponce.monitoring import monitor
from steponce.monitoring.monitor import ROUND_SECONDS, Monitor, Tally, share_of
from steponce.monitoring.rounds import LOGGED, SPARE_SECONDS
from steponce.recovery.repair import Repairer
from steponce.request.names import OPEN_SHARDS, shard_of
from steponce.workflow import COMPLETED, FAILED, INPROGRESS, RELEASED
from tests import covering
from tests.fakes.errors import client_error
from tests.fakes.step_functions import PAGE, StepFunctions
from tests.fakes.tables import create_table
from tests.fakes.waiting_step import WaitingStep
from tests.unit.aws.pace_clock import PaceClock
from tests.unit.one_owner import FAILURE, LONG_AGO, NOW, RESULT, WORK_TIMEOUT, history
from tests.unit.shared_clients import shared

SHARDS = 4


class World:
    """Tables in moto, Step Functions, a clock that calls move, and what the monitor logs."""

    def __init__(self, dynamodb: Any) -> None:
        self.dynamodb = dynamodb
        self.locks = Locks(dynamodb, "locks")
        self.steps = AwaitingSteps(dynamodb, "steps", open_shards=SHARDS)
        self.sfn = StepFunctions()
        self.asked: list[str] = []
        self.sfn.before_call = self._note
        self.logged: list[tuple[str, dict[str, Any]]] = []
        self.seconds = 240.0
        self.a_look_takes = 0.0
        self.pages = 0
        self.a_page_takes = 0.0

    def _note(self, operation: str, about: str) -> None:
        """Remember who was asked for, and count what was read."""
        if operation == "describe_execution":
            self.asked.append(about)
        self.pages += operation == "get_execution_history"

    def put(
        self,
        token: str,
        state: str | None = "AcquireLock",
        *,
        status: str = INPROGRESS,
        created: Any = LONG_AGO,
        due: Any = LONG_AGO,
        execution_status: str = "FAILED",
        shards: int = SHARDS,
        **described: Any,
    ) -> str:
        """An open lock, whose owner died in a state, or runs."""
        arn, call_id = f"arn:{token}", f"call-{token}"
        attributes = {
            "lockToken": token,
            "status": status,
            "openStatus": f"{status}#{shard_of(token, shards)}",
            "lockedBy": arn,
            "callId": call_id,
            "executionName": token,
            "requestId": token,
            "created": times.to_text(created),
            "expectedCompletion": times.to_text(due),
            "payloadHash": "ab",
            "expiresAt": "2026-05-01T12:00:00.000Z",
        }
        item = {name: {"S": value} for name, value in attributes.items()} | {"attempt": {"N": "1"}}
        self.dynamodb.put_item(TableName="locks", Item=item)
        envelope = {"lockToken": token, "callId": call_id}
        execution = {"status": execution_status if state else "RUNNING", "input": json.dumps(envelope)}
        events = history(("AcquireLock", envelope), (state or "DoWork", envelope | RESULT | FAILURE))
        self.sfn.put(arn, *events, **execution | {"stopDate": LONG_AGO} | described)
        return token

    def status(self, token: str) -> str:
        lock = self.locks.get(token)
        return lock.status if lock else "none"

    def seconds_left(self) -> float:
        """What is left of the round's time."""
        return self.seconds - len(self.asked) * self.a_look_takes - self.pages * self.a_page_takes

    def lengthen(self, arn: str, seconds: int) -> None:
        """Let the history of an execution take so long to read."""
        self.sfn.histories[arn][1:1] = [{"type": "TaskStateExited"}] * (PAGE * seconds)
        self.a_page_takes = 1.0

    def damage(self, token: str, **attributes: Any) -> dict[str, Any]:
        """Change a lock's attributes past the package, or remove them (None)."""
        item = self.dynamodb.get_item(TableName="locks", Key={"lockToken": {"S": token}})["Item"] | attributes
        item = {name: value for name, value in item.items() if value is not None}
        self.dynamodb.put_item(TableName="locks", Item=item)
        return item

    def put_step(self, wait: WaitingStep, **changed: Any) -> AwaitingStep:
        """A recorded step of this wait."""
        step = AwaitingStep.from_event(wait.handed[-1] | changed)
        self.steps.record(step)
        return step

    def round(self, wait: WaitingStep | None = None, per_second: float = 10_000) -> Tally:
        """One round; each look takes its time."""

        def log(message: str, **facts: Any) -> None:
            logging.getLogger("monitor").warning(message, extra=facts)  # which refuses some names
            self.logged.append((message, facts))

        repairer = Repairer(
            self.locks,
            self.sfn,
            work_timeout_seconds=WORK_TIMEOUT,
            when_outcome_unknown="take-over",
            by="find_overdue",
        )
        return Monitor(
            self.locks,
            repairer,
            self.steps,
            Callbacks(self.steps, wait.sfn if wait else self.sfn),
            open_shards=SHARDS,
            work_timeout_seconds=WORK_TIMEOUT,
            describes_per_second=per_second,
            seconds_left=self.seconds_left,
            log=log,
        ).round()


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is twelve, until a test says otherwise."""
    monkeypatch.setattr(times, "now", lambda: NOW)


@pytest.fixture
def world() -> Iterator[World]:
    """Empty tables."""
    with mock_aws():
        dynamodb = shared("dynamodb")
        create_table(dynamodb, "LocksTable", "locks")
        create_table(dynamodb, "AwaitingStepsTable", "steps")
        yield World(dynamodb)


def test_a_round_of_nothing_counts_nothing(world: World) -> None:
    """And does not fail on it."""
    assert Tally() == world.round()


def test_a_round_settles_the_dead_in_every_shard(world: World) -> None:
    """What each left: a result, an error, or nothing."""
    tokens = [f"k-{number}" for number in range(30)]
    states = ["CompleteRequest", "RecordFinalError", "AcquireLock"]
    for number, token in enumerate(tokens):
        world.put(token, states[number % 3])
    tally = world.round()
    assert {str(shard) for shard in range(SHARDS)} == {shard_of(token, SHARDS) for token in tokens}
    assert [COMPLETED, FAILED, RELEASED] * 10 == [world.status(token) for token in tokens]
    assert Tally(repairs=30, finalisation_failures=20) == tally


def test_a_round_reads_the_default_shards_of_a_stack_that_has_fewer(world: World) -> None:
    """A client that does not know the stack's number has chosen them."""
    tokens = [world.put(f"k-{number}", shards=OPEN_SHARDS) for number in range(30)]
    assert OPEN_SHARDS == len({shard_of(token, OPEN_SHARDS) for token in tokens})
    assert Tally(repairs=30) == world.round()


def test_a_second_round_finds_nothing(world: World) -> None:
    """What is settled is settled."""
    world.put("k")
    world.round()
    assert Tally() == world.round()


def test_a_young_lock_is_left_alone(world: World) -> None:
    """Its work may not even have ended yet; nobody is asked for it."""
    world.put("k", created=NOW - timedelta(seconds=WORK_TIMEOUT - 1), due=NOW + timedelta(minutes=5))
    assert Tally() == world.round()
    assert [] == world.asked


def test_an_overdue_lock_whose_owner_lives_is_missing(world: World) -> None:
    """Told of by name, with its owner."""
    world.put("k", None)
    assert Tally(missing_tasks=1) == world.round()
    facts = {"requestId": "k", "lockToken": "k", "owner": "arn:k", "expected": times.to_text(LONG_AGO)}
    assert [("overdue", facts)] == world.logged


def test_a_young_lock_can_be_overdue(world: World) -> None:
    """Where less time is expected than the work may take."""
    world.put("k", None, created=NOW - timedelta(seconds=10), due=NOW - timedelta(seconds=5))
    assert Tally(missing_tasks=1) == world.round()


def test_a_dead_owner_is_found_before_its_lock_is_overdue(world: World) -> None:
    """As soon as its work cannot run any more."""
    world.put("k", due=NOW + timedelta(days=1))
    assert Tally(repairs=1) == world.round()
    assert RELEASED == world.status("k")


def test_what_cannot_be_settled_stays_missing(world: World) -> None:
    """An unknown outcome that may be taken over, and a result that no record can hold."""
    world.put("unknown", "DoWork")
    world.put("unwritten", "DoWork", error="ResultTooLarge")
    assert Tally(missing_tasks=2, finalisation_failures=1) == world.round()
    assert [INPROGRESS] * 2 == [world.status("unknown"), world.status("unwritten")]
    assert "finished, and never written down: complete it by hand" in [message for message, _ in world.logged]


def test_failures_that_wait_for_a_person_are_counted(world: World) -> None:
    """With those that this round has written down."""
    for number in range(5):
        world.put(f"f-{number}", status=FAILED)
    world.put("k", "RecordError")
    tally = world.round()
    assert (6, 1, 0) == (tally.open_failures, tally.repairs, tally.missing_tasks)


def test_a_cancelled_request_is_settled(world: World) -> None:
    """In its work: it waits for a person now."""
    world.put("k", "DoWork", execution_status="ABORTED", error=CANCELLED)
    tally = world.round()
    assert (1, 1, 0) == (tally.open_failures, tally.repairs, tally.missing_tasks)


def test_only_so_many_overdue_locks_are_logged(world: World) -> None:
    """All are counted."""
    for number in range(LOGGED + 3):
        world.put(f"k-{number}", None)
    assert LOGGED + 3 == world.round().missing_tasks
    assert LOGGED == len(world.logged)


@covering.first(
    1, "error", [client_error("AccessDeniedException"), Unavailable("throttled"), KeyError("work")], ids=type
)
def test_one_lock_that_cannot_be_looked_at_does_not_keep_the_round_from_the_others(
    world: World, error: Exception
) -> None:
    """It is logged with the name of the error alone, since the text may quote a payload; it stays missing."""
    for number in range(6):
        world.put(f"k-{number}")
    world.sfn.refuse("describe_execution", error, "arn:k-3")
    assert Tally(missing_tasks=1, repairs=5, skipped=1) == world.round()
    ((_, facts),) = [event for event in world.logged if event[0] == "could not be examined"]
    assert ("arn:k-3", False) == (facts["owner"], "work" in facts["error"])


DAMAGES: dict[str, dict[str, Any]] = {
    "half an attempt": {"attempt": {"N": "1.5"}},
    "no attempt": {"attempt": None},
    "a created that is a number": {"created": {"N": "1"}},
    "junk in failure": {"failure": {"S": "{junk"}},
    "a number as an error": {"failure": {"S": '{"Error": 5}'}},
    "junk in interventions": {"interventions": {"S": '[{"at": 1}]'}},
    "interventions that are a list": {"interventions": {"L": []}},
    "an expiry that is no time": {"expiresAt": {"S": "soon"}},
    "a result that is no JSON": {"result": {"S": "{"}},
    "an owner that is null": {"lockedBy": {"NULL": True}},
}


@covering.first(4, "damage", DAMAGES)
def test_a_damaged_record_does_not_keep_the_round_from_the_others(world: World, damage: str) -> None:
    """It is counted, and logged with its key and the attribute. It stays as it is."""
    for number in range(6):
        world.put(f"k-{number}")
    item = world.damage("k-3", **DAMAGES[damage])

    tally = world.round()

    assert (5, 1, 0) == (tally.repairs, tally.unreadable, tally.skipped)
    ((_, facts),) = [event for event in world.logged if event[0] == "cannot be read"]
    assert ("k-3", *DAMAGES[damage]) == (facts["key"], facts["attribute"])
    assert item == world.dynamodb.get_item(TableName="locks", Key={"lockToken": {"S": "k-3"}})["Item"]


NO_TIMES = ["soon", "-0001-01-01T00:00:00.000Z", " ", "9999-12-31T23:59:59.999Z"]
"""Texts that sort before every time or after it."""


@covering.first(1, "text", NO_TIMES)
def test_a_lock_whose_time_another_program_has_written_is_found(world: World, text: str) -> None:
    """It is settled, or counted and named."""
    world.put("k-1")
    world.damage("k-1", expectedCompletion={"S": text})

    tally = world.round()

    assert 1 == tally.repairs + tally.unreadable


@covering.first(1, "created", [None, {"N": "1"}, {"S": "soon"}], ids=str)
def test_an_open_failure_is_counted_whatever_its_creation(world: World, created: Any) -> None:
    """The alarm does not fall silent when another program damages the record."""
    world.put("k-1", status=FAILED)
    world.damage("k-1", created=created)

    assert 1 == world.round().open_failures


@pytest.mark.parametrize("text", NO_TIMES)
@covering.first(1, "status", [PENDING, ANSWERING])
def test_a_step_whose_time_another_program_has_written_is_found(world: World, text: str, status: str) -> None:
    """It is counted as unreadable, by each round."""
    item = {"awaitingStepId": "as_0", "status": status, "openStatus": f"{status}#0", "expiresAt": text}
    world.dynamodb.put_item(TableName="steps", Item={name: {"S": value} for name, value in item.items()})

    assert 1 == world.round().unreadable
    with pytest.raises(RecordUnreadable, match="as_0"):
        world.steps.open()


def test_a_damaged_step_does_not_keep_the_round_from_the_others(
    world: World, wait: WaitingStep, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step without its name."""
    step = world.put_step(wait)
    world.dynamodb.put_item(
        TableName="steps",
        Item={
            "awaitingStepId": {"S": "as_0"},
            "status": {"S": PENDING},
            "openStatus": {"S": f"{PENDING}#0"},
            "expiresAt": {"S": times.to_text(LONG_AGO)},
        },
    )
    end_unanswered(wait)
    at(monkeypatch, hours=3)
    tally = world.round(wait)
    assert (1, 1, 0) == (tally.steps_closed, tally.unreadable, tally.skipped)
    found = world.steps.get(step.id)
    assert found is not None
    assert LATE == found.status


# -- Time ----------------------------------------------------------------------------------------


def test_a_round_ends_in_time(world: World) -> None:
    """It stops looking, and still counts what is overdue."""
    for number in range(20):
        world.put(f"k-{number}", None)
    world.seconds, world.a_look_takes = SPARE_SECONDS + 5.0, 1.0
    assert 20 == world.round().missing_tasks
    assert len(world.asked) <= 6


def test_a_round_without_any_time_still_counts(world: World) -> None:
    """The steps may have taken all of it. The alarms need the numbers."""
    world.put("k-1")
    world.seconds = SPARE_SECONDS
    assert Tally(missing_tasks=1) == world.round()


@pytest.mark.parametrize(("due", "missing"), [(LONG_AGO, 8), (NOW + timedelta(days=1), 0)])
def test_what_a_round_has_no_time_for_is_not_skipped(world: World, due: Any, missing: int) -> None:
    """What is skipped could not be examined, and an alarm watches it. These are a later round's."""
    for number in range(9):
        world.put(f"k-{number}", due=due)
    world.a_look_takes = world.seconds - 10
    assert Tally(repairs=1, missing_tasks=missing) == world.round()


@pytest.mark.parametrize(("seconds", "named"), [(200, []), (300, ["arn:k-3"])])
def test_a_history_that_takes_longer_than_a_round_is_named(
    world: World, seconds: int, named: list[str]
) -> None:
    """And the round is counted. It was stopped before that. A person's commands read the whole history."""
    for number in range(6):
        world.put(f"k-{number}")
    world.lengthen("arn:k-3", seconds)
    tally = world.round()
    assert 6 == tally.repairs + tally.missing_tasks
    assert (6 == tally.repairs) == (named == [])
    assert world.seconds_left() > 0
    assert named == [facts["owner"] for _, facts in world.logged if facts.get("error") == "HistoryTooLong"]


def test_the_history_of_an_owner_that_runs_is_read_to_its_lock_only(world: World) -> None:
    """One that was started by hand has its callId there. The rest can take as long as it likes."""
    world.put("k-1", None, input="{}")
    world.sfn.histories["arn:k-1"] += [{"type": "TaskStateExited"}] * (PAGE * 1_000)
    world.a_page_takes = 1.0
    assert Tally(missing_tasks=1) == world.round()


@pytest.mark.full
def test_rounds_share_what_is_too_much_for_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each lock is looked at within as many rounds as there are shares; no place is remembered."""
    tokens = {world.put(f"k-{number}", None, due=NOW + timedelta(hours=number % 2)) for number in range(60)}
    world.seconds = SPARE_SECONDS + 10.0
    PaceClock(monkeypatch)
    looks = []
    for number in range(4):
        monkeypatch.setattr(times, "now", lambda n=number: NOW + timedelta(seconds=n * ROUND_SECONDS))
        world.asked.clear()
        world.round(per_second=1.5)
        looks.append({arn.removeprefix("arn:") for arn in world.asked})
    assert tokens == set().union(*looks)
    assert all(len(each) < 30 for each in looks)
    assert len(tokens) == sum(map(len, looks))


def test_overdue_locks_come_first(world: World) -> None:
    """The longest overdue of each shard before the others, and before what is not due yet."""
    for number in range(12):
        world.put(f"late-{number}", None, due=LONG_AGO - timedelta(minutes=number))
        world.put(f"early-{number}", None, due=NOW + timedelta(minutes=number + 1))
    world.round()
    assert ["arn:late"] * 12 + ["arn:early"] * 12 == [arn.rpartition("-")[0] for arn in world.asked]


@pytest.mark.full
def test_rounds_begin_at_different_shards(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that none is always the last."""
    for number in range(20):
        world.put(f"k-{number}", None)
    first = set()
    for number in range(OPEN_SHARDS):
        monkeypatch.setattr(times, "now", lambda n=number: NOW + timedelta(seconds=n * ROUND_SECONDS))
        world.asked.clear()
        world.round()
        first.add(shard_of(world.asked[0].removeprefix("arn:"), SHARDS))
    assert {str(shard) for shard in range(SHARDS)} == first


@pytest.mark.full
def test_the_turns_of_a_share_begin_at_different_shards(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if there are as many shares as shards: a slow round reaches only the first shards."""
    for number in range(100):
        world.put(f"k-{number}", None, shards=OPEN_SHARDS)
    world.seconds, world.a_look_takes = SPARE_SECONDS + 10.0, 9.0
    PaceClock(monkeypatch)
    first = set()
    for turn in range(OPEN_SHARDS):
        later = timedelta(seconds=turn * OPEN_SHARDS * ROUND_SECONDS)
        monkeypatch.setattr(times, "now", lambda later=later: NOW + later)
        world.asked.clear()
        world.round(per_second=1)
        first.add(shard_of(world.asked[0].removeprefix("arn:"), OPEN_SHARDS))
    assert len(first) > OPEN_SHARDS / 2


def test_executions_are_asked_for_at_a_pace(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients share the quota."""
    clock = PaceClock(monkeypatch)
    for number in range(11):
        world.put(f"k-{number}", None)
    world.round(per_second=5)
    assert pytest.approx(2, abs=0.21) == clock.slept


def test_shares_are_even() -> None:
    """Also together with the shards, which come from the same key."""
    keys = [f"shop/order-{number}" for number in range(8_000)]
    for shard in range(SHARDS):
        mine = [key for key in keys if shard_of(key, SHARDS) == str(shard)]
        counts = [sum(share_of(key, 4) == share for key in mine) for share in range(4)]
        assert max(counts) < 1.2 * len(mine) / 4


# -- Awaiting steps ------------------------------------------------------------------------------

YES = Answer("success", {"confirmed": True})


@pytest.fixture
def wait(monkeypatch: pytest.MonkeyPatch) -> WaitingStep:
    """A step that waits; it expires at two, in all its tries."""
    monkeypatch.setattr(monitor.times, "now", lambda: NOW)
    return WaitingStep(retries=0)


def at(monkeypatch: pytest.MonkeyPatch, **later: float) -> None:
    """The clock goes on."""
    monkeypatch.setattr(times, "now", lambda: NOW + timedelta(**later))


def end_unanswered(wait: WaitingStep) -> None:
    """The step waits for its whole time, and the execution ends."""
    wait.submit()
    wait.time_out()
    wait.finish()


def claim_what_cannot_be_sent(world: World, wait: WaitingStep, count: int) -> None:
    """Answers under tokens that no history shows; their executions run on."""
    for number in range(count):
        stuck = world.put_step(wait, callId=f"run-{number}", taskToken=f"token-of-{number}")
        world.steps.claim(stuck, YES, "a call that died")


def test_a_step_whose_time_is_over_is_late(
    world: World, wait: WaitingStep, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The history says that nothing arrived."""
    step = world.put_step(wait)
    end_unanswered(wait)
    at(monkeypatch, hours=3)
    assert Tally(steps_closed=1) == world.round(wait)
    stored = world.steps.get(step.id)
    assert stored is not None
    assert (LATE, None) == (stored.status, stored.answer)


def test_a_step_with_a_long_history_does_not_keep_the_round_from_the_locks(
    world: World, wait: WaitingStep, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps have a quarter of the time."""
    step = world.put_step(wait)
    end_unanswered(wait)
    wait.events[1:1] = [{"id": 0, "type": "TaskStateExited"}] * (PAGE * 1_000)
    wait.sfn.before_call, world.a_page_takes = world._note, 1.0
    world.put("k-1")
    at(monkeypatch, hours=3)
    tally = world.round(wait)
    assert (1, 0, 1) == (tally.repairs, tally.steps_closed, tally.skipped)
    ((_, facts),) = [event for event in world.logged if event[0] == "could not be examined"]
    assert (step.id, "HistoryTooLong") == (facts["awaitingStepId"], facts["error"])


def test_a_short_history_of_a_step_is_read_to_its_end(
    world: World, wait: WaitingStep, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the steps' time is nearly over."""
    world.put_step(wait)
    end_unanswered(wait)
    wait.sfn.before_call, world.a_page_takes = world._note, 1.0
    world.seconds = SPARE_SECONDS + 4.0
    at(monkeypatch, hours=3)
    assert Tally(steps_closed=1) == world.round(wait)
    assert world.pages > 1


def test_a_step_that_was_answered_with_its_token_says_so(
    world: World, wait: WaitingStep, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The history says what arrived."""
    step = world.put_step(wait)
    wait.submit()
    wait.take(wait.tokens[-1], YES)
    at(monkeypatch, hours=3)
    world.round(wait)
    stored = world.steps.get(step.id)
    assert stored is not None
    assert (ANSWERED, YES) == (stored.status, stored.answer)


def test_an_answer_that_was_never_sent_is_sent(world: World, wait: WaitingStep) -> None:
    """Its sender died after it had claimed the record."""
    step = world.put_step(wait)
    wait.submit()
    world.steps.claim(step, YES, "a call that died")
    assert Tally(steps_closed=1) == world.round(wait)
    stored = world.steps.get(step.id)
    assert stored is not None
    assert ([YES], ANSWERED) == (wait.got, stored.status)


def test_a_step_that_has_time_is_left_alone(
    world: World, wait: WaitingStep, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And counted when that is short."""
    step = world.put_step(wait)
    wait.submit()
    world.put(step.lock_token, None, due=NOW + timedelta(days=1))
    world.damage(step.lock_token, callId={"S": step.call_id})
    assert Tally() == world.round(wait)
    at(monkeypatch, minutes=110)
    assert Tally(steps_near_timeout=1) == world.round(wait)
    stored = world.steps.get(step.id)
    assert stored is not None
    assert PENDING == stored.status


def near_its_time_out(world: World, wait: WaitingStep, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Steps whose request has failed, a moment before their time is over."""
    for name in names:
        step = world.put_step(wait, step=name)
        world.put(step.lock_token, None, status=FAILED)
    at(monkeypatch, minutes=110)


def test_a_step_for_which_no_time_is_left_counts_as_near_its_time_out(
    world: World, wait: WaitingStep, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The alarm rings once too often rather than not at all, and the round ends in time."""
    near_its_time_out(world, wait, monkeypatch, "first", "second", "third")
    read = world.steps.get

    def slow(step_id: str) -> AwaitingStep | None:
        world.seconds /= 4
        return read(step_id)

    monkeypatch.setattr(world.steps, "get", slow)
    assert 2 == world.round(wait).steps_near_timeout


def test_a_step_that_cannot_be_read_counts_as_near_its_time_out(
    world: World, wait: WaitingStep, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And as skipped."""
    near_its_time_out(world, wait, monkeypatch, "first")
    monkeypatch.setattr(world.steps, "get", Mock(side_effect=Unavailable("throttled")))
    assert Tally(steps_near_timeout=1, skipped=1, open_failures=1) == world.round(wait)


def test_a_step_that_is_erased_meanwhile_is_not_near_its_time_out(
    world: World, wait: WaitingStep, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index had it, and the table has it no more. The round goes on."""
    near_its_time_out(world, wait, monkeypatch, "first")
    monkeypatch.setattr(world.steps, "get", lambda _step_id: None)
    assert Tally(open_failures=1) == world.round(wait)


@covering.first(
    2,
    ("status", "is_owner", "near"),
    [(INPROGRESS, True, 1), (FAILED, True, 0), (RELEASED, True, 0), (INPROGRESS, False, 0)],
)
def test_a_step_whose_request_has_ended_is_not_near_its_time_out(
    world: World,
    wait: WaitingStep,
    monkeypatch: pytest.MonkeyPatch,
    status: str,
    is_owner: bool,
    near: int,
) -> None:
    """It missed its heartbeat, or was cancelled. The alarm rang though nobody could answer it any more."""
    step = world.put_step(wait)
    wait.submit()
    world.put(step.lock_token, None, status=status)
    world.damage(step.lock_token, callId={"S": step.call_id if is_owner else "another"})
    at(monkeypatch, minutes=110)

    assert near == world.round(wait).steps_near_timeout
    world.dynamodb.delete_item(TableName="locks", Key={"lockToken": {"S": step.lock_token}})
    assert 0 == world.round(wait).steps_near_timeout


def test_a_step_whose_end_cannot_be_seen_yet_is_left_to_the_next_round(
    world: World, wait: WaitingStep, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never guessed."""
    step = world.put_step(wait)
    wait.submit()
    wait.lag()
    at(monkeypatch, hours=3)
    assert Tally(skipped=1) == world.round(wait)
    stored = world.steps.get(step.id)
    assert stored is not None
    assert PENDING == stored.status


def test_steps_leave_time_for_the_locks(
    world: World, wait: WaitingStep, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many have expired, a quarter of the round is theirs."""
    for number in range(40):
        world.put_step(wait, callId=f"run-{number}")
    world.put("k")
    wait.lag()
    at(monkeypatch, hours=3)
    clock = PaceClock(monkeypatch)
    monkeypatch.setattr(World, "seconds_left", lambda _self: SPARE_SECONDS + 20.0 - clock.slept)
    tally = world.round(wait, per_second=1)
    assert (1, True) == (tally.repairs, 0 < tally.skipped <= 7)


def test_an_answer_is_sent_before_expired_steps_are_closed(
    world: World, wait: WaitingStep, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its step may still have time. There are more expired ones than one round can look at."""
    claimed = world.put_step(wait, callId="claimed", timeoutSeconds=36_000)
    world.steps.claim(claimed, YES, "a call that died")
    for number in range(40):
        world.put_step(wait, callId=f"run-{number}")
    wait.submit()
    at(monkeypatch, hours=3)
    clock = PaceClock(monkeypatch)
    monkeypatch.setattr(World, "seconds_left", lambda _self: SPARE_SECONDS + 20 - clock.slept)
    world.round(wait, per_second=1)
    assert [YES] == wait.got


@pytest.mark.full
def test_steps_that_cannot_be_settled_do_not_keep_the_rounds_from_the_others(
    world: World, wait: WaitingStep, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their executions run on, and there are more of them than one round can look at."""
    claim_what_cannot_be_sent(world, wait, 20)
    claimed = world.put_step(wait, callId="claimed")
    world.steps.claim(claimed, YES, "a call that died")
    wait.submit()
    clock = PaceClock(monkeypatch)
    for number in range(20):
        at(monkeypatch, hours=3, seconds=number * ROUND_SECONDS)
        end = clock.slept + 10 + SPARE_SECONDS
        monkeypatch.setattr(World, "seconds_left", lambda _self, end=end: end - clock.slept)
        world.round(wait, per_second=1)
    assert [YES] == wait.got


def test_answers_that_cannot_be_sent_do_not_keep_expired_steps_from_being_closed(
    world: World, wait: WaitingStep, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are more of those answers than one round can look at."""
    claim_what_cannot_be_sent(world, wait, 40)
    expired = world.put_step(wait, callId="expired")
    end_unanswered(wait)
    at(monkeypatch, hours=3)
    clock = PaceClock(monkeypatch)
    monkeypatch.setattr(World, "seconds_left", lambda _self: SPARE_SECONDS + 20 - clock.slept)
    world.round(wait, per_second=1)
    stored = world.steps.get(expired.id)
    assert stored is not None
    assert LATE == stored.status


def test_answers_take_the_time_that_expired_steps_leave(
    world: World, wait: WaitingStep, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until a quarter of the round is over."""
    claim_what_cannot_be_sent(world, wait, 40)
    clock = PaceClock(monkeypatch)
    monkeypatch.setattr(World, "seconds_left", lambda _self: SPARE_SECONDS + 40 - clock.slept)
    assert world.round(wait, per_second=1).skipped >= 10


def test_long_histories_of_answers_do_not_keep_expired_steps_from_being_closed(
    world: World, wait: WaitingStep, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In each second round they have an eighth of its time."""
    claim_what_cannot_be_sent(world, wait, 3)
    expired = world.put_step(wait, callId="expired", execution="arn:forgotten")
    wait.events[1:1] = [{"id": 0, "type": "TaskStateExited"}] * (PAGE * 1_000)
    wait.sfn.before_call, world.a_page_takes = world._note, 1.0
    for number in range(2):
        at(monkeypatch, hours=3, seconds=number * ROUND_SECONDS)
        world.seconds = SPARE_SECONDS + 200.0
        world.pages = 0
        world.round(wait)
    stored = world.steps.get(expired.id)
    assert stored is not None
    assert LATE == stored.status
