"""
One schedule: requests under a few lock tokens, what happens to them, and what they were told.

A seed decides it all, or a story tells it.

Callers, messages and executions started by hand ask for the same work at the same time. Executions are
stopped, operators settle what waits for them, calls go wrong, and records expire. When all is quiet, nothing
goes wrong any more, and the functions that repair have some rounds.
"""

from __future__ import annotations

import itertools
import random as randoms
from collections.abc import Callable, Sequence
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from functools import partial
from random import Random
from typing import Any

from steponce import Receipt
from steponce.errors import SteponceError
from steponce.locks.record import Lock
from steponce.locks.table import Locks
from tests.simulation.faults import Faults
from tests.simulation.forgetting import Forgetting
from tests.simulation.installation import Installation
from tests.simulation.letters import Redrivers
from tests.simulation.people import Askers, Operators
from tests.simulation.requests import Ask, Order, Payload
from tests.simulation.story import InOrder, Story, ToldFaults, Usual
from tests.simulation.turns import Turns
from tests.simulation.wiring import LIMITED, LIMITS, LOCKS, RULES, Line, definition
from tests.simulation.work import OUTCOMES, UNANSWERED, Work

HOUR, DAY, RETENTION = 3_600, 86_400, int(RULES.retention_seconds or 0)
ROUNDS, ROUND_SECONDS = 5, 480
"""Rounds of the monitor after all is quiet. An end whose event was lost is looked for 16 minutes later."""

ORDERS_OF_A_STORY = 2

_DAYS = itertools.count()
_BEGAN = datetime(2030, 1, 1, tzinfo=UTC)

Change = Callable[[dict[str, Any]], object]


