"""A known defect of an engine is expected on that engine alone, and for as long as it is there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import engines
from tests.patience import PATIENCE_SECONDS

ROOT = Path(__file__).parents[2]

TESTS = """
import pytest

@pytest.mark.defect(engine="DynamoDB Local", row="D1")
def test_the_engine_is_wrong():
    assert False

@pytest.mark.defect(engine="DynamoDB Local", row="D1")
def test_the_engine_has_become_better():
    assert True
"""


def run(folder: Path, **environment: str) -> str:
    """Run the two tests above under this suite's own conftest; what pytest says."""
    (folder / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (folder / "test_marked.py").write_text(TESTS)
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("STEPONCE_", "PYTEST"))}
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-c",
            str(ROOT / "pyproject.toml"),
            "-p",
            "no:cacheprovider",
            str(folder),
        ],
        env=ours | {"PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    return done.stdout


@pytest.mark.full
def test_a_defect_is_expected_on_its_engine(tmp_path: Path):
    """The failure is expected there; the pass is a failure that names the row."""
    told = run(tmp_path, STEPONCE_DYNAMODB_ENDPOINT="http://127.0.0.1:1")
    assert "1 failed, 1 xfailed" in told
    assert "[XPASS(strict)] DynamoDB Local: row D1 of tests/ENGINES.md" in told
    assert "engines: states=embedded dynamodb=DynamoDB Local lambda=embedded: 1 failed, 1 xfailed" in told


DEFECT = pytest.mark.defect


class Item:
    """A test with one mark."""

    def __init__(self) -> None:
        self.marks = [DEFECT(engine="DynamoDB Local", row="D1").mark]
        self.added: list[pytest.MarkDecorator] = []

    def iter_markers(self, name: str) -> list[pytest.Mark]:
        return [mark for mark in self.marks if mark.name == name]

    def add_marker(self, mark: pytest.MarkDecorator) -> None:
        self.added.append(mark)


@pytest.mark.parametrize(("expected", "url"), [([], None), (["xfail"], "http://127.0.0.1:1")])
def test_a_defect_is_no_excuse_elsewhere(
    expected: list[str], url: str | None, monkeypatch: pytest.MonkeyPatch
):
    """On the embedded engine nothing is expected to fail."""
    for variable in ("STEPONCE_DYNAMODB_LOCAL_JAR", "STEPONCE_DYNAMODB_ENDPOINT"):
        monkeypatch.delenv(variable, raising=False)
    if url:
        monkeypatch.setenv("STEPONCE_DYNAMODB_ENDPOINT", url)
    item = Item()
    engines.mark_defects(item)
    assert expected == [mark.name for mark in item.added]
    assert all(mark.kwargs["strict"] for mark in item.added)
    told = engines.summary({"passed": 1, "failed": 1})
    assert told.endswith("lambda=embedded: 1 passed, 1 failed")


@pytest.mark.parametrize(
    ("variable", "service", "engine"),
    [
        ("STEPONCE_STATES_LOCAL_JAR", "states", "Step Functions Local"),
        ("STEPONCE_STATES_LOCAL_IMAGE", "states", "Step Functions Local"),
        ("STEPONCE_STATES_ENDPOINT", "states", "Step Functions Local"),
        ("STEPONCE_DYNAMODB_LOCAL_JAR", "dynamodb", "DynamoDB Local"),
        ("STEPONCE_DYNAMODB_ENDPOINT", "dynamodb", "DynamoDB Local"),
        ("STEPONCE_LAMBDA_ENDPOINT", "lambda", "SAM CLI"),
    ],
)
def test_the_environment_says_which_engine_runs(variable: str, service: str, engine: str):
    """One endpoint is real, and the others are embedded."""
    embedded = dict.fromkeys(("states", "dynamodb", "lambda"), "embedded")
    assert embedded == engines.running({})
    assert embedded | {service: engine} == engines.running({variable: "x"})


def test_a_server_that_runs_must_be_told_from(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """The tests listen where it calls; without knowing where, nothing would reach them."""
    monkeypatch.setenv("STEPONCE_STATES_ENDPOINT", "http://127.0.0.1:8083")
    monkeypatch.delenv("STEPONCE_STATES_CALLS", raising=False)
    with pytest.raises(pytest.UsageError, match="STEPONCE_STATES_CALLS"), engines.parts(tmp_path):
        pass
