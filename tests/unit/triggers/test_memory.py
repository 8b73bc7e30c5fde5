"""
Each function has the memory for the largest input that is admitted.

A batch that needs more would come back again and again, with all its messages. A kept result that needs more
could not be read over HTTP.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.rules import documents

FUNCTIONS = {
    "start_from_queue": "StartFromQueueFunction",
    "start_from_event": "StartFromEventFunction",
    "resolve_awaiting_step": "ResolveAwaitingStepFunction",
    "http_api": "HttpApiFunction",
}
MEBIBYTE = 2**20


@pytest.mark.full
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_largest_batch_or_result_fits_into_the_function_s_memory(name: str):
    """In a process of its own, since other tests need memory, too."""
    template = documents.whole_template()
    default = template["Globals"]["Function"]["MemorySize"]
    memory = template["Resources"][FUNCTIONS[name]]["Properties"].get("MemorySize", default)
    program = [sys.executable, "-m", "tests.unit.triggers.largest_batch", name]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[-1]) < memory * MEBIBYTE
