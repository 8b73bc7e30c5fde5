"""One awaiting step: the step's task token, and then the answer that it got."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from math import isnan
from typing import Any, Self

from steponce.aws import times
from steponce.aws.dynamodb import MOST, Attributes, Item
from steponce.callbacks.answer import Answer
from steponce.errors import InvalidAnswer, InvalidRequest
from steponce.request.canonical import sha256

PENDING = "PENDING"
ANSWERING = "ANSWERING"
ANSWERED = "ANSWERED"
LATE = "LATE"

_MAY_BE_ID = re.compile("[!-~]{1,200}")
"""What a table can look for. Text that is no id names no step, and gets the verdict `unknown`."""


@dataclass(frozen=True)
class AwaitingStep:
    """
    One awaiting step. Times are UTC text. `task_token` is a secret and never appears in logs or output.

    `answer`, `claim` (the call that brought it) and `answered_at` are set from ANSWERING on, and None for
    LATE. An answer that was sent with the raw task token has no `claim`, and its `answered_at` is the time
    when it was found.

    `answer_by` is when the state ends if neither an answer nor a heartbeat comes before. It is `expires_at`
    if the state has no heartbeat, or did not pass it.
    """

    id: str
    step: str
    status: str
    task_token: str
    execution: str
    request_id: str
    lock_token: str
    call_id: str
    attempt: int
    entered_at: str
    retry_count: int
    expires_at: str
    answer_by: str
    answer: Answer | None = None
    claim: str | None = None
    answered_at: str | None = None

    @classmethod
    def from_event(cls, event: Mapping[str, Any]) -> Self:
        """
        Read the event that the workflow sends to the function record_awaiting_step.

        All tries of a step in one run share an id, and no other run has it. The id contains a hash of the
        random callId, so it cannot be guessed. A retry's time-out starts anew, but its EnteredTime is the
        first try's. So the expiry counts from now, or from EnteredTime if that is later.

        Raises:
            InvalidRequest: the state does not pass a field, or passes what no record can hold. The message
                names the field, and never quotes the value, which may be the token.
        """
        try:
            step, lock_token = _passed_text(event, "step"), _passed_text(event, "lockToken")
            call_id, attempt = _passed_text(event, "callId"), _passed_whole(event, "attempt", least=1)
            run = (lock_token, step, call_id, str(event["attempt"]))
            entered, timeout = _passed_time(event, "enteredAt"), _passed_seconds(event, "timeoutSeconds")
            heartbeat = _passed_seconds(event, "heartbeatSeconds") if "heartbeatSeconds" in event else timeout
            since = max(entered, times.now())
            return cls(
                id=f"as_{sha256(json.dumps(run))[:40]}",
                step=step,
                status=PENDING,
                task_token=_passed_text(event, "taskToken"),
                execution=_passed_text(event, "execution"),
                request_id=_passed_text(event, "requestId"),
                lock_token=lock_token,
                call_id=call_id,
                attempt=attempt,
                entered_at=times.to_text(entered),
                retry_count=_passed_whole(event, "retryCount", least=0),
                expires_at=times.to_text(times.after(since, timeout)),
                answer_by=times.to_text(times.after(since, min(heartbeat, timeout))),
            )
        except KeyError as missing:
            raise InvalidRequest(
                f"The waiting state does not pass {missing} to its function. Add it to its Parameters."
            ) from None

    @classmethod
    def from_item(cls, item: Item) -> Self:
        """
        Read a DynamoDB item in its typed form.

        Raises:
            RecordUnreadable: an attribute is missing, or has a form that this class never writes.
        """
        read = Attributes(item, "awaitingStepId")
        status, answer = read.text("status"), _answer(read)
        if status not in (PENDING, ANSWERING, ANSWERED, LATE):
            read.refuse("status", "is none that a step can have")
        if answer is None and status in (ANSWERING, ANSWERED):
            read.refuse("answer", "is missing")
        return cls(
            id=read.key,
            step=read.text("step"),
            status=status,
            task_token=read.text("taskToken"),
            execution=read.text("execution"),
            request_id=read.text("requestId"),
            lock_token=read.text("lockToken"),
            call_id=read.text("callId"),
            attempt=read.whole("attempt", least=1),
            entered_at=read.time("enteredAt"),
            retry_count=read.whole("retryCount", least=0),
            expires_at=read.time("expiresAt"),
            answer_by=read.optional_time("answerBy") or read.time("expiresAt"),
            answer=answer,
            claim=read.optional_text("claim"),
            answered_at=read.optional_time("answeredAt"),
        )

    def public(self) -> dict[str, Any]:
        """The fields that may be shown and logged: all but the token and the answer's content."""
        return {
            "awaitingStepId": self.id,
            "step": self.step,
            "status": self.status,
            "requestId": self.request_id,
            "lockToken": self.lock_token,
            "attempt": self.attempt,
            "expiresAt": self.expires_at,
            "answerBy": self.answer_by,
        }

    def is_older_than(self, other: AwaitingStep) -> bool:
        """Whether the other one is a later try of the same step."""
        return (self.entered_at, self.retry_count) < (other.entered_at, other.retry_count)

    def __repr__(self) -> str:
        return f"AwaitingStep({self.public()})"


