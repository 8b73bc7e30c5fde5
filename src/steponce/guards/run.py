"""
One guarded call, from taking the lock to recording the outcome.

All state of a call is in its Run, so calls may be nested, and run in threads and tasks.
"""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Generator
from types import TracebackType
from typing import Any, Literal, Self

from botocore.exceptions import ClientError

from steponce import fence
from steponce.aws import times
from steponce.aws.errors import is_refusal
from steponce.errors import (
    AlreadyInProgress,
    DuplicateRefused,
    LockLost,
    NotFinished,
    PayloadMismatch,
    RecordUnreadable,
    RetryLater,
    Unavailable,
    Unsettled,
)
from steponce.failure import Failure
from steponce.guards.final_records import FinalRecords
from steponce.guards.holder import Holder
from steponce.guards.recorder import Recorder
from steponce.guards.renewer import Renewer
from steponce.guards.terms import Terms, expect_seconds
from steponce.guards.texts import as_error, lost
from steponce.guards.threads import has_running_loop, in_thread
from steponce.guards.typed import MISFITS
from steponce.locks.claim import Claim, forget
from steponce.locks.record import Lock
from steponce.locks.results import Results
from steponce.locks.table import Locks
from steponce.recovery.leases import hold_after_lease, lease_is_over
from steponce.workflow import COMPLETED, FAILED, INPROGRESS

_INTERRUPTED = "Interrupted before the work began."
_CHANGES = 5
_LONGEST_PAUSE = 2.0

_logger = logging.getLogger(__name__)


