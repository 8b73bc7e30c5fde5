"""
Executions that start another and wait for its end: `startExecution.sync` and `.sync:2`.

moto asks twice a second, leaves the child running when its parent ends, and takes no token for the child's
end. Here the end of the child is one more answer to the task's attempt: the first answer counts.

Source: Step Functions Developer Guide, "Discover service integration patterns", "Run a Job".
"""

from __future__ import annotations

import base64
import contextlib
import functools
import json
import threading
from typing import Any

from botocore.client import BaseClient
from botocore.exceptions import BotoCoreError, ClientError
from moto.stepfunctions.parser.api import ExecutionStatus, HistoryEventType, TaskFailedEventDetails
from moto.stepfunctions.parser.asl.component.common.error_name.failure_event import (
    FailureEvent,
    FailureEventException,
)
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name import StatesErrorName
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name_type import (
    StatesErrorNameType,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import (
    state_task_service_callback as callback,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import (
    state_task_service_sfn as sfn,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.resource import ResourceCondition
from moto.stepfunctions.parser.asl.eval.callback.callback import (
    CallbackOutcome,
    CallbackOutcomeFailure,
    CallbackOutcomeSuccess,
    HeartbeatTimedOut,
)
from moto.stepfunctions.parser.asl.eval.environment import Environment
from moto.stepfunctions.parser.asl.eval.event.event_detail import EventDetails

from steponce.local.moto_patches import status
from steponce.local.moto_patches.callbacks import Attempt
from steponce.local.moto_patches.services import boto_client_for

_DESCRIBE = "describe_execution"
_ANSWERS = (CallbackOutcomeSuccess, CallbackOutcomeFailure)


class ChildEnded(CallbackOutcome):
    """The child's end, as the answer to the task."""


class Child:
    """
    The execution that a task has started and waits for.

    Args:
        arn: The execution.
        parent_arn: The execution of the task.
    """

    def __init__(self, arn: str, parent_arn: str, client: BaseClient) -> None:
        self.arn = arn
        self._parent_arn = parent_arn
        self._client: Any = client
        self._lock = threading.Lock()
        self._is_ours = True

    def describe(self) -> dict[str, Any]:
        """What DescribeExecution says."""
        described: dict[str, Any] = self._client.describe_execution(executionArn=self.arn)
        described.pop("ResponseMetadata", None)
        return described

    def let_go(self) -> bool:
        """Give up control of the child. Returns whether it was still ours."""
        with self._lock:
            was_ours, self._is_ours = self._is_ours, False
            return was_ours

    def stop(self) -> None:
        """Stop the child unless it has been let go. As on AWS, a failure to stop it is not reported."""
        if self.let_go():
            cause = (
                f"The Task state in AWS Step Functions execution [{self._parent_arn}] "
                "which was managing this resource was aborted"
            )
            with contextlib.suppress(ClientError, BotoCoreError):
                self._client.stop_execution(executionArn=self.arn, cause=cause)


def install() -> None:
    """Put this module's patches in place."""
    integration = sfn.StateTaskServiceSfn
    integration._after_eval_execution = _after_start
    integration._build_sync_resolver = integration._build_sync2_resolver = _take_child
    integration._eval_sync = _wait_for_child
    integration._normalise_parameters = _normalise
    Environment.set_stop = _stopping_child(Environment.set_stop)


_original_normalise = sfn.StateTaskServiceSfn._normalise_parameters


def _normalise(task: sfn.StateTaskServiceSfn, parameters: dict[str, Any], *args: Any, **kwargs: Any) -> None:
    """moto writes the child's input with six characters for each that is not in ASCII, which then count."""
    if isinstance(parameters.get("Input"), dict | list):
        given = parameters["Input"]
        text = json.dumps(given, separators=(",", ":"), ensure_ascii=False, default=_no_json)
        # Half a surrogate pair cannot be sent. JSON escapes it as Python does.
        parameters["Input"] = text.encode(errors="backslashreplace").decode()
    _original_normalise(task, parameters, *args, **kwargs)


def _no_json(value: Any) -> str:
    """What a state's data has beside JSON: DynamoDB's binary values, which AWS gives in base64, and times."""
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _after_start(task: sfn.StateTaskServiceSfn, env: Environment, **parts: Any) -> None:
    """Stop the child if nothing waits for its end any more."""
    after = callback.StateTaskServiceCallback._after_eval_execution
    if task.resource.condition not in (ResourceCondition.Sync, ResourceCondition.Sync2):
        after(task, env, **parts)
        return
    parent_arn = env.states.context_object.context_object_data["Execution"]["Id"]
    client = boto_client_for(parts["resource_runtime_part"].region, "stepfunctions")
    env.child = child = Child(env.stack[-1]["ExecutionArn"], parent_arn, client)
    try:
        after(task, env, **parts)
    finally:
        child.stop()


def _take_child(_task: sfn.StateTaskServiceSfn, env: Environment, **_parts: Any) -> Child:
    env.stack.pop()
    child: Child = env.child
    return child


def _wait_for_child(
    task: sfn.StateTaskServiceSfn,
    *,
    env: Environment,
    sync_resolver: Child,
    callback_endpoint: Attempt,
    **_others: Any,
) -> CallbackOutcome | HeartbeatTimedOut | dict[str, Any]:
    """The child's result; or, if it came first, an answer to the token or the end of the wait."""
    child, attempt = sync_resolver, callback_endpoint
    ended = ChildEnded(attempt.callback_id)
    try:
        with status.at_the_end(child.arn, lambda: attempt.settle(ended)):
            if child.describe()["status"] != ExecutionStatus.RUNNING:
                attempt.settle(ended)
            outcome = attempt.wait_for_outcome(env)
        if isinstance(outcome, (ChildEnded, *_ANSWERS)):
            child.let_go()
    finally:
        child.stop()
    return _result(task, env, child) if isinstance(outcome, ChildEnded) else outcome


def _result(task: sfn.StateTaskServiceSfn, env: Environment, child: Child) -> dict[str, Any]:
    """What DescribeExecution says of a success; `.sync:2` has input and output as JSON, `.sync` as text."""
    described = child.describe()
    succeeded = described["status"] == ExecutionStatus.SUCCEEDED
    task._normalise_response(described, service_action_name=_DESCRIBE)
    described |= {"RedriveCount": 0, "RedriveStatus": "NOT_REDRIVABLE" if succeeded else "REDRIVABLE"}
    if not succeeded:
        raise FailureEventException(_failure(task, env, dict(sorted(described.items()))))
    described["RedriveStatusReason"] = "Execution is SUCCEEDED and cannot be redriven"
    if task.resource.condition == ResourceCondition.Sync2:
        described |= {key: json.loads(described[key]) for key in ("Input", "Output")}
    return dict(sorted(described.items()))


def _failure(task: sfn.StateTaskServiceSfn, env: Environment, described: dict[str, Any]) -> FailureEvent:
    details = TaskFailedEventDetails(
        resource=task._get_sfn_resource(),
        resourceType=task._get_sfn_resource_type(),
        error=StatesErrorNameType.StatesTaskFailed.to_name(),
        cause=json.dumps(described, separators=(",", ":"), ensure_ascii=False),
    )
    return FailureEvent(
        env=env,
        error_name=StatesErrorName(typ=StatesErrorNameType.StatesTaskFailed),
        event_type=HistoryEventType.TaskFailed,
        event_details=EventDetails(taskFailedEventDetails=details),
    )


def _stopping_child(set_stop: Any) -> Any:
    """When another branch fails, this one is stopped while its task still waits; nothing follows the wait."""

    @functools.wraps(set_stop)
    def set_stop_and_stop_child(env: Environment, *args: Any, **kwargs: Any) -> None:
        set_stop(env, *args, **kwargs)
        if child := getattr(env, "child", None):
            threading.Thread(target=child.stop, daemon=True).start()

    return set_stop_and_stop_child
