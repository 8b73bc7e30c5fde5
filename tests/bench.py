"""
`make bench`: what each path costs, in one run on the embedded stack.

Billable transitions come from the execution's history; DynamoDB calls are counted by a proxy in front of the
tables, which the workflow and the functions use and the measuring client does not. Times are medians, to be
read as ratios, within one run or between two on one machine:

    python -m tests.bench --json before.json
    python -m tests.bench --json after.json
    python -m tests.bench --compare before.json after.json
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest.mock import Mock

from aws_lambda_powertools.utilities.idempotency import (
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
    idempotent_function,
)
from rich.console import Console
from rich.table import Table

from steponce import Client, Guard, PayloadMismatch
from steponce.aws.clients import CONFIG
from steponce.local import LocalStack
from tests import crowd
from tests.counting.units import transitions
from tests.unit.triggers.world import sqs_record
from tests.workflow.faults import Answer, Call, Faults

ROUNDS = 30
SECONDS = 6.0
"""A path is measured ROUNDS times, but on a slow machine only for so long, and three times in any case."""

CROWDS = (1_000, 5_000)
COUNTS = ("transitions", "writes", "refused", "reads", "work")
ORDER = {"orderId": "1", "amount": 500, "card": "tok_visa"}


@dataclass(frozen=True)
class Measure:
    """A number, and for a path of the workflow what was counted on it."""

    name: str
    value: float
    unit: str
    transitions: int | None = None
    writes: int | None = None
    refused: int | None = None
    reads: int | None = None
    work: int | None = None


def rounds() -> Iterator[None]:
    """So many times as a path is measured."""
    end = time.monotonic() + SECONDS
    for number in range(ROUNDS):
        if number >= 3 and time.monotonic() > end:
            return
        yield


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
        self.functions, self.queue_function = (
            stack.boto3("lambda"),
            f"{stack.name}-Requests-StartFromQueueFunction",
        )
        self.dynamodb, self.table = tables.boto3("dynamodb"), stack.outputs["LocksTable"]
        self.tables, self.counted = tables, counted
        self.ids = itertools.count(1)
        self.measures: list[Measure] = []
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
        """Of one execution."""
        events = self.sfn.get_execution_history(executionArn=arn, maxResults=1000)["events"]
        return transitions([event["type"] for event in events])

    def measure(self, name: str, prepare: Callable[[], Any], once: Callable[[Any], str | None]) -> None:
        """Run one path; `once` answers with the execution that it started, if it started one."""
        times, transitions, counts = [], 0, Counter[str]()
        for _ in rounds():
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
        self.measures.append(
            Measure(
                name,
                statistics.median(times),
                "ms",
                transitions=transitions,
                writes=counts["UpdateItem LocksTable"],
                refused=counts["UpdateItem LocksTable refused"],
                reads=counts["GetItem LocksTable"],
                work=counts["PutItem ChargesTable"],
            )
        )

    def bare(self) -> None:
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
                "requestId": done.rpartition("/")[2],
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

        self.measure("the task of the work, alone", prepare, once)

    def fresh_request(self) -> str:
        """Run one request to its end; its lock token."""
        request = self.new_id()
        receipt = self.client.start(request, ORDER)
        self.closed(receipt.execution_arn)
        return receipt.lock_token

    def fresh(self) -> None:
        self.measure(
            "a fresh request", self.new_id, lambda request: self.client.start(request, ORDER).execution_arn
        )

    def duplicate(self) -> None:
        def prepare() -> str:
            return self.fresh_request().rpartition("/")[2]

        self.measure("a duplicate by id", prepare, lambda request: self.client.start(request, ORDER) and None)

    def duplicate_message(self) -> None:
        def prepare() -> str:
            return self.fresh_request().rpartition("/")[2]

        self.measure("a duplicate in the queue", prepare, lambda request: self.send([request]))

    def send(self, requests: list[str]) -> None:
        """Let the function behind the queue start a batch of messages."""
        records = [sqs_record(json.dumps(ORDER), request) for request in requests]
        answer = self.functions.invoke(
            FunctionName=self.queue_function, Payload=json.dumps({"Records": records})
        )
        assert json.loads(answer["Payload"].read()) == {"batchItemFailures": []}

    def starts_a_second(self, name: str, start: Callable[[list[str]], None]) -> None:
        """How fast ten requests at a time are started, while no others run."""
        rates = []
        for _ in itertools.islice(rounds(), ROUNDS // 3):
            requests = [self.new_id() for _ in range(10)]
            begin = time.perf_counter()
            start(requests)
            rates.append(len(requests) / (time.perf_counter() - begin))
            for request in requests:
                self.closed(self.client.machine.execution_arn(request, 1))
        self.measures.append(Measure(name, statistics.median(rates), "a second"))

    def start_alone(self, requests: list[str]) -> None:
        for request in requests:
            self.client.start(request, ORDER)

    def replay(self) -> None:
        self.measure(
            "a replay by key",
            self.fresh_request,
            lambda key: self.client.start(self.new_id(), ORDER, lock_token=key).execution_arn,
        )

    def mismatch_by_id(self) -> None:
        def once(request: str) -> None:
            try:
                self.client.start(request, ORDER | {"amount": 501})
            except PayloadMismatch:
                return
            raise AssertionError("it was not refused")

        self.measure("another payload under an id", lambda: self.fresh_request().rpartition("/")[2], once)

    def mismatch_by_key(self) -> None:
        other = ORDER | {"amount": 501}
        self.measure(
            "another payload under a key",
            self.fresh_request,
            lambda key: self.client.start(self.new_id(), other, lock_token=key).execution_arn,
        )

    def own_code(self) -> None:
        """What `start` costs beside the calls it makes, in milliseconds."""
        client = Client(self.client.state_machine_arn, "t", rules=self.client.rules, session=Mock())
        times = []
        for _ in range(ROUNDS * 10):
            begin = time.perf_counter()
            client.start("order-1", ORDER)
            times.append((time.perf_counter() - begin) * 1000)
        self.measures.append(Measure("the client's own code in a start", statistics.median(times), "ms"))


def plain_python(tables: LocalStack, counted: Counted) -> list[Measure]:
    """A guarded function beside one under Powertools' decorator, on one table, in turn."""
    url, table = counted.through(tables.endpoints["dynamodb"]), tables.outputs["LocksTable"]
    guard = Guard(table, session=tables.session(), endpoints={"dynamodb": url})
    layer = DynamoDBPersistenceLayer(
        table,
        key_attr="lockToken",
        boto3_client=tables.session().client("dynamodb", endpoint_url=url, config=CONFIG),
    )
    config = IdempotencyConfig(event_key_jmespath="orderId", payload_validation_jmespath="amount")

    def work(order: dict[str, Any]) -> dict[str, Any]:
        return {"chargeId": f"ch_{order['orderId']}"}

    decorated = idempotent_function(
        work, data_keyword_argument="order", persistence_store=layer, config=config
    )
    key, payload = "order.orderId", "order.amount"
    guarded = guard.idempotent(lock_token=key, payload=payload)(work)
    calls = {"a guard": guarded, "Powertools": decorated}
    kinds = [f"{who}, {what}" for what in ("fresh", "replay") for who in calls]
    times: dict[str, list[float]] = {kind: [] for kind in kinds}
    counts: dict[str, Counter[str]] = {}
    for number, _ in enumerate(itertools.chain(rounds(), rounds())):
        order = ORDER | {"orderId": f"plain-{number}"}
        for kind in kinds:
            counted.counts.clear()
            begin = time.perf_counter()
            calls[kind.partition(",")[0]](order=order)
            times[kind].append((time.perf_counter() - begin) * 1000)
            counts[kind] = Counter(counted.counts)
    return [
        Measure(
            kind,
            statistics.median(times[kind]),
            "ms",
            writes=counts[kind]["UpdateItem LocksTable"] + counts[kind]["PutItem LocksTable"],
            refused=counts[kind]["UpdateItem LocksTable refused"]
            + counts[kind]["PutItem LocksTable refused"],
            reads=counts[kind]["GetItem LocksTable"],
        )
        for kind in kinds
    ]


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


