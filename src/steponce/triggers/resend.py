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
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, Self

from steponce.aws import times
from steponce.errors import Unavailable, shown
from steponce.executions import CANCELLED, describe_execution, read_input, states_entered
from steponce.locks.record import Lock
from steponce.locks.table import Locks
from steponce.request.canonical import canonical_json
from steponce.request.envelope import check_lock_token
from steponce.triggers.dead_letters import DeadLetters, Letter, Original
from steponce.triggers.sqs import MAX_DELAY_SECONDS, Queues, escaped, send, text_attribute
from steponce.triggers.start_request import StartRequest
from steponce.workflow import ANSWERING_STATES, COMPLETED, FAILED, MISMATCH, RATE_LIMITED, UNANSWERED

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient

SEARCHED_AFTER = timedelta(minutes=16)
"""
From this age on, the end of an execution is left to the search for lost messages. It is longer than the
longest delay of a resent message, so an end that was reported in time has its next attempt by then. It is
also longer than ListExecutions may lag behind.
"""

REQUEST_ID = "steponceRequestId"
LOCK_TOKEN = "steponceLockToken"  # noqa: S105 - an attribute's name
REQUESTED_AT = "steponceRequestedAt"
COUNT_AT = "steponceCountAt"
TRIES = "steponceTries"
"""Attributes of a resent message. Id and lock token are JSON, so they may have any character."""


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
        max_seconds: The longest delay of any try. SQS allows at most 900.
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
        Resend a request. Dead-letter it if its tries are used up, or if its key has another payload.

        Args:
            request: The request, with the tries that it has used.
            why: The error that it ended with.
            source: Where that was seen, for the dead letter.

        Raises:
            PayloadTooLarge: it is too large for a message.
            Unavailable: throttled or no answer; safe to try again.
        """
        if why == MISMATCH:
            reason = f"{why}: The lock token {shown(request.lock_token)} was used with another payload."
        elif request.tries >= self._tries:
            reason = f"{why}: resent {request.tries} times."
        else:
            self._send(request, request.tries + 1, counts_on_arrival=why == RATE_LIMITED)
            return "resent"
        self.lay_aside(request, reason, source)
        return "dead-lettered"

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
        self._dead_letters.give_up(original, reason, request)

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
        return round(random.uniform(longest / 2, longest))  # noqa: S311 - no secret


def is_late(detail: Mapping[str, Any]) -> bool:
    """
    Whether an end is reported so late that the search looks at it, or has done so.

    The search may have brought its message back, and the answer may have expired since. Sent again, the
    message would run the work a second time.

    Args:
        detail: The detail of a "Step Functions Execution Status Change" event. Its `stopDate` is in
            milliseconds.
    """
    ended = detail.get("stopDate")
    return ended is not None and times.now() - datetime.fromtimestamp(ended / 1000, UTC) > SEARCHED_AFTER


def find_request_to_resend(
    detail: Mapping[str, Any], sfn: SFNClient, locks: Locks
) -> tuple[StartRequest | None, str]:
    """
    Find the request to resend after an execution ended badly.

    The lock record decides, and not the error's name: without an outcome on record the request must be
    retried. A message too many is a duplicate. If the record may have held an outcome that has expired since,
    the execution's history decides.

    Args:
        detail: The detail of a "Step Functions Execution Status Change" event.
        sfn: A Step Functions client, for what the event leaves out: a large input, or the error.
        locks: The table with the request's record.

    Returns:
        The request, and the execution's error. The request is None if it did not come as a message or event,
        has an outcome, or was cancelled. Another payload's outcome is not its own. The input of an execution
        that was started by hand counts as a message only if it has every field that a trigger sends.

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
    request = None if error == CANCELLED else _request_in(given, error)
    if request is None:
        return None, error
    answered = _is_answered(locks.get(given["lockToken"]), given)
    if answered is None and error not in UNANSWERED:
        answered = not ANSWERING_STATES.isdisjoint(states_entered(sfn, detail["executionArn"]))
    return None if answered else request, error


def brings_back(given: Mapping[str, Any], lock_token: str | None) -> bool:
    """Whether an execution with this input, if it ends badly, brings back a message for this lock token."""
    request = _request_in(given, "")
    return request is not None and request.lock_token == lock_token


def _request_in(given: Mapping[str, Any], error: str) -> StartRequest | None:
    """The request in an execution's input. None unless it has every field that a trigger sends."""
    try:
        redelivery, payload, lock_token = given["redelivery"], given["payload"], given["lockToken"]
        request_id = redelivery["requestId"]
        if not isinstance(payload, Mapping) or not request_id.strip():
            return None
        check_lock_token(lock_token)
        requested_at, tries = times.from_text(given["requestedAt"]), int(redelivery["tries"])
        return StartRequest(request_id, payload, lock_token, requested_at, tries, _count_at(given, error))
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
        return None


def _count_at(given: Mapping[str, Any], error: str) -> datetime | None:
    """
    The time that decides in which window of a rate limit a resent request counts.

    It stays in the window that has admitted it. If that refused it, the window is over by now, because the
    execution has waited for its end. Then the request moves on to the window of the present, or it would be
    refused for ever.
    """
    if error == RATE_LIMITED:
        window_end = given.get("limit", {}).get("resetsAt")
        return times.now() if window_end is None else max(times.now(), times.from_text(window_end))
    text = given["redelivery"].get("countAt")
    return None if text is None else times.from_text(text)


def _is_answered(lock: Lock | None, given: Mapping[str, Any]) -> bool | None:
    """
    Whether the record answers the request of an execution. It does not if it has another payload.

    None if it does not tell: there may have been an answer that has expired.
    """
    if lock is None:
        return None
    has_outcome = lock.status in (COMPLETED, FAILED)
    if lock.call_id == given.get("callId"):
        return has_outcome  # also if it has expired: the execution itself has got it
    if not has_outcome or lock.is_reusable(times.now_text()):
        return None
    return "payloadHash" not in given or lock.has_payload(given["payloadHash"])


def _input_in(detail: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The execution's input. None if the event leaves it out because it is large."""
    if not (detail.get("inputDetails") or {}).get("included", True) or not detail.get("input"):
        return None
    return read_input(detail["input"])


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
    return attributes


def _json(value: Any) -> str:
    return escaped(canonical_json(value))
