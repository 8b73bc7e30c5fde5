"""Faults to plant in the workflow, one at a time, with the rule of `steponce lint` that finds each."""

from __future__ import annotations

from typing import Any

from .documents import GONE, instead, without

RESULT_IS_THERE = {"Variable": "$.lock.Item.result.S", "IsPresent": True}
IS_RELEASED = {"Variable": "$.lock.Item.status.S", "StringEquals": "RELEASED", "Next": "IsTriedBefore"}
PARALLEL = {
    "Type": "Parallel",
    "Branches": [{"StartAt": "AcquireLock", "States": {"AcquireLock": {"Type": "Succeed"}}}],
    "Next": "CompleteRequest",
}

FAULTS: list[tuple[str, dict[str, Any]]] = [
    ("token-not-passed", {"States/AwaitConfirmation/Parameters/Payload/taskToken.$": GONE}),
    ("heartbeat-unheard", {"States/CheckOwner/HeartbeatSeconds": 10}),
    (
        "count-once",
        {
            "States/CountRequest/Parameters/ConditionExpression": instead(
                "contains(members, :member) OR (", "NOT contains(members, :member) AND ("
            )
        },
    ),
    (
        "count-once",
        {"States/CountRequest/Parameters/ConditionExpression": instead("< :limit", "<= :limit")},
    ),
    (
        "count-once",
        {"States/CountRequest/Parameters/UpdateExpression": instead("ADD members", "SET members")},
    ),
    (
        "count-once",
        {
            "States/CountRequest/Parameters/ExpressionAttributeValues/:members": {
                "SS.$": "States.Array($.callId)"
            }
        },
    ),
    (
        "count-once",
        {"States/CountRequest/Parameters/Key/member": {"S.$": "$.limit.member"}},
    ),
    ("fenced-write", {"States/RecordError/Parameters/ConditionExpression": GONE}),
    (
        "fenced-write",
        {
            "States/CompleteRequest/Parameters/ConditionExpression": instead(
                "callId = :callId AND lockedBy = :execution AND", "lockedBy = :execution AND"
            )
        },
    ),
    (
        "fenced-write",
        {"States/CompleteRequest/Parameters/ConditionExpression": instead("AND (#status", "OR (#status")},
    ),
    (
        "fenced-write",
        {"States/AcquireLock/Parameters/ConditionExpression": instead("NOT callId = :callId AND ", "")},
    ),
    (
        "fenced-write",
        {
            "States/AcquireLock/Parameters/ConditionExpression": instead(
                "expiresAt < :now", ":now < expiresAt"
            )
        },
    ),
    (
        "fenced-write",
        {
            "States/TakeOverLock/Parameters/ConditionExpression": instead(
                "callId = :deadCallId AND lockedBy = :deadExecution", "lockedBy = :deadExecution"
            )
        },
    ),
    (
        "fenced-write",
        {"States/TakeOverLock/Parameters/ConditionExpression": instead(" OR leaseUntil < :now", "")},
    ),
    (
        "fenced-write",
        {"States/ReleaseLock/Parameters/ExpressionAttributeValues/:callId": {"S.$": "$.lockToken"}},
    ),
    (
        "fenced-write",
        {"States/ReleaseLock/Parameters/ExpressionAttributeValues/:execution": {"S.$": "$$.Execution.Name"}},
    ),
    (
        "fenced-write",
        {"States/TakeOverLock/Parameters/ExpressionAttributeValues/:deadCallId": {"S.$": "$.callId"}},
    ),
    (
        "fenced-write",
        {"States/TakeOverLock/Parameters/ExpressionAttributeValues/:attempt": {"N": "2"}},
    ),
    (
        "repeatable-outcome",
        {
            "States/CompleteRequest/Parameters/ConditionExpression": instead(
                "OR (#status = :new AND #result = :result)", "OR #status = :new"
            )
        },
    ),
    (
        "repeatable-outcome",
        {
            "States/RecordError/Parameters/UpdateExpression": instead(
                "#status = :new", "#status = :inprogress"
            )
        },
    ),
    (
        "open-record",
        {
            "States/RecordError/Parameters/UpdateExpression": instead(
                "openStatus = :open", "openStatus = :open, #ttl = :ttl"
            )
        },
    ),
    (
        "open-record",
        {"States/RecordFinalError/Parameters/UpdateExpression": instead(" REMOVE openStatus", "")},
    ),
    (
        "open-record",
        {"States/AcquireLock/Parameters/UpdateExpression": instead("REMOVE #ttl, ", "REMOVE ")},
    ),
    (
        "open-record",
        {"States/TakeOverLock/Parameters/UpdateExpression": instead("REMOVE #ttl, ", "REMOVE ")},
    ),
    (
        "open-record",
        {
            "States/CompleteRequest/Parameters/UpdateExpression": instead(
                ", #ttl = if_not_exists(#ttl, :ttl)", ""
            )
        },
    ),
    (
        "open-record",
        {
            "States/RecordError/Parameters/ExpressionAttributeValues/:open/S.$": instead(
                "FAILED", "INPROGRESS"
            )
        },
    ),
    (
        "complete-without-catch",
        {"States/CompleteRequest/Catch": [{"ErrorEquals": ["States.ALL"], "Next": "RecordError"}]},
    ),
    ("states-all-not-last", {"States/DoWork/Catch/0/ErrorEquals": ["States.ALL"]}),
    (
        "states-all-not-last",
        {"States/DoWork/Catch/3/ErrorEquals": ["States.ALL", "States.Timeout"]},
    ),
    (
        "states-all-not-last",
        {"States/ReadLock/Retry/1/ErrorEquals": ["States.Timeout", "States.ALL"]},
    ),
    ("data-limit-caught", {"States/DoWork/Catch/2": GONE}),
    ("retry-refused-write", {"States/AcquireLock/Retry/0": GONE}),
    ("retry-refused-write", {"States/AcquireLock/Retry/0/MaxAttempts": 1}),
    ("retry-refused-write", {"States/TakeOverLock/Retry": lambda retry: retry[::-1]}),
    ("retry-too-large", {"States/ReadLock/Retry/0": GONE}),
    ("retry-too-large", {"States/ReadLock/Retry/0/MaxAttempts": 1}),
    (
        "retry-too-large",
        {"States/CompleteRequest/Retry/0/ErrorEquals": without("States.DataLimitExceeded")},
    ),
    ("retry-too-large", {"States/RecordError/Retry": lambda retry: retry[::-1]}),
    (
        "work-retry",
        {"States/DoWork/Retry/0/ErrorEquals": ["States.TaskFailed"]},
    ),
    ("work-retry", {"States/DoWork/Retry": []}),
    (
        "work-retry",
        {"States/DoWork/Catch/0/ErrorEquals": without("Lambda.TooManyRequestsException")},
    ),
    (
        "path-not-marked",
        {
            "States/DoWork/Parameters/Payload/callId.$": GONE,
            "States/DoWork/Parameters/Payload/callId": "$.callId",
        },
    ),
    (
        "path-not-marked",
        {"States/RecordError/Parameters/ExpressionAttributeValues/:now": {"S": "$$.State.EnteredTime"}},
    ),
    (
        "path-not-marked",
        {"States/RecordError/Parameters/ExpressionAttributeValues/:open": {"S": "States.Format('FAILED')"}},
    ),
    (
        "invalid-definition",
        {"States/CompleteRequest/Parameters/ExpressionAttributeValues/:new": {"S.$": "X"}},
    ),
    ("path-not-marked", {"States/ConfirmTakeover/ResultSelector": {"verdict": "$.Payload.verdict"}}),
    ("api-parameters", {"States/ReadLock/Parameters/ConsistentReed": True}),
    ("api-parameters", {"States/ReadLock/Parameters/ConsistentRead": "yes"}),
    ("api-parameters", {"States/ReadLock/Parameters/TableName": GONE}),
    ("api-parameters", {"States/DoWork/Parameters/Function.$": "$.callId"}),
    ("api-parameters", {"States/DoWork/Parameters/payload": {}}),
    ("api-parameters", {"States/AcquireLock/Parameters/ReturnValues": "UPDATED"}),
    (
        "api-parameters",
        {"States/AcquireLock/Parameters/ExpressionAttributeValues/:one": {"N": 1}},
    ),
    (
        "api-parameters",
        {"States/AcquireLock/Parameters/ExpressionAttributeValues/:open": {"T.$": "$.shard"}},
    ),
    ("api-parameters", {"States/ReadLock/Resource": instead("getItem", "readItem")}),
    (
        "placeholder-mismatch",
        {"States/RecordError/Parameters/ExpressionAttributeNames": {"#state": "status"}},
    ),
    (
        "placeholder-mismatch",
        {"States/RecordError/Parameters/ExpressionAttributeValues/:now": GONE},
    ),
    (
        "placeholder-mismatch",
        {"States/RecordError/Parameters/ExpressionAttributeValues/:ttl": {"N.$": "$.ttl"}},
    ),
    ("duplicate-name", {"States/DoWork": PARALLEL}),
    ("unreachable-state", {"States/DoWork/Next": "CompleteRequests"}),
    ("unreachable-state", {"States/DoWork/Catch/0/Next": "RecordError"}),
    ("unreachable-state", {"States/IsLockHeld/Choices/3/Next": "IsTriedBefore"}),
    ("unreachable-state", {"States/AskBank": {"Type": "Succeed"}}),
    ("unproven-path", {"States/IsLockHeld/Choices/1/Or/0": GONE}),
    ("unproven-path", {"States/IsLockHeld/Choices/1/Or/3": GONE}),
    ("unproven-path", {"States/IsLockHeld/Choices/1/Next": "IsOwnerAlive"}),
    ("unproven-path", {"States/IsLockHeld/Choices/0": IS_RELEASED}),
    ("unproven-path", {"States/IsLockHeld/Choices/5/And/2": GONE}),
    ("unproven-path", {"States/IsLockHeld/Choices/5/And": lambda tests: tests[::-1]}),
    ("unproven-path", {"States/IsLockHeld/Choices/8/And/1": GONE}),
    (
        "unproven-path",
        {"States/IsLockHeld/Choices/8": {"Not": RESULT_IS_THERE, "Next": "ReplayResult"}},
    ),
    ("unproven-path", {"States/IsLockHeld/Choices/9/And/1": GONE}),
    ("unproven-path", {"States/IsPowertoolsRecord/Choices/0/Or/4": GONE}),
    ("unproven-path", {"States/IsPowertoolsRecord/Choices/2/And/1": GONE}),
    ("unproven-path", {"States/IsTriedBefore/Choices/0": GONE}),
    ("unproven-path", {"States/IsErrorNamed/Choices/0/And/0": GONE}),
    ("unproven-path", {"States/IsErrorNamed/Choices/0/And/3": GONE}),
    ("unproven-path", {"States/IsErrorNamed/Default": "RequestFailed"}),
    ("unproven-path", {"States/IsRequestPrepared/Choices/0/And/6": GONE}),
    ("unproven-path", {"States/IsRequestPrepared/Default": "AcquireLock"}),
    ("unproven-path", {"States/PrepareRequest/OutputPath": GONE}),
    ("unproven-path", {"States/AcquireLock/ResultPath": "$.hold"}),
    ("unproven-path", {"States/AcquireLock/Parameters/ReturnValues": GONE}),
    ("unproven-path", {"States/AcquireLock/Catch/0/ResultPath": GONE}),
    ("unproven-path", {"States/DoWork/ResultSelector": {"answer.$": "$.Payload"}}),
    ("unproven-path", {"States/DoWork/TimeoutSecondsPath": "$.held.timeoutSeconds"}),
    ("unproven-path", {"States/DoWork/Catch/0/ResultPath": GONE}),
    ("unproven-path", {"States/DoWork/Catch/3/ResultPath": "$.error"}),
    ("unproven-path", {"States/CompleteRequest/OutputPath": "$.work.answer"}),
    ("unproven-path", {"States/CheckOwner/ResultSelector/verdict.$": "$.Payload.outcome"}),
    ("unproven-path", {"States/CheckOwner/ResultSelector/redriveCount.$": GONE}),
    ("unproven-path", {"States/HoldLock/ResultPath": "$"}),
    ("before-work", {"States/CompleteRequest/Next": "TakeOverLock"}),
    ("work-retry", {"States/DoWork/Catch/0/ErrorEquals": ["States.Timeout"]}),
    ("release-after-effects", {"States/DoWork/Catch/0/ErrorEquals": ["States.Timeout"]}),
    ("release-after-effects", {"States/DoWork/Catch/3/Next": "ReleaseLock"}),
    ("release-after-effects", {"States/AwaitConfirmation/Catch/2/Next": "ReleaseLock"}),
    ("release-after-effects", {"States/IsConfirmationWanted/Default": "ReleaseLock"}),
    ("skipped-completion", {"States/DoWork/Next": GONE, "States/DoWork/End": True}),
    ("skipped-completion", {"States/IsConfirmationWanted/Default": "ReplayResult"}),
    ("skipped-completion", {"States/AcquireLock/Next": "ReplayResult"}),
    (
        "before-work",
        {
            "States/ConfirmTakeover/Parameters/FunctionName": "work",
            "States/DoWork/Parameters/FunctionName": "work",
        },
    ),
]
