"""Start requests over HTTP, and answer what became of them."""

import os

from aws_lambda_powertools import Logger, Metrics, Tracer
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext
from botocore.config import Config

from steponce import Client, Receipt
from steponce.http_api.callers import Callers
from steponce.http_api.routes import routes
from steponce.triggers.starter import COUNTED, fate_of

logger = Logger()
tracer = Tracer(auto_patch=False)  # the patch of botocore keeps error texts, which may quote a payload
metrics = Metrics()

# AWS gets less time than usual: after 30 seconds the gateway answers itself, and not when to come again.
QUICK = Config(connect_timeout=2, read_timeout=5, retries={"mode": "standard", "max_attempts": 2})


@tracer.capture_lambda_handler(capture_response=False, capture_error=False)
@logger.inject_lambda_context
def handler(event: dict, context: LambdaContext) -> dict:
    """Take a request of the HTTP API."""
    return http.resolve(event, context)


def count(receipt: Receipt) -> None:
    """Say what a POST did: it started a request, or found one."""
    metrics.add_metric(COUNTED[fate_of(receipt)], MetricUnit.Count, 1)
    metrics.flush_metrics()
    logger.info(
        "asked to start",
        requestId=receipt.request_id,
        status=receipt.status,
        duplicate=receipt.duplicate,
        attempt=receipt.attempt,
    )


http = routes(
    Client.from_outputs(os.environ, config=QUICK),
    Callers.by_parameters(os.environ["HttpDoor"], os.environ["CallerPath"]),
    count,
)
