"""
The fence: right before its effect, the work checks that it still holds the lock.

The fence protects the invariant that only the lock's present owner acts. Without it, an execution that was
stopped, taken over and redriven would run its work beside its successor's.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from typing import Any

import boto3

from steponce.aws.forks import own_connections
from steponce.errors import LockLost, Unavailable
from steponce.locks.claim import may_have_acted, note_passed, nothing_done, told_by
from steponce.locks.table import Locks
from steponce.workflow import INPROGRESS


def check(work: Mapping[str, Any], locks: Locks | None = None) -> None:
    """
    Check, with one consistent read, that this attempt still holds its lock.

    Args:
        work: The input that the workflow gives to the work: `lockToken`, `callId`, `attempt` and more.
        locks: The lock table. Default: the table that the environment variable LocksTable names.

    Raises:
        InvalidRequest: `work` is another input, as if the work got the payload alone. Nothing was done.
        LockLost: this attempt does not hold the lock. Stop without any effect.
        RetryLater: the table did not answer. Nothing was done, so the workflow tries again.
        Unavailable: the same, after a check or an `update_if_mine` of this attempt has passed in this
            process, or after such an update that got no answer. The work may have had an effect, so the
            request waits for a person.
    """
    lock_token, call_id, attempt = told_by(work)
    try:
        lock = (locks or _locks()).get(lock_token)
    except Unavailable as error:
        if may_have_acted(call_id, attempt):
            raise Unavailable(f"The lock could not be read again ({error}).") from error
        text = f"The lock could not be read ({error}). Nothing was done."
        raise nothing_done(text, call_id, attempt) from error
    if lock is None or (lock.status, lock.call_id, lock.attempt) != (INPROGRESS, call_id, attempt):
        raise LockLost(
            f"Attempt {attempt} no longer holds the lock {lock_token!r}. Nothing was done. "
            "The present owner of the lock answers the request."
        )
    note_passed(call_id, attempt)


@cache
def _locks() -> Locks:
    return Locks(own_connections(boto3.client("dynamodb")), os.environ["LocksTable"])
