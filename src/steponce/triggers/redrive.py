"""
Looking at what was laid aside, and putting it back.

SQS shows a message only by handing it out: for a while nobody else gets it. So whoever looks gives everything
back at once, and if it dies, the queue does so two minutes later. Two operators at once share the letters
between them. Putting back is sending and then deleting: a death in between leaves a letter that was put back
already, which is harmless, since it asks for the same id.
"""

from __future__ import annotations

import uuid
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Protocol

from steponce.aws import times
from steponce.aws.errors import answering
from steponce.errors import InvalidRequest, Refused, SteponceError
from steponce.triggers.dead_letters import LETTER, REASON, Letter
from steponce.triggers.failure_records import foreign_record
from steponce.triggers.messages import original
from steponce.triggers.resend import REQUEST_ID, TRIES
from steponce.triggers.sqs import Attributes, Queues, send
from steponce.triggers.start_request import json_or_text

HIDDEN_SECONDS = 120
"""For so long a letter is hidden from others if whoever looks at it dies."""

_BATCH = 10
_SNS_SAYS = ("ErrorCode", "ErrorMessage", "RequestID")


class LetterQueues(Queues, Protocol):
    """What is used of boto3's SQS client."""

    def receive_message(self, **arguments: Any) -> Any:
        """ReceiveMessage."""

    def delete_message(self, **arguments: Any) -> Any:
        """DeleteMessage."""

    def change_message_visibility_batch(self, **arguments: Any) -> Any:
        """ChangeMessageVisibilityBatch."""

    def get_queue_attributes(self, **arguments: Any) -> Any:
        """GetQueueAttributes."""


class LetterNotFound(SteponceError, LookupError):
    """There is no letter with this id, or somebody else looks at it just now."""


@dataclass(frozen=True)
class Box:
    """
    A queue of letters.

    Args:
        name: For people.
        url: Its URL.
        back_to: The URL of the queue that its letters are put back into; None if they cannot be.
    """

    name: str
    url: str
    back_to: str | None


@dataclass(frozen=True)
class Found:
    """
    One letter, as it lies in its queue.

    Args:
        box: Its queue.
        id: The id of the message that it is.
        body: As it was laid aside.
        attributes: As SendMessage wants them.
        when: When it was laid aside; of what a queue gave up by itself, when it was sent. UTC text.
        group: Its message group, in a FIFO queue.
        receipt: What SQS wants to delete it.
    """

    box: Box
    id: str
    body: str
    attributes: Attributes
    when: str
    group: str | None
    receipt: str

    @classmethod
    def from_message(cls, box: Box, message: Mapping[str, Any]) -> Found:
        """Read what ReceiveMessage answers."""
        attributes = {
            name: {
                key: part for key, part in value.items() if key in ("DataType", "StringValue", "BinaryValue")
            }
            for name, value in message.get("MessageAttributes", {}).items()
        }
        system = message["Attributes"]
        sent = datetime.fromtimestamp(int(system["SentTimestamp"]) / 1000, UTC)
        return cls(
            box,
            message["MessageId"],
            message["Body"],
            attributes,
            times.to_text(sent),
            system.get("MessageGroupId"),
            message["ReceiptHandle"],
        )

    @property
    def letter(self) -> Letter:
        """What it says of itself, or what its queue says of a message that it has given up."""
        try:
            return Letter.from_text(self._text(LETTER) or "")
        except InvalidRequest:
            request_id = json_or_text(self._text(REQUEST_ID) or "null")
            known, tries = request_id if isinstance(request_id, str) else None, self._text(TRIES)
            if tries is None:
                return Letter("message", self.box.name, known)
            return Letter("request", self.box.name, known, int(tries) if tries.isdecimal() else 0)

    @property
    def reason(self) -> str:
        """Why it lies here."""
        if self._text(REASON):
            return str(self._text(REASON))
        if all(name in self.attributes for name in _SNS_SAYS):
            return f"NotDelivered: SNS could not put it into the queue ({self._text('ErrorCode')})."
        return "ReceivedTooOften: its queue handed it out as often as it may, and gave it up."

    def put_back(self) -> tuple[str, dict[str, Mapping[str, Any]]]:
        """The body and the attributes with which it asks for what it asked for the first time."""
        given = dict(self.attributes)
        if all(name in given for name in _SNS_SAYS):
            given = {name: value for name, value in given.items() if name not in _SNS_SAYS}
        if TRIES in given and LETTER not in given:
            return self.body, given
        return self.body, original(self.body, given, self.box.name, self.id, self.when).to_send()

    def text_attributes(self) -> dict[str, str]:
        """Its attributes that are text."""
        return {
            name: value["StringValue"] for name, value in self.attributes.items() if "StringValue" in value
        }

    def _text(self, name: str) -> str | None:
        return self.text_attributes().get(name)


