"""Writes whose answer is lost, and records that change between a refused write and the read."""

from __future__ import annotations

import json

import pytest

from steponce.request.envelope import Envelope
from tests.patience import PATIENCE_SECONDS
from tests.workflow.faults import Hold, first, lose_the_answer, refuse
from tests.workflow.scene import BUG, DECLINED, UNREACHABLE, VISA, Scene


@pytest.mark.parametrize(
    ("state", "payload", "ends"),
    [
        ("AcquireLock", VISA, "COMPLETED"),
        ("CompleteRequest", VISA, "COMPLETED"),
        ("RecordError", BUG, "FAILED"),
        ("RecordFinalError", DECLINED, "FAILED"),
        ("ReleaseLock", UNREACHABLE, "RELEASED"),
    ],
)
@pytest.mark.parametrize("fault", [lose_the_answer, refuse])
def test_a_write_is_harmless_when_its_author_repeats_it(
    scene: Scene, state: str, payload: dict, ends: str, fault
):
    """The write took effect, or did not; the workflow cannot know, tries again and ends the same."""
    order = scene.new_id()
    scene.faults.plan(state, fault, key=scene.key(order))

    receipt = scene.run(order, payload)
    end = scene.closed(order)

    assert ends == scene.lock(scene.key(order)).status
    assert ("SUCCEEDED" if ends == "COMPLETED" else "FAILED", receipt.error) == (
        end["status"],
        end.get("error"),
    )
    assert 2 == sum(call.state == state for call in scene.faults.calls)
    assert ("COMPLETED" if ends == "COMPLETED" else "FAILED") == receipt.status
    assert len(scene.charges(scene.key(order))) <= 1


def test_the_work_runs_under_the_attempt_that_the_record_says(scene: Scene):
    """Also when the lock was written twice because the first answer was lost."""
    order = scene.new_id()
    scene.faults.plan("AcquireLock", lose_the_answer, key=scene.key(order))

    done = scene.run(order, VISA)

    calls = [call.body for call in scene.faults.calls if call.state == "DoWork"]
    (work,) = [body for body in calls if body["lockToken"] == scene.key(order)]
    assert done.attempt == work["attempt"] == scene.lock(scene.key(order)).attempt


def test_a_completion_that_can_never_be_written_is_no_failed_request(scene: Scene):
    """The execution dies in CompleteRequest: not FAILED on record, and the next request gets the result."""
    order = scene.new_id()
    hold = scene.faults.plan("CompleteRequest", Hold(arrives=False), key=scene.key(order))
    scene.client.start(order, VISA)
    hold.wait()
    scene.stop(order)

    assert "INPROGRESS" == scene.lock(scene.key(order)).status
    settled = scene.client.start(order, VISA, check_owner=True)
    done = scene.client.wait(order, timeout_seconds=100)

    assert not settled.duplicate
    assert ("COMPLETED", "1") == (done.status, done.result["orderId"])
    assert 1 == len(scene.charges(scene.key(order)))


def test_a_record_that_vanishes_before_it_is_read_is_acquired(scene: Scene):
    """Deleted between the refused write and the read: no fault, the lock is free."""
    key = scene.new_id("key")
    scene.run(f"{key}-a", VISA, lock_token=key)
    scene.faults.plan("ReadLock", first(lambda: scene.delete_lock(key)), key=key)

    done = scene.run(f"{key}-b", VISA, lock_token=key)

    assert ("COMPLETED", False, 1) == (done.status, done.duplicate, done.attempt)
    assert 2 == len(scene.charges(key))


def test_a_record_that_is_released_before_it_is_read_is_acquired(scene: Scene):
    """Its owner gave up in just that moment; the attempt goes on counting."""
    key = scene.new_id("key")
    scene.run(f"{key}-a", DECLINED, lock_token=key)
    release = first(lambda: scene.change_lock(key, status="RELEASED"))
    scene.faults.plan("ReadLock", release, key=key)

    done = scene.run(f"{key}-b", DECLINED, lock_token=key)

    assert (2, f"{key}-b") == (done.attempt, scene.lock(key).request_id)


