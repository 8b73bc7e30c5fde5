"""Find out what became of the execution that holds a lock."""

import os

import boto3
from aws_lambda_powertools import Logger, Tracer
from aws_lambda_powertools.utilities.typing import LambdaContext

from steponce.owner import is_gone, settle_owner
from steponce.records import Lock, Locks

logger = Logger()
tracer = Tracer()
sfn = boto3.client("stepfunctions")
locks = Locks(boto3.client("dynamodb"), os.environ["LOCKS_TABLE"])


@tracer.capture_lambda_handler(capture_response=False, capture_error=False)
@logger.inject_lambda_context
def handler(event: dict, _context: LambdaContext) -> dict:
    """Settle what a dead owner left; or, after a takeover, look whether it is still dead."""
    lock = Lock.from_item(event["lock"])
    if "redriveCount" in event:
        verdict, redrives = "gone" if is_gone(lock, sfn, event["redriveCount"]) else "alive", 0
    else:
        verdict, redrives = settle_owner(
            lock,
            sfn,
            locks,
            work_timeout_seconds=float(os.environ["WORK_TIMEOUT_SECONDS"]),
            when_outcome_unknown=os.environ["WHEN_OUTCOME_UNKNOWN"],
        )
    logger.info("owner checked", verdict=verdict, owner=lock.locked_by, lock_token=lock.lock_token)
    return {"verdict": verdict, "redriveCount": redrives}
