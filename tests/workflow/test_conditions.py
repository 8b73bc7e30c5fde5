"""Every clause of the workflow's conditions is needed: each test fails when one of them is taken out."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from steponce.aws.times import now_text
from steponce.locks.record import Lock
from steponce.request.envelope import Envelope
from tests.workflow.conftest import WORK_TIMEOUT_SECONDS
from tests.workflow.faults import Answer, Call, Hold, first, refuse
from tests.workflow.scene import BUG, DECLINED, UNREACHABLE, VISA, Scene
from tests.workflow.test_dead_owners import stop_in

LONG_AGO = "2020-01-01T00:00:00.000Z"
STALE: dict[str, str | int] = {
    "created": LONG_AGO,
    "expectedCompletion": LONG_AGO,
    "expiresAt": LONG_AGO,
    "actualCompletion": LONG_AGO,
    "ttl": 1,
    "result": '"old"',
    "failure": '{"Error":"Old","Cause":"old"}',
    "in_progress_expiration": 1,
    "leaseUntil": LONG_AGO,
    "payloadHash": "0" * 64,
    "executionName": "old",
    "requestId": "old",
    "attempt": 4,
    "workTimeoutSeconds": 1,
}


def lambda_error(name: str) -> Callable[[Call, Callable[[], Answer]], Answer]:
    """The function raises, and its code does not run."""
    body = json.dumps({"errorType": name, "errorMessage": "by a test"}).encode()
    return lambda _call, _forward: Answer(200, [("X-Amz-Function-Error", "Unhandled")], body)


def lambda_refusal(status: int, name: str) -> Callable[[Call, Callable[[], Answer]], Answer]:
    """The Lambda service refuses the call, and the code does not run."""
    body = json.dumps({"__type": name, "Message": "by a test"}).encode()
    return lambda _call, _forward: Answer(status, [("X-Amzn-ErrorType", name)], body)


def new_key(scene: Scene, kind: str) -> tuple[str, str]:
    """A key whose shard is not the first, with its shard."""
    while True:
        key = scene.new_id(kind)
        shard = Envelope.make(key, VISA, scene.client.rules, lock_token=key).shard
        if shard != "0":
            return key, shard


def assert_begun_anew(scene: Scene, key: str, shard: str, name: str) -> None:
    """Everything of the record is the new owner's, and it is where open locks are looked for."""
    lock = scene.lock(key)
    envelope = json.loads(scene.execution(name)["input"])
    assert ("INPROGRESS", f"INPROGRESS#{shard}", 5) == (lock.status, lock.open_status, lock.attempt)
    assert (scene.arn(name), name, envelope["callId"]) == (lock.locked_by, lock.execution_name, lock.call_id)
    assert envelope["requestId"] == lock.request_id
    assert [envelope[f] for f in ("payloadHash", "expectedCompletion", "expiresAt")] == [
        lock.payload_hash,
        lock.expected_completion,
        lock.expires_at,
    ]
    assert WORK_TIMEOUT_SECONDS == lock.work_timeout_seconds
    assert (None,) * 4 == (lock.ttl, lock.result, lock.failure, lock.actual_completion)
    assert lock.created > LONG_AGO
    assert {"in_progress_expiration", "leaseUntil"}.isdisjoint(scene.raw_lock(key))
    assert scene.on_open_index(lock)


def test_a_record_that_is_taken_begins_anew(scene: Scene):
    """AcquireLock leaves nothing of the last owner: its ttl would delete an open lock."""
    key, shard = new_key(scene, "anew")
    scene.put_lock(key, **STALE, status="RELEASED", lockedBy="arn:old", callId="old")
    hold = scene.faults.plan("DoWork", Hold(), key=key)
    scene.client.start(key, VISA, lock_token=key)
    hold.wait()

    assert_begun_anew(scene, key, shard, key)
    hold.go_on.set()
    done = scene.client.wait(key, timeout_seconds=100, lock_token=key)
    assert ("COMPLETED", None) == (done.status, done.error)


def test_a_record_that_is_taken_over_begins_anew(scene: Scene):
    """TakeOverLock likewise."""
    key, shard = new_key(scene, "over")
    stop_in(scene, "AcquireLock", f"{key}-a", VISA, key, after=True)
    scene.change_lock(key, **{n: v for n, v in STALE.items() if n != "payloadHash"})
    hold = scene.faults.plan("ConfirmTakeover", Hold(), key=key)
    scene.client.start(f"{key}-b", VISA, lock_token=key)
    hold.wait()

    assert_begun_anew(scene, key, shard, f"{key}-b")
    hold.go_on.set()
    assert "COMPLETED" == scene.client.wait(f"{key}-b", timeout_seconds=100, lock_token=key).status


