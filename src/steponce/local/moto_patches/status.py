"""
Reports changes of an execution's status, which moto does not.

AWS sends each change of a standard execution to EventBridge. Here the listeners get it. Whoever waits for
the end of one execution is called then.
"""

from __future__ import annotations

import datetime
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from moto.stepfunctions.parser.api import ExecutionStatus, StateMachineType
from moto.stepfunctions.parser.asl.utils.encoding import to_json_str
from moto.stepfunctions.parser.backend.execution import Execution

Listener = Callable[[dict[str, Any]], None]

# Past it AWS leaves out first the input, then the output; in bytes of escaped JSON.
_LIMIT = 248 * 1024

_listeners: list[Listener] = []
_at_the_end: list[tuple[str, Callable[[], object]]] = []
_at_the_end_lock = threading.Lock()


def listen(listener: Listener) -> None:
    """Tell this listener of every change from now on, on the thread of the execution."""
    _listeners.append(listener)


@contextmanager
def at_the_end(execution_arn: str, call: Callable[[], object]) -> Iterator[None]:
    """Make this call when an execution of this process ends during the block, on that execution's thread."""
    entry = (execution_arn, call)
    with _at_the_end_lock:
        _at_the_end.append(entry)
    try:
        yield
    finally:
        with _at_the_end_lock:
            _at_the_end.remove(entry)


def changed(execution: Execution) -> None:
    """Report an execution's new status to all listeners."""
    if execution.exec_status != ExecutionStatus.RUNNING:
        with _at_the_end_lock:
            calls = [call for arn, call in _at_the_end if arn == execution.exec_arn]
        for call in calls:
            call()
    if _listeners and execution.sm_type != StateMachineType.EXPRESS:
        detail = detail_of(execution)
        for listener in _listeners:
            listener(detail)


def detail_of(execution: Execution) -> dict[str, Any]:
    """
    The event's detail.

    Source: Step Functions Developer Guide, "Automating event delivery with EventBridge".
    """
    succeeded = execution.exec_status == ExecutionStatus.SUCCEEDED
    output = to_json_str(execution.output, separators=(",", ":")) if succeeded else None
    output_fits = output is None or _size(output) <= _LIMIT
    input_fits = _size(execution.execution_input) + (_size(output) if output else 0) <= _LIMIT
    return {
        "executionArn": execution.exec_arn,
        "stateMachineArn": execution.state_machine_arn,
        "name": execution.name,
        "status": execution.status,
        "startDate": _milliseconds(execution.start_date),
        "stopDate": _milliseconds(execution.stop_date),
        "input": execution.execution_input if input_fits else None,
        "output": output if output_fits else None,
        "stateMachineVersionArn": None,
        "stateMachineAliasArn": None,
        "redriveCount": 0,
        "redriveDate": None,
        "redriveStatus": "REDRIVABLE" if _may_be_redriven(execution) else "NOT_REDRIVABLE",
        "redriveStatusReason": None,
        "inputDetails": {"included": input_fits},
        "outputDetails": None if output is None else {"included": output_fits},
        "error": execution.error,
        "cause": execution.cause,
    }


def _may_be_redriven(execution: Execution) -> bool:
    return execution.exec_status not in (ExecutionStatus.RUNNING, ExecutionStatus.SUCCEEDED)


def _size(text: str) -> int:
    return len(json.dumps(text).encode())


def _milliseconds(moment: datetime.datetime | None) -> int | None:
    return None if moment is None else int(moment.timestamp() * 1000)
