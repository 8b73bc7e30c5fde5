"""Whose record it is, when names of executions come back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from steponce.executions import Execution
from steponce.locks.record import Failure


@dataclass
class Record:
    """What an execution made."""

    call_id: str = "mine"


@pytest.mark.parametrize(
    ("given", "owns"), [({"callId": "mine"}, True), ({"callId": "another's"}, False), ({"payload": {}}, None)]
)
def test_a_record_belongs_to_the_call_that_its_execution_was_started_with(
    given: dict[str, Any], owns: object
):
    """Of one that was started by hand only the history tells."""
    execution = Execution("RUNNING", 0, None, given, Failure(None, None))

    assert execution.owns(Record()) is owns
