"""The leases of guards' locks: when one is over, and what happens to its lock then."""

from __future__ import annotations

from steponce.aws import times
from steponce.executions import YOUNG
from steponce.failure import Failure
from steponce.locks.record import Lock
from steponce.locks.table import Locks
from steponce.workflow import OUTCOME_UNKNOWN


def lease_is_over(lock: Lock) -> bool:
    """
    Whether the lease of a guard's lock is over. False for the lock of an execution.

    Args:
        lock: A whole record, because the open index does not hold leases. A record without a lease counts as
            leased for 15 minutes, as a new execution does that cannot be described yet. Of
            Powertools' own records nobody else decides the end.
    """
    if lock.is_of_an_execution or lock.is_of_powertools:
        return False
    young = times.to_text(times.after(times.from_text(lock.created), YOUNG.total_seconds()))
    return (lock.lease_until or young) < times.now_text()


def hold_after_lease(lock: Lock, locks: Locks, *, by: str) -> bool:
    """
    Hold a guard's lock whose lease is over, until a person settles it.

    The fence includes the lease: if the owner has extended it or finished meanwhile, nothing is written.
    """
    cause = (
        f"The lease of {lock.locked_by} ended at {lock.lease_until}, and its outcome was not recorded. It is "
        "not known whether its work took effect. Look at its log, then complete or release the lock."
    )
    return locks.hold(lock, Failure(OUTCOME_UNKNOWN, cause), by=by, why="its lease is over")
