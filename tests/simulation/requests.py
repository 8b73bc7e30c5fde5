"""The requests of a schedule: what their work did, and what those who asked were told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from steponce import Receipt
from steponce.locks.record import Lock
from steponce.request.canonical import canonical_json, sha256
from steponce.workflow import COMPLETED, FAILED

Payload = Mapping[str, Any]


class Effect(NamedTuple):
    """What work did once: in which call and attempt, and when."""

    call_id: str
    attempt: int
    at: datetime


@dataclass
class Order:
    """
    One lock token.

    Attributes:
        payloads: Most of its requests have the first.
        effects: The effects of its work, in order.
        permissions: How often a person has allowed it to run again.
        renewals: How often somebody may ask for it after its record has expired.
        settled: Results that a person has given it.
    """

    token: str
    payloads: tuple[Payload, Payload]
    effects: list[Effect] = field(default_factory=list)
    permissions: int = 0
    renewals: int = 0
    settled: list[Any] = field(default_factory=list)


@dataclass
class Ask:
    """
    One request id that somebody asks with, and the answers.

    Attributes:
        is_message: Whether it came by the queue, so that nobody waits for it.
        asked: When it began.
        was_answered: When its record last had an answer, as long as DynamoDB had not deleted it.
        was_cancelled: Whether an operator has cancelled it.
    """

    request_id: str
    order: Order
    payload: Payload
    is_message: bool = False
    asked: datetime | None = None
    was_answered: datetime | None = None
    was_cancelled: bool = False
    answers: list[Receipt | Exception] = field(default_factory=list)


def has(lock: Lock, payload: Payload) -> bool:
    """Whether a record has this payload."""
    return lock.has_payload(sha256(canonical_json(payload)))


def answers(lock: Lock | None, ask: Ask) -> bool:
    """Whether a record answers somebody who asks."""
    return lock is not None and lock.status in (COMPLETED, FAILED) and has(lock, ask.payload)
