"""
Which test files run in one worker because they share a stack.

A stack costs five seconds of processor time, as much as fifty tests on it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path, PurePosixPath

from xdist.scheduler import LoadFileScheduling

ROOT = Path(__file__).parents[1]

OF_THEIR_OWN = {
    "test_counted_paths.py",
    "test_customer_record.py",
    "test_http_api.py",
    "test_large_rate_limit.py",
    "test_rate_limit.py",
    "test_triggers.py",
    "test_two_workflows.py",
}
"""Workflow tests that start other stacks than their neighbours."""

ON_BOTH_SCENES = {
    "test_callbacks.py",
    "test_dead_owners.py",
    "test_guards.py",
    "test_large_results.py",
    "test_one_story.py",
    "test_repair.py",
    "test_run_once.py",
}
"""Workflow tests that use both scenes of their conftest."""


@cache
def group(file: str) -> str:
    """The name of the files that this one shares a worker with; itself, if it shares nothing."""
    path = PurePosixPath(file)
    folder = path.parent.name
    if folder == "workflow" and path.name not in OF_THEIR_OWN:
        return "both scenes" if path.name in ON_BOTH_SCENES else "one scene"
    return "the small stack" if "small_stack" in (ROOT / file).read_text(encoding="utf-8") else file


class SharedStacks(LoadFileScheduling):
    """One worker for each group of files, in the order in which pytest finds them: the long ones first."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)
        self.config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return group(super()._split_scope(nodeid))
