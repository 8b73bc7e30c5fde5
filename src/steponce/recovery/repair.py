"""
Repairs one lock whose owner may be dead. The status rule and the schedule both call it.

`settle_owner` decides, as it does for the workflow. The repair adds one case: it releases a lock whose owner
died before its work. In the workflow the next request takes such a lock over.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from steponce.errors import InvalidLockToken, OwnerHidden
from steponce.executions import runs_on
from steponce.failure import Failure
from steponce.locks.record import Lock
from steponce.locks.table import Locks
from steponce.recovery.owner import Finding, WhenOutcomeUnknown, settle_owner
from steponce.request.envelope import check_lock_token
from steponce.workflow import INPROGRESS

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient


@dataclass(frozen=True)
class RepairSettings:
    """The template's parameters that say when an owner is dead, and what follows; see `environment`."""

    run_once_state_machine_arn: str
    work_timeout_seconds: float
    when_outcome_unknown: WhenOutcomeUnknown


class Repairer:
    """
    Settles the locks of dead owners.

    Args:
        locks: The lock table.
        sfn: A Step Functions client that may describe executions and read their histories.
        work_timeout_seconds: How long the work may run after its execution was stopped; see `settle_owner`.
        when_outcome_unknown: What to do with an unknown outcome; see `settle_owner`.
        by: The name that goes into the record's interventions.
        home: The ARN of the state machine that this repairer watches. An owner of another machine on the
            same table may be hidden from here. A hidden owner of this machine is an error.
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

    @classmethod
    def from_settings(cls, locks: Locks, sfn: SFNClient, settings: RepairSettings, by: str) -> Self:
        """Make a repairer from a function's settings."""
        return cls(
            locks,
            sfn,
            work_timeout_seconds=settings.work_timeout_seconds,
            when_outcome_unknown=settings.when_outcome_unknown,
            by=by,
            home=settings.run_once_state_machine_arn,
        )

    def repair(self, lock: Lock) -> Finding:
        """
        Settle a lock if its owner is dead.

        After the verdict `idle` the lock is free. After `unknown` it stays open, even if WhenOutcomeUnknown
        allows a takeover: only the next request's workflow can confirm, once it holds the lock, that the dead
        owner was not redriven. After `unwritten` it stays open until a person completes it.

        Args:
            lock: An INPROGRESS record, as it was read or as the open index has it.

        Returns:
            The finding. If the record changed after it was read, nothing is written.

        Raises:
            OwnerHidden: an execution of this machine may not be described.
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
        Settle the lock of one execution, if the execution is dead and still holds it.

        Returns:
            As `repair`. None if the execution does not hold the lock. It holds none if what it was started
            with cannot be a lock token, for which DynamoDB would refuse to look.
        """
        try:
            check_lock_token(lock_token)
        except InvalidLockToken:
            return None
        lock = self._locks.get(lock_token)
        if lock is None or (lock.status, lock.locked_by) != (INPROGRESS, execution_arn):
            return None
        return self.repair(lock)
