"""Summarises the events of an execution: where it was, with what input, and what it had started."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steponce.executions import EXECUTION_ENDS, Execution, execution_events, read_input
from steponce.recovery.child import child_started_by
from steponce.recovery.work import proves_the_end
from steponce.workflow import BEFORE_WORK, FAILING, OUTCOMES, RESULT_TOO_LARGE, TAKING_OVER, WORK

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient
    from mypy_boto3_stepfunctions.type_defs import HistoryEventTypeDef


_TASKS = ("Task", "LambdaFunction", "Activity", "MapRun")
"""How the events of a task or of a distributed Map begin, whatever it calls."""

_STARTS = ("Scheduled", "MapRunStarted")

_ENDS = ("Succeeded", "Failed")

_LAMBDA = ("lambda", "aws-sdk:lambda")

_EXECUTIONS = ("states", "aws-sdk:sfn")

_OUTSIDE_WORK = BEFORE_WORK | TAKING_OVER | OUTCOMES


@dataclass
class History:
    """
    A summary of an execution's events: its last state, that state's input and child, its callId.

    A state that writes the outcome is the last one that counts. The input of those after it has no outcome.
    Nor do those count in which the execution names its error. One that has released its lock can get it once
    more, by a first write that lands late; its work has still said that nothing happened.

    `open_tasks` counts the tasks of its work that no event proves to be over. A branch of a Parallel that
    fails does not stop the functions of the others, nor does a time-out stop its function.
    """

    last_state: str = ""
    last_input_text: str = "{}"
    child_arn: str | None = None
    call_id: str | None = None
    last_event: str = ""
    redrives: int = 0
    open_tasks: int = 0

    @classmethod
    def read(cls, sfn: SFNClient, execution_arn: str) -> History | None:
        """
        Read the whole history of an execution.

        Returns:
            None if Step Functions does not know the execution.

        Raises:
            Unavailable: Step Functions did not answer; safe to try again.
        """
        events = execution_events(sfn, execution_arn)
        if events is None:
            return None
        history = cls()
        for event in events:
            history._add(event)
        return history

    @property
    def last_input(self) -> Mapping[str, Any]:
        """Parsed only when it is needed, because a history may hold thousands of inputs of 256 KB."""
        return read_input(self.last_input_text)

    def is_whole(self, owner: Execution) -> bool:
        """Whether the history contains the end. Histories are eventually consistent."""
        return self.last_event in EXECUTION_ENDS and self.redrives == owner.redrive_count

    def _add(self, event: HistoryEventTypeDef) -> None:
        self.last_event = event["type"]
        self.redrives += event["type"] == "ExecutionRedriven"
        entered = event.get("stateEnteredEventDetails")
        if entered is not None and self.last_state not in OUTCOMES and not self._says_why(entered["name"]):
            self.last_state, self.last_input_text = entered["name"], entered.get("input", "{}")
            if self.last_state == "AcquireLock" and self.call_id is None:
                self.call_id = self.last_input.get("callId")
        if self.last_state == WORK:
            self.child_arn = child_started_by(event) or self.child_arn
        if self.last_state not in _OUTSIDE_WORK:
            self.open_tasks += _opened(event)

    def _says_why(self, state: str) -> bool:
        """Whether the execution ends in this state with what the one before has found out."""
        return state in FAILING or (state == RESULT_TOO_LARGE and self.last_state in BEFORE_WORK)


def _opened(event: HistoryEventTypeDef) -> int:
    """1 if the event starts a task, -1 if it proves that one is over, else 0."""
    kind: str = event["type"]
    if not kind.startswith(_TASKS) or kind.endswith("ScheduleFailed"):  # that one has not begun
        return 0
    if kind.endswith(_STARTS):
        return 1
    return -1 if kind.endswith(_ENDS) and _is_over(kind, event) else 0


def _is_over(kind: str, event: Mapping[str, Any]) -> bool:
    """
    Whether the functions of a task that ended are over.

    Lambda may report an error while its function goes on. An execution or an item of a Map may have caught
    the time-out of a function that goes on, or have left those of other branches. Nobody reads its history.
    """
    details = event.get(f"{kind[0].lower()}{kind[1:]}EventDetails", {})
    resource = details.get("resourceType")
    if kind.startswith("MapRun") or resource in _EXECUTIONS:
        return False
    is_of_lambda = kind.startswith("Lambda") or resource in _LAMBDA
    return kind.endswith("Succeeded") or not is_of_lambda or proves_the_end(details.get("error"))
