"""An order that waits for its confirmation."""

import json
import time
from pathlib import Path
from typing import Any

from steponce import Client
from steponce.callbacks.awaiting import AwaitingSteps
from steponce.local import LocalStack

ORDER = json.loads((Path(__file__).parents[1] / "events" / "confirmed_order.json").read_text())


def test_an_order_is_completed_by_its_confirmation(
    steponce_stack: LocalStack, steponce_client: Client
) -> None:
    """The answer to the waiting step is part of the result."""
    steponce_client.start("confirmed", ORDER)

    answer(steponce_stack, "confirmed", {"outcome": "success", "output": {"by": "the provider"}})

    done = steponce_client.wait("confirmed", timeout_seconds=100)
    assert (done.status, done.result["confirmation"]) == ("COMPLETED", {"by": "the provider"})


def answer(stack: LocalStack, request_id: str, what: dict[str, Any]) -> None:
    """Wait until the request waits, and answer for the outside world."""
    steps = AwaitingSteps(stack.boto3("dynamodb"), stack.outputs["AwaitingStepsTable"])
    end = time.monotonic() + 100
    while not (waiting := [step for step in steps.open() if step.request_id == request_id]):
        assert time.monotonic() < end, f"{request_id} does not wait"
        time.sleep(0.1)
    stack.boto3("lambda").invoke(
        FunctionName=stack.outputs["ResolveAwaitingStepFunction"],
        Payload=json.dumps({"awaitingStepId": waiting[0].id, "answer": what}),
    )
