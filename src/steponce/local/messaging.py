"""
The template's queues and topics: from its words to the embedded moto.

Subscriptions of queues to topics are made; those of other protocols are for people and for AWS.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from steponce.local.made import Made
from steponce.local.physical import QUEUE, SUBSCRIPTION, TOPIC
from steponce.local.plan import QueuePlan, SubscriptionPlan, TopicPlan

if TYPE_CHECKING:
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sqs import SQSClient

_QUEUE_ATTRIBUTES = (
    "ContentBasedDeduplication",
    "DeduplicationScope",
    "DelaySeconds",
    "FifoQueue",
    "FifoThroughputLimit",
    "MaximumMessageSize",
    "MessageRetentionPeriod",
    "ReceiveMessageWaitTimeSeconds",
    "RedrivePolicy",
    "VisibilityTimeout",
)
_TOPIC_ATTRIBUTES = ("ContentBasedDeduplication", "FifoTopic")
_SUBSCRIPTION_ATTRIBUTES = ("FilterPolicy", "FilterPolicyScope", "RawMessageDelivery", "RedrivePolicy")


def read_queues(made: Made) -> list[QueuePlan]:
    """The queues, each after the one that takes its dead letters."""
    queues = [
        QueuePlan(name, _attributes(properties, _QUEUE_ATTRIBUTES))
        for _, name, properties in made.of_kind(QUEUE)
    ]
    return sorted(queues, key=lambda queue: "RedrivePolicy" in queue.attributes)


def read_topics(made: Made) -> list[TopicPlan]:
    """The topics."""
    return [
        TopicPlan(name, made.names.arn(TOPIC, name), _attributes(properties, _TOPIC_ATTRIBUTES))
        for _, name, properties in made.of_kind(TOPIC)
    ]


def read_subscriptions(made: Made) -> list[SubscriptionPlan]:
    """The subscriptions of the template's queues to the template's topics."""
    queues = {made.names.arn(QUEUE, name) for _, name, _ in made.of_kind(QUEUE)}
    topics = {made.names.arn(TOPIC, name) for _, name, _ in made.of_kind(TOPIC)}
    apart = [properties for _, _, properties in made.of_kind(SUBSCRIPTION)]
    inline = [
        {**subscription, "TopicArn": made.names.arn(TOPIC, name)}
        for _, name, properties in made.of_kind(TOPIC)
        for subscription in properties.get("Subscription", [])
    ]
    return [
        SubscriptionPlan(item["TopicArn"], item["Endpoint"], _attributes(item, _SUBSCRIPTION_ATTRIBUTES))
        for item in [*apart, *inline]
        if item["Protocol"] == "sqs" and item["TopicArn"] in topics and item.get("Endpoint") in queues
    ]


def make_queues(sqs: SQSClient, queues: Iterable[QueuePlan]) -> None:
    """Make them, in this order."""
    for queue in queues:
        sqs.create_queue(QueueName=queue.name, Attributes=queue.attributes)  # type: ignore[arg-type]


def make_topics(
    sns: SNSClient, topics: Iterable[TopicPlan], subscriptions: Iterable[SubscriptionPlan]
) -> None:
    """Make them, and subscribe the queues, which are there already."""
    for topic in topics:
        sns.create_topic(Name=topic.name, Attributes=topic.attributes)
    for item in subscriptions:
        sns.subscribe(
            TopicArn=item.topic_arn, Protocol="sqs", Endpoint=item.queue_arn, Attributes=item.attributes
        )


def _attributes(properties: Mapping[str, Any], wanted: Iterable[str]) -> dict[str, str]:
    """Properties as the text that the APIs take."""
    return {key: _text(properties[key]) for key in wanted if key in properties}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
