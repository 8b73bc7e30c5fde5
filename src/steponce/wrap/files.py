"""Writes what a wrap has made. A file is there whole or not at all, and an error leaves nothing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from steponce.scaffold import installation
from steponce.wrap import source
from steponce.wrap.errors import CannotWrap
from steponce.wrap.kept_lines import keep_ends

if TYPE_CHECKING:
    from steponce.wrap.into import Into


def write_into(found: Into, definition: str, template: Path) -> None:
    """
    Write the three parts, the template last, when the files that it names exist.

    Args:
        found: The parts.
        definition: The text of the wrapped definition.
        template: The template's path.

    Raises:
        CannotWrap: the template has changed since it was read, or another command is changing it.
        OSError: a file cannot be written. Nothing is left of the others.
    """
    with _draft_alone(template) as draft:
        if source.text_of(template) != found.before:
            raise CannotWrap([f"{template} has changed meanwhile. Give the same command again."])
        text = keep_ends(template.read_bytes().decode(), found.template)
        try:
            if found.installation is not None:
                with _naming(found.installation):
                    installation.write(found.installation, installation.files(callback=False))
            write_whole(found.definition, definition)
            _fill(draft, template, text, newline="")
        except BaseException:  # Ctrl-C, too
            if draft.exists():  # and not the template yet, which names the others
                if found.installation is not None:
                    shutil.rmtree(found.installation, ignore_errors=True)
                with suppress(OSError):
                    found.definition.unlink()
            raise


def write_whole(path: Path, text: str) -> None:
    """
    Write a file. What was there stays whole until the new text is, so that a full disk loses nothing.

    Raises:
        OSError: it cannot be written.
    """
    if path.exists() and not path.is_file():  # a pipe or a device, whose place no file may take
        path.write_text(text, encoding="utf-8")
        return
    draft = _draft_of(path)
    try:
        _fill(draft, path, text)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def _draft_alone(template: Path) -> Iterator[Path]:
    """The draft of a template. It is there for one command at a time, until it becomes the template."""
    draft = _draft_of(template)
    try:
        draft.touch(exist_ok=False)
    except FileExistsError:
        raise CannotWrap(
            [f"{draft} is there: another command is changing the template, or was killed. Delete it then."]
        ) from None
    try:
        yield draft
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _draft_of(path: Path) -> Path:
    place = path.resolve()
    return place.with_name(f".{place.name}.steponce-draft")


def _fill(draft: Path, path: Path, text: str, *, newline: str | None = None) -> None:
    """Write a file's draft, and let it become the file."""
    place = path.resolve()
    with _naming(path):
        draft.write_text(text, encoding="utf-8", newline=newline)
    if place.exists():
        shutil.copymode(place, draft)
    draft.replace(place)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the path in an error without one, as of a full disk."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise
