"""
Whether a wait is over, by histories that are linked as AWS links them.

A Retry of a Parallel goes on from the event by which it failed, and what fails without a Catch of its own is
never exited.
"""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from steponce.callbacks.answer import Answer
from steponce.callbacks.outcome import outcome_of

YES = Answer("success", {"yes": True})
TOKEN = "the-token"


class History:
    """Events in their order. Each method returns the id of its last event."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.start = self.add("ExecutionStarted", 0)

    def add(self, kind: str, previous: int, name: str = "", **details: Any) -> int:
        if name:
            part = "stateExitedEventDetails" if kind.endswith("Exited") else "stateEnteredEventDetails"
            details[part] = {"name": name}
        self.events.append(
            {"id": len(self.events) + 1, "previousEventId": previous, "type": kind} | dict(details)
        )
        return len(self.events)

    def enter(self, name: str, previous: int) -> int:
        """A Parallel is entered, and its branches start."""
        return self.add("ParallelStateStarted", self.add("ParallelStateEntered", previous, name))

    def exit(self, name: str, previous: int, kind: str = "Succeeded") -> int:
        return self.add("ParallelStateExited", self.add(f"ParallelState{kind}", previous), name)

    def task(self, previous: int, end: str = "TaskSucceeded", *, waits: bool = False) -> int:
        entered = self.add("TaskStateEntered", previous)
        details = {"parameters": json.dumps({"Payload": {"taskToken": TOKEN} if waits else {}})}
        scheduled = self.add("TaskScheduled", entered, taskScheduledEventDetails=details)
        return self.add(end, scheduled)

    def wait(self, previous: int) -> int:
        return self.task(previous, "TaskSubmitted", waits=True)

    def answer(self, previous: int) -> int:
        return self.add("TaskSucceeded", previous, taskSucceededEventDetails={"output": YES.output_json()})

    def outcome(self) -> tuple[Answer | None, bool]:
        return outcome_of(cast(Any, self.events), TOKEN, None)


def failed_inside(history: History, round_two: str) -> int:
    """Outer has a branch in which Inner fails. Returns where the branches of its second round start."""
    failed = history.task(history.enter("Inner", history.enter("Outer", history.start)), "TaskFailed")
    history.add("ParallelStateFailed", failed)
    if round_two == "retried":
        return history.add("ParallelStateStarted", failed)
    caught = history.exit("Outer", failed, "Failed")
    return history.enter("Outer", history.add("WaitStateExited", history.add("WaitStateEntered", caught)))


@pytest.mark.parametrize("round_two", ["retried", "caught, and entered again"])
def test_a_wait_beside_a_parallel_that_ends_still_waits(round_two: str):
    """The one that failed in the first round was never exited; the exit of the second one's is its own."""
    history = History()
    branches = failed_inside(history, round_two)
    waiting = history.wait(branches)
    history.exit("Inner", history.task(history.enter("Inner", branches)))

    assert (None, False) == history.outcome()

    history.answer(waiting)

    assert (YES, True) == history.outcome()


@pytest.mark.parametrize("round_two", ["retried", "caught, and entered again"])
def test_a_wait_inside_of_a_parallel_that_ends_is_over(round_two: str):
    """Another branch of Inner fails, and Inner has a Catch. It is entered by another branch as well."""
    history = History()
    inner = history.enter("Inner", failed_inside(history, round_two))
    history.wait(inner)
    failed = history.task(inner, "TaskFailed")

    assert (None, False) == history.outcome()

    history.exit("Inner", failed, "Failed")

    assert (None, True) == history.outcome()


def test_a_wait_is_over_with_what_is_around_its_own_parallel():
    """A branch of Outer fails. Inner, in which the step waits, is not exited."""
    history = History()
    outer = history.enter("Outer", history.start)
    history.wait(history.enter("Inner", outer))
    history.exit("Outer", history.task(outer, "TaskFailed"), "Failed")

    assert (None, True) == history.outcome()


def test_the_items_of_a_map_enter_a_parallel_each_for_itself():
    """The end of one item's is not that of another's. AWS may link an item to the end of the one before."""
    history = History()
    items = history.add("MapStateStarted", history.add("MapStateEntered", history.start, "Items"))
    waiting = history.wait(history.enter("Pay", history.add("MapIterationStarted", items)))
    last = history.add("MapIterationStarted", items)
    for _ in range(3):
        last = history.exit("Pay", history.task(history.enter("Pay", last)))
        last = history.add("MapIterationStarted", last)

    assert (None, False) == history.outcome()

    history.answer(waiting)

    assert (YES, True) == history.outcome()


def test_a_parallel_that_was_left_before_is_not_around():
    """A loop goes through it again later, while this step waits no more."""
    history = History()
    left = history.exit("Both", history.task(history.enter("Both", history.start)))
    waiting = history.wait(left)

    assert (None, False) == history.outcome()

    history.exit("Both", history.task(history.enter("Both", history.answer(waiting))))

    assert (YES, True) == history.outcome()
