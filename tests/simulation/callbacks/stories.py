"""
What those do who answer, in a story.

The confirmation of a request begins to wait after five seconds, and misses its heartbeat at 95 seconds.
"""

from __future__ import annotations

from tests.simulation.callbacks.people import BEAT, Body
from tests.simulation.story import Act

YES: Body = {"outcome": "success", "output": {"confirmed": True}}
NO: Body = {"outcome": "failure", "error": "Declined"}


def by_program(at: float, answer: Body, *, who: str = "program") -> Act:
    """A program answers the step that was reported last."""
    return Act(
        at,
        who,
        lambda schedule: schedule.outside.insist(
            schedule.outside.by_program, schedule.outside.steps[-1], answer
        ),
    )


def by_heartbeat(at: float) -> Act:
    """A program says that it still works on the answer."""
    return by_program(at, BEAT, who="heartbeat")


def by_token(at: float) -> Act:
    """A holder of the raw task token says yes."""
    return Act(
        at,
        "token holder",
        lambda schedule: schedule.outside.answer_with_token(schedule.installation.machine.waits[-1]),
    )
