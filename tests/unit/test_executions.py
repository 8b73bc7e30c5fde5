"""Whose record it is, when names of executions come back."""

from __future__ import annotations

import gc
import io
import json
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast
from weakref import WeakSet

import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.session import Session

from steponce.executions import Execution, find_lock_token, states_entered
from steponce.failure import Failure
from steponce.recovery.history import History
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


class Page(dict[str, Any]):
    """A page of a history. Unlike a plain dict it can be watched."""

    __hash__ = object.__hash__


@pytest.mark.parametrize("read", [History.read, states_entered])
def test_of_a_long_history_only_a_few_pages_are_in_memory(read: Any):
    """Each event may hold an input of 256 KB, and a function has 256 MB."""
    alive: WeakSet[Page] = WeakSet()
    most = 0
    gc.freeze()  # what other tests have left takes a second each time

    def pages(**_whose: object) -> Iterator[Page]:
        nonlocal most
        for number in range(20):
            entered = Page(name=f"Poll{number}", input="{}")
            alive.add(entered)
            gc.collect()
            most = max(most, len(alive))
            yield Page(events=[Page(type="TaskStateEntered", stateEnteredEventDetails=entered)])
            del entered

    sfn = cast("Any", SimpleNamespace(get_paginator=lambda _operation: SimpleNamespace(paginate=pages)))
    found = read(sfn, "arn:long")
    assert "Poll19" in (found if isinstance(found, frozenset) else found.last_state)
    assert most <= 3


class Body(io.BytesIO):
    """The body of an answer, as urllib3 gives it."""

    def stream(self) -> Iterator[bytes]:
        yield self.read()


def states_of_largest_input(request: AWSPreparedRequest, **_event: Any) -> AWSResponse:
    """What AWS answers for 120 states, each with an input of 256 KB that has a character beyond 16 bits."""
    asked = json.loads(request.body)
    first, most = int(asked.get("nextToken", 0)), asked.get("maxResults") or 100
    details = {"name": "Poll", "input": f'{{"text":"\N{GRINNING FACE}{"x" * 262_000}"}}'}
    last = min(120, first + most)
    events = [
        {"id": number, "timestamp": 1.0, "type": "TaskStateEntered", "stateEnteredEventDetails": details}
        for number in range(first + 1, last + 1)
    ]
    answer = {"events": events} | ({"nextToken": str(last)} if last < 120 else {})
    return AWSResponse(request.url, 200, {}, Body(json.dumps(answer, ensure_ascii=False).encode()))


def test_the_largest_history_fits_into_a_function():
    """Python takes four bytes for each character of a text with an emoji, and a function has 256 MB."""
    session = Session()
    session.set_credentials("test", "test")
    session.register("before-send.sfn.GetExecutionHistory", states_of_largest_input)
    sfn = session.create_client("stepfunctions", region_name="eu-west-1")
    tracemalloc.start()
    try:
        history = History.read(sfn, "arn:aws:states:eu-west-1:123456789012:execution:m:long")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert history is not None
    assert "Poll" == history.last_state
    assert peak < 140_000_000
