"""Twenty state machines after public shapes, all right; and faults to plant in ten of them, one at a time."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.rules.documents import GONE, spoilt

HERE = Path(__file__).parent / "machines"
RIGHT = sorted((HERE / "right").glob("*.asl.json"))
SPOILT = sorted((HERE / "planted").glob("*.asl.json"))


@dataclass(frozen=True)
class Fault:
    """One fault: the rule that finds it, the machine, what is wrong in words, and what is changed."""

    rule: str
    machine: str
    what: str
    changes: dict[str, Any]

    def planted(self) -> dict[str, Any]:
        """The machine with the fault."""
        broken: dict[str, Any] = spoilt(without(self.machine), self.changes)
        return broken


@cache
def without(machine: str) -> dict[str, Any]:
    """A machine that is right; do not change it."""
    content: dict[str, Any] = json.loads((HERE / "planted" / f"{machine}.asl.json").read_text())
    return content


def _retry(*errors: str, **fields: Any) -> list[dict[str, Any]]:
    return [{"ErrorEquals": list(errors), "IntervalSeconds": 1, "MaxAttempts": 3, "BackoffRate": 2, **fields}]


ASK = "States/AskProvider"
TAKE = "States/TakeOne"
IMPORT_ROW = "States/ForEachRow/Iterator/States/ImportRow"
ASK_SUPPLIER = "States/GetOffers/ItemProcessor/States/AskSupplier"
LATE = {"Type": "Wait", "Seconds": 60, "Next": "WaitForRenewal"}

FAULTS = [
    Fault(
        "invalid-definition",
        "subscription_renewal",
        "a Wait has two times",
        {"States/WaitForRenewal/Seconds": 60},
    ),
    Fault(
        "invalid-definition",
        "quote_in_jsonata",
        "a state in JSONata has Parameters",
        {"States/AcceptOffer/Parameters": {"a": 1}},
    ),
    Fault(
        "invalid-definition",
        "document_review",
        "a retrier has MaxAttempt for MaxAttempts",
        {"States/ExtractText/Retry": [{"ErrorEquals": ["Lambda.TooManyRequestsException"], "MaxAttempt": 2}]},
    ),
    Fault("missing-target", "image_pipeline", "Next is misspelt", {"States/ReadImage/Next": "ProcessImages"}),
    Fault(
        "unreachable-state",
        "document_review",
        "nothing leads to a state",
        {"States/Lost": {"Type": "Succeed"}},
    ),
    Fault(
        "duplicate-name",
        "image_pipeline",
        "two branches have a state of one name",
        {
            "States/ProcessImage/Branches/1": lambda _: without("image_pipeline")["States"]["ProcessImage"][
                "Branches"
            ][0]
        },
    ),
    Fault(
        "states-all-not-last",
        "batch_import",
        "States.ALL stands before another catcher",
        {"States/ForEachRow/Catch": lambda catchers: catchers[::-1]},
    ),
    Fault(
        "endless-loop",
        "subscription_renewal",
        "no rule leads out of the loop",
        {"States/IsCancelled/Choices/0/Next": "WaitForRenewal", "States/Ended": GONE},
    ),
    Fault(
        "choice-without-default",
        "document_review",
        "a Choice has no Default",
        {"States/IsScoreHigh/Default": GONE},
    ),
    Fault(
        "task-timeout",
        "payment_callback",
        "a callback has no time-out",
        {f"{ASK}/HeartbeatSecondsPath": GONE, f"{ASK}/TimeoutSecondsPath": GONE},
    ),
    Fault(
        "task-timeout",
        "document_review",
        "an activity has no time-out",
        {"States/ReviewByHand/TimeoutSeconds": GONE},
    ),
    Fault(
        "task-timeout",
        "customer_onboarding",
        "a job has no time-out",
        {"States/CheckIdentity/TimeoutSeconds": GONE},
    ),
    Fault(
        "heartbeat-timeout",
        "payment_callback",
        "a heartbeat is longer than its time-out",
        {"States/WaitForBooking/HeartbeatSeconds": 86_400},
    ),
    Fault(
        "heartbeat-timeout",
        "payment_callback",
        "both are read from one path",
        {f"{ASK}/TimeoutSecondsPath": "$.limits.heartbeat"},
    ),
    Fault(
        "heartbeat-timeout",
        "payment_callback",
        "a Pass state writes a heartbeat that is too long",
        {"States/SetLimits/Result/heartbeat": 3600},
    ),
    Fault(
        "heartbeat-unheard",
        "payment_callback",
        "a function has a heartbeat",
        {"States/SendReceipt/HeartbeatSeconds": 10},
    ),
    Fault(
        "token-not-passed",
        "payment_callback",
        "a callback keeps its token",
        {f"{ASK}/Parameters/MessageBody/token.$": GONE},
    ),
    Fault(
        "token-not-passed",
        "quote_in_jsonata",
        "a callback in JSONata keeps its token",
        {f"{ASK_SUPPLIER}/Arguments/MessageBody/token": GONE},
    ),
    Fault(
        "token-without-wait",
        "payment_callback",
        "a token is read where nothing waits",
        {f"{ASK}/Resource": "arn:aws:states:::sqs:sendMessage"},
    ),
    Fault(
        "shared-step",
        "quote_in_jsonata",
        "the items of a Map wait under one step name",
        {
            f"{ASK_SUPPLIER}/Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
            f"{ASK_SUPPLIER}/Arguments": {
                "FunctionName": "arn:aws:lambda:us-east-1:123456789012:function:RecordAwaitingStep",
                "Payload": {
                    "step": "offer",
                    "taskToken": "{% $states.context.Task.Token %}",
                    "callId": "{% $states.input.callId %}",
                },
            },
        },
    ),
    Fault(
        "error-name",
        "batch_import",
        "an error of Step Functions is misspelt",
        {"States/ForEachRow/Catch/0/ErrorEquals": ["States.TimedOut"]},
    ),
    Fault(
        "error-name",
        "batch_import",
        "States.Runtime is caught",
        {"States/ForEachRow/Catch/0/ErrorEquals": ["States.Runtime"]},
    ),
    Fault(
        "error-spelling",
        "stock_update",
        "the SDK's spelling at the optimized integration",
        {f"{TAKE}/Catch/0/ErrorEquals": ["DynamoDb.ConditionalCheckFailedException"]},
    ),
    Fault(
        "error-spelling",
        "order_events",
        "the optimized spelling at the SDK's integration",
        {"States/CountOrder/Catch/0/ErrorEquals": ["DynamoDB.ConditionalCheckFailedException"]},
    ),
    Fault(
        "error-spelling",
        "image_pipeline",
        "an error of Lambda is misspelt",
        {"States/ReadImage/Retry/0/ErrorEquals": ["Lambda.TooManyRequestException"]},
    ),
    Fault(
        "swallowed-failure",
        "batch_import",
        "a Catch of all errors leads to Succeed",
        {"States/ReadRows/Catch/0/Next": "Imported"},
    ),
    Fault(
        "retry-repeats-work",
        "image_pipeline",
        "a function is tried again after any error",
        {"States/ReadImage/Retry": _retry("States.ALL")},
    ),
    Fault(
        "retry-repeats-work",
        "image_pipeline",
        "a Parallel of functions is tried again",
        {"States/ProcessImage/Retry": _retry("States.TaskFailed")},
    ),
    Fault(
        "retry-repeats-work",
        "customer_onboarding",
        "an execution without a name is tried again",
        {
            "States/CheckIdentity/Retry": _retry("States.TaskFailed"),
            "States/CheckIdentity/Parameters/Name.$": GONE,
        },
    ),
    Fault(
        "retry-repeats-work",
        "customer_onboarding",
        "a message is sent again",
        {"States/SendWelcome/Retry": _retry("States.Timeout")},
    ),
    Fault(
        "retry-repeats-work",
        "order_events",
        "a number is added again",
        {
            "States/CountOrder/Retry": _retry("States.TaskFailed"),
            "States/CountOrder/Parameters/ConditionExpression": GONE,
            "States/CountOrder/Parameters/ExpressionAttributeValues/:id": GONE,
        },
    ),
    Fault(
        "retry-repeats-work",
        "partner_report",
        "a POST without a key is sent again",
        {"States/SendReport/Parameters/Headers": GONE},
    ),
    Fault(
        "retry-refused-write",
        "stock_update",
        "a refused write is tried again",
        {f"{TAKE}/Retry/0/ErrorEquals": ["States.DataLimitExceeded"]},
    ),
    Fault(
        "retry-too-large",
        "partner_report",
        "work is done again since its answer was too large",
        {"States/SendReport/Comment": GONE},
    ),
    Fault(
        "path-not-marked",
        "customer_onboarding",
        "a path is passed as text",
        {"States/SendWelcome/Parameters/MessageBody": {"accountId": "$.account.accountId"}},
    ),
    Fault(
        "path-not-marked",
        "partner_report",
        "a function's call is passed as text",
        {"States/SendReport/Parameters/Headers": {"Idempotency-Key": "States.UUID()"}},
    ),
    Fault(
        "unguarded-path",
        "stock_update",
        "an item is read that may not exist",
        {"States/IsInStock/Choices/0/And/0": GONE},
    ),
    Fault(
        "unguarded-path",
        "customer_onboarding",
        "a Catch has replaced the input",
        {"States/CheckIdentity/Catch/0/ResultPath": GONE},
    ),
    Fault(
        "unguarded-path",
        "customer_onboarding",
        "the answer is read outside of Payload",
        {"States/CreateAccount/ResultSelector/accountId.$": "$.accountId"},
    ),
    Fault(
        "unguarded-path",
        "stock_update",
        "what a rule asks for is read before it",
        {"States/IsInStock/Choices/0/And": lambda tests: tests[::-1]},
    ),
    Fault(
        "unguarded-path",
        "payment_callback",
        "a Pass state does not write what is read",
        {"States/SetLimits/Result/total": GONE},
    ),
    Fault(
        "inconsistent-read",
        "stock_update",
        "a read may be old",
        {"States/ReadStock/Parameters/ConsistentRead": GONE},
    ),
    Fault(
        "unconditional-write",
        "stock_update",
        "what was read is written without a condition",
        {
            f"{TAKE}/Parameters/ConditionExpression": GONE,
            f"{TAKE}/Parameters/ExpressionAttributeValues/:seen": GONE,
        },
    ),
    Fault(
        "placeholder-mismatch",
        "stock_update",
        "a value is not defined",
        {f"{TAKE}/Parameters/ExpressionAttributeValues/:next": GONE},
    ),
    Fault(
        "placeholder-mismatch",
        "stock_update",
        "a name is not used",
        {f"{TAKE}/Parameters/ExpressionAttributeNames/#status": "status"},
    ),
    Fault(
        "api-parameters",
        "stock_update",
        "a parameter is misspelt",
        {f"{TAKE}/Parameters/TableNam": "stock", f"{TAKE}/Parameters/TableName": GONE},
    ),
    Fault(
        "api-parameters",
        "order_events",
        "a number is not text",
        {"States/CountOrder/Parameters/ExpressionAttributeValues/:one": {"N": 1}},
    ),
    Fault(
        "api-parameters",
        "order_events",
        "an action does not exist",
        {"States/TellWarehouse/Resource": "arn:aws:states:::sns:publishMessage"},
    ),
    Fault(
        "bad-ignore",
        "partner_report",
        "an ignore has no reason",
        {"States/SendReport/Comment": "lint: ignore retry-too-large"},
    ),
    Fault(
        "bad-ignore",
        "partner_report",
        "an ignore names no rule",
        {"Comment": "lint: ignore retry-to-large because the answer is a number"},
    ),
]
"""At least one for every general rule."""
