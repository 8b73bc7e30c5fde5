"""The rate limit of a state machine, which counts each request in one state before its lock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from steponce.aws import times
from steponce.limits.countable import KEPT_SECONDS, check_time, check_user, forgotten_at
from steponce.limits.record import key_of, member_of
from steponce.limits.window import Window

_KEPT = timedelta(seconds=KEPT_SECONDS)


@dataclass(frozen=True)
class RequestLimit:
    """
    At most `requests` for each user in each window.

    Args:
        name: Keeps the counts of machines on one table apart. No slash.
        requests: How many requests a window takes, 1 to 150: one item counts them in a set.
        window: Their window.
    """

    name: str
    requests: int
    window: Window

    def count_of(self, who: str, lock_token: str, at: datetime, now: datetime) -> dict[str, str]:
        """
        What the workflow needs to count a request, as its envelope carries it.

        Args:
            who: The user.
            lock_token: The request's; it is counted once in a window.
            at: The time that decides which window.
            now: This clock.

        Returns:
            `key` of the counter, `who` and `windowStart` for its index, the request's `member`, `ttl` (epoch
            seconds, as text), and `resetsAt`, when the window ends (UTC text).

        Raises:
            InvalidRequest: the user cannot be limited.
            InvalidEventTime: the time is too far in the future, or too old.
        """
        check_user(who)
        check_time(at, now, self.window, _KEPT)
        return {
            "key": key_of(self.name, self.window, who, at),
            "who": who,
            "windowStart": times.to_text(self.window.start(at)),
            "member": member_of(lock_token),
            "ttl": str(forgotten_at(at, self.window, _KEPT)),
            "resetsAt": times.to_text(self.window.end(at)),
        }
