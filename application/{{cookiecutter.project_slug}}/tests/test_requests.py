"""What a caller of the application sees."""

import json
from pathlib import Path

from steponce.local import LocalStack

ORDER = json.loads((Path(__file__).parents[1] / "events" / "start_order.json").read_text())


def test_a_request_that_comes_twice_runs_once(stack: LocalStack) -> None:
    """The second caller gets the result of the first, and nothing is placed again."""
    client = stack.client()
    client.start("twice", ORDER)
    first = client.wait("twice", timeout_seconds=100)

    again = client.start("twice", ORDER)

    assert first.status == "COMPLETED"
    assert (again.duplicate, again.result) == (True, first.result)


def test_a_refused_order_is_a_final_answer(stack: LocalStack) -> None:
    """The second caller is refused for the same reason."""
    client = stack.client()
    client.start("refused", ORDER | {"amount": 0})
    first = client.wait("refused", timeout_seconds=100)

    again = client.start("refused", ORDER | {"amount": 0})

    assert (first.status, first.error) == ("FAILED", "Declined")
    assert (again.duplicate, again.error, again.cause) == (True, first.error, first.cause)
