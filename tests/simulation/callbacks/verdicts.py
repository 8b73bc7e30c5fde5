"""The verdicts that were given, each compared with what the workflow has got by then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from steponce.callbacks.answer import Answer, Verdict
from steponce.callbacks.awaiting import AwaitingSteps
from steponce.callbacks.step import AwaitingStep
from tests.simulation.machine import Machine
from tests.simulation.tasks import Waiting
from tests.simulation.turns import Turns
from tests.simulation.wiring import STEPS


def run_of(given: Mapping[str, Any] | AwaitingStep) -> tuple[str, str, str, int]:
    """Which step of which run: the tries of it share a record, and nothing else does."""
    if isinstance(given, AwaitingStep):
        return given.lock_token, given.step, given.call_id, given.attempt
    return given["lockToken"], given["step"], given["callId"], int(given["attempt"])


def got(waiting: Waiting) -> Answer:
    """The answer that a try got."""
    assert waiting.answer is not None
    kind, details = waiting.answer
    if kind == "TaskSucceeded":
        return Answer.of_output(details["output"])
    return Answer("failure", error=details.get("error"), cause=details.get("cause"))


@dataclass(frozen=True)
class Given:
    """One verdict."""

    step_id: str
    answer: Answer
    verdict: Verdict


class Verdicts:
    """
    Every verdict.

    Args:
        turns: The actors.
        machine: Knows what the workflow has got.
        dynamodb: A client whose calls take no turns.

    Attributes:
        given: The verdicts, in order.
        reported: The ids of the steps that were reported to the outside.
        used_raw: The tokens with which somebody has answered past the resolver.
        complaints: Verdicts that were false.
    """

    def __init__(self, turns: Turns, machine: Machine, dynamodb: Any) -> None:
        self.given: list[Given] = []
        self._asked: Counter[tuple[str, Answer]] = Counter()
        self.reported: set[str] = set()
        self.used_raw: set[str] = set()
        self.complaints: list[str] = []
        self._turns, self._machine = turns, machine
        self._steps = AwaitingSteps(dynamodb, STEPS, open_shards=1)

    def ask(self, step_id: str, answer: Answer) -> None:
        """A call begins."""
        self._asked[step_id, answer] += 1

    def give(self, step_id: str, answer: Answer, verdict: Verdict) -> None:
        """Compare a verdict with the truth. Nobody has acted since the resolver's last call."""
        self._turns.note(f"{verdict}: {answer.to_json()}")
        self.given.append(Given(step_id, answer, verdict))
        if not self._is_true(step_id, answer, verdict):
            self.complaints.append(f"false: {verdict} to {answer.to_json()} of {step_id}")

    def give_none(self, step_id: str) -> None:
        """A call could not reach the step. It may be that nobody can just now, but no longer than that."""
        step = self._steps.get(step_id)
        tries = [one for one in self._machine.waits if step is not None and run_of(one.given) == run_of(step)]
        for one in tries:
            if self._waits(one) and one.is_submitted and step is not None and one.token != step.task_token:
                self.complaints.append(
                    f"unreachable: {step_id} waits with {one.token}, has {step.task_token}"
                )

    def answers(self, step: AwaitingStep) -> list[Answer]:
        """The answers that the workflow has got for a step, in all of its tries."""
        return [got(one) for one in self._machine.waits if one.answer and run_of(one.given) == run_of(step)]

    def records(self) -> list[AwaitingStep]:
        """Every record."""
        return list(self._steps.under(""))

    def open(self) -> list[AwaitingStep]:
        """What is listed as open."""
        return self._steps.open()

    def _is_true(self, step_id: str, answer: Answer, verdict: Verdict) -> bool:
        step = self._steps.get(step_id)
        if step is None or verdict == "unknown":
            return step is None and verdict == "unknown" and step_id not in self.reported
        answers, is_beat = self.answers(step), answer.outcome == "heartbeat"
        waits = any(self._waits(one) for one in self._machine.waits if one.token == step.task_token)
        truths: Mapping[Verdict, bool] = {
            "accepted": waits if is_beat else answers == [answer],
            "duplicate": answers == [answer] and not is_beat and self._came_before(step, answer),
            "conflict": answers not in ([], [answer]) and not is_beat,
            "late": not waits and (is_beat or not answers),
        }
        return truths[verdict]

    def _came_before(self, step: AwaitingStep, answer: Answer) -> bool:
        """Whether anybody else has sent this answer: by another call, or with the raw token."""
        raw = {one.token for one in self._machine.waits if run_of(one.given) == run_of(step)} & self.used_raw
        return bool(raw) or self._asked[step.id, answer] > 1

    def _waits(self, waiting: Waiting) -> bool:
        execution = self._machine.executions[waiting.given["execution"]]
        return waiting.over is None and execution["status"] == "RUNNING"
