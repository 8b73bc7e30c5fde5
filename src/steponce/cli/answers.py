"""One answer a call: a table for people, one JSON object for a pipe, and an exit code."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import click
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, NoRegionError
from rich.console import Console, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from steponce.aws import error_code
from steponce.cli.target import Unreachable
from steponce.errors import Conflict, InvalidRequest, SteponceError, Unavailable, Unsettled
from steponce.receipt import Receipt

DONE, FAILED, USAGE, CONFLICT, UNREACHABLE, BUG, INTERRUPTED = 0, 1, 2, 3, 4, 70, 130

EXIT_CODES = """\b
Exit codes:
    0  done: started, found or running; completed, if you waited;
       a waiting step has this answer, now or from before
    1  the request failed, is not known, is unsettled, or still runs
       when the time to wait is over (wait again, that does no harm);
       a waiting step is not known, or the answer came too late
    2  wrong usage, an invalid request or an invalid answer: nothing
       was started or sent
    3  conflict: the id or key was used with another payload or key;
       a waiting step has another answer
    4  unreachable: no credentials, no such stack, throttled, no answer;
       the same command is safe to try again
   70  a bug in steponce
  130  interrupted; a request that was started goes on
"""

COLOURS = {"COMPLETED": "green", "SUCCEEDED": "green", "RUNNING": "yellow", "INPROGRESS": "yellow"}

_IN_THE_SHELL: Mapping[type[SteponceError], str] = {
    Unsettled: "In a shell: steponce start REQUEST_ID FILE --check-owner",
}
_HINTS: Mapping[type[BotoCoreError], str] = {
    NoCredentialsError: "Log in to AWS or name a --profile; --local needs neither.",
    NoRegionError: "Give --region or set AWS_REGION.",
}


def for_people() -> bool:
    """Whether somebody reads the answer, as opposed to a program."""
    return sys.stdout.isatty()


def say(data: Mapping[str, Any], table: RenderableType) -> None:
    """Give the answer."""
    if for_people():
        Console().print(table)
    else:
        sys.stdout.write(json.dumps(data) + "\n")
        sys.stdout.flush()


def say_receipt(receipt: Receipt) -> int:
    """Give a receipt as the answer; the exit code says whether the request failed."""
    say(receipt.to_dict(), receipt_panel(receipt))
    return FAILED if receipt.status == "FAILED" else DONE


def receipt_panel(receipt: Receipt) -> RenderableType:
    """A receipt for people."""
    rows: dict[str, str | None] = {
        "lock token": receipt.lock_token,
        "duplicate": "yes" if receipt.duplicate else "no",
        "attempt": str(receipt.attempt) if receipt.attempt else None,
        "error": receipt.error,
        "cause": cause_text(receipt.cause),
        "execution": receipt.execution_arn,
    }
    if receipt.status == "COMPLETED":
        rows = {"result": pretty(receipt.result), **rows}
    colour = COLOURS.get(receipt.status, "red")
    title = Text.assemble(plain(receipt.request_id), " ", (receipt.status, f"bold {colour}"))
    return Panel(fields(rows), title=title, title_align="left", border_style=colour, expand=False)


def fields(rows: Mapping[str, str | None]) -> Table:
    """Names and values, less those that have none."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows.items():
        if value is not None:
            table.add_row(name, plain(value))
    return table


def cause_text(cause: str | None) -> str | None:
    """A cause for people: of what Lambda reports of an exception, its message without the stack trace."""
    try:
        return str(json.loads(cause or "")["errorMessage"])
    except (ValueError, KeyError, TypeError):
        return cause


def plain(text: str) -> Text:
    """Text as it is: no markup, and nothing in it that would steer the terminal."""
    return Text("".join(char if char.isprintable() or char == "\n" else ascii(char)[1:-1] for char in text))


def pretty(value: Any) -> str:
    """JSON for people."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def ask_which(context: click.Context) -> None:
    """Show the help of a group of commands, if none of them was named."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        raise click.UsageError("Say which command.", context)


@contextmanager
def waiting_for(request_id: str) -> Iterator[None]:
    """Turn a spinner on the terminal's error stream while something takes its time."""
    console = Console(stderr=True)
    if not sys.stderr.isatty():
        yield
        return
    with console.status(Text.assemble("Waiting for ", plain(request_id), " …")):
        yield


def say_error(error: Exception) -> int:
    """Say what went wrong, one line for people and an object for a pipe; the answer is the exit code."""
    kind, message, code = _explain(error)
    line = " ".join(message.split())
    sys.stderr.write(f"steponce: {kind}: {plain(line)}\n")
    if not for_people():
        say({"error": {"type": kind, "message": message}}, "")
    return code


def _explain(error: Exception) -> tuple[str, str, int]:
    kind = type(error).__name__
    if isinstance(error, SteponceError):
        hint = next((text for cls, text in _IN_THE_SHELL.items() if isinstance(error, cls)), "")
        return kind, f"{error} {hint}".strip(), _code(error)
    if isinstance(error, click.Abort):
        return "Interrupted", "Stopped waiting. A request that was started goes on.", INTERRUPTED
    if isinstance(error, click.ClickException):
        context = getattr(error, "ctx", None)
        path = context.command_path if context else "steponce"
        return "UsageError", f"{error.format_message()} (Help: {path} --help)", USAGE
    if isinstance(error, ClientError):
        said = error.response["Error"].get("Message", "")
        return error_code(error), f"{error.operation_name} was refused: {said}", UNREACHABLE
    if isinstance(error, BotoCoreError):
        hint = next((text for cls, text in _HINTS.items() if isinstance(error, cls)), "")
        return kind, f"{error}. {hint}".replace("..", ".").strip(), UNREACHABLE
    # Its text and its locals may hold a payload, so only the places are told.
    sys.stderr.write("".join(traceback.format_tb(error.__traceback__)))
    return kind, "This is a bug in steponce; the lines above say where.", BUG


def _code(error: SteponceError) -> int:
    if isinstance(error, InvalidRequest):
        return USAGE
    if isinstance(error, Conflict):
        return CONFLICT
    if isinstance(error, Unavailable | Unreachable):
        return UNREACHABLE
    return FAILED
