"""
Gives each answer to an awaiting step exactly one verdict. The workflow gets at most one answer.

    accepted   the workflow got this answer, and no other call got this verdict
    duplicate  the workflow got the same answer before
    conflict   the workflow got another answer
    late       the step no longer waits: it got no answer, or it has its answer and needs no heartbeat
    unknown    there is no such step

The verdict is read from the record, after the record says what the workflow got. So if a call dies, or AWS's
reply is lost, the next call still gives the right verdict.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

from botocore.exceptions import ClientError

from steponce.aws import times
from steponce.aws.errors import answering, error_code, was_sent_before
from steponce.callbacks.answer import Answer, Verdict
from steponce.callbacks.awaiting import AwaitingSteps
from steponce.callbacks.outcome import outcome_of
from steponce.callbacks.step import ANSWERED, LATE, AwaitingStep
from steponce.errors import InvalidAnswer, SteponceError, Unavailable
from steponce.executions import YOUNG, execution_events

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient

_TRIES = 5

_USED_UP = frozenset({"TaskTimedOut", "TaskDoesNotExist", "InvalidToken"})
_REFUSED = frozenset({"InvalidOutput", "ValidationException"})


class Callbacks:
    """
    Resolves answers to awaiting steps.

    Args:
        steps: The table of awaiting steps.
        sfn: A Step Functions client that may send task results and read executions' histories.
    """

    def __init__(self, steps: AwaitingSteps, sfn: SFNClient) -> None:
        self._steps = steps
        self._sfn = sfn

    def resolve(self, step_id: str, answer: Answer) -> Verdict:
        """
        Give one answer to an awaiting step.

        The answer first claims the record by a conditional write, and is sent after that. So of two answers
        that arrive at once only one is sent. If its sender dies, the next call sends it.

        Raises:
            InvalidAnswer: Step Functions does not accept this answer. The step still waits.
            Unavailable: AWS did not answer, or the outcome of the answer cannot be seen yet. The same call is
                safe to try again.
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
        Close a step that no further answer closes: send its claimed answer, or record that it timed out.

        A step that waits and has time left is not changed.

        Returns:
            Whether the record is closed now.

        Raises:
            Unavailable: AWS did not answer, or the outcome of the step cannot be seen yet. The same call is
                safe to try again.
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
        """Send the claimed answer of this call, or of an earlier call that may have died before sending."""
        delivery = self._send(step, answer)
        if delivery == "refused":
            released = self._steps.release(step)
            if step.claim == call:
                raise InvalidAnswer("Step Functions does not accept this answer. Send a plainer one.")
            return released
        return self._steps.close(step, answer if delivery == "sent" else self._what_arrived(step, answer))

    def _send(self, step: AwaitingStep, answer: Answer) -> Literal["sent", "used up", "refused"]:
        """Send an answer. If the token is used up, only the history says which answer used it."""
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
            told = f"Step Functions refused the answer with {error_code(error)}."
            if was_sent_before(error):
                told += " boto3 had sent it before, and it may have arrived then. Send the same answer again."
            raise SteponceError(told) from None
        return "sent"

    def _what_arrived(self, step: AwaitingStep, sent: Answer | None = None) -> Answer | None:
        """
        Find in the execution's history the answer that used up a token. None if no answer did.

        The error TaskTimedOut does not say whether the token has expired or was used.

        Raises:
            Unavailable: the history does not show it yet, or the workflow may try this step again.
        """
        events = execution_events(self._sfn, step.execution)
        if events is None:
            over = times.now() - times.from_text(step.entered_at) > YOUNG
            arrived = None
        else:
            arrived, over = outcome_of(events, step.task_token, sent)
        if arrived is None and not over:
            raise Unavailable("The outcome of this step's last try cannot be seen yet. Try again.")
        return arrived


def _verdict(step: AwaitingStep, answer: Answer, call: str) -> Verdict:
    if step.answer is None or answer.outcome == "heartbeat":
        return "late"
    if step.answer != answer:
        return "conflict"
    return "accepted" if step.claim == call else "duplicate"
