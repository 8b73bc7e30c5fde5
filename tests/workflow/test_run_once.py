"""What a user sees of a request: it runs once, and everyone gets the same answer."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace

import pytest

from steponce import Client, LockTokenMismatch, PayloadMismatch, RequestFailed, RequestNotFound
from steponce.aws.times import now_text
from steponce.errors import InvalidRequestId, NotFinished
from steponce.request.envelope import Envelope
from steponce.request.names import name_of
from tests.workflow.scene import BUG, DECLINED, KILLED, UNREACHABLE, VISA, Scene


def at_once(count: int, call) -> list:
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(call, range(count)))


def test_a_request_is_answered_with_the_result_of_its_work(scene: Scene):
    """Started, waited for, asked again: the result is what the work returned."""
    order = scene.new_id()

    first = scene.client.start(order, VISA)
    done = scene.client.wait(order, timeout_seconds=100)

    assert ("RUNNING", False) == (first.status, first.duplicate)
    assert ("COMPLETED", 1, None) == (done.status, done.attempt, done.error)
    assert {"chargeId", "orderId", "amount"} == set(done.result)
    assert done.result == scene.client.result(order)
    assert done == scene.client.status(order, lock_token=scene.key(order))


def test_a_fresh_request_takes_three_transitions_beside_its_work(scene: Scene):
    """Choice, lock, completion; the sample's work is a task and the choice whether to wait."""
    order = scene.new_id()

    scene.run(order, VISA)

    work = ["DoWork", "IsConfirmationWanted"]
    assert ["IsRequestPrepared", "AcquireLock", *work, "CompleteRequest"] == scene.states(order)


def test_the_output_of_an_execution_is_the_result_and_nothing_else(scene: Scene):
    """Whoever reads the execution instead of the record finds the same."""
    order = scene.new_id()

    done = scene.run(order, VISA)

    assert done.result == json.loads(scene.closed(order)["output"])


def test_the_same_id_twenty_times_at_once_runs_once(scene: Scene):
    """One execution, one charge, one result; exactly one call is told that it was the first."""
    order = scene.new_id()

    receipts = at_once(20, lambda _: scene.client.start(order, VISA))
    results = at_once(20, lambda _: scene.client.wait(order, timeout_seconds=100).result)

    assert 1 == sum(not receipt.duplicate for receipt in receipts)
    assert [order] == scene.executions(order)
    assert 1 == len(scene.charges(scene.key(order)))
    assert 1 == len({json.dumps(result) for result in results})


def test_the_same_key_under_twenty_ids_at_once_is_charged_once(scene: Scene):
    """The others replay the result, or are told that the first is still running."""
    key = scene.new_id("key")

    at_once(20, lambda n: scene.client.start(f"{key}-{n}", VISA, lock_token=key))
    ends = [scene.closed(f"{key}-{n}") for n in range(20)]
    receipts = [scene.client.wait(f"{key}-{n}", timeout_seconds=100) for n in range(20)]

    assert 1 == len(scene.charges(key))
    assert {"AlreadyInProgress"} >= {end["error"] for end in ends if end["status"] == "FAILED"}
    assert 1 == len({json.dumps(receipt.result) for receipt in receipts})
    assert {"COMPLETED"} == {receipt.status for receipt in receipts}
    assert 19 == sum(receipt.duplicate for receipt in receipts)


def test_the_same_id_after_completion_gets_the_stored_result(scene: Scene):
    """Nothing is started for it."""
    order = scene.new_id()
    done = scene.run(order, VISA)

    again = scene.client.start(order, VISA)

    assert replace(done, duplicate=True) == again
    assert [order] == scene.executions(order)


def test_another_id_with_the_key_of_a_completed_request_replays_its_result(scene: Scene):
    """A replay by key takes five transitions, and the work is not among them."""
    key = scene.new_id("key")
    done = scene.run(f"{key}-a", VISA, lock_token=key)

    replayed = scene.run(f"{key}-b", VISA, lock_token=key)

    assert (done.result, True) == (replayed.result, replayed.duplicate)
    assert done.result == json.loads(scene.closed(f"{key}-b")["output"])
    assert ["IsRequestPrepared", "AcquireLock", "ReadLock", "IsLockHeld", "ReplayResult"] == scene.states(
        f"{key}-b"
    )


def test_a_workflow_may_refuse_duplicates_of_what_is_completed(takeover_scene: Scene):
    """With WhenCompleted=refuse another id with the same key fails, and the work does not run."""
    key = takeover_scene.new_id("key")
    takeover_scene.run(f"{key}-a", VISA, lock_token=key)

    refused = takeover_scene.run(f"{key}-b", VISA, lock_token=key)

    assert ("FAILED", "DuplicateRefused") == (refused.status, refused.error)
    assert 1 == len(takeover_scene.charges(key))


