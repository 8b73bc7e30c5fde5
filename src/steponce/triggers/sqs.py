"""Checks the limits of an SQS message, and sends one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from steponce.aws.errors import answering
from steponce.errors import PayloadTooLarge

MAX_MESSAGE_BYTES = 1_048_576
"""SQS's limit, attributes included. The requests queues have a lower one, so that a dead letter has room."""

MAX_REQUEST_BYTES = 851_968
"""The limit of the requests queues, attributes included: `MaximumMessageSize` in requests.yaml."""

MAX_ATTRIBUTES = 10
MAX_DELAY_SECONDS = 900

_NOT_IN_A_MESSAGE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Attributes = Mapping[str, Mapping[str, Any]]


class Queues(Protocol):
    """The part of boto3's SQS client that sends."""

    @property
    def send_message(self) -> Callable[..., Any]:
        """SendMessage; boto3's stubs list its arguments."""


def send(sqs: Queues, queue_url: str, body: str, attributes: Attributes, **more: Any) -> None:
    """
    Send one message.

    Raises:
        PayloadTooLarge: it is too large for a message. Nothing was sent.
        Unavailable: throttled or no answer; safe to try again.
    """
    if not fits(body, attributes):
        raise PayloadTooLarge(
            f"The message would be larger than {MAX_MESSAGE_BYTES:,} bytes or have more than "
            f"{MAX_ATTRIBUTES} attributes. It was not sent."
        )
    with answering("SQS"):
        sqs.send_message(QueueUrl=queue_url, MessageBody=body, MessageAttributes=attributes, **more)


def fits(body: str, attributes: Attributes, *, limit: int = MAX_MESSAGE_BYTES) -> bool:
    """Whether a message is within SQS's limits, and has at most `limit` bytes."""
    size = _bytes(body) + sum(size_of(name, attribute) for name, attribute in attributes.items())
    return size <= limit and len(attributes) <= MAX_ATTRIBUTES


def size_of(name: str, attribute: Mapping[str, Any]) -> int:
    """The bytes that an attribute adds to a message: its name, its type and its value."""
    texts = [name, *(value for value in attribute.values() if isinstance(value, str))]
    return sum(map(_bytes, texts)) + len(attribute.get("BinaryValue", b""))


def text_attribute(text: str) -> Mapping[str, str]:
    """Make a text attribute."""
    return {"DataType": "String", "StringValue": escaped(text)}


def escaped(text: str) -> str:
    """Escape what a message may not contain, in JSON's way. Source: SendMessage API reference."""
    return _NOT_IN_A_MESSAGE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
