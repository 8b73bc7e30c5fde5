"""Step Functions that runs `run_once.asl.json`: its API, and how executions begin and end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from tests.fakes.errors import client_error
from tests.simulation.definition import Data
from tests.simulation.execution import Run
from tests.simulation.tasks import WaitingTasks
from tests.simulation.turns import Turns

MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:steponce-run-once"

_LONG_AGO = datetime.min.replace(tzinfo=UTC)

Integrations = Mapping[str, Callable[[dict[str, Any], float], Data]]
"""By service and action, for example `dynamodb:getItem`: gets the arguments and the time-out of a task."""


class Machine(WaitingTasks):
    """
    A state machine whose executions run.

    DescribeExecution and GetExecutionHistory are eventually consistent: they may lag behind.

    Args:
        turns: The actors.
        random: Chooses the lags.
        definition: The state machine's definition.
        integrations: What its tasks call.
        ended: Gets the ARN of each execution that ends.

    Attributes:
        shown_open: For how many seconds each execution is shown as open after its end, as a story tells.
    """

    shown_open = 0.0

    def __init__(
        self,
        turns: Turns,
        random: Random,
        definition: Mapping[str, Any],
        integrations: Integrations,
        ended: Callable[[str], None],
    ) -> None:
        super().__init__(MACHINE, definition)
        self.turns, self.random = turns, random
        self.integrations = integrations
        self._ended = ended
        self._longest_lag = random.choice((0, 2, 2, 30))
        tasks = [name for name, state in definition["States"].items() if state["Type"] == "Task"]
        self._doom = random.choice(tasks) if random.random() < 0.5 else None
        self._lags: dict[str, float] = {}

    def put(self, which: str, *events: dict[str, Any], status: str = "RUNNING", **described: Any) -> None:
        events = tuple({"timestamp": self.turns.now} | event for event in events)
        super().put(which, *events, status=status, **{"startDate": self.turns.now} | described)
        self._lags[self.arn(which)] = self.random.choice((0, 1)) * self.random.uniform(0, self._longest_lag)

    def close(
        self,
        which: str,
        status: str,
        error: str | None = None,
        cause: str | None = None,
        at: datetime | None = None,
    ) -> None:
        super().close(which, status, error, cause, at or self.turns.now)
        self.turns.note(f"{which.rpartition(':')[2]} ends: {status} {error or ''}")
        self.wake_waiting()
        self._ended(self.arn(which))

    def meets_its_end(self, arn: str, state: str) -> None:
        """
        Stop the first execution that enters the state that the seed has chosen, soon after that.

        Otherwise it would be rare that one dies between two calls, because most states are over in a moment.
        """
        if state == self._doom:
            self._doom = None
            self.turns.spawn("end", lambda: self.stop(arn), after=self.random.choice((0, 0.2, 1, 30)))

    def stop(self, arn: str) -> None:
        """End an execution as no state of it would."""
        if self.executions[arn]["status"] == "RUNNING":
            ends = (("ABORTED", None), ("TIMED_OUT", None), ("FAILED", "States.Runtime"))
            self.close(arn, *self.random.choice(ends))

    def forget_old(self) -> None:
        """Forget what closed more than 90 days ago."""
        before = self.turns.now - timedelta(days=90)
        for arn, execution in list(self.executions.items()):
            if execution.get("stopDate", self.turns.now) < before:
                self.forget(arn)

    def start_execution(self, *, stateMachineArn: str, name: str, input: str = "{}") -> dict[str, Any]:
        known = self.arn(name) in self.executions
        answer = super().start_execution(stateMachineArn=stateMachineArn, name=name, input=input)
        if not known:
            self.turns.note(f"starts {name}")
            self.turns.spawn(f"execution {name}", Run(self, self.arn(name)).run)
        return answer

    def describe_execution(self, *, executionArn: str) -> dict[str, Any]:
        found = super().describe_execution(executionArn=executionArn)
        seen_until = self._seen_until(executionArn)
        if found["startDate"] > seen_until:
            raise client_error("ExecutionDoesNotExist", executionArn)
        if found.get("stopDate", _LONG_AGO) > seen_until - timedelta(seconds=self.shown_open):
            hidden = ("stopDate", "error", "cause", "output")
            return {name: value for name, value in found.items() if name not in hidden} | {
                "status": "RUNNING"
            }
        return found

    def _history_pages(self, *, executionArn: str, **limits: object) -> Iterator[dict[str, Any]]:
        seen_until = self._seen_until(executionArn)
        events = self.histories.get(executionArn, [])
        self.shown[executionArn] = sum(one.get("timestamp", seen_until) <= seen_until for one in events)
        return super()._history_pages(executionArn=executionArn, **limits)

    def _seen_until(self, arn: str) -> datetime:
        return self.turns.now - timedelta(seconds=self._lags.get(arn, 0))
