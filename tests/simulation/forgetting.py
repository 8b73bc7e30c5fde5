"""What AWS forgets: records that have expired, old executions, and all that a deleted machine has run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from math import inf

from steponce.locks.table import Locks
from tests.simulation.installation import Installation
from tests.simulation.requests import Ask, Order, answers
from tests.simulation.wiring import LOCKS


class Forgetting:
    """
    Lets an installation forget.

    Args:
        here: Which installation.
        orders: All work, by lock token.
        asks: All that is asked.

    Attributes:
        machine_is_new: Whether the machine was made anew, so that it does not know older executions.
    """

    def __init__(self, here: Installation, orders: Mapping[str, Order], asks: Sequence[Ask]) -> None:
        self._here, self._orders, self._asks = here, orders, asks
        self.machine_is_new = False

    def leap(self) -> None:
        """Records have expired, or will soon. Names may be free again."""
        self.delete_expired()
        self._here.machine.forget_old()

    def delete_expired(self) -> None:
        """Note which answers there are, and let DynamoDB delete what has expired."""
        turns, table = self._here.turns, Locks(self._here.dynamodb, LOCKS)
        locks = {token: table.get(token) for token in self._orders}
        for ask in self._asks:
            if ask.asked is not None and answers(locks[ask.order.token], ask):
                ask.was_answered = turns.now
        for token, lock in locks.items():
            is_over = lock is not None and (lock.ttl or inf) < turns.now.timestamp()
            if is_over and self._here.random.random() < 0.5:
                turns.note(f"TTL deletes {token}")
                self._here.dynamodb.delete_item(TableName=LOCKS, Key={"lockToken": {"S": token}})

    def make_machine_anew(self) -> None:
        """Delete the machine and make it anew, unless it runs something or an end may not be examined yet."""
        ends, machine, now = self._here.ends, self._here.machine, self._here.turns.now
        is_busy = any(one["status"] == "RUNNING" for one in machine.executions.values())
        if is_busy or any(end.at > now - timedelta(hours=1) for end in ends):
            return
        self._here.turns.note("makes the machine anew")
        self.machine_is_new = True
        for arn in list(machine.executions):
            machine.forget(arn)
