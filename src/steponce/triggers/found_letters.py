"""Dead letters as their queues show them."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from steponce.aws import times
from steponce.errors import InvalidPayload, InvalidRequest
from steponce.request.strict_json import json_or_text
from steponce.triggers.dead_letters import LETTER, REASON, Letter
from steponce.triggers.messages import original
from steponce.triggers.resend import REQUEST_ID, TRIES
from steponce.triggers.sqs import MAX_REQUEST_BYTES, Attributes, fits

_FEW_DIGITS = re.compile("[0-9]{1,9}")
_SNS_SAYS = ("ErrorCode", "ErrorMessage", "RequestID")


@dataclass(frozen=True)
class DeadLetterQueue:
    """
    A dead-letter queue.

    Args:
        name: Its name, for people.
        url: Its URL.
        back_to: The URL of the queue that its letters are redriven to. None if they cannot be redriven.
        machine: The ARN of the state machine whose letters it has. None if it is not known.
    """

    name: str
    url: str
    back_to: str | None
    machine: str | None = None


@dataclass(frozen=True)
class Found:
    """
    One dead letter.

    Args:
        queue: Its queue.
        id: Its message id.
        body: Its body.
        attributes: Its attributes, in SendMessage's form.
        when: When it was dead-lettered (UTC text). If SQS itself moved it: when it was sent.
        group: Its message group. None if it has none, which only a standard queue allows.
        receipt: The receipt handle that deletes it.
        is_moved: Whether SQS has moved it from its queue, by the system attribute DeadLetterQueueSourceArn.
    """

    queue: DeadLetterQueue
    id: str
    body: str
    attributes: Attributes
    when: str
    group: str | None
    receipt: str
    is_moved: bool = False

    @classmethod
    def from_message(cls, queue: DeadLetterQueue, message: Mapping[str, Any]) -> Found:
        """Read a message that ReceiveMessage returned."""
        attributes = {
            name: {
                key: part for key, part in value.items() if key in ("DataType", "StringValue", "BinaryValue")
            }
            for name, value in message.get("MessageAttributes", {}).items()
        }
        system = message["Attributes"]
        sent = datetime.fromtimestamp(int(system["SentTimestamp"]) / 1000, UTC)
        return cls(
            queue,
            message["MessageId"],
            message["Body"],
            attributes,
            times.to_text(sent),
            system.get("MessageGroupId"),
            message["ReceiptHandle"],
            "DeadLetterQueueSourceArn" in system,
        )

    @property
    def letter(self) -> Letter:
        """Its attribute `steponceLetter`. If SQS itself moved the message: what its other attributes tell."""
        try:
            return Letter.from_text(self._text(LETTER) or "")
        except InvalidRequest:
            request_id = json_in(self._text(REQUEST_ID) or "null")
            known, tries = request_id if isinstance(request_id, str) else None, self._text(TRIES)
            if tries is None:
                return Letter("message", self.queue.name, known)
            return Letter(
                "request", self.queue.name, known, int(tries) if _FEW_DIGITS.fullmatch(tries) else 0
            )

    @property
    def reason(self) -> str:
        """Why it was dead-lettered."""
        if self._text(REASON):
            return str(self._text(REASON))
        if self._is_of_sns:
            return f"NotDelivered: SNS could not put it into the queue ({self._text('ErrorCode')})."
        return "ReceivedTooOften: SQS has delivered it as often as its queue allows."

    @property
    def is_too_large(self) -> bool:
        """Whether its queue took the message, but does not take it back with the attributes of a letter."""
        return not fits(*self.put_back(), limit=MAX_REQUEST_BYTES)

    def put_back(self) -> tuple[str, dict[str, Mapping[str, Any]]]:
        """The body and attributes of the message that redrives it."""
        given = dict(self.attributes)
        if LETTER not in given and self._is_of_sns:
            given = {name: value for name, value in given.items() if name not in _SNS_SAYS}
        if TRIES in given and LETTER not in given:
            return self.body, given
        return self.body, original(self.body, given, self.queue.name, self.id, self.when).to_send()

    def shown_attributes(self) -> dict[str, str]:
        """All its attributes, the binary ones in Base64, as a path finds them."""
        binary = {
            name: value["BinaryValue"] for name, value in self.attributes.items() if "BinaryValue" in value
        }
        return self.text_attributes() | {name: b64encode(value).decode() for name, value in binary.items()}

    @property
    def _is_of_sns(self) -> bool:
        """Whether SNS has written it, because it could not put the message into the queue."""
        return not self.is_moved and all(name in self.attributes for name in _SNS_SAYS)

    def text_attributes(self) -> dict[str, str]:
        """Its text attributes."""
        return {
            name: value["StringValue"] for name, value in self.attributes.items() if "StringValue" in value
        }

    def _text(self, name: str) -> str | None:
        return self.text_attributes().get(name)


def json_in(text: str) -> Any:
    """The JSON in a letter. What cannot be read stays text: the letter's reason says what is wrong."""
    try:
        return json_or_text(text, "The letter")
    except InvalidPayload:
        return text
