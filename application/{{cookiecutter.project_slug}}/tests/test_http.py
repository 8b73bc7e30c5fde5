"""The HTTP API. On this machine there are no signatures, so nobody checks who calls."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from steponce.local import LocalStack

ROOT = Path(__file__).parents[1]
ORDER = (ROOT / "events" / "start_order.json").read_bytes()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Where requests are started."""
    with LocalStack.from_template(ROOT / "template.yaml", parameters={"HttpAccess": "open"}) as stack:
        yield stack.outputs["RequestsUrl"]


def test_a_key_that_is_sent_twice_is_one_request(url: str) -> None:
    """The second answer is the first one's, replayed."""
    first, again = send(url), send(url)

    assert (first["status"], first["replayed"]) == ("COMPLETED", False)
    assert (again["result"], again["replayed"]) == (first["result"], True)


def send(url: str) -> dict:
    """POST the order, and wait for its end."""
    headers = {"Idempotency-Key": '"http-1"', "Content-Type": "application/json", "Prefer": "wait=20"}
    with urlopen(Request(url, ORDER, headers), timeout=100) as response:
        return json.load(response)
