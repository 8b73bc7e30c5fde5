"""Rules for reads and writes of DynamoDB."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from steponce.lint.asl import reachable
from steponce.lint.findings import Complaint, Complaints
from steponce.lint.machine import Body, Machine, State
from steponce.lint.rule import Rules

TABLES = Rules("general")

_READS = ("dynamodb:getItem", "dynamodb:query", "dynamodb:scan")
_WRITES = ("dynamodb:putItem", "dynamodb:updateItem", "dynamodb:deleteItem")
_PLACEHOLDER = re.compile(r"[:#]\w+")
_EXPRESSIONS = (
    *("ConditionExpression", "FilterExpression", "KeyConditionExpression", "ProjectionExpression"),
    "UpdateExpression",
)
_DEFINING = ("ExpressionAttributeNames", "ExpressionAttributeValues")


@TABLES.rule("inconsistent-read", "warning")
def inconsistent_read(machine: Machine) -> Complaints:
    """
    A state reads a table without `ConsistentRead`, and the machine writes to the same table.

    A read is eventually consistent by default: it "might not reflect the results of a recently completed
    write". Set `"ConsistentRead": true`. The rule does not apply to a global secondary index, which has no
    consistent reads, nor to a table that the machine only reads.

    Source: [Read consistency](https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.ReadConsistency.html).
    """
    written = {_table(state) for state in _calls(machine, _WRITES)}
    for state in _calls(machine, _READS):
        arguments = state.arguments
        consistent = arguments.get("ConsistentRead") not in (None, False) or "ConsistentRead.$" in arguments
        is_written = _table(state) is not None and _table(state) in written
        if not consistent and is_written and not {"IndexName", "IndexName.$"} & set(arguments):
            text = 'it may not see what the machine has just written. Set "ConsistentRead": true.'
            yield Complaint(state.name, text)


@TABLES.rule("unconditional-write", "warning")
def unconditional_write(machine: Machine) -> Complaints:
    """
    A state writes, without a condition, to a table that the machine has read before.

    Another execution may write between the read and the write, and its change is lost. Give the write a
    `ConditionExpression` that says what was read, for example a version or a status. The rule does not apply
    to a write that follows no read.

    Source: [Optimistic locking](https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/DynamoDBMapper.OptimisticLocking.html).
    """
    for one in machine.all():
        reads = [state for state in one.states.values() if _is(state, _READS)]
        for state in one.states.values():
            if not _is(state, _WRITES) or "ConditionExpression" in state.arguments:
                continue
            before = [
                read.name
                for read in reads
                if _table(read) == _table(state) is not None
                and state.name in reachable(one.graph, *read.ways_on)
            ]
            if before:
                text = (
                    f"it writes what {before[0]} has read, without a condition: another's write may be lost."
                )
                yield Complaint(state.name, f"{text} Give it a ConditionExpression.")


@TABLES.rule("placeholder-mismatch", "error", reads_paths=True)
def placeholder_mismatch(machine: Machine) -> Complaints:
    """
    An expression uses a placeholder that is not defined, or one is defined and not used.

    DynamoDB refuses both with a `ValidationException`, in each execution: "Value provided in
    ExpressionAttributeValues unused in expressions". Define what the expression uses, and no more.

    Source: [Expression attribute values](https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.ExpressionAttributeValues.html).
    """
    for state, call in machine.tasks():
        arguments = state.arguments
        if call.service != "dynamodb" or not all(
            isinstance(arguments.get(key, ""), str) for key in _EXPRESSIONS
        ):
            continue
        if any(key.startswith(("Expression", *_EXPRESSIONS)) and key.endswith(".$") for key in arguments):
            continue  # known at run time only
        if any(isinstance(arguments.get(key), str) for key in _DEFINING):
            continue  # the same in JSONata
        expressions = [arguments.get(key, "") for key in _EXPRESSIONS]
        defined = {name for key in _DEFINING for name in _names(arguments, key)}
        if any("${" in text for text in (*expressions, *defined)):
            continue  # known when the machine is created
        used = {name for expression in expressions for name in _PLACEHOLDER.findall(expression)}
        for name in sorted(used - defined):
            yield Complaint(
                state.name,
                f"{name} is used and not defined. Define it in ExpressionAttribute"
                f"{'Names' if name.startswith('#') else 'Values'}.",
            )
        for name in sorted(defined - used):
            yield Complaint(state.name, f"{name} is defined and not used. DynamoDB refuses that; remove it.")


def _names(arguments: Body, key: str) -> set[str]:
    value: Any = arguments.get(key)
    return {str(name).removesuffix(".$") for name in value} if isinstance(value, dict) else set()


def _calls(machine: Machine, names: tuple[str, ...]) -> Iterator[State]:
    return (state for state in machine.all_states() if _is(state, names))


def _is(state: State, names: tuple[str, ...]) -> bool:
    return state.call is not None and state.call.does(*names)


def _table(state: State) -> str | None:
    """The table's name, or the path to it; None if neither is there."""
    found = state.arguments.get("TableName", state.arguments.get("TableName.$"))
    return found if isinstance(found, str) else None
