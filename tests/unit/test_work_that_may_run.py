"""Work of which nobody has heard that it is over is waited for; and owners that cannot be asked are alive."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from moto import mock_aws

from steponce import workflow
from steponce.aws import times
from steponce.errors import OwnerHidden, Refused, Unavailable, Unsettled, WaitTimeout
from steponce.executions import YOUNG, HistoryTooLong, OpenWork
from steponce.failure import Failure
from steponce.locks.record import Lock
from steponce.next_step import NextStep
from steponce.operator.allowed import LockAction
from steponce.operator.cancel import cancel
from steponce.operator.cancellable import find_running
from steponce.operator.locks import Operator
from steponce.operator.next_steps import next_steps
from steponce.recovery import owner
from steponce.recovery.owner import settle_owner
from steponce.recovery.repair import Repairer
from steponce.recovery.work import proves_the_end, works_until
from steponce.report.collector import collect, collect_owner
from steponce.workflow import FAILED, INIT_TIME, INPROGRESS, RELEASED
from tests.fakes import step_functions
from tests.fakes.errors import client_error
from tests.unit.one_machine import ARN, PAYLOAD, TO_WORK, WORK_TIMEOUT, World, arn, envelope

ACTIONS: list[LockAction] = ["release", "complete", "retry"]
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
WAIT = timedelta(seconds=WORK_TIMEOUT) + INIT_TIME
MOMENT = timedelta(milliseconds=1)
TTL = 4_000_000_000

THE_END = [
    "ZeroDivisionError",
    "CardDeclined",
    "LockLost",
    "Lambda.TooManyRequestsException",
    "Sandbox.Timedout",
    "Runtime.ExitError",
    "Runtime.OutOfMemory",
    "Function.ResponseSizeTooLarge",
    "Extension.Crash",
]
NO_END = [
    "Lambda.Unknown",
    "Lambda.ServiceException",
    "Lambda.AWSLambdaException",
    "Lambda.SdkClientException",
    "Lambda.ClientExecutionTimeoutException",
    "States.Timeout",
    "States.HeartbeatTimeout",
    "States.TaskFailed",
    "DynamoDB.InternalServerErrorException",
    "OutcomeUnknown",
    "Cancelled",
    "",
    None,
]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Tables of this test's own; it is twelve."""
    with mock_aws():
        monkeypatch.setattr(times, "now", lambda: NOW)
        yield World()


@pytest.fixture
def alice(world: World) -> Operator:
    return Operator(world.machine, by="alice", work_timeout_seconds=WORK_TIMEOUT)


def failed(world: World, error: str | None, closed: datetime) -> Lock:
    """The record of order-1 that its workflow wrote for a person to look at."""
    world.execution("order-1", "FAILED", *TO_WORK, "RecordError", error=error, closed=closed)
    failure = json.dumps({"Error": error, "Cause": None})
    at = times.to_text(closed)
    return world.put(status=FAILED, openStatus="FAILED#3", failure=failure, actualCompletion=at)


# -- one decision ----------------------------------------------------------------------------------
@pytest.mark.parametrize("error", THE_END)
def test_what_the_function_or_its_runtime_says_proves_the_end(error: str):
    """Or that it never ran."""
    assert proves_the_end(error)
    assert works_until(Failure(error, None), times.to_text(NOW), timedelta(seconds=60)) is None


@pytest.mark.parametrize("error", NO_END)
def test_what_somebody_else_says_does_not(error: str | None, monkeypatch: pytest.MonkeyPatch):
    """Nor an error without a name: its work is waited for, from when it was last heard of."""
    monkeypatch.setattr(times, "now", lambda: NOW)
    assert not proves_the_end(error)
    ended = times.to_text(NOW - WAIT + MOMENT)
    assert times.to_text(NOW + MOMENT) == works_until(Failure(error, None), ended, timedelta(seconds=60))
    ended = times.to_text(NOW - WAIT)
    assert works_until(Failure(error, None), ended, timedelta(seconds=60)) is None


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("error", NO_END)
def test_nothing_is_done_while_the_work_may_run(
    world: World, alice: Operator, action: LockAction, error: str | None
):
    """Lambda answered 500, and the function goes on: a retry would charge beside it."""
    lock = failed(world, error, NOW - WAIT + MOMENT)
    with pytest.raises(Refused, match=r"may still run until 2026-01-31T12:00:00\.001Z.* try again then"):
        alice.prepare(action, lock)
    assert lock == world.lock()

    lock = failed(world, error, NOW - WAIT)
    assert lock == alice.prepare(action, lock)


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("error", THE_END)
def test_work_that_has_ended_is_not_waited_for(world: World, alice: Operator, action: LockAction, error: str):
    """A person need not wait for what is over."""
    lock = failed(world, error, NOW)
    assert lock == alice.prepare(action, lock)


