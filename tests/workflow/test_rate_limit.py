"""The rate limit in the workflow: each request counts once, before its lock, and exactly so many run."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from steponce import Client, RateLimited, Receipt
from steponce.aws import times
from steponce.limits.countable import AHEAD_SECONDS
from steponce.limits.record import COUNTER, key_of
from steponce.limits.table import Limits
from steponce.limits.window import Window
from steponce.local import LocalStack
from steponce.operator.cancel import cancel
from steponce.operator.cancellable import find_running
from steponce.report.collector import collect
from steponce.workflow import NEXT_WINDOW
from tests.conftest import TEMPLATE
from tests.engines import Parts
from tests.workflow.faults import Faults, lose_the_answer
from tests.workflow.scene import UNREACHABLE, VISA, Scene
from tests.workflow.test_http_api import post
from tests.workflow.test_triggers import dead_letters, needs_deliveries, put

LIMIT = 3
WINDOW = Window(4)
TRIES = 17


@pytest.fixture(scope="module")
def limited(parts: Parts) -> Iterator[Scene]:
    """A stack that runs three requests of a customer in four seconds."""
    faults = Faults()
    options = parts.options("limited", {"dynamodb": faults.through, "lambda": faults.through})
    parameters = {
        "RateLimit": str(LIMIT),
        "RateLimitWindow": str(WINDOW.seconds),
        "RateLimitPath": "customer",
        "QueueRequestIdPath": "body.orderId",
        "HttpAccess": "open",
        "ResendBaseSeconds": "1",
        "ResendTries": str(TRIES),
    }
    with LocalStack.from_template(TEMPLATE, name="limited", parameters=parameters, **options) as stack:
        yield Scene(stack, faults)


@pytest.fixture
def noon() -> datetime:
    """The beginning of a window of this morning or of yesterday; whoever is counted is a test's own."""
    return WINDOW.start(datetime.now(UTC) - timedelta(hours=12))


def of(customer: str, **more: Any) -> dict[str, Any]:
    """The order of a customer."""
    return VISA | {"customer": customer} | more


def counted(scene: Scene, customer: str) -> list[int]:
    """How many requests the customer's windows have counted, the newest first."""
    limits = Limits(scene.stack.boto3("dynamodb"), scene.stack.outputs["LimitsTable"])
    return [count.counted for count in limits.of(customer)]


def use_up(scene: Scene, customer: str, windows: int) -> datetime:
    """Let others have had all requests of this window and of the next ones; when the last of them ends."""
    at = datetime.now(UTC)
    for number in range(windows):
        start = WINDOW.start(at + number * timedelta(seconds=WINDOW.seconds))
        key = key_of(scene.client.rules.key_prefix, WINDOW, customer, start)
        scene.stack.boto3("dynamodb").put_item(
            TableName=scene.stack.outputs["LimitsTable"],
            Item={
                "limitKey": {"S": key},
                "member": {"S": COUNTER},
                "members": {"SS": [f"other-{n}" for n in range(LIMIT)]},
                "limit": {"N": str(LIMIT)},
                "who": {"S": customer},
                "windowStart": {"S": times.to_text(start)},
            },
        )
    return WINDOW.end(start)


def make_room(scene: Scene, customer: str) -> None:
    """Let nobody have had any request of the customer's."""
    dynamodb, table = scene.stack.boto3("dynamodb"), scene.stack.outputs["LimitsTable"]
    for count in list(Limits(dynamodb, table).of(customer)):
        key = {"limitKey": {"S": count.key}, "member": {"S": COUNTER}}
        dynamodb.delete_item(TableName=table, Key=key)


def test_a_limit_costs_one_state_and_one_write(limited: Scene, noon: datetime):
    """Between the first Choice and the lock, and nothing else changes."""
    name = limited.new_id()
    done = limited.run(name, of(name), requested_at=noon)
    assert "COMPLETED" == done.status
    assert [
        "IsRequestPrepared",
        "CountRequest",
        "AcquireLock",
        "DoWork",
        "IsConfirmationWanted",
        "CompleteRequest",
    ] == limited.states(name)


