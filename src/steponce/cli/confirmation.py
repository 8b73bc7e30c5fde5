"""The options and the confirmation of commands that change records: who does it, why, and whether to ask."""

from __future__ import annotations

import functools
import getpass
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import click
from rich.console import RenderableType

from steponce.cli.output import Screen, in_a_line, is_whole
from steponce.errors import SteponceError


class Declined(SteponceError):
    """The operator did not confirm."""


@dataclass(frozen=True)
class Confirmation:
    """
    The options of a command that changes a record.

    Args:
        by: Who does it.
        why: Why. None: ask for it.
        yes: Whether to go on without asking.
        kept: Where the name and the reason are kept, for people.
    """

    by: str
    why: str | None
    yes: bool
    kept: str

    def ask(self, shown: RenderableType, question: str) -> str:
        """
        Show what will be changed and ask for confirmation, unless --yes was given.

        The question may hold text of others, like a lock token.

        Returns:
            The reason, in words.

        Raises:
            Declined: the operator did not confirm.
            click.UsageError: what was typed is not in the encoding of the terminal's locale.
        """
        try:
            if not self.yes:
                Screen(stderr=True).print(shown)
            why = self.why or click.prompt(f"Why ({self.kept})", err=True, value_proc=_reason)
            if self.yes or click.confirm(in_a_line(question).plain, err=True):
                return why
        except click.Abort:
            sys.stderr.write("\n")
        except UnicodeDecodeError as error:
            raise click.UsageError(f"What was typed is not {error.encoding.upper()}.") from None
        raise Declined("You have not confirmed it, so this was not done.")


LONGEST = 1_000
"""The most characters of a name or a reason. A record of 400 KB keeps twenty of them beside its result."""


def needs_confirmation(kept: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """
    Add the options --by, --why and --yes to a command, which gets them as one `confirmation`.

    Args:
        kept: Where the name and the reason are kept, for people.
    """

    def with_options(command: Callable[..., int]) -> Callable[..., int]:
        @click.option("--yes", is_flag=True, help="Do not ask. Without a terminal it is needed.")
        @click.option("--by", metavar="NAME", help=f"Who does it; {kept}.  [default: the user]")
        @click.option("--why", metavar="TEXT", help=f"Why; {kept}. On a terminal it is asked for.")
        @functools.wraps(command)
        def with_confirmation(*, yes: bool, by: str | None, why: str | None, **others: Any) -> int:
            _check_options(yes, by, why, kept)
            confirmation = Confirmation((by or _user()).strip(), why and why.strip(), yes, kept)
            return command(confirmation=confirmation, **others)

        return with_confirmation

    return with_options


changes_record = needs_confirmation("kept with the record")
"""For a command that keeps the record."""


def _check_options(yes: bool, by: str | None, why: str | None, kept: str) -> None:
    if not yes and not on_a_terminal():
        raise click.UsageError("There is no terminal to ask at. Say --yes if it is meant.")
    if why is None and not on_a_terminal():
        raise click.UsageError(f"Say why with --why TEXT; it is {kept}.")
    for option, text in (("--by", by), ("--why", why)):
        if text is not None:
            _check_text(option, text)


def _check_text(which: str, text: str) -> None:
    if not text.strip():
        raise click.UsageError(f"{which} is blank.")
    if not is_whole(text):
        raise click.UsageError(f"{which} is not UTF-8.")
    if len(text) > LONGEST:
        raise click.UsageError(f"{which} has {len(text):,} characters; {LONGEST:,} are allowed.")


def _reason(typed: str) -> str:
    """The reason that was typed. After a UsageError click asks once more."""
    _check_text("The reason", typed)
    return typed.strip()


def on_a_terminal() -> bool:
    """Whether standard input is a terminal, so that a person can answer a question."""
    return sys.stdin.isatty()


def _user() -> str:
    with suppress(OSError, KeyError):
        if is_whole(user := getpass.getuser()):
            return user
    raise click.UsageError("This user has no name that can be kept. Say who does it with --by NAME.")
