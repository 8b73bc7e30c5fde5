"""Those who put dead letters back: with the command, or with SQS's own redrive."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from steponce.triggers.dead_letters import IF_NOT_ANSWERED, REASON
from steponce.triggers.found_letters import DeadLetterQueue
from steponce.triggers.redrive import Letters
from tests.simulation.faults import PASSING
from tests.simulation.installation import Installation
from tests.simulation.queue import Message
from tests.simulation.requests import Order
from tests.simulation.wiring import WIRING
from tests.unit.triggers.world import DEAD, QUEUE

_MOST_LISTED, _MOST_MOVED = 100, 5


class Redrivers:
    """
    Operators who hear that there are dead letters, and put them back.

    Args:
        here: Where they work.
        orders: All work, by lock token.

    Attributes:
        left: How often one of them still comes when a letter is written.
        renews_from: From when on work may run again, because its record may have expired.
    """

    renews_from: datetime | None = None

    def __init__(self, here: Installation, orders: Mapping[str, Order]) -> None:
        self._here, self._orders = here, orders
        self.left = 0

    def plan(self, leap: float) -> None:
        """
        Let some come at any time, some when records expire, and some when a letter is written.

        Their number is limited, because what cannot start comes back at once.
        """
        random, turns = self._here.random, self._here.turns
        self.renews_from = turns.deadline_in(leap) if leap else None
        self.left = random.choice((1, 2, 4))
        self._here.queue.rings = self._ring
        for _ in range(random.choice((0, 1, 2))):
            longest = random.choice((300, 3_000, 40_000))
            self._come(random.choice((0, leap)) + random.uniform(0, longest))

    def _ring(self) -> None:
        random = self._here.random
        if self.left > 0 and random.random() < 0.8:
            self.left -= 1
            self._come(random.uniform(0, random.choice((0, 5, 60, 3_000, 30_000))))

    def _come(self, after: float) -> None:
        random = self._here.random
        way = random.choice((self.redrive, self.redrive, lambda: self.move(random.choice((0, 0, 5, 60)))))
        self._here.turns.spawn("redriver", way, after=after)

    def redrive(self) -> None:
        """`steponce letters list`, and `redrive ID` for each letter that may be put back."""
        random, turns = self._here.random, self._here.turns
        letters = Letters(WIRING.client("sqs"), [DeadLetterQueue("dead", DEAD, QUEUE)])
        try:
            found, _ = letters.look(_MOST_LISTED)
            turns.take(random.choice((0, 0, 5, 300)))  # reads them
            for one in found:
                if self._may_be_put_back(one.reason):
                    letters.redrive(one.id)
                    turns.note(f"puts {one.id} back")
        except PASSING as error:
            turns.note(f"is told {error!r}"[:200])

    def move(self, seconds: float = 0) -> None:
        """SQS's own redrive, which goes on for some time. Who begins it looks at the letters before."""
        queue, turns = self._here.queue, self._here.turns
        until = turns.deadline_in(seconds)
        for _ in range(_MOST_MOVED):
            for letter in queue.visible():
                if self._may_be_put_back(_reason_of(letter)):
                    turns.note(f"moves {letter.id}")
                    queue.move(letter)
            if turns.now >= until:
                return
            turns.take(seconds / _MOST_MOVED)

    def send_anew(self) -> None:
        """Send the messages as they were first sent, and delete the letters."""
        queue = self._here.queue
        for letter in queue.visible():
            queue.move(letter, anew=True)

    def _may_be_put_back(self, reason: str) -> bool:
        """Whether a person puts a letter back, who sees in the shop's own books what had an effect."""
        had_effect = any(order.effects for order in self._orders.values())
        if IF_NOT_ANSWERED in reason and had_effect:
            return False
        for order in self._orders.values():
            is_late = self.renews_from is not None and self._here.turns.now >= self.renews_from
            order.renewals = max(order.renewals, is_late)
        return True


def _reason_of(letter: Message) -> str:
    return str(letter.sent["MessageAttributes"].get(REASON, {}).get("StringValue", ""))
