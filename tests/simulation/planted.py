"""
Faults to plant: the simulation proves something only if it finds them.

Each fault has a story in which it breaks a promise. Without the fault, the story breaks none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any
from unittest import mock

from steponce.monitoring.missed_ends import Looked
from steponce.monitoring.monitor import Tally
from tests.simulation.story import (
    Story,
    by_caller,
    by_hand,
    by_message,
    made_anew,
    moved,
    put_back,
    sent_anew,
    stopped,
)

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
        story: A schedule that finds it.
        breaks: Which promise it breaks there: how the complaint begins.
        change: Changes the states of the definition.
        planted: Changes the code while a schedule runs.
    """

    story: Story
    breaks: str
    change: Change = _as_it_is
    planted: Patch = nullcontext


NOTHING = Planted(Story(), "")


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


def instead(target: str, function: Callable[..., object]) -> Patch:
    """Replace a function."""
    return lambda: mock.patch(target, function)


def _answers(target: str, value: object) -> Patch:
    return lambda: mock.patch(target, return_value=value)


REFUSED = (by_hand(0, "first"), by_message(4, "second", other_payload=True))
"""The execution of a message finds another payload's lock, which is free after seven seconds."""

PLANTED: Mapping[str, Planted] = {
    "AcquireLock takes a lock in progress": Planted(
        Story((by_hand(0, "first"), by_hand(10, "second")), work="slow"),
        "twice",
        _condition("AcquireLock", "#status = :released", "#status IN (:released, :inprogress)"),
    ),
    "DoWork is tried again after any error": Planted(
        Story((by_hand(0, "first"),), work="bug after the effect"),
        "twice",
        lambda states: states["DoWork"]["Retry"][1].update(ErrorEquals=["States.ALL"]),
    ),
    "An error of Lambda releases the lock": Planted(
        # The function runs, and Step Functions gets an error.
        Story((by_hand(0, "first"),), faults={"ChargeCardFunction": "Lambda.ServiceException"}),
        "twice",
        lambda states: states["DoWork"]["Catch"][0]["ErrorEquals"].append("Lambda.ServiceException"),
    ),
    "A living owner is taken over": Planted(
        # Its execution is dead, and its work may still run: so long it counts as alive.
        Story((by_hand(0, "first"), stopped(10, "first"), by_hand(15, "second")), work="slow"),
        "twice",
        lambda states: states["IsOwnerAlive"].update(Default="TakeOverLock"),
    ),
    "IsLockHeld does not compare payloads": Planted(
        Story((by_caller(0, "first"), by_caller(60, "second", other_payload=True))),
        "lost",
        _without_choice("IsLockHeld", "PayloadMismatch"),
    ),
    "The client does not compare payloads": Planted(
        Story((by_caller(0, "first"), by_caller(60, "first", other_payload=True))),
        "wrong answer",
        planted=_answers("steponce.request.comparison.Comparison.expect_payload_of_record", None),
    ),
    "Every duplicate counts as cared for": Planted(
        # The caller's execution ends without an answer, and brings no message back.
        Story((by_caller(0, "first"), by_message(0, "first")), work="retry later"),
        "lost",
        planted=_answers("steponce.triggers.starter.Starter._is_cared_for", True),
    ),
    "A refusal by the rate limit answers a message": Planted(
        # The caller is refused a moment before the message of the same request is received.
        Story(
            (by_caller(0, "first"), by_caller(20, "second", 1), by_message(20, "second", 1)), rate_limit=True
        ),
        "lost",
        planted=_answers("steponce.request.comparison.Comparison.was_just_refused", True),
    ),
    "A missing record counts as an answer": Planted(
        Story(  # it dies between two tries of AcquireLock
            (by_message(0, "first"), stopped(1.25, "first")),
            faults={"execution first: update_item": "refused"},
        ),
        "lost",
        planted=_answers("steponce.triggers.ended._is_answered", True),
    ),
    "Lost events are not looked for": Planted(
        Story((by_message(0, "first"),), work="retry later", faults={"event for resend_request": "lost"}),
        "lost",
        planted=_answers("steponce.monitoring.missed_ends.MissedEnds.look", Looked()),
    ),
    "The mark of a letter is of the execution's ARN alone": Planted(
        # The machine is made anew, so the message that is put back comes to the same ARNs.
        Story((by_message(0, "first"), made_anew(9_000), put_back(9_100)), work="retry later"),
        "lost",
        planted=instead("steponce.triggers.ended.end_of", lambda arn, _call_id, _redrives: arn),
    ),
    "A duplicate is not compared with the marks of letters": Planted(
        # The execution that has a letter is shown as open. Who sends the message anew leaves all else out.
        Story((*REFUSED, sent_anew(8)), work="retry later", shown_open=60),
        "lost",
        planted=instead("steponce.triggers.starter.end_of", lambda *_: "no end"),
    ),
    "A letter does not say whose it is": Planted(
        # It is put back before its mark is written.
        Story(
            (*REFUSED, moved(8)),
            work="retry later",
            faults={"resend_request: put_item": "slow"},
            shown_open=60,
        ),
        "lost",
        planted=lambda: mock.patch("steponce.triggers.resend.LETTER_OF", "nobody reads this"),
    ),
    "The monitor does nothing": Planted(
        Story(
            (by_hand(0, "first"), stopped(10, "first")),
            work="slow",
            faults={"event for close_execution": "lost"},
        ),
        "held unseen",
        planted=_answers("steponce.monitoring.monitor.Monitor.round", Tally()),
    ),
}
