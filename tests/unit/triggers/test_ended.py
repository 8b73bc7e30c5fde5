"""Which messages come back after an execution ended badly, and which become dead letters."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from steponce.aws import times
from steponce.errors import Unavailable
from steponce.local.moto_patches.times import aws_time
from steponce.locks.table import Locks
from steponce.triggers.dead_letters import IF_NOT_ANSWERED
from steponce.triggers.ended import Unanswered, examine
from steponce.triggers.start_request import StartRequest
from steponce.triggers.written_letters import end_of
from tests.patience import PATIENCE_SECONDS
from tests.unit.triggers.world import MACHINE, ORDER, World

EVENT = Path(__file__).parents[3] / "events" / "resend_request.json"
LOCKS = Locks(World(), "locks")
NOON = times.from_text("2026-01-31T12:00:00.000Z")
PAYLOAD_HASH = json.loads(json.loads(EVENT.read_text())["detail"]["input"])["payloadHash"]
TOKEN = "steponce-run-once/order-1"
EXPIRED = {
    "status": {"S": "FAILED"},
    "expiresAt": {"S": "2026-01-31T12:05:00.000Z"},
    "ttl": {"N": "1769947500"},
}


def detail(**changed: Any) -> dict[str, Any]:
    """Of an execution that ended RetryLater just now."""
    return json.loads(EVENT.read_text())["detail"] | ended_at(times.now()) | changed


def ended_at(time: datetime) -> dict[str, Any]:
    """The end as an event has it."""
    return {"stopDate": round(time.timestamp() * 1000)}


@pytest.mark.parametrize("error", ["RetryLater", "AlreadyInProgress", "States.Timeout", "DynamoDB.Oops"])
def test_an_execution_without_an_answer_on_record_comes_back(error: str):
    """As it was asked, from what its input says, whatever it died of."""
    asked = StartRequest("order-1", ORDER, TOKEN, NOON, 0)
    ended = detail(error=error)
    end = end_of(ended["executionArn"], json.loads(ended["input"])["callId"], 0)
    assert Unanswered(asked, error, ended["executionArn"], end) == examine(ended, World().sfn, LOCKS)


@pytest.mark.parametrize(
    ("status", "comes_back"),
    [("COMPLETED", False), ("FAILED", False), ("INPROGRESS", True), ("RELEASED", True)],
)
def test_a_record_with_an_answer_ends_it(status: str, comes_back: bool):
    """What has an answer does not come back; what is open or free does."""
    found = examine(detail(), World().sfn, locks_with(status, PAYLOAD_HASH))
    assert comes_back == (found is not None)


def test_its_own_answer_ends_it_after_the_record_has_expired():
    """The execution has got it, however late its end is reported. Another run would have its effect again."""
    world = World()
    world.hold(TOKEN, "order-1", PAYLOAD_HASH)
    call_id = json.loads(detail()["input"])["callId"]
    world.locks[TOKEN] |= EXPIRED | {"callId": {"S": call_id}}
    late = detail(error="CardDeclined")
    assert None is examine(late, world.sfn, Locks(world, "locks"))


@pytest.mark.parametrize("is_deleted", [True, False])
@pytest.mark.parametrize(
    ("last", "error", "comes_back"),
    [
        ("RecordFinalError", "CardDeclined", False),
        ("RecordError", "Boom", False),
        ("ReplayError", "CardDeclined", False),
        ("DuplicateRefused", "DuplicateRefused", False),
        ("CheckOwner", "Lambda.ServiceException", True),
        ("AlreadyInProgress", "AlreadyInProgress", True),
        ("ReplayTooLarge", "ReplayTooLarge", True),
    ],
)
def test_an_answer_ends_it_after_its_record_is_gone(
    is_deleted: bool, last: str, error: str, comes_back: bool
):
    """DynamoDB may have deleted it, or another request has taken the lock token since."""
    world = World()
    if not is_deleted:
        world.hold(TOKEN, "order-9", PAYLOAD_HASH)
        world.locks[TOKEN] |= EXPIRED
    entered = [{"stateEnteredEventDetails": {"name": state}} for state in ("AcquireLock", last)]
    world.sfn.put("order-1", *entered, status="FAILED")

    found = examine(detail(error=error), world.sfn, Locks(world, "locks"))

    assert comes_back == (found is not None)


def test_two_ends_are_judged_side_by_side():
    """A `cached_property` lets all instances wait for one slow call in Python 3.11. So did the history."""
    world, died = World(), detail(error="Boom")
    world.sfn.put("order-1", status="FAILED")
    second = Thread(target=examine, args=(died, world.sfn, Locks(world, "locks")), daemon=True)
    was_done: list[bool] = []

    def judge_the_other() -> None:
        if not was_done:
            second.start()
            second.join(PATIENCE_SECONDS)
            was_done.append(not second.is_alive())

    examine(died, world.sfn, Locks(world, "locks"), before_call=judge_the_other)
    assert [True] == was_done


@pytest.mark.parametrize(
    ("status", "comes_back"),
    [("COMPLETED", False), ("FAILED", False), ("INPROGRESS", True), ("RELEASED", True)],
)
def test_a_record_too_large_to_be_read_is_no_answer_by_itself(status: str, comes_back: bool):
    """A released record may be too large, too: it has the error of the attempt that released it."""
    world = World()
    world.hold(TOKEN, "order-9", PAYLOAD_HASH)
    world.locks[TOKEN]["status"] = {"S": status}
    entered = [{"stateEnteredEventDetails": {"name": state}} for state in ("ReadLock", "ReplayTooLarge")]
    world.sfn.put("order-1", *entered, status="FAILED")

    ended = detail(error="ReplayTooLarge")
    found = examine(ended, world.sfn, Locks(world, "locks"))

    assert comes_back == (found is not None)


@pytest.mark.parametrize("status", ["COMPLETED", "FAILED"])
def test_the_answer_to_another_payload_is_no_answer(status: str):
    """Another request took the key in the meantime, and the message must not vanish for it."""
    found = examine(detail(), World().sfn, locks_with(status, "another payload"))
    assert found is not None


def test_the_valid_answer_to_another_payload_is_no_doubt():
    """No answer to this message has expired. It comes back, and finds the mismatch itself."""
    world = World()
    world.hold(TOKEN, "order-1", "another payload")
    world.locks[TOKEN] |= EXPIRED | {"expiresAt": {"S": "2999-01-31T12:05:00.000Z"}}
    found = examine(detail(), world.sfn, Locks(world, "locks"))
    assert found is not None
    assert found.doubt is None


def test_work_that_fails_with_a_mismatch_of_its_own_is_answered():
    """Its error is on the record of its own payload."""
    locks = locks_with("FAILED", PAYLOAD_HASH)
    assert None is examine(detail(error="PayloadMismatch"), World().sfn, locks)


def locks_with(status: str, payload_hash: str) -> Locks:
    """The table with a record under the execution's key."""
    world = World()
    world.hold(TOKEN, "order-1", payload_hash)
    world.locks[TOKEN]["status"] = {"S": status}
    return Locks(world, "locks")


