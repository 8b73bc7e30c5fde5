"""Writes that time out and land after all, when their author has long gone on."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from steponce.request.envelope import Envelope
from tests.workflow.faults import SERVER_ERROR, Answer, Call, Hold, lose_the_answer
from tests.workflow.scene import DECLINED, UNREACHABLE, VISA, Scene
from tests.workflow.test_conditions import lambda_error, lambda_refusal
from tests.workflow.test_dead_owners import stop_in


class Delay:
    """The call gets no answer, and lands when the test says so."""

    def __init__(self) -> None:
        self._forward: Callable[[], Answer] | None = None

    def __call__(self, _call: Call, forward: Callable[[], Answer]) -> Answer:
        """Keep the call, which runs on a connection of its own."""
        self._forward = forward
        return SERVER_ERROR

    def land(self) -> int:
        """The status of the answer that nobody waits for."""
        assert self._forward is not None
        return self._forward().status


def test_a_late_acquire_leaves_the_attempt_of_running_work_alone(scene: Scene):
    """Its author tried again with success and is at work: the work keeps its fence and is done."""
    order = scene.new_id("late")
    late = scene.faults.plan("AcquireLock", Delay(), key=scene.key(order))
    work = scene.faults.plan("DoWork", Hold(), key=scene.key(order))
    scene.client.start(order, VISA)
    work.wait()
    before = scene.lock(scene.key(order))

    assert 400 == late.land()
    assert before == scene.lock(scene.key(order))
    work.go_on.set()
    done = scene.client.wait(order, timeout_seconds=60)

    assert ("COMPLETED", None, 1) == (done.status, done.error, done.attempt)
    assert 1 == len(scene.charges(scene.key(order)))


def test_a_late_takeover_leaves_the_attempt_of_running_work_alone(scene: Scene):
    """TakeOverLock likewise: whenever it lands, the attempt is the one after the dead owner's."""
    key = scene.new_id("late")
    stop_in(scene, "AcquireLock", f"{key}-a", VISA, key, after=True)
    late = scene.faults.plan("TakeOverLock", Delay(), key=key)
    work = scene.faults.plan("DoWork", Hold(), key=key)
    scene.client.start(f"{key}-b", VISA, lock_token=key)
    work.wait()
    before = scene.lock(key)

    late.land()
    assert before == scene.lock(key)
    work.go_on.set()
    done = scene.client.wait(f"{key}-b", timeout_seconds=60, lock_token=key)

    assert ("COMPLETED", None, 2) == (done.status, done.error, done.attempt)
    assert 1 == len(scene.charges(key))


def test_a_late_acquire_does_not_take_what_its_author_released(scene: Scene):
    """Nothing would be left to release it again."""
    order = scene.new_id("late")
    late = scene.faults.plan("AcquireLock", Delay(), key=scene.key(order))
    scene.client.start(order, UNREACHABLE)
    scene.closed(order)
    before = scene.lock(scene.key(order))

    assert 400 == late.land()
    assert ("RELEASED", before) == (before.status, scene.lock(scene.key(order)))


def test_a_lock_whose_answer_was_lost_is_found_to_be_our_own(scene: Scene):
    """The repeated write is refused, ReadLock says who has the lock, and the work runs at once."""
    order = scene.new_id("own")
    scene.faults.plan("AcquireLock", lose_the_answer, key=scene.key(order))

    done = scene.run(order, VISA)

    assert ("COMPLETED", 1) == (done.status, done.attempt)
    assert ["AcquireLock", "ReadLock", "IsLockHeld", "KeepLock", "DoWork"] == scene.states(order)[1:6]


def test_an_owner_that_dies_before_it_knows_that_the_lock_is_its_own_is_idle(scene: Scene):
    """Nothing has happened: the next request runs, and nobody is asked for an unknown outcome."""
    key = scene.new_id("unaware")
    scene.faults.plan("AcquireLock", lose_the_answer, key=key)
    hold = scene.faults.plan("ReadLock", Hold(arrives=False), key=key)
    scene.client.start(f"{key}-a", VISA, lock_token=key)
    hold.wait()
    scene.stop(f"{key}-a")
    hold.go_on.set()

    done = scene.run(f"{key}-b", VISA, lock_token=key)

    assert ("COMPLETED", None, 2) == (done.status, done.error, done.attempt)


def test_a_lock_that_falls_to_who_was_turned_away_is_taken_over_as_idle(scene: Scene):
    """Its first write lands when it has ended already, and the lock it was refused for is free again."""
    key = scene.new_id("fallen")
    late = scene.faults.plan("AcquireLock", Delay(), key=f"{key}-a")
    work = scene.faults.plan("DoWork", Hold(), key=key)
    scene.client.start(f"{key}-o", UNREACHABLE, lock_token=key)
    work.wait()
    scene.client.start(f"{key}-a", UNREACHABLE, lock_token=key)
    assert "AlreadyInProgress" == scene.closed(f"{key}-a")["error"]
    work.go_on.set()
    scene.closed(f"{key}-o")
    assert 200 == late.land()
    assert ("INPROGRESS", f"{key}-a") == (scene.lock(key).status, scene.lock(key).request_id)

    scene.client.start(f"{key}-b", UNREACHABLE, lock_token=key)

    assert "SUCCEEDED" == scene.closed(f"{key}-b")["status"]
    assert ("COMPLETED", f"{key}-b") == (scene.lock(key).status, scene.lock(key).request_id)


