"""
Faults that a test has planned for a state: its call fails, its answer is lost, or the execution is stopped.

A fault happens at the first call that a try of the task makes, after TaskStarted is in the history. So the
state's Retry and Catch, and every later state, see what they would see on AWS.
"""

from __future__ import annotations

import datetime
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import BotoCoreError
from moto.stepfunctions.parser.api import HistoryEventType
from moto.stepfunctions.parser.asl.component.common.error_name.custom_error_name import CustomErrorName
from moto.stepfunctions.parser.asl.component.common.error_name.failure_event import (
    FailureEvent,
    FailureEventException,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.state_task import StateTask
from moto.stepfunctions.parser.asl.component.state.exec.state_task.state_task_lambda import StateTaskLambda
from moto.stepfunctions.parser.asl.eval.environment import Environment
from moto.stepfunctions.parser.asl.eval.event.event_detail import EventDetails
from moto.stepfunctions.parser.models import stepfunctions_parser_backends

FAIL, LOSE_ANSWER, STOP = "fail", "lose answer", "stop"
_TIMEOUTS = ("States.Timeout", "States.HeartbeatTimeout")


class AnswerLostError(BotoCoreError):
    """The SDK's error for a broken connection."""

    fmt = "The connection was closed before {state} got its answer."


@dataclass
class Fault:
    """
    One planned fault.

    Args:
        kind: FAIL, LOSE_ANSWER or STOP.
        machine: The ARN of the state machine.
        state: The name of one of its tasks.
        times: How often it happens.
        error: Of FAIL: the name of the error.
        cause: Of FAIL and STOP.
        after_effect: Of STOP: whether the call takes effect before.
    """

    kind: str
    machine: str
    state: str
    times: int = 1
    error: str | None = None
    cause: str | None = None
    after_effect: bool = False
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    reached: int = 0


_planned: dict[str, Fault] = {}
_lock = threading.Lock()
_here = threading.local()


def plan(fault: Fault) -> None:
    """Plan the fault for as many tries as it says."""
    with _lock:
        _planned[fault.id] = fault


def drop(fault_id: str) -> int:
    """Withdraw the fault. Returns how often it has happened."""
    with _lock:
        return _planned.pop(fault_id).reached


@contextmanager
def may_happen_to(task: StateTask, env: Environment) -> Iterator[None]:
    """Apply a planned fault of this task to the first call of the block."""
    _here.task = (task, env)
    _here.fault = None
    try:
        yield
    finally:
        del _here.task, _here.fault


def before_call(**_: Any) -> None:
    """botocore calls this before each call of the interpreter's clients."""
    task, env = getattr(_here, "task", None) or (None, None)
    if task is None:
        return
    _here.task = None  # the next call of this try is no longer the first
    fault = _here.fault = _take(env)
    if fault is None:
        return
    if fault.kind == FAIL:
        raise FailureEventException(_failure(task, env, fault))
    if fault.kind == STOP and not fault.after_effect:
        _stop(env, fault)


def after_call(**_: Any) -> None:
    """botocore calls this with each answer, whatever it is."""
    fault = getattr(_here, "fault", None)
    if fault is None:
        return
    _here.fault = None
    if fault.kind == STOP:
        _stop(_here.env, fault)
    raise AnswerLostError(state=fault.state)


def _take(env: Environment) -> Fault | None:
    context = env.states.context_object.context_object_data
    state, machine = context["State"]["Name"], context["StateMachine"]["Id"]
    _here.env = env
    with _lock:
        for fault in _planned.values():
            if (fault.machine, fault.state) == (machine, state) and fault.reached < fault.times:
                fault.reached += 1
                return fault
    return None


def _stop(env: Environment, fault: Fault) -> None:
    """Does what StopExecution does. The call's thread then finds the history closed."""
    arn = env.states.context_object.context_object_data["Execution"]["Id"]
    account, region = arn.split(":")[4], arn.split(":")[3]
    execution = stepfunctions_parser_backends[account][region].describe_execution(arn)
    execution.stop(stop_date=datetime.datetime.now(tz=datetime.UTC), error=fault.error, cause=fault.cause)
    raise AnswerLostError(state=fault.state)


def _failure(task: StateTask, env: Environment, fault: Fault) -> FailureEvent:
    """The event of a failed try, as each kind of task writes it."""
    said = {"error": fault.error, "cause": fault.cause}
    how = "TimedOut" if fault.error in _TIMEOUTS else "Failed"
    what = "LambdaFunction" if isinstance(task, StateTaskLambda) else "Task"
    if what == "Task":
        said |= {"resource": task._get_sfn_resource(), "resourceType": task._get_sfn_resource_type()}
    return FailureEvent(
        env=env,
        error_name=CustomErrorName(fault.error),
        event_type=HistoryEventType(f"{what}{how}"),
        event_details=EventDetails(**{f"{what[0].lower()}{what[1:]}{how}EventDetails": said}),
    )