def test_a_count_is_deleted_some_time_after_its_window(limited: Scene, noon: datetime):
    """It names a customer. No message is taken for the window any more by then."""
    customer = limited.new_id("customer")
    limited.run(limited.new_id(), of(customer), requested_at=noon)

    (count,) = Limits(limited.stack.boto3("dynamodb"), limited.stack.outputs["LimitsTable"]).of(customer)
    item = limited.stack.boto3("dynamodb").get_item(
        TableName=limited.stack.outputs["LimitsTable"],
        Key={"limitKey": {"S": count.key}, "member": {"S": COUNTER}},
    )["Item"]
    assert int(item["ttl"]["N"]) > WINDOW.end(noon).timestamp()


def test_of_many_requests_at_once_exactly_so_many_run(limited: Scene, noon: datetime):
    """The others end with RateLimited: no lock, no work, and the time when the window ends."""
    customer = limited.new_id("customer")
    names = [limited.new_id() for _ in range(12)]

    def run(name: str) -> Receipt:
        return limited.run(name, of(customer), requested_at=noon)

    with ThreadPoolExecutor(len(names)) as pool:
        receipts = list(pool.map(run, names))

    assert Counter(COMPLETED=LIMIT, FAILED=12 - LIMIT) == Counter(one.status for one in receipts)
    assert [LIMIT] == counted(limited, customer)
    refused = [one for one in receipts if one.status == "FAILED"]
    assert {("RateLimited", WINDOW.end(noon))} == {(one.error, one.resets_at) for one in refused}
    for one in refused:
        assert limited.lock(one.lock_token) is None
        assert [] == limited.charges(one.lock_token)
    with pytest.raises(RateLimited) as failed:
        limited.client.result(refused[0].request_id)
    assert WINDOW.end(noon) == failed.value.resets_at
    assert ["start request"] == [step.action for step in failed.value.next_steps]


def test_a_duplicate_is_neither_counted_nor_refused(limited: Scene, noon: datetime):
    """Another id with a lock token that was counted gets its result, though the window is full."""
    customer, key = limited.new_id("customer"), limited.new_id("key")
    first = limited.run(limited.new_id(), of(customer), lock_token=key, requested_at=noon)
    while counted(limited, customer) < [LIMIT]:
        limited.run(limited.new_id(), of(customer), requested_at=noon)

    later = noon + timedelta(seconds=WINDOW.seconds - 1)
    again = limited.run(limited.new_id(), of(customer), lock_token=key, requested_at=later)
    another = limited.run(limited.new_id(), of(customer), requested_at=later)

    assert ("COMPLETED", first.result) == (again.status, again.result)
    assert "RateLimited" == another.error
    assert [LIMIT] == counted(limited, customer)


def test_the_next_attempt_of_a_counted_request_is_admitted(limited: Scene, noon: datetime):
    """RetryLater releases its lock; its place in the window stays its own."""
    customer, name = limited.new_id("customer"), limited.new_id()
    limited.run(name, of(customer, card=UNREACHABLE["card"]), requested_at=noon)
    for _ in range(LIMIT - 1):
        limited.run(limited.new_id(), of(customer), requested_at=noon)
    done = limited.run(name, of(customer, card=UNREACHABLE["card"]), requested_at=noon)
    assert ("COMPLETED", [LIMIT]) == (done.status, counted(limited, customer))


def test_an_event_before_midnight_counts_for_yesterday(limited: Scene, noon: datetime):
    """However late it comes; the first moment of a window is its own."""
    customer = limited.new_id("customer")
    before = noon - timedelta(milliseconds=1)
    for at in (noon, before, noon, before):
        assert "COMPLETED" == limited.run(limited.new_id(), of(customer), requested_at=at).status
    assert [2, 2] == counted(limited, customer)


def test_a_lost_answer_counts_once(limited: Scene, noon: datetime):
    """The write for the last place takes effect, its author hears of an error, and it is admitted."""
    customer, name = limited.new_id("customer"), limited.new_id()
    for _ in range(LIMIT - 1):
        limited.run(limited.new_id(), of(customer), requested_at=noon)
    limited.faults.plan("CountRequest", lose_the_answer, key=customer)
    assert "COMPLETED" == limited.run(name, of(customer), requested_at=noon).status
    assert "TaskFailed" in limited.events(limited.arn(name))
    assert [LIMIT] == counted(limited, customer)


