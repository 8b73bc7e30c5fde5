"""What is installed for whom: the main job, the tests, and the functions on Lambda."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests import layer

from .documents import FUNCTIONS, ROOT, template
from .source import imports

ALL = ROOT / "requirements.lock"
RUN = ROOT / "requirements-run.lock"
LAYER = ROOT / "src" / "requirements.txt"
MAKEFILE = (ROOT / "Makefile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LAPTOP = layer.listed("LAPTOP")
OF_LAMBDA = layer.listed("OF_LAMBDA", MAKEFILE)
ABSENT_HERE = {"pywin32"}
"""Of another platform; locked for whoever has that."""


def entries(lock: Path) -> dict[str, set[str]]:
    """Of each requirement, with its version and marker, the hashes."""
    found: dict[str, set[str]] = {}
    for line in lock.read_text().splitlines():
        if layer.PINNED.match(line):
            found[line.removesuffix("\\").strip()] = hashes = set()
        elif line.strip().startswith("--hash="):
            hashes.add(line.strip().removesuffix("\\").strip())
    return found


def needs(wanted: Iterable[str]) -> set[str]:
    """The distributions that these requirements bring, by what is installed here."""
    found: set[tuple[str, str]] = set()
    waiting = [Requirement(one) for one in wanted]
    while waiting:
        one = waiting.pop()
        for extra in one.extras or {""}:
            key = (canonicalize_name(one.name), extra)
            if key not in found and (one.marker is None or one.marker.evaluate()):
                found.add(key)
                waiting += [more for text in requires(one.name) or [] for more in for_extra(text, extra)]
        if one.extras and (one.marker is None or one.marker.evaluate()):
            waiting.append(Requirement(one.name))
    return {name for name, _ in found}


def for_extra(text: str, extra: str) -> list[Requirement]:
    """A requirement, if it is for this extra and this machine."""
    requirement = Requirement(text)
    if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
        return []
    requirement.marker = None
    return [requirement]


def test_the_main_job_runs_on_what_the_tests_run_on():
    """Each of its packages is among the tests', of one version and with the same hashes."""
    everything = entries(ALL)
    for name, hashes in entries(RUN).items():
        assert everything.get(unmarked(name, everything)) == hashes, name


def unmarked(entry: str, everything: Iterable[str]) -> str | None:
    """The same version in another lock file, where a marker may say more or less."""
    return next((other for other in everything if other.split(" ")[0] == entry.split(" ")[0]), None)


def test_the_main_job_installs_what_it_needs_and_no_more():
    """`make run` waits for nothing that only tests want."""
    extras = PROJECT["optional-dependencies"]
    wanted = [*PROJECT["dependencies"], *extras["cli"], *extras["local"], *extras["in-place"]]
    wanted = [one for one in wanted if not one.startswith("steponce")]
    assert needs(wanted) == set(layer.pinned(RUN)) - ABSENT_HERE


def test_the_lock_files_are_of_this_project():
    """Every requirement of pyproject.toml is locked, at a version that it allows."""
    versions = layer.pinned(ALL)
    extras = PROJECT["optional-dependencies"]
    for text in [*PROJECT["dependencies"], *(one for extra in extras.values() for one in extra)]:
        one = Requirement(text)
        if one.name != "steponce":
            assert one.specifier.contains(versions[canonicalize_name(one.name)]), text


def test_the_functions_run_on_what_the_tests_run_on():
    """Each package of the layer is among the tests', of one version and with the same hashes."""
    everything = entries(ALL)
    for name, hashes in entries(LAYER).items():
        assert everything.get(unmarked(name, everything)) == hashes, name


def test_the_layer_brings_what_its_modules_import_and_no_more():
    """Beside what Lambda has, each package is imported by a module, or needed by one that is."""
    modules = [path for path in (ROOT / "src" / "steponce").rglob("*.py") if not is_of_a_laptop(path)]
    modules += [path for folder in FUNCTIONS for path in folder.glob("*.py")]
    own = {path.stem for folder in FUNCTIONS for path in folder.glob("*.py")}
    found = {name.partition(".")[0] for path in modules for name in imported_at_run_time(path)}
    foreign = found - set(sys.stdlib_module_names) - own - {"steponce"}
    homes = packages_distributions()
    distributions = {canonicalize_name(homes[name][0]) for name in foreign}

    wanted = [one for one in PROJECT["dependencies"] if Requirement(one).name in distributions]
    assert distributions <= {Requirement(one).name for one in PROJECT["dependencies"]} | OF_LAMBDA
    assert needs(wanted) - OF_LAMBDA == set(layer.pinned(LAYER))


def is_of_a_laptop(path: Path) -> bool:
    """Whether a module is in one of the parts that the layer leaves out."""
    return path.relative_to(ROOT / "src" / "steponce").parts[0] in LAPTOP


