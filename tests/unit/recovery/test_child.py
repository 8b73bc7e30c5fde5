"""An owner whose work was an execution that it had started: the child's end is the end of the work."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from steponce import workflow
from steponce.aws import times
from steponce.executions import OpenWork, describe_execution
from steponce.failure import Failure
from steponce.locks.record import Lock
from steponce.recovery import owner
from steponce.recovery.child import name_of_child
from steponce.workflow import CAUSE_LIMIT, COMPLETED, FAILED, INPROGRESS, OUTCOME_UNKNOWN
from tests.fakes.step_functions import StepFunctions
from tests.unit.one_owner import (
    ENVELOPE,
    ITEM,
    JUST_NOW,
    LONG_AGO,
    NOW,
    TO_WORK,
    WORK_TIMEOUT,
    Stack,
    history,
)

OWNER = "arn:aws:states:eu-west-1:123456789012:execution:once:order-1"
THEIRS = "arn:aws:states:eu-west-1:123456789012:stateMachine:theirs"
HELD = ITEM | {"lockedBy": {"S": OWNER}}
CHILD = f"{THEIRS.replace(':stateMachine:', ':execution:')}:{name_of_child(Lock.from_item(HELD))}"
START = {"resourceType": "states", "resource": "startExecution.sync:2"}
OVER = NOW - timedelta(seconds=WORK_TIMEOUT) - workflow.INIT_TIME
CANCELLED = {"status": "ABORTED", "error": "Cancelled", "cause": "ann: wrong customer"}


def scheduled(arn: str = CHILD, machine: str = THEIRS, **details: str) -> dict[str, Any]:
    """The event by which a history tells of a child that is to be started."""
    asked = {"StateMachineArn": machine, "Name": arn.rpartition(":")[2], "Input": {}}
    return {
        "type": "TaskScheduled",
        "taskScheduledEventDetails": START | {"parameters": json.dumps(asked)} | details,
    }


def submitted(arn: str = CHILD) -> dict[str, Any]:
    """The event by which it tells of the child that was started."""
    return {
        "type": "TaskSubmitted",
        "taskSubmittedEventDetails": START | {"output": json.dumps({"ExecutionArn": arn})},
    }


BOTH = [scheduled(), submitted()]


@pytest.fixture
def stack(aws: Stack) -> Stack:
    """The dead owner's lock, as it left it."""
    aws.put(lockedBy={"S": OWNER})
    return aws


def world(
    *events: dict[str, Any], child: dict[str, Any] | None, arn: str = CHILD, **described: Any
) -> StepFunctions:
    """An owner that failed long ago in its work, after these events; and its child."""
    sfn = StepFunctions()
    found = {"status": "FAILED", "stopDate": LONG_AGO, "input": json.dumps(ENVELOPE)} | described
    whole = history(*TO_WORK)
    sfn.put(OWNER, *whole[:-1], *events, whole[-1], **found)
    if child is not None:
        sfn.put(arn, **child)
    return sfn


def settle(stack: Stack, sfn: StepFunctions, unknown: owner.WhenOutcomeUnknown = "hold") -> owner.Finding:
    """What is found of the owner."""
    return owner.settle_owner(
        Lock.from_item(HELD),
        sfn,
        stack.locks,
        work_timeout_seconds=WORK_TIMEOUT,
        when_outcome_unknown=unknown,
        by="check_owner",
        home=OWNER,
    )


UNKNOWN = pytest.mark.parametrize("unknown", ["hold", "take-over"])


@UNKNOWN
@pytest.mark.parametrize("status", ["RUNNING", "PENDING_REDRIVE"])
@pytest.mark.parametrize("events", [BOTH, BOTH[:1], BOTH[1:]], ids=["both", "asked", "started"])
def test_an_owner_whose_child_runs_is_alive(stack: Stack, events: list[Any], status: str, unknown: Any):
    """However long ago it died, and whichever event tells of the child."""
    assert "alive" == settle(stack, world(*events, child={"status": status}), unknown).verdict
    assert INPROGRESS == stack.lock().status


