"""Empties a stack between two tests: nothing runs any more, and tables, queues and buckets hold nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from steponce.aws.errors import error_code
from steponce.local.stack import LocalStack
from steponce.local.template.plan import TablePlan

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

PATIENCE_SECONDS = 5.0
"""Functions that still run after this time are killed."""

_PAGE = 25
_KEYS = "ABC"


def clean(stack: LocalStack) -> None:
    """
    Empty a stack that was made with `controls=True`.

    Running executions are stopped and queues emptied, until nothing more has happened in between. Then
    tables and buckets are emptied. Secrets, the stack's time and the functions' warm processes stay.
    """
    before = None
    while True:
        _stop_executions(stack)
        stack.controls.empty_queues()
        begun = stack.controls.quiet(PATIENCE_SECONDS)
        if begun == before:
            break
        before = begun
    for table in stack.plan.tables:
        _empty_table(stack.boto3("dynamodb"), table)
    for bucket in stack.plan.buckets:
        _empty_bucket(stack.boto3("s3"), bucket.name)


def machine_arns(stack: LocalStack) -> Iterator[str]:
    """
    The stack's state machines. Here express ones have lists, too.

    On an embedded engine they are all that it has, also those that tests have made. Another server may have
    state machines of other stacks, so there they are those of the template.
    """
    planned = {machine.name for machine in stack.plan.machines}
    for page in stack.boto3("stepfunctions").get_paginator("list_state_machines").paginate():
        for one in page["stateMachines"]:
            if stack.has_embedded("states") or one["name"] in planned:
                yield one["stateMachineArn"]


def _stop_executions(stack: LocalStack) -> None:
    sfn = stack.boto3("stepfunctions")
    for machine in machine_arns(stack):
        pages = sfn.get_paginator("list_executions").paginate(stateMachineArn=machine, statusFilter="RUNNING")
        for execution in [one for page in pages for one in page["executions"]]:
            sfn.stop_execution(executionArn=execution["executionArn"], cause="The test is over.")


def _empty_table(dynamodb: DynamoDBClient, table: TablePlan) -> None:
    names = [key["AttributeName"] for key in table.arguments["KeySchema"]]
    placeholders = {f"#{_KEYS[place]}": name for place, name in enumerate(names)}
    pages = dynamodb.get_paginator("scan").paginate(
        TableName=table.name,
        ConsistentRead=True,
        ProjectionExpression=", ".join(placeholders),
        ExpressionAttributeNames=placeholders,
    )
    try:
        keys = [dict(item) for page in pages for item in page["Items"]]
    except dynamodb.exceptions.ResourceNotFoundException:  # the test has deleted it
        return
    for start in range(0, len(keys), _PAGE):
        wanted: Mapping[str, Any] = {
            table.name: [{"DeleteRequest": {"Key": key}} for key in keys[start : start + _PAGE]]
        }
        while wanted:
            wanted = dynamodb.batch_write_item(RequestItems=wanted)["UnprocessedItems"]


def _empty_bucket(s3: Any, name: str) -> None:
    try:
        for page in s3.get_paginator("list_object_versions").paginate(Bucket=name):
            for one in [*page.get("Versions", []), *page.get("DeleteMarkers", [])]:
                s3.delete_object(Bucket=name, Key=one["Key"], VersionId=one["VersionId"])
    except ClientError as error:
        if error_code(error) != "NoSuchBucket":
            raise
