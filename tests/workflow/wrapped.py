"""State machines on the running stack, each as it is and wrapped."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from steponce import Client
from steponce.wrap import source, wrap_around, wrap_inline
from tests.machines import Case
from tests.patience import eventually
from tests.workflow.example_states import client_of
from tests.workflow.scene import Scene

FINAL_ERRORS = "OutOfStock"


@dataclass(frozen=True)
class Pair:
    """
    A machine and its wrapped one.

    Args:
        scene: Where they are.
        case: What machine it is.
        original: Its ARN.
        client: A client of the wrapped one.
        renamed: The new names of states.
    """

    scene: Scene
    case: Case
    original: str
    client: Client
    renamed: Mapping[str, str]

    def run_original(self, payload: Mapping[str, Any], answer: Any = None) -> dict[str, Any]:
        """The execution of the machine as it is, once it is closed."""
        sfn = self.scene.stack.boto3("stepfunctions")
        arn = sfn.start_execution(
            stateMachineArn=self.original, name=payload["id"], input=json.dumps(payload)
        )["executionArn"]
        self.answer(payload["id"], answer)
        return eventually(lambda: (found := _described(sfn, arn))["status"] != "RUNNING" and found)

    def run_wrapped(self, payload: Mapping[str, Any], answer: Any = None) -> dict[str, Any]:
        """The execution of the wrapped machine, once it is closed."""
        receipt = self.client.start(payload["id"], payload)
        self.answer(payload["id"], answer)
        sfn = self.scene.stack.boto3("stepfunctions")
        return eventually(
            lambda: (found := _described(sfn, receipt.execution_arn))["status"] != "RUNNING" and found
        )

    def answer(self, key: str, answer: Any) -> None:
        """Send an answer to the token that an execution has left in the table of effects, if there is one."""
        if answer is None:
            return
        item = eventually(lambda: self._effect(key, "asked"))
        sfn = self.scene.stack.boto3("stepfunctions")
        if isinstance(answer, str):
            sfn.send_task_failure(taskToken=item["token"]["S"], error=answer, cause="by a test")
        else:
            sfn.send_task_success(taskToken=item["token"]["S"], output=json.dumps(answer))

    def effects(self, key: str) -> int:
        """How many effects an execution had."""
        return sum(int(item["effects"]["N"]) for item in self.scene.charges(key))

    def states(self, execution_arn: str) -> list[str]:
        """The states that an execution entered, in their order, by their former names."""
        before = {after: name for name, after in self.renamed.items()}
        return [before.get(name, name) for name in self.entered(execution_arn)]

    def entered(self, execution_arn: str) -> list[str]:
        """The states that an execution entered, in their order."""
        events = self.scene.stack.boto3("stepfunctions").get_execution_history(
            executionArn=execution_arn, maxResults=1000
        )["events"]
        return [
            one["stateEnteredEventDetails"]["name"] for one in events if "stateEnteredEventDetails" in one
        ]

    def _effect(self, key: str, what: str) -> dict[str, Any] | None:
        found = [item for item in self.scene.charges(key) if item["callAndTry"]["S"] == what]
        return dict(found[0]) if found else None


def make_pair(scene: Scene, case: Case, **options: Any) -> Pair:
    """Create both machines."""
    sfn = scene.stack.boto3("stepfunctions")
    here = sfn.describe_state_machine(stateMachineArn=scene.client.state_machine_arn)
    values = _values(scene, json.loads(here["definition"]))
    name = re.sub(r"\W+", "-", f"{case.name} {case.form}")
    text = json.dumps(case.definition)
    original = sfn.create_state_machine(name=name, definition=_filled(text, values), roleArn=here["roleArn"])
    values["WorkStateMachineArn"] = original["stateMachineArn"]
    wrapped = wrap_inline(text, **options) if case.form == "inline" else wrap_around(text)
    names = {after: values[before] for before, after in wrapped.substitutions.items()}
    definition = _filled(source.write(wrapped.definition), {**values, **names})
    made = sfn.create_state_machine(name=f"{name}-once", definition=definition, roleArn=here["roleArn"])
    client = client_of(scene, made["stateMachineArn"])
    return Pair(scene, case, original["stateMachineArn"], client, wrapped.renamed)


def _values(scene: Scene, deployed: dict[str, Any]) -> dict[str, str]:
    """The values of the placeholders: the workflow's as the stack's own machine has them."""
    states = deployed["States"]
    charge_card = states["DoWork"]["Parameters"]["FunctionName"]
    return {
        "Partition": "aws",
        "LocksTable": scene.stack.outputs["LocksTable"],
        "PrepareRequestFunctionArn": states["PrepareRequest"]["Parameters"]["FunctionName"],
        "CheckOwnerFunctionArn": states["CheckOwner"]["Parameters"]["FunctionName"],
        "WorkTimeoutSeconds": "60",
        "FinalErrors": FINAL_ERRORS,
        "LimitsTable": "none",
        "RateLimit": "0",
        "LimitRule": "none",
        "UnlimitedField": "callId",
        "RefusedStatus": "NONE",
        "EffectsTable": scene.stack.outputs["ChargesTable"],
        "FailFunctionArn": charge_card,
    }


def _filled(text: str, values: Mapping[str, str]) -> str:
    return re.sub(r"\$\{(\w+)\}", lambda match: values[match[1]], text)


def _described(sfn: Any, execution_arn: str) -> dict[str, Any]:
    found: dict[str, Any] = sfn.describe_execution(executionArn=execution_arn)
    return found
