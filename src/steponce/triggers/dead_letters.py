"""
Dead letters: messages and events that could not start a request, stored so that they can be redriven.

A redriven letter asks for the same request id, payload and lock token as the first time, whichever trigger it
came by. A letter has two attributes of its own:

    steponceReason   the error, for people
    steponceLetter   JSON: its shape, and the id and time that a redriven message would get anew

The shapes:

    message   the original message, with the id and the time that its queue gave it
    event     the body is the JSON of an event, or of one record of S3 or Kinesis
    request   the body is the payload, and the attributes are those of a resent message

SQS allows ten attributes. If a message has nine or ten, `steponceLetter` also holds the smallest of them,
with quotes and backslashes escaped. The requests queues allow 832 KiB, so the letter of any message fits into
the 1 MiB of a dead-letter queue: 832 KiB, a fifth of that again for escapes, and 24 KiB for both attributes.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

from steponce.errors import InvalidRequest
from steponce.request.names import MAX_REQUEST_ID_BYTES
from steponce.triggers.sqs import MAX_ATTRIBUTES, Attributes, Queues, escaped, send, size_of, text_attribute
from steponce.triggers.start_request import StartRequest

REASON = "steponceReason"
LETTER = "steponceLetter"
"""Attributes of a dead letter: the error for people, and what its trigger needs to read it again."""

OURS = (REASON, LETTER)

IF_NOT_ANSWERED = "Put this letter back only if it was not answered."
"""Ends the reason of a letter that a person has to decide about: put back, it may run work twice."""

_MAX_TEXT = 1_000
_END = 100
"""How much of the end of a longer reason is kept: its last sentence may be IF_NOT_ANSWERED."""

Shape = Literal["message", "event", "request"]
_SHAPES: Mapping[str, Shape] = {"message": "message", "event": "event", "request": "request"}


@dataclass(frozen=True)
class Letter:
    """
    The content of a letter's attribute `steponceLetter`.

    Args:
        shape: How the letter's body and attributes are read.
        source: The ARN or name of its origin, and its id there.
        request_id: The request id, for people. None if none was found.
        tries: How often it had been resent, for people.
        message_id: For a message: the id that its queue gave it.
        sent_at: For a message: when it was sent (UTC text).
        folded: Attributes beyond SQS's limit of ten.
    """

    shape: Shape
    source: str
    request_id: str | None = None
    tries: int = 0
    message_id: str | None = None
    sent_at: str | None = None
    folded: Attributes = field(default_factory=dict)

    @classmethod
    def from_text(cls, text: str) -> Self:
        """
        Read the attribute `steponceLetter`.

        Raises:
            InvalidRequest: no trigger wrote this attribute.
        """
        try:
            fields = json.loads(text)
            shape = _SHAPES[fields["shape"]]
            folded = {name: _unfolded(value) for name, value in fields.get("attributes", {}).items()}
            texts = [fields.get(name) for name in ("source", "requestId", "messageId", "sentAt")]
            if not all(one is None or isinstance(one, str) for one in texts):
                raise TypeError
            source, request_id, message_id, sent_at = texts
            tries = int(fields.get("tries", 0))
            return cls(shape, source or "", request_id, tries, message_id, sent_at, folded)
        except (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError):
            raise InvalidRequest(f"No trigger wrote this attribute {LETTER}. Remove it.") from None

    def to_text(self) -> str:
        """The attribute's text."""
        fields: dict[str, Any] = {
            "shape": self.shape,
            "source": self.source[:_MAX_TEXT],
            "requestId": self.request_id and self.request_id[:MAX_REQUEST_ID_BYTES],
            "tries": self.tries,
            "messageId": self.message_id,
            "sentAt": self.sent_at,
            "attributes": {name: _folded(value) for name, value in self.folded.items()},
        }
        return escaped(
            json.dumps({name: value for name, value in fields.items() if value}, ensure_ascii=False)
        )


@dataclass(frozen=True)
class Original:
    """
    A message or event as it arrived, ready to become a dead letter.

    Args:
        letter: The content of its attribute `steponceLetter`.
        body: The message's body, or the event's JSON.
        attributes: The message's attributes, in SendMessage's form.
    """

    letter: Letter
    body: str
    attributes: Attributes = field(default_factory=dict)

    @property
    def source(self) -> str:
        """Its origin, and its id there."""
        return self.letter.source

    def to_send(self, reason: str | None = None) -> dict[str, Mapping[str, Any]]:
        """The attributes of its dead letter. Without a reason: the attributes of the redriven message."""
        ours = {} if reason is None else {REASON: text_attribute(_without_middle(reason))}
        given = {name: value for name, value in self.attributes.items() if name not in OURS}
        by_size = sorted(given, key=lambda name: size_of(name, given[name]), reverse=True)
        folded = {name: given.pop(name) for name in by_size[MAX_ATTRIBUTES - len(OURS) :]}
        letter = replace(self.letter, folded={**self.letter.folded, **folded})
        return {**given, **ours, LETTER: text_attribute(letter.to_text())}


class DeadLetters:
    """
    The dead-letter queue.

    Args:
        sqs: An SQS client that may send to it.
        queue_url: Its URL. It is a standard queue.
    """

    def __init__(self, sqs: Queues, queue_url: str) -> None:
        self._sqs = sqs
        self._queue_url = queue_url

    def give_up(self, original: Original, reason: str, request: StartRequest | None) -> None:
        """
        Dead-letter a message or event.

        Args:
            original: The message or event as it arrived.
            reason: The error, for people.
            request: The request that was found in it. None if none was found.

        Raises:
            PayloadTooLarge: it is too large for a letter. Nothing was sent.
            Unavailable: throttled or no answer; safe to try again.
        """
        if request is not None:
            letter = replace(original.letter, request_id=request.request_id, tries=request.tries)
            original = replace(original, letter=letter)
        send(self._sqs, self._queue_url, original.body, original.to_send(reason))


def _without_middle(reason: str) -> str:
    """A reason's beginning and end, which says what may be done with the letter."""
    return reason if len(reason) <= _MAX_TEXT else f"{reason[: _MAX_TEXT - _END - 1]}…{reason[-_END:]}"


def _folded(attribute: Mapping[str, Any]) -> dict[str, str]:
    if "BinaryValue" not in attribute:
        return dict(attribute)
    binary = base64.b64encode(attribute["BinaryValue"]).decode()
    return {"DataType": attribute["DataType"], "BinaryValue": binary}


def _unfolded(fields: Mapping[str, str]) -> dict[str, Any]:
    if "BinaryValue" not in fields:
        return {"DataType": str(fields["DataType"]), "StringValue": str(fields["StringValue"])}
    return {"DataType": str(fields["DataType"]), "BinaryValue": base64.b64decode(fields["BinaryValue"])}
