"""What one call uses, by its Resource and its arguments."""

from __future__ import annotations

from typing import Any

import pytest

from steponce.cost.calls import usage_of_call
from steponce.cost.usage import Usage

ITEMS = {"TransactItems": [{"Update": {}}, {"ConditionCheck": {}}]}
BATCH = {"RequestItems": {"one": [{}, {}], "other": [{}]}}
FUNCTION = "arn:aws:lambda:eu-west-1:123456789012:function:check:live"
CALLS: list[tuple[str, dict[str, Any], Usage]] = [
    ("lambda:invoke", {}, Usage(lambda_calls=1)),
    ("lambda:invoke.waitForTaskToken", {}, Usage(lambda_calls=1)),
    ("aws-sdk:lambda:invoke", {}, Usage(lambda_calls=1)),
    ("dynamodb:putItem", {}, Usage(writes=1)),
    ("dynamodb:updateItem", {}, Usage(writes=1)),
    ("dynamodb:deleteItem", {}, Usage(writes=1)),
    ("aws-sdk:dynamodb:updateItem", {}, Usage(writes=1)),
    ("dynamodb:getItem", {}, Usage(reads=0.5)),
    ("dynamodb:getItem", {"ConsistentRead": False}, Usage(reads=0.5)),
    ("dynamodb:getItem", {"ConsistentRead": True}, Usage(reads=1)),
    ("dynamodb:getItem", {"ConsistentRead.$": "$.sure"}, Usage(reads=1)),
    ("aws-sdk:dynamodb:getItem", {"ConsistentRead": "{% $sure %}"}, Usage(reads=1)),
    ("aws-sdk:dynamodb:transactWriteItems", ITEMS, Usage(writes=4)),
    ("aws-sdk:dynamodb:transactGetItems", ITEMS, Usage(reads=4)),
    ("aws-sdk:dynamodb:batchWriteItem", BATCH, Usage(writes=3)),
    ("sqs:sendMessage", {"QueueUrl": "https://sqs/1/orders"}, Usage(sqs_requests=1)),
    ("sqs:sendMessage.waitForTaskToken", {"QueueUrl": "https://sqs/1/a.fifo"}, Usage(sqs_fifo_requests=1)),
    ("aws-sdk:sqs:sendMessage", {"MessageGroupId.$": "$.group"}, Usage(sqs_fifo_requests=1)),
    (
        "aws-sdk:sqs:sendMessageBatch",
        {"Entries": [{"Id": "a"}, {"Id": "b", "MessageGroupId": "g"}, 1]},
        Usage(sqs_fifo_requests=1),
    ),
    ("aws-sdk:sqs:sendMessageBatch", {"Entries.$": "$.entries"}, Usage(sqs_requests=1)),
    ("sns:publish", {"TopicArn": "arn:aws:sns:eu-west-1:1:orders"}, Usage(sns_publishes=1)),
    ("events:putEvents", {"Entries": [{}, {}]}, Usage(events=2)),
    ("aws-sdk:s3:putObject", {}, Usage(s3_puts=1)),
    ("aws-sdk:s3:getObject", {}, Usage(s3_gets=1)),
    ("activity:by-hand", {}, Usage()),
]
UNKNOWN: list[tuple[str, dict[str, Any]]] = [
    ("ecs:runTask.sync", {}),
    ("states:startExecution.sync:2", {}),
    ("aws-sdk:dynamodb:query", {}),
    ("aws-sdk:dynamodb:transactWriteItems", {"TransactItems.$": "$.items"}),
    ("aws-sdk:dynamodb:batchWriteItem", {"RequestItems": {"one.$": "$.items"}}),
    ("aws-sdk:dynamodb:batchWriteItem", {}),
    ("events:putEvents", {"Entries.$": "$.events"}),
    ("sns:publish", {"PhoneNumber.$": "$.telephone"}),
    ("sns:publish", {"TopicArn": "arn:aws:sns:eu-west-1:1:orders.fifo"}),
]


def task(call: str, arguments: dict[str, Any], key: str = "Parameters") -> dict[str, Any]:
    partition = "aws-cn" if key == "Arguments" else "${Partition}"
    return {"Type": "Task", "Resource": f"arn:{partition}:states:::{call}", key: arguments}


@pytest.mark.parametrize(("call", "arguments", "usage"), CALLS)
def test_a_known_call_is_counted(call: str, arguments: dict[str, Any], usage: Usage):
    """In both query languages."""
    assert usage == usage_of_call("A", task(call, arguments), item_kb=1)
    assert usage == usage_of_call("A", task(call, arguments, "Arguments"), item_kb=1)


@pytest.mark.parametrize(("call", "arguments"), UNKNOWN)
def test_an_unknown_call_is_named(call: str, arguments: dict[str, Any]):
    """It never counts as nothing."""
    assert Usage(not_priced=(("A", call),)) == usage_of_call("A", task(call, arguments), item_kb=1)


@pytest.mark.parametrize("partition", ["aws", "${AWS::Partition}", "${Partition}"])
def test_a_function_may_be_the_resource_itself(partition: str):
    """That is the older form."""
    resource = FUNCTION.replace("arn:aws:", f"arn:{partition}:")
    assert Usage(lambda_calls=1) == usage_of_call("A", {"Resource": resource}, item_kb=1)


@pytest.mark.parametrize("resource", ["${CheckFunctionArn}", "arn:aws:nonsense"])
def test_a_resource_that_says_no_service_is_named(resource: str):
    """A placeholder may be anything."""
    assert Usage(not_priced=(("A", resource),)) == usage_of_call("A", {"Resource": resource}, item_kb=1)


@pytest.mark.parametrize(
    ("item_kb", "writes", "reads"), [(0.2, 1, 1), (1, 1, 1), (1.1, 2, 1), (4, 4, 1), (4.5, 5, 2)]
)
def test_larger_items_need_more_units(item_kb: float, writes: int, reads: int):
    """A unit writes 1 KB and reads 4 KB."""
    read = task("dynamodb:getItem", {"ConsistentRead": True})
    transaction = task("aws-sdk:dynamodb:transactWriteItems", ITEMS)

    assert writes == usage_of_call("A", task("dynamodb:putItem", {}), item_kb).writes
    assert reads == usage_of_call("A", read, item_kb).reads
    assert 4 * writes == usage_of_call("A", transaction, item_kb).writes
