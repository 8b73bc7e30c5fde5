"""What `erase` finds and deletes, and what stays."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import pytest

from steponce.aws import times
from steponce.callbacks.answer import Answer
from steponce.errors import (
    OwnerHidden,
    RecordUnreadable,
    Refused,
    ResultForbidden,
)
from steponce.locks.reference import Reference
from steponce.next_step import NextStep
from steponce.operator.allowed import LockAction
from steponce.operator.cancel import cancel
from steponce.operator.cancellable import find_running
from steponce.operator.erasure import erase, find_kept
from steponce.operator.locks import Operator
from steponce.workflow import COMPLETED, FAILED, RELEASED
from tests.fakes.errors import client_error
from tests.unit.locks.large import KEY, bucket, kept
from tests.unit.one_machine import ARN, LONG_AGO, PAYLOAD, TO_WORK, World, envelope
from tests.unit.shared_clients import shared

ACTIONS: list[LockAction] = ["release", "complete", "retry"]
TTL = 4_000_000_000


def answered(world: World, *tokens: str) -> None:
    for token in tokens:
        world.put(token, status=COMPLETED, openStatus=None, ttl=TTL, result='"secret"')


def test_one_customer_is_erased_and_the_neighbour_stays(world: World):
    """A prefix is what it says: acme/ is not the beginning of acme2/."""
    answered(world, "acme/o-1", "acme/o-2", "acme2/o-1", "m/acme/o-1")
    world.step("acme/o-1")
    world.step("acme2/o-1")

    kept = find_kept(world.machine, world.steps, "acme/")

    assert ["acme/o-1", "acme/o-2"] == [lock.lock_token for lock in kept.locks]
    assert ["acme/o-1"] == [step.lock_token for step in kept.steps]
    assert "secret" not in str(kept.locks)
    assert 0 == erase(world.machine, world.steps, kept)
    assert not find_kept(world.machine, world.steps, "acme/")
    assert ["acme2/o-1"] == [step.lock_token for step in world.steps.under("a")]
    assert {"acme2/o-1", "m/acme/o-1"} == {
        lock.lock_token for start in ("a", "m") for lock in world.machine.locks.under(start)
    }


def test_nothing_that_was_written_before_is_missed(world: World, monkeypatch: pytest.MonkeyPatch):
    """Both tables are read consistently. What is missed stays, and the command says that all is erased."""
    scan = world.dynamodb.get_paginator("scan")
    asked: list[bool] = []

    def paginate(**options: Any) -> Any:
        asked.append(options["ConsistentRead"])
        return scan.paginate(**options)

    monkeypatch.setattr(world.dynamodb, "get_paginator", lambda _name: Mock(paginate=paginate))
    find_kept(world.machine, world.steps, "acme/")
    assert [True, True] == asked


def test_a_step_or_a_damaged_record_alone_is_something_to_erase(world: World):
    """Else the command said that there was nothing, and the customer's answers stayed."""
    world.step("acme/o-1")
    assert find_kept(world.machine, world.steps, "acme/")
    with pytest.raises(RecordUnreadable):
        world.put("acme2/o-1", status=COMPLETED, openStatus=None, result="{")
    (damaged,) = (found := find_kept(world.machine, world.steps, "acme2/")).damaged
    assert found
    assert "result" not in damaged.item  # nothing of the customer's is kept meanwhile


def test_damaged_records_are_erased_with_the_rest(world: World):
    """Of both tables. They are the customer's as well, and the next list must not name them again."""
    world.step("acme/o-1")
    change_step(world, "SET #status = :status, enteredAt = :enteredAt", status="LATE", enteredAt="soon")
    with pytest.raises(RecordUnreadable):
        world.put("acme/o-2", status=COMPLETED, openStatus=None, result="{")

    assert 0 == erase(world.machine, world.steps, find_kept(world.machine, world.steps, "acme/"))
    assert not find_kept(world.machine, world.steps, "acme/")


