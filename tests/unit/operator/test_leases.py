"""Owners that are no execution: alive until their lease ends, then unknown, for all that look after locks."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from steponce import Guard, Unsettled
from steponce.aws import times
from steponce.cli.console import links
from steponce.errors import RecordChanged, Refused, RequestNotFound
from steponce.failure import Failure
from steponce.locks.record import Lock
from steponce.next_step import NextStep
from steponce.operator.cancel import cancel
from steponce.operator.cancel_report import meaning
from steponce.operator.cancellable import find_running
from steponce.operator.erasure import erase, find_kept
from steponce.operator.locks import Operator
from steponce.operator.next_steps import next_steps
from steponce.operator.records import find_lock
from steponce.recovery.leases import lease_is_over
from steponce.recovery.owner import Finding, WhenOutcomeUnknown, is_gone, settle_owner
from steponce.recovery.repair import Repairer
from steponce.report.collector import collect, collect_owner
from steponce.request.machine import is_owner_open
from steponce.workflow import COMPLETED, FAILED, INPROGRESS, OUTCOME_UNKNOWN, RELEASED
from tests.unit.one_machine import ARN, FAR, PAYLOAD, World, arn
from tests.unit.shared_clients import SharedClients

OVER = "2020-01-01T00:00:00.000Z"
OWNER = "process/host/17"
FAILURE = Failure("Boom", None)


def put(world: World, lease_until: str | None, **attributes: Any) -> Lock:
    """The lock of plain Python."""
    return world.put(lockedBy=OWNER, leaseUntil=lease_until, **attributes)


def settle(world: World, lock: Lock, unknown: WhenOutcomeUnknown = "take-over", **options: Any) -> Finding:
    """What becomes of its owner."""
    return settle_owner(
        lock,
        world.machine.sfn,
        world.machine.locks,
        work_timeout_seconds=60,
        when_outcome_unknown=unknown,
        by="check_owner",
        home=ARN,
        **options,
    )


def without_lease(lock: Lock) -> Lock:
    """The copy that the open index holds."""
    return replace(lock, lease_until=None)


@pytest.mark.parametrize("unknown", ["hold", "take-over"])
def test_it_is_alive_until_its_lease_ends(world: World, unknown: WhenOutcomeUnknown):
    """Whichever copy of the record is looked at."""
    lock = put(world, FAR)
    assert {"alive"} == {settle(world, copy, unknown).verdict for copy in (lock, without_lease(lock))}
    assert "alive" == settle(world, replace(lock, lease_until=OVER), unknown).verdict  # extended since
    assert lock == world.lock()


def test_after_its_lease_its_outcome_is_unknown(world: World):
    """Never idle: whoever asks next may take it over."""
    lock = put(world, OVER)
    assert Finding("unknown") == settle(world, lock) == settle(world, without_lease(lock))
    assert lock == world.lock()
    assert is_gone(lock, world.machine.sfn, 0)


def test_after_its_lease_it_is_held_for_a_person(world: World):
    """On the open index, with who it was."""
    found = settle(world, without_lease(put(world, OVER)), "hold")
    assert Finding("settled", wrote=True) == found
    lock = world.lock()
    assert (FAILED, OUTCOME_UNKNOWN, "FAILED#3") == (lock.status, lock.failure.error, lock.open_status)
    assert OWNER in str(lock.failure.cause)
    assert ("check_owner", "held") == (lock.interventions[0].by, lock.interventions[0].what)


def test_without_any_lease_it_is_waited_for_as_for_an_execution(world: World):
    """Somebody else's record: a quarter of an hour."""
    assert "unknown" == settle(world, put(world, None)).verdict
    assert "alive" == settle(world, put(world, None, created=times.now_text())).verdict


def test_a_record_that_has_changed_needs_no_help(world: World):
    """Its owner was faster."""
    lock = put(world, OVER)
    after = put(world, None, status=COMPLETED, openStatus=None, result='"done"')
    assert Finding("settled") == settle(world, lock, "hold")
    assert after == world.lock()


def test_a_write_for_it_gives_way_to_an_extension(world: World):
    """Of the very lease that was over a moment ago."""
    lock = put(world, OVER)
    extended = put(world, FAR)
    locks = world.machine.locks
    written = [
        locks.hold(lock, FAILURE, by="x", why="y"),
        locks.complete(lock, "1", by="x", why="y"),
        locks.release(lock, FAILURE, by="x", why="y"),
    ]
    assert [False] * 3 == written
    assert extended == world.lock()


def test_a_lease_left_over_says_nothing_of_an_execution(world: World):
    """It is asked."""
    lock = world.put(leaseUntil=FAR)
    assert not lock.is_leased(times.now_text())
    assert "unknown" == settle(world, lock).verdict


