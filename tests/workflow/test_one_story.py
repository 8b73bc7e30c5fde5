"""Start, status and wait tell one story, and never another payload's, in every race that can be forced."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from steponce import LockTokenMismatch, SteponceError, Unsettled
from steponce.aws.times import now_text
from tests.workflow.faults import Answer, Hold
from tests.workflow.scene import BUG, DECLINED, UNREACHABLE, VISA, Scene
from tests.workflow.test_dead_owners import stop_in


def test_start_and_status_agree_after_a_key_mate_took_over(scene: Scene):
    """Both answer from the record, whoever made it."""
    name = scene.new_id("t1a")
    stop_in(scene, "AcquireLock", f"{name}-a", VISA, name, after=True)
    scene.client.start(f"{name}-b", VISA, lock_token=name, check_owner=True)
    scene.client.wait(f"{name}-b", timeout_seconds=100, lock_token=name)
    started = scene.client.start(f"{name}-a", VISA, lock_token=name)
    asked = scene.client.status(f"{name}-a")
    assert (started.status, started.result) == (asked.status, asked.result)


def test_start_and_wait_agree_after_a_release(scene: Scene):
    """A key-mate has done the work meanwhile."""
    name = scene.new_id("t1b")
    scene.run(f"{name}-a", UNREACHABLE, lock_token=name)
    scene.run(f"{name}-b", UNREACHABLE, lock_token=name)
    started = scene.client.start(f"{name}-a", UNREACHABLE, lock_token=name)
    asked = scene.client.wait(f"{name}-a", lock_token=name)
    assert (started.status, started.result) == (asked.status, asked.result)


def test_status_says_running_where_start_does(scene: Scene):
    """Released by one request, and running under another."""
    name = scene.new_id("t1c")
    scene.run(f"{name}-a", UNREACHABLE, lock_token=name)
    hold = scene.faults.plan("CompleteRequest", Hold(), key=name)
    scene.client.start(f"{name}-b", UNREACHABLE, lock_token=name)
    hold.wait()
    started = scene.client.start(f"{name}-a", UNREACHABLE, lock_token=name)
    assert ("RUNNING", True) == (started.status, started.duplicate)
    asked = scene.client.status(f"{name}-a", lock_token=name)
    hold.go_on.set()
    assert "RUNNING" == asked.status, asked


def test_a_request_that_was_turned_away_never_gets_the_result_of_another_payload(scene: Scene):
    """b was AlreadyInProgress behind a; a was released, and c completed with another payload."""
    name = scene.new_id("t2a")
    hold = scene.faults.plan("ReleaseLock", Hold(), key=name)
    scene.client.start(f"{name}-a", UNREACHABLE, lock_token=name)
    hold.wait()
    scene.client.start(f"{name}-b", UNREACHABLE, lock_token=name)
    assert "AlreadyInProgress" == scene.closed(f"{name}-b")["error"]
    hold.go_on.set()
    scene.closed(f"{name}-a")
    scene.run(f"{name}-c", VISA | {"amount": 999}, lock_token=name)
    asked = scene.client.status(f"{name}-b", lock_token=name)
    assert asked.result is None, asked


def test_a_replayed_request_never_gets_the_result_of_another_payload(scene: Scene):
    """Its record has expired, and the key is another payload's by now."""
    name = scene.new_id("t2b")
    brief = scene.client_with(retention_seconds=3)
    brief.start(f"{name}-a", VISA, lock_token=name)
    brief.wait(f"{name}-a", lock_token=name)
    brief.start(f"{name}-b", VISA, lock_token=name)
    assert "SUCCEEDED" == scene.closed(f"{name}-b")["status"]
    scene.eventually(lambda: scene.lock(name).is_reusable(now_text()))
    scene.run(f"{name}-c", VISA | {"amount": 999}, lock_token=name)
    try:
        asked = scene.client.status(f"{name}-b", lock_token=name)
    except SteponceError:
        return
    assert asked.result is None or 500 == asked.result["amount"], asked


def test_a_wrong_lock_token_is_not_answered_with_a_stranger_s_result(scene: Scene):
    """The key must be the one that the request was started with."""
    name = scene.new_id("t2c")
    scene.run(f"{name}-a", VISA, lock_token=f"{name}/ka")
    scene.run(f"{name}-b", VISA | {"amount": 999}, lock_token=f"{name}/kb")
    try:
        asked = scene.client.status(f"{name}-a", lock_token=f"{name}/kb")
    except SteponceError:
        return
    assert 999 != (asked.result or {}).get("amount"), asked


def test_a_contended_request_never_gets_the_result_of_another_payload(scene: Scene):
    """LockContended says nothing of payloads."""
    name = scene.new_id("t2d")
    scene.run(f"{name}-a", VISA, lock_token=name)
    scene.hide_at_every_look(name)

    scene.client.start(f"{name}-b", VISA | {"amount": 1}, lock_token=name)
    assert "LockContended" == scene.closed(f"{name}-b")["error"]
    asked = scene.client.status(f"{name}-b", lock_token=name)
    assert asked.result is None, asked


