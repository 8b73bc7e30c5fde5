"""Machines whose states go into the workflow."""

from __future__ import annotations

from typing import Any

from tests.machines import Case, effect, fails_with, machine, passes

PAID = {"Variable": "$.amount", "NumericGreaterThan": 0, "Next": "Charge"}
IS_DONE = {"Variable": "$.poll.count", "NumericGreaterThanEquals": 2, "Next": "Report"}
CATCH_ALL = {"ErrorEquals": ["States.ALL"], "ResultPath": "$.error"}


def branch(states: dict[str, Any]) -> dict[str, Any]:
    """A machine inside of another."""
    return {"StartAt": next(iter(states)), "States": states}


HELLO = Case(
    "hello",
    machine({"Hello": passes({"said": "hello"})}, Comment="The first one of every guide.", Version="1.0"),
    [{}],
    [0],
)
ORDER = Case(
    "order",
    machine(
        {
            "Reserve": effect("reserve", Next="IsPayable"),
            "IsPayable": {"Type": "Choice", "Choices": [PAID], "Default": "Refuse"},
            "Charge": effect("charge", Next="Ship"),
            "Ship": effect("ship", Next="Confirm"),
            "Confirm": {"Type": "Pass", "Parameters": {"paid.$": "$.amount"}, "End": True},
            "Refuse": {"Type": "Fail", "Error": "NotPayable", "Cause": "There is nothing to pay."},
        },
        TimeoutSeconds=3600,
    ),
    [{"amount": 5}, {"amount": 0}],
    [3, 1],
    usual=True,
)
SAGA = Case(
    "saga",
    machine(
        {
            "BookHotel": effect("book hotel", Next="BookFlight"),
            "BookFlight": fails_with(
                "tok_bug", Catch=[{**CATCH_ALL, "Next": "CancelHotel"}], ResultPath="$.flight", Next="Booked"
            ),
            "Booked": {"Type": "Succeed"},
            "CancelHotel": effect("cancel hotel", Next="NotBooked"),
            "NotBooked": {"Type": "Fail", "ErrorPath": "$.error.Error", "Cause": "The trip was cancelled."},
        }
    ),
    [{}],
    [2],
)
BESIDE = Case(
    "parallel",
    machine(
        {
            "Both": {
                "Type": "Parallel",
                "Branches": [
                    branch({"AskShop": effect("shop", Next="Shop"), "Shop": passes({"shop": 1})}),
                    branch({"AskBank": effect("bank", Next="Bank"), "Bank": passes({"bank": 2})}),
                ],
                "ResultSelector": {"all.$": "States.JsonMerge($[0], $[1], false)"},
                "ResultPath": "$.both",
                "OutputPath": "$.both.all",
                "End": True,
            }
        }
    ),
    [{}],
    [2],
)
EACH = Case(
    "map",
    machine(
        {
            "Items": {
                "Type": "Map",
                "ItemsPath": "$.items",
                "MaxConcurrency": 2,
                "ItemSelector": {"item.$": "$$.Map.Item.Value", "place.$": "$$.Map.Item.Index"},
                "ItemProcessor": {
                    "ProcessorConfig": {"Mode": "INLINE"},
                    **branch({"Pack": effect("pack", Next="Packed"), "Packed": passes(OutputPath="$.item")}),
                },
                "ResultPath": "$.packed",
                "Next": "Count",
            },
            "Count": {
                "Type": "Pass",
                "Parameters": {"count.$": "States.ArrayLength($.packed)", "packed.$": "$.packed"},
                "End": True,
            },
        }
    ),
    [{"items": ["a", "b", "c"]}, {"items": []}],
    [3, 0],
)
ITERATOR = Case(
    "iterator",
    machine(
        {
            "Items": {
                "Type": "Map",
                "Parameters": {"n.$": "$$.Map.Item.Value", "of.$": "$$.Execution.Input.items[0]"},
                "InputPath": "$$.Execution.Input.items",
                "Iterator": branch({"Add": {"Type": "Pass", "End": True}}),
                "End": True,
            }
        }
    ),
    [{"items": [1, 2]}],
    [0],
)
POLLER = Case(
    "poller",
    machine(
        {
            "Submit": effect("submit", Next="Begin"),
            "Begin": passes({"count": 0}, ResultPath="$.poll", Next="Rest"),
            "Rest": {"Type": "Wait", "Seconds": 0, "Next": "Ask"},
            "Ask": {
                "Type": "Pass",
                "Parameters": {"count.$": "States.MathAdd($.poll.count, 1)"},
                "ResultPath": "$.poll",
                "Next": "IsDone",
            },
            "IsDone": {"Type": "Choice", "Choices": [IS_DONE], "Default": "Rest"},
            "Report": {"Type": "Pass", "InputPath": "$.poll", "End": True},
        }
    ),
    [{}],
    [1],
)
AGAIN = Case(
    "retry",
    machine(
        {
            "Try": fails_with(
                "tok_bug",
                Retry=[{"ErrorEquals": ["ZeroDivisionError"], "IntervalSeconds": 1, "MaxAttempts": 1}],
                Catch=[{"ErrorEquals": ["States.TaskFailed"], "ResultPath": "$.why", "Next": "Instead"}],
            ),
            "Instead": {"Type": "Pass", "Parameters": {"why.$": "$.why.Error"}, "Next": "Done"},
            "Done": {"Type": "Succeed"},
        }
    ),
    [{}],
    [0],
)
APPROVAL = Case(
    "approval",
    machine(
        {
            "Ask": {
                "Type": "Task",
                "Resource": "arn:${Partition}:states:::aws-sdk:dynamodb:putItem.waitForTaskToken",
                "TimeoutSeconds": 600,
                "Parameters": {
                    "TableName": "${EffectsTable}",
                    "Item": {
                        "lockToken": {"S.$": "$$.Execution.Input.id"},
                        "callAndTry": {"S": "asked"},
                        "effects": {"N": "1"},
                        "token": {"S.$": "$$.Task.Token"},
                    },
                },
                "Catch": [{"ErrorEquals": ["Rejected"], "Next": "NotApproved"}],
                "ResultPath": "$.answer",
                "Next": "Approved",
            },
            "Approved": {"Type": "Succeed", "OutputPath": "$.answer"},
            "NotApproved": {"Type": "Fail", "Error": "NotApproved", "CausePath": "$.Cause"},
        }
    ),
    [{}, {}],
    [1, 1],
    usual=True,
    answers=[{"by": "ann"}, "Rejected"],
)
CONTEXT = Case(
    "context",
    machine(
        {
            "First": {
                "Type": "Pass",
                "Parameters": {
                    "whole.$": "$$.Execution.Input",
                    "amount.$": "$$.Execution.Input.amount",
                    "text.$": "States.Format('$$.Execution.Input is {}', $$.Execution.Input['amount'])",
                    "state.$": "$$.State.Name",
                    "literal": "$$.Execution.Input",
                },
                "ResultPath": "$.first",
                "Next": "IsEven",
            },
            "IsEven": {
                "Type": "Choice",
                "Choices": [
                    {
                        "And": [
                            {"Variable": "$$.Execution.Input.amount", "NumericGreaterThan": 0},
                            {"Variable": "$$.Execution.Input.amount", "NumericEqualsPath": "$.amount"},
                        ],
                        "Next": "Last",
                    }
                ],
                "Default": "Never",
            },
            "Last": {"Type": "Pass", "OutputPath": "$.first.text", "End": True},
            "Never": {"Type": "Fail"},
        }
    ),
    [{"amount": 4}, {"amount": 0}],
    [0, 0],
)
CLASH = Case(
    "clash",
    machine(
        {
            "AcquireLock": effect("lock", Next="DoWork"),
            "DoWork": {
                "Type": "Parallel",
                "Branches": [
                    branch({"ReleaseLock": passes(Next="NothingHappened"), "NothingHappened": passes()})
                ],
                "Next": "CompleteRequest",
            },
            "CompleteRequest": {
                "Type": "Pass",
                "Parameters": {"name.$": "$$.State.Name", "said.$": "States.Format('{}', $$.State.Name)"},
                "Next": "SayRetryLater",
            },
            "SayRetryLater": {"Type": "Succeed"},
        }
    ),
    [{}],
    [1],
    usual=True,
)
IS_BAD = {"Variable": "$.bad", "BooleanEquals": True, "Next": "Bad"}
PARTS = {
    "IsBad": {"Type": "Choice", "Choices": [IS_BAD], "Default": "Good"},
    "Bad": {"Type": "Fail", "Error": "BadPart", "Cause": "no"},
    "Good": effect("good", OutputPath="$.bad"),
}
NESTED = Case(
    "nested",
    machine(
        {
            "Orders": {
                "Type": "Map",
                "ItemsPath": "$.orders",
                "ItemProcessor": branch(
                    {"Parts": {"Type": "Parallel", "Branches": [branch(PARTS)], "End": True}}
                ),
                "MaxConcurrency": 1,
                "Catch": [{"ErrorEquals": ["BadPart"], "ResultPath": "$.bad", "Next": "Handle"}],
                "End": True,
            },
            "Handle": {"Type": "Pass", "InputPath": "$.bad", "End": True},
        }
    ),
    [{"orders": [{"bad": False}]}, {"orders": [{"bad": False}, {"bad": True}]}],
    [1, 1],
)
NAMELESS = Case("fail without a name", machine({"Stop": {"Type": "Fail"}}), [{}], [0])
ERROR_ONLY = Case("fail without a cause", machine({"Stop": {"Type": "Fail", "Error": "No"}}), [{}], [0])
UNREADABLE = Case(
    "absent path",
    machine(
        {
            "Do": effect("do", Next="Read"),
            "Read": {"Type": "Pass", "Parameters": {"x.$": "$.absent"}, "End": True},
        }
    ),
    [{}],
    [1],
)
FINAL = Case(
    "final error",
    machine(
        {"Do": effect("do", Next="Say"), "Say": {"Type": "Fail", "Error": "OutOfStock", "Cause": "gone"}}
    ),
    [{}],
    [1],
)
SHAPED = Case(
    "shaped",
    machine(
        {
            "Shape": {
                "Type": "Pass",
                "InputPath": "$.order",
                "Parameters": {
                    "pair.$": "States.Array($.a, $.b)",
                    "fixed": {"deep": [1, {"two.$": "$.b"}]},
                },
                "ResultPath": "$.shaped",
                "OutputPath": "$.shaped",
                "Next": "Drop",
            },
            "Drop": {"Type": "Pass", "ResultPath": None, "Next": "Done"},
            "Done": {"Type": "Succeed", "InputPath": "$.pair"},
        }
    ),
    [{"order": {"a": 1, "b": None}}],
    [0],
)
EMPTY = Case(
    "empty output",
    machine({"Forget": {"Type": "Pass", "OutputPath": None, "End": True}}),
    [{}],
    [0],
)
TEXT = Case(
    "text output",
    machine({"Say": {"Type": "Pass", "OutputPath": "$.said", "End": True}}),
    [{"said": "é'{}"}, {"said": None}],
    [0, 0],
)
LATER = Case(
    "retry later in the third state",
    machine(
        {
            "First": effect("first", Next="Second"),
            "Second": effect("second", Next="Third"),
            "Third": fails_with("tok_unreachable"),
        }
    ),
    [],
    [],
)
SOON = Case(
    "retry later in the first state",
    machine(
        {
            "Look": {"Type": "Pass", "Next": "First"},
            "First": fails_with("tok_unreachable", ResultPath=None, Next="Second"),
            "Second": effect("second"),
        }
    ),
    [],
    [],
)
ANSWERED = {
    "Wait": {**APPROVAL.definition["States"]["Ask"], "Next": "Fine"},
    "Fine": {"Type": "Succeed", "OutputPath": "$.answer"},
    "NotApproved": {"Type": "Fail", "Error": "NotApproved"},
}
TOKEN_MAP = Case(
    "approval in a map",
    machine(
        {
            "Each": {
                "Type": "Map",
                "ItemsPath": "$.items",
                "ItemProcessor": branch(ANSWERED),
                "ItemSelector": {"item.$": "$$.Map.Item.Value"},
                "End": True,
            }
        }
    ),
    [{"items": [1]}],
    [1],
    answers=["Rejected"],
)

INLINE = [
    HELLO,
    ORDER,
    SAGA,
    BESIDE,
    EACH,
    ITERATOR,
    POLLER,
    AGAIN,
    APPROVAL,
    CONTEXT,
    CLASH,
    NESTED,
    NAMELESS,
    ERROR_ONLY,
    UNREADABLE,
    FINAL,
    SHAPED,
    EMPTY,
    TEXT,
    LATER,
    SOON,
    TOKEN_MAP,
]
