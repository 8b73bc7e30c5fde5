"""Machines that cannot go inside a Parallel, so the workflow starts them."""

from __future__ import annotations

from tests.machines import Case, effect, machine, passes
from tests.machines.inline import ORDER

JSONATA = Case(
    "jsonata",
    machine(
        {
            "Double": {
                "Type": "Pass",
                "Output": "{% {'twice': $states.context.Execution.Input.amount * 2} %}",
                "End": True,
            }
        },
        QueryLanguage="JSONata",
    ),
    [{"amount": 4}],
    [0],
    form="around",
    runs=False,
)
DISTRIBUTED = Case(
    "distributed",
    machine(
        {
            "Items": {
                "Type": "Map",
                "ItemsPath": "$.items",
                "ItemProcessor": {
                    "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
                    "StartAt": "One",
                    "States": {"One": passes()},
                },
                "End": True,
            }
        }
    ),
    [{"items": [1, 2]}],
    [0],
    form="around",
)
CONTINUED = Case(
    "continued",
    machine(
        {
            "IsLast": {
                "Type": "Choice",
                "Choices": [{"Variable": "$.last", "BooleanEquals": True, "Next": "Last"}],
                "Default": "GoOn",
            },
            "Last": effect("last", OutputPath="$.last"),
            "GoOn": {
                "Type": "Task",
                "Resource": "arn:${Partition}:states:::states:startExecution",
                "Parameters": {
                    "StateMachineArn.$": "$$.StateMachine.Id",
                    "Input": {"last": True, "id.$": "$.id"},
                },
                "End": True,
            },
        }
    ),
    [{"last": True}],
    [1],
    form="around",
)
WHOLE = Case(
    "whole context",
    machine(
        {
            "Tell": {"Type": "Pass", "Parameters": {"all.$": "$$.Execution"}, "Next": "Done"},
            "Done": passes({"told": True}),
        }
    ),
    [{}],
    [0],
    form="around",
)
AS_IT_IS = Case("order, started", ORDER.definition, ORDER.inputs, ORDER.effects, form="around", usual=True)

AROUND = [JSONATA, DISTRIBUTED, CONTINUED, WHOLE, AS_IT_IS]
