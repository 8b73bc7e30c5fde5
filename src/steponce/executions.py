"""
Describes one execution of the workflow, and reads its history.

Both calls are eventually consistent. Step Functions may not find a new execution yet, nor its newest events.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Protocol

from botocore.exceptions import ClientError

from steponce.aws import times
from steponce.aws.errors import answering, error_code, expect_content
from steponce.errors import OwnerHidden
from steponce.failure import Failure
from steponce.next_step import Action

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient
    from mypy_boto3_stepfunctions.type_defs import HistoryEventTypeDef

YOUNG = timedelta(minutes=15)
"""DescribeExecution may not find an execution this soon after its start."""

NAME_KEPT = timedelta(days=30)
"""
A name stays reserved at least this long after its execution closed. It is 90 days unless an account has
shortened that.
"""

EXECUTION_ENDS = frozenset({"ExecutionSucceeded", "ExecutionFailed", "ExecutionAborted", "ExecutionTimedOut"})

CANCELLED = "Cancelled"
"""
The error of an execution that was stopped to cancel its request. Its cause says who cancelled it, and why.
"""

CANCELLATION = Failure(CANCELLED, "A person has cancelled this request.")
"""The failure of a cancelled request for everyone who asks. Who and why are for its operators alone."""

_PAGE = 50
"""
How many events of a history one call reads. Each may hold 256 KB, and reading it takes nine times that much
memory if it has an emoji. A function has 256 MB.
"""

_is_time_up: ContextVar[Callable[[], bool]] = ContextVar("is_time_up", default=lambda: False)

_UNKNOWN = ("ExecutionDoesNotExist", "InvalidArn")
_DENIED = ("AccessDeniedException", "KmsAccessDeniedException")
_NAMELESS = {"ABORTED": "ExecutionAborted", "TIMED_OUT": "States.Timeout"}


class HistoryTooLong(Exception):
    """There is no time to read an execution's whole history."""


class Owned(Protocol):
    """A record that carries the callId of the execution that made it: a lock, or an awaiting step."""

    @property
    def call_id(self) -> str: ...


@dataclass(frozen=True)
class Execution:
    """
    One execution, as DescribeExecution returns it.

    Args:
        status: RUNNING, PENDING_REDRIVE, SUCCEEDED, FAILED, TIMED_OUT or ABORTED.
        redrive_count: How often it was redriven.
        closed: When it ended, as UTC text. None while it is open.
        input: Its input. Empty if that is no JSON object.
        failure: Its error and cause. Both are None while it is open, and after a success.
        output: Its output, JSON text. None without a success, or if this client may not read it.
        started: When it began, as UTC text. A redrive does not change it.
    """

    status: str
    redrive_count: int
    closed: str | None
    input: Mapping[str, Any]
    failure: Failure
    output: str | None = None
    started: str = ""

    @property
    def is_open(self) -> bool:
        return self.status in ("RUNNING", "PENDING_REDRIVE")

    @property
    def is_cancelled(self) -> bool:
        """Whether it was stopped to cancel its request."""
        return self.status == "ABORTED" and self.failure.error == CANCELLED

    @property
    def answer(self) -> Failure:
        """Its failure for everyone who asks for the request."""
        return CANCELLATION if self.is_cancelled else self.failure

    def was_over_at(self, time: str) -> bool:
        """
        Whether it had ended before this time (UTC text).

        An attempt that was over when a lower one began is of an earlier request. A name is free again 90 days
        after its execution has closed, and the attempts of one request do not close at the same time.
        """
        return self.closed is not None and self.closed < time

    def owns(self, record: Owned) -> bool | None:
        """
        Whether this execution made the record.

        The callId decides, because an execution name can be used again after 90 days, and a callId cannot.
        None if the execution was started by hand: its input has no callId, and only its history can tell.
        """
        call_id = self.input.get("callId")
        return None if call_id is None else bool(call_id == record.call_id)


