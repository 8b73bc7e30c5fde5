"""What a template makes, as far as it runs on a laptop; names and texts are resolved already."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mypy_boto3_sqs.literals import QueueAttributeNameType

_API_ON_AWS = re.compile(r"https://([A-Za-z0-9-]+)\.execute-api\.[a-z0-9-]+\.amazonaws\.com")
_SQS_ON_AWS = re.compile(r"https://sqs\.[a-z0-9-]+\.amazonaws\.com(?=/)")

DEFAULT_ROUTE = "$default"
"""The route key of the route that takes what no other one of its API does."""


@dataclass(frozen=True)
class FunctionPlan:
    """
    One Lambda function; its layers are left out, since this package is installed here.

    `problem` says why it does not run here. Whoever invokes it hears that.
    """

    name: str
    arn: str
    folder: str
    handler: str
    environment: dict[str, str]
    timeout_seconds: int
    memory_mb: int
    concurrency: int | None
    problem: str = ""


@dataclass(frozen=True)
class TablePlan:
    """One DynamoDB table: the arguments of CreateTable, and the attribute that TTL looks at."""

    name: str
    arguments: dict[str, Any]
    ttl_attribute: str | None


@dataclass(frozen=True)
class BucketPlan:
    """One S3 bucket, and whether it keeps versions. Nothing expires here: a stack lives for hours."""

    name: str
    has_versions: bool


@dataclass(frozen=True)
class MachinePlan:
    """One state machine, after its substitutions. AWS takes one that has no placeholder: it is `unused`."""

    logical_id: str
    name: str
    arn: str
    definition: str
    kind: str
    unused: tuple[str, ...] = ()


@dataclass(frozen=True)
class RoutePlan:
    """
    One route of an HTTP API, the function behind it, and who checks the caller on AWS (or NONE).

    The path of the route that takes what no other one does is `DEFAULT_ROUTE`.
    """

    method: str
    path: str
    function: str
    authorization: str = "NONE"

    @property
    def key(self) -> str:
        """The route key, as events have it."""
        return self.path if self.path == DEFAULT_ROUTE else f"{self.method} {self.path}"


@dataclass(frozen=True)
class ApiPlan:
    """One HTTP API, and its routes that end in a function."""

    name: str
    routes: list[RoutePlan]


@dataclass(frozen=True)
class QueuePlan:
    """One SQS queue, with the attributes of CreateQueue."""

    name: str
    attributes: dict[QueueAttributeNameType, str]


@dataclass(frozen=True)
class TopicPlan:
    """One SNS topic, with the attributes of CreateTopic."""

    name: str
    arn: str
    attributes: dict[str, str]


@dataclass(frozen=True)
class SubscriptionPlan:
    """A queue that gets a topic's notifications, with the attributes of Subscribe."""

    topic_arn: str
    queue_arn: str
    attributes: dict[str, str]


@dataclass(frozen=True)
class MappingPlan:
    """A queue whose messages a function gets."""

    queue: QueuePlan
    queue_arn: str
    function: str
    batch_size: int
    window_seconds: int
    concurrency: int
    reports_failures: bool


@dataclass(frozen=True)
class TargetPlan:
    """Where a rule sends its events, and what it makes of them before."""

    arn: str
    constant: str | None
    paths: dict[str, str]
    template: str | None
    group_id: str | None


@dataclass(frozen=True)
class RulePlan:
    """A rule of the default event bus: a pattern (JSON), a schedule expression, or both."""

    name: str
    arn: str
    pattern: str | None
    schedule: str | None
    targets: list[TargetPlan]


@dataclass(frozen=True)
class Deliveries:
    """What is delivered to whom without anybody's call."""

    mappings: list[MappingPlan] = field(default_factory=list)
    rules: list[RulePlan] = field(default_factory=list)
    destinations: dict[str, str] = field(default_factory=dict)
    """By the ARN of a function: the queue that gets the records of invocations that it failed."""

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Deliveries:
        """The reverse of `dataclasses.asdict`."""
        return cls(
            mappings=[
                MappingPlan(**{**mapping, "queue": QueuePlan(**mapping["queue"])})
                for mapping in fields["mappings"]
            ],
            rules=[
                RulePlan(**{**rule, "targets": [TargetPlan(**target) for target in rule["targets"]]})
                for rule in fields["rules"]
            ],
            destinations=dict(fields["destinations"]),
        )


@dataclass(frozen=True)
class Plan:
    """
    What a template makes, as far as it runs on a laptop. Secrets are names; their values are made up.

    `left_out` has a sentence for each thing that does not run here, and that somebody might miss.
    """

    functions: list[FunctionPlan]
    tables: list[TablePlan]
    buckets: list[BucketPlan]
    machines: list[MachinePlan]
    secrets: list[str]
    queues: list[QueuePlan]
    topics: list[TopicPlan]
    subscriptions: list[SubscriptionPlan]
    apis: list[ApiPlan]
    deliveries: Deliveries
    outputs: dict[str, str]
    left_out: list[str] = field(default_factory=list)

    def with_nested(self, stacks: Iterable[Plan]) -> Plan:
        """The same, with everything that nested stacks make; their outputs are the template's to read."""
        plans = [self, *stacks]
        return Plan(
            functions=[one for plan in plans for one in plan.functions],
            tables=[one for plan in plans for one in plan.tables],
            buckets=[one for plan in plans for one in plan.buckets],
            machines=[one for plan in plans for one in plan.machines],
            secrets=[one for plan in plans for one in plan.secrets],
            queues=[one for plan in plans for one in plan.queues],
            topics=[one for plan in plans for one in plan.topics],
            subscriptions=[one for plan in plans for one in plan.subscriptions],
            apis=_one_of_each(one for plan in plans for one in plan.apis),
            deliveries=Deliveries(
                mappings=[one for plan in plans for one in plan.deliveries.mappings],
                rules=[one for plan in plans for one in plan.deliveries.rules],
                destinations={
                    arn: queue for plan in plans for arn, queue in plan.deliveries.destinations.items()
                },
            ),
            outputs=self.outputs,
            left_out=[one for plan in plans for one in plan.left_out],
        )

    def at(self, *, http: Sequence[str], aws: str) -> Plan:
        """
        The same, where what names an HTTP API or a queue by its address on AWS names it by these.

        Args:
            http: The address of each of `apis`. The first one stands for APIs that are not this plan's, too.
            aws: Where the queues are.
        """
        addresses = {api.name: address for api, address in zip(self.apis, http, strict=False)}

        def local(found: re.Match[str]) -> str:
            return addresses.get(found[1], http[0])

        def moved(values: Mapping[str, str]) -> dict[str, str]:
            return {key: _SQS_ON_AWS.sub(aws, _API_ON_AWS.sub(local, text)) for key, text in values.items()}

        functions = [
            replace(function, environment=moved(function.environment)) for function in self.functions
        ]
        return replace(self, functions=functions, outputs=moved(self.outputs))


def _one_of_each(apis: Iterable[ApiPlan]) -> list[ApiPlan]:
    """A stack may add routes to the API of another one."""
    routes: dict[str, list[RoutePlan]] = {}
    for api in apis:
        routes.setdefault(api.name, []).extend(api.routes)
    return [ApiPlan(name, found) for name, found in routes.items()]
