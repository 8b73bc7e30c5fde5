"""Which of AWS's errors pass by themselves."""

import inspect
import re
import traceback
from collections.abc import Iterator
from io import BytesIO
from types import ModuleType
from typing import Any

import boto3
import botocore.credentials
import botocore.session
import botocore.tokens
import pytest
from botocore.awsrequest import AWSResponse
from botocore.credentials import RefreshableCredentials
from botocore.exceptions import (
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    NoCredentialsError,
    ParamValidationError,
    ReadTimeoutError,
)

from steponce import Client
from steponce.aws import errors
from steponce.aws.errors import answering, error_code, is_refusal
from steponce.errors import Unavailable
from steponce.executions import describe_execution


class Raw(BytesIO):
    """The body of an answer, as urllib3 gives it."""

    def stream(self, **_given: Any) -> Iterator[bytes]:
        """All of it at once."""
        yield self.read()


def refusal(code: str, status: int = 400) -> ClientError:
    """What boto3 raises when AWS says no."""
    answer = {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "StartExecution")


def raised(error: Exception) -> Exception:
    """What comes out of the block when this comes in."""
    try:
        with answering("DynamoDB"):
            raise error
    except Exception as result:
        return result


@pytest.mark.parametrize(
    "error",
    [
        refusal("ThrottlingException"),
        refusal("Throttling"),
        refusal("ProvisionedThroughputExceededException"),
        refusal("RequestLimitExceeded"),
        refusal("ExecutionLimitExceeded"),
        refusal("TooManyRequestsException", 429),
        refusal("TransactionConflictException"),
        refusal("TransactionInProgressException"),
        refusal("SomethingNew", 429),
        refusal("InternalServerError", 500),
        refusal("ServiceUnavailable", 503),
        EndpointConnectionError(endpoint_url="https://states"),
        ConnectTimeoutError(endpoint_url="https://states"),
        ReadTimeoutError(endpoint_url="https://states"),
    ],
    ids=lambda error: error_code(error) if isinstance(error, ClientError) else type(error).__name__,
)
def test_throttling_and_outages_are_unavailable(error: Exception) -> None:
    """The same call is safe to try again, and the first error stays in sight."""
    assert Unavailable is type(raised(error))
    assert error is raised(error).__cause__


def test_a_header_that_cannot_be_sent_is_not_quoted() -> None:
    """It is the session token, if that was pasted with a line break."""
    error = raised(HTTPClientError(error=ValueError("Invalid header value b'TOKEN\\nPART'")))
    assert isinstance(error, Unavailable)
    assert "TOKEN" not in str(error)
    assert "line break in the credentials" in str(error)


@pytest.mark.parametrize("page", [b"<html><p>Sign in<br></html>", b"", b"Internal Failure"])
def test_an_answer_that_is_none_of_aws_is_an_outage_and_is_not_quoted(page: bytes) -> None:
    """A proxy has sent it in AWS' place, or AWS itself in an outage."""

    def answer(**_request: Any) -> AWSResponse:
        return AWSResponse("https://cloudformation", 200, {}, Raw(page))

    client = boto3.client(
        "cloudformation", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x"
    )
    client.meta.events.register("before-send", answer)
    with pytest.raises(Unavailable, match="no answer of AWS") as told, answering("CloudFormation"):
        client.describe_stacks(StackName="s")
    shown = "".join(traceback.format_exception(told.value))
    assert not page or page.decode() not in shown


def test_a_start_or_a_look_that_got_a_page_instead_of_json_has_no_answer() -> None:
    """botocore takes it for an empty answer. Nothing was started, and its sender must not hear RUNNING."""
    session = boto3.Session("x", "x", region_name="us-east-1")
    session.events.register(
        "before-send.sfn", lambda **_request: AWSResponse("https://states", 200, {}, Raw(b"<html>Blocked"))
    )
    here = "arn:aws:states:us-east-1:123456789012"
    client = Client(f"{here}:stateMachine:shop", "locks", session=session)

    with pytest.raises(Unavailable, match="no answer of AWS"):
        client.start("order-1", {})
    with pytest.raises(Unavailable, match="no answer of AWS"):
        describe_execution(client.machine.sfn, f"{here}:execution:shop:order-1")


