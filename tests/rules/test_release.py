"""What leaves this repository: who may publish it, and from what it is built."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from .documents import ROOT
from .test_dependencies import PROJECT


@pytest.fixture(scope="module")
def release() -> dict[str, Any]:
    """The workflow that publishes."""
    # YAML 1.1 reads the key `on` as a truth.
    return yaml.safe_load(
        (ROOT / ".github" / "workflows" / "release.yml").read_text().replace("on:", '"on":')
    )


def test_only_a_tag_publishes(release: dict[str, Any]):
    """No branch does, and no pull request."""
    assert {"push": {"tags": ["v*"]}} == release["on"]


def test_the_job_that_may_publish_runs_nothing_of_ours(release: dict[str, Any]):
    """Only it can say who it is, and it has actions alone; what it publishes was built and checked before."""
    build, publish = release["jobs"]["build"], release["jobs"]["publish"]

    assert {} == release["permissions"]
    assert {"contents": "read"} == build["permissions"]
    assert ({"id-token": "write"}, "build", "pypi") == (
        publish["permissions"],
        publish["needs"],
        publish["environment"],
    )
    assert [] == [step for step in publish["steps"] if "run" in step]
    assert ["make check", "make dist"] == [step["run"] for step in build["steps"] if "run" in step][:2]


def test_the_version_stands_in_one_place():
    """What is installed, its wheel and the tag of its release have it from there."""
    files = [*(ROOT / "src").rglob("*.py"), ROOT / "Makefile", *(ROOT / ".github").rglob("*.yml")]
    assert [] == [file for file in files if PROJECT["version"] in file.read_text()]