def answer_to_step(event: Any) -> tuple[str, Answer]:
    """
    Read `{"awaitingStepId": …, "answer": …}`, as a message or an invocation has it.

    Returns:
        The awaiting-step id, and the answer.

    Raises:
        InvalidAnswer: there is no awaiting-step id, or `Answer.parse` refuses the answer.
        OutputTooLarge: as `Answer.parse`.
    """
    step_id = event.get("awaitingStepId") if isinstance(event, Mapping) else None
    if not isinstance(step_id, str) or not _MAY_BE_ID.fullmatch(step_id):
        raise InvalidAnswer(
            'An answer names its step by its id, as_…. Send {"awaitingStepId": …, "answer": …}.'
        )
    return step_id, Answer.parse(event.get("answer"))


def _passed_text(event: Mapping[str, Any], name: str) -> str:
    if not isinstance(event[name], str) or not event[name]:
        raise _not_passed(
            name, "text that is not empty", "Make text of a number or of JSON with States.Format."
        )
    return str(event[name])


def _passed_whole(event: Mapping[str, Any], name: str, *, least: int) -> int:
    wanted = f"a whole number from {least} to {MOST}"
    try:
        number = int(event[name])
    except (TypeError, ValueError, OverflowError):
        raise _not_passed(name, wanted) from None
    if not least <= number <= MOST:
        raise _not_passed(name, wanted)
    return number


def _passed_time(event: Mapping[str, Any], name: str) -> datetime:
    text = _passed_text(event, name)
    try:
        return times.from_text(text)
    except ValueError:
        raise _not_passed(name, "a time with a zone", "$$.State.EnteredTime is one.") from None


def _passed_seconds(event: Mapping[str, Any], name: str) -> float:
    try:
        seconds = float(event[name])
    except (TypeError, ValueError, OverflowError):
        raise _not_passed(name, "a number of seconds") from None
    if isnan(seconds):
        raise _not_passed(name, "a number of seconds")
    return seconds


def _not_passed(name: str, wanted: str, advice: str = "") -> InvalidRequest:
    return InvalidRequest(f"What the waiting state passes as {name} is not {wanted}. {advice}".rstrip())


_OUTCOMES = {"success": {"outcome", "output"}, "failure": {"outcome", "error", "cause"}}


def _answer(read: Attributes) -> Answer | None:
    given = read.optional_json("answer")
    if given is None:
        return None
    fields = given if isinstance(given, dict) else {}
    names = _OUTCOMES.get(str(fields.get("outcome")))
    texts = [fields.get("error"), fields.get("cause")]
    if fields.keys() != names or not all(text is None or isinstance(text, str) for text in texts):
        read.refuse("answer", "is none that a step can get")
    return Answer(**given)
