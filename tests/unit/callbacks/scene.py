"""
One step that waits, its record, and the calls that answer it.

The invariant, which is checked with each verdict: the workflow gets at most one answer, at most one call is
told `accepted`, and every verdict is a true statement of what the workflow got.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from steponce.callbacks.answer import Answer
from steponce.callbacks.awaiting import AwaitingSteps
from steponce.callbacks.resolver import Callbacks
from steponce.callbacks.step import ANSWERED, LATE, AwaitingStep
from steponce.errors import StepAlreadyAnswered, StepNameTaken, Unavailable
from tests.fakes.awaiting_steps_table import QuickTable
from tests.fakes.calls import Boundary, Died
from tests.fakes.waiting_step import BEGINNING, WaitingStep

YES = Answer("success", {"confirmed": True})
NO = Answer("failure", error="Declined", cause="no")
MAYBE = Answer("success", {"confirmed": "perhaps"})
BEAT = Answer("heartbeat")
FULL = pytest.mark.full
NOW = BEGINNING + timedelta(days=1)


class Scene:
    """One wait, its record, and the calls that answer it; each verdict is checked as it comes."""

    def __init__(
        self,
        retries: int = 1,
        table: Any = None,
        kind: type[Callbacks] = Callbacks,
        records: type[AwaitingSteps] = AwaitingSteps,
    ) -> None:
        self.wait = WaitingStep(retries)
        self.throttled = False
        self.table = table or QuickTable()
        self.kind, self.records = kind, records
        self.step = AwaitingStep.from_event(self.wait.handed[-1])
        self.accepted: list[Answer] = []
        self.calls: list[str] = []

    def callbacks(self, gate: Callable[[str], str | None] | None = None) -> Callbacks:
        """A resolver, all of whose calls pass a gate."""
        gate = gate or (lambda _name: None)
        steps = self.records(Boundary(self.table, gate), "steps")
        return self.kind(steps, Boundary(self.wait.sfn, gate))

    def record(self) -> None:
        """The recording function runs for the newest try, and returns."""
        try:
            self.put_on_record()
        except StepAlreadyAnswered:
            self.wait.crash()
        else:
            self.wait.submit()

    def record_only(self) -> None:
        """The recording function records, and does not return yet."""
        with suppress(StepAlreadyAnswered):
            self.put_on_record()

    def record_the_first(self) -> None:
        """The recording function of the very first try was slow, and records only now, for nobody."""
        with suppress(StepAlreadyAnswered, StepNameTaken):
            self.put_on_record(0)

    def put_on_record(self, number: int = -1) -> None:
        """The record that the recording function of one try makes."""
        self.records(self.table, "steps").record(AwaitingStep.from_event(self.wait.handed[number]))

    def stored(self) -> AwaitingStep | None:
        """The record as it is."""
        return AwaitingSteps(self.table, "steps").get(self.step.id)

    def status(self) -> str:
        """The record's status."""
        stored = self.stored()
        return stored.status if stored else "none"

    def answer_raw(self, answer: Answer) -> None:
        """Somebody answers with the newest token itself."""
        try:
            self.wait.take(self.wait.tokens[-1], answer)
        except ClientError:
            assert self.wait.token is None or self.throttled

    def retry_and_record(self) -> None:
        """The retry that is due begins, and its recorder runs; or that of the try that is at it."""
        if self.wait.is_between_tries:
            self.wait.retry()
        if self.wait.token is not None and not self.wait.is_submitted:
            self.record()

    def time_out_for_good(self) -> None:
        """Nobody has answered, and no retry is left."""
        self.wait.retries_left = 0
        self.wait.time_out()

    def again(self) -> None:
        """The workflow enters the same state once more, and its recorder runs."""
        if not self.wait.is_inside and self.wait.is_open:
            self.wait.enter()
            self.record()

    def resolve(self, answer: Answer, gate: Callable[[str], str | None] | None = None) -> str:
        """One call; its verdict, or that it was unavailable or died."""
        verdict = self.ask(answer, gate)
        self.check(answer, verdict, faulty=gate is not None)
        return verdict

    def ask(self, answer: Answer, gate: Callable[[str], str | None] | None = None) -> str:
        """One call, unchecked. No exception tells a token."""
        try:
            verdict: str = self.callbacks(gate).resolve(self.step.id, answer)
        except (Unavailable, Died) as error:
            told = "".join(traceback.format_exception(error))
            assert not [token for token in self.wait.tokens if token in told and not self.throttled]
            return "unavailable" if isinstance(error, Unavailable) else "died"
        if verdict == "accepted" and answer != BEAT:
            self.accepted.append(answer)
        return verdict

    def check(self, answer: Answer, verdict: str, *, faulty: bool = False) -> None:
        """The verdict is true now."""
        stored = self.stored()
        waits = stored is not None and stored.task_token == self.wait.token
        got = self.wait.got_with(stored.task_token) if stored else []
        assert len(got) <= 1 >= len(self.accepted)
        truths = {
            "accepted": waits if answer == BEAT else got == [answer],
            "duplicate": got == [answer],
            "conflict": got not in ([], [answer]),
            "late": not waits if answer == BEAT else not got and not waits,
            "unknown": stored is None,
            "unavailable": faulty or self.wait.lags or self.throttled or self.may_wait_again(),
            "died": faulty,
        }
        assert truths[verdict], (verdict, answer, got, stored and stored.status)

    def may_wait_again(self) -> bool:
        """Whether the recorded try is over and another one is due, or has begun and is not on record."""
        stored = self.stored()
        return stored is not None and self.wait.is_inside and stored.task_token != self.wait.token

    def look_after(self, gate: Callable[[str], str | None] | None = None) -> str:
        """The monitor comes by; whether the record is closed then."""
        try:
            return str(self.callbacks(gate).settle(self.step.id))
        except (Unavailable, Died) as error:
            return "unavailable" if isinstance(error, Unavailable) else "died"

    def throttle(self, throttled: bool = True) -> None:
        """Step Functions refuses all answers for now, or takes them again."""
        self.throttled = throttled
        self.wait.sfn.heal()
        for outcome in ("success", "failure", "heartbeat"):
            if throttled:
                self.wait.sfn.refuse(f"send_task_{outcome}", "ThrottlingException")

    def settle(self, answer: Answer = YES) -> str:
        """All is well again: one more call gets a verdict, and nothing stays half done."""
        self.wait.catch_up()
        self.throttle(False)
        self.retry_and_record()
        verdict = self.resolve(answer)
        assert self.status() in ("none", ANSWERED, LATE), self.status()
        assert verdict not in ("unavailable", "died")
        if self.accepted:
            assert self.accepted[0] in self.wait.got
        assert verdict == self.resolve(answer) or verdict == "accepted"
        return verdict


def waiting(**options: Any) -> Scene:
    """A step that is on record and waits."""
    scene = Scene(**options)
    scene.record()
    return scene


class FaultAt:
    """A gate with a fault at one of a resolver's calls. `calls` counts how many there were."""

    def __init__(self, position: int, fault: str) -> None:
        self.position, self.fault, self.calls = position, fault, 0

    def __call__(self, _name: str) -> str | None:
        self.calls += 1
        return self.fault if self.calls == self.position else None
