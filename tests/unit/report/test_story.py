"""The story of a request, told from what Step Functions and the record still know."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from steponce import RequestNotFound
from steponce.aws import times
from steponce.callbacks.answer import Answer
from steponce.callbacks.step import AwaitingStep
from steponce.errors import LockTokenMismatch, OwnerHidden
from steponce.executions import machine_of
from steponce.failure import Failure
from steponce.locks.record import Intervention
from steponce.next_step import NextStep
from steponce.report.collector import collect
from steponce.report.story import Trouble, Waiting
from steponce.request.canonical import canonical_json, sha256
from steponce.request.settings import RequestRules
from steponce.workflow import INIT_TIME
from tests.unit.rate_limited import cause_until
from tests.unit.report.world import (
    FAR,
    HASH,
    NOW,
    PAST,
    PAYLOAD,
    TOKEN,
    FakeSteps,
    World,
    arn,
    at,
    event,
    numbered,
)
from tests.unit.triggers.world import example_event


@pytest.mark.parametrize(("status", "ended"), [("RELEASED", "FAILED"), ("INPROGRESS", "ABORTED")])
def test_the_start_of_a_request_with_its_own_lock_token_names_it(world: World, status: str, ended: str):
    """Without it the work would run under another lock token, or be refused."""
    given = {"requestId": "order-1", "lockToken": "acme/1", "callId": "call-1", "payload": PAYLOAD}
    world.execution("order-1", ended, "AcquireLock", "DoWork", input=json.dumps(given))
    world.record(status, lock_token="acme/1")

    (start,) = collect(world.client, "order-1").next_steps

    assert ("start request", "order-1", "acme/1") == (start.action, start.key, start.lock_token)


def test_a_completed_request_is_told_with_its_result(world: World):
    """Attempt, record and summary agree."""
    world.execution("order-1", "SUCCEEDED", "AcquireLock", "DoWork")
    world.record("COMPLETED", result='{"ok":true}', actual_completion=at(1))

    story = collect(world.client, "order-1")

    assert ("completed", "m/order-1", {"ok": True}) == (
        story.diagnosis,
        story.lock_token,
        story.record and story.record.result,
    )
    assert [("AcquireLock", 1.0), ("DoWork", 1.0)] == [
        (visit.state, visit.seconds) for visit in story.attempts[0].visits
    ]
    assert f"gets this result, until {FAR}" in story.summary


def test_a_result_that_never_expires_is_said_to_last_for_ever(world: World):
    """Nobody reads year 9999 as never."""
    world.execution("order-1", "SUCCEEDED")
    world.record("COMPLETED", result="1", actual_completion=at(1), expires_at=times.NEVER)

    assert "gets this result, for ever." in collect(world.client, "order-1").summary


def test_a_running_request_says_where_it_is(world: World):
    """Running normally, in which state, expected by when; and to wait is next."""
    world.execution("order-1", "RUNNING", "AcquireLock", "DoWork")
    world.record("INPROGRESS", open_status="INPROGRESS#1")

    story = collect(world.client, "order-1")

    assert "running" == story.diagnosis
    assert f"Running normally, in DoWork, and expected by {FAR}. Wait for it." == story.summary
    assert (NextStep("wait for request", "order-1"),) == story.next_steps


def test_an_overdue_request_whose_owner_lives_is_not_to_be_started_again(world: World):
    """It is late, not dead."""
    world.execution("order-1", "RUNNING", "DoWork")
    world.record("INPROGRESS", open_status="INPROGRESS#1", expected_completion=PAST)

    story = collect(world.client, "order-1")

    assert ("overdue", True) == (story.diagnosis, story.record and story.record.overdue)
    assert "its owner lives: it is in DoWork" in story.summary


def test_a_result_that_only_its_record_missed_is_settled_not_unwritten(world: World):
    """CompleteRequest's own input holds the result, so whoever settles can write it."""
    world.execution("order-1", "FAILED", "DoWork", "CompleteRequest", error="States.DataLimitExceeded")
    world.record("INPROGRESS", open_status="INPROGRESS#1")

    assert "unsettled" == collect(world.client, "order-1").diagnosis


@pytest.mark.parametrize("state", ["TakeOverLock", "ConfirmTakeover"])
def test_an_owner_that_died_while_it_took_the_lock_over_has_done_no_work(world: World, state: str):
    """Its input may be too large for the state. Nobody has a result to complete the lock with."""
    world.execution("order-1", "FAILED", "AcquireLock", state, error="States.DataLimitExceeded")
    world.record("INPROGRESS", open_status="INPROGRESS#1")

    assert "unsettled" == collect(world.client, "order-1").diagnosis


@pytest.mark.parametrize("status", ["FAILED", "ABORTED", "TIMED_OUT", "SUCCEEDED"])
def test_a_dead_owner_that_left_its_lock_open_is_to_be_settled(world: World, status: str):
    """The step that settles it is next."""
    world.execution("order-1", status, "DoWork")
    world.record("INPROGRESS", open_status="INPROGRESS#1")

    story = collect(world.client, "order-1")

    assert "unsettled" == story.diagnosis
    assert (NextStep("start request", "order-1", check_owner=True),) == story.next_steps


def test_the_next_step_names_the_key_that_was_given(world: World):
    """Without it, another record would be looked for."""
    world.record("INPROGRESS", request_id="order 1", created=PAST)

    story = collect(world.client, "order 1", lock_token="acme/charge o-1")

    (step,) = story.next_steps
    assert ("order 1", "acme/charge o-1", True) == (step.key, step.lock_token, step.check_owner)
    assert "acme/charge o-1" == world.locks.asked[0]


@pytest.mark.parametrize("record", [None, {"request_id": "other", "locked_by": arn("other")}])
@pytest.mark.parametrize("ended", ["RUNNING", "SUCCEEDED", "FAILED"])
def test_a_request_is_not_found_under_a_lock_token_that_is_not_its_own(
    world: World, record: dict[str, Any] | None, ended: str
):
    """It was called expired, and its work was said to run again; or it got another request's result."""
    world.execution("order-1", ended, "DoWork")
    if record is not None:
        world.record("COMPLETED", lock_token="m/other", payload_hash=HASH, result="7", **record)

    with pytest.raises(RequestNotFound):
        collect(world.client, "order-1", lock_token="m/other")


def test_an_owner_that_finishes_while_it_is_looked_at_is_not_called_dead(world: World):
    """The record is read again before anybody is told to settle it."""
    world.execution("order-1", "SUCCEEDED", "CompleteRequest")
    before = world.record("INPROGRESS", open_status="INPROGRESS#1")
    after = replace(before, status="COMPLETED", result="1", open_status=None, actual_completion=at(1))
    world.locks.readings = [before, after]

    assert "completed" == collect(world.client, "order-1").diagnosis


@pytest.mark.parametrize("released", [True, False])
def test_an_attempt_that_runs_while_the_others_are_looked_at_is_not_called_expired(
    world: World, released: bool
):
    """Its work was said to run again with the next start."""
    world.execution("order-1", "FAILED", "ReleaseLock", error="RetryLater")
    world.execution("order-1--2", "SUCCEEDED", "CompleteRequest")
    before = world.record("RELEASED") if released else None
    second = {"locked_by": arn("order-1--2"), "execution_name": "order-1--2"}
    after = world.record("COMPLETED", result="1", actual_completion=at(1), **second)
    world.locks.readings = [before, after]

    assert "completed" == collect(world.client, "order-1").diagnosis


def test_another_execution_under_the_owners_name_is_not_the_owner(world: World):
    """Names come back after 90 days; a callId never does."""
    world.execution("order-1", "RUNNING", "DoWork")
    world.record("INPROGRESS", call_id="an older call", created=PAST)

    story = collect(world.client, "order-1")

    assert "unsettled" == story.diagnosis
    assert "another one has its name" in story.summary


