"""The workflow with one of the examples' states for its work."""

from __future__ import annotations

import json
from pathlib import Path

from steponce import Client
from tests.workflow.scene import Scene

FOLDER = Path(__file__).parents[2] / "examples" / "states"


def make_machine(scene: Scene, example: str, **values: str) -> str:
    """Put the state into the definition that the stack has; its ARN."""
    states = scene.stack.boto3("stepfunctions")
    here = states.describe_state_machine(stateMachineArn=scene.client.state_machine_arn)
    state = (FOLDER / f"{example}.asl.json").read_text()
    for name, value in {"Partition": "aws", **values}.items():
        state = state.replace(f"${{{name}}}", value)
    definition = json.loads(here["definition"])
    definition["States"] |= json.loads(state)
    for name in ("IsConfirmationWanted", "AwaitConfirmation", "RecordFinalError"):
        del definition["States"][name]  # nothing leads there now
    made = states.create_state_machine(
        name=example.replace("_", "-"), definition=json.dumps(definition), roleArn=here["roleArn"]
    )
    return str(made["stateMachineArn"])


def client_of(scene: Scene, machine: str) -> Client:
    """A client of that workflow, on the stack's table."""
    table, endpoints = scene.stack.outputs["LocksTable"], scene.stack.endpoints
    return Client(
        machine, table, rules=scene.client.rules, session=scene.stack.session(), endpoints=endpoints
    )