def test_a_damaged_record_whose_status_is_an_open_one_may_be_open(world: World):
    """Also off the open index. Its owner may run, and no command of this program settles it."""
    with pytest.raises(RecordUnreadable):
        world.put("acme/o-1", openStatus=None, attempt=0)
    with pytest.raises(Refused, match=r"'acme/o-1' may be open, and its attempt cannot be read") as refused:
        find_kept(world.machine, world.steps, "acme/")
    assert () == refused.value.next_steps


@pytest.mark.parametrize("prefix", ["", " "])
def test_an_empty_prefix_is_refused(world: World, prefix: str):
    """It is everybody's."""
    with pytest.raises(Refused, match="everybody's"):
        find_kept(world.machine, world.steps, prefix)


def test_nothing_is_erased_while_something_runs_or_waits(world: World):
    """
    Neither a lock in progress nor a step that waits; a few of them are named.

    No command that follows gives the step its answer: the order would be placed.
    """
    answered(world, "acme/o-1")
    world.step("acme/o-1", "PENDING")
    world.execution("order-1", "RUNNING", given={"callId": "as_1"})
    with pytest.raises(Refused, match="step 'confirmation' of 'acme/o-1' waits") as raised:
        find_kept(world.machine, world.steps, "acme/")
    assert (
        NextStep("cancel request", "order-1", lock_token="acme/o-1", machine=ARN),
    ) == raised.value.next_steps

    for number in range(5):
        world.put(f"acme/p-{number}")
    with pytest.raises(Refused, match=r"'acme/p-0' is in progress.*, and more.*cancel it") as raised:
        find_kept(world.machine, world.steps, "acme/")
    assert [NextStep("inspect lock", f"acme/p-{number}") for number in range(3)] == [*raised.value.next_steps]


def test_a_request_that_waits_in_several_steps_is_named_once(world: World):
    """To cancel it twice is refused, and there is room for another request."""
    for number in range(3):
        world.step("acme/o-1", "PENDING", name=f"confirmation-{number}")
    world.step("acme/o-2", "PENDING", step_id="as_2", request_id="order-2")
    for number in (1, 2):
        world.execution(f"order-{number}", "RUNNING", given={"callId": f"as_{number}"})
    with pytest.raises(Refused, match=", and more") as raised:
        find_kept(world.machine, world.steps, "acme/")
    assert ["order-1", "order-2"] == sorted(step.key for step in raised.value.next_steps)


def in_execution(world: World, execution_arn: str) -> None:
    """Let the step wait in another execution."""
    values = {":e": {"S": execution_arn}}
    (step,) = world.steps.under("acme/")
    world.dynamodb.update_item(
        TableName="steps",
        Key={"awaitingStepId": {"S": step.id}},
        UpdateExpression="SET execution = :e",
        ExpressionAttributeValues=values,
    )


def test_a_step_of_another_machine_is_cancelled_there(world: World):
    """Both may know a request with this id."""
    answered(world, "acme/o-1")
    world.step("acme/o-1", "PENDING")
    theirs = f"{ARN}-refunds"
    execution = f"{theirs.replace(':stateMachine:', ':execution:')}:order-1"
    in_execution(world, execution)
    runs = {"executionArn": execution, "status": "RUNNING", "input": "{}", "startDate": LONG_AGO}
    world.sfn.executions[execution] = runs

    with pytest.raises(Refused, match="waits") as raised:
        find_kept(world.machine, world.steps, "acme/")
    assert (
        NextStep("cancel request", "order-1", lock_token="acme/o-1", machine=theirs),
    ) == raised.value.next_steps


def test_what_waits_for_a_person_is_not_erased(world: World):
    """Nobody knows yet whether its work took effect; a final error is an answer, and goes."""
    answered(world, "acme/o-1")
    world.put("acme/o-2", status=FAILED, openStatus="FAILED#3")

    with pytest.raises(Refused, match=r"'acme/o-2' waits for a person\. .* settle it") as raised:
        find_kept(world.machine, world.steps, "acme/")
    assert (NextStep("inspect lock", "acme/o-2"),) == raised.value.next_steps

    world.put("acme/o-2", status=FAILED, openStatus=None, ttl=TTL)
    assert 2 == len(find_kept(world.machine, world.steps, "acme/").locks)


