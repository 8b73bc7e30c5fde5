"""Many requests at once: more than there are workers, and more than the engine could run side by side."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from steponce.local import LocalStack
from tests.workflow.scene import VISA

THREADS = 30


@pytest.mark.parametrize(
    "number", [30, pytest.param(500, marks=[pytest.mark.full, pytest.mark.timeout(1_800)])]
)
def test_a_burst_loses_nothing_and_doubles_nothing(
    stack: LocalStack, number: int, capsys: pytest.CaptureFixture[str]
):
    """Sent at once from 30 threads, all requests complete, and each is charged once."""
    client = stack.client()
    ids = [f"burst-{uuid.uuid4().hex}" for _ in range(number)]
    begin = time.monotonic()

    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(lambda one: client.start(one, VISA), ids))
        started = time.monotonic()
        receipts = list(threads.map(lambda one: client.wait(one, timeout_seconds=1_500), ids))

    with capsys.disabled():
        print(
            f"\n{number} requests: {started - begin:.0f} s to start, {time.monotonic() - begin:.0f} s in all"
        )
    assert {"COMPLETED": number} == Counter(receipt.status for receipt in receipts)
    charged = charges(stack)
    assert {1: number} == Counter(charged[receipt.lock_token] for receipt in receipts)


def charges(stack: LocalStack) -> Counter[str]:
    """How often the card provider was called for each key."""
    pages = stack.boto3("dynamodb").get_paginator("scan")
    found = pages.paginate(TableName=stack.outputs["ChargesTable"], ConsistentRead=True)
    return Counter(item["lockToken"]["S"] for page in found for item in page["Items"])
