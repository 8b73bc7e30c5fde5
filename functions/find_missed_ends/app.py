"""Resends messages whose executions ended without an answer, and whose end no event has reported."""

import os
from dataclasses import dataclass
from typing import Any

import boto3
from aws_lambda_powertools import Logger, Metrics, Tracer
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from steponce import environment
from steponce.aws.pace import Pace
from steponce.camelcase import json_object
from steponce.locks.table import Locks
from steponce.monitoring.missed_ends import MissedEnds
from steponce.monitoring.rounds import SPARE_SECONDS, Unexamined
from steponce.monitoring.search_position import SearchPosition
from steponce.triggers.dispositions import COUNTED
from steponce.triggers.resend import Resender, ResendSettings
from steponce.triggers.written_letters import WrittenLetters


@dataclass(frozen=True)
class Settings:
    """What the template sets for this function."""

    run_once_state_machine_arn: str
    locks_table: str
    describes_per_second: float
    resend: ResendSettings


settings = environment.read(Settings, os.environ)
logger = Logger()
tracer = Tracer(auto_patch=False)  # the patch of botocore keeps error texts, which may quote a payload
metrics = Metrics()
dynamodb = boto3.client("dynamodb")
missed_ends = MissedEnds(
    boto3.client("stepfunctions"),
    settings.run_once_state_machine_arn,
    Locks(dynamodb, settings.locks_table),
    Resender.from_settings(boto3.client("sqs"), settings.resend),
    WrittenLetters(dynamodb, settings.locks_table),
    SearchPosition(dynamodb, settings.locks_table, settings.run_once_state_machine_arn),
)


@tracer.capture_lambda_handler(capture_response=False, capture_error=False)
@logger.inject_lambda_context
@metrics.log_metrics
def handler(_event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Examine the executions that ended since the last round, and count the resent messages."""
    unexamined = Unexamined(report)
    looked = missed_ends.look(
        seconds_left=lambda: context.get_remaining_time_in_millis() / 1000 - SPARE_SECONDS,
        per_second=settings.describes_per_second,
        pace=Pace(settings.describes_per_second, burst=1),
        skip=unexamined.add,
    )
    metrics.add_metric(COUNTED["resent"], MetricUnit.Count, looked.resent)
    metrics.add_metric(COUNTED["dead-lettered"], MetricUnit.Count, looked.dead_lettered)
    metrics.add_metric("Skipped", MetricUnit.Count, unexamined.skipped)
    metrics.add_metric("Unreadable", MetricUnit.Count, unexamined.unreadable)
    answer = {**json_object(looked), "skipped": unexamined.skipped, "unreadable": unexamined.unreadable}
    logger.info("round", **answer)
    return answer


def report(event: str, /, **facts: object) -> None:
    """Log what the round cannot put into a number."""
    logger.warning(event, extra=facts)
