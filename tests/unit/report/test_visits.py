"""Which states an execution is in, by histories that are linked as AWS links them."""

from __future__ import annotations

from typing import Any

import pytest

from steponce.report.visits import Visits
from tests.unit.report.world import NOW


class History:
    """Events in their order. Each method returns the id of its last event."""

    def __init__(self) -> None:
        self._visits = Visits()
        self._ids = 0
        self.start = self.add("ExecutionStarted", 0)

    def add(self, kind: str, previous: int, name: str = "", **details: Any) -> int:
        self._ids += 1
        if name:
            part = "stateExitedEventDetails" if kind.endswith("Exited") else "stateEnteredEventDetails"
            details[part] = {"name": name}
        self._visits.add(
            {"id": self._ids, "previousEventId": previous, "type": kind, "timestamp": NOW} | details
        )
        return self._ids

    def enter(self, name: str, previous: int, type_: str = "Parallel") -> int:
        """A Parallel or Map is entered, and its branches start."""
        return self.add(f"{type_}StateStarted", self.add(f"{type_}StateEntered", previous, name))

    def leave(self, name: str, previous: int, end: str = "Succeeded", type_: str = "Parallel") -> int:
        return self.add(f"{type_}StateExited", self.add(f"{type_}State{end}", previous), name)

    def wait(self, name: str, previous: int) -> int:
        """A state waits for an answer."""
        scheduled = self.add("TaskScheduled", self.add("TaskStateEntered", previous, name))
        return self.add("TaskSubmitted", self.add("TaskStarted", scheduled))

    def succeed(self, name: str, waiting: int) -> int:
        return self.add("TaskStateExited", self.add("TaskSucceeded", waiting), name)

    def fail(self, waiting: int) -> int:
        """A state fails, and AWS aborts the others. What follows is linked to the failure."""
        failed = self.add("TaskFailed", waiting)
        self.add("TaskStateAborted", failed)
        return failed

    def iteration(self, name: str, number: int, previous: int, kind: str = "Started") -> int:
        details = {f"mapIteration{kind}EventDetails": {"name": name, "index": number}}
        return self.add(f"MapIteration{kind}", previous, **details)

    @property
    def places(self) -> list[str]:
        """The states that the execution is in."""
        return [visit.state for visit in self._visits.open()]

    @property
    def ended(self) -> list[bool]:
        """Of each visit whether it has ended."""
        return [visit.exited is not None for visit in self._visits.all]


def two_waits(history: History) -> tuple[int, int]:
    both = history.enter("Both", history.start)
    return history.wait("A", both), history.wait("B", both)


def test_each_branch_is_in_a_state():
    """The Parallel around them is not named as well."""
    history = History()
    two_waits(history)

    assert ["A", "B"] == history.places


@pytest.mark.parametrize(("answered", "left"), [("A", "B"), ("B", "A")])
def test_a_branch_that_has_ended_is_in_no_state(answered: str, left: str):
    """Whichever was entered later."""
    history = History()
    waits = dict(zip("AB", two_waits(history), strict=True))

    end = history.succeed(answered, waits[answered])

    assert [left] == history.places

    end = history.succeed(left, waits[left])

    assert ["Both"] == history.places

    end = history.leave("Both", end)

    assert [] == history.places

    history.wait("C", end)

    assert ["C"] == history.places


def test_a_branch_goes_on_beside_another():
    """It is in its next state, and the other one still waits."""
    history = History()
    a, _ = two_waits(history)

    history.add("TaskStateEntered", history.succeed("A", a), "After")

    assert ["B", "After"] == history.places


def test_a_parallel_that_fails_ends_its_branches():
    """They have no events of their own, and the failure is caught."""
    history = History()
    a, _ = two_waits(history)

    failed = history.fail(a)

    assert ["Both"] == history.places

    history.wait("Caught", history.leave("Both", failed, "Failed"))

    assert ["Caught"] == history.places


def test_a_parallel_that_is_retried_begins_its_branches_again():
    """Its retry is linked to the failure, and nothing says that it has failed."""
    history = History()
    a, _ = two_waits(history)

    again = history.add("ParallelStateStarted", history.fail(a))

    assert ["Both"] == history.places

    b = history.wait("B", again)

    assert ["B"] == history.places

    history.wait("A", again)

    assert ["B", "A"] == history.places

    history.succeed("B", b)

    assert ["A"] == history.places


def test_an_abortion_that_is_late_does_not_end_the_next_round():
    """An engine may write it after the branches have started again."""
    history = History()
    a, _ = two_waits(history)
    failed = history.add("TaskFailed", a)
    again = history.add("ParallelStateStarted", failed)
    history.wait("A", again)

    history.add("TaskStateAborted", failed)

    assert ["A"] == history.places


def test_a_loop_enters_its_parallel_again():
    """What waited in the round before is over, although it was never exited."""
    history = History()
    a, _ = two_waits(history)
    caught = history.leave("Both", history.add("TaskFailed", a), "Failed")

    passed = history.add("PassStateExited", history.add("PassStateEntered", caught, "Pause"), "Pause")
    history.wait("A", history.enter("Both", passed))

    assert ["A"] == history.places


