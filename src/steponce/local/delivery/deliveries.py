"""What the engine delivers by itself: messages to functions, events to the targets of rules, schedules."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

from botocore.config import Config

from steponce.local import moto_patches
from steponce.local.delivery.destinations import Destinations
from steponce.local.delivery.event_bus import Bus, make_event
from steponce.local.delivery.mappings import Mapping
from steponce.local.delivery.schedules import Schedule, seconds_between
from steponce.local.delivery.targets import Targets
from steponce.local.runtime.asynchronous import GivenUp
from steponce.local.template.physical_names import ACCOUNT
from steponce.local.template.plan import Deliveries

if TYPE_CHECKING:
    import boto3
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_stepfunctions import SFNClient


def start(
    plan: Deliveries, address: str, session: boto3.Session, lambda_client: LambdaClient, states: SFNClient
) -> GivenUp | None:
    """
    Deliver what the plan says, on threads that end with the process.

    Status changes are those of executions of this process, so there are none where another
    endpoint runs the state machines.

    Args:
        address: Where the queues are.

    Returns:
        What to tell of an event that is given up. None if nobody is to be told.
    """
    if not (plan.mappings or plan.rules or plan.destinations):
        return None
    region = session.region_name
    sqs = session.client("sqs", endpoint_url=address, config=Config(max_pool_connections=50))

    def queue_url(name: str) -> str:
        return f"{address}/{ACCOUNT}/{name}"

    for mapping in plan.mappings:
        Mapping(mapping, queue_url(mapping.queue.name), sqs, lambda_client).start()
    destinations = Destinations(sqs, queue_url, plan.destinations)
    targets = Targets(sqs, queue_url, lambda_client, states, destinations)
    for rule in plan.rules:
        if rule.schedule and (seconds := seconds_between(rule.schedule)):
            Schedule(rule, seconds, region, targets.deliver).start()
    if any(rule.pattern for rule in plan.rules):
        _listen(Bus(plan.rules, targets.deliver), region)
    return destinations.give_up


def _listen(bus: Bus, region: str) -> None:
    """Put on the bus what executions and PutEvents say."""

    def status_changed(detail: dict[str, Any]) -> None:
        bus.put(
            make_event(
                "aws.states",
                "Step Functions Execution Status Change",
                detail,
                region=region,
                resources=[detail["executionArn"]],
            )
        )

    def was_put(entry: dict[str, Any], event_id: str, time: datetime.datetime | None) -> None:
        bus.put(
            make_event(
                entry["Source"],
                entry["DetailType"],
                entry["Detail"],
                region=region,
                resources=entry.get("Resources", []),
                time=time,
                event_id=event_id,
            )
        )

    moto_patches.listen(status_changed, was_put)
