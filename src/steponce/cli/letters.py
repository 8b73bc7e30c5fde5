"""`steponce letters`: lists, redrives and deletes dead letters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from steponce.cli.confirmation import Confirmation, needs_confirmation
from steponce.cli.keys import expecting
from steponce.cli.listing import limited
from steponce.cli.machines import Machines
from steponce.cli.output import DONE, ask_which, counted, fields, plain, say, to_copy
from steponce.cli.target import Stack, Target, Unreachable, output_of, where_to_which
from steponce.request.workflows import Workflow
from steponce.triggers.found_letters import DeadLetterQueue, Found
from steponce.triggers.letter_advice import can_be_put_back, is_foreign, reason_of, what_next
from steponce.triggers.redrive import Letters

_FIFO = "FIFO queue"
_QUEUES = (
    ("queue", "RequestsDeadLetterQueueUrl", "RequestsQueueUrl"),
    (_FIFO, "RequestsFifoDeadLetterQueueUrl", "RequestsFifoQueueUrl"),
    ("events", "DeadEventsQueueUrl", None),
)
"""Each queue's name for people, its own Output, and that of the queue to which its letters are redriven."""

_expect_id = expecting("Give a letter's id, as the list shows it.")
_letter_id = click.argument("letter_id", metavar="ID", callback=_expect_id)


@click.group(invoke_without_command=True)
@click.pass_context
def letters(context: click.Context) -> None:
    """
    List dead letters, redrive them as the requests that they were, or delete them.

    ID is the letter's own, as the list shows it. `list` and `show` remove nothing. A letter that somebody
    else looks at is hidden for a moment. Without --machine it is about the letters of all workflows.
    """
    ask_which(context)


@letters.command("list")
@limited(100)
@where_to_which
def list_letters(limit: int, target: Target) -> int:
    """List the dead letters with their reasons, without their content."""
    found, more = _letters(Machines.reach(target)).look(limit)
    say({"letters": [_describe(one) for one in found], "more": more}, _table(found, more))
    return DONE


@letters.command()
@_letter_id
@where_to_which
def show(letter_id: str, target: Target) -> int:
    """Show one letter with its body and attributes, which may be confidential."""
    machines = Machines.reach(target)
    found = _letters(machines).get(letter_id)
    advice, steps = what_next(found)
    next_commands = machines.commands(step for step in steps if step.action != "show letter")
    say(
        _whole(found) | {"advice": advice, "next": next_commands},
        Group(_shown(found), fields({"next": advice}), *to_copy(next_commands)),
    )
    return DONE


@letters.command()
@click.argument("letter_id", metavar="ID", required=False, callback=_expect_id)
@click.option("--all", "everything", is_flag=True, help="All but those that may have been answered.")
@where_to_which
def redrive(letter_id: str | None, everything: bool, target: Target) -> int:
    """
    Redrive a letter: it asks for the same id, payload and key as the first time.

    First remove the cause that its reason names, or it becomes a dead letter again. Redriving twice does no
    harm. A letter whose reason says "only if it was not answered" runs the work again if it was. AWS's own
    failure records are no requests; `show` says what to do with each.
    """
    if everything == (letter_id is not None):
        raise click.UsageError("Give the ID of one letter, or --all.")
    found = _letters(Machines.reach(target))
    before = found.count()
    put_back = [found.redrive(letter_id)] if letter_id is not None else found.redrive_all()
    done = [_describe(one) for one in put_back]  # the bodies of thousands would fill the memory
    more = max(0, before - len(done))
    answer: dict[str, Any] = {"done": "put back", "letters": done, "more": more}
    rest = [Text(f"About {more} more lie there.")] if more else []
    say(answer, Group(Text(f"Put back {counted(len(done), 'letter')}.", "bold green"), *rest))
    return DONE


