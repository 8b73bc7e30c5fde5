"""
The rate limit of a state machine, which counts each request before its lock.

Up to SET_MEMBERS requests the workflow counts by itself, in one state that adds to a set. Above,
PrepareRequest counts, in a transaction: the workflow could tell a full window from a conflict of two
transactions only by the words of the error's cause.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from steponce.aws import times
from steponce.limits.countable import KEPT_SECONDS, check_time, check_user, forgotten_at
from steponce.limits.record import SET_MEMBERS, Counter, key_of, member_of
from steponce.limits.window import Window

if TYPE_CHECKING:
    from steponce.limits.counters import Counters

_BY_HAND = "Start the request by hand, with its id and lock token, and without a time. Then it counts now."

_KEPT = timedelta(seconds=KEPT_SECONDS)


@dataclass(frozen=True)
class RequestLimit:
    """
    At most `requests` for each user in each window.

    Args:
        name: Keeps the counts of machines on one table apart. No slash.
        requests: How many requests a window takes, 1 or more.
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
            `key` of the counter; `who` and `windowStart` for its index; `ttl` (epoch seconds);
            `resetsAt`, when the window ends (UTC text); and the request's `member`, if it is the workflow
            that adds it to a set. All of them as text.

        Raises:
            InvalidRequest: the user cannot be limited.
            InvalidEventTime: the time is too far in the future, or too old.
        """
        check_user(who)
        check_time(at, now, self.window, _KEPT, then=_BY_HAND)
        given = {
            "key": key_of(self.name, self.window, who, at),
            "who": who,
            "windowStart": times.to_text(self.window.start(at)),
            "ttl": str(forgotten_at(at, self.window, _KEPT)),
            "resetsAt": times.to_text(self.window.end(at)),
        }
        return given if self.exceeds_a_set else given | {"member": member_of(lock_token)}

    @property
    def exceeds_a_set(self) -> bool:
        """Whether PrepareRequest counts, and not the workflow itself."""
        return self.requests > SET_MEMBERS

    def count(self, counters: Counters, table: str, limit: Mapping[str, str], lock_token: str) -> str:
        """
        Count a request whose limit exceeds a set; once, however often it is asked to.

        Args:
            counters: What writes.
            table: Name of the table of limits.
            limit: As `count_of` has made it.
            lock_token: The request's.

        Returns:
            `counted`, also if an earlier call has counted it; or `full`.

        Raises:
            Unavailable: no answer, or too many others at the counter. The same call is safe to try again.
            RecordUnreadable: something else has written to the record.
        """
        counter = Counter(
            table, limit["key"], limit["who"], limit["windowStart"], self.requests, int(limit["ttl"])
        )
        (tally,) = counters.admit([counter], member_of(lock_token))
        return "full" if tally.result == "full" else "counted"