def test_work_that_is_done_and_unwritten_is_not_to_be_run_again(world: World):
    """The result was too large to record; only a person can say so."""
    world.execution("order-1", "FAILED", "DoWork", "ResultTooLarge", error="ResultTooLarge")
    world.record("INPROGRESS", open_status="INPROGRESS#1")

    story = collect(world.client, "order-1")

    assert "unwritten" == story.diagnosis
    assert "It must not run again." in story.summary
    assert (NextStep("complete lock", "m/order-1"),) == story.next_steps


def test_a_result_that_a_changed_workflow_has_lost_is_looked_up(world: World):
    """A start would find that out each time, and settle nothing."""
    world.execution("order-1", "FAILED", "DoWork", "CompleteRequest", error="States.Runtime")
    world.record("INPROGRESS", open_status="INPROGRESS#1")

    story = collect(world.client, "order-1")

    assert "unwritten" == story.diagnosis
    assert (NextStep("complete lock", "m/order-1"),) == story.next_steps


def test_another_one_s_result_too_large_does_not_hold_a_lock(world: World):
    """Its execution was told that failure, and got the lock afterwards by a first write that landed late."""
    states = ("AcquireLock", "ReadLock", "ReplayError", "IsErrorNamed", "RequestFailed")
    world.execution("order-1", "FAILED", *states, error="ResultTooLarge")
    world.record("INPROGRESS", open_status="INPROGRESS#1")

    assert "unsettled" == collect(world.client, "order-1").diagnosis


def test_a_final_failure_is_the_answer(world: World):
    """It is off the open index, so nobody need look."""
    world.execution("order-1", "FAILED", error="CardDeclined")
    world.record("FAILED", failure=Failure("CardDeclined", "no"), ttl=1, actual_completion=at(1))

    story = collect(world.client, "order-1")

    assert ("failed", "CardDeclined", "no", False) == (
        story.diagnosis,
        story.record and story.record.error,
        story.record and story.record.cause,
        story.record and story.record.on_open_index,
    )


@pytest.mark.parametrize(
    ("lock_token", "says"),
    [("m/order-1", r"another id\.$"), ("acme/1", r"another id and another lock token\.$")],
)
def test_a_new_request_after_a_final_failure_needs_a_lock_token_of_its_own(
    world: World, lock_token: str, says: str
):
    """Under the same one it got the same failure, and was told the same again."""
    world.execution("order-1", "FAILED", error="CardDeclined")
    failure = Failure("CardDeclined", "no")
    world.record("FAILED", failure=failure, ttl=1, actual_completion=at(1), lock_token=lock_token)

    assert re.search(says, collect(world.client, "order-1", lock_token=lock_token).summary)


def test_nor_does_another_id_help_under_the_token_that_another_request_s_id_makes(world: World):
    """A start that names that token meets the same record."""
    world.execution("order-2", "FAILED", "ReplayError", error="CardDeclined")
    failure = Failure("CardDeclined", "no")
    world.record("FAILED", failure=failure, ttl=1, actual_completion=at(1), payload_hash=HASH)

    story = collect(world.client, "order-2", lock_token="m/order-1")
    assert "Failed finally with CardDeclined" in story.summary
    assert story.summary.endswith("another id and another lock token.")


def test_any_other_failure_waits_for_a_person(world: World):
    """It is on the open index until somebody settles it."""
    world.execution("order-1", "FAILED", error="ZeroDivisionError")
    world.record("FAILED", failure=Failure("ZeroDivisionError", None), open_status="FAILED#1")

    story = collect(world.client, "order-1")

    assert "waits for a person" == story.diagnosis
    assert "Find out whether the work took effect" in story.summary
    assert (NextStep("complete lock", "m/order-1"), NextStep("retry lock", "m/order-1")) == story.next_steps


@pytest.mark.parametrize("error", ["States.Timeout", "ZeroDivisionError"])
@pytest.mark.parametrize("seconds_ago", [5, 60])
def test_it_is_said_until_when_the_work_may_run(world: World, error: str, seconds_ago: int):
    """The commands are refused until then, after an error that does not end a function."""
    closed = times.now() - timedelta(seconds=seconds_ago)
    world.execution("order-1", "FAILED", "DoWork", error=error, stopDate=closed)
    failure = Failure(error, None)
    world.record("FAILED", failure=failure, open_status="FAILED#1", work_timeout_seconds=30)

    summary = collect(world.client, "order-1").summary

    until = times.to_text(closed + timedelta(seconds=30) + INIT_TIME)
    said = f"The work may run until {until} or later; both commands are refused until then."
    assert (error == "States.Timeout" and seconds_ago == 5) == (said in summary)
    assert ("refused until" in summary) == (said in summary)


def test_a_failure_without_a_name_is_told_too(world: World):
    """Error and cause may both be null."""
    world.execution("order-1", "FAILED")
    world.record("FAILED", failure=Failure(None, None), open_status="FAILED#1")

    assert "Failed with an error without a name" in collect(world.client, "order-1").summary


def test_a_released_lock_means_that_nothing_happened(world: World):
    """Start it again, the story says."""
    world.execution("order-1", "FAILED", error="RetryLater")
    world.record("RELEASED", failure=Failure("RetryLater", None), ttl=1)

    story = collect(world.client, "order-1")

    assert "released" == story.diagnosis
    assert "Nothing happened (RetryLater)" in story.summary


def test_a_lock_that_a_person_released_says_who_and_why(world: World):
    """Something may have happened; that person knows."""
    done = Intervention(at(2), "alice", "released", "refunded by hand")
    world.execution("order-1", "FAILED", error="Boom")
    world.record(
        "RELEASED", failure=Failure("Boom", None), ttl=1, actual_completion=at(2), interventions=(done,)
    )

    story = collect(world.client, "order-1")

    assert "released" == story.diagnosis
    assert "Released by alice (refunded by hand), and the lock is free." in story.summary
    assert story.record
    assert (done,) == story.record.interventions


def test_a_cancelled_attempt_says_who_wanted_that(world: World):
    """Also where causes are left out, which may quote a payload: this one is an operator's own."""
    world.execution("order-1", "ABORTED", "DoWork", error="Cancelled")
    world.sfn.executions[arn("order-1")]["cause"] = "alice: by mistake"
    world.record("FAILED", failure=Failure("Cancelled", None), open_status="FAILED#1")

    assert "alice: by mistake" == collect(world.client, "order-1").attempts[0].cause


def test_a_request_that_the_rate_limit_refused_may_start_again(world: World):
    """It says until when, and does not quote the payload."""
    cause = cause_until(PAST)
    states = ("IsRequestPrepared", "CountRequest", "IsCallerWaiting", "RateLimited")
    world.execution("order-1", "FAILED", *states, error="RateLimited", cause=cause)
    story = collect(world.client, "order-1")
    assert ("rate limited", ["start request"]) == (story.diagnosis, [one.action for one in story.next_steps])
    assert f"RateLimited until {PAST}" in story.summary
    assert "The window is over" in story.summary
    world.execution("order-1", "FAILED", *states, error="RateLimited", cause=cause.replace(PAST, FAR))
    assert f"RateLimited until {FAR}" in collect(world.client, "order-1").summary
    assert "again then" in collect(world.client, "order-1").summary


