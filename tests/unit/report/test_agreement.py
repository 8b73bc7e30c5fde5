"""The report on a request and its status read the same records, so they must not contradict each other."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest

from steponce import RequestNotFound
from steponce.failure import Failure
from steponce.locks.record import Lock
from steponce.report.collector import collect
from steponce.request.canonical import canonical_json, sha256
from steponce.workflow import RELEASED
from tests.unit.report.world import FAR, HASH, PAST, PAYLOAD, World, arn

OTHER = {"card": "another"}
UNKNOWN = "unknown"

STATUS = {
    "starting": "RUNNING",
    "running": "RUNNING",
    "overdue": "RUNNING",
    "unsettled": "RUNNING",
    "completed": "COMPLETED",
    "failed": "FAILED",
    "waits for a person": "FAILED",
    "released": "FAILED",
    "turned away": "FAILED",
}
"""What the status is for each diagnosis. `expired` has none: nothing is known, or only what has expired."""

FORGOTTEN = "forgotten"

ENDS: list[tuple[str, str | None]] = [
    (FORGOTTEN, None),
    ("RUNNING", None),
    ("SUCCEEDED", None),
    ("ABORTED", "Cancelled"),
    *(
        ("FAILED", error)
        for error in ("Boom", "RetryLater", "AlreadyInProgress", "PayloadMismatch", "DuplicateRefused")
    ),
]

RECORDS: dict[str, dict[str, Any]] = {
    "in progress": {"status": "INPROGRESS"},
    "completed": {"status": "COMPLETED", "result": "7", "actual_completion": PAST, "ttl": 1},
    "failed": {
        "status": "FAILED",
        "failure": Failure("Declined", None),
        "actual_completion": PAST,
        "ttl": 1,
    },
    "held": {
        "status": "FAILED",
        "failure": Failure("Boom", None),
        "actual_completion": PAST,
        "open_status": "FAILED#1",
        "expires_at": None,
    },
    "released": {"status": "RELEASED", "failure": Failure("RetryLater", None), "actual_completion": PAST},
}

OWNERS: dict[str, dict[str, Any]] = {
    "itself": {},
    "an earlier request of this id": {"call_id": "an older call", "created": PAST},
    "another request": {"request_id": "other", "locked_by": arn("other"), "call_id": "call-9"},
    "another machine": {"locked_by": arn("order-1").replace(":m:", ":refunds:"), "call_id": "call-9"},
    "a guard": {"request_id": "other", "locked_by": "process/host/7", "execution_name": None},
}


@pytest.mark.parametrize("expires_at", [FAR, PAST])
@pytest.mark.parametrize("payload", [PAYLOAD, OTHER])
def test_the_report_and_the_status_of_a_request_agree(world: World, payload: Any, expires_at: str):
    """For each end of the execution, each owner of the record and each status of it."""
    different = []
    for (ended, error), record, owner in product(ENDS, RECORDS, OWNERS):
        envelope = {"requestId": "order-1", "lockToken": "m/order-1", "payload": payload, "callId": "call-1"}
        world.sfn.executions.clear()
        if ended != FORGOTTEN:
            world.execution("order-1", ended, "AcquireLock", error=error, input=json.dumps(envelope))
        own_hash = HASH if owner != "itself" else sha256(canonical_json(payload))
        lock = world.record(
            **{"expires_at": expires_at, "payload_hash": own_hash} | RECORDS[record] | OWNERS[owner]
        )

        diagnosis, status = _diagnosis(world), _status(world, lock)

        if STATUS.get(diagnosis, UNKNOWN) != status:
            different.append((ended, error, record, owner, diagnosis, status))
    assert [] == different


def _diagnosis(world: World) -> str:
    try:
        return collect(world.client, "order-1").diagnosis
    except RequestNotFound:
        return UNKNOWN


def _status(world: World, lock: Lock) -> str:
    try:
        receipt = world.client.status("order-1")
    except RequestNotFound:
        return UNKNOWN
    has_expired = receipt.attempt > 0 and receipt.may_run_again and lock.status != RELEASED
    return UNKNOWN if has_expired else receipt.status
