"""
`make bench`: what each path costs, in one run on the embedded stack.

Billable transitions come from the execution's history; DynamoDB calls are counted by a proxy in front of the
tables, which the workflow and the functions use and the measuring client does not. Times are medians, to be
read as ratios within one run.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

from rich.console import Console
from rich.table import Table

from steponce import Client, PayloadMismatch
from steponce.local import LocalStack
from tests import crowd
from tests.unit.doors_world import sqs_record
from tests.workflow.faults import Answer, Call, Faults

ROUNDS = 30
ORDER = {"orderId": "1", "amount": 500, "card": "tok_visa"}


class Counted(Faults):
    """A proxy that counts what reaches the tables, and what they refuse."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def state_of(self, target: str, path: str, body: dict[str, Any]) -> str:  # noqa: ARG002 - as overridden
        return f"{target.rpartition('.')[2]} {body.get('TableName', '').rpartition('-')[2]}"

    def take(self, call: Call) -> Callable[..., Answer]:
        def count(_call: Call, forward: Callable[[], Answer]) -> Answer:
            answer = forward()
            self.counts[call.state if answer.status == 200 else f"{call.state} refused"] += 1
            return answer

        return count


class Bench:
    def __init__(self, stack: LocalStack, tables: LocalStack, counted: Counted) -> None:
        direct = dict(stack.endpoints) | {"dynamodb": tables.endpoints["dynamodb"]}
        self.client = Client.from_outputs(stack.outputs, session=stack.session(), endpoints=direct)
        self.sfn = stack.boto3("stepfunctions")
        self.functions, self.queue_door = stack.boto3("lambda"), f"{stack.name}-StartFromQueueFunction"
        self.dynamodb, self.table = tables.boto3("dynamodb"), stack.outputs["LocksTable"]
        self.counted = counted
        self.ids = itertools.count(1)
        self.rows: list[list[str]] = []
        self.machine = self.bare_machine()

    def new_id(self) -> str:
        return f"bench-{next(self.ids)}"

    def bare_machine(self) -> str:
        """A machine with the task of the work and nothing else, whose fence is open to it."""
        here = self.sfn.describe_state_machine(stateMachineArn=self.client.state_machine_arn)
        work = json.loads(here["definition"])["States"]["DoWork"]
        del work["Next"], work["Catch"], work["TimeoutSecondsPath"]
        work |= {"End": True, "TimeoutSeconds": 60}
        definition = {"StartAt": "DoWork", "States": {"DoWork": work}}
        return str(
            self.sfn.create_state_machine(
                name="bare", definition=json.dumps(definition), roleArn=here["roleArn"]
            )["stateMachineArn"]
        )

    def closed(self, arn: str) -> dict[str, Any]:
        while (execution := self.sfn.describe_execution(executionArn=arn))["status"] == "RUNNING":
            time.sleep(0.01)
        return dict(execution)

    def transitions(self, arn: str) -> int:
        """States entered and tries repeated: what AWS bills."""
        events = self.sfn.get_execution_history(executionArn=arn, maxResults=1000)["events"]
        entered = sum(event["type"].endswith("StateEntered") for event in events)
        tries = sum(event["type"] in ("TaskScheduled", "LambdaFunctionScheduled") for event in events)
        tasks = sum(event["type"] == "TaskStateEntered" for event in events)
        return entered + tries - tasks

    def measure(self, name: str, prepare: Callable[[], Any], once: Callable[[Any], str | None]) -> float:
        """Run one path; `once` answers with the execution that it started, if it started one."""
        times, transitions, counts = [], 0, Counter[str]()
        for _ in range(ROUNDS):
            prepared = prepare()
            self.counted.counts.clear()
            begin = time.perf_counter()
            arn = once(prepared)
            elapsed = time.perf_counter() - begin
            if arn:
                execution = self.closed(arn)
                elapsed = (execution["stopDate"] - execution["startDate"]).total_seconds()
                transitions = self.transitions(arn)
            times.append(elapsed * 1000)
            counts = Counter(self.counted.counts)
        median = statistics.median(times)
        work = "1" if counts["PutItem ChargesTable"] else "-"
        self.rows.append(
            [
                name,
                str(transitions),
                str(counts["UpdateItem LocksTable"]),
                str(counts["UpdateItem LocksTable refused"]),
                str(counts["GetItem LocksTable"]),
                work,
                f"{median:.0f}" if arn else f"{median:.1f}",
            ]
        )
        return median

    def bare(self) -> float:
        def prepare() -> dict[str, Any]:
            done = self.fresh_request()
            lock = self.client.machine.locks.get(done)
            assert lock is not None
            self.dynamodb.update_item(
                TableName=self.table,
                Key={"lockToken": {"S": done}},
                UpdateExpression="SET #s = :s",
                ExpressionAttributeNames={"#s": "status"},
                ExpressionAttributeValues={":s": {"S": "INPROGRESS"}},
            )
            return {
                "lockToken": done,
                "callId": lock.call_id,
                "held": {"attempt": lock.attempt},
                "payload": ORDER,
            }

        def once(state: dict[str, Any]) -> str:
            return str(
                self.sfn.start_execution(
                    stateMachineArn=self.machine, name=self.new_id(), input=json.dumps(state)
                )["executionArn"]
            )

        return self.measure("the task of the work, alone", prepare, once)

    def fresh_request(self) -> str:
        """Run one request to its end; its lock token."""
        request = self.new_id()
        receipt = self.client.start(request, ORDER)
        self.closed(receipt.execution_arn)
        return receipt.lock_token

    def fresh(self) -> float:
        return self.measure(
            "a fresh request", self.new_id, lambda request: self.client.start(request, ORDER).execution_arn
        )

    def duplicate(self) -> float:
        def prepare() -> str:
            return self.fresh_request().rpartition("/")[2]

        return self.measure(
            "a duplicate by id", prepare, lambda request: self.client.start(request, ORDER) and None
        )

    def duplicate_message(self) -> float:
        def prepare() -> str:
            return self.fresh_request().rpartition("/")[2]

        return self.measure("a duplicate in the queue", prepare, lambda request: self.send([request]))

    def send(self, requests: list[str]) -> None:
        """Let the function behind the queue start a batch of messages."""
        records = [sqs_record(json.dumps(ORDER), request) for request in requests]
        answer = self.functions.invoke(FunctionName=self.queue_door, Payload=json.dumps({"Records": records}))
        assert json.loads(answer["Payload"].read()) == {"batchItemFailures": []}

    def starts_a_second(self, start: Callable[[list[str]], None]) -> float:
        """How fast ten requests at a time are started, while no others run."""
        rates = []
        for _ in range(ROUNDS // 3):
            requests = [self.new_id() for _ in range(10)]
            begin = time.perf_counter()
            start(requests)
            rates.append(len(requests) / (time.perf_counter() - begin))
            for request in requests:
                self.closed(self.client.machine.execution_arn(request, 1))
        return statistics.median(rates)

    def start_alone(self, requests: list[str]) -> None:
        for request in requests:
            self.client.start(request, ORDER)

    def replay(self) -> float:
        return self.measure(
            "a replay by key",
            self.fresh_request,
            lambda key: self.client.start(self.new_id(), ORDER, lock_token=key).execution_arn,
        )

    def mismatch_by_id(self) -> float:
        def once(request: str) -> None:
            try:
                self.client.start(request, ORDER | {"amount": 501})
            except PayloadMismatch:
                return
            raise AssertionError("it was not refused")

        return self.measure(
            "another payload under an id", lambda: self.fresh_request().rpartition("/")[2], once
        )

    def mismatch_by_key(self) -> float:
        other = ORDER | {"amount": 501}
        return self.measure(
            "another payload under a key",
            self.fresh_request,
            lambda key: self.client.start(self.new_id(), other, lock_token=key).execution_arn,
        )

    def own_code(self) -> float:
        """What `start` costs beside the calls it makes, in milliseconds."""
        client = Client(self.client.state_machine_arn, "t", rules=self.client.rules, session=Mock())
        times = []
        for _ in range(ROUNDS * 10):
            begin = time.perf_counter()
            client.start("order-1", ORDER)
            times.append((time.perf_counter() - begin) * 1000)
        return statistics.median(times)


def memory_mb() -> float:
    """Proportional memory of everything that this process started (Linux)."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
    family, grown = {os.getpid()}, True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in family} - family
        family, grown = family | more, bool(more)
    total = 0
    for pid in family - {os.getpid()}:
        try:
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            continue
        total += next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
    return total / 1024


def monitor_round(number: int) -> str:
    """One round of the monitor over so many open locks, whose owners all run."""
    with LocalStack.from_template("template.yaml", name=f"crowd-{number}", deliveries=False) as stack:
        crowd.open_locks(stack, number)
        tally, seconds, grown = crowd.one_round(stack)
    assert tally.missing_tasks == number // 2
    assert seconds < crowd.ALLOWED_SECONDS
    assert grown < crowd.ALLOWED_MEGABYTES
    return f"The monitor, {number:,} open locks: a round in {seconds:.1f} s, {grown:.1f} MB more memory."


def main() -> None:
    console = Console()
    begin = time.perf_counter()
    with LocalStack.from_template("template.yaml", name="plain") as plain:
        up = time.perf_counter() - begin
        plain.client().start("one", ORDER)
        plain.client().wait("one")
        memory = memory_mb()
    counted = Counted()
    with (
        LocalStack.from_template("template.yaml", name="tables", deliveries=False) as tables,
        LocalStack.from_template(
            "template.yaml",
            endpoints={"dynamodb": counted.through(tables.endpoints["dynamodb"])},
            parameters={"StartsPerSecond": "1000000"},
            deliveries=False,
        ) as stack,
    ):
        bench = Bench(stack, tables, counted)
        bare = bench.bare()
        fresh = bench.fresh()
        duplicate = bench.duplicate()
        duplicate_message = bench.duplicate_message()
        bench.replay()
        bench.mismatch_by_id()
        bench.mismatch_by_key()
        own = bench.own_code()
        by_queue, alone = bench.starts_a_second(bench.send), bench.starts_a_second(bench.start_alone)
    table = Table(
        title=f"medians of {ROUNDS}, one run on the embedded stack; the client's own reads are not counted"
    )
    for column in ("path", "transitions", "writes", "refused", "reads", "work", "ms"):
        table.add_column(column, justify="left" if column == "path" else "right")
    for row in bench.rows:
        table.add_row(*row)
    console.print(table)
    console.print(f"A fresh request takes {fresh / bare:.1f} times as long as its task alone.")
    console.print(
        f"The function behind the queue starts {by_queue:.0f} requests a second in batches of ten, "
        f"{by_queue / alone:.1f} times as many as start alone, one by one ({alone:.0f}); "
        f"a duplicate takes {duplicate_message / duplicate:.1f} times as long there."
    )
    console.print(f"The client's own code: {own:.2f} ms a call of start.")
    console.print(f"The stack: up in {up:.1f} s, {memory:.0f} MB (proportional).")
    for number in (1_000, 10_000):
        console.print(monitor_round(number))


if __name__ == "__main__":
    main()
