"""Finds lock records for an operator: the open ones, and one by its lock token or request id."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge

from steponce.aws.dynamodb import Skip
from steponce.errors import InvalidRequestId, LockNotFound, Refused
from steponce.locks.record import Lock
from steponce.next_step import NextStep
from steponce.request.envelope import check_lock_token
from steponce.request.machine import Machine
from steponce.request.names import name_of, shards_to_read


def open_locks(
    machine: Machine, *statuses: str, expected_until: str | None = None, skip: Skip | None = None
) -> Iterator[Lock]:
    """
    List the open index of all shards page by page, the longest overdue first.

    Args:
        machine: The machine with the lock table.
        statuses: INPROGRESS, FAILED or both.
        expected_until: The latest expectedCompletion to list (UTC text). None: all.
        skip: Is called with each unreadable record. If it is None, the first unreadable record raises.
    """
    shards = (
        machine.locks.open(status, shard, expected_until=expected_until, skip=skip)
        for status in statuses
        for shard in range(shards_to_read(machine.rules.open_shards))
    )
    return merge(*shards, key=lambda lock: lock.expected_completion)


def find_lock(machine: Machine, key: str, *, by_token: bool = False) -> Lock:
    """
    Find a record by its lock token, or by a request id of this machine.

    Args:
        machine: The machine with the lock table.
        key: A lock token, or a request id.
        by_token: Whether the key is a lock token, although it may be a request id, too.

    Raises:
        LockNotFound: there is none, or it has expired.
        Refused: it is the lock token of one record and the request id of another.
        Unavailable: no answer; safe to ask again.
    """
    found, by_id = machine.locks.get(key), None if by_token else lock_of_request(machine, key)
    if found is not None and by_id is not None and found.lock_token != by_id.lock_token:
        raise Refused(
            f"{key!r} is ambiguous: it is the lock token of request {found.request_id!r}, and also a "
            f"request with the lock token {by_id.lock_token!r}. Name one of these two by its lock token.",
            next_steps=[NextStep("inspect lock", one.lock_token) for one in (found, by_id)],
        )
    lock = found or by_id
    if lock is None:
        raise LockNotFound(
            f"There is no lock record {key!r}, nor one of a request of this name, or it has expired. "
            "List the open locks.",
            next_steps=[NextStep("list locks")],
        )
    return lock


def lock_meant(machine: Machine, text: str) -> Lock | None:
    """
    The record that a text names which is no request id of this machine: its lock token, or a guard's id.

    Raises:
        InvalidRequest: no record can have such a lock token.
        Unavailable: no answer; safe to ask again.
    """
    for token in (text, f"{machine.rules.key_prefix}/{text}"):
        check_lock_token(token)
        if lock := machine.locks.get(token):
            return lock
    return None


def lock_of_request(machine: Machine, request_id: str) -> Lock | None:
    """The record of a request of this machine, by its id. None if there is none."""
    try:
        name = name_of(request_id)
    except InvalidRequestId:
        return None
    token = machine.lock_token_of_request(request_id, machine.describe(name, 1))
    return machine.locks.get(token) if token else None
