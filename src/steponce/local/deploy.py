"""Making what a plan has on endpoints, and taking it away again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from steponce.local.errors import LocalStackError, not_supported
from steponce.local.template.physical_names import ACCOUNT, PARTITION
from steponce.local.template.plan import (
    BucketPlan,
    MachinePlan,
    Plan,
    QueuePlan,
    SubscriptionPlan,
    TablePlan,
    TopicPlan,
)

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_secretsmanager import SecretsManagerClient
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_stepfunctions import SFNClient

_ROLE = f"arn:{PARTITION}:iam::{ACCOUNT}:role/local"


class Deployment:
    """
    What is made: tables and state machines, which `undo` deletes; and secrets, buckets, queues and topics,
    which are embedded.

    Args:
        client: Answers the stack's client for a service.
    """

    def __init__(self, client: Callable[[str], Any]) -> None:
        self._client = client
        self._dynamodb: DynamoDBClient = client("dynamodb")
        self._states: SFNClient = client("stepfunctions")
        self._secrets: SecretsManagerClient = client("secretsmanager")
        self._undo: list[Callable[[], object]] = []

    def make(self, plan: Plan) -> None:
        """
        Make everything that the plan asks for.

        Raises:
            LocalStackError: a table or state machine is there already, or an endpoint refuses or does not
                answer.
        """
        with ThreadPoolExecutor(max_workers=4) as pool:
            tables = [pool.submit(self._make_table, table) for table in plan.tables]
            machines = [pool.submit(self._make_machine, machine) for machine in plan.machines]
            secrets = [pool.submit(self._make_secret, name) for name in plan.secrets]
            buckets = [pool.submit(self._make_bucket, bucket) for bucket in plan.buckets]
            messaging = pool.submit(self._make_messaging, plan)
            for made in [*tables, *machines, *secrets, *buckets, messaging]:
                made.result()

    def undo(self) -> None:
        """Delete what `make` made, as far as the endpoints still answer."""
        while self._undo:
            with contextlib.suppress(ClientError, BotoCoreError):
                self._undo.pop()()

    def _make_table(self, table: TablePlan) -> None:
        with _explained(f"table {table.name}"):
            try:
                self._dynamodb.create_table(**table.arguments)
            except self._dynamodb.exceptions.ResourceInUseException:
                raise _taken(f"Table {table.name}") from None
            self._undo.append(lambda: self._dynamodb.delete_table(TableName=table.name))
            waiter = self._dynamodb.get_waiter("table_exists")
            waiter.wait(TableName=table.name, WaiterConfig={"Delay": 1, "MaxAttempts": 30})
            if table.ttl_attribute:
                self._dynamodb.update_time_to_live(
                    TableName=table.name,
                    TimeToLiveSpecification={"Enabled": True, "AttributeName": table.ttl_attribute},
                )

    def _make_machine(self, machine: MachinePlan) -> None:
        with _explained(f"state machine {machine.name}"):
            if self._is_there(machine.name):  # a second one would be the same one, and `undo` would delete it
                raise _taken(f"State machine {machine.name}")
            try:
                made = self._states.create_state_machine(
                    name=machine.name,
                    definition=machine.definition,
                    roleArn=_ROLE,
                    type="EXPRESS" if machine.kind == "EXPRESS" else "STANDARD",
                )
            except self._states.exceptions.InvalidDefinition as error:  # what AWS refuses is found before
                raise LocalStackError(
                    not_supported(f"the definition of {machine.name}, of which the engine says: {error}")
                ) from error
            arn = made["stateMachineArn"]
            self._undo.append(lambda: self._states.delete_state_machine(stateMachineArn=arn))

    def _is_there(self, machine: str) -> bool:
        pages = self._states.get_paginator("list_state_machines").paginate()
        return any(machine == one["name"] for page in pages for one in page["stateMachines"])

    def _make_secret(self, name: str) -> None:
        with _explained(f"secret {name}"):
            self._secrets.create_secret(Name=name, SecretString=token_urlsafe(48))

    def _make_bucket(self, bucket: BucketPlan) -> None:
        with _explained(f"bucket {bucket.name}"):
            s3 = self._client("s3")
            region = s3.meta.region_name
            # S3's own default has no name.
            there = {} if region == "us-east-1" else {"LocationConstraint": region}
            s3.create_bucket(Bucket=bucket.name, **({"CreateBucketConfiguration": there} if there else {}))
            if bucket.has_versions:
                s3.put_bucket_versioning(Bucket=bucket.name, VersioningConfiguration={"Status": "Enabled"})

    def _make_messaging(self, plan: Plan) -> None:
        if plan.queues:  # a client takes 0.1 s to make
            with _explained("the queues"):
                _make_queues(self._client("sqs"), plan.queues)
        if plan.topics:
            with _explained("the topics"):
                _make_topics(self._client("sns"), plan.topics, plan.subscriptions)


def _make_queues(sqs: SQSClient, queues: Iterable[QueuePlan]) -> None:
    """Make them, in this order."""
    for queue in queues:
        sqs.create_queue(QueueName=queue.name, Attributes=queue.attributes)


def _make_topics(
    sns: SNSClient, topics: Iterable[TopicPlan], subscriptions: Iterable[SubscriptionPlan]
) -> None:
    """Make them, and subscribe the queues, which are there already."""
    for topic in topics:
        sns.create_topic(Name=topic.name, Attributes=topic.attributes)
    for item in subscriptions:
        sns.subscribe(
            TopicArn=item.topic_arn, Protocol="sqs", Endpoint=item.queue_arn, Attributes=item.attributes
        )


def _taken(what: str) -> LocalStackError:
    return LocalStackError(
        f"{what} is already there. Stop the stack that has made it, delete it, or give this one another name."
    )


@contextlib.contextmanager
def _explained(what: str) -> Iterator[None]:
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise LocalStackError(f"Could not make {what}: {error}") from error
