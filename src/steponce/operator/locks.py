"""
Releases, completes or retries a lock on behalf of an operator, if that is allowed.

A final outcome never changes. Nothing is done while the owner or its work may still run. The outcome that a
dead owner left is recorded first, by `settle_owner`. The fence of each write is the record that the operator
saw: if it has changed since, nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from steponce.aws import times
from steponce.aws.errors import error_code, is_refusal, what_happened
from steponce.errors import (
    InvalidEventTime,
    LockTokenMismatch,
    NotRecorded,
    OutputTooLarge,
    PayloadMismatch,
    RecordChanged,
    Refused,
    ResultForbidden,
    StartRefused,
    StartUnknown,
    TooManyAttempts,
    Unavailable,
)
from steponce.executions import Execution
from steponce.failure import Failure
from steponce.locks.record import Intervention, Lock
from steponce.locks.reference import Reference
from steponce.locks.results import LARGEST_IN_RECORD, Results, carried_bytes
from steponce.next_step import NextStep
from steponce.operator.allowed import (
    LockAction,
    expect_dead,
    expect_no_result,
    expect_own,
    expect_unanswered,
    state_of,
)
from steponce.recovery.owner import Finding, settle_owner, unsettled_work
from steponce.request.canonical import canonical_json
from steponce.request.envelope import Envelope
from steponce.request.machine import Machine, is_attempt_of
from steponce.request.names import MAX_ATTEMPT, name_of
from steponce.request.newest import newest_under, running_without_lock
from steponce.request.receipt import Receipt
from steponce.request.start import Start
from steponce.workflow import COMPLETED, FAILED, INPROGRESS, RELEASED, WORKFLOW_LIMIT

RELEASE = Failure("Released", "A person has released the lock of this request.")
"""The failure of a released request that has none. Callers get it, so it does not say who and why."""

_OF_A_KEY = "KMS key access denied"
"""How DynamoDB's message begins if it was not the table that refused the caller, but its key."""

_DELETING = "that needs s3:DeleteObjectVersion"
_DONE: Mapping[LockAction, str] = {"release": "released", "complete": "completed", "retry": "released"}


