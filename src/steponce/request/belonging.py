"""
Decides whether a lock record tells the outcome of a request, as the next start of the request would decide.

The status and the report of a request both ask here, so they cannot tell different things.
"""

from __future__ import annotations

from steponce.aws import times
from steponce.errors import OwnerHidden, PayloadMismatch
from steponce.executions import NAME_KEPT, Execution, looking_at
from steponce.locks.record import Lock
from steponce.request.machine import Machine
from steponce.workflow import RELEASED


def is_own(machine: Machine, lock: Lock, request_id: str) -> bool:
    """
    Whether a record is this request's, and not that of an earlier one with the same id.

    A record may be kept longer than Step Functions reserves the name. Then a new request may have started
    under that name, with another payload.
    """
    if not machine.made(lock, request_id):
        return False
    if times.from_text(lock.created) > times.now() - NAME_KEPT:
        return True
    try:
        with looking_at(lock.locked_by):
            owner = machine.owner(lock)
    except OwnerHidden:
        return True  # a reader of the table alone
    return owner is not None and owner.owns(lock) is not False


def answers_too(
    machine: Machine, lock: Lock, request_id: str, newest: Execution, payload_hash: str | None = None
) -> bool:
    """
    Whether a record that is not this request's own answers for it.

    It does if it has the payload of who asks, and this request was not refused.

    Args:
        machine: The request's machine.
        lock: The record under the request's lock token: another request's, or an earlier one's with this id.
        request_id: As the caller gave it.
        newest: The request's newest attempt. It is closed.
        payload_hash: Of the payload of who asks. None: that of the attempt.
    """
    same_payload = lock.has_payload(payload_hash or machine.payload_hash_of(newest.input))
    return same_payload and (machine.made(lock, request_id) or not newest.failure.refuses_a_duplicate)


def made_it(machine: Machine, lock: Lock, request_id: str, newest: Execution, attempt: int) -> bool:
    """
    Whether a record is the newest attempt's own. Only then a record that is free tells the outcome.

    An attempt that succeeded after it had released its lock was redriven by hand. Then no record tells it.
    """
    if attempt != machine.attempt_of(lock, request_id) or newest.owns(lock) is False:
        return False
    return newest.status != "SUCCEEDED" or lock.status != RELEASED


def payload_mismatch(request_id: str, lock_token: str) -> PayloadMismatch:
    """The error for who asks with one payload where the answer is for another."""
    return PayloadMismatch(
        f"Request {request_id!r} (lock token {lock_token!r}) was started with another payload. "
        "Send the first payload again, or use a new id."
    )


def payload_mismatch_of(machine: Machine, lock: Lock, request_id: str) -> PayloadMismatch:
    """The error for who asks with one payload where a record is for another. A new id would not change it."""
    if machine.made(lock, request_id):
        return payload_mismatch(request_id, lock.lock_token)
    return PayloadMismatch(
        f"The lock token {lock.lock_token!r} of request {request_id!r} was used by another request, with "
        "another payload. Send that payload, or use a new lock token under a new id."
    )
