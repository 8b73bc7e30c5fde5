"""The example of docs/ordered-updates.md: customers' records, kept from events of the bus in any order."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from steponce import updates
from steponce.cost import estimate
from steponce.local import LocalStack
from tests.bench import transitions
from tests.engines import Parts
from tests.patience import eventually
from tests.rules.documents import load_json
from tests.workflow.faults import Faults, lose_the_answer, refuse

EXAMPLE = Path(__file__).parents[2] / "examples" / "customer_record"
FORGET_AT = 4_102_444_800
"""The year 2100: DynamoDB Local deletes a tombstone whose time is over."""

Event = dict[str, Any]


@dataclass
class Shop:
    """The example's stack, and a customer of its own for each test."""

    stack: LocalStack
    faults: Faults
    customer: str = ""

    def event(self, version: int, **detail: Any) -> Event:
        """An event of the customer as EventBridge delivers it: a change, or with `forgetAt` a deletion."""
        example = "customer_deleted" if "forgetAt" in detail else "customer_changed"
        event: Event = json.loads((EXAMPLE / "events" / f"{example}.json").read_text())
        told = {"customerId": self.customer, "version": version}
        return event | {"id": str(uuid.uuid4()), "detail": event["detail"] | told | detail}

    def run(self, event: Event) -> dict[str, Any]:
        """What becomes of one delivery of an event."""
        states = self.stack.boto3("stepfunctions")
        arn = states.start_execution(
            stateMachineArn=self.stack.outputs["KeepCustomerStateMachineArn"],
            name=str(uuid.uuid4()),
            input=json.dumps(event),
        )["executionArn"]
        return eventually(lambda: self._ended(arn))

    def outcome(self, event: Event) -> str:
        """The same of a delivery that succeeds."""
        end = self.run(event)
        assert "SUCCEEDED" == end["status"], end
        return str(json.loads(end["output"])["outcome"])

    def put(self, *events: Event) -> None:
        """Put events on the bus, all at once. The bus gives them ids."""
        entries = [
            {
                "Source": event["source"],
                "DetailType": event["detail-type"],
                "Detail": json.dumps(event["detail"]),
            }
            for event in events
        ]
        answer = self.stack.boto3("events").put_events(Entries=entries)
        assert 0 == answer["FailedEntryCount"]

    def ends_of(self) -> list[str]:
        """How the executions of this customer's events ended, as far as they have."""
        states = self.stack.boto3("stepfunctions")
        arn = self.stack.outputs["KeepCustomerStateMachineArn"]
        listed = states.list_executions(stateMachineArn=arn)["executions"]
        found = [states.describe_execution(executionArn=one["executionArn"]) for one in listed]
        return [
            one["status"] for one in found if self.customer in one["input"] and one["status"] != "RUNNING"
        ]

    def record(self) -> dict[str, Any] | None:
        """The customer's record, or its tombstone, as DynamoDB has it."""
        found = self.dynamodb.get_item(
            TableName=self.table, Key={"customerId": {"S": self.customer}}, ConsistentRead=True
        )
        return found.get("Item")

    @property
    def table(self) -> str:
        return self.stack.outputs["CustomersTable"]

    @property
    def dynamodb(self) -> Any:
        return self.stack.boto3("dynamodb")

    def _ended(self, arn: str) -> dict[str, Any] | None:
        found = self.stack.boto3("stepfunctions").describe_execution(executionArn=arn)
        return found if found["status"] != "RUNNING" else None


@pytest.fixture(scope="module")
def _shop(parts: Parts) -> Iterator[Shop]:
    faults = Faults()
    options = parts.options("customers", {"dynamodb": faults.through})
    with LocalStack.from_template(EXAMPLE / "template.yaml", name="customers", **options) as stack:
        yield Shop(stack, faults)


@pytest.fixture
def shop(_shop: Shop) -> Iterator[Shop]:
    """The example, with a new customer."""
    _shop.customer = f"customer-{uuid.uuid4().hex[:8]}"
    _shop.faults.clear()
    yield _shop
    _shop.faults.clear()


def test_events_of_the_bus_in_any_order_end_with_the_newest(shop: Shop):
    """Each twice, as the bus may deliver it, and one of the writes loses its answer."""
    events = [shop.event(version, name=f"Ann {version}") for version in range(1, 5)] * 2
    random.shuffle(events)
    shop.faults.plan("Other", lose_the_answer, key=shop.customer)

    shop.put(*events)

    eventually(lambda: len(shop.ends_of()) == len(events))
    assert ["SUCCEEDED"] * len(events) == shop.ends_of()
    assert ({"N": "4"}, {"S": "Ann 4"}) == (shop.record()["asOf"], shop.record()["name"])


def test_an_older_event_is_stale(shop: Shop):
    """So is another one of the same version; the execution succeeds, since all is as it should be."""
    newer = shop.event(2, name="Ann B.")
    assert "applied" == shop.outcome(newer)
    assert "stale" == shop.outcome(shop.event(1, name="Ann A."))
    assert "stale" == shop.outcome(shop.event(2, name="Ann C."))
    assert {
        "customerId": {"S": shop.customer},
        "name": {"S": "Ann B."},
        "email": {"S": "ann@example.com"},
        "asOf": {"N": "2"},
        "writer": {"S": newer["id"]},
    } == shop.record()


