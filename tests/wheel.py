"""
The package as others get it: a wheel, installed into an environment that does not know this checkout.

`beside` needs no network, since the environment looks for everything else among the packages of this one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steponce.local.session import without_account
from tests.patience import PATIENCE_SECONDS
from tests.rules.documents import ROOT

_OURS = ("STEPONCE_", "PYTHON", "VIRTUAL_ENV")


@dataclass(frozen=True)
class Installation:
    """A virtual environment that has the wheel."""

    folder: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    @property
    def program(self) -> str:
        """The command line."""
        return str(self.folder / "bin" / "steponce")

    def environment(self, **more: str) -> dict[str, str]:
        """A shell's in which this environment is active, without an account, a stack or the checkout."""
        shell = without_account(dict(os.environ))
        shell = {name: value for name, value in shell.items() if not name.startswith(_OURS)}
        path = f"{self.folder / 'bin'}{os.pathsep}{shell['PATH']}"
        return shell | {"PATH": path} | more

    def run(self, command: Sequence[str | Path], folder: Path, **options: Any) -> str:
        """Run a command in a folder; its standard output. What it wrote is the failure's text if it fails."""
        ran = subprocess.run(
            command,
            cwd=folder,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            **options,
        )
        assert 0 == ran.returncode, f"{command}\n{ran.stdout}\n{ran.stderr}"
        return ran.stdout

    def install(self, *what: str | Path, offline: bool = False) -> None:
        """By uv, and by pip where there is none, or where only pip is told where packages are."""
        uv = [Path(sys.executable).with_name("uv"), "pip", "install", "--quiet", "--python", self.python]
        uv += ["--offline"] if offline else ["--system-certs"]
        if uv[0].exists() and subprocess.run([*uv, *what], check=False).returncode == 0:
            return
        pip = [self.python, "-m", "pip", "install", "--quiet"] + ["--no-index"] * offline
        subprocess.run([self.python, "-m", "ensurepip"], check=True, capture_output=True)
        subprocess.run([*pip, *what], check=True)


def build(folder: Path) -> Path:
    """The wheel, built from the checkout."""
    command = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--quiet",
        "--outdir",
        folder,
        ROOT,
    ]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def beside(wheel: Path, folder: Path) -> Installation:
    """Install the wheel alone, into an environment that has this one's other packages."""
    installation = _environment(folder)
    installation.install("--no-deps", wheel, offline=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    # Only a folder on the first path is searched for .pth files, and so for the one that names the checkout.
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))
    return installation


def whole(wheel: Path, folder: Path) -> Installation:
    """`pip install 'steponce[local]'`, into an environment that has nothing else."""
    installation = _environment(folder, with_pip=True)  # `make setup` of a new application wants it
    installation.install(f"{wheel}[local]")
    return installation


def _environment(folder: Path, *, with_pip: bool = False) -> Installation:
    venv.EnvBuilder(symlinks=True, with_pip=with_pip).create(folder)
    return Installation(folder)
