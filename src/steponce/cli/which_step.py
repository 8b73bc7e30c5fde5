"""Finds the awaiting step that a command is for: by its own id, or by the request that waits in it."""

from __future__ import annotations

import re
import time
import unicodedata
from dataclasses import dataclass

import click

from steponce import environment
from steponce.callbacks.awaiting import AwaitingSteps
from steponce.callbacks.step import ANSWERED, ANSWERING
from steponce.cli.machines import Machines
from steponce.cli.output import is_whole, waiting_for
from steponce.cli.target import Stack, output_of
from steponce.errors import RequestNotFound
from steponce.report import collector
from steponce.report.story import Waiting
from steponce.request.names import OPEN_SHARDS

AWAITING_STEPS_TABLE = "AwaitingStepsTable"
LONGEST_ID = 2048
"""The most bytes of an awaiting-step id, which is a DynamoDB key."""

NOT_YET_RECORDED_SECONDS = 5
"""How long to wait for a running request to reach its step."""

_STEP_ID = re.compile("as_[0-9a-f]{40}")


@dataclass(frozen=True)
class _Indexes:
    """How many shards the indexes of open records have."""

    open_shards: int = OPEN_SHARDS


def awaiting_steps(stack: Stack) -> AwaitingSteps:
    """
    The stack's table of awaiting steps.

    Raises:
        InvalidSetting: the Output `OpenShards` is no whole number.
        Unreachable: the stack has no such table.
    """
    shards = environment.read(_Indexes, stack.outputs).open_shards
    return AwaitingSteps(stack.boto3("dynamodb"), output_of(stack, AWAITING_STEPS_TABLE), open_shards=shards)


def which_step(machines: Machines, given: str) -> str:
    """
    Find the awaiting-step id: the given one, or that of the only step of the given request's newest attempt.

    A request with several steps does not stand for the one that waits now. An answer to an earlier step that
    comes again, also from another person, would go to the next one. The same holds if an earlier attempt has
    its answer. If its step timed out without one, the newest attempt is meant. An unknown id counts as an
    awaiting-step id.

    Raises:
        click.UsageError: the request has several such steps, or its newest attempt has not reached one yet
            and an earlier attempt's has its answer; the message names them.
    """
    if _STEP_ID.fullmatch(given):
        return given
    with waiting_for(given):
        steps = _steps_of(machines, given)
    if len(steps) > 1:
        raise click.UsageError(f"The request {given!r} has several steps. Name one: {_named(steps)}")
    return steps[0].awaiting_step_id if steps else given


def _steps_of(machines: Machines, request_id: str) -> list[Waiting]:
    """
    The steps of a request's newest attempt, and the answered ones of the attempts before.

    If the newest attempt has just started, this waits for its first step.

    Raises:
        click.UsageError: that one has not reached a step yet, and an attempt before has its answer.
    """
    table = awaiting_steps(machines.stack)
    try:
        client = machines.of_request(request_id)
    except RequestNotFound:
        return []
    end = time.monotonic() + NOT_YET_RECORDED_SECONDS
    while True:
        try:
            *earlier, newest = collector.collect(client, request_id, steps=table).attempts
        except RequestNotFound:
            return []
        if newest.awaiting_steps or not newest.is_open or time.monotonic() > end:
            before = [step for attempt in earlier for step in attempt.awaiting_steps]
            answered = [step for step in before if step.status in (ANSWERING, ANSWERED)]
            if answered and newest.is_open and not newest.awaiting_steps:
                raise click.UsageError(
                    f"Attempt {newest.number} of the request {request_id!r} does not wait in a step yet. Try "
                    "again when it does. An earlier attempt has its answer; if you mean that one, name its "
                    f"step: {_named(answered)}"
                )
            return [*answered, *newest.awaiting_steps]
        time.sleep(0.1)


def _named(steps: list[Waiting]) -> str:
    return ", ".join(f"{step.awaiting_step_id} ({step.step}, {step.status})" for step in steps)


def _is_id(_context: click.Context, _argument: click.Parameter, value: str) -> str:
    is_text = is_whole(value) and not any(unicodedata.category(char) == "Cc" for char in value)
    if not value.strip() or not is_text or len(value.encode()) > LONGEST_ID:
        raise click.BadParameter("it is no id, neither of an awaiting step nor of a request.")
    return value


id_argument = click.argument("given", metavar="ID", callback=_is_id)