def limited(window_end: str, **redelivery: str) -> str:
    """The input of an execution whose request counts in a window."""
    given = json.loads(detail()["input"])
    given["redelivery"] |= redelivery
    return json.dumps(given | {"limit": {"resetsAt": window_end}})


def test_what_the_rate_limit_refused_counts_when_it_comes_again():
    """Its own window stays full; its own time stays what it was."""
    before = times.now()
    old = limited("2026-01-31T13:00:00.000Z", countAt="2026-01-31T12:30:00.000Z")
    found = examine(detail(error="RateLimited", input=old), World(), LOCKS)
    assert found is not None
    assert found.request.count_at is not None
    assert before <= found.request.count_at <= times.now()
    assert NOON == found.request.requested_at


def test_what_the_rate_limit_refused_never_counts_in_the_same_window():
    """Though this clock may be late."""
    ends = times.to_text(times.now() + timedelta(minutes=1))
    found = examine(detail(error="RateLimited", input=limited(ends)), World(), LOCKS)
    assert found is not None
    assert times.from_text(ends) == found.request.count_at


@pytest.mark.parametrize("ends", [None, "2999-01-01T00:00:00.000Z"])
def test_a_refused_request_with_another_window_than_the_workflow_s_counts_now(ends: str | None):
    """An older client has sent none, or that of a rule which a deployment has replaced since."""
    before = times.now()
    given = detail()["input"] if ends is None else limited(ends)
    found = examine(detail(error="RateLimited", input=given), World(), LOCKS)
    assert found is not None
    assert found.request.count_at is not None
    assert before <= found.request.count_at <= times.now()


