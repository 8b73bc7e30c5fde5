"""The clock of the stack, which a test can move forward."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from steponce.local.stack import LocalStack

_LAST = datetime(9000, 1, 1, tzinfo=UTC)
"""Records expire in later years, and Python's calendar ends with 9999."""

_TOO_FAR = "The clock goes to the year 8999, because later times have no room to expire."


class Clock:
    """
    The stack's time.

    Args:
        stack: A stack with controls, whose Step Functions and Lambda are the embedded ones.
        moved: Called with how many seconds the stack is ahead, after each move.
    """

    def __init__(self, stack: LocalStack, moved: Callable[[float], object]) -> None:
        stack.expect_embedded("states", "lambda")
        self._controls = stack.controls
        self._moved = moved

    def now(self) -> datetime:
        """The current time in the stack; UTC."""
        return datetime.now(UTC) + timedelta(seconds=self._controls.ahead_seconds())

    def advance(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
    ) -> datetime:
        """
        Let so much time pass, and return what time it is then.

        What waits in Step Functions until then goes on at once: Wait states, retries, time-outs and
        heartbeats. Functions, histories, queues and `steponce` tell the new time. It never goes back,
        also not for the next test.

        Raises:
            ValueError: it is not forward, or to a time after the year 8999.
        """
        try:
            passed = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds).total_seconds()
        except OverflowError:
            raise ValueError(_TOO_FAR) from None
        if passed <= 0:
            raise ValueError(f"Time only goes forward, and not {passed} seconds.")
        if passed > (_LAST - self.now()).total_seconds():
            raise ValueError(_TOO_FAR)
        self._moved(self._controls.let_pass(passed))
        return self.now()
