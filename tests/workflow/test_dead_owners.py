"""
Executions that are stopped in each state, before and after the call they were making took effect.

Whoever asks next, under the same id or the same key, gets what docs/concepts.md says: the work runs if
nothing happened, the first one's answer if there is one, and a question for a person where nobody can know.
"""

from __future__ import annotations

import json

import pytest

from steponce import LockLost, Unsettled
from steponce.workflow import TOO_LARGE
from tests import covering
from tests.workflow.dying import ask, stop_in
from tests.workflow.faults import Answer, Hold, lose_the_answer
from tests.workflow.scene import BUG, DECLINED, UNREACHABLE, VISA, Scene

WHO = pytest.mark.parametrize("who", ["same id", "same key"])
WHEN = pytest.mark.parametrize("after", [False, True], ids=["before", "after"])


@WHO
@WHEN
@pytest.mark.parametrize("state", ["AcquireLock", "ReleaseLock"])
def test_an_owner_that_died_idle_leaves_a_request_that_runs(scene: Scene, state: str, after: bool, who: str):
    """Nothing had happened, so the next one does the work, once."""
    name = scene.new_id("idle")
    payload = UNREACHABLE if state == "ReleaseLock" else VISA
    stop_in(scene, state, name, payload, name, after=after)

    done = ask(scene, who, name, payload, name)

    assert done.status == "COMPLETED"
    assert 1 == len(scene.charges(name))


@WHO
@WHEN
@covering.first(
    2,
    ("state", "payload", "status", "error", "charges"),
    [
        ("CompleteRequest", VISA, "COMPLETED", None, 1),
        ("RecordFinalError", DECLINED, "FAILED", "CardDeclined", 1),
        ("RecordError", BUG, "FAILED", "ZeroDivisionError", 0),
    ],
)
def test_an_owner_that_died_writing_its_outcome_keeps_it(
    scene: Scene,
    state: str,
    payload: dict,
    status: str,
    error: str | None,
    charges: int,
    after: bool,
    who: str,
):
    """It is read from the history and written on its behalf; the work is not run again for that."""
    name = scene.new_id("wrote")
    stop_in(scene, state, name, payload, name, after=after)

    told = ask(scene, who, name, payload, name)

    lock = scene.lock(name)
    assert (status, error) == (told.status, told.error)
    assert (name, status) == (lock.request_id, lock.status)
    assert charges == len(scene.charges(name))
    assert (state == "RecordError") == (lock.ttl is None) == scene.on_open_index(lock)


@WHO
def test_an_owner_that_died_before_its_lock_leaves_a_request_that_runs(scene: Scene, who: str):
    """Started by hand and stopped in PrepareRequest: there is no record at all."""
    name = scene.new_id("hand")
    key = scene.key(name)
    hold = scene.faults.plan("PrepareRequest", Hold(arrives=False), key=name)
    scene.stack.boto3("stepfunctions").start_execution(
        stateMachineArn=scene.client.state_machine_arn, name=name, input=json.dumps({"payload": VISA})
    )
    hold.wait()
    scene.stop(name)

    done = ask(scene, who, name, VISA, key)

    assert "COMPLETED" == done.status
    assert 1 == len(scene.charges(key))


@WHO
def test_an_owner_that_died_at_work_is_alive_until_its_time_is_over_then_held(scene: Scene, who: str):
    """Stopping an execution does not stop its Lambda; then nobody knows, and a person decides."""
    name = scene.new_id("unknown")
    with scene.working(name) as hold:
        scene.client.start(name, VISA, lock_token=name)
        hold.wait()
        scene.stop(name)

    early = f"{name}-early"
    scene.client.start(early, VISA, lock_token=name)
    assert "AlreadyInProgress" == scene.closed(early)["error"]

    scene.clock.let_an_hour_pass()
    held = ask(scene, who, name, VISA, name)

    assert ("FAILED", "OutcomeUnknown") == (held.status, held.error)
    assert scene.on_open_index(scene.lock(name))
    scene.eventually(lambda: 1 == len(scene.charges(name)))


def test_an_outcome_that_is_unknown_may_be_taken_over(takeover_scene: Scene):
    """By parameter: the work gets the same key and a higher attempt."""
    scene = takeover_scene
    name = scene.new_id("unknown")
    with scene.working(name) as hold:
        scene.client.start(name, VISA, lock_token=name)
        hold.wait()
        scene.stop(name)
    scene.eventually(lambda: scene.charges(name))
    scene.clock.let_an_hour_pass()

    done = ask(scene, "same id", name, VISA, name)

    assert ("COMPLETED", 2, scene.arn(f"{name}--2")) == (done.status, done.attempt, done.execution_arn)
    assert [1, 2] == sorted(int(charge["attempt"]["N"]) for charge in scene.charges(name))
    assert "ConfirmTakeover" in scene.states(f"{name}--2")


