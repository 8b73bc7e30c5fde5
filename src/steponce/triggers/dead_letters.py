"""
Dead letters: what a door lays aside, so that it can be put back as the same request.

A letter is a message that the queue's door reads as what it was. Put back as it is, it asks for the same
request id, payload and lock token as the first time, whichever door it came by. Two attributes are ours:

    steponceReason   the error, for people
    steponceLetter   JSON: the shape that it came in, and what the queue would else give it anew

The shapes:

    message   the message as it came, with the id and the time that its queue gave it
    event     the body is the JSON of an event, or of one record of S3 or Kinesis
    request   the body is the payload, and the attributes are those of a message that was sent again

SQS allows ten attributes. Of a message with nine or ten the smallest are kept inside of `steponceLetter`,
where quotes and backslashes double. The queues that take requests allow 832 KiB, so the letter of any message
fits into the 1 MiB of a dead-letter queue: 832 KiB, a fifth of them once more, and 24 KiB of ours.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

from steponce.errors import InvalidRequest
from steponce.triggers.sqs import MAX_ATTRIBUTES, Attributes, Queues, escaped, send, size_of, text_attribute
from steponce.triggers.start_request import Asked

REASON = "steponceReason"
LETTER = "steponceLetter"
"""Attributes of a dead letter: the error for people, and what its door needs to read it again."""

OURS = (REASON, LETTER)

_MAX_TEXT = 1_000

Shape = Literal["message", "event", "request"]
_SHAPES: Mapping[str, Shape] = {"message": "message", "event": "event", "request": "request"}


@dataclass(frozen=True)
class Letter:
    """
    What a letter says of itself.

    Args:
        shape: How its body and attributes are to be read.
        source: The ARN or name of where it came from, and its id there.
        request_id: For people; None if none was found.
        tries: How often it had been sent again, for people.
        message_id: Of a message: the id that its queue gave it.
        sent_at: Of a message: when it was sent, as UTC text.
        folded: Attributes for which SQS has no place beside ours.
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
            InvalidRequest: it is not one that was written here.
        """
        try:
            told = json.loads(text)
            shape = _SHAPES[told["shape"]]
            folded = {name: _unfolded(value) for name, value in told.get("attributes", {}).items()}
            texts = [told.get(name) for name in ("source", "requestId", "messageId", "sentAt")]
            if not all(one is None or isinstance(one, str) for one in texts):
                raise TypeError
            source, request_id, message_id, sent_at = texts
            tries = int(told.get("tries", 0))
            return cls(shape, source or "", request_id, tries, message_id, sent_at, folded)
        except (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError):
            raise InvalidRequest(f"The attribute {LETTER} is none that a door wrote. Take it off.") from None

    def to_text(self) -> str:
        """The attribute's text."""
        told: dict[str, Any] = {
            "shape": self.shape,
            "source": _short(self.source),
            "requestId": None if self.request_id is None else _short(self.request_id),
            "tries": self.tries,
            "messageId": self.message_id,
            "sentAt": self.sent_at,
            "attributes": {name: _folded(value) for name, value in self.folded.items()},
        }
        return escaped(json.dumps({name: value for name, value in told.items() if value}, ensure_ascii=False))


@dataclass(frozen=True)
class Original:
    """
    What came, as it is kept if it cannot become a request.

    Args:
        letter: What its letter will say of it.
        body: Of the message; of an event, its JSON.
        attributes: Message attributes, as SendMessage wants them.
    """

    letter: Letter
    body: str
    attributes: Attributes = field(default_factory=dict)

    @property
    def source(self) -> str:
        """Where it came from, and its id there."""
        return self.letter.source

    def to_send(self, reason: str | None = None) -> dict[str, Mapping[str, Any]]:
        """The attributes of its letter, or of the letter put back where no reason is given."""
        ours = {} if reason is None else {REASON: text_attribute(_short(reason))}
        given = {name: value for name, value in self.attributes.items() if name not in OURS}
        by_size = sorted(given, key=lambda name: size_of(name, given[name]), reverse=True)
        folded = {name: given.pop(name) for name in by_size[MAX_ATTRIBUTES - len(OURS) :]}
        letter = replace(self.letter, folded={**self.letter.folded, **folded})
        return {**given, **ours, LETTER: text_attribute(letter.to_text())}


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

    def give_up(self, original: Original, reason: str, asked: Asked | None) -> None:
        """
        Lay something aside as it came, with the reason.

        Raises:
            PayloadTooLarge: no letter can hold it. Nothing was sent.
            Unavailable: throttled or no answer; safe to try again.
        """
        if asked is not None:
            letter = replace(original.letter, request_id=asked.request_id, tries=asked.tries)
            original = replace(original, letter=letter)
        send(self._sqs, self._queue_url, original.body, original.to_send(reason))


def _short(text: str) -> str:
    return text[:_MAX_TEXT]


def _folded(attribute: Mapping[str, Any]) -> dict[str, str]:
    if "BinaryValue" not in attribute:
        return dict(attribute)
    binary = base64.b64encode(attribute["BinaryValue"]).decode()
    return {"DataType": attribute["DataType"], "BinaryValue": binary}


def _unfolded(told: Mapping[str, str]) -> dict[str, Any]:
    if "BinaryValue" not in told:
        return {"DataType": str(told["DataType"]), "StringValue": str(told["StringValue"])}
    return {"DataType": str(told["DataType"]), "BinaryValue": base64.b64decode(told["BinaryValue"])}
