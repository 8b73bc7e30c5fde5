"""
Decides what becomes of the message of an execution that ended badly.

The lock record decides, and not the error's name: without an outcome on record the message comes back. A
message too many is a duplicate. If the record may have held an outcome that has expired since, the
execution's history decides.

Reports of an end may be late or repeated, and a monitor may have been down. By then the message may have come
back and have its answer, and the answer may have expired. Sent again, it might run the work a second time, so
it becomes a dead letter.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from botocore.exceptions import ClientError

from steponce.aws import times
from steponce.errors import RecordUnreadable, Unavailable, shown
from steponce.executions import CANCELLED, describe_execution, nameless_error, read_input, states_entered
from steponce.limits.countable import AHEAD_SECONDS
from steponce.locks.record import KEPT_AFTER_EXPIRY, Lock
from steponce.locks.table import Locks
from steponce.request.envelope import check_lock_token
from steponce.request.names import attempt_name, split_attempt
from steponce.triggers.dead_letters import IF_NOT_ANSWERED
from steponce.triggers.resend import Resender
from steponce.triggers.start_request import StartRequest
from steponce.triggers.written_letters import WrittenLetters, end_of
from steponce.workflow import (
    ANSWERING_STATES,
    COMPLETED,
    FAILED,
    LOCK_HELD,
    MISMATCH,
    RATE_LIMITED,
    READING,
    RELEASING,
    UNANSWERED,
    WORK,
)

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient

SEARCHED_AFTER = timedelta(minutes=16)
"""
From this age on, the search for lost messages examines an end. It is longer than the longest delay of a
resent message, so an end that was reported in time has its next attempt by then. It is also longer than
ListExecutions may lag behind.
"""

_MAY_BE_ANSWERED = (
    f"a record of its lock token that has expired or is gone may have answered it. {IF_NOT_ANSWERED}"
)


@dataclass(frozen=True)
class Unanswered:
    """
    A message without an answer, whose execution ended.

    Args:
        request: What the message asked for.
        error: The error that its execution ended with.
        execution_arn: The execution.
        end: The end of that execution, as `end_of` names it.
        doubt: Why a person has to decide what becomes of it. None if it can be sent again.
    """

    request: StartRequest
    error: str
    execution_arn: str
    end: str
    doubt: str | None = None

    def bring_back(
        self, resender: Resender, letters: WrittenLetters
    ) -> Literal["resent", "dead-lettered", "left alone"]:
        """
        Resend the message. Dead-letter it if its tries are used up, or if a person has to decide.

        It is left alone if this end has got its letter already.

        Args:
            resender: Resends messages.
            letters: The letters that ends have got. If the new one cannot be noted, there may be a second.

        Raises:
            As `Resender.send_again`.
        """
        objection = resender.objection(self.request, self.error)
        reason = objection if self.doubt is None else f"{self.error}: {self.doubt}"
        if reason is None:
            return resender.send_again(self.request, self.error, self.execution_arn)
        if letters.has(self.end):
            return "left alone"
        resender.lay_aside(replace(self.request, letter_of=self.end), reason, self.execution_arn)
        with suppress(ClientError, Unavailable):
            letters.add(self.end)
        return "dead-lettered"


def examine(
    detail: Mapping[str, Any], sfn: SFNClient, locks: Locks, before_call: Callable[[], object] = lambda: None
) -> Unanswered | None:
    """
    Find the message that must come back after an execution ended badly.

    Args:
        detail: The detail of a "Step Functions Execution Status Change" event, or its `executionArn`,
            `stopDate` (milliseconds since 1970) and `redriveCount`.
        sfn: A Step Functions client, for what the event leaves out: a large input, or the error. And for the
            history, and the next attempt.
        locks: The table with the request's record.
        before_call: Is called before each call to Step Functions but the first.

    Returns:
        None if the execution did not come as a message or event, has an outcome or was cancelled, or if a
        later attempt carries the message on. Another payload's outcome is not its own. The input of an
        execution that was started by hand counts as a message only if it has every field that a trigger
        sends.

    Raises:
        Unavailable: Step Functions did not answer, or does not know the execution yet.
    """
    execution_arn, given, error = detail["executionArn"], _input_in(detail), detail.get("error")
    began = times.to_text(_time(detail["startDate"])) if detail.get("startDate") is not None else ""
    if given is None or ("redelivery" in given and not error):
        execution = describe_execution(sfn, execution_arn)
        if execution is None:
            raise Unavailable(f"{execution_arn} cannot be described yet. Try again.")
        given, began = execution.input, execution.started
        error = error or execution.failure.error  # a moment after its end it may still be shown as open
    error = error or nameless_error(detail.get("status"))
    request = None if error == CANCELLED else _request_in(given, error)
    if request is None:
        return None
    lock, doubt = None, None
    try:
        lock = locks.get(given["lockToken"])
    except RecordUnreadable as unreadable:
        doubt = f"{unreadable} {IF_NOT_ANSWERED}"
    end = _End(execution_arn, error, began, _stopped(detail), lock, sfn, before_call)
    if end.has_answer_to(given):
        return None
    if doubt or end.is_late or end.has_expired_since:
        if end.is_carried_on(request):
            return None
        if doubt is None and end.may_be_answered:
            doubt = _MAY_BE_ANSWERED
    if doubt is None and end.has_another_payload:
        doubt = f"The lock token {shown(request.lock_token)} was used with another payload."
    name = end_of(execution_arn, given.get("callId"), detail.get("redriveCount") or 0)
    return Unanswered(request, error, execution_arn, name, doubt)


def brings_back(given: Mapping[str, Any], lock_token: str | None) -> bool:
    """Whether an execution with this input, if it ends badly, brings back a message for this lock token."""
    request = _request_in(given, "")
    return request is not None and request.lock_token == lock_token


@dataclass
class _End:
    """An end of an execution, and the record of its request's lock token."""

    execution_arn: str
    error: str
    began: str
    at: datetime
    lock: Lock | None
    sfn: SFNClient
    before_call: Callable[[], object]
    _entered: frozenset[str] | None = None

    def has_answer_to(self, given: Mapping[str, Any]) -> bool:
        """Whether the execution's request is answered: by the record, or by one that may be gone."""
        answered = _is_answered(self.lock, given)
        if answered is None and self.error not in UNANSWERED:
            return not ANSWERING_STATES.isdisjoint(self._states)
        return bool(answered)

    @property
    def is_late(self) -> bool:
        """Whether it is so old that its message may have come back, and may have its answer."""
        return self._age > SEARCHED_AFTER

    @property
    def has_expired_since(self) -> bool:
        """Whether an answer on record was valid at this end, and is not any more."""
        lock = self.lock
        if lock is None or lock.status not in (COMPLETED, FAILED) or not lock.is_reusable(times.now_text()):
            return False
        return (lock.expires_at or "") > times.to_text(self.at)

    @property
    def has_another_payload(self) -> bool:
        """Whether the workflow has refused the payload. Work, too, may raise an error of that name."""
        return self.error == MISMATCH and WORK not in self._states

    @property
    def may_be_answered(self) -> bool:
        """
        Whether a record that is not valid any more may have answered the message after this end.

        The message may have come back in time, which leaves no trace but the record. There may have been an
        answer in each of these cases:

        - The execution died in its work, and its record is gone or another's. It may have been settled.
        - There was a record, and it is gone. A guard's record goes as soon as it has expired.
        - There is no record, and more than a day has passed. By then any expired record may be gone.
        - The record has an answer that has expired since.
        - Another request has taken the lock since. An answer may have expired before that.
        """
        is_gone = self.lock is None or self.lock.locked_by != self.execution_arn
        if is_gone and self.error not in UNANSWERED and WORK in self._states:
            return True
        if self.lock is None:
            had_record = self.error in LOCK_HELD | RELEASING
            had_record |= self.error not in UNANSWERED and READING in self._states
            return had_record or self._age > KEPT_AFTER_EXPIRY
        return self.has_expired_since or self.lock.taken_at > times.to_text(self.at)

    def is_carried_on(self, request: StartRequest) -> bool:
        """
        Whether the next attempt came as the same message. Then its own end brings the message back.

        Another message with the same id has another lock token or payload. An attempt that failed before this
        end brings nothing back: while this execution was open, its message counted as a duplicate.
        """
        machine, _, execution_name = self.execution_arn.rpartition(":")
        name, attempt = split_attempt(execution_name)
        self.before_call()
        following = describe_execution(self.sfn, f"{machine}:{attempt_name(name, attempt + 1)}")
        if following is None or not brings_back(following.input, request.lock_token):
            return False
        if following.was_over_at(self.began):
            return False  # of an earlier request with this id
        ended_first = following.closed is not None and following.closed < times.to_text(self.at)
        if ended_first and following.status != "SUCCEEDED":
            return False
        return _as_json(following.input["payload"]) == _as_json(request.payload)

    @property
    def _age(self) -> timedelta:
        return times.now() - self.at

    @property
    def _states(self) -> frozenset[str]:
        """The states that it has entered. Not a `cached_property`, which waits for other threads in 3.11."""
        if self._entered is None:
            self.before_call()
            self._entered = states_entered(self.sfn, self.execution_arn)
        return self._entered


