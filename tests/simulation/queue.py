"""SQS in memory: delivers at least once, returns what failed, and dead-letters what failed too often."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any

from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from steponce.triggers.resend import LOCK_TOKEN, REQUEST_ID
from tests.simulation.faults import PASSING, Faults
from tests.simulation.turns import Turns
from tests.unit.triggers.world import DEAD, QUEUE, check_message, received

MOST_RECEIVES = 5
VISIBILITY_SECONDS = 180
FUNCTION_SECONDS = 30
LETTERS_KEPT = timedelta(days=14)


@dataclass
class Message:
    """
    A message, or a dead letter.

    Attributes:
        sent: What was sent.
        at: When it was sent.
        receives: How often it was received.
        hidden_until: Until when a letter cannot be received, because somebody looks at it.
    """

    sent: Mapping[str, Any]
    id: str
    at: datetime
    receives: int = 0
    hidden_until: datetime | None = None

    def received(self) -> SQSRecord:
        """The message as a function gets it."""
        record = received(self.sent, self.id)
        record["attributes"]["SentTimestamp"] = str(round(self.at.timestamp() * 1000))
        return SQSRecord(record)

    @property
    def asks_for(self) -> tuple[str, Any]:
        """The request id and the payload."""
        body, attributes = json.loads(self.sent["MessageBody"]), self.sent["MessageAttributes"]
        if REQUEST_ID in attributes:
            return json.loads(attributes[REQUEST_ID]["StringValue"]), body
        return body["id"], body["payload"]

    def listed(self) -> dict[str, Any]:
        """The letter as ReceiveMessage returns it."""
        return {
            "MessageId": self.id,
            "ReceiptHandle": self.id,
            "Body": self.sent["MessageBody"],
            "MessageAttributes": self.sent["MessageAttributes"],
            "Attributes": {"SentTimestamp": str(round(self.at.timestamp() * 1000))},
        }

    def can_be_seen(self, now: datetime) -> bool:
        """Whether ReceiveMessage returns the letter."""
        return (self.hidden_until or now) <= now < self.at + LETTERS_KEPT


@dataclass
class Queue:
    """
    The requests queue and its dead-letter queue. Only letters are received, listed and deleted by calls.

    Attributes:
        waiting: Messages that are not acknowledged.
        dead: Dead letters.
        put_back: Letters that were put back, and a time that was not after that.
        rings: Is called when there is a new letter, as an alarm calls a person.
    """

    turns: Turns
    random: Random
    faults: Faults
    handle: Callable[[SQSRecord], None]
    waiting: list[Message] = field(default_factory=list)
    dead: list[Message] = field(default_factory=list)
    put_back: list[tuple[Message, datetime]] = field(default_factory=list)
    rings: Callable[[], object] = lambda: None
    _count: int = 0
    _letters: int = 0
    _seen: dict[str, datetime] = field(default_factory=dict)

    def send_message(self, **message: Any) -> dict[str, Any]:
        """SendMessage."""
        check_message(message)
        if message["QueueUrl"] != QUEUE:
            self.turns.note("dead-letters a message")
            self._letters += 1
            self._lay_aside(Message(message, f"letter-{self._letters}", self.turns.now))
            return {}
        self._count += 1
        waiting = Message(message, f"m-{self._count}", self.turns.now)
        self.turns.note(f"sends {waiting.id}")
        self.waiting.append(waiting)
        copies = 2 if self.faults.happens(0.1) else 1
        for _ in range(copies):
            self._deliver(waiting, message.get("DelaySeconds", 0) + self.random.uniform(0, 2))
        return {}

    def _deliver(self, message: Message, after: float) -> None:
        self.turns.spawn(
            f"queue {message.id}", lambda: self._receive(message), after=after, seconds=FUNCTION_SECONDS
        )

    def _receive(self, message: Message) -> None:
        if message not in self.waiting:
            return
        message.receives += 1
        is_done = False
        try:
            self.handle(message.received())
        except PASSING as error:
            self.turns.note(f"fails: {type(error).__name__}")
        else:
            is_done = not self.faults.happens(0.03)  # else its deletion is lost
        finally:
            if message in self.waiting:
                if is_done:
                    self.waiting.remove(message)
                elif message.receives >= MOST_RECEIVES:
                    self.waiting.remove(message)
                    self._lay_aside(message)
                else:
                    self._deliver(message, VISIBILITY_SECONDS)

    # -- Dead letters --------------------------------------------------------------------------------

    def _lay_aside(self, letter: Message) -> None:
        self.dead.append(letter)
        self.rings()

    def visible(self) -> list[Message]:
        """The letters that can be seen now."""
        return [letter for letter in self.dead if letter.can_be_seen(self.turns.now)]

    def receive_message(
        self, *, QueueUrl: str, MaxNumberOfMessages: int, VisibilityTimeout: int, **_more: Any
    ) -> dict[str, Any]:
        """ReceiveMessage of the dead-letter queue."""
        assert QueueUrl == DEAD
        seen = self.visible()[:MaxNumberOfMessages]
        for letter in seen:
            letter.hidden_until = self.turns.now + timedelta(seconds=VisibilityTimeout)
            self._seen[letter.id] = self.turns.now
        return {"Messages": [letter.listed() for letter in seen]}

    def change_message_visibility_batch(
        self, *, QueueUrl: str, Entries: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        """ChangeMessageVisibilityBatch."""
        assert QueueUrl == DEAD
        given = {entry["ReceiptHandle"]: entry["VisibilityTimeout"] for entry in Entries}
        for letter in (one for one in self.dead if one.id in given):
            letter.hidden_until = self.turns.now + timedelta(seconds=given[letter.id])
        return {}

    def get_queue_attributes(self, *, QueueUrl: str, AttributeNames: Sequence[str]) -> dict[str, Any]:
        """GetQueueAttributes."""
        assert QueueUrl == DEAD
        visible = len(self.visible())
        counts = {"ApproximateNumberOfMessages": visible}
        counts["ApproximateNumberOfMessagesNotVisible"] = len(self.dead) - visible
        return {"Attributes": {name: str(counts[name]) for name in AttributeNames}}

    def delete_message(self, *, QueueUrl: str, ReceiptHandle: str) -> dict[str, Any]:
        """DeleteMessage: whoever lists a letter sends it back before."""
        assert QueueUrl == DEAD
        for letter in [one for one in self.dead if one.id == ReceiptHandle]:
            self.dead.remove(letter)
            self.put_back.append((letter, self._seen[letter.id]))
        return {}

    def move(self, letter: Message, *, anew: bool = False) -> None:
        """
        Put a letter back as SQS itself does: a new message with the same body and attributes.

        Args:
            letter: The letter.
            anew: Send what it asks for as it was first sent, instead.
        """
        self.dead.remove(letter)
        self.put_back.append((letter, self.turns.now))
        body, attributes = letter.sent["MessageBody"], letter.sent["MessageAttributes"]
        if anew:
            request_id, payload = letter.asks_for
            token = json.loads(attributes[LOCK_TOKEN]["StringValue"])
            body, attributes = json.dumps({"id": request_id, "token": token, "payload": payload}), {}
        self.send_message(QueueUrl=QUEUE, MessageBody=body, MessageAttributes=attributes)
