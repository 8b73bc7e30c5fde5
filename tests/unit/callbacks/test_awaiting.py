"""The record of a waiting step: its id, whose token it holds, and that every write to it is fenced."""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from moto import mock_aws

from steponce.aws import times
from steponce.callbacks.answer import Answer
from steponce.callbacks.awaiting import KEPT, AwaitingSteps
from steponce.callbacks.step import ANSWERED, ANSWERING, LATE, PENDING, AwaitingStep
from steponce.errors import (
    InvalidRequest,
    RecordUnreadable,
    StepAlreadyAnswered,
    StepNameTaken,
    SteponceError,
    Unavailable,
)
from tests.fakes.awaiting_steps_table import QuickTable
from tests.fakes.calls import Boundary
from tests.fakes.errors import client_error
from tests.fakes.tables import create_table
from tests.fakes.waiting_step import BEGINNING
from tests.unit.shared_clients import shared

YES, NO = Answer("success", {"confirmed": True}), Answer("failure", error="Declined")
RUNS = count()


class Records:
    """The real table, in moto."""

    def __init__(self) -> None:
        self.dynamodb = shared("dynamodb")
        create_table(self.dynamodb, "AwaitingStepsTable", "steps")
        self.steps = AwaitingSteps(self.dynamodb, "steps")

    def item(self, step: AwaitingStep) -> dict[str, Any]:
        """The record as it is."""
        key = {"awaitingStepId": {"S": step.id}}
        return self.dynamodb.get_item(TableName="steps", Key=key).get("Item", {})

    def read(self, step: AwaitingStep) -> AwaitingStep:
        """The record as it is, read."""
        found = self.steps.get(step.id)
        assert found is not None
        return found

    def claimed(self, step: AwaitingStep, answer: Answer = YES, call: str = "me") -> AwaitingStep:
        """The record after an answer has claimed it."""
        claimed = self.steps.claim(step, answer, call)
        assert claimed is not None
        return claimed


@pytest.fixture(scope="module")
def records() -> Iterator[Records]:
    """One table for the module; each test has steps of its own."""
    with mock_aws():
        yield Records()


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is twelve."""
    monkeypatch.setattr(times, "now", lambda: BEGINNING)


def event(run: str = "run-0", **changed: Any) -> dict[str, Any]:
    """What the workflow hands to the recording function."""
    return {
        "step": "confirmation",
        "taskToken": "secret-token",
        "enteredAt": "2026-01-31T12:00:00.000Z",
        "retryCount": 0,
        "timeoutSeconds": 3600,
        "execution": "arn:execution:order-1",
        "requestId": "order-1",
        "lockToken": "shop/order-1",
        "callId": run,
        "attempt": 1,
    } | changed


@pytest.fixture
def first(records: Records) -> AwaitingStep:
    """A step of a new run, on record."""
    step = AwaitingStep.from_event(event(f"run-{next(RUNS)}"))
    records.steps.record(step)
    return step


def later(step: AwaitingStep, **changed: Any) -> AwaitingStep:
    """The same step's next try."""
    return AwaitingStep.from_event(
        event(step.call_id, **({"taskToken": "newer-token", "retryCount": 1} | changed))
    )


# -- The id --------------------------------------------------------------------------------------


def test_every_try_of_a_run_has_the_same_id():
    """Token, times and retry count are not part of it."""
    retried = event(taskToken="x", enteredAt="2026-01-31T13:00:00.000Z", retryCount=2, timeoutSeconds=9)

    assert AwaitingStep.from_event(event()).id == AwaitingStep.from_event(retried).id


@pytest.mark.parametrize(
    "other",
    [
        {"callId": "run-1"},
        {"attempt": 2},
        {"lockToken": "shop/order-2"},
        {"step": "shipment"},
        {"lockToken": 'shop/order-1", "confirmation', "step": '"'},
    ],
)
def test_no_other_run_or_step_has_the_same_id(other: dict[str, Any]):
    """Lock token, step, callId and attempt all count, and do not run into each other."""
    assert AwaitingStep.from_event(event()).id != AwaitingStep.from_event(event(**other)).id


