"""
Starts the request of a message or event, and loses none.

Each message ends in one of these ways: its request is started, or is known already; the message is resent or
dead-lettered; or an error makes its source deliver it again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from steponce.camelcase import json_object
from steponce.client import Client
from steponce.errors import (
    Conflict,
    InvalidRequest,
    InvalidRequestId,
    RecordUnreadable,
    TooManyAttempts,
    Unavailable,
    Unsettled,
)
from steponce.request.names import name_of, split_attempt
from steponce.request.newest import newest_under
from steponce.request.receipt import Receipt, Status
from steponce.triggers.dead_letters import Original
from steponce.triggers.dispositions import Disposition, disposition_of
from steponce.triggers.ended import brings_back
from steponce.triggers.resend import Resender
from steponce.triggers.start_request import StartRequest
from steponce.triggers.written_letters import WrittenLetters, end_of
from steponce.workflow import INPROGRESS

POISON = (InvalidRequest, Conflict, TooManyAttempts, Unsettled, RecordUnreadable)
"""Permanent errors: another delivery of the same message would fail alike."""


@dataclass(frozen=True)
class Outcome:
    """
    What a trigger did with one message or event.

    Args:
        disposition: `started`; `duplicate`: the request runs already; `replayed`: it has its outcome already;
            `resent`: it comes back later; `dead-lettered`: it cannot start, or its tries are used up.
        request_id: The request id. None if none was found, or what was found cannot be one.
        status: The request's status, if it is known.
        replayed: Whether the request was known before.
        reason: The error's name, if the message was dead-lettered or could not be started now.
    """

    disposition: Disposition
    request_id: str | None
    status: Status | None
    replayed: bool
    reason: str | None = None

    def public(self) -> dict[str, Any]:
        """The fields of a log line."""
        return json_object(self)


class Starter:
    """
    Starts the requests of all triggers that have no caller.

    Args:
        client: A client of the machine that runs the requests.
        resender: Resends a request whose key another request holds. What cannot start goes into its
            dead-letter queue.
        letters: The letters that ends of executions have got.
        postpones: Whether a request that AWS cannot start now goes into the requests queue. For sources that
            deliver again for too short a time: Lambda retries an event twice, within three minutes, and a
            stream would stop.
    """

    def __init__(
        self,
        client: Client,
        resender: Resender,
        letters: WrittenLetters,
        *,
        postpones: bool = False,
    ) -> None:
        self._client = client
        self._resender = resender
        self._letters = letters
        self._postpones = postpones

    def start(self, find: Callable[[], StartRequest], original: Original) -> Outcome:
        """
        Start one request, or find the one that was started before.

        Args:
            find: Finds the request, or raises InvalidRequest.
            original: The message or event, for a dead letter.

        Raises:
            Unavailable: transient. The source must deliver the message again.
            Exception: any other error. The source must deliver the message again as well.
        """
        request = None
        try:
            request = find()
            return self._start(request, original.source)
        except POISON as error:
            self._resender.dead_letters.give_up(original, f"{type(error).__name__}: {error}", request)
            named = None if isinstance(error, InvalidRequestId) else request
            request_id = None if named is None else named.request_id
            return Outcome("dead-lettered", request_id, None, replayed=False, reason=type(error).__name__)
        except Unavailable:
            if request is None or not self._postpones:
                raise
            self._resender.postpone(request)
            return Outcome("resent", request.request_id, None, replayed=False, reason="Unavailable")

    def _start(self, request: StartRequest, source: str) -> Outcome:
        receipt = self._ask(request)
        is_settled = self._is_settled(request, receipt)
        if not is_settled and not self._is_in_progress(receipt.lock_token):
            receipt = self._ask(request)  # what ran has ended since, maybe with the answer to this message
            is_settled = self._is_settled(request, receipt)
        disposition = disposition_of(receipt)
        if not is_settled:
            disposition = self._resender.send_again(request, "AlreadyInProgress", source)
        return Outcome(disposition, request.request_id, receipt.status, replayed=receipt.duplicate)

    def _ask(self, request: StartRequest) -> Receipt:
        return self._client.start(
            request.request_id,
            request.payload,
            lock_token=request.lock_token,
            requested_at=request.requested_at,
            count_at=request.count_at,
            redelivery=request.redelivery,
            check_owner=request.tries > 0,  # its own last attempt may have left the lock open
        )

    def _is_settled(self, request: StartRequest, receipt: Receipt) -> bool:
        """Whether a message is started, answered, or carried on."""
        is_running = receipt.status == "RUNNING" and receipt.duplicate
        return not is_running or self._is_cared_for(request, receipt)

    def _is_in_progress(self, lock_token: str) -> bool:
        lock = self._client.machine.locks.get(lock_token)
        return lock is not None and lock.status == INPROGRESS

    def _is_cared_for(self, request: StartRequest, receipt: Receipt) -> bool:
        """
        Whether an open execution carries this message on. If it ends without an answer, that end brings the
        message back. A closed execution has already brought it back or dead-lettered it.

        If an end has its letter, the execution is closed, though DescribeExecution may show it open for a
        moment. The letter itself knows that before the mark is written. An execution that a caller has
        started, who waits for its answer, carries no message. One message too many does no harm. One too few
        loses the request.
        """
        machine, name = self._client.machine, name_of(request.request_id)
        found, attempt = split_attempt(receipt.execution_arn.rpartition(":")[2])
        execution = machine.describe(name, attempt) if found == name else None
        if execution is None or not execution.is_open:
            execution, attempt = newest_under(machine, name, 1)
        if execution is None or not execution.is_open:
            return False
        same_payload = machine.payload_hash_of(execution.input) == machine.rules.payload_hash(request.payload)
        if not same_payload or not brings_back(execution.input, receipt.lock_token):
            return False
        arn = machine.execution_arn(name, attempt)
        end = end_of(arn, execution.input.get("callId"), execution.redrive_count)
        return end != request.letter_of and not self._letters.has(end)
