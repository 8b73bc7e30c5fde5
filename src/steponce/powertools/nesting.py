"""
Which of the calls under way one is.

Powertools tells its store that a call begins, and later that a call has ended, but not which. Decorated
functions call one another, in threads and tasks too, so each context keeps the calls that it has begun, with
the depth of the stack at which each was. What began deeper than where the stack is now is over, also if
Powertools did not report its end: a serializer may have failed, or the process may be on its way out.
"""

from __future__ import annotations

import inspect
from contextvars import ContextVar
from typing import Generic, TypeVar

Call = TypeVar("Call")


class Calls(Generic[Call]):
    """The calls that have begun in this context, the innermost last."""

    def __init__(self, name: str) -> None:
        self._begun: ContextVar[tuple[tuple[int, Call], ...]] = ContextVar(name, default=())

    def begin(self, call: Call) -> None:
        """Put a call inside of those that are under way."""
        depth = _depth()
        outer = [one for one in self._begun.get() if one[0] < depth]
        self._begun.set((*outer, (depth, call)))

    def current(self) -> Call:
        """
        The innermost call that is under way.

        Raises:
            RuntimeError: there is none.
        """
        depth = _depth()
        running = [one for one in self._begun.get() if one[0] <= depth]
        if not running:
            raise RuntimeError("No call has begun here. Powertools' decorators call configure() first.")
        return running[-1][1]

    def end(self) -> Call:
        """The same, which is over by this."""
        call = self.current()
        self._begun.set(tuple(one for one in self._begun.get() if one[1] is not call))
        return call


def _depth() -> int:
    """How many calls of Python's are on the stack."""
    frame, depth = inspect.currentframe(), 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    return depth