def test_a_record_says_how_long_its_own_work_may_run(world: World, alice: Operator):
    """Whatever this stack's work takes."""
    lock = failed(world, "Lambda.Unknown", NOW - WAIT)
    longer = world.put(
        status=lock.status,
        openStatus=lock.open_status,
        failure='{"Error": "Lambda.Unknown", "Cause": null}',
        actualCompletion=lock.actual_completion,
        workTimeoutSeconds=WORK_TIMEOUT + 1,
    )
    with pytest.raises(Refused, match=r"may still run until 2026-01-31T12:00:01\.000Z"):
        alice.prepare("release", longer)


def tasks(*events: tuple[str, str | None]) -> list[dict[str, Any]]:
    """The events of a history, each of a Lambda task, with its error."""
    found = []
    for kind, error in events:
        name = f"{kind[0].lower()}{kind[1:]}EventDetails"
        found.append({"type": kind, name: {"resourceType": "lambda", "error": error}})
    return found


START, DONE = ("TaskScheduled", None), ("TaskSucceeded", None)
LEFT = {
    "another branch": [START, START, ("TaskFailed", "Boom")],
    "a branch of functions": [
        ("LambdaFunctionScheduled", None),
        ("LambdaFunctionScheduled", None),
        ("LambdaFunctionFailed", "Boom"),
    ],
    "a branch beside one that could not be scheduled": [
        ("LambdaFunctionScheduled", None),
        ("LambdaFunctionScheduleFailed", "Boom"),
    ],
    "a time-out that was caught": [START, ("TaskTimedOut", "States.Timeout"), START, ("TaskFailed", "Boom")],
    "other items of a Map": [("MapRunStarted", None), ("MapRunFailed", "States.ItemReaderFailed")],
    "a time-out in an item of a Map": [
        ("MapRunStarted", None),
        ("MapRunSucceeded", None),
        START,
        ("TaskFailed", "Boom"),
    ],
    "a 500 that was retried": [START, ("TaskFailed", "Lambda.ServiceException"), START, DONE],
}
OVER = {
    "one after the other": [START, DONE, START, ("TaskFailed", "Boom")],
    "a retry of what has ended": [START, ("TaskFailed", "Sandbox.Timedout"), START, ("TaskFailed", "Boom")],
    "a confirmation": [START, DONE, START, ("TaskSubmitted", None), ("TaskFailed", "Boom")],
}


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("events", LEFT.values(), ids=LEFT)
def test_an_error_says_nothing_about_the_other_functions_of_the_work(
    world: World, alice: Operator, action: LockAction, events: list[tuple[str, str | None]]
):
    """One branch of a Parallel fails at once, and the function of the other one goes on."""
    for closed, refused in ((NOW - WAIT + MOMENT, True), (NOW - WAIT, False)):
        lock = failed(world, "Boom", closed)
        world.sfn.histories[arn("order-1")][3:3] = tasks(*events)
        if refused:
            with pytest.raises(Refused, match=r"it may still run until 2026-01-31T12:00:00\.001Z"):
                alice.prepare(action, lock)
        else:
            assert lock == alice.prepare(action, lock)


@pytest.mark.parametrize("events", OVER.values(), ids=OVER)
def test_functions_that_have_ended_are_not_waited_for(
    world: World, alice: Operator, events: list[tuple[str, str | None]]
):
    """Nor what the workflow itself calls, before its work and after it."""
    lock = failed(world, "Boom", NOW)
    history = world.sfn.histories[arn("order-1")]
    history[3:3] = tasks(*events)
    history[2:2] = tasks(START)
    history[-1:-1] = tasks(START)
    assert lock == alice.prepare("retry", lock)