class Schedule:
    """
    What one seed or story makes happen.

    Args:
        source: The seed, which decides everything; or the story.
        change: Changes the states of the definition, to plant a fault.
        when_outcome_unknown, when_completed: The template's parameters.
        rate_limit: Whether a user may run one request in ten minutes.
        puts_back: Whether somebody puts dead letters back. A seed without it goes as if nobody could.

    Attributes:
        orders: The work, by lock token.
        asks: Who asked for it.
        askers, operators, redrivers: Who ask, who settle what waits, and who put dead letters back.
        leap: When time leaps, so that records expire then or a little later. 0: it does not.
        forgetting: What AWS forgets.
    """

    outcomes: Sequence[str] = OUTCOMES
    installed: type[Installation] = Installation
    goes_wrong: type[Faults] = Faults

    def __init__(
        self,
        source: int | Story,
        change: Change,
        *,
        when_outcome_unknown: str = "hold",
        when_completed: str = "replay",
        rate_limit: bool = False,
        puts_back: bool = False,
    ) -> None:
        self.story = source if isinstance(source, Story) else None
        self.seed = 0 if isinstance(source, Story) else source
        self.random = Usual() if self.story else Random(self.seed)
        self.when_outcome_unknown, self.puts_back = when_outcome_unknown, puts_back
        self.orders: dict[str, Order] = {}
        self.asks: list[Ask] = []
        began = _BEGAN + timedelta(days=100 * next(_DAYS))
        self.turns = (InOrder if self.story else Turns)(self.random, began)
        self.faults = (
            ToldFaults(self.random, self.turns, self.story.faults)
            if self.story
            else self.goes_wrong(self.random, self.turns)
        )
        dynamodb: Any = Line(lambda: self.installation, "dynamodb")
        self.locks = Locks(dynamodb, LOCKS)
        self.rules = LIMITED if rate_limit or (self.story and self.story.rate_limit) else RULES
        deployed = deepcopy(definition(when_completed, self.rules))
        self.vary(deployed["States"])
        change(deployed["States"])
        outcomes = (self.story.work,) if self.story else (*self.outcomes, *UNANSWERED * puts_back)
        self.installation = self.installed(
            self.turns,
            self.random,
            self.faults,
            Work(self.turns, self.random, self.orders, self.locks, outcomes),
            when_outcome_unknown=when_outcome_unknown,
            rules=self.rules,
            definition=deployed,
        )
        self.askers = Askers(self.installation, self.asks)
        self.operators = Operators(self.installation, self.locks, self.orders, self.asks)
        self.redrivers = Redrivers(self.installation, self.orders)
        self.forgetting = Forgetting(self.installation, self.orders, self.asks)
        self.leap = 0.0

    @property
    def records_expire(self) -> bool:
        """Whether time leaps."""
        return bool(self.leap)

    def vary(self, states: dict[str, Any]) -> None:
        """Deploy another machine than the sample's. This one is."""

    def results(self, order: Order) -> list[dict[str, Any]]:
        """Every result that the work of an order may have had, by its effects."""
        return [
            {"payload": payload, "effect": number + 1}
            for payload in order.payloads
            for number in range(len(order.effects))
        ]

    def run(self) -> None:
        """
        Let it happen.

        Raises:
            NeverEnds: it does not come to an end.
        """
        randoms.seed(self.seed)
        with self.installation.present():
            if self.story:
                self.installation.machine.shown_open = self.story.shown_open
                self._tell(self.story)
            else:
                self._plan()
                if self.puts_back:
                    self.redrivers.plan(self.leap)
            self.turns.spawn("watch", self._watch, after=self.random.uniform(30, 300))
            self.turns.run()
            self.faults.left = 0

    def order(self, number: int) -> Order:
        """A new order."""
        payload = {"order": number, "user": "ann", "amount": 500}
        return self._order(number, payload, payload | {"amount": 999})

    def _order(self, number: int, payload: Payload, other: Payload) -> Order:
        token = f"shop/order-{number}"
        self.orders[token] = Order(token, (payload, other))
        return self.orders[token]

    def ask(self, kind: str, request_id: str, number: int = 0, *, other_payload: bool = False) -> None:
        """Let the present actor ask for an order, as a story tells."""
        order = [*self.orders.values()][number]
        payload = order.payloads[other_payload]
        ask = Ask(request_id, order, payload, is_message=kind == "message")
        self.asks.append(ask)
        self.askers.ask(kind, ask)

    def stop(self, name: str) -> None:
        """Stop an execution, as a story tells."""
        machine = self.installation.machine
        machine.stop(machine.arn(name))

    def _tell(self, story: Story) -> None:
        for number in range(ORDERS_OF_A_STORY):
            self.order(number)
        for act in story.acts:
            self.turns.spawn(act.who, partial(act.act, self), after=act.at)

    def _plan(self) -> None:
        random, spawn = self.random, self.turns.spawn
        soon = random.uniform(0, 1_200)
        leap = random.choice((0,) * 5 + (RETENTION - soon,) * 4 + (RETENTION + DAY, 91 * DAY))
        self.leap = leap
        self.installation.late_by = random.choice((leap or 3_600, soon))
        if leap:
            spawn("leap", self.forgetting.leap, after=leap)
        window = int(self.rules.rate_limit_window) if self.rules.rate_limit else 0
        for number in range(2 if self.rules.rate_limit else random.choice((1, 1, 2))):
            order = self.order(number)
            for asker in range(random.randint(2, 5)):
                request_id = f"order-{number}" if random.random() < 0.6 else f"id-{number}-{asker}"
                is_late = asker > 0 and random.random() < 0.7 and leap > 0
                after = leap if is_late else number * window
                self.askers.plan(order, request_id, after, more_messages=is_late or self.puts_back)
                order.renewals = max(order.renewals, is_late)
        if random.random() < 0.5:
            spawn("fate", self._stop_executions, after=random.uniform(0, 30))
        for _ in range(random.choice((0, 0, 1, 2))):
            spawn("operator", self.operators.operate, after=random.uniform(0, 300))
        if self.puts_back and random.random() < 0.3:
            spawn("deployment", self.forgetting.make_machine_anew, after=random.uniform(5_000, 20_000))

    def _stop_executions(self) -> None:
        for _ in range(self.random.randint(1, 3)):
            machine = self.installation.machine
            running = [arn for arn, one in machine.executions.items() if one["status"] == "RUNNING"]
            if running:
                machine.stop(self.random.choice(running))
            self.turns.take(self.random.uniform(0, 60))

    def _watch(self) -> None:
        """The schedules: a round each few minutes, until all has been quiet for some."""
        quiet = 0
        while True:
            next_in = self.turns.seconds_to_next()
            is_quiet = next_in is None or next_in > (HOUR if self.puts_back else DAY)
            quiet = quiet + 1 if is_quiet else 0
            if quiet > ROUNDS:
                if next_in is None:
                    return
                self.turns.take(next_in)
                continue
            if next_in is None:
                self.faults.left = 0
            if self.records_expire:
                self.forgetting.delete_expired()
            self.installation.call("find_overdue", {})
            self.installation.call("find_missed_ends", {})
            self.turns.take(ROUND_SECONDS)

    def record(self, token: str) -> Lock | None:
        """A record, as it is in the end."""
        return Locks(self.installation.dynamodb, LOCKS).get(token)

    def counted(self) -> list[set[str]]:
        """What the rate limit has counted in each window."""
        found = self.installation.dynamodb.scan(TableName=LIMITS)["Items"]
        return [set(one["members"]["SS"]) for one in found]

    def status(self, ask: Ask) -> Receipt | SteponceError:
        """What somebody is told who asks in the end."""
        told: list[Receipt | SteponceError] = []

        def look() -> None:
            try:
                told.append(self.installation.client.status(ask.request_id, lock_token=ask.order.token))
            except SteponceError as error:
                told.append(error)

        with self.installation.present():
            self.turns.spawn("judge", look)
            self.turns.run()
        return told[0]
