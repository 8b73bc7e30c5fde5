"""
One execution of the workflow: its description and its history.

Both are eventually consistent: Step Functions may not find an execution yet, or not all of its events.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

from botocore.exceptions import ClientError

from steponce.aws import times
from steponce.aws.errors import answering, error_code
from steponce.errors import OwnerHidden
from steponce.locks.record import Failure

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient
    from mypy_boto3_stepfunctions.type_defs import HistoryEventTypeDef

YOUNG = timedelta(minutes=15)
"""DescribeExecution may not find an execution this soon after its start."""

EXECUTION_ENDS = frozenset({"ExecutionSucceeded", "ExecutionFailed", "ExecutionAborted", "ExecutionTimedOut"})

CANCELLED = "Cancelled"
"""
The error with which an execution is stopped so that its request shall not run again. Its cause says who
wanted that, and why.
"""

_UNKNOWN = ("ExecutionDoesNotExist", "InvalidArn")
_DENIED = ("AccessDeniedException", "KmsAccessDeniedException")
_NAMELESS = {"ABORTED": "ExecutionAborted", "TIMED_OUT": "States.Timeout"}


class Owned(Protocol):
    """A record that one execution made: a lock, or an awaiting step."""

    @property
    def call_id(self) -> str: ...


@dataclass(frozen=True)
class Execution:
    """What DescribeExecution says of the execution that holds a lock."""

    status: str
    redrive_count: int
    closed: str | None
    input: Mapping[str, Any]
    failure: Failure

    @property
    def is_open(self) -> bool:
        return self.status in ("RUNNING", "PENDING_REDRIVE")

    @property
    def is_cancelled(self) -> bool:
        """Whether somebody stopped it so that its request shall not run again."""
        return self.status == "ABORTED" and self.failure.error == CANCELLED

    def owns(self, record: Owned) -> bool | None:
        """
        Whether it made the record that names it: names come back, a callId never does.

        None if it was started by hand: then its input has no callId, and only its history tells.
        """
        call_id = self.input.get("callId")
        return None if call_id is None else bool(call_id == record.call_id)


def describe_execution(sfn: SFNClient, execution_arn: str, home: str | None = None) -> Execution | None:
    """
    Ask for an execution.

    Args:
        sfn: A client that may describe it.
        execution_arn: The execution.
        home: Any ARN of the region and account that `sfn` asks. What belongs to others it would call unknown.

    Returns:
        None if Step Functions does not know it (any more, or yet).

    Raises:
        OwnerHidden: it is not to be found from `home`, so nobody here knows whether it lives.
        Unavailable: throttled, or no answer; safe to ask again.
    """
    if not execution_arn.startswith("arn:"):
        return None  # plain Python, which is no execution
    if home is not None and _is_elsewhere(execution_arn, home):
        raise OwnerHidden(
            f"The execution {execution_arn} is in another region or account, where nobody can ask for it "
            "from here. It counts as alive. Look there."
        )
    try:
        with answering("Step Functions"):
            answer = sfn.describe_execution(executionArn=execution_arn)
    except ClientError as error:
        if error_code(error) in _UNKNOWN:
            return None
        raise
    closed = answer.get("stopDate")
    return Execution(
        status=answer["status"],
        redrive_count=answer.get("redriveCount", 0),
        closed=None if closed is None else times.to_text(closed),
        input=read_input(answer.get("input", "{}")),
        failure=Failure(answer.get("error") or _NAMELESS.get(answer["status"]), answer.get("cause")),
    )


def execution_events(sfn: SFNClient, execution_arn: str) -> list[HistoryEventTypeDef] | None:
    """
    Read an execution's history to its end, which may lag behind what has happened.

    Returns:
        None if Step Functions does not know the execution, any more or yet.

    Raises:
        Unavailable: throttled, or no answer; safe to ask again.
    """
    try:
        with answering("Step Functions"):
            pages = sfn.get_paginator("get_execution_history").paginate(executionArn=execution_arn)
            return [event for page in pages for event in page["events"]]
    except ClientError as error:
        if error_code(error) in _UNKNOWN:
            return None
        raise


def runs_on(state_machine_arn: str, execution_arn: str) -> bool:
    """Whether an execution is one of this state machine."""
    return execution_arn.startswith(f"{state_machine_arn.replace(':stateMachine:', ':execution:')}:")


def _is_elsewhere(execution_arn: str, home: str) -> bool:
    """Whether an execution has another partition, region or account; an owner without an ARN has none."""
    there, here = execution_arn.split(":"), home.split(":")
    return there[0] == "arn" and there[2:3] == ["states"] and [there[1], *there[3:5]] != [here[1], *here[3:5]]


@contextmanager
def looking_at(execution_arn: str) -> Iterator[None]:
    """Turn a missing permission inside the block into `OwnerHidden`: it says nothing of the execution."""
    try:
        yield
    except ClientError as error:
        if error_code(error) not in _DENIED:
            raise
        raise OwnerHidden(
            f"The execution {execution_arn} may not be looked at from here ({error_code(error)}). It counts "
            "as alive. Allow states:DescribeExecution and states:GetExecutionHistory on it, or look there."
        ) from error


def read_input(text: str) -> Mapping[str, Any]:
    """An execution's input, which is any JSON; ours are objects."""
    found = json.loads(text)
    return found if isinstance(found, dict) else {}
