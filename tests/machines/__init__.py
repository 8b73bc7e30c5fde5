"""
Twenty-odd state machines as people have them, to be wrapped.

Shapes that AWS's samples and guides show, written anew and small: an order, a saga, a poller, an approval,
and what the states language allows beside. Each effect is one more in a counter of the execution's id, so
that a second run of it would be seen. Placeholders: `EffectsTable`, `FailFunctionArn` and `Partition`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Machine = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """
    A machine, and what to give it.

    Args:
        name: What it is.
        definition: Amazon States Language.
        inputs: Executions to compare; each gets an `id` beside.
        effects: How many effects each of them has.
        form: How it is wrapped.
        usual: Whether `make test` runs it.
        answers: What is sent to a task token, for each input: an output, or an error's name.
        runs: Whether the embedded engine runs it.
    """

    name: str
    definition: Machine
    inputs: list[dict[str, Any]]
    effects: list[int]
    form: str = "inline"
    usual: bool = False
    answers: list[Any] = field(default_factory=list)
    runs: bool = True


def machine(states: dict[str, Any], **fields: Any) -> Machine:
    """A machine that starts with the first of its states."""
    return {"StartAt": next(iter(states)), "States": states, **fields}


def effect(what: str, **others: Any) -> dict[str, Any]:
    """A Task that counts one effect more, and passes its input on."""
    return {
        "Type": "Task",
        "Resource": "arn:${Partition}:states:::dynamodb:updateItem",
        "TimeoutSeconds": 10,
        "Parameters": {
            "TableName": "${EffectsTable}",
            "Key": {"lockToken": {"S.$": "$$.Execution.Input.id"}, "callAndTry": {"S": what}},
            "UpdateExpression": "ADD effects :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
        },
        "ResultPath": None,
        **({} if "Next" in others else {"End": True}),
        **others,
    }


def fails_with(card: str, **others: Any) -> dict[str, Any]:
    """A Task whose function raises an error: RetryLater for `tok_unreachable`, another for `tok_bug`."""
    return {
        "Type": "Task",
        "Resource": "arn:${Partition}:states:::lambda:invoke",
        "TimeoutSeconds": 30,
        "Parameters": {
            "FunctionName": "${FailFunctionArn}",
            "Payload": {"payload": {"card": card}, "attempt": 1},
        },
        **({} if "Next" in others else {"End": True}),
        **others,
    }


def passes(result: Any = None, **others: Any) -> dict[str, Any]:
    """A Pass, with a result if there is one."""
    given = {} if result is None else {"Result": result}
    return {"Type": "Pass", **given, **({} if "Next" in others else {"End": True}), **others}
