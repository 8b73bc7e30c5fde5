"""The lock's protocol as it appears in a definition: conditions, and the functions' answers by state."""

from __future__ import annotations

from steponce.limits.record import COUNTER
from steponce.lint.asl import as_object
from steponce.lint.facts import Facts, there
from steponce.lint.machine import Body, Machine, State
from steponce.workflow import RELEASING

WORK = "DoWork"
ACQUIRE_LOCK = "AcquireLock"
TAKE_OVER_LOCK = "TakeOverLock"
COMPLETE_REQUEST = "CompleteRequest"
RELEASE_LOCK = "ReleaseLock"

ACQUIRE = (
    "attribute_not_exists(lockToken)"
    " OR (NOT callId = :callId"
    " AND (#status = :released"
    " OR (#status IN (:completed, :failed) AND attribute_exists(#ttl) AND expiresAt < :now)))"
)
TAKE_OVER = (
    "#status = :inprogress AND"
    " ((callId = :deadCallId AND lockedBy = :deadExecution AND attempt = :deadAttempt"
    " AND (attribute_not_exists(leaseUntil) OR leaseUntil < :now))"
    " OR (callId = :callId AND lockedBy = :execution AND attempt = :attempt))"
)
COUNT = (
    "contains(members, :member)"
    " OR (attribute_not_exists(#count)"
    " AND (attribute_not_exists(members) OR size(members) < :limit))"
    " OR size(members) < allowance"
)
FENCE = "callId = :callId AND lockedBy = :execution AND "
NEXT_ATTEMPT = {"N.$": "States.Format('{}', States.MathAdd(States.StringToJson($.lock.Item.attempt.N), 1))"}
COUNTED_BY = {"S": COUNTER}

SAFE = RELEASING
"""Errors of the work that prove that it has not run."""

BEFORE_EFFECT = {
    *("DynamoDB.ConditionalCheckFailedException", "DynamoDb.ConditionalCheckFailedException"),
    *("DynamoDb.TransactionCanceledException", "StepFunctions.StateMachineDoesNotExistException"),
}
"""Errors of other calls that prove the same: AWS refused the call, so it had no effect."""

ENVELOPE = (
    *("requestId", "lockToken", "payload", "payloadHash", "requestedAt", "expectedCompletion", "expiresAt"),
    *("ttl", "shard", "callId", "redelivery", "limit"),
)
VERDICT = ("verdict", "redriveCount")

ANSWERS = {"PrepareRequest": ENVELOPE, "CheckOwner": VERDICT, "ConfirmTakeover": VERDICT}
"""What this package's functions answer with, by the state that calls them: limit only where it is read."""

_LIMIT = ("key", "who", "windowStart", "member", "ttl", "resetsAt")
TOGETHER: dict[tuple[str, ...], Facts] = {
    ("tries",): there(("tries", "count")),
    ("limit",): there(*(("limit", name) for name in _LIMIT)),
}
"""Fields that are written together: if one is there, all are."""


def takes_lock(machine: Machine) -> bool:
    """Whether a machine takes a lock of this package, so that it must keep the protocol."""
    return any(True for _ in lock_writes(machine))


def states_of_work(machine: Machine) -> set[str]:
    """The names of the states inside the work, without those that a state around it has."""
    inner = machine.inside(machine.states[WORK]) if WORK in machine.states else []
    return {state.name for part in inner for state in part.all_states()} - machine.states.keys()


def lock_writes(machine: Machine) -> list[State]:
    """Every Task that writes lock records."""
    found = [state for state in _writes(machine) if "lockToken" in _key(state)]
    tables = {str(state.arguments.get("TableName")) for state in found}
    return [
        state
        for state in _writes(machine)
        if state in found or str(state.arguments.get("TableName")) in tables
    ]


def counting_writes(machine: Machine) -> list[State]:
    """Every Task that counts requests."""
    return [state for state in _writes(machine) if "limitKey" in _key(state)]


def condition(state: State) -> str:
    """The condition of a write, with single blanks."""
    return " ".join(str(state.arguments.get("ConditionExpression", "")).split())


def values(state: State) -> Body:
    """The values of a write's expressions."""
    return as_object(state.arguments.get("ExpressionAttributeValues"))


def _writes(machine: Machine) -> list[State]:
    """The states of the workflow itself. Those inside a Parallel or a Map belong to the work."""
    names = ("dynamodb:putItem", "dynamodb:updateItem", "dynamodb:deleteItem")
    return [state for state in machine.states.values() if state.call is not None and state.call.does(*names)]


def _key(state: State) -> Body:
    key = as_object(state.arguments.get("Key"))
    return key or as_object(state.arguments.get("Item"))