@pytest.mark.parametrize("known", [True, False])
def test_a_step_that_a_dead_execution_left_waiting_does_not_wait(world: World, known: bool):
    """Its request was cancelled; nobody's answer can reach it."""
    answered(world, "acme/o-1")
    world.step("acme/o-1", "PENDING")
    if known:
        world.execution("order-1", "ABORTED", *TO_WORK, error="Cancelled")

    kept = find_kept(world.machine, world.steps, "acme/")

    assert (1, 0, []) == (
        len(kept.steps),
        erase(world.machine, world.steps, kept),
        list(world.steps.under("acme/")),
    )


def test_an_item_of_a_distributed_map_that_may_not_be_looked_at_is_named(world: World):
    """`execution:NAME:*` does not allow it: the items are `execution:NAME/LABEL:ID`."""
    world.step("acme/o-1", "PENDING")
    item = f"{ARN.replace(':stateMachine:', ':execution:')}/Items:order-1"
    in_execution(world, item)
    world.sfn.refuse("describe_execution", "AccessDeniedException", item)
    with pytest.raises(OwnerHidden, match=f"{item} may not be looked at .* Allow states:DescribeExecution"):
        find_kept(world.machine, world.steps, "acme/")


@pytest.mark.parametrize(
    ("status", "call_id", "waits"),
    [("RUNNING", "as_1", True), ("ABORTED", "as_1", False), ("RUNNING", "another", False)],
    ids=["its own", "its own, and stopped", "another of its name"],
)
@pytest.mark.parametrize("claimed", [False, True])
def test_a_step_waits_while_its_own_execution_runs(
    world: World, status: str, call_id: str, waits: bool, claimed: bool
):
    """Also with an answer that is on its way: erased, the next sender would be told that there is no step."""
    world.step("acme/o-1", "PENDING")
    if claimed:
        (step,) = world.steps.under("acme/")
        world.steps.claim(step, Answer("success", True), "me")
    world.execution("order-1", status, *TO_WORK, given=envelope("acme/o-1") | {"callId": call_id})
    if waits:
        with pytest.raises(Refused, match="the step 'confirmation' of 'acme/o-1' waits"):
            find_kept(world.machine, world.steps, "acme/")
    else:
        assert find_kept(world.machine, world.steps, "acme/")


def test_a_step_with_its_answer_keeps_nothing_from_being_erased(world: World):
    """Its execution may still run, for another request's record or at its last state."""
    world.step("acme/o-1")
    world.execution("order-1", "RUNNING", *TO_WORK, given=envelope("acme/o-1") | {"callId": "as_1"})
    assert find_kept(world.machine, world.steps, "acme/")


def test_no_more_executions_are_looked_at_than_are_named(world: World):
    """A customer may have thousands that wait, and each look costs a call of a small quota."""
    for number in range(9):
        one = f"order-{number}"
        world.step(f"acme/{number}", "PENDING", f"as_{number}", request_id=one)
        world.execution(one, "RUNNING", *TO_WORK, given=envelope() | {"callId": f"as_{number}"})
    with pytest.raises(Refused, match="and more"):
        find_kept(world.machine, world.steps, "acme/")
    assert 4 == world.sfn.calls["describe_execution"]


def change_step(world: World, update: str, **values: str) -> None:
    """Change the only awaiting step under acme/ in the table."""
    (step,) = world.steps.under("acme/")
    world.dynamodb.update_item(
        TableName="steps",
        Key={"awaitingStepId": {"S": step.id}},
        UpdateExpression=update,
        ExpressionAttributeNames={"#status": "status"},
        ExpressionAttributeValues={f":{name}": {"S": value} for name, value in values.items()},
    )


def test_what_changes_while_the_operator_thinks_is_left(world: World):
    """A lock that was taken again, a step that waits again; and what is gone is gone."""
    answered(world, "acme/o-1", "acme/o-2", "acme/o-3")
    world.step("acme/o-1")
    kept = find_kept(world.machine, world.steps, "acme/")
    world.put("acme/o-1", callId="call-2")
    world.machine.locks.erase(world.lock("acme/o-2"))
    change_step(world, "SET #status = :status", status="PENDING")

    assert 2 == erase(world.machine, world.steps, kept)
    assert ["acme/o-1"] == [lock.lock_token for lock in world.machine.locks.under("acme/")]
    assert 1 == len(list(world.steps.under("acme/")))