def test_a_request_that_ends_between_two_reads_is_found(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    """The record was read before it was there, the execution after its end."""
    name = scene.new_id("t3")
    client = scene.client_with()
    client.start(name, VISA)
    scene.closed(name)
    real, answers = client.machine.locks.get, [None]
    monkeypatch.setattr(client.machine.locks, "get", lambda key: answers.pop() if answers else real(key))
    assert "COMPLETED" == client.status(name).status


def test_a_start_between_two_reads_starts_nothing(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    """The same race; no second execution."""
    name = scene.new_id("t3b")
    client = scene.client_with()
    client.start(name, VISA)
    scene.closed(name)
    real, answers = client.machine.locks.get, [None]
    monkeypatch.setattr(client.machine.locks, "get", lambda key: answers.pop() if answers else real(key))
    again = client.start(name, VISA)
    assert again.duplicate, again


def test_waiting_for_a_next_attempt_that_cannot_be_seen_yet_is_waiting(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
):
    """DescribeExecution is eventually consistent; the released record is the last attempt's."""
    name = scene.new_id("t4")
    client = scene.client_with()
    scene.run(name, UNREACHABLE)
    hold = scene.faults.plan("AcquireLock", Hold(), key=scene.key(name))
    started = client.start(name, UNREACHABLE)
    hold.wait()
    assert not started.duplicate
    real, blind = client.machine.sfn.describe_execution, [True]

    def describe(executionArn):
        if blind and executionArn.endswith("--2"):
            blind.pop()
            return real(executionArn=executionArn + "-nobody")
        return real(executionArn=executionArn)

    monkeypatch.setattr(client.machine.sfn, "describe_execution", describe)
    threading.Timer(0.5, hold.go_on.set).start()
    done = client.wait(name, timeout_seconds=100)
    hold.go_on.set()
    assert "COMPLETED" == done.status, done


def test_an_execution_by_hand_under_any_name_is_found(scene: Scene):
    """order.1 is a fine execution name; the client makes a slug of it."""
    name = scene.new_id("order") + ".1"
    scene.stack.boto3("stepfunctions").start_execution(
        stateMachineArn=scene.client.state_machine_arn, name=name, input=json.dumps({"payload": VISA})
    )
    scene.closed(name)
    assert "COMPLETED" == scene.client.status(name).status


def test_a_record_outlives_its_execution(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    """After 90 days DescribeExecution knows nothing, the record everything."""
    name = scene.new_id("t5b")
    client = scene.client_with(retention_seconds=None)
    client.start(name, VISA)
    scene.closed(name)
    monkeypatch.setattr(client.machine, "describe_arn", lambda _arn: None)
    assert "COMPLETED" == client.status(name).status


def test_racers_after_a_death_get_one_execution(scene: Scene):
    """One of them settles the dead owner, the others are told that it runs."""
    name = scene.new_id("t6")
    stop_in(scene, "CompleteRequest", name, VISA, name, after=False)
    with ThreadPoolExecutor(6) as pool:
        receipts = list(
            pool.map(lambda _: scene.client.start(name, VISA, lock_token=name, check_owner=True), range(6))
        )
    scene.client.wait(name, timeout_seconds=100, lock_token=name)
    assert 1 >= sum(not r.duplicate for r in receipts), [r.execution_arn for r in receipts]
    assert [name, f"{name}--2"] == scene.executions(name)


def test_a_bad_start_by_hand_does_not_block_the_id(scene: Scene):
    """Its payload lacks the key, and it died before any write."""
    name = scene.new_id("t7")
    client = scene.client_with(lock_token_path="orderKey")
    scene.stack.boto3("stepfunctions").start_execution(
        stateMachineArn=scene.client.state_machine_arn,
        name=name,
        input=json.dumps({"payload": {}, "oops": 1}),
    )
    scene.closed(name)
    client.start(name, VISA | {"orderKey": name})


def test_an_answer_too_large_to_be_replayed_is_still_told_by_the_client(scene: Scene):
    """Payload and result fit the first execution, payload and record do not fit the duplicate's."""
    name = scene.new_id("t8")
    large = VISA | {"orderId": '"' * 50_000}
    first_ = scene.run(f"{name}-a", large, lock_token=name)
    assert "COMPLETED" == first_.status
    again = scene.run(f"{name}-b", large, lock_token=name)
    assert "COMPLETED" == again.status, (again.error, again.cause)


def later(_call, _forward):
    return Answer(
        200,
        [("X-Amz-Function-Error", "Unhandled"), ("Content-Type", "application/json")],
        json.dumps({"errorType": "RetryLater", "errorMessage": "nothing done"}).encode(),
    )


def lambda_500(_call, forward):
    forward()
    return Answer(
        500,
        [("Content-Type", "application/json"), ("X-Amzn-ErrorType", "ServiceException")],
        json.dumps({"__type": "ServiceException", "Type": "Service", "Message": "lost"}).encode(),
    )


def test_work_whose_answer_was_lost_is_not_released_as_if_nothing_had_happened(scene: Scene):
    """It may have charged: a person decides, and the card is charged once."""
    name = scene.new_id("t9")
    scene.faults.plan("DoWork", lambda_500, key=name)
    scene.faults.plan("DoWork", later, key=name, times=3)
    scene.run(name, VISA, lock_token=name)
    scene.run(name, VISA, lock_token=name)
    assert 1 == len(scene.charges(name)), [dict(c) for c in scene.charges(name)]


def test_work_whose_answer_was_lost_is_not_tried_again(scene: Scene):
    """It may have charged already."""
    name = scene.new_id("t9b")
    scene.faults.plan("DoWork", lambda_500, key=name)
    scene.run(name, VISA, lock_token=name)
    assert 1 == len(scene.charges(name)), [dict(c) for c in scene.charges(name)]


def test_a_refused_duplicate_stays_refused(takeover_scene: Scene):
    """Asking again by its id does not get it what it was refused."""
    scene = takeover_scene
    key = scene.new_id("t10")
    scene.run(f"{key}-a", VISA, lock_token=key)
    refused = scene.run(f"{key}-b", VISA, lock_token=key)
    again = scene.client.start(f"{key}-b", VISA, lock_token=key)
    assert (refused.status, refused.error) == (again.status, again.error), again


def test_a_retry_of_the_sdk_after_success_and_expiry_is_no_failure(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
):
    """StartExecution's answer was lost, and the SDK repeats it after the end."""
    name = scene.new_id("t11")
    client = scene.client_with(retention_seconds=0.01)
    real = client.machine.sfn.start_execution

    def twice(**kw):
        real(**kw)
        scene.closed(kw["name"])
        return real(**kw)

    monkeypatch.setattr(client.machine.sfn, "start_execution", twice)
    receipt = client.start(name, VISA)
    assert "FAILED" != receipt.status, receipt


def test_an_unwritten_result_does_not_start_execution_after_execution(
    scene: Scene,
):
    """The first look says that a person must complete it."""
    name = scene.new_id("t12")
    hasty = scene.client_with(expected_seconds=0.01)
    large = VISA | {"orderId": "x" * 120_000 + '"' * 12_000}
    hasty.start(name, large, lock_token=name)
    scene.closed(name)
    for _ in range(3):
        with pytest.raises(Unsettled, match="too large to be recorded"):
            hasty.start(name, large, lock_token=name)
    assert [name] == scene.executions(name)


def test_a_failure_that_is_no_object_is_told_as_its_text(scene: Scene):
    """Something else wrote it."""
    key = scene.new_id("t13")
    scene.run(f"{key}-a", DECLINED, lock_token=key)
    scene.change_lock(key, failure='"just text"')
    told = scene.run(f"{key}-b", DECLINED, lock_token=key)
    assert ("FAILED", None, '"just text"') == (told.status, told.error, told.cause)


def test_a_lock_that_is_being_settled_is_waited_for(scene: Scene):
    """Looking at the owner takes four seconds."""
    name = scene.new_id("t15")
    stop_in(scene, "CompleteRequest", name, VISA, name, after=False)
    hold = scene.faults.plan("CheckOwner", Hold(), key=name)
    scene.client.start(name, VISA, lock_token=name, check_owner=True)
    hold.wait()
    threading.Timer(4, hold.go_on.set).start()
    assert "COMPLETED" == scene.client.wait(name, timeout_seconds=100, lock_token=name).status


def test_another_key_under_the_same_id_is_refused_though_it_has_an_answer(scene: Scene):
    """One id is one key."""
    name = scene.new_id("t16")
    scene.run(f"{name}-a", VISA, lock_token=f"{name}/ka")
    scene.run(f"{name}-b", VISA, lock_token=f"{name}/kb")
    with pytest.raises(LockTokenMismatch):
        scene.client.start(f"{name}-a", VISA, lock_token=f"{name}/kb")


def test_another_key_under_the_same_id_is_refused_though_its_owner_died(scene: Scene):
    """Else one id would have two effects."""
    name = scene.new_id("t16b")
    scene.run(f"{name}-a", VISA, lock_token=f"{name}/ka")
    stop_in(scene, "AcquireLock", f"{name}-b", VISA, f"{name}/kb", after=True)
    with pytest.raises(LockTokenMismatch):
        scene.client.start(f"{name}-a", VISA, lock_token=f"{name}/kb", check_owner=True)


def test_a_held_outcome_is_not_overwritten_by_its_redriven_owner(scene: Scene):
    """Its author may repeat a write, and make no other."""
    name = scene.new_id("t17")
    hold = scene.faults.plan("RecordError", Hold(), key=name)
    scene.client.start(name, BUG, lock_token=name)
    hold.wait()
    scene.change_lock(name, status="FAILED", failure='{"Error":"OutcomeUnknown","Cause":"a person decides"}')
    hold.go_on.set()
    scene.closed(name)
    assert "OutcomeUnknown" == scene.lock(name).failure.error