def test_a_message_that_waits_for_the_next_window_says_so(world: World):
    """Its request runs, and holds no lock."""
    given = json.dumps({"lockToken": "m/order-1", "limit": {"resetsAt": FAR}, "redelivery": {"tries": 0}})
    world.execution("order-1", "RUNNING", "CountRequest", "AwaitNextWindow", input=given)
    story = collect(world.client, "order-1")
    assert ("rate limited", ["wait for request"]) == (
        story.diagnosis,
        [one.action for one in story.next_steps],
    )
    assert f"RateLimited until {FAR}" in story.summary
    world.execution("order-1", "RUNNING", "CountRequest", input=given)
    assert "starting" == collect(world.client, "order-1").diagnosis


@pytest.mark.parametrize(("redelivery", "resent"), [({"tries": 2}, 2), ({}, 0), (None, 0), ("x", 0)])
def test_an_attempt_says_how_often_its_message_came_back(world: World, redelivery: Any, resent: int):
    """A message whose request had to wait is sent again."""
    world.execution("order-1", "RUNNING", "DoWork", input=json.dumps({"redelivery": redelivery}))
    world.record("INPROGRESS", open_status="INPROGRESS#1")

    assert resent == collect(world.client, "order-1").attempts[0].resent


def test_every_attempt_is_told_oldest_first(world: World):
    """Names are counted up until one is free."""
    world.execution("order-1", "FAILED", "ReleaseLock", error="RetryLater")
    world.execution("order-1--2", "FAILED", "ReleaseLock", error="RetryLater")
    world.execution("order-1--3", "RUNNING", "AcquireLock")
    world.record("RELEASED", failure=Failure("RetryLater", None), request_id="order-1--2", ttl=1)

    story = collect(world.client, "order-1")

    assert [1, 2, 3] == [attempt.number for attempt in story.attempts]
    assert ("starting", True) == (story.diagnosis, story.summary.startswith("Attempt 3 runs"))


def test_the_record_tells_when_the_executions_are_forgotten(world: World):
    """AWS forgets an execution 90 days after it closed; a record may live longer."""
    world.record("COMPLETED", result='"ok"', actual_completion=PAST)

    story = collect(world.client, "order-1")

    assert ("completed", ["GONE"], "m/order-1") == (
        story.diagnosis,
        [attempt.status for attempt in story.attempts],
        story.lock_token,
    )


def test_an_open_lock_whose_owner_is_forgotten_is_to_be_settled(world: World):
    """Nobody will ever write that record again."""
    world.record("INPROGRESS", created=PAST, open_status="INPROGRESS#1")

    assert "unsettled" == collect(world.client, "order-1").diagnosis


def test_an_owner_too_new_to_be_described_counts_as_running(world: World):
    """DescribeExecution is eventually consistent."""
    world.record("INPROGRESS", open_status="INPROGRESS#1")

    assert "running" == collect(world.client, "order-1").diagnosis


def test_the_executions_tell_when_the_record_is_gone(world: World):
    """It succeeded, and the next start would run it again: that is worth saying."""
    world.execution("order-1", "SUCCEEDED", "DoWork")

    story = collect(world.client, "order-1")

    assert ("expired", None) == (story.diagnosis, story.record)
    assert "runs the work again" in story.summary


def test_a_record_past_its_time_answers_no_more(world: World):
    """DynamoDB deletes it later; nobody waits for that."""
    world.execution("order-1", "SUCCEEDED")
    world.record("COMPLETED", result="1", expires_at=PAST, ttl=1)

    story = collect(world.client, "order-1")

    assert ("expired", True) == (story.diagnosis, story.record and story.record.expired)


def test_an_execution_that_ended_without_a_record_failed(world: World):
    """For example when the input could not be prepared."""
    world.execution("order-1", "FAILED", "PrepareRequest", error="InvalidPayload")

    story = collect(world.client, "order-1")

    assert "failed" == story.diagnosis
    assert "ended FAILED with InvalidPayload" in story.summary


@pytest.mark.parametrize("visits", [("AcquireLock", "DoWork", "RecordError"), ("DoWork", "CompleteRequest")])
def test_a_request_whose_work_had_begun_is_not_to_be_started_again(world: World, visits: tuple[str, ...]):
    """Somebody has deleted its record. The printed start would have run the work a second time."""
    world.execution("order-1", "FAILED", *visits, error="Boom")
    world.execution("order-1--2", "FAILED", "PrepareRequest", error="Unavailable")

    story = collect(world.client, "order-1")

    assert ("failed", ()) == (story.diagnosis, story.next_steps)
    assert "its record is gone. The work had begun, and the next start runs it again" in story.summary


@pytest.mark.parametrize(
    ("visits", "ended"),
    [
        (("CountRequest",), {"error": "RateLimited", "cause": cause_until(FAR)}),
        (("PrepareRequest",), {"error": "Unavailable"}),
    ],
    ids=["limited", "unprepared"],
)
def test_a_request_that_a_person_released_may_be_started_again(
    world: World, visits: tuple[str, ...], ended: dict[str, str]
):
    """Its next attempt got no lock. The work that had begun is the one that was released."""
    world.execution("order-1", "FAILED", "AcquireLock", "DoWork", "RecordError", error="Boom")
    world.execution("order-1--2", "FAILED", *visits, **ended)
    world.record("RELEASED", failure=Failure("Boom", None), ttl=1, actual_completion=at(2))

    story = collect(world.client, "order-1")

    assert ["start request"] == [step.action for step in story.next_steps]
    assert "its record is gone" not in story.summary


def test_what_a_later_attempt_has_worked_is_what_a_person_released(world: World):
    """The first attempt got no lock, so the record's own count is behind that of the executions."""
    limited = {"error": "RateLimited", "cause": cause_until(FAR)}
    world.execution("order-1", "FAILED", "CountRequest", **limited)
    world.execution("order-1--2", "FAILED", "AcquireLock", "DoWork", "RecordError", error="Boom")
    world.execution("order-1--3", "FAILED", "CountRequest", **limited)
    world.record("RELEASED", locked_by=arn("order-1--2"), failure=Failure("Boom", None), ttl=1)

    assert ["start request"] == [step.action for step in collect(world.client, "order-1").next_steps]


def test_another_s_released_lock_says_nothing_of_work_that_had_begun(world: World):
    """This request's own record is gone all the same."""
    world.execution("order-1", "FAILED", "AcquireLock", "DoWork", "RecordError", error="Boom")
    world.record("RELEASED", request_id="order-7", locked_by=arn("order-7"), ttl=1)

    assert () == collect(world.client, "order-1").next_steps


FREE: dict[str, dict[str, Any]] = {
    "RELEASED": {"failure": Failure("Boom", None)},
    "COMPLETED": {"result": "1", "expires_at": PAST},
    "FAILED": {"failure": Failure("Declined", None), "expires_at": PAST},
}
"""The records that are free, by their status."""


@pytest.mark.parametrize("status", FREE)
def test_the_record_of_an_earlier_attempt_tells_how_its_work_ended(world: World, status: str):
    """It is on the same screen, so it is not gone. The next attempt got no lock, and did nothing."""
    world.execution("order-1", "SUCCEEDED" if status == "COMPLETED" else "FAILED", "AcquireLock", "DoWork")
    world.execution("order-1--2", "FAILED", "PrepareRequest", error="Unavailable")
    world.record(status, ttl=1, actual_completion=at(2), **FREE[status])
    story = collect(world.client, "order-1")
    expired = "" if status == "RELEASED" else f", expired at {PAST}"
    assert (
        "Its execution ended FAILED with Unavailable, and the record is that of attempt 1 "
        f"({status}{expired}). Once the cause is gone, start it again."
    ) == story.summary
    assert ["start request"] == [step.action for step in story.next_steps]

    world.execution("order-1--2", "FAILED", "CountRequest", error="RateLimited", cause=cause_until(FAR))
    story = collect(world.client, "order-1")
    assert ("rate limited", ["start request"]) == (story.diagnosis, [one.action for one in story.next_steps])