def test_a_damaged_record_that_another_operator_erases_first_is_gone(world: World):
    """As one whose delete is repeated, because its answer was lost. It was told as changed, and as left."""
    world.step("acme/o-1")
    update = "SET #status = :status, enteredAt = :enteredAt REMOVE openStatus"
    change_step(world, update, status="LATE", enteredAt="soon")
    with pytest.raises(RecordUnreadable):
        world.put("acme/o-2", status=COMPLETED, openStatus=None, result="{")
    kept = find_kept(world.machine, world.steps, "acme/")
    assert [True, False] == sorted((one.is_step for one in kept.damaged), reverse=True)

    assert [0, 0] == [erase(world.machine, world.steps, kept) for _ in range(2)]


def test_a_cancellation_that_came_while_the_operator_thinks_is_not_erased(world: World):
    """Its record has the owner, the attempt and the status of a failure that another person erased before."""
    world.execution("order-1", "FAILED", *TO_WORK, "RecordFinalError", given=envelope("acme/o-1"))
    world.put("acme/o-1", status=FAILED, openStatus=None, ttl=TTL)
    kept = find_kept(world.machine, world.steps, "acme/")
    assert 0 == erase(world.machine, world.steps, kept)
    cancelled = cancel(world.machine, find_running(world.machine, "order-1"), by="bob", why="by mistake").lock

    assert 1 == erase(world.machine, world.steps, kept)
    assert cancelled == world.lock("acme/o-1")


def large(world: World, *tokens: str) -> dict[str, Reference]:
    """Completed records whose results are in a bucket that the machine knows."""
    world.machine.results = bucket(region="eu-west-1")
    found = {token: kept(world.machine.results, '{"pages":1}', lock_token=token) for token in tokens}
    for token, reference in found.items():
        world.put(token, status=COMPLETED, openStatus=None, ttl=TTL, result=reference.to_json())
    return found


def test_large_results_are_erased_with_their_records(world: World):
    """Every version, also of what no record names; the neighbour's stays."""
    found = large(world, KEY, "acme2/o-1")
    orphan = kept(world.machine.results, "1", call_id="call-0")
    world.machine.results._s3.put_object(Bucket=orphan.bucket, Key=orphan.key, Body=b"2")

    assert 0 == erase(world.machine, world.steps, find_kept(world.machine, world.steps, "acme/"))

    assert [] == world.machine.results.objects("acme/o-1")
    other = found["acme2/o-1"]
    assert [(other.key, other.version)] == world.machine.results.objects("acme2/o-1")


@pytest.mark.parametrize(("days", "tags"), [(365, ["400"]), (None, [])])
def test_a_large_result_outlives_the_record_that_it_completes(
    world: World, alice: Operator, days: int | None, tags: list[str]
):
    """The record has its own retention, whatever the machine's is by now."""
    world.machine.results = bucket(region="eu-west-1")
    world.held()
    expires_at = times.NEVER if days is None else times.to_text(LONG_AGO + timedelta(days=days))
    shown = world.put(status=FAILED, openStatus="FAILED#3", expiresAt=expires_at)

    lock = alice.complete(shown, f'"{"x" * 300_000}"', "because")

    assert (lock.expires_at or "") >= expires_at
    ((key, _),) = world.machine.results.objects(lock.lock_token)
    found = shared("s3", "eu-west-1").get_object_tagging(Bucket=world.machine.results.bucket or "", Key=key)
    assert [{"Key": "keepDays", "Value": tag} for tag in tags] == found["TagSet"]


