"""
Lists and redrives dead letters.

SQS shows a message to one receiver only, and hides it from others for a while. So each list makes its letters
visible again at once. If the program dies, they are visible again after two minutes. Two operators at the
same time each see some of the letters. A redrive sends the message and then deletes the letter. If the
program dies in between, the letter can be redriven again. That does no harm, since it has the same request
id.
"""

from __future__ import annotations

import re
import uuid
from base64 import b64encode
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from steponce.aws import times
from steponce.aws.errors import answering
from steponce.errors import InvalidPayload, InvalidRequest, Refused, SteponceError, Unavailable
from steponce.next_step import NextStep
from steponce.request.strict_json import json_or_text
from steponce.triggers.dead_letters import IF_NOT_ANSWERED, LETTER, REASON, Letter
from steponce.triggers.foreign_records import Foreign, foreign_record
from steponce.triggers.messages import original
from steponce.triggers.resend import REQUEST_ID, TRIES
from steponce.triggers.sqs import MAX_REQUEST_BYTES, Attributes, Queues, fits, send

HIDDEN_SECONDS = 120
"""How long a letter is hidden from others if the program that lists it dies."""

_BATCH = 10
_VISIBLE, _HIDDEN = "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"
_FEW_DIGITS = re.compile("[0-9]{1,9}")
_SNS_SAYS = ("ErrorCode", "ErrorMessage", "RequestID")


class LetterQueues(Queues, Protocol):
    """The part of boto3's SQS client that sends, lists and deletes."""

    def receive_message(self, **arguments: Any) -> Any:
        """ReceiveMessage."""

    def delete_message(self, **arguments: Any) -> Any:
        """DeleteMessage."""

    def change_message_visibility_batch(self, **arguments: Any) -> Any:
        """ChangeMessageVisibilityBatch."""

    def get_queue_attributes(self, **arguments: Any) -> Any:
        """GetQueueAttributes."""


class LetterNotFound(SteponceError, LookupError):
    """No letter has this id, or another operator is looking at it."""


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
            request_id = _json_in(self._text(REQUEST_ID) or "null")
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


class Letters:
    """
    The dead letters of a stack.

    Args:
        sqs: An SQS client that may receive from and delete in each queue, and send to its `back_to`.
        queues: The dead-letter queues.
    """

    def __init__(self, sqs: LetterQueues, queues: list[DeadLetterQueue]) -> None:
        self._sqs = sqs
        self._queues = queues
        self._deleted: set[str] = set()

    def look(self, limit: int) -> tuple[list[Found], int]:
        """
        List letters. None is removed.

        Returns:
            At most `limit` letters, and about how many more there are. A FIFO queue shows ten letters of a
            message group at once.

        Raises:
            Unavailable: throttled or no answer; safe to try again.
        """
        count, found = self.count(), list[Found]()
        for queue in self._queues:
            with closing(self._take(queue)) as taken:
                found += islice(taken, limit - len(found))
        return found, max(0, count - len(found))

    def count(self) -> int:
        """
        About how many letters there are, with those that are hidden while somebody else looks at them.

        SQS's counts lag by up to a minute.
        """
        return sum(self._count(queue, _VISIBLE, _HIDDEN) for queue in self._queues)

    def get(self, letter_id: str) -> Found:
        """
        Find one letter. It is not removed.

        Raises:
            LetterNotFound: it is in none of the queues, or hidden.
        """
        with self._held(letter_id) as found:
            return found

    def redrive(self, letter_id: str) -> Found:
        """
        Redrive one letter.

        Raises:
            LetterNotFound: it is in none of the queues, or hidden.
            Refused: it is one of AWS's own failure records, and no request; or too large for its queue.
        """
        with self._held(letter_id) as found:
            self._put_back(found)
            return found

    def delete(self, letter_id: str) -> Found:
        """
        Delete one letter for good.

        Raises:
            LetterNotFound: it is in none of the queues, or hidden.
        """
        with self._held(letter_id) as found:
            self._delete(found)
            return found

    def redrive_all(self) -> Iterator[Found]:
        """
        Redrive all letters that are requests, one by one. Letters that arrive meanwhile may stay. Letters
        that are too large for their queue do, and those that may have been answered.

        Raises:
            Unavailable: throttled or no answer. The letters until then are redriven.
        """
        for queue in self._queues:
            if queue.back_to is None:
                continue
            # A letter that still cannot start comes back at once.
            most = max(self._count(queue, _VISIBLE), _BATCH)
            with closing(self._take(queue)) as taken:
                for found in islice(taken, most):
                    if can_be_put_back(found) and not may_be_answered(found):
                        self._put_back(found)
                        yield found

    @contextmanager
    def _held(self, letter_id: str) -> Iterator[Found]:
        """Hold one letter, so that nobody else sees it inside the block."""
        for queue in self._queues:
            with closing(self._take(queue)) as taken:
                held = next((found for found in taken if found.id == letter_id), None)
                if held is not None:
                    yield held
                    return
        raise self._not_found(letter_id)

    def _not_found(self, letter_id: str) -> LetterNotFound:
        return LetterNotFound(
            f"No letter {letter_id!r} can be seen. It may have been redriven or deleted. Another command may "
            f"have received it: then it is back within {HIDDEN_SECONDS} seconds. A FIFO queue shows only ten "
            "letters of a message group: redrive or delete those first. Of tens of thousands of letters, SQS "
            "may not have shown this one: try again. List the letters.",
            next_steps=[NextStep("list letters")],
        )

    def _put_back(self, found: Found) -> None:
        if found.queue.back_to is None or is_foreign(found) is not None:
            advice, steps = what_next(found)
            raise Refused(
                f"Letter {found.id} is no request, but a record of AWS about what it could not deliver. "
                f"Redriven, it would be taken for a request. {advice}",
                next_steps=steps,
            )
        if found.is_too_large:
            advice, steps = what_next(found)
            raise Refused(f"Letter {found.id} cannot be put back. {advice}", next_steps=steps)
        body, attributes = found.put_back()
        more = {"MessageGroupId": found.group} if found.group else {}
        if found.queue.back_to.endswith(".fifo"):
            # A new deduplication id: SQS silently drops a message with the old one for five minutes.
            more["MessageDeduplicationId"] = uuid.uuid4().hex
        send(self._sqs, found.queue.back_to, body, attributes, **more)
        self._delete(found)

    def _delete(self, found: Found) -> None:
        with answering("SQS"):
            self._sqs.delete_message(QueueUrl=found.queue.url, ReceiptHandle=found.receipt)
        self._deleted.add(found.id)

    def _take(self, queue: DeadLetterQueue) -> Generator[Found]:
        """
        Receive each letter of a queue once. At the end, all that were not deleted become visible again.

        They do so by themselves a little later if SQS does not answer then. A refusal, as without the
        permission, is raised unless a letter was put back: that would look as if it was not.
        """
        receipts: dict[str, str] = {}
        try:
            while batch := self._receive(queue):
                news = [found for found in batch if found.id not in receipts]
                receipts |= {found.id: found.receipt for found in batch}
                yield from news
                if not news:
                    return
        finally:
            left = [receipt for one, receipt in receipts.items() if one not in self._deleted]
            try:
                self._give_back(queue, left)
            except Unavailable:
                pass
            except (BotoCoreError, ClientError):
                if not self._deleted:
                    raise

    def _receive(self, queue: DeadLetterQueue) -> list[Found]:
        with answering("SQS"):
            answer = self._sqs.receive_message(
                QueueUrl=queue.url,
                MaxNumberOfMessages=_BATCH,
                VisibilityTimeout=HIDDEN_SECONDS,
                WaitTimeSeconds=1,  # long polling asks all of the queue's servers
                MessageSystemAttributeNames=["All"],
                MessageAttributeNames=["All"],
            )
        return [Found.from_message(queue, message) for message in answer.get("Messages", [])]

    def _give_back(self, queue: DeadLetterQueue, receipts: list[str]) -> None:
        """Make letters visible again."""
        for start in range(0, len(receipts), _BATCH):
            with answering("SQS"):
                self._sqs.change_message_visibility_batch(
                    QueueUrl=queue.url,
                    Entries=[
                        {"Id": str(number), "ReceiptHandle": receipt, "VisibilityTimeout": 0}
                        for number, receipt in enumerate(receipts[start : start + _BATCH])
                    ],
                )

    def _count(self, queue: DeadLetterQueue, *which: str) -> int:
        with answering("SQS"):
            answer = self._sqs.get_queue_attributes(QueueUrl=queue.url, AttributeNames=list(which))
        return sum(int(answer["Attributes"][name]) for name in which)