@pytest.mark.parametrize("status", FREE)
def test_a_free_record_that_was_settled_after_the_newest_attempt_is_the_answer(world: World, status: str):
    """The attempt ended because a dead owner held the lock. The owner was settled later."""
    world.execution("order-1", "ABORTED", "AcquireLock", "DoWork")
    world.execution("order-1--2", "FAILED", "AcquireLock", error="AlreadyInProgress", startDate=NOW)
    by = (Intervention(at(60), "ann", "released", "nothing booked"),) if status == "RELEASED" else ()
    world.record(status, ttl=1, actual_completion=at(60), interventions=by, **FREE[status])
    story = collect(world.client, "order-1")
    if status == "RELEASED":
        assert "Released by ann (nothing booked), and the lock is free. Start it again." == story.summary
    else:
        assert f"Its record expired at {PAST}. The next start runs the work again." == story.summary
        assert () == story.next_steps


def test_a_record_says_nothing_of_the_work_that_its_attempt_did_again_since(world: World):
    """The execution was redriven after it had been cancelled, and that record has expired."""
    again = {"error": "Boom", "redriveCount": 1}
    world.execution("order-1", "FAILED", "AcquireLock", "DoWork", "RecordError", **again)
    world.execution("order-1--2", "FAILED", "PrepareRequest", error="Unavailable", startDate=NOW)
    world.record("FAILED", ttl=1, actual_completion=at(2), **FREE["FAILED"])
    story = collect(world.client, "order-1")
    assert "(FAILED, expired" in story.summary
    assert "The work had begun" in story.summary
    assert () == story.next_steps


@pytest.mark.parametrize(
    ("owner", "whose"),
    [
        ({"request_id": "order-7", "locked_by": arn("order-7")}, "request 'order-7'"),
        ({"call_id": "an older call"}, "another request with this id"),
    ],
    ids=["another id", "an older request of this id"],
)
def test_a_free_record_of_another_request_is_said_to_be_another_s(
    world: World, owner: dict[str, str], whose: str
):
    """The screen shows it, and it says nothing of this request's work."""
    world.record("RELEASED", ttl=1, **owner)
    says = f"the record is that of {whose} (RELEASED). "
    for states, advice in (
        (["PrepareRequest"], "Once the cause"),
        (["AcquireLock", "DoWork"], "The work had"),
    ):
        world.execution("order-1", "FAILED", *states, error="Boom")
        assert says + advice in collect(world.client, "order-1").summary
    world.execution("order-1", "SUCCEEDED", "ReadLock")
    assert f"Its execution succeeded, but {says}" in collect(world.client, "order-1").summary


def test_an_attempt_that_got_an_answer_which_has_expired_does_not_say_that_it_is_gone(world: World):
    """The record of the attempt before is there, and anyone may take its lock."""
    world.execution("order-1", "SUCCEEDED", "AcquireLock", "DoWork")
    world.execution("order-1--2", "SUCCEEDED", "ReadLock")
    world.record("COMPLETED", ttl=1, **FREE["COMPLETED"])
    summary = collect(world.client, "order-1").summary
    assert f"succeeded, but the record is that of attempt 1 (COMPLETED, expired at {PAST})" in summary


def test_a_rate_limit_does_not_hide_that_the_work_had_begun(world: World):
    """The second attempt was refused. Its advice would be to start the request again."""
    world.execution("order-1", "FAILED", "DoWork", "RecordError", error="Boom")
    world.execution("order-1--2", "FAILED", "CountRequest", error="RateLimited", cause=cause_until(FAR))

    assert () == collect(world.client, "order-1").next_steps


@pytest.mark.parametrize("status", [None, *FREE])
def test_an_attempt_that_waits_for_the_next_window_says_so_whatever_an_earlier_one_did(
    world: World, status: str | None
):
    """It is in that state. The record has expired, was released, or DynamoDB has deleted it."""
    given = {"requestId": "order-1", "lockToken": "m/order-1", "limit": {"resetsAt": FAR}}
    world.execution("order-1", "SUCCEEDED", "AcquireLock", "DoWork", "CompleteRequest")
    world.execution("order-1--2", "RUNNING", "CountRequest", "AwaitNextWindow", input=json.dumps(given))
    if status is not None:
        world.record(status, ttl=1, actual_completion=at(2), **FREE[status])
    story = collect(world.client, "order-1")
    assert ("rate limited", ["wait for request"]) == (
        story.diagnosis,
        [one.action for one in story.next_steps],
    )
    assert story.summary.startswith(f"RateLimited until {FAR}: ")
    assert "Nothing happened in attempt 2. The request waits" in story.summary


def test_a_request_whose_work_did_nothing_may_be_started_again(world: World):
    """Its record has expired since."""
    world.execution("order-1", "FAILED", "AcquireLock", "DoWork", "ReleaseLock", error="RetryLater")

    story = collect(world.client, "order-1")

    assert ["start request"] == [step.action for step in story.next_steps]


def test_the_second_attempt_is_found_when_the_first_is_forgotten(world: World):
    """It may be 90 days younger."""
    world.execution("order-1--2", "RUNNING", "AcquireLock")

    assert ["GONE", "RUNNING"] == [one.status for one in collect(world.client, "order-1").attempts]


def test_the_second_attempt_tells_the_lock_token_when_the_first_is_forgotten(world: World):
    """A start without that token would run the work a second time."""
    given = {"requestId": "order-1", "lockToken": "acme/1", "payload": PAYLOAD, "callId": "call-1"}
    world.execution("order-1--2", "FAILED", "DoWork", "RecordError", error="Boom", input=json.dumps(given))
    world.record("FAILED", lock_token="acme/1", open_status="FAILED#3", locked_by=arn("order-1--2"))

    story = collect(world.client, "order-1")

    assert ("acme/1", "waits for a person") == (story.lock_token, story.diagnosis)
    assert {"acme/1"} == set(world.locks.asked)


def test_a_request_that_left_no_trace_is_not_found(world: World):
    """Neither record nor execution."""
    with pytest.raises(RequestNotFound, match="no request 'order-1'"):
        collect(world.client, "order-1")


def test_another_requests_record_is_no_trace_of_a_request(world: World):
    """As the status says. The record is named, since a person may have looked for it."""
    world.record("COMPLETED", request_id="other", locked_by=arn("other"), result="7")

    with pytest.raises(RequestNotFound) as found:
        collect(world.client, "order-1")

    assert [NextStep("inspect lock", "m/order-1")] == list(found.value.next_steps)


@pytest.mark.parametrize("error", ["AccessDeniedException", "KmsAccessDeniedException"])
def test_a_request_whose_executions_are_hidden_is_an_error(world: World, error: str):
    """They are not looked for one after the other, without an end."""
    world.record("INPROGRESS")
    world.sfn.refuse("describe_execution", error)

    with pytest.raises(OwnerHidden, match=f"order-1 may not be looked at from here .{error}."):
        collect(world.client, "order-1")


def test_a_payload_without_its_key_has_no_lock_token(world: World):
    """With LockTokenPath the key is in the payload. A start by hand that lacks it was refused."""
    world.client.machine.rules = RequestRules(key_prefix="m", lock_token_path="orderId")
    world.execution("order-1", "FAILED", "PrepareRequest", input=json.dumps({"payload": PAYLOAD}))

    story = collect(world.client, "order-1")

    assert (None, None) == (story.lock_token, story.record)


def test_another_requests_execution_that_holds_the_lock_is_told_too(world: World):
    """The answer will be that one's."""
    world.execution("order-1", "FAILED", "CheckOwner", error="AlreadyInProgress")
    world.execution("other", "RUNNING", "DoWork")
    world.record("INPROGRESS", request_id="other", locked_by=arn("other"), payload_hash=HASH)

    story = collect(world.client, "order-1")

    assert ("running", "other") == (story.diagnosis, story.record and story.record.request_id)
    assert story.holder is not None
    assert arn("other") == story.holder.execution_arn
    assert story.summary.startswith("Request 'other' has its lock token and answers for it.")


