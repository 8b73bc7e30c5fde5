"""
Answers to waiting steps: each gets exactly one verdict, and the workflow gets at most one answer.

    accepted   the workflow got this answer, and no other call was told so
    duplicate  the workflow got the same answer before
    conflict   the workflow got another answer
    late       the step does not wait any more: it got no answer, or has its answer and needs no heartbeat
    unknown    there is no such step

The verdict is read off the record, after it is written what the workflow got. So a call that dies, or
loses an answer of AWS, leaves nothing that the next call could misread.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

from botocore.exceptions import ClientError

from steponce.aws import times
from steponce.aws.errors import answering, error_code
from steponce.callbacks.answer import Answer, Verdict
from steponce.callbacks.awaiting import ANSWERED, LATE, AwaitingStep, AwaitingSteps
from steponce.errors import InvalidAnswer, SteponceError, Unavailable
from steponce.executions import EXECUTION_ENDS, YOUNG, execution_events

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient
    from mypy_boto3_stepfunctions.type_defs import HistoryEventTypeDef

_TRIES = 5

_USED_UP = frozenset({"TaskTimedOut", "TaskDoesNotExist", "InvalidToken"})
_REFUSED = frozenset({"InvalidOutput", "ValidationException"})

_OF_A_TRY = frozenset(
    {
        "TaskScheduled",
        "TaskStarted",
        "TaskStartFailed",
        "TaskSubmitted",
        "TaskSubmitFailed",
        "TaskSucceeded",
        "TaskFailed",
        "TaskTimedOut",
    }
)
"""What happens between entering a Task state and leaving it. A retry adds more of the same."""


class Callbacks:
    """
    Gives verdicts on answers.

    Args:
        steps: The table of awaiting steps.
        sfn: A Step Functions client that may send task results and read the executions' histories.
    """

    def __init__(self, steps: AwaitingSteps, sfn: SFNClient) -> None:
        self._steps = steps
        self._sfn = sfn

    def resolve(self, step_id: str, answer: Answer) -> Verdict:
        """
        Give one answer to a waiting step.

        The answer first claims the record, by one conditional write, and is sent only then; so two that
        arrive at once cannot both be sent, and an answer whose sender died is finished by the next one.

        Raises:
            InvalidAnswer: Step Functions does not take this answer. The step waits on.
            Unavailable: AWS did not answer, or it cannot be known yet what became of the answer. The
                same call is safe to try again.
        """
        call = uuid4().hex
        step = self._steps.get(step_id)
        for _ in range(_TRIES):
            if step is None:
                return "unknown"
            if step.status in (ANSWERED, LATE):
                return _verdict(step, answer, call)
            if step.answer is not None:
                changed = self._finish(step, step.answer, call)
            elif answer.outcome != "heartbeat":
                changed = self._steps.claim(step, answer, call)
            elif self._send(step, answer) == "sent":
                return "accepted"
            else:
                changed = self._steps.close(step, self._what_arrived(step))
            step = changed or self._steps.get(step_id)
        raise Unavailable("Other answers to this step keep coming in between. Try again.")

    def settle(self, step_id: str) -> bool:
        """
        Do for a step what nobody has come to do: finish its answer, or write down how its time ended.

        A step that waits and still has time is left alone.

        Returns:
            Whether the record is closed now.

        Raises:
            Unavailable: AWS did not answer, or it cannot be known yet what became of the step. The same
                call is safe to try again.
        """
        step = self._steps.get(step_id)
        for _ in range(_TRIES):
            if step is None or step.status in (ANSWERED, LATE):
                return step is not None
            if step.answer is not None:
                changed = self._finish(step, step.answer, call=None)
            elif step.expires_at >= times.now_text():
                return False
            else:
                changed = self._steps.close(step, self._what_arrived(step))
            step = self._steps.get(step_id) if changed is None else changed
        raise Unavailable("Answers to this step keep coming in between. Try again.")

    def _finish(self, step: AwaitingStep, answer: Answer, call: str | None) -> AwaitingStep | None:
        """Send the answer that this call has claimed, or one that somebody perhaps did not live to send."""
        fate = self._send(step, answer)
        if fate == "refused":
            released = self._steps.release(step)
            if step.claim == call:
                raise InvalidAnswer("Step Functions does not take this answer. Send a plainer one.")
            return released
        return self._steps.close(step, answer if fate == "sent" else self._what_arrived(step, answer))

    def _send(self, step: AwaitingStep, answer: Answer) -> Literal["sent", "used up", "refused"]:
        """Send an answer. If the token is used up, only the history tells by what."""
        try:
            with answering("Step Functions"):
                if answer.outcome == "heartbeat":
                    self._sfn.send_task_heartbeat(taskToken=step.task_token)
                elif answer.outcome == "success":
                    self._sfn.send_task_success(taskToken=step.task_token, output=answer.output_json())
                else:
                    given = {"error": answer.error, "cause": answer.cause}
                    present: Any = {name: text for name, text in given.items() if text is not None}
                    self._sfn.send_task_failure(taskToken=step.task_token, **present)
        except ClientError as error:
            if error_code(error) in _USED_UP:
                return "used up"
            if error_code(error) in _REFUSED and answer.outcome != "heartbeat":
                return "refused"
            # AWS may quote the task token, and this text ends in logs.
            raise SteponceError(f"Step Functions refused the answer with {error_code(error)}.") from None
        return "sent"

    def _what_arrived(self, step: AwaitingStep, sent: Answer | None = None) -> Answer | None:
        """
        Read in the execution's history which answer a used-up token brought; None if it brought none.

        TaskTimedOut says only that the token has expired or was used, not which of the two.

        Raises:
            Unavailable: it cannot be seen yet, or the workflow is about to wait for this step again.
        """
        events = execution_events(self._sfn, step.execution)
        if events is None:
            over = times.now() - times.from_text(step.entered_at) > YOUNG
            arrived = None
        else:
            arrived, over = _outcome_of(events, step.task_token, sent)
        if arrived is None and not over:
            raise Unavailable("What became of this step's last try cannot be seen yet. Try again.")
        return arrived


def _verdict(step: AwaitingStep, answer: Answer, call: str) -> Verdict:
    if step.answer is None or answer.outcome == "heartbeat":
        return "late"
    if step.answer != answer:
        return "conflict"
    return "accepted" if step.claim == call else "duplicate"


def _outcome_of(
    events: Sequence[HistoryEventTypeDef], token: str, sent: Answer | None
) -> tuple[Answer | None, bool]:
    """
    The answer that the step got with this token or a retry's, and whether the step is over.

    Events of one branch are linked by previousEventId. The step is not over while a retry may follow.
    """
    linked: set[int] = set()
    submitted = False
    for event in events:
        scheduled = event.get("taskScheduledEventDetails")
        starts = not linked and scheduled is not None and token in scheduled["parameters"]
        if not starts and event.get("previousEventId") not in linked:
            continue
        if event["type"] not in _OF_A_TRY:
            return None, True
        linked.add(event["id"])
        arrived = _answer_in(event)
        # A failure before the function has returned is the function's own, unless it is what we sent.
        if arrived is not None and (arrived.outcome == "success" or submitted or arrived == sent):
            return arrived, True
        submitted = event["type"] == "TaskSubmitted" or (submitted and scheduled is None)
    return None, bool(events) and events[-1]["type"] in EXECUTION_ENDS


def _answer_in(event: HistoryEventTypeDef) -> Answer | None:
    if event["type"] == "TaskSucceeded":
        return Answer("success", json.loads(event["taskSucceededEventDetails"].get("output", "null")))
    if event["type"] == "TaskFailed":
        details = event["taskFailedEventDetails"]
        return Answer("failure", error=details.get("error") or None, cause=details.get("cause") or None)
    return None
