"""Writes the answer of a command: a table for people, one JSON object for a pipe, and an exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import click
from rich.console import Console, RenderableType
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from steponce.cli.shell import on_screen
from steponce.cli.unwritten import complain
from steponce.request.receipt import Receipt

DONE, FAILED, USAGE, CONFLICT, UNREACHABLE, BUG, INTERRUPTED = 0, 1, 2, 3, 4, 70, 130

COLOURS = {"COMPLETED": "green", "SUCCEEDED": "green", "RUNNING": "yellow", "INPROGRESS": "yellow"}


class Screen(Console):
    """
    A console for texts of others: names, errors, causes, keys.

    A string that is printed, or that is in a table, is plain text. Colours are Text's alone.
    """

    def render_str(self, text: str, **_options: Any) -> Text:
        return plain(text)


def for_people() -> bool:
    """Whether standard output is a terminal."""
    return sys.stdout.isatty()


def say(data: Mapping[str, Any], table: RenderableType) -> None:
    """Write the answer: the table on a terminal, else the data as JSON."""
    if for_people():
        Screen().print(table, crop=False)
    else:
        sys.stdout.write(json.dumps(data) + "\n")
        sys.stdout.flush()


def say_receipt(receipt: Receipt) -> int:
    """Write a receipt as the answer. Returns the exit code, which says whether the request failed."""
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
        "waits for": "a person" if receipt.waits_for_person else None,
        "next start": "runs it" if receipt.may_run_again and receipt.resets_at is None else None,
        "execution": receipt.execution_arn,
    }
    if receipt.status == "COMPLETED":
        rows = {"result": pretty(receipt.result), **rows}
    colour = COLOURS.get(receipt.status, "red")
    title = Text.assemble(plain(receipt.request_id), " ", (receipt.status, f"bold {colour}"))
    return Panel(fields(rows), title=title, title_align="left", border_style=colour, expand=False)


def fields(rows: Mapping[str, str | None]) -> Table:
    """A table of names and values. Rows without a value are left out."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows.items():
        if value is not None:
            table.add_row(name, plain(value))
    return table


def cause_text(cause: str | None) -> str | None:
    """A cause for people. Of a Lambda exception it is the message, without the stack trace."""
    try:
        return str(json.loads(cause or "")["errorMessage"])
    except (ValueError, KeyError, TypeError):
        return cause


def plain(text: str, style: str = "") -> Text:
    """Plain text: markup has no effect, and control characters are escaped."""
    shown = "".join(char if char.isprintable() or char == "\n" else ascii(char)[1:-1] for char in text)
    return Text(shown, style)


def in_a_line(text: str) -> Text:
    """As `plain`, with line ends escaped as well: what follows one could look like a line of this program."""
    return plain(text.replace("\n", r"\n"))


def is_whole(text: str) -> bool:
    """Whether a text of the command line or the environment can be sent. Bytes that are no UTF-8 cannot."""
    return not any("\ud800" <= char <= "\udfff" for char in text)


def copyable(text: str, language: str) -> Text:
    """Highlighted text. A terminal that is too narrow cuts none of its lines, so that it can be copied."""
    shown = Syntax("", language, background_color="default").highlight(text)
    shown.no_wrap, shown.overflow = True, "ignore"
    return shown


def to_copy(commands: Iterable[str]) -> list[Text]:
    """The next commands for people. A terminal that is too narrow breaks none, so that each can be pasted."""
    lines = [plain(f"  {on_screen(command)}") for command in commands]
    for line in lines:
        line.no_wrap, line.overflow = True, "ignore"
    return lines


def counted(count: int, noun: str) -> str:
    """A count with its noun, in the singular or the plural."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def pretty(value: Any) -> str:
    """JSON for people."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def ask_which(context: click.Context) -> None:
    """Show the help of a group of commands, if none of them was named."""
    if context.invoked_subcommand is None:
        complain(f"{context.get_help()}\n")
        raise click.UsageError("Say which command.", context)


@contextmanager
def waiting_for(request_id: str) -> Iterator[None]:
    """Show a spinner on the terminal's error stream while the block runs."""
    console = Screen(stderr=True)
    if not sys.stderr.isatty():
        yield
        return
    with console.status(Text.assemble("Waiting for ", plain(request_id), " …")):
        yield