def test_a_function_that_the_sdk_integration_called_is_waited_for(world: World, alice: Operator):
    """Its error is the service's, which was caught; the error on record is another state's."""
    lock = failed(world, "Boom", NOW - WAIT + MOMENT)
    events = tasks(START, ("TaskFailed", "Lambda.SdkClientException"), START, ("TaskFailed", "Boom"))
    events[1]["taskFailedEventDetails"]["resourceType"] = "aws-sdk:lambda"
    world.sfn.histories[arn("order-1")][3:3] = events

    with pytest.raises(Refused, match=r"it may still run until 2026-01-31T12:00:00\.001Z"):
        alice.prepare("retry", lock)


@pytest.mark.parametrize("integration", ["states", "aws-sdk:sfn"])
@pytest.mark.parametrize("end", [("TaskSucceeded", None), ("TaskFailed", "States.TaskFailed")])
def test_an_execution_that_the_work_has_started_may_leave_a_function(
    world: World, alice: Operator, integration: str, end: tuple[str, str | None]
):
    """It may have caught a time-out of that function, and the work its failure. Its history is not read."""
    lock = failed(world, "Boom", NOW - WAIT + MOMENT)
    events = tasks(START, end, START, ("TaskFailed", "Boom"))
    events[1][f"t{end[0][1:]}EventDetails"]["resourceType"] = integration
    world.sfn.histories[arn("order-1")][3:3] = events

    with pytest.raises(Refused, match=r"it may still run until 2026-01-31T12:00:00\.001Z"):
        alice.prepare("retry", lock)


@pytest.mark.parametrize("action", ACTIONS)
def test_a_history_that_lags_behind_says_nothing_about_the_work(
    world: World, alice: Operator, action: LockAction
):
    """The function that goes on may be among the events that are missing."""
    lock = failed(world, "Boom", NOW)
    world.sfn.shown[arn("order-1")] = 3
    with pytest.raises(Refused, match="order-1 has left cannot be seen yet"):
        alice.prepare(action, lock)

    world.sfn.shown.clear()
    assert lock == alice.prepare(action, lock)


def test_a_failed_execution_may_be_too_new_to_be_described(world: World, alice: Operator):
    """Later it is forgotten, and none of its work runs."""
    lock = failed(world, "Boom", NOW)
    world.sfn.forget("order-1")
    for created, refused in ((NOW - YOUNG + MOMENT, True), (NOW - YOUNG, False)):
        new = replace(lock, created=times.to_text(created))
        if refused:
            with pytest.raises(Refused, match="order-1 has left cannot be seen yet"):
                alice.prepare("release", new)
        else:
            assert new == alice.prepare("release", new)


def test_a_deployment_may_let_work_run_longer_than_its_record_says(world: World, alice: Operator):
    """WorkTimeoutSeconds was raised after the execution started, and the function has the new time-out."""
    shorter = WORK_TIMEOUT - 30
    lock = failed(world, "States.Timeout", NOW - WAIT + MOMENT)
    lock = world.put(
        status=lock.status,
        openStatus=lock.open_status,
        failure='{"Error": "States.Timeout", "Cause": null}',
        actualCompletion=lock.actual_completion,
        workTimeoutSeconds=shorter,
    )
    with pytest.raises(Refused, match=r"may still run until 2026-01-31T12:00:00\.001Z"):
        alice.prepare("retry", lock)

    for closed, verdict in ((NOW - WAIT + MOMENT, "alive"), (NOW - WAIT, "unknown")):
        world.execution("order-1", "ABORTED", *TO_WORK, closed=closed)
        assert verdict == settle(world, world.put(workTimeoutSeconds=shorter), "take-over").verdict


