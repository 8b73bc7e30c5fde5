"""Find out what became of the execution that holds a lock."""

import os
from dataclasses import dataclass
from typing import Any

import boto3
from aws_lambda_powertools import Logger, Metrics, Tracer
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from steponce import environment
from steponce.locks.record import Lock
from steponce.locks.table import Locks
from steponce.recovery.owner import Finding, WhenOutcomeUnknown, is_gone, settle_owner


@dataclass(frozen=True)
class Settings:
    """What the template sets for this function."""

    run_once_state_machine_arn: str
    locks_table: str
    work_timeout_seconds: float
    when_outcome_unknown: WhenOutcomeUnknown


settings = environment.read(Settings, os.environ)
logger = Logger()
tracer = Tracer(auto_patch=False)  # the patch of botocore keeps error texts, which may quote a payload
metrics = Metrics()
sfn = boto3.client("stepfunctions")
locks = Locks(boto3.client("dynamodb"), settings.locks_table)


@tracer.capture_lambda_handler(capture_response=False, capture_error=False)
@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], _context: LambdaContext) -> dict[str, Any]:
    """Settle the lock of a dead owner. After a takeover, check that the owner is still dead."""
    lock = Lock.from_item(event["lock"])
    if "redriveCount" in event:
        verdict, redrives = confirm(lock, event["redriveCount"]), 0
    else:
        found = settle(lock)
        verdict, redrives = found.verdict, found.redrive_count
        if found.reason:
            logger.warning("owner counts as alive: it cannot be described", reason=found.reason)
    logger.info(
        "owner checked",
        verdict=verdict,
        owner=lock.locked_by,
        requestId=lock.request_id,
        lockToken=lock.lock_token,
    )
    return {"verdict": verdict, "redriveCount": redrives}


def confirm(lock: Lock, redrives: int) -> str:
    """Whether a takeover stands."""
    gone = is_gone(lock, sfn, redrives)
    metrics.add_metric("Takeovers", MetricUnit.Count, gone)
    return "gone" if gone else "alive"


def settle(lock: Lock) -> Finding:
    """Find out whether the owner is dead, and record the outcome that it left."""
    found = settle_owner(
        lock,
        sfn,
        locks,
        work_timeout_seconds=settings.work_timeout_seconds,
        when_outcome_unknown=settings.when_outcome_unknown,
        by="check_owner",
        home=settings.run_once_state_machine_arn,
    )
    metrics.add_metric("Repairs", MetricUnit.Count, found.wrote)
    metrics.add_metric("FinalisationFailures", MetricUnit.Count, found.is_finalisation_failure)
    return found
