"""What the HTTP APIs of Step Functions and DynamoDB check, answer and keep apart."""

from __future__ import annotations

import datetime
import functools
import re
import threading
import time
import uuid
from typing import Any

from moto.core.exceptions import AWSError
from moto.core.responses import ActionResult, EmptyResult
from moto.dynamodb.responses import DynamoHandler
from moto.stepfunctions.parser import api as interpreter_api
from moto.stepfunctions.parser.api import ExecutionStatus
from moto.stepfunctions.parser.asl.utils.encoding import to_json_str
from moto.stepfunctions.responses import StepFunctionResponse

from steponce.local.errors import not_supported
from steponce.workflow import WORKFLOW_LIMIT

_NAME_LIMIT = 80
_FORBIDDEN_IN_NAMES = re.compile(r'[\s<>{}\[\]?*"#%\\^|~`$&,;:/\x00-\x1f\x7f-\x9f]')
_LARGEST_PAGE = 1000

_start_lock = threading.Lock()
_dynamodb_lock = threading.RLock()


def install() -> None:
    """Put this module's patches in place."""
    for name, exception in _errors_of_the_interpreter().items():
        # moto's interpreter raises these without their code, and clients cannot tell them apart.
        exception.TYPE = name
    DynamoHandler.call_action = _one_at_a_time(DynamoHandler.call_action)
    StepFunctionResponse.start_execution = _start_execution
    StepFunctionResponse.start_sync_execution = _start_no_sync_execution
    StepFunctionResponse.describe_execution = _describe_execution
    StepFunctionResponse.stop_execution = _stop_execution
    StepFunctionResponse.get_execution_history = _get_execution_history
    StepFunctionResponse.send_task_failure = _send_task_failure


def _errors_of_the_interpreter() -> dict[str, Any]:
    """Its exceptions by name."""
    members = vars(interpreter_api).items()
    return {name: one for name, one in members if isinstance(one, type) and issubclass(one, AWSError)}


def _one_at_a_time(call_action: Any) -> Any:
    """moto checks a condition and writes in two steps, and lets readers see items half written."""

    @functools.wraps(call_action)
    def call_alone(handler: DynamoHandler) -> Any:
        with _dynamodb_lock:
            return call_action(handler)

    return call_alone


def _start_execution(response: StepFunctionResponse) -> ActionResult:
    """moto checks neither name nor size, names the nameless `None`, and starts twice in a race."""
    name = response._get_param("name") or str(uuid.uuid4())
    text = response._get_param("input", if_none="{}")
    if len(name) > _NAME_LIMIT:
        raise _too_long("name", _NAME_LIMIT)
    if len(text.encode()) > WORKFLOW_LIMIT:
        raise _too_long("input", WORKFLOW_LIMIT)
    if _FORBIDDEN_IN_NAMES.search(name):
        raise AWSError(f"Invalid Name: '{name}'", "InvalidName")
    with _start_lock:
        execution = response.stepfunction_backend.start_execution(
            response._get_param("stateMachineArn"), name, text
        )
    return ActionResult({"executionArn": execution.execution_arn, "startDate": execution.start_date})


def _start_no_sync_execution(_response: StepFunctionResponse) -> ActionResult:
    """moto answers with a status of 500 and nothing else."""
    raise AWSError(not_supported("StartSyncExecution. Use StartExecution."), "UnsupportedOperation")


def _too_long(field: str, limit: int) -> AWSError:
    return AWSError(
        f"1 validation error detected: Value at '{field}' failed to satisfy constraint: "
        f"Member must have length less than or equal to {limit}",
        "ValidationException",
    )


def _describe_execution(response: StepFunctionResponse) -> ActionResult:
    """moto forgets the stop date of a time-out, and gives an output that is text without its quotes."""
    execution = response.stepfunction_backend.describe_execution(response._get_param("executionArn"))
    answer: dict[str, Any] = {
        "executionArn": execution.execution_arn,
        "stateMachineArn": execution.state_machine_arn,
        "name": execution.name,
        "status": execution.status,
        "startDate": execution.start_date,
        "input": execution.execution_input,
        "inputDetails": {"included": True},
    }
    if execution.status != ExecutionStatus.RUNNING:
        answer["stopDate"] = execution.stop_date
    if execution.status == ExecutionStatus.SUCCEEDED:
        answer["output"] = to_json_str(execution.output, separators=(",", ":"))
        answer["outputDetails"] = {"included": True}
    answer |= {key: value for key in ("error", "cause") if (value := getattr(execution, key)) is not None}
    return ActionResult(answer)


def _stop_execution(response: StepFunctionResponse) -> ActionResult:
    """moto drops error and cause. Stopping what has ended changes nothing."""
    execution = response.stepfunction_backend.describe_execution(response._get_param("executionArn"))
    execution.stop(
        stop_date=datetime.datetime.now(tz=datetime.UTC),
        error=response._get_param("error"),
        cause=response._get_param("cause"),
    )
    while execution.stop_date is None:
        time.sleep(0.005)  # its ending is in the history, its status follows
    return ActionResult({"stopDate": execution.stop_date})


def _get_execution_history(response: StepFunctionResponse) -> ActionResult:
    """moto ignores the order and the page size."""
    history = response.stepfunction_backend.get_execution_history(response._get_param("executionArn"))
    events = history["events"]
    if response._get_param("reverseOrder"):
        events = events[::-1]
    start = int(response._get_param("nextToken") or 0)
    end = start + (response._get_int_param("maxResults") or _LARGEST_PAGE)
    answer: dict[str, Any] = {"events": events[start:end]}
    if end < len(events):
        answer["nextToken"] = str(end)
    return ActionResult(answer)


def _send_task_failure(response: StepFunctionResponse) -> ActionResult:
    """moto drops the cause."""
    response.stepfunction_backend.send_task_failure(
        response._get_param("taskToken"),
        error=response._get_param("error"),
        cause=response._get_param("cause"),
    )
    return EmptyResult()
