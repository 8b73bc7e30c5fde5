"""Examine the open locks and the awaiting steps, and settle those that no event has reported."""

import os
from dataclasses import dataclass
from typing import Any

import boto3
from aws_lambda_powertools import Logger, Metrics, Tracer
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from steponce import environment
from steponce.callbacks.awaiting import AwaitingSteps
from steponce.callbacks.resolver import Callbacks
from steponce.camelcase import json_object
from steponce.locks.table import Locks
from steponce.monitoring.monitor import Monitor
from steponce.recovery.repair import Repairer, RepairSettings


@dataclass(frozen=True)
class Settings:
    """What the template sets for this function."""

    locks_table: str
    awaiting_steps_table: str
    open_shards: int
    repair: RepairSettings
    describes_per_second: float


settings = environment.read(Settings, os.environ)
logger = Logger()
tracer = Tracer(auto_patch=False)  # the patch of botocore keeps error texts, which may quote a token
metrics = Metrics()
sfn, dynamodb = boto3.client("stepfunctions"), boto3.client("dynamodb")
locks = Locks(dynamodb, settings.locks_table)
steps = AwaitingSteps(dynamodb, settings.awaiting_steps_table, open_shards=settings.open_shards)
repairer = Repairer.from_settings(locks, sfn, settings.repair, by="find_overdue")


@tracer.capture_lambda_handler(capture_response=False, capture_error=False)
@logger.inject_lambda_context
@metrics.log_metrics
def handler(_event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Make one round, and count what is left."""
    monitor = Monitor(
        locks,
        repairer,
        steps,
        Callbacks(steps, sfn),
        open_shards=settings.open_shards,
        work_timeout_seconds=settings.repair.work_timeout_seconds,
        describes_per_second=settings.describes_per_second,
        seconds_left=lambda: context.get_remaining_time_in_millis() / 1000,
        log=report,
    )
    tally = monitor.round()
    metrics.add_metric("MissingTasks", MetricUnit.Count, tally.missing_tasks)
    metrics.add_metric("OpenFailures", MetricUnit.Count, tally.open_failures)
    metrics.add_metric("Repairs", MetricUnit.Count, tally.repairs)
    metrics.add_metric("FinalisationFailures", MetricUnit.Count, tally.finalisation_failures)
    metrics.add_metric("StepsNearTimeout", MetricUnit.Count, tally.steps_near_timeout)
    metrics.add_metric("Skipped", MetricUnit.Count, tally.skipped)
    metrics.add_metric("Unreadable", MetricUnit.Count, tally.unreadable)
    logger.info("round", **json_object(tally))
    return json_object(tally)


def report(event: str, /, **facts: object) -> None:
    """Log what the round cannot put into a number."""
    logger.warning(event, extra=facts)
