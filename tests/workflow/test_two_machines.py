"""Two workflows of one stack on one table: each command finds the machine of its request."""

from __future__ import annotations

from pathlib import Path

import pytest

from steponce import Client
from tests.patience import PATIENCE_SECONDS
from tests.workflow.program import Run
from tests.workflow.scene import BUG, VISA, Scene
from tests.workflow.second_machine import client_of, write_facts_with

REFUNDS = "steponce-refunds"
SIGNED = ("--yes", "--by", "alice", "--why", "nothing was refunded")


@pytest.fixture(scope="module")
def machine(_holding: Scene) -> str:
    """Another state machine with the states of the stack's own."""
    states = _holding.stack.boto3("stepfunctions")
    here = states.describe_state_machine(stateMachineArn=_holding.client.state_machine_arn)
    made = states.create_state_machine(name=REFUNDS, definition=here["definition"], roleArn=here["roleArn"])
    return str(made["stateMachineArn"])


@pytest.fixture
def home(scene: Scene, machine: str, tmp_path: Path) -> Path:
    """Where `--local` finds the stack, with an Output for that machine."""
    return write_facts_with(
        scene, tmp_path, machine, prefix="refunds", retention="never", states=scene.clock.url
    )


@pytest.fixture
def refunds(home: Path) -> Client:
    """The client of that machine."""
    return client_of(home, REFUNDS)


def test_one_id_at_two_machines_is_two_requests(scene: Scene, steponce: Run, refunds: Client, machine: str):
    """Each runs its own work under a lock token of its own, and `locks retry` starts the one that held it."""
    request = scene.new_id("two")
    own = scene.run(request, VISA)
    refunds.start(request, BUG)
    theirs = refunds.wait(request, timeout_seconds=PATIENCE_SECONDS)
    assert ("COMPLETED", "FAILED", f"refunds/{request}") == (own.status, theirs.status, theirs.lock_token)

    own_machine = scene.client.state_machine_arn.rpartition(":")[2]
    code, refused = steponce("status", request)
    assert (2, "MachineAmbiguous") == (code, refused["error"]["type"])
    assert f"{own_machine}, {REFUNDS}" in refused["error"]["message"]
    named = [steponce("show", request, "--machine", one)[1]["diagnosis"] for one in (own_machine, machine)]
    assert ["completed", "waits for a person"] == named

    code, told = steponce("locks", "retry", theirs.lock_token, *SIGNED)

    execution = f"{machine.replace(':stateMachine:', ':execution:')}:{request}--2"
    assert (0, execution) == (code, told["receipt"]["executionArn"])
    scene.eventually(
        lambda: (lock := scene.lock(theirs.lock_token)) and (lock.attempt, lock.status) == (2, "FAILED")
    )
    assert [request] == scene.executions(request)
    assert [1, 0] == [len(scene.charges(token)) for token in (own.lock_token, theirs.lock_token)]


def test_a_request_that_runs_is_found_and_cancelled_at_its_machine(
    scene: Scene, steponce: Run, refunds: Client, machine: str
):
    """Nobody says at which; the list of requests has it among the running ones, and then among the failed."""
    request = scene.new_id("runs")
    token = f"refunds/{request}"
    with scene.working(token) as hold:
        receipt = refunds.start(request, VISA)
        hold.wait()
        listed = steponce("requests", "list", "--status", "running", "--under", token)[1]["requests"]
        assert [(request, "RUNNING", REFUNDS)] == [
            (one["requestId"], one["status"], one["machine"]) for one in listed
        ]
        code, told = steponce("cancel", request, *SIGNED)
    assert (0, receipt.execution_arn, "Cancelled") == (code, told["executionArn"], told["record"]["error"])
    found = steponce("requests", "list", "--machine", machine, "--since", "1h", "--under", token)[1]
    assert [(token, "FAILED", True)] == [
        (one["lockToken"], one["status"], one["waitsForPerson"]) for one in found["requests"]
    ]
    scene.delete_lock(token)
