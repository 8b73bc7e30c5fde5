"""What goes wrong at a call to AWS. A schedule has a few faults, at calls that its seed chooses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from random import Random
from typing import Any, Literal

from botocore.exceptions import ClientError, ReadTimeoutError

from steponce.errors import SteponceError
from tests.fakes.errors import client_error
from tests.simulation.turns import Died, Turns

Fault = Literal[
    "refused", "unanswered", "repeated", "slow", "copied", "answered late", "died before", "died after"
]
"""
refused        AWS throttles the call
unanswered     the call takes effect, and its answer is lost
repeated       the same, and boto3 makes the call once more
slow           the call takes effect late, perhaps after its caller has given up
copied         the call takes effect, and once more later
answered late  the call takes effect, and its answer comes late: in stories, where turns do not do that
died           the caller's process ends
"""

_OF_A_READ: tuple[Fault, ...] = ("refused", "slow", "died before")
_OF_A_WRITE: tuple[Fault, ...] = (
    "refused",
    "unanswered",
    "repeated",
    "slow",
    "copied",
    "died before",
    "died after",
)
PASSING = (SteponceError, ClientError, ReadTimeoutError)
"""What code may raise because of them."""

STATES_WAIT_SECONDS = 10
"""How long a state waits for DynamoDB."""

_READS = ("get_", "describe_", "list_", "query", "scan")


def is_read(operation: str) -> bool:
    """Whether a call changes nothing."""
    return operation.startswith(_READS)


class Faults:
    """
    The faults of one schedule. A seed chooses a few kinds of them, so some schedules have much of one kind.

    Attributes:
        left: How many may still happen.
        planned: What a story plans and has not happened yet, by place.
    """

    planned: Mapping[str, str] = {}
    most: Sequence[int] = (0, 1, 1, 2, 3, 6)

    def __init__(self, random: Random, turns: Turns) -> None:
        self.left = random.choice(self.most)
        self._kinds = random.sample(_OF_A_WRITE, random.choice((1, 2, len(_OF_A_WRITE))))
        self._random = random
        self.turns = turns

    def happens(self, chance: float) -> bool:
        """Whether a fault happens now."""
        happens = self.left > 0 and self._random.random() < chance
        self.left -= happens
        return happens

    def one_of(self, kinds: Sequence[Any], chance: float, _place: str) -> Any:
        """The fault of something else than a call, if one happens there now. None if not."""
        return self._random.choice(kinds) if self.happens(chance) else None

    def chance(self, operation: str, _arguments: Mapping[str, Any]) -> float:
        """How probable a fault is at a call."""
        return 0.01 if is_read(operation) else 0.08

    def at(self, operation: str, arguments: Mapping[str, Any], *, mortal: bool) -> Fault | None:
        """The fault of a call. What Step Functions calls itself does not die."""
        possible = [
            kind
            for kind in self._kinds
            if (kind in _OF_A_READ or not is_read(operation)) and (mortal or not kind.startswith("died"))
        ]
        if not possible or not self.happens(self.chance(operation, arguments)):
            return None
        return self._random.choice(possible)

    def call(
        self, operation: str, method: Callable[..., Any], arguments: dict[str, Any], *, mortal: bool
    ) -> Any:
        """Make a call in a turn of its own, with its fault."""
        turns = self.turns
        turns.take()
        fault = self.at(operation, arguments, mortal=mortal)
        if fault is not None:
            turns.note(f"{operation}: {fault}")
        match fault:
            case None:
                return method(**arguments)
            case "refused":
                raise client_error("ThrottlingException", operation)
            case "died before":
                raise Died
            case "died after":
                _ignore(method, arguments)
                raise Died
            case "unanswered":
                _ignore(method, arguments)
                raise ReadTimeoutError(endpoint_url="https://aws")
            case "slow":
                return self._late(method, arguments, mortal=mortal)
            case "answered late":
                answer = method(**arguments)
                turns.take(self._delay())
                return answer
            case "copied":
                turns.spawn("copy", lambda: _ignore(method, arguments), after=self._delay())
                return method(**arguments)
            case "repeated":
                return self._twice(method, arguments)

    def _delay(self) -> float:
        longest = self._random.choice((3, 30, 600))
        return self._random.uniform(0, longest)

    def _late(self, method: Callable[..., Any], arguments: dict[str, Any], *, mortal: bool) -> Any:
        delay = self._delay()
        patience = self.turns.seconds_to_live() if mortal else STATES_WAIT_SECONDS
        if delay > patience:
            self.turns.spawn("late call", lambda: _ignore(method, arguments), after=delay)
            self.turns.take(patience)
            raise ReadTimeoutError(endpoint_url="https://aws")
        self.turns.take(delay)
        return method(**arguments)

    def _twice(self, method: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        """The code gets the answer to the second call, and boto3 says that it was not the first."""
        _ignore(method, arguments)
        self.turns.take(self._random.uniform(0, 5))
        try:
            return method(**arguments)
        except ClientError as error:
            error.response["ResponseMetadata"]["RetryAttempts"] = 1
            raise


def _ignore(method: Callable[..., Any], arguments: dict[str, Any]) -> None:
    """Make a call whose answer nobody gets."""
    with suppress(ClientError):
        method(**arguments)
