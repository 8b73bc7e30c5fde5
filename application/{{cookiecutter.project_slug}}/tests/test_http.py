"""The HTTP API. On this machine there are no signatures, so nobody checks who calls."""

import json
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from steponce.local import LocalStack

ORDER = (Path(__file__).parents[1] / "events" / "start_order.json").read_bytes()


def test_a_key_that_is_sent_twice_is_one_request(steponce_stack: LocalStack) -> None:
    """The second answer is the first one's, replayed."""
    url = steponce_stack.outputs["RequestsUrl"]
    first, again = send(url), send(url)

    assert (first["status"], first["replayed"]) == ("COMPLETED", False)
    assert (again["result"], again["replayed"]) == (first["result"], True)


def send(url: str) -> dict[str, Any]:
    """POST the order, and wait for its end."""
    headers = {"Idempotency-Key": '"http-1"', "Content-Type": "application/json", "Prefer": "wait=20"}
    with urlopen(Request(url, ORDER, headers), timeout=100) as response:
        answer: dict[str, Any] = json.load(response)
    return answer
