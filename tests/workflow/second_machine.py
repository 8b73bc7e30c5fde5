"""A second state machine of the shared stack, as clients and commands find it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from steponce import Client
from steponce.local import LocalStack, write_facts
from tests.workflow.scene import Scene


def write_facts_with(
    scene: Scene, folder: Path, machine: str, *, prefix: str, retention: str, **endpoints: str
) -> Path:
    """
    Write the facts of the scene's stack with an Output for a second machine.

    Args:
        scene: Whose stack it is.
        folder: Where `--local` finds the facts; the answer.
        machine: The ARN of the second machine.
        prefix: What its lock tokens begin with.
        retention: Its retention, as the Output of a stack says it.
        endpoints: Addresses in place of the stack's.
    """
    facts: dict[str, Any] = scene.stack.facts()
    facts["endpoints"] |= endpoints
    settings = {
        "stateMachineArn": machine,
        "locksTable": facts["outputs"]["LocksTable"],
        "keyPrefix": prefix,
        "expectedSeconds": "60",
        "retentionSeconds": retention,
        "workTimeoutSeconds": facts["outputs"]["WorkTimeoutSeconds"],
    }
    facts["outputs"] = facts["outputs"] | {"SecondWorkflow": json.dumps(settings)}
    write_facts(facts, folder)
    return folder


def client_of(folder: Path, machine: str) -> Client:
    """The client of the machine of this name, by the facts in a folder."""
    return LocalStack.attach(json.loads((folder / "stack.json").read_text())).client(machine=machine)
