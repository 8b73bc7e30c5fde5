"""The work: an effect that can be counted, between pauses in which others act."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from steponce.errors import RetryLater
from steponce.fence import check
from steponce.locks.table import Locks
from tests.simulation.requests import Effect, Order
from tests.simulation.turns import Turns

WORK_TIMEOUT_SECONDS = 60

OUTCOMES = ("done",) * 6 + ("declined", "retry later", "bug", "bug after the effect", "killed", "slow")
UNANSWERED = ("retry later",) * 6
"""Where letters are put back, many messages are to become letters."""


class CardDeclined(Exception):
    """A final answer."""


class Work:
    """
    The work of all requests. A seed chooses a few outcomes, so some schedules have much of one.

    Args:
        turns: The actors.
        random: The seed's choices.
        orders: What it is for, by lock token.
        locks: The table that its fence reads.
        outcomes: What it may come to.
    """

    def __init__(
        self,
        turns: Turns,
        random: Random,
        orders: Mapping[str, Order],
        locks: Locks,
        outcomes: Sequence[str] = OUTCOMES,
    ) -> None:
        self._turns, self._random, self._orders, self._locks = turns, random, orders, locks
        self._outcomes = random.sample(outcomes, random.choice((1, 2, len(outcomes))))

    def __call__(self, event: dict[str, Any]) -> Any:
        """Do it as a Lambda does that follows the rules: the fence comes right before the effect."""
        order, outcome = self._orders[event["lockToken"]], self._random.choice(self._outcomes)
        self._turns.note(f"works: {outcome}")
        self._pause()
        if outcome == "retry later":
            raise RetryLater("Nothing happened.")
        if outcome == "bug":
            raise ZeroDivisionError("Nothing happened.")
        check(event, self._locks)
        self._pause()
        order.effects.append(Effect(event["callId"], event["attempt"], self._turns.now))
        self._turns.note(f"EFFECT {len(order.effects)} of {order.token}, attempt {event['attempt']}")
        if outcome == "killed":
            self._turns.take(2 * WORK_TIMEOUT_SECONDS)
        if outcome == "slow":
            self._turns.take(WORK_TIMEOUT_SECONDS / 2)
        self._pause()
        if outcome == "bug after the effect":
            raise ZeroDivisionError("Too late.")
        if outcome == "declined":
            raise CardDeclined(f"effect {len(order.effects)}")
        return {"payload": event["payload"], "effect": len(order.effects)}

    def _pause(self) -> None:
        self._turns.take(self._random.uniform(0, 3))
