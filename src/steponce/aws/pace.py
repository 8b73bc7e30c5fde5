"""How fast one container may call AWS: a token bucket that its threads share."""

from __future__ import annotations

import threading
import time

from steponce.errors import Unavailable


class Pace:
    """
    Lets callers through at a rate.

    All containers together keep under a quota of AWS if each has its share of it.

    Args:
        per_second: How many pass in a second, in the long run.
        burst: How many may pass at once after a rest.
    """

    def __init__(self, per_second: float, burst: int = 10) -> None:
        self._per_second = per_second
        self._burst = burst
        self._lock = threading.Lock()
        self._tokens = float(burst)
        self._counted_at = time.monotonic()

    def turn(self, within_seconds: float) -> None:
        """
        Wait for one's turn.

        Raises:
            Unavailable: at once, because it would not come within this time. No turn is taken.
        """
        with self._lock:
            now = time.monotonic()
            earned = (now - self._counted_at) * self._per_second
            self._tokens, self._counted_at = min(self._burst, self._tokens + earned), now
            wait = (1 - self._tokens) / self._per_second
            if wait > within_seconds:
                raise Unavailable("More is asked than may be done in this time. Try again.", throttled=True)
            self._tokens -= 1  # below zero: those who wait have their turns already
        if wait > 0:
            time.sleep(wait)