class Operator:
    """
    Changes lock records of one machine on behalf of a person.

    Args:
        machine: The machine with its lock table.
        by: The person's name, for the record's interventions.
        work_timeout_seconds: How long the machine's work may run after its execution was stopped. A record
            that says longer is believed.
    """

    def __init__(self, machine: Machine, *, by: str, work_timeout_seconds: float) -> None:
        self._machine = machine
        self._by = by
        self._work_timeout_seconds = work_timeout_seconds

    def prepare(self, action: LockAction, lock: Lock) -> Lock:
        """
        Check that an action is allowed, after recording the outcome that a dead owner left.

        Returns:
            The record as it is now. Show it to the operator.

        Raises:
            Refused: the action is not allowed; the message says why and what to do instead.
            Unavailable: no answer; safe to try again.
        """
        expect_own(self._machine, lock)
        child = expect_dead(self._machine, lock, self._work_timeout_seconds)
        if action == "retry" and not lock.is_of_an_execution:
            expect_unanswered(action, lock)
            is_free = lock.status == RELEASED
            raise Refused(
                f"The record {lock.lock_token!r} is plain Python's ({lock.locked_by}), which no command can "
                f"start. {'The lock is free: run' if is_free else 'Release the lock, and run'} that again.",
                next_steps=[] if is_free else [NextStep("release lock", lock.lock_token)],
            )
        found = Finding("settled")
        if lock.status == INPROGRESS:
            found = self._settle(lock)
            lock = self._again(lock)
            child = expect_dead(self._machine, lock, self._work_timeout_seconds)
        if found.verdict == "alive":
            raise Refused(found.reason) if found.reason else self._not_settled(lock)
        if found.verdict == "unwritten" and action != "complete":
            raise Refused(
                f"The work under {lock.lock_token!r} is done, and its result is not on record. Look it up, "
                "and complete the lock with it.",
                next_steps=[NextStep("complete lock", lock.lock_token)],
            )
        expect_unanswered(action, lock)
        if action != "complete":
            expect_no_result(lock, child)
        return lock

    def release(self, lock: Lock, why: str) -> Lock:
        """
        Free the lock at once.

        Args:
            lock: The record that `prepare` returned and the operator saw.
            why: The reason, for the record's interventions.

        Raises:
            RecordChanged: the record has changed. The message says whether this command has written before.
            Refused: its owner runs again, or the execution that is its work has succeeded.
            Unavailable: no answer; the same command is safe to try again.
        """
        expect_no_result(lock, expect_dead(self._machine, lock, self._work_timeout_seconds))
        failure = lock.failure or RELEASE
        written = self._machine.locks.release(lock, failure, by=self._by, why=why)
        return self._written(lock, "release", why, sure=written)

    def complete(self, lock: Lock, result: str, why: str) -> Lock:
        """
        Record a final result (JSON text by `result_text`). Arguments and errors as `release`.

        What was kept in the bucket is deleted again if the record has changed. If the write is refused or
        gets no answer, the error names it.

        Raises:
            ResultNotKept: the result is too large for the record, and the bucket did not take it. Nothing was
                written.
            NotRecorded: the result is in the bucket, and DynamoDB refused a call, for example because a
                permission is missing.
        """
        expect_dead(self._machine, lock, self._work_timeout_seconds)
        results, reference, given = self._machine.results, None, result
        if results and carried_bytes(result) > LARGEST_IN_RECORD:
            reference = results.keep(
                result,
                lock_token=lock.lock_token,
                call_id=lock.call_id,
                retention_seconds=lock.retention_seconds,
            )
            result = reference.to_json()
        try:
            written = self._machine.locks.complete(lock, result, by=self._by, why=why)
            return self._written(lock, "complete", why, sure=written, result=result)
        except RecordChanged as changed:
            if reference is not None:
                self._delete(reference, changed)
            raise
        except (BotoCoreError, ClientError, Unavailable) as error:
            if reference is None:
                raise
            left = f"{_place(reference)} If the record does not name it, delete it there; {_DELETING}."
            if isinstance(error, ClientError):  # no repetition helps, and each would keep the result anew
                raise NotRecorded(f"{_refusal(error)} {left}", lock.lock_token, given) from error
            raise Unavailable(f"{error} {left}") from error

    def payload_of(self, lock: Lock) -> Mapping[str, Any]:
        """
        The input of the lock's last owner. The next attempt starts with it.

        Raises:
            Refused: the execution is forgotten, or its input does not belong to this lock.
        """
        expect_own(self._machine, lock)
        owner = self._machine.describe_arn(lock.locked_by)
        steps = [NextStep("start request", lock.request_id, lock_token=lock.lock_token)]
        first = "Start"
        if lock.status != RELEASED:
            first = "Release the lock, and start"
            steps.insert(0, NextStep("release lock", lock.lock_token))
        if owner is None or owner.owns(lock) is False:
            raise Refused(
                f"The execution {lock.locked_by} is forgotten, and its payload with it. {first} the "
                "request with that payload.",
                next_steps=steps,
            )
        same_payload = self._machine.payload_hash_of(owner.input) == lock.payload_hash
        if not same_payload or not isinstance(owner.input.get("payload"), Mapping):
            raise Refused(
                f"The input of the execution {lock.locked_by} does not hold the payload of this record. "
                f"{first} the request yourself.",
                next_steps=steps,
            )
        return owner.input

    def retry(self, lock: Lock, execution_input: Mapping[str, Any], why: str) -> tuple[Lock, Receipt]:
        """
        Release the lock and start the request's next attempt with the input from `payload_of`.

        A free lock is not released again. A name for the attempt is found before anything is written.

        Raises:
            TooManyAttempts: no name is free; nothing was written.
            Refused: the newest attempt has another lock token; nothing was written.
            StartUnknown: no answer to the start. The lock is released, and the attempt may have started. Look
                before you repeat the retry: if that attempt has failed already, the work runs once more.
            StartRefused: AWS refused the start. The lock is released, and nothing was started.
            Unavailable: no answer before the start; safe to try again.
            SteponceError: as `release`, and as `Client.start`; a lock that was released stays so.
        """
        expect_own(self._machine, lock)
        envelope = self._envelope(lock, execution_input)
        attempt = max(1, self._machine.attempt_of(lock, lock.request_id))
        newest, last = newest_under(self._machine, name_of(lock.request_id), attempt)
        if last >= MAX_ATTEMPT:
            raise TooManyAttempts(
                f"The request {lock.request_id!r} has no name for another attempt. Nothing was written. "
                "Release the lock, and start the request under another id.",
                next_steps=[NextStep("release lock", lock.lock_token)],
            )
        start = Start(self._machine, envelope, check_owner=False)
        if newest is not None and is_attempt_of(newest, lock.request_id):
            self._expect_newest_key(start, newest, lock)
        released = self._again(lock) if lock.status == RELEASED else self.release(lock, why)
        self._expect_free(lock, released)
        known = self._machine.execution_arn(name_of(lock.request_id), last)
        may_have_begun = lock.status == RELEASED and (
            newest is None
            or newest.is_open
            or running_without_lock(self._machine, lock, lock.request_id, known) is not None
        )
        try:
            return released, start.run() if may_have_begun else start.run_as(last + 1)
        except PayloadMismatch:
            token = self._machine.token_to_give(lock.request_id, lock.lock_token)
            raise RecordChanged(
                f"The lock {lock.lock_token!r} was free, and then somebody started the request "
                f"{lock.request_id!r} with another payload. Look at that one.",
                next_steps=[NextStep("show request", lock.request_id, lock_token=token)],
            ) from None
        except (BotoCoreError, ClientError, Unavailable) as error:
            if is_refusal(error) and not start.sent_twice:
                raise self._start_refused(lock, error) from error
            raise self._start_unknown(lock, error) from error

    def _envelope(self, lock: Lock, execution_input: Mapping[str, Any]) -> Envelope:
        """The envelope of a retry. It counts in its old window, or now if the counts of that may be gone."""
        sent = execution_input.get("redelivery")
        redelivery = sent if isinstance(sent, Mapping) else None
        make = partial(
            Envelope.make,
            lock.request_id,
            execution_input["payload"],
            self._machine.rules,
            lock_token=lock.lock_token,
            requested_at=_time_of(execution_input),
        )
        try:
            return make(count_at=_counted_at(execution_input), redelivery=redelivery)
        except InvalidEventTime:
            now = times.now()
            resent = redelivery and {**redelivery, "countAt": times.to_text(now)}
            return make(count_at=now, redelivery=resent)

    def _expect_newest_key(self, start: Start, newest: Execution, lock: Lock) -> None:
        """Refuse if the newest attempt has another lock token, as on a stack that was made again."""
        try:
            start.expect_same_key(newest)
        except LockTokenMismatch:
            token = str(self._machine.lock_token_of(name_of(lock.request_id), newest.input))
            raise Refused(
                f"The newest attempt of request {lock.request_id!r} has the lock token {token!r}, and not "
                f"{lock.lock_token!r}. Nothing was written. Look at that record.",
                next_steps=[NextStep("inspect lock", token)],
            ) from None

    def _expect_free(self, lock: Lock, released: Lock) -> None:
        """Raise RecordChanged if somebody has settled or taken the lock since its release."""
        is_its_own = self._machine.made(released, lock.request_id)
        is_settled = released.status in (COMPLETED, FAILED) and released.attempt == lock.attempt
        if is_settled or (not is_its_own and released.status != RELEASED):
            whose = "" if is_its_own else f" of {released.request_id or 'an owner without an id'}"
            raise RecordChanged(
                f"The record {lock.lock_token!r} has changed since its release: it is {state_of(released)}"
                f"{whose}. Nothing was started. Look again.",
                next_steps=[NextStep("inspect lock", lock.lock_token)],
            )

    def _start_refused(self, lock: Lock, error: BotoCoreError | ClientError | Unavailable) -> StartRefused:
        return StartRefused(
            f"{what_happened(error)} The lock {lock.lock_token!r} is released, and this command has started "
            f"nothing: the next start of request {lock.request_id!r} runs the work. Once the cause is gone, "
            "repeat the command.",
            next_steps=[NextStep("retry lock", lock.lock_token)],
        )

    def _start_unknown(self, lock: Lock, error: BotoCoreError | ClientError | Unavailable) -> StartUnknown:
        token = self._machine.token_to_give(lock.request_id, lock.lock_token)
        return StartUnknown(
            f"{what_happened(error)} The lock {lock.lock_token!r} is released, and the next attempt of "
            f"request {lock.request_id!r} may have started. Look before you repeat the command: if that "
            "attempt has failed already, the work runs once more.",
            next_steps=[NextStep("show request", lock.request_id, lock_token=token)],
        )

    def _settle(self, lock: Lock) -> Finding:
        """Settle a dead owner. An unknown outcome is not held for a person, because the operator is here."""
        return settle_owner(
            lock,
            self._machine.sfn,
            self._machine.locks,
            work_timeout_seconds=self._work_timeout_seconds,
            when_outcome_unknown="take-over",
            by=self._by,
            home=self._machine.arn,
        )

    def _not_settled(self, lock: Lock) -> Refused:
        """Why the lock of an owner that does not run could not be settled yet."""
        owner = self._machine.owner(lock)
        work = unsettled_work(lock, owner, self._machine.sfn, self._work_timeout_seconds)
        if work is None:
            return Refused(
                f"How the execution {lock.locked_by} ended cannot be seen yet, or its work may still run. "
                "Nothing was written; try again in a minute."
            )
        token = self._machine.token_to_give(lock.request_id, lock.lock_token)
        return Refused(
            f"The execution {lock.locked_by} has ended without an outcome on record. {work.in_words} Nothing "
            "was written; wait until then, and try again.",
            next_steps=[NextStep(work.look, lock.request_id, lock_token=token)],
        )

    def _again(self, lock: Lock) -> Lock:
        """The record as it is now, if it is still of the owner that was settled."""
        found = self._machine.locks.get(lock.lock_token)
        if found is None or found.call_id != lock.call_id:
            now = "gone" if found is None else f"{found.status} now, of attempt {found.attempt}"
            raise RecordChanged(
                f"The record {lock.lock_token!r} has changed since you looked: it is {now}. Look again.",
                next_steps=self._look(lock, found),
            )
        return found

    def _look(self, lock: Lock, now: Lock | None) -> list[NextStep]:
        """How to look again. A record that is gone cannot be inspected, but its request can be shown."""
        if now is not None:
            return [NextStep("inspect lock", lock.lock_token)]
        if not lock.is_of_an_execution:
            return []
        token = self._machine.token_to_give(lock.request_id, lock.lock_token)
        return [NextStep("show request", lock.request_id, lock_token=token)]

    def _written(
        self, lock: Lock, action: LockAction, why: str, *, sure: bool, result: str | None = None
    ) -> Lock:
        """The record after a write. A refused write may be a repetition whose first answer was lost."""
        now = self._machine.locks.get(lock.lock_token)
        is_another = action == "complete" and now is not None and now.call_id != lock.call_id
        if now is not None and ((sure and not is_another) or self._is_ours(lock, now, action, why, result)):
            return now
        what = "it is gone" if now is None else f"it is {state_of(now)}"
        if sure or (now is not None and self._was_ours(lock, now, action, why)):
            told = f"The record was {_DONE[action]} as you said, and has changed since: {what}. Look again."
        elif now is None or now.call_id != lock.call_id:
            told = f"The record has changed since you looked: {what}. Look again."
        else:
            told = (
                f"The record has changed since you looked: {what}. This command has not {_DONE[action]} it; "
                "look again."
            )
        raise RecordChanged(told, next_steps=self._look(lock, now))

    def _delete(self, reference: Reference, changed: RecordChanged) -> None:
        """Delete a result that no record names: the customer may have been erased meanwhile."""
        try:
            self._machine.results.delete([(reference.key, reference.version)])
        except (ResultForbidden, Unavailable) as error:
            raise RecordChanged(
                f"{changed} {_place(reference)} It could not be deleted. Delete it there; {_DELETING}.",
                next_steps=changed.next_steps,
            ) from error

    def _is_ours(self, before: Lock, now: Lock, action: LockAction, why: str, result: str | None) -> bool:
        if now.call_id != before.call_id or now.interventions == before.interventions:
            return False
        if result is not None and now.result != result:
            return False  # somebody with the same name and reason was quicker
        return self._did(now.interventions[-1], action, why)

    def _was_ours(self, before: Lock, now: Lock, action: LockAction, why: str) -> bool:
        """Whether this command has written, and others after it, before its own answer came."""
        if action == "complete" and now.call_id == before.call_id:
            return False  # another result: somebody else has completed it, with the same name and reason
        since = [one for one in now.interventions if one not in before.interventions]
        return any(self._did(one, action, why) for one in since)

    def _did(self, one: Intervention, action: LockAction, why: str) -> bool:
        return one.by == self._by and one.what == _DONE[action] and one.why == why