class Run:
    """
    One call under a guard. `with` or `async with` takes the lock, and records the outcome at the block's end.

    If the block raises, the options in `Terms` decide how the exception is recorded, and the exception goes
    on to the caller. If the block ends without `complete`, the outcome is unknown: the request is held for a
    person, and the block raises Unsettled.

    Attributes:
        lock_token: The business key. Use it as the idempotency key of calls that your work makes.
        call_id: Unique to this call.
        replayed: Whether the result is an earlier call's. Then the block does nothing.
    """

    def __init__(
        self,
        holder: Holder | None,
        locks: Locks,
        lock_token: str,
        terms: Terms,
        lease: float,
        kept: FinalRecords,
        results: Results,
    ) -> None:
        self._holder = holder
        self._locks = locks
        self._terms = terms
        self._lease_seconds = lease
        self._kept = kept
        self._results = results
        self._recorder = Recorder(holder, terms, results) if holder else None
        self._result: Any = None
        self._state: Literal["new", "begun", "worked", "over"] = "new"
        self._has_result = False
        self._is_left = False
        self._entry = threading.Lock()
        self._renewer: Renewer | None = None
        self._late: LockLost | None = None
        self._process = os.getpid()
        self.lock_token = lock_token
        self.call_id = holder.call_id if holder else ""
        self.replayed = False

    @property
    def attempt(self) -> int:
        """How often the lock was taken under this key. 0 before this call takes it, and for a replay."""
        return self._holder.attempt if self._holder else 0

    @property
    def lease_until(self) -> str:
        """When the lease ends (UTC text)."""
        return self._holder.lease_until if self._holder else times.NEVER

    @property
    def result(self) -> Any:
        """
        The result: this call's, or the one that is replayed. Both are what `deserialize` makes of the record.

        Raises:
            NotFinished: there is no result yet.
        """
        if not self._has_result:
            raise NotFinished(f"The work under {self.lock_token!r} has no result yet. Complete it first.")
        return self._result

    def complete(self, result: Any) -> None:
        """
        Record the result. Later calls replay it. If DynamoDB or S3 did not answer, call this again with the
        same result. Call it in the block's own thread: a block that ends does not wait for another one.

        Args:
            result: JSON, or what `serialize` converts to JSON; at most 262,144 bytes, so that a workflow can
                replay it. With a bucket for large results at most 50 MiB; then the record has the address.

        Raises:
            CompletionRefused: the lease was over, and another owner has the lock.
            NotRecorded: DynamoDB or S3 did not answer, or no record can hold the result. The error has it.
            Unsettled: the result is a coroutine or a generator, so the work may not be done. The request is
                held for a person.
            RuntimeError: the run is over, also by a `complete` that has succeeded; or it has not begun, or
                is a replay.
        """
        self._expect_begun("complete")
        self._state, self._process = "worked", os.getpid()
        if self._recorder is not None:
            try:
                record, written = self._recorder.complete(result)
            finally:
                if self._recorder.is_over:
                    self._state = "over"
            self._kept.keep(record)
        self._stop_renewing()
        self._result, self._has_result, self._state = result, True, "over"
        if self._recorder is not None:
            self._result = self._as_replayed(written, result)

    def _as_replayed(self, written: str, result: Any) -> Any:
        """
        The result as replays will have it, so that everyone gets the same answer.

        Args:
            written: The JSON text of the result.
            result: What the work returned. It stays if the JSON does not fit its type.
        """
        try:
            return self._terms.deserialize(json.loads(written))
        except Exception as error:  # the work is done, and its caller must get the result
            problem = f"its result is not of the call's type ({type(error).__name__})"
            _logger.warning("No other call can replay %r: %s.", self.lock_token, problem)
            return result

    def extend(self, seconds: float | None = None) -> None:
        """
        Extend the lease to this many seconds from now. It is never shortened.

        Args:
            seconds: Default: the lease's first length.

        Raises:
            InvalidSetting: this is no number of seconds.
            LockLost: another owner has the lock. Stop without any effect.
            Unavailable: no answer; safe to try again.
        """
        self._expect_begun("extend")
        if seconds is not None:
            expect_seconds("extend(seconds)", seconds)
        if self._holder is not None:
            refused = self._holder.extend(self._lease_seconds if seconds is None else seconds)
            if refused is not None:
                raise LockLost(f"{lost(refused)} Nothing was extended.")
        self._late = None

    def check(self) -> None:
        """
        The fence: check, with one consistent read, that this call still holds its lock and its lease.

        Call it right before the effect. It protects the invariant that only the lock's present owner acts.

        Raises:
            LockLost: this call does not hold the lock. Stop without any effect.
            RetryLater: the table did not answer.
            Unavailable: the same, after an earlier check has passed. The call may have had an effect since.
        """
        self._expect_begun("check")
        if self._holder is None:
            return
        if self.lease_until <= times.now_text():
            self._late = LockLost(
                f"The lease of {self.lock_token!r} was over at {self.lease_until}. Extend it first."
            )
            raise self._late
        mine = {"lockToken": self.lock_token, "callId": self.call_id, "attempt": self.attempt}
        fence.check(mine, self._locks)

    def claim(self) -> Claim | None:
        """
        What `updates.update_if_mine` checks together with its write. None where guards are switched off.

        Raises:
            RuntimeError: the block has not begun or is over, or the run is a replay.
        """
        self._expect_begun("write")
        if self._holder is None:
            return None
        return Claim(self._locks.table, self.lock_token, self.call_id, self.attempt)

    # -- Begin -----------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._expect_new()
        try:
            for pause in self._begin():
                time.sleep(pause)
            self._start_renewing()
        except BaseException:  # a signal's handler may raise anything
            self._withdraw()
            self._entry.release()
            raise
        return self

    async def __aenter__(self) -> Self:
        step = functools.partial(self._step, self._begin(), asyncio.get_running_loop())
        self._expect_new()
        try:
            while (pause := await in_thread(step)) is not None:
                await asyncio.sleep(pause)
            self._start_renewing()
        except BaseException as error:
            # Before the state is read: see `_step`. After any other error no thread is at work any more.
            self._is_left = not isinstance(error, Exception | asyncio.CancelledError)
            if isinstance(error, GeneratorExit):
                self._withdraw()  # a coroutine that is closed cannot await
            elif self._state == "begun":
                await _off_the_loop(self._withdraw)
            if not self._is_left:
                self._entry.release()
            raise
        return self

    def _step(self, steps: Generator[float, None, None], loop: asyncio.AbstractEventLoop) -> float | None:
        """
        Make one step of `_begin` in a thread. Gives the lock back if nobody is there any more to use it.

        The coroutine may be closed, or its loop, while this takes the lock. This looks after it has set the
        state, and `__aenter__` reads the state after it has left, so one of them gives the lock back. If both
        do, the second write repeats the first.
        """
        pause = None if self._is_left else next(steps, None)
        if self._state == "begun" and (self._is_left or loop.is_closed()):
            self._withdraw()
        return pause

    def _expect_new(self) -> None:
        """Two threads or tasks have the same callId in one run, and so has a forked child."""
        is_forked = self._process != os.getpid()
        if is_forked or self._state != "new" or not self._entry.acquire(blocking=False):
            raise RuntimeError("A run begins once. Call guard.begin again.")

    def _begin(self) -> Generator[float, None, None]:
        """Take the lock, or find the recorded outcome. Yields the pauses to make, in seconds."""
        if self._holder is None:
            self._state = "begun"
            return
        end, pause, changes = time.monotonic() + self._terms.wait_seconds, 0.05, 0
        while (record := self._take(self._holder)) is not None:
            self._expect_same_payload(record)
            if self._answers(record):
                return
            if record.status == INPROGRESS and not lease_is_over(record):
                yield from self._wait(record, end, pause)
                pause = min(pause * 1.5, _LONGEST_PAUSE)
                continue
            changes += 1
            if changes > _CHANGES:
                raise Unavailable(f"The record {self.lock_token!r} keeps changing. Try again.")
            if record.status == INPROGRESS and self._settle(self._holder, record):
                break
        self._state = "begun"

    def _take(self, holder: Holder) -> Lock | None:
        kept = self._kept.get(self.lock_token)
        return kept or self._taking(holder, lambda: holder.acquire(self._lease_seconds))

    def _taking(self, holder: Holder, take: Callable[[], Lock | None]) -> Lock | None:
        """Make the write that takes the lock. Undo it if the work does not begin."""
        try:
            found = take()
            if found is None:
                self._renew_if_late(holder)
            return found
        except BaseException as error:
            is_refused = isinstance(error, RecordUnreadable) or (
                isinstance(error, ClientError) and is_refusal(error)
            )
            if not holder.attempt and is_refused:
                raise
            # A lost answer, or an exception from a signal's handler. The write may have taken effect, but the
            # work does not begin. Without this, others would wait until the lease ends.
            self._give_back("No answer to AcquireLock.")
            raise

    def _renew_if_late(self, holder: Holder) -> None:
        """
        Extend the lease if more than half of it is over before the work begins.

        It was counted before the write that took the lock, and boto3 may have tried that for minutes.
        """
        soon = times.to_text(times.after(times.now(), self._lease_seconds / 2))
        if holder.lease_until >= soon:
            return
        refused = holder.extend(self._lease_seconds)
        if refused is not None or holder.lease_until <= times.now_text():  # DynamoDB is that slow
            gone = f"{lost(refused)} " if refused is not None else ""
            raise Unavailable(f"{gone}Taking {self.lock_token!r} took longer than its lease. Nothing ran.")

    def _expect_same_payload(self, record: Lock) -> None:
        if record.is_reusable(times.now_text()) or self._holder is None:
            return
        if not record.has_payload(self._holder.payload_hash):
            raise PayloadMismatch(
                f"The lock token {self.lock_token!r} was used with another payload. Send the first payload "
                "again, or use a new lock token."
            )

    def _answers(self, record: Lock) -> bool:
        """Whether the record holds an outcome. A result becomes this run's, and a failure raises."""
        if record.is_reusable(times.now_text()) or record.status == INPROGRESS:
            return False
        self._kept.keep(record)
        if record.status == FAILED:
            raise as_error(record)
        if record.status != COMPLETED or record.result is None:
            raise RecordUnreadable(self.lock_token, "status", "is not known to this version")
        if self._terms.when_completed == "refuse":
            raise DuplicateRefused(
                f"The request under {self.lock_token!r} is completed, and this guard refuses duplicates."
            )
        self._replay(record)
        return True

    def _replay(self, record: Lock) -> None:
        result = self._results.read(record)
        try:
            found = self._terms.deserialize(result)
        except MISFITS as error:
            raise RecordUnreadable(
                self.lock_token,
                "result",
                f"is not of this call's type ({type(error).__name__})",
                "The record is whole. Do not delete it, or the work runs again. Correct the function's "
                "annotation, or give `serialize` and `deserialize`.",
            ) from None  # whose text quotes the result
        if self._terms.on_replay is not None:
            found = self._terms.on_replay(found, record)
        self._result, self._has_result, self.replayed, self._state = found, True, True, "over"

    def _wait(self, record: Lock, end: float, pause: float) -> Generator[float, None, None]:
        """Wait until the lock's owner finishes or its lease ends. Yields the pauses to make, in seconds."""
        now: Lock | None = record
        while now is not None and now.status == INPROGRESS and not lease_is_over(now):
            left = end - time.monotonic()
            if left <= 0:
                known = now.lease_until and not now.is_of_powertools
                lease = f" until {now.lease_until} at the latest" if known else ""
                raise AlreadyInProgress(
                    f"The lock {self.lock_token!r} is held by {now.locked_by}{lease}. Ask again later.",
                    now.locked_by,
                    now.lease_until,
                )
            yield min(pause, left)
            pause = min(pause * 1.5, _LONGEST_PAUSE)
            now = self._locks.get(self.lock_token)

    def _settle(self, holder: Holder, record: Lock) -> bool:
        """Take over or hold a lock whose lease is over. Returns whether this call holds it now."""
        if self._terms.when_outcome_unknown == "take-over" and record.lease_until is not None:
            return self._taking(holder, lambda: holder.take_over(record, self._lease_seconds)) is None
        hold_after_lease(record, self._locks, by=holder.locked_by)
        return False

    # -- End -------------------------------------------------------------------------------------

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._end(error)

    async def __aexit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await _off_the_loop(lambda: self._end(error))

    def _leave(self) -> Literal["new", "begun", "worked", "over"]:
        """End this run and its renewing. Returns how far it was, "over" if there is nothing to write."""
        if self._process != os.getpid():
            return "over"  # a forked child leaves the block, in which its parent still works
        if sys.is_finalizing():
            return "over"  # the interpreter cannot call AWS any more: the lock goes by its lease
        self._stop_renewing()
        forget(self.call_id, self.attempt)
        state, self._state = self._state, "over"
        return state

    def _withdraw(self) -> None:
        """Give the lock back if it is taken and its block is not entered."""
        if self._state == "begun" and self._leave() == "begun":
            self._give_back(_INTERRUPTED)

    def _give_back(self, why: str) -> None:
        if self._holder is None:
            return
        try:
            self._holder.give_back(Failure(RetryLater.__name__, why))
        except Exception as error:  # the one that is under way matters more
            _logger.warning("The lock %r may be held until its lease ends: %s", self.lock_token, error)

    def _end(self, error: BaseException | None) -> None:
        state = self._leave()
        if state == "worked" and self._recorder is not None:
            self._recorder.hold_unrecorded(error)
        if state != "begun":
            return
        if error is None:
            why = "The block ended without complete(), so nobody knows whether the work took effect."
            if self._recorder is not None:
                self._recorder.hold_unknown(why)
            raise Unsettled(f"{why} The lock {self.lock_token!r} waits for a person.")
        if self._recorder is None or self._leaves_the_lock(error):
            return
        if self._only_takes_over(error):
            self._give_back(str(error))
        else:
            self._recorder.fail(error)

    def _only_takes_over(self, error: BaseException) -> bool:
        """Whether this call has done nothing, so that all that may have happened is its dead owner's."""
        is_own = type(error) is RetryLater and error.raised_by == (self.call_id, self.attempt)
        return is_own and self._holder is not None and self._holder.may_have_taken_over

    def _leaves_the_lock(self, error: BaseException) -> bool:
        """Whether the lock is left to be taken over, as by a death: this call was late, and stopped."""
        if error is not self._late or self._terms.when_outcome_unknown != "take-over":
            return False
        return not isinstance(error, (*self._terms.final, *self._terms.releases))

    def _expect_begun(self, what: str) -> None:
        if self._state == "begun" or (what == "complete" and self._state == "worked"):
            return
        how = "is a replay" if self.replayed else "has not begun" if self._state == "new" else "is over"
        raise RuntimeError(f"The run of {self.lock_token!r} {how}, so there is nothing to {what}.")

    def _start_renewing(self) -> None:
        if self._terms.renew and self._holder is not None and self._state == "begun":
            self._renewer = Renewer(self, self._holder, self._lease_seconds)
            self._renewer.start()

    def _stop_renewing(self) -> None:
        if self._renewer is not None:
            self._renewer.stop()
            self._renewer = None


async def _off_the_loop(call: Callable[[], None]) -> None:
    if has_running_loop():
        await in_thread(call)
    else:
        call()  # the coroutine is closed, and its loop has ended before