def test_a_request_that_succeeded_is_not_called_released(world: World):
    """Its record has expired since, and the record is another request's, of which nothing happened."""
    world.execution("order-1", "SUCCEEDED", "DoWork")
    world.record("RELEASED", request_id="other", locked_by=arn("other"), failure=Failure("RetryLater", None))

    story = collect(world.client, "order-1")

    assert ("expired", ()) == (story.diagnosis, story.next_steps)


@pytest.mark.parametrize("error", ["Boom", "RetryLater", "Cancelled"])
def test_a_request_that_failed_before_another_one_took_the_lock_is_answered_by_that(world: World, error: str):
    """As its status says. A start with another lock token would run the work a second time."""
    world.execution("order-1", "FAILED", "DoWork", error=error)
    world.execution("other", "SUCCEEDED", "DoWork")
    world.record("COMPLETED", request_id="other", locked_by=arn("other"), result="7", payload_hash=HASH)

    story, status = collect(world.client, "order-1"), world.client.status("order-1")

    assert ("completed", "COMPLETED") == (story.diagnosis, status.status)
    assert story.summary.startswith("Request 'other' has its lock token and answers for it.")


@pytest.mark.parametrize("error", ["AlreadyInProgress", "LockContended", "LimitChanged", "Boom"])
def test_a_record_of_another_payload_does_not_answer_for_a_request(world: World, error: str):
    """As its status says. Another request had the lock first, and then this one took it."""
    world.execution("order-1", "FAILED", "ReadLock", error=error)
    world.execution("other", "SUCCEEDED", "DoWork")
    world.record("COMPLETED", request_id="other", locked_by=arn("other"), result="7", payload_hash="another")

    story, status = collect(world.client, "order-1"), world.client.status("order-1")

    assert ("turned away", "FAILED", error) == (story.diagnosis, status.status, status.error)


@pytest.mark.parametrize(("status", "owner"), [("COMPLETED", arn("other")), ("INPROGRESS", "process/host/7")])
def test_a_request_that_succeeded_is_not_answered_by_a_record_of_another_payload(
    world: World, status: str, owner: str
):
    """As its status says. Its own record has expired, and another request has taken the lock token since."""
    world.execution("order-1", "SUCCEEDED", "DoWork")
    world.record(status, request_id="other", locked_by=owner, result="7", payload_hash="another")

    story = collect(world.client, "order-1")

    assert ("expired", "other") == (story.diagnosis, story.record and story.record.request_id)
    assert "its lock token belongs to request 'other'" in story.summary
    with pytest.raises(RequestNotFound):
        world.client.status("order-1")


def test_a_request_that_was_turned_away_is_not_answered_by_the_lock(world: World):
    """Its payload was another one."""
    world.execution("order-1", "FAILED", "ReadLock", error="PayloadMismatch")
    world.execution("other", "SUCCEEDED", "DoWork")
    world.record("COMPLETED", request_id="other", locked_by=arn("other"), result="1")

    story = collect(world.client, "order-1")

    assert "turned away" == story.diagnosis
    assert "turned away with PayloadMismatch" in story.summary

    world.record("COMPLETED", locked_by="process/host/1", execution_name=None, result="1")
    story = collect(world.client, "order-1")
    assert ("turned away", "inspect lock") == (story.diagnosis, story.next_steps[0].action)
    assert "belongs to request 'order-1' of process/host/1" in story.summary

    other = arn("order-1--3").replace(":m:", ":refunds:")
    world.record("COMPLETED", locked_by=other, execution_name="order-1--3", result="1")
    story = collect(world.client, "order-1")
    assert ("turned away", [1]) == (story.diagnosis, [one.number for one in story.attempts])
    assert (NextStep("inspect lock", "m/order-1", machine=machine_of(other)),) == story.next_steps


def test_the_advice_for_a_request_that_was_turned_away_is_true(world: World):
    """It advised another lock token alone. Under that, the work of the same operation would run twice."""
    corrected, advice = (
        {"card": "right"},
        "A start with that one's payload gets its answer. If yours is another",
    )
    world.execution("order-1", "FAILED", "ReadLock", error="PayloadMismatch")
    world.execution("other", "SUCCEEDED", "DoWork")
    right = sha256(canonical_json(corrected))
    world.record("COMPLETED", request_id="other", locked_by=arn("other"), result="7", payload_hash=right)

    again = world.client.start("order-1", corrected, lock_token="m/order-1")

    assert (7, True) == (again.result, again.duplicate)
    assert advice in collect(world.client, "order-1").summary
    with pytest.raises(LockTokenMismatch):
        world.client.start("order-1", corrected, lock_token="another")


def test_a_refused_duplicate_is_not_advised_to_ask_again(world: World):
    """It would get the same refusal."""
    refusal = {"error": "DuplicateRefused", "cause": "refused"}
    world.execution("order-1", "FAILED", "ReadLock", **refusal)
    world.record("COMPLETED", request_id="other", locked_by=arn("other"), result="7", payload_hash=HASH)

    story, again = collect(world.client, "order-1"), world.client.start("order-1", PAYLOAD)

    assert ("turned away", "DuplicateRefused") == (story.diagnosis, again.error)
    assert "Look at that one. If yours is another operation" in story.summary


def test_an_earlier_request_with_this_id_does_not_answer_for_another_payload(world: World):
    """As its status says. The record answers for ever, and the name of its execution was free again."""
    given = {"requestId": "order-1", "lockToken": "m/order-1", "callId": "call-2", "payload": {"card": "new"}}
    world.execution("order-1", "FAILED", "ReadLock", error="PayloadMismatch", input=json.dumps(given))
    world.record("COMPLETED", result="1", payload_hash=HASH, created=PAST, expires_at=times.NEVER)

    story, status = collect(world.client, "order-1"), world.client.status("order-1")

    assert ("turned away", "FAILED", "PayloadMismatch") == (story.diagnosis, status.status, status.error)
    assert f"belongs to request 'order-1' of {arn('order-1')}" in story.summary
    assert ("inspect lock", "m/order-1") == (story.next_steps[0].action, story.next_steps[0].key)


def test_an_execution_by_hand_under_an_attempts_name_is_no_attempt(world: World):
    """As the status says. It is another request, and its end is not that of this one."""
    world.execution("order-1", "FAILED", "AcquireLock", error="States.Runtime")
    by_hand = json.dumps({"requestId": "order-1--2", "lockToken": "m/order-1--2"})
    world.execution("order-1--2", "SUCCEEDED", "DoWork", input=by_hand)

    story, status = collect(world.client, "order-1"), world.client.status("order-1")

    assert ("failed", "FAILED", "States.Runtime") == (story.diagnosis, status.status, status.error)
    assert [1] == [attempt.number for attempt in story.attempts]


def test_retries_and_errors_belong_to_the_state_they_happened_in(world: World):
    """Two tries, a failure between them, and its name; over several pages of history."""
    world.execution("order-1", "RUNNING")
    events = numbered(
        [
            event("ExecutionStarted", 0),
            event("TaskStateEntered", 1, "DoWork"),
            event("TaskScheduled", 2),
            event("TaskFailed", 3, taskFailedEventDetails={"error": "RetryLater", "cause": "tok_secret"}),
            event("TaskScheduled", 4),
            event("TaskTimedOut", 5, taskTimedOutEventDetails={"error": "States.Timeout"}),
            event("TaskStateExited", 6, "DoWork"),
        ]
    )
    world.sfn.histories[arn("order-1")] = events

    visit = collect(world.client, "order-1").attempts[0].visits[0]

    assert ("DoWork", 2, 5.0) == (visit.state, visit.tries, visit.seconds)
    assert [
        Trouble(at(3), "TaskFailed", "RetryLater"),
        Trouble(at(5), "TaskTimedOut", "States.Timeout"),
    ] == visit.troubles


