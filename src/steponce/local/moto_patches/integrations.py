"""
What a task's parameters and results look like.

In definitions both are in PascalCase, whatever the service's own spelling is. moto hands parameters to boto3
as they are, so that each service with a spelling of its own (Step Functions is one) refuses them, and
results as boto3 gives them, dates included. It also takes NaN and infinities from a function, which AWS does
not read: JSON has no form for them, and a record with such a result could not be read.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from typing import IO, Any

from botocore.model import ListShape, MapShape, OperationModel, Shape, StructureShape
from moto.stepfunctions.parser.asl.component.state.exec.state_task import lambda_eval_utils
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import (
    state_task_service_aws_sdk as aws_sdk,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import (
    state_task_service_callback as callback,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import (
    state_task_service_factory as factory,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.state_task_service import (
    StateTaskService,
)
from moto.stepfunctions.parser.asl.eval.callback.callback import CallbackPoolManager
from moto.stepfunctions.parser.asl.jsonata import jsonata

from steponce.local.errors import not_supported
from steponce.local.moto_patches.patching import replace_everywhere
from steponce.local.moto_patches.services import operation_of
from steponce.local.moto_patches.strict_json import strict_json
from steponce.local.moto_patches.times import aws_time

_SDK_TYPES = {"BOOL": "Bool", "NULL": "Nul", "SS": "Ss", "NS": "Ns", "BS": "Bs"}
_WIRE_TYPES = {ours: theirs for theirs, ours in _SDK_TYPES.items()}


def install() -> None:
    """Put this module's patches in place."""
    StateTaskService._normalise_parameters = _normalise_parameters
    # moto creates no machine with a service that it does not know; AWS does, and other states run.
    factory._UNSUPPORTED_SERVICE_NAMES.add("http")
    callback.StateTaskServiceCallback._assert_integration_pattern_is_supported = _expect_known_pattern
    CallbackPoolManager.add_activity_task = _add_no_activity_task
    replace_everywhere(jsonata.eval_jsonata_expression, eval_jsonata_expression)
    StateTaskService._normalise_response = _normalise_response
    replace_everywhere(lambda_eval_utils._from_payload, _from_payload)


_original_expect_known_pattern = callback.StateTaskServiceCallback._assert_integration_pattern_is_supported


def _expect_known_pattern(task: callback.StateTaskServiceCallback) -> None:
    try:
        _original_expect_known_pattern(task)
    except RuntimeError:
        raise RuntimeError(not_supported(f"{task.resource.resource_arn}.")) from None


def _add_no_activity_task(_pool: CallbackPoolManager, **_: Any) -> None:
    raise RuntimeError(not_supported("an activity."))


def eval_jsonata_expression(_expression: str) -> None:
    """Refuse JSONata, for which moto needs a Java virtual machine."""
    raise RuntimeError(not_supported("JSONata, which variables need, too."))


def _from_payload(body: IO[bytes]) -> Any:
    """A function's response. What is no JSON at all is text, as moto has it."""
    text = body.read().decode()
    try:
        return strict_json(text)
    except json.JSONDecodeError:
        return text


def _operation(task: StateTaskService, service: str | None, action: str | None) -> OperationModel | None:
    return operation_of(task._get_boto_service_name(service), task._get_boto_service_action(action))


def _normalise_parameters(
    task: StateTaskService,
    parameters: dict[str, Any],
    boto_service_name: str | None = None,
    service_action_name: str | None = None,
) -> None:
    operation = _operation(task, boto_service_name, service_action_name)
    if operation and operation.input_shape:
        task._to_boto_request(parameters, operation.input_shape)
        if _is_sdk(task):
            _name_types(parameters, operation.input_shape, _WIRE_TYPES)


def _normalise_response(
    task: StateTaskService,
    response: Any,
    boto_service_name: str | None = None,
    service_action_name: str | None = None,
) -> None:
    operation = _operation(task, boto_service_name, service_action_name)
    if operation and operation.output_shape and isinstance(response, dict):
        if _is_sdk(task):
            _name_types(response, operation.output_shape, _SDK_TYPES)
        task._from_boto_response(response, operation.output_shape)
        # The SDK of the optimized integrations has numbers; that of the SDK integrations has texts.
        response.update(_without_moments(response, aws_time if _is_sdk(task) else _milliseconds))


def _is_sdk(task: StateTaskService) -> bool:
    return isinstance(task, aws_sdk.StateTaskServiceAwsSdk)


def _name_types(value: Any, shape: Shape, names: dict[str, str]) -> None:
    """
    Give the types of DynamoDB's values these names, wherever there are values in here.

    SDK integrations have the names of the SDK for Java (`Bool`, `Nul`, `Ss`, `Ns`, `Bs`), also in what they
    answer. moto changes the fields of structures only, and not those in a map, such as an item.
    """
    if isinstance(shape, StructureShape) and isinstance(value, dict):
        for name, member in shape.members.items():
            _name_types(value.get(name), member, names)
        if shape.name == "AttributeValue":
            for name in value.keys() & names.keys():
                value[names[name]] = value.pop(name)
    elif isinstance(shape, MapShape) and isinstance(value, dict):
        for item in value.values():
            _name_types(item, shape.value, names)
    elif isinstance(shape, ListShape) and isinstance(value, list):
        for item in value:
            _name_types(item, shape.member, names)


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
