"""A rate limit in the workflow that exceeds a set: the function counts, and exactly so many run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from steponce import Receipt
from steponce.aws import times
from steponce.limits.record import COUNTER, SET_MEMBERS, key_of, member_of
from steponce.limits.window import Window
from steponce.local import LocalStack
from tests.conftest import TEMPLATE
from tests.engines import Parts
from tests.workflow.faults import Faults, lose_the_answer
from tests.workflow.scene import VISA, Scene
from tests.workflow.test_rate_limit import counted, of

LIMIT = 2_000
DAY = Window.of("day")


@pytest.fixture(scope="module")
def limited(parts: Parts) -> Iterator[Scene]:
    """A stack that runs 2,000 requests of a customer a day."""
    faults = Faults()
    options = parts.options("large", {"dynamodb": faults.through, "lambda": faults.through})
    parameters = {"RateLimit": str(LIMIT), "RateLimitPath": "customer"}
    with LocalStack.from_template(TEMPLATE, name="large", parameters=parameters, **options) as stack:
        yield Scene(stack, faults)


def leave(scene: Scene, customer: str, places: int, members: list[str] | None = None) -> datetime:
    """Let others have had all requests of today but so many, or these members of a set; a time of today."""
    now = datetime.now(UTC)
    count = {"members": {"SS": members}} if members else {"count": {"N": str(LIMIT - places)}}
    scene.stack.boto3("dynamodb").put_item(
        TableName=scene.stack.outputs["LimitsTable"],
        Item={
            "limitKey": {"S": key_of(scene.client.rules.key_prefix, DAY, customer, now)},
            "member": {"S": COUNTER},
            "limit": {"N": str(LIMIT)},
            "who": {"S": customer},
            "windowStart": {"S": times.to_text(DAY.start(now))},
            **count,
        },
    )
    return now


def test_of_many_requests_at_once_exactly_so_many_run(limited: Scene):
    """Transactions that meet are tried again; who is refused is refused with the end of the window."""
    customer, names = limited.new_id("customer"), [limited.new_id() for _ in range(9)]
    at = leave(limited, customer, places=4)

    def run(name: str) -> Receipt:
        return limited.run(name, of(customer), requested_at=at)

    with ThreadPoolExecutor(len(names)) as pool:
        receipts = list(pool.map(run, names))

    assert Counter(COMPLETED=4, FAILED=5) == Counter(one.status for one in receipts)
    refused = {(one.error, one.resets_at) for one in receipts if one.status == "FAILED"}
    assert {("RateLimited", DAY.end(at))} == refused
    assert [LIMIT] == counted(limited, customer)


def test_the_function_counts_before_the_lock(limited: Scene):
    """Two states more than a machine without a limit has, also of an execution that was started by hand."""
    customer, name, by_hand = limited.new_id("customer"), limited.new_id(), limited.new_id()
    now = datetime.now(UTC)
    limited.run(name, of(customer), requested_at=now)
    assert ["IsRequestPrepared", "PrepareRequest", "IsRequestCounted", "AcquireLock"] == limited.states(name)[
        :4
    ]
    limited.stack.boto3("stepfunctions").start_execution(
        stateMachineArn=limited.client.state_machine_arn,
        name=by_hand,
        input=json.dumps({"payload": of(customer), "requestedAt": times.to_text(now)}),
    )
    assert "SUCCEEDED" == limited.closed(by_hand)["status"]
    assert [2] == counted(limited, customer)


def test_a_duplicate_and_a_lost_answer_count_once(limited: Scene):
    """The function is called again, or another request with the same key comes: the place stays its own."""
    customer, name, key = limited.new_id("customer"), limited.new_id(), limited.new_id("key")
    at = leave(limited, customer, places=1)
    limited.faults.plan("PrepareRequest", lose_the_answer, key=name)
    first = limited.run(name, of(customer), lock_token=key, requested_at=at)
    again = limited.run(limited.new_id(), of(customer), lock_token=key, requested_at=at)
    another = limited.run(limited.new_id(), of(customer), requested_at=at)
    assert "TaskFailed" in limited.events(limited.arn(name))
    assert ("COMPLETED", first.result) == (again.status, again.result)
    assert "RateLimited" == another.error


def test_a_limit_raised_beyond_a_set_goes_on_counting(limited: Scene):
    """Who is in the set of this window stays admitted, and its size becomes the count."""
    customer, key = limited.new_id("customer"), limited.new_id("key")
    earlier = [member_of(key), *(f"other-{n}" for n in range(SET_MEMBERS - 1))]
    at = leave(limited, customer, places=0, members=earlier)
    assert (
        "COMPLETED"
        == limited.run(limited.new_id(), VISA | of(customer), lock_token=key, requested_at=at).status
    )
    assert [SET_MEMBERS] == counted(limited, customer)
    assert "COMPLETED" == limited.run(limited.new_id(), of(customer), requested_at=at).status
    assert [SET_MEMBERS + 1] == counted(limited, customer)


def test_a_client_that_knows_another_limit_is_counted_by_the_machine(limited: Scene):
    """It was made before the limit was raised, so it would have the workflow add to a set."""
    customer, name = limited.new_id("customer"), limited.new_id()
    at = leave(limited, customer, places=1)
    client = limited.client_with(rate_limit=8)
    client.start(name, of(customer), requested_at=at)
    assert "COMPLETED" == client.wait(name).status
    assert [LIMIT] == counted(limited, customer)
