"""Checks the keys, ids and prefixes of a command line."""

from __future__ import annotations

from collections.abc import Callable

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


of_request = click.argument("request_id", callback=expecting("Give the request's id."))
"""Gives the command a `request_id`."""

lock_token_of_request = click.option(
    "--key",
    metavar="K",
    callback=expecting("Give the business key, or leave --key out."),
    help="The lock token, if it is not made from the request id.",
)
"""Gives the command a `key`, or None."""