def monitor_round(number: int) -> list[Measure]:
    """One round of the monitor over so many open locks, whose owners all run."""
    with LocalStack.from_template("template.yaml", name=f"crowd-{number}", deliveries=False) as stack:
        crowd.open_locks(stack, number)
        tally, seconds, grown = crowd.one_round(stack, number)
    assert tally.missing_tasks == number // 2
    assert grown < crowd.ALLOWED_MEGABYTES
    round_of = f"the monitor's round, {number:,} open locks"
    return [Measure(round_of, seconds, "s"), Measure(f"{round_of}: memory", grown, "MB")]


def plain_stack() -> list[Measure]:
    """What it costs to have a stack."""
    begin = time.perf_counter()
    with LocalStack.from_template("template.yaml", name="plain") as plain:
        up = time.perf_counter() - begin
        plain.client().start("one", ORDER)
        plain.client().wait("one")
        return [Measure("the stack comes up", up, "s"), Measure("the stack's memory", memory_mb(), "MB")]


@contextmanager
def counting() -> Iterator[Bench]:
    """Two stacks, whose tables are behind a proxy that counts."""
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
        yield Bench(stack, tables, counted)


def paths() -> list[Measure]:
    """What each path of a request costs."""
    with counting() as bench:
        bench.bare()
        bench.fresh()
        bench.duplicate()
        bench.duplicate_message()
        bench.replay()
        bench.mismatch_by_id()
        bench.mismatch_by_key()
        bench.own_code()
        bench.starts_a_second("starts through the queue, ten in a batch", bench.send)
        bench.starts_a_second("starts one by one", bench.start_alone)
        return bench.measures + plain_python(bench.tables, bench.counted)