def test_branches_of_a_parallel_state_keep_their_own_times(world: World):
    """Events of two branches are mixed; the state around them is left last."""
    world.execution("order-1", "RUNNING")
    world.sfn.histories[arn("order-1")] = numbered(
        [
            event("ExecutionStarted", 0),
            event("ParallelStateEntered", 1, "Both"),
            event("ParallelStateStarted", 1),
            event("TaskStateEntered", 2, "A"),
            event("TaskStateEntered", 2, "B", previousEventId=3),
            event("LambdaFunctionFailed", 3, previousEventId=4, lambdaFunctionFailedEventDetails={}),
            event("TaskStateExited", 4, "B", previousEventId=5),
            event("TaskStateExited", 6, "A", previousEventId=6),
            event("ParallelStateSucceeded", 6),
            event("ParallelStateExited", 7, "Both"),
        ]
    )

    visits = collect(world.client, "order-1").attempts[0].visits

    assert {"Both": 6.0, "A": 4.0, "B": 2.0} == {visit.state: visit.seconds for visit in visits}
    assert [Trouble(at(3), "LambdaFunctionFailed", None)] == visits[1].troubles


def test_payloads_and_causes_are_told_only_when_asked_for(world: World):
    """Step Functions quotes inputs in causes, and histories are full of them."""
    world.execution("order-1", "FAILED", "DoWork", error="States.Runtime")

    silent = collect(world.client, "order-1")
    asked = collect(world.client, "order-1", with_payload=True)

    assert "tok_secret" not in json.dumps(silent.to_dict())
    assert (PAYLOAD, f"quotes {PAYLOAD}") == (asked.attempts[0].payload, asked.attempts[0].cause)


def test_a_failed_request_whose_execution_was_redriven_is_not_to_be_settled_yet(world: World):
    """The commands refuse it while the execution runs. A moment in a Fail state is no redrive."""
    world.record("FAILED", failure=Failure("OutcomeUnknown", None), open_status="FAILED#1")
    world.execution("order-1", "RUNNING", "DoWork")
    assert {"complete lock", "retry lock"} == {
        step.action for step in collect(world.client, "order-1").next_steps
    }

    world.execution("order-1", "RUNNING", "DoWork", redriveCount=1)
    story = collect(world.client, "order-1")
    assert "was redriven, and is in DoWork" in story.summary
    assert ["cancel request"] == [step.action for step in story.next_steps]


RELEASED_BY_ANN = Intervention(at(5), "ann", "released", "it had no effect")


def test_a_released_request_whose_execution_was_redriven_may_have_worked_again(world: World):
    """It said that attempt 1 runs and has no lock yet, and then to start the request again."""
    world.record("RELEASED", open_status=None, actual_completion=at(5), interventions=(RELEASED_BY_ANN,))
    world.execution("order-1", "RUNNING", "DoWork", redriveCount=1)
    story = collect(world.client, "order-1")
    assert ("released", ["wait for request"]) == (story.diagnosis, [one.action for one in story.next_steps])
    assert "was redriven, and is in DoWork" in story.summary
    assert "If you cancel the request, that is its answer" in story.summary

    world.execution("order-1", "FAILED", "DoWork", error="Boom", redriveCount=1)
    story = collect(world.client, "order-1")
    assert ["complete lock", "start request"] == [one.action for one in story.next_steps]
    assert "find out before whether the work took effect" in story.summary


@pytest.mark.parametrize("states", [["AcquireLock"], ["DoWork"]], ids=["before its work", "in its work"])
def test_a_released_request_that_runs_is_waited_for_whatever_a_later_attempt_did(
    world: World, states: list[str]
):
    """As its status says. A later attempt has ended without the lock."""
    world.record("RELEASED", open_status=None, actual_completion=at(5), interventions=(RELEASED_BY_ANN,))
    world.execution("order-1", "RUNNING", *states, redriveCount=1)
    world.execution("order-1--2", "FAILED", "AcquireLock", error="AlreadyInProgress")
    story, status = collect(world.client, "order-1"), world.client.status("order-1")
    assert (["wait for request"], "RUNNING") == ([one.action for one in story.next_steps], status.status)
    assert status.execution_arn == arn("order-1")


SECOND = {"locked_by": arn("order-1--2"), "execution_name": "order-1--2", "call_id": "call-2", "attempt": 2}
HELD = {"failure": Failure("Boom", None), "open_status": "FAILED#1", "actual_completion": at(5)}
BESIDE: dict[str, tuple[dict[str, Any] | None, list[str], str, list[str]]] = {
    "a held record": ({"status": "FAILED"} | HELD, ["FAILED", "DoWork"], "waits for a person", []),
    "a dead owner": ({"status": "INPROGRESS"}, ["ABORTED", "DoWork"], "unsettled", []),
    "an owner": ({"status": "INPROGRESS"}, ["RUNNING", "DoWork"], "running", ["wait for request"]),
    "a released record": ({"status": "RELEASED"}, ["FAILED", "DoWork"], "released", []),
    "a final record": ({"status": "COMPLETED", "result": "7"}, ["SUCCEEDED", "DoWork"], "completed", []),
    "no record": (None, ["FAILED", "AcquireLock"], "failed", []),
    "an attempt without a record": (None, ["RUNNING", "AcquireLock"], "starting", ["wait for request"]),
}


@pytest.mark.parametrize(("record", "second", "diagnosis", "steps"), BESIDE.values(), ids=BESIDE)
def test_an_earlier_attempt_that_was_redriven_is_named_beside_what_the_record_says(
    world: World, record: dict[str, Any] | None, second: list[str], diagnosis: str, steps: list[str]
):
    """It said that nothing else runs, and named a start or a retry, which ran the work beside it."""
    status, *states = second
    given = {"requestId": "order-1", "lockToken": "m/order-1", "payload": PAYLOAD, "callId": "call-2"}
    world.execution("order-1--2", status, *states, error="Boom", input=json.dumps(given))
    if record is not None:
        world.record(**SECOND | record)
    world.execution("order-1", "FAILED", "DoWork", redriveCount=1, error="Boom")
    assert "redriven" not in collect(world.client, "order-1").summary

    world.execution("order-1", "RUNNING", "DoWork", redriveCount=1)
    story = collect(world.client, "order-1")

    named = f"Attempt 1 ({arn('order-1')}) was redriven, and is in DoWork. It does not hold the lock"
    assert named in story.summary
    assert "stop it in Step Functions, and look again" in story.summary
    assert "nothing else runs" not in story.summary
    assert "tart it" not in story.summary
    assert (diagnosis, steps) == (story.diagnosis, [one.action for one in story.next_steps])


ENDED = {
    "a held record": (["FAILED", "DoWork"], HELD | {"status": "FAILED"}, ["complete lock", "retry lock"]),
    "a released record": (["FAILED", "AcquireLock"], {"status": "RELEASED"}, ["start request"]),
    "a final record": (["SUCCEEDED", "DoWork"], {"status": "COMPLETED", "result": "7"}, []),
}


