"""Start requests over HTTP, and answer what became of them."""

import os
from dataclasses import dataclass
from typing import Any

from aws_lambda_powertools import Logger, Metrics, Tracer
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext
from botocore.config import Config

from steponce import Client, Receipt, environment
from steponce.http_api.callers import Callers
from steponce.http_api.routes import routes
from steponce.request.settings import RequestRules
from steponce.triggers.dispositions import COUNTED, disposition_of


@dataclass(frozen=True)
class Settings:
    """What the template sets for this function."""

    run_once_state_machine_arn: str
    locks_table: str
    rules: RequestRules
    http_access: str
    result_bucket: str
    caller_path: str = ""


settings = environment.read(Settings, os.environ)
logger = Logger()
tracer = Tracer(auto_patch=False)  # the patch of botocore keeps error texts, which may quote a payload
metrics = Metrics()

# AWS gets less time than usual: after 30 seconds the gateway answers by itself, without a Retry-After.
QUICK = Config(connect_timeout=2, read_timeout=5, retries={"mode": "standard", "max_attempts": 2})


@tracer.capture_lambda_handler(capture_response=False, capture_error=False)
@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Take a request of the HTTP API."""
    return http.resolve(event, context)


def count(receipt: Receipt) -> None:
    """Count and log a POST that started a request or found one."""
    metrics.add_metric(COUNTED[disposition_of(receipt)], MetricUnit.Count, 1)
    metrics.flush_metrics()
    logger.info(
        "request started or found",
        requestId=receipt.request_id,
        status=receipt.status,
        duplicate=receipt.duplicate,
        attempt=receipt.attempt,
    )


http = routes(
    Client(
        settings.run_once_state_machine_arn,
        settings.locks_table,
        rules=settings.rules.expect_paths(),
        config=QUICK,
        result_bucket=settings.result_bucket,
    ),
    Callers.by_parameters(settings.http_access, settings.caller_path),
    count,
)