@given(
    st.lists(
        st.tuples(*[st.text(min_size=1)] * 3, st.integers(1, 3)),
        unique=True,
        min_size=2,
    )
)
def test_ids_are_as_different_as_their_runs(runs: list[tuple[str, str, str, int]]):
    """Whatever the texts are."""
    names = ("lockToken", "step", "callId", "attempt")
    ids = {AwaitingStep.from_event(event(**dict(zip(names, run, strict=True)))).id for run in runs}

    assert len(runs) == len(ids)


@pytest.mark.parametrize("missing", list(event()))
def test_a_state_that_forgets_something_is_told_what(missing: str):
    """The message names the field."""
    passed = event()
    del passed[missing]

    with pytest.raises(InvalidRequest, match=f"does not pass '{missing}' to its function"):
        AwaitingStep.from_event(passed)


TEXTS = ("step", "taskToken", "execution", "requestId", "lockToken", "callId", "enteredAt")
NO_TEXTS: tuple[Any, ...] = ("", 0, 7, None, True, ["a"], {"x": "secret-value"})
NO_NUMBERS: tuple[Any, ...] = ("", "secret-value", None, ["a"], {"x": "secret-value"}, float("nan"))
NO_WHOLES: tuple[Any, ...] = (*NO_NUMBERS, -1, 10**30, float("inf"))
UNWRITABLE = [
    *((name, value) for name in TEXTS for value in NO_TEXTS),
    *(("attempt", value) for value in (*NO_WHOLES, 0)),
    *(("retryCount", value) for value in NO_WHOLES),
    *((name, value) for name in ("timeoutSeconds", "heartbeatSeconds") for value in NO_NUMBERS),
    *(("enteredAt", value) for value in ("secret-value", "2026-01-31T12:00:00")),
]


@pytest.mark.parametrize(("name", "value"), UNWRITABLE)
def test_what_no_record_can_hold_is_refused_before_it_is_written(name: str, value: Any):
    """It may come from the request's data. The message names the field, and the value may be a secret."""
    with pytest.raises(InvalidRequest, match=f"passes as {name} is not") as refused:
        AwaitingStep.from_event(event(**{name: value}))

    assert "secret-value" not in str(refused.value)
    assert refused.value.__cause__ is None


@pytest.mark.parametrize(
    "entered", ["2026-01-31T12:00:00Z", "2026-01-31T12:00:00.000Z", "2026-01-31T13:00:00.000499+01:00"]
)
def test_times_compare_however_an_engine_writes_them(entered: str):
    """moto writes microseconds and +00:00, and Java leaves out a fraction of zero."""
    assert "2026-01-31T12:00:00.000Z" == AwaitingStep.from_event(event(enteredAt=entered)).entered_at


@pytest.mark.parametrize(
    ("entered", "expires"),
    [
        ("2026-01-31T12:30:00.000Z", "2026-01-31T13:30:00.000Z"),
        ("2026-01-31T11:00:00.000Z", "2026-01-31T13:00:00.000Z"),
    ],
)
def test_a_step_never_expires_earlier_than_its_token(entered: str, expires: str):
    """A retry has the first try's EnteredTime but a time-out of its own, so the clock counts as well."""
    assert expires == AwaitingStep.from_event(event(enteredAt=entered)).expires_at