@UNKNOWN
@pytest.mark.parametrize("output", ["null", '{"paid": 5, "to": "é"}', "[]"])
def test_a_child_that_succeeded_completes_the_request(stack: Stack, output: str, unknown: Any):
    """Its output is the result, written as the workflow would have."""
    child = {"status": "SUCCEEDED", "output": output, "stopDate": JUST_NOW}
    found = settle(stack, world(*BOTH, child=child), unknown)
    assert ("settled", True) == (found.verdict, found.wrote)
    expected = json.dumps(json.loads(output), separators=(",", ":"), ensure_ascii=False)
    assert (COMPLETED, expected) == (stack.lock().status, stack.lock().result)
    assert CHILD in str(stack.item()["interventions"])


@UNKNOWN
@pytest.mark.parametrize("status", ["FAILED", "TIMED_OUT"])
def test_a_child_that_failed_leaves_the_request_to_a_person(stack: Stack, status: str, unknown: Any):
    """As the owner would have, with the child's own error in the cause; nobody takes it over."""
    child = {"status": status, "error": "NotPayable", "cause": "no amount", "stopDate": JUST_NOW}
    assert "settled" == settle(stack, world(*BOTH, child=child), unknown).verdict
    failure = stack.lock().failure or Failure(None, None)
    assert (FAILED, "FAILED#3", "States.TaskFailed") == (
        stack.lock().status,
        stack.lock().open_status,
        failure.error,
    )
    assert {
        "ExecutionArn": CHILD,
        "Status": status,
        "Error": "NotPayable",
        "Cause": "no amount",
    } == json.loads(failure.cause or "")


@pytest.mark.parametrize("character", ["x", '"', "\n", "é", "\x00"])
def test_a_child_s_long_cause_is_cut_off(stack: Stack, character: str):
    """The record's cause is that of an execution that replays it, so it is no longer than AWS allows."""
    child = {"status": "FAILED", "error": "Broken", "cause": character * CAUSE_LIMIT, "stopDate": JUST_NOW}
    settle(stack, world(*BOTH, child=child))
    cause = (stack.lock().failure or Failure(None, None)).cause or ""
    assert CAUSE_LIMIT - 6 < len(cause) <= CAUSE_LIMIT
    kept = json.loads(cause)
    assert ("Broken", {character}) == (kept["Error"], set(kept["Cause"]))


@pytest.mark.parametrize(
    ("child", "waits"),
    [
        ({"status": "FAILED", "stopDate": JUST_NOW}, False),
        ({"status": "SUCCEEDED", "output": "1", "stopDate": JUST_NOW}, False),
        ({"status": "ABORTED", "stopDate": JUST_NOW}, True),
        ({"status": "ABORTED", "stopDate": OVER}, False),
        ({"status": "RUNNING"}, True),
    ],
)
def test_it_is_told_how_long_a_child_leaves_its_owner_unsettled(
    stack: Stack, child: dict[str, Any], waits: bool
):
    """While it runs, and while its functions may. A child that tells its end is settled at once."""
    sfn, lock = world(*BOTH, child=child), Lock.from_item(HELD)
    work = owner.unsettled_work(lock, describe_execution(sfn, OWNER), sfn, WORK_TIMEOUT)
    ends = times.to_text(JUST_NOW + timedelta(seconds=WORK_TIMEOUT) + workflow.INIT_TIME)
    runs = OpenWork(ends) if "stopDate" in child else OpenWork(execution_arn=CHILD)
    assert (runs if waits else None) == work
    assert waits == (settle(stack, sfn).verdict == "alive")