@letters.command()
@_letter_id
@needs_confirmation("printed with the answer, since the letter goes")
@where_to_which
def delete(letter_id: str, confirmation: Confirmation, target: Target) -> int:
    """
    Delete a letter for good, because its work took effect or nobody needs it any more.

    The answer has all of the letter, which may be confidential; binary attributes are in Base64. Callers of
    its request hear nothing of this. If the request is to fail for them, see `cancel`.
    """
    found = _letters(Machines.reach(target))
    why = confirmation.ask(_shown(found.get(letter_id)), f"Delete letter {letter_id} for good?")
    gone = found.delete(letter_id)
    answer = {"done": "deleted", "by": confirmation.by, "why": why, "letter": _whole(gone)}
    say(answer, Group(_shown(gone), Text("Deleted this letter.", "bold green")))
    return DONE


def _letters(machines: Machines) -> Letters:
    """
    The dead-letter queues of the workflows, and the queue to which each redrives.

    Raises:
        Unreachable: the stack, or the workflow that --machine names, has none.
    """
    own = machines.workflows.own
    chosen = machines.chosen()
    found = list(_own_queues(machines.stack, own)) if own in chosen or not chosen else []
    found += [queue for workflow in chosen if workflow is not own for queue in _queues_of(workflow)]
    if not found:
        names = ", ".join(workflow.name for workflow in chosen)
        raise Unreachable(
            f"The Outputs of the stack {machines.stack.name!r} name no dead letters of {names}."
        )
    by_url: dict[str, DeadLetterQueue] = {}
    for queue in found:  # workflows may share one
        by_url.setdefault(queue.url, queue)
    return Letters(machines.stack.boto3("sqs"), list(by_url.values()))


def _own_queues(stack: Stack, own: Workflow | None) -> Iterator[DeadLetterQueue]:
    """Those of the stack's own workflow."""
    machine = own.arn if own else None
    for name, dead, back in _QUEUES:
        if name == _FIFO and dead not in stack.outputs:
            continue
        yield DeadLetterQueue(name, output_of(stack, dead), back and output_of(stack, back), machine)


def _queues_of(workflow: Workflow) -> Iterator[DeadLetterQueue]:
    """Those of another workflow. It may have none."""
    for name, dead, back in _QUEUES:
        if dead in workflow.settings:
            back_to = workflow.settings.get(back) if back else None
            yield DeadLetterQueue(
                f"{name} of {workflow.name}", workflow.settings[dead], back_to, workflow.arn
            )


def _describe(found: Found) -> dict[str, Any]:
    letter, foreign = found.letter, is_foreign(found)
    return {
        "id": found.id,
        "kind": foreign or letter.shape,
        "queue": found.queue.name,
        "machine": found.queue.machine and found.queue.machine.rpartition(":")[2],
        "reason": reason_of(found),
        "source": letter.source,
        "requestId": letter.request_id,
        "tries": letter.tries,
        "when": found.when,
        "canBePutBack": can_be_put_back(found),
    }


def _whole(found: Found) -> dict[str, Any]:
    return _describe(found) | {"attributes": found.shown_attributes(), "body": found.body}


def _shown(found: Found) -> RenderableType:
    """All of a letter for people."""
    rows = {name: None if value is None else str(value) for name, value in _describe(found).items()}
    attributes = {f"attribute {name}": value for name, value in found.shown_attributes().items()}
    return Group(fields(rows | attributes), plain(found.body))


def _table(found: Sequence[Found], more: int) -> RenderableType:
    if not found and more:
        return Text(f"No letter can be seen. About {more} may be hidden, while somebody else looks at them.")
    if not found:
        return Text("There are no dead letters.")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("letter", overflow="fold")
    table.add_column("request", overflow="fold")
    table.add_column("when (UTC)", no_wrap=True)
    table.add_column("why", overflow="fold")
    for one in found:
        shown = _describe(one)
        request = (
            plain(one.letter.request_id or "-") if is_foreign(one) is None else Text("no request", "red")
        )
        table.add_row(plain(one.id), request, one.when[:19], plain(shown["reason"]))
    rest = [Text(f"And about {more} more; --limit says how many to list.")] if more else []
    return Group(table, *rest)
