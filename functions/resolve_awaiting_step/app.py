"""Give one verdict on each answer to a waiting step, by link, queue or invocation."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import boto3
from aws_lambda_powertools import Logger, Metrics, Tracer
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext

from steponce import environment
from steponce.callbacks.answer import Answer, Verdict
from steponce.callbacks.awaiting import AwaitingSteps
from steponce.callbacks.links import Keys
from steponce.callbacks.resolver import Callbacks
from steponce.callbacks.routes import routes
from steponce.callbacks.step import answer_to_step
from steponce.errors import InvalidRequest
from steponce.request.strict_json import read_strictly


@dataclass(frozen=True)
class Settings:
    """What the template sets for this function."""

    awaiting_steps_table: str
    open_shards: int
    callback_key: str


settings = environment.read(Settings, os.environ)
logger = Logger()
tracer = Tracer(auto_patch=False)  # the patch of botocore keeps error texts, which may quote a token
metrics = Metrics()
batch = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)
steps = AwaitingSteps(
    boto3.client("dynamodb"), settings.awaiting_steps_table, open_shards=settings.open_shards
)
callbacks = Callbacks(steps, boto3.client("stepfunctions"))


@tracer.capture_lambda_handler(capture_response=False, capture_error=False)
@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> Mapping[str, Any]:
    """Take an answer from the HTTP API, from the queue, or from an invocation."""
    metrics.add_metric(counted("accepted"), MetricUnit.Count, 0)
    if "requestContext" in event:
        return http.resolve(event, context)
    if "Records" in event:
        return process_partial_response(event, answer_message, batch, context)
    return answer_invocation(event)


def answer_message(record: SQSRecord) -> None:
    """Take an answer from a message. A malformed one goes to the dead-letter queue after some receives."""
    try:
        answer_invocation(read_strictly(record.body, "The message"))
    except Exception as error:
        detail = str(error) if isinstance(error, InvalidRequest) else None
        logger.warning(
            "message returned to the queue",
            messageId=record.message_id,
            reason=type(error).__name__,
            detail=detail,
        )
        raise


def answer_invocation(event: Any) -> Mapping[str, Any]:
    """Take the step and the answer from an invocation or a message."""
    return {"verdict": resolve(*answer_to_step(event))}


def counted(verdict: Verdict) -> str:
    """The metric that counts a verdict."""
    return f"Callback{verdict.capitalize()}"


def resolve(step_id: str, answer: Answer) -> Verdict:
    """Give the answer to the step, and count and log the verdict."""
    verdict = callbacks.resolve(step_id, answer)
    metrics.add_metric(counted(verdict), MetricUnit.Count, 1)
    logger.info("answered", verdict=verdict, outcome=answer.outcome, awaitingStepId=step_id)
    return verdict


http = routes(steps, resolve, Keys(boto3.client("secretsmanager"), settings.callback_key))