def test_a_child_that_was_stopped_died_in_the_work(stack: Stack):
    """What it had called may still run; then its outcome is unknown."""
    fresh = {"status": "ABORTED", "stopDate": JUST_NOW}
    assert "alive" == settle(stack, world(*BOTH, child=fresh)).verdict
    over = {"status": "ABORTED", "stopDate": OVER}
    assert "unknown" == settle(stack, world(*BOTH, child=over), "take-over").verdict
    assert INPROGRESS == stack.lock().status
    assert "settled" == settle(stack, world(*BOTH, child=over)).verdict
    assert OUTCOME_UNKNOWN == (stack.lock().failure or Failure(None, None)).error


def test_a_child_that_was_never_started_or_is_forgotten_tells_nothing(stack: Stack):
    """The outcome is unknown once the time of the work is over."""
    assert "alive" == settle(stack, world(*BOTH, child=None, stopDate=JUST_NOW)).verdict
    assert "unknown" == settle(stack, world(*BOTH, child=None), "take-over").verdict


@UNKNOWN
def test_a_child_that_cannot_be_described_yet_counts_as_running(stack: Stack, unknown: Any):
    """Descriptions lag behind, and nobody may take the lock over from a child that has just been started."""
    closed = NOW - timedelta(minutes=14)
    assert "alive" == settle(stack, world(*BOTH, child=None, stopDate=closed), unknown).verdict
    assert "settled" == settle(stack, world(*BOTH, child=None, **{"stopDate": closed, **CANCELLED})).verdict


def test_the_output_of_a_child_with_another_name_is_no_result(stack: Stack):
    """States of the user's may follow; but while it runs, its owner is alive."""
    other = CHILD[:-1] + "7"
    events = [scheduled(other), submitted(other)]
    ended = {"status": "SUCCEEDED", "output": "{}", "stopDate": OVER}
    assert "unknown" == settle(stack, world(*events, child=ended, arn=other), "take-over").verdict
    running = world(*events, child={"status": "RUNNING"}, arn=other)
    assert "alive" == settle(stack, running, "take-over").verdict


def test_a_success_whose_output_cannot_be_read_is_no_result(stack: Stack):
    """It is encrypted with a key that this client may not use."""
    child = {"status": "SUCCEEDED", "stopDate": OVER}
    assert "unknown" == settle(stack, world(*BOTH, child=child), "take-over").verdict


@pytest.mark.parametrize("qualifier", ["PROD", "7"])
def test_a_child_is_found_by_an_alias_or_a_version(stack: Stack, qualifier: str):
    """Executions have the name of the state machine alone."""
    events = [scheduled(machine=f"{THEIRS}:{qualifier}")]
    assert "alive" == settle(stack, world(*events, child={"status": "RUNNING"})).verdict


@pytest.mark.parametrize(
    "event",
    [
        scheduled(resource="startExecution"),
        scheduled(resourceType="lambda", resource="invoke"),
        scheduled(parameters='{"StateMachineArn":"x"}'),
    ],
)
def test_what_nobody_waited_for_is_not_the_work(stack: Stack, event: dict[str, Any]):
    """Nor is a call of another service, or an execution whose name nobody knows."""
    assert "unknown" == settle(stack, world(event, child={"status": "RUNNING"}), "take-over").verdict


def test_a_state_inside_of_the_work_may_start_what_it_likes(stack: Stack):
    """Only the state that begins the work has a child that is the work."""
    events = [*history(("Inner", {}), end=None)[1:], *BOTH]
    assert "unknown" == settle(stack, world(*events, child={"status": "RUNNING"}), "take-over").verdict


def test_a_child_that_may_not_be_described_counts_as_alive(stack: Stack):
    """With the reason, and what to allow."""
    sfn = world(*BOTH, child={"status": "RUNNING"})
    sfn.refuse("describe_execution", "AccessDeniedException", CHILD)
    found = settle(stack, sfn)
    assert "alive" == found.verdict
    assert f"The execution {CHILD} may not be looked at" in found.reason


