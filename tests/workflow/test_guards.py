"""Plain Python and the workflow on one table: each replays the other's answers and keeps off its work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from steponce import AlreadyInProgress, CompletionRefused, Guard, PayloadMismatch, RequestFailed, RetryLater
from steponce.workflow import INPROGRESS, OUTCOME_UNKNOWN
from tests import covering
from tests.patience import PATIENCE_SECONDS
from tests.workflow.faults import Answer, Call
from tests.workflow.scene import BUG, DECLINED, VISA, Scene

DONE = {"chargeId": "by a guard"}
OVER = "2020-01-01T00:00:00.000Z"


KILLED = """
import json, sys
from steponce import Guard
table, endpoints, key, payload, lines = map(json.loads, sys.argv[1:])
with Guard(table, endpoints=endpoints).begin(key, payload, lease_seconds=3600) as run:
    for line in range(lines):
        print("effect", flush=True)
    print("here", flush=True)
    sys.stdin.read()
    run.complete("never")
"""


def kill_a_guard(scene: Scene, key: str, effects: int) -> list[str]:
    """Begin in a process, and kill it in its work, after so many effects; what it has done."""
    session = scene.stack.session()
    found = session.get_credentials()
    environment = {
        "AWS_ACCESS_KEY_ID": found.access_key,
        "AWS_SECRET_ACCESS_KEY": found.secret_key,
        "AWS_DEFAULT_REGION": session.region_name,
    }
    told = (scene.stack.outputs["LocksTable"], dict(scene.stack.endpoints), key, VISA, effects)
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, *map(json.dumps, told)],
        env=os.environ | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with child:
        assert child.stdout is not None
        done = [child.stdout.readline().strip() for _ in range(effects + 1)]
        child.kill()
    assert -9 == child.returncode
    return done


def guard_of(scene: Scene, **options: Any) -> Guard:
    """A guard on the scene's table."""
    return scene.stack.guard(**options)


def test_a_workflow_replays_a_guard_s_result(scene: Scene):
    """It does not run its work, and refuses another payload."""
    name = scene.new_id("guarded")
    with guard_of(scene).begin(name, VISA) as run:
        run.complete(DONE)

    done = scene.run(f"{name}-w", VISA, lock_token=name)
    assert ("COMPLETED", DONE) == (done.status, done.result)
    assert "ReplayResult" in scene.states(f"{name}-w")
    assert [] == scene.charges(name)

    scene.client.start(f"{name}-x", BUG, lock_token=name)
    assert "PayloadMismatch" == scene.closed(f"{name}-x")["error"]


def test_a_guard_s_request_of_the_same_id_does_not_answer_for_another_payload(scene: Scene):
    """The caller waited, and got the result of a payload that it had not sent."""
    name = scene.new_id("guarded")
    with guard_of(scene).begin(scene.client.rules.lock_token(name, VISA), VISA) as run:
        run.complete(DONE)

    scene.client.start(name, BUG)
    refused = scene.client.wait(name, timeout_seconds=PATIENCE_SECONDS)
    assert ("FAILED", "PayloadMismatch", None) == (refused.status, refused.error, refused.result)


def test_a_workflow_replays_a_guard_s_error(scene: Scene):
    """Final, or waiting for a person."""
    name = scene.new_id("guarded")
    with pytest.raises(KeyError), guard_of(scene).begin(name, VISA):
        raise KeyError("no such card")
    told = scene.run(f"{name}-w", VISA, lock_token=name)
    assert ("FAILED", "KeyError", "'no such card'") == (told.status, told.error, told.cause)
    assert scene.on_open_index(scene.lock(name))


def test_a_guard_replays_a_workflow_s_answers(scene: Scene):
    """Its result and its error."""
    name = scene.new_id("replayed")
    done = scene.run(name, VISA, lock_token=name)
    with guard_of(scene).begin(name, VISA) as run:
        assert (True, done.result) == (run.replayed, run.result)
    with pytest.raises(PayloadMismatch), guard_of(scene).begin(name, BUG):
        pass
    scene.run(f"{name}-d", DECLINED)
    with pytest.raises(RequestFailed) as failed, guard_of(scene).begin(scene.key(f"{name}-d"), DECLINED):
        pass
    assert "CardDeclined" == failed.value.error


def test_a_guard_keeps_off_a_workflow_s_work_and_waits_for_it(scene: Scene):
    """AlreadyInProgress, or its answer."""
    name = scene.new_id("working")

    def wait() -> Any:
        with guard_of(scene).begin(name, VISA, wait_seconds=PATIENCE_SECONDS) as run:
            return run.replayed, run.result

    with ThreadPoolExecutor(1) as pool:
        with scene.working(name):
            scene.client.start(name, VISA, lock_token=name)
            scene.eventually(lambda: scene.lock(name))
            with pytest.raises(AlreadyInProgress, match=name), guard_of(scene).begin(name, VISA):
                pass
            waiting = pool.submit(wait)
        done = scene.client.wait(name, timeout_seconds=PATIENCE_SECONDS, lock_token=name)
    assert ("COMPLETED", (True, done.result)) == (done.status, waiting.result())


def test_a_workflow_keeps_off_a_guard_s_work(scene: Scene):
    """While its lease runs the owner is alive, and the client follows it to its end."""
    name = scene.new_id("leased")
    with guard_of(scene).begin(name, VISA, lease_seconds=3600) as run:
        scene.client.start(f"{name}-w", VISA, lock_token=name)
        assert "AlreadyInProgress" == scene.closed(f"{name}-w")["error"]
        assert "CheckOwner" in scene.states(f"{name}-w")
        run.complete(DONE)
    assert DONE == scene.client.wait(f"{name}-w", timeout_seconds=100, lock_token=name).result
    assert [] == scene.charges(name)