@pytest.mark.parametrize(
    ("passed", "answer_by"),
    [
        ({}, "2026-01-31T13:00:00.000Z"),
        ({"heartbeatSeconds": 900}, "2026-01-31T12:15:00.000Z"),
        ({"heartbeatSeconds": 9000}, "2026-01-31T13:00:00.000Z"),
    ],
)
def test_a_step_is_to_be_answered_before_its_heartbeat_is_missed(
    records: Records, passed: dict[str, int], answer_by: str
):
    """A definition of before does not pass it; then only the time-out is known."""
    step = AwaitingStep.from_event(event(f"run-{next(RUNS)}", **passed))
    records.steps.record(step)

    assert answer_by == step.answer_by == records.read(step).answer_by == step.public()["answerBy"]
    assert "2026-01-31T13:00:00.000Z" == step.expires_at


def test_a_record_of_before_is_to_be_answered_before_its_time_out(records: Records, first: AwaitingStep):
    """It does not tell the heartbeat."""
    item = {name: value for name, value in records.item(first).items() if name != "answerBy"}

    assert first == AwaitingStep.from_item(item)


# -- Secrets -------------------------------------------------------------------------------------


def test_what_people_see_never_shows_the_token(records: Records, first: AwaitingStep):
    """Neither the public part nor the repr has it, nor the answer's content."""
    claimed = records.claimed(first, Answer("success", "4242-4242"))

    for shown in (str(claimed.public()), repr(claimed), str(claimed), f"{claimed}", str([claimed])):
        assert "secret-token" not in shown
        assert "4242-4242" not in shown
        assert first.id in shown


# -- The token -----------------------------------------------------------------------------------


def test_a_recorded_step_is_read_as_it_was(records: Records, first: AwaitingStep):
    """Every field is in the record; it is kept for a while after its time."""
    assert first == records.read(first)
    kept_until = times.to_text(times.from_text(first.expires_at) + KEPT)
    assert str(times.epoch_seconds(kept_until)) == records.item(first)["ttl"]["N"]


def test_an_unknown_step_is_none(records: Records):
    """Nothing is made up."""
    assert records.steps.get("as_nothing") is None


