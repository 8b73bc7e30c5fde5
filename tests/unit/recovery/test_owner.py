"""What became of a lock's owner: every verdict, and what is written on its behalf."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from steponce import executions, workflow
from steponce.errors import Unavailable
from steponce.failure import Failure
from steponce.locks.record import Lock
from steponce.locks.table import Locks
from steponce.recovery import owner
from steponce.workflow import COMPLETED, FAILED, OUTCOME_UNKNOWN
from tests.fakes.step_functions import StepFunctions
from tests.unit.one_owner import (
    BY_HAND,
    ENVELOPE,
    FAILURE,
    ITEM,
    JUST_NOW,
    KEPT_UNTIL,
    NOW,
    RESULT,
    STATES_AND_ENDS,
    TO_WORK,
    WORK_TIMEOUT,
    Stack,
    dead_owner,
    history,
)


@pytest.mark.parametrize("status", ["RUNNING", "PENDING_REDRIVE"])
@pytest.mark.parametrize("state", ["AcquireLock", "DoWork", "CompleteRequest", "ReleaseLock"])
def test_who_runs_is_alive(stack: Stack, status: str, state: str) -> None:
    """In whatever state."""
    events = history(*TO_WORK, (state, ENVELOPE | RESULT), end=None)
    assert "alive" == stack.settle(events, status=status, stopDate=None)
    assert ITEM == stack.item()


def test_who_runs_and_was_started_by_hand_is_alive(stack: Stack) -> None:
    """Its callId is in no input; it was made on the way, and the history has it."""
    by_hand = json.dumps(BY_HAND)
    events = history(("PrepareRequest", BY_HAND), ("AcquireLock", ENVELOPE), end=None)
    assert "alive" == stack.settle(events, status="RUNNING", stopDate=None, input=by_hand)
    assert "alive" == stack.settle(history(end=None), status="RUNNING", stopDate=None, input=by_hand)


@pytest.mark.parametrize(("verdict", "minutes"), [("alive", 0), ("alive", 14.9), ("unknown", 15)])
def test_who_cannot_be_described_is_alive_while_young(stack: Stack, verdict: str, minutes: float) -> None:
    """DescribeExecution is eventually consistent, but not for a quarter of an hour."""
    assert verdict == stack.settle(None, created=NOW - timedelta(minutes=minutes))


@pytest.mark.parametrize("end", STATES_AND_ENDS[:3])
@pytest.mark.parametrize("state", sorted(workflow.BEFORE_WORK))
def test_who_died_before_its_work_was_idle(stack: Stack, state: str, end: str) -> None:
    """Nothing happened, so the lock may be taken over at once."""
    assert "idle" == stack.settle(history((state, ENVELOPE), end=end), stopDate=JUST_NOW)
    assert ITEM == stack.item()


def test_who_died_releasing_its_lock_was_idle(stack: Stack) -> None:
    """Its work has said that nothing happened."""
    assert "idle" == stack.settle(history(*TO_WORK, ("ReleaseLock", ENVELOPE | FAILURE)), stopDate=JUST_NOW)


def test_who_was_told_of_another_s_unwritten_result_was_idle(stack: Stack) -> None:
    """It got the lock afterwards, by a first write that landed late. Its own work has not begun."""
    states = [("CheckOwner", ENVELOPE), ("IsOwnerAlive", ENVELOPE), ("ResultTooLarge", ENVELOPE)]
    events = history(("AcquireLock", ENVELOPE), *states)
    assert "idle" == stack.settle(events, error="ResultTooLarge", stopDate=JUST_NOW)
    events = history(*TO_WORK, ("ResultTooLarge", ENVELOPE))
    assert "unwritten" == stack.settle(events, error="ResultTooLarge", stopDate=JUST_NOW)


@pytest.mark.parametrize("state", ["ReleaseLock", "ReplayError"])
@pytest.mark.parametrize("named", sorted(workflow.FAILING - {"IsErrorNamed"}))
def test_who_had_ended_when_its_first_write_landed_was_idle(stack: Stack, state: str, named: str) -> None:
    """It has released its lock or read another's outcome, and only named its error since."""
    events = history(*TO_WORK, (state, ENVELOPE | FAILURE), ("IsErrorNamed", ENVELOPE), (named, ENVELOPE))
    assert "idle" == stack.settle(events, stopDate=JUST_NOW)
    assert ITEM == stack.item()


