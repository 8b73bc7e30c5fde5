"""The stories of executions, as text for the report of a failed test."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from io import StringIO
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from steponce.aws import times
from steponce.cli.output import Screen
from steponce.cli.timeline import timeline
from steponce.cli.which_step import AWAITING_STEPS_TABLE, awaiting_steps
from steponce.errors import SteponceError
from steponce.executions import execution_events
from steponce.local.cleaning import machine_arns
from steponce.local.stack import LocalStack
from steponce.report.collector import collect
from steponce.request.workflows import Workflows

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient
    from mypy_boto3_stepfunctions.type_defs import ExecutionListItemTypeDef

_WIDTH = 110
_LONGEST_CAUSE = 600
_MOST = 20


def stories(stack: LocalStack, since: datetime) -> Iterator[tuple[str, str]]:
    """
    A title and a text for each execution that has started since then and has not succeeded.

    A request of a run-once machine has one story, with all its executions, as `steponce show` tells it:
    without payloads, tokens and causes.
    """
    sfn = stack.boto3("stepfunctions")
    try:
        found = sorted(_not_succeeded(stack, since), key=lambda one: one["startDate"])
        workflows = Workflows.from_outputs(stack.outputs)
        reported: set[tuple[str, str]] = set()
        for execution in found[:_MOST]:
            workflow = workflows.of_execution(execution["executionArn"])
            if workflow is None:
                yield f"{execution['name']}: {execution['status']}", _states(sfn, execution)
                continue
            request = _request(sfn, execution)
            if (workflow.arn, request) not in reported:
                reported.add((workflow.arn, request))
                yield f"request {request}", _story(stack, sfn, workflow.arn, request, execution)
        if found[_MOST:]:
            yield "more", f"{len(found) - _MOST} more executions have not succeeded."
    except (ClientError, BotoCoreError, SteponceError) as error:
        yield "unknown", f"What became of the executions could not be read: {error}"


def _not_succeeded(stack: LocalStack, since: datetime) -> Iterator[ExecutionListItemTypeDef]:
    sfn = stack.boto3("stepfunctions")
    for machine in machine_arns(stack):
        for page in sfn.get_paginator("list_executions").paginate(stateMachineArn=machine):
            for one in page["executions"]:
                if one["status"] != "SUCCEEDED" and one["startDate"] >= since:
                    yield one


def _request(sfn: SFNClient, execution: ExecutionListItemTypeDef) -> str:
    """The id of the request that an execution is for."""
    text = sfn.describe_execution(executionArn=execution["executionArn"])["input"]
    given = json.loads(text)
    found = given.get("requestId") if isinstance(given, dict) else None
    return found if isinstance(found, str) else execution["name"]


def _story(
    stack: LocalStack, sfn: SFNClient, machine: str, request: str, execution: ExecutionListItemTypeDef
) -> str:
    """The request's story; the states of its execution, if it has left no record and no envelope."""
    try:
        return _request_story(stack, machine, request)
    except SteponceError:
        return _states(sfn, execution)


def _request_story(stack: LocalStack, machine: str, request: str) -> str:
    steps = awaiting_steps(stack) if AWAITING_STEPS_TABLE in stack.outputs else None
    story = collect(stack.client(machine=machine), request, steps=steps)
    written = StringIO()
    Screen(file=written, width=_WIDTH, no_color=True).print(timeline(story, ()))
    return written.getvalue().rstrip()


def _states(sfn: SFNClient, execution: ExecutionListItemTypeDef) -> str:
    """The states that an execution has entered, and what went wrong in them."""
    lines = [execution["executionArn"]]
    for event in execution_events(sfn, execution["executionArn"]) or []:
        time = times.to_text(event["timestamp"])
        entered: Mapping[str, Any] = event.get("stateEnteredEventDetails", {})
        if entered:
            lines.append(f"{time}  {entered['name']}")
        elif (failure := _failure(event)) is not None:
            lines.append(f"{time}    {event['type']}: {failure}")
    if execution["status"] == "RUNNING":
        lines.append("It still runs.")
    return "\n".join(lines)


def _failure(event: Mapping[str, Any]) -> str | None:
    """Error and cause of an event that has them."""
    ends = ("Failed", "TimedOut", "Aborted")
    if not event["type"].endswith(ends):
        return None
    details: Mapping[str, Any] = next(
        (value for key, value in event.items() if key.endswith("EventDetails")), {}
    )
    cause = str(details.get("cause") or "")
    cut = f"{cause[:_LONGEST_CAUSE]} …" if len(cause) > _LONGEST_CAUSE else cause
    return ", ".join(part for part in (details.get("error"), cut) if part) or "without a name"