@pytest.mark.parametrize("do", ["release", "complete"])
def test_it_is_looked_at_once_more_before_the_write(world: World, alice: Operator, do: str):
    """The operator thinks; somebody redrives the execution, and it fails so."""
    shown = alice.prepare("release", failed(world, "Lambda.Unknown", NOW - WAIT))
    world.execution("order-1", "FAILED", *TO_WORK, "RecordError", error="Lambda.Unknown", closed=NOW)
    with pytest.raises(Refused, match="may still run"):
        alice.release(shown, "x") if do == "release" else alice.complete(shown, "1", "x")
    assert shown == world.lock()


def test_an_error_that_a_dead_owner_could_not_write_is_waited_for_as_well(world: World, alice: Operator):
    """It is written on its behalf first; the wait counts from its death, not from that."""
    given = {"failure": {"Error": "Lambda.ServiceException", "Cause": "500"}}
    for closed, refused in ((NOW - WAIT + MOMENT, True), (NOW - WAIT, False)):
        world.execution("order-1", "ABORTED", *TO_WORK, closed=closed)
        told = json.loads(world.sfn.executions[arn("order-1")]["input"]) | given
        world.sfn.histories[arn("order-1")].insert(
            -1,
            {"type": "TaskStateEntered", "timestamp": closed, "id": 9}
            | {"stateEnteredEventDetails": {"name": "RecordError", "input": json.dumps(told)}},
        )
        lock = world.put()
        if refused:
            with pytest.raises(Refused, match=r"FAILED with Lambda\.ServiceException, which does not say"):
                alice.prepare("retry", lock)
        else:
            assert FAILED == alice.prepare("retry", lock).status


@pytest.mark.parametrize("state", ["DoWork", *sorted(workflow.TAKING_OVER)])
def test_the_monitor_and_a_takeover_wait_as_long(world: World, state: str):
    """A machine that takes over, and the schedule, decide by the same function."""
    for closed, verdict in ((NOW - WAIT + MOMENT, "alive"), (NOW - WAIT, "unknown")):
        world.execution("order-1", "TIMED_OUT", *TO_WORK, state, closed=closed)
        lock = world.put()
        options: dict[str, Any] = {"work_timeout_seconds": WORK_TIMEOUT, "when_outcome_unknown": "take-over"}
        found = settle_owner(lock, world.machine.sfn, world.machine.locks, by="x", **options)
        repairer = Repairer(world.machine.locks, world.machine.sfn, by="x", **options)
        assert verdict == found.verdict == repairer.repair(lock).verdict
        assert lock == world.lock()


# -- owners that cannot be asked for from here -----------------------------------------------------
ELSEWHERE = {
    "region": ARN.replace("eu-west-1", "us-east-1"),
    "account": ARN.replace("123456789012", "210987654321"),
    "partition": ARN.replace("arn:aws:", "arn:aws-cn:"),
}
FAR = pytest.mark.parametrize("machine", ELSEWHERE.values(), ids=ELSEWHERE)


def execution_of(machine: str) -> str:
    return f"{machine.replace(':stateMachine:', ':execution:')}:order-9"


def settle(world: World, lock: Lock, unknown: owner.WhenOutcomeUnknown = "hold") -> owner.Finding:
    return settle_owner(
        lock,
        world.machine.sfn,
        world.machine.locks,
        work_timeout_seconds=WORK_TIMEOUT,
        when_outcome_unknown=unknown,
        by="x",
        home=ARN,
    )


def denied(world: World) -> None:
    """The role may describe this machine's executions only, as in the template."""

    def check(operation: str, about: str) -> None:
        if operation == "describe_execution" and not about.startswith(arn("")):
            raise client_error("AccessDeniedException")

    world.sfn.before_call = check


@FAR
@pytest.mark.parametrize("unknown", ["hold", "take-over"])
def test_an_owner_in_another_region_or_account_is_alive(world: World, machine: str, unknown: Any):
    """Step Functions here does not know it, which says nothing: nobody takes it over, and it is said."""
    lock = world.put(lockedBy=execution_of(machine), requestId="order-9")

    found = settle(world, lock, unknown)

    assert ("alive", False) == (found.verdict, found.wrote)
    assert "in another region or account" in found.reason
    assert execution_of(machine) in found.reason
    assert lock == world.lock()


