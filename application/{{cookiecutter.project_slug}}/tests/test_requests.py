"""What a caller of the application sees, also when something goes wrong inside."""

import json
from collections.abc import Callable
from pathlib import Path

from steponce import Client

ORDER = json.loads((Path(__file__).parents[1] / "events" / "start_order.json").read_text())


def test_a_request_that_comes_twice_runs_once(steponce_client: Client) -> None:
    """The second caller gets the result of the first, and nothing is placed again."""
    steponce_client.start("twice", ORDER)
    first = steponce_client.wait("twice", timeout_seconds=100)

    again = steponce_client.start("twice", ORDER)

    assert first.status == "COMPLETED"
    assert (again.duplicate, again.result) == (True, first.result)


def test_a_refused_order_is_a_final_answer(steponce_client: Client) -> None:
    """The second caller is refused for the same reason."""
    steponce_client.start("refused", ORDER | {"amount": 0})
    first = steponce_client.wait("refused", timeout_seconds=100)

    again = steponce_client.start("refused", ORDER | {"amount": 0})

    assert (first.status, first.error) == ("FAILED", "Declined")
    assert (again.duplicate, again.error, again.cause) == (True, first.error, first.cause)


def test_a_result_is_kept_though_the_answer_is_lost(
    steponce_client: Client, lose_answer: Callable[..., None]
) -> None:
    """The record is written, but the workflow gets no answer."""
    lose_answer("CompleteRequest", machine="RunOnceStateMachine")

    steponce_client.start("lost", ORDER)

    assert steponce_client.wait("lost", timeout_seconds=100).status == "COMPLETED"
