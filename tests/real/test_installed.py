"""The distributions that `make dist` makes, installed with what they ask for and nothing else."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.unit.testing.project_folder import write_project
from tests.wheel import Installation

pytestmark = pytest.mark.timeout(600)


def test_the_extra_is_all_that_a_stack_needs(installed: Installation, tmp_path: Path):
    """An empty folder, `up`, a request."""
    up = subprocess.Popen(
        [installed.program, "up"], cwd=tmp_path, env=installed.environment(), stdout=subprocess.PIPE
    )
    try:
        assert up.stdout
        facts = json.loads(up.stdout.readline())
        payload = json.dumps({"orderId": "1", "amount": 500, "card": "tok_visa"})
        command = [installed.program, "start", "order-1", "-", "--wait"]
        receipt = json.loads(installed.run(command, tmp_path, input=payload))
    finally:
        up.send_signal(signal.SIGINT)
        up.communicate()

    assert "ChargesTable" in facts["outputs"]
    assert "COMPLETED" == receipt["status"]


def test_the_plugin_runs_a_project_of_its_own_in_parallel(installed: Installation, tmp_path: Path):
    """Its template knows nothing of steponce; each process has a stack. Some tests fail on purpose."""
    installed.install("pytest", "pytest-xdist")
    write_project(tmp_path, with_slow_tests=True)

    command = [installed.python, "-m", "pytest", "-n", "2", "--dist", "loadfile", "-rA", "--tb=short"]
    ran = subprocess.run(
        command, cwd=tmp_path, env=installed.environment(), capture_output=True, text=True, timeout=500
    )

    assert "2 workers" in ran.stdout
    assert "1 failed, 26 passed, 3 errors" in ran.stdout, ran.stdout
    assert " steponce: purpose-2: FAILED " in ran.stdout
    assert "  LambdaFunctionFailed: Declined, A cause of the test." in ran.stdout


def test_a_new_application_needs_nothing_else(installed: Installation, tmp_path: Path):
    """Its own commands, with every choice; `make setup` adds what only its tests need."""
    installed.run([installed.program, "init", "orders", "--callback", "--http"], tmp_path)

    installed.run(["make", "setup"], tmp_path / "orders")
    said = installed.run(["make", "test"], tmp_path / "orders")

    assert "5 passed" in said
