"""`--parameter NAME=VALUE`: values of a template's parameters."""

from __future__ import annotations

import click


def _pairs(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    return dict(map(_pair, given))


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise click.UsageError(f"--parameter {text!r} is not NAME=VALUE, like ExpectedSeconds=60.")
    return name, value


template_parameters = click.option(
    "--parameter",
    "parameters",
    multiple=True,
    callback=_pairs,
    metavar="NAME=VALUE",
    help="A parameter of the template; may be given more than once.",
)
"""Gives the command a dictionary `parameters`."""
