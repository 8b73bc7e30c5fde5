"""Start requests from messages: side by side, but one after the other in each group of a FIFO queue."""

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor

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

from steponce import Client
from steponce.aws.pace import Pace
from steponce.request.settings import RequestRules
from steponce.triggers.dead_letters import DeadLetters
from steponce.triggers.messages import asked_by, original_of
from steponce.triggers.resend import Resender
from steponce.triggers.start_request import Door
from steponce.triggers.starter import COUNTED, Entrance, Outcome

TO_ANSWER_SECONDS = 5

logger = Logger()
tracer = Tracer(auto_patch=False)  # the patch of botocore keeps error texts, which may quote a payload
metrics = Metrics()
door = Door(
    os.environ["QueueRequestIdPath"], os.environ["QueuePayloadPath"], os.environ["QueueLockTokenPath"]
)
event_door = Door(  # an event that was laid aside is put back into the queue
    os.environ["EventRequestIdPath"], os.environ["EventPayloadPath"], os.environ["EventLockTokenPath"]
)
containers = int(os.environ["QueueConcurrency"]) * int(os.environ["QueueMappings"])
pace = Pace(float(os.environ["StartsPerSecond"]) / containers)
sqs = boto3.client("sqs")
dead_letters = DeadLetters(sqs, os.environ["RequestsDeadLetterQueueUrl"])
resender = Resender.from_settings(sqs, os.environ)
rules = RequestRules.from_settings(os.environ)
client = Client(os.environ["RunOnceStateMachineArn"], os.environ["LocksTable"], rules=rules)
entrance = Entrance(client, dead_letters, resender)
threads = ThreadPoolExecutor(10)
side_by_side = AsyncBatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)
in_order = SqsFifoPartialProcessor(skip_group_on_error=True)  # a FIFO queue has an order in each group
in_order.raise_on_entire_batch_failure = False


@tracer.capture_lambda_handler(capture_response=False, capture_error=False)
@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict, context: LambdaContext) -> dict:
    """Start what a batch of messages asks for; those that are to come back are the answer."""
    for name in COUNTED.values():
        metrics.add_metric(name, MetricUnit.Count, 0)
    if event["Records"][0]["eventSourceARN"].endswith(".fifo"):
        return process_partial_response(event, start_next, in_order, context)
    return async_process_partial_response(event, start_beside, side_by_side, context)


def start_next(record: SQSRecord, lambda_context: LambdaContext) -> None:
    """Start while all others wait."""
    count(start(record, lambda_context))


async def start_beside(record: SQSRecord, lambda_context: LambdaContext) -> None:
    """Start while others do; but count one by one."""
    loop = asyncio.get_running_loop()
    count(await loop.run_in_executor(threads, start, record, lambda_context))


def start(record: SQSRecord, context: LambdaContext) -> Outcome:
    """Whatever this raises lets the message come back."""
    try:
        pace.turn(context.get_remaining_time_in_millis() / 1000 - TO_ANSWER_SECONDS)
        outcome = entrance.admit(lambda: asked_by(record, door, event_door), original_of(record))
    except Exception as error:
        logger.warning("comes back", reason=type(error).__name__, messageId=record.message_id)
        raise
    logger.info("asked", messageId=record.message_id, **outcome.public())
    return outcome


def count(outcome: Outcome) -> None:
    """Powertools' metrics are not for many threads at once."""
    metrics.add_metric(COUNTED[outcome.fate], MetricUnit.Count, 1)
