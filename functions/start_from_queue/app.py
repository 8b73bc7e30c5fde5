"""Start requests from messages: in parallel, but one after the other in each group of a FIFO queue."""

import asyncio
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import boto3
from aws_lambda_powertools import Logger, Metrics, Tracer
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.batch import (
    AsyncBatchProcessor,
    EventType,
    SqsFifoPartialProcessor,
    async_process_partial_response,
    process_partial_response,
)
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext

from steponce import Client, environment
from steponce.aws.pace import Pace
from steponce.request.settings import RequestRules
from steponce.triggers.dispositions import COUNTED
from steponce.triggers.messages import find_request, original_of
from steponce.triggers.resend import Resender, ResendSettings
from steponce.triggers.start_request import RequestPaths
from steponce.triggers.starter import Outcome, Starter
from steponce.triggers.written_letters import WrittenLetters

TO_ANSWER_SECONDS = 5


@dataclass(frozen=True)
class Settings:
    """What the template sets for this function."""

    run_once_state_machine_arn: str
    locks_table: str
    rules: RequestRules
    queue_request_id_path: str
    queue_payload_path: str
    event_request_id_path: str
    event_payload_path: str
    queue_concurrency: int
    queue_mappings: int
    starts_per_second: float
    resend: ResendSettings
    queue_lock_token_path: str = ""
    event_lock_token_path: str = ""


settings = environment.read(Settings, os.environ)
logger = Logger()
tracer = Tracer(auto_patch=False)  # the patch of botocore keeps error texts, which may quote a payload
metrics = Metrics()
paths = RequestPaths(
    settings.queue_request_id_path, settings.queue_payload_path, settings.queue_lock_token_path
)
event_paths = RequestPaths(  # a dead letter of an event is redriven into the queue
    settings.event_request_id_path, settings.event_payload_path, settings.event_lock_token_path
)
pace = Pace(settings.starts_per_second / (settings.queue_concurrency * settings.queue_mappings))
resender = Resender.from_settings(boto3.client("sqs"), settings.resend)
rules = settings.rules.expect_paths()
client = Client(settings.run_once_state_machine_arn, settings.locks_table, rules=rules)
letters = WrittenLetters(boto3.client("dynamodb"), settings.locks_table)
starter = Starter(client, resender, letters)
threads = ThreadPoolExecutor(10)
side_by_side = AsyncBatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)
in_order = SqsFifoPartialProcessor(skip_group_on_error=True)  # a FIFO queue has an order in each group
in_order.raise_on_entire_batch_failure = False


@tracer.capture_lambda_handler(capture_response=False, capture_error=False)
@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> Mapping[str, Any]:
    """Start the requests of a batch. The answer names the messages that go back to the queue."""
    for name in COUNTED.values():
        metrics.add_metric(name, MetricUnit.Count, 0)
    if event["Records"][0]["eventSourceARN"].endswith(".fifo"):
        return process_partial_response(event, start_next, in_order, context)
    return async_process_partial_response(event, start_beside, side_by_side, context)


def start_next(record: SQSRecord, lambda_context: LambdaContext) -> None:
    """Start one request before the next."""
    count(start(record, lambda_context))


async def start_beside(record: SQSRecord, lambda_context: LambdaContext) -> None:
    """Start a request in a thread of its own. The metrics are counted in one thread."""
    loop = asyncio.get_running_loop()
    count(await loop.run_in_executor(threads, start, record, lambda_context))


def start(record: SQSRecord, context: LambdaContext) -> Outcome:
    """Start the request of a message. If this raises, the message goes back to the queue."""
    try:
        pace.turn(context.get_remaining_time_in_millis() / 1000 - TO_ANSWER_SECONDS)
        outcome = starter.start(lambda: find_request(record, paths, event_paths), original_of(record))
    except Exception as error:
        reason = type(error).__name__
        logger.warning("message returned to the queue", reason=reason, messageId=record.message_id)
        raise
    logger.info("message processed", messageId=record.message_id, **outcome.public())
    return outcome


def count(outcome: Outcome) -> None:
    """Count what became of a message. Powertools' metrics are not thread-safe."""
    metrics.add_metric(COUNTED[outcome.disposition], MetricUnit.Count, 1)
