"""What the tests of the command line share."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from steponce.cli import commands, target
from tests.unit.cli.fakes import PAYLOAD, Answer, FakeClient, FakeStack, Run, in_a_pipe


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder without a stack, and an environment without AWS."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "STEPONCE_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    monkeypatch.setenv("STEPONCE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path / "home"


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> FakeClient:
    """The client that every command gets, whatever its target."""
    fake = FakeClient()
    monkeypatch.setattr(target.Target, "reach", lambda _target: FakeStack(fake))
    return fake


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody reads standard output."""
    monkeypatch.setattr("steponce.cli.output.for_people", lambda: True)


@pytest.fixture
def event(tmp_path: Path) -> str:
    """A file with a good payload."""
    path = tmp_path / "event.json"
    path.write_text(json.dumps(PAYLOAD))
    return str(path)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in a pipe: exit code and the one object."""

    def run_it(*arguments: str) -> tuple[int, dict[str, Any]]:
        return commands.run(arguments), in_a_pipe(capsys)

    return run_it


@pytest.fixture
def answer(capsys: pytest.CaptureFixture[str]) -> Answer:
    """What the last command has written, in a pipe."""
    return lambda: in_a_pipe(capsys)
