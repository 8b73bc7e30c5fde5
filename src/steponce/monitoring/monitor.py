"""
One round of the monitor: it finds and settles what no event reported.

A round first sends answers whose senders have died, for an eighth of the time, and then closes expired
awaiting steps until a quarter of it is over; what they leave of it is for more answers. The locks get the
rest. Each round takes the answers and the
steps in another order. So those that cannot be settled yet do not keep it from the others.

A round examines every open lock that is older than the work's time-out, the overdue ones first. If it has too
little time or too low a rate limit for all of them, it takes one share of them, and the next round takes the
next share. A hash of the key decides in which share a lock is, so no round stores a place. If a round dies,
its share comes again. Two rounds at once do no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil

from steponce.aws import times
from steponce.aws.dynamodb import Item
from steponce.aws.pace import Pace
from steponce.callbacks.awaiting import AwaitingSteps
from steponce.callbacks.resolver import Callbacks
from steponce.callbacks.step import ANSWERING, PENDING
from steponce.errors import RecordUnreadable
from steponce.executions import reading_until
from steponce.locks.record import Lock
from steponce.locks.table import Locks
from steponce.monitoring.rounds import LOGGED, SPARE_SECONDS, Log, name_of_error
from steponce.recovery.owner import Finding
from steponce.recovery.repair import Repairer
from steponce.request.canonical import sha256
from steponce.request.names import shards_to_read
from steponce.workflow import FAILED, INPROGRESS

ROUND_SECONDS = 300
"""The schedule's interval. Each round takes the next share."""

NEAR = timedelta(minutes=15)
"""A step that times out within this time is near its time-out."""

_SHARE_OF_ANSWERS = 0.125
_SHARE_OF_STEPS = 0.25  # the answers' share included

_SHORT_SECONDS = 5
"""A step's history that takes no longer is always read to its end."""

_COUNTING_SECONDS = 5
"""What a history leaves of a round. It may hold 25,000 events of 256 KB, and take longer than a round."""

_AFTER_EVERY_TIME = f"{times.NEVER}~"


@dataclass
class Tally:
    """
    What a round has counted.

    Args:
        missing_tasks: Overdue locks that are still in progress.
        open_failures: Failures that wait for a person.
        repairs: Locks that this round has settled or released.
        finalisation_failures: Locks whose work was done, but whose owner could not record the outcome.
        steps_closed: Awaiting steps that this round has closed.
        steps_near_timeout: Steps that wait and are near their time-out.
        skipped: Locks and steps that could not be examined.
        unreadable: Records that another program has damaged.
    """

    missing_tasks: int = 0
    open_failures: int = 0
    repairs: int = 0
    finalisation_failures: int = 0
    steps_closed: int = 0
    steps_near_timeout: int = 0
    skipped: int = 0
    unreadable: int = 0


