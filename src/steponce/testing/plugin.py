"""
Options, fixtures and hooks of the pytest plugin; see docs/testing.md.

pytest loads this module in every run, so it imports the rest only when a fixture is used.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from steponce.testing import settings

if TYPE_CHECKING:
    from steponce import Client
    from steponce.local import LocalStack
    from steponce.testing.clock import Clock
    from steponce.testing.faults import PlannedFaults


class _Run:
    """State that the tests of one process share."""

    def __init__(self) -> None:
        self.stack: LocalStack | None = None
        self.ahead_seconds = 0.0


_RUN = pytest.StashKey[_Run]()
_STARTED = pytest.StashKey[datetime]()
_HAS_FAILED = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The template, and its parameters."""
    group = parser.getgroup("steponce", "state machines on this machine (steponce)")
    group.addoption(
        settings.TEMPLATE_OPTION, metavar="FILE", help="the SAM template of the stack that fixtures start"
    )
    group.addoption(
        settings.PARAMETER_OPTION,
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a parameter of the template; may be given many times",
    )
    parser.addini(settings.TEMPLATE, "the SAM template of the stack that fixtures start", default="")
    parser.addini(settings.PARAMETERS, "its parameters, NAME=VALUE, one a line", type="linelist")


def pytest_configure(config: pytest.Config) -> None:
    """Nothing is started before a fixture asks."""
    config.stash[_RUN] = _Run()


@pytest.fixture(scope="session")
def steponce_stack(request: pytest.FixtureRequest) -> Iterator[LocalStack]:
    """The stack: one for each process of the run, started for the first test that uses it."""
    run = request.config.stash[_RUN]
    with _started(request.config) as stack, pytest.MonkeyPatch.context() as patch:
        run.stack = stack
        # `steponce` in the process of the tests has to use the stack's time.
        patch.setattr("steponce.aws.times.now", lambda: _now(run))
        yield stack
        run.stack = None


@pytest.fixture(scope="session")
def steponce_client(steponce_stack: LocalStack) -> Client:
    """A client of the stack's own run-once workflow, or of its only one."""
    with _in_plain_words():
        return steponce_stack.client()


@pytest.fixture
def steponce_clean(steponce_stack: LocalStack) -> Iterator[None]:
    """The stack is clean at the start and the end of the test."""
    from steponce.local.cleaning import clean

    clean(steponce_stack)  # also after a cleaning: a fixture or a schedule may have written since
    yield
    clean(steponce_stack)


@pytest.fixture
def steponce_faults(request: pytest.FixtureRequest, steponce_stack: LocalStack) -> Iterator[PlannedFaults]:
    """The faults of this test. A fault that never happens fails the test."""
    from steponce.testing.faults import PlannedFaults

    with _in_plain_words():
        faults = PlannedFaults(steponce_stack)
    yield faults
    missed = faults.drop()
    if missed and not request.node.stash[_HAS_FAILED]:
        pytest.fail(f"A planned fault did not happen: {'; '.join(missed)}.", pytrace=False)


@pytest.fixture
def fail_state(steponce_faults: PlannedFaults) -> Callable[..., None]:
    """`fail_state(state, error, cause=…, times=1, machine=…)`: the state fails before it has an effect."""
    return steponce_faults.fail_state


@pytest.fixture
def lose_answer(steponce_faults: PlannedFaults) -> Callable[..., None]:
    """`lose_answer(state, times=1, machine=…)`: the call takes effect, but its answer is lost."""
    return steponce_faults.lose_answer


@pytest.fixture
def stop_in(steponce_faults: PlannedFaults) -> Callable[..., None]:
    """`stop_in(state, after_effect=False, machine=…)`: the execution is stopped when it is in the state."""
    return steponce_faults.stop_in


@pytest.fixture
def clock(request: pytest.FixtureRequest, steponce_stack: LocalStack) -> Clock:
    """`clock.advance(hours=1)`: an hour passes in the stack."""
    from steponce.testing.clock import Clock

    run = request.config.stash[_RUN]

    def moved(ahead_seconds: float) -> None:
        run.ahead_seconds = ahead_seconds

    with _in_plain_words():
        return Clock(steponce_stack, moved)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Note the test's start in the stack's time."""
    item.stash[_HAS_FAILED] = False  # a plugin may run it again
    item.stash[_STARTED] = _now(item.config.stash[_RUN])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the stories of its executions to the report of a failed test."""
    report = yield
    if report.failed and report.when in ("setup", "call"):
        item.stash[_HAS_FAILED] = True
        stack = item.config.stash[_RUN].stack
        if stack is not None:
            from steponce.testing.stories import stories

            since = item.stash.get(_STARTED, datetime.now(UTC))
            report.sections += [(f"steponce: {title}", text) for title, text in stories(stack, since)]
            if stack.plan.left_out:
                report.sections.append(("steponce: left out of the stack", "\n".join(stack.plan.left_out)))
    return report


@contextmanager
def _started(config: pytest.Config) -> Iterator[LocalStack]:
    with _in_plain_words():
        template = settings.template(config)
        if template is None:
            pytest.fail(settings.MISSING, pytrace=False)
        parameters = settings.parameters(config)
        from steponce.local import LocalStack

        stack = LocalStack.from_template(template, parameters=parameters, controls=True).start()
    try:
        yield stack
    finally:
        stack.stop()


@contextmanager
def _in_plain_words() -> Iterator[None]:
    """Report a wrong setting without a traceback."""
    from steponce.errors import SteponceError

    try:
        yield
    except (SteponceError, settings.InvalidSetting) as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("steponce"):
            raise
        raise pytest.fail.Exception(
            f"The stack needs more packages ({error.name}). Install them: pip install 'steponce[local]'",
            pytrace=False,
        ) from None


def _now(run: _Run) -> datetime:
    return datetime.fromtimestamp(time.time(), UTC) + timedelta(seconds=run.ahead_seconds)
