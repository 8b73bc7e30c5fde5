"""The lock record: how it is read, and when it may be taken."""

from dataclasses import replace
from typing import Any

import pytest

from steponce.failure import Failure
from steponce.locks.record import Intervention, Lock
from steponce.workflow import COMPLETED, FAILED, INPROGRESS, RELEASED

NOW = "2026-01-31T12:00:00.000Z"
BEFORE, AFTER = "2026-01-31T11:59:59.999Z", "2026-01-31T12:00:00.001Z"
EXPIRES = "2026-05-01T12:00:00.000Z"
KEY = {"lockToken": {"S": "shop/order-1"}}

OPEN = KEY | {
    "status": {"S": INPROGRESS},
    "openStatus": {"S": "INPROGRESS#3"},
    "lockedBy": {"S": "arn:execution:order-1"},
    "callId": {"S": "me"},
    "executionName": {"S": "order-1"},
    "requestId": {"S": "order-1"},
    "attempt": {"N": "2"},
    "created": {"S": NOW},
    "expectedCompletion": {"S": AFTER},
    "payloadHash": {"S": "ab12"},
    "expiresAt": {"S": EXPIRES},
}
MINE = Lock.from_item(OPEN)


@pytest.mark.parametrize("written", ["2026-01-31T12:00:00Z", NOW])
def test_a_lock_was_taken_at_a_time_that_sorts(written: str) -> None:
    """At a whole second Step Functions leaves out `.000`. The fence compares what is on record."""
    found = Lock.from_item(OPEN | {"created": {"S": written}})
    assert (written, NOW) == (found.created, found.taken_at)
    assert BEFORE < found.taken_at < AFTER


def test_an_item_reads_as_a_lock() -> None:
    """Attribute by attribute."""
    item = OPEN | {
        "actualCompletion": {"S": NOW},
        "result": {"S": '{"a":1}'},
        "failure": {"S": '{"Error":"CardDeclined","Cause":null}'},
        "ttl": {"N": "1777723200"},
        "workTimeoutSeconds": {"N": "60"},
        "interventions": {"S": '[{"at":"2026","by":"ann","what":"released","why":"asked the bank"}]'},
    }
    assert Lock(
        lock_token=KEY["lockToken"]["S"],
        status=INPROGRESS,
        locked_by="arn:execution:order-1",
        call_id="me",
        request_id="order-1",
        attempt=2,
        created=NOW,
        expected_completion=AFTER,
        payload_hash="ab12",
        open_status="INPROGRESS#3",
        actual_completion=NOW,
        result='{"a":1}',
        failure=Failure("CardDeclined", None),
        expires_at=EXPIRES,
        ttl=1_777_723_200,
        interventions=(Intervention("2026", "ann", "released", "asked the bank"),),
        execution_name="order-1",
        work_timeout_seconds=60,
    ) == Lock.from_item(item)


@pytest.mark.parametrize(
    ("expected", "status", "ttl", "expires_at"),
    [
        (True, RELEASED, None, None),
        (True, RELEASED, 1, AFTER),
        (False, INPROGRESS, None, BEFORE),
        (False, INPROGRESS, 1, BEFORE),
        (True, COMPLETED, 1, BEFORE),
        (False, COMPLETED, 1, NOW),
        (False, COMPLETED, 1, AFTER),
        (False, COMPLETED, None, BEFORE),
        (False, COMPLETED, 1, None),
        (True, FAILED, 1, BEFORE),
        (False, FAILED, 1, AFTER),
        (False, FAILED, None, BEFORE),
        (False, "EXPIRED", 1, BEFORE),
        (False, "", None, None),
    ],
)
def test_who_may_take_a_record(expected: bool, status: str, ttl: int | None, expires_at: str | None) -> None:
    """No clock frees a lock in progress, nor a failure that waits for a person."""
    assert expected is replace(MINE, status=status, ttl=ttl, expires_at=expires_at).is_reusable(NOW)


@pytest.mark.parametrize("failure", [Failure("E", "why"), Failure("E", None), Failure(None, None)])
def test_a_failure_reads_as_it_was_written(failure: Failure) -> None:
    """Either part may be missing."""
    assert failure == Failure.from_json(failure.to_json())


@pytest.mark.parametrize("caught", [{}, {"Error": None, "Cause": None}])
def test_a_failure_without_fields_has_neither(caught: dict[str, Any]) -> None:
    """SendTaskFailure may say nothing at all."""
    assert Failure(None, None) == Failure.from_catch(caught)
