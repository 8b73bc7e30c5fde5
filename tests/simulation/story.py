"""
Schedules that are given as data: who does what and when, and what goes wrong.

A seed's schedule changes with almost any change of the code, because each call to AWS draws from the same
seed. A story's does not. Nobody is chosen: an actor goes on until it pauses, so what lies seconds apart stays
so, however many calls there are in between. What a story does not tell goes as it usually does, and nothing
else goes wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from tests.simulation.faults import Faults
from tests.simulation.turns import Actor, Turns

if TYPE_CHECKING:
    from _typeshed import SupportsLenAndGetItem

LATE_SECONDS = 20
"""How late a call is that is slow, copied or answered late."""

Choice = TypeVar("Choice")


@dataclass(frozen=True)
class Act:
    """
    One thing that a person, a caller or a program does.

    Args:
        at: When it does it, in seconds.
        who: The name of the actor.
        act: What it does with the schedule.
    """

    at: float
    who: str
    act: Callable[[Any], object]


@dataclass(frozen=True)
class Story:
    """
    One schedule.

    Args:
        acts: What people do. The work of a request begins at once, has its effect after three seconds, and
            returns after five.
        work: What all work comes to, one of `OUTCOMES`.
        faults: What goes wrong, by place, each once. A place is an actor and the first such call of it
            ("queue m-1: get_item"), a function that Lambda fails to invoke ("ChargeCardFunction"), or an
            event ("event for close_execution").
        machine: The machine of callbacks.
        shown_open: For how many seconds DescribeExecution shows an execution as open after its end.
        rate_limit: Whether a user may run one request in ten minutes.
    """

    acts: Sequence[Act] = ()
    work: str = field(default="done", kw_only=True)
    faults: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    machine: int = field(default=0, kw_only=True)
    shown_open: float = field(default=0, kw_only=True)
    rate_limit: bool = field(default=False, kw_only=True)


def by_hand(at: float, request_id: str) -> Act:
    """Somebody starts an execution, past the client."""
    return Act(at, f"hand {request_id}", lambda schedule: schedule.ask("hand", request_id))


def by_caller(at: float, request_id: str, order: int = 0, *, other_payload: bool = False) -> Act:
    """A caller starts a request."""
    return Act(
        at,
        f"caller {request_id}",
        lambda schedule: schedule.ask("caller", request_id, order, other_payload=other_payload),
    )


def by_message(at: float, request_id: str, order: int = 0, *, other_payload: bool = False) -> Act:
    """Somebody sends a message, which is received a second later."""
    return Act(
        at,
        f"message {request_id}",
        lambda schedule: schedule.ask("message", request_id, order, other_payload=other_payload),
    )


def stopped(at: float, name: str) -> Act:
    """An execution is stopped."""
    return Act(at, f"stop of {name}", lambda schedule: schedule.stop(name))


def by_operator(at: float) -> Act:
    """An operator releases what waits for a person."""
    return Act(at, "operator", lambda schedule: schedule.operators.operate())


def put_back(at: float) -> Act:
    """An operator puts the dead letters back."""
    return Act(at, "redriver", lambda schedule: schedule.redrivers.redrive())


def moved(at: float) -> Act:
    """SQS's own redrive puts the dead letters back."""
    return Act(at, "redriver", lambda schedule: schedule.redrivers.move())


def sent_anew(at: float) -> Act:
    """Somebody sends what the dead letters ask for once more, and deletes these."""
    return Act(at, "redriver", lambda schedule: schedule.redrivers.send_anew())


def made_anew(at: float) -> Act:
    """The machine is deleted and made anew, under the same ARN."""
    return Act(at, "deployment", lambda schedule: schedule.forgetting.make_machine_anew())


class Usual(Random):
    """Chance that always does what is usual."""

    def random(self) -> float:
        return 0.999

    def choice(self, seq: SupportsLenAndGetItem[Choice]) -> Choice:
        return seq[0]

    def uniform(self, a: float, b: float) -> float:
        return (a + b) / 2

    def randint(self, a: int, b: int) -> int:
        return min(a, b)

    def sample(self, population: Sequence[Choice], k: int, **_counts: Any) -> list[Choice]:
        return list(population[:k])

    def expovariate(self, lambd: float = 1.0) -> float:
        return 1 / lambd


class InOrder(Turns):
    """Turns without chance. An actor goes on until it pauses. Then the one that waits longest is next."""

    def _next_of(self, ready: Sequence[Actor]) -> Actor:
        self.now += timedelta(milliseconds=1)
        if self.is_of_an_actor and self.actor in ready:
            return self.actor
        return min(ready, key=lambda actor: actor.wakes)


class ToldFaults(Faults):
    """The faults of a story."""

    def __init__(self, random: Random, turns: Turns, planned: Mapping[str, str]) -> None:
        super().__init__(random, turns)
        self.planned: dict[str, str] = dict(planned)

    def one_of(self, _kinds: Sequence[Any], _chance: float, place: str) -> Any:
        return self.planned.pop(place, None)

    def at(self, operation: str, _arguments: Mapping[str, Any], *, mortal: bool) -> Any:
        fault = self.planned.pop(f"{self.turns.actor.name}: {operation}", None)
        assert mortal or not (fault or "").startswith("died"), f"{self.turns.actor.name} is no process"
        return fault

    def _delay(self) -> float:
        return LATE_SECONDS