@pytest.mark.parametrize("state", ["ReadLock", "CheckOwner"])
def test_a_duplicate_that_dies_harms_nobody(scene: Scene, state: str):
    """Stopped while it looks at another's lock: the owner goes on, the next duplicate gets the answer."""
    key = scene.new_id("key")
    with scene.working(key):
        scene.client.start(f"{key}-a", VISA, lock_token=key)
        scene.eventually(lambda: scene.lock(key))
        stop_in(scene, state, f"{key}-b", VISA, key, after=False)

    done = scene.client.wait(f"{key}-a", timeout_seconds=100)
    again = scene.client.start(f"{key}-a", VISA, lock_token=key)

    assert ["COMPLETED"] * 2 == [done.status, again.status]
    assert 1 == len(scene.charges(key))


@WHEN
@pytest.mark.parametrize("state", ["TakeOverLock", "ConfirmTakeover"])
def test_an_owner_that_died_taking_over_is_not_run_over(scene: Scene, state: str, after: bool):
    """Once it has the lock, nobody knows any more whether the first owner was redriven: a person decides."""
    name = scene.new_id("chain")
    stop_in(scene, "AcquireLock", f"{name}-a", VISA, name, after=True)
    stop_in(scene, state, f"{name}-b", VISA, name, after=after)

    third = ask(scene, "same key", name, VISA, name)

    took_over = scene.lock(name).request_id == f"{name}-b"
    assert (state, after) != ("TakeOverLock", False) or not took_over
    assert ("FAILED" if took_over else "COMPLETED") == third.status
    assert (0 if took_over else 1) == len(scene.charges(name))


def test_a_takeover_whose_answer_is_lost_is_repeated(scene: Scene):
    """The author of the write knows itself."""
    name = scene.new_id("lost")
    stop_in(scene, "AcquireLock", f"{name}-a", VISA, name, after=True)
    scene.faults.plan("TakeOverLock", lose_the_answer, key=name)

    done = ask(scene, "same key", name, VISA, name)

    lock = scene.lock(name)
    assert (
        ("COMPLETED", f"{name}-other") == (done.status, lock.request_id) == (lock.status, lock.execution_name)
    )
    assert 1 == len(scene.charges(name))


def test_a_takeover_that_another_one_won_gives_way(scene: Scene):
    """Two find the owner dead; the second's write is refused, and it looks again."""
    name = scene.new_id("race")
    stop_in(scene, "AcquireLock", f"{name}-a", VISA, name, after=True)
    hold = scene.faults.plan("TakeOverLock", Hold(), key=name)
    scene.client.start(f"{name}-b", VISA, lock_token=name)
    hold.wait()
    winner = scene.run(f"{name}-c", VISA, lock_token=name)
    hold.go_on.set()

    loser = scene.client.wait(f"{name}-b", timeout_seconds=100)

    assert (winner.result, "SUCCEEDED") == (loser.result, scene.closed(f"{name}-b")["status"])
    assert 1 == len(scene.charges(name))


def test_an_owner_that_was_redriven_during_the_takeover_keeps_its_effect(scene: Scene):
    """ConfirmTakeover sees it run again: the lock is held for a person, and the work is not run twice."""
    name = scene.new_id("redriven")
    stop_in(scene, "AcquireLock", f"{name}-a", VISA, name, after=True)
    hold = scene.faults.plan("TakeOverLock", Hold(), key=name)
    scene.client.start(f"{name}-b", VISA, lock_token=name)
    hold.wait()

    def redriven(_call, _forward):
        return Answer(200, [], json.dumps({"verdict": "alive", "redriveCount": 0}).encode())

    scene.faults.plan("ConfirmTakeover", redriven, key=name)
    hold.go_on.set()

    held = scene.client.wait(f"{name}-b", timeout_seconds=100)

    assert ("FAILED", "OutcomeUnknown") == (held.status, held.error)
    assert [] == scene.charges(name)
    assert scene.on_open_index(scene.lock(name))


def test_a_name_that_came_back_does_not_own_the_old_lock(scene: Scene):
    """The same execution ARN with another callId is a stranger; the old outcome is unknown."""
    name = scene.new_id("stranger")
    scene.run(name, VISA)
    scene.put_open_lock_of_another(name, name, scene.lock(scene.key(name)).payload_hash)

    held = scene.run(f"{name}-b", VISA, lock_token=name)

    assert ("FAILED", "OutcomeUnknown") == (held.status, held.error)
    assert [] == scene.charges(name)