class Letters:
    """
    The letters of a stack.

    Args:
        sqs: A client that may receive from the boxes, delete there, and send to where they are put back.
        boxes: The queues of letters.
    """

    def __init__(self, sqs: LetterQueues, boxes: list[Box]) -> None:
        self._sqs = sqs
        self._boxes = boxes
        self._deleted: set[str] = set()

    def look(self, limit: int) -> tuple[list[Found], int]:
        """
        The first letters, and about how many more there are; none of them is taken.

        Raises:
            Unavailable: throttled or no answer; safe to try again.
        """
        count, found = self.count(), list[Found]()
        for box in self._boxes:
            with closing(self._take(box)) as taken:
                found += islice(taken, limit - len(found))
        return found, max(0, count - len(found))

    def count(self) -> int:
        """About how many there are; SQS knows it to within a minute."""
        return sum(map(self._count, self._boxes))

    def get(self, letter_id: str) -> Found:
        """
        One letter; it is not taken.

        Raises:
            LetterNotFound: it is in none of the queues, or hidden.
        """
        for box in self._boxes:
            with closing(self._take(box)) as taken:
                for found in taken:
                    if found.id == letter_id:
                        return found
        raise LetterNotFound(
            f"There is no letter {letter_id!r}, or somebody looks at it just now; then it is back in "
            f"{HIDDEN_SECONDS} seconds. List them: steponce letters list"
        )

    def redrive(self, letter_id: str) -> Found:
        """
        Put one letter back.

        Raises:
            LetterNotFound: it is in none of the queues, or hidden.
            Refused: it is AWS's own record of a failure, and no request.
        """
        for box in self._boxes:
            with closing(self._take(box)) as taken:
                for found in taken:
                    if found.id == letter_id:
                        self._put_back(found)
                        return found
        raise LetterNotFound(
            f"There is no letter {letter_id!r}, or somebody puts it back just now. "
            "List them: steponce letters list"
        )

    def redrive_all(self) -> Iterator[Found]:
        """
        Put back all that can be, one by one; what comes to lie here meanwhile may stay.

        Raises:
            Unavailable: throttled or no answer. What was put back until then is put back.
        """
        for box in self._boxes:
            if box.back_to is None:
                continue
            most = max(self._count(box), _BATCH)  # what is poison still is here again at once
            with closing(self._take(box)) as taken:
                for found in islice(taken, most):
                    if is_foreign(found) is None:
                        self._put_back(found)
                        yield found

    def _put_back(self, found: Found) -> None:
        if found.box.back_to is None or is_foreign(found) is not None:
            raise Refused(
                f"Letter {found.id} is no request, but a record of AWS about what it could not deliver; put "
                f"back, it would be taken for a request of that record. {advice(found)}"
            )
        body, attributes = found.put_back()
        # A new deduplication id: with its old one SQS would drop it in silence for five minutes.
        fifo = {"MessageGroupId": found.group, "MessageDeduplicationId": uuid.uuid4().hex}
        send(self._sqs, found.box.back_to, body, attributes, **(fifo if found.group else {}))
        with answering("SQS"):
            self._sqs.delete_message(QueueUrl=found.box.url, ReceiptHandle=found.receipt)
        self._deleted.add(found.id)

    def _take(self, box: Box) -> Generator[Found]:
        """Its letters, each once; whatever was not deleted is given back in the end."""
        receipts: dict[str, str] = {}
        try:
            while batch := self._receive(box):
                news = [found for found in batch if found.id not in receipts]
                receipts |= {found.id: found.receipt for found in batch}
                yield from news
                if not news:
                    return
        finally:
            self._give_back(box, [receipt for one, receipt in receipts.items() if one not in self._deleted])

    def _receive(self, box: Box) -> list[Found]:
        with answering("SQS"):
            answer = self._sqs.receive_message(
                QueueUrl=box.url,
                MaxNumberOfMessages=_BATCH,
                VisibilityTimeout=HIDDEN_SECONDS,
                WaitTimeSeconds=1,  # a longer look asks all of the queue's servers
                MessageSystemAttributeNames=["All"],
                MessageAttributeNames=["All"],
            )
        return [Found.from_message(box, message) for message in answer.get("Messages", [])]

    def _give_back(self, box: Box, receipts: list[str]) -> None:
        """Let others see them."""
        for start in range(0, len(receipts), _BATCH):
            with answering("SQS"):
                self._sqs.change_message_visibility_batch(
                    QueueUrl=box.url,
                    Entries=[
                        {"Id": str(number), "ReceiptHandle": receipt, "VisibilityTimeout": 0}
                        for number, receipt in enumerate(receipts[start : start + _BATCH])
                    ],
                )

    def _count(self, box: Box) -> int:
        with answering("SQS"):
            told = self._sqs.get_queue_attributes(
                QueueUrl=box.url, AttributeNames=["ApproximateNumberOfMessages"]
            )
        return int(told["Attributes"]["ApproximateNumberOfMessages"])


def is_foreign(found: Found) -> str | None:
    """What a record of AWS's own failures is of; None for a letter of ours."""
    foreign = foreign_record(json_or_text(found.body), found.text_attributes())
    if foreign is not None:
        return foreign.kind
    return "record of a kind that is not known here" if found.box.back_to is None else None


def advice(found: Found) -> str:
    """What to do with a record that cannot be put back."""
    foreign = foreign_record(json_or_text(found.body), found.text_attributes())
    return foreign.advice if foreign else f"Look at it: steponce letters show {found.id}"


def reason_of(found: Found) -> str:
    """Why a letter lies where it does."""
    foreign = foreign_record(json_or_text(found.body), found.text_attributes())
    if REASON in found.attributes or foreign is None:
        return found.reason
    return f"{foreign.reason} ({foreign.kind})"
