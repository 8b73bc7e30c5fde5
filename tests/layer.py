"""
What the functions' layer holds, and a program that imports every function from it alone.

src/Makefile builds the layer. `stand_in` is the same, made of what this environment has, for tests that build
nothing. Lambda's own packages stand beside a layer in either case.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from importlib.metadata import distribution
from pathlib import Path

from steponce.local.session import without_account
from steponce.local.template.reader import read_plan
from tests.rules.documents import ROOT

SOURCE = ROOT / "src"
RECIPE = (SOURCE / "Makefile").read_text()
EVERYTHING = {"HttpAccess": "open"}
"""Without it there is no function of the HTTP API."""

PINNED = re.compile(r"^([a-z0-9][a-z0-9._-]*)==([^ ;\\]+)", re.MULTILINE)

_IMPORTER = """
import importlib, json, sys
paths, functions = json.load(sys.stdin)
sys.path[:0] = paths
for folder in functions:
    before = set(sys.modules)
    sys.path.insert(0, folder)
    importlib.import_module("app").handler
    sys.path.remove(folder)
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(folder):
            del sys.modules[name]
print(json.dumps(sorted(sys.modules)))
"""


def listed(variable: str, makefile: str = RECIPE) -> set[str]:
    """The words of a variable of a Makefile."""
    found = re.search(rf"^{variable} [:?]?= (.*)$", makefile, re.MULTILINE)
    assert found, variable
    return set(found.group(1).split())


def pinned(lock: Path) -> dict[str, str]:
    """The version of each distribution that a lock file names."""
    return dict(PINNED.findall(lock.read_text()))


def stand_in(folder: Path) -> Path:
    """The package and the requirements of a layer, copied and linked from this environment."""
    shutil.copytree(
        SOURCE / "steponce",
        folder / "steponce",
        ignore=lambda place, _names: listed("LAPTOP") if Path(place).name == "steponce" else set(),
    )
    link(folder, set(pinned(SOURCE / "requirements.txt")))
    return folder


def of_lambda(folder: Path) -> Path:
    """What Lambda's runtime has of its own."""
    folder.mkdir()
    link(folder, listed("OF_LAMBDA", (ROOT / "Makefile").read_text()))
    return folder


def link(folder: Path, distributions: set[str]) -> None:
    """Links to what these distributions, and no others, have put into this environment."""
    for name in distributions:
        files = distribution(name).files or []
        for first in {file.parts[0] for file in files} - {"..", "bin", "__pycache__"}:
            target = folder / first
            if not target.exists():
                target.symlink_to(Path(str(distribution(name).locate_file(first))))


def import_functions(python: str | Path, functions: list[Path], *paths: Path) -> set[str]:
    """
    Import the handler of every function from these folders and the standard library alone.

    Returns:
        The modules that are loaded then.
    """
    plan = read_plan(ROOT / "template.yaml", parameters=EVERYTHING, stack_name="layered", region="us-east-1")
    environment = {name: text for function in plan.functions for name, text in function.environment.items()}
    ran = subprocess.run(
        [python, "-I", "-S", "-c", _IMPORTER],
        input=json.dumps([[str(path) for path in paths], [str(function) for function in functions]]),
        env={**without_account(dict(os.environ)), "AWS_DEFAULT_REGION": "us-east-1", **environment},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert ran.returncode == 0, ran.stderr
    return set(json.loads(ran.stdout.splitlines()[-1]))