def test_a_lock_that_is_never_to_be_had_ends_the_loop(scene: Scene):
    """Gone at every look, held at every try: five times, then the request fails and nothing has happened."""
    key = scene.new_id("key")
    scene.run(f"{key}-a", VISA, lock_token=key)
    scene.hide_at_every_look(key)

    scene.client.start(f"{key}-b", VISA, lock_token=key)
    end = scene.closed(f"{key}-b")

    assert ("FAILED", "LockContended") == (end["status"], end["error"])
    assert 6 == sum(call.state == "ReadLock" for call in scene.faults.calls)
    assert 1 == len(scene.charges(key))


def test_a_record_of_somebody_else_is_left_alone(scene: Scene):
    """It lacks what every record of ours has: the request fails and says so."""
    key = scene.new_id("key")
    scene.put_lock(key, status="INPROGRESS")

    scene.client.start(f"{key}-a", VISA, lock_token=key)
    end = scene.closed(f"{key}-a")

    assert "RecordUnreadable" == end["error"]
    assert {"status": {"S": "INPROGRESS"}, "lockToken": {"S": key}} == scene.raw_lock(key)


def test_what_powertools_left_in_progress_is_cleared_away(scene: Scene):
    """AcquireLock removes the clock of another library from a record that it takes."""
    key = scene.new_id("key")
    scene.run(f"{key}-a", UNREACHABLE, lock_token=key)
    scene.change_lock(key, in_progress_expiration=1)

    scene.run(f"{key}-b", UNREACHABLE, lock_token=key)

    item = scene.raw_lock(key)
    assert ("COMPLETED", False) == (item["status"]["S"], "in_progress_expiration" in item)


def test_a_failure_without_error_and_cause_stays_one(scene: Scene):
    """A callback may fail without saying why: recorded as it is, and replayed as it is."""
    key = scene.new_id("key")
    machine = _waiting_machine(scene)
    scene.stack.boto3("stepfunctions").start_execution(
        stateMachineArn=machine, name=f"{key}-a", input=_envelope(scene, key)
    )
    call = scene.eventually(lambda: _token_of(scene, key))
    scene.stack.boto3("stepfunctions").send_task_failure(taskToken=call)

    lock = scene.eventually(lambda: (lock := scene.lock(key)).status == "FAILED" and lock)
    replayed = scene.run(f"{key}-b", VISA, lock_token=key)

    assert (None, None) == (lock.failure.error, lock.failure.cause)
    assert ("FAILED", None, None) == (replayed.status, replayed.error, replayed.cause)
    assert "FailedWithoutReason" == scene.states(f"{key}-b")[-1]


def _waiting_machine(scene: Scene) -> str:
    """The same workflow, whose work is a callback."""
    sfn = scene.stack.boto3("stepfunctions")
    here = sfn.describe_state_machine(stateMachineArn=scene.client.state_machine_arn)
    definition = json.loads(here["definition"])
    work = definition["States"]["DoWork"]
    work["Resource"] += ".waitForTaskToken"
    work["HeartbeatSeconds"] = PATIENCE_SECONDS
    work["Parameters"]["Payload"]["taskToken.$"] = "$$.Task.Token"
    work["ResultSelector"] = {"result.$": "$"}
    return sfn.create_state_machine(
        name="waiting", definition=json.dumps(definition), roleArn=here["roleArn"]
    )["stateMachineArn"]


def _envelope(scene: Scene, key: str) -> str:
    return Envelope.make(f"{key}-a", VISA, scene.client.rules, lock_token=key).to_json()


def _token_of(scene: Scene, key: str) -> str | None:
    tokens = [call.body.get("taskToken") for call in scene.faults.calls if call.body.get("lockToken") == key]
    return tokens[0] if tokens else None