def test_the_iterations_of_a_map_are_visits_each():
    """The start of one is linked to the end of another, which made room for it."""
    history = History()
    items = history.enter("Items", history.start, "Map")
    waits = [history.wait("Ask", history.iteration("Items", number, items)) for number in range(3)]

    assert ["Ask"] * 3 == history.places

    left = history.succeed("Ask", waits[1])
    history.iteration("Items", 1, left, "Succeeded")

    assert ["Ask"] * 2 == history.places

    waits[1] = history.wait("Ask", history.iteration("Items", 3, left))

    assert ["Ask"] * 3 == history.places

    ends = [history.succeed("Ask", one) for one in waits]

    assert ["Items"] == history.places

    history.leave("Items", history.iteration("Items", 3, ends[-1], "Succeeded"), type_="Map")

    assert [] == history.places


@pytest.mark.parametrize("then", ["caught", "retried"])
def test_a_map_that_fails_ends_its_iterations(then: str):
    """Each has an event that says so, but it is linked to the failure."""
    history = History()
    items = history.enter("Items", history.start, "Map")
    waits = [history.wait("Ask", history.iteration("Items", number, items)) for number in range(3)]
    failed = history.add("TaskTimedOut", waits[0])
    history.iteration("Items", 0, failed, "Failed")

    assert ["Items"] == history.places

    for number in (1, 2):
        history.iteration("Items", number, failed, "Aborted")
        history.add("TaskStateAborted", failed)

    if then == "caught":
        history.wait("Caught", history.leave("Items", failed, "Failed", "Map"))
        assert ["Caught"] == history.places
    else:
        again = history.add("MapStateStarted", failed)
        history.wait("Ask", history.iteration("Items", 0, again))
        assert ["Ask"] == history.places


def test_a_step_beside_a_parallel_that_fails_still_waits():
    """Only the one inside is cancelled. The state around both goes on."""
    history = History()
    outer = history.enter("Outer", history.start)
    history.wait("Beside", outer)
    inner = history.enter("Inner", outer)
    history.wait("Inside", inner)

    failed = history.fail(history.wait("Fails", inner))

    assert ["Beside", "Inner"] == history.places

    history.wait("Caught", history.leave("Inner", failed, "Failed"))

    assert ["Beside", "Caught"] == history.places


@pytest.mark.parametrize("is_said", [True, False])
@pytest.mark.parametrize("around", ["Parallel", "Map"])
def test_a_parallel_that_fails_can_fail_the_state_around_it(around: str, is_said: bool):
    """That one starts its branches again, linked to the same failure."""
    history = History()
    outer = history.enter("Outer", history.start, around)
    branches = (
        [outer, outer] if around == "Parallel" else [history.iteration("Outer", n, outer) for n in (0, 1)]
    )
    history.wait("Beside", branches[0])
    failed = history.fail(history.wait("Fails", history.enter("Inner", branches[1])))
    if is_said:
        history.add("ParallelStateFailed", failed)

    again = history.add(f"{around}StateStarted", failed)
    branch = again if around == "Parallel" else history.iteration("Outer", 0, again)
    history.enter("Inner", branch)

    assert ["Inner"] == history.places

    history.wait("Beside", again if around == "Parallel" else history.iteration("Outer", 1, again))

    assert ["Inner", "Beside"] == history.places


def test_a_parallel_is_left_with_what_is_inside_of_it():
    """Inner has neither failed nor ended; another branch of Outer has failed."""
    history = History()
    outer = history.enter("Outer", history.start)
    history.wait("Inside", history.enter("Inner", outer))
    failed = history.add("TaskFailed", history.wait("Fails", outer))

    history.leave("Outer", failed, "Failed")

    assert [] == history.places


def test_the_branches_of_two_iterations_are_told_apart():
    """Each iteration enters Pay. The exit of one's is not that of the other's."""
    history = History()
    items = history.enter("Items", history.start, "Map")
    branches = [history.enter("Pay", history.iteration("Items", number, items)) for number in (0, 1)]
    first, _ = [history.wait("Ask", branch) for branch in branches]

    history.leave("Pay", history.succeed("Ask", first))

    assert ["Ask"] == history.places


def test_a_redrive_goes_on_with_what_was_cancelled():
    """What had no exit when the execution ended."""
    history = History()
    a, b = two_waits(history)
    failed = history.fail(a)
    history.add("ParallelStateFailed", failed)
    history.add("ExecutionRedriven", history.add("ExecutionFailed", failed))

    a, b = (history.add("TaskSubmitted", history.add("TaskScheduled", one)) for one in (a, b))

    assert ["A", "B"] == history.places

    history.succeed("B", b)

    assert ["A"] == history.places


def test_a_redriven_map_begins_more_iterations():
    """The entry of a state by a new iteration says nothing of those that were in it before the redrive."""
    history = History()
    items = history.enter("Items", history.start, "Map")
    first, second = (history.wait("Ask", history.iteration("Items", number, items)) for number in (0, 1))
    failed = history.fail(first)
    history.add("ExecutionRedriven", history.add("ExecutionFailed", history.add("MapStateFailed", failed)))
    first, second = (history.add("TaskScheduled", one) for one in (first, second))

    history.wait("Ask", history.iteration("Items", 2, history.succeed("Ask", first)))

    assert ["Ask", "Ask"] == history.places

    history.succeed("Ask", second)

    assert ["Ask"] == history.places
    assert [False, True, True, False] == history.ended


def test_a_history_whose_newest_events_are_missing_says_what_it_has():
    """The step counts as open until its exit can be read."""
    history = History()
    _, b = two_waits(history)
    history.add("TaskSucceeded", b)

    assert ["A", "B"] == history.places
