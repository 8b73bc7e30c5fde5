"""A write that takes effect only while its attempt holds the lock, beside the workflow's own records."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from steponce import Client, LockLost, updates
from tests.patience import PATIENCE_SECONDS, eventually
from tests.workflow.example_states import client_of, make_machine
from tests.workflow.faults import first, lose_the_answer, refuse
from tests.workflow.scene import VISA, Scene

RECORDS = "guarded-records"


@pytest.fixture(scope="module")
def _machine(_holding: Scene) -> Iterator[str]:
    """The workflow with the example's state for its work, and a table for that to write to."""
    dynamodb = _holding.stack.boto3("dynamodb")
    dynamodb.create_table(
        TableName=RECORDS,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "recordId", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "recordId", "AttributeType": "S"}],
    )
    locks = _holding.stack.outputs["LocksTable"]
    yield make_machine(_holding, "update_if_mine", LocksTable=locks, RecordsTable=RECORDS)
    dynamodb.delete_table(TableName=RECORDS)


@pytest.fixture
def guarded(scene: Scene, _machine: str) -> Client:
    """A client of that workflow."""
    return client_of(scene, _machine)


def content_of(scene: Scene, record_id: str) -> Any:
    """What a record says."""
    found = updates.read(RECORDS, {"recordId": record_id}, dynamodb=scene.stack.boto3("dynamodb"))
    return json.loads(found["content"]) if found else None


@pytest.mark.parametrize("fault", [None, lose_the_answer, refuse])
def test_work_that_is_one_write_needs_no_function(scene: Scene, guarded: Client, fault: Any):
    """A lost answer is no conflict."""
    request = scene.new_id()
    if fault:
        scene.faults.plan("Other", fault, key=request)
    guarded.start(request, {"plan": "gold"})
    assert {"written": True} == guarded.wait(request, timeout_seconds=PATIENCE_SECONDS).result
    assert {"plan": "gold"} == content_of(scene, scene.key(request))


def test_an_execution_that_lost_its_lock_writes_nothing(scene: Scene, guarded: Client):
    """The next attempt takes the lock while the write is on its way, and keeps it."""
    request = scene.new_id()
    key = scene.key(request)
    scene.faults.plan("Other", first(lambda: scene.change_lock(key, callId="next", attempt=2)), key=request)

    receipt = guarded.start(request, {"plan": "gold"})

    states = scene.stack.boto3("stepfunctions")
    end = eventually(
        lambda: (
            (one := states.describe_execution(executionArn=receipt.execution_arn))["status"] != "RUNNING"
            and one
        )
    )
    assert "FAILED" == end["status"]
    assert None is content_of(scene, key)
    lock = scene.lock(key)
    assert ("INPROGRESS", "next", 2) == (lock.status, lock.call_id, lock.attempt)
    scene.delete_lock(key)


@pytest.mark.usefixtures("_machine")
def test_the_work_of_a_workflow_writes_while_it_runs(scene: Scene):
    """And not once its request is completed."""
    request = scene.new_id()
    key = scene.key(request)

    def write(content: str) -> None:
        updates.update_if_mine(
            work,
            RECORDS,
            {"recordId": key},
            {"content": json.dumps(content)},
            locks_table=scene.stack.outputs["LocksTable"],
            dynamodb=scene.stack.boto3("dynamodb"),
        )

    with scene.working(key) as hold:
        scene.client.start(request, VISA)
        hold.wait()
        lock = scene.lock(key)
        work = {"lockToken": lock.lock_token, "callId": lock.call_id, "attempt": lock.attempt}
        write("first")
    assert "COMPLETED" == scene.client.wait(request, timeout_seconds=PATIENCE_SECONDS).status
    with pytest.raises(LockLost, match="COMPLETED"):
        write("second")
    assert "first" == content_of(scene, key)