def imported_at_run_time(path: Path) -> list[str]:
    """What a module imports, without what it imports for a type checker alone."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    return list(imports(ast.unparse(tree)))


def test_the_layer_leaves_out_no_part_that_functions_may_import():
    """Only the command line, the local stack and the files of new applications stay away."""
    assert {"cli", "cost", "lint", "local", "scaffold", "testing", "wrap"} == LAPTOP
    assert {True} == {(ROOT / "src" / "steponce" / part).is_dir() for part in LAPTOP}


@pytest.fixture(scope="module")
def on_lambda(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Where a function finds modules: in its layer, and in Lambda's own runtime."""
    folder = tmp_path_factory.mktemp("lambda")
    return [layer.stand_in(folder / "layer"), layer.of_lambda(folder / "runtime")]


@pytest.mark.full
def test_every_function_is_imported_from_the_layer_alone(on_lambda: list[Path]):
    """With Lambda's own packages beside it, and nothing of this environment."""
    loaded = layer.import_functions(sys.executable, FUNCTIONS, *on_lambda)

    assert {"boto3", "aws_lambda_powertools", "aws_xray_sdk", "jsonschema"} <= loaded
    assert loaded.isdisjoint({"moto", "click", "rich", "werkzeug", "yaml"})


def test_a_function_imports_only_what_it_needs(on_lambda: list[Path]):
    """Its cold start does not wait for boto3, the client and guards if it calls nothing."""
    loaded = layer.import_functions(sys.executable, [ROOT / "functions" / "prepare_request"], *on_lambda)

    assert "steponce.request.envelope" in loaded
    assert loaded.isdisjoint({"boto3", "steponce.client", "steponce.guards.guard", "steponce.powertools"})


def test_no_function_but_the_sample_work_traces_botocore():
    """The patch loads it, and keeps the texts of errors, which may quote a payload or a token."""
    patching = [
        one.name for one in FUNCTIONS if "Tracer(auto_patch=False)" not in (one / "app.py").read_text()
    ]
    assert ["charge_card"] == patching


@pytest.mark.full
def test_only_functions_behind_an_address_load_routes(on_lambda: list[Path]):
    """The cold start of the others does not wait for Powertools' event handler."""
    serving = {"http_api", "resolve_awaiting_step"}
    others = [folder for folder in FUNCTIONS if folder.name not in serving]
    loaded = layer.import_functions(sys.executable, others, *on_lambda)

    assert len(others) == len(FUNCTIONS) - len(serving)
    assert loaded.isdisjoint({"aws_lambda_powertools.event_handler", "steponce.callbacks.page"})
    assert not any(module.startswith("steponce.http_api") for module in loaded)


@pytest.mark.parametrize("module", ["steponce.local", "moto"])
def test_a_function_that_imports_what_only_a_laptop_has_is_found(
    on_lambda: list[Path], tmp_path: Path, module: str
):
    """The rule above can fail."""
    (tmp_path / "app.py").write_text(f"import {module} as handler\n")

    with pytest.raises(AssertionError, match=f"No module named '{module}'"):
        layer.import_functions(sys.executable, [tmp_path], *on_lambda)


def test_the_layer_is_built_for_the_functions_runtime():
    """The version in src/Makefile, in the lock file's recipe and in the template is one."""
    runtime = template()["Globals"]["Function"]["Runtime"]
    assert {runtime} == layer.listed("RUNTIME")
    assert [runtime] == template()["Resources"]["SteponceLayer"]["Properties"]["CompatibleRuntimes"]
    assert re.search(rf"--python-version {runtime.removeprefix('python')} .*src/requirements\.txt", MAKEFILE)


def test_the_layer_serves_either_processor():
    """Both are built, so that it does not matter which one `sam build` was told of."""
    processors = {"arm64": "aarch64", "x86_64": "x86_64"}
    resource = template()["Resources"]["SteponceLayer"]
    allowed = template()["Parameters"]["Architecture"]["AllowedValues"]
    assert "makefile" == resource["Metadata"]["BuildMethod"]
    assert set(allowed) == set(resource["Properties"]["CompatibleArchitectures"])
    assert {processors[one] for one in allowed} == layer.listed("PROCESSORS")


def test_the_package_brings_the_files_that_its_modules_read():
    """Into the wheel and into the layer: schema, page and OpenAPI document."""
    package = ROOT / "src" / "steponce"
    files = {path for path in package.rglob("*") if path.suffix in (".json", ".html", ".css", ".typed")}
    wheel = {Path(file.path) for file in WheelBuilder(str(ROOT)).recurse_included_files()}

    assert {"hand_started.schema.json", "page.html", "openapi.json"} <= {path.name for path in files}
    assert files <= wheel
    assert "cp -R steponce $(LAYER)" in layer.RECIPE