@settings(max_examples=12)
@given(
    tries=st.permutations([(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]),
    again=st.integers(0, 4),
    claim_after=st.integers(0, 5),
)
def test_the_newest_token_wins_in_every_order(
    records: Records, tries: list[tuple[int, int]], again: int, claim_after: int
):
    """EnteredTime counts first, then RetryCount; a slow recorder changes nothing, before a claim or after."""
    run = f"run-{next(RUNS)}"
    newest = (-1, -1)
    for number, (entered, retry_count) in enumerate([*tries, tries[again]]):
        step = AwaitingStep.from_event(
            event(
                run,
                taskToken=f"token-{entered}-{retry_count}",
                enteredAt=f"2026-01-31T12:0{entered}:00.000Z",
                retryCount=retry_count,
            )
        )
        with suppress(StepNameTaken):  # told to a function whose try is over
            records.steps.record(step)
        newest = max(newest, (entered, retry_count))
        stored = records.read(step)
        assert f"token-{newest[0]}-{newest[1]}" == stored.task_token
        assert newest == (int(stored.entered_at[15]), stored.retry_count)
        if number == claim_after:
            records.claimed(stored)
    assert (ANSWERING, YES) == (records.read(step).status, records.read(step).answer)


def test_a_claimed_answer_stays_when_a_newer_token_comes(records: Records, first: AwaitingStep):
    """It is finished with the new token, by whoever comes next."""
    records.claimed(first)
    newer = later(first)
    records.steps.record(newer)

    stored = records.read(first)

    assert (ANSWERING, YES, "me") == (stored.status, stored.answer, stored.claim)
    assert ("newer-token", 1) == (stored.task_token, stored.retry_count)
    assert [first.id] == [step.id for step in records.steps.open() if step.id == first.id]


def test_a_claimed_answer_s_newer_token_brings_its_own_times(records: Records, first: AwaitingStep):
    """By the old ones the answer's record would be gone before its time, or an older try would be newer."""
    records.claimed(first)
    again = {"enteredAt": "2026-01-31T12:30:00.000Z", "retryCount": 0}
    newer = later(first, **again, timeoutSeconds=7200, heartbeatSeconds=900)
    records.steps.record(newer)

    stored = records.read(first)

    assert newer == replace(stored, status=PENDING, answer=None, claim=None, answered_at=None)
    kept_until = times.to_text(times.from_text(newer.expires_at) + KEPT)
    assert str(times.epoch_seconds(kept_until)) == records.item(first)["ttl"]["N"]


def test_a_step_whose_answer_was_refused_is_listed_as_waiting_again(records: Records, first: AwaitingStep):
    """Else the monitor would not count it among those that are near their time-out."""
    released = records.steps.release(records.claimed(first))

    assert first == released
    assert [True, False] == [first.id in records.steps.ids(status) for status in (PENDING, ANSWERING)]


def test_an_answered_step_refuses_a_newer_token(records: Records, first: AwaitingStep):
    """A second wait in the same run needs a name of its own; the answer stands."""
    records.steps.close(records.claimed(first), YES)

    with pytest.raises(StepAlreadyAnswered, match="'confirmation' of this run has its answer already"):
        records.steps.record(later(first))

    assert (ANSWERED, "secret-token") == (records.read(first).status, records.read(first).task_token)


@pytest.mark.parametrize("stored", [0, 1])
@pytest.mark.parametrize("status", [PENDING, ANSWERING, LATE])
def test_a_step_of_a_redriven_execution_is_told_that_its_name_is_taken(
    records: Records, first: AwaitingStep, stored: int, status: str
):
    """
    AWS gives it the EnteredTime of before, and counts its retries from 0. Nobody could answer the new token.

    The items of a Map that wait under one step name are the same.
    """
    if stored:
        first = later(first)
        records.steps.record(first)
    if status == ANSWERING:
        records.claimed(first)
    elif status == LATE:
        records.steps.close(records.read(first), None)
    before = records.item(first)

    with pytest.raises(StepNameTaken, match="'confirmation', and this try is no later one"):
        records.steps.record(replace(first, task_token="of-the-redrive", retry_count=0))
    records.steps.record(first)  # the function of this try is called twice

    assert before == records.item(first)


def test_a_step_that_was_answered_is_not_asked_again_by_a_redrive(records: Records, first: AwaitingStep):
    """Its answer was a failure, with which the execution ended."""
    records.steps.close(records.claimed(first), NO)

    with pytest.raises(StepAlreadyAnswered):
        records.steps.record(replace(first, task_token="of-the-redrive"))


@pytest.mark.parametrize(
    "answer",
    [
        {"outcome": "bogus"},
        {"outcome": ["success"]},
        {"outcome": "heartbeat"},
        {"outcome": "failure"},
        {},
        [],
    ],
    ids=str,
)
def test_an_answer_that_no_step_can_get_is_damage(records: Records, first: AwaitingStep, answer: Any):
    """It was sent to the workflow as a failure without an error."""
    item = records.item(records.claimed(first))
    records.dynamodb.put_item(TableName="steps", Item=item | {"answer": {"S": json.dumps(answer)}})

    with pytest.raises(RecordUnreadable, match="answer is none that a step can get"):
        records.steps.get(first.id)
    records.dynamodb.put_item(TableName="steps", Item=item)  # others list the same table


@pytest.mark.parametrize("retry_count", [0, 1])
def test_a_slow_recorder_does_not_mind_the_answer(records: Records, first: AwaitingStep, retry_count: int):
    """Its own try, or a newer one, has been recorded and answered: that is no second wait."""
    newer = later(first, retryCount=retry_count, enteredAt="2026-01-31T12:00:01.000Z")
    records.steps.record(newer)
    records.steps.close(records.claimed(newer), YES)

    records.steps.record(newer)
    records.steps.record(first)

    assert ANSWERED == records.read(first).status


def test_a_late_step_waits_again_with_a_newer_token(records: Records, first: AwaitingStep):
    """The workflow has entered it again; nothing of the late answer is left."""
    late = records.steps.close(records.claimed(first), None)
    assert late is not None
    assert (LATE, None, None) == (late.status, late.answer, late.claim)

    records.steps.record(first)
    assert LATE == records.read(first).status

    newer = later(first)
    records.steps.record(newer)
    assert newer == records.read(first)
    assert first.id in [step.id for step in records.steps.open()]


def test_a_token_is_not_lost_to_an_answer_that_is_closed_meanwhile(records: Records, first: AwaitingStep):
    """The record is late by the time that the newer token would join the claimed answer: it waits again."""
    claimed = records.claimed(first)
    calls = count()

    def gate(_name: str) -> None:
        if next(calls) == 1:
            records.steps.close(claimed, None)

    AwaitingSteps(Boundary(records.dynamodb, gate), "steps").record(later(first))

    assert (PENDING, "newer-token") == (records.read(first).status, records.read(first).task_token)


def test_a_record_that_is_erased_meanwhile_is_made_anew(records: Records, first: AwaitingStep):
    """A slow recorder's writes were refused by a newer try. Then the customer's records were erased."""
    records.steps.record(later(first))

    def gate(name: str) -> None:
        if name == "get_item":
            records.steps.erase(records.read(first))

    AwaitingSteps(Boundary(records.dynamodb, gate), "steps").record(first)

    assert first == records.read(first)


def test_a_record_that_never_stands_still_is_unavailable(records: Records, first: AwaitingStep):
    """The recorder gives up after some tries, and its state's Retry may begin again."""
    calls = count()

    def gate(_name: str) -> None:
        if next(calls) % 3 == 0:
            records.claimed(records.read(first))
        else:
            records.steps.release(records.read(first))

    with pytest.raises(Unavailable, match="keeps changing"):
        AwaitingSteps(Boundary(records.dynamodb, gate), "steps").record(later(first))


# -- The fence -----------------------------------------------------------------------------------


def test_only_one_answer_claims(records: Records, first: AwaitingStep):
    """The second finds the first in the record."""
    claimed = records.claimed(first)

    assert records.steps.claim(first, NO, "you") is None
    assert (ANSWERING, YES, "me") == (claimed.status, claimed.answer, claimed.claim)
    assert claimed == records.read(first)


@pytest.mark.parametrize("write", ["claim", "release", "answered", "late"])
def test_a_write_with_an_old_token_changes_nothing(records: Records, first: AwaitingStep, write: str):
    """What became of an old token says nothing of the new one."""
    stale = first if write == "claim" else records.claimed(first)
    records.steps.record(later(first))
    before = records.item(first)
    steps = records.steps

    if write == "claim":
        written = steps.claim(stale, YES, "me")
    elif write == "release":
        written = steps.release(stale)
    else:
        written = steps.close(stale, YES if write == "answered" else None)

    assert written is None
    assert before == records.item(first)


def test_an_answer_that_no_record_can_hold_is_kept_by_its_hash(records: Records, first: AwaitingStep):
    """A holder of the raw token may send 260 KB of 1e15; canonical text of it has over 400 KB."""
    sent = "[" + ",".join(["1e15"] * 52_000) + "]"
    everything = Answer("success", json.loads(sent))
    assert (True, True) == (262_144 > len(sent), 400_000 < len(everything.to_json()))

    closed = records.steps.close(records.claimed(first), Answer.of_output(sent))

    assert closed is not None
    assert ANSWERED == closed.status
    assert closed.answer is not None
    assert {"bytes", "sha256"} == set(closed.answer.output["notOnRecord"])
    assert closed.answer != everything


@pytest.mark.parametrize("arrived", [YES, None])
def test_what_is_closed_stays_closed(records: Records, first: AwaitingStep, arrived: Answer | None):
    """No later write with the same token opens it or changes its answer."""
    claimed = records.claimed(first)
    closed = records.steps.close(claimed, arrived)
    assert closed is not None

    assert records.steps.claim(first, NO, "you") is None
    assert records.steps.close(claimed, NO) is None
    assert records.steps.close(claimed, None) is None
    assert records.steps.release(claimed) is None
    records.steps.record(first)
    assert closed == records.read(first)


def test_a_record_says_when_its_answer_arrived(
    records: Records, first: AwaitingStep, monkeypatch: pytest.MonkeyPatch
):
    """When it was claimed; not when it was sent, which may be done later and by somebody else."""
    claimed = records.claimed(first)
    monkeypatch.setattr(times, "now", lambda: BEGINNING + timedelta(hours=1))
    closed = records.steps.close(claimed, YES)

    assert closed is not None
    assert [times.to_text(BEGINNING)] * 2 == [claimed.answered_at, closed.answered_at]


def test_an_answer_that_came_around_us_is_dated_when_it_is_found(
    records: Records, first: AwaitingStep, monkeypatch: pytest.MonkeyPatch
):
    """Not by the other answer, which had claimed the record before."""
    claimed = records.claimed(first)
    monkeypatch.setattr(times, "now", lambda: BEGINNING + timedelta(hours=1))
    closed = records.steps.close(claimed, NO)

    assert closed is not None
    assert times.to_text(BEGINNING + timedelta(hours=1)) == closed.answered_at


@pytest.mark.parametrize("end", ["refused", "late"])
def test_an_answer_that_was_taken_out_has_no_time(records: Records, first: AwaitingStep, end: str):
    """The next answer, if one comes, has its own."""
    claimed = records.claimed(first)
    left = records.steps.release(claimed) if end == "refused" else records.steps.close(claimed, None)

    assert left is not None
    assert (None, None) == (left.answer, left.answered_at)
    assert "answeredAt" not in records.item(first)


def test_a_step_that_was_answered_around_us_can_be_closed(records: Records, first: AwaitingStep):
    """Nobody claimed it; the answer is the one that arrived."""
    closed = records.steps.close(first, NO)

    assert closed is not None
    assert (ANSWERED, NO, None) == (closed.status, closed.answer, closed.claim)


def test_only_the_claim_that_was_refused_is_released(records: Records, first: AwaitingStep):
    """Another answer that has claimed since stays."""
    mine = records.claimed(first)
    assert records.steps.release(mine) is not None
    assert first == records.read(first)
    records.claimed(first, NO, "you")

    assert records.steps.release(mine) is None
    assert NO == records.read(first).answer


# -- The index -----------------------------------------------------------------------------------


def test_the_index_holds_what_waits_soonest_first(records: Records):
    """Pending and answering steps are on it; answered and late ones are not."""
    steps = [AwaitingStep.from_event(event(f"run-{next(RUNS)}", timeoutSeconds=n)) for n in (4, 3, 2, 1)]
    for step in steps:
        records.steps.record(step)
    records.claimed(steps[1])
    records.steps.close(records.claimed(steps[2]), YES)
    records.steps.close(steps[3], None)

    mine = [step.id for step in records.steps.open() if step.id in {step.id for step in steps}]

    assert [steps[1].id, steps[0].id] == mine
    assert "openStatus" not in records.item(steps[2]) | records.item(steps[3])


def test_a_step_that_is_claimed_while_the_index_is_read_is_listed_once(
    records: Records, first: AwaitingStep, monkeypatch: pytest.MonkeyPatch
):
    """It is among those that wait, and then among those whose answer is under way."""
    monkeypatch.setattr(records.steps, "ids", lambda _status: iter([first.id]))

    assert [first.id] == [step.id for step in records.steps.open()]


def test_a_step_that_was_closed_since_is_not_listed(records: Records, first: AwaitingStep):
    """The index is eventually consistent; the record is not."""
    records.dynamodb.update_item(
        TableName="steps",
        Key={"awaitingStepId": {"S": first.id}},
        UpdateExpression="SET #status = :late",
        ExpressionAttributeNames={"#status": "status"},
        ExpressionAttributeValues={":late": {"S": LATE}},
    )

    assert first.id not in [step.id for step in records.steps.open()]


# -- DynamoDB ------------------------------------------------------------------------------------


def test_throttling_is_unavailable_and_other_errors_lose_their_text(first: AwaitingStep):
    """Only what passes by itself is worth another try; AWS may quote the task token in the others."""

    class Broken:
        def __init__(self, code: str) -> None:
            self.code = code

        def update_item(self, **_call: Any) -> None:
            raise client_error(self.code)

    with pytest.raises(Unavailable):
        AwaitingSteps(Broken("ThrottlingException"), "steps").close(first, None)
    with pytest.raises(SteponceError, match=r"refused the step with AccessDeniedException\.$") as refused:
        AwaitingSteps(Broken("AccessDeniedException"), "steps").close(first, None)
    assert refused.value.__suppress_context__


@settings(max_examples=8)
@given(
    st.lists(
        st.sampled_from(["record 0", "record 1", "record 2", "claim", "release", "answered", "late"]),
        max_size=12,
    )
)
def test_the_quick_table_of_other_tests_does_as_moto_does(records: Records, writes: list[str]):
    """Whatever is written in whatever order, both end with the same record."""
    run = f"run-{next(RUNS)}"
    quick = QuickTable()
    both = (records.steps, AwaitingSteps(quick, "steps"))
    step = AwaitingStep.from_event(event(run))
    for write in writes:
        for steps in both:
            now = steps.get(step.id) or step
            if write.startswith("record"):
                tried = AwaitingStep.from_event(event(run, retryCount=int(write[-1]), taskToken=write))
                try:
                    steps.record(tried)
                except StepAlreadyAnswered:
                    assert ANSWERED == now.status
                except StepNameTaken:
                    assert now.retry_count >= tried.retry_count
            elif write == "claim":
                steps.claim(now, YES, "me")
            elif write == "release":
                steps.release(now)
            else:
                steps.close(now, NO if write == "answered" else None)
        assert records.item(step) == quick.items.get(step.id, {})


# -- The open index, by time ---------------------------------------------------------------------


def test_waiting_steps_are_found_by_their_time(records: Records):
    """In every shard, of one status, and with both ends of the span."""
    steps = [AwaitingStep.from_event(event(f"run-{next(RUNS)}", timeoutSeconds=7 + n)) for n in range(30)]
    for step in steps:
        records.steps.record(step)
    records.claimed(steps[12])
    since, until = steps[10].expires_at, steps[20].expires_at
    wanted = {step.id for step in steps[10:21]} - {steps[12].id}

    assert wanted == set(records.steps.ids(PENDING, since=since, until=until))
    assert [steps[12].id] == list(records.steps.ids(ANSWERING, since=since, until=until))


@pytest.mark.parametrize("shards", [3, *(pytest.param(n, marks=pytest.mark.full) for n in (1, 25))])
def test_a_stack_s_shards_are_all_written_and_read(records: Records, shards: int):
    """However many it has; a step that was recorded while there were fewer is found as well."""
    table, fewer = (AwaitingSteps(records.dynamodb, "steps", open_shards=n) for n in (shards, 1))
    run = [AwaitingStep.from_event(event(f"run-{next(RUNS)}", timeoutSeconds=99)) for _ in range(40)]
    for number, step in enumerate(run):
        (table if number else fewer).record(step)

    written = {records.item(step)["openStatus"]["S"] for step in run}

    assert written <= {f"PENDING#{shard}" for shard in range(shards)}
    assert len(written) > shards / 2
    assert {step.id for step in run} <= set(table.ids(PENDING))
