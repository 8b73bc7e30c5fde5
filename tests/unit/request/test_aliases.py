"""A client of a state machine's alias or version: the machine and its executions are the same."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from moto import mock_aws

from steponce import Client
from steponce.errors import PayloadMismatch
from steponce.executions import runs_on
from steponce.request.workflows import Workflows
from tests.unit.one_machine import ARN, PAYLOAD, World, arn
from tests.unit.shared_clients import SharedClients
from tests.unit.two_machines import OF_REFUNDS, OUTPUTS, REFUNDS, at_refunds

KEY = "m/order-1"


@pytest.fixture
def world() -> Iterator[World]:
    """One machine with its tables."""
    with mock_aws():
        yield World()


@pytest.fixture(params=["PROD", "7"])
def client(world: World, request: pytest.FixtureRequest) -> Client:
    """A client of the machine's alias, or of a version."""
    found = Client(f"{ARN}:{request.param}", "locks", session=SharedClients("eu-west-1"))
    found.machine.sfn = world.sfn
    return found


def test_an_alias_is_started_and_its_executions_are_the_machine_s(world: World, client: Client):
    """The alias chooses the version; neither the execution's ARN nor the default key has it."""
    receipt = client.start("order-1", PAYLOAD)
    assert (arn("order-1"), KEY) == (receipt.execution_arn, receipt.lock_token)
    assert [client.state_machine_arn] == world.sfn.started_at


def test_a_request_that_was_released_is_started_again_by_an_alias(world: World, client: Client):
    """Its closed execution is found, so it does not count as running for ever."""
    client.start("order-1", PAYLOAD)
    world.sfn.close("order-1", "FAILED", "RetryLater")
    again = client.start("order-1", PAYLOAD)
    assert ("RUNNING", False, arn("order-1--2")) == (again.status, again.duplicate, again.execution_arn)


def test_another_payload_of_a_running_request_is_seen_by_an_alias(client: Client):
    """The input of the running execution is compared."""
    client.start("order-1", PAYLOAD)
    with pytest.raises(PayloadMismatch):
        client.start("order-1", PAYLOAD | {"amount": 2})


def test_the_machine_and_its_alias_share_their_requests(world: World, client: Client):
    """One request, whichever of the two is asked."""
    client.start("order-1", PAYLOAD)
    assert world.client.start("order-1", PAYLOAD).duplicate
    assert "RUNNING" == world.client.status("order-1").status


def test_a_workflow_s_output_may_name_an_alias():
    """The alias is started. The workflow is found by the machine's name and ARN, and by its executions."""
    given = OF_REFUNDS | {"stateMachineArn": f"{REFUNDS}:PROD"}
    outputs = OUTPUTS | {"RefundsWorkflow": json.dumps(given)}
    workflows = Workflows.from_outputs(outputs)
    found = workflows.choose("refunds")
    assert (REFUNDS, f"{REFUNDS}:PROD", "refunds") == (found.arn, found.start_arn, found.name)
    assert [found, found] == [workflows.choose(found.start_arn), workflows.choose(REFUNDS)]
    assert found == workflows.of_execution(at_refunds("order-1"))
    client = Client.from_outputs(outputs, machine="refunds", session=SharedClients("eu-west-1"))
    assert found.start_arn == client.state_machine_arn


def test_an_execution_runs_on_a_machine_whatever_its_alias():
    """An execution's ARN has no alias."""
    assert runs_on(f"{ARN}:PROD", arn("order-1"))
    assert not runs_on(f"{REFUNDS}:PROD", arn("order-1"))