@pytest.mark.parametrize("unknown", ["hold", "take-over"])
def test_an_owner_that_may_not_be_described_is_alive(world: World, unknown: Any):
    """Another machine's on the same table: CheckOwner does not fail, and says what is to be allowed."""
    denied(world)
    lock = world.put(lockedBy=execution_of(ARN.replace(":m", ":other")), requestId="order-9")

    found = settle(world, lock, unknown)

    assert ("alive", False) == (found.verdict, found.wrote)
    assert "Allow states:DescribeExecution and states:GetExecutionHistory" in found.reason
    assert owner.is_gone(lock, world.machine.sfn, 0) is False
    assert lock == world.lock()


def test_a_history_that_may_not_be_read_leaves_its_owner_alive(world: World):
    """Half a permission."""
    world.execution("order-1", "ABORTED", *TO_WORK)
    world.sfn.refuse("get_execution_history", "AccessDeniedException")
    assert "alive" == settle(world, world.put()).verdict


def test_the_schedule_is_loud_about_its_own_machine_only(world: World):
    """A permission that is missing for its own executions is a fault, and counted as skipped."""
    world.sfn.refuse("describe_execution", "AccessDeniedException")
    repairer = Repairer(
        world.machine.locks,
        world.machine.sfn,
        work_timeout_seconds=60,
        when_outcome_unknown="hold",
        by="x",
        home=ARN,
    )
    other = world.put("k", lockedBy=execution_of(ARN.replace(":m", ":other")))
    assert "alive" == repairer.repair(other).verdict
    with pytest.raises(OwnerHidden, match="may not be looked at"):
        repairer.repair(world.put())


@FAR
def test_a_client_waits_for_an_owner_elsewhere(world: World, machine: str):
    """It runs, as far as anybody here can know: nothing is started."""
    world.execution("order-1", "FAILED", error="AlreadyInProgress")
    world.put(
        lockedBy=execution_of(machine), requestId="order-9", expectedCompletion="2020-01-01T00:00:00.000Z"
    )

    receipt = world.client.start("order-1", PAYLOAD, check_owner=True)

    assert ("RUNNING", True, []) == (receipt.status, receipt.duplicate, world.sfn.started)


# -- another machine's record ----------------------------------------------------------------------
OTHERS = {**ELSEWHERE, "machine": ARN.replace(":m", ":other"), "longer name": f"{ARN}2"}


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize(
    ("status", "open_status"), [(INPROGRESS, "INPROGRESS#3"), (FAILED, "FAILED#3"), (RELEASED, None)]
)
@pytest.mark.parametrize("machine", OTHERS.values(), ids=OTHERS)
def test_another_machine_s_record_is_its_own_stack_s_to_settle(
    world: World, alice: Operator, machine: str, status: str, open_status: str | None, action: LockAction
):
    """This one would run its own work, and does not know how long the other's may take."""
    ttl = TTL if open_status is None else None
    lock = world.put(
        lockedBy=execution_of(machine), requestId="order-9", status=status, openStatus=open_status, ttl=ttl
    )

    told = r"not this machine's .*order-9\. Nothing was written\. .* If that machine is gone, no command"
    with pytest.raises(Refused, match=told):
        alice.prepare(action, lock)
    with pytest.raises(Refused, match="not this machine's"):
        alice.payload_of(lock)
    with pytest.raises(Refused, match="not this machine's"):
        alice.retry(lock, {"payload": PAYLOAD}, "x")
    assert (lock, [], []) == (world.lock(), world.sfn.started, next_steps(lock, runs=False, own=False))


def test_cancelling_leaves_another_machine_s_lock(world: World):
    """Only this machine's execution is stopped."""
    denied(world)
    world.execution("order-1", "RUNNING", "AcquireLock")
    lock = world.put(lockedBy=execution_of(ARN.replace(":m", ":other")), requestId="order-1")

    assert lock == cancel(world.machine, find_running(world.machine, "order-1"), by="alice", why="x").lock
    assert "ABORTED" == world.sfn.executions[arn("order-1")]["status"]


