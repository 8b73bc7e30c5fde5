"""
Executions that die in each state, by being stopped or by running out of time, and whoever settles them.

A rule, a schedule and the next request settle what a dead execution left: nothing stays open, nothing
happens twice, and whoever asks afterwards gets the same answer from each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import pytest

from steponce import Receipt
from steponce.aws import times
from steponce.callbacks.answer import Answer
from steponce.executions import CANCELLED
from steponce.locks.record import Lock
from steponce.workflow import OUTCOMES
from tests import covering
from tests.workflow.dying import (
    ask,
    monitor,
    name_of,
    stop_in,
    tell_of_its_end,
    time_out_in,
)
from tests.workflow.faults import Hold
from tests.workflow.scene import BUG, DECLINED, UNREACHABLE, VISA, Scene
from tests.workflow.waiting import CONFIRMED, YES, Waiting, steps


@dataclass(frozen=True, eq=False)
class Death:
    """
    One way to die, and what must come of it.

    Args:
        state: In whose call; `after` it took effect, or before.
        payload: For the work.
        answer: What whoever asks afterwards gets: the work's answer, or an error.
        charges: How many charges there are when everybody has asked.
    """

    state: str
    after: bool
    payload: dict[str, Any]
    answer: str
    charges: int

    def __str__(self) -> str:
        return f"{self.state}-{'after' if self.after else 'before'}"

    @property
    def has_predecessor(self) -> bool:
        """Whether it needs a lock that another one has left: the workflow goes there only then."""
        return self.state in ("ReadLock", "CheckOwner", "TakeOverLock", "ConfirmTakeover")

    @property
    def leaves_a_lock(self) -> bool:
        """Whether a lock is in progress afterwards."""
        first, last = self.state == "AcquireLock", self.state in ("ReleaseLock", *OUTCOMES)
        return not (first and not self.after) and not (last and self.after)

    @property
    def waits_for_a_person(self) -> bool:
        """Whether its lock stays on the open index once it is settled."""
        return self.answer in ("OutcomeUnknown", "ZeroDivisionError")


def _deaths() -> list[Death]:
    rows = [
        ("AcquireLock", VISA, "COMPLETED", (1, 1)),
        ("ReadLock", VISA, "COMPLETED", (1, 1)),
        ("CheckOwner", VISA, "COMPLETED", (1, 1)),
        ("ConfirmTakeover", VISA, "OutcomeUnknown", (0, 0)),
        ("ReleaseLock", UNREACHABLE, "COMPLETED", (1, 1)),
        ("DoWork", VISA, "OutcomeUnknown", (0, 1)),
        ("AwaitConfirmation", CONFIRMED, "OutcomeUnknown", (1, 1)),
        ("CompleteRequest", VISA, "COMPLETED", (1, 1)),
        ("RecordFinalError", DECLINED, "CardDeclined", (1, 1)),
        ("RecordError", BUG, "ZeroDivisionError", (0, 0)),
    ]
    return [
        Death(state, after, payload, answer, charges[after])
        for state, payload, answer, charges in rows
        for after in (False, True)
    ] + [
        Death("TakeOverLock", False, VISA, "COMPLETED", 1),
        Death("TakeOverLock", True, VISA, "OutcomeUnknown", 0),
    ]


DEATHS = _deaths()
AN_HOUR_AGO = times.to_text(times.after(times.now(), -3600))
SETTLERS = ("schedule", "rule", "next request")
WAYS = {f"stopped, {settler}": stop_in for settler in SETTLERS} | {"timed out, schedule": time_out_in}


EVERY = {f"{death}-{way}": (death, way) for death in DEATHS for way in WAYS}

# Each state, each answer and each way to settle, before and after a call. That the three who settle agree on
# every death is also a test of units: test_repair there.
CHOSEN = covering.cover(
    EVERY, [lambda row: row[0].state, lambda row: row[0].answer, lambda row: (row[1], row[0].after)]
)


def _every(wanted: Callable[[Death, str], bool]) -> pytest.MarkDecorator:
    """The deaths and ways that a test wants; all tests choose the same, for each is an execution."""
    given = {name: row for name, row in EVERY.items() if wanted(*row)}
    return covering.marked("death,how", given, CHOSEN)


AFTERWARDS = _every(lambda _death, _how: True)
SETTLED = _every(lambda _death, how: "next request" not in how)


@dataclass
class Graveyard:
    """What died under which key, and what the monitor has left of it after two rounds."""

    scene: Scene
    keys: dict[tuple[Death, str], str]
    rounds: list[dict[str, Any]]

    def lock(self, death: Death, how: str) -> Lock | None:
        return self.scene.lock(self.keys[death, how])


@pytest.fixture(scope="module")
def graveyard(_holding: Scene, request: pytest.FixtureRequest) -> Graveyard:
    """All that the chosen tests ask for dies, the time of its work passes, the monitor makes two rounds."""
    scene = _holding
    asked = [item for item in request.session.items if "graveyard" in getattr(item, "fixturenames", ())]
    chosen = [item.callspec.params for item in asked if hasattr(item, "callspec")]
    keys = {(one["death"], one["how"]): scene.new_id("dead") for one in chosen}

    def die(death: Death, kill: Callable[..., None], key: str) -> None:
        if death.has_predecessor:
            stop_in(scene, "AcquireLock", f"{key}-first", death.payload, key, after=True)
        kill(scene, death.state, key, death.payload, key, after=death.after)

    with ThreadPoolExecutor(6) as pool:
        jobs = [
            pool.submit(die, death, WAYS[how], key)
            for (death, how), key in sorted(keys.items(), key=lambda one: one[0][1], reverse=True)
        ]
        for job in jobs:
            job.result()
    scene.clock.let_an_hour_pass()
    for key in keys.values():
        if scene.lock(key) is not None:
            scene.change_lock(key, created=AN_HOUR_AGO)
    for (death, how), key in keys.items():
        if how.endswith("rule"):
            tell_of_its_end(scene, key)
            if death.has_predecessor:  # whose event comes out of order
                tell_of_its_end(scene, f"{key}-first")
        elif how.endswith("next request"):
            ask(scene, "same key", key, death.payload, key)
    return Graveyard(scene, keys, [monitor(scene), monitor(scene)])


@SETTLED
def test_nothing_stays_in_progress(graveyard: Graveyard, death: Death, how: str):
    """Within two rounds the lock is completed, failed with its cause, or released; or never was."""
    lock = graveyard.lock(death, how)
    if lock is None:
        assert ("AcquireLock", False) == (death.state, death.after)
        return
    expected = {"COMPLETED": "RELEASED"}.get(death.answer, "FAILED")
    expected = "COMPLETED" if death.state == "CompleteRequest" else expected
    assert expected == lock.status
    assert lock.status == "COMPLETED" or lock.failure.error
    assert death.waits_for_a_person == (lock.ttl is None) == graveyard.scene.on_open_index(lock)


@_every(lambda death, _how: death.state == "CompleteRequest")
def test_the_repaired_result_is_the_lost_one(graveyard: Graveyard, death: Death, how: str):
    """Read from the history; the same value that the work returned."""
    key = graveyard.keys[death, how]
    charge_id = "ch_" + sha256(key.encode()).hexdigest()[:24]
    told = graveyard.scene.client.status(key, lock_token=key)
    assert {"chargeId": charge_id, "orderId": "1", "amount": 500} == told.result
    assert [charge_id] == [charge["chargeId"]["S"] for charge in graveyard.scene.charges(key)]


@SETTLED
def test_a_released_lock_says_what_its_execution_died_of(graveyard: Graveyard, death: Death, how: str):
    """Or what it was about to say itself."""
    lock = graveyard.lock(death, how)
    if lock is not None and lock.status == "RELEASED":
        its_own = how.startswith("timed out") and not death.has_predecessor
        died_of = "States.Timeout" if its_own else "Stopped"
        assert lock.failure.error == ("RetryLater" if death.state == "ReleaseLock" else died_of)


@AFTERWARDS
def test_who_asks_afterwards_gets_one_answer_whoever_settled_it(graveyard: Graveyard, death: Death, how: str):
    """Rule, schedule and workflow never disagree; and no key whose charge is on record is charged again."""
    key, scene = graveyard.keys[death, how], graveyard.scene
    before = len(scene.charges(key))

    told = [ask(scene, "same key", f"{key}-{number}", death.payload, key) for number in (1, 2)]

    assert death.charges == len(scene.charges(key)) >= before
    assert [death.answer] * 2 == [answer_of(receipt) for receipt in told]


def test_what_was_repaired_is_on_the_record_and_counted(graveyard: Graveyard):
    """By whom and why, once: nothing is left for the second round."""
    scheduled = {one: graveyard.lock(*one) for one in graveyard.keys if one[1].endswith("schedule")}
    left = [lock for (death, _), lock in scheduled.items() if death.leaves_a_lock]
    assert {("find_overdue",)} == {tuple(one.by for one in lock.interventions) for lock in left if lock}
    meant = [lock for (death, _), lock in scheduled.items() if death.state in OUTCOMES and not death.after]
    assert all(lock and "what it meant to write" in lock.interventions[0].why for lock in meant)
    # Other tests on this stack may have left locks that these rounds count as well.
    first, second = graveyard.rounds
    assert first["repairs"] >= len(left) > 0
    assert first["finalisationFailures"] >= len(meant) > 0
    assert second["openFailures"] >= sum(death.waits_for_a_person for death, _ in scheduled) > 0


def answer_of(receipt: Receipt) -> str | None:
    """What whoever asks is told, in a word."""
    return receipt.status if receipt.status == "COMPLETED" else receipt.error


# -- The rule ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "payload", "after", "verdict"),
    [
        ("AcquireLock", VISA, False, "nothing open"),
        ("AcquireLock", VISA, True, "idle"),
        ("ReleaseLock", UNREACHABLE, False, "idle"),
        ("ReleaseLock", UNREACHABLE, True, "nothing open"),
        ("DoWork", VISA, True, "alive"),
        ("CompleteRequest", VISA, False, "settled"),
        ("CompleteRequest", VISA, True, "nothing open"),
        ("RecordFinalError", DECLINED, False, "settled"),
        ("RecordError", BUG, False, "settled"),
    ],
)
def test_an_event_settles_what_it_can(
    scene: Scene, state: str, payload: dict[str, Any], after: bool, verdict: str
):
    """At once; an owner whose work may still run is left to the schedule. A second event changes nothing."""
    key = scene.new_id("event")
    stop_in(scene, state, key, payload, key, after=after)

    first = tell_of_its_end(scene, key)
    once = scene.lock(key)
    tell_of_its_end(scene, key)

    assert verdict == first["verdict"]
    assert once == scene.lock(key)
    assert (once is not None and once.status == "INPROGRESS") == (verdict == "alive")


def test_an_event_without_input_is_settled_as_well(scene: Scene):
    """AWS leaves out an input that is too large for an event."""
    key = scene.new_id("event")
    stop_in(scene, "CompleteRequest", key, VISA, key, after=False)
    assert "settled" == tell_of_its_end(scene, key, input=None)["verdict"]
    assert "COMPLETED" == scene.lock(key).status


def test_an_event_that_comes_too_early_or_too_late_changes_nothing(scene: Scene):
    """The execution runs, says Step Functions; or another one has the lock by now."""
    key = scene.new_id("event")
    hold = scene.faults.plan("CompleteRequest", Hold(), key=key)
    scene.client.start(key, VISA, lock_token=key)
    hold.wait()
    early = tell_of_its_end(scene, key, status="ABORTED")
    held = scene.lock(key)
    hold.go_on.set()
    done = scene.client.wait(key, timeout_seconds=100, lock_token=key)

    dead = scene.new_id("event")
    stop_in(scene, "AcquireLock", dead, VISA, dead, after=True)
    successor = scene.faults.plan("CompleteRequest", Hold(), key=dead)
    scene.client.start(f"{dead}-b", VISA, lock_token=dead, check_owner=True)
    successor.wait()
    taken_over = scene.lock(dead)
    late = tell_of_its_end(scene, dead)

    assert ("alive", "INPROGRESS", "COMPLETED") == (early["verdict"], held.status, done.status)
    assert ("nothing open", taken_over) == (late["verdict"], scene.lock(dead))
    successor.go_on.set()


def test_an_event_during_a_takeover_does_no_harm(scene: Scene):
    """The lock is released just before it would be taken over: the next request acquires it instead."""
    key = scene.new_id("event")
    stop_in(scene, "AcquireLock", key, VISA, key, after=True)
    hold = scene.faults.plan("TakeOverLock", Hold(), key=key)
    scene.client.start(f"{key}-b", VISA, lock_token=key, check_owner=True)
    hold.wait()
    released = tell_of_its_end(scene, key)
    hold.go_on.set()

    done = scene.client.wait(f"{key}-b", timeout_seconds=100, lock_token=key)

    assert ("idle", "COMPLETED") == (released["verdict"], done.status)
    assert 1 == len(scene.charges(key))


@covering.first(1, "payload", [VISA, DECLINED, BUG], ids=lambda payload: payload["card"])
def test_a_record_from_a_backup_gets_the_outcome_that_was_written_since(scene: Scene, payload: dict):
    order = scene.new_id("backup")
    with scene.working(scene.key(order)) as hold:
        scene.client.start(order, payload)
        hold.wait()
        backup = scene.raw_lock(scene.key(order))
    before = scene.client.wait(order, timeout_seconds=100)

    scene.stack.boto3("dynamodb").put_item(TableName=scene.stack.outputs["LocksTable"], Item=backup)
    scene.change_lock(scene.key(order), created=AN_HOUR_AGO)
    monitor(scene)

    assert before == scene.client.status(order)


def test_a_failure_in_order_leaves_nothing_to_settle(scene: Scene):
    """It has written its error; the event costs one read."""
    order = scene.new_id()
    scene.run(order, DECLINED)
    before = scene.lock(scene.key(order))
    scene.faults.calls.clear()
    assert "nothing open" == tell_of_its_end(scene, order)["verdict"]
    assert before == scene.lock(scene.key(order))


def test_what_happens_is_counted(scene: Scene):
    """Repairs, takeovers and verdicts, as CloudWatch reads them from the logs."""
    key = scene.new_id("counted")
    stop_in(scene, "AcquireLock", key, VISA, key, after=True)
    ask(scene, "same key", key, VISA, key)
    waiting = Waiting.begin(scene)
    assert ["accepted", "duplicate"] == [waiting.answer(YES) for _ in range(2)]

    counted = {
        "CheckOwner": ["Repairs", "FinalisationFailures", "Takeovers"],
        "ResolveAwaitingStep": ["CallbackAccepted", "CallbackDuplicate"],
    }
    for function, names in counted.items():
        told = scene.stack.logs(name_of(scene, function))
        assert '"Namespace":"steponce"' in told
        assert f'"service":"{scene.stack.name}"' in told
        for name in names:
            assert f'"{name}":[' in told


# -- Cancelled executions ------------------------------------------------------------------------


CANCELLED_IN = [
    ("AcquireLock", VISA, True, "Cancelled", False),
    ("ReleaseLock", UNREACHABLE, False, "Cancelled", False),
    ("DoWork", VISA, True, "Cancelled", True),
    ("CompleteRequest", VISA, False, "COMPLETED", False),
    ("RecordFinalError", DECLINED, False, "CardDeclined", False),
]


@covering.rows(
    "state,payload,after,answer,is_open,settler",
    {f"{row[0]}-{settler}": (*row, settler) for row in CANCELLED_IN for settler in SETTLERS},
    [lambda row: row[0], lambda row: row[-1], lambda row: (row[-1], row[3] == "Cancelled")],
)
def test_a_cancelled_request_does_not_run_again(
    scene: Scene,
    state: str,
    payload: dict[str, Any],
    after: bool,
    answer: str,
    is_open: bool,
    settler: str,
):
    """Whoever settles it, and at once; what its work had done before stays."""
    key = scene.new_id("cancelled")
    hold = scene.faults.plan(state, Hold(after=after, arrives=False), key=key)
    scene.client.start(key, payload, lock_token=key)
    hold.wait()
    scene.stack.boto3("stepfunctions").stop_execution(
        executionArn=scene.arn(key), error=CANCELLED, cause="ann: wrong customer"
    )
    scene.closed(key)
    hold.go_on.set()
    if settler == "rule":
        tell_of_its_end(scene, key)
    elif settler == "schedule":
        scene.change_lock(key, created="2020-01-01T00:00:00.000Z")
        monitor(scene)

    told = ask(scene, "same key", key, payload, key)

    lock = scene.lock(key)
    assert (answer, key, is_open) == (answer_of(told), lock.request_id, scene.on_open_index(lock))
    assert len(scene.charges(key)) <= 1


# -- The schedule --------------------------------------------------------------------------------


def test_two_monitors_at_once_do_no_harm(scene: Scene):
    """Each lock is settled by one of them, once."""
    keys = [scene.new_id("twice") for _ in range(6)]
    for number, key in enumerate(keys):
        state, payload = [("CompleteRequest", VISA), ("AcquireLock", VISA), ("RecordError", BUG)][number % 3]
        stop_in(scene, state, key, payload, key, after=state == "AcquireLock")
        scene.change_lock(key, created="2020-01-01T00:00:00.000Z")

    with ThreadPoolExecutor(2) as pool:
        rounds = list(pool.map(lambda _: monitor(scene), range(2)))

    locks = [scene.lock(key) for key in keys]
    assert ["COMPLETED", "RELEASED", "FAILED"] * 2 == [lock.status for lock in locks]
    assert {1} == {len(lock.interventions) for lock in locks}
    assert sum(each["repairs"] for each in rounds) >= len(keys)


def test_an_overdue_lock_whose_owner_lives_is_missing_and_stays(scene: Scene):
    """It is told of by name, and counted."""
    key = scene.new_id("overdue")
    hold = scene.faults.plan("CompleteRequest", Hold(), key=key)
    scene.client_with(expected_seconds=0.01).start(key, VISA, lock_token=key)
    hold.wait()
    scene.change_lock(key, created="2020-01-01T00:00:00.000Z")

    tally = monitor(scene)

    hold.go_on.set()
    assert 1 <= tally["missingTasks"]
    assert "COMPLETED" == scene.client.wait(key, timeout_seconds=100, lock_token=key).status
    told = scene.stack.logs(name_of(scene, "FindOverdue"))
    assert f'"lockToken":"{key}"' in told
    assert '"MissingTasks"' in told


def test_an_unknown_outcome_that_may_be_taken_over_waits_for_the_next_request(takeover_scene: Scene):
    """The monitor counts it as missing; only a workflow can make sure of its owner after it has the lock."""
    scene = takeover_scene
    key = scene.new_id("unknown")
    stop_in(scene, "DoWork", key, VISA, key, after=True)
    scene.change_lock(key, expectedCompletion="2020-01-01T00:00:00.000Z", created="2020-01-01T00:00:00.000Z")
    scene.clock.let_an_hour_pass()

    tally = monitor(scene)
    left = scene.lock(key)
    done = ask(scene, "same key", key, VISA, key)

    assert ("INPROGRESS", (), "COMPLETED") == (left.status, left.interventions, done.status)
    assert tally["missingTasks"] >= 1


def test_a_finished_result_that_no_record_can_hold_is_loud(scene: Scene):
    """Each round counts it, until a person completes it; nobody runs it again."""
    key = scene.new_id("large")
    large = VISA | {"orderId": "x" * 140_000}
    scene.client.start(key, large, lock_token=key)
    scene.closed(key)
    scene.change_lock(key, expectedCompletion="2020-01-01T00:00:00.000Z", created="2020-01-01T00:00:00.000Z")

    rounds = [monitor(scene), monitor(scene)]

    assert all(each["finalisationFailures"] >= 1 and each["missingTasks"] >= 1 for each in rounds)
    assert ("INPROGRESS", 1) == (scene.lock(key).status, len(scene.charges(key)))
    assert scene.locks.complete(scene.lock(key), '{"chargeId":"ch_1"}', by="ann", why="looked it up")
    assert "ch_1" == ask(scene, "same key", key, large, key).result["chargeId"]


def test_awaiting_steps_past_their_time_and_half_answered_ones_are_finished(scene: Scene):
    """One got no answer, one was answered with its token, one's answer was claimed and never sent."""
    raw, claimed, waits = (Waiting.begin(scene) for _ in range(3))
    raw.answer_raw({"outcome": "success", "output": {"confirmed": True}})
    assert steps(scene).claim(claimed.record(), Answer("success", {"confirmed": "yes"}), "a call that died")
    waits.expire(in_seconds=60)
    near = monitor(scene)
    done = scene.client.wait(claimed.name, timeout_seconds=100)
    silent = Waiting.begin(scene, client=scene.hasty_client("AwaitConfirmation"))
    raw.expire(in_seconds=-1)
    scene.eventually(lambda: silent.record().expires_at < times.now_text())

    tally = monitor(scene)

    assert (1, {"confirmed": "yes"}) == (near["stepsClosed"], done.result["confirmation"])
    assert near["stepsNearTimeout"] >= 1
    assert tally["stepsClosed"] >= 2
    assert ["LATE", "ANSWERED", "ANSWERED"] == [one.record().status for one in (silent, raw, claimed)]
    assert Answer("success", {"confirmed": True}) == raw.record().answer
