"""Writes the outcome that a dead owner left. Each write is fenced by the owner's own lock."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from steponce.executions import CANCELLATION, CANCELLED
from steponce.failure import Failure
from steponce.locks.record import Lock
from steponce.locks.table import Locks
from steponce.recovery.child import Child
from steponce.workflow import OUTCOME_UNKNOWN

_SAID_LIMIT = 1_000
"""Characters of a cancellation's cause in an intervention. A record of 400 KB keeps twenty of them."""


@dataclass(frozen=True)
class End:
    """How an owner died: its last state and that state's input, its failure, its cancellation, its child."""

    state: str
    input: Mapping[str, Any]
    failure: Failure
    cancelled: Failure | None
    child: Child | None


def is_there(end: End) -> bool:
    """Whether the input of the state that writes the outcome has one. A changed workflow may have lost it."""
    if end.state == "CompleteRequest":
        work = end.input.get("work")
        return isinstance(work, Mapping) and "result" in work
    return isinstance(end.input.get("failure"), Mapping)


def write_outcome(lock: Lock, locks: Locks, end: End, by: str) -> bool:
    """
    Write the outcome that an execution was about to write when it died, or that its child has.

    Returns:
        Whether the record was written: it still had this owner and attempt, and was INPROGRESS.
    """
    if end.child is not None:
        return _write_outcome_of_child(lock, locks, end.child, by)
    why = f"{lock.locked_by} died in {end.state}; this is what it meant to write"
    if end.state == "CompleteRequest":
        result = json.dumps(end.input["work"]["result"], separators=(",", ":"), ensure_ascii=False)
        return locks.complete(lock, result, by=by, why=why)
    meant = Failure.from_catch(end.input["failure"])
    write = locks.fail if end.state == "RecordFinalError" else locks.hold
    return write(lock, meant, by=by, why=why)


def _write_outcome_of_child(lock: Lock, locks: Locks, child: Child, by: str) -> bool:
    why = f"{lock.locked_by} died in its work; the execution {child.arn} that it had started has ended"
    if child.state == "succeeded":
        return locks.complete(lock, child.result, by=by, why=why)
    return locks.hold(lock, child.failure, by=by, why=why)


def write_cancelled(lock: Lock, locks: Locks, end: End, idle: bool, by: str) -> bool:
    """
    Write that a request was cancelled: for good if its work had not begun, else held for a person.

    Who cancelled it and why goes into the interventions. Callers get the failure.
    """
    said = (end.cancelled and end.cancelled.cause) or "Nobody said why."
    why = f"{lock.locked_by} was cancelled in {end.state} ({said[:_SAID_LIMIT]})"
    if idle:
        return locks.fail(lock, CANCELLATION, by=by, why=why)
    cause = (
        f"{CANCELLATION.cause} The execution {lock.locked_by} was in its work, which may have taken effect. "
        "Find out whether it did, then complete or release the lock."
    )
    return locks.hold(lock, Failure(CANCELLED, cause), by=by, why=why)


def hold_unknown(lock: Lock, locks: Locks, by: str) -> bool:
    """Hold a lock whose owner died during its work, until a person settles it."""
    cause = (
        f"The execution {lock.locked_by} died during its work, so nobody knows whether it took effect. "
        "Find out whether it did, then complete or release the lock."
    )
    return locks.hold(lock, Failure(OUTCOME_UNKNOWN, cause), by=by, why="its outcome is unknown")
