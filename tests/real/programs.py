"""The programs that these tests run, and which Python there is for the functions."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from steponce.local.session import without_account

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / ".tools" / "bin"
MODULES = Path(__file__).parent / "node_modules"


@dataclass(frozen=True)
class Python:
    """An interpreter that `sam build` can use: it has pip."""

    path: Path
    version: str

    @property
    def runtime(self) -> str:
        """The Lambda runtime of this version."""
        return f"python{self.version}"


def tool(name: str) -> str:
    """A program of the tools' own virtual environment."""
    path = TOOLS / name
    if not path.exists():
        pytest.fail(f"{name} is not installed in .tools. Run `make tools`.", pytrace=False)
    return str(path)


def from_npm(pattern: str) -> Path:
    """A file of the packages in package-lock.json."""
    found = next(MODULES.glob(pattern), None)
    if found is None:
        pytest.fail(f"There is no {pattern}. Run `npm ci` in tests/real.", pytrace=False)
    return found


@cache
def version(package: str) -> str:
    """The version of a package among the tools."""
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    return subprocess.check_output([tool("python"), "-c", code], text=True).strip()


def environment(**more: str) -> dict[str, str]:
    """The environment for a tool: no account, no proxy, no telemetry."""
    return {**without_account(dict(os.environ)), "SAM_CLI_TELEMETRY": "0", **more}


def wanted_runtime() -> str:
    """The version in the template's runtime, such as 3.13."""
    found = re.search(r"Runtime: python(\d\.\d+)", (ROOT / "template.yaml").read_text())
    assert found
    return found.group(1)


@cache
def runtime_python() -> Python:
    """The Python of the template's runtime; where the machine has none, the tools' own."""
    return _find(wanted_runtime()) or tools_python()


@cache
def tools_python() -> Python:
    """The Python that the tools run in."""
    code = "import sys; print(f'{sys.version_info.major}.{sys.version_info.minor}')"
    number = subprocess.check_output([tool("python"), "-c", code], text=True).strip()
    return Python(TOOLS / f"python{number}", number)


def _find(wanted: str) -> Python | None:
    for path in _places(wanted):
        if path.exists() and _is(wanted, path):
            return Python(path, wanted)
    return None


def _places(wanted: str) -> Iterator[Path]:
    name = f"python{wanted}"
    if on_path := shutil.which(name):
        yield Path(on_path)
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for home in sorted(pyenv.glob(f"versions/{wanted}.*"), reverse=True):
        yield home / "bin" / name
    if uv := shutil.which("uv"):
        found = subprocess.run([uv, "python", "find", wanted], capture_output=True, text=True, check=False)
        yield Path(found.stdout.strip() or os.devnull)


def _is(wanted: str, path: Path) -> bool:
    """A shim may stand on the path for a version that is switched off, or that has no pip."""
    code = "import sys, pip; print(f'{sys.version_info.major}.{sys.version_info.minor}')"
    ran = subprocess.run([path, "-c", code], capture_output=True, text=True, check=False)
    return ran.stdout.strip() == wanted


def run(command: list[str], *, env: Mapping[str, str], cwd: Path, timeout: float = 300) -> str:
    """Run a program to its end; its whole output is the failure's text if it fails."""
    ran = subprocess.run(
        command, env=env, cwd=cwd, timeout=timeout, capture_output=True, text=True, check=False
    )
    if ran.returncode:
        pytest.fail(f"{' '.join(command)}\n{ran.stdout}\n{ran.stderr}", pytrace=False)
    return ran.stdout


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ask a program to stop, and make it if it does not."""
    process.terminate()
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


MACHINE = "arm64" if os.uname().machine in ("arm64", "aarch64") else "x86_64"
"""This machine's architecture, as Lambda calls it."""
