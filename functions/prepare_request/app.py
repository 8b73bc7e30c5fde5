"""Complete the input of an execution that was started by hand."""

import os

import jsonschema  # noqa: F401 - Envelope.complete wants it; here it loads while Lambda starts, which is faster
from aws_lambda_powertools import Logger, Tracer
from aws_lambda_powertools.utilities.typing import LambdaContext

from steponce.request.envelope import Envelope
from steponce.request.settings import RequestRules

logger = Logger()
tracer = Tracer()
rules = RequestRules.from_settings(os.environ)


@tracer.capture_lambda_handler(capture_response=False, capture_error=False)
@logger.inject_lambda_context
def handler(event: dict, _context: LambdaContext) -> dict:
    """Validate `{"payload": …}` and answer with the whole envelope."""
    return Envelope.complete(event["executionName"], event["input"], rules).to_dict()
