"""Finds request id, payload, lock token and time in a message or event, by the trigger's paths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from steponce.aws import times
from steponce.errors import (
    InvalidLockToken,
    InvalidPayload,
    InvalidRequestId,
    PayloadTooLarge,
)
from steponce.request.canonical import canonical_json
from steponce.request.envelope import RESULT_RESERVE
from steponce.request.expressions import expect_jmespath
from steponce.request.expressions import find as search
from steponce.workflow import WORKFLOW_LIMIT

MAX_READ_BYTES = 2 * (WORKFLOW_LIMIT - RESULT_RESERVE)
"""
Larger text is refused before it is parsed. A request that started once is never larger when it is resent:
escapes at most double it, if it is all U+FFFE and U+FFFF, which SQS does not allow unescaped.
"""


@dataclass(frozen=True)
class StartRequest:
    """
    The request that a message or event asks to start.

    Args:
        request_id: The request id. It is the same for every delivery of one message.
        payload: JSON object for the work.
        lock_token: The business key. None: the machine's rules make it.
        requested_at: The message's own time, with a zone. None if it has none.
        tries: How often the message was resent before, because the request had to be retried later.
        count_at: If a rate limit refused the message before: the time that decides in which window it counts
            now. None: `requested_at` does.
        letter_of: For a redriven dead letter, and when that is resent: which end of an execution it is of, as
            `written_letters.end_of` names it. None if an end has not written it.
    """

    request_id: str
    payload: Mapping[str, Any]
    lock_token: str | None = None
    requested_at: datetime | None = None
    tries: int = 0
    count_at: datetime | None = None
    letter_of: str | None = field(default=None, compare=False)

    @property
    def redelivery(self) -> dict[str, Any]:
        """What the execution's input carries for a resend: the same for every delivery of one message."""
        found = {"requestId": self.request_id, "tries": self.tries}
        return found if self.count_at is None else found | {"countAt": times.to_text(self.count_at)}


@dataclass(frozen=True)
class RequestPaths:
    """
    The paths by which a trigger finds the request in a message or event.

    Args:
        request_id_path: JMESPath that finds the request id: text, or a whole number, which becomes text.
        payload_path: JMESPath that finds the payload, a JSON object.
        lock_token_path: JMESPath that finds the lock token: text or a whole number. Empty: the machine's
            rules make it.

    Raises:
        InvalidSetting: a path is no JMESPath. A function with a wrong setting fails at its start, and does
            not dead-letter every message.
    """

    request_id_path: str
    payload_path: str
    lock_token_path: str = ""

    def __post_init__(self) -> None:
        for name, expression in vars(self).items():
            if expression:
                expect_jmespath(expression, f"{name} of a trigger")

    def find(self, seen: Mapping[str, Any], requested_at: datetime | None) -> StartRequest:
        """
        Find the request in a message or event.

        Args:
            seen: A message or event in its uniform shape; see `messages` and `events`.
            requested_at: Its own time.

        Raises:
            InvalidRequest: there is no request id, payload or lock token at its path.
        """
        request_id = _text_of(search(self.request_id_path, seen, "message"), self.request_id_path)
        if request_id is None:
            raise InvalidRequestId(
                f"There is no request id at {self.request_id_path!r}, which wants text or a whole number; "
                "no start without an id. Send it there, or change the trigger's path."
            )
        payload = search(self.payload_path, seen, "message")
        if not isinstance(payload, Mapping):
            raise InvalidPayload(
                f"Request {request_id!r}: at {self.payload_path!r} is no JSON object but "
                f"{_kind(payload)}. Send the payload there as a JSON object."
            )
        return StartRequest(request_id, payload, self._lock_token(request_id, seen), requested_at)

    def _lock_token(self, request_id: str, seen: Mapping[str, Any]) -> str | None:
        if not self.lock_token_path:
            return None
        lock_token = _text_of(search(self.lock_token_path, seen, "message"), self.lock_token_path)
        if lock_token is None:
            raise InvalidLockToken(
                f"Request {request_id!r}: there is no lock token at {self.lock_token_path!r}, which wants "
                "text or a whole number. Send it there."
            )
        return lock_token


def expect_readable(size: int) -> None:
    """
    Refuse a message or event that is too large, before it is parsed.

    Args:
        size: Its size in bytes.

    Raises:
        PayloadTooLarge: no payload that fits into a workflow is this large.
    """
    if size > MAX_READ_BYTES:
        raise PayloadTooLarge(
            f"It has {size:,} bytes; {MAX_READ_BYTES:,} are read. Keep the large part in S3 and send its "
            "address."
        )


def _text_of(found: Any, path: str) -> str | None:
    """Text that is not blank, or a whole number as text. None for every other value."""
    if isinstance(found, int | float):
        found = canonical_json(found, path)  # 1 and 1.0 are one number; true is none
        return found if found.lstrip("-").isdecimal() else None
    return found if isinstance(found, str) and found.strip() else None


def _kind(found: Any) -> str:
    names = {str: "text", list: "a list", bool: "true or false", type(None): "nothing"}
    return names.get(type(found), "a number")
