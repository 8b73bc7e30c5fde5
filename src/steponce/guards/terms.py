"""How a guard's calls go: what can be said of a guard, of a function and of a single call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from steponce.locks.record import Lock
from steponce.recovery.owner import WhenOutcomeUnknown


def as_it_is(value: Any) -> Any:
    """What serialises a result that is JSON already."""
    return value


@dataclass(frozen=True)
class Terms:
    """
    How a guard's calls go.

    Args:
        lease_seconds: How long the work takes at most. No other call takes the lock in this time. Afterwards
            the outcome is unknown. Default: what a Lambda's context gives, else 900. It is counted by this
            machine's clock; allow for clocks that differ.
        when_outcome_unknown: What becomes of a lock whose lease is over: `hold` leaves it to a person
            (FAILED, OutcomeUnknown, on the open index), `take-over` lets this call do the work again, under
            the same key and with a higher attempt.
        when_completed: `replay` answers with the first result, `refuse` raises DuplicateRefused.
        releases: Exceptions of the work after which nothing has happened, beside RetryLater: the lock is
            free again.
        final: Exceptions that are answers: recorded, and replayed as RequestFailed. All others are recorded
            on the open index, and wait for a person.
        wait_seconds: How long to wait for the owner's answer before AlreadyInProgress is raised.
        renew: Extend the lease again and again in a thread while the work runs. The work must be certain to
            end, or to end with its process.
        on_replay: Is called with the result and the record of each replay; what it returns is the result.
        serialize, deserialize: Your own pair of functions: a result to JSON, and back.
    """

    lease_seconds: float | None = None
    when_outcome_unknown: WhenOutcomeUnknown = "hold"
    when_completed: Literal["replay", "refuse"] = "replay"
    releases: tuple[type[BaseException], ...] = ()
    final: tuple[type[BaseException], ...] = ()
    wait_seconds: float = 0
    renew: bool = False
    on_replay: Callable[[Any, Lock], Any] | None = None
    serialize: Callable[[Any], Any] = as_it_is
    deserialize: Callable[[Any], Any] = as_it_is