def test_a_refused_request_runs_in_a_later_window(limited: Scene, noon: datetime):
    """As its next attempt, once its caller names a time in another window."""
    customer, name = limited.new_id("customer"), limited.new_id()
    for _ in range(LIMIT):
        limited.run(limited.new_id(), of(customer), requested_at=noon)
    refused = limited.run(name, of(customer), requested_at=noon)
    assert refused.resets_at is not None
    story = collect(limited.client, name)
    assert "rate limited" == story.diagnosis
    assert f"RateLimited until {times.to_text(refused.resets_at)}" in story.summary
    assert ["start request"] == [step.action for step in story.next_steps]

    done = limited.run(name, of(customer), requested_at=noon, count_at=refused.resets_at)
    assert ("COMPLETED", limited.arn(f"{name}--2")) == (done.status, done.execution_arn)
    assert [1, LIMIT] == counted(limited, customer)


def test_a_reset_lets_a_window_begin_anew(limited: Scene, noon: datetime):
    """As many more requests run, twice over; who was admitted stays so, and is not counted again."""
    customer, name = limited.new_id("customer"), limited.new_id()
    limits = Limits(limited.stack.boto3("dynamodb"), limited.stack.outputs["LimitsTable"])
    limited.run(name, of(customer), requested_at=noon)
    for _ in range(2):
        while counted(limited, customer) < [LIMIT]:
            limited.run(limited.new_id(), of(customer), requested_at=noon)
        assert "RateLimited" == limited.run(limited.new_id(), of(customer), requested_at=noon).error
        (full,) = limits.of(customer)
        assert limits.reset(full, by="eve", why="asked")
        assert not limits.reset(full, by="eve", why="asked again")
        assert [0] == counted(limited, customer)
    key = limited.key(name)
    again = limited.run(limited.new_id(), of(customer), lock_token=key, requested_at=noon)
    assert ("COMPLETED", [0]) == (again.status, counted(limited, customer))


def test_no_way_to_the_lock_goes_round_the_limit(limited: Scene, noon: datetime):
    """Neither that of an execution that was started by hand, nor that of a client that knows of no limit."""
    customer, by_hand, unaware = limited.new_id("customer"), limited.new_id(), limited.new_id()
    given = {"payload": of(customer), "requestedAt": times.to_text(noon)}
    for name, status in ((by_hand, "SUCCEEDED"), (f"{by_hand}b", "SUCCEEDED")):
        limited.stack.boto3("stepfunctions").start_execution(
            stateMachineArn=limited.client.state_machine_arn, name=name, input=json.dumps(given)
        )
        assert status == limited.closed(name)["status"]
    client = limited.client_with(rate_limit=0)
    for name, error in ((unaware, None), (f"{unaware}b", "RateLimited")):
        client.start(name, of(customer), requested_at=noon)
        assert error == client.wait(name).error
    assert ["PrepareRequest", "IsRequestCounted", "CountRequest"] == limited.states(f"{unaware}b")[1:4]
    assert [LIMIT] == counted(limited, customer)


@pytest.mark.parametrize(
    "other", [{"rate_limit_window": "hour"}, {"rate_limit_path": "orderId"}], ids=lambda other: min(other)
)
def test_a_client_that_knows_another_limit_is_counted_by_the_machine(
    limited: Scene, noon: datetime, other: dict[str, Any]
):
    """It was made before the window or the path was changed, and would count on its own."""
    customer, name, client = limited.new_id("customer"), limited.new_id(), limited.client_with(**other)
    client.start(name, of(customer, orderId="o-1"), requested_at=noon)
    assert "COMPLETED" == client.wait(name).status
    assert ["PrepareRequest", "IsRequestCounted", "CountRequest"] == limited.states(name)[1:4]
    assert [1] == counted(limited, customer)


def test_a_function_without_the_limit_ends_a_request_before_its_lock(limited: Scene):
    """While a deployment switches the limit off or on. The request may be started again."""
    sfn, name = limited.stack.boto3("stepfunctions"), limited.new_id()
    here = sfn.describe_state_machine(stateMachineArn=limited.client.state_machine_arn)
    definition = json.loads(here["definition"])
    definition["States"]["PrepareRequest"] = {"Type": "Pass", "Next": "IsRequestCounted"}
    text = json.dumps(definition)
    made = sfn.create_state_machine(name="half-deployed", definition=text, roleArn=here["roleArn"])
    client = Client(
        made["stateMachineArn"],
        limited.stack.outputs["LocksTable"],
        rules=replace(limited.client.rules, rate_limit=0),
        session=limited.stack.session(),
        endpoints=limited.stack.endpoints,
    )
    client.start(name, VISA)
    assert "LimitChanged" == client.wait(name).error
    assert limited.lock(limited.key(name)) is None
    again = client.start(name, VISA)
    assert (f"{name}--2", False) == (again.execution_arn.rpartition(":")[2], again.duplicate)


