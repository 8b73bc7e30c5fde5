"""Writes a new application: the files of the cookiecutter template, the workflow, and the installation."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from steponce.errors import SteponceError, shown
from steponce.scaffold import installation, sources, workflow
from steponce.scaffold.alone import alone
from steponce.scaffold.render import render

_FILES = Path("application", "{{cookiecutter.project_slug}}")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,59}")
_OF_CALLBACKS = ("events/confirmed_order.json", "tests/test_confirmation.py")
_OF_HTTP = ("tests/test_http.py",)


class NotWritten(SteponceError):
    """The application cannot be written there, or not under this name. Nothing was written."""


@dataclass(frozen=True)
class Choices:
    """
    What a new application is to be.

    Args:
        name: The name of its stack.
        callback: Whether a request may wait for a confirmation from outside.
        http: Whether requests can be started over HTTP.
    """

    name: str
    callback: bool = False
    http: bool = False


def check_name(name: str) -> None:
    """
    Check that a stack can have this name.

    Raises:
        NotWritten: it cannot.
    """
    if not _NAME.fullmatch(name):
        raise NotWritten(
            f"{shown(name)} cannot name a stack. Use a letter first, then letters, digits and hyphens, 60 "
            "characters at the most."
        )


def init(folder: Path, choices: Choices) -> list[str]:
    """
    Write a new application into a folder that does not exist, or that is empty but for `.git`.

    All of it is there, or nothing.

    Returns:
        The paths of its own files, without those of the installation.

    Raises:
        NotWritten: the folder or the name cannot be used, the disk does not take it, or another init of the
            folder runs.
    """
    check_name(choices.name)
    folder = Path(os.path.realpath(folder))  # the draft stands beside it, where it can be renamed
    if not folder.name:
        raise NotWritten(f"{folder} is the root of the file system. Name a folder in it.")
    runs = f"Another init of {folder} runs. Wait for its end, or name another folder."
    with alone(folder, NotWritten(runs)):
        return _init(folder, choices)


def _init(folder: Path, choices: Choices) -> list[str]:
    draft = folder.with_name(f".{folder.name}.steponce-draft")
    _check_place(folder, draft)
    shutil.rmtree(draft, ignore_errors=True)  # of an init that was killed
    try:
        _write(draft, choices)
        complete(draft, choices)
        written = _own_files(draft)
        _move(draft, folder)
    except OSError as error:
        raise NotWritten(f"{folder} cannot be written: {error}.") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return written


def complete(folder: Path, choices: Choices) -> None:
    """Add to the rendered files what is made of the sample's, and take away what was not chosen."""
    unwanted = [*(() if choices.callback else _OF_CALLBACKS), *(() if choices.http else _OF_HTTP)]
    for path in unwanted:
        (folder / path).unlink()
    installation.write(folder, {workflow.FILE: workflow.definition(callback=choices.callback).encode()})
    installation.write(folder / installation.FOLDER, installation.files(callback=choices.callback))


def _check_place(folder: Path, draft: Path) -> None:
    if not folder.parent.is_dir():
        raise NotWritten(f"There is no folder {folder.parent} to write {folder.name} into.")
    if not folder.exists():
        return
    if not folder.is_dir():
        raise NotWritten(f"{folder} is a file. Name a folder that does not exist yet.")
    present = sorted({path.name for path in folder.iterdir()} - {".git"})
    if present and _was_filling(draft, set(present)):
        raise NotWritten(
            f"An earlier init of {folder} was interrupted and left a part of the application. Delete "
            f"{', '.join(present)}, and run the command again."
        )
    if present:
        raise NotWritten(f"{folder} is not empty. Name a folder that does not exist yet, or an empty one.")


def _was_filling(draft: Path, present: set[str]) -> bool:
    """Whether an init that was killed has put these into their folder: they and its draft are all of it."""
    if not draft.is_dir():
        return False
    left = {path.name for path in draft.iterdir()}
    own = {path.parts[0] for path in [*_rendered(), Path(workflow.FILE), Path(installation.FOLDER)]}
    return bool(left) and not left & present and left | present == own


def _rendered() -> list[Path]:
    """The paths of the files of the cookiecutter template, in its folder."""
    files = sources.root() / _FILES
    return [
        path.relative_to(files)
        for path in files.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    ]


def _write(folder: Path, choices: Choices) -> None:
    values = {
        "project_slug": choices.name,
        "callback": "yes" if choices.callback else "no",
        "http": "yes" if choices.http else "no",
    }
    files = sources.root() / _FILES
    rendered = {
        path.as_posix(): render((files / path).read_text(encoding="utf-8"), values).encode()
        for path in _rendered()
    }
    installation.write(folder, rendered)


def _own_files(folder: Path) -> list[str]:
    paths = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return sorted(path.as_posix() for path in paths if path.parts[0] != installation.FOLDER)


def _move(draft: Path, folder: Path) -> None:
    if not folder.exists():
        draft.rename(folder)
        return
    names = [path.name for path in draft.iterdir()]
    try:
        for name in names:
            (draft / name).rename(folder / name)
    except BaseException:  # of the disk, or Ctrl-C
        for name in names:
            if not (draft / name).exists():
                (folder / name).rename(draft / name)
        raise
