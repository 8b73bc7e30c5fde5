"""
Assigns an execution's events to visits of its states, and tells which of them have not ended.

AWS links the events of one branch by previousEventId. If a branch fails, the others of its Parallel or Map
are cancelled, and are not exited: the events that tell of it are linked to the failure. So a visit also ends
when the Parallel or Map around it exits, fails or starts its branches again.

The newest events of a history may be missing. A visit whose end is among them has not ended here yet.

Source: histories recorded on AWS, and the Step Functions Developer Guide, "Redriving executions".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from steponce.aws import times
from steponce.callbacks.step import AwaitingStep
from steponce.errors import InvalidRequest
from steponce.report.story import GONE, Trouble, Visit, Waiting

_TRIES = frozenset({"TaskScheduled", "LambdaFunctionScheduled", "ActivityScheduled"})

_AROUND = ("Parallel", "Map")
"""The types of the states that have branches: Parallel, and Map with its iterations."""

_BRANCHES_START = frozenset({"ParallelStateStarted", "MapStateStarted"})
"""The branches start. A retry of the Parallel or Map starts them again."""

_FAILS = frozenset({"ParallelStateFailed", "MapStateFailed"})

_ITERATION_ENDS_BADLY = frozenset({"MapIterationFailed", "MapIterationAborted"})


@dataclass(eq=False)
class _Place:
    """
    A visit, and where it is.

    Attributes:
        around: The Parallel or Map around it. None if it is in none.
        round: How often that one had started its branches when this was entered.
        type: `Parallel` or `Map`. Empty for any other state.
        rounds: How often it has started its branches.
        cancelled_in: After how many redrives its branches were cancelled. None if they were not, or have
            started again. A redrive goes on with those that were cancelled.
        is_failed: Whether it has failed as well. Before it does, it may be retried.
    """

    visit: Visit
    around: _Place | None
    round: int
    type: str
    rounds: int = 0
    cancelled_in: int | None = None
    is_failed: bool = False


class Visits:
    """
    The visits of an execution's states, and the steps that wait or waited in them.

    Attributes:
        all: The visits, in the order in which they were entered.
        asked: The visit of each step that was to be recorded, by its id. If a step is answered before the
            function has returned, the history does not say that it was recorded.
        recorded: The steps of which the function has returned that it recorded them.
    """

    def __init__(self) -> None:
        self.all: list[Visit] = []
        self.asked: dict[str, Visit] = {}
        self.recorded: dict[str, Waiting] = {}
        self._places: list[_Place] = []
        self._of_event: dict[int, _Place] = {}
        self._still_in: dict[str, dict[int, _Place]] = {}
        self._around: dict[str, str] = {}
        self._drive = 0

    def add(self, event: Mapping[str, Any]) -> None:
        """Add the next event, the oldest first."""
        kind, time = event["type"], times.to_text(event["timestamp"])
        self._drive += kind == "ExecutionRedriven"
        place = self._of_event.get(event.get("previousEventId", 0))
        if "stateEnteredEventDetails" in event:
            state = event["stateEnteredEventDetails"]["name"]
            place = self._enter(
                state, kind, time, self._really_started(self._around.get(state), event, place)
            )
        elif "stateExitedEventDetails" in event:
            place = self._leave(event["stateExitedEventDetails"]["name"], time, place)
        elif kind in _BRANCHES_START:
            place = self._start_branches(kind, place)
        elif kind == "MapIterationStarted":
            name = event.get("mapIterationStartedEventDetails", {}).get("name")
            place = self._map_of(event, kind, self._really_started(name, event, place))
        elif place is not None and not kind.startswith("Execution"):
            self._add_to(place.visit, kind, time, event)
            self._cancel(kind, event, place)
        if place is not None:
            self._of_event[event["id"]] = place

    def open(self) -> list[Visit]:
        """The visits that have not ended, without a Parallel or Map that is around another one of them."""
        found: dict[int, _Place] = {}
        outer: set[int] = set()
        for place in self._places:  # what is around a visit was entered before it
            around = place.around
            if not self._is_in(place):
                continue
            if around is not None and (id(around) not in found or not self._is_branch_of_now(place, around)):
                continue
            found[id(place)] = place
            if around is not None:
                outer.add(id(around))
        return [place.visit for key, place in found.items() if key not in outer]

    def _is_in(self, place: _Place) -> bool:
        """Whether the visit was not exited. A redrive goes on with it, and does not enter its state again."""
        return id(place) in self._still_in[place.visit.state]

    def _is_branch_of_now(self, place: _Place, around: _Place) -> bool:
        return place.round == around.rounds and around.cancelled_in != self._drive

    def _enter(self, state: str, kind: str, time: str, before: _Place | None) -> _Place:
        """Begin a visit. It is in the Parallel or Map that has just started, or where the one before was."""
        around, round_ = (None, 0) if before is None else (before.around, before.round)
        if before is not None and before.type and self._is_in(before) and self._lives(before):
            around, round_ = before, before.rounds
        visit, type_ = Visit(state, time), kind.removesuffix("StateEntered")
        place = _Place(visit, around, round_, type_ if type_ in _AROUND else "")
        self._still_in.setdefault(state, {})[id(place)] = place
        self.all.append(visit)
        self._places.append(place)
        if around is not None:
            self._around.setdefault(state, around.visit.state)
        return place

    def _really_started(
        self, around: str | None, event: Mapping[str, Any], before: _Place | None
    ) -> _Place | None:
        """
        Correct which Parallel or Map has started its branches, by the one that a branch is in.

        If one fails inside of another, the retry of either is linked to the same failure. A state is always
        in the same one, because its name is unique in its machine.
        """
        if before is None or not before.type or not self._is_in(before) or around == before.visit.state:
            return before
        place = next((one for one in _inside_out(before) if one.visit.state == around), None)
        if place is None:
            return before
        place.rounds += 1
        place.cancelled_in, place.is_failed = None, False
        self._of_event[event["previousEventId"]] = place
        return place

    def _leave(self, state: str, time: str, before: _Place | None) -> _Place | None:
        """End a visit. A Parallel or Map is exited after an event of its last branch."""
        still_in = self._still_in.get(state, {})
        place = next((one for one in _inside_out(before) if id(one) in still_in), None)
        if place is not None:
            del still_in[id(place)]
        elif still_in:
            place = still_in.popitem()[1]
        if place is None:
            return before
        place.visit.exited = time
        return place

    def _start_branches(self, kind: str, before: _Place | None) -> _Place | None:
        """Start the branches of a Parallel or Map. Its retry is linked to the failure in a branch."""
        place = self._innermost(kind, before)
        if place is None:
            return before
        place.rounds += 1
        place.cancelled_in, place.is_failed = None, False
        return place

    def _cancel(self, kind: str, event: Mapping[str, Any], failure: _Place) -> None:
        """Note that a Parallel or Map has cancelled its branches, if the event says so. It may be late."""
        if kind in _FAILS:
            place = self._innermost(kind, failure)
            if place is not None:
                place.is_failed = True
        elif kind in _ITERATION_ENDS_BADLY:
            place = self._map_of(event, kind, failure)
        elif kind.endswith("StateAborted"):
            place = failure.around
        else:
            return
        if place is not None and place.type and self._is_of_now(failure, place):
            place.cancelled_in = self._drive

    def _is_of_now(self, failure: _Place, place: _Place) -> bool:
        """Whether the branches of a Parallel or Map have not started again since a failure in one."""
        inside_out = takewhile(lambda one: one is not place, _inside_out(failure))
        *_, branch = (None, *inside_out)
        return branch is None or branch.round == place.rounds

    def _innermost(self, kind: str, before: _Place | None) -> _Place | None:
        """The innermost Parallel or Map, whichever the event is of, that has neither ended nor failed."""
        wanted = (one for one in _inside_out(before) if one.type and kind.startswith(one.type))
        return next((one for one in wanted if self._is_in(one) and self._lives(one)), None)

    def _map_of(self, event: Mapping[str, Any], kind: str, before: _Place | None) -> _Place | None:
        """The Map of an iteration. Its start may be linked to the end of another iteration."""
        name = event.get(f"{kind[0].lower()}{kind[1:]}EventDetails", {}).get("name")
        maps = (one for one in _inside_out(before) if one.type == "Map")
        return next((one for one in maps if name in (None, one.visit.state)), before)

    def _lives(self, place: _Place) -> bool:
        """Whether it has not failed. A redrive goes on with what has failed."""
        return not place.is_failed or place.cancelled_in != self._drive

    def _add_to(self, visit: Visit, kind: str, time: str, event: Mapping[str, Any]) -> None:
        """Add what happened during a visit."""
        visit.tries += kind in _TRIES
        if kind == "TaskScheduled" and (step_id := _asked(event)) is not None:
            self.asked[step_id] = visit
        if kind == "TaskSubmitted" and (step := _recorded(visit.state, event)) is not None:
            self.asked[step.awaiting_step_id] = visit
            self.recorded[step.awaiting_step_id] = step
        if kind.endswith(("Failed", "TimedOut")):
            details = event.get(f"{kind[0].lower()}{kind[1:]}EventDetails", {})
            visit.troubles.append(Trouble(time, kind, details.get("error")))


def _inside_out(place: _Place | None) -> Iterator[_Place]:
    """A visit and those around it."""
    while place is not None:
        yield place
        place = place.around


def _asked(event: Mapping[str, Any]) -> str | None:
    """The id of the awaiting step that a state asks to record. None if it calls something else."""
    try:
        asked = json.loads(event["taskScheduledEventDetails"]["parameters"])["Payload"]
        return AwaitingStep.from_event(asked).id
    except (ValueError, KeyError, TypeError, InvalidRequest):
        return None


def _recorded(state: str, event: Mapping[str, Any]) -> Waiting | None:
    """The awaiting step that record_awaiting_step returned. None if the state called something else."""
    try:
        returned = json.loads(event["taskSubmittedEventDetails"]["output"])["Payload"]
        return Waiting(
            awaiting_step_id=returned["awaitingStepId"],
            state=state,
            step=returned["step"],
            status=GONE,
            entered=None,
            expires_at=returned["expiresAt"],
            expired=returned["expiresAt"] < times.now_text(),
        )
    except (ValueError, KeyError, TypeError):  # it waits for something else, like a queue's consumer
        return None
