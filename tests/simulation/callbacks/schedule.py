"""One schedule of requests that wait: who asks, who answers, and what happens to the waiting executions."""

from __future__ import annotations

import itertools
from copy import deepcopy
from typing import Any

from steponce.callbacks.answer import Answer
from steponce.errors import SteponceError
from tests.simulation.callbacks.faults import CallbackFaults
from tests.simulation.callbacks.installation import CallbackInstallation
from tests.simulation.callbacks.people import Outside
from tests.simulation.callbacks.verdicts import got
from tests.simulation.requests import Order
from tests.simulation.schedule import Schedule

TIMED_OUT = ["States.Timeout", "States.HeartbeatTimeout"]

SAMPLE, RETRIED, ASKED_AGAIN, TWO_STEPS, TWO_RETRIED = range(5)
"""
SAMPLE       the sample's machine
RETRIED      its waiting state is tried again after a time-out
ASKED_AGAIN  another state of the same step name follows a time-out
TWO_STEPS    a second step of another name follows
"""


class CallbackSchedule(Schedule):
    """
    What one seed makes happen.

    Attributes:
        outside: Those who answer.
    """

    installation: CallbackInstallation
    outcomes = ("done",) * 11 + ("declined",)
    installed = CallbackInstallation
    goes_wrong = CallbackFaults

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.outside = Outside(self.installation)
        self.installation.reported = self.outside.hear
        self.installation.machine.began_to_wait = self.outside.watch

    def vary(self, states: dict[str, Any]) -> None:
        """Deploy one of the machines above. What follows a wait may be somebody's own state."""
        machines = (SAMPLE, RETRIED, ASKED_AGAIN, ASKED_AGAIN, TWO_STEPS, TWO_RETRIED)
        self.machine = self.story.machine if self.story else self.random.choice(machines)
        waits, following = states["AwaitConfirmation"], deepcopy(states["AwaitConfirmation"])
        if self.machine in (RETRIED, TWO_RETRIED):
            tries = self.random.choice((1, 2))
            waits["Retry"].append(waits["Retry"][0] | {"ErrorEquals": TIMED_OUT, "MaxAttempts": tries})
        if self.machine == ASKED_AGAIN:
            again = {"ErrorEquals": TIMED_OUT, "ResultPath": "$.timedOut", "Next": "AskAgain"}
            waits["Catch"].insert(0, again)
            states["AskAgain"] = following
        if self.has_two_steps:
            following["Parameters"]["Payload"]["step"] = "approval"
            following["ResultPath"] = "$.work.result.approval"
            waits["Next"] = "AwaitApproval"
            states["AwaitApproval"] = following

    @property
    def has_two_steps(self) -> bool:
        return self.machine in (TWO_STEPS, TWO_RETRIED)

    def results(self, order: Order) -> list[dict[str, Any]]:
        """The work's result, with what the steps of the order were answered."""
        steps = ("confirmation", "approval") if self.has_two_steps else ("confirmation",)
        outputs = [self._outputs(order, step) for step in steps]
        return [
            result | dict(zip(steps, given, strict=True))
            for result in super().results(order)
            for given in itertools.product(*outputs)
        ]

    def _outputs(self, order: Order, step: str) -> list[object]:
        waits = [one for one in self.installation.machine.waits if one.answer]
        of_step = [
            got(one) for one in waits if (one.given["lockToken"], one.given["step"]) == (order.token, step)
        ]
        return [answer.output for answer in of_step if answer.outcome == "success"]

    def order(self, number: int) -> Order:
        """A new order."""
        return self._order(number, {"order": number, "confirm": True}, {"order": number + 7, "confirm": True})

    def _plan(self) -> None:
        random, spawn, here = self.random, self.turns.spawn, self.installation
        for number in range(random.choice((1, 1, 2))):
            order = self.order(number)
            for asker in range(random.choice((1, 1, 2, 3))):
                request_id = f"order-{number}" if random.random() < 0.6 else f"id-{number}-{asker}"
                self.askers.plan(order, request_id, 0)
        if random.random() < 0.25:
            spawn("fate", self._stop_executions, after=random.uniform(0, 400))
        if random.random() < 0.3:
            spawn("operator", self.operators.operate, after=random.uniform(0, 600))
        for _ in range(random.choice((0, 1, 3))):  # as if the schedule came just now
            spawn("schedule", lambda: here.call("find_overdue", {}), after=random.uniform(0, 800))

    def ask_again(self) -> None:
        """In the end everybody asks once more, and nothing goes wrong: each step gives a verdict."""
        resolver = self.installation.functions["resolve_awaiting_step"]
        answers = (Answer("success", {"last": "word"}), Answer("heartbeat"))
        for step in self.installation.verdicts.records():
            for answer in (*answers, *([step.answer] if step.answer else [])):
                self._ask(resolver, step.id, answer)

    def _ask(self, resolver: Any, step_id: str, answer: Answer) -> None:
        def ask() -> None:
            try:
                resolver.callbacks.resolve(step_id, answer)
            except SteponceError as error:
                self.installation.verdicts.complaints.append(f"no verdict: {step_id}: {error}")

        with self.installation.present():
            self.turns.spawn("judge", ask)
            self.turns.run()
