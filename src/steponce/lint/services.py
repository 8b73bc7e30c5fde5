"""What botocore's models say of the API that a Task calls."""

from __future__ import annotations

from functools import cache
from typing import Any

import botocore.session
from botocore.exceptions import UnknownServiceError
from botocore.model import OperationModel, ServiceModel

from steponce.lint.calls import Call

_NAMES = {
    "states": "stepfunctions",
    "sfn": "stepfunctions",
    "eventbridge": "events",
    "cloudwatchlogs": "logs",
}
"""botocore's names for services that Step Functions calls otherwise."""

MIRRORED = {
    *(
        "athena",
        "batch",
        "codebuild",
        "dynamodb",
        "ecs",
        "events",
        "glue",
        "lambda",
        "sagemaker",
        "sns",
        "sqs",
    ),
    "states",
}
"""Services whose optimized integrations take the parameters of their APIs; others have forms of their own."""


def operation_of(call: Call) -> OperationModel | None:
    """The API's operation; None if the model does not have it, or the integration has its own parameters."""
    model = model_of(call)
    name = call.action[:1].upper() + call.action[1:]
    return model.operation_model(name) if model is not None and name in model.operation_names else None


def model_of(call: Call) -> ServiceModel | None:
    """The API's model, if the integration takes its parameters."""
    if call.integration == "sdk" or (call.integration == "optimized" and call.service in MIRRORED):
        return _model(_NAMES.get(call.service, call.service))
    return None


def errors_of(call: Call) -> set[str]:
    """
    The exceptions of a service, as Step Functions names them.

    Some API names lack the suffix `Exception`, and Step Functions appends it. AWS's guide says so of the AWS
    SDK integrations. Of the optimized ones it has an example without the suffix, so there both are known.

    Source: https://docs.aws.amazon.com/step-functions/latest/dg/supported-services-awssdk.html
    """
    service = "lambda" if call.integration == "function" else call.service
    model = _model(_NAMES.get(service, service))
    names = {shape.name for shape in model.error_shapes} if model is not None else set()
    whole = {name if name.endswith("Exception") else f"{name}Exception" for name in names}
    return whole | names if call.integration == "optimized" else whole


@cache
def _model(name: str) -> ServiceModel | None:
    try:
        found: Any = _session().get_service_model(name)
    except UnknownServiceError:
        return None
    model: ServiceModel = found
    return model


@cache
def _session() -> Any:
    return botocore.session.get_session()
