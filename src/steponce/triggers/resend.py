"""
Sending again what has to come back later, and laying aside what cannot become a request.

A request that came as a message has nobody who waits for its answer and asks again. So the execution carries
who it was (`redelivery`), and if it ends without having done anything, its message is made anew from its
input. Nothing here depends on how often, how late or in which order one hears of such an end: a message too
many asks for an id that is known already, and starts nothing.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

from steponce.aws import times
from steponce.errors import Unavailable
from steponce.executions import CANCELLED, describe_execution
from steponce.locks.record import Lock
from steponce.locks.table import Locks
from steponce.request.canonical import canonical_json
from steponce.triggers.dead_letters import DeadLetters, Letter, Original
from steponce.triggers.sqs import MAX_DELAY_SECONDS, Queues, escaped, send, text_attribute
from steponce.triggers.start_request import Asked
from steponce.workflow import COMPLETED, FAILED

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient

REQUEST_ID = "steponceRequestId"
LOCK_TOKEN = "steponceLockToken"  # noqa: S105 - an attribute's name
REQUESTED_AT = "steponceRequestedAt"
TRIES = "steponceTries"
"""Attributes of a message that was sent again. Id and lock token are JSON, so that any character fits."""


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
    Sends a request's message again, later and later, and in the end to the dead letters.

    Args:
        sqs: A client that may send to the queue.
        queue_url: The queue that requests come from; a standard queue.
        dead_letters: Where a message goes that was sent again too often.
        tries: How often a message is sent again.
        base_seconds: About so long the first one waits; each further one twice as long.
        max_seconds: None waits longer. SQS itself allows 900.
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
        self._dead_letters = dead_letters
        self._tries = tries
        self._base_seconds = base_seconds
        self._max_seconds = min(max_seconds, MAX_DELAY_SECONDS)

    @classmethod
    def from_settings(cls, sqs: Queues, settings: ResendSettings) -> Self:
        """As a function's settings say."""
        return cls(
            sqs,
            settings.requests_queue_url,
            DeadLetters(sqs, settings.requests_dead_letter_queue_url),
            tries=settings.resend_tries,
            base_seconds=settings.resend_base_seconds,
            max_seconds=settings.resend_max_seconds,
        )

    def send_again(self, asked: Asked, why: str, source: str) -> Literal["resent", "dead-lettered"]:
        """
        Let a request come back later.

        Args:
            asked: As it was asked the last time.
            why: The error that it ended with.
            source: Where that was seen; for whoever reads the dead letter.

        Raises:
            PayloadTooLarge: no message can hold it.
            Unavailable: throttled or no answer; safe to try again.
        """
        if asked.tries >= self._tries:
            # Whoever puts it back into the queue gives it all its tries again.
            original = Original(Letter("request", source), _json(asked.payload), _attributes(asked, 0))
            reason = f"{why}: sent again {asked.tries} times."
            self._dead_letters.give_up(original, reason, asked)
            return "dead-lettered"
        self._send(asked, asked.tries + 1)
        return "resent"

    def postpone(self, asked: Asked) -> None:
        """
        Let a request come by the queue that could not be started now; this is none of its tries.

        The queue holds it as long as AWS is busy, and hands it out at the pace of its door.

        Raises:
            PayloadTooLarge: no message can hold it.
            Unavailable: throttled or no answer; safe to try again.
        """
        self._send(asked, asked.tries)

    def _send(self, asked: Asked, tries: int) -> None:
        delay = self._delay(asked.tries)
        body, attributes = _json(asked.payload), _attributes(asked, tries)
        send(self._sqs, self._queue_url, body, attributes, DelaySeconds=delay)

    def _delay(self, tries: int) -> int:
        """Doubled with every try; somewhere in its upper half, so that not all come back at once."""
        longest = min(self._max_seconds, self._base_seconds * 2 ** min(tries, 20))
        return round(random.uniform(longest / 2, longest))  # noqa: S311 - no secret


def asked_by_execution(detail: Mapping[str, Any], sfn: SFNClient, locks: Locks) -> tuple[Asked | None, str]:
    """
    What has to come back of an execution that did not end well.

    The record decides, not the error's name: unless it holds an answer, the request has none. A message too
    many is a duplicate.

    Args:
        detail: Of its "Step Functions Execution Status Change" event.
        sfn: Asked for what the event leaves out: a large input, or the error.
        locks: The table with the request's record.

    Returns:
        What its message asked for, and its error. None instead of the first if it did not come as a message
        or an event, has an answer, or was cancelled.

    Raises:
        Unavailable: Step Functions did not answer, or does not know the execution yet.
    """
    given, error = _input_in(detail), detail.get("error")
    if given is None or ("redelivery" in given and not error):
        execution = describe_execution(sfn, detail["executionArn"])
        if execution is None:
            raise Unavailable(f"{detail['executionArn']} cannot be described yet. Try again.")
        given, error = execution.input, execution.failure.error
    error = str(error)
    if "redelivery" not in given or error == CANCELLED or _is_answered(locks.get(given["lockToken"])):
        return None, error
    redelivery = given["redelivery"]
    requested_at = times.from_text(given["requestedAt"])
    asked = Asked(
        redelivery["requestId"], given["payload"], given["lockToken"], requested_at, redelivery["tries"]
    )
    return asked, error


def _is_answered(lock: Lock | None) -> bool:
    return lock is not None and lock.status in (COMPLETED, FAILED) and not lock.is_reusable(times.now_text())


def _input_in(detail: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The execution's input; None if the event leaves it out, as it does with a large one."""
    if not (detail.get("inputDetails") or {}).get("included", True) or not detail.get("input"):
        return None
    given = json.loads(detail["input"])
    return given if isinstance(given, dict) else {}


def _attributes(asked: Asked, tries: int) -> dict[str, Mapping[str, Any]]:
    attributes = {
        REQUEST_ID: text_attribute(_json(asked.request_id)),
        TRIES: {"DataType": "Number", "StringValue": str(tries)},
    }
    if asked.lock_token is not None:
        attributes[LOCK_TOKEN] = text_attribute(_json(asked.lock_token))
    if asked.requested_at is not None:
        attributes[REQUESTED_AT] = text_attribute(times.to_text(asked.requested_at))
    return attributes


def _json(value: Any) -> str:
    return escaped(canonical_json(value))
