"""
Invocations that nobody waits for: after an error twice more, then the event is given up.

Lambda waits a minute and two before it tries again, this a second and two.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

Problem = dict[str, Any]
"""What went wrong, as a function's answer says it: `errorType`, and more if the function has failed."""

GivenUp = Callable[[str, Any, Problem], None]
"""Told of an event that is given up: the function's ARN, the event, and the last problem."""

_PAUSES_SECONDS = (1.0, 2.0)

MOST_TRIES = len(_PAUSES_SECONDS) + 1


def try_until_done(invoke: Callable[[], Problem | None]) -> Problem | None:
    """Invoke a function until it has no problem, at most three times. The answer is the last problem."""
    problem = invoke()
    for pause in _PAUSES_SECONDS:
        if problem is None:
            return None
        time.sleep(pause)
        problem = invoke()
    return problem
