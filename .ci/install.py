"""
Installs what a lock file names into a virtual environment. `make` runs it, with nothing but Python.

uv installs, because pip needs forty times its processor time. pip fetches uv, by its hash, and uv gets pip's
settings, so that a machine whose packages come from another index keeps to it. Where uv fails, pip installs.
"""

from __future__ import annotations

import argparse
import ast
import fcntl
import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
INSTALLER = Path(__file__).with_name("installer.lock")
UNFINISHED = "unfinished"
"""A file that marks an environment as being changed. The next set-up deletes such an environment first."""

OLDEST_PYTHON = (3, 11)
OLDEST_PIP = (22, 3)
"""The first pip that can install into an environment which has none itself."""

INSTALL = ("install", "--quiet", "--disable-pip-version-check")
FOR_UV = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
}
"""pip's settings, and the variables that tell uv the same."""

DEFAULTS = {
    "UV_SYSTEM_CERTS": "1",  # whom this machine trusts, as pip does
    "UV_INDEX_STRATEGY": "unsafe-best-match",  # all indexes count, as for pip; the hashes make it safe
}


def main() -> None:
    """Make the environment hold what the lock file names, unless it does already."""
    if sys.version_info < OLDEST_PYTHON:
        sys.exit("steponce needs Python 3.11 or newer: make PYTHON=python3.12")
    parser = argparse.ArgumentParser()
    parser.add_argument("stamp", type=Path, help="a file in the environment, written when all is installed")
    parser.add_argument("lock", type=Path)
    parser.add_argument("--what", required=True, help="what the progress line names")
    parser.add_argument("--in-place", action="store_true", help="install the package of this folder as well")
    given = parser.parse_args()
    wanted = digest(given.lock, INSTALLER, ROOT / "pyproject.toml")
    with alone_in(ROOT) as held:
        if not given.stamp.exists() or given.stamp.read_text() != wanted:
            try:
                Environment(given.stamp.parent, held).install(given.lock, given.what, given.in_place)
            except subprocess.CalledProcessError as error:
                sys.exit(f"{given.stamp.parent.name}: could not install {given.what} ({error.cmd[0]} failed)")
            given.stamp.write_text(wanted)
            (given.stamp.parent / UNFINISHED).unlink()
        given.stamp.touch()


class Environment:
    """A virtual environment with uv in it; `held` is the open lock that its installers keep."""

    def __init__(self, folder: Path, held: int) -> None:
        self._folder = folder
        self._python = str(folder / "bin" / "python")
        self._uv = str(folder / "bin" / "uv")
        self._held = held

    def install(self, lock: Path, what: str, in_place: bool) -> None:
        """Install the packages of a lock file by their hashes."""
        begin = time.monotonic()
        self._begin()
        self._say(f"installing {what} ...")
        self._packages("--require-hashes", "-r", str(lock))
        if in_place:
            self._packages("--no-build-isolation", "--editable", str(ROOT))
        self._say(f"ready after {time.monotonic() - begin:.0f} s")

    def _begin(self) -> None:
        """The environment, marked as unfinished, and uv in it if this machine can have it."""
        if (self._folder / UNFINISHED).exists():
            self._say("an earlier set-up was interrupted; beginning anew")
            shutil.rmtree(self._folder)
        self._folder.mkdir(exist_ok=True)
        (self._folder / UNFINISHED).touch()
        if not Path(self._python).exists():
            venv.EnvBuilder(symlinks=True).create(self._folder)
        if not self._has_uv():
            self._say("fetching uv, which installs the rest (18 MB) ...")
            with suppress(subprocess.CalledProcessError):  # a machine for which there is none has pip
                options = ["--only-binary=:all:", "--require-hashes", "-r", str(INSTALLER)]
                self._run([*self._pip(), *INSTALL, *options])

    def _has_uv(self) -> bool:
        wanted = INSTALLER.read_text().split(maxsplit=1)[0].partition("==")[2]
        with suppress(OSError):
            said = subprocess.run([self._uv, "--version"], capture_output=True, text=True, check=False)
            return wanted in said.stdout.split()
        return False

    def _packages(self, *what: str) -> None:
        """By uv, and where it cannot by pip. A lock file is complete, so that neither looks for more."""
        uv = [self._uv, "pip", "install", "--quiet", "--python", self._python, "--no-deps"]
        try:
            self._run([*uv, *what], env={**DEFAULTS, **self._settings, **os.environ})
        except (OSError, subprocess.CalledProcessError):
            self._say("uv cannot do it; pip does, which takes minutes ...")
            self._run([*self._pip(), *INSTALL, "--no-deps", *what])

    @cached_property
    def _settings(self) -> dict[str, str]:
        listed = subprocess.run([*self._pip(), "config", "list"], capture_output=True, text=True, check=False)
        return for_uv(listed.stdout)

    def _pip(self) -> list[str]:
        """This Python's own pip, or one that is put into the environment for want of it."""
        if own_pip() >= OLDEST_PIP:
            return [sys.executable, "-m", "pip", "--python", self._python]
        if not list(self._folder.glob("lib/*/site-packages/pip")):
            self._run([self._python, "-m", "ensurepip"], stdout=subprocess.DEVNULL)
        return [self._python, "-m", "pip"]

    def _run(self, command: Sequence[str], **more: Any) -> None:
        # An installer that outlives this process keeps the lock, and so keeps others from the environment.
        subprocess.run(command, pass_fds=[self._held], check=True, **more)

    def _say(self, text: str) -> None:
        print(f"{self._folder.name}: {text}", flush=True)


def digest(*files: Path) -> str:
    """What an environment is made of, in one line."""
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest() + "\n"


def own_pip() -> tuple[int, ...]:
    """The version of this Python's pip, or 0."""
    try:
        version = importlib.metadata.version("pip")
    except importlib.metadata.PackageNotFoundError:
        return (0,)
    return tuple(int(part) for part in version.split(".")[:2])


def for_uv(listed: str) -> dict[str, str]:
    """
    The variables that give uv pip's settings.

    Args:
        listed: What `pip config list` prints: `global.index-url='…'`, a setting a line.
    """
    told = {}
    for place in ("global", "install", ":env:"):  # as in pip, the later ones win
        for line in listed.splitlines():
            name, _, value = line.removeprefix(f"{place}.").partition("=")
            if line.startswith(f"{place}.") and name in FOR_UV:
                several = ast.literal_eval(value).split()
                told[FOR_UV[name]] = ("," if name == "find-links" else " ").join(several)
    return told


@contextmanager
def alone_in(folder: Path) -> Iterator[int]:
    """Wait until no other set-up runs in the folder, and hold the lock that keeps others waiting."""
    held = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Waiting for another set-up in this folder ...", flush=True)
            fcntl.flock(held, fcntl.LOCK_EX)
        yield held
    finally:
        os.close(held)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        sys.exit(main())
    sys.exit(130)
