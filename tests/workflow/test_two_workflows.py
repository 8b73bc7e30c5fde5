"""Two workflows share an installation: each has its own way in, and the installation looks after both."""

from __future__ import annotations

import fcntl
import functools
import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from steponce.executions import CANCELLED
from steponce.local import LocalStack, write_facts
from steponce.locks.record import Lock
from steponce.locks.table import Locks
from tests.engines import Parts
from tests.patience import PATIENCE_SECONDS, eventually
from tests.second_workflow import write
from tests.workflow.program import Run, run_here
from tests.workflow.test_triggers import needs_deliveries

pytestmark = [needs_deliveries, pytest.mark.full]  # tests/unit/scaffold reads the same template's plan

WORK = """
import fcntl
from pathlib import Path

def handler(work, context):
    payload = work["payload"]
    if "begun" in payload:
        Path(payload["begun"]).touch()
        with open(payload["gate"]) as gate:
            fcntl.flock(gate, fcntl.LOCK_SH)
    return {"refunded": payload["amount"]}
"""
"""The second workflow's work. A test can hold it by a lock on a file."""

HTTP = "        HttpAccess: open\n        KeyPrefix: r\n"
WORK_TIMEOUT_SECONDS = 60
AT_REFUNDS = ("--machine", "shop-refunds")


@dataclass
class Shop:
    """The application, and what a client needs to know of each workflow."""

    stack: LocalStack

    @cached_property
    def orders(self) -> dict[str, str]:
        return dict(json.loads(self.stack.outputs["Workflow"]))

    @cached_property
    def refunds(self) -> dict[str, str]:
        return dict(json.loads(self.stack.outputs["RefundsWorkflow"]))

    def send(self, workflow: dict[str, str], payload: dict[str, Any]) -> str:
        """Put a message into a workflow's queue; its id, which is the request's."""
        sent = self.stack.boto3("sqs").send_message(
            QueueUrl=workflow["requestsQueueUrl"], MessageBody=json.dumps(payload)
        )
        return str(sent["MessageId"])

    def invoke(self, function: str, event: dict[str, Any]) -> dict[str, Any]:
        answer = self.stack.boto3("lambda").invoke(FunctionName=function, Payload=json.dumps(event))
        assert "FunctionError" not in answer, self.stack.logs(function)
        return dict(json.loads(answer["Payload"].read()))

    def lock(self, key: str) -> Lock | None:
        return Locks(self.stack.boto3("dynamodb"), self.stack.outputs["LocksTable"]).get(key)

    def ended(self, key: str) -> Lock:
        """The record, once it is not in progress."""
        return eventually(lambda: (lock := self.lock(key)) and lock.status != "INPROGRESS" and lock)

    def item(self, key: str) -> dict[str, Any]:
        """The record as it is stored."""
        table, dynamodb = self.stack.outputs["LocksTable"], self.stack.boto3("dynamodb")
        return dict(dynamodb.get_item(TableName=table, Key={"lockToken": {"S": key}})["Item"])

    def put(self, item: dict[str, Any]) -> None:
        self.stack.boto3("dynamodb").put_item(TableName=self.stack.outputs["LocksTable"], Item=item)

    def cancel(self, execution_arn: str) -> None:
        """Stop an execution, so that its lock is settled at once."""
        self.stack.boto3("stepfunctions").stop_execution(
            executionArn=execution_arn, error=CANCELLED, cause="ann: wrong order"
        )