def test_a_workflow_takes_what_a_guard_has_released(scene: Scene):
    """As AcquireLock does; nothing of the guard is left on the record."""
    name = scene.new_id("released")
    with pytest.raises(RetryLater), guard_of(scene).begin(name, VISA):
        raise RetryLater
    done = scene.run(f"{name}-w", VISA, lock_token=name)
    assert ("COMPLETED", 2) == (done.status, done.attempt)
    assert 1 == len(scene.charges(name))
    assert "leaseUntil" not in scene.raw_lock(name)


def test_a_workflow_holds_what_a_guard_left_behind(scene: Scene):
    """Its lease is over: a person decides, and its completion comes too late."""
    name = scene.new_id("over")
    with pytest.raises(CompletionRefused) as refused, guard_of(scene).begin(name, VISA) as run:
        scene.change_lock(name, leaseUntil=OVER)
        held = scene.run(f"{name}-w", VISA, lock_token=name)
        run.complete(DONE)
    assert ("FAILED", OUTCOME_UNKNOWN) == (held.status, held.error)
    assert DONE == refused.value.result
    assert scene.on_open_index(scene.lock(name))
    assert [] == scene.charges(name)


def test_a_workflow_takes_over_what_a_guard_left_behind(takeover_scene: Scene):
    """By parameter: the same key, a higher attempt, and nothing of the lease is left."""
    scene, name = takeover_scene, takeover_scene.new_id("over")
    with pytest.raises(CompletionRefused), guard_of(scene).begin(name, VISA) as run:
        scene.change_lock(name, leaseUntil=OVER)
        done = scene.run(f"{name}-w", VISA, lock_token=name)
        run.complete(DONE)
    assert ("COMPLETED", 2) == (done.status, done.attempt)
    assert "ConfirmTakeover" in scene.states(f"{name}-w")
    assert [2] == [int(charge["attempt"]["N"]) for charge in scene.charges(name)]
    assert "leaseUntil" not in scene.raw_lock(name)


def test_a_lease_that_is_extended_after_the_look_is_not_taken_over(takeover_scene: Scene):
    """TakeOverLock's condition sees it; the workflow looks again, and the owner is alive."""
    scene, name = takeover_scene, takeover_scene.new_id("extended")
    with guard_of(scene).begin(name, VISA) as run:
        scene.change_lock(name, leaseUntil=OVER)

        def extend(_call: Call, forward: Any) -> Answer:
            run.extend()
            return forward()

        scene.faults.plan("TakeOverLock", extend, key=name)
        scene.client.start(f"{name}-w", VISA, lock_token=name)
        assert "AlreadyInProgress" == scene.closed(f"{name}-w")["error"]
        assert 1 == scene.states(f"{name}-w").count("TakeOverLock")
        assert (INPROGRESS, 1) == (scene.lock(name).status, scene.lock(name).attempt)
        run.complete(DONE)
    assert [] == scene.charges(name)


@pytest.mark.parametrize("each", [6, *[pytest.param(50, marks=pytest.mark.full)] * 3])
def test_of_guards_and_workflows_in_one_go_one_has_the_effect(scene: Scene, each: int):
    """Everybody else gets the same answer, or AlreadyInProgress."""
    key, effects = scene.new_id("race"), []

    def guarded(number: int) -> Any:
        try:
            with guard_of(scene).begin(key, VISA, wait_seconds=PATIENCE_SECONDS) as run:
                if not run.replayed:
                    effects.append(number)
                    run.complete({"by": number})
                return run.result
        except AlreadyInProgress:
            return None

    def started(number: int) -> Any:
        scene.client.start(f"{key}-{number}", VISA, lock_token=key)
        return scene.client.wait(f"{key}-{number}", timeout_seconds=PATIENCE_SECONDS, lock_token=key).result

    with ThreadPoolExecutor(2 * each) as pool:
        found = [pool.submit(call, number) for number in range(each) for call in (guarded, started)]
        answers = [one.result() for one in found]
    assert 1 == len(effects) + len(scene.charges(key))
    assert {str(answers[0])} == {str(answer) for answer in answers}


@pytest.mark.parametrize("effects", [0, 1], ids=["before its effect", "after its effect"])
@covering.first(1, "unknown", ["hold", "take-over"])
def test_a_guard_that_is_killed_is_alive_until_its_lease_ends(scene: Scene, unknown: Any, effects: int):
    """Then its outcome is unknown, since nobody can know which of the two it was."""
    key = scene.new_id("killed")
    guard = guard_of(scene, when_outcome_unknown=unknown)
    assert ["effect"] * effects + ["here"] == kill_a_guard(scene, key, effects)
    assert scene.lock(key).locked_by.startswith("process/")
    with pytest.raises(AlreadyInProgress), guard.begin(key, VISA):
        pass

    scene.change_lock(key, leaseUntil=OVER)

    if unknown == "take-over":
        with guard.begin(key, VISA) as run:
            assert 2 == run.attempt
            run.complete(DONE)
    else:
        with pytest.raises(RequestFailed) as held, guard.begin(key, VISA):
            pass
        assert OUTCOME_UNKNOWN == held.value.error
        assert scene.on_open_index(scene.lock(key))
