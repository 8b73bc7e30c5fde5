"""Settle the lock that a dead execution left open."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import boto3
from aws_lambda_powertools import Logger, Metrics, Tracer
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from steponce import environment
from steponce.executions import describe_execution, find_lock_token, read_input
from steponce.locks.table import Locks
from steponce.recovery.repair import Repairer, RepairSettings


@dataclass(frozen=True)
class Settings:
    """What the template sets for this function."""

    locks_table: str
    repair: RepairSettings


settings = environment.read(Settings, os.environ)
logger = Logger()
tracer = Tracer(auto_patch=False)  # the patch of botocore keeps error texts, which may quote a payload
metrics = Metrics()
sfn = boto3.client("stepfunctions")
locks = Locks(boto3.client("dynamodb"), settings.locks_table)
repairer = Repairer.from_settings(locks, sfn, settings.repair, by="close_execution")


@tracer.capture_lambda_handler(capture_response=False, capture_error=False)
@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], _context: LambdaContext) -> dict[str, Any]:
    """
    Settle the lock of the execution that an event from EventBridge reports as closed.

    The event may be late, repeated or outdated, so Step Functions is asked whether the execution is dead. If
    its work may still run, the lock stays open until the monitor's schedule settles it.
    """
    execution = event["detail"]["executionArn"]
    request_id, lock_token = find_request(event["detail"])
    found = None if lock_token is None else repairer.repair_after(execution, lock_token)
    metrics.add_metric("Repairs", MetricUnit.Count, found is not None and found.wrote)
    metrics.add_metric(
        "FinalisationFailures", MetricUnit.Count, found is not None and found.is_finalisation_failure
    )
    verdict = "nothing open" if found is None else found.verdict
    logger.info(
        "closed",
        verdict=verdict,
        execution=execution,
        requestId=request_id,
        lockToken=lock_token,
        reason=None if found is None else found.reason or None,  # why the owner cannot be described
    )
    return {"verdict": verdict}


def find_request(detail: Mapping[str, Any]) -> tuple[str, str | None]:
    """
    Find the request id and the lock token of an execution. The token is None if it asked for no lock.

    PrepareRequest refuses what is no text in their place. It may be a whole payload, so it is not logged.

    The event leaves out an input that is too large, so the execution is described then. An execution that was
    started by hand may have no lock token in its input. Only its own machine knows the rules for one, so the
    history is read.
    """
    if detail.get("input") is not None:
        given = read_input(detail["input"])
    else:
        execution = describe_execution(sfn, detail["executionArn"])
        given = execution.input if execution else {}
    request_id, lock_token = given.get("requestId"), given.get("lockToken")
    if not isinstance(request_id, str):
        request_id = detail["name"]  # of what was started by hand
    if "lockToken" in given:
        return request_id, lock_token if isinstance(lock_token, str) else None
    return request_id, find_lock_token(sfn, detail["executionArn"])