@pytest.fixture(scope="module")
def shop(parts: Parts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """The application as the page makes it; its second workflow is open for HTTP, too."""
    template = write(tmp_path_factory.mktemp("two") / "shop", "shop", WORK, handed=HTTP)
    parameters = {"WorkTimeoutSeconds": str(WORK_TIMEOUT_SECONDS)}
    options = parts.options("shop")
    with LocalStack.from_template(template, name="shop", parameters=parameters, **options) as stack:
        yield Shop(stack)


@pytest.fixture
def held(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """A refund whose work waits until the test is over."""
    with (tmp_path / "gate").open("w") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        yield {"amount": 7, "begun": str(tmp_path / "begun"), "gate": gate.name}


@pytest.fixture
def run(shop: Shop, tmp_path: Path) -> Run:
    """Run a command, which finds the application's stack."""
    write_facts(shop.stack.facts(), tmp_path)
    return functools.partial(run_here, tmp_path)


def is_of(workflow: dict[str, str], lock: Lock) -> bool:
    """Whether a lock was taken by an execution of this workflow."""
    return lock.locked_by.startswith(
        workflow["stateMachineArn"].replace(":stateMachine:", ":execution:") + ":"
    )


def test_each_queue_leads_to_its_own_workflow(shop: Shop):
    """With a key of its own, and its own function's result."""
    order = shop.send(shop.orders, {"orderId": "o-1", "amount": 5})
    refund = shop.send(shop.refunds, {"amount": 5})

    first, second = shop.ended(f"shop-run-once/{order}"), shop.ended(f"r/{refund}")

    assert ("COMPLETED", "COMPLETED") == (first.status, second.status)
    assert ("o-1", {"refunded": 5}) == (
        json.loads(first.result or "")["orderId"],
        json.loads(second.result or ""),
    )
    assert (True, True) == (is_of(shop.orders, first), is_of(shop.refunds, second))


def test_a_dead_execution_of_the_second_is_settled_by_the_rule_or_else_by_the_monitor(
    shop: Shop, held: dict[str, Any]
):
    """Both are the installation's, and may look at the second machine's executions."""
    key = f"r/{shop.send(shop.refunds, held)}"
    eventually(Path(held["begun"]).exists)
    open_record = shop.item(key)
    assert is_of(shop.refunds, Lock.from_item(open_record))
    assert {"N": str(WORK_TIMEOUT_SECONDS)} == open_record["workTimeoutSeconds"]
    shop.cancel(open_record["lockedBy"]["S"])
    assert ("FAILED", ["close_execution"]) == outcome(shop.ended(key))

    shop.put(open_record | {"created": {"S": "2020-01-01T00:00:00.000Z"}})  # as if no event had come
    told = shop.invoke(shop.stack.outputs["FindOverdueFunction"], {})

    assert (0, 1) == (told["skipped"], told["repairs"])
    assert ("FAILED", ["find_overdue"]) == outcome(shop.ended(key))


def test_a_client_of_the_second_needs_nothing_but_the_outputs(shop: Shop):
    """The Output made by CloudFormation's functions is what the client reads."""
    client = shop.stack.client(machine="shop-refunds")

    client.start("refund-1", {"amount": 9})

    done = client.wait("refund-1", timeout_seconds=PATIENCE_SECONDS)
    assert ("r/refund-1", {"refunded": 9}) == (done.lock_token, done.result)


def test_an_execution_of_the_second_that_was_started_by_hand_is_settled_by_the_rule(
    shop: Shop, held: dict[str, Any]
):
    """Its input has no key, and only its own stack knows the rules for one."""
    name = f"by-hand-{uuid.uuid4().hex[:8]}"
    arn = shop.stack.boto3("stepfunctions").start_execution(
        stateMachineArn=shop.refunds["stateMachineArn"], name=name, input=json.dumps({"payload": held})
    )["executionArn"]
    eventually(Path(held["begun"]).exists)

    shop.cancel(arn)

    assert ("FAILED", ["close_execution"]) == outcome(shop.ended(f"r/{name}"))


def test_the_second_has_events_and_http_of_its_own(shop: Shop):
    """The first has no HTTP API, and no request of the second's."""
    bus = {"id": uuid.uuid4().hex, "time": "2026-01-31T12:00:00Z", "source": "shop", "detail-type": "Refund"}
    shop.invoke(shop.refunds["startFromEventFunction"], bus | {"detail": {"amount": 3}})
    address = urlsplit(shop.refunds["requestsUrl"])
    connection = HTTPConnection(address.netloc)
    headers = {"Content-Type": "application/json", "Idempotency-Key": '"h-1"', "Prefer": "wait=20"}
    connection.request("POST", address.path, json.dumps({"amount": 4}), headers)
    with connection.getresponse() as answer:
        over_http = json.load(answer)
    connection.close()

    assert {"refunded": 4} == over_http["result"]
    assert is_of(shop.refunds, shop.ended(f"r/{bus['id']}"))
    assert "" == shop.orders["requestsUrl"]


def test_clients_and_commands_find_the_second_by_its_output(shop: Shop, run: Run):
    """What its queue has started, for its client as well, and what its queue could not start."""
    sent = shop.send(shop.refunds, {"amount": 6})
    shop.ended(f"r/{sent}")
    client = shop.stack.client(machine="shop-refunds")
    assert client.start(sent, {"amount": 6}).duplicate
    listed = run("requests", "list", *AT_REFUNDS, "--since", "1h", "--limit", "10000")[1]["requests"]
    assert [("COMPLETED", "shop-refunds")] == [
        (one["status"], one["machine"]) for one in listed if one["requestId"] == sent
    ]
    assert {"refunded": 6} == client.result(sent) == run("status", sent)[1]["result"]
    assert "completed" == run("show", sent)[1]["diagnosis"]

    url = shop.refunds["requestsQueueUrl"]
    bad = shop.stack.boto3("sqs").send_message(QueueUrl=url, MessageBody="refund it")["MessageId"]
    letter = eventually(
        lambda: [
            one for one in run("letters", "list", *AT_REFUNDS)[1]["letters"] if one["source"].endswith(bad)
        ]
    )
    assert ["queue of shop-refunds"] == [one["queue"] for one in letter]
    assert [] == run("letters", "list", "--machine", "shop-run-once")[1]["letters"]


def outcome(lock: Lock) -> tuple[str, list[str]]:
    """What became of it, and who wrote that."""
    return lock.status, [one.by for one in lock.interventions]
