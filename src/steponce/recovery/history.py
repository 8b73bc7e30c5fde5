"""Summarises the events of an execution: where it was, with what input, and what it had started."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steponce.executions import EXECUTION_ENDS, Execution, execution_events, read_input
from steponce.recovery.child import child_started_by
from steponce.workflow import WORK

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient
    from mypy_boto3_stepfunctions.type_defs import HistoryEventTypeDef


@dataclass
class History:
    """A summary of an execution's events: its last state, that state's input and child, its callId."""

    last_state: str = ""
    last_input_text: str = "{}"
    child_arn: str | None = None
    call_id: str | None = None
    last_event: str = ""
    redrives: int = 0

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
        if entered is not None:
            self.last_state, self.last_input_text = entered["name"], entered.get("input", "{}")
            if self.last_state == "AcquireLock" and self.call_id is None:
                self.call_id = self.last_input.get("callId")
        if self.last_state == WORK:
            self.child_arn = child_started_by(event) or self.child_arn