def test_what_the_rate_limit_admitted_stays_in_its_window():
    """Whatever it died of: it must not be counted twice."""
    moved = limited("2026-01-31T13:00:00.000Z", countAt="2026-01-31T12:30:00.000Z")
    found = examine(detail(error="RetryLater", input=moved), World(), LOCKS)
    assert found is not None
    assert times.from_text("2026-01-31T12:30:00.000Z") == found.request.count_at
    redelivery = {"requestId": "order-1", "tries": 0, "countAt": "2026-01-31T12:30:00.000Z"}
    assert redelivery == found.request.redelivery


def late(**changed: Any) -> dict[str, Any]:
    """Of an execution that ended RetryLater three hours ago."""
    return detail(**ended_at(times.now() - timedelta(hours=3)) | changed)


def test_a_late_report_comes_back_if_the_lock_is_still_its_own():
    """The record could not be read when the search came by. A person has mended it since."""
    world = World()
    world.hold(TOKEN, "order-1", PAYLOAD_HASH)
    world.locks[TOKEN]["status"] = {"S": "RELEASED"}

    found = examine(late(), world.sfn, Locks(world, "locks"))

    assert found is not None
    assert found.doubt is None


@pytest.mark.parametrize("name", ["order-1--2", "order-1--3"])
def test_a_late_report_of_what_its_next_attempt_carries_on_is_left_alone(name: str):
    """The search has brought the message back. A later attempt than the next one is of another message."""
    world = World()
    world.sfn.put(name, input=detail()["input"], status="SUCCEEDED")
    found = examine(late(), world.sfn, LOCKS)
    assert (name == "order-1--2") == (found is None)


@pytest.mark.parametrize("has_event", [True, False])
def test_an_attempt_of_an_earlier_request_carries_nothing_on(has_event: bool):
    """A name is free again after 90 days, and that of the second attempt some days later than the first's."""
    world, began = World(), times.now() - timedelta(hours=4)
    earlier = {"startDate": began - timedelta(days=90), "stopDate": began - timedelta(days=89)}
    world.sfn.put("order-1--2", input=detail()["input"], status="SUCCEEDED", **earlier)
    world.sfn.put("order-1", input=detail()["input"], status="FAILED", error="RetryLater", startDate=began)
    event = late(startDate=round(began.timestamp() * 1000))
    if not has_event:
        event = {name: event[name] for name in ("executionArn", "stopDate")}
    assert examine(event, world.sfn, LOCKS) is not None


@pytest.mark.parametrize("reported", [late, detail], ids=["late", "at once"])
def test_a_mismatch_has_a_dead_letter_that_says_whose(reported: Callable[..., dict[str, Any]]):
    """Also if the record that refused it is gone. It would be refused however often it came."""
    found = examine(reported(error="PayloadMismatch"), World().sfn, LOCKS)
    assert found is not None
    assert f"The lock token {TOKEN!r} was used with another payload." == found.doubt


