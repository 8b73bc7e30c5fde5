"""`make run`: the main job on the embedded stack, sent again in every way that goes wrong in life."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from rich.console import Console

from steponce import Client, PayloadMismatch, Receipt
from steponce.awaiting import AwaitingStep, AwaitingSteps
from steponce.links import Keys, sign
from steponce.local import LocalStack

ORDER = {"orderId": "1", "amount": 500, "card": "tok_visa"}

console = Console(highlight=False, soft_wrap=True)


class Tour:
    """Tells what it does, does it, and checks that it happened as told."""

    def __init__(self, stack: LocalStack) -> None:
        self.stack = stack
        self.client: Client = stack.client()
        self.wrong = 0

    def tell(self, what: str) -> None:
        console.print(f"\n[bold]{what}[/bold]")

    def check(self, what: str, holds: bool) -> None:
        console.print(f"  [{'green' if holds else 'red'}]{'ok' if holds else 'NO'}[/]  {what}")
        self.wrong += not holds

    def charges(self, lock_token: str) -> int:
        """How often the card provider was called for one key."""
        return int(
            self.stack.boto3("dynamodb").query(
                TableName=self.stack.outputs["ChargesTable"],
                KeyConditionExpression="lockToken = :key",
                ExpressionAttributeValues={":key": {"S": lock_token}},
                Select="COUNT",
            )["Count"]
        )

    def waiting_step(self, request_id: str) -> AwaitingStep:
        """The step that a request waits for, once it is on record."""
        steps = AwaitingSteps(self.stack.boto3("dynamodb"), self.stack.outputs["AwaitingStepsTable"])
        for _ in range(300):
            found = [step for step in steps.open() if step.request_id == request_id]
            if found:
                return found[0]
            time.sleep(0.1)
        raise TimeoutError(f"{request_id} has not come to wait.")

    def run(self, request_id: str, payload: dict[str, Any], **options: Any) -> Receipt:
        self.client.start(request_id, payload, **options)
        return self.client.wait(request_id, timeout_seconds=30)


def a_request_runs(tour: Tour) -> None:
    """A fresh request."""
    tour.tell("A request: charge 500 for order 1")
    first = tour.client.start("order-1", ORDER)
    tour.check(f"started, and not a duplicate: {first.execution_arn.rpartition(':')[2]}", not first.duplicate)
    done = tour.client.wait("order-1", timeout_seconds=30)
    tour.check(f"{done.status}: {done.result}", done.status == "COMPLETED")
    tour.check("the card was charged once", tour.charges(done.lock_token) == 1)


def the_same_again(tour: Tour) -> None:
    """The same id after completion."""
    tour.tell("The queue delivers it again; somebody clicks twice")
    again = tour.client.start("order-1", ORDER)
    tour.check(
        "a duplicate, answered from the record with the same result", again.duplicate and bool(again.result)
    )
    with ThreadPoolExecutor(20) as pool:
        receipts = list(pool.map(lambda _: tour.client.start("order-2", ORDER | {"orderId": "2"}), range(20)))
    done = tour.client.wait("order-2", timeout_seconds=30)
    tour.check("order 2, sent 20 times at once: one start", sum(not r.duplicate for r in receipts) == 1)
    tour.check("and one charge", tour.charges(done.lock_token) == 1)


def another_payload(tour: Tour) -> None:
    """The same id with another amount."""
    tour.tell("The same id comes with another amount")
    try:
        tour.client.start("order-1", ORDER | {"amount": 5000})
        tour.check("it should have been refused", False)
    except PayloadMismatch as refused:
        tour.check(f"refused: {refused}", True)


def the_same_key(tour: Tour) -> None:
    """Two ids that mean the same operation."""
    tour.tell("Two systems send the same operation under ids of their own, with one business key")
    first = tour.run("web-3", ORDER | {"orderId": "3"}, lock_token="acme/charge/o-3")  # noqa: S106 - a key
    second = tour.run("batch-3", ORDER | {"orderId": "3"}, lock_token="acme/charge/o-3")  # noqa: S106 - a key
    tour.check("both get the same result", first.result == second.result and second.duplicate)
    tour.check("and the card was charged once", tour.charges("acme/charge/o-3") == 1)


def errors(tour: Tour) -> None:
    """Three kinds of errors."""
    tour.tell("Errors are of three kinds")
    declined = tour.run("order-4", ORDER | {"orderId": "4", "card": "tok_declined"})
    again = tour.client.start("order-4", ORDER | {"orderId": "4", "card": "tok_declined"})
    tour.check(
        f"a final answer, replayed to everyone: {again.error}",
        declined.error == again.error == "CardDeclined",
    )
    unreachable = ORDER | {"orderId": "5", "card": "tok_unreachable"}
    first = tour.run("order-5", unreachable)
    second = tour.run("order-5", unreachable)
    tour.check(f"nothing happened, so the lock was released: {first.error}", first.error == "RetryLater")
    tour.check(
        f"and the next start is attempt {second.attempt}: {second.status}", second.status == "COMPLETED"
    )
    bug = tour.run("order-6", ORDER | {"orderId": "6", "card": "tok_bug"})
    tour.check(
        f"anything else waits for a person, on the open index: {bug.error}", bug.error == "ZeroDivisionError"
    )


def a_crash(tour: Tour) -> None:
    """The execution is stopped after the charge, before it is written down."""
    tour.tell("The process dies right after the charge")
    killed = tour.run("order-7", ORDER | {"orderId": "7", "card": "tok_killed"})
    again = tour.client.start("order-7", ORDER | {"orderId": "7", "card": "tok_killed"})
    tour.check(
        f"nobody knows what happened, and nobody runs it again: {again.error}", again.status == "FAILED"
    )
    tour.check("charged once", tour.charges(killed.lock_token) == 1)


def a_hand_started_one(tour: Tour) -> None:
    """An execution started without the client."""
    tour.tell("Somebody starts an execution by hand, with nothing but a payload")
    tour.stack.boto3("stepfunctions").start_execution(
        stateMachineArn=tour.client.state_machine_arn,
        name="order-8",
        input=Path("events/hand_started.json").read_text(encoding="utf-8"),
    )
    done = tour.client.wait("order-8", timeout_seconds=30)
    tour.check(f"it becomes a request like any other: {done.status}", done.status == "COMPLETED")


def a_callback(tour: Tour) -> None:
    """A step that waits for the outside."""
    tour.tell("The provider confirms a charge later, by a signed link, and sends it twice")
    tour.client.start("order-9", ORDER | {"orderId": "9", "confirm": True})
    step = tour.waiting_step("order-9")
    tour.check(f"the order waits, its step is on record: {step.id[:12]}…", step.status == "PENDING")
    keys = Keys(tour.stack.boto3("secretsmanager"), tour.stack.outputs["CallbackKey"])
    link = tour.stack.outputs["CallbacksUrl"] + sign(keys, step.id, step.expires_at, ["failure", "success"])
    yes, no = (
        {"outcome": "success", "output": {"confirmed": True}},
        {"outcome": "failure", "error": "Refused"},
    )
    tour.check(f"the answer arrives: {(first := post(link, yes))}", first == "200 accepted")
    tour.check(f"the same answer again: {(again := post(link, yes))}", again == "200 duplicate")
    tour.check(f"another answer: {(other := post(link, no))}", other == "409 conflict")
    tour.check(f"a forged link: {(forged := post(link + '0', yes))}", forged == "403 Forbidden")
    done = tour.client.wait("order-9", timeout_seconds=30)
    tour.check(f"{done.status}: {done.result}", done.result["confirmation"] == yes["output"])


def post(link: str, answer: dict[str, Any]) -> str:
    """Send an answer as a provider would; status and verdict."""
    headers = {"Content-Type": "application/json"}
    request = Request(link, json.dumps(answer).encode(), headers)  # noqa: S310 - our own address
    try:
        with urlopen(request, timeout=30) as told:  # noqa: S310 - our own address
            return f"{told.status} {json.load(told)['verdict']}"
    except HTTPError as refused:
        said = json.load(refused)
        return f"{refused.code} {said.get('verdict', said.get('error'))}"


CHAPTERS: Iterable[Callable[[Tour], None]] = (
    a_request_runs,
    the_same_again,
    another_payload,
    the_same_key,
    errors,
    a_crash,
    a_hand_started_one,
    a_callback,
)


def main() -> int:
    """Start the stack, go through the chapters, and answer 0 if all of it happened as told."""
    console.print(
        "[bold]steponce[/bold]: a request runs at most once, and everyone who asks gets the same answer."
    )
    begin = time.monotonic()
    with LocalStack.from_template("template.yaml") as stack:
        console.print(
            f"The stack of template.yaml is up after {time.monotonic() - begin:.1f} s, on 127.0.0.1 only."
        )
        if "ChargesTable" not in stack.outputs:
            console.print(
                "This tells the story of the sample, charge_card. Run your own work with: steponce up"
            )
            return 2
        tour = Tour(stack)
        for chapter in CHAPTERS:
            chapter(tour)
    if tour.wrong:
        console.print(f"\n[red]{tour.wrong} of these did not happen as told.[/red]")
        return 1
    console.print(
        "\nAll of it happened as told. Now run it yourself:\n"
        "  .venv/bin/steponce up\n"
        "and in another shell\n"
        "  .venv/bin/steponce start order-1 events/start_order.json --local --wait\n"
        "  .venv/bin/steponce show order-1 --local"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
