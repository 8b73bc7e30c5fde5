"""AWS's own local servers are started as they want to be, wired to the stack, and ended with it."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from steponce.local import LocalStack, LocalStackError
from steponce.local.servers import aws
from steponce.local.servers.aws import LocalServers
from tests import stand_in_states
from tests.patience import eventually
from tests.ports import free_port

TEMPLATE = Path(__file__).parents[1] / "fixture" / "template.yaml"
ENDPOINTS = {"lambda": "http://127.0.0.1:1", "dynamodb": "http://127.0.0.1:2"}

# Serves nothing: it says where, as DynamoDB Local under our launcher does, and waits for its input's end.
DYNAMODB = '#!/bin/sh\necho "Version: 0"\necho "port 4711"\ncat\n'


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is searched first for programs."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> int:
    """A free port in the place of Step Functions Local's only one."""
    number = free_port()
    monkeypatch.setattr(aws, "STATES_PORT", number)
    monkeypatch.setenv("STAND_IN_PORT", str(number))
    return number


def program(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


def jar(folder: Path) -> str:
    (folder / "DynamoDBLocal_lib").mkdir(exist_ok=True)
    (folder / "DynamoDBLocal.jar").touch()
    return str(folder / "DynamoDBLocal.jar")


def start(servers: LocalServers, logs: Path) -> str:
    """Start the one server that is asked for."""
    if "dynamodb" in servers.services:
        return servers.start_dynamodb(logs)
    return servers.start_states(logs, "us-east-1", ENDPOINTS)


def test_the_environment_says_what_is_started():
    """One of AWS's servers, both, or none; a server that runs already comes first."""
    both = {aws.DYNAMODB_JAR: "d.jar", aws.STATES_JAR: "s.jar"}
    assert set() == LocalServers({}, ()).services
    assert {"dynamodb"} == LocalServers({aws.DYNAMODB_JAR: "d.jar"}, ()).services
    assert {"states"} == LocalServers({aws.STATES_IMAGE: "amazon/aws-stepfunctions-local"}, ()).services
    assert {"dynamodb", "states"} == LocalServers(both, ()).services
    assert {"dynamodb"} == LocalServers(both, ("states",)).services


def test_a_jar_and_an_image_are_one_too_many():
    """Nobody guesses which is meant."""
    with pytest.raises(LocalStackError, match="Unset one of them"):
        LocalServers({aws.STATES_JAR: "s.jar", aws.STATES_IMAGE: "image"}, ())


def test_step_functions_local_is_told_where_everything_is(path: Path):
    """The command of its documentation, with our account, region and endpoints."""
    program(path, "java", "")
    assert [
        *(str(path / "java"), "-Xmx256m", "-jar", "s.jar"),
        *("--aws-account", "123456789012", "--aws-region", "eu-west-1"),
        *("--lambda-endpoint", "http://127.0.0.1:1", "--dynamodb-endpoint", "http://127.0.0.1:2"),
    ] == aws.states_command(Path("s.jar"), "eu-west-1", ENDPOINTS)


def test_the_container_reaches_what_listens_on_the_loopback_interface(path: Path):
    """It is on the host's network, goes when it stops, and its environment says what a jar's options say."""
    program(path, "docker", "")
    command = aws.states_container_command("image:tag", "eu-west-1", ENDPOINTS)
    assert [str(path / "docker"), "run", "--rm", "--network", "host"] == command[:5]
    assert "image:tag" == command[-1]
    assert {"LAMBDA_ENDPOINT=http://127.0.0.1:1", "DYNAMODB_ENDPOINT=http://127.0.0.1:2"} <= set(command)
    assert {"AWS_DEFAULT_REGION=eu-west-1", "AWS_ACCOUNT_ID=123456789012"} <= set(command)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (
            {aws.DYNAMODB_JAR: "/none/DynamoDBLocal.jar"},
            "names /none/DynamoDBLocal.jar, and there is no",
        ),
        ({aws.STATES_JAR: "/none/StepFunctionsLocal.jar"}, "names /none/StepFunctionsLocal.jar"),
        ({aws.DYNAMODB_JAR: __file__}, "There is no .*DynamoDBLocal_lib"),
    ],
)
@pytest.mark.usefixtures("port")
def test_a_file_that_is_not_there_is_named(given: dict[str, str], complaint: str, tmp_path: Path):
    """The error says which variable and which path."""
    with pytest.raises(LocalStackError, match=complaint):
        start(LocalServers(given, ()), tmp_path)


