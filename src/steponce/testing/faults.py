"""Plans faults in states of a running stack, and reports those that never happened."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from steponce.errors import SteponceError
from steponce.lint.asl import states
from steponce.local.stack import LocalStack

_NO_ERROR = "States.ALL"
_PLANNED = "Planned by the test."


class FaultRefused(SteponceError):
    """The fault cannot be planned: there is no such task, or no such error."""


@dataclass(frozen=True)
class _Planned:
    id: str
    text: str
    times: int


class PlannedFaults:
    """
    The faults of one test.

    Args:
        stack: A stack with controls, whose Step Functions is the embedded one.
    """

    def __init__(self, stack: LocalStack) -> None:
        stack.expect_embedded("states")
        self._controls = stack.controls
        self._stack_name = stack.name
        self._tasks = {
            machine.arn: (machine.name, tasks_of(json.loads(machine.definition)))
            for machine in stack.plan.machines
        }
        self._logical_ids = {machine.arn: machine.logical_id for machine in stack.plan.machines}
        self._planned: list[_Planned] = []

    def fail_state(
        self, state: str, error: str, *, cause: str = _PLANNED, times: int = 1, machine: str | None = None
    ) -> None:
        """
        Let the next tries of a task fail before they have any effect.

        Args:
            state: The task's name. Names inside of Map and Parallel count, too.
            error: The name of the error, as Retry and Catch have it: `Lambda.TooManyRequestsException`,
                `States.Timeout`, or the class of an exception of yours.
            cause: The error's cause.
            times: How many tries fail, retries included.
            machine: The state machine, by logical id, name or ARN. Needed if two have a state of this name.

        Raises:
            FaultRefused: there is no such task, and the message lists the names; or `times` is no number.
        """
        if not error or error == _NO_ERROR:
            raise FaultRefused(f"{error!r} is no error that a state can have. Name one, such as Declined.")
        self._plan(
            "fail", state, machine, f"fail_state({state!r}, {error!r})", times, error=error, cause=cause
        )

    def lose_answer(self, state: str, *, times: int = 1, machine: str | None = None) -> None:
        """
        Let the next calls of a task take effect, and their answers get lost.

        The task sees what the SDK says of a broken connection: `Lambda.SdkClientException`,
        `DynamoDB.SdkClientException` and so on.

        Args:
            state, times, machine: As for `fail_state`.
        """
        self._plan("lose answer", state, machine, f"lose_answer({state!r})", times)

    def stop_in(self, state: str, *, after_effect: bool = False, machine: str | None = None) -> None:
        """
        Stop the next execution that comes to a task, as StopExecution does; its status is then ABORTED.

        Args:
            state, machine: As for `fail_state`.
            after_effect: Whether the task's call takes effect before the execution is stopped.
        """
        self._plan(
            "stop", state, machine, f"stop_in({state!r})", 1, cause=_PLANNED, after_effect=after_effect
        )

    def drop(self) -> list[str]:
        """Withdraw all faults. Returns, as text, those that have not happened as often as planned."""
        missed = []
        for one in self._planned:
            reached = self._controls.drop_fault(one.id)
            if reached < one.times:
                missed.append(f"{one.text} was reached {reached} of {one.times} times")
        self._planned.clear()
        return missed

    def _plan(self, kind: str, state: str, machine: str | None, text: str, times: int, **fields: Any) -> None:
        if not isinstance(times, int) or times < 1:
            raise FaultRefused(f"{text}: times must be a whole number, 1 or more, and is {times!r}.")
        arn = self._machine_with(state, machine)
        planned = self._controls.plan_fault(kind=kind, machine=arn, state=state, times=times, **fields)
        self._planned.append(_Planned(planned, text, times))

    def _machine_with(self, state: str, machine: str | None) -> str:
        """The ARN of the machine that has this task."""
        among = {arn for arn in self._tasks if machine is None or self._is_called(arn, machine)}
        if not among:
            names = ", ".join(sorted(name for name, _ in self._tasks.values()))
            wanted = "" if machine is None else f" {machine!r}"
            raise FaultRefused(f"There is no state machine{wanted}. There are: {names or 'none'}.")
        having = sorted(arn for arn in among if state in self._tasks[arn][1])
        if len(having) == 1:
            return having[0]
        if having:
            names = ", ".join(self._tasks[arn][0] for arn in having)
            raise FaultRefused(f"{names} have a task {state!r} each. Say which one: machine=…")
        known = "; ".join(
            f"{name}: {', '.join(sorted(states)) or 'none'}"
            for name, states in (self._tasks[arn] for arn in sorted(among))
        )
        raise FaultRefused(f"There is no task {state!r}. The tasks are: {known}.")

    def _is_called(self, arn: str, machine: str) -> bool:
        name, _ = self._tasks[arn]
        names = (arn, self._logical_ids[arn], name, name.removeprefix(f"{self._stack_name}-"))
        return machine in names


def tasks_of(machine: dict[str, Any]) -> set[str]:
    """The tasks of a machine, including those inside Map and Parallel."""
    return {name for name, state in states(machine) if state["Type"] == "Task"}
