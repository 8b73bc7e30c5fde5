"""
Resends the message of a request that must be retried later.

Nobody waits for the answer of a request that came as a message, and nobody would start it again. So the
execution's input carries what a new message needs (`redelivery`), and if the execution ends without an
outcome, its message is sent again. Reports of such an end may be late, repeated or out of order. A message
too many is a duplicate and starts nothing.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Literal, Self

from steponce.aws import times
from steponce.request.canonical import canonical_json
from steponce.triggers.dead_letters import DeadLetters, Letter, Original
from steponce.triggers.sqs import MAX_DELAY_SECONDS, Queues, escaped, send, text_attribute
from steponce.triggers.start_request import StartRequest
from steponce.workflow import RATE_LIMITED

REQUEST_ID = "steponceRequestId"
LOCK_TOKEN = "steponceLockToken"  # noqa: S105 - an attribute's name
REQUESTED_AT = "steponceRequestedAt"
COUNT_AT = "steponceCountAt"
LETTER_OF = "steponceLetterOf"
TRIES = "steponceTries"
"""Attributes of a resent message. Id and lock token are JSON, so they may have any character."""

SHORTEST_DELAY_SECONDS = 2
"""
Until a resent message arrives, DescribeExecution must show that its execution has ended. Else the message
counts as a duplicate, and only the search for lost messages brings it back.
"""


@dataclass(frozen=True)
class ResendSettings:
    """The template's parameters and queues that say how a message comes back; see `environment`."""

    requests_queue_url: str
    requests_dead_letter_queue_url: str
    resend_tries: int
    resend_base_seconds: float
    resend_max_seconds: float


class Resender:
    """
    Resends a request's message with exponential backoff, and dead-letters it after the last try.

    Args:
        sqs: An SQS client that may send to the queue.
        queue_url: The requests queue. It is a standard queue.
        dead_letters: The dead-letter queue.
        tries: How often a message is resent.
        base_seconds: The longest delay of the first try. It doubles with each further try.
        max_seconds: The longest delay of any try. SQS allows at most 900. No delay is shorter than
            SHORTEST_DELAY_SECONDS.
    """

    def __init__(
        self,
        sqs: Queues,
        queue_url: str,
        dead_letters: DeadLetters,
        *,
        tries: int,
        base_seconds: float,
        max_seconds: float,
    ) -> None:
        self._sqs = sqs
        self._queue_url = queue_url
        self.dead_letters = dead_letters
        self._tries = tries
        self._base_seconds = base_seconds
        self._max_seconds = min(max_seconds, MAX_DELAY_SECONDS)

    @classmethod
    def from_settings(cls, sqs: Queues, settings: ResendSettings) -> Self:
        """Make a resender from a function's settings."""
        return cls(
            sqs,
            settings.requests_queue_url,
            DeadLetters(sqs, settings.requests_dead_letter_queue_url),
            tries=settings.resend_tries,
            base_seconds=settings.resend_base_seconds,
            max_seconds=settings.resend_max_seconds,
        )

    def send_again(self, request: StartRequest, why: str, source: str) -> Literal["resent", "dead-lettered"]:
        """
        Resend a request. Dead-letter it if its tries are used up.

        Args:
            request: The request, with the tries that it has used.
            why: The error that it ended with.
            source: Where that was seen, for the dead letter.

        Raises:
            PayloadTooLarge: it is too large for a message.
            Unavailable: throttled or no answer; safe to try again.
        """
        reason = self.objection(request, why)
        if reason is not None:
            self.lay_aside(request, reason, source)
            return "dead-lettered"
        self._send(request, request.tries + 1, counts_on_arrival=why == RATE_LIMITED)
        return "resent"

    def objection(self, request: StartRequest, why: str) -> str | None:
        """Why a request that ended with this error is not resent. None: it is."""
        return f"{why}: resent {request.tries} times." if request.tries >= self._tries else None

    def lay_aside(self, request: StartRequest, reason: str, source: str) -> None:
        """
        Dead-letter a request. A redriven letter gets all its tries back.

        Args:
            request: The request.
            reason: Why, for the person who reads the letter.
            source: Where that was seen.

        Raises:
            As `send_again`.
        """
        original = Original(Letter("request", source), _json(request.payload), _attributes(request, 0))
        self.dead_letters.give_up(original, reason, request)

    def postpone(self, request: StartRequest) -> None:
        """
        Put a request that could not be started now into the queue. This does not count as a try.

        The queue keeps it while AWS is busy, and its function starts it at the rate of StartsPerSecond.

        Raises:
            PayloadTooLarge: it is too large for a message.
            Unavailable: throttled or no answer; safe to try again.
        """
        self._send(request, request.tries)

    def _send(self, request: StartRequest, tries: int, *, counts_on_arrival: bool = False) -> None:
        delay = self._delay(request.tries)
        if counts_on_arrival and request.count_at is not None:
            # A window may be shorter than the delay. If it is over on arrival, newer requests have filled it.
            request = replace(request, count_at=request.count_at + timedelta(seconds=delay))
        body, attributes = _json(request.payload), _attributes(request, tries)
        send(self._sqs, self._queue_url, body, attributes, DelaySeconds=delay)

    def _delay(self, tries: int) -> int:
        """Exponential backoff with jitter: a random delay in the upper half of the try's longest delay."""
        longest = min(self._max_seconds, self._base_seconds * 2 ** min(tries, 20))
        delay = round(random.uniform(longest / 2, longest))  # noqa: S311 - no secret
        return max(SHORTEST_DELAY_SECONDS, delay)


def _attributes(request: StartRequest, tries: int) -> dict[str, Mapping[str, Any]]:
    attributes = {
        REQUEST_ID: text_attribute(_json(request.request_id)),
        TRIES: {"DataType": "Number", "StringValue": str(tries)},
    }
    if request.lock_token is not None:
        attributes[LOCK_TOKEN] = text_attribute(_json(request.lock_token))
    if request.requested_at is not None:
        attributes[REQUESTED_AT] = text_attribute(times.to_text(request.requested_at))
    if request.count_at is not None:
        attributes[COUNT_AT] = text_attribute(times.to_text(request.count_at))
    if request.letter_of:
        attributes[LETTER_OF] = text_attribute(request.letter_of)
    return attributes


def _json(value: Any) -> str:
    return escaped(canonical_json(value))
