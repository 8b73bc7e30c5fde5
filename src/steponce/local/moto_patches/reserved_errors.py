"""
Errors that the states language reserves, and that moto reports as another error or as none.

Source: Step Functions Developer Guide, "Handling errors in Step Functions workflows" and "Setting failure
thresholds for Distributed Map states".
"""

from __future__ import annotations

from moto.stepfunctions.parser.api import (
    ExecutionFailedEventDetails,
    HistoryEventType,
    MapRunFailedEventDetails,
)
from moto.stepfunctions.parser.asl.component.common.error_name.failure_event import (
    FailureEvent,
    FailureEventException,
)
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name import StatesErrorName
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name_type import (
    StatesErrorNameType,
)
from moto.stepfunctions.parser.asl.component.state.choice.state_choice import StateChoice
from moto.stepfunctions.parser.asl.component.state.exec.state_map.item_reader.item_reader_decl import (
    ItemReader,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_map.iteration import (
    distributed_iteration_component as distributed,
)
from moto.stepfunctions.parser.asl.eval.environment import Environment
from moto.stepfunctions.parser.asl.eval.event.event_detail import EventDetails
from moto.stepfunctions.parser.asl.utils.json_path import NoSuchJsonPathError

_NO_RULE = """('No branching option reached"""


def install() -> None:
    """Put this module's patches in place."""
    StateChoice._eval_state = _choose
    ItemReader._eval_body = _read_items
    distributed.DistributedIterationComponent._map_run = _run_items


_original_choose = StateChoice._eval_state
_original_read = ItemReader._eval_body
_original_run = distributed.DistributedIterationComponent._map_run


def _choose(choice: StateChoice, env: Environment) -> None:
    try:
        _original_choose(choice, env)
    except RuntimeError as error:
        if not str(error).startswith(_NO_RULE):
            raise
        name = StatesErrorNameType.StatesNoChoiceMatched
        cause = f"No rule of the state {choice.name!r} matched, and it has no Default."
        details = ExecutionFailedEventDetails(error=name.to_name(), cause=cause)
        told = EventDetails(executionFailedEventDetails=details)
        raise _failed(env, name, HistoryEventType.ExecutionFailed, told) from error


def _read_items(reader: ItemReader, env: Environment) -> None:
    try:
        _original_read(reader, env)
    except (FailureEventException, NoSuchJsonPathError):
        raise
    except Exception as error:
        raise _map_failed(env, StatesErrorNameType.StatesItemReaderFailed, str(error)) from error


def _run_items(
    component: distributed.DistributedIterationComponent,
    env: Environment,
    eval_input: distributed.DistributedIterationComponentEvalInput,
) -> None:
    """moto has null for the output of an item that fails. A Map that tolerates failures does not start."""
    _original_run(component, env=env, eval_input=eval_input)
    items = eval_input.map_run_record.item_counter
    if items.failed.get() + items.timed_out.get() + items.aborted.get():
        name = StatesErrorNameType.StatesExceedToleratedFailureThreshold
        raise _map_failed(env, name, "The specified tolerated failure threshold was exceeded")


def _map_failed(env: Environment, name: StatesErrorNameType, cause: str) -> FailureEventException:
    """A Map Run's failure, to which moto adds MapRunFailed and MapStateFailed."""
    details = MapRunFailedEventDetails(error=name.to_name(), cause=cause)
    told = EventDetails(mapRunFailedEventDetails=details)
    return _failed(env, name, HistoryEventType.MapRunFailed, told)


def _failed(
    env: Environment, name: StatesErrorNameType, kind: HistoryEventType, told: EventDetails
) -> FailureEventException:
    error = StatesErrorName(typ=name)
    return FailureEventException(FailureEvent(env=env, error_name=error, event_type=kind, event_details=told))
