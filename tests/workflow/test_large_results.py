"""Results too large for a record, on a stack with a bucket for them and on one without."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from steponce.errors import ResultForbidden, ResultGone, Unsettled
from steponce.local import write_facts
from steponce.locks.reference import REFERENCE
from tests.workflow.program import run_here
from tests.workflow.scene import VISA, Scene

STATEMENT = VISA | {"card": "tok_statement", "statementBytes": 300_000}


def completed(scene: Scene, **more: Any) -> tuple[str, Mapping[str, Any]]:
    """A request with a large result: its id, and what its record has in the place of that."""
    order = scene.new_id("large")
    scene.run(order, STATEMENT | more)
    return order, reference_of(scene, order)


def reference_of(scene: Scene, order: str) -> Mapping[str, Any]:
    lock = scene.lock(scene.key(order))
    assert lock is not None
    told = json.loads(lock.result or "{}")
    assert REFERENCE in told
    return told


def forget(scene: Scene, told: Mapping[str, Any]) -> None:
    """Somebody deletes the version that a record names."""
    where = told[REFERENCE]
    scene.stack.boto3("s3").delete_object(
        Bucket=where["bucket"], Key=where["key"], VersionId=where["version"]
    )


def test_everybody_gets_a_large_result_from_the_bucket(takeover_scene: Scene):
    """Whoever waits, asks later, or starts the request again; the execution carries the reference alone."""
    order, told = completed(takeover_scene)

    again = takeover_scene.client.start(order, STATEMENT)

    assert (True, 300_000) == (again.duplicate, len(again.result["statement"]))
    assert again.result == takeover_scene.client.result(order) == takeover_scene.client.wait(order).result
    assert told == json.loads(takeover_scene.execution(order)["output"])
    assert takeover_scene.stack.outputs["ResultBucket"] == told[REFERENCE]["bucket"]
    assert order not in told[REFERENCE]["key"]
    assert 1 == len(takeover_scene.charges(takeover_scene.key(order)))


def test_a_guard_replays_a_workflow_s_large_result_and_the_other_way_round(takeover_scene: Scene):
    """Both read the other's bucket, which is the stack's."""
    order, _ = completed(takeover_scene)
    guard = takeover_scene.stack.guard()
    with guard.begin(takeover_scene.key(order), STATEMENT) as run:
        assert (True, 300_000) == (run.replayed, len(run.result["statement"]))

    name = takeover_scene.new_id("guarded")
    with guard.begin(name, VISA) as run:
        run.complete({"pages": "x" * 300_000})
    with guard.begin(name, VISA) as again:
        assert {"pages": "x" * 300_000} == again.result


def test_a_workflow_replays_the_reference(scene: Scene):
    """What it carries stays small; its callers resolve what is theirs to read."""
    key = scene.new_id("key")
    where = {"bucket": "b", "key": "results/k", "version": "v", "sha256": "0" * 64, "bytes": 300_000}
    scene.run(f"{key}-a", VISA, lock_token=key)
    scene.change_lock(key, result=json.dumps({REFERENCE: where}))

    scene.client.start(f"{key}-b", VISA, lock_token=key)

    scene.closed(f"{key}-b")
    assert {REFERENCE: where} == json.loads(scene.execution(f"{key}-b")["output"])


def test_an_answer_that_holds_a_reference_makes_nobody_read_it(takeover_scene: Scene):
    """A confirmation from outside that names another request's result is an answer like any other."""
    _, foreign = completed(takeover_scene)
    order = takeover_scene.new_id("large")
    takeover_scene.run(order, VISA)
    key = takeover_scene.key(order)
    takeover_scene.change_lock(key, result=json.dumps(foreign))

    assert foreign == takeover_scene.client.result(order)


def test_a_confirmed_order_s_large_result_has_the_confirmation(takeover_scene: Scene):
    """What the workflow puts beside the reference belongs to the result."""
    order, told = completed(takeover_scene)
    takeover_scene.change_lock(
        takeover_scene.key(order), result=json.dumps(dict(told) | {"confirmation": {"by": "bank"}})
    )

    result = takeover_scene.client.result(order)

    assert ({"by": "bank"}, 300_000) == (result["confirmation"], len(result["statement"]))


