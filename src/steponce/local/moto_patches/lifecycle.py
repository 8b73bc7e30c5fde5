"""
How an execution begins and ends.

moto lets a stopped or timed-out execution look alive until its task is back, lets what happens meanwhile
into the history, and forgets the stop when that task fails. Here the first ending that enters the history
decides, as on AWS: nothing is added after it, so no task can be scheduled, and the status follows from it.
"""

from __future__ import annotations

import datetime
import functools
import threading
from typing import Any

from moto.stepfunctions.parser.api import (
    ExecutionAbortedEventDetails,
    ExecutionStartedEventDetails,
    ExecutionStatus,
    ExecutionTimedOutEventDetails,
    HistoryEventExecutionDataDetails,
    HistoryEventType,
)
from moto.stepfunctions.parser.asl.component.eval_component import EvalComponent
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import (
    state_task_service_callback as callback,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.state_task_service import (
    StateTaskService,
)
from moto.stepfunctions.parser.asl.eval.environment import Environment
from moto.stepfunctions.parser.asl.eval.evaluation_details import ExecutionDetails
from moto.stepfunctions.parser.asl.eval.event.event_detail import EventDetails
from moto.stepfunctions.parser.asl.eval.event.event_manager import EventHistoryContext, EventManager
from moto.stepfunctions.parser.asl.eval.program_state import ProgramRunning
from moto.stepfunctions.parser.asl.parse.asl_parser import AmazonStateLanguageParser
from moto.stepfunctions.parser.asl.utils.encoding import to_json_str
from moto.stepfunctions.parser.backend.execution import BaseExecutionWorkerCommunication, Execution
from moto.stepfunctions.parser.backend.execution_worker import ExecutionWorker

from steponce.local.moto_patches import admission, status
from steponce.local.moto_patches.times import aws_time

_STATUS_AFTER = {
    HistoryEventType.ExecutionSucceeded: ExecutionStatus.SUCCEEDED,
    HistoryEventType.ExecutionFailed: ExecutionStatus.FAILED,
    HistoryEventType.ExecutionAborted: ExecutionStatus.ABORTED,
    HistoryEventType.ExecutionTimedOut: ExecutionStatus.TIMED_OUT,
}


class ExecutionClosedError(Exception):
    """Raised in the interpreter's threads when they go on after the end."""


def install() -> None:
    """Put this module's patches in place."""
    EventManager.__init__ = _init_history
    EventManager.add_event = _add_event
    StateTaskService._after_eval_execution = _unless_given_up(StateTaskService._after_eval_execution)
    waiting = callback.StateTaskServiceCallback
    waiting._after_eval_execution = _unless_given_up(waiting._after_eval_execution)
    ExecutionWorker.start = _start
    ExecutionWorker._execution_logic = _run
    ExecutionWorker._get_evaluation_environment = _environment
    # moto parses the definition at each start, a quarter of a second. What comes out holds no state of
    # an execution but keys that are made on first use; made of the object's identity they can be shared.
    EvalComponent.heap_key = property(lambda component: str(id(component)))
    AmazonStateLanguageParser.parse = staticmethod(functools.lru_cache(_original_parse))
    Execution.stop = _stop
    Execution.get_start_execution_details = _execution_details
    BaseExecutionWorkerCommunication._reflect_execution_status = _reflect_ending


_original_init_history = EventManager.__init__
_original_add_event = EventManager.add_event
_original_parse = AmazonStateLanguageParser.parse
_original_environment = ExecutionWorker._get_evaluation_environment


def _init_history(history: EventManager, *args: Any, **kwargs: Any) -> None:
    _original_init_history(history, *args, **kwargs)
    history.ending = None
    history.ending_details = {}
    history.ending_lock = threading.RLock()


def _add_event(
    history: EventManager,
    context: EventHistoryContext,
    event_type: HistoryEventType,
    event_details: EventDetails | None = None,
    **others: Any,
) -> int:
    """Add an event unless the execution has ended; a second ending counts for nothing."""
    with history.ending_lock:
        if history.ending is None:
            event_id: int = _original_add_event(history, context, event_type, event_details, **others)
            if event_type in _STATUS_AFTER:
                history.ending = event_type
                history.ending_details = next(iter((event_details or {}).values()), {})
            return event_id
        if event_type in _STATUS_AFTER:
            return 0
        raise ExecutionClosedError


def _unless_given_up(after: Any) -> Any:
    """moto lets the answer of a task that has timed out into the history, whenever it comes."""

    @functools.wraps(after)
    def after_unless_given_up(task: StateTaskService, env: Environment, *args: Any, **kwargs: Any) -> None:
        if env.is_running():
            after(task, env, *args, **kwargs)

    return after_unless_given_up


def _start(worker: ExecutionWorker) -> None:
    """
    Begin the history, and let the execution begin when it has a slot.

    moto makes the environment in the new thread, so that stops and answers that come first get lost.
    """
    env = worker.env = worker._get_evaluation_environment()
    env._program_state = ProgramRunning()
    details = worker._evaluation_details
    started = ExecutionStartedEventDetails(
        input=to_json_str(details.execution_details.inpt),
        inputDetails=HistoryEventExecutionDataDetails(truncated=False),
        roleArn=details.aws_execution_details.role_arn,
    )
    env.event_manager.add_event(
        context=env.event_history_context,
        event_type=HistoryEventType.ExecutionStarted,
        event_details=EventDetails(executionStartedEventDetails=started),
        update_source_event_id=False,
    )
    status.changed(worker._execution_communication.execution)
    admission.enqueue(env)
    threading.Thread(target=worker._execution_logic, daemon=True).start()


def _run(worker: ExecutionWorker) -> None:
    """The life of an execution. Only a time-out leaves `eval` without an ending in the history."""
    env = worker.env
    try:
        env.slot.wait()
        if not env.is_running():  # stopped before it began
            return
        worker._get_evaluation_entrypoint().eval(env)
    except ExecutionClosedError:
        return
    finally:
        env.slot.close()
    env.event_manager.add_event(
        context=env.event_history_context,
        event_type=HistoryEventType.ExecutionTimedOut,
        event_details=EventDetails(executionTimedOutEventDetails=ExecutionTimedOutEventDetails()),
    )
    worker._execution_communication.terminated()


def _stop(execution: Execution, stop_date: datetime.datetime, error: str | None, cause: str | None) -> None:
    env = execution.exec_worker.env
    history = env.event_manager
    with history.ending_lock:
        if history.ending is not None:
            return
        env.event_history_context.source_event_id = 0
        history.add_event(
            context=env.event_history_context,
            event_type=HistoryEventType.ExecutionAborted,
            event_details=EventDetails(
                executionAbortedEventDetails=ExecutionAbortedEventDetails(error=error, cause=cause)
            ),
        )
        execution.stop_date = stop_date
        execution.error, execution.cause = error, cause
        execution.exec_status = ExecutionStatus.ABORTED
    env.set_stop(stop_date=stop_date, error=error, cause=cause)
    env.slot.abandon()
    _close_attempts(env)
    status.changed(execution)


def _reflect_ending(communication: BaseExecutionWorkerCommunication) -> None:
    """Take the status from the history's ending; the call that stopped it has set that of a stop."""
    execution = communication.execution
    env = execution.exec_worker.env
    history = env.event_manager
    if history.ending == HistoryEventType.ExecutionAborted:
        return
    if history.ending == HistoryEventType.ExecutionSucceeded:
        execution.output = env.states.get_input()
    execution.error = history.ending_details.get("error")
    execution.cause = history.ending_details.get("cause")
    execution.stop_date = datetime.datetime.now(tz=datetime.UTC)
    execution.exec_status = _STATUS_AFTER[history.ending]
    _close_attempts(env)
    status.changed(execution)


def _close_attempts(env: Environment) -> None:
    """No callback may be accepted once the execution has ended."""
    for endpoint in list(env.callback_pool_manager._pool.values()):
        if hasattr(endpoint, "close"):
            endpoint.close()


def _environment(worker: ExecutionWorker) -> Environment:
    """moto's context object has no RedriveCount. Nothing redrives an execution here, so it is 0."""
    env = _original_environment(worker)
    env.states.context_object.context_object_data["Execution"]["RedriveCount"] = 0
    return env


def _execution_details(execution: Execution) -> ExecutionDetails:
    """moto puts a datetime object into the context object, and its readers fail on it."""
    return ExecutionDetails(
        arn=execution.exec_arn,
        name=execution.name,
        role_arn=execution.role_arn,
        inpt=execution.input_data,
        start_time=aws_time(execution.start_date),
    )
