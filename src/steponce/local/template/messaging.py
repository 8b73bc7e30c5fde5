"""
The template's queues and topics.

Subscriptions of queues to topics are read; those of other protocols are for people and for AWS.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any, TypeVar, cast

from steponce.local.errors import TemplateError
from steponce.local.template.physical_names import QUEUE, SUBSCRIPTION, TOPIC
from steponce.local.template.plan import QueuePlan, SubscriptionPlan, TopicPlan
from steponce.local.template.resources import Resources

if TYPE_CHECKING:
    from mypy_boto3_sqs.literals import QueueAttributeNameType

Name = TypeVar("Name", bound=str)

_FEW_DIGITS = re.compile("[0-9]{1,9}")
_QUEUE_ATTRIBUTES: tuple[QueueAttributeNameType, ...] = (
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
_NUMBERS: Mapping[str, tuple[int, int]] = {
    "DelaySeconds": (0, 900),
    "MaximumMessageSize": (1_024, 1_048_576),
    "MessageRetentionPeriod": (60, 1_209_600),
    "ReceiveMessageWaitTimeSeconds": (0, 20),
    "VisibilityTimeout": (0, 43_200),
}
"""The lowest and highest value of a queue's attributes. Source: SetQueueAttributes API reference."""
_TOPIC_ATTRIBUTES = ("ContentBasedDeduplication", "FifoTopic")
_SUBSCRIPTION_ATTRIBUTES = ("FilterPolicy", "FilterPolicyScope", "RawMessageDelivery", "RedrivePolicy")


def read_queues(resources: Resources) -> list[QueuePlan]:
    """
    The queues, each after the one that takes its dead letters.

    Raises:
        TemplateError: an attribute is out of its range, or dead letters would go round in a circle.
    """
    queues = {
        name: QueuePlan(name, _in_range(logical_id, _attributes(properties, _QUEUE_ATTRIBUTES)))
        for logical_id, name, properties in resources.of_kind(QUEUE)
    }
    needed = {
        name: [other for other in queues if _redrives_to(queue, resources.names.arn(QUEUE, other))]
        for name, queue in queues.items()
    }
    try:
        return [queues[name] for name in TopologicalSorter(needed).static_order()]
    except CycleError as error:
        circle = ", ".join(error.args[1])
        raise TemplateError(f"Each of these queues is the dead-letter queue of another: {circle}.") from None


def _redrives_to(queue: QueuePlan, arn: str) -> bool:
    return json.dumps(arn) in queue.attributes.get("RedrivePolicy", "")


def read_topics(resources: Resources) -> list[TopicPlan]:
    """The topics."""
    return [
        TopicPlan(name, resources.names.arn(TOPIC, name), _attributes(properties, _TOPIC_ATTRIBUTES))
        for _, name, properties in resources.of_kind(TOPIC)
    ]


def read_subscriptions(resources: Resources) -> list[SubscriptionPlan]:
    """The subscriptions of the template's queues to the template's topics."""
    queues = {resources.names.arn(QUEUE, name) for _, name, _ in resources.of_kind(QUEUE)}
    topics = {resources.names.arn(TOPIC, name) for _, name, _ in resources.of_kind(TOPIC)}
    apart = [properties for _, _, properties in resources.of_kind(SUBSCRIPTION)]
    inline = [
        {**subscription, "TopicArn": resources.names.arn(TOPIC, name)}
        for _, name, properties in resources.of_kind(TOPIC)
        for subscription in properties.get("Subscription", [])
    ]
    return [
        SubscriptionPlan(item["TopicArn"], item["Endpoint"], _attributes(item, _SUBSCRIPTION_ATTRIBUTES))
        for item in [*apart, *inline]
        if item["Protocol"] == "sqs" and item["TopicArn"] in topics and item.get("Endpoint") in queues
    ]


def _attributes(properties: Mapping[str, Any], wanted: Iterable[Name]) -> dict[Name, str]:
    """Properties as the text that the APIs take."""
    return {key: _text(properties[key]) for key in wanted if key in properties}


def _in_range(logical_id: str, attributes: dict[Name, str]) -> dict[Name, str]:
    """The same attributes. A queue that SQS would not make here would keep its messages to itself."""
    for name, (lowest, highest) in _NUMBERS.items():
        text = attributes.get(cast("Name", name), str(lowest))
        if not (_FEW_DIGITS.fullmatch(text) and lowest <= int(text) <= highest):
            raise TemplateError(
                f"{logical_id}: {name} is {text!r}. Give a number from {lowest} to {highest}."
            )
    return attributes


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