def test_a_client_that_knows_no_bucket_says_so(takeover_scene: Scene):
    """Instead of handing out an address for a result."""
    order, told = completed(takeover_scene)

    with pytest.raises(ResultForbidden, match=re.escape(told[REFERENCE]["bucket"])):
        _ = takeover_scene.client_with().status(order).result


def test_without_a_bucket_a_large_result_is_no_failure_and_not_on_record(scene: Scene):
    """The error that says so; the work is not run again."""
    order = scene.new_id("large")
    scene.client.start(order, STATEMENT)

    closed = scene.closed(order)

    assert "ResultTooLarge" == closed["error"]
    lock = scene.lock(scene.key(order))
    assert lock is not None
    assert ("INPROGRESS", None) == (lock.status, lock.result)


def test_the_commands_show_a_large_result(takeover_scene: Scene, tmp_path: Path):
    """Status, wait and show read it; once it is gone, show still tells the story."""
    order, told = completed(takeover_scene)
    write_facts(takeover_scene.stack.facts(), tmp_path)
    found = [
        run_here(tmp_path, "status", order, "--local"),
        run_here(tmp_path, "wait", order, "--local"),
        run_here(tmp_path, "start", order, statement_file(tmp_path), "--local", "--wait"),
    ]
    assert [(0, 300_000)] * 3 == [(code, len(answer["result"]["statement"])) for code, answer in found]
    code, story = run_here(tmp_path, "show", order, "--local")
    assert (0, 300_000) == (code, len(story["record"]["result"]["statement"]))

    forget(takeover_scene, told)

    code, answer = run_here(tmp_path, "status", order, "--local")
    assert (1, "ResultGone") == (code, answer["error"]["type"])
    code, story = run_here(tmp_path, "show", order, "--local")
    assert (0, "completed", told) == (code, story["diagnosis"], story["record"]["result"])
    assert "is gone" in story["record"]["unread"]
    assert "gets its result only if that can be read then" in story["summary"]


def statement_file(folder: Path) -> str:
    path = folder / "statement.json"
    path.write_text(json.dumps(STATEMENT))
    return str(path)


def test_an_erased_customer_s_large_results_are_gone(takeover_scene: Scene, tmp_path: Path):
    """Also what a call has kept that no record names."""
    customer = takeover_scene.new_id("customer")
    takeover_scene.run(f"{customer}-1", STATEMENT, lock_token=f"{customer}/o-1")
    results = takeover_scene.client.machine.results
    assert 1 == len(results.objects(f"{customer}/o-1"))
    results.keep("1", lock_token=f"{customer}/o-1", call_id="dead", retention_seconds=None)
    write_facts(takeover_scene.stack.facts(), tmp_path)

    code, answer = run_here(
        tmp_path, "erase", f"{customer}/", "--local", "--yes", "--why", "asked to be forgotten"
    )

    assert (0, "erased") == (code, answer["done"])
    assert [] == results.objects(f"{customer}/o-1")


def test_a_result_that_is_gone_is_told_as_such(takeover_scene: Scene):
    """The request stays completed; asking again runs nothing."""
    order, told = completed(takeover_scene)
    forget(takeover_scene, told)

    again = takeover_scene.client.start(order, STATEMENT)

    assert ("COMPLETED", True) == (again.status, again.duplicate)
    with pytest.raises(ResultGone, match=order):
        _ = again.result
    assert 1 == len(takeover_scene.charges(takeover_scene.key(order)))


@pytest.fixture
def careless_bucket(takeover_scene: Scene) -> Iterator[Scene]:
    """Somebody has switched the versions off."""
    s3, name = takeover_scene.stack.boto3("s3"), takeover_scene.stack.outputs["ResultBucket"]
    s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Suspended"})
    yield takeover_scene
    s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})


def test_a_result_that_the_bucket_does_not_take_is_no_reason_to_work_again(careless_bucket: Scene):
    """Its lock stays open until a person completes it: nobody takes over what is done."""
    scene = careless_bucket
    order = scene.new_id("large")
    scene.client.start(order, STATEMENT)

    closed = scene.closed(order)

    lock = scene.lock(scene.key(order))
    assert lock is not None
    assert ("ResultTooLarge", "INPROGRESS") == (closed["error"], lock.status)
    with pytest.raises(Unsettled, match="its work is done"):
        scene.client.start(order, STATEMENT, check_owner=True)
    assert 1 == len(scene.charges(scene.key(order)))
