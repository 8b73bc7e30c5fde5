"""The options of a guard. A function and a single call can override them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from steponce.errors import InvalidSetting, shown
from steponce.locks.record import Lock
from steponce.recovery.owner import WhenOutcomeUnknown


def as_it_is(value: Any) -> Any:
    """Return a value unchanged: the default `serialize` and `deserialize`, for results that are JSON."""
    return value


@dataclass(frozen=True)
class Terms:
    """
    The options of a guarded call.

    Args:
        lease_seconds: How long the work takes at most. No other call takes the lock during this time.
            Afterwards the outcome is unknown. Default: the remaining time of a Lambda's context, else 900.
            This machine's clock counts it; allow for clocks that differ.
        when_outcome_unknown: What to do with a lock whose lease is over. `hold` leaves it to a person
            (FAILED, OutcomeUnknown, on the open index). `take-over` lets this call run the work again, under
            the same key and with a higher attempt.
        when_completed: `replay` returns the first result. `refuse` raises DuplicateRefused.
        releases: Exceptions of the work that mean that nothing happened, in addition to RetryLater. They free
            the lock.
        final: Exceptions of the work that are final answers. They are recorded, and replayed as
            RequestFailed. All other exceptions are recorded on the open index, and wait for a person.
        wait_seconds: How long to wait for the owner's answer before raising AlreadyInProgress.
        renew: Extend the lease in a thread while the work runs. Use it only for work that certainly ends, or
            that ends with its process. Give a lease of at least 60 seconds, or the guard a `config` with a
            shorter `read_timeout`: a write without an answer is tried again after that.
        on_replay: Called with the result and the record of each replay. Its return value is the result.
        serialize: Your own function that converts a result to JSON.
        deserialize: Your own function that converts it back.

    Raises:
        InvalidSetting: an option has a value that it cannot have. Otherwise this would show when the work has
            failed, and its outcome would be lost.
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

    def __post_init__(self) -> None:
        if self.lease_seconds is not None:
            _expect_lease(self.lease_seconds)
        expect_seconds("wait_seconds", self.wait_seconds)
        _expect_one_of("when_outcome_unknown", self.when_outcome_unknown, "hold", "take-over")
        _expect_one_of("when_completed", self.when_completed, "replay", "refuse")
        _expect_exceptions("releases", self.releases)
        _expect_exceptions("final", self.final)
        _expect_function("serialize", self.serialize)
        _expect_function("deserialize", self.deserialize)
        if self.on_replay is not None:
            _expect_function("on_replay", self.on_replay)


def expect_seconds(name: str, seconds: object) -> None:
    """
    Check that a value can be a time in seconds. To wait for NaN is to wait for ever.

    Raises:
        InvalidSetting: it is no number.
    """
    _expect_number(name, seconds)
    if seconds != seconds:  # NaN alone is not itself
        raise InvalidSetting(f"{name} is {shown(seconds)}. Give a number of seconds.")


def _expect_number(name: str, seconds: object) -> None:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise InvalidSetting(f"{name} is {shown(seconds)}. Give a number of seconds.")


def _expect_lease(seconds: float) -> None:
    _expect_number("lease_seconds", seconds)
    if not seconds > 0:  # nor is NaN
        raise InvalidSetting(f"lease_seconds is {shown(seconds)}. A lease lasts longer than 0 s.")


def _expect_one_of(name: str, value: object, *known: str) -> None:
    if value not in known:
        raise InvalidSetting(f"{name} is {shown(value)}. Give one of: {', '.join(known)}.")


def _expect_exceptions(name: str, classes: object) -> None:
    every = classes if isinstance(classes, tuple) else (None,)
    if not all(isinstance(one, type) and issubclass(one, BaseException) for one in every):
        raise InvalidSetting(f"{name} is {classes!r}. Give a tuple of classes of exceptions.")


def _expect_function(name: str, value: object) -> None:
    if not callable(value):
        raise InvalidSetting(f"{name} is {shown(value)}. Give a function, or leave it out.")
