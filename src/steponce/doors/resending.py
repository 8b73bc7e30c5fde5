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
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

from steponce import times
from steponce.aws import answering
from steponce.canonical import canonical_json
from steponce.doors.asked import Asked
from steponce.errors import PayloadTooLarge, SteponceError, Unavailable
from steponce.locks import Locks
from steponce.owner import CANCELLED, describe_execution
from steponce.records import COMPLETED, FAILED, Lock

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient

REQUEST_ID = "steponceRequestId"
LOCK_TOKEN = "steponceLockToken"  # noqa: S105 - an attribute's name
REQUESTED_AT = "steponceRequestedAt"
TRIES = "steponceTries"
"""Attributes of a message that was sent again. Id and lock token are JSON, so that any character fits."""

REASON = "steponceReason"
SOURCE = "steponceSource"
ABOUT = "steponceAbout"
"""Attributes of a dead letter: the error, where the message came from, and the request id as JSON text."""

MAX_MESSAGE_BYTES = 262_144
MAX_ATTRIBUTES = 10
MAX_DELAY_SECONDS = 900
_MAX_REASON = 1_000

_NOT_IN_A_MESSAGE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Attributes = Mapping[str, Mapping[str, Any]]


class Queues(Protocol):
    """What is used of boto3's SQS client."""

    def send_message(self, **arguments: Any) -> Any:
        """SendMessage."""


@dataclass(frozen=True)
class Original:
    """
    What came, as it is kept if it cannot become a request.

    Args:
        body: Of the message; of an event, its JSON.
        source: The ARN or name of where it came from, and its id there.
        attributes: Message attributes, as SendMessage wants them.
    """

    body: str
    source: str
    attributes: Attributes


class DeadLetters:
    """
    The queue for what a person has to look at.

    Args:
        sqs: A client that may send to it.
        queue_url: Its URL; a standard queue.
    """

    def __init__(self, sqs: Queues, queue_url: str) -> None:
        self._sqs = sqs
        self._queue_url = queue_url

    def give_up(self, original: Original, error: SteponceError, request_id: str | None) -> None:
        """
        Lay a message aside as it came, with the reason.

        Raises:
            PayloadTooLarge: its body leaves no room for a reason. Nothing was sent.
            Unavailable: throttled or no answer; safe to try again.
        """
        known = {
            REASON: _string(f"{type(error).__name__}: {error}"[:_MAX_REASON]),
            SOURCE: _string(original.source),
            **({} if request_id is None else {ABOUT: _string(json.dumps(request_id, ensure_ascii=False))}),
        }
        given = {name: value for name, value in original.attributes.items() if name not in known}
        while given and not _fits(original.body, given | {REASON: known[REASON]}):
            given.popitem()  # without its reason a message would go round
        while known and not _fits(original.body, given | known):
            known.popitem()
        if REASON not in known:
            raise PayloadTooLarge(f"The message from {original.source} leaves no room for a reason.")
        self.send(original.body, given | known)

    def send(self, body: str, attributes: Attributes) -> None:
        """Send as it is."""
        _send(self._sqs, self._queue_url, body, attributes)


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
    def from_settings(cls, sqs: Queues, settings: Mapping[str, str]) -> Self:
        """Read a function's environment, whose names are those of the template's parameters and Outputs."""
        return cls(
            sqs,
            settings["RequestsQueueUrl"],
            DeadLetters(sqs, settings["RequestsDeadLetterQueueUrl"]),
            tries=int(settings["ResendTries"]),
            base_seconds=float(settings["ResendBaseSeconds"]),
            max_seconds=float(settings["ResendMaxSeconds"]),
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
        body = _json(asked.payload)
        if asked.tries >= self._tries:
            # Whoever puts it back into the queue gives it all its tries again.
            given_up = {
                REASON: _string(f"{why}: sent again {asked.tries} times."),
                SOURCE: _string(source),
            }
            self._dead_letters.send(body, _attributes(asked, 0) | given_up)
            return "dead-lettered"
        attributes = _attributes(asked, asked.tries + 1)
        _send(self._sqs, self._queue_url, body, attributes, DelaySeconds=self._delay(asked.tries))
        return "resent"

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
        REQUEST_ID: _string(_json(asked.request_id)),
        TRIES: {"DataType": "Number", "StringValue": str(tries)},
    }
    if asked.lock_token is not None:
        attributes[LOCK_TOKEN] = _string(_json(asked.lock_token))
    if asked.requested_at is not None:
        attributes[REQUESTED_AT] = _string(times.to_text(asked.requested_at))
    return attributes


def _string(text: str) -> Mapping[str, str]:
    return {"DataType": "String", "StringValue": escaped(text)}


def _json(value: Any) -> str:
    return escaped(canonical_json(value))


def escaped(text: str) -> str:
    """Text with what no message may hold written as in JSON. Source: SendMessage API reference."""
    return _NOT_IN_A_MESSAGE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _send(sqs: Queues, queue_url: str, body: str, attributes: Attributes, **more: int) -> None:
    if not _fits(body, attributes):
        raise PayloadTooLarge(
            f"The message would be larger than {MAX_MESSAGE_BYTES:,} bytes or have more than "
            f"{MAX_ATTRIBUTES} attributes. It was not sent."
        )
    with answering("SQS"):
        sqs.send_message(QueueUrl=queue_url, MessageBody=body, MessageAttributes=attributes, **more)


def _fits(body: str, attributes: Attributes) -> bool:
    parts = [body, *attributes]
    for attribute in attributes.values():
        parts += [value for value in attribute.values() if isinstance(value, str)]
    sizes = [len(part.encode("utf-8", "surrogatepass")) for part in parts]
    sizes += [len(attribute.get("BinaryValue", b"")) for attribute in attributes.values()]
    return sum(sizes) <= MAX_MESSAGE_BYTES and len(attributes) <= MAX_ATTRIBUTES