def result_text(value: Any, results: Results) -> str:
    """
    Convert a result given by hand to the text that a record or the bucket of large results stores.

    Raises:
        InvalidPayload: it has no JSON form.
        OutputTooLarge: it is too large for a workflow to replay, and there is no bucket for it.
    """
    text = canonical_json(value, "result")
    size = len(text.encode())
    if size > WORKFLOW_LIMIT and not results:
        raise OutputTooLarge(
            f"The result has {size:,} bytes; {WORKFLOW_LIMIT:,} are allowed, because a workflow replays it. "
            "Keep the large part in S3 and give its address, or set the parameter ResultBucket."
        )
    return text


def _refusal(error: ClientError) -> str:
    """
    Why DynamoDB refused a call, and what to do before the command is repeated.

    A refusal of the table's own key has the same code as a missing permission on the table.

    Source: AWS KMS Developer Guide, "How DynamoDB uses AWS KMS" (the caller needs kms:Decrypt).
    """
    said = str(error.response["Error"].get("Message", "")).strip().rstrip(".")
    told = f"DynamoDB refused {error.operation_name} with {error_code(error)}{said and ': '}{said}."
    if error_code(error) == "AccessDeniedException":
        missing = f"dynamodb:{error.operation_name} on the lock table"
        if said.startswith(_OF_A_KEY):
            missing = "kms:Decrypt on the KMS key of the lock table"
        return f"{told} The command needs {missing}. Add the permission, and repeat it."
    return f"{told} Correct this, and repeat the command."


def _place(reference: Reference) -> str:
    key, version = reference.key, reference.version
    return f"The result is in the bucket {reference.bucket}, as {key} (version {version})."


def _time_of(execution_input: Mapping[str, Any]) -> datetime | None:
    return _time(execution_input.get("requestedAt"))


def _counted_at(execution_input: Mapping[str, Any]) -> datetime | None:
    """When the window began in which a rate limit has admitted the execution. None if there was no limit."""
    limit = execution_input.get("limit")
    return _time(limit.get("windowStart")) if isinstance(limit, Mapping) else None


def _time(text: Any) -> datetime | None:
    """A time in an execution's input. None if somebody has written something else there by hand."""
    try:
        return times.from_text(text) if isinstance(text, str) else None
    except ValueError:
        return None