@pytest.mark.parametrize("end", STATES_AND_ENDS)
def test_a_result_that_was_not_written_is_written(stack: Stack, end: str) -> None:
    """The work is done; it is not run again for a lost write."""
    events = history(*TO_WORK, ("CompleteRequest", ENVELOPE | RESULT), end=end)
    assert "settled" == stack.settle(events, stopDate=JUST_NOW)
    assert (COMPLETED, '{"chargeId":"ch_1"}') == (stack.lock().status, stack.lock().result)
    assert (None, KEPT_UNTIL) == (stack.lock().open_status, stack.lock().ttl)


@pytest.mark.parametrize("given", [{}, {"work": {"chargeId": "ch_1"}}, {"work": "ch_1"}, {"work": None}])
@pytest.mark.parametrize("unknown", ["hold", "take-over"])
def test_a_result_that_is_nowhere_is_for_a_person(stack: Stack, given: Any, unknown: Any) -> None:
    """The work is done, and a changed workflow has lost its result. Nothing is written, and nothing runs."""
    events = history(*TO_WORK, ("CompleteRequest", ENVELOPE | given))
    assert "unwritten" == stack.settle(events, unknown)
    assert ITEM == stack.item()


@pytest.mark.parametrize("state", ["RecordError", "RecordFinalError"])
@pytest.mark.parametrize("given", [{}, {"failure": "CardDeclined"}, {"failure": None}])
def test_an_error_that_is_nowhere_is_an_unknown_outcome(stack: Stack, state: str, given: Any) -> None:
    """It may have come after the effect."""
    events = history(*TO_WORK, (state, ENVELOPE | given))
    assert "settled" == stack.settle(events, "hold")
    assert (FAILED, "OutcomeUnknown") == (
        stack.lock().status,
        (stack.lock().failure or Failure("", "")).error,
    )


@pytest.mark.parametrize("text", ["null", "false", "0", '""', '"é"', "[]", '{"b":[1.5,null],"a":1}'])
def test_any_result_is_written_as_the_workflow_would(stack: Stack, text: str) -> None:
    """Null and an empty text are results, too."""
    stack.settle(history(*TO_WORK, ("CompleteRequest", ENVELOPE | {"work": {"result": json.loads(text)}})))
    assert text == stack.lock().result


def test_a_final_error_that_was_not_written_is_written(stack: Stack) -> None:
    """CardDeclined stays CardDeclined, and expires as an answer does."""
    assert "settled" == stack.settle(history(*TO_WORK, ("RecordFinalError", ENVELOPE | FAILURE)))
    assert (FAILED, Failure("CardDeclined", "no")) == (stack.lock().status, stack.lock().failure)
    assert (None, KEPT_UNTIL) == (stack.lock().open_status, stack.lock().ttl)


@pytest.mark.parametrize(
    ("failure", "caught"),
    [
        (Failure("ZeroDivisionError", "{}"), {"Error": "ZeroDivisionError", "Cause": "{}"}),
        (Failure(None, None), {"Error": None, "Cause": None}),
        (Failure(None, None), {}),
    ],
)
def test_an_error_that_was_not_written_is_written(stack: Stack, failure: Failure, caught: Any) -> None:
    """On the open index, for a person."""
    assert "settled" == stack.settle(history(*TO_WORK, ("RecordError", ENVELOPE | {"failure": caught})))
    assert (FAILED, failure) == (stack.lock().status, stack.lock().failure)
    assert ("FAILED#3", None) == (stack.lock().open_status, stack.lock().ttl)


@pytest.mark.parametrize("error", sorted(workflow.TOO_LARGE))
def test_a_result_that_no_record_can_hold_is_unwritten(stack: Stack, error: str) -> None:
    """The work is done, and nobody may run it again; a person completes it."""
    events = history(*TO_WORK, ("ResultTooLarge", ENVELOPE | FAILURE))
    assert "unwritten" == stack.settle(events, "hold", error=error)
    assert ITEM == stack.item()


