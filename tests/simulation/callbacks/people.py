"""Those who answer: programs and people with a link, senders of messages, operators, holders of a token."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

import click

from steponce.callbacks.page import BUTTONS
from steponce.callbacks.routes import STATUS
from steponce.cli.resolve import resolve
from steponce.cli.which_step import which_step
from steponce.errors import InvalidAnswer
from tests.simulation.callbacks.installation import CallbackInstallation
from tests.simulation.faults import PASSING
from tests.simulation.tasks import UNACCEPTABLE, Waiting
from tests.simulation.wiring import STEPS, WIRING
from tests.unit.triggers.world import QUEUE

Step = Mapping[str, Any]
"""A step as its event reports it."""

Body = dict[str, Any]
BEAT: Body = {"outcome": "heartbeat"}


def answers_for(whom: list[str | int]) -> list[Body]:
    """What may be answered: confirmed in two ways, refused in three, and what Step Functions refuses."""
    meant = {"for": whom}
    yes = {"outcome": "success", "output": {"confirmed": True} | meant}
    perhaps = {"outcome": "success", "output": {"confirmed": "perhaps"} | meant}
    no = {"outcome": "failure", "error": "Declined", "cause": json.dumps(meant)}
    final = {"outcome": "failure", "error": "CardDeclined"}
    odd = {"outcome": "success", "output": {UNACCEPTABLE: True}}
    return [yes, yes, yes, yes, perhaps, no, no, final, {"outcome": "failure"}, odd]


class Outside:
    """
    Everyone who answers. A seed chooses a few ways, so that some schedules have much of one.

    Args:
        here: Where the steps wait.

    Attributes:
        told: What was told to someone in a way that contradicts itself.
        steps: The steps that were reported, in order.
    """

    def __init__(self, here: CallbackInstallation) -> None:
        self._here, self._random = here, here.random
        self.told: list[str] = []
        self.steps: list[Step] = []
        self._commands = 0
        ways: list[Callable[[Step, Body], str | None]] = [
            self.by_program,
            self._by_button,
            self._by_message,
            self._by_command,
            self._by_command_for_a_request,
        ]
        self._ways = self._random.sample(ways, self._random.choice((1, 2, len(ways))))
        self._most = self._random.choice((1, 2, 4, 6))
        self._holds_tokens = self._random.random() < 0.2
        first = self._random.uniform(0, 60)
        self._when = self._random.choice(((0, 3), (first, first + 1), (88, 94), (88, 94), (0, 400)))

    def hear(self, step: Step) -> None:
        """A step was reported: those who know of it may answer, at once or much later."""
        self.steps.append(step)
        self._here.verdicts.reported.add(step["awaitingStepId"])
        random = self._random
        if random.random() < 0.2:
            self._spawn("heartbeats", lambda: self._beat(step))
        for _ in range(random.randint(0, self._most)):
            way = random.choice(self._ways)
            whom = [step["requestId"], step["step"], step["attempt"]]
            if way == self._by_command_for_a_request:
                self._commands += 1
                whom = [step["requestId"], f"command {self._commands}"]
            answer = random.choice(answers_for(whom))
            self._spawn(way.__name__, lambda way=way, answer=answer: self.insist(way, step, answer))

    def watch(self, waiting: Waiting) -> None:
        """A try begins to wait. Somebody may have its token."""
        if self._holds_tokens and self._random.random() < 0.5:
            self._spawn("token holder", lambda: self.answer_with_token(waiting))

    def _spawn(self, name: str, act: Callable[[], None]) -> None:
        self._here.turns.spawn(name.strip("_"), act, after=self._random.uniform(*self._when))

    def insist(self, way: Callable[[Step, Body], str | None], step: Step, answer: Body) -> None:
        """Answer until there is a verdict, or longer, or not so long."""
        for _ in range(self._random.choice((1, 5, 5))):
            try:
                told = way(step, answer)
                self._here.turns.note(f"is told {told}")
                if told != "nothing" and self._random.random() < 0.8:
                    return
            except (*PASSING, click.UsageError) as error:
                self._here.turns.note(f"is told {error!r}"[:200])
                if isinstance(error, InvalidAnswer):
                    return
            self._here.turns.take(self._random.choice((0, 5, 60)))

    def _beat(self, step: Step) -> None:
        for _ in range(self._random.randint(1, 6)):
            self.insist(self.by_program, step, BEAT)
            self._here.turns.take(self._random.choice((5, 60, 80, 120)))

    # -- The ways ----------------------------------------------------------------------------------

    def by_program(self, step: Step, answer: Body) -> str:
        status, text = self._here.post(step["link"], json.dumps(answer), "application/json")
        verdict = json.loads(text).get("verdict", "nothing") if status < 500 else "nothing"
        if verdict != "nothing" and STATUS[verdict] != status:
            self.told.append(f"false: {verdict} with status {status}")
        return str(verdict)

    def _by_button(self, step: Step, _answer: Body) -> str:
        """A person opens the page, thinks, and presses a button. It is for the step of the link."""
        status, _ = self._here.open(step["link"])
        if status not in (200, 403, 500, 503):
            self.told.append(f"false: the page of a step that was reported has status {status}")
        self._here.turns.take(self._random.choice((0, 20)))
        button = self._random.choice(list(BUTTONS))
        form = urlencode({"outcome": button})
        status, _ = self._here.post(step["link"], form, "application/x-www-form-urlencoded")
        return "nothing" if status >= 500 else f"status {status}"

    def _by_message(self, step: Step, answer: Body) -> None:
        body = json.dumps({"awaitingStepId": step["awaitingStepId"], "answer": answer})
        self._here.answers.send_message(QueueUrl=QUEUE, MessageBody=body, MessageAttributes={})

    def _by_command(self, step: Step, answer: Body) -> str:
        return self._command(step["awaitingStepId"], answer)

    def _by_command_for_a_request(self, step: Step, answer: Body) -> str:
        """The request's id stands for its step if it has had only one."""
        outputs = {"AwaitingStepsTable": STEPS, "OpenShards": "1"}
        stack = SimpleNamespace(outputs=outputs, boto3=WIRING.client)
        machines: Any = SimpleNamespace(stack=stack, of_request=lambda _id: self._here.client)
        return self._command(which_step(machines, step["requestId"]), answer)

    def _command(self, step_id: str, answer: Body) -> str:
        function = "ResolveAwaitingStepFunction"
        return resolve(WIRING.client("lambda"), function, step_id, answer)

    def answer_with_token(self, waiting: Waiting) -> None:
        """
        A holder of the raw token, whom nothing tells of other answers.

        Before the function has returned, a failure is taken for the function's own (docs/callbacks.md).
        """
        given, sfn = waiting.given, WIRING.client("stepfunctions")
        whom = [given["requestId"], given["step"], given["attempt"]]
        answer = self._random.choice(answers_for(whom))
        self._here.verdicts.used_raw.add(waiting.token)
        try:
            if answer["outcome"] == "success":
                sfn.send_task_success(taskToken=waiting.token, output=json.dumps(answer["output"]))
            elif waiting.is_submitted:
                present = {name: answer[name] for name in ("error", "cause") if name in answer}
                sfn.send_task_failure(taskToken=waiting.token, **present)
        except PASSING as error:
            self._here.turns.note(f"is told {error!r}"[:200])
