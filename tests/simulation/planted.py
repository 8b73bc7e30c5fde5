"""Faults to plant: the simulation proves something only if it finds them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from steponce.monitoring.missed_ends import Looked
from steponce.monitoring.monitor import Tally

States = dict[str, Any]
Change = Callable[[States], object]
Patch = Callable[[], AbstractContextManager[object]]


def _as_it_is(_states: States) -> None:
    """No change."""


@dataclass(frozen=True)
class Planted:
    """
    One fault.

    Args:
        seed: A seed that finds it.
        rate_limit: Whether it is found with a rate limit only.
        change: Changes the states of the definition.
        planted: Changes the code while a schedule runs.
    """

    seed: int
    rate_limit: bool = field(default=False, kw_only=True)
    change: Change = _as_it_is
    planted: Patch = nullcontext


NOTHING = Planted(0)


def _condition(state: str, clause: str, replaced: str) -> Change:
    """Replace a clause of a state's condition."""

    def change(states: States) -> None:
        parameters = states[state]["Parameters"]
        assert clause in parameters["ConditionExpression"]
        parameters["ConditionExpression"] = parameters["ConditionExpression"].replace(clause, replaced)

    return change


def _without_choice(state: str, following: str) -> Change:
    """Take the rule out of a Choice that leads to this state."""

    def change(states: States) -> None:
        rules = states[state]["Choices"]
        states[state]["Choices"] = [rule for rule in rules if rule["Next"] != following]
        assert len(states[state]["Choices"]) < len(rules)

    return change


def _answers(target: str, value: object) -> Patch:
    return lambda: mock.patch(target, return_value=value)


PLANTED: Mapping[str, Planted] = {
    "AcquireLock takes a lock in progress": Planted(
        2, _condition("AcquireLock", "#status = :released", "#status IN (:released, :inprogress)")
    ),
    "DoWork is tried again after any error": Planted(
        0, lambda states: states["DoWork"]["Retry"][1].update(ErrorEquals=["States.ALL"])
    ),
    "An error of Lambda releases the lock": Planted(
        690, lambda states: states["DoWork"]["Catch"][0]["ErrorEquals"].append("Lambda.ServiceException")
    ),
    "A living owner is taken over": Planted(
        24, lambda states: states["IsOwnerAlive"].update(Default="TakeOverLock")
    ),
    "IsLockHeld does not compare payloads": Planted(39, _without_choice("IsLockHeld", "PayloadMismatch")),
    "The client does not compare payloads": Planted(
        16, planted=_answers("steponce.request.comparison.Comparison._expect_same_payload", None)
    ),
    "Every duplicate counts as cared for": Planted(
        511, planted=_answers("steponce.triggers.starter.Starter._is_cared_for", True)
    ),
    "A missing record counts as an answer": Planted(
        11, planted=_answers("steponce.triggers.ended._is_answered", True)
    ),
    "Lost events are not looked for": Planted(
        4901, planted=_answers("steponce.monitoring.missed_ends.MissedEnds.look", Looked())
    ),
    "The monitor does nothing": Planted(
        8, planted=_answers("steponce.monitoring.monitor.Monitor.round", Tally())
    ),
}