@pytest.mark.parametrize("reported", [late, detail], ids=["late", "at once"])
def test_released_work_that_had_a_mismatch_of_its_own_comes_back(reported: Callable[..., dict[str, Any]]):
    """The release says that it may run again. Its error has the name of the workflow's by chance."""
    world = World()
    entered = [{"stateEnteredEventDetails": {"name": state}} for state in ("AcquireLock", "DoWork")]
    world.sfn.put("order-1", *entered, status="FAILED")
    found = examine(reported(error="PayloadMismatch"), world.sfn, locks_with("RELEASED", PAYLOAD_HASH))
    assert found is not None
    assert found.doubt is None


def test_an_attempt_with_the_same_payload_in_another_order_carries_it_on():
    """Whoever sends a message again may write its JSON anew."""
    world, given = World(), json.loads(detail()["input"])
    given["payload"] = dict(reversed(given["payload"].items()))
    world.sfn.put("order-1--2", input=json.dumps(given), status="SUCCEEDED")
    assert None is examine(late(), world.sfn, LOCKS)


def test_each_call_but_the_first_waits_for_its_turn():
    """The search shares the quota of DescribeExecution with everybody else."""
    world, turns = World(), []
    world.sfn.put("order-1", status="FAILED")
    examine(late(error="Boom"), world.sfn, LOCKS, before_call=lambda: turns.append(1))
    assert 2 == len(turns)  # for the next attempt, and for the history


@pytest.mark.parametrize(("state", "may_be_answered"), [("ReadLock", True), ("PrepareRequest", False)])
def test_a_late_report_of_a_death_at_a_lock_that_is_gone_is_for_a_person(state: str, may_be_answered: bool):
    """A guard's answer may have expired after the message came back. DynamoDB deletes its record at once."""
    world = World()
    world.sfn.put("order-1", {"stateEnteredEventDetails": {"name": state}}, status="FAILED")

    found = examine(late(error="Lambda.ServiceException"), world.sfn, LOCKS)

    assert found is not None
    assert may_be_answered == (found.doubt or "").endswith(IF_NOT_ANSWERED)


def test_a_message_whose_record_is_damaged_is_for_a_person():
    """Its letter advises to mend or to delete the record, which may have the answer."""
    world = World()
    world.hold(TOKEN, "order-1", PAYLOAD_HASH)
    world.locks[TOKEN]["attempt"] = {"N": "1.5"}

    found = examine(late(), world.sfn, Locks(world, "locks"))

    assert found is not None
    assert found.doubt is not None
    assert found.doubt.endswith(IF_NOT_ANSWERED)


@pytest.mark.parametrize(("hours", "may_be_answered"), [(2, True), (4, False)])
def test_a_late_report_is_for_a_person_if_another_request_has_taken_the_lock_since(
    hours: int, may_be_answered: bool
):
    """It may have taken it from an answer that had expired."""
    world = World()
    world.hold(TOKEN, "order-9", PAYLOAD_HASH)
    world.locks[TOKEN]["created"] = {"S": times.to_text(times.now() - timedelta(hours=hours))}

    found = examine(late(error="AlreadyInProgress"), world.sfn, Locks(world, "locks"))

    assert found is not None
    assert may_be_answered == (found.doubt is not None)


def test_a_lock_that_was_taken_at_a_whole_second_was_not_taken_since():
    """Step Functions writes such a time without `.000`, and that text is the latest of its second."""
    world = World()
    world.hold(TOKEN, "order-9", PAYLOAD_HASH)
    second = times.now().replace(microsecond=0) - timedelta(hours=3)
    world.locks[TOKEN]["created"] = {"S": aws_time(second)}

    end = detail(error="AlreadyInProgress", **ended_at(second + timedelta(milliseconds=400)))
    found = examine(end, world.sfn, Locks(world, "locks"))

    assert found is not None
    assert found.doubt is None