@dataclass(frozen=True)
class OpenWork:
    """
    What may still run of the work of an execution that is closed. No start settles its lock before the end.

    Args:
        until: Until when, at least, its function may run (UTC text). None if an execution runs for it.
        execution_arn: The execution that the owner has started for its work, which runs.
        hidden: Why it cannot be looked at from here. Then it may run. None if it can be.
    """

    until: str | None = None
    execution_arn: str | None = None
    hidden: str | None = None

    @property
    def in_words(self) -> str:
        """A sentence that says what runs."""
        if self.hidden is not None:
            return f"{self.hidden} No command settles it before."
        if self.execution_arn is not None:
            return (
                f"The execution {self.execution_arn}, which it has started for its work, still runs, and no "
                "start can settle it before that has ended."
            )
        return f"Its work may run until {self.until} or later, and no start can settle it before."

    @property
    def look(self) -> Action:
        """The command for later. `wait` waits for an execution; nothing tells when a function ends."""
        return "show request" if self.execution_arn is None else "wait for request"


def describe_execution(sfn: SFNClient, execution_arn: str, home: str | None = None) -> Execution | None:
    """
    Describe an execution.

    Args:
        sfn: A Step Functions client that may describe it.
        execution_arn: The execution. An owner that is no execution is not looked up.
        home: Any ARN of the region and account that `sfn` asks. Step Functions would report an execution of
            another region or account as unknown.

    Returns:
        None if Step Functions does not know the execution: it is too new, or was forgotten after 90 days.

    Raises:
        OwnerHidden: the execution is in another region or account than `home`.
        Unavailable: throttled, or no answer; safe to try again.
    """
    if not execution_arn.startswith("arn:"):
        return None  # a guard's lock: its owner is no execution
    if home is not None and _is_elsewhere(execution_arn, home):
        raise OwnerHidden(
            f"The execution {execution_arn} is in another region or account, so it cannot be described from "
            "here. It counts as alive. Look there."
        )
    try:
        with answering("Step Functions"):
            answer = sfn.describe_execution(executionArn=execution_arn)
    except ClientError as error:
        if error_code(error) in _UNKNOWN:
            return None
        raise
    expect_content("Step Functions", answer)
    closed = answer.get("stopDate")
    return Execution(
        status=answer["status"],
        redrive_count=answer.get("redriveCount", 0),
        closed=None if closed is None else times.to_text(closed),
        input=read_input(answer.get("input", "{}")),
        failure=Failure(answer.get("error") or _NAMELESS.get(answer["status"]), answer.get("cause")),
        output=answer.get("output"),
        started=times.to_text(answer["startDate"]),
    )


def nameless_error(status: str | None) -> str:
    """What stands for the error of an execution that ended badly without one. None: its status is unknown."""
    return _NAMELESS.get(status or "", "ExecutionFailed")


def execution_events(sfn: SFNClient, execution_arn: str) -> Iterator[HistoryEventTypeDef] | None:
    """
    Read an execution's history. Its newest events may be missing.

    Each event may hold 256 KB, and a history 25,000 of them. So the pages are read while the caller iterates.

    Returns:
        The events, oldest first. None if Step Functions does not know the execution.

    Raises:
        Unavailable: throttled, or no answer; safe to try again. Also while the caller iterates.
    """
    events = _each_event(sfn, execution_arn)
    try:
        first = list(islice(events, 1))
    except ClientError as error:
        if error_code(error) in _UNKNOWN:
            return None
        raise
    return chain(first, events)


@contextmanager
def reading_until(is_time_up: Callable[[], bool]) -> Iterator[None]:
    """Raise `HistoryTooLong` inside of the block from a history that is not read to its end in time."""
    before = _is_time_up.set(is_time_up)
    try:
        yield
    finally:
        _is_time_up.reset(before)