def test_an_execution_s_lock_has_no_lease_that_can_be_over(world: World):
    """A guard that waits for the lock would take it from an execution whose work runs for hours."""
    assert {False} == {lease_is_over(lock) for lock in (world.put(), world.put(leaseUntil=OVER))}


@pytest.mark.parametrize(
    ("lease", "unknown", "verdict", "status"),
    [
        (FAR, "hold", "alive", INPROGRESS),
        (OVER, "hold", "settled", FAILED),
        (OVER, "take-over", "unknown", INPROGRESS),
    ],
)
def test_the_repair_never_releases_it(
    world: World, lease: str, unknown: WhenOutcomeUnknown, verdict: str, status: str
):
    """The monitor goes by the open index, which has no leases."""
    repairer = Repairer(
        world.machine.locks,
        world.machine.sfn,
        work_timeout_seconds=60,
        when_outcome_unknown=unknown,
        by="find_overdue",
        home=ARN,
    )
    assert verdict == repairer.repair(without_lease(put(world, lease))).verdict
    assert status == world.lock().status


# -- Operators -----------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["release", "complete"])
def test_it_cannot_be_settled_by_hand_while_its_lease_runs(world: World, alice: Operator, action: Any):
    """Nobody can stop it."""
    put(world, FAR)
    with pytest.raises(Refused, match=f"held by {OWNER}, which no command can stop, until {FAR}"):
        alice.prepare(action, find_lock(world.machine, "order-1"))


def test_after_its_lease_it_can_be_settled_by_hand(world: World, alice: Operator):
    """Released, or completed."""
    put(world, OVER)
    assert RELEASED == alice.release(alice.prepare("release", world.lock()), "no charge in the log").status
    put(world, OVER)
    assert '{"a":1}' == alice.complete(alice.prepare("complete", world.lock()), '{"a":1}', "as logged").result


def test_what_an_operator_was_shown_may_be_extended(world: World, alice: Operator):
    """Then nothing is written."""
    lock = alice.prepare("release", put(world, OVER))
    put(world, FAR)
    with pytest.raises(RecordChanged):
        alice.release(lock, "no charge in the log")


def test_its_recorded_error_is_settled_at_once(world: World, alice: Operator):
    """It has said itself that it is over, whatever the error."""
    error = json.dumps({"Error": "States.Timeout", "Cause": None})
    now = times.now_text()
    put(world, None, status=FAILED, openStatus="FAILED#3", failure=error, created=now, actualCompletion=now)
    assert RELEASED == alice.release(alice.prepare("release", world.lock()), "not charged").status


def test_it_cannot_be_started_again_by_a_command(world: World, alice: Operator):
    """No workflow has its work. What is advised instead is allowed."""
    put(world, OVER)
    with pytest.raises(Refused, match=r"no command can start\. Release the lock, and run") as raised:
        alice.prepare("retry", world.lock())
    assert ["release lock"] == [step.action for step in raised.value.next_steps]
    assert RELEASED == alice.release(alice.prepare("release", world.lock()), "not charged").status

    with pytest.raises(Refused, match=r"no command can start\. The lock is free: run that") as raised:
        alice.prepare("retry", world.lock())
    assert () == raised.value.next_steps


@pytest.mark.parametrize(
    ("lease", "status", "says"),
    [(None, COMPLETED, "its answer to everyone"), (FAR, INPROGRESS, f"until {FAR}")],
)
def test_a_command_that_cannot_start_it_advises_no_release_that_is_refused(
    world: World, alice: Operator, lease: str | None, status: str, says: str
):
    """Its record is an answer, or it runs."""
    put(world, lease, status=status, openStatus="INPROGRESS#3" if lease else None)
    with pytest.raises(Refused, match=says) as raised:
        alice.prepare("retry", world.lock())
    assert () == raised.value.next_steps


def test_the_next_steps_fit_it(world: World):
    """Neither cancel nor retry."""
    lock = put(world, OVER)
    assert [] == next_steps(lock, runs=True)
    steps = next_steps(lock, runs=False)
    assert [NextStep("complete lock", "m/order-1"), NextStep("release lock", "m/order-1")] == steps
    assert [] == next_steps(put(world, None, status=RELEASED), runs=False)
    assert {} == links(OWNER, {"FunctionLogs": "group"})


def test_cancel_says_that_it_cannot_be_stopped(world: World):
    """And until when it holds the lock."""
    put(world, FAR)
    with pytest.raises(Refused, match=f"held by {OWNER}, which no command can stop. Its lease ends at {FAR}"):
        find_running(world.machine, "order-1")


@pytest.mark.parametrize(
    "attributes",
    [{"lockedBy": OWNER, "status": COMPLETED, "openStatus": None, "result": "7"}, {}],
    ids=["its answer", "a forgotten execution's lock"],
)
def test_cancel_advises_no_release_of_what_it_does_not_hold(world: World, attributes: dict[str, Any]):
    """A final answer is not released, and how an execution has ended is for `show` to say."""
    world.put(**attributes)
    with pytest.raises(RequestNotFound, match="no execution of a request 'order-1'"):
        find_running(world.machine, "order-1")