def test_a_cancelled_owner_does_not_wait_for_its_child(stack: Stack):
    """It is held for a person at once; only a success counts, for it is an answer."""
    assert "settled" == settle(stack, world(*BOTH, child={"status": "RUNNING"}, **CANCELLED)).verdict
    assert "Cancelled" == (stack.lock().failure or Failure(None, None)).error
    stack.put(lockedBy={"S": OWNER})
    done = {"status": "SUCCEEDED", "output": "1", "stopDate": JUST_NOW}
    assert "settled" == settle(stack, world(*BOTH, child=done, **CANCELLED)).verdict
    assert (COMPLETED, "1") == (stack.lock().status, stack.lock().result)


@pytest.mark.parametrize(
    ("gone", "child"),
    [
        (True, {"status": "ABORTED", "stopDate": OVER}),
        (False, {"status": "ABORTED", "stopDate": OVER, "redriveCount": 1}),
        (False, {"status": "RUNNING"}),
    ],
)
def test_a_child_that_was_redriven_meanwhile_is_not_gone(gone: bool, child: dict[str, Any]):
    """The successor has just taken the lock over, and looks once more."""
    assert gone == owner.is_gone(Lock.from_item(HELD), world(*BOTH, child=child), 0)


def test_the_redrives_of_a_child_are_its_owner_s(stack: Stack):
    """So that the second look finds what the first has found."""
    sfn = world(*BOTH, child={"status": "ABORTED", "stopDate": OVER, "redriveCount": 2})
    assert 2 == settle(stack, sfn, "take-over").redrive_count
    assert owner.is_gone(Lock.from_item(HELD), sfn, 2)


def state_of_child(sfn: StepFunctions) -> str | None:
    """What an operator hears of the child."""
    child = owner.left_by(Lock.from_item(HELD), None, sfn).child
    return child and child.state


def test_the_child_of_another_request_under_the_owner_s_name_is_not_its_own():
    """The owner is forgotten, and its name is free again. That child must not be stopped for it."""
    sfn = world(*BOTH, child={"status": "RUNNING"})
    assert "running" == state_of_child(sfn)
    lock = Lock.from_item(HELD | {"callId": {"S": "another"}})
    assert owner.Left() == owner.left_by(lock, None, sfn)


def test_who_settles_by_hand_hears_of_the_child():
    """Unless the owner has started none, or is forgotten."""
    assert "running" == state_of_child(world(*BOTH, child={"status": "RUNNING"}))
    assert "ended" == state_of_child(world(*BOTH, child={"status": "ABORTED", "stopDate": OVER}))
    assert None is state_of_child(world(child=None))
    assert None is state_of_child(StepFunctions())


def test_who_settles_by_hand_hears_of_it_after_an_error_is_recorded():
    """AWS stops a child whose time is over, and nobody checks that it did."""
    events = [*BOTH, *history(("RecordError", {}), end=None)[1:]]
    assert "running" == state_of_child(world(*events, child={"status": "RUNNING"}))


def test_what_a_child_left_is_written_right_after_its_owner_s_death(stack: Stack):
    """Only a child that cannot be found may still be about to start."""
    child = {"status": "SUCCEEDED", "output": "1", "stopDate": JUST_NOW}
    assert "settled" == settle(stack, world(*BOTH, child=child, stopDate=JUST_NOW)).verdict
    assert (COMPLETED, "1") == (stack.lock().status, stack.lock().result)


def test_a_child_says_nothing_of_an_owner_that_died_after_its_work(stack: Stack):
    """States after DoWork have made another result of the child's output."""
    sfn = world(*BOTH, child={"status": "FAILED", "error": "Broken", "stopDate": JUST_NOW})
    done = ENVELOPE | {"work": {"result": "both paid"}}
    details = {"name": "CompleteRequest", "input": json.dumps(done)}
    sfn.histories[OWNER].insert(-1, {"type": "TaskStateEntered", "stateEnteredEventDetails": details})

    assert "settled" == settle(stack, sfn).verdict

    assert (COMPLETED, '"both paid"') == (stack.lock().status, stack.lock().result)
