"""How the interpreter calls the services of the stack, and how it names their errors."""

from __future__ import annotations

import functools
import json
import threading
from typing import Any

from botocore.client import BaseClient
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError
from botocore.model import OperationModel
from moto.stepfunctions.parser import models as _interpreter  # noqa: F401 - loads every task type
from moto.stepfunctions.parser.api import (
    HistoryEventType,
    LambdaFunctionFailedEventDetails,
    TaskFailedEventDetails,
)
from moto.stepfunctions.parser.asl.component.common.error_name.custom_error_name import CustomErrorName
from moto.stepfunctions.parser.asl.component.common.error_name.failure_event import FailureEvent
from moto.stepfunctions.parser.asl.component.state.exec.state_task.lambda_eval_utils import (
    LambdaFunctionErrorException,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import (
    state_task_service_api_gateway as api_gateway,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import (
    state_task_service_aws_sdk as aws_sdk,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import (
    state_task_service_dynamodb as dynamodb,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import (
    state_task_service_events as events,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import (
    state_task_service_lambda as lambda_,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import (
    state_task_service_sfn as sfn,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import (
    state_task_service_sns as sns,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import (
    state_task_service_sqs as sqs,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.state_task_service import (
    StateTaskService,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.state_task import StateTask
from moto.stepfunctions.parser.asl.component.state.exec.state_task.state_task_lambda import StateTaskLambda
from moto.stepfunctions.parser.asl.eval.environment import Environment
from moto.stepfunctions.parser.asl.eval.event.event_detail import EventDetails
from moto.stepfunctions.parser.asl.utils import boto_client

from steponce.aws.clients import client_of
from steponce.aws.errors import error_code
from steponce.local.errors import not_supported
from steponce.local.moto_patches import faults
from steponce.local.moto_patches.patching import replace_everywhere
from steponce.local.runtime import clocks
from steponce.local.session import isolated_session

_MOST_CALLED = {"dynamodb": "dynamodb", "lambda": "lambda", "stepfunctions": "states"}
_OTHERS = dict.fromkeys(("events", "s3", "secretsmanager", "sns", "sqs"), "aws")
_ENDPOINT_OF = {**_MOST_CALLED, **_OTHERS}

# The prefix of an optimized integration's errors, and what the SDK calls the service.
_SDK_NAMES = {
    events.StateTaskServiceEvents: ("EventBridge", "AmazonEventBridge"),
    sfn.StateTaskServiceSfn: ("StepFunctions", "AWSStepFunctions"),
    sns.StateTaskServiceSns: ("SNS", "AmazonSNS"),
    sqs.StateTaskServiceSqs: ("SQS", "AmazonSQS"),
}
# The prefixes in SDK integrations, whose name for EventBridge is not boto3's.
_AWS_SDK_PREFIXES = {
    "eventbridge": "EventBridge",
    "lambda": "Lambda",
    "s3": "S3",
    "secretsmanager": "SecretsManager",
    "sns": "Sns",
    "sqs": "Sqs",
}
# A code of SQS from its older protocol, which boto3 has no class for.
_CLASS_OF_CODE = {"AWS.SimpleQueueService.NonExistentQueue": "QueueDoesNotExist"}

# The longest that a function may run, and some.
_LAMBDA_SECONDS = 960
_OTHER_SECONDS = 60

_endpoints: dict[str, str] = {}
_region = "us-east-1"
_clients: dict[str, BaseClient] = {}
_clients_lock = threading.Lock()
# For each further session would read botocore's data anew.
_session = functools.cache(isolated_session)


def install() -> None:
    """Put this module's patches in place."""
    replace_everywhere(boto_client.boto_client_for, boto_client_for)
    # AWS takes InvocationType; moto drops it, and an asynchronous call would become a synchronous one.
    lambda_._SUPPORTED_API_PARAM_BINDINGS["invoke"].add("InvocationType")
    dynamodb.StateTaskServiceDynamoDB._from_error = _dynamodb_error
    lambda_.StateTaskServiceLambda._from_error = _lambda_error
    StateTaskLambda._from_error = _lambda_function_error
    aws_sdk.StateTaskServiceAwsSdk._from_error = _aws_sdk_error
    aws_sdk._SERVICE_ERROR_NAMES.update(_AWS_SDK_PREFIXES)
    StateTaskService._SERVICE_NAME_SFN_TO_BOTO_OVERRIDES["eventbridge"] = "events"
    # moto's own calls whatever is at the address, and its failures fail.
    api_gateway.StateTaskServiceApiGateway._eval_service_task = _call_nothing
    api_gateway.StateTaskServiceApiGateway._from_error = StateTask._from_error
    for task_type, names in _SDK_NAMES.items():
        task_type._from_error = _sdk_error(task_type._from_error, *names)


def route(endpoints: dict[str, str], region: str) -> None:
    """Set the addresses of `states`, `dynamodb`, `lambda` and `aws` as the interpreter sees them."""
    global _region
    _region = region
    _endpoints.update(endpoints)
    for service, endpoint in _MOST_CALLED.items():
        if endpoint in _endpoints:
            boto_client_for(region, service)  # takes 0.1 s; better now than in the first task


def boto_client_for(region: str, service: str, state_credentials: Any = None) -> BaseClient:  # noqa: ARG001
    """
    The interpreter's client for a service.

    moto's own goes to moto, makes a new client for each task, and waits three years for an answer.
    This one goes to the address of our choice, never retries (ASL's Retry is what retries), and is kept.
    """
    with _clients_lock:
        if service not in _clients:
            if _ENDPOINT_OF.get(service) not in _endpoints:
                faults.before_call()  # a test can plan what the service would say
                raise RuntimeError(not_supported(f"a task that calls {service}."))
            client = _clients[service] = client_of(
                _session(_region),
                service,
                endpoint_url=_endpoints[_ENDPOINT_OF[service]],
                config=Config(
                    # On AWS an attribute value of the wrong type fails the execution with States.Runtime.
                    parameter_validation=service == "dynamodb",
                    retries={"total_max_attempts": 1, "mode": "standard"},
                    connect_timeout=5,
                    read_timeout=_LAMBDA_SECONDS if service == "lambda" else _OTHER_SECONDS,
                    max_pool_connections=100,
                ),
            )
            client.meta.events.register("before-call.lambda.Invoke", _name_clock)
            client.meta.events.register("before-call", faults.before_call)
            client.meta.events.register("after-call", faults.after_call)
        return _clients[service]


def operation_of(service: str, action: str) -> OperationModel | None:
    """botocore's model of a service's action, by its name in Python; None if there is no such action."""
    client = boto_client_for(_region, service)
    name = client.meta.method_to_api_mapping.get(action)
    return client.meta.service_model.operation_model(name) if name else None


def _call_nothing(task: StateTaskService, **_: Any) -> None:
    boto_client_for(_region, task._get_boto_service_name())


def _name_clock(params: dict[str, Any], **_: Any) -> None:
    """Tell the embedded functions which task's time it is that a wait for a worker would use up."""
    params["headers"].update(clocks.header())


def _dynamodb_error(task: StateTaskService, env: Environment, ex: Exception) -> FailureEvent:
    """moto calls everything that has no code `DynamoDB.AmazonDynamoDBException`, even a time-out."""
    if isinstance(ex, ClientError):
        name = _dynamodb_error_name(ex)
        return _task_failed(task, env, f"DynamoDB.{name}", _cause(ex, "AmazonDynamoDBv2"))
    if isinstance(ex, BotoCoreError) and not isinstance(ex, ParamValidationError):
        return _task_failed(task, env, "DynamoDB.SdkClientException", str(ex))
    return StateTask._from_error(task, env, ex)


def _dynamodb_error_name(error: ClientError) -> str:
    """AWS takes the SDK's class names, so a code without a class gets the service's general one."""
    code = error_code(error)
    status = error.response["ResponseMetadata"]["HTTPStatusCode"]
    shapes = _clients["dynamodb"].meta.service_model.error_shapes
    if code in {shape.name for shape in shapes}:
        return code if code.endswith("Exception") else f"{code}Exception"
    return "InternalServerErrorException" if status >= 500 else "AmazonDynamoDBException"


def _lambda_error(task: StateTaskService, env: Environment, ex: Exception) -> FailureEvent:
    """moto makes an unreachable endpoint `States.Runtime`, and takes any code for an error name."""
    if isinstance(ex, ClientError):
        name = _lambda_error_name(ex)
        return _task_failed(task, env, f"Lambda.{name}", _cause(ex, "AWSLambda"))
    if isinstance(ex, BotoCoreError):
        return _task_failed(task, env, "Lambda.SdkClientException", str(ex))
    return _original_lambda_error(task, env, ex)


def _lambda_function_error(task: StateTaskLambda, env: Environment, ex: Exception) -> FailureEvent:
    """Where Resource is a function's ARN. moto calls all errors of the service `Exception`."""
    if isinstance(ex, ClientError):
        name, cause = f"Lambda.{_lambda_error_name(ex)}", _cause(ex, "AWSLambda")
    elif isinstance(ex, BotoCoreError):
        name, cause = "Lambda.SdkClientException", str(ex)
    elif isinstance(ex, TimeoutError | LambdaFunctionErrorException):
        failure: FailureEvent = _original_function_error(task, env, ex)
        return failure
    else:  # a path that finds nothing, for example: as for `lambda:invoke`
        return StateTask._from_error(task, env, ex)
    details = LambdaFunctionFailedEventDetails(error=name, cause=cause)
    return FailureEvent(
        env=env,
        error_name=CustomErrorName(name),
        event_type=HistoryEventType.LambdaFunctionFailed,
        event_details=EventDetails(lambdaFunctionFailedEventDetails=details),
    )


def _lambda_error_name(error: ClientError) -> str:
    code = error_code(error)
    status = error.response["ResponseMetadata"]["HTTPStatusCode"]
    if status == 429:
        return "TooManyRequestsException"
    if status >= 500 and not code.endswith("Exception"):
        return "ServiceException"
    return code if code.endswith("Exception") else "AWSLambdaException"


def _aws_sdk_error(task: StateTaskService, env: Environment, ex: Exception) -> FailureEvent:
    """moto makes an unreachable endpoint `States.Runtime`."""
    if isinstance(ex, BotoCoreError):
        service = aws_sdk.StateTaskServiceAwsSdk._normalise_service_error_name(task.resource.api_name)
        return _task_failed(task, env, f"{service}.SdkClientException", str(ex))
    return _original_aws_sdk_error(task, env, ex)


def _sdk_error(original: Any, prefix: str, service: str) -> Any:
    """
    The errors of an optimized integration that has no names of its own.

    AWS takes the class names of its SDK, and the service's general class for what has none. moto makes
    names of codes, doubles the ending, and makes an unreachable endpoint `States.Runtime`.
    """

    def from_error(task: StateTaskService, env: Environment, ex: Exception) -> FailureEvent:
        if isinstance(ex, BotoCoreError):
            return _task_failed(task, env, f"{prefix}.SdkClientException", str(ex))
        if isinstance(ex, events.SfnFailedEntryCountException):  # whose cause moto leaves an object
            cause = json.dumps(ex.cause, separators=(",", ":"))
            return _task_failed(task, env, "EventBridge.FailedEntry", cause)
        if isinstance(ex, ClientError):
            known = _CLASS_OF_CODE.get(error_code(ex), type(ex).__name__)
            name = service if known == "ClientError" else known.removesuffix("Exception")
            return _task_failed(task, env, f"{prefix}.{name}Exception", _cause(ex, service))
        failure: FailureEvent = original(task, env, ex)
        return failure

    return from_error


_original_function_error = StateTaskLambda._from_error
_original_lambda_error = lambda_.StateTaskServiceLambda._from_error
_original_aws_sdk_error = aws_sdk.StateTaskServiceAwsSdk._from_error


def _task_failed(task: StateTaskService, env: Environment, name: str, cause: str) -> FailureEvent:
    details = TaskFailedEventDetails(
        error=name,
        cause=cause,
        resource=task._get_sfn_resource(),
        resourceType=task._get_sfn_resource_type(),
    )
    return FailureEvent(
        env=env,
        error_name=CustomErrorName(name),
        event_type=HistoryEventType.TaskFailed,
        event_details=EventDetails(taskFailedEventDetails=details),
    )


def _cause(error: ClientError, service: str) -> str:
    """AWS's own wording."""
    metadata = error.response["ResponseMetadata"]
    return (
        f"{error.response['Error']['Message']} (Service: {service}; "
        f"Status Code: {metadata['HTTPStatusCode']}; Error Code: {error.response['Error']['Code']}; "
        f"Request ID: {metadata.get('RequestId')}; Proxy: null)"
    )