def test_who_died_in_its_work_a_moment_ago_is_alive(stack: Stack) -> None:
    """Stopping an execution does not stop its Lambda."""
    assert "alive" == stack.settle(history(*TO_WORK, end="ExecutionAborted"), "hold", stopDate=JUST_NOW)
    assert ITEM == stack.item()


@pytest.mark.parametrize("end", STATES_AND_ENDS[:3])
def test_who_died_in_its_work_is_unknown(stack: Stack, end: str) -> None:
    """Once its Lambda cannot run any more."""
    closed = NOW - timedelta(seconds=WORK_TIMEOUT) - workflow.INIT_TIME
    assert "unknown" == stack.settle(history(*TO_WORK, end=end), stopDate=closed)
    assert ITEM == stack.item()


@pytest.mark.parametrize(
    ("seconds", "verdict"), [(WORK_TIMEOUT - 30, "unknown"), (WORK_TIMEOUT + 1, "alive")]
)
@pytest.mark.parametrize("index", [True, False])
def test_the_record_says_how_long_its_work_may_run(
    stack: Stack, seconds: int, verdict: str, index: bool
) -> None:
    """Its owner may be of a machine whose time-out is another; the open index leaves the number out."""
    stack.put(workTimeoutSeconds={"N": str(seconds)})
    closed = NOW - timedelta(seconds=WORK_TIMEOUT) - workflow.INIT_TIME
    lock = replace(stack.lock(), work_timeout_seconds=None) if index else stack.lock()
    died = dead_owner(history(*TO_WORK, end="ExecutionAborted"), stopDate=closed)
    found = owner.settle_owner(
        lock,
        died,
        stack.locks,
        work_timeout_seconds=1 if verdict == "alive" else 900,
        when_outcome_unknown="take-over",
        by="check_owner",
    )
    assert verdict == found.verdict


def test_who_died_in_a_state_of_your_own_is_unknown(stack: Stack) -> None:
    """A state that nobody knows of is part of the work."""
    assert "unknown" == stack.settle(history(*TO_WORK, ("AskBank", {})))
    assert "alive" == stack.settle(history(*TO_WORK, ("AskBank", {})), stopDate=JUST_NOW)


@pytest.mark.parametrize("state", sorted(workflow.TAKING_OVER))
def test_who_died_taking_over_is_unknown(stack: Stack, state: str) -> None:
    """
    Nobody knows of the first owner; its successor could not make sure, and its work had not begun. A first
    owner that was redriven meanwhile may have passed its fence, so its work is waited for.
    """
    assert "alive" == stack.settle(history((state, ENVELOPE)), stopDate=JUST_NOW)
    assert "unknown" == stack.settle(history((state, ENVELOPE)))
    assert ITEM == stack.item()
    assert "settled" == stack.settle(history((state, ENVELOPE)), "hold", stopDate=JUST_NOW)


@pytest.mark.parametrize(
    "events",
    [None, history(*TO_WORK), history(("TakeOverLock", ENVELOPE))],
    ids=["not-to-be-described", "in-its-work", "taking-over"],
)
def test_an_unknown_outcome_is_held_for_a_person(stack: Stack, events: Any) -> None:
    """Where WhenOutcomeUnknown says so: FAILED, on the open index, no ttl, and the owner named."""
    assert "settled" == stack.settle(events, "hold")
    assert (FAILED, "FAILED#3", None) == (stack.lock().status, stack.lock().open_status, stack.lock().ttl)
    failure = stack.lock().failure or Failure(None, None)
    assert OUTCOME_UNKNOWN == failure.error
    assert "arn:execution:order-1" in (failure.cause or "")


CANCELLED = {"status": "ABORTED", "error": executions.CANCELLED, "cause": "ann: wrong customer"}
BY = pytest.mark.parametrize("unknown", ["hold", "take-over"])


@BY
@pytest.mark.parametrize("state", sorted(workflow.BEFORE_WORK))
def test_who_was_cancelled_before_its_work_has_failed_for_good(
    stack: Stack, state: str, unknown: Any
) -> None:
    """Everyone who asks gets this answer; nobody takes the lock over."""
    events = history((state, ENVELOPE | FAILURE), end="ExecutionAborted")
    assert "settled" == stack.settle(events, unknown, stopDate=JUST_NOW, **CANCELLED)
    assert (FAILED, executions.CANCELLATION) == (stack.lock().status, stack.lock().failure)
    assert (None, KEPT_UNTIL) == (stack.lock().open_status, stack.lock().ttl)


