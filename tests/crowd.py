"""
Many open locks, and one round of the monitor over them: how long it takes, and how much memory.

Step Functions is a fake in which every owner runs, so that neither its pace nor its own time is measured.
Tables and clients are real.
"""

from __future__ import annotations

import json
import time
import tracemalloc
from datetime import timedelta
from typing import Any

from steponce.aws import times
from steponce.callbacks.awaiting import AwaitingSteps
from steponce.callbacks.resolver import Callbacks
from steponce.local import LocalStack
from steponce.locks.table import Locks
from steponce.monitoring.monitor import Monitor, Tally
from steponce.recovery.repair import Repairer
from steponce.request.names import OPEN_SHARDS, shard_of
from tests.fakes.step_functions import StepFunctions

WORK_TIMEOUT_SECONDS = 60

ALLOWED_MEGABYTES = 3.0
"""For a page of locks and what boto3 makes of it; not for all of them."""


def open_locks(stack: LocalStack, number: int) -> None:
    """Write so many locks; every second one is overdue."""
    now = times.now()
    created = times.to_text(now - timedelta(hours=1))
    due = [times.to_text(now + timedelta(minutes=minutes)) for minutes in (-30, 30)]
    dynamodb, table = stack.boto3("dynamodb"), stack.outputs["LocksTable"]
    for first in range(0, number, 25):
        numbers = range(first, min(first + 25, number))
        puts = [{"PutRequest": {"Item": _lock(each, created, due[each % 2])}} for each in numbers]
        while puts:
            puts = dynamodb.batch_write_item(RequestItems={table: puts})["UnprocessedItems"].get(table, [])


def one_round(stack: LocalStack, number: int) -> tuple[Tally, float, float]:
    """A round over so many locks: its counts, its seconds, and by how many megabytes memory grows at most."""
    dynamodb = stack.boto3("dynamodb")
    locks = Locks(dynamodb, stack.outputs["LocksTable"])
    steps = AwaitingSteps(dynamodb, stack.outputs["AwaitingStepsTable"])
    sfn: Any = StepFunctions()
    for each in range(number):
        sfn.put(_owner(each), input=json.dumps({"callId": f"call of {_owner(each)}"}))
    repairer = Repairer(
        locks,
        sfn,
        work_timeout_seconds=WORK_TIMEOUT_SECONDS,
        when_outcome_unknown="hold",
        by="find_overdue",
    )
    monitor = Monitor(
        locks,
        repairer,
        steps,
        Callbacks(steps, sfn),
        open_shards=OPEN_SHARDS,
        work_timeout_seconds=WORK_TIMEOUT_SECONDS,
        describes_per_second=1e9,
        seconds_left=lambda: 3600,
        log=lambda _message, **_facts: None,
    )
    begin = time.perf_counter()
    tally = monitor.round()
    seconds = time.perf_counter() - begin
    tracemalloc.start()  # which would slow the first round
    monitor.round()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return tally, seconds, peak / 1e6


def _owner(number: int) -> str:
    """The execution that holds a lock."""
    return f"arn:aws:states:us-east-1:123456789012:execution:steponce-run-once:order-{number}"


def _lock(number: int, created: str, due: str) -> dict[str, Any]:
    token = f"crowd/order-{number}"
    arn = _owner(number)
    attributes = {
        "lockToken": token,
        "status": "INPROGRESS",
        "openStatus": f"INPROGRESS#{shard_of(token, OPEN_SHARDS)}",
        "lockedBy": arn,
        "callId": f"call of {arn}",
        "executionName": f"order-{number}",
        "requestId": f"order-{number}",
        "created": created,
        "expectedCompletion": due,
        "payloadHash": "26b34a71e2af9c3ebd638aadac97b8a683bece11a9ecd2d012990f9b0392d995",
        "expiresAt": times.NEVER,
    }
    return {name: {"S": value} for name, value in attributes.items()} | {"attempt": {"N": "1"}}