@pytest.mark.parametrize("finished", [False, True])
def test_another_payload_under_the_same_id_is_refused(scene: Scene, finished: bool):
    """While the first still runs, and after; nothing is started."""
    order = scene.new_id()
    with nullcontext() if finished else scene.working(order):
        scene.client.start(order, VISA)
        if finished:
            scene.client.wait(order, timeout_seconds=100)

        with pytest.raises(PayloadMismatch, match=f"Request '{order}'.*Send the first payload again"):
            scene.client.start(order, VISA | {"amount": 501})

    scene.client.wait(order, timeout_seconds=100)
    assert [order] == scene.executions(order)


@pytest.mark.parametrize("finished", [False, True])
def test_another_payload_under_the_same_key_is_refused(scene: Scene, finished: bool):
    """The workflow itself refuses it, and it never gets the other's result."""
    key = scene.new_id("key")
    with nullcontext() if finished else scene.working(key):
        scene.client.start(f"{key}-a", VISA, lock_token=key)
        scene.eventually(lambda: scene.lock(key))
        if finished:
            scene.client.wait(f"{key}-a", timeout_seconds=100)

        refused = scene.run(f"{key}-b", VISA | {"amount": 501}, lock_token=key)

    assert ("FAILED", "PayloadMismatch", None) == (refused.status, refused.error, refused.result)
    scene.client.wait(f"{key}-a", timeout_seconds=100)
    assert 1 == len(scene.charges(key))


@pytest.mark.parametrize("so_far", ["running", "finished", "released"])
def test_another_key_under_the_same_id_is_refused(scene: Scene, so_far: str):
    """One id is one request; with a second key its work would run twice."""
    order = scene.new_id()
    payload = UNREACHABLE if so_far == "released" else VISA
    with scene.working(order) if so_far == "running" else nullcontext():
        scene.client.start(order, payload, lock_token=f"{order}/a")
        if so_far != "running":
            scene.closed(order)

        with pytest.raises(LockTokenMismatch, match="Send the first lock token again"):
            scene.client.start(order, payload, lock_token=f"{order}/b")


def test_a_declined_card_is_a_final_answer(scene: Scene):
    """The same error for everyone, one call of the bank, and nobody has to look."""
    key = scene.new_id("key")

    first = scene.run(f"{key}-a", DECLINED, lock_token=key)
    same_id = scene.client.start(f"{key}-a", DECLINED, lock_token=key)
    same_key = scene.run(f"{key}-b", DECLINED, lock_token=key)

    assert ("FAILED", "CardDeclined") == (first.status, first.error)
    assert "The bank declined the card." == json.loads(first.cause)["errorMessage"]
    assert [first.cause] * 2 == [same_id.cause, same_key.cause]
    assert ("CardDeclined", first.cause) == tuple(scene.closed(f"{key}-b")[f] for f in ("error", "cause"))
    assert 1 == len(scene.charges(key))
    assert (None, True) == (scene.lock(key).open_status, scene.lock(key).ttl is not None)


def test_asking_for_the_result_of_a_failed_request_raises_its_error(scene: Scene):
    """`result` raises what `wait` reports."""
    order = scene.new_id()
    scene.run(order, DECLINED)

    with pytest.raises(RequestFailed) as failed:
        scene.client.result(order)

    assert "CardDeclined" == failed.value.error


def test_several_names_can_be_final(takeover_scene: Scene):
    """FinalErrors is a list."""
    order = takeover_scene.new_id()

    takeover_scene.run(order, DECLINED)

    assert takeover_scene.lock(takeover_scene.key(order)).open_status is None


def test_an_unreachable_provider_is_tried_again_then_released(scene: Scene):
    """Retried with backoff, the lock released; the next start is attempt 2, under the name `--2`."""
    order = scene.new_id()

    first = scene.run(order, UNREACHABLE)
    released = scene.lock(scene.key(order))
    second = scene.run(order, UNREACHABLE)

    assert ("FAILED", "RetryLater") == (first.status, first.error)
    assert ("RELEASED", None) == (released.status, released.open_status)
    assert 3 == sum(call.state == "DoWork" and call.body["attempt"] == 1 for call in scene.faults.calls)
    assert ("COMPLETED", 2, scene.arn(f"{order}--2")) == (second.status, second.attempt, second.execution_arn)
    assert 1 == len(scene.charges(scene.key(order)))


