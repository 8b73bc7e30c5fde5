"""
Lists and redrives dead letters.

SQS shows a message to one receiver only, and hides it from others for a while. So each list makes its letters
visible again at once. If the program dies, they are visible again after two minutes. Two operators at the
same time each see some of the letters. A redrive sends the message and then deletes the letter. If the
program dies in between, the letter can be redriven again. That does no harm, since it has the same request
id.
"""

from __future__ import annotations

import uuid
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from itertools import islice
from typing import Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from steponce.aws.errors import answering, is_refusal, what_happened
from steponce.errors import Refused, SteponceError, Unavailable
from steponce.next_step import NextStep
from steponce.triggers.found_letters import DeadLetterQueue, Found
from steponce.triggers.letter_advice import can_be_put_back, is_foreign, may_be_answered, what_next
from steponce.triggers.sqs import Queues, send

HIDDEN_SECONDS = 120
"""How long a letter is hidden from others if the program that lists it dies."""

_BATCH = 10
_VISIBLE, _HIDDEN = "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"


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


class PartlyRedriven(Unavailable):
    """AWS refused or did not answer while letters were redriven one by one. The message says how many are."""


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
        self._in_doubt = ""

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
            PartlyRedriven: AWS refused or did not answer, and it is put back, or may be.
            Unavailable, ClientError, BotoCoreError: the same, and it is not.
        """
        self._in_doubt = ""
        try:
            with self._held(letter_id) as found:
                self._put_back(found)
                return found
        except (Unavailable, ClientError, BotoCoreError) as error:
            if not self._in_doubt:
                raise
            raise self._partly(error) from error

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
            PartlyRedriven: AWS refused or did not answer, and some are redriven, or may be.
            Unavailable, ClientError, BotoCoreError: the same, and none is.
        """
        count, self._in_doubt = 0, ""
        try:
            for found in self._redrive_each():
                count += 1
                yield found
        except (Unavailable, ClientError, BotoCoreError) as error:
            if not count and not self._in_doubt:
                raise
            sure = f"Put back until then: {count}, and deleted from the dead letters." if count else ""
            raise self._partly(error, sure) from error

    def _partly(self, error: Unavailable | ClientError | BotoCoreError, sure: str = "") -> PartlyRedriven:
        said = " ".join(filter(None, (what_happened(error), sure, self._in_doubt)))
        return PartlyRedriven(
            f"{said} Others may still be there, and be hidden for up to {HIDDEN_SECONDS} seconds. "
            "Once the cause is gone, repeat the command: to redrive a letter twice does no harm.",
            throttled=isinstance(error, Unavailable) and error.throttled,
            next_steps=[NextStep("list letters")],
        )

    def _redrive_each(self) -> Iterator[Found]:
        """As `redrive_all`, with the errors of AWS."""
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
        self._in_doubt = ""
        try:
            send(self._sqs, found.queue.back_to, body, attributes, **more)
        except Exception as error:
            self._in_doubt = "" if is_refusal(error) else f"Letter {found.id} may be put back."
            raise
        self._in_doubt = f"Letter {found.id} is put back, and may not be deleted."
        self._delete(found)
        self._in_doubt = ""

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
