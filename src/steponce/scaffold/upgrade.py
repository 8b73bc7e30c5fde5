"""Replaces the installation of an application by the one that this version of the package has."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

from steponce.errors import Refused
from steponce.scaffold import installation, sources, workflow
from steponce.scaffold.alone import alone
from steponce.scaffold.application import NotWritten


class InstallationEdited(Refused):
    """Somebody has changed files of the installation, which an upgrade would lose. Nothing was written."""


@dataclass(frozen=True)
class Changes:
    """
    What an upgrade has changed.

    Args:
        before: The version that was there.
        after: This version.
        added: Paths in the installation's folder; likewise `removed` and `changed`.
        workflow: How the workflow as shipped has changed, as a unified diff. Empty if it has not. The
            application's own is left as it is.
    """

    before: str
    after: str
    added: list[str]
    removed: list[str]
    changed: list[str]
    workflow: str


def upgrade(folder: Path) -> Changes:
    """
    Replace the installation of the application in a folder.

    Raises:
        NotWritten: there is no installation, the disk does not take the new one, or another upgrade runs.
        InstallationEdited: it is not as it was written.
    """
    place = folder / installation.FOLDER
    if place.is_symlink():
        place = Path(os.path.realpath(place))  # the link stays
    runs = f"Another upgrade of {place} runs. Wait for its end, and run the command again."
    with alone(place, NotWritten(runs)):
        _put_back(place)
        manifest = _unedited(place)
        new = installation.files(callback=manifest.callback)
        changes = _changes(place, manifest, new)
        try:
            _replace(place, new)
        except OSError as error:
            raise NotWritten(f"{place} cannot be replaced: {error}.") from error
    return changes


def _unedited(place: Path) -> installation.Manifest:
    """The manifest of an installation that is as it was written."""
    if not (place / installation.MANIFEST).is_file():
        raise NotWritten(f"There is no {place / installation.MANIFEST}. Name the folder of an application.")
    try:
        manifest = installation.read_manifest(place)
        edited = installation.edited(place, manifest)
    except ValueError:
        edited = [installation.MANIFEST]
    if edited:
        raise InstallationEdited(
            f"{place} was edited: {', '.join(edited)}. Undo that, or put the folder back from version "
            "control, since an upgrade replaces all of it. Your own parts belong outside of it."
        )
    return manifest


def _changes(place: Path, manifest: installation.Manifest, new: dict[str, bytes]) -> Changes:
    old = {path: installation.with_unix_lines((place / path).read_bytes()) for path in manifest.files}
    new = {
        path: installation.with_unix_lines(content)
        for path, content in new.items()
        if path != installation.MANIFEST
    }
    return Changes(
        before=manifest.version,
        after=sources.version(),
        added=sorted(new.keys() - old.keys()),
        removed=sorted(old.keys() - new.keys()),
        changed=sorted(path for path in old.keys() & new.keys() if old[path] != new[path]),
        workflow="".join(
            unified_diff(
                old.get(workflow.FILE, b"").decode().splitlines(keepends=True),
                new[workflow.FILE].decode().splitlines(keepends=True),
                "before",
                "after",
            )
        ),
    )


def _put_back(place: Path) -> None:
    """Put the old folder back if an upgrade was killed before the new one was in its place."""
    old = _beside(place, "old")
    if old.exists() and not place.exists():
        try:
            old.rename(place)
        except OSError as error:
            raise NotWritten(f"{old} cannot be put back as {place}: {error}.") from error


def _beside(place: Path, name: str) -> Path:
    return place.with_name(f".{place.name}.{name}")


def _replace(place: Path, new: dict[str, bytes]) -> None:
    """The new folder is whole before the old one goes."""
    draft, old = _beside(place, "new"), _beside(place, "old")
    for left in (draft, old):  # by an upgrade that was killed
        shutil.rmtree(left, ignore_errors=True)
    try:
        installation.write(draft, new)
        place.rename(old)
        draft.rename(place)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        if place.exists():
            shutil.rmtree(old, ignore_errors=True)
        else:
            old.rename(place)
