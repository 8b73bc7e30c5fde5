"""What the tests on real parts share, and a line at the end for each part."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from steponce.local import LocalStack
from tests import wheel
from tests.conftest import TEMPLATE
from tests.engines import Parts
from tests.real.containers import Engine, Image, image_for, running_engine
from tests.real.programs import runtime_python, tools_python, version
from tests.real.sam import PATIENCE_SECONDS, Build, Sam, build, flagging_errors
from tests.rules.documents import ROOT
from tests.wheel import Installation
from tests.workflow.faults import Faults

_PART = "part"
_OF_THE_WORKFLOW = ("Requests-PrepareRequestFunction", "ChargeCardFunction", "RecordAwaitingStepFunction")


@dataclass(frozen=True)
class Contained:
    """A stack, the template with which `sam local` runs its functions, and the calls of its workflow."""

    stack: LocalStack
    template: Path
    faults: Faults


@pytest.fixture(scope="session")
def container_engine() -> Iterator[Engine]:
    """Docker."""
    with running_engine() as engine:
        yield engine


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """The template, built for its own runtime where this machine has that Python."""
    return build(tmp_path_factory.mktemp("sam"), runtime_python())


@pytest.fixture(scope="session")
def image(container_engine: Engine) -> Image:
    """AWS's image of the runtime, or one that stands in for it."""
    return image_for(container_engine, runtime_python())


@pytest.fixture(scope="session")
def sam(built: Build, container_engine: Engine, image: Image) -> Sam:
    """`sam local` for the built template."""
    return Sam(built, container_engine, image)


@pytest.fixture(scope="session")
def contained(parts: Parts, sam: Sam) -> Iterator[Contained]:
    """A stack whose functions all run in containers, behind `sam local start-lambda`."""
    name, parameters = "contained", {"HttpAccess": "open", "WorkTimeoutSeconds": str(PATIENCE_SECONDS)}
    faults = Faults()
    wired: list[Path] = []
    with ExitStack() as servers:

        def start(endpoints: Mapping[str, str]) -> str:
            wired.append(sam.wire(name, endpoints, **parameters))
            return servers.enter_context(sam.serve("start-lambda", wired[0], "--warm-containers", "LAZY"))

        options = parts.options(name, {"lambda": lambda url: faults.through(flagging_errors(url))})
        options["endpoints"] = {**options.get("endpoints", {}), "lambda": start}
        with LocalStack.from_template(TEMPLATE, name=name, parameters=parameters, **options) as stack:
            for function in _OF_THE_WORKFLOW:  # the first call builds an image, which takes its time
                stack.boto3("lambda").invoke(FunctionName=f"{name}-{function}", Payload="{}")
            yield Contained(stack, wired[0], faults)


@pytest.fixture
def on_sam_cli(record_property: Callable[[str, object], None]) -> None:
    """The test needs SAM CLI alone."""
    record_property(_PART, f"SAM CLI {version('aws-sam-cli')}")


@pytest.fixture
def in_containers(record_property: Callable[[str, object], None], image: Image) -> None:
    """The test runs functions in containers."""
    python = runtime_python()
    record_property(_PART, f"SAM CLI {version('aws-sam-cli')} in containers, {python.runtime}, {image.words}")


@pytest.fixture
def on_ministack(record_property: Callable[[str, object], None]) -> None:
    """The test speaks to the whole application."""
    python = tools_python()
    record_property(_PART, f"ministack {version('ministack')}, its own {python.runtime}")


@pytest.fixture(scope="session")
def distribution(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that is built from the sdist, as `make dist` does."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(["make", "--silent", "dist", f"DIST={folder}"], cwd=ROOT, check=True)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(distribution: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """`pip install 'steponce[local]'` into an environment of the test module."""
    return wheel.whole(distribution, tmp_path_factory.mktemp("installed") / "environment")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which part ran how many tests."""
    passed: Counter[str] = Counter()
    for report in terminalreporter.getreports("passed"):
        passed.update(str(value) for name, value in report.user_properties if name == _PART)
    for part, number in sorted(passed.items()):
        terminalreporter.write_line(f"engines: {part}: {number} passed")
