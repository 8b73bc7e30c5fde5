"""The wheel carries what it needs: all here runs outside the checkout, which its Python does not know."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests import wheel
from tests.patience import PATIENCE_SECONDS
from tests.rules.documents import EVENTS, FUNCTIONS, MACHINES, ROOT
from tests.wheel import Installation

pytestmark = pytest.mark.usefixtures("installed")

_WHERE = """
import json, sys
from importlib.metadata import version
from steponce.scaffold import sources
print(json.dumps([version("steponce"), str(sources.root()), sys.path]))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """The wheel in an environment of its own."""
    folder = tmp_path_factory.mktemp("wheel")
    return wheel.beside(wheel.build(folder), folder / "environment")


def test_the_installed_package_has_its_files_with_it(installed: Installation, tmp_path: Path):
    """Each file is the checkout's, at a place of the wheel's own, and there is no other."""
    _, root, path = json.loads(installed.run([installed.python, "-c", _WHERE], tmp_path))

    names = ["template.yaml", "requests.yaml", "monitoring.yaml", "samconfig.toml"]
    names += ["src/Makefile", "src/requirements.txt"]
    files = [*(ROOT / name for name in names), *MACHINES, *EVENTS, *(one / "app.py" for one in FUNCTIONS)]
    files += [path for path in (ROOT / "application").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert Path(root).is_relative_to(installed.folder)
    assert len(files) == sum(path.is_file() and path.suffix != ".pyc" for path in Path(root).rglob("*"))
    assert {str(ROOT), str(ROOT / "src")}.isdisjoint(path)
    assert [file.read_bytes() for file in files] == [
        (root / file.relative_to(ROOT)).read_bytes() for file in files
    ]


@pytest.mark.full  # tests/real does it too, with everything installed anew
def test_a_request_runs_in_an_empty_folder(installed: Installation, tmp_path: Path):
    """`up` and `start`, with the sample that the wheel carries."""
    up = subprocess.Popen(
        [installed.program, "up"], cwd=tmp_path, env=installed.environment(), stdout=subprocess.PIPE
    )
    try:
        assert up.stdout
        assert "ChargesTable" in json.loads(up.stdout.readline())["outputs"]
        event = {"orderId": "1", "amount": 500, "card": "tok_visa"}
        command = [installed.program, "start", "order-1", "-", "--wait"]
        receipt = json.loads(installed.run(command, tmp_path, input=json.dumps(event)))
    finally:
        up.send_signal(signal.SIGINT)
        up.communicate(timeout=PATIENCE_SECONDS)

    assert ("COMPLETED", 500) == (receipt["status"], receipt["result"]["amount"])
    assert 0 == up.returncode


@pytest.mark.full  # likewise
def test_a_new_application_passes_its_own_tests(installed: Installation, tmp_path: Path):
    """As its README has it, on a stack that is deployed from its template."""
    installed.run([installed.program, "init", "orders", "--callback"], tmp_path)

    said = installed.run(["make", "test"], tmp_path / "orders")

    assert "4 passed" in said
