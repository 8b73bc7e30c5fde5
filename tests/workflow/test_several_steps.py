"""An execution whose work waits for several answers at once, on the stack's engine."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from steponce import Client
from tests.workflow.program import Run
from tests.workflow.scene import VISA, Scene
from tests.workflow.second_machine import client_of, write_facts_with
from tests.workflow.waiting import steps

APPROVALS = "steponce-approvals"


def waits(step: str, definition: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A state of the work that waits for an answer."""
    state: dict[str, Any] = copy.deepcopy(definition["States"]["AwaitConfirmation"])
    for name in ("TimeoutSecondsPath", "HeartbeatSecondsPath", "ResultPath", "Catch", "Next"):
        state.pop(name, None)
    payload = state["Parameters"]["Payload"]
    del payload["heartbeatSeconds.$"], payload["timeoutSeconds.$"]
    payload |= {"step": step, "timeoutSeconds": 600}
    return state | {"TimeoutSeconds": 600} | (more or {"End": True})


@pytest.fixture(scope="module")
def machine(_holding: Scene) -> str:
    """Its work waits for the bank and for the customer, and for a clerk if one of them refuses."""
    states = _holding.stack.boto3("stepfunctions")
    here = states.describe_state_machine(stateMachineArn=_holding.client.state_machine_arn)
    definition = json.loads(here["definition"])
    asks = [
        {"StartAt": f"Await{step.title()}", "States": {f"Await{step.title()}": waits(step, definition)}}
        for step in ("bank", "customer")
    ]
    both = {
        "Type": "Parallel",
        "Branches": asks,
        "Retry": [{"ErrorEquals": ["AskAgain"], "IntervalSeconds": 1, "MaxAttempts": 1}],
        "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.refusal", "Next": "AwaitClerk"}],
        "End": True,
    }
    inside = {"AskBoth": both, "AwaitClerk": waits("clerk", definition)}
    work = definition["States"]["DoWork"]
    for name in ("IsConfirmationWanted", "AwaitConfirmation"):
        del definition["States"][name]  # nothing leads there now
    definition["States"]["DoWork"] = {
        "Type": "Parallel",
        "Branches": [{"StartAt": "AskBoth", "States": inside}],
        "ResultSelector": {"result.$": "$[0]"},
        "ResultPath": "$.work",
        "Catch": work["Catch"],
        "Next": "CompleteRequest",
    }
    made = states.create_state_machine(
        name=APPROVALS, definition=json.dumps(definition), roleArn=here["roleArn"]
    )
    return str(made["stateMachineArn"])


@pytest.fixture
def home(scene: Scene, machine: str, tmp_path: Path) -> Path:
    """Where `--local` finds the stack, with an Output for that machine."""
    return write_facts_with(scene, tmp_path, machine, prefix="approvals", retention="86400")


@pytest.fixture
def approvals(home: Path) -> Client:
    """The client of that machine."""
    return client_of(home, APPROVALS)


def listed(steponce: Run, request_id: str) -> dict[str, str]:
    """The ids of the steps of a request that wait, by their names."""
    found = steponce("awaiting", "list", "--local")[1]["awaitingSteps"]
    return {one["step"]: one["awaitingStepId"] for one in found if one["requestId"] == request_id}


def begun(scene: Scene, steponce: Run, approvals: Client, *names: str) -> tuple[str, dict[str, str]]:
    """A request of which these steps wait: its id, and the ids of the steps by their names."""
    request_id = scene.new_id("several")
    approvals.start(request_id, VISA)
    scene.eventually(lambda: set(listed(steponce, request_id)) == set(names))
    return request_id, listed(steponce, request_id)


def told(steponce: Run, request_id: str) -> tuple[str, set[str], str]:
    """What `show` says, for which steps the owner waits, and for which one first."""
    story = steponce("show", request_id)[1]
    owner = steponce("locks", "inspect", f"approvals/{request_id}", "--token")[1]["owner"]
    return story["summary"], set(owner["waitsForAll"]), owner["waitsFor"]


@pytest.mark.parametrize(("first", "left"), [("bank", "customer"), ("customer", "bank")])
def test_the_step_that_is_left_is_named(
    scene: Scene, steponce: Run, approvals: Client, first: str, left: str
):
    """Whichever of the two was entered later."""
    request_id, ids = begun(scene, steponce, approvals, "bank", "customer")
    summary, named, _ = told(steponce, request_id)
    assert "Running normally, in AwaitBank and AwaitCustomer. " in summary or "AwaitCustomer and" in summary
    assert {"bank", "customer"} == {step for step in ids if f"It waits for an answer to {step!r}" in summary}
    assert set(ids.values()) == named

    code, answered = steponce("callback", "succeed", ids[first])
    assert (0, "accepted") == (code, answered["verdict"])

    scene.eventually(lambda: listed(steponce, request_id) == {left: ids[left]})
    scene.eventually(lambda: told(steponce, request_id)[1:] == ({ids[left]}, ids[left]))
    summary = steponce("show", request_id)[1]["summary"]
    assert summary.startswith(
        f"Running normally, in Await{left.title()}. It waits for an answer to {left!r} until "
    )
    assert repr(first) not in summary

    steponce("callback", "succeed", ids[left])
    assert "COMPLETED" == approvals.wait(request_id, timeout_seconds=60).status
    owner = steponce("locks", "inspect", f"approvals/{request_id}", "--token")[1]["owner"]
    assert (None, []) == (owner["waitsFor"], owner["waitsForAll"])


def test_both_steps_wait_again_after_a_retry(scene: Scene, steponce: Run, approvals: Client):
    """The customer's task has failed, and the Parallel begins both branches again."""
    request_id, ids = begun(scene, steponce, approvals, "bank", "customer")
    arn = approvals.status(request_id).execution_arn
    scene.eventually(lambda: 2 == scene.events(arn).count("TaskSubmitted"))
    customer = steps(scene).get(ids["customer"])
    assert customer is not None
    sfn = scene.stack.boto3("stepfunctions")

    sfn.send_task_failure(taskToken=customer.task_token, error="AskAgain", cause="by a test")

    scene.eventually(lambda: 4 == scene.events(arn).count("TaskSubmitted"))
    scene.eventually(lambda: told(steponce, request_id)[1] == set(ids.values()))
    steponce("callback", "succeed", ids["bank"])
    scene.eventually(lambda: told(steponce, request_id)[1] == {ids["customer"]})
    steponce("callback", "succeed", ids["customer"])
    assert "COMPLETED" == approvals.wait(request_id, timeout_seconds=60).status


def test_a_step_whose_parallel_has_failed_is_not_named(scene: Scene, steponce: Run, approvals: Client):
    """The bank may still be listed. Nothing waits for it: the failure is caught, and a clerk is asked."""
    request_id, ids = begun(scene, steponce, approvals, "bank", "customer")

    steponce("callback", "fail", ids["customer"], "--error", "Declined")

    scene.eventually(lambda: "clerk" in listed(steponce, request_id))
    clerk = listed(steponce, request_id)["clerk"]
    scene.eventually(lambda: told(steponce, request_id)[1:] == ({clerk}, clerk))
    assert (
        "Running normally, in AwaitClerk. It waits for an answer to 'clerk'" in told(steponce, request_id)[0]
    )
    steponce("callback", "succeed", clerk)
    assert "COMPLETED" == approvals.wait(request_id, timeout_seconds=60).status
