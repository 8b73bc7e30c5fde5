"""Faults of callbacks to plant, each with the story that finds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from steponce.aws import times
from steponce.callbacks.answer import Answer, Verdict
from steponce.callbacks.awaiting import AwaitingSteps
from steponce.callbacks.resolver import Callbacks
from steponce.callbacks.step import ANSWERED, ANSWERING, LATE, AwaitingStep
from steponce.request.canonical import sha256
from tests.simulation.callbacks.schedule import ASKED_AGAIN, TWO_STEPS
from tests.simulation.callbacks.stories import NO, YES, by_heartbeat, by_program, by_token
from tests.simulation.planted import Patch, Planted, instead
from tests.simulation.story import Story, by_hand

STEPS, CALLBACKS = "steponce.callbacks.awaiting.AwaitingSteps", "steponce.callbacks.resolver.Callbacks"


_send, _update, _from_event = Callbacks._send, AwaitingSteps._update, AwaitingStep.from_event


ASKED = by_hand(0, "first")


def _condition(clause: str, replaced: str) -> Patch:
    """Replace a clause of the conditions that have it."""

    def update(
        self: AwaitingSteps, step_id: str, update: str, condition: str, values: Mapping[str, Any]
    ) -> AwaitingStep | None:
        condition = condition.replace(clause, replaced)
        used = {name: value for name, value in values.items() if name in f"{update} {condition}"}
        return _update(self, step_id, update, condition, used)

    return instead(f"{STEPS}._update", update)


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
        Story(  # while the program waits for the answer to its call, the heartbeat finds out what arrived
            (ASKED, by_program(20, YES), by_heartbeat(25)),
            faults={"program: send_task_success": "answered late"},
        ),
        "false",
        planted=instead(f"{STEPS}.claim", _claim_in_memory),
    ),
    "A claim takes a step that is claimed": Planted(
        Story(  # the claim of the slow program comes when all is over
            (ASKED, by_program(20, YES, who="slow program"), by_program(25, YES)),
            faults={"slow program: update_item": "slow"},
        ),
        "twice",
        planted=_condition("#status = :pending AND taskToken = :taskToken", "taskToken = :taskToken"),
    ),
    "A used token counts as sent": Planted(
        Story((ASKED, by_program(120, YES))), "false", planted=instead(f"{CALLBACKS}._send", _send_for_sure)
    ),
    "A used token counts as late": Planted(
        Story((ASKED, by_token(20), by_program(25, NO))),
        "wrong record",
        planted=instead(f"{CALLBACKS}._what_arrived", lambda *_: None),
    ),
    "Every sender of the answer is told accepted": Planted(
        Story((ASKED, by_program(20, YES), by_program(25, YES))),
        "twice",
        planted=instead("steponce.callbacks.resolver._verdict", _accepts_what_arrived),
    ),
    "An older token replaces a newer one": Planted(
        # The function of the first try begins late, after that of the retry.
        Story((ASKED, by_program(40, YES)), faults={"RecordAwaitingStepFunction": "Lambda.ServiceException"}),
        "unreachable",
        planted=_condition("enteredAt < :enteredAt OR", "enteredAt <= :enteredAt OR"),
    ),
    "A close ends the wait of a retry": Planted(
        Story(  # the heartbeat finds the first wait over, and closes it when the second one is recorded
            (ASKED, by_heartbeat(100), by_program(150, YES)),
            machine=ASKED_AGAIN,
            faults={"confirmation token-0001: update_item": "slow", "heartbeat: update_item": "slow"},
        ),
        "false",
        planted=_condition("#status = :was AND taskToken = :taskToken", "#status = :was"),
    ),
    "Two steps of a run share a record": Planted(
        Story((ASKED, by_program(20, YES)), machine=TWO_STEPS),
        "refused",
        planted=instead("steponce.callbacks.step.AwaitingStep.from_event", _of_the_run),
    ),
    "The monitor leaves steps alone": Planted(
        Story((ASKED,)), "stuck", planted=instead(f"{CALLBACKS}.settle", lambda *_: False)
    ),
    "The monitor closes expired steps unasked": Planted(
        Story((ASKED, by_token(20))),
        "wrong record",
        planted=instead(f"{CALLBACKS}.settle", _settle_by_the_clock),
    ),
}