def test_http_answers_429_with_the_end_of_the_window(limited: Scene):
    """With the headers of the draft; the same request runs once the window is over."""
    customer, key = limited.new_id("customer"), limited.new_id()
    end = use_up(limited, customer, windows=30)
    refused = post(limited, key, of(customer), prefer="wait=20")
    assert (429, "urn:steponce:problem:rate-limited") == (refused.status, refused.body["type"])
    left = int(refused.headers["Retry-After"])
    assert 1 <= left <= WINDOW.seconds
    assert f'"{WINDOW.name}";q={LIMIT};w={WINDOW.seconds}' == refused.headers["RateLimit-Policy"]
    assert f'"{WINDOW.name}";r=0;t={left}' == refused.headers["RateLimit"]
    assert end > datetime.now(UTC)


def test_a_request_that_waits_for_its_window_can_be_looked_at_and_cancelled(limited: Scene):
    """It has no lock; once it is cancelled, its message does not come again."""
    customer, name, client = limited.new_id("customer"), limited.new_id(), limited.client
    in_minutes = datetime.now(UTC) + timedelta(seconds=AHEAD_SECONDS - 60)
    for _ in range(LIMIT):
        limited.run(limited.new_id(), of(customer), requested_at=in_minutes)
    client.start(name, of(customer), requested_at=in_minutes, redelivery={"requestId": name, "tries": 0})
    limited.eventually(lambda: NEXT_WINDOW in limited.states(name))
    story = collect(client, name)
    assert ("rate limited", None) == (story.diagnosis, story.record)

    cancel(client.machine, find_running(client.machine, name), by="eve", why="asked")
    assert "Cancelled" == limited.closed(name)["error"]
    assert ("FAILED", "Cancelled") == ((found := client.status(name)).status, found.error)
    assert [name] == limited.executions(name)


@needs_deliveries
def test_a_refused_message_comes_again_after_its_window(limited: Scene):
    """It waits without a lock, each window costs one try, and no attempt begins before the window is over."""
    customer, name = limited.new_id("customer"), limited.new_id()
    use_up(limited, customer, windows=30)
    put(limited, of(customer, orderId=name))
    limited.eventually(lambda: name in limited.executions(name) and NEXT_WINDOW in limited.states(name))
    make_room(limited, customer)

    def done() -> bool:
        lock = limited.lock(limited.key(name))
        return lock is not None and lock.status == "COMPLETED"

    limited.eventually(done)
    attempts = sorted(limited.executions(name), key=len)
    ended = [limited.execution(one) for one in attempts]
    assert ["RateLimited"] * (len(ended) - 1) == [one["error"] for one in ended[:-1]]
    assert 2 <= len(ended)
    for refused, following in itertools.pairwise(ended):
        over = times.from_text(json.loads(refused["input"])["limit"]["resetsAt"])
        assert over <= refused["stopDate"] <= following["startDate"]
        sent, given = json.loads(following["input"]), json.loads(refused["input"])
        assert given["redelivery"]["tries"] + 1 == sent["redelivery"]["tries"]
        assert given["requestedAt"] == sent["requestedAt"]
    assert ["IsRequestPrepared", "CountRequest", "IsCallerWaiting", "AwaitNextWindow", "RateLimited"] == (
        limited.states(attempts[0])
    )


@needs_deliveries
def test_a_message_that_each_window_refuses_ends_among_the_dead_letters(limited: Scene):
    """After its last try, once that window is over; what it asks for is in the letter."""
    customer, name = limited.new_id("customer"), limited.new_id()
    use_up(limited, customer, windows=30)
    put(limited, of(customer), steponceRequestId=json.dumps(name), steponceTries=str(TRIES))
    (letter,) = limited.eventually(lambda: [one for one in dead_letters(limited) if customer in one["Body"]])
    assert of(customer) == json.loads(letter["Body"])
    assert "RateLimited" in letter["MessageAttributes"]["steponceReason"]["StringValue"]
    (refused,) = limited.executions(name)
    assert NEXT_WINDOW in limited.states(refused)
    assert limited.lock(limited.key(name)) is None
