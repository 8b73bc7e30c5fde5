"""Start requests from events of EventBridge, schedules and S3, and from the records of a Kinesis stream."""

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
    async_process_partial_response,
)
from aws_lambda_powertools.utilities.data_classes.kinesis_stream_event import KinesisStreamRecord
from aws_lambda_powertools.utilities.typing import LambdaContext

from steponce import Client, environment
from steponce.request.settings import RequestRules
from steponce.triggers.dispositions import COUNTED
from steponce.triggers.events import find_request, original_of, single_events
from steponce.triggers.resend import Resender, ResendSettings
from steponce.triggers.start_request import RequestPaths
from steponce.triggers.starter import Outcome, Starter
from steponce.triggers.written_letters import WrittenLetters


@dataclass(frozen=True)
class Settings:
    """What the template sets for this function."""

    run_once_state_machine_arn: str
    locks_table: str
    rules: RequestRules
    event_request_id_path: str
    event_payload_path: str
    resend: ResendSettings
    event_lock_token_path: str = ""


settings = environment.read(Settings, os.environ)
logger = Logger()
tracer = Tracer(auto_patch=False)  # the patch of botocore keeps error texts, which may quote a payload
metrics = Metrics()
paths = RequestPaths(
    settings.event_request_id_path, settings.event_payload_path, settings.event_lock_token_path
)
rules = settings.rules.expect_paths()
client = Client(settings.run_once_state_machine_arn, settings.locks_table, rules=rules)
letters = WrittenLetters(boto3.client("dynamodb"), settings.locks_table)
resender = Resender.from_settings(boto3.client("sqs"), settings.resend)
starter = Starter(client, resender, letters, postpones=True)
threads = ThreadPoolExecutor(10)
stream = AsyncBatchProcessor(event_type=EventType.KinesisDataStreams, raise_on_entire_batch_failure=False)


@tracer.capture_lambda_handler(capture_response=False, capture_error=False)
@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> Mapping[str, Any]:
    """Start every request of an event. A stream's answer names the records to retry; else this raises."""
    for name in COUNTED.values():
        metrics.add_metric(name, MetricUnit.Count, 0)
    events = single_events(event)
    if events and events[0].get("eventSource") == "aws:kinesis":
        return async_process_partial_response(event, start_beside, stream, context)
    failures: list[Exception] = []
    outcomes: list[Outcome] = []
    for single in events:
        try:
            outcomes.append(start(single))
        except Exception as error:
            failures.append(error)
    for outcome in outcomes:
        count(outcome)
    if failures:
        raise failures[0]
    return {"outcomes": [outcome.public() for outcome in outcomes]}


async def start_beside(record: KinesisStreamRecord) -> None:
    """Start a request in a thread of its own. The metrics are counted in one thread."""
    count(await asyncio.get_running_loop().run_in_executor(threads, start, record.raw_event))


def start(event: Mapping[str, Any]) -> Outcome:
    """Start the request of an event. If this raises, Lambda delivers the event again."""
    original = original_of(event)
    try:
        outcome = starter.start(lambda: find_request(event, paths), original)
    except Exception as error:
        logger.warning("event will be delivered again", reason=type(error).__name__, source=original.source)
        raise
    logger.info("event processed", source=original.source, **outcome.public())
    return outcome


def count(outcome: Outcome) -> None:
    """Count what became of an event. Powertools' metrics are not thread-safe."""
    metrics.add_metric(COUNTED[outcome.disposition], MetricUnit.Count, 1)
