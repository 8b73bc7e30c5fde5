"""`make run`: one request on the embedded stack, sent again in every way that goes wrong in life."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from rich.console import Console

from steponce import Client, PayloadMismatch, Receipt, RequestNotFound, Unsettled
from steponce.callbacks.awaiting import AwaitingSteps
from steponce.callbacks.links import Keys, sign
from steponce.callbacks.step import AwaitingStep
from steponce.local import LocalStack
from steponce.program import program

ORDER = {"orderId": "1", "amount": 500, "card": "tok_visa"}

console = Console(highlight=False, soft_wrap=True)

PARAMETERS = {"QueueRequestIdPath": "attributes.requestId || messageId", "ResendBaseSeconds": "1"}
"""So that the story tells the ids of its messages, and need not wait long."""


class Tour:
    """Tells what it does, does it, and checks that it happened as described."""

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

    def send(self, body: str, request_id: str) -> None:
        """Put a message into the queue."""
        self.stack.boto3("sqs").send_message(
            QueueUrl=self.stack.outputs["RequestsQueueUrl"],
            MessageBody=body,
            MessageAttributes=named(request_id),
        )

    def publish(self, body: str, request_id: str) -> None:
        """Publish a notification to the topic."""
        self.stack.boto3("sns").publish(
            TopicArn=self.stack.outputs["RequestsTopicArn"],
            Message=body,
            MessageAttributes=named(request_id),
        )

    def dead_letter(self) -> dict[str, Any]:
        """The attributes of a message that could not become a request."""
        for _ in range(30):
            got = self.stack.boto3("sqs").receive_message(
                QueueUrl=self.stack.outputs["RequestsDeadLetterQueueUrl"],
                MessageAttributeNames=["All"],
                WaitTimeSeconds=1,
            )
            if "Messages" in got:
                return dict(got["Messages"][0]["MessageAttributes"])
        raise TimeoutError("Nothing has come to the dead-letter queue.")

    def finished(self, request_id: str) -> Receipt:
        """A request that somebody else starts, once it has its answer."""
        for _ in range(300):
            with suppress(RequestNotFound, Unsettled):
                receipt = self.client.status(request_id)
                if receipt.status != "RUNNING" and receipt.error != "RetryLater":
                    return receipt
            time.sleep(0.1)
        raise TimeoutError(f"{request_id} has not come to an end.")

    def run(self, request_id: str, payload: dict[str, Any], **options: Any) -> Receipt:
        self.client.start(request_id, payload, **options)
        return self.client.wait(request_id, payload=payload, timeout_seconds=30)


def named(request_id: str) -> dict[str, Any]:
    """The attribute of a message that says which request it is."""
    return {"requestId": {"DataType": "String", "StringValue": request_id}}


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
    first = tour.run("web-3", ORDER | {"orderId": "3"}, lock_token="acme/charge/o-3")
    second = tour.run("batch-3", ORDER | {"orderId": "3"}, lock_token="acme/charge/o-3")
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
        with urlopen(request, timeout=30) as response:  # noqa: S310 - our own address
            return f"{response.status} {json.load(response)['verdict']}"
    except HTTPError as refused:
        said = json.load(refused)
        return f"{refused.code} {said.get('verdict', said.get('error'))}"


def messages(tour: Tour) -> None:
    """The queue as a door, with everything that queues do."""
    tour.tell("Orders come by a queue, which delivers twice, and by a topic")
    order = json.dumps(ORDER | {"orderId": "10"})
    for _ in range(3):
        tour.send(order, "message-10")
    tour.publish(order, "message-10")
    done = tour.finished("message-10")
    tour.check(f"sent four times under one id: {done.status}", done.status == "COMPLETED")
    tour.check("and charged once", tour.charges(done.lock_token) == 1)
    tour.send(json.dumps(ORDER | {"orderId": "11", "card": "tok_unreachable"}), "message-11")
    late = tour.finished("message-11")
    tour.check(f"the provider could not be reached; the message came back: {late.status}", late.attempt == 2)
    tour.send("no order at all", "message-12")
    reason = tour.dead_letter()["steponceReason"]["StringValue"]
    tour.check(f"what is no request lies in the dead-letter queue: {reason.partition(':')[0]}", bool(reason))


def a_stopped_one(tour: Tour) -> None:
    """Somebody stops an execution; the rule settles its lock."""
    tour.tell("Somebody stops an execution that waits for its confirmation")
    started = tour.client.start("order-13", ORDER | {"orderId": "13", "confirm": True})
    tour.waiting_step("order-13")
    tour.stack.boto3("stepfunctions").stop_execution(
        executionArn=started.execution_arn, error="Cancelled", cause="ann: the customer called"
    )
    settled = tour.finished("order-13")
    tour.check(f"an event has its lock settled: {settled.error}, for a person", settled.error == "Cancelled")
    lock = tour.client.machine.locks.get(settled.lock_token)
    kept = lock is not None and "ann: the customer called" in lock.interventions[-1].why
    tour.check("the record keeps who stopped it and why, for operators", kept)
    tour.check("callers of the request are not told that", "ann" not in str(settled.cause))


CHAPTERS: Iterable[Callable[[Tour], None]] = (
    a_request_runs,
    the_same_again,
    another_payload,
    the_same_key,
    errors,
    a_crash,
    a_hand_started_one,
    a_callback,
    messages,
    a_stopped_one,
)


def main() -> int:
    """Start the stack, go through the chapters, and answer 0 if all of it happened as described."""
    console.print(
        "[bold]steponce[/bold]: a request runs at most once, and everyone who asks gets the same answer."
    )
    begin = time.monotonic()
    with LocalStack.from_template("template.yaml", parameters=PARAMETERS) as stack:
        console.print(
            f"The stack of template.yaml is up after {time.monotonic() - begin:.1f} s, on 127.0.0.1 only."
        )
        if "ChargesTable" not in stack.outputs:
            console.print(
                f"This tells the story of the sample, charge_card. Run your own work with: {program()} up"
            )
            return 2
        tour = Tour(stack)
        for chapter in CHAPTERS:
            chapter(tour)
    if tour.wrong:
        console.print(f"\n[red]{tour.wrong} of these did not happen as described.[/red]")
        return 1
    console.print(
        "\nAll of it happened as described. Now run it yourself:\n"
        f"  {program()} up\n"
        "and in another shell\n"
        f"  {program()} start order-1 events/start_order.json --local --wait\n"
        f"  {program()} show order-1 --local"
    )
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        console.print("\nStopped, and the stack with it.")
        sys.exit(130)
