"""Work that an execution has left behind, polled, retried and cancelled: it is never run beside itself."""

from __future__ import annotations

import json

import pytest

from steponce.errors import Refused
from steponce.executions import CANCELLATION
from steponce.failure import Failure
from steponce.operator.cancel import cancel
from steponce.operator.cancellable import find_running
from steponce.operator.locks import Operator
from tests.workflow.conftest import WORK_TIMEOUT_SECONDS
from tests.workflow.faults import Answer, Hold
from tests.workflow.scene import VISA, Scene

_SERVICE_EXCEPTION = Answer(
    500,
    [("Content-Type", "application/json"), ("x-amzn-ErrorType", "ServiceException")],
    json.dumps({"Type": "Service", "message": "the service has failed"}).encode(),
)


def test_a_retry_waits_for_work_whose_invocation_failed(scene: Scene):
    """Lambda answers 500 while the function goes on: nobody says that it is over."""
    name = scene.new_id("lost")
    hold = Hold(after=True)

    def fail(call, forward):
        hold(call, forward)
        return _SERVICE_EXCEPTION

    hold.go_on.set()
    scene.faults.plan("DoWork", fail, key=scene.key(name))
    scene.client.start(name, VISA)
    scene.closed(name)
    lock = scene.lock(scene.key(name))
    operator = Operator(scene.client.machine, by="alice", work_timeout_seconds=WORK_TIMEOUT_SECONDS)

    assert ("FAILED", True) == (lock.status, lock.failure.error.startswith("Lambda."))
    with pytest.raises(Refused, match="may still run until"):
        operator.prepare("retry", lock)
    assert 1 == len(scene.charges(scene.key(name)))


def test_polling_a_stopped_request_starts_one_execution(scene: Scene):
    """It asks once; while the work may run there is nothing to be learnt by asking again."""
    name = scene.new_id("polled")
    hasty = scene.client_with(expected_seconds=0.01)
    hold = scene.faults.plan("DoWork", Hold(arrives=False), key=scene.key(name))
    hasty.start(name, VISA)
    hold.wait()
    scene.stop(name)
    hold.go_on.set()

    first = hasty.start(name, VISA)
    assert "AlreadyInProgress" == scene.closed(f"{name}--2")["error"]
    receipts = [hasty.start(name, VISA) for _ in range(25)]

    assert not first.duplicate
    assert {("RUNNING", True)} == {(one.status, one.duplicate) for one in receipts}
    assert [name, f"{name}--2"] == scene.executions(name)


def test_a_request_by_hand_that_is_cancelled_at_once_never_charges(scene: Scene):
    """It has no record yet; from then on it has one, which says so."""
    name = scene.new_id("hand")
    hold = scene.faults.plan("PrepareRequest", Hold(), key=name)
    scene.stack.boto3("stepfunctions").start_execution(
        stateMachineArn=scene.client.state_machine_arn, name=name, input=json.dumps({"payload": VISA})
    )
    hold.wait()

    running = find_running(scene.client.machine, name)
    cancel(scene.client.machine, running, by="alice", why="sent by mistake")
    hold.go_on.set()

    again = scene.run(name, VISA)
    assert ("FAILED", CANCELLATION) == (again.status, Failure(again.error, again.cause))
    other = scene.run(f"{name}-other", VISA, lock_token=scene.key(name))
    assert "Cancelled" == other.error
    assert [] == scene.charges(scene.key(name))