@pytest.mark.parametrize(("payload", "ends"), [(VISA, "COMPLETED"), (DECLINED, "FAILED"), (BUG, "FAILED")])
def test_a_late_copy_of_the_lock_s_own_write_does_not_open_it_again(scene: Scene, payload: dict, ends: str):
    """A write that timed out may arrive after all: by then the request is finished, and stays so."""
    name = scene.new_id("zombie")
    scene.run(name, payload)
    before = scene.lock(scene.key(name))
    (write,) = [call for call in scene.faults.calls if call.state == "AcquireLock"]
    dynamodb = scene.stack.boto3("dynamodb")

    with pytest.raises(dynamodb.exceptions.ConditionalCheckFailedException):
        dynamodb.update_item(**write.body)

    assert (ends, before) == (before.status, scene.lock(scene.key(name)))


def test_a_namesake_s_open_lock_is_not_one_s_own(scene: Scene):
    """The name came back: the same execution ARN with another callId does not get the old lock."""
    name = scene.new_id("namesake")
    scene.run(f"{name}-hash", VISA)
    payload_hash = scene.lock(scene.key(f"{name}-hash")).payload_hash
    scene.put_open_lock_of_another(name, name, payload_hash)

    scene.client.start(name, VISA, lock_token=name)

    assert "OutcomeUnknown" == scene.closed(name)["error"]
    assert [] == scene.charges(name)


def expired(scene: Scene, name: str, payload: dict) -> Lock:
    """A finished record whose time is over."""
    brief = scene.client_with(retention_seconds=0.1)
    brief.start(f"{name}-a", payload, lock_token=name)
    scene.closed(f"{name}-a")
    return scene.eventually(lambda: (lock := scene.lock(name)).expires_at < now_text() and lock)


def test_a_failure_that_waits_for_a_person_outlives_its_expiry(scene: Scene):
    """It has no ttl: nobody takes it, whatever expiresAt says."""
    name = scene.new_id("person")
    before = expired(scene, name, BUG)

    scene.client.start(f"{name}-b", BUG, lock_token=name)

    assert "ZeroDivisionError" == scene.closed(f"{name}-b")["error"]
    assert before == scene.lock(name)
    assert "ReplayError" in scene.states(f"{name}-b")


def test_a_final_error_that_expired_is_asked_anew(scene: Scene):
    """The bank may say yes by now."""
    name = scene.new_id("final")
    expired(scene, name, DECLINED)

    scene.client.start(f"{name}-b", DECLINED, lock_token=name)
    scene.closed(f"{name}-b")

    assert (f"{name}-b", 2) == (scene.lock(name).request_id, scene.lock(name).attempt)
    assert 2 == len(scene.charges(name))


@pytest.mark.parametrize("payload", [VISA, DECLINED])
def test_a_record_that_expires_before_it_is_read_is_acquired(scene: Scene, payload: dict):
    """Refused a moment ago, expired now: the other's payload does not matter any more."""
    name = scene.new_id("justnow")
    scene.run(f"{name}-a", payload, lock_token=name)
    expire = first(lambda: scene.change_lock(name, expiresAt=LONG_AGO))
    scene.faults.plan("ReadLock", expire, key=name)

    scene.client.start(f"{name}-b", VISA | {"amount": 7}, lock_token=name)
    end = scene.closed(f"{name}-b")

    assert ("SUCCEEDED", f"{name}-b") == (end["status"], scene.lock(name).request_id)


def test_a_failure_that_waits_is_replayed_past_its_expiry_at_every_look(scene: Scene):
    """IsLockHeld has the rule of AcquireLock: without ttl nothing expires, so the loop is not entered."""
    name = scene.new_id("noloop")
    expired(scene, name, BUG)

    scene.client.start(f"{name}-b", BUG, lock_token=name)
    scene.closed(f"{name}-b")

    assert 1 == scene.states(f"{name}-b").count("AcquireLock")


@pytest.mark.parametrize("missing", ["status", "callId", "lockedBy", "payloadHash"])
def test_a_record_that_lacks_what_all_records_have_is_unreadable(scene: Scene, missing: str):
    """Said by name, not as an error of the runtime."""
    key = scene.new_id("lacks")
    whole = {"status": "INPROGRESS", "callId": "x", "lockedBy": "arn:x", "payloadHash": "x"}
    scene.put_lock(key, **{n: v for n, v in whole.items() if n != missing})

    scene.client.start(f"{key}-a", VISA, lock_token=key)

    assert "RecordUnreadable" == scene.closed(f"{key}-a")["error"]


