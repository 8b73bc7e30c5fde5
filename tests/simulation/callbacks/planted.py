"""Faults of callbacks to plant."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any
from unittest import mock

from steponce.aws import times
from steponce.callbacks.answer import Answer, Verdict
from steponce.callbacks.awaiting import AwaitingSteps
from steponce.callbacks.resolver import Callbacks
from steponce.callbacks.step import ANSWERED, ANSWERING, LATE, AwaitingStep
from steponce.request.canonical import sha256
from tests.simulation.planted import Planted

STEPS, CALLBACKS = "steponce.callbacks.awaiting.AwaitingSteps", "steponce.callbacks.resolver.Callbacks"

Patch = Callable[[], AbstractContextManager[object]]

_send, _update, _from_event = Callbacks._send, AwaitingSteps._update, AwaitingStep.from_event


def _instead(target: str, function: Callable[..., object]) -> Patch:
    """Replace a method."""
    return lambda: mock.patch(target, function)


def _condition(clause: str, replaced: str) -> Patch:
    """Replace a clause of the conditions that have it."""

    def update(
        self: AwaitingSteps, step_id: str, update: str, condition: str, values: Mapping[str, Any]
    ) -> AwaitingStep | None:
        condition = condition.replace(clause, replaced)
        used = {name: value for name, value in values.items() if name in f"{update} {condition}"}
        return _update(self, step_id, update, condition, used)

    return _instead(f"{STEPS}._update", update)


def _claim_in_memory(_self: AwaitingSteps, step: AwaitingStep, answer: Answer, call: str) -> AwaitingStep:
    return replace(step, status=ANSWERING, answer=answer, claim=call, answered_at=times.now_text())


def _send_for_sure(self: Callbacks, step: AwaitingStep, answer: Answer) -> str:
    sent = _send(self, step, answer)
    return "sent" if sent == "used up" else sent


def _settle_by_the_clock(self: Callbacks, step_id: str) -> bool:
    step = self._steps.get(step_id)
    if step is None or step.status in (ANSWERED, LATE) or step.expires_at >= times.now_text():
        return False
    return self._steps.close(step, step.answer) is not None


def _accepts_what_arrived(step: AwaitingStep, answer: Answer, _call: str) -> Verdict:
    if step.answer is None or answer.outcome == "heartbeat":
        return "late"
    return "accepted" if step.answer == answer else "conflict"


def _of_the_run(event: Mapping[str, Any]) -> AwaitingStep:
    return replace(_from_event(event), id=f"as_{sha256(event['callId'])[:40]}")


PLANTED: Mapping[str, Planted] = {
    "An answer is sent before it is stored": Planted(
        15, planted=_instead(f"{STEPS}.claim", _claim_in_memory)
    ),
    "A claim takes a step that is claimed": Planted(
        15, planted=_condition("#status = :pending AND taskToken = :taskToken", "taskToken = :taskToken")
    ),
    "A used token counts as sent": Planted(9, planted=_instead(f"{CALLBACKS}._send", _send_for_sure)),
    "A used token counts as late": Planted(
        14, planted=_instead(f"{CALLBACKS}._what_arrived", lambda *_: None)
    ),
    "Every sender of the answer is told accepted": Planted(
        3, planted=_instead("steponce.callbacks.resolver._verdict", _accepts_what_arrived)
    ),
    "An older token replaces a newer one": Planted(
        61, planted=_condition("enteredAt < :enteredAt OR", "enteredAt <= :enteredAt OR")
    ),
    "A close ends the wait of a retry": Planted(
        3078, planted=_condition("#status = :was AND taskToken = :taskToken", "#status = :was")
    ),
    "Two steps of a run share a record": Planted(
        7, planted=_instead("steponce.callbacks.step.AwaitingStep.from_event", _of_the_run)
    ),
    "The monitor leaves steps alone": Planted(7, planted=_instead(f"{CALLBACKS}.settle", lambda *_: False)),
    "The monitor closes expired steps unasked": Planted(
        35, planted=_instead(f"{CALLBACKS}.settle", _settle_by_the_clock)
    ),
}
