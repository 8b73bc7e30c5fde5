"""
What an execution's history says of a wait: the answer that it got, and whether it is over.

The events of one branch are linked by previousEventId. Those by which AWS cancels a branch are linked to the
failure of the other one, so a cancelled wait is known by the end of the Parallel or Map around it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from steponce.callbacks.answer import Answer
from steponce.executions import EXECUTION_ENDS

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions.type_defs import HistoryEventTypeDef

_OF_A_TRY = frozenset(
    {
        "TaskScheduled",
        "TaskStarted",
        "TaskStartFailed",
        "TaskSubmitted",
        "TaskSubmitFailed",
        "TaskSucceeded",
        "TaskFailed",
        "TaskTimedOut",
    }
)
"""The events between entering and leaving a Task state. A retry adds more of them."""

_ENTERED = frozenset({"ParallelStateEntered", "MapStateEntered"})
_EXITED = frozenset({"ParallelStateExited", "MapStateExited"})


class _Link(NamedTuple):
    """What is kept of an event: a history's outputs may be large."""

    id: int
    previous: int
    type: str
    state: str


_Seen = dict[int, _Link]


def outcome_of(
    events: Iterable[HistoryEventTypeDef], token: str, sent: Answer | None
) -> tuple[Answer | None, bool]:
    """
    Find the answer that a step got with this token or a retry's, and whether the step is over.

    While a retry may follow, the step is not over.

    Args:
        events: The history, from its beginning.
        token: The step's task token.
        sent: The answer that was sent with it. None if there was none.
    """
    seen: _Seen = {}
    linked: set[int] = set()
    around: dict[str, int] = {}
    submitted, last_event = False, ""
    for event in events:
        seen[event["id"]] = link = _link_of(event)
        last_event = event["type"]
        scheduled = event.get("taskScheduledEventDetails")
        if not linked and scheduled is not None and token in scheduled["parameters"]:
            around = _around(link, seen)
        elif link.state in around and last_event in _EXITED and around[link.state] == _entry_of(link, seen):
            return None, True
        elif link.previous not in linked:
            continue
        if last_event not in _OF_A_TRY:
            return None, True
        linked.add(link.id)
        arrived = _answer_in(event)
        # A failure before the function has returned is the function's own, unless it is the sent answer.
        if arrived is not None and (arrived.outcome == "success" or submitted or arrived == sent):
            return arrived, True
        submitted = last_event == "TaskSubmitted" or (submitted and scheduled is None)
    return None, last_event in EXECUTION_ENDS


def _link_of(event: HistoryEventTypeDef) -> _Link:
    of_state = event.get("stateEnteredEventDetails", event.get("stateExitedEventDetails", {}))
    return _Link(event["id"], event.get("previousEventId", 0), event["type"], of_state.get("name", ""))


def _around(link: _Link, seen: _Seen) -> dict[str, int]:
    """
    The Parallels and Maps in which an event is: their names, and the events that entered them.

    Also some that have failed and were retried, since what fails without a Catch of its own is not exited.
    """
    left: set[str] = set()
    found: dict[str, int] = {}
    for earlier in _back(link, seen):
        if earlier.type in _EXITED:
            left.add(earlier.state)
        elif earlier.type in _ENTERED and earlier.state in left:
            left.remove(earlier.state)
        elif earlier.type in _ENTERED:
            found.setdefault(earlier.state, earlier.id)  # one before it has failed, and was not exited
    return found


def _entry_of(link: _Link, seen: _Seen) -> int | None:
    """The event that entered the state which this one exits. A state never contains itself."""
    entries = (one.id for one in _back(link, seen) if one.type in _ENTERED and one.state == link.state)
    return next(entries, None)


def _back(link: _Link, seen: _Seen) -> Iterator[_Link]:
    """The events before this one in its branch, the latest first. Their ids grow, so there is no circle."""
    earlier = seen.get(link.previous)
    while earlier is not None:
        yield earlier
        earlier = seen.get(earlier.previous)


def _answer_in(event: HistoryEventTypeDef) -> Answer | None:
    if event["type"] == "TaskSucceeded":
        return Answer.of_output(event["taskSucceededEventDetails"].get("output", "null"))
    if event["type"] == "TaskFailed":
        details = event["taskFailedEventDetails"]
        return Answer("failure", error=details.get("error") or None, cause=details.get("cause") or None)
    return None
