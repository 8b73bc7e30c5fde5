"""The repair of one lock, by whomever: the rule, the schedule and the workflow never disagree."""

from datetime import timedelta
from itertools import product
from typing import Any

import pytest

from steponce import executions, workflow
from steponce.errors import Unavailable
from steponce.failure import Failure
from steponce.locks.record import Lock
from steponce.recovery import owner
from steponce.recovery.repair import Repairer
from steponce.workflow import COMPLETED, FAILED, INPROGRESS, RELEASED
from tests import covering
from tests.fakes.step_functions import StepFunctions
from tests.unit.one_owner import (
    ENVELOPE,
    FAILURE,
    ITEM,
    JUST_NOW,
    KEPT_UNTIL,
    LONG_AGO,
    NOW,
    RESULT,
    STATES_AND_ENDS,
    TO_WORK,
    WORK_TIMEOUT,
    Stack,
    dead_owner,
    history,
)

TOKEN, OWNER = ITEM["lockToken"]["S"], ITEM["lockedBy"]["S"]


def repairer(
    stack: Stack, sfn: StepFunctions, unknown: owner.WhenOutcomeUnknown = "hold", by: str = "find_overdue"
) -> Repairer:
    """As the functions make it."""
    return Repairer(
        stack.locks,
        sfn,
        work_timeout_seconds=WORK_TIMEOUT,
        when_outcome_unknown=unknown,
        by=by,
    )


IDLE = history(("AcquireLock", ENVELOPE), end="ExecutionAborted")


def test_a_lock_whose_owner_died_idle_is_released(stack: Stack) -> None:
    """At once, with what the execution died of; anyone may take it then."""
    sfn = dead_owner(IDLE, status="ABORTED", stopDate=NOW)
    found = repairer(stack, sfn).repair_after(OWNER, TOKEN)
    assert owner.Finding("idle", 0, "AcquireLock", Failure("ExecutionAborted", None), wrote=True) == found
    lock = stack.lock()
    assert (RELEASED, Failure("ExecutionAborted", None)) == (lock.status, lock.failure)
    assert [("find_overdue", "released")] == [(one.by, one.what) for one in lock.interventions]
    assert lock.open_status is None


def test_a_lock_whose_owner_died_releasing_it_says_what_that_was_about_to_say(stack: Stack) -> None:
    """RetryLater, in the work's own words."""
    sfn = dead_owner(history(*TO_WORK, ("ReleaseLock", ENVELOPE | FAILURE)), status="TIMED_OUT")
    repairer(stack, sfn).repair_after(OWNER, TOKEN)
    assert (RELEASED, Failure("CardDeclined", "no")) == (stack.lock().status, stack.lock().failure)


@pytest.mark.parametrize(
    "change",
    [
        {"status": {"S": COMPLETED}},
        {"status": {"S": FAILED}},
        {"status": {"S": RELEASED}},
        {"lockedBy": {"S": "arn:execution:order-1--2"}},
    ],
    ids=["completed", "failed", "released", "another-s"],
)
def test_a_lock_that_this_owner_does_not_hold_is_read_and_left(stack: Stack, change: Any) -> None:
    """An event that comes twice, late or after a takeover costs one read; Step Functions is not asked."""
    stack.put(**change)
    nobody: Any = None
    assert None is repairer(stack, nobody).repair_after(OWNER, TOKEN)
    assert ITEM | change == stack.item()


def test_a_lock_that_is_gone_needs_no_repair(stack: Stack) -> None:
    """It has expired, or was never taken."""
    nobody: Any = None
    assert None is repairer(stack, nobody).repair_after(OWNER, "shop/order-2")


def test_an_unknown_outcome_that_may_be_taken_over_is_left(stack: Stack) -> None:
    """Only the next request's workflow can confirm a takeover."""
    found = repairer(stack, dead_owner(history(*TO_WORK)), "take-over").repair_after(OWNER, TOKEN)
    assert found is not None
    assert ("unknown", False) == (found.verdict, found.wrote)
    assert ITEM == stack.item()


def test_a_result_that_no_record_can_hold_is_left(stack: Stack) -> None:
    """A person completes it."""
    sfn = dead_owner(history(*TO_WORK, ("ResultTooLarge", ENVELOPE)), error="ResultTooLarge")
    found = repairer(stack, sfn).repair_after(OWNER, TOKEN)
    assert found is not None
    assert ("unwritten", True) == (found.verdict, found.is_finalisation_failure)
    assert ITEM == stack.item()


def test_a_second_repair_finds_nothing(stack: Stack) -> None:
    """Whoever comes next, rule or schedule."""
    sfn = dead_owner(IDLE)
    repairer(stack, sfn).repair_after(OWNER, TOKEN)
    before = stack.item()
    rule = repairer(stack, sfn, by="close_execution")
    assert None is rule.repair_after(OWNER, TOKEN)
    assert [None] * 3 == [rule.repair_after(OWNER, wrong) for wrong in ("", "  ", "x" * 2_049)]
    assert before == stack.item()


