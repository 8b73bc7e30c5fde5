"""Stacks whose engine speaks through a proxy that can make one chosen call go wrong."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from steponce.local import LocalStack
from tests.conftest import TEMPLATE
from tests.workflow.faults import Faults
from tests.workflow.scene import Scene

WORK_TIMEOUT_SECONDS = 3


def _scene(**parameters: str) -> Iterator[Scene]:
    faults = Faults()
    through = {"dynamodb": faults.through, "lambda": faults.through}
    parameters = {"WorkTimeoutSeconds": str(WORK_TIMEOUT_SECONDS)} | parameters
    with LocalStack.from_template(TEMPLATE, parameters=parameters, through=through) as stack:
        yield Scene(stack, faults)


@pytest.fixture(scope="session")
def _holding() -> Iterator[Scene]:
    yield from _scene()


@pytest.fixture(scope="session")
def _taking_over() -> Iterator[Scene]:
    yield from _scene(
        WhenOutcomeUnknown="take-over", WhenCompleted="refuse", FinalErrors="OutOfStock,CardDeclined"
    )


@pytest.fixture
def scene(_holding: Scene) -> Iterator[Scene]:
    """The template's defaults, with a short time-out for the work."""
    yield _holding
    _holding.faults.clear()


@pytest.fixture
def bold_scene(_taking_over: Scene) -> Iterator[Scene]:
    """Takes over when the outcome is unknown, and refuses duplicates of what is completed."""
    yield _taking_over
    _taking_over.faults.clear()
