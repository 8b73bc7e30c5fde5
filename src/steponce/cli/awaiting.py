"""`steponce awaiting`: lists and shows the steps that wait for an answer from outside."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click
from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from steponce.aws import times
from steponce.callbacks.links import Keys, sign
from steponce.callbacks.step import ANSWERED, ANSWERING, PENDING, AwaitingStep
from steponce.cli.left_out import LeftOut
from steponce.cli.machines import Machines
from steponce.cli.output import DONE, ask_which, fields, for_people, plain, say
from steponce.cli.target import Stack, Target, output_of, where_to_which
from steponce.cli.which_step import awaiting_steps, id_argument, which_step
from steponce.errors import SteponceError
from steponce.next_step import NextStep

OUTCOMES = ("failure", "heartbeat", "success")
_COLOURS = {
    PENDING: "yellow",
    ANSWERING: "yellow",
    ANSWERED: "green",
    "accepted": "green",
    "duplicate": "green",
}


class StepNotFound(SteponceError, LookupError):
    """No step with this id waits or has waited, or its record has expired."""


@click.group(invoke_without_command=True)
@click.pass_context
def awaiting(context: click.Context) -> None:
    """Look at the steps that wait for an answer from outside."""
    ask_which(context)


@awaiting.command("list")
@where_to_which
def list_steps(target: Target) -> int:
    """
    List the steps that wait, the earliest expiry first.

    With --machine only the steps of that state machine.

    A step ends at `answerBy` if neither an answer nor a heartbeat comes before. Heartbeats are not on record.
    A step whose execution was stopped, or whose time or heartbeat is over, stays in the list until an answer
    or the monitor closes it. A record that cannot be read is listed apart, with its damaged attribute.
    """
    left_out = LeftOut()
    machines = Machines.reach(target)
    steps = awaiting_steps(machines.stack).open(skip=left_out.add)
    steps = [step for step in steps if machines.is_chosen(step.execution)]
    answer = {"awaitingSteps": [describe(step) for step in steps], "unreadable": left_out.public()}
    say(answer, Group(table(steps), *left_out.lines()))
    return DONE


@awaiting.command()
@id_argument
@click.option(
    "--link",
    "with_link",
    is_flag=True,
    help="Also make a link. Anyone who has it can answer.",
)
@where_to_which
def show(given: str, with_link: bool, target: Target) -> int:
    """
    Show one step: its request, until when it waits, and its outcome; never its task token.

    ID is the awaiting step's, or that of its request, which stands for the step of its newest attempt. If
    that one has had several steps, or an earlier attempt was answered, name the step.
    """
    machines = Machines.reach(target)
    stack = machines.stack
    step = awaiting_steps(stack).get(which_step(machines, given))
    if step is None:
        raise StepNotFound(
            f"There is no awaiting step {given!r}, or its record has expired. List the steps that wait.",
            next_steps=[NextStep("list steps")],
        )
    answer = describe(step) | {"execution": step.execution, "retryCount": step.retry_count}
    link = _link(stack, step) if with_link else None
    say(answer | ({"link": link} if with_link else {}), _panel(step))
    if with_link and for_people():  # not in the table, which would break it
        sys.stdout.write(f"{link or 'No link, for it waits no more.'}\n")
    return DONE


def _is_open(step: AwaitingStep) -> bool:
    return step.status in (PENDING, ANSWERING)


def _is_expired(step: AwaitingStep) -> bool:
    return step.expires_at < times.now_text()


def describe(step: AwaitingStep) -> dict[str, Any]:
    """A step as JSON, without its token and the answer's content."""
    return step.public() | {
        "enteredAt": step.entered_at,
        "expired": _is_expired(step),
        "outcome": step.answer.outcome if step.answer else None,
    }


def _link(stack: Stack, step: AwaitingStep) -> str | None:
    """A link that answers the step while it waits. None if it no longer waits."""
    if not _is_open(step) or _is_expired(step):
        return None
    keys = Keys(stack.boto3("secretsmanager"), output_of(stack, "CallbackKey"))
    return output_of(stack, "CallbacksUrl") + sign(keys, step.id, step.expires_at, OUTCOMES)


def table(steps: Sequence[AwaitingStep]) -> RenderableType:
    """Steps for people."""
    if not steps:
        return Text("No step waits for an answer.")
    rows = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    rows.add_column("awaiting step", overflow="fold")
    rows.add_column("status", no_wrap=True)
    rows.add_column("answer by (UTC)", no_wrap=True)
    for step in steps:
        whose = Text.assemble(plain(step.id), "\n", plain(f"{step.step} of {step.request_id}"))
        until = plain(step.answer_by[:19], "red" if step.answer_by < times.now_text() else "")
        rows.add_row(whose, plain(step.status, _COLOURS.get(step.status, "red")), until)
    return rows


def _panel(step: AwaitingStep) -> RenderableType:
    rows = {
        "step": step.step,
        "request": step.request_id,
        "lock token": step.lock_token,
        "times taken": str(step.attempt),
        "waits since" if _is_open(step) else "waited since": step.entered_at,
        "answer by": step.answer_by if _is_open(step) and step.answer_by < step.expires_at else None,
        "expired" if _is_expired(step) else "expires": step.expires_at,
        "answer": step.answer.outcome if step.answer else None,
        "execution": step.execution,
    }
    return framed(step.id, step.status, fields(rows))


def framed(step_id: str, word: str, content: RenderableType) -> RenderableType:
    """A panel about a step for people, titled with its id and its status."""
    colour = _COLOURS.get(word, "red")
    title = Text.assemble(plain(step_id), " ", (word, f"bold {colour}"))
    return Panel(content, title=title, title_align="left", border_style=colour, expand=False)