@BY
@pytest.mark.parametrize("state", ["DoWork", "AskBank", *sorted(workflow.TAKING_OVER)])
def test_who_was_cancelled_in_its_work_is_held_at_once(stack: Stack, state: str, unknown: Any) -> None:
    """Nobody runs it again, so there is no waiting for its Lambda; but it may have taken effect."""
    events = history(*TO_WORK, (state, ENVELOPE), end="ExecutionAborted")
    assert "settled" == stack.settle(events, unknown, stopDate=NOW, **CANCELLED)
    failure = stack.lock().failure or Failure(None, None)
    assert (FAILED, "FAILED#3", None) == (stack.lock().status, stack.lock().open_status, stack.lock().ttl)
    assert "Cancelled" == failure.error
    assert "ann" not in (failure.cause or "")
    assert "may have taken effect" in (failure.cause or "")


@BY
@pytest.mark.parametrize(
    ("state", "left", "status", "error"),
    [
        ("CompleteRequest", RESULT, COMPLETED, None),
        ("RecordFinalError", FAILURE, FAILED, "CardDeclined"),
        ("RecordError", FAILURE, FAILED, "CardDeclined"),
    ],
)
def test_who_was_cancelled_after_its_work_keeps_its_outcome(
    stack: Stack, state: str, left: Any, status: str, error: str | None, unknown: Any
) -> None:
    """It was done before the cancel."""
    events = history(*TO_WORK, (state, ENVELOPE | left), end="ExecutionAborted")
    assert "settled" == stack.settle(events, unknown, stopDate=JUST_NOW, **CANCELLED)
    lock = stack.lock()
    assert (status, error) == (lock.status, lock.failure and lock.failure.error)


def test_an_error_of_the_same_name_is_no_cancel(stack: Stack) -> None:
    """Only who was stopped was cancelled; an execution may fail with any error."""
    events = history(*TO_WORK)
    assert "alive" == stack.settle(events, stopDate=JUST_NOW, error=executions.CANCELLED)
    assert "idle" == stack.settle(history(("AcquireLock", ENVELOPE)), error=executions.CANCELLED)


def test_a_stranger_that_was_cancelled_says_nothing(stack: Stack) -> None:
    """Its cancel is not this lock's."""
    strange = json.dumps(ENVELOPE | {"callId": "stranger"})
    events = history(("AcquireLock", ENVELOPE), end="ExecutionAborted")
    assert "unknown" == stack.settle(events, input=strange, **CANCELLED)
    assert ITEM == stack.item()


@pytest.mark.parametrize("state", ["AcquireLock", "DoWork"])
def test_who_cancelled_and_why_stays_on_record(stack: Stack, state: str) -> None:
    """The failure is gone with the next attempt; a very long cause is cut, since a record holds 400 KB."""
    cause = "ann: " + "x" * 32_000
    stack.settle(history(*TO_WORK[:-1], (state, ENVELOPE)), **CANCELLED | {"cause": cause})
    (done,) = stack.lock().interventions
    assert f"was cancelled in {state} (ann: xxx" in done.why
    assert len(done.why) < 1_500


def test_a_cancel_without_a_cause_says_so(stack: Stack) -> None:
    """Somebody has stopped the execution by hand."""
    stack.settle(history(("AcquireLock", ENVELOPE)), **CANCELLED | {"cause": None})
    assert executions.CANCELLATION == stack.lock().failure
    assert stack.lock().interventions[-1].why.endswith("(Nobody said why.)")