def test_racers_for_the_next_attempt_get_one_execution(scene: Scene):
    """Ten starts after a release: one of them starts `--2`."""
    order = scene.new_id()
    scene.run(order, UNREACHABLE)

    receipts = at_once(10, lambda _: scene.client.start(order, UNREACHABLE))
    scene.client.wait(order, timeout_seconds=100)

    assert 1 == sum(not receipt.duplicate for receipt in receipts)
    assert [order, f"{order}--2"] == scene.executions(order)
    assert 1 == len(scene.charges(scene.key(order)))


@pytest.mark.parametrize(
    ("payload", "error", "charges"), [(BUG, "ZeroDivisionError", 0), (KILLED, "Runtime.ExitError", 1)]
)
def test_an_unexpected_end_waits_for_a_person(scene: Scene, payload: dict, error: str, charges: int):
    """FAILED with error and cause, on the open index, without ttl; it is not run again."""
    order = scene.new_id()

    failed = scene.run(order, payload)
    again = scene.client.start(order, payload)

    lock = scene.lock(scene.key(order))
    assert ("FAILED", error, True) == (again.status, again.error, bool(failed.cause))
    assert (error, None, True) == (lock.failure.error, lock.ttl, scene.on_open_index(lock))
    assert charges == len(scene.charges(scene.key(order)))


def test_work_that_takes_too_long_waits_for_a_person(scene: Scene):
    """Nobody knows whether it took effect."""
    order = scene.new_id()

    hasty = scene.hasty_client()

    with scene.working(order):
        hasty.start(order, VISA)
        failed = hasty.wait(order, timeout_seconds=100)

    assert "States.Timeout" == failed.error
    assert scene.on_open_index(scene.lock(scene.key(order)))


def test_an_expired_record_is_taken_anew(scene: Scene):
    """By the same id as a new attempt, and by another id with the same key."""
    key = scene.new_id("key")
    brief = scene.client_with(retention_seconds=0.5)
    brief.start(f"{key}-a", VISA, lock_token=key)
    brief.wait(f"{key}-a", timeout_seconds=100, lock_token=key)
    scene.eventually(lambda: scene.lock(key).is_reusable(now_text()))

    same_id = brief.start(f"{key}-a", VISA, lock_token=key)
    scene.closed(f"{key}-a--2")
    scene.eventually(lambda: scene.lock(key).is_reusable(now_text()))
    scene.client.start(f"{key}-b", VISA, lock_token=key)
    same_key = scene.client.wait(f"{key}-b", timeout_seconds=100)

    assert (False, scene.arn(f"{key}-a--2")) == (same_id.duplicate, same_id.execution_arn)
    assert ("COMPLETED", 3) == (same_key.status, same_key.attempt)
    assert 3 == len(scene.charges(key))


def test_an_expired_record_tells_its_own_end_until_it_is_deleted(scene: Scene):
    """DynamoDB deletes it when it likes; from then on there is no such request."""
    order = scene.new_id()
    brief = scene.client_with(retention_seconds=0.1)
    brief.start(order, VISA)
    scene.closed(order)
    scene.eventually(lambda: scene.lock(scene.key(order)).is_reusable(now_text()))

    assert brief.status(order).status == "COMPLETED"
    scene.delete_lock(scene.key(order))
    with pytest.raises(RequestNotFound, match=f"There is no request '{order}'"):
        brief.status(order)


def test_a_record_that_is_to_stay_for_ever_is_never_taken(scene: Scene):
    """Retention "never" is the year 9999."""
    order = scene.new_id()
    forever = scene.client_with(retention_seconds=None)
    forever.start(order, VISA)
    forever.wait(order, timeout_seconds=100)

    assert "9999-12-31T23:59:59.000Z" == scene.lock(scene.key(order)).expires_at
    assert forever.start(order, VISA).duplicate


def test_two_machines_on_one_table_never_answer_for_each_other(scene: Scene):
    """The same request id on both: two keys, two charges."""
    sfn = scene.stack.boto3("stepfunctions")
    machine = sfn.describe_state_machine(stateMachineArn=scene.client.state_machine_arn)
    other = sfn.create_state_machine(
        name="another-machine", definition=machine["definition"], roleArn=machine["roleArn"]
    )["stateMachineArn"]
    there = Client(
        other,
        scene.stack.outputs["LocksTable"],
        session=scene.stack.session(),
        endpoints=scene.stack.endpoints,
    )
    order = scene.new_id()

    here_done = scene.run(order, VISA)
    there.start(order, VISA)
    there_done = there.wait(order, timeout_seconds=100)

    assert f"another-machine/{order}" == there_done.lock_token
    assert (False, False) == (here_done.duplicate, there_done.duplicate)
    assert [1, 1] == [len(scene.charges(key)) for key in (here_done.lock_token, there_done.lock_token)]


