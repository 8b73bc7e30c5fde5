"""
One call of `Client.wait`: it looks until a request is finished.

What does not run may have another attempt that cannot be described yet, so it gets a moment. Now and then the
wait also asks whether the lock's owner is alive.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from botocore.exceptions import ClientError

from steponce.aws import times
from steponce.errors import OwnerHidden, PayloadMismatch, RequestNotFound, Unavailable, Unsettled, WaitTimeout
from steponce.executions import Execution, HistoryTooLong, OpenWork, reading_until
from steponce.failure import Failure
from steponce.locks.record import Lock
from steponce.next_step import NextStep
from steponce.request.lookup import Lookup
from steponce.request.machine import Machine
from steponce.request.newest import newest_of_request
from steponce.request.next_attempts import is_unwritten, unwritten
from steponce.request.receipt import Receipt
from steponce.workflow import INPROGRESS

NOT_YET_VISIBLE_SECONDS = 2
"""How long a wait accepts that an execution cannot be described yet."""

_HISTORY_SECONDS = 2
"""How long a history may take at least that tells what the next step is. It may take the time of the wait."""


class Wait:
    """
    The call: what it waits for, and for how long.

    Args:
        machine: The request's machine.
        request_id: As the caller gave it.
        timeout_seconds: How long to wait. What does not run gets at least NOT_YET_VISIBLE_SECONDS.
        lock_token: The one that the request was started with. None: its first attempts tell it.
        payload_hash: Of the payload that the answer must be for. None: of any.
        work_of: Tells what may still run of the work of a lock's owner that is dead. None: nothing.
    """

    def __init__(
        self,
        machine: Machine,
        request_id: str,
        timeout_seconds: float,
        lock_token: str | None,
        payload_hash: str | None,
        work_of: Callable[[Lock, Execution | None], OpenWork | None],
    ) -> None:
        self._machine = machine
        self._request_id = request_id
        self._timeout_seconds = timeout_seconds
        self._lock_token = lock_token
        self._payload_hash = payload_hash
        self._work_of = work_of
        self._work_ran = False

    def run(self) -> Receipt:
        """
        Look until the request is COMPLETED or FAILED.

        Raises:
            As `Client.wait`.
        """
        start = time.monotonic()
        pause, look_at_owner, seen_running = 0.05, 2.0, ""
        while True:
            passed, until = time.monotonic() - start, max(self._timeout_seconds, NOT_YET_VISIBLE_SECONDS)
            try:
                lookup = Lookup(self._machine, self._request_id, self._lock_token, self._payload_hash)
                receipt = lookup.run()
                self._lock_token = receipt.lock_token
                # A released or expired record may be the last attempt's. The next may not be visible yet.
                # So may an attempt that was refused by the rate limit: the limit may be reset at any time.
                # And a record of this id may be another machine's, with nothing of this one visible yet.
                may_be_over = lookup.by_id_alone or _may_be_over(receipt, seen_running)
                settled = not may_be_over or passed >= NOT_YET_VISIBLE_SECONDS
                if receipt.status == "RUNNING":
                    until, seen_running = self._timeout_seconds, receipt.execution_arn
                elif settled:
                    return receipt
            except (RequestNotFound, PayloadMismatch):  # also of an earlier record under the same id
                if passed >= NOT_YET_VISIBLE_SECONDS:
                    raise
            if passed >= look_at_owner:
                look_at_owner = passed * 2
                self._expect_owner_alive(max(self._timeout_seconds - passed, _HISTORY_SECONDS))
            if passed >= until:
                raise WaitTimeout(
                    f"Request {self._request_id!r} still runs after {self._timeout_seconds} s. Wait again."
                )
            time.sleep(min(pause, until - passed))
            pause = min(pause * 1.5, 2.0)

    def _expect_owner_alive(self, seconds: float) -> None:
        lock = self._machine.locks.get(self._lock_token) if self._lock_token else None
        if lock is None or lock.status != INPROGRESS or self._machine.is_alive(lock):
            return
        recorded = self._machine.attempt_of(lock, self._request_id)
        newest, _ = newest_of_request(self._machine, self._request_id, max(1, recorded))
        if (newest is not None and newest.is_open) or self._machine.locks.get(lock.lock_token) != lock:
            return  # it may be settling the lock just now, or has done so
        execution = self._machine.owner(lock)
        how = f"the lease of {lock.locked_by} is over"
        if lock.is_of_an_execution:
            end = execution.failure.error if execution else "not to be described"
            how = f"the execution {lock.locked_by} is closed ({end})"
        token = self._machine.token_to_give(self._request_id, lock.lock_token)
        try:
            is_done, work = self._work_of_the_dead(lock, execution, seconds)
        except (HistoryTooLong, Unavailable, ClientError):
            if self._work_ran:
                return  # as it did when the history was read last
            raise Unsettled(
                f"Request {self._request_id!r}: {how} and left its lock open. Whether its work may still run "
                "could not be found out. Look at the request.",
                next_steps=[NextStep("show request", self._request_id, lock_token=token)],
            ) from None
        self._work_ran = work is not None and work.execution_arn is not None
        if self._work_ran:
            return  # like an owner that lives, it may still end the work
        if self._machine.locks.get(lock.lock_token) != lock:
            return  # it was settled while the history was read
        if is_done:
            raise unwritten(self._request_id, lock)
        raise self._left_open(how, work, token)

    def _left_open(self, how: str, work: OpenWork | None, token: str | None) -> Unsettled:
        """The error for a lock whose owner has died, with the next step."""
        said = f"Request {self._request_id!r}: {how} and left its lock open."
        if work is not None and work.hidden is not None:
            return Unsettled(
                f"{said} {work.hidden}",
                next_steps=[NextStep("show request", self._request_id, lock_token=token)],
            )
        if work is not None:
            return Unsettled(
                f"{said} {work.in_words} Then start it again with check_owner=True.",
                next_steps=[NextStep(work.look, self._request_id, lock_token=token)],
            )
        return Unsettled(
            f"{said} Start the request again with check_owner=True to settle it.",
            next_steps=[NextStep("start request", self._request_id, lock_token=token, check_owner=True)],
        )

    def _work_of_the_dead(
        self, lock: Lock, execution: Execution | None, seconds: float
    ) -> tuple[bool, OpenWork | None]:
        """
        Whether it is done and no start can record it; and as `work_of`, if the history tells it in time.

        Raises:
            HistoryTooLong: it does not.
            Unavailable: no answer.
            ClientError: AWS refused.
        """
        until = time.monotonic() + seconds
        with reading_until(lambda: time.monotonic() >= until):
            try:
                return is_unwritten(self._machine, lock, execution), self._work_of(lock, execution)
            except OwnerHidden as hidden:
                return False, OpenWork(hidden=str(hidden))


def _may_be_over(receipt: Receipt, seen_running: str) -> bool:
    """
    Whether a request may have another attempt by now, which is not visible yet.

    Args:
        receipt: Of the newest attempt that is visible.
        seen_running: The attempt that this wait has seen running last. Its refusal by the rate limit is the
            answer, until the window is over.
    """
    if receipt.resets_at is not None:
        return receipt.resets_at <= times.now() or receipt.execution_arn != seen_running
    has_died = receipt.status == "FAILED" and receipt.attempt == 0
    return receipt.may_run_again or (has_died and not Failure(receipt.error, receipt.cause).turns_away)