def test_a_repair_that_comes_second_after_both_have_looked_writes_nothing(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its write is refused; it says that it wrote nothing, so that nothing is counted twice."""
    seen = stack.lock()
    repairer(stack, dead_owner(IDLE)).repair_after(OWNER, TOKEN)
    before = stack.item()
    monkeypatch.setattr(stack.locks, "get", lambda _token: seen)  # both have read it
    found = repairer(stack, dead_owner(IDLE), by="close_execution").repair_after(OWNER, TOKEN)
    assert found is not None
    assert ("idle", False) == (found.verdict, found.wrote)
    assert before == stack.item()


def test_an_owner_that_was_redriven_meanwhile_keeps_its_lock(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It took the lock anew, with a higher attempt, after it was found dead: its work may run by now."""
    seen = stack.lock()
    stack.put(attempt={"N": "2"})
    monkeypatch.setattr(stack.locks, "get", lambda _token: seen)
    repairer(stack, dead_owner(IDLE)).repair_after(OWNER, TOKEN)
    assert ITEM | {"attempt": {"N": "2"}} == stack.item()


def test_a_look_that_fails_settles_nothing(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one will."""

    def throttled(*_: Any) -> None:
        raise Unavailable("throttled")

    monkeypatch.setattr(owner, "describe_execution", throttled)
    with pytest.raises(Unavailable):
        repairer(stack, dead_owner(IDLE)).repair_after(OWNER, TOKEN)
    assert ITEM == stack.item()


def test_the_open_index_s_copy_is_enough(stack: Stack) -> None:
    """What it lacks is read before anything is written: an older intervention, and how long it is kept."""
    stack.put(interventions={"S": '[{"at":"2026","by":"ann","what":"held","why":"looked"}]'})
    (copy,) = stack.locks.open(INPROGRESS, 3)
    assert (None, ()) == (copy.expires_at, copy.interventions)
    repairer(stack, dead_owner(IDLE)).repair(copy)
    lock = stack.lock()
    assert ["ann", "find_overdue"] == [one.by for one in lock.interventions]
    assert (RELEASED, KEPT_UNTIL) == (lock.status, lock.ttl)


def test_a_living_owner_costs_no_read(stack: Stack) -> None:
    """Most are alive, and the index has told all that is needed to ask."""
    (copy,) = stack.locks.open(INPROGRESS, 3)
    unread: Any = None
    living = Repairer(
        unread,
        dead_owner([], status="RUNNING"),
        work_timeout_seconds=WORK_TIMEOUT,
        when_outcome_unknown="hold",
        by="find_overdue",
    )
    assert owner.Finding("alive") == living.repair(copy)


# -- Rule, schedule and workflow -----------------------------------------------------------------

STATES = [
    *sorted(workflow.BEFORE_WORK),
    "DoWork",
    "AwaitConfirmation",
    "ResultTooLarge",
    *sorted(workflow.TAKING_OVER),
    *sorted(workflow.OUTCOMES),
]
ERRORS = {
    "failed": {"status": "FAILED", "error": "Boom", "cause": "it broke"},
    "too-large": {"status": "FAILED", "error": "ResultTooLarge"},
    "stopped": {"status": "ABORTED"},
    "cancelled": {"status": "ABORTED", "error": executions.CANCELLED, "cause": "ann: wrong customer"},
    "timed-out": {"status": "TIMED_OUT"},
    "stranger": {"status": "FAILED", "input": '{"callId":"another"}'},
}
CLOSED = {"just-now": NOW - timedelta(seconds=1), "a-moment-ago": JUST_NOW, "long-ago": LONG_AGO}


def by_workflow(stack: Stack, sfn: StepFunctions, unknown: Any) -> tuple[str | None, Lock]:
    """What check_owner does; after `idle` the workflow takes the lock over, as it may a released one."""
    verdict = owner.settle_owner(
        stack.lock(),
        sfn,
        stack.locks,
        work_timeout_seconds=WORK_TIMEOUT,
        when_outcome_unknown=unknown,
        by="check_owner",
    ).verdict
    return verdict, stack.lock()


def kind(state: str) -> str:
    """What states that die alike have in common."""
    kinds = {"before": owner.BEFORE_WORK, "taking over": owner.TAKING_OVER, "outcome": owner.OUTCOMES}
    return next((name for name, states in kinds.items() if state in states), state)


@covering.rows(
    "state,error,closed,unknown",
    {
        f"{state}-{error}-{closed}-{unknown}": (state, ERRORS[error], CLOSED[closed], unknown)
        for state, error, closed, unknown in product(STATES, ERRORS, CLOSED, ("hold", "take-over"))
    },
    [
        lambda row: (row[0], row[2]),
        lambda row: (row[0], row[3]),
        lambda row: (kind(row[0]), str(row[1])),
        lambda row: (str(row[1]), row[2], row[3]),
    ],
)
def test_rule_schedule_and_workflow_agree_on_every_death(
    stack: Stack, state: str, error: dict[str, Any], closed: Any, unknown: Any
) -> None:
    """The same verdict, and the same record; of an idle owner, one that is as free as a takeover makes it."""
    events = history(*TO_WORK, (state, ENVELOPE | RESULT | FAILURE), end=STATES_AND_ENDS[0])
    sfn = dead_owner(events, stopDate=closed, **error)
    told = {"workflow": by_workflow(stack, sfn, unknown)}
    for by in ("close_execution", "find_overdue"):
        stack.put()
        found = repairer(stack, sfn, unknown, by).repair_after(OWNER, TOKEN)
        told[by] = (found and found.verdict, stack.lock())

    (verdict, left), rule, schedule = told["workflow"], told["close_execution"], told["find_overdue"]
    assert verdict == rule[0] == schedule[0]
    content = [
        (lock.status, lock.result, lock.failure, lock.open_status, lock.ttl) for _, lock in (rule, schedule)
    ]
    assert content[0] == content[1]
    if verdict == "idle":
        assert (INPROGRESS, RELEASED) == (left.status, content[0][0])
    else:
        assert (left.status, left.result, left.failure, left.open_status, left.ttl) == content[0]