def _each_event(sfn: SFNClient, execution_arn: str) -> Iterator[HistoryEventTypeDef]:
    with answering("Step Functions"):
        pages = sfn.get_paginator("get_execution_history").paginate(
            executionArn=execution_arn, PaginationConfig={"PageSize": _PAGE}
        )
        for page in pages:
            if "nextToken" in page and _is_time_up.get()():
                raise HistoryTooLong(execution_arn)
            events = page["events"]
            while events:  # none of them is kept while the next page is read
                yield events.pop(0)


def find_lock_token(sfn: SFNClient, execution_arn: str) -> str | None:
    """
    Find the lock token that an execution has asked for in its history, whatever it was started with.

    Returns:
        None if it never asked for a lock, or if Step Functions does not know it.

    Raises:
        Unavailable: throttled, or no answer; safe to try again.
    """
    found = find_envelope(sfn, execution_arn).get("lockToken")
    return None if found is None else str(found)


def find_envelope(sfn: SFNClient, execution_arn: str) -> Mapping[str, Any]:
    """
    Find the envelope with which an execution has asked for a lock in its history. It is read no further.

    Returns:
        Empty as long as it has not asked for a lock, or if Step Functions does not know it.

    Raises:
        Unavailable: throttled, or no answer; safe to try again.
    """
    for event in execution_events(sfn, execution_arn) or []:
        entered = event.get("stateEnteredEventDetails")
        if entered is not None and entered["name"] == "AcquireLock":
            return read_input(entered.get("input", "{}"))
    return {}


def states_entered(sfn: SFNClient, execution_arn: str) -> frozenset[str]:
    """
    The names of all states that an execution has entered. None, if Step Functions does not know it.

    Raises:
        Unavailable: throttled, or no answer; safe to try again.
    """
    entered = (event.get("stateEnteredEventDetails") for event in execution_events(sfn, execution_arn) or [])
    return frozenset(state["name"] for state in entered if state is not None)


def unqualified(state_machine_arn: str) -> str:
    """
    The ARN of a state machine without an alias or a version.

    Source: Step Functions Developer Guide, "Associating executions with a version or alias".
    """
    return ":".join(state_machine_arn.split(":")[:7])


def execution_arn_of(state_machine_arn: str, name: str) -> str:
    """The ARN of an execution of this state machine. It has no alias and no version."""
    return f"{unqualified(state_machine_arn).replace(':stateMachine:', ':execution:')}:{name}"


def runs_on(state_machine_arn: str, execution_arn: str) -> bool:
    """Whether an execution belongs to this state machine."""
    return machine_of(execution_arn) == unqualified(state_machine_arn)


def machine_of(execution_arn: str) -> str:
    """
    The ARN of the state machine that an execution belongs to.

    An item of a distributed Map runs as an execution of MACHINE/LABEL, and belongs to MACHINE.
    """
    machine = execution_arn.rpartition(":")[0].replace(":execution:", ":stateMachine:")
    return machine.partition("/")[0]


def _is_elsewhere(execution_arn: str, home: str) -> bool:
    """Whether an execution has another partition, region or account than `home`."""
    there, here = execution_arn.split(":"), home.split(":")
    return there[0] == "arn" and there[2:3] == ["states"] and [there[1], *there[3:5]] != [here[1], *here[3:5]]


@contextmanager
def looking_at(execution_arn: str) -> Iterator[None]:
    """Turn a missing permission inside the block into `OwnerHidden`. It does not show a dead execution."""
    try:
        yield
    except ClientError as error:
        if error_code(error) not in _DENIED:
            raise
        raise OwnerHidden(
            f"The execution {execution_arn} may not be looked at from here ({error_code(error)}). It counts "
            "as alive. Allow states:DescribeExecution and states:GetExecutionHistory on it (for functions of "
            "a stack its parameter OtherStateMachines does), or look there."
        ) from error


def read_input(text: str) -> Mapping[str, Any]:
    """
    Parse an execution's input.

    An input that is no JSON object gives an empty mapping. So does JSON that Python cannot read, because it
    is nested too deeply or has a number of thousands of digits. No request has such an input.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
