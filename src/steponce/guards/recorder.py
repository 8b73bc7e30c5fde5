"""Writes the outcome of one guarded call's work into the record of its lock."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn

from steponce.errors import (
    CompletionRefused,
    InvalidPayload,
    NotRecorded,
    OutputTooLarge,
    PayloadTooLarge,
    ResultNotKept,
    RetryLater,
    SteponceError,
    Unsettled,
)
from steponce.failure import Failure
from steponce.guards.holder import Holder
from steponce.guards.lazy_results import expect_run, is_unfinished
from steponce.guards.terms import Terms
from steponce.guards.texts import failure_of, lost, without_text
from steponce.locks.record import Lock
from steponce.locks.results import LARGEST_IN_RECORD, LARGEST_KEPT, Results, carried_bytes
from steponce.next_step import NextStep
from steponce.request.canonical import canonical_json
from steponce.workflow import OUTCOME_UNKNOWN, RESULT_TOO_LARGE, WORKFLOW_LIMIT

_logger = logging.getLogger(__name__)


class Recorder:
    """
    The outcome of one call, and the record that gets it.

    Args:
        holder: Of the lock.
        terms: Which errors release the lock, and which are final.
        results: The bucket of results that are too large for the record.

    Attributes:
        is_over: Whether no try can write the result any more.
    """

    def __init__(self, holder: Holder, terms: Terms, results: Results) -> None:
        self._holder = holder
        self._terms = terms
        self._results = results
        self._large: tuple[str, str] | None = None
        self.is_over = False

    def complete(self, result: Any) -> tuple[Lock, str]:
        """
        Write the result. Safe to repeat while it is not over.

        Returns:
            The record that it wrote, and the result as JSON text, also where the record has but its address.

        Raises:
            CompletionRefused, NotRecorded, Unsettled: as `Run.complete`.
        """
        limit = LARGEST_KEPT if self._results else WORKFLOW_LIMIT
        try:
            text = canonical_json(self._terms.serialize(result), "result", limit=limit)
            expect_run(result)
        except Exception as error:  # `serialize` is the user's function
            self.hold_unwritable(result, error)
        try:
            recorded = self._fitting(text)
            refused = self._holder.complete(recorded)
        except ResultNotKept as error:
            self.hold_unwritable(result, error)
        except Exception as error:  # whatever it is, the result must not be lost with it
            raise NotRecorded(
                f"The work under {self._token!r} is done, and its result could not be written down. {error} "
                "Complete it again, or complete its lock by hand.",
                self._token,
                result,
                next_steps=[NextStep("complete lock", self._token)],
            ) from error
        if refused is not None:
            self.is_over = True
            raise CompletionRefused(
                f"{lost(refused)} The work was late. Only this error holds its result. Find out whether the "
                "work took effect twice.",
                self._token,
                result,
            )
        return self._holder.finished(recorded), text

    def hold_unwritable(self, result: Any, error: Exception) -> NoReturn:
        """
        The work is done, and no record can hold its result. A person completes the lock.

        Args:
            result: What the work returned.
            error: Why it cannot be written.

        Raises:
            NotRecorded: it has the result.
            Unsettled: the result is a coroutine, a generator or a future, so the work may not be done.
        """
        self.is_over = True
        if is_unfinished(result):
            self._hold_unfinished(result)
        too_large = isinstance(error, PayloadTooLarge | OutputTooLarge | ResultNotKept)
        name = RESULT_TOO_LARGE if too_large else InvalidPayload.__name__
        cause = f"The work is done, and no record can hold its result ({type(error).__name__})."
        self._hold(Failure(name, cause))
        own = error if isinstance(error, SteponceError) else None  # others' texts may quote the result
        why = own or f"Its conversion to JSON raised {type(error).__name__}."
        raise NotRecorded(
            f"The work under {self._token!r} is done, and no record can hold its result. {why} "
            "Complete its lock by hand. Keep a large part elsewhere and record its address, or set the "
            "parameter ResultBucket.",
            self._token,
            result,
            next_steps=[NextStep("complete lock", self._token)],
        ) from own

    def fail(self, error: BaseException) -> None:
        """
        Write how the work failed: the lock is released, has a final error, or waits for a person.

        What asking the error raises, if it is no Exception, goes on to the caller after the write: a Ctrl-C
        may come just then, and cannot be told from an error whose `__str__` raises KeyboardInterrupt.
        """
        write: Callable[[Failure], Lock | None] = self._holder.hold
        failure = without_text(error)
        try:
            write = self._write_for(error)
            failure = failure_of(error)
        finally:
            self._write(lambda: write(failure), error)

    def hold_unknown(self, why: str) -> None:
        """Nobody knows whether the work took effect, so a person decides."""
        self._hold(Failure(OUTCOME_UNKNOWN, why))

    def hold_unrecorded(self, error: BaseException | None) -> None:
        """
        The work is done, and no try has written its result.

        Also where unknown outcomes are taken over: the work must not be run again.

        Args:
            error: What goes to the caller, if anything does.
        """
        cause = "The work is done, and its result was not recorded. Complete the lock with the result."
        self._hold(Failure(NotRecorded.__name__, cause), error)

    def _hold_unfinished(self, result: object) -> NoReturn:
        """What returned a coroutine may have had an effect before, so that a person decides."""
        returned = f"an unfinished {type(result).__name__}"
        why = f"The work returned {returned} and not its result, so nobody knows whether it took effect."
        self.hold_unknown(why)
        raise Unsettled(
            f"{why} The lock {self._token!r} waits for a person. Guard the `async def` itself, await "
            "all that it starts, and return a list instead of a generator."
        )

    def _write_for(self, error: BaseException) -> Callable[[Failure], Lock | None]:
        try:
            if isinstance(error, (RetryLater, *self._terms.releases)):
                return self._holder.release
            if isinstance(error, self._terms.final):
                return self._holder.fail
        except Exception:  # a class may have its own idea of what its instances are
            _logger.warning("Whether the error is in `releases` or `final` cannot be told. It is held.")
        return self._holder.hold

    def _fitting(self, text: str) -> str:
        """What the record gets: the result, or the address of a large one, the same at each try."""
        if not self._results or carried_bytes(text) <= LARGEST_IN_RECORD:
            return text
        if self._large is None or self._large[0] != text:
            self._large = (text, self._holder.keep(text, self._results))
        return self._large[1]

    def _hold(self, failure: Failure, error: BaseException | None = None) -> None:
        self._write(lambda: self._holder.hold(failure), error)

    def _write(self, write: Callable[[], Lock | None], error: BaseException | None) -> None:
        """Record how the work failed. If the write fails, the work's own error still goes to the caller."""
        try:
            refused = write()
            problem = lost(refused) if refused is not None else ""
        except Exception as unwritten:  # the work's own error matters more
            problem = str(unwritten)
        if problem:
            note = f"The outcome of the work under {self._token!r} could not be recorded. {problem}"
            _logger.warning(note)
            if error is not None:
                with suppress(Exception):  # an error may be frozen
                    error.add_note(note)

    @property
    def _token(self) -> str:
        return self._holder.lock_token
