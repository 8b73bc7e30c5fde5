"""Checks the keys, ids, prefixes and paths of a command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from steponce.cli.output import is_whole


def expecting(hint: str) -> Callable[[click.Context, click.Parameter, str | None], str | None]:
    """
    A callback that refuses a text which no record can have.

    Args:
        hint: What to give instead.
    """

    def check(_context: click.Context, _parameter: click.Parameter, text: str | None) -> str | None:
        if text is not None and not text.strip():
            raise click.BadParameter(f"it is blank. {hint}")
        if text is not None and not is_whole(text):
            raise click.BadParameter(f"it is not UTF-8. {hint}")
        return text

    return check


class Place(click.Path):
    """
    A path that is not blank. Of a blank one, Python makes the current folder.

    Args:
        hint: What to give instead.
    """

    def __init__(self, hint: str) -> None:
        super().__init__(path_type=Path)
        self._hint = hint

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """As click's."""
        if isinstance(value, str) and not value.strip():
            self.fail(f"it is blank. {self._hint}", param, ctx)
        return super().convert(value, param, ctx)


of_request = click.argument("request_id", callback=expecting("Give the request's id."))
"""Gives the command a `request_id`."""

lock_token_of_request = click.option(
    "--key",
    metavar="K",
    callback=expecting("Give the business key, or leave --key out."),
    help="The lock token, if it is not made from the request id.",
)
"""Gives the command a `key`, or None."""