@pytest.mark.parametrize(
    ("found", "events", "described"),
    [
        (owner.Finding("alive"), history(*TO_WORK, end=None), {"status": "RUNNING"}),
        (owner.Finding("unknown"), None, {}),
        (
            owner.Finding("idle", 0, "AcquireLock", Failure("ExecutionAborted", None)),
            history(("AcquireLock", ENVELOPE)),
            {"status": "ABORTED"},
        ),
        (
            owner.Finding("idle", 0, "ReleaseLock", Failure("CardDeclined", "no")),
            history(*TO_WORK, ("ReleaseLock", ENVELOPE | FAILURE)),
            {"status": "TIMED_OUT"},
        ),
        (
            owner.Finding("unknown", 0, "DoWork", Failure("States.Timeout", None)),
            history(*TO_WORK),
            {"status": "TIMED_OUT"},
        ),
        (
            owner.Finding("settled", 0, "CompleteRequest", Failure("E", "c"), wrote=True),
            history(*TO_WORK, ("CompleteRequest", ENVELOPE | RESULT)),
            {"error": "E", "cause": "c"},
        ),
    ],
    ids=["alive", "gone", "idle", "releasing", "at-work", "writing"],
)
def test_a_finding_says_how_the_owner_ended(
    stack: Stack, found: owner.Finding, events: Any, described: dict[str, Any]
) -> None:
    """In which state and with which error; in ReleaseLock, with the one that it was about to write."""
    assert found == stack.find(events, **described)


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        (True, owner.Finding("unwritten", state="ResultTooLarge")),
        (True, owner.Finding("settled", state="CompleteRequest", wrote=True)),
        (True, owner.Finding("settled", state="RecordError", wrote=True)),
        (False, owner.Finding("settled", state="CompleteRequest")),
        (False, owner.Finding("settled", state="DoWork", wrote=True)),
        (False, owner.Finding("idle", state="ReleaseLock", wrote=True)),
    ],
)
def test_work_that_was_done_and_not_written_down_is_a_finalisation_failure(
    expected: bool, found: owner.Finding
) -> None:
    """Counted by the one who repairs it; and as long as nobody can."""
    assert expected is found.is_finalisation_failure


def test_who_settled_stands_in_the_record(stack: Stack) -> None:
    """With what was done, and why."""
    stack.settle(history(*TO_WORK, ("CompleteRequest", ENVELOPE | RESULT)))
    (told,) = stack.lock().interventions
    assert ("check_owner", "completed") == (told.by, told.what)
    assert "died in CompleteRequest" in told.why


def test_a_redriven_owner_that_took_its_lock_anew_is_not_touched(stack: Stack) -> None:
    """The same callId and execution, but a higher attempt: it was found dead before it was redriven."""
    stack.put(attempt={"N": "2"})
    assert "settled" == stack.settle(history(("AcquireLock", ENVELOPE)), **CANCELLED)
    assert ITEM | {"attempt": {"N": "2"}} == stack.item()


def test_a_stranger_under_the_same_name_says_nothing(stack: Stack) -> None:
    """Names come back after 90 days, or with a stack made anew."""
    strange = json.dumps(ENVELOPE | {"callId": "stranger"})
    done = history(*TO_WORK, ("CompleteRequest", ENVELOPE | RESULT))
    assert "unknown" == stack.settle(done, input=strange)
    assert "unknown" == stack.settle(history(("AcquireLock", ENVELOPE)), input=strange)
    assert "unknown" == stack.settle(history(*TO_WORK, end=None), input=strange, status="RUNNING")
    assert ITEM == stack.item()


def test_a_stranger_that_ended_a_moment_ago_is_not_waited_for(stack: Stack) -> None:
    """Its work, which may still run, is not this lock's."""
    strange = json.dumps(ENVELOPE | {"callId": "stranger"})
    assert "unknown" == stack.settle(history(*TO_WORK), input=strange, stopDate=JUST_NOW)


def test_who_died_before_its_work_a_moment_ago_was_idle(stack: Stack) -> None:
    """It ended after it had taken the lock, so nobody waits until the lock is old."""
    events = history(*TO_WORK[:2])
    assert "idle" == stack.settle(events, created=JUST_NOW, stopDate=NOW)


def test_a_stranger_that_was_started_by_hand_is_known_by_its_history(stack: Stack) -> None:
    """Its callId stands in what AcquireLock got."""
    strange = ENVELOPE | {"callId": "stranger"}
    events = history(
        ("PrepareRequest", BY_HAND), ("AcquireLock", strange), ("CompleteRequest", strange | RESULT)
    )
    assert "unknown" == stack.settle(events, input=json.dumps(BY_HAND))
    assert ITEM == stack.item()


