"""Store the task token of one waiting step, and then report the step to the outside."""

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import boto3
from aws_lambda_powertools import Logger, Tracer
from aws_lambda_powertools.utilities.typing import LambdaContext

from steponce import environment
from steponce.aws.errors import answering
from steponce.callbacks.awaiting import AwaitingSteps
from steponce.callbacks.links import Keys, sign
from steponce.callbacks.step import AwaitingStep
from steponce.errors import Unavailable

if TYPE_CHECKING:
    from mypy_boto3_events.type_defs import PutEventsRequestEntryTypeDef


@dataclass(frozen=True)
class Settings:
    """What the template sets for this function."""

    awaiting_steps_table: str
    open_shards: int
    callback_key: str
    callbacks_url: str


settings = environment.read(Settings, os.environ)
logger = Logger()
tracer = Tracer(auto_patch=False)  # the patch of botocore keeps error texts, which may quote a token
events = boto3.client("events")
keys = Keys(boto3.client("secretsmanager"), settings.callback_key)
steps = AwaitingSteps(
    boto3.client("dynamodb"), settings.awaiting_steps_table, open_shards=settings.open_shards
)


@tracer.capture_lambda_handler(capture_response=False, capture_error=False)
@logger.inject_lambda_context
def handler(event: dict[str, Any], _context: LambdaContext) -> dict[str, Any]:
    """Record the step, and then report it: an answer can only come after that."""
    step = AwaitingStep.from_event(event)
    steps.record(step)
    report(step)
    logger.info("waiting", **step.public())
    return step.public()


def report(step: AwaitingStep) -> None:
    """Put an event with the step, and with a link that answers it, on the default event bus."""
    link = settings.callbacks_url + sign(keys, step.id, step.expires_at, ["failure", "heartbeat", "success"])
    entry: PutEventsRequestEntryTypeDef = {
        "Source": "steponce",
        "DetailType": "AwaitingStepRecorded",
        "Detail": json.dumps(step.public() | {"link": link}),
    }
    with answering("EventBridge"):
        answer = events.put_events(Entries=[entry])
    if answer["FailedEntryCount"]:
        code = answer["Entries"][0]["ErrorCode"]
        raise Unavailable(f"EventBridge answered {code}. The same call is safe to try again.")