def test_credentials_that_are_expired_when_they_come_are_unavailable() -> None:
    """A tool that provides them has kept old ones, or the clock is wrong. botocore has no type for it."""
    old = {"access_key": "KEY", "secret_key": "KEY", "token": "KEY", "expiry_time": "2020-01-01T00:00:00Z"}
    session = botocore.session.Session()
    credentials = RefreshableCredentials.create_from_metadata(old, lambda: old, "custom-process")
    session._credentials = credentials  # as boto3 sets those that it is given
    client = session.create_client("cloudformation", region_name="us-east-1")
    with pytest.raises(Unavailable) as told, answering("CloudFormation"):
        client.describe_stacks(StackName="s")
    words = ("still expired", "Log in to AWS again", "clock", "The same call is safe to try again.")
    assert [] == [part for part in words if part not in str(told.value)]
    assert "KEY" not in str(told.value)
    assert isinstance(told.value.__cause__, RuntimeError)


@pytest.mark.parametrize(
    "code", ["KmsThrottlingException", "ThrottledException", "RequestTimeout", "SlowDown"]
)
def test_these_pass_by_themselves_too(code: str) -> None:
    """StartExecution and DescribeExecution name the first, botocore's own retries the others."""
    assert Unavailable is type(raised(refusal(code)))


@pytest.mark.parametrize(
    "error",
    [
        refusal("ConditionalCheckFailedException"),
        refusal("ExecutionAlreadyExists"),
        refusal("ExecutionDoesNotExist"),
        refusal("AccessDeniedException"),
        refusal("ResourceNotFoundException"),
        refusal("ValidationException"),
        refusal("InvalidArn", 404),
        NoCredentialsError(),
        ParamValidationError(report="name"),
        KeyError("Item"),
        RuntimeError("can't start new thread"),
    ],
    ids=lambda error: error_code(error) if isinstance(error, ClientError) else type(error).__name__,
)
def test_every_other_error_is_left_alone(error: Exception) -> None:
    """Trying again would not help."""
    assert error is raised(error)


def test_an_outage_names_the_service_and_what_to_do() -> None:
    """Which, what, what next."""
    assert "DynamoDB said Throttling. The same call is safe to try again." == str(
        raised(refusal("Throttling"))
    )


def test_the_code_is_the_error_s_name() -> None:
    """As the API reference has it."""
    assert "InvalidArn" == error_code(refusal("InvalidArn"))


def test_an_answer_without_metadata_is_no_outage() -> None:
    """Stubs and some proxies leave it out."""
    error = ClientError({"Error": {"Code": "InvalidArn", "Message": "no"}}, "DescribeExecution")
    assert error is raised(error)


@pytest.mark.parametrize("retries", [0, 1])
@pytest.mark.parametrize("operation", ["StartExecution", "AssumeRole"])
def test_a_refusal_of_the_first_send_of_a_call_is_certain(operation: str, retries: int) -> None:
    """A call is signed anew for its second send. Its error is then of the credentials, and of their first."""
    response: Any = {"Error": {"Code": "ExpiredToken"}, "ResponseMetadata": {"RetryAttempts": retries}}
    assert is_refusal(ClientError(response, operation)) is (operation == "StartExecution" and not retries)


@pytest.mark.parametrize("module", [botocore.credentials, botocore.tokens])
def test_every_call_for_credentials_is_known(module: ModuleType) -> None:
    """Also those of the next botocore."""
    methods = re.findall(r"client\.(\w+)\(", inspect.getsource(module))
    called = {method.replace("_", "") for method in methods}
    assert called
    assert called <= {operation.lower() for operation in errors._FOR_CREDENTIALS}