def _request_in(given: Mapping[str, Any], error: str) -> StartRequest | None:
    """The request in an execution's input. None unless it has every field that a trigger sends."""
    try:
        redelivery, payload, lock_token = given["redelivery"], given["payload"], given["lockToken"]
        request_id, tries = redelivery["requestId"], int(redelivery["tries"])
        if not isinstance(payload, Mapping) or not request_id.strip() or tries < 0:
            return None
        check_lock_token(lock_token)
        requested_at = times.from_text(given["requestedAt"])
        return StartRequest(request_id, payload, lock_token, requested_at, tries, _count_at(given, error))
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
        return None


def _count_at(given: Mapping[str, Any], error: str) -> datetime | None:
    """
    The time that decides in which window of a rate limit a resent request counts.

    It stays in the window that has admitted it. If that refused it, the window is over by now, because the
    execution has waited for its end. Then the request moves on to the window of the present, or it would be
    refused for ever.
    """
    if error == RATE_LIMITED:
        now, window_end = times.now(), given.get("limit", {}).get("resetsAt")
        if window_end is None or times.from_text(window_end) > now + timedelta(seconds=AHEAD_SECONDS):
            return now  # a deployment has replaced the rule of this window
        return max(now, times.from_text(window_end))
    text = given["redelivery"].get("countAt")
    return None if text is None else times.from_text(text)


def _is_answered(lock: Lock | None, given: Mapping[str, Any]) -> bool | None:
    """
    Whether the record answers the request of an execution. It does not if it has another payload.

    None if it does not tell: there may have been an answer that has expired.
    """
    if lock is None:
        return None
    has_outcome = lock.status in (COMPLETED, FAILED)
    if lock.call_id == given.get("callId"):
        return has_outcome  # also if it has expired: the execution itself has got it
    if not has_outcome or lock.is_reusable(times.now_text()):
        return None
    return "payloadHash" not in given or lock.has_payload(given["payloadHash"])


def _input_in(detail: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The execution's input. None if the event leaves it out because it is large."""
    if not (detail.get("inputDetails") or {}).get("included", True) or not detail.get("input"):
        return None
    return read_input(detail["input"])


def _stopped(detail: Mapping[str, Any]) -> datetime:
    ended = detail.get("stopDate")
    return times.now() if ended is None else _time(ended)


def _time(milliseconds: float) -> datetime:
    """A time as events of Step Functions have it, in milliseconds since 1970."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _as_json(payload: Mapping[str, Any]) -> str:
    """A text by which payloads can be compared. In Python 1 and True are equal, and in JSON they are not."""
    return json.dumps(payload, sort_keys=True)