@pytest.mark.parametrize("lease", [FAR, OVER])
def test_cancel_stops_an_execution_that_waits_behind_it(world: World, lease: str):
    """The lock stays with its holder."""
    before = put(world, lease)
    world.execution("order-1", "RUNNING", "AcquireLock")
    running = find_running(world.machine, "order-1")

    after = cancel(world.machine, running, by="alice", why="by mistake").lock

    assert before == after == world.lock()
    assert "ABORTED" == world.sfn.executions[arn("order-1")]["status"]
    assert f"held by another request ({OWNER}), which goes on" in meaning(running, after)


def test_erase_waits_for_it_and_takes_its_answers(world: World):
    """As with any record."""
    put(world, FAR)
    with pytest.raises(Refused, match="in progress"):
        find_kept(world.machine, world.steps, "m/")
    put(world, None, status=COMPLETED, openStatus=None, result="1")
    assert 0 == erase(world.machine, world.steps, find_kept(world.machine, world.steps, "m/"))
    assert world.machine.locks.get("m/order-1") is None


@pytest.mark.parametrize(
    ("attributes", "diagnosis", "says"),
    [
        ({"leaseUntil": FAR}, "running", f"plain Python ({OWNER}), which will be done by {FAR}"),
        ({"leaseUntil": OVER}, "unsettled", f"The lease of plain Python ({OWNER}) was over at {OVER}"),
        (
            {"status": FAILED, "openStatus": "FAILED#3", "failure": '{"Error":"Boom"}'},
            "waits for a person",
            f"The work of plain Python ({OWNER}) failed with Boom",
        ),
        ({"status": COMPLETED, "openStatus": None, "result": "1"}, "completed", "Completed"),
        ({"status": RELEASED, "openStatus": None}, "released", "the lock is free"),
    ],
)
def test_show_tells_of_it(world: World, attributes: Any, diagnosis: str, says: str):
    """Under the request's own id and key."""
    world.put(**{"lockedBy": OWNER, "actualCompletion": OVER} | attributes)
    story = collect(world.client, "order-1")
    assert (diagnosis, True) == (story.diagnosis, says in story.summary), story.summary
    assert "retry lock" not in [step.action for step in story.next_steps]
    assert story.record is not None
    assert attributes.get("leaseUntil") == story.record.lease_until


def test_inspect_tells_whether_its_lease_runs(world: World):
    """And does not ask Step Functions for it."""
    assert "LEASED" == collect_owner(world.client, put(world, FAR)).status
    assert "GONE" == collect_owner(world.client, put(world, OVER)).status


# -- The client ----------------------------------------------------------------------------------


def test_the_client_starts_nothing_while_its_lease_runs(world: World):
    """Not even when it is to ask whether the owner lives."""
    lock = put(world, FAR, expectedCompletion=OVER)
    world.execution("order-1", "FAILED", "AcquireLock", error="AlreadyInProgress")
    told = world.client.start("order-1", PAYLOAD, check_owner=True)
    assert ("RUNNING", True, OWNER) == (told.status, told.duplicate, told.execution_arn)
    assert [] == world.sfn.started
    assert is_owner_open(None, lock)


def test_the_client_starts_an_attempt_that_settles_it_after_its_lease(world: World):
    """Which asks check_owner."""
    put(world, OVER)
    world.execution("order-1", "FAILED", "AcquireLock", error="AlreadyInProgress")
    world.client.start("order-1", PAYLOAD, check_owner=True)
    assert ["order-1--2"] == [started["name"] for started in world.sfn.started]


def test_waiting_for_it_in_vain_says_so(world: World, monkeypatch: pytest.MonkeyPatch):
    """Its lease is over."""
    put(world, OVER)
    world.execution("order-1", "FAILED", "AcquireLock", error="AlreadyInProgress")
    monkeypatch.setattr("steponce.request.wait.time.sleep", lambda _seconds: None)
    with pytest.raises(Unsettled, match=f"the lease of {OWNER} is over") as raised:
        world.client.wait("order-1", timeout_seconds=100)
    assert (NextStep("start request", "order-1", check_owner=True),) == raised.value.next_steps


def test_a_guard_s_answer_is_the_client_s_too(world: World):
    """Under the key that the machine gives the same id."""
    guard = Guard("locks", rules=world.client.rules, session=SharedClients("eu-west-1"))
    with guard.begin("m/order-1", PAYLOAD) as run:
        run.complete({"chargeId": "ch_1"})
    told = world.client.status("order-1")
    assert ("COMPLETED", {"chargeId": "ch_1"}, "order-1") == (told.status, told.result, told.request_id)
