"""`steponce requests`: finds requests, and lists everything that is kept about one customer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from itertools import islice
from typing import Any, TypeVar, get_args

import click
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from steponce.aws import times
from steponce.callbacks.step import AwaitingStep
from steponce.camelcase import json_object
from steponce.cli import awaiting as waiting
from steponce.cli.errors import report_error
from steponce.cli.keys import expecting
from steponce.cli.left_out import LeftOut
from steponce.cli.listing import limited
from steponce.cli.machines import Machines
from steponce.cli.output import COLOURS, DONE, ask_which, in_a_line, plain
from steponce.cli.stream import Stream
from steponce.cli.target import Target, where_to_which
from steponce.cli.which_step import AWAITING_STEPS_TABLE, awaiting_steps
from steponce.operator.listing import Listing
from steponce.operator.requests import Request, Status, Wanted

_SPAN = re.compile(r"(\d{1,6})(m|h|d)")
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
_NAMED = 1_000
"""How many records that cannot be read are named. The rest is counted."""

Row = TypeVar("Row")


def _time(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    """Parses a time, or a time span before now, into UTC text."""
    if value is None:
        return None
    span = _SPAN.fullmatch(value)
    try:
        found = times.now() - int(span[1]) * _UNITS[span[2]] if span else times.from_text(value)
        return times.to_text(found)
    except (ValueError, OverflowError):
        raise click.BadParameter(
            "it is no time. Write it like 2026-01-31T12:00:00Z, or how long ago: 90m, 24h, 7d."
        ) from None


@click.group(invoke_without_command=True)
@click.pass_context
def requests(context: click.Context) -> None:
    """Find requests, also those that a queue has started."""
    ask_which(context)


@requests.command("list")
@click.option(
    "--status",
    type=click.Choice([status.lower() for status in get_args(Status)]),
    help="Only those of this status.",
)
@click.option("--since", callback=_time, metavar="TIME", help="Only those that began then or later.")
@click.option("--until", callback=_time, metavar="TIME", help="Only those that began then or before.")
@click.option(
    "--under",
    callback=expecting("Give the beginning of the lock tokens, like acme/"),
    metavar="PREFIX",
    help="Only those whose lock token begins so, like acme/",
)
@limited(100)
@where_to_which
def list_requests(
    status: str | None,
    since: str | None,
    until: str | None,
    under: str | None,
    limit: int,
    target: Target,
) -> int:
    """
    List requests, in no order: their lock records, and executions that have none.

    With --under it is everything that `erase` would delete, the waiting steps included.

    It reads the whole table, unless --limit ends it or --status running lets the index of open records do.
    Executions without a record are looked for with --since or --status running; each costs a
    DescribeExecution. A request's newest attempt decides its status. So with --since all executions since
    then are listed, whatever the --status is; with --status running only those that run. TIME is like
    2026-01-31T12:00:00Z, or how long ago: 90m, 24h, 7d.
    """
    wanted = Wanted(_status(status), since, until, under or "")
    if since is not None and until is not None and until < since:
        raise click.UsageError(f"--until ({until}) is before --since ({since}). No request is between them.")
    machines = Machines.reach(target)
    left_out, answer = LeftOut(most=_NAMED), Stream()
    listing = Listing(machines.machines, wanted, only=target.machine is not None, skip=left_out.add)
    try:
        found = _Limited(listing, limit)
        names = machines.workflows.names()
        count = answer.rows("requests", found, partial(_described, names), partial(_table, names))
        steps = _Limited(_steps(machines, wanted, left_out), limit)
        if under is not None and status is None:
            count += answer.rows("awaitingSteps", steps, waiting.describe, waiting.table)
        more = found.has_more() or steps.has_more()
        rest = {"more": more, "unreadable": left_out.public(), "unreadableCount": left_out.count}
        answer.end(rest, Group(*_remarks(count, more), *left_out.lines()))
    except OSError:  # the pipe takes no more
        raise
    except (Exception, KeyboardInterrupt) as error:
        if not answer.has_begun:
            raise
        # The pipe has half of an object, so the error goes into it.
        shown, code = report_error(error, target.options, machines.named)
        answer.end({"error": shown})
        return code
    return DONE


class _Limited(Iterable[Row]):
    """At most `limit` rows; and whether there are more, which is looked up only when asked for."""

    def __init__(self, rows: Iterable[Row], limit: int) -> None:
        self._rows = iter(rows)
        self._limit = limit

    def __iter__(self) -> Iterator[Row]:
        return islice(self._rows, self._limit)

    def has_more(self) -> bool:
        return next(self._rows, None) is not None


def _status(given: str | None) -> Status | None:
    return next((status for status in get_args(Status) if status.lower() == given), None)


def _steps(machines: Machines, wanted: Wanted, left_out: LeftOut) -> Iterator[AwaitingStep]:
    """The steps under a prefix, whether they wait or not; none if only requests of one status are wanted."""
    if not wanted.under or wanted.status or AWAITING_STEPS_TABLE not in machines.stack.outputs:
        return
    for step in awaiting_steps(machines.stack).under(wanted.under, consistent=False, skip=left_out.add):
        if wanted.spans(step.entered_at) and machines.is_chosen(step.execution):
            yield step


def _described(names: dict[str, str], request: Request) -> dict[str, Any]:
    machine = request.machine and names.get(request.machine, request.machine)
    return json_object(request) | {"machine": machine}


def _remarks(count: int, more: bool) -> list[Text]:
    none = [Text("No such request.")] if not count else []
    return none + ([Text("And more; --limit says how many to list.")] if more else [])


def _table(names: dict[str, str], listed: Sequence[Request]) -> RenderableType:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("request", overflow="fold")
    table.add_column("status", no_wrap=True)
    table.add_column("since (UTC)", no_wrap=True)
    table.add_column("at", overflow="fold")
    for request in listed:
        named = in_a_line(request.request_id)
        if request.lock_token is not None:
            named.append("\n").append(in_a_line(request.lock_token).plain, "dim")
        status = plain(request.status, COLOURS.get(request.status, "red"))
        if request.error:
            status.append("\n").append(plain(request.error))
        at = request.locked_by if request.machine is None else names.get(request.machine, request.machine)
        since = (request.created or "")[:19]
        table.add_row(named, status, since, plain(at or ""))
    return table