@pytest.mark.parametrize(("status", "diagnosis"), [(INPROGRESS, "running"), (FAILED, "waits for a person")])
def test_show_sends_to_the_other_machine_s_stack(world: World, status: str, diagnosis: str):
    """And gives no command that would be refused."""
    denied(world)
    world.execution("order-1", "FAILED", "AcquireLock", error="AlreadyInProgress", closed=NOW)
    world.put(
        lockedBy=execution_of(ARN.replace(":m", ":other")),
        requestId="order-9",
        status=status,
        openStatus=f"{status}#3",
        created=times.to_text(NOW),
    )

    story = collect(world.client, "order-1")

    assert diagnosis == story.diagnosis
    other = ARN.replace(":m", ":other")
    assert (NextStep("show request", "order-9", lock_token="m/order-1", machine=other),) == story.next_steps
    assert "HIDDEN" == collect_owner(world.client, world.lock()).status


def test_throttling_is_no_missing_permission(world: World):
    """It passes, so nothing is concluded from it."""
    world.sfn.refuse("describe_execution", "ThrottlingException")
    with pytest.raises(Unavailable):
        settle(world, world.put())


# -- an owner that died without an outcome ---------------------------------------------------------
DIED = {
    "in its work": (TO_WORK, {}, True),
    "before its work": (TO_WORK[:2], {}, False),
    "with an outcome": (
        (*TO_WORK, "RecordError"),
        {"given": envelope() | {"failure": {"Error": "Boom"}}},
        False,
    ),
    "to cancel its request": (TO_WORK, {"error": "Cancelled"}, False),
    "with too large a result": (TO_WORK, {"error": "States.DataLimitExceeded"}, False),
}


@pytest.mark.parametrize(("states", "end", "waits"), DIED.values(), ids=DIED)
def test_until_when_no_start_settles_a_dead_owner_is_told_while_it_is_true(
    world: World, states: tuple[str, ...], end: dict[str, Any], waits: bool
):
    """As long as `settle_owner` calls it alive, and no longer."""
    for closed, may_run in ((NOW - WAIT + MOMENT, waits), (NOW - WAIT, False)):
        world.execution("order-1", "ABORTED", *states, closed=closed, **end)
        lock = world.put(created=times.to_text(NOW - WAIT), workTimeoutSeconds=WORK_TIMEOUT)
        work = owner.unsettled_work(lock, world.machine.owner(lock), world.sfn)
        found = settle_owner(
            lock,
            world.sfn,
            world.machine.locks,
            work_timeout_seconds=WORK_TIMEOUT,
            when_outcome_unknown="take-over",
            by="test",
            home=ARN,
        )
        assert (OpenWork(times.to_text(NOW + MOMENT)) if may_run else None) == work
        assert may_run == (found.verdict == "alive")


def test_it_is_not_told_of_an_owner_that_died_taking_over(world: World):
    """Whether a start settles it depends on WhenOutcomeUnknown."""
    world.execution("order-1", "ABORTED", *TO_WORK[:2], "TakeOverLock", closed=NOW)
    lock = world.put(workTimeoutSeconds=WORK_TIMEOUT)
    assert owner.unsettled_work(lock, world.machine.owner(lock), world.sfn) is None


@pytest.fixture
def died(world: World) -> Lock:
    """The record of order-1, whose execution was stopped in its work a moment ago."""
    world.execution("order-1", "ABORTED", *TO_WORK, closed=NOW)
    return world.put(workTimeoutSeconds=WORK_TIMEOUT)


UNTIL = times.to_text(NOW + WAIT)
LOOKS = (NextStep("show request", "order-1"),)
"""`wait` ended at once and named itself: a loop that does not wait."""


@pytest.mark.usefixtures("died")
def test_show_says_until_when_a_dead_owner_cannot_be_settled(world: World):
    """It named a start that checks the owner, which did nothing, and then named that start again."""
    story = collect(world.client, "order-1")

    assert "unsettled" == story.diagnosis
    assert f"may run until {UNTIL} or later, and no start can settle it before" in story.summary
    assert LOOKS == story.next_steps


@pytest.mark.parametrize("action", ACTIONS)
def test_a_refused_command_says_until_when(world: World, alice: Operator, died: Lock, action: LockAction):
    """It said a minute."""
    with pytest.raises(Refused, match=f"may run until {UNTIL} or later") as refused:
        alice.prepare(action, died)

    assert LOOKS == refused.value.next_steps
    assert died == world.lock()


