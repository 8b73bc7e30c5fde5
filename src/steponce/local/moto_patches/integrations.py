"""
What a task's parameters and results look like.

In definitions both are in PascalCase, whatever the service's own spelling is. moto hands parameters to boto3
as they are, so that each service with a spelling of its own (Step Functions is one) refuses them, and
results as boto3 gives them, dates included.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import (
    state_task_service_aws_sdk as aws_sdk,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.state_task_service import (
    StateTaskService,
)

from steponce.local.moto_patches.services import operation_of
from steponce.local.moto_patches.times import aws_time


def install() -> None:
    """Put this module's patches in place."""
    StateTaskService._normalise_parameters = _normalise_parameters
    StateTaskService._normalise_response = _normalise_response


def _normalise_parameters(
    task: StateTaskService,
    parameters: dict[str, Any],
    boto_service_name: str | None = None,
    service_action_name: str | None = None,
) -> None:
    operation = operation_of(
        task._get_boto_service_name(boto_service_name), task._get_boto_service_action(service_action_name)
    )
    if operation and operation.input_shape:
        task._to_boto_request(parameters, operation.input_shape)


def _normalise_response(
    task: StateTaskService,
    response: Any,
    boto_service_name: str | None = None,
    service_action_name: str | None = None,
) -> None:
    operation = operation_of(
        task._get_boto_service_name(boto_service_name), task._get_boto_service_action(service_action_name)
    )
    if operation and operation.output_shape and isinstance(response, dict):
        task._from_boto_response(response, operation.output_shape)
        # The SDK of the optimized integrations has numbers; that of the SDK integrations has texts.
        is_sdk = isinstance(task, aws_sdk.StateTaskServiceAwsSdk)
        response.update(_without_moments(response, aws_time if is_sdk else _milliseconds))


def _without_moments(value: Any, written: Callable[[datetime.datetime], object]) -> Any:
    if isinstance(value, datetime.datetime):
        return written(value)
    if isinstance(value, dict):
        return {key: _without_moments(item, written) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_moments(item, written) for item in value]
    return value


def _milliseconds(moment: datetime.datetime) -> int:
    return round(moment.timestamp() * 1000)
