"""
The fence: right before its effect, the work asks whether it still holds the lock.

A workflow that was stopped, taken over and redriven would otherwise run its work beside its successor.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from typing import Any

import boto3

from steponce.errors import LockLost, RetryLater, Unavailable
from steponce.locks.table import Locks
from steponce.workflow import INPROGRESS


def check(work: Mapping[str, Any], locks: Locks | None = None) -> None:
    """
    Ask, with one consistent read, whether this attempt still holds its lock.

    Args:
        work: What the workflow hands to the work: `lockToken`, `callId`, `attempt` and more.
        locks: The lock table. Default: the one that the environment variable LocksTable names.

    Raises:
        LockLost: somebody else holds the lock, or nobody. Leave without any effect.
        RetryLater: the table did not answer; nothing was done, so the workflow tries again.
    """
    try:
        lock = (locks or _locks()).get(work["lockToken"])
    except Unavailable as error:
        raise RetryLater(f"The lock could not be read ({error}). Nothing was done.") from error
    mine = (INPROGRESS, work["callId"], work["attempt"])
    if lock is None or (lock.status, lock.call_id, lock.attempt) != mine:
        raise LockLost(
            f"Attempt {work['attempt']} does not hold the lock {work['lockToken']!r} any more. "
            "Nothing was done; whoever holds it answers."
        )


@cache
def _locks() -> Locks:
    return Locks(boto3.client("dynamodb"), os.environ["LocksTable"])
