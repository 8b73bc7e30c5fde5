"""One awaiting step: the step's task token, and then the answer that it got."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from steponce.aws import times
from steponce.aws.dynamodb import Attributes, Item
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
            InvalidRequest: the state does not pass a field, or the step has no name.
        """
        try:
            if not isinstance(event["step"], str) or not event["step"]:
                raise InvalidRequest(
                    "The step of a waiting state is named by text that is not empty. Make text of a number "
                    "with States.Format."
                )
            run = (event["lockToken"], event["step"], event["callId"], str(event["attempt"]))
            entered = times.from_text(event["enteredAt"])
            expires = times.after(max(entered, times.now()), float(event["timeoutSeconds"]))
            return cls(
                id=f"as_{sha256(json.dumps(run))[:40]}",
                step=event["step"],
                status=PENDING,
                task_token=event["taskToken"],
                execution=event["execution"],
                request_id=event["requestId"],
                lock_token=event["lockToken"],
                call_id=event["callId"],
                attempt=int(event["attempt"]),
                entered_at=times.to_text(entered),
                retry_count=int(event["retryCount"]),
                expires_at=times.to_text(expires),
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
