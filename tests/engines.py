"""
Which engines this run of the tests is on, and what they are known to get wrong.

The environment chooses them, as for any stack: see steponce.local.servers. What an engine gets wrong is a row
in ENGINES.md; a test that cannot pass because of it says so: `@pytest.mark.defect(engine=…, row=…)`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from steponce.local.servers.aws import DYNAMODB_JAR, STATES_IMAGE, STATES_JAR, LocalServers
from steponce.local.stack import SERVICES
from tests.workflow.switchboard import Switchboard

EMBEDDED = "embedded"
DYNAMODB_LOCAL = "DynamoDB Local"
STATES_LOCAL = "Step Functions Local"
SAM = "SAM CLI"
MINISTACK = "ministack"

STATES_ENDPOINT = "STEPONCE_STATES_ENDPOINT"
STATES_CALLS = "STEPONCE_STATES_CALLS"
"""Where a Step Functions Local that runs already was told to find Lambda and DynamoDB: `127.0.0.1:9001`."""

_VARIABLES = {
    "states": (STATES_LOCAL, (STATES_ENDPOINT, STATES_JAR, STATES_IMAGE)),
    "dynamodb": (DYNAMODB_LOCAL, ("STEPONCE_DYNAMODB_ENDPOINT", DYNAMODB_JAR)),
    "lambda": (SAM, ("STEPONCE_LAMBDA_ENDPOINT",)),
}
_STARTED_BY_THEIR_TESTS = {SAM, MINISTACK}

Through = Mapping[str, Callable[[str], str]]


def running(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The engine behind each endpoint."""
    return {
        service: engine if any(environment.get(variable) for variable in variables) else EMBEDDED
        for service, (engine, variables) in _VARIABLES.items()
    }


def mark_defects(item: pytest.Item) -> None:
    """A test whose engine has a known defect must fail on it; when it passes, its row is out of date."""
    here = {*running().values(), *_STARTED_BY_THEIR_TESTS}
    for mark in item.iter_markers("defect"):
        if mark.kwargs["engine"] in here:
            reason = f"{mark.kwargs['engine']}: row {mark.kwargs['row']} of tests/ENGINES.md"
            item.add_marker(pytest.mark.xfail(strict=True, reason=reason))


def summary(counts: Mapping[str, int]) -> str:
    """One line: which engines, and what became of the tests."""
    named = running()
    if named["dynamodb"] == DYNAMODB_LOCAL:
        named["dynamodb"] += _version(os.environ.get(DYNAMODB_JAR))
    engines = " ".join(f"{service}={named[service]}" for service in SERVICES)
    outcomes = ", ".join(f"{number} {outcome}" for outcome, number in counts.items() if number)
    return f"engines: {engines}: {outcomes}"


class Parts:
    """What the stacks of a run have in common, and how each is made so that it takes part."""

    def __init__(self, states: str | None = None, board: Switchboard | None = None) -> None:
        self._states = states
        self._board = board

    def options(self, stack: str, through: Through | None = None) -> dict[str, Any]:
        """For `LocalStack.from_template`: the shared Step Functions Local, and the way of its calls."""
        through = dict(through or {})
        if self._board is None:
            return {"through": through}
        connected = {service: self._connect(stack, service, through) for service in ("lambda", "dynamodb")}
        return {"endpoints": {"states": self._states}, "through": connected}

    def _connect(self, stack: str, service: str, through: Through) -> Callable[[str], str]:
        board = self._board
        assert board is not None
        return lambda url: board.connect(stack, service, through.get(service, str)(url))


@contextmanager
def parts(logs: Path) -> Iterator[Parts]:
    """The one Step Functions Local of this run, if the environment asks for one: it knows only one port."""
    if running()["states"] == EMBEDDED:
        yield Parts()
        return
    if url := os.environ.get(STATES_ENDPOINT):
        host, _, port = os.environ.get(STATES_CALLS, "").rpartition(":")
        if not port.isdecimal():
            raise pytest.UsageError(
                f"{STATES_ENDPOINT} is given: say in {STATES_CALLS} at which host:port that server was told "
                "to find Lambda and DynamoDB. The tests listen there."
            )
        yield Parts(url, Switchboard(host, int(port)))
        return
    board = Switchboard()
    servers = LocalServers(os.environ, served={"dynamodb"})
    try:
        called = {"lambda": board.url, "dynamodb": board.url}
        yield Parts(servers.start_states(logs, "us-east-1", called), board)
    finally:
        servers.stop()


def _version(jar: str | None) -> str:
    java = shutil.which("java")
    if not (jar and java):
        return ""
    told = subprocess.run([java, "-jar", jar, "-version"], capture_output=True, text=True, timeout=60)
    return f" {told.stdout.strip()}"