def test_a_lock_that_falls_to_who_has_released_it_is_taken_over_as_idle(scene: Scene):
    """Another request had it meanwhile, so that the late write no longer meets its author's own release."""
    key = scene.new_id("fallen")
    late = scene.faults.plan("AcquireLock", Delay(), key=f"{key}-a")
    scene.faults.plan("DoWork", lambda_error("RetryLater"), key=key, times=100)
    for request_id in (f"{key}-a", f"{key}-o"):
        scene.client.start(request_id, VISA, lock_token=key)
        assert "RetryLater" == scene.closed(request_id)["error"]
    scene.faults.clear()
    assert 200 == late.land()
    assert ("INPROGRESS", f"{key}-a") == (scene.lock(key).status, scene.lock(key).request_id)

    scene.client.start(f"{key}-b", VISA, lock_token=key)

    assert "SUCCEEDED" == scene.closed(f"{key}-b")["status"]
    assert ("COMPLETED", f"{key}-b") == (scene.lock(key).status, scene.lock(key).request_id)


@pytest.mark.parametrize("changed", [{"attempt": 7}, {"callId": "f" * 32}], ids=["attempt", "callId"])
def test_a_takeover_is_repeated_only_on_what_it_wrote_itself(scene: Scene, changed: dict):
    """Its own clause wants the same call and the same attempt."""
    key = scene.new_id("again")
    stop_in(scene, "AcquireLock", f"{key}-a", VISA, key, after=True)
    scene.run(f"{key}-b", VISA, lock_token=key)
    (write,) = [call for call in scene.faults.calls if call.state == "TakeOverLock"]
    scene.change_lock(key, **({"status": "INPROGRESS"} | changed))
    before = scene.lock(key)
    dynamodb = scene.stack.boto3("dynamodb")

    with pytest.raises(dynamodb.exceptions.ConditionalCheckFailedException):
        dynamodb.update_item(**write.body)

    assert before == scene.lock(key)


@pytest.mark.parametrize(
    ("state", "payload"),
    [("CompleteRequest", VISA), ("RecordFinalError", DECLINED), ("ReleaseLock", UNREACHABLE)],
)
def test_a_late_outcome_does_not_shorten_the_life_of_one_that_is_on_record(
    scene: Scene, state: str, payload: dict
):
    """Whoever settles a dead execution's lock counts its time from then. That of this write is older."""
    name = scene.new_id("older")
    scene.client.start(name, payload)
    scene.closed(name)
    (write,) = [call for call in scene.faults.calls if call.state == state]
    key = scene.key(name)
    scene.change_lock(key, ttl=scene.lock(key).ttl + 1000)
    before = scene.lock(key)

    scene.stack.boto3("dynamodb").update_item(**write.body)

    assert before.ttl == scene.lock(key).ttl


def test_work_that_lambda_throttles_for_good_is_released(scene: Scene):
    """It never ran, so nothing has happened: whoever asks next runs it, and nobody has to look."""
    key = scene.new_id("throttled")
    scene.faults.plan("DoWork", lambda_refusal(429, "TooManyRequestsException"), key=key)
    sfn = scene.stack.boto3("stepfunctions")
    execution = sfn.start_execution(
        stateMachineArn=_impatient_machine(scene),
        name=key,
        input=Envelope.make(key, VISA, scene.client.rules, lock_token=key).to_json(),
    )["executionArn"]
    end = scene.eventually(
        lambda: (found := sfn.describe_execution(executionArn=execution))["status"] != "RUNNING" and found
    )
    lock = scene.lock(key)

    assert "Lambda.TooManyRequestsException" == end["error"] == lock.failure.error
    assert ("RELEASED", None) == (lock.status, lock.open_status)
    done = scene.run(f"{key}-b", VISA, lock_token=key)
    assert ("COMPLETED", 2, 1) == (done.status, done.attempt, len(scene.charges(key)))


def _impatient_machine(scene: Scene) -> str:
    """The same workflow, which tries throttled work once."""
    sfn = scene.stack.boto3("stepfunctions")
    here = sfn.describe_state_machine(stateMachineArn=scene.client.state_machine_arn)
    definition = json.loads(here["definition"])
    definition["States"]["DoWork"]["Retry"] = []
    return sfn.create_state_machine(
        name="impatient", definition=json.dumps(definition), roleArn=here["roleArn"]
    )["stateMachineArn"]
