"""The invocation that a call belongs to: who holds its lock, and for how long."""

from __future__ import annotations

import os
import socket
from typing import Any

from steponce.guards.terms import Terms
from steponce.request.settings import LONGEST_WORK_SECONDS

_AFTER_ITS_TIME_SECONDS = 1
"""A Lambda's lease outlives its remaining time by this, for clocks that differ."""


def is_context(value: Any) -> bool:
    """Whether an argument is Lambda's context."""
    return hasattr(value, "get_remaining_time_in_millis") and hasattr(value, "aws_request_id")


def lease_of(terms: Terms, context: Any) -> float:
    """
    Seconds: what the call says, or Lambda; a Lambda that has used up its time is stopped.

    Args:
        terms: How the call goes.
        context: Lambda's; None elsewhere.
    """
    if terms.lease_seconds is not None:
        return terms.lease_seconds
    if context is not None:
        return float(context.get_remaining_time_in_millis()) / 1000 + _AFTER_ITS_TIME_SECONDS
    return LONGEST_WORK_SECONDS


def lambda_of(context: Any) -> str | None:
    """The name of the Lambda function that this is, by its environment or its context. None elsewhere."""
    return os.environ.get("AWS_LAMBDA_FUNCTION_NAME") or getattr(context, "function_name", None)


def owner_of(context: Any) -> str:
    """Who holds the lock, so that its log can be found."""
    function = lambda_of(context)
    if function:
        log = getattr(context, "aws_request_id", None) or os.environ.get("AWS_LAMBDA_LOG_STREAM_NAME")
        return f"lambda/{function}/{log or 'unknown'}"
    return f"process/{socket.gethostname()}/{os.getpid()}"
