"""Store the task token of one waiting step, then tell the outside world."""

import json
import os

import boto3
from aws_lambda_powertools import Logger, Tracer
from aws_lambda_powertools.utilities.typing import LambdaContext

from steponce.aws.errors import answering
from steponce.callbacks.awaiting import AwaitingStep, AwaitingSteps
from steponce.callbacks.links import Keys, sign
from steponce.errors import Unavailable

logger = Logger()
tracer = Tracer(auto_patch=False)  # the patch of botocore keeps error texts, which may quote a token
events = boto3.client("events")
keys = Keys(boto3.client("secretsmanager"), os.environ["CallbackKey"])
steps = AwaitingSteps(
    boto3.client("dynamodb"), os.environ["AwaitingStepsTable"], open_shards=int(os.environ["OpenShards"])
)


@tracer.capture_lambda_handler(capture_response=False, capture_error=False)
@logger.inject_lambda_context
def handler(event: dict, _context: LambdaContext) -> dict:
    """Record the step; only then anybody can know of it."""
    step = AwaitingStep.from_event(event)
    steps.record(step)
    tell(step)
    logger.info("waiting", **step.public())
    return step.public()


def tell(step: AwaitingStep) -> None:
    """Put an event on the default bus: the step, and a link that answers it. Route it to whom it concerns."""
    link = os.environ["CallbacksUrl"] + sign(
        keys, step.id, step.expires_at, ["failure", "heartbeat", "success"]
    )
    entry = {
        "Source": "steponce",
        "DetailType": "AwaitingStepRecorded",
        "Detail": json.dumps(step.public() | {"link": link}),
    }
    with answering("EventBridge"):
        told = events.put_events(Entries=[entry])
    if told["FailedEntryCount"]:
        code = told["Entries"][0]["ErrorCode"]
        raise Unavailable(f"EventBridge said {code}. The same call is safe to try again.")