def test_an_execution_started_by_hand_needs_only_a_payload(scene: Scene):
    """The client then finds it like any other, and a client's duplicate of it is one."""
    order = scene.new_id()
    scene.stack.boto3("stepfunctions").start_execution(
        stateMachineArn=scene.client.state_machine_arn, name=order, input=json.dumps({"payload": VISA})
    )

    while_running = scene.client.start(order, VISA)
    done = scene.client.wait(order, timeout_seconds=100)

    assert (True, "COMPLETED", scene.key(order)) == (while_running.duplicate, done.status, done.lock_token)
    assert "PrepareRequest" == scene.states(order)[1]
    lock = scene.lock(scene.key(order))
    assert (order, order) == (lock.request_id, lock.execution_name)
    assert 1 == len(scene.charges(scene.key(order)))


def test_an_envelope_without_a_request_id_fails_before_anything_is_written(scene: Scene):
    """No state may read a field that is not there: nothing could catch that."""
    order = scene.new_id()
    envelope = Envelope.make(order, VISA, scene.client.rules).to_dict()
    del envelope["requestId"]
    scene.stack.boto3("stepfunctions").start_execution(
        stateMachineArn=scene.client.state_machine_arn, name=order, input=json.dumps(envelope)
    )

    end = scene.closed(order)

    assert ("FAILED", "InvalidPayload", None) == (end["status"], end["error"], scene.lock(scene.key(order)))
    assert "unknown field" in end["cause"]


def test_a_bad_input_by_hand_fails_before_anything_is_written(scene: Scene):
    """The error says what is wrong and what to send, and does not repeat the payload."""
    order = scene.new_id()
    scene.stack.boto3("stepfunctions").start_execution(
        stateMachineArn=scene.client.state_machine_arn,
        name=order,
        input=json.dumps({"payload": "secret-4711", "lockTokne": "x"}),
    )

    end = scene.closed(order)

    assert ("FAILED", "InvalidPayload") == (end["status"], end["error"])
    assert "Start with" in end["cause"]
    assert "secret-4711" not in end["cause"]
    assert scene.lock(scene.key(order)) is None


def test_a_bad_id_starts_nothing(scene: Scene):
    """The client refuses it before any call."""
    with pytest.raises(InvalidRequestId, match="is empty or not text"):
        scene.client.start("  ", VISA)


def test_any_text_can_be_a_request_id(scene: Scene):
    """It gets a readable name of its own, always the same; work, record and receipt have the id itself."""
    order = f"Bestellung Nr. {scene.new_id()} / Größe 5 €"

    done = scene.run(order, UNREACHABLE)
    assert "RetryLater" == done.error
    again = scene.run(order, UNREACHABLE)

    lock, (charge,) = scene.lock(again.lock_token), scene.charges(again.lock_token)
    assert [order] * 3 == [again.request_id, lock.request_id, charge["requestId"]["S"]]
    assert f"{name_of(order)}--2" == lock.execution_name == again.execution_arn.rpartition(":")[2]
    assert scene.client.start(order, UNREACHABLE).duplicate


def test_the_work_gets_the_request_s_id_and_the_execution_s_name(scene: Scene):
    """The id for what it writes down and tells others, the name to find its execution."""
    order = f"{scene.new_id()} / 1"

    scene.run(order, VISA)

    works = [call.body for call in scene.faults.calls if call.state == "DoWork"]
    (work,) = [body for body in works if body["requestId"] == order]
    assert name_of(order) == work["executionName"]


def test_a_request_that_runs_has_no_result_yet(scene: Scene):
    """`result` says so instead of waiting."""
    order = scene.new_id()
    with scene.working(order):
        scene.client.start(order, VISA)
        with pytest.raises(NotFinished, match="still runs"):
            scene.client.result(order)
    scene.client.wait(order, timeout_seconds=100)


def test_a_large_payload_and_a_large_result_travel_together(scene: Scene):
    """125,000 bytes each, replayed by key as well; see docs/limits-and-costs.md."""
    key = scene.new_id("key")
    large = VISA | {"orderId": "x" * 125_000}

    done = scene.run(f"{key}-a", large, lock_token=key)
    replayed = scene.run(f"{key}-b", large, lock_token=key)

    assert "x" * 125_000 == done.result["orderId"] == replayed.result["orderId"]
    assert "SUCCEEDED" == scene.closed(f"{key}-b")["status"]


def test_work_may_answer_with_nothing(scene: Scene):
    """A result of null is a result: replayed, not taken for a missing one."""
    key = scene.new_id("key")
    scene.run(f"{key}-a", VISA, lock_token=key)
    scene.change_lock(key, result="null")

    replayed = scene.run(f"{key}-b", VISA, lock_token=key)

    assert ("COMPLETED", None) == (replayed.status, replayed.result)
    assert "null" == scene.closed(f"{key}-b")["output"]
