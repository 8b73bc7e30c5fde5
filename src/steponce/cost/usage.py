"""What one path uses, in the units that AWS bills."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Usage:
    """
    Counts of what is billed. They can be added, and multiplied by a whole number.

    Attributes:
        transitions: States entered, and executions started by a distributed Map.
        writes: Write request units of DynamoDB.
        reads: Read request units of DynamoDB. A read that is not consistent is half a unit.
        lambda_calls: Invocations of Lambda functions.
        sqs_requests: Requests to standard queues.
        sqs_fifo_requests: Requests to FIFO queues.
        sns_publishes: Messages published to standard topics.
        events: Events put on EventBridge's buses.
        s3_puts: Objects written to S3.
        s3_gets: Objects read from S3.
        not_priced: State and call of everything else that costs money, sorted.
    """

    transitions: int = 0
    writes: float = 0
    reads: float = 0
    lambda_calls: int = 0
    sqs_requests: int = 0
    sqs_fifo_requests: int = 0
    sns_publishes: int = 0
    events: int = 0
    s3_puts: int = 0
    s3_gets: int = 0
    not_priced: tuple[tuple[str, str], ...] = ()

    def __add__(self, other: Usage) -> Usage:
        """The usage of both together."""
        names = self.not_priced or other.not_priced
        if self.not_priced and other.not_priced:
            names = tuple(sorted({*self.not_priced, *other.not_priced}))
        return Usage(  # field by field, since this is what takes the time where there are many paths
            self.transitions + other.transitions,
            self.writes + other.writes,
            self.reads + other.reads,
            self.lambda_calls + other.lambda_calls,
            self.sqs_requests + other.sqs_requests,
            self.sqs_fifo_requests + other.sqs_fifo_requests,
            self.sns_publishes + other.sns_publishes,
            self.events + other.events,
            self.s3_puts + other.s3_puts,
            self.s3_gets + other.s3_gets,
            names,
        )

    def __mul__(self, times: int) -> Usage:
        """The usage of so many like this one; of none it is nothing."""
        counts = {name: count * times for name, count in self.counts().items()}
        return Usage(**counts, not_priced=self.not_priced if times else ())

    def counts(self) -> dict[str, Any]:
        """All counts by name, also those that are 0."""
        names = [field.name for field in fields(self) if field.name != "not_priced"]
        return {name: getattr(self, name) for name in names}
