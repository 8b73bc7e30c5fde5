"""docker-compose.yaml and the workflow of a fork's CI name what a stack and its tests expect."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from steponce.local.servers import aws
from steponce.local.stack import SERVICES
from steponce.local.template.physical_names import ACCOUNT
from tests import engines

from .documents import ROOT

COMPOSE = ROOT / "docker-compose.yaml"
CHECK = ROOT / ".github" / "workflows" / "check.yml"

STATES_SETTINGS = {"AWS_ACCOUNT_ID": ACCOUNT, "AWS_DEFAULT_REGION": "us-east-1"}
KNOWN = {f"STEPONCE_{service.upper()}_ENDPOINT" for service in SERVICES} | {
    aws.DYNAMODB_JAR,
    aws.STATES_JAR,
    aws.STATES_IMAGE,
    engines.STATES_CALLS,
}


@pytest.fixture
def services() -> dict[str, Any]:
    return yaml.safe_load(COMPOSE.read_text())["services"]


@pytest.fixture
def jobs() -> dict[str, Any]:
    return yaml.safe_load(CHECK.read_text())["jobs"]


def test_the_servers_are_aws_s_own(services: dict[str, Any]):
    """Their images, at the versions that this repository is for."""
    images = {name: service["image"] for name, service in services.items()}
    assert {
        "dynamodb": "amazon/dynamodb-local:3.3.0",
        "states": "amazon/aws-stepfunctions-local:2.0.0",
    } == images


def test_nobody_else_on_the_network_reaches_them(services: dict[str, Any]):
    """Every port is published on the loopback interface, where the comment says that it is."""
    ports = {name: service["ports"] for name, service in services.items()}
    assert {"dynamodb": ["127.0.0.1:8000:8000"], "states": [f"127.0.0.1:{aws.STATES_PORT}:8083"]} == ports
    assert "STEPONCE_DYNAMODB_ENDPOINT=http://127.0.0.1:8000 " in COMPOSE.read_text()


def test_all_speak_of_one_database(services: dict[str, Any]):
    """Without -sharedDb the workflow would write into another one than the clients read."""
    assert {"-inMemory", "-sharedDb"} <= set(services["dynamodb"]["command"].split())


def test_step_functions_local_is_told_what_the_stack_would_tell_it(
    services: dict[str, Any], jobs: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The same variables as for a container that a stack starts, with the account of the stack's ARNs."""
    (tmp_path / "docker").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    command = aws.states_container_command("image", "us-east-1", {"lambda": "L", "dynamodb": "D"})
    wanted = {part.partition("=")[0] for part in command if "=" in part}
    for settings in (services["states"]["environment"], jobs["states-local"]["services"]["states"]["env"]):
        assert wanted == set(settings)
        assert settings.items() >= STATES_SETTINGS.items()


def test_a_fork_runs_what_everyone_runs(jobs: dict[str, Any]):
    """`make check` is the only gate; a workflow may read the repository, and nothing else."""
    assert "make check" in [step.get("run") for step in jobs["check"]["steps"]]
    assert {"contents": "read"} == yaml.safe_load(CHECK.read_text())["permissions"]


def test_a_fork_runs_the_workflow_on_step_functions_local(jobs: dict[str, Any]):
    """The server calls where the tests listen, which is where its container finds this machine."""
    job = jobs["states-local"]
    service, test = job["services"]["states"], job["steps"][-1]
    port = test["env"][engines.STATES_CALLS].partition(":")[2]
    assert f"http://host.docker.internal:{port}" == service["env"]["LAMBDA_ENDPOINT"]
    assert f"http://host.docker.internal:{port}" == service["env"]["DYNAMODB_ENDPOINT"]
    assert "--add-host host.docker.internal:host-gateway" == service["options"]
    assert [f"{aws.STATES_PORT}:8083"] == service["ports"]
    assert f"http://127.0.0.1:{aws.STATES_PORT}" == test["env"][engines.STATES_ENDPOINT]
    assert test["run"].endswith("pytest tests/workflow")


@pytest.mark.parametrize("path", [COMPOSE, CHECK, ROOT / "tests" / "ENGINES.md"], ids=lambda path: path.name)
def test_every_variable_that_is_named_is_read(path: Path):
    """A misspelt one would leave the embedded part in place, without a word."""
    named = set(re.findall(r"STEPONCE_[A-Z_]+", path.read_text()))
    assert set() == named - KNOWN
    assert not named.isdisjoint(KNOWN)
