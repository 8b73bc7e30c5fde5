"""A token bucket that limits how fast one container calls AWS. Its threads share it."""

from __future__ import annotations

import time

from steponce.aws.forks import OwnLock
from steponce.errors import Unavailable

LISTS_PER_SECOND = 2
"""ListExecutions allows 5 a second in large regions and 2 elsewhere, after a burst of 100."""


class Pace:
    """
    A token bucket. Safe in threads. A forked process has a bucket of its own.

    All containers together stay below an AWS quota if each gets its share of the quota.

    Args:
        per_second: Tokens added per second.
        burst: The most tokens that the bucket holds.
    """

    def __init__(self, per_second: float, burst: int = 10) -> None:
        self._per_second = per_second
        self._burst = burst
        self._lock = OwnLock()
        self._tokens = float(burst)
        self._counted_at = time.monotonic()

    def turn(self, within_seconds: float) -> None:
        """
        Take one token, and wait until it is there.

        Raises:
            Unavailable: the wait would be longer than `within_seconds`. No token is taken, and nobody waits.
        """
        with self._lock.here:
            now = time.monotonic()
            earned = (now - self._counted_at) * self._per_second
            self._tokens, self._counted_at = min(self._burst, self._tokens + earned), now
            wait = (1 - self._tokens) / self._per_second
            if wait > within_seconds:
                raise Unavailable("The rate limit leaves no time for this call. Try again.", throttled=True)
            self._tokens -= 1  # below zero: waiting threads have taken their tokens already
        if wait > 0:
            time.sleep(wait)
