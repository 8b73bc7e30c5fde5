"""
The repair of one lock whose owner may be dead, for the status rule and for the schedule alike.

What the owner left is decided where the workflow has it decided, in `settle_owner`. What is added here is
the release of a lock whose owner died before its work: in a workflow the next request takes it over.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from steponce.errors import OwnerHidden
from steponce.executions import runs_on
from steponce.locks.record import Failure, Lock
from steponce.locks.table import Locks
from steponce.recovery.owner import Finding, WhenOutcomeUnknown, settle_owner
from steponce.workflow import INPROGRESS

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient


class Repairer:
    """
    Settles locks on behalf of the dead.

    Args:
        locks: The lock table.
        sfn: A Step Functions client that may describe executions and read their histories.
        work_timeout_seconds: So long the work may go on after its execution was stopped.
        when_outcome_unknown: What becomes of an outcome that nobody knows.
        by: Who repairs, for the record.
        home: The state machine that is looked after. Of another one, on the same table, a lock may have an
            owner that cannot be asked for from here; of this one, that is a fault.
    """

    def __init__(
        self,
        locks: Locks,
        sfn: SFNClient,
        *,
        work_timeout_seconds: float,
        when_outcome_unknown: WhenOutcomeUnknown,
        by: str,
        home: str | None = None,
    ) -> None:
        self._locks = locks
        self._sfn = sfn
        self._work_timeout_seconds = work_timeout_seconds
        self._when_outcome_unknown = when_outcome_unknown
        self._by = by
        self._home = home

    def repair(self, lock: Lock) -> Finding:
        """
        Settle a lock if its owner is dead.

        Where the verdict is `idle`, the lock is free now. Where it is `unknown`, the lock stays open, though
        WhenOutcomeUnknown lets it be taken over: only the next request's workflow can make sure, after it
        has the lock, that the dead owner was not redriven meanwhile. Where it is `unwritten`, it stays open
        until a person completes it.

        Args:
            lock: An INPROGRESS record, as it was read or as the open index has it.

        Returns:
            What was found. If the record has changed since it was read, nothing is written.

        Raises:
            OwnerHidden: an execution of this very machine may not be looked at.
            Unavailable: AWS did not answer; safe to try again.
        """
        found = settle_owner(
            lock,
            self._sfn,
            self._locks,
            work_timeout_seconds=self._work_timeout_seconds,
            when_outcome_unknown=self._when_outcome_unknown,
            by=self._by,
            home=self._home,
        )
        if found.reason and (self._home is None or runs_on(self._home, lock.locked_by)):
            raise OwnerHidden(found.reason)
        record = self._locks.reread(lock) if found.verdict == "idle" else None
        if record is None:
            return found
        why = f"{lock.locked_by} died in {found.state}, before anything had happened"
        failure = found.failure or Failure(None, None)
        return replace(found, wrote=self._locks.release(record, failure, by=self._by, why=why))

    def repair_after(self, execution_arn: str, lock_token: str) -> Finding | None:
        """
        Settle what an execution left open under its key, if it is dead and this was its lock.

        Returns:
            As `repair`; None if the execution does not hold the lock, or not any more.
        """
        lock = self._locks.get(lock_token)
        if lock is None or (lock.status, lock.locked_by) != (INPROGRESS, execution_arn):
            return None
        return self.repair(lock)
