"""Stacks whose engine speaks through a proxy that can make one chosen call go wrong; and the program."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from steponce.local import LocalStack, write_facts
from tests import engines
from tests.conftest import TEMPLATE
from tests.engines import Parts
from tests.sharing import ON_BOTH_SCENES
from tests.workflow.clock import Clock, ClockedStack
from tests.workflow.faults import Faults
from tests.workflow.program import Run, run_here, run_in_a_pipe
from tests.workflow.scene import Scene

WORK_TIMEOUT_SECONDS = 60

ON_MOTO = {"test_cli.py", "test_stories.py"}
"""Tests for which moto is enough. `ON_BOTH_SCENES`, the guarantee itself, runs on moto and DynamoDB Local."""

COUNTED = "test_counted_paths.py"
"""Only `make test-paths` has it."""


def _scene(parts: Parts, name: str, **parameters: str) -> Iterator[Scene]:
    faults = Faults()
    options = parts.options(name, {"dynamodb": faults.through, "lambda": faults.through})
    patient = {"WorkTimeoutSeconds": str(WORK_TIMEOUT_SECONDS), "DescribesPerSecond": "1000"}
    parameters = patient | parameters
    made = ClockedStack.from_template(TEMPLATE, name=name, parameters=parameters, deliveries=False, **options)
    assert isinstance(made, ClockedStack)
    made.clock = clock = Clock()
    with made as stack:
        yield Scene(stack, faults, clock)


def pytest_itemcollected(item: pytest.Item) -> None:
    """
    Mark tests that another target runs, unless pytest was given the name of their file.

    `make test` runs on moto. It leaves most files to `make test-dynamodb`, which runs them on DynamoDB Local,
    because that is stricter than moto about conditions and single writes. `make test-all` runs them on moto.
    """
    file = item.path.name
    on_moto = engines.running()["dynamodb"] == engines.EMBEDDED
    is_left = file == COUNTED or (file not in ON_BOTH_SCENES and (file in ON_MOTO) != on_moto)
    is_named = item.path in {Path(given.partition("::")[0]).resolve() for given in item.config.args}
    if is_left and not is_named:
        item.add_marker(pytest.mark.elsewhere)


@pytest.fixture(scope="session")
def _holding(parts: Parts) -> Iterator[Scene]:
    yield from _scene(parts, "steponce")


@pytest.fixture(scope="session")
def _taking_over(parts: Parts) -> Iterator[Scene]:
    yield from _scene(
        parts,
        "takeover",
        WhenOutcomeUnknown="take-over",
        WhenCompleted="refuse",
        FinalErrors="OutOfStock,CardDeclined",
        ResultBucket="on",
    )


@pytest.fixture
def scene(_holding: Scene) -> Iterator[Scene]:
    """The template's defaults, with a time-out for the work that no test waits for."""
    _holding.faults.clear()
    yield _holding
    _holding.faults.clear()


@pytest.fixture
def takeover_scene(_taking_over: Scene) -> Iterator[Scene]:
    """Takes over when the outcome is unknown, refuses duplicates, and keeps large results in a bucket."""
    _taking_over.faults.clear()
    yield _taking_over
    _taking_over.faults.clear()


@pytest.fixture(scope="session")
def stack(_holding: Scene) -> LocalStack:
    """The same stack as the scene's; a second one would say nothing more."""
    return _holding.stack


@pytest.fixture
def home(stack: LocalStack, tmp_path: Path) -> Path:
    """A folder with the facts of the shared stack."""
    write_facts(stack.facts(), tmp_path)
    return tmp_path


@pytest.fixture
def steponce(home: Path) -> Run:
    """Run a command as in a pipe, in this process: its exit code and its one object."""
    return functools.partial(run_here, home)


@pytest.fixture
def in_a_shell(home: Path) -> Run:
    """Run the installed program in a pipe, as a shell does."""
    return functools.partial(run_in_a_pipe, home)


@pytest.fixture
def order() -> str:
    """An id that no other test has."""
    return f"cli-{uuid.uuid4().hex[:12]}"
