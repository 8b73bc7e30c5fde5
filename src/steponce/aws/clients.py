"""boto3 clients of a session, and the Outputs of a stack that it can reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from botocore.config import Config
from botocore.exceptions import ClientError

from steponce.aws.errors import answering, error_code
from steponce.errors import InvalidSetting, StackNotFound

if TYPE_CHECKING:
    import boto3

CONFIG = Config(
    retries={"mode": "standard", "max_attempts": 4},
    connect_timeout=5,
    read_timeout=30,
    max_pool_connections=32,  # as many as the threads of async guards
)


def client_of(session: boto3.Session, service: str, **options: Any) -> Any:
    """
    A client of a session.

    boto3's type stubs know a client by the literal name of its service, and refuse a name in a variable.

    Args:
        service: boto3's name of the service, such as `stepfunctions`.
        options: As for `Session.client`.
    """
    make: Callable[..., Any] = session.client
    return make(service, **options)


def with_defaults(config: Config | None) -> Config:
    """A caller's own config, and CONFIG for what it does not say."""
    return CONFIG.merge(config) if config else CONFIG


def stack_outputs(session: boto3.Session, name: str, config: Config | None = None) -> dict[str, str]:
    """
    Read the Outputs of a stack that was deployed on AWS.

    Args:
        name: The CloudFormation stack's name.
        config: The caller's own; its region goes before that of the session.

    Raises:
        StackNotFound: this account and region have no stack of this name.
    """
    cloudformation = session.client("cloudformation", config=config)
    try:
        with answering("CloudFormation"):
            (stack,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
    except ClientError as error:
        if (error.operation_name, error_code(error)) != ("DescribeStacks", "ValidationError"):
            raise  # AWS refuses a profile's role with that code, too
        where = cloudformation.meta.region_name
        raise StackNotFound(
            f"There is no stack {name!r} in {where}. Check name, region and account."
        ) from None
    return {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}


def locks_table_of(outputs: Mapping[str, str]) -> str:
    """
    The name of a stack's lock table.

    Raises:
        InvalidSetting: the Outputs name none.
    """
    if not outputs.get("LocksTable"):
        raise InvalidSetting(
            "The stack has no Output LocksTable. Give the Outputs of a stack that was deployed from "
            "steponce's template."
        )
    return outputs["LocksTable"]