@pytest.mark.parametrize(("second", "record", "steps"), ENDED.values(), ids=ENDED)
def test_the_end_of_an_earlier_attempt_that_was_redriven_is_told(
    world: World, second: list[str], record: dict[str, Any], steps: list[str]
):
    """It said to wait for that end, and then no more of it: it named a start."""
    status, *states = second
    given = {"requestId": "order-1", "lockToken": "m/order-1", "payload": PAYLOAD, "callId": "call-2"}
    world.execution("order-1--2", status, *states, error="RetryLater", input=json.dumps(given))
    world.record(**SECOND | record)
    ended = {"redriveCount": 1, "stopDate": NOW + timedelta(seconds=30)}
    world.execution("order-1", "FAILED", "DoWork", error="Boom", **ended)

    story = collect(world.client, "order-1")

    told = (
        f"Attempt 1 ({arn('order-1')}) was redriven, and ended FAILED at {at(30)}, without the lock. Find out"
    )
    assert story.summary.startswith(told) == bool(steps)
    assert steps == [one.action for one in story.next_steps if one.action in ("start request", *steps)]


def test_an_attempt_that_works_without_a_record_is_not_on_its_way_to_its_lock(world: World):
    """Its record was erased, and its execution redriven."""
    world.execution("order-1", "RUNNING", "AcquireLock", "DoWork", redriveCount=1)
    story = collect(world.client, "order-1")
    assert ("running", "RUNNING") == (story.diagnosis, world.client.status("order-1").status)
    assert ["wait for request"] == [one.action for one in story.next_steps]
    assert 1 == story.summary.count("was redriven, and is in DoWork. It does not hold the lock")


@pytest.mark.parametrize(
    ("states", "more"),
    [
        (["DoWork"], {}),
        (["AcquireLock"], {"redriveCount": 1}),
        (["DoWork", "RecordError"], {"redriveCount": 1}),
    ],
    ids=["not redriven", "before its work", "after its work"],
)
def test_an_earlier_attempt_that_does_not_work_again_is_not_named(
    world: World, states: list[str], more: dict[str, Any]
):
    """It fails in a moment, or asks for the lock."""
    world.record("FAILED", **SECOND | HELD | {"call_id": "call-1"})
    world.execution("order-1", "RUNNING", *states, **more)
    world.execution("order-1--2", "FAILED", "DoWork", error="Boom")
    assert ["complete lock", "retry lock"] == [
        one.action for one in collect(world.client, "order-1").next_steps
    ]


@pytest.mark.parametrize(
    ("states", "more"),
    [
        (["DoWork"], {"redriveCount": 0}),
        (["DoWork"], {"redriveCount": 1, "stopDate": NOW + timedelta(seconds=4)}),
        (["DoWork", "ReleaseLock"], {"redriveCount": 1}),
        (["ReadLock"], {"redriveCount": 1}),
    ],
    ids=["not redriven", "redriven before", "released by itself", "without work"],
)
def test_a_released_request_whose_work_did_not_run_since_starts_again(
    world: World, states: list[str], more: dict[str, Any]
):
    """The person who released it has looked after its end."""
    world.record("RELEASED", open_status=None, actual_completion=at(5), interventions=(RELEASED_BY_ANN,))
    world.execution("order-1", "FAILED", *states, error="Boom", **more)
    story = collect(world.client, "order-1")
    assert ["start request"] == [one.action for one in story.next_steps]
    assert "the lock is free. Start it again" in story.summary


def test_a_request_that_was_turned_away_leads_to_the_record_that_is_left(world: World):
    """The other's executions are forgotten after 90 days, and without its lock token `show` found nothing."""
    world.execution("order-1", "FAILED", "ReadLock", error="PayloadMismatch")
    world.record("COMPLETED", request_id="order-9", locked_by=arn("order-9"), execution_name="order-9")
    story = collect(world.client, "order-1")
    assert (NextStep("show request", "order-9", lock_token="m/order-1"),) == story.next_steps


def test_a_story_is_a_json_object_with_durations(world: World):
    """What a script gets in a pipe."""
    world.execution("order-1", "FAILED", error="AlreadyInProgress")
    world.execution("other", "RUNNING", "DoWork", redriveCount=2)
    world.record("INPROGRESS", request_id="other", locked_by=arn("other"))

    told = json.loads(json.dumps(collect(world.client, "order-1").to_dict()))

    record = {"requestId", "lockToken", "record", "attempts", "holder"}
    assert record | {"diagnosis", "summary", "nextSteps"} == set(told)
    assert (1.0, 2) == (told["holder"]["visits"][0]["seconds"], told["holder"]["redriveCount"])


# -- steps that wait for an answer -----------------------------------------------------------------
def a_step(status: str = "PENDING", **more: Any) -> AwaitingStep:
    """A step of order-1, as its record has it."""
    step = AwaitingStep(
        id="as_1",
        step="confirmation",
        status=status,
        task_token=TOKEN,
        execution=arn("order-1"),
        request_id="order-1",
        lock_token="m/order-1",
        call_id="call-1",
        attempt=1,
        entered_at=at(7),
        retry_count=0,
        expires_at=FAR,
        answer_by=FAR,
    )
    return replace(step, **more)


def waiting(world: World, *steps: AwaitingStep, **options: Any) -> Any:
    """The story of order-1, which waits in AwaitConfirmation."""
    world.execution("order-1", "RUNNING", "DoWork", "AwaitConfirmation")
    world.waits("order-1", {"StatusCode": 200, "Payload": a_step().public()})
    world.record("INPROGRESS", open_status="INPROGRESS#1", **options.pop("record", {}))
    return collect(world.client, "order-1", steps=FakeSteps(*steps), **options)


def test_a_request_that_waits_for_an_answer_says_how_to_give_it(world: World):
    """In place of the command that would only wait, too."""
    story = waiting(world, a_step())

    step = Waiting(
        "as_1", "AwaitConfirmation", "confirmation", "PENDING", at(7), FAR, expired=False, answer_by=FAR
    )
    assert ("running", [step]) == (story.diagnosis, story.attempts[0].awaiting_steps)
    assert story.summary == (
        f"Running normally, in AwaitConfirmation. It waits for an answer to 'confirmation' until {FAR}."
    )
    assert (NextStep("answer step", "as_1"),) == story.next_steps


def test_a_request_whose_wait_may_end_at_its_heartbeat_says_so(world: World):
    """Only a heartbeat lets it wait for its whole time."""
    story = waiting(world, a_step(answer_by=at(900)))

    assert f"an answer to 'confirmation' until {at(900)}, and with heartbeats until {FAR}." in story.summary


def test_a_request_that_waits_for_an_answer_is_not_late(world: World):
    """Its step's own time-out says when it would be."""
    story = waiting(world, a_step(), record={"expected_completion": PAST})

    assert ("running", False) == (story.diagnosis, story.record and story.record.overdue)
    assert "in AwaitConfirmation. It waits for an answer to 'confirmation' until 2999" in story.summary


def test_a_request_whose_step_has_had_its_time_is_late(world: World):
    """Nobody's answer is to come any more, and yet the lock is open."""
    story = waiting(world, a_step(expires_at=PAST), record={"expected_completion": PAST})

    assert ("overdue", True) == (story.diagnosis, story.record and story.record.overdue)
    assert [NextStep("answer step", "as_1"), NextStep("cancel request", "order-1")] == [*story.next_steps]


def two_waiting(world: World, *steps: AwaitingStep, left: str = "", **record: Any) -> Any:
    """The story of order-1, which waits for the bank and for the shop in two branches of a Parallel."""
    world.execution("order-1", "RUNNING")
    events = [event("ParallelStateEntered", 1, "Both"), event("ParallelStateStarted", 1)]
    for name, step_id in (("bank", "as_1"), ("shop", "as_2")):
        output = json.dumps({"Payload": a_step(id=step_id, step=name).public()})
        events.append(event("TaskStateEntered", 2, f"Await{name.title()}", previousEventId=2))
        events.append(event("TaskSubmitted", 3, taskSubmittedEventDetails={"output": output}))
        if name == left:
            events.append(event("TaskStateExited", 4, f"Await{name.title()}"))
    world.sfn.histories[arn("order-1")] = numbered(events)
    world.record("INPROGRESS", open_status="INPROGRESS#1", **record)
    return collect(world.client, "order-1", steps=FakeSteps(*steps))