def test_an_owner_that_was_started_by_hand_is_known_by_its_history(stack: Stack) -> None:
    """And what it left is written."""
    events = history(("PrepareRequest", BY_HAND), *TO_WORK[1:], ("CompleteRequest", ENVELOPE | RESULT))
    assert "settled" == stack.settle(events, input=json.dumps(BY_HAND))
    assert COMPLETED == stack.lock().status


@pytest.mark.parametrize(
    "events",
    [history(*TO_WORK, end=None), history(("AcquireLock", ENVELOPE), end=None), []],
    ids=["in-its-work", "before-its-work", "empty"],
)
def test_a_history_without_its_end_proves_nothing(stack: Stack, events: Any) -> None:
    """Histories are eventually consistent; who is described as closed may have gone further."""
    assert "alive" == stack.settle(events, "hold")
    assert ITEM == stack.item()


def test_the_end_before_a_redrive_is_not_the_end(stack: Stack) -> None:
    """The history must show as many redrives as the description."""
    first = history(("AcquireLock", ENVELOPE))
    again = [{"type": "ExecutionRedriven"}, *history(*TO_WORK)[1:]]
    assert "alive" == stack.settle(first, redriveCount=1)
    assert "alive" == stack.settle([*first, {"type": "ExecutionRedriven"}], redriveCount=1)
    assert "unknown" == stack.settle(first + again, redriveCount=1)


@pytest.mark.parametrize(("verdict", "minutes"), [("alive", 0), ("alive", 14.9), ("idle", 15)])
def test_a_lock_that_was_taken_after_its_owner_s_end_is_left_alone(
    stack: Stack, verdict: str, minutes: float
) -> None:
    """The owner was redriven and works. DescribeExecution shows its first end, but not for long."""
    taken = NOW - timedelta(minutes=minutes)
    ended = taken - timedelta(milliseconds=1)
    assert verdict == stack.settle(history(("AcquireLock", ENVELOPE)), created=taken, stopDate=ended)


def test_a_lock_that_was_taken_at_a_whole_second_was_taken_before_what_came_next(stack: Stack) -> None:
    """Step Functions writes such a time without `.000`, and that text is the latest of its second."""
    ended = NOW + timedelta(milliseconds=400)
    assert "idle" == stack.settle(history(("AcquireLock", ENVELOPE)), created=NOW, stopDate=ended)


def test_redrives_are_reported() -> None:
    """Whoever takes over compares them once more."""
    found = owner.settle_owner(
        Lock.from_item(ITEM),
        dead_owner(history(), status="RUNNING", redriveCount=2),
        Locks(None, "locks"),
        work_timeout_seconds=WORK_TIMEOUT,
        when_outcome_unknown="hold",
        by="check_owner",
    )
    assert 2 == found.redrive_count


@pytest.mark.parametrize(
    "change",
    [
        {"callId": {"S": "next"}, "lockedBy": {"S": "arn:execution:order-1--2"}},
        {"lockedBy": {"S": "arn:execution:order-2"}},
        {"status": {"S": COMPLETED}, "result": {"S": '"first"'}},
        {"status": {"S": FAILED}},
        {"status": {"S": "RELEASED"}},
    ],
    ids=["taken-over", "same-call", "completed", "failed", "released"],
)
@pytest.mark.parametrize(
    "events",
    [
        history(*TO_WORK, ("CompleteRequest", ENVELOPE | RESULT)),
        history(*TO_WORK, ("RecordFinalError", ENVELOPE | FAILURE)),
        history(*TO_WORK, ("RecordError", ENVELOPE | FAILURE)),
        history(*TO_WORK),
    ],
    ids=["result", "final-error", "error", "unknown"],
)
def test_a_record_that_has_changed_is_not_overwritten(stack: Stack, events: Any, change: Any) -> None:
    """Somebody else was faster; it needs no help any more."""
    stack.put(**change)
    assert "settled" == stack.settle(events, "hold")
    assert ITEM | change == stack.item()


def test_settling_twice_is_settling_once(stack: Stack) -> None:
    """The rule, the schedule and the next request may all come at once."""
    events = history(*TO_WORK, ("CompleteRequest", ENVELOPE | RESULT))
    stack.settle(events)
    before = stack.item()
    assert "settled" == stack.settle(events)
    assert before == stack.item()