@pytest.mark.parametrize("fault", [lose_the_answer, refuse])
@pytest.mark.parametrize("detail", [{}, {"forgetAt": FORGET_AT}], ids=["change", "deletion"])
def test_a_lost_answer_is_no_conflict(shop: Shop, fault: Any, detail: dict[str, Any]):
    """The state tries again, and its own write is not newer than itself."""
    event = shop.event(1, **detail)
    shop.faults.plan("Other", fault, key=shop.customer)
    assert "applied" == shop.outcome(event)
    assert 2 == sum(shop.customer in json.dumps(call.body) for call in shop.faults.calls)
    assert "applied" == shop.outcome(event)  # delivered again


def test_a_deletion_stays_one(shop: Shop):
    """An older change does not bring the customer back, and a newer one does, without the tombstone's end."""
    shop.outcome(shop.event(1))
    assert "applied" == shop.outcome(shop.event(3, forgetAt=FORGET_AT))
    assert {"customerId", "asOf", "writer", "deleted", "ttl"} == set(shop.record())
    assert "stale" == shop.outcome(shop.event(2))
    assert "stale" == shop.outcome(shop.event(2, forgetAt=FORGET_AT))
    assert "applied" == shop.outcome(shop.event(4))
    assert {"customerId", "name", "email", "asOf", "writer"} == set(shop.record())


@pytest.mark.parametrize(
    "spoil",
    [
        lambda event: event["detail"].pop("version"),
        lambda event: event["detail"].update(version="2"),
        lambda event: event["detail"].pop("customerId"),
        lambda event: event["detail"].update(email=None),
        lambda event: event.update({"detail-type": "Customer Deleted"}),
        lambda event: event.update({"detail-type": "Customer Moved"}),
        lambda event: event.update(detail="text"),
    ],
)
def test_an_event_that_cannot_be_read_fails_its_execution(shop: Shop, spoil: Any):
    """By a name of its own, and nothing is written."""
    event = shop.event(1)
    spoil(event)
    end = shop.run(event)
    assert ("FAILED", "EventUnreadable") == (end["status"], end["error"])
    assert None is shop.record()


def test_the_machine_and_python_write_the_same_records(shop: Shop):
    """Each is newer or older than the other, and reads the other's tombstones."""
    key = {"customerId": shop.customer}
    options: dict[str, Any] = {"writer": "script", "dynamodb": shop.dynamodb}
    assert updates.update_if_newer(shop.table, key, {"name": "Ann"}, as_of=1, **options)
    assert "stale" == shop.outcome(shop.event(0))
    assert "applied" == shop.outcome(shop.event(2, name="Ann B."))
    assert not updates.delete_if_newer(shop.table, key, as_of=1, **options)
    assert Decimal(2) == updates.read(shop.table, key, dynamodb=shop.dynamodb)["asOf"]
    shop.outcome(shop.event(3, forgetAt=FORGET_AT))
    assert None is updates.read(shop.table, key, dynamodb=shop.dynamodb)
    assert None is updates.update_if_newer(shop.table, key, {}, as_of=2, **options).item
    assert updates.delete_if_newer(shop.table, key, as_of=4, **options)
    assert "stale" == shop.outcome(shop.event(3))
    assert "applied" == shop.outcome(shop.event(5))
    assert "Ann" == updates.read(shop.table, key, dynamodb=shop.dynamodb)["name"]


def test_other_events_start_nothing(shop: Shop):
    """The rule picks its source and its kinds."""
    foreign = shop.event(9, name="foreign")
    shop.put({**foreign, "source": "shop.orders"}, {**foreign, "detail-type": "Customer Called"})
    shop.put(shop.event(1))
    eventually(lambda: shop.ends_of() == ["SUCCEEDED"])
    assert {"N": "1"} == shop.record()["asOf"]


@pytest.mark.parametrize(
    ("versions", "detail", "counts"),
    [
        ([1], {}, (3, 1)),
        ([1], {"forgetAt": FORGET_AT}, (3, 1)),
        ([2, 1], {}, (4, 1)),
        ([1], {"name": 1}, (3, 0)),
    ],
    ids=["updated", "deleted", "older", "unreadable"],
)
def test_an_event_costs_what_is_counted(
    shop: Shop, versions: list[int], detail: dict[str, Any], counts: tuple[int, int]
):
    """What `steponce cost` says of its path; the condition that is refused is a write, too."""
    sfn = shop.stack.boto3("stepfunctions")
    for version in versions:
        shop.faults.calls.clear()
        arn = shop.run(shop.event(version, **detail))["executionArn"]

    events = sfn.get_execution_history(executionArn=arn)["events"]
    states = tuple(
        event["stateEnteredEventDetails"]["name"] for event in events if "stateEnteredEventDetails" in event
    )
    definition = load_json(EXAMPLE / "statemachines" / "keep_customer.asl.json")
    (usage,) = [path.usage for path in estimate(definition).listed if path.states == states]

    assert counts == (usage.transitions, usage.writes)
    assert counts == (transitions([event["type"] for event in events]), len(shop.faults.calls))