BANK = replace(a_step(), step="bank")
SHOP = replace(a_step(), id="as_2", step="shop", answer_by="2998-01-01T00:00:00.000Z")


def test_each_step_that_waits_is_said_the_one_that_ends_first_before_the_others(world: World):
    """An answer to one does not let the execution go on."""
    story = two_waiting(world, BANK, SHOP)

    assert "running" == story.diagnosis
    assert story.summary == (
        "Running normally, in AwaitBank and AwaitShop. It waits for an answer to 'shop' until "
        f"{SHOP.answer_by}, and with heartbeats until {FAR}. It waits for an answer to 'bank' until {FAR}."
    )
    assert (NextStep("answer step", "as_2"), NextStep("answer step", "as_1")) == story.next_steps
    assert ["AwaitBank", "AwaitShop"] == story.to_dict()["attempts"][0]["currentStates"]


@pytest.mark.parametrize("answered", ["bank", "shop"])
@pytest.mark.parametrize("is_left", [True, False])
def test_the_step_that_is_left_is_said(world: World, answered: str, is_left: bool):
    """Also if the execution has entered the other one later, or has not left that yet."""
    done = {"status": "ANSWERED", "answer": Answer("success", {})}
    steps = [replace(one, **done) if one.step == answered else one for one in (BANK, SHOP)]

    story = two_waiting(world, *steps, left=answered if is_left else "")

    open_one = BANK if answered == "shop" else SHOP
    assert (NextStep("answer step", open_one.id),) == story.next_steps
    assert f"It waits for an answer to {open_one.step!r}" in story.summary
    assert f"{answered!r}" not in story.summary


@pytest.mark.parametrize("late", ["bank", "shop"])
def test_of_several_steps_the_one_whose_time_is_over_is_said(world: World, late: str):
    """The request is overdue, although another one may still be answered."""
    steps = [
        replace(one, expires_at=PAST, answer_by=PAST) if one.step == late else one for one in (BANK, SHOP)
    ]

    story = two_waiting(world, *steps, expected_completion=PAST)

    assert ("overdue", True) == (story.diagnosis, story.record.overdue)
    assert (
        f"in AwaitBank and AwaitShop. The time for an answer to {late!r} was over at {PAST}." in story.summary
    )
    assert "It waits for an answer to " in story.summary
    assert ["answer step", "answer step", "cancel request"] == [one.action for one in story.next_steps]


def test_a_request_whose_steps_all_have_time_is_not_late(world: World):
    """However long it was expected to take."""
    story = two_waiting(world, BANK, SHOP, expected_completion=PAST)

    assert ("running", False) == (story.diagnosis, story.record.overdue)


@pytest.mark.parametrize("status", ["ANSWERED", "LATE"])
def test_a_step_that_has_its_answer_is_not_to_be_answered(world: World, status: str):
    """The execution may take a moment to go on."""
    story = waiting(world, a_step(status, answer=Answer("success", {"ok": True})))

    assert (status, "success") == ((step := story.attempts[0].awaiting_steps[0]).status, step.outcome)
    assert (NextStep("wait for request", "order-1"),) == story.next_steps


def test_a_step_of_a_state_that_was_left_is_not_to_be_answered(world: World):
    """A record can stay PENDING: nobody has answered, and the state has timed out."""
    world.execution("order-1", "RUNNING", "AwaitConfirmation")
    world.waits("order-1", {"Payload": a_step().public()})
    events = world.sfn.histories[arn("order-1")]
    events.append(event("TaskStateExited", 9, "AwaitConfirmation"))
    events.append(event("TaskStateEntered", 9, "RecordError"))
    world.sfn.histories[arn("order-1")] = numbered(events)
    world.record("INPROGRESS", open_status="INPROGRESS#1")

    story = collect(world.client, "order-1", steps=FakeSteps(a_step(expires_at=PAST)))

    assert [("PENDING", True, True)] == [
        (step.status, step.expired, step.left) for step in story.attempts[0].awaiting_steps
    ]
    assert "answer step" not in [step.action for step in story.next_steps]


def test_a_step_whose_record_has_expired_is_told_from_the_history(world: World):
    """The record lives 30 days longer than the step, the history 90."""
    (step,) = waiting(world).attempts[0].awaiting_steps

    assert Waiting("as_1", "AwaitConfirmation", "confirmation", "GONE", None, FAR, expired=False) == step


def test_a_step_that_was_tried_again_is_told_once(world: World):
    """A retry keeps the awaiting-step id."""
    world.execution("order-1", "RUNNING", "AwaitConfirmation")
    for _ in range(2):
        world.waits("order-1", {"Payload": a_step().public()})

    story = collect(world.client, "order-1", steps=FakeSteps(a_step(retry_count=1)))

    assert ["as_1"] == [step.awaiting_step_id for step in story.attempts[0].awaiting_steps]


@pytest.mark.parametrize(
    "output",
    ["", "cut off {", {"MessageId": "1"}, {"Payload": None}, {"Payload": {"awaitingStepId": "as_1"}}, "null"],
    ids=str,
)
def test_a_task_that_waits_for_something_else_has_no_awaiting_step(world: World, output: Any):
    """A queue's consumer may hold the token, and nobody has recorded it."""
    world.execution("order-1", "RUNNING", "AwaitConfirmation")
    world.waits("order-1", output)

    story = collect(world.client, "order-1", steps=FakeSteps(a_step()))

    assert [] == story.attempts[0].awaiting_steps


@pytest.mark.parametrize("is_recorded", [True, False])
def test_a_step_that_is_answered_before_its_function_returns_is_a_step(world: World, is_recorded: bool):
    """The history lacks its TaskSubmitted. A command with the request's id answered the next step for it."""
    asked = example_event("record_awaiting_step")
    parameters = json.dumps({"FunctionName": "record", "Payload": asked})
    step = replace(AwaitingStep.from_event(asked), status="ANSWERED", answer=Answer("success", {}))
    world.execution("order-1", "RUNNING", "AwaitConfirmation")
    world.sfn.histories[arn("order-1")][-1:] = [
        event("TaskScheduled", 7, taskScheduledEventDetails={"parameters": parameters}),
        event("TaskSucceeded", 8),
    ]
    world.sfn.histories[arn("order-1")] = numbered(world.sfn.histories[arn("order-1")])

    story = collect(world.client, "order-1", steps=FakeSteps(*[step] * is_recorded))

    found = story.attempts[0].awaiting_steps
    assert [("AwaitConfirmation", "ANSWERED")] * is_recorded == [(one.state, one.status) for one in found]


def test_without_the_table_a_story_has_no_awaiting_steps(world: World):
    """A stack may have been deployed without it."""
    waiting(world)

    assert [] == collect(world.client, "order-1").attempts[0].awaiting_steps


def test_an_answer_is_told_only_when_asked_for_and_a_token_never(world: World):
    """An answer may hold what a payload may hold."""
    answered = a_step("ANSWERED", answer=Answer("failure", error="Declined", cause="tok_secret"))

    silent = waiting(world, answered).to_dict()
    asked = waiting(world, answered, with_payload=True).to_dict()

    assert "tok_secret" not in json.dumps(silent)
    assert {"outcome": "failure", "error": "Declined", "cause": "tok_secret"} == (
        asked["attempts"][0]["awaitingSteps"][0]["answer"]
    )
    assert TOKEN not in json.dumps([silent, asked])
