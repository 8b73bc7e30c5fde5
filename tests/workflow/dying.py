"""Executions that die in a chosen state, and who asks after them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from steponce import Receipt
from steponce.request.envelope import Envelope
from tests.workflow.faults import Hold
from tests.workflow.scene import Scene

HURRIED_SECONDS = 15
PATIENT_SECONDS = 60
"""For each task of a hurried execution, so that its own time is never over first."""


@contextmanager
def held_in(scene: Scene, state: str, key: str, *, after: bool) -> Iterator[Hold]:
    """Let the request of this key be at the call of one state: before it takes effect, or after."""
    hold = scene.faults.plan(state, Hold(after=after, arrives=False), key=key)
    assert isinstance(hold, Hold)
    yield hold
    hold.go_on.set()


def stop_in(scene: Scene, state: str, name: str, payload: dict, key: str, *, after: bool) -> None:
    """Start a request and stop it while it makes the call of one state: before it took effect, or after."""
    with held_in(scene, state, key, after=after) as hold:
        scene.client.start(name, payload, lock_token=key)
        hold.wait()
        scene.stop(name)


def time_out_in(scene: Scene, state: str, name: str, payload: dict, key: str, *, after: bool) -> None:
    """The same, but its time is over: by a machine that allows HURRIED_SECONDS."""
    with held_in(scene, state, key, after=after) as hold:
        arn = start_hurried(scene, name, Envelope.make(name, payload, scene.client.rules, lock_token=key))
        hold.wait()
        sfn = scene.stack.boto3("stepfunctions")
        scene.eventually(lambda: sfn.describe_execution(executionArn=arn)["status"] == "TIMED_OUT")


def start_hurried(scene: Scene, name: str, envelope: Envelope) -> str:
    """Start an execution of the same workflow that has little time; its ARN."""
    sfn = scene.stack.boto3("stepfunctions")
    here = sfn.describe_state_machine(stateMachineArn=scene.client.state_machine_arn)
    definition = json.loads(here["definition"]) | {"TimeoutSeconds": HURRIED_SECONDS}
    for state in definition["States"].values():
        if "TimeoutSeconds" in state:
            state["TimeoutSeconds"] = PATIENT_SECONDS
    arn = sfn.create_state_machine(  # the same one, when it is made again
        name="hurried", definition=json.dumps(definition), roleArn=here["roleArn"]
    )["stateMachineArn"]
    return str(sfn.start_execution(stateMachineArn=arn, name=name, input=envelope.to_json())["executionArn"])


def ask(scene: Scene, who: str, name: str, payload: Mapping[str, Any], key: str) -> Receipt:
    """Ask again: the same id, or another id with the same key."""
    request_id = name if who == "same id" else f"{name}-other"
    scene.client.start(request_id, payload, lock_token=key, check_owner=True)
    return scene.client.wait(request_id, timeout_seconds=100, lock_token=key)


def name_of(scene: Scene, function: str) -> str:
    """The physical name of a function, from that of one which is among the Outputs."""
    return str(scene.stack.outputs["ResolveAwaitingStepFunction"]).replace("ResolveAwaitingStep", function)


def run_function(scene: Scene, function: str, event: Mapping[str, Any]) -> dict[str, Any]:
    """Invoke one of the stack's functions, by its folder's name in PascalCase."""
    name = name_of(scene, function)
    answer = scene.stack.boto3("lambda").invoke(FunctionName=name, Payload=json.dumps(event))
    result = json.loads(answer["Payload"].read())
    assert "FunctionError" not in answer, result
    return dict(result)


def tell_of_its_end(scene: Scene, name: str, **detail: Any) -> dict[str, Any]:
    """What EventBridge says of a closed execution arrives at close_execution; its verdict."""
    execution = scene.execution(name)
    told = {
        "executionArn": execution["executionArn"],
        "stateMachineArn": execution["stateMachineArn"],
        "name": name,
        "status": execution["status"],
        "input": execution["input"],
    }
    return run_function(scene, "CloseExecution", {"detail": told | detail})


def monitor(scene: Scene) -> dict[str, Any]:
    """One round of the schedule; what it has counted."""
    return run_function(scene, "FindOverdue", {})
