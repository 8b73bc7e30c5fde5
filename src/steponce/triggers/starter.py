"""
Starting what is asked, so that nothing is lost: every message is started or known already, sent again,
laid aside with its reason, or comes back because something raises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from steponce.camelcase import json_object
from steponce.client import Client
from steponce.errors import (
    Conflict,
    InvalidRequest,
    RecordUnreadable,
    TooManyAttempts,
    Unavailable,
    Unsettled,
)
from steponce.request.names import name_of, split_attempt
from steponce.request.receipt import Receipt, Status
from steponce.triggers.dead_letters import DeadLetters, Original
from steponce.triggers.resend import Resender
from steponce.triggers.start_request import Asked

POISON = (InvalidRequest, Conflict, TooManyAttempts, Unsettled, RecordUnreadable)
"""What does not pass by itself, however often the message comes."""

Fate = Literal["started", "duplicate", "replayed", "resent", "dead-lettered"]


COUNTED: Mapping[Fate, str] = {
    "started": "Started",
    "duplicate": "Duplicates",
    "replayed": "Replays",
    "resent": "Resent",
    "dead-lettered": "DeadLettered",
}
"""The metric that counts each fate."""


@dataclass(frozen=True)
class Outcome:
    """
    What became of one message or event.

    Args:
        fate: started; duplicate: the request runs already; replayed: it has its answer already; resent: it
            comes back later; dead-lettered: it cannot become a request, or came back too often.
        request_id: None if none was found.
        status: Of the request, if it is known.
        replayed: Whether the answer was there before.
        reason: The error's name, if it was laid aside, or could not be started now.
    """

    fate: Fate
    request_id: str | None
    status: Status | None
    replayed: bool
    reason: str | None = None

    def public(self) -> dict[str, Any]:
        """The same for a log line."""
        return json_object(self)


def fate_of(receipt: Receipt) -> Fate:
    """What a call of `start` has brought about."""
    if not receipt.duplicate:
        return "started"
    return "duplicate" if receipt.status == "RUNNING" else "replayed"


class Entrance:
    """
    Where all doors for messages lead to.

    Args:
        client: Of the machine that runs the requests.
        dead_letters: For what cannot become a request.
        resender: For a request whose key is held by another one.
        postpones: What AWS cannot start now goes into the queue. For doors whose own way to come back is too
            short: Lambda tries an event twice more, within three minutes, and a stream would stand still.
    """

    def __init__(
        self, client: Client, dead_letters: DeadLetters, resender: Resender, *, postpones: bool = False
    ) -> None:
        self._client = client
        self._dead_letters = dead_letters
        self._resender = resender
        self._postpones = postpones

    def admit(self, ask: Callable[[], Asked], original: Original) -> Outcome:
        """
        Start one request, or find the one that was started before.

        Args:
            ask: Finds what is asked, or raises InvalidRequest.
            original: What came, should it have to be laid aside.

        Raises:
            Exception: the message has to come back as it is. `Unavailable`: that alone will do.
        """
        asked = None
        try:
            asked = ask()
            return self._start(asked, original.source)
        except POISON as error:
            self._dead_letters.give_up(original, f"{type(error).__name__}: {error}", asked)
            request_id = None if asked is None else asked.request_id
            return Outcome("dead-lettered", request_id, None, replayed=False, reason=type(error).__name__)
        except Unavailable:
            if asked is None or not self._postpones:
                raise
            self._resender.postpone(asked)
            return Outcome("resent", asked.request_id, None, replayed=False, reason="Unavailable")

    def _start(self, asked: Asked, source: str) -> Outcome:
        receipt = self._client.start(
            asked.request_id,
            asked.payload,
            lock_token=asked.lock_token,
            requested_at=asked.requested_at,
            redelivery=asked.redelivery,
            check_owner=asked.tries > 0,  # it may meet the lock that its own last attempt has left behind
        )
        fate = fate_of(receipt)
        runs = _is_own(receipt) and not (receipt.duplicate and asked.tries)  # it may be a dead one's lock
        if receipt.status == "RUNNING" and not runs and not self._is_cared_for(asked):
            fate = self._resender.send_again(asked, "AlreadyInProgress", source)
        return Outcome(fate, asked.request_id, receipt.status, replayed=receipt.duplicate)

    def _is_cared_for(self, asked: Asked) -> bool:
        """
        Whether an open execution carries this request on: its end, if it ends AlreadyInProgress, brings the
        message back. A closed one has brought it back already, or has laid it aside; so it cares for nothing
        any more. One message too many does no harm, one too few loses the request.
        """
        execution, _ = self._client.machine.newest(name_of(asked.request_id), 1)
        return execution is not None and execution.is_open and "redelivery" in execution.input


def _is_own(receipt: Receipt) -> bool:
    """Whether it is an execution of the request itself that runs."""
    execution = receipt.execution_arn.rpartition(":")[2]
    return name_of(receipt.request_id) == split_attempt(execution)[0]