class Monitor:
    """
    Settles the open locks and the awaiting steps of one table each, and counts what stays open.

    Args:
        locks: The lock table.
        repairer: Settles locks.
        steps: The table of awaiting steps.
        callbacks: Settles awaiting steps.
        open_shards: How many shards the open index of the locks has. The default ones are read in any case.
        work_timeout_seconds: The work's time-out. Younger locks are not examined.
        describes_per_second: The rate limit for DescribeExecution. All callers share AWS's quota of 15.
        seconds_left: Returns how much time is left until the round is stopped.
        log: Logs each overdue lock, each repair, and what could not be examined.
    """

    def __init__(
        self,
        locks: Locks,
        repairer: Repairer,
        steps: AwaitingSteps,
        callbacks: Callbacks,
        *,
        open_shards: int,
        work_timeout_seconds: float,
        describes_per_second: float,
        seconds_left: Callable[[], float],
        log: Log,
    ) -> None:
        self._locks = locks
        self._repairer = repairer
        self._steps = steps
        self._callbacks = callbacks
        self._open_shards = shards_to_read(open_shards)
        self._work_timeout = timedelta(seconds=work_timeout_seconds)
        self._per_second = describes_per_second
        self._pace = Pace(describes_per_second, burst=1)
        self._seconds_left = seconds_left
        self._log = log

    def round(self) -> Tally:
        """
        Settle what can be settled, and count what stays open.

        A lock or step that cannot be examined is skipped, and the round goes on.

        Raises:
            Unavailable: the tables did not answer. The next round catches up.
        """
        tally, now = Tally(), times.now()
        self._settle_steps(tally, now)
        self._settle_locks(tally, now)
        tally.open_failures = sum(self._locks.count_open(FAILED, shard) for shard in range(self._open_shards))
        near = self._steps.ids(PENDING, since=times.to_text(now), until=times.to_text(now + NEAR))
        kept = self._time() / 2
        tally.steps_near_timeout = sum(self._waits(step_id, kept, tally) for step_id in near)
        return tally

    # -- Locks -----------------------------------------------------------------------------------

    def _settle_locks(self, tally: Tally, now: datetime) -> None:
        number, time = int(now.timestamp()) // ROUND_SECONDS, times.to_text(now)
        old, every = times.to_text(now - self._work_timeout), range(self._open_shards)
        counted = sum(self._locks.count_open(INPROGRESS, shard, created_before=old) for shard in every)
        shares = ceil(counted / max(1.0, self._per_second * self._time())) or 1
        turn = number // shares  # each turn of a share begins at another shard
        shards = [(turn + shard) % self._open_shards for shard in every]

        def in_turn(lock: Lock) -> bool:
            return lock.created < old and share_of(lock.lock_token, shares) == number % shares

        for lock in self._in_progress(shards, tally, until=time):
            if not (in_turn(lock) and self._time() > 0 and self._settle(lock, tally)):
                tally.missing_tasks += 1
                self._log_overdue(lock, tally.missing_tasks)
        for lock in self._in_progress(shards, tally, since=time):
            if self._time() <= 0:
                break
            if in_turn(lock):
                self._settle(lock, tally)

    def _in_progress(
        self, shards: list[int], tally: Tally, since: str | None = None, until: str | None = None
    ) -> Iterator[Lock]:
        def skip(error: Exception, _item: Item) -> None:
            self._skip(error, tally)

        for shard in shards:
            yield from self._locks.open(
                INPROGRESS, shard, expected_from=since, expected_until=until, skip=skip
            )

    def _settle(self, lock: Lock, tally: Tally) -> bool:
        """Examine one lock. Returns whether it is settled now, by this round or by somebody else."""
        try:
            self._pace.turn(self._time())
            with reading_until(lambda: self._seconds_left() <= _COUNTING_SECONDS):
                found = self._repairer.repair(lock)
        except Exception as error:
            self._skip(error, tally, **_whose(lock))
            return False
        tally.repairs += found.wrote
        tally.finalisation_failures += found.is_finalisation_failure
        if found.wrote or found.verdict == "unwritten":
            self._log_finding(lock, found)
        if found.reason:
            self._log("owner counts as alive: it cannot be described", **_whose(lock), reason=found.reason)
        return found.verdict in ("settled", "idle")

    # -- Awaiting steps --------------------------------------------------------------------------

    def _settle_steps(self, tally: Tally, now: datetime) -> None:
        time, number = self._time(), int(now.timestamp()) // ROUND_SECONDS

        def in_turn(step_ids: Iterable[str]) -> list[str]:
            return sorted(step_ids, key=lambda step_id: sha256(f"{number}/{step_id}"))

        claimed, expired = self._steps.ids(ANSWERING), self._steps.ids(PENDING, until=times.to_text(now))
        damaged = self._steps.ids(PENDING, since=_AFTER_EVERY_TIME)
        kept, of_answers = time * (1 - _SHARE_OF_STEPS), time * (1 - _SHARE_OF_ANSWERS)
        answers, steps = iter(in_turn(claimed)), iter(in_turn([*expired, *damaged]))
        # In every second round, a long history of an answer may take the share of the steps as well.
        self._close_each(answers, of_answers, kept if number % 2 else of_answers, tally)
        self._close_each(steps, kept, kept, tally)
        self._close_each(answers, kept, kept, tally)

    def _close_each(self, step_ids: Iterator[str], stop_at: float, kept: float, tally: Tally) -> None:
        """Settle one after the other, until so many seconds are left for the others."""
        while self._time() > stop_at and (step_id := next(step_ids, None)) is not None:
            try:
                tally.steps_closed += self._close(step_id, kept)
            except Exception as error:
                self._skip(error, tally, awaitingStepId=step_id)

    def _close(self, step_id: str, kept: float) -> bool:
        """Settle one step, unless its history takes the time that is kept for the locks."""
        self._pace.turn(self._time())
        until = min(kept, self._time() - _SHORT_SECONDS)
        with reading_until(lambda: self._time() <= until):
            return self._callbacks.settle(step_id)

    def _waits(self, step_id: str, kept: float, tally: Tally) -> bool:
        """
        Whether the request of a waiting step still runs.

        A step whose heartbeat was missed, or whose request was cancelled, is closed at its time-out only.
        True if there is no time to look: so many seconds of the round are kept.
        """
        if self._time() <= kept:
            return True
        try:
            step = self._steps.get(step_id)
            lock = self._locks.get(step.lock_token) if step else None
        except Exception as error:
            self._skip(error, tally, awaitingStepId=step_id)
            return True
        if step is None or lock is None:  # a request that runs has a record
            return False
        return (lock.status, lock.call_id) == (INPROGRESS, step.call_id)

    # -- Logging -----------------------------------------------------------------------------------

    def _log_overdue(self, lock: Lock, number: int) -> None:
        if number <= LOGGED:
            self._log("overdue", **_whose(lock), expected=lock.expected_completion)

    def _log_finding(self, lock: Lock, found: Finding) -> None:
        self._log(
            "repaired" if found.wrote else "finished, and never written down: complete it by hand",
            **_whose(lock),
            verdict=found.verdict,
            state=found.state,
        )

    def _skip(self, error: Exception, tally: Tally, **facts: object) -> None:
        if isinstance(error, RecordUnreadable):
            tally.unreadable += 1
            if tally.unreadable <= LOGGED:
                self._log("cannot be read", **facts | error.public())
            return
        tally.skipped += 1
        if tally.skipped <= LOGGED:
            self._log("could not be examined", error=name_of_error(error), **facts)

    def _time(self) -> float:
        return self._seconds_left() - SPARE_SECONDS


def _whose(lock: Lock) -> dict[str, str]:
    """What a log says of a lock, in the names of its record."""
    return {"requestId": lock.request_id, "lockToken": lock.lock_token, "owner": lock.locked_by}


def share_of(lock_token: str, shares: int) -> int:
    """The share of a lock, from 0 to `shares` - 1."""
    return int(sha256(lock_token)[8:16], 16) % shares