@pytest.mark.parametrize(
    ("gone", "described"),
    [
        (True, {"status": "FAILED", "redriveCount": 1}),
        (True, {"status": "ABORTED", "redriveCount": 1}),
        (False, {"status": "RUNNING", "redriveCount": 1}),
        (False, {"status": "PENDING_REDRIVE", "redriveCount": 1}),
        (False, {"status": "FAILED", "redriveCount": 2}),
        (False, {"status": "RUNNING", "redriveCount": 2}),
    ],
)
def test_an_owner_that_was_redriven_is_not_gone(gone: bool, described: dict[str, Any]) -> None:
    """Looked at once more, after the lock was taken over."""
    sfn = dead_owner(history(), **described)
    assert gone is owner.is_gone(Lock.from_item(ITEM), sfn, 1)


def test_an_owner_that_cannot_be_described_is_gone() -> None:
    """It cannot be redriven either."""
    assert owner.is_gone(Lock.from_item(ITEM), dead_owner(None), 0)


@pytest.mark.parametrize("status", ["RUNNING", "FAILED"])
def test_an_owner_whose_name_another_execution_has_is_gone(status: str) -> None:
    """In a stack made anew that may be the very execution that takes the lock over."""
    strange = json.dumps(ENVELOPE | {"callId": "stranger"})
    sfn = dead_owner(history(*TO_WORK), status=status, redriveCount=1, input=strange)
    assert owner.is_gone(Lock.from_item(ITEM), sfn, 0)


def refusing(call: str, code: str) -> StepFunctions:
    """Step Functions that refuses one call."""
    sfn = dead_owner(history(*TO_WORK))
    sfn.refuse(call, code)
    return sfn


@pytest.mark.parametrize("call", ["describe_execution", "get_execution_history"])
def test_a_throttled_look_decides_nothing(stack: Stack, call: str) -> None:
    """Unavailable, so that the workflow looks again."""
    with pytest.raises(Unavailable):
        owner.settle_owner(
            Lock.from_item(ITEM),
            refusing(call, "ThrottlingException"),
            Locks(stack.dynamodb, "locks"),
            work_timeout_seconds=WORK_TIMEOUT,
            when_outcome_unknown="hold",
            by="check_owner",
        )
    assert ITEM == stack.item()


@pytest.mark.parametrize("call", ["describe_execution", "get_execution_history"])
def test_who_may_not_be_looked_at_is_alive_and_why_is_said(stack: Stack, call: str) -> None:
    """Another machine's execution on the same table: old, but nobody may conclude that it is dead."""
    found = owner.settle_owner(
        Lock.from_item(ITEM),
        refusing(call, "AccessDeniedException"),
        Locks(stack.dynamodb, "locks"),
        work_timeout_seconds=WORK_TIMEOUT,
        when_outcome_unknown="take-over",
        by="check_owner",
    )
    assert ("alive", False) == (found.verdict, found.wrote)
    assert "arn:execution:order-1 may not be looked at" in found.reason
    assert ITEM == stack.item()


def test_a_missing_permission_is_raised_as_it_is() -> None:
    """It must not look like an owner that is gone."""
    sfn = refusing("describe_execution", "AccessDeniedException")
    with pytest.raises(ClientError, match="AccessDenied"):
        owner.describe_execution(sfn, "arn:execution:order-1")


@pytest.mark.parametrize(
    ("failure", "described"),
    [
        (Failure("CardDeclined", "no"), {"error": "CardDeclined", "cause": "no"}),
        (Failure("ExecutionAborted", None), {"status": "ABORTED"}),
        (Failure("States.Timeout", None), {"status": "TIMED_OUT"}),
        (Failure("Stopped", "by me"), {"status": "ABORTED", "error": "Stopped", "cause": "by me"}),
        (Failure(None, None), {"status": "FAILED"}),
    ],
)
def test_a_closed_execution_has_an_error(failure: Failure, described: dict[str, Any]) -> None:
    """A name for those that AWS leaves without one."""
    sfn = dead_owner(history(), **described)
    execution = owner.describe_execution(sfn, "arn:execution:order-1")
    assert failure == (execution and execution.failure)
