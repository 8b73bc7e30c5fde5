"""
The execution that an owner has started for its work, and waited for: `states:startExecution.sync:2`.

The end of such a child is the end of the work, and the owner may have died before it. AWS tries to stop the
child of an execution that ends, and does not report whether it succeeded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING, Any, Literal

from steponce.executions import Execution, describe_execution, execution_arn_of, looking_at
from steponce.failure import Failure
from steponce.locks.record import Lock
from steponce.workflow import CAUSE_LIMIT

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient
    from mypy_boto3_stepfunctions.type_defs import HistoryEventTypeDef

_RESOURCE = "startExecution.sync"
_CHILD_FAILED = "States.TaskFailed"

State = Literal["running", "succeeded", "failed", "ended"]
"""
What became of a child:
    running    it runs, or was redriven and runs again
    succeeded  its output is the work's result
    failed     it failed or ran out of time, which the owner would have recorded
    ended      it was stopped, as its owner may have been; or its end is not the end of the work
"""


@dataclass(frozen=True)
class Child:
    """
    An execution that an owner has started.

    Args:
        arn: The execution.
        execution: What DescribeExecution returns.
        is_the_work: Whether its name says that its end is the end of the work.
    """

    arn: str
    execution: Execution
    is_the_work: bool

    @property
    def state(self) -> State:
        if self.execution.is_open:
            return "running"
        if not self.is_the_work or self.execution.status == "ABORTED":
            return "ended"
        if self.execution.status != "SUCCEEDED":
            return "failed"
        return "ended" if self.execution.output is None else "succeeded"

    @property
    def result(self) -> str:
        """The output of a success, as the workflow would have written it: JSON text."""
        return _json(json.loads(self.execution.output or "null"))

    @property
    def failure(self) -> Failure:
        """
        What the owner would have recorded: States.TaskFailed, with the child's own error in the cause.

        The child's own cause is cut off where the whole would be longer than a cause may be.
        """
        own = self.execution.failure
        said = {"ExecutionArn": self.arn, "Status": self.execution.status, "Error": own.error}
        whole = _json(said | {"Cause": own.cause})
        if own.cause is not None and len(whole) > CAUSE_LIMIT:
            room = CAUSE_LIMIT - len(_json(said | {"Cause": ""}))
            whole = _json(said | {"Cause": _beginning(own.cause, room)})
        return Failure(_CHILD_FAILED, whole)


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _beginning(text: str, room: int) -> str:
    """As many of its first characters as have room between the quotes of a JSON text."""
    ends = accumulate(len(_json(character)) - len('""') for character in text)
    return text[: sum(1 for _ in takewhile(lambda end: end <= room, ends))]


def name_of_child(lock: Lock) -> str:
    """The name of the child that is the whole work of a lock's attempt."""
    return f"{sha256(f'{lock.lock_token}/{lock.call_id}'.encode()).hexdigest()}-{lock.attempt}"


def look_at_child(lock: Lock, arn: str, sfn: SFNClient) -> Child | None:
    """
    Describe the child of a lock's owner.

    Returns:
        None if Step Functions does not know it: it was never started, or was forgotten.

    Raises:
        OwnerHidden: it may not be described from here.
        Unavailable: Step Functions did not answer; safe to try again.
    """
    with looking_at(arn):
        found = describe_execution(sfn, arn, lock.locked_by)
    is_the_work = arn.rpartition(":")[2] == name_of_child(lock)
    return None if found is None else Child(arn, found, is_the_work)


def child_started_by(event: HistoryEventTypeDef) -> str | None:
    """
    The ARN of the child that an event of a history names. None if it names none.

    TaskScheduled has what was asked for, and TaskSubmitted the answer. An owner may die between the two.
    """
    scheduled: Mapping[str, Any] = event.get("taskScheduledEventDetails", {})
    if _is_start(scheduled):
        asked = json.loads(scheduled.get("parameters") or "{}")
        machine, name = asked.get("StateMachineArn"), asked.get("Name")
        if not isinstance(machine, str) or not isinstance(name, str):
            return None
        return execution_arn_of(machine, name)
    submitted: Mapping[str, Any] = event.get("taskSubmittedEventDetails", {})
    if _is_start(submitted):
        started = json.loads(submitted.get("output") or "{}").get("ExecutionArn")
        return started if isinstance(started, str) else None
    return None


def _is_start(details: Mapping[str, Any]) -> bool:
    kind, resource = details.get("resourceType"), str(details.get("resource", ""))
    return kind == "states" and resource.startswith(_RESOURCE)
