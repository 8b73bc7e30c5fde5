"""Rules for the lock records of a machine that takes locks."""

from __future__ import annotations

import re

from steponce.lint import protocol
from steponce.lint.asl import as_object
from steponce.lint.findings import Complaint, Complaints
from steponce.lint.machine import Machine, State
from steponce.lint.protocol import (
    ACQUIRE_LOCK,
    COMPLETE_REQUEST,
    TAKE_OVER_LOCK,
    condition,
    counting_writes,
    lock_writes,
    values,
)
from steponce.lint.rule import Rules

RUN_ONCE_WRITES = Rules("run-once")


@RUN_ONCE_WRITES.rule("fenced-write", "error")
def fenced_write(machine: Machine) -> Complaints:
    """
    A state writes to a lock record without proof that the lock is its own.

    An execution that lost its lock would overwrite the new owner's record. Every write but the first has a
    condition that begins with `callId = :callId AND lockedBy = :execution AND`, with `$.callId` and
    `$$.Execution.Id`. `AcquireLock` and `TakeOverLock` have the conditions of the shipped workflow.
    [Concepts](concepts.md) says why.
    """
    for state in lock_writes(machine):
        right = {ACQUIRE_LOCK: protocol.ACQUIRE, TAKE_OVER_LOCK: protocol.TAKE_OVER}.get(state.name)
        given = condition(state)
        fenced = given.startswith(protocol.FENCE) and " OR " not in _outside_parentheses(given)
        if right is None and not fenced:
            text = f"its write is not fenced. Begin its condition with {protocol.FENCE.strip()}."
            yield Complaint(state.name, text)
        if right is not None and given != right:
            yield Complaint(
                state.name, "its condition is not the protocol's. Take it from the shipped workflow."
            )
        wanted = {":callId": {"S.$": "$.callId"}, ":execution": {"S.$": "$$.Execution.Id"}}
        if state.name == TAKE_OVER_LOCK:
            wanted[":deadCallId"] = {"S.$": "$.lock.Item.callId.S"}
            wanted[":deadExecution"] = {"S.$": "$.lock.Item.lockedBy.S"}
            wanted[":attempt"] = protocol.NEXT_ATTEMPT
        for name, value in wanted.items():
            if values(state).get(name) != value:
                yield Complaint(state.name, f"{name} must be {value}.")


@RUN_ONCE_WRITES.rule("repeatable-outcome", "error")
def repeatable_outcome(machine: Machine) -> Complaints:
    """
    A state cannot repeat the write of its outcome.

    If the answer to a write is lost, the same execution writes again, and that write must succeed. So the
    condition accepts a lock in progress, or the same outcome.
    """
    for state in lock_writes(machine):
        if state.name in (ACQUIRE_LOCK, TAKE_OVER_LOCK):
            continue
        brought = "#result = :result" if state.name == COMPLETE_REQUEST else "failure = :failure"
        repeated = f"(#status = :inprogress OR (#status = :new AND {brought}))"
        if not condition(state).endswith(repeated):
            yield Complaint(state.name, f"it cannot repeat its write. End its condition with {repeated}.")
        if "SET #status = :new," not in _update(state):
            yield Complaint(state.name, "it does not SET #status = :new, which its condition allows for.")


@RUN_ONCE_WRITES.rule("open-record", "error")
def open_record(machine: Machine) -> Complaints:
    """
    A lock record has both `openStatus` and `ttl`, or neither.

    DynamoDB deletes what has a `ttl`. What has an `openStatus` waits to be settled. So a record has one of
    the two, and `openStatus` says the record's status.
    """
    for state in lock_writes(machine):
        sets, _, removes = _update(state).partition(" REMOVE ")
        is_open, expires = "openStatus =" in sets, "#ttl =" in sets
        if is_open == expires:
            yield Complaint(state.name, "it must set either openStatus or #ttl, and not both.")
        if expires and "openStatus" not in removes:
            yield Complaint(state.name, "it finishes the record and must REMOVE openStatus.")
        if state.name in (ACQUIRE_LOCK, TAKE_OVER_LOCK) and "#ttl" not in removes:
            yield Complaint(state.name, "it opens a record, which may have expired, and must REMOVE #ttl.")
        status = as_object(values(state).get(":new", values(state).get(":inprogress"))).get("S")
        if is_open and f"'{status}#{{}}'" not in str(as_object(values(state).get(":open")).get("S.$", "")):
            yield Complaint(state.name, f"openStatus must begin with {status}#, as the status does.")


@RUN_ONCE_WRITES.rule("count-once", "error")
def count_once(machine: Machine) -> Complaints:
    """
    A state may count the same request twice against a rate limit.

    A duplicate, or a try whose answer was lost, must neither count again nor be refused. So the counter is a
    set, and the condition accepts a request that is already in it.
    """
    for state in counting_writes(machine):
        if condition(state) != protocol.COUNT:
            yield Complaint(
                state.name, "its condition is not the protocol's. Take it from the shipped workflow."
            )
        if not _update(state).startswith("ADD members :members SET "):
            yield Complaint(state.name, "it must count by a set: ADD members :members.")
        member, members = (as_object(values(state).get(name)) for name in (":member", ":members"))
        if members.get("SS.$") != f"States.Array({member.get('S.$')})":
            yield Complaint(state.name, ":members must be the array of :member.")
        if as_object(state.arguments.get("Key")).get("member") != protocol.COUNTED_BY:
            yield Complaint(state.name, f"member in its Key must be {protocol.COUNTED_BY}.")


def _update(state: State) -> str:
    return str(state.arguments.get("UpdateExpression", ""))


def _outside_parentheses(text: str) -> str:
    while (shorter := re.sub(r"\([^()]*\)", "", text)) != text:
        text = shorter
    return text
