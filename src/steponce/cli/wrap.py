"""`steponce wrap`: an existing state machine becomes one whose requests run at most once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.syntax import Syntax
from rich.text import Text

from steponce.cli.answers import DONE, plain, say
from steponce.cli.target import Unreachable, needs_local
from steponce.wrap import CannotWrap, Wrapped, fragment, source, wrap_around, wrap_inline

_ENDING = ".asl.json"


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--around", is_flag=True, help="Leave the machine as it is, and start it from the workflow.")
@click.option(
    "--may-retry-later",
    "named",
    multiple=True,
    metavar="STATE",
    help="RetryLater of this state releases the lock; may be given more than once.  [default: of the states "
    "that none with an effect is before]",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where to write.  [default: NAME_once.asl.json beside it]",
)
@click.option("--force", is_flag=True, help="Write over a file that is there.")
def wrap(file: Path, around: bool, named: tuple[str, ...], output: Path | None, force: bool) -> int:
    """
    Wrap the Standard state machine in FILE, so that its requests run at most once.

    FILE is its definition in Amazon States Language, as JSON. Its states go into the workflow; with --around
    they stay where they are. FILE itself is not changed. The answer has the template's part, and what you
    must decide.
    """
    if around and named:
        raise click.UsageError("--may-retry-later goes without --around: there RetryLater releases no lock.")
    target = output or file.with_name(
        file.name.removesuffix(".json").removesuffix(".asl") + f"_once{_ENDING}"
    )
    if target.exists() and not force:
        raise click.UsageError(f"{target} is there already. Name another file with --output, or use --force.")
    wrapped = _wrapped(_read(file), around, named)
    text = source.write(wrapped.definition)
    _expect_taken("The wrapped definition", text)
    template = fragment.template(wrapped, target.as_posix())
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"{target} cannot be written: {error}.") from None
    answer = {
        "written": str(target),
        "form": wrapped.form,
        "renamed": wrapped.renamed,
        "mayRetryLater": wrapped.may_retry_later,
        "decide": wrapped.decisions,
        "template": template,
    }
    say(answer, _for_people(answer))
    return DONE


def _wrapped(text: str, around: bool, named: tuple[str, ...]) -> Wrapped:
    try:
        _expect_taken("The definition", text)
        return wrap_around(text) if around else wrap_inline(text, may_retry_later=named or None)
    except CannotWrap as error:
        raise click.UsageError(f"{error} Nothing was written.") from None


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{file} cannot be read: {error}.") from None


def _expect_taken(what: str, text: str) -> None:
    """Refuse a definition that AWS would refuse."""
    try:
        from steponce.local.template.definitions import complaints
    except ModuleNotFoundError as error:
        raise Unreachable(needs_local(error)) from None
    found = complaints(source.with_values(source.read(text)))
    if found:
        raise click.UsageError(f"{what} would be refused by AWS: {' '.join(found)} Nothing was written.")


def _for_people(answer: dict[str, Any]) -> RenderableType:
    steps = (plain(f"  {number}. {text}") for number, text in enumerate(answer["decide"], 1))
    return Group(
        Text.assemble(("Written: ", "bold"), plain(answer["written"])),
        Text("\nDecide:", "bold"),
        *steps,
        Text("\nThe template's part:", "bold"),
        Syntax(answer["template"], "yaml", background_color="default"),
    )
