"""`steponce limits`: shows and resets a user's rate limits."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import islice
from typing import Any

import click
from botocore.exceptions import BotoCoreError, ClientError
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from steponce.aws import times
from steponce.aws.errors import is_refusal, without_advice
from steponce.camelcase import json_object
from steponce.cli.confirmation import Confirmation, changes_record
from steponce.cli.errors import words_for
from steponce.cli.keys import expecting
from steponce.cli.left_out import LeftOut
from steponce.cli.listing import limited
from steponce.cli.output import DONE, ask_which, counted, plain, say
from steponce.cli.target import Stack, Target, Unreachable, where_to
from steponce.cli.timeline import intervention
from steponce.errors import RecordChanged, Refused, SteponceError, Unavailable
from steponce.limits.record import Count
from steponce.limits.table import Limits
from steponce.next_step import NextStep

LIMITS_TABLE = "LimitsTable"


class PartlyReset(SteponceError):
    """AWS refused or did not answer while a user's limits were reset one by one."""


def _time(_context: click.Context, _option: click.Parameter, value: str | None) -> datetime:
    try:
        return times.now() if value is None else times.from_text(value)
    except ValueError:
        raise click.BadParameter("it is no time. Write it like 2026-01-31T12:00:00Z.") from None


_user = click.argument("user", callback=expecting("Give the user as it was given to the limiter."))


@click.group(invoke_without_command=True)
@click.pass_context
def limits(context: click.Context) -> None:
    """
    Show and reset a user's rate limits.

    USER is who is limited, as it was given to the limiter.
    """
    ask_which(context)


@limits.command()
@_user
@limited(20)
@where_to
def show(user: str, limit: int, target: Target) -> int:
    """
    List what is counted for a user, the newest window first.

    A record that cannot be read is named apart, with the attribute that something else has damaged.
    """
    left_out = LeftOut()
    found = _limits(target.reach()).of(user, skip=left_out.add)
    listed = list(islice(found, limit))
    more = next(found, None) is not None
    answer: dict[str, Any] = {"user": user, "limits": [_listed(count) for count in listed], "more": more}
    say(answer | {"unreadable": left_out.public()}, Group(_table(listed, more), *left_out.lines()))
    return DONE


@limits.command()
@_user
@click.option(
    "--name",
    metavar="NAME/WINDOW",
    callback=expecting("Give a limit as `show` lists it, or leave --name out."),
    help="Only this limit, as `show` lists it.",
)
@click.option("--at", callback=_time, metavar="TIME", help="In the windows of this time.  [default: now]")
@changes_record
@where_to
def reset(user: str, name: str | None, at: datetime, confirmation: Confirmation, target: Target) -> int:
    """
    Reset a user's limits in the present windows: counting begins at 0 again.

    Who was admitted stays so, and is not counted again. A request that was refused is admitted if it comes
    again. The record keeps who has done it, and why. Two resets of one limit admit twice as many more: after
    an error look with `show` before you repeat the command.
    """
    table = _limits(target.reach())
    found = table.at(user, at, name=name)
    if not found:
        which = f" by {name}" if name else ""
        raise Refused(
            f"Nothing is counted for {user!r}{which} in a window of {times.to_text(at)}. "
            "List what is counted.",
            next_steps=[NextStep("show limits", user)],
        )
    why = confirmation.ask(_table(found, more=False), f"Reset {counted(len(found), 'limit')} of {user}?")
    changed = _reset_each(table, user, found, by=confirmation.by, why=why)
    if changed:
        raise RecordChanged(
            f"{len(changed)} of {counted(len(found), 'limit')} changed since you looked, and were left; the "
            "others are reset. A limit changes if a request is counted, or if somebody else resets it. List "
            "what is counted, and reset those by name.",
            next_steps=[NextStep("show limits", user)],
        )
    before = [_listed(count) for count in found]
    answer = {"done": "reset", "by": confirmation.by, "why": why, "user": user, "before": before}
    say(answer, Text(f"Reset {counted(len(found), 'limit')}.", "bold green"))
    return DONE


def _reset_each(table: Limits, user: str, found: Sequence[Count], *, by: str, why: str) -> list[Count]:
    """
    Reset counters one by one.

    Returns:
        Those that had changed since they were read, and were left.

    Raises:
        PartlyReset: AWS refused or did not answer, and some are reset, or may be.
        ClientError, NoCredentialsError: AWS refused, and none is.
    """
    changed, done = list[Count](), list[str]()
    for count in found:
        try:
            is_reset = table.reset(count, by=by, why=why)
        except (Unavailable, ClientError, BotoCoreError) as error:
            if not done and is_refusal(error):
                raise
            raise PartlyReset(
                f"{_said(error)} {_what_is_reset(done, count, error)} List what is counted before you repeat "
                "the command: two resets of one limit admit twice as many more.",
                next_steps=[NextStep("show limits", user)],
            ) from error
        if is_reset:
            done.append(_name(count))
        else:
            changed.append(count)
    return changed


def _said(error: Unavailable | ClientError | BotoCoreError) -> str:
    """What AWS said, without the advice to try the same call again."""
    if isinstance(error, Unavailable):
        return without_advice(error)
    return f"{words_for(error).rstrip('.')}."


def _what_is_reset(done: Sequence[str], last: Count, error: Exception) -> str:
    """The limits that are reset for certain, and the one of which no answer came."""
    sure = f"These limits are reset already: {', '.join(done)}." if done else ""
    doubt = "" if is_refusal(error) else f"{_name(last)} may be reset{', too' if done else ''}."
    return f"{sure} {doubt}".strip()


def _limits(stack: Stack) -> Limits:
    if LIMITS_TABLE not in stack.outputs:
        raise Unreachable(
            f"The stack {stack.name!r} has no Output {LIMITS_TABLE}. Deploy it with the parameter "
            "Limits=yes. If it is, delete the Condition of that Output in its template. If its tables are "
            "another stack's, name that one."
        )
    return Limits(stack.boto3("dynamodb"), stack.outputs[LIMITS_TABLE])


def _listed(count: Count) -> dict[str, Any]:
    return {
        "limit": count.name,
        "windowStart": times.to_text(count.start),
        "resetsAt": times.to_text(count.end),
        "shard": count.shard,
        "counted": count.counted,
        "of": count.limit,
        "interventions": [json_object(one) for one in count.interventions],
    }


def _name(count: Count) -> str:
    """A counter's name for people."""
    return f"{count.name} #{count.shard}" if count.shard else count.name


def _table(listed: Sequence[Count], more: bool) -> RenderableType:
    if not listed:
        return Text("Nothing is counted for this user.")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("limit", overflow="fold")
    table.add_column("window (UTC)", no_wrap=True)
    table.add_column("until", no_wrap=True)
    table.add_column("counted", no_wrap=True)
    for count in listed:
        full = count.counted >= count.limit
        number = Text(f"{count.counted} of {count.limit}", "red" if full else "")
        table.add_row(
            plain(_name(count)), times.to_text(count.start)[:19], times.to_text(count.end)[:19], number
        )
    changes = [intervention(one) for count in listed for one in count.interventions]
    rest = [Text("And more; --limit says how many to list.")] if more else []
    return Group(table, *changes, *rest)