def test_a_copied_input_does_not_own_the_lock_it_was_copied_from(scene: Scene):
    """ "New execution" in the console sends the same callId; the fence also wants the same execution."""
    name = scene.new_id("copy")
    with scene.working(name):
        scene.client.start(name, VISA)
        scene.eventually(lambda: scene.lock(scene.key(name)))

        scene.stack.boto3("stepfunctions").start_execution(
            stateMachineArn=scene.client.state_machine_arn,
            name=f"{name}-copy",
            input=scene.execution(name)["input"],
        )

        assert "AlreadyInProgress" == scene.closed(f"{name}-copy")["error"]
    scene.client.wait(name, timeout_seconds=100)
    assert 1 == len(scene.charges(scene.key(name)))


@pytest.mark.parametrize(
    ("state", "payload"),
    [
        ("CompleteRequest", VISA),
        ("RecordFinalError", DECLINED),
        ("RecordError", BUG),
        ("ReleaseLock", UNREACHABLE),
    ],
)
def test_a_late_writer_changes_nothing(scene: Scene, state: str, payload: dict):
    """An execution that lost its lock cannot overwrite what the new owner has written."""
    name = scene.new_id("late")
    hold = scene.faults.plan(state, Hold(), key=name)
    scene.client.start(name, payload, lock_token=name)
    hold.wait()
    scene.change_lock(name, callId="f" * 32, lockedBy="arn:of-the-new-owner", attempt=2, status="INPROGRESS")
    before = scene.lock(name)
    hold.go_on.set()

    end = scene.closed(name)

    assert before == scene.lock(name)
    assert ("FAILED", "DynamoDB.ConditionalCheckFailedException") == (end["status"], end["error"])


def test_work_whose_fence_is_lost_does_nothing(scene: Scene):
    """Somebody took the lock over while the work slept: no charge, and its error is written nowhere."""
    name = scene.new_id("fence")
    with scene.working(name) as hold:
        scene.client.start(name, VISA, lock_token=name)
        hold.wait()
        scene.change_lock(name, callId="f" * 32, lockedBy="arn:of-the-new-owner", attempt=2)
        before = scene.lock(name)

    scene.closed(name)

    assert [] == scene.charges(name)
    assert before == scene.lock(name)
    assert LockLost.__name__ in json.dumps(history(scene, name))


def test_waiting_for_a_request_whose_owner_died_says_so(scene: Scene):
    """Instead of waiting in vain: which execution is closed, and what to do."""
    name = scene.new_id("unsettled")
    stop_in(scene, "CompleteRequest", name, VISA, name, after=False)

    with pytest.raises(Unsettled, match=f"{name} is closed .*check_owner=True"):
        scene.client.wait(name, timeout_seconds=100, lock_token=name)


def test_a_lock_past_its_time_is_looked_at_without_being_asked(scene: Scene):
    """Past expectedCompletion a plain start asks whether the owner lives."""
    name = scene.new_id("overdue")
    hasty = scene.client_with(expected_seconds=0.01)
    hold = scene.faults.plan("CompleteRequest", Hold(arrives=False), key=name)
    hasty.start(name, VISA, lock_token=name)
    hold.wait()
    scene.stop(name)

    hasty.start(name, VISA, lock_token=name)
    done = hasty.wait(name, timeout_seconds=100, lock_token=name)

    assert "COMPLETED" == done.status
    assert 1 == len(scene.charges(name))


def test_a_result_too_large_is_finished_but_unwritten(scene: Scene):
    """The work is done: never FAILED on record, never run again, and a clear error for everyone."""
    name = scene.new_id("large")
    large = VISA | {"orderId": "x" * 140_000}
    scene.client.start(name, large, lock_token=name)
    end = scene.closed(name)
    scene.client.start(f"{name}-b", large, lock_token=name)
    other = scene.closed(f"{name}-b")

    with pytest.raises(Unsettled, match="too large to be recorded"):
        scene.client.wait(name, timeout_seconds=100, lock_token=name)
    assert end["error"] in TOO_LARGE
    assert "ResultTooLarge" == other["error"]
    assert "INPROGRESS" == scene.lock(name).status
    assert 1 == len(scene.charges(name))


def history(scene: Scene, name: str) -> list:
    """All events of an execution, without their times."""
    events = scene.stack.boto3("stepfunctions").get_execution_history(
        executionArn=scene.arn(name), maxResults=1000
    )["events"]
    return [{k: v for k, v in event.items() if k != "timestamp"} for event in events]
