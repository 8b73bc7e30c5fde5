"""Look after the open locks and the awaiting steps, and settle what nobody else has."""

import os

import boto3
from aws_lambda_powertools import Logger, Metrics, Tracer
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from steponce.callbacks.awaiting import AwaitingSteps
from steponce.callbacks.resolver import Callbacks
from steponce.camelcase import json_object
from steponce.locks.table import Locks
from steponce.monitoring.missed_ends import MissedEnds, Place
from steponce.monitoring.monitor import Monitor
from steponce.recovery.repair import Repairer
from steponce.triggers.resend import Resender
from steponce.triggers.starter import COUNTED

logger = Logger()
tracer = Tracer(auto_patch=False)  # the patch of botocore keeps error texts, which may quote a token
metrics = Metrics()
sfn, dynamodb = boto3.client("stepfunctions"), boto3.client("dynamodb")
open_shards, work_timeout = int(os.environ["OpenShards"]), float(os.environ["WorkTimeoutSeconds"])
locks = Locks(dynamodb, os.environ["LocksTable"])
steps = AwaitingSteps(dynamodb, os.environ["AwaitingStepsTable"], open_shards=open_shards)
repairer = Repairer(
    locks,
    sfn,
    work_timeout_seconds=work_timeout,
    when_outcome_unknown=os.environ["WhenOutcomeUnknown"],
    by="find_overdue",
    home=os.environ["RunOnceStateMachineArn"],
)
machine_arn = os.environ["RunOnceStateMachineArn"]
missed_ends = MissedEnds(
    sfn,
    machine_arn,
    locks,
    Resender.from_settings(boto3.client("sqs"), os.environ),
    Place(dynamodb, os.environ["LocksTable"], machine_arn),
)


@tracer.capture_lambda_handler(capture_response=False, capture_error=False)
@logger.inject_lambda_context
@metrics.log_metrics
def handler(_event: dict, context: LambdaContext) -> dict:
    """Make one round, and count what is left."""
    monitor = Monitor(
        locks,
        repairer,
        steps,
        Callbacks(steps, sfn),
        missed_ends,
        open_shards=open_shards,
        work_timeout_seconds=work_timeout,
        describes_per_second=float(os.environ["DescribesPerSecond"]),
        seconds_left=lambda: context.get_remaining_time_in_millis() / 1000,
        tell=logger.warning,
    )
    tally = monitor.round()
    metrics.add_metric("MissingTasks", MetricUnit.Count, tally.missing_tasks)
    metrics.add_metric("OpenFailures", MetricUnit.Count, tally.open_failures)
    metrics.add_metric("Repairs", MetricUnit.Count, tally.repairs)
    metrics.add_metric("FinalisationFailures", MetricUnit.Count, tally.finalisation_failures)
    metrics.add_metric("StepsNearTimeout", MetricUnit.Count, tally.steps_near_timeout)
    metrics.add_metric("Skipped", MetricUnit.Count, tally.skipped)
    metrics.add_metric("Unreadable", MetricUnit.Count, tally.unreadable)
    metrics.add_metric(COUNTED["resent"], MetricUnit.Count, tally.resent)
    metrics.add_metric(COUNTED["dead-lettered"], MetricUnit.Count, tally.dead_lettered)
    logger.info("round", **json_object(tally))
    return json_object(tally)
