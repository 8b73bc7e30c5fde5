"""Complete the input of an execution that was started by hand."""

import os
from dataclasses import dataclass
from typing import Any

import jsonschema  # noqa: F401 - Envelope.complete wants it; here it loads while Lambda starts, which is faster
from aws_lambda_powertools import Logger, Tracer
from aws_lambda_powertools.utilities.typing import LambdaContext

from steponce import environment
from steponce.request.envelope import Envelope
from steponce.request.settings import RequestRules


@dataclass(frozen=True)
class Settings:
    """What the template sets for this function."""

    rules: RequestRules


settings = environment.read(Settings, os.environ)
logger = Logger()
tracer = Tracer()


@tracer.capture_lambda_handler(capture_response=False, capture_error=False)
@logger.inject_lambda_context
def handler(event: dict[str, Any], _context: LambdaContext) -> dict[str, Any]:
    """Validate `{"payload": …}` and answer with the whole envelope."""
    return Envelope.complete(event["executionName"], event["input"], settings.rules).to_dict()
