"""`steponce letters`: lists and redrives dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from steponce.cli.answers import DONE, ask_which, counted, fields, plain, say
from steponce.cli.shell import commands
from steponce.cli.target import Stack, Target, output_of, where_to
from steponce.triggers.redrive import DeadLetterQueue, Found, Letters, is_foreign, reason_of, what_next


@click.group(invoke_without_command=True)
@click.pass_context
def letters(context: click.Context) -> None:
    """
    List dead letters, and redrive them as the requests that they were.

    ID is the letter's own, as the list shows it. `list` and `show` remove nothing. A letter that somebody
    else looks at is hidden for a moment.
    """
    ask_which(context)


@letters.command("list")
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True, help="How many to list.")
@where_to
def list_letters(limit: int, target: Target) -> int:
    """List the dead letters with their reasons, without their content."""
    found, more = _letters(target.reach()).look(limit)
    say({"letters": [_describe(one) for one in found], "more": more}, _table(found, more))
    return DONE


@letters.command()
@click.argument("letter_id", metavar="ID")
@where_to
def show(letter_id: str, target: Target) -> int:
    """Show one letter with its body and attributes, which may be confidential."""
    found = _letters(target.reach()).get(letter_id)
    advice, steps = what_next(found)
    next_commands = commands(steps, target.options)
    answer = _describe(found) | {"attributes": found.text_attributes(), "body": found.body}
    rows = {name: None if value is None else str(value) for name, value in _describe(found).items()}
    rows |= found.text_attributes()
    say(
        answer | {"advice": advice, "next": next_commands},
        Group(fields(rows), plain(found.body), fields({"next": "\n".join([advice, *next_commands])})),
    )
    return DONE


@letters.command()
@click.argument("letter_id", metavar="ID", required=False)
@click.option("--all", "everything", is_flag=True, help="All that can be put back.")
@where_to
def redrive(letter_id: str | None, everything: bool, target: Target) -> int:
    """
    Redrive a letter: it asks for the same id, payload and key as the first time.

    First remove the cause that its reason names, or it becomes a dead letter again. Redriving twice does no
    harm. AWS's own failure records are no requests; `show` says what to do with each.
    """
    if everything == (letter_id is not None):
        raise click.UsageError("Give the ID of one letter, or --all.")
    found = _letters(target.reach())
    done = [found.redrive(letter_id)] if letter_id is not None else list(found.redrive_all())
    more = found.count()
    answer: dict[str, Any] = {"done": "put back", "letters": [_describe(one) for one in done], "more": more}
    rest = [Text(f"About {more} more lie there.")] if more else []
    say(answer, Group(Text(f"Put back {counted(len(done), 'letter')}.", "bold green"), *rest))
    return DONE


def _letters(stack: Stack) -> Letters:
    """The stack's dead-letter queues, and the queue to which each redrives."""
    found = [
        DeadLetterQueue(
            "queue", output_of(stack, "RequestsDeadLetterQueueUrl"), output_of(stack, "RequestsQueueUrl")
        )
    ]
    if "RequestsFifoDeadLetterQueueUrl" in stack.outputs:
        dead, back = stack.outputs["RequestsFifoDeadLetterQueueUrl"], output_of(stack, "RequestsFifoQueueUrl")
        found.append(DeadLetterQueue("FIFO queue", dead, back))
    found.append(DeadLetterQueue("events", output_of(stack, "DeadEventsQueueUrl"), None))
    return Letters(stack.boto3("sqs"), found)


def _describe(found: Found) -> dict[str, Any]:
    letter, foreign = found.letter, is_foreign(found)
    return {
        "id": found.id,
        "kind": foreign or letter.shape,
        "queue": found.queue.name,
        "reason": reason_of(found),
        "source": letter.source,
        "requestId": letter.request_id,
        "tries": letter.tries,
        "when": found.when,
        "canBePutBack": foreign is None,
    }


def _table(found: Sequence[Found], more: int) -> RenderableType:
    if not found:
        return Text("No letter lies there.")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("letter", overflow="fold")
    table.add_column("request", overflow="fold")
    table.add_column("when (UTC)", no_wrap=True)
    table.add_column("why", overflow="fold")
    for one in found:
        shown = _describe(one)
        request = plain(one.letter.request_id or "-") if shown["canBePutBack"] else Text("no request", "red")
        table.add_row(plain(one.id), request, one.when[:19], plain(shown["reason"]))
    rest = [Text(f"And about {more} more; --limit says how many to list.")] if more else []
    return Group(table, *rest)
