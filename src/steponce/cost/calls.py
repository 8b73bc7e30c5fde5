"""
What the call of one Task uses, by its Resource.

Sources: DynamoDB developer guide, read and write request units; the pricing pages of each service. SQS, SNS
and EventBridge bill each 64 KB of a message or an event; one of them is assumed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from steponce.cost.usage import Usage
from steponce.lint.asl import as_object
from steponce.lint.calls import Call

KB_PER_WRITE = 1
KB_PER_READ = 4

Arguments = Mapping[str, Any]


def usage_of_call(name: str, state: Mapping[str, Any], item_kb: float) -> Usage:
    """
    What the call of a Task uses, without its transition and without retries.

    Args:
        name: The state's name.
        state: The Task.
        item_kb: The size of each item of DynamoDB in KB.

    Returns:
        The usage. A call without a known price is in its `not_priced`.
    """
    resource = state.get("Resource")
    call = Call.of(resource)
    if call is None or call.integration == "other":
        return Usage(not_priced=((name, str(resource or "no Resource")),))
    if call.integration == "activity":
        return Usage()  # workers ask for activities; beside the transition they cost nothing
    count = _COUNTS.get(f"{call.service}:{call.action}")
    arguments = state.get("Parameters", state.get("Arguments"))
    usage = count(arguments if isinstance(arguments, dict) else {}, item_kb) if count else None
    return Usage(not_priced=((name, str(call)),)) if usage is None else usage


def _write(_arguments: Arguments, item_kb: float) -> Usage:
    return Usage(writes=_units(item_kb, KB_PER_WRITE))


def _read(arguments: Arguments, item_kb: float) -> Usage:
    # A value that is known at run time only counts as a consistent read, which is the dearer one.
    dynamic = "ConsistentRead.$" in arguments or isinstance(arguments.get("ConsistentRead"), str)
    consistent = dynamic or arguments.get("ConsistentRead") is True
    return Usage(reads=_units(item_kb, KB_PER_READ) * (1 if consistent else 0.5))


def _write_transaction(arguments: Arguments, item_kb: float) -> Usage | None:
    items = arguments.get("TransactItems")  # condition checks are billed as writes, too
    return Usage(writes=2 * len(items) * _units(item_kb, KB_PER_WRITE)) if isinstance(items, list) else None


def _read_transaction(arguments: Arguments, item_kb: float) -> Usage | None:
    items = arguments.get("TransactItems")
    return Usage(reads=2 * len(items) * _units(item_kb, KB_PER_READ)) if isinstance(items, list) else None


def _write_batch(arguments: Arguments, item_kb: float) -> Usage | None:
    tables = arguments.get("RequestItems")
    if not isinstance(tables, dict) or not all(isinstance(items, list) for items in tables.values()):
        return None
    return Usage(writes=sum(len(items) for items in tables.values()) * _units(item_kb, KB_PER_WRITE))


def _sqs(arguments: Arguments, _item_kb: float) -> Usage:
    return Usage(sqs_fifo_requests=1) if _is_fifo(arguments, "QueueUrl") else Usage(sqs_requests=1)


def _sns(arguments: Arguments, _item_kb: float) -> Usage | None:
    # A FIFO topic bills by message and by byte, and a telephone number by country.
    if _is_fifo(arguments, "TopicArn") or {"PhoneNumber", "PhoneNumber.$"} & set(arguments):
        return None
    return Usage(sns_publishes=1)


def _events(arguments: Arguments, _item_kb: float) -> Usage | None:
    entries = arguments.get("Entries")
    return Usage(events=len(entries)) if isinstance(entries, list) else None


def _is_fifo(arguments: Arguments, address: str) -> bool:
    entries = arguments.get("Entries")
    messages = [arguments, *map(as_object, entries if isinstance(entries, list) else ())]
    has_group = any({"MessageGroupId", "MessageGroupId.$"} & message.keys() for message in messages)
    return has_group or str(arguments.get(address, "")).endswith(".fifo")


def _units(item_kb: float, kb_per_unit: int) -> int:
    return max(1, math.ceil(item_kb / kb_per_unit))


_COUNTS: Mapping[str, Callable[[Arguments, float], Usage | None]] = {
    "lambda:invoke": lambda _arguments, _item_kb: Usage(lambda_calls=1),
    "dynamodb:putItem": _write,
    "dynamodb:updateItem": _write,
    "dynamodb:deleteItem": _write,
    "dynamodb:getItem": _read,
    "dynamodb:transactWriteItems": _write_transaction,
    "dynamodb:transactGetItems": _read_transaction,
    "dynamodb:batchWriteItem": _write_batch,
    "sqs:sendMessage": _sqs,
    "sqs:sendMessageBatch": _sqs,
    "sns:publish": _sns,
    "events:putEvents": _events,
    "s3:putObject": lambda _arguments, _item_kb: Usage(s3_puts=1),
    "s3:getObject": lambda _arguments, _item_kb: Usage(s3_gets=1),
}
"""A query or a scan is not among them: what it reads depends on what it finds."""