@pytest.mark.parametrize(("payload", "field"), [(VISA, "result"), (DECLINED, "failure")])
def test_a_finished_record_without_its_answer_is_unreadable(scene: Scene, payload: dict, field: str):
    """Somebody cut it off: never replayed as something else."""
    key = scene.new_id("cut")
    scene.run(f"{key}-a", payload, lock_token=key)
    scene.stack.boto3("dynamodb").update_item(
        TableName=scene.stack.outputs["LocksTable"],
        Key={"lockToken": {"S": key}},
        UpdateExpression="REMOVE #f",
        ExpressionAttributeNames={"#f": field},
    )

    scene.client.start(f"{key}-b", payload, lock_token=key)

    assert "RecordUnreadable" == scene.closed(f"{key}-b")["error"]


def test_a_throttled_invocation_is_tried_again(scene: Scene):
    """Lambda refused it, so nothing has happened."""
    name = scene.new_id("throttled")
    for state in ("DoWork", "PrepareRequest"):
        scene.faults.plan(state, lambda_refusal(429, "TooManyRequestsException"), key=name)
    scene.stack.boto3("stepfunctions").start_execution(
        stateMachineArn=scene.client.state_machine_arn, name=name, input=json.dumps({"payload": VISA})
    )

    assert "SUCCEEDED" == scene.closed(name)["status"]
    assert 1 == len(scene.charges(scene.key(name)))


@pytest.mark.parametrize(
    "error", ["Unavailable", "Sandbox.Timedout", "Runtime.ExitError", "Runtime.OutOfMemory", "Lambda.Unknown"]
)
def test_preparing_is_tried_again_when_its_function_fails_or_dies(scene: Scene, error: str):
    """It counts a request once, so a second try is safe. Without it the caller would have to start anew."""
    name = scene.new_id("prepare")
    scene.faults.plan("PrepareRequest", lambda_error(error), key=name)
    scene.stack.boto3("stepfunctions").start_execution(
        stateMachineArn=scene.client.state_machine_arn, name=name, input=json.dumps({"payload": VISA})
    )

    assert "SUCCEEDED" == scene.closed(name)["status"]
    assert 1 == len(scene.charges(scene.key(name)))


@pytest.mark.parametrize("state", ["CheckOwner", "ConfirmTakeover"])
@pytest.mark.parametrize(
    "fault",
    [lambda_refusal(429, "TooManyRequestsException"), lambda_error("Unavailable")],
    ids=["throttled", "unavailable"],
)
def test_looking_at_the_owner_is_tried_again(scene: Scene, state: str, fault):
    """Step Functions throttles DescribeExecution at 15 a second."""
    name = scene.new_id("look")
    stop_in(scene, "AcquireLock", f"{name}-a", VISA, name, after=True)
    scene.faults.plan(state, fault, key=name)

    scene.client.start(f"{name}-b", VISA, lock_token=name)

    assert "SUCCEEDED" == scene.closed(f"{name}-b")["status"]
    assert 1 == len(scene.charges(name))


def test_a_read_that_fails_is_tried_again(scene: Scene):
    """ReadLock writes nothing."""
    name = scene.new_id("read")
    done = scene.run(f"{name}-a", VISA, lock_token=name)
    scene.faults.plan("ReadLock", refuse, key=name)

    assert done.result == scene.run(f"{name}-b", VISA, lock_token=name).result


def test_the_lock_is_read_consistently(scene: Scene):
    """An old copy would replay what has expired, or find nothing."""
    name = scene.new_id("consistent")
    scene.run(f"{name}-a", VISA, lock_token=name)
    scene.run(f"{name}-b", VISA, lock_token=name)

    (read,) = [call for call in scene.faults.calls if call.state == "ReadLock"]
    assert read.body["ConsistentRead"] is True


def test_work_that_takes_too_long_is_not_tried_again(scene: Scene):
    """Its Lambda may still run: a second try would overlap it."""
    name = scene.new_id("once")

    with scene.working(name) as working:
        hasty = scene.hasty_client()
        hasty.start(name, VISA)
        assert "States.Timeout" == hasty.wait(name, timeout_seconds=100).error
        working.wait()

    assert 1 == sum(call.state == "DoWork" for call in scene.faults.calls)


def test_a_response_that_lambda_cannot_carry_is_finished_but_unwritten(scene: Scene):
    """The work is done: not FAILED on record, never run again, and the next one is told so."""
    name = scene.new_id("response")
    scene.faults.plan("DoWork", lambda_error("Function.ResponseSizeTooLarge"), key=name)
    scene.client.start(f"{name}-a", VISA, lock_token=name)
    end = scene.closed(f"{name}-a")
    scene.client.start(f"{name}-b", VISA, lock_token=name)
    other = scene.closed(f"{name}-b")

    assert ["ResultTooLarge"] * 2 == [end["error"], other["error"]]
    assert ("INPROGRESS", f"{name}-a") == (scene.lock(name).status, scene.lock(name).request_id)
    assert "ResultTooLarge" in scene.states(f"{name}-a")