def is_foreign(found: Found) -> str | None:
    """The kind of AWS's own message that a letter is. None for a request."""
    foreign = _foreign(found)
    if foreign is not None:
        return foreign.kind
    return "record of a kind that is not known here" if found.queue.back_to is None else None


def _foreign(found: Found) -> Foreign | None:
    if found.letter.shape == "request":
        return None  # its body is a payload, whatever that is about
    return foreign_record(_json_in(found.body), found.text_attributes())


def _json_in(text: str) -> Any:
    """The JSON in a letter. What cannot be read stays text: the letter's reason says what is wrong."""
    try:
        return json_or_text(text, "The letter")
    except InvalidPayload:
        return text


def can_be_put_back(found: Found) -> bool:
    """Whether a letter is a request, and its queue would take it."""
    return is_foreign(found) is None and not found.is_too_large


def may_be_answered(found: Found) -> bool:
    """Whether a person has to find out first whether the message was answered."""
    return found.reason.endswith(IF_NOT_ANSWERED)


def what_next(found: Found) -> tuple[str, tuple[NextStep, ...]]:
    """What to do with a letter, in words and as steps."""
    foreign = _foreign(found)
    if foreign is not None:
        steps = tuple(_at_its_machine(step, found) for step in foreign.next_steps)
        return foreign.advice, steps or (NextStep("delete letter", found.id),)
    if is_foreign(found) is not None:
        return "Look at it.", (NextStep("show letter", found.id),)
    if found.is_too_large:
        return (
            f"Its queue takes {MAX_REQUEST_BYTES:,} bytes, and the letter has more with its attributes. Save "
            "its body, keep the large part in S3, and send a request with the address.",
            (NextStep("show letter", found.id),),
        )
    redriven = NextStep("redrive letter", found.id)
    if may_be_answered(found):
        return (
            "Find out whether its work took effect. If it did not, redrive the letter. If it did, delete it: "
            "redriven, it runs the work again.",
            (redriven, NextStep("delete letter", found.id)),
        )
    return (
        "Remove the cause that its reason names, and redrive it. If the letter itself is the cause, delete "
        "it, and let its sender send a right one.",
        (redriven, NextStep("delete letter", found.id)),
    )


def _at_its_machine(step: NextStep, found: Found) -> NextStep:
    """A start without a machine would go to the stack's own."""
    return replace(step, machine=found.queue.machine) if step.action == "start request" else step


def reason_of(found: Found) -> str:
    """Why a letter was dead-lettered, or what AWS's own failure record says."""
    foreign = _foreign(found)
    if REASON in found.attributes or foreign is None:
        return found.reason
    return f"{foreign.reason} ({foreign.kind})"
