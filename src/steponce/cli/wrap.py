"""`steponce wrap`: an existing state machine becomes one whose requests run at most once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Group, RenderableType
from rich.text import Text

from steponce.cli.keys import Place
from steponce.cli.output import DONE, copyable, plain, say
from steponce.wrap import CannotWrap, Wrapped, fragment, source, wrap_around, wrap_inline
from steponce.wrap.files import write_into, write_whole
from steponce.wrap.refusals import expect_taken
from steponce.wrap.wrapped import Form

_ENDING = ".asl.json"
_FILE = Place("Give a file's name.")


@click.command()
@click.argument("file", required=False, type=_FILE)
@click.option("--around", is_flag=True, help="Leave the machine as it is, and start it from the workflow.")
@click.option(
    "--may-retry-later",
    "named",
    multiple=True,
    metavar="STATE",
    help="RetryLater of this state releases the lock; may be given more than once.  [default: the states "
    "with no effect before them]",
)
@click.option(
    "--output",
    type=_FILE,
    metavar="FILE",
    help="Where to write.  [default: NAME_once.asl.json beside it]",
)
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@click.option(
    "--into",
    "template",
    type=_FILE,
    metavar="TEMPLATE",
    help="Change this SAM template, with --machine, instead of writing one definition.",
)
@click.option("--machine", metavar="ID", help="The machine's logical id in the template.")
def wrap(
    file: Path | None,
    around: bool,
    named: tuple[str, ...],
    output: Path | None,
    force: bool,
    template: Path | None,
    machine: str | None,
) -> int:
    """
    Wrap the Standard state machine in FILE, so that its requests run at most once.

    FILE is its definition in Amazon States Language, as JSON. Its states go into the workflow; with --around
    they stay where they are. FILE itself is not changed. The answer has the template's part, and what you
    must decide.

    With --into, the template says where the definition is. The command changes the template, writes the
    wrapped definition beside the old one, and adds the resources of steponce as a nested stack in a folder
    of its own.
    """
    if around and named:
        raise click.UsageError("--may-retry-later goes without --around, where RetryLater releases no lock.")
    form: Form = "around" if around else "inline"
    if template is not None and (output or force):
        raise click.UsageError(
            "Leave out --output and --force: --into chooses the file's name, and writes over no other file."
        )
    if template is not None and machine is not None and file is None:
        return _wrap_into(template, machine, form, named)
    if file is None or template is not None or machine is not None:
        raise click.UsageError("Give a FILE, or --into TEMPLATE with --machine and without a FILE.")
    return _wrap_file(file, form, named, output, force)


def _wrap_file(file: Path, form: Form, named: tuple[str, ...], output: Path | None, force: bool) -> int:
    name = file.name.removesuffix(".json").removesuffix(".asl")
    target = output or file.parent / f"{name}_once{_ENDING}"
    if target.exists() and file.exists() and target.samefile(file):
        raise click.UsageError(f"{file} itself is not changed. Name another file with --output.")
    if target.exists() and not force:
        raise click.UsageError(f"{target} is there already. Name another file with --output, or use --force.")
    with _refusing():
        text = source.text_of(file)
        expect_taken("The definition", text)
        wrapped = wrap_around(text) if form == "around" else wrap_inline(text, may_retry_later=named or None)
        definition = source.write(wrapped.definition)
        expect_taken("The wrapped definition", definition)
        write_whole(target, definition)
    part = fragment.template(wrapped, target.as_posix())
    _say(wrapped, [str(target)], [*fragment.decisions(wrapped), *wrapped.decisions], part)
    return DONE


def _wrap_into(template: Path, machine: str, form: Form, named: tuple[str, ...]) -> int:
    from steponce.wrap.into import wrap_into

    with _refusing():
        found = wrap_into(template, machine, form=form, may_retry_later=named or None)
        definition = source.write(found.wrapped.definition)
        expect_taken("The wrapped definition", definition)
        write_into(found, definition, template)
    written = [str(template), str(found.definition)]
    written += [f"{found.installation}/"] if found.installation is not None else []
    _say(found.wrapped, written, found.decisions, None)
    return DONE


@contextmanager
def _refusing() -> Iterator[None]:
    """Report as wrong usage what cannot be wrapped, read or written."""
    try:
        yield
    except CannotWrap as error:
        raise click.UsageError(f"{error} Nothing was written.") from None
    except OSError as error:
        raise click.UsageError(f"It cannot be read or written: {error}. Nothing was written.") from None


def _say(wrapped: Wrapped, written: list[str], decisions: list[str], template: str | None) -> None:
    answer = {
        "written": written,
        "form": wrapped.form,
        "renamed": wrapped.renamed,
        "mayRetryLater": wrapped.may_retry_later,
        "decide": decisions,
        "template": template,
    }
    parts: list[RenderableType] = [
        Text("Written:", "bold"),
        *(plain(f"  {path}") for path in written),
        Text("\nDecide:", "bold"),
        *(plain(f"  {number}. {text}") for number, text in enumerate(decisions, 1)),
    ]
    if template is not None:
        parts += [
            Text("\nThe template's part:", "bold"),
            copyable(template, "yaml"),
        ]
    say(answer, Group(*parts))