@pytest.mark.usefixtures("died")
def test_wait_says_until_when(world: World, monkeypatch: pytest.MonkeyPatch):
    """Its owner is dead, and an earlier start cannot settle it."""
    passed = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: passed[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: passed.append(passed.pop() + seconds))

    with pytest.raises(Unsettled, match=f"may run until {UNTIL} or later.*check_owner=True") as unsettled:
        world.client.wait("order-1", timeout_seconds=60)

    assert LOOKS == unsettled.value.next_steps


def test_an_execution_that_is_the_work_is_named_and_waited_for(world: World, monkeypatch: pytest.MonkeyPatch):
    """`show` named a start that checks the owner, which did nothing, and a wait ended at once."""
    passed = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: passed[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: passed.append(passed.pop() + seconds))
    child = world.start_child(world.put(workTimeoutSeconds=WORK_TIMEOUT), "ABORTED")

    story = collect(world.client, "order-1")

    assert ("unsettled", (NextStep("wait for request", "order-1"),)) == (story.diagnosis, story.next_steps)
    assert f"{child}, which it has started for its work, still runs" in story.summary
    with pytest.raises(WaitTimeout):
        world.client.wait("order-1", timeout_seconds=60)
    world.sfn.close(child, "ABORTED", at=NOW - WAIT)
    with pytest.raises(Unsettled, match=r"Start the request again with check_owner=True"):
        world.client.wait("order-1", timeout_seconds=60)


def test_a_history_may_take_the_time_of_the_wait(world: World, monkeypatch: pytest.MonkeyPatch):
    """It tells that the execution which is the work still runs, so a wait may not end before its time."""
    passed = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: passed[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: passed.append(passed.pop() + seconds))
    world.start_child(world.put(workTimeoutSeconds=WORK_TIMEOUT), "ABORTED")
    monkeypatch.setattr(step_functions, "PAGE", 1)
    world.sfn.before_call = lambda called, _arn: passed.append(
        passed.pop() + 0.5 * (called == "get_execution_history")
    )

    with pytest.raises(WaitTimeout):
        world.client.wait("order-1", timeout_seconds=60)


def held_with_child(world: World) -> tuple[Lock, str]:
    """A request that waits for a person, and the execution that is its work: it was redriven and runs."""
    failure = json.dumps({"Error": "States.TaskFailed", "Cause": None})
    lock = world.put(status=FAILED, openStatus="FAILED#3", failure=failure, workTimeoutSeconds=WORK_TIMEOUT)
    child = world.start_child(lock)
    world.sfn.executions[arn("order-1")]["stopDate"] = NOW - WAIT
    return lock, child


def test_a_person_is_told_that_the_execution_that_is_the_work_runs_again(world: World):
    """`show` named commands that were all refused, and said that nothing else runs."""
    _, child = held_with_child(world)

    story = collect(world.client, "order-1")

    assert ("waits for a person", ()) == (story.diagnosis, story.next_steps)
    assert f"{child}, which it has started for its work, still runs. Wait for its end" in story.summary

    world.sfn.close(child, "FAILED", at=NOW)
    story = collect(world.client, "order-1")
    assert f"may run until {UNTIL} or later; both commands are refused until then" in story.summary


def test_an_execution_that_is_the_work_and_has_succeeded_ends_the_work(world: World, alice: Operator):
    """The lock is completed at once, and `show` names nothing else. It said to run the work again."""
    lock, child = held_with_child(world)
    world.sfn.executions[child]["output"] = '{"paid":7}'
    world.sfn.close(child, "SUCCEEDED", at=NOW)

    story = collect(world.client, "order-1")

    assert (NextStep("complete lock", lock.lock_token),) == story.next_steps
    assert f"{child}, which is its work, has succeeded" in story.summary
    assert "COMPLETED" == alice.complete(alice.prepare("complete", lock), '{"paid":7}', "looked").status


