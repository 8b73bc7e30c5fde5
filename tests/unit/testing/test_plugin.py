"""
The plugin in a project of its own, whose template knows nothing of steponce.

One run of pytest on one stack does it all. Its tests are the examples of docs/testing.md and those of
`project/`; some of them fail on purpose.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.testing.project_folder import write_project

pytestmark = pytest.mark.full  # tests/real runs the project, too, with the plugin from the wheel

OF_NO_TEMPLATE = """
import sys

def test_nothing_heavy_is_imported_for_a_run_without_a_template():
    assert {"boto3", "moto", "rich", "jsonschema", "steponce.local"}.isdisjoint(sys.modules)

def test_on_purpose_there_is_no_template(steponce_stack):
    pass
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the run of the project's tests has printed."""
    folder = tmp_path_factory.mktemp("project")
    write_project(folder)
    return run_pytest(folder)


def test_everything_passes_but_what_fails_on_purpose(said: str):
    """The examples of the page, and the tests of the project."""
    ends = {line.split()[1]: line.split()[0] for line in said.splitlines() if "::" in line and " - " in line}

    assert {
        "test_more.py::test_on_purpose_the_assertion_fails": "FAILED",
        "test_more.py::test_on_purpose_a_fault_is_never_reached": "ERROR",
        "test_more.py::test_on_purpose_nothing_is_reached_again": "ERROR",
        "test_more.py::test_on_purpose_there_is_no_run_once_workflow": "ERROR",
    } == ends
    assert "1 failed, 24 passed, 3 errors" in said


def test_a_failed_test_has_the_story_of_what_did_not_succeed(said: str):
    """The states of the execution, and its errors; nothing of the one that succeeded."""
    story = said.partition(" steponce: purpose-2: FAILED ")[2].partition(" steponce: ")[0]

    states = [line.split("Z  ")[1] for line in story.splitlines() if "Z  " in line]
    assert [
        "ReserveSlot",
        "Charge",
        "  LambdaFunctionFailed: Declined, A cause of the test.",
        "ReleaseSlot",
        "Refused",
        "  ExecutionFailed: Refused, The charge was declined.",
    ] == states
    assert "purpose-1" not in said


def test_a_failed_test_says_what_the_stack_does_not_run(said: str):
    """It may be the reason."""
    assert "AWS::Cognito::UserPool (Passengers). It is left out." in said.split("left out of the stack")[1]


def test_a_fault_that_is_not_reached_is_an_error(said: str):
    """Else the test would say what it has not shown."""
    assert "fail_state('Charge', 'Declined') was reached 1 of 2 times." in said


def test_a_client_needs_a_run_once_workflow(said: str):
    """The error names the Outputs, and needs no traceback."""
    assert "The stack's Outputs name no workflow: there is no RunOnceStateMachineArn" in said
    assert "MachineNotFound" not in said


def test_without_a_template_the_plugin_costs_nothing_and_says_what_to_set(tmp_path: Path):
    """pytest loads it in every run."""
    (tmp_path / "test_free.py").write_text(OF_NO_TEMPLATE)

    said = run_pytest(tmp_path)

    assert "1 passed, 1 error" in said
    assert "pytest with --steponce-template template.yaml, or write steponce_template = template.yaml" in said


def test_a_wrong_setting_is_said_once(tmp_path: Path):
    """Without the errors that led to it."""
    (tmp_path / "test_free.py").write_text("def test_the_stack(steponce_stack): pass")
    (tmp_path / "pytest.ini").write_text("[pytest]\nsteponce_template = gone.yaml")

    said, summary, _ = run_pytest(tmp_path).partition("short test summary")

    assert summary
    assert 1 == said.count("gone.yaml. Give its path, or go to the folder that has it.")
    assert "another exception" not in said


def run_pytest(folder: Path) -> str:
    """Without this environment's other plugins, which take half a second to load."""
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "steponce.testing.plugin"}
    command = [sys.executable, "-m", "pytest", "--tb=short", "-p", "no:cacheprovider"]
    ran = subprocess.run(command, cwd=folder, env=os.environ | alone, capture_output=True, text=True)
    assert "" == ran.stderr
    return ran.stdout