def test_a_machine_without_java_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Which program, for which variable, and what to do."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LocalStackError, match=f"no java on PATH, and {aws.DYNAMODB_JAR} needs it. Install"):
        LocalServers({aws.DYNAMODB_JAR: jar(tmp_path)}, ()).start_dynamodb(tmp_path)
    with pytest.raises(LocalStackError, match=f"no docker on PATH, and {aws.STATES_IMAGE} needs it"):
        aws.states_container_command("image", "us-east-1", ENDPOINTS)


@pytest.mark.usefixtures("port")
def test_what_does_not_start_has_its_last_words_told(path: Path):
    """A Java that is too old says so in its log."""
    program(path, "java", "#!/bin/sh\necho UnsupportedClassVersionError >&2\nexit 1\n")
    (path / "s.jar").touch()
    with pytest.raises(LocalStackError, match=r"(?s)needs a JDK 17.*did not start.*UnsupportedClassVersion"):
        start(LocalServers({aws.DYNAMODB_JAR: jar(path)}, ()), path)
    with pytest.raises(LocalStackError, match=r"(?s)Step Functions Local did not start.*UnsupportedClass"):
        start(LocalServers({aws.STATES_JAR: str(path / "s.jar")}, ()), path)


def test_a_taken_port_is_told_before_anything_starts(path: Path, port: int):
    """Another stack's Step Functions Local would answer for this one."""
    program(path, "java", "#!/bin/sh\nexit 1\n")
    with socket.create_server(("127.0.0.1", port)), pytest.raises(LocalStackError, match=f"Port {port} is"):
        LocalServers({aws.STATES_JAR: "s.jar"}, ()).start_states(path, "us-east-1", ENDPOINTS)


def test_dynamodb_local_ends_when_it_is_told_to(path: Path):
    """It is known by the port that it names; its end is its input's end."""
    program(path, "java", DYNAMODB)
    servers = LocalServers({aws.DYNAMODB_JAR: jar(path)}, ())
    assert "http://127.0.0.1:4711" == servers.start_dynamodb(path)
    process = servers._running[0]._process
    assert None is process.poll()
    servers.stop()
    assert 0 == process.poll()


@pytest.mark.full
def test_a_workflow_runs_on_the_servers_that_the_stack_started(
    path: Path, port: int, monkeypatch: pytest.MonkeyPatch
):
    """Engine, function and table find each other, and the port is free again afterwards."""
    monkeypatch.setenv(aws.STATES_JAR, str(stand_in_states.install(path)))
    with LocalStack.from_template(TEMPLATE, name="beside") as stack:
        assert f"http://127.0.0.1:{port}" == stack.endpoints["states"]
        states = stack.boto3("stepfunctions")
        started = states.start_execution(stateMachineArn=stack.outputs["FlowArn"], name="first", input="{}")
        arn = {"executionArn": started["executionArn"]}
        eventually(lambda: states.describe_execution(**arn)["status"] != "RUNNING")
        assert "SUCCEEDED" == states.describe_execution(**arn)["status"]
        assert 1 == stack.boto3("dynamodb").scan(TableName=stack.outputs["ItemsTable"])["Count"]
    assert not aws._answers(port)


def test_a_server_ends_with_an_owner_that_was_killed(tmp_path: Path):
    """The supervisor sees its input end, and ends its command."""
    script = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-m', 'steponce.local.servers.supervisor', 'sh', '-c',"
        " 'echo $$; exec sleep 60'], stdin=subprocess.PIPE)\n"
        "time.sleep(60)\n"
    )
    log = tmp_path / "log"
    with log.open("wb") as output:
        owner = subprocess.Popen([sys.executable, "-c", script], stderr=output)
    eventually(lambda: log.read_text().endswith("\n"))
    kept = int(log.read_text())
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    eventually(lambda: not _lives(kept))


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
