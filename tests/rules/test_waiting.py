"""No test waits for time: only the one helper sleeps, between two looks at a condition."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = [
    path
    for part in ("fakes", "unit", "workflow", "e2e")
    for path in sorted((ROOT / "tests" / part).rglob("*.py"))
]
WORK = ("tests/unit/local/fixture/functions", "tests/unit/testing/project/functions")
"""Functions that are slow because a test asks them to be."""

_SLEEPERS = ("time", "asyncio")


def sleeps(text: str) -> list[int]:
    """The lines that sleep, under whatever name. Most modules have no word of it, and need no reading."""
    found = []
    for node in ast.walk(ast.parse(text if "sleep" in text else "")):
        if isinstance(node, ast.ImportFrom) and node.module in _SLEEPERS:
            found += [node.lineno for name in node.names if name.name == "sleep"]
        elif isinstance(node, ast.Attribute) and node.attr == "sleep":
            owner = node.value
            if isinstance(owner, ast.Name) and owner.id in _SLEEPERS:
                found.append(node.lineno)
    return found


@pytest.mark.parametrize(
    "planted",
    [
        "import time\ntime.sleep(0.1)",
        "from time import sleep",
        "wait = time.sleep",
        "async def test():\n    await asyncio.sleep(0.1)",
    ],
)
def test_a_planted_sleep_is_caught(planted: str):
    """Called, imported or passed on."""
    assert [] != sleeps(planted)


def test_only_the_helper_sleeps():
    """Wait with tests.patience.eventually, or hold the call that would be too quick."""
    told = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in TESTS
        if not any(path.is_relative_to(ROOT / folder) for folder in WORK)
        for line in sleeps(path.read_text())
    ]
    assert [] == told
