"""SQS in memory: delivers at least once, returns what failed, and dead-letters what failed too often."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Any

from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from tests.simulation.faults import PASSING, Faults
from tests.simulation.turns import Turns
from tests.unit.triggers.world import QUEUE, check_message, received

MOST_RECEIVES = 5
VISIBILITY_SECONDS = 180
FUNCTION_SECONDS = 30


@dataclass
class Message:
    """A message, when it was sent, and how often it was received."""

    sent: Mapping[str, Any]
    id: str
    at: datetime
    receives: int = 0

    def received(self) -> SQSRecord:
        """The message as a function gets it."""
        record = received(self.sent, self.id)
        record["attributes"]["SentTimestamp"] = str(round(self.at.timestamp() * 1000))
        return SQSRecord(record)


@dataclass
class Queue:
    """
    The requests queue and its dead-letter queue.

    Attributes:
        waiting: Messages that are not acknowledged.
        dead: Dead letters, as they were sent.
    """

    turns: Turns
    random: Random
    faults: Faults
    handle: Callable[[SQSRecord], None]
    waiting: list[Message] = field(default_factory=list)
    dead: list[Mapping[str, Any]] = field(default_factory=list)
    _count: int = 0

    def send_message(self, **message: Any) -> dict[str, Any]:
        """SendMessage."""
        check_message(message)
        if message["QueueUrl"] != QUEUE:
            self.turns.note("dead-letters a message")
            self.dead.append(message)
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
                    self.dead.append(message.sent)
                else:
                    self._deliver(message, VISIBILITY_SECONDS)