@pytest.mark.parametrize(
    ("state", "payload"),
    [
        ("CompleteRequest", VISA),
        ("RecordFinalError", DECLINED),
        ("RecordError", BUG),
        ("ReleaseLock", UNREACHABLE),
    ],
)
@pytest.mark.parametrize(
    "changed",
    [{"callId": "f" * 32}, {"lockedBy": "arn:of-the-new-owner"}, {"status": "OTHER"}],
    ids=["callId", "lockedBy", "status"],
)
def test_each_part_of_the_fence_alone_stops_a_late_writer(
    scene: Scene, state: str, payload: dict, changed: dict
):
    """callId, execution and status: each has changed alone."""
    name = scene.new_id("fenced")
    hold = scene.faults.plan(state, Hold(), key=name)
    scene.client.start(name, payload, lock_token=name)
    hold.wait()
    scene.change_lock(name, **changed)
    before = scene.lock(name)
    hold.go_on.set()

    end = scene.closed(name)

    assert before == scene.lock(name)
    assert ("FAILED", "DynamoDB.ConditionalCheckFailedException") == (end["status"], end["error"])
    assert 1 == sum(call.state == state for call in scene.faults.calls)


@pytest.mark.parametrize(
    "changed",
    [{"callId": "f" * 32}, {"lockedBy": "arn:of-the-new-owner"}, {"status": "COMPLETED"}],
    ids=["callId", "lockedBy", "status"],
)
def test_each_part_of_a_takeover_s_fence_alone_stops_it(scene: Scene, changed: dict):
    """It was the lock of another, or settled, when the write came."""
    name = scene.new_id("over")
    stop_in(scene, "AcquireLock", f"{name}-a", VISA, name, after=True)
    hold = scene.faults.plan("TakeOverLock", Hold(), key=name)
    scene.client.start(f"{name}-b", VISA, lock_token=name)
    hold.wait()
    scene.change_lock(name, **changed)
    look = scene.faults.plan("AcquireLock", Hold(), key=name)
    hold.go_on.set()
    look.wait()

    lock = scene.lock(name)
    assert f"{name}-a" == lock.request_id
    assert 1 == sum(call.state == "TakeOverLock" for call in scene.faults.calls)
    look.go_on.set()
    scene.closed(f"{name}-b")
    assert [] == scene.charges(name)


def test_a_finished_record_leaves_the_open_index_with_its_times(scene: Scene):
    """Each outcome: when it ended, when it may be deleted, and whether anybody has to look."""
    for payload, waits in ((VISA, False), (DECLINED, False), (UNREACHABLE, False), (BUG, True)):
        key, shard = new_key(scene, "times")
        scene.run(key, payload, lock_token=key)
        lock = scene.lock(key)
        envelope = json.loads(scene.execution(key)["input"])
        assert lock.created < lock.actual_completion <= now_text()
        assert (None if waits else int(envelope["ttl"])) == lock.ttl
        assert (f"FAILED#{shard}" if waits else None) == lock.open_status
        assert (payload is not VISA) == (lock.failure is not None)


@pytest.mark.parametrize(
    ("state", "payload", "error", "last"),
    [
        ("CompleteRequest", VISA, None, "ReplayResult"),
        ("RecordFinalError", DECLINED, "CardDeclined", "RequestFailed"),
    ],
)
def test_who_settled_a_dead_owner_answers_with_what_it_left(
    scene: Scene, state: str, payload: dict, error: str | None, last: str
):
    """The execution itself replays it, not only the client that reads the record."""
    name = scene.new_id("settled")
    stop_in(scene, state, f"{name}-a", payload, name, after=False)

    scene.client.start(f"{name}-b", payload, lock_token=name)
    end = scene.closed(f"{name}-b")

    assert error == end.get("error")
    assert last == scene.states(f"{name}-b")[-1]
    assert 1 == len(scene.charges(name))


def test_work_that_never_answers_is_given_up(scene: Scene):
    """The task has a time-out of its own; without it the lock would hang for years."""
    name = scene.new_id("mute")
    scene.faults.plan("DoWork", Hold(arrives=False), key=name)
    hasty = scene.hasty_client()

    hasty.start(name, VISA, lock_token=name)

    assert "States.Timeout" == hasty.wait(name, timeout_seconds=100, lock_token=name).error
    assert scene.on_open_index(scene.lock(name))
