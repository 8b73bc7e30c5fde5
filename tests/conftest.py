"""The stacks that tests share. Each is started once, when the first test asks for it."""

from __future__ import annotations

import gc
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from steponce.local import LocalStack
from tests import engines
from tests.sharing import SharedStacks

# A busy machine is no failure.
settings.register_profile("covering", deadline=None, max_examples=20)
settings.register_profile("full", deadline=None, max_examples=300)

TEMPLATE = Path(__file__).parents[1] / "template.yaml"


@pytest.fixture(scope="session")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[engines.Parts]:
    """What all stacks of this run share."""
    with engines.parts(tmp_path_factory.mktemp("parts")) as shared:
        yield shared


@pytest.fixture(scope="session")
def stack(parts: engines.Parts) -> Iterator[LocalStack]:
    """The template as it is, on the embedded parts unless the environment names others."""
    # Not the name of the workflow tests' own stack: one table store or states engine may serve both.
    with LocalStack.from_template(
        TEMPLATE, name="plain", deliveries=False, **parts.options("plain")
    ) as running:
        yield running


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Let files that share a stack run in one worker, for each worker would start a stack of its own."""
    return SharedStacks(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_configure(config: pytest.Config) -> None:
    """How many examples there are, what an interrupt does, and the mark for what an engine gets wrong."""
    # A shell lets what it starts in the background ignore interrupts. Tests send them to their own programs.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    settings.load_profile("covering" if config.option.markexpr else "full")
    if config.option.markexpr:
        # Else each worker reads the whole package for constants to try; on a fresh clone this takes it 5 s.
        providers._get_local_constants = lambda: providers._local_constants
    config.addinivalue_line("markers", "defect(engine, row): fails on this engine: row of tests/ENGINES.md")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage meanwhile, for what is made stays: it took a tenth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Spare the garbage collector the modules and tests, which stay: it took a twentieth of the time."""
    gc.collect()
    gc.freeze()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Expect the failures that this run's engines are known for."""
    engines.mark_defects(item)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say on which engines the tests ran; those in tests/real choose their own, and say so there."""
    counts = {
        kind: sum(
            not report.nodeid.startswith("tests/real/") for report in terminalreporter.stats.get(kind, [])
        )
        for kind in ("passed", "failed", "error", "skipped", "xfailed", "xpassed")
    }
    if any(counts.values()):
        terminalreporter.write_line(engines.summary(counts))
