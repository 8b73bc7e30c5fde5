"""Whose record it is, when names of executions come back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from steponce.executions import Execution, find_lock_token
from steponce.locks.record import Failure
from tests.fakes.step_functions import StepFunctions
from tests.unit.one_owner import BY_HAND, ENVELOPE, history


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


@pytest.mark.parametrize(
    ("states", "found"),
    [
        (
            [("PrepareRequest", BY_HAND), ("AcquireLock", ENVELOPE), ("DoWork", ENVELOPE)],
            ENVELOPE["lockToken"],
        ),
        ([("PrepareRequest", BY_HAND)], None),
        ([("AcquireLock", BY_HAND)], None),
    ],
)
def test_the_history_tells_which_lock_an_execution_asked_for(states: list[Any], found: str | None):
    """Of a machine whose rules nobody here knows, and that was started with just a payload."""
    sfn = StepFunctions()
    sfn.put("by-hand", *history(*states))

    assert found == find_lock_token(sfn, sfn.arn("by-hand"))
    assert find_lock_token(sfn, sfn.arn("forgotten")) is None
