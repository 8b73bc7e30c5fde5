"""What the rounds of both schedules share: their limits, and how they log what they leave out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from botocore.exceptions import ClientError

from steponce.aws.errors import error_code
from steponce.errors import RecordUnreadable, Unavailable

SPARE_SECONDS = 15
"""The time that a round keeps for counting and logging."""

LOGGED = 100
"""How many records or executions of one kind a round logs one by one."""


class Log(Protocol):
    """A callable that logs one event, such as a Powertools logger's `warning`."""

    def __call__(self, message: str, /, **facts: object) -> object: ...


class FallenBehind(Exception):
    """More executions end badly than the rounds can examine. What waits for two weeks is left out."""


@dataclass
class Unexamined:
    """
    Counts the executions that a look could not examine, and logs the first of them.

    Args:
        log: Logs each execution.
        skipped: Transient errors. A later look examines what they concern.
        unreadable: Permanent errors. No later look examines what they concern.
    """

    log: Log = field(repr=False)
    skipped: int = 0
    unreadable: int = 0

    def add(self, error: Exception, arn: str) -> None:
        """Count an error, and the execution or machine that it concerns."""
        if isinstance(error, Unavailable | ClientError | FallenBehind):
            self.skipped += 1
        else:
            self.unreadable += 1
        if self.skipped + self.unreadable <= LOGGED:
            damage = error.public() if isinstance(error, RecordUnreadable) else {}
            self.log("could not be examined", error=name_of_error(error), arn=arn, **damage)


def name_of_error(error: Exception) -> str:
    """What a log says of an error. Its text is left out, because it may quote a payload."""
    return error_code(error) if isinstance(error, ClientError) else type(error).__name__