def show(measures: list[Measure]) -> None:
    """One table of everything."""
    table = Table(title="the embedded stack; medians; the client's own reads are not counted")
    table.add_column("what", no_wrap=True)
    for column in (*COUNTS, "", "unit"):
        table.add_column(column, justify="right")
    for measure in measures:
        counts = [getattr(measure, count) for count in COUNTS]
        cells = ["" if count is None else str(count) for count in counts]
        table.add_row(measure.name, *cells, _short(measure.value), measure.unit)
    _console().print(table)


def _console() -> Console:
    """As wide as the terminal. A file has room for whole names."""
    return Console(width=None if sys.stdout.isatty() else 110)


def compare(before: Path, after: Path) -> None:
    """What two runs have in common: each number of both, and the later as a multiple of the earlier."""
    first, second = (
        {one["name"]: one for one in json.loads(path.read_text())["measures"]} for path in (before, after)
    )
    table = Table(title=f"{after} against {before}")
    table.add_column("what", no_wrap=True)
    for column in ("before", "after", "unit", "ratio", "counted"):
        table.add_column(column, justify="right")
    for name in [name for name in first if name in second]:
        one, other = first[name], second[name]
        changed = [f"{key} {one[key]} -> {other[key]}" for key in COUNTS if one[key] != other[key]]
        ratio = f"{other['value'] / one['value']:.2f}" if one["value"] else ""
        values = _short(one["value"]), _short(other["value"])
        table.add_row(name, *values, one["unit"], ratio, ", ".join(changed) or "the same")
    _console().print(table)


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def main() -> None:
    """Measure, print one table, and write it as JSON; or compare two such files."""
    parser = argparse.ArgumentParser(prog="make bench")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers there as well")
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("BEFORE", "AFTER"), help="measure nothing")
    given = parser.parse_args()
    if given.compare:
        compare(*given.compare)
        return
    begin = time.monotonic()
    measures = plain_stack() + paths() + [one for crowded in CROWDS for one in monitor_round(crowded)]
    show(measures)
    if given.json:
        ran = {
            "python": platform.python_version(),
            "processors": os.cpu_count(),
            "seconds": round(time.monotonic() - begin),
            "measures": [asdict(measure) for measure in measures],
        }
        given.json.write_text(json.dumps(ran, indent=2) + "\n")


if __name__ == "__main__":
    main()
