"""Resend a message that must be retried later."""

import os
from dataclasses import dataclass
from typing import Any

import boto3
from aws_lambda_powertools import Logger, Metrics, Tracer
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from steponce import environment
from steponce.locks.table import Locks
from steponce.triggers.dispositions import COUNTED
from steponce.triggers.ended import examine
from steponce.triggers.resend import Resender, ResendSettings
from steponce.triggers.written_letters import WrittenLetters


@dataclass(frozen=True)
class Settings:
    """What the template sets for this function."""

    locks_table: str
    resend: ResendSettings


settings = environment.read(Settings, os.environ)
logger = Logger()
tracer = Tracer(auto_patch=False)  # the patch of botocore keeps error texts, which may quote a payload
metrics = Metrics()
sfn = boto3.client("stepfunctions")
dynamodb = boto3.client("dynamodb")
locks = Locks(dynamodb, settings.locks_table)
letters = WrittenLetters(dynamodb, settings.locks_table)
resender = Resender.from_settings(boto3.client("sqs"), settings.resend)


@tracer.capture_lambda_handler(capture_response=False, capture_error=False)
@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], _context: LambdaContext) -> dict[str, Any]:
    """Examine one execution that ended badly. A request that a caller waits for is not resent."""
    metrics.add_metric(COUNTED["resent"], MetricUnit.Count, 0)
    found = examine(event["detail"], sfn, locks)
    disposition = "left alone" if found is None else found.bring_back(resender, letters)
    if found is None or disposition == "left alone":
        return {"disposition": disposition}
    metrics.add_metric(COUNTED[disposition], MetricUnit.Count, 1)
    logger.info(
        "ended",
        disposition=disposition,
        requestId=found.request.request_id,
        status="FAILED",
        replayed=False,
        reason=found.error,
    )
    return {"disposition": disposition}
