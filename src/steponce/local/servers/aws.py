"""
AWS's own local servers: started with a stack where the environment asks for them, and ended with it.

    STEPONCE_DYNAMODB_LOCAL_JAR    DynamoDBLocal.jar, its DynamoDBLocal_lib beside it; needs a JDK 17
    STEPONCE_STATES_LOCAL_JAR      StepFunctionsLocal.jar; needs Java 11
    STEPONCE_STATES_LOCAL_IMAGE    amazon/aws-stepfunctions-local, in its stead; needs Docker

DynamoDB Local listens on a free port of 127.0.0.1. Step Functions Local has one port, 8083, and no option
for it or for an address: one stack at a time has one, and it listens on every address of the machine.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TypeVar

from steponce.local.errors import LocalStackError
from steponce.local.session import ACCESS_KEY, SECRET_KEY, without_account
from steponce.local.template.physical_names import ACCOUNT

DYNAMODB_JAR = "STEPONCE_DYNAMODB_LOCAL_JAR"
STATES_JAR = "STEPONCE_STATES_LOCAL_JAR"
STATES_IMAGE = "STEPONCE_STATES_LOCAL_IMAGE"
STATES_PORT = 8083

_LAUNCHER = Path(__file__).with_name("DynamoDBOnLoopback.java")
_HEAP = "-Xmx256m"
_START_SECONDS = 60.0
_PULL_SECONDS = 600.0
_STOP_SECONDS = 10.0

_Answer = TypeVar("_Answer")


class LocalServers:
    """The servers that one stack has started beside its engine."""

    def __init__(self, environment: Mapping[str, str], served: Collection[str]) -> None:
        """Look what the environment asks for, of what is not served already by a running server."""
        self._jar = environment.get(DYNAMODB_JAR) if "dynamodb" not in served else None
        self._states_jar = environment.get(STATES_JAR) if "states" not in served else None
        self._states_image = environment.get(STATES_IMAGE) if "states" not in served else None
        if self._states_jar and self._states_image:
            raise LocalStackError(f"Both {STATES_JAR} and {STATES_IMAGE} are given. Unset one of them.")
        self._running: list[_Server] = []

    @property
    def services(self) -> set[str]:
        """Which of `states` and `dynamodb` they serve."""
        asked = {"dynamodb": self._jar, "states": self._states_jar or self._states_image}
        return {service for service, given in asked.items() if given}

    def start_dynamodb(self, logs: Path) -> str:
        """
        Start DynamoDB Local, empty and in memory; its address.

        Raises:
            LocalStackError: no java, no such jar, or it does not start; its log's end says why.
        """
        command = dynamodb_command(_file(DYNAMODB_JAR, self._jar or ""))
        log = logs / "dynamodb-local.log"
        server = self._start("DynamoDB Local (it needs a JDK 17 or newer, not a runtime only)", command, log)
        return f"http://127.0.0.1:{server.wait_until(lambda: _port_in(log))}"

    def start_states(self, logs: Path, region: str, endpoints: Mapping[str, str]) -> str:
        """
        Start Step Functions Local; its address.

        Args:
            endpoints: Where its tasks find `lambda` and `dynamodb`.

        Raises:
            LocalStackError: no java or docker, no such jar, its port is taken, or it does not start.
        """
        if _answers(STATES_PORT):
            raise LocalStackError(
                f"Port {STATES_PORT} is taken, and Step Functions Local knows no other. Stop what is there, "
                f"or use it: STEPONCE_STATES_ENDPOINT=http://127.0.0.1:{STATES_PORT}"
            )
        if self._states_jar:
            command = states_command(_file(STATES_JAR, self._states_jar), region, endpoints)
        else:
            command = states_container_command(self._states_image or "", region, endpoints)
        supervisor = [sys.executable, "-P", "-m", "steponce.local.servers.supervisor"]
        server = self._start("Step Functions Local", [*supervisor, *command], logs / "states-local.log")
        patience = _START_SECONDS if self._states_jar else _PULL_SECONDS
        server.wait_until(lambda: _answers(STATES_PORT) or None, patience)
        return f"http://127.0.0.1:{STATES_PORT}"

    def stop(self) -> None:
        """End them, the last one first: it calls the others."""
        while self._running:
            self._running.pop().stop()

    def _start(self, name: str, command: list[str], log: Path) -> _Server:
        server = _Server(name, command, log)
        self._running.append(server)
        return server


def dynamodb_command(jar: Path) -> list[str]:
    """How DynamoDB Local is started, on the loopback interface."""
    libraries = jar.with_name("DynamoDBLocal_lib")
    if not libraries.is_dir():
        raise LocalStackError(f"There is no {libraries}. DynamoDB Local needs the folder that it came with.")
    # One database for all regions and keys, so that every client finds a table.
    return [
        *(_program("java", DYNAMODB_JAR), _HEAP, "-XX:TieredStopAtLevel=1"),
        *(f"-Djava.library.path={libraries}", "-cp", f"{jar}{os.pathsep}{libraries / '*'}"),
        *(str(_LAUNCHER), "-inMemory", "-sharedDb", "-disableTelemetry"),
    ]


def states_command(jar: Path, region: str, endpoints: Mapping[str, str]) -> list[str]:
    """How Step Functions Local is started from its jar."""
    return [
        *(_program("java", STATES_JAR), _HEAP, "-jar", str(jar)),
        *("--aws-account", ACCOUNT, "--aws-region", region),
        *("--lambda-endpoint", endpoints["lambda"], "--dynamodb-endpoint", endpoints["dynamodb"]),
    ]


def states_container_command(image: str, region: str, endpoints: Mapping[str, str]) -> list[str]:
    """
    How Step Functions Local is started in a container.

    It is put on the host's own network: what it has to call listens on 127.0.0.1 only.
    """
    settings = {
        "AWS_ACCOUNT_ID": ACCOUNT,
        "AWS_DEFAULT_REGION": region,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "LAMBDA_ENDPOINT": endpoints["lambda"],
        "DYNAMODB_ENDPOINT": endpoints["dynamodb"],
    }
    given = [part for name, value in settings.items() for part in ("--env", f"{name}={value}")]
    return [_program("docker", STATES_IMAGE), "run", "--rm", "--network", "host", *given, image]


class _Server:
    """A server's process. It ends when its standard input does, so also when we are killed."""

    def __init__(self, name: str, command: list[str], log: Path) -> None:
        self._name, self._log = name, log
        with log.open("wb") as output:
            self._process = subprocess.Popen(  # noqa: S603 - java, docker and files of ours; no shell
                command,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                env=_environment(),
                cwd=log.parent,
                start_new_session=True,  # the terminal's Ctrl-C is for the stack's owner
            )

    def wait_until(self, question: Callable[[], _Answer | None], seconds: float = _START_SECONDS) -> _Answer:
        """Poll until the server answers. Its process must live until then."""
        end = time.monotonic() + seconds
        while (answer := question()) is None:
            if self._process.poll() is not None or time.monotonic() > end:
                raise LocalStackError(f"{self._name} did not start. {_last_words(self._log)}")
            time.sleep(0.05)
        return answer

    def stop(self) -> None:
        """Close its input; by force if that does not help."""
        if self._process.stdin:
            self._process.stdin.close()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _environment() -> dict[str, str]:
    """Nothing of the caller's account; keys, since the SDK in Step Functions Local insists on some."""
    keys = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
    return without_account(dict(os.environ)) | keys


def _port_in(log: Path) -> str | None:
    found = re.search(r"^port (\d+)$", log.read_text(errors="replace"), re.MULTILINE)
    return found[1] if found else None


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _program(name: str, variable: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise LocalStackError(
            f"There is no {name} on PATH, and {variable} needs it. Install it, or unset {variable}."
        )
    return found


def _file(variable: str, path: str) -> Path:
    if not Path(path).is_file():
        raise LocalStackError(f"{variable} names {path}, and there is no such file.")
    return Path(path).resolve()


def _last_words(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:]
    return "\n".join(["Its log ends:", *lines])
