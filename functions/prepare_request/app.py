"""Complete the input of an execution that was started by hand, and count requests of large rate limits."""

import os
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import jsonschema  # noqa: F401 - Envelope.complete wants it; here it loads while Lambda starts, which is faster
from aws_lambda_powertools import Logger, Tracer
from aws_lambda_powertools.utilities.typing import LambdaContext

from steponce import environment
from steponce.request.envelope import Envelope
from steponce.request.settings import RequestRules

if TYPE_CHECKING:
    from steponce.limits.counters import Counters


@dataclass(frozen=True)
class Settings:
    """What the template sets for this function."""

    rules: RequestRules
    limits_table: str = ""


settings = environment.read(Settings, os.environ)
logger = Logger()
tracer = Tracer(auto_patch=False)  # the patch of botocore keeps error texts, which may quote a payload


@tracer.capture_lambda_handler(capture_response=False, capture_error=False)
@logger.inject_lambda_context
def handler(event: dict[str, Any], _context: LambdaContext) -> dict[str, Any]:
    """Validate `{"payload": …}` and answer with the whole envelope."""
    return count(Envelope.complete(event["executionName"], event["input"], settings.rules)).to_dict()


def count(envelope: Envelope) -> Envelope:
    """The envelope, with the verdict `counted` or `full` if the workflow cannot count the request itself."""
    limit = settings.rules.request_limit()
    if limit is None or envelope.limit is None or not limit.exceeds_a_set:
        return envelope
    verdict = limit.count(counters(), settings.limits_table, envelope.limit, envelope.lockToken)
    return replace(envelope, limit={**envelope.limit, "verdict": verdict})


@cache
def counters() -> "Counters":
    """The counter. Most machines have no such limit, so it is not loaded with the function."""
    import boto3

    from steponce.limits.counters import Counters

    return Counters(boto3.client("dynamodb"))
