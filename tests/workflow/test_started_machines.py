"""A state machine of the user's, which the workflow starts for its work."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import pytest

from steponce import Client
from tests.patience import PATIENCE_SECONDS, eventually
from tests.workflow.example_states import client_of, make_machine
from tests.workflow.scene import Scene

PAYS = {"Variable": "$.amount", "IsPresent": True, "Next": "Pay"}
WAITS = {"Variable": "$.wait", "IsPresent": True, "Next": "Wait"}
THEIRS = {
    "StartAt": "IsPayable",
    "States": {
        "IsPayable": {"Type": "Choice", "Choices": [PAYS, WAITS], "Default": "Refuse"},
        "Pay": {"Type": "Pass", "Parameters": {"paid.$": "$.amount"}, "End": True},
        "Wait": {"Type": "Wait", "Seconds": 3600, "End": True},
        "Refuse": {"Type": "Fail", "Error": "NotPayable", "Cause": "no amount"},
    },
}


@pytest.fixture(scope="module")
def theirs(_holding: Scene) -> str:
    """The user's state machine."""
    role = "arn:aws:iam::123456789012:role/theirs"
    states = _holding.stack.boto3("stepfunctions")
    made = states.create_state_machine(name="theirs", definition=json.dumps(THEIRS), roleArn=role)
    return str(made["stateMachineArn"])


@pytest.fixture(scope="module")
def _machine(_holding: Scene, theirs: str) -> str:
    """The workflow that starts it."""
    return make_machine(_holding, "start_machine", WorkStateMachineArn=theirs)


@pytest.fixture
def starting(scene: Scene, _machine: str) -> Client:
    """A client of that workflow."""
    return client_of(scene, _machine)


def children(scene: Scene, theirs: str, lock_token: str) -> list[dict[str, Any]]:
    """The executions of the user's machine that have the name of a lock's attempt."""
    lock = scene.lock(lock_token)
    assert lock is not None
    digest = sha256(f"{lock_token}/{lock.call_id}".encode()).hexdigest()
    states = scene.stack.boto3("stepfunctions")
    found = states.list_executions(stateMachineArn=theirs)["executions"]
    return [one for one in found if one["name"] == f"{digest}-{lock.attempt}"]


def test_the_work_may_be_a_state_machine_of_its_own(scene: Scene, starting: Client, theirs: str):
    """It gets the payload, its output is the result, and the same request starts it once."""
    request = scene.new_id()
    for _ in range(2):
        starting.start(request, {"amount": 5})
        done = starting.wait(request, timeout_seconds=PATIENCE_SECONDS)
        assert ("COMPLETED", {"paid": 5}) == (done.status, done.result)
    (child,) = children(scene, theirs, scene.key(request))
    assert ("SUCCEEDED", True) == (child["status"], len(child["name"]) <= 80)


def test_a_machine_that_fails_leaves_its_request_to_a_person(scene: Scene, starting: Client):
    """It may have had effects before; what it failed with is in the cause."""
    request = scene.new_id()
    starting.start(request, {"kind": "free"})
    lock = eventually(lambda: (one := scene.lock(scene.key(request))) and one.status == "FAILED" and one)
    assert "States.TaskFailed" == lock.failure.error
    assert "NotPayable" == json.loads(lock.failure.cause)["Error"]
    assert None is lock.ttl


def orphaned(scene: Scene, starting: Client, theirs: str, **seems: Any) -> tuple[str, str]:
    """A request whose workflow was stopped in its work, and its key; its child is not as it should be."""
    request = scene.new_id("orphan")
    key = scene.key(request)
    receipt = starting.start(request, {"wait": True})
    (child,) = eventually(lambda: scene.lock(key) and children(scene, theirs, key))
    scene.clock.instead[child["executionArn"]] = seems
    sfn = scene.stack.boto3("stepfunctions")
    sfn.stop_execution(executionArn=receipt.execution_arn)
    eventually(lambda: sfn.describe_execution(executionArn=receipt.execution_arn)["status"] != "RUNNING")
    scene.clock.let_an_hour_pass()
    return request, key


def test_a_machine_that_outlives_its_workflow_keeps_the_lock(scene: Scene, starting: Client, theirs: str):
    """However long ago the workflow died; and then its output is the result of the request."""
    request, key = orphaned(scene, starting, theirs, status="RUNNING", stopDate=None)
    starting.start(other := scene.new_id(), {"wait": True}, lock_token=key)
    sfn = scene.stack.boto3("stepfunctions")
    arn = starting.machine.execution_arn(other, 1)
    ended = eventually(
        lambda: (one := sfn.describe_execution(executionArn=arn))["status"] != "RUNNING" and one
    )
    assert ("AlreadyInProgress", "INPROGRESS") == (ended["error"], scene.lock(key).status)

    (child,) = children(scene, theirs, key)
    done = {"status": "SUCCEEDED", "output": '{"paid": 7}', "error": None, "cause": None}
    scene.clock.instead[child["executionArn"]] = done
    starting.start(request, {"wait": True}, check_owner=True)
    found = starting.wait(request, timeout_seconds=PATIENCE_SECONDS)
    assert ("COMPLETED", {"paid": 7}, 1) == (found.status, found.result, found.attempt)
    assert 1 == len(children(scene, theirs, key))


def test_a_workflow_that_is_stopped_stops_the_machine(scene: Scene, starting: Client, theirs: str):
    """Within its own execution nothing comes after the wait."""
    request = scene.new_id()
    key = scene.key(request)
    receipt = starting.start(request, {"wait": True})
    eventually(lambda: scene.lock(key) and children(scene, theirs, key))
    scene.stack.boto3("stepfunctions").stop_execution(executionArn=receipt.execution_arn)
    eventually(lambda: children(scene, theirs, key)[0]["status"] == "ABORTED")
    scene.delete_lock(key)