@pytest.mark.parametrize(("minutes", "may_be_answered"), [(1, True), (3, False)])
def test_a_repeated_report_does_not_bring_back_what_was_answered_meanwhile(
    minutes: int, may_be_answered: bool
):
    """The answer came after the first report, and has expired before the second."""
    world = World()
    world.hold(TOKEN, "order-9", PAYLOAD_HASH)
    expires = {"expiresAt": {"S": times.to_text(times.now() - timedelta(minutes=minutes))}}
    world.locks[TOKEN] |= EXPIRED | expires
    repeated = detail(error="AlreadyInProgress", **ended_at(times.now() - timedelta(minutes=2)))

    found = examine(repeated, world.sfn, Locks(world, "locks"))

    assert found is not None
    assert may_be_answered == (found.doubt is not None)


@pytest.mark.parametrize("of", [detail, late])
def test_a_message_whose_record_cannot_be_read_is_for_a_person(of: Callable[..., dict[str, Any]]):
    """Nobody can tell whether it answers. The letter names the attribute, and what to do."""
    world = World()
    world.hold(TOKEN, "order-1", PAYLOAD_HASH)
    world.locks[TOKEN]["attempt"] = {"N": "1.5"}

    found = examine(of(), world.sfn, Locks(world, "locks"))

    assert found is not None
    assert found.doubt is not None
    assert f"{TOKEN!r} cannot be read: its attribute attempt" in found.doubt


@pytest.mark.parametrize("of", [detail, late])
def test_a_message_that_is_carried_on_needs_no_record(of: Callable[..., dict[str, Any]]):
    """It came back already. A letter about the damaged record would tell a person to redrive it."""
    world = World()
    world.hold(TOKEN, "order-1", PAYLOAD_HASH)
    world.locks[TOKEN]["attempt"] = {"N": "1.5"}
    world.sfn.put("order-1--2", input=detail()["input"], status="SUCCEEDED")

    assert None is examine(of(), world.sfn, Locks(world, "locks"))


def test_an_answer_whose_record_cannot_be_read_is_still_an_answer():
    """The history has it."""
    world = World()
    world.hold(TOKEN, "order-1", PAYLOAD_HASH)
    world.locks[TOKEN]["attempt"] = {"N": "1.5"}
    world.sfn.put("order-1", {"stateEnteredEventDetails": {"name": "RecordFinalError"}}, status="FAILED")
    assert examine(detail(error="CardDeclined"), world.sfn, Locks(world, "locks")) is None


def test_a_cancelled_request_does_not_come_back():
    """Somebody has decided so."""
    assert None is examine(detail(error="Cancelled"), World().sfn, LOCKS)


def test_an_execution_that_somebody_waits_for_is_left_alone():
    """Its caller has the answer; nothing is asked of AWS for it."""
    given = json.loads(detail()["input"])
    del given["redelivery"]
    left = detail(input=json.dumps(given), error=None)
    assert None is examine(left, World().sfn, LOCKS)


MALFORMED: list[dict[str, Any]] = [
    {"redelivery": None},
    {"redelivery": "order-1"},
    {"redelivery": {}},
    {"redelivery": {"requestId": "order-1"}},
    {"redelivery": {"requestId": 1, "tries": 0}},
    {"redelivery": {"requestId": " ", "tries": 0}},
    {"redelivery": {"requestId": "order-1", "tries": "many"}},
    {"redelivery": {"requestId": "order-1", "tries": float("inf")}},
    {"redelivery": {"requestId": "order-1", "tries": -1}},
    {"redelivery": {"requestId": "order-1", "tries": 0, "countAt": "soon"}},
    {"payload": ["no object"]},
    {"lockToken": None},
    {"lockToken": ""},
    {"lockToken": "k" * 2_049},
    {"requestedAt": "soon"},
    {"requestedAt": 7},
]


@pytest.mark.parametrize("changed", MALFORMED, ids=lambda changed: json.dumps(changed)[:60])
def test_an_execution_with_a_malformed_input_brings_no_message_back(changed: dict[str, Any]):
    """Somebody has started it by hand. The function does not fail, so the event is not dead-lettered."""
    given = json.dumps(json.loads(detail()["input"]) | changed)
    assert None is examine(detail(input=given), World().sfn, LOCKS)


