"""The errors that boto3 raises."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError


def client_error(code: str, about: str = "", *, status: int = 400) -> ClientError:
    """
    What boto3 raises when AWS refuses a call.

    Args:
        code: AWS's name of the error.
        about: What the call was about. AWS may quote it in the message.
        status: The HTTP status.
    """
    error = {"Code": code, "Message": f"Invalid: '{about}'"}
    answer: Any = {"Error": error, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "Operation")
