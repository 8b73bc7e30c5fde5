"""pre-commit runs our hook in a repository of somebody else."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.real.programs import ROOT, environment, tool, version

pytestmark = pytest.mark.timeout(600)

CONFIG = """
repos:
  - repo: {repository}
    rev: {revision}
    hooks:
      - id: steponce-lint
"""
CHARGE = {
    "Type": "Task",
    "Resource": "arn:aws:states:::lambda:invoke",
    "Parameters": {"FunctionName": "charge"},
    "TimeoutSeconds": 60,
}


def test_a_commit_with_a_fault_is_refused(tmp_path: Path, record_property: Callable[[str, object], None]):
    """The hook is installed from the last commit of this checkout, and names the state."""
    record_property("part", f"pre-commit {version('pre-commit')}")
    revision = run(["git", "rev-parse", "HEAD"], ROOT).stdout.strip()
    repository = tmp_path / "repository"
    repository.mkdir()
    run(["git", "init", "--quiet"], repository)
    config = CONFIG.format(repository=ROOT, revision=revision)
    (repository / ".pre-commit-config.yaml").write_text(config)

    (repository / "charge.asl.json").write_text(machine(CHARGE | {"Next": "Nowhere"}))
    refused = lint(repository)
    (repository / "charge.asl.json").write_text(machine(CHARGE | {"End": True}))
    passed = lint(repository)

    assert 1 == refused.returncode, refused.stdout + refused.stderr
    assert "charge.asl.json:1: error: Charge: it leads to 'Nowhere'" in refused.stdout
    assert "[missing-target]" in refused.stdout
    assert 0 == passed.returncode, passed.stdout + passed.stderr
    assert "Passed" in passed.stdout


def machine(state: dict[str, object]) -> str:
    return json.dumps({"StartAt": "Charge", "States": {"Charge": state}})


def lint(repository: Path) -> subprocess.CompletedProcess[str]:
    run(["git", "add", "--all"], repository)
    return run([tool("pre-commit"), "run", "--all-files"], repository)


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    cache = {"PRE_COMMIT_HOME": str(folder.parent / "hooks")}
    return subprocess.run(
        command,
        cwd=folder,
        env=environment(**cache),
        capture_output=True,
        text=True,
        timeout=500,  # pre-commit installs the hook with all that it needs
    )
