"""`steponce init` and `steponce upgrade`: a new application, and the installation in one that exists."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
from rich.console import Group, RenderableType
from rich.text import Text

from steponce.camelcase import json_object
from steponce.cli.keys import Place, expecting
from steponce.cli.output import DONE, copyable, counted, fields, plain, say
from steponce.scaffold import application, installation, workflow
from steponce.scaffold.application import Choices, NotWritten
from steponce.scaffold.upgrade import Changes
from steponce.scaffold.upgrade import upgrade as upgrade_in

_FOLDER = Place("Give a folder, like orders, or . for this one.")


@click.command()
@click.argument("folder", metavar="DIR", type=_FOLDER)
@click.option(
    "--name",
    metavar="NAME",
    callback=expecting("Give the stack's name, or leave --name out."),
    help="The stack's name.  [default: the folder's]",
)
@click.option("--callback", is_flag=True, help="With a step that waits for a confirmation from outside.")
@click.option("--http", is_flag=True, help="With an HTTP API that starts requests.")
def init(folder: Path, name: str | None, callback: bool, http: bool) -> int:
    """
    Write a new SAM application into DIR, which must not exist yet or be empty.

    It has one function to fill in, the workflow around it, and tests. What belongs to steponce is a nested
    stack in a folder of its own.
    """
    choices = Choices(name or folder.absolute().name, callback=callback, http=http)
    try:
        written = application.init(folder, choices)
    except NotWritten as error:
        raise click.UsageError(str(error)) from None
    place = shlex.quote(f"./{folder}" if str(folder).startswith("-") else str(folder))
    what_next = [f"cd {place}", "make setup", "make test", "make up"]
    say(
        {"folder": str(folder), "stack": choices.name, "files": written, "next": what_next},
        _written(folder, written, what_next),
    )
    return DONE


@click.command()
@click.argument("folder", metavar="[DIR]", type=_FOLDER, default=Path())
def upgrade(folder: Path) -> int:
    """
    Replace the installation of the application in DIR by the one of this version, and show what changes.

    It refuses if a file of the installation was edited. It never touches your own files; if the workflow has
    changed, it shows how, and you decide.
    """
    try:
        changes = upgrade_in(folder)
    except NotWritten as error:
        raise click.UsageError(str(error)) from None
    say(json_object(changes), _changed(changes))
    return DONE


def _written(folder: Path, written: list[str], what_next: list[str]) -> RenderableType:
    return Group(
        plain(f"{folder} has:", "bold"),
        *(plain(f"  {path}") for path in [*written, f"{installation.FOLDER}/"]),
        Text("\nNext:", "bold"),
        *(plain(f"  {command}") for command in what_next),
    )


def _changed(changes: Changes) -> RenderableType:
    kinds = {"added": changes.added, "removed": changes.removed, "changed": changes.changed}
    count = sum(map(len, kinds.values()))
    parts: list[RenderableType] = [
        Text(f"{changes.before} -> {changes.after}: {counted(count, 'file')}", "bold"),
        fields({kind: "\n".join(paths) or None for kind, paths in kinds.items()}),
    ]
    if changes.workflow:
        parts += [
            Text(f"\nThe workflow has changed. Make the same change in your {workflow.FILE}:", "bold"),
            copyable(changes.workflow, "diff"),
        ]
    return Group(*parts)