@pytest.mark.parametrize(
    "given", ['{"x": ' + "9" * 5_000 + "}", "[" * 100_000, "[]"], ids=["digits", "deep", "list"]
)
def test_an_execution_whose_input_python_cannot_read_brings_no_message_back(given: str):
    """Step Functions accepts such JSON from a start by hand."""
    assert None is examine(detail(input=given), World().sfn, LOCKS)


def test_an_execution_with_a_malformed_rate_limit_brings_no_message_back():
    """The limit is read only after the rate limit has refused the request."""
    given = json.dumps(json.loads(detail()["input"]) | {"limit": "none"})
    refused = detail(input=given, error="RateLimited")
    assert None is examine(refused, World().sfn, LOCKS)


@pytest.mark.parametrize("name", ["redelivery", "payload", "lockToken", "requestedAt"])
def test_an_execution_whose_input_lacks_a_field_brings_no_message_back(name: str):
    """A trigger sends all of these fields."""
    given = json.loads(detail()["input"])
    del given[name]
    assert None is examine(detail(input=json.dumps(given)), World().sfn, LOCKS)


@pytest.mark.parametrize(
    "left_out",
    [{"error": None}, {"input": None, "inputDetails": {"included": False}}, {"input": None}, {"error": ""}],
)
def test_what_the_event_leaves_out_is_asked_for(left_out: dict[str, Any]):
    """A large input is not in it, and nor may the error be."""
    world = World()
    world.sfn.put("order-1", input=detail()["input"])
    world.sfn.close("order-1", "FAILED", "RetryLater", "")
    found = examine(detail(**left_out), world.sfn, LOCKS)
    assert found is not None
    assert ("order-1", "RetryLater") == (found.request.request_id, found.error)


LARGE: dict[str, Any] = {"input": None, "inputDetails": {"included": False}}


def still_shown_open() -> World:
    """DescribeExecution does not show the end yet, nor its error."""
    world = World()
    world.sfn.put("order-1", input=detail()["input"])
    return world


def test_a_cancelled_request_with_a_large_input_does_not_come_back():
    """The event says that it was cancelled. DescribeExecution may not, a moment after the end."""
    cancelled = detail(status="ABORTED", error="Cancelled", **LARGE)
    assert None is examine(cancelled, still_shown_open().sfn, LOCKS)


def test_a_large_request_that_the_rate_limit_refused_counts_in_the_next_window():
    """Else it was refused in its old window each time, until its tries were used up."""
    found = examine(detail(error="RateLimited", **LARGE), still_shown_open().sfn, LOCKS)
    assert found is not None
    assert found.request.count_at is not None


@pytest.mark.parametrize(
    ("status", "error"),
    [("ABORTED", "ExecutionAborted"), ("TIMED_OUT", "States.Timeout"), ("FAILED", "ExecutionFailed")],
)
def test_an_end_without_an_error_has_the_name_of_its_status(status: str, error: str):
    """A dead letter gives it as the reason."""
    found = examine(detail(status=status, error=None), still_shown_open().sfn, LOCKS)
    assert found is not None
    assert error == found.error


def test_an_end_without_a_redrive_has_one_name():
    """The search for lost ends says 0, and its mark must be found."""
    ended = detail(redriveCount=None)
    found = examine(ended, World().sfn, LOCKS)
    assert found is not None
    assert end_of(ended["executionArn"], json.loads(ended["input"])["callId"], 0) == found.end


def test_an_execution_too_new_to_be_described_is_asked_for_again():
    """Nothing is decided without its input."""
    with pytest.raises(Unavailable, match=f"{MACHINE.replace(':stateMachine:', ':execution:')}:order-1"):
        examine(detail(input=None), World().sfn, LOCKS)