def test_a_record_stays_while_its_large_result_is_in_another_bucket(world: World):
    """It is the only way to it. The others are erased; else a customer with results in two would never be."""
    large(world, "acme/o-1")
    world.machine.results = bucket("another", region="eu-west-1")
    world.put("acme/o-2", status=COMPLETED, openStatus=None, ttl=TTL)

    kept = find_kept(world.machine, world.steps, "acme/")
    assert {"acme/o-1": "large-results"} == kept.elsewhere
    assert 0 == erase(world.machine, world.steps, kept)
    assert (True, None) == (world.lock("acme/o-1") is not None, world.machine.locks.get("acme/o-2"))


def test_a_damaged_record_s_large_result_is_erased_as_well(world: World):
    """It is found by the lock token alone."""
    large(world, "acme/o-1")
    with pytest.raises(RecordUnreadable):
        world.put("acme/o-1", status=COMPLETED, openStatus=None, result="{")

    assert 0 == erase(world.machine, world.steps, find_kept(world.machine, world.steps, "acme/"))
    assert [] == world.machine.results.objects("acme/o-1")


def test_a_large_result_stays_with_a_record_that_was_damaged_and_is_mended(world: World):
    """Somebody has put it right, and completed it, while the operator thought."""
    large(world, "acme/o-1")
    with pytest.raises(RecordUnreadable):
        world.put("acme/o-1", status="DONE", openStatus=None, attempt=0)
    found = find_kept(world.machine, world.steps, "acme/")
    world.put("acme/o-1", status=COMPLETED, openStatus=None, ttl=TTL)

    assert 1 == erase(world.machine, world.steps, found)
    assert 1 == len(world.machine.results.objects("acme/o-1"))


def test_a_large_result_stays_with_a_record_that_has_changed(world: World):
    """Somebody has taken the lock meanwhile; what is there may be theirs."""
    large(world, "acme/o-1")
    found = find_kept(world.machine, world.steps, "acme/")
    world.put("acme/o-1", callId="call-2")

    assert 1 == erase(world.machine, world.steps, found)
    assert 1 == len(world.machine.results.objects("acme/o-1"))


def test_whoever_may_not_erase_large_results_erases_no_record(world: World, monkeypatch: pytest.MonkeyPatch):
    """Otherwise nothing would lead to them any more."""
    large(world, "acme/o-1")

    def refuse(**_: Any) -> None:
        raise client_error("AccessDenied")

    monkeypatch.setattr(world.machine.results._s3, "delete_objects", refuse)
    with pytest.raises(ResultForbidden, match="s3:DeleteObjectVersion"):
        erase(world.machine, world.steps, find_kept(world.machine, world.steps, "acme/"))

    assert COMPLETED == world.lock("acme/o-1").status


def test_a_released_record_is_erased_if_only_the_answer_of_its_new_fence_was_lost(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    """The repeated write is refused by the first."""
    large(world, "acme/o-1")
    world.put("acme/o-1", status=RELEASED, openStatus=None, ttl=TTL)
    found, write = find_kept(world.machine, world.steps, "acme/"), world.machine.locks.change_fence
    monkeypatch.setattr(world.machine.locks, "change_fence", lambda *a: write(*a) and write(*a))

    assert 0 == erase(world.machine, world.steps, found)
    assert [] == world.machine.results.objects("acme/o-1")


def test_an_erasing_that_dies_leaves_the_record_to_its_execution(
    world: World, alice: Operator, monkeypatch: pytest.MonkeyPatch
):
    """`show` said that the request had no record, and `locks retry` that its execution was forgotten."""
    large(world, "m/order-1")
    world.execution("order-1", "FAILED", *TO_WORK, "ReleaseLock", error="RetryLater")
    world.put(status=RELEASED, openStatus=None, ttl=TTL, failure='{"Error":"RetryLater","Cause":null}')
    before = world.client.status("order-1")
    with monkeypatch.context() as patch:
        patch.setattr(world.machine.results, "delete", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            erase(world.machine, world.steps, find_kept(world.machine, world.steps, "m/"))

    assert before == world.client.status("order-1")
    assert PAYLOAD == alice.payload_of(world.lock())["payload"]
    assert 0 == erase(world.machine, world.steps, find_kept(world.machine, world.steps, "m/"))
    assert [] == list(world.machine.locks.under("m/"))
