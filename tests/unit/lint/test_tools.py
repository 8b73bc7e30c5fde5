"""What docs/lint.md says that each tool finds is what it finds; tests/real asks asl-validator."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .planted import FAULTS
from .tools import alarms, by_cfn_lint, by_statelint, by_steponce, definitions, faults_found, stored


def expect_as_stored(name: str, tool: Callable[..., dict[str, list[str]]]) -> None:
    """Run a tool, and compare with what it found when the page was written."""
    said = tool(definitions())
    outcome = stored()
    assert [name in row["found"] for row in outcome["faults"]] == list(faults_found(said))
    assert outcome["alarms"][name] == alarms(said)


def test_the_table_is_of_these_faults():
    """In their order."""
    told = [(row["rule"], row["machine"], row["what"]) for row in stored()["faults"]]
    assert [(fault.rule, fault.machine, fault.what) for fault in FAULTS] == told


def test_statelint_finds_what_the_page_says():
    """And is wrong about what the page says."""
    expect_as_stored("statelint", by_statelint)


def test_our_own_finds_everything():
    """And is never wrong."""
    expect_as_stored("steponce lint", by_steponce)
    assert len(FAULTS) == sum("steponce lint" in row["found"] for row in stored()["faults"])
    assert [] == stored()["alarms"]["steponce lint"]


@pytest.mark.full
def test_cfn_lint_finds_what_the_page_says():
    """It takes seconds to start."""
    expect_as_stored("cfn-lint", by_cfn_lint)
