"""
A redriven execution of `run_once` begins no work with a lock that it had before.

DescribeExecution may show it as ended for a moment. Whoever settles its lock then lets the next one work.
`$$.Execution.RedriveTime` is there after a redrive only. Source: Step Functions, Context object.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.documents import machine
from tests.simulation.definition import choose

HERE = "arn:aws:states:us-east-1:123456789012:execution:steponce-run-once:order-1"
FIRST = {"Execution": {"Id": HERE}}
AGAIN = {"Execution": {"Id": HERE, "RedriveTime": "2026-01-31T12:00:00.000Z"}}
OURS = {
    "status": {"S": "INPROGRESS"},
    "callId": {"S": "us"},
    "lockedBy": {"S": HERE},
    "payloadHash": {"S": "hash"},
    "attempt": {"N": "1"},
}


@pytest.mark.parametrize(
    ("state", "first", "redriven"),
    [
        ("IsLockHeld", "KeepLock", "AlreadyInProgress"),
        ("IsTakeoverConfirmed", "DoWork", "HoldLock"),
    ],
)
def test_a_redriven_execution_does_not_work_with_the_lock_that_it_had(state: str, first: str, redriven: str):
    """Before a redrive it does: the answer of AcquireLock was lost, or the takeover is confirmed."""
    given: dict[str, Any] = {
        "callId": "us",
        "payloadHash": "hash",
        "lock": {"Item": OURS},
        "owner": {"verdict": "gone"},
    }
    choice = machine("run_once")["States"][state]

    assert first == choose(choice, given, FIRST)
    assert redriven == choose(choice, given, AGAIN)


@pytest.mark.parametrize("verdict", ["idle", "unknown"])
def test_a_redriven_execution_takes_no_lock_over(verdict: str):
    """It could only be held for a person then. The next request takes it over."""
    choice = machine("run_once")["States"]["IsOwnerAlive"]

    assert "TakeOverLock" == choose(choice, {"owner": {"verdict": verdict}}, FIRST)
    assert "AlreadyInProgress" == choose(choice, {"owner": {"verdict": verdict}}, AGAIN)