def test_an_execution_that_is_the_work_and_hidden_is_named(world: World):
    """`show` named commands that were all refused, and said nothing of it."""
    _, child = held_with_child(world)
    world.sfn.refuse("describe_execution", "AccessDeniedException", child)

    story = collect(world.client, "order-1")

    assert () == story.next_steps
    assert f"{child} may not be looked at from here" in story.summary


def test_a_start_that_was_in_vain_is_not_advised_again_while_the_work_is_hidden(world: World):
    """Nor is the execution that is hidden kept back."""
    child = world.start_child(world.put(workTimeoutSeconds=WORK_TIMEOUT), "ABORTED")
    world.sfn.executions[arn("order-1")]["stopDate"] = NOW - WAIT
    world.sfn.refuse("describe_execution", "AccessDeniedException", child)
    story = collect(world.client, "order-1")
    assert ["start request"] == [step.action for step in story.next_steps]
    assert f"{child} may not be looked at from here" in story.summary

    world.execution("order-1--2", "FAILED", "AcquireLock", error="AlreadyInProgress", closed=NOW)
    story = collect(world.client, "order-1")
    assert ("unsettled", ()) == (story.diagnosis, story.next_steps)


def test_the_commands_settle_what_the_functions_may_not_look_at(world: World, alice: Operator):
    """`show` named a start for ever, and each left one more execution that found the owner alive."""
    child = world.start_child(world.put(workTimeoutSeconds=WORK_TIMEOUT), "ABORTED")
    world.sfn.executions[arn("order-1")]["stopDate"] = NOW - WAIT
    world.sfn.close(child, "FAILED", "Mine", at=NOW - WAIT)
    assert ["start request"] == [step.action for step in collect(world.client, "order-1").next_steps]

    world.execution("order-1--2", "FAILED", "AcquireLock", error="AlreadyInProgress", closed=NOW)
    story = collect(world.client, "order-1")
    assert ["start request", "complete lock", "retry lock"] == [step.action for step in story.next_steps]
    assert f"may not look at the execution {child}" in story.summary
    assert FAILED == alice.prepare("retry", world.lock()).status


def test_an_execution_that_is_only_a_part_of_the_work_does_not_end_it(world: World, alice: Operator):
    """Its name says so. Its success says nothing about the rest."""
    _, child = held_with_child(world)
    lock = world.put(
        status=FAILED, openStatus="FAILED#3", attempt=2, workTimeoutSeconds=WORK_TIMEOUT, failure="{}"
    )
    world.sfn.executions[child]["output"] = "1"
    world.sfn.close(child, "SUCCEEDED", at=NOW)

    assert f"may run until {UNTIL}" in collect(world.client, "order-1").summary
    with pytest.raises(Refused, match=f"may still run until {UNTIL}"):
        alice.prepare("complete", lock)


def test_show_says_until_when_another_function_of_failed_work_may_run(world: World):
    """The error on record proves nothing about it, and the commands are refused."""
    failed(world, "Boom", NOW)
    failure = '{"Error": "Boom", "Cause": null}'
    at = times.to_text(NOW)
    world.put(
        status=FAILED, openStatus="FAILED#3", failure=failure, actualCompletion=at, workTimeoutSeconds=60
    )
    assert "may run until" not in collect(world.client, "order-1").summary

    world.sfn.histories[arn("order-1")][3:3] = tasks(*LEFT["another branch"])
    for one in world.sfn.histories[arn("order-1")]:
        one.setdefault("timestamp", NOW)
        one.setdefault("id", 9)
    assert f"may run until {UNTIL} or later" in collect(world.client, "order-1").summary


@pytest.mark.parametrize(
    "error", ["ThrottlingException", "KmsInvalidStateException", HistoryTooLong("order-1")], ids=str
)
@pytest.mark.usefixtures("died")
def test_a_wait_whose_history_does_not_come_names_no_start_that_may_settle_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, error: str | Exception
):
    """Whether a start can settle the lock is in the history, for which `show` takes its time."""
    passed = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: passed[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: passed.append(passed.pop() + seconds))
    world.sfn.refuse("get_execution_history", error)

    with pytest.raises(Unsettled, match=r"could not be found out") as unsettled:
        world.client.wait("order-1", timeout_seconds=60)
    assert (NextStep("show request", "order-1"),) == unsettled.value.next_steps
