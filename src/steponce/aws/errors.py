"""Classifies AWS errors as transient or permanent. A transient error becomes `Unavailable`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,
    HTTPClientError,
    NoCredentialsError,
)
from botocore.parsers import ResponseParserError

from steponce.errors import Unavailable

_AGAIN = "The same call is safe to try again."
_STILL_EXPIRED = "Credentials were refreshed, but the refreshed credentials are still expired."
"""botocore's text; its type is RuntimeError, and no BotoCoreError."""

_FOR_CREDENTIALS = frozenset(
    {"AssumeRole", "AssumeRoleWithWebIdentity", "CreateOAuth2Token", "CreateToken", "GetRoleCredentials"}
)
"""What botocore calls for new credentials, before it sends a call for the first time or once more."""

_CONFLICTS = frozenset({"TransactionConflictException", "TransactionInProgressException"})
_PASSING = _CONFLICTS | {"RequestTimeout"}

_THROTTLED = frozenset(
    {
        "ExecutionLimitExceeded",
        "KmsThrottlingException",
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "SlowDown",
        "ThrottledException",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)


@contextmanager
def answering(service: str) -> Iterator[None]:
    """
    Turn throttling, outages and expired credentials inside the block into `Unavailable`. Every other error
    passes unchanged. Credentials have expired here if their provider gave them so, or if the clock is wrong.
    What AWS itself says of expired credentials is a ClientError, and passes.

    Source: "Common errors" and the error lists of the Step Functions and DynamoDB API references.
    """
    try:
        yield
    except ClientError as error:
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        throttled = error_code(error) in _THROTTLED or status == 429
        if throttled or error_code(error) in _PASSING or status >= 500:
            raise Unavailable(
                f"{service} said {error_code(error)}. {_AGAIN}",
                throttled=throttled,
            ) from error
        raise
    except (HTTPClientError, ConnectionError) as error:
        raise Unavailable(f"{service} did not answer ({words_of(error)}). {_AGAIN}") from error
    except ResponseParserError:
        raise _no_answer(service) from None  # botocore's text quotes all that came back
    except RuntimeError as error:
        if str(error) != _STILL_EXPIRED:
            raise
        raise Unavailable(
            f"{service} could not be asked: {error} Log in to AWS again, and look at the clock of this "
            f"computer. {_AGAIN}"
        ) from error


def expect_content(service: str, answer: Any) -> None:
    """
    Refuse an answer without content. botocore makes that of a page that is no JSON, as a proxy sends it.

    Raises:
        Unavailable: there is nothing in it; safe to try again.
    """
    if isinstance(answer, dict) and answer.keys() == {"ResponseMetadata"}:
        raise _no_answer(service)


def without_advice(error: Unavailable) -> str:
    """What happened, without the advice to try the same call again."""
    return str(error).replace(f" {_AGAIN}", "").removesuffix(" Try again.")


def what_happened(error: BotoCoreError | ClientError | Unavailable) -> str:
    """A sentence that says what AWS or botocore said, without advice."""
    if isinstance(error, Unavailable):
        return without_advice(error)
    if isinstance(error, ClientError):
        said = str(error.response["Error"].get("Message", "")).strip().rstrip(".")
        return f"AWS refused {error.operation_name} with {error_code(error)}{said and f': {said}'}."
    return f"{words_of(error).rstrip('.')}."


def words_of(error: BotoCoreError) -> str:
    """
    What botocore says of an error. What it did not expect itself is not quoted: the error of a header that
    cannot be sent holds the header, which may be a session token.
    """
    if type(error) is not HTTPClientError:
        return str(error)
    cause = type(error.kwargs.get("error")).__name__
    return f"its HTTP client failed with {cause}; look for a line break in the credentials"


def is_conflict(error: Unavailable) -> bool:
    """Whether DynamoDB refused a call for a transaction at its item. boto3 does not repeat such a call."""
    return isinstance(error.__cause__, ClientError) and error_code(error.__cause__) in _CONFLICTS


def is_refusal(error: Exception) -> bool:
    """
    Whether a call that ended with this error has no effect for certain.

    AWS has refused it, or it was not sent for want of credentials. A call that boto3 had sent before may have
    taken effect then, and its answer was lost. If AWS refuses new credentials, nothing says whether it had.
    """
    if isinstance(error, ClientError):
        return error.operation_name not in _FOR_CREDENTIALS and not was_sent_before(error)
    return isinstance(error, NoCredentialsError)


def was_sent_before(error: ClientError) -> bool:
    """Whether boto3 had sent the refused call before, without an answer."""
    return bool(error.response.get("ResponseMetadata", {}).get("RetryAttempts", 0))


def error_code(error: ClientError) -> str:
    """The error's name in the service's API, for example `ConditionalCheckFailedException`."""
    return str(error.response["Error"]["Code"])


def _no_answer(service: str) -> Unavailable:
    return Unavailable(
        f"{service} did not answer: what came back is no answer of AWS. {_AGAIN} If it stays so, a proxy may "
        "have answered, or AWS_ENDPOINT_URL may be wrong."
    )
