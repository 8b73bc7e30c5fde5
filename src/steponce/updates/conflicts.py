"""
The loop of read, decide and write, with a version check.

Between a read and a write, another program may write to the record. So the write takes effect only if the
record is still the one that was read. If it is not, the loop reads and decides again.
"""

from __future__ import annotations

import asyncio
import copy
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, overload

from steponce.aws.pauses import pauses
from steponce.errors import InvalidRequest, RetryLater, Unavailable
from steponce.updates.item import ItemOf, plain, typed

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

S = TypeVar("S")
T = TypeVar("T")
W = TypeVar("W")

TRIES = 5
"""How often the loop reads, decides and writes by default."""

_FIRST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 1.0

_VERSION = "version"


@overload
def retry_on_conflict(
    read: Callable[[], T],
    decide: Callable[[T], T | None],
    write: Callable[[T, T], bool],
    *,
    tries: int = TRIES,
) -> T:
    """`read`, `decide` and `write` speak of one type; a None of `decide` writes nothing."""


@overload
def retry_on_conflict(
    read: Callable[[], S],
    decide: Callable[[S], W],
    write: Callable[[S, W], bool],
    *,
    tries: int = TRIES,
) -> W:
    """`read` may give more, as the None of `Versioned`, than `decide` gives and `write` takes."""


@overload
def retry_on_conflict(
    read: Callable[[], S],
    decide: Callable[[S], W | None],
    write: Callable[[S, W], bool],
    *,
    tries: int = TRIES,
) -> S | W:
    """The same, and a None of `decide` writes nothing."""


def retry_on_conflict(
    read: Callable[[], S],
    decide: Callable[[S], W | None],
    write: Callable[[S, W], bool],
    *,
    tries: int = TRIES,
) -> S | W:
    """
    Read, decide and write, again after each conflict, with random pauses between.

        record = updates.Versioned("accounts", {"accountId": "7"})
        updates.retry_on_conflict(record.read, lambda seen: {"balance": 5}, record.write)

    Args:
        read: Gives what is there.
        decide: Is given a copy of what was read, and gives what is to be there. The same, or None: nothing
            is to be changed, and nothing is written. It may be called once a try, so it must have no effect.
        write: Is given what was read and what is to be there. It writes only if the record is still as it
            was read, and gives whether it did.
        tries: How often to go round, 1 or more. 5 tries pause for 0.75 seconds at the most.

    Returns:
        What is there now, without what `write` itself adds, such as the new `version`. Read it again before
        another write.

    Raises:
        ValueError: `tries` is no whole number, or less than 1.
        RetryLater: there was a conflict in every try, or the record could not be read. Nothing was written.
            Let it pass: the workflow, or the queue, comes again later.
        Unavailable: raised by `write`. It may have taken effect.
    """
    waits = _waits(tries)
    while True:
        try:
            seen = read()
        except Unavailable as error:
            raise _unread(error) from error
        wanted = decide(copy.deepcopy(seen))
        if wanted is None or wanted == seen:
            return seen
        if write(seen, wanted):
            return wanted
        time.sleep(_next(waits, tries))


@overload
async def retry_on_conflict_async(
    read: Callable[[], Awaitable[T]],
    decide: Callable[[T], T | None],
    write: Callable[[T, T], Awaitable[bool]],
    *,
    tries: int = TRIES,
) -> T:
    """`read`, `decide` and `write` speak of one type; a None of `decide` writes nothing."""


@overload
async def retry_on_conflict_async(
    read: Callable[[], Awaitable[S]],
    decide: Callable[[S], W],
    write: Callable[[S, W], Awaitable[bool]],
    *,
    tries: int = TRIES,
) -> W:
    """`read` may give more, as the None of `Versioned`, than `decide` gives and `write` takes."""


@overload
async def retry_on_conflict_async(
    read: Callable[[], Awaitable[S]],
    decide: Callable[[S], W | None],
    write: Callable[[S, W], Awaitable[bool]],
    *,
    tries: int = TRIES,
) -> S | W:
    """The same, and a None of `decide` writes nothing."""


async def retry_on_conflict_async(
    read: Callable[[], Awaitable[S]],
    decide: Callable[[S], W | None],
    write: Callable[[S, W], Awaitable[bool]],
    *,
    tries: int = TRIES,
) -> S | W:
    """As `retry_on_conflict`, with `read` and `write` that are awaited. A cancelled call may have written."""
    waits = _waits(tries)
    while True:
        try:
            seen = await read()
        except Unavailable as error:
            raise _unread(error) from error
        wanted = decide(copy.deepcopy(seen))
        if wanted is None or wanted == seen:
            return seen
        if await write(seen, wanted):
            return wanted
        await asyncio.sleep(_next(waits, tries))


class Versioned:
    """
    A record with a `version` that shows whether it has changed since it was read. For `retry_on_conflict`.

    Each write makes a new version, a random text. So a record that was deleted and made again never looks
    like the old one. If the answer to a write is lost, its repetition finds its own version, and this is no
    conflict. If it finds another version, nobody can tell whether the first one took effect, and `write`
    raises Unavailable. All programs that write to the record must write through this class.

    Args:
        table: The table's name.
        key: The record's key: names and values of one attribute or two, none of them called `version`.
        dynamodb: Your own client. Default: one with boto3's defaults, made once.

    Raises:
        InvalidRequest: the key cannot be used.
    """

    def __init__(self, table: str, key: Mapping[str, Any], *, dynamodb: DynamoDBClient | None = None) -> None:
        self._item = ItemOf(table, key, dynamodb, {_VERSION})

    def read(self) -> dict[str, Any] | None:
        """
        Read the whole record consistently, with its key and version; numbers are Decimals. None: no record.

        Raises:
            Unavailable: no answer; safe to try again.
        """
        found = self._item.get()
        return None if found is None else plain(found)

    def write(self, seen: Mapping[str, Any] | None, wanted: Mapping[str, Any]) -> bool:
        """
        Put another record in its place, if it is still the one that was read.

        Args:
            seen: As `read` gave it.
            wanted: The whole record, with or without its key. Its version is made anew.

        Returns:
            Whether it was. False: nothing was written.

        Raises:
            InvalidRequest: an attribute cannot be stored. Nothing was written.
            Unavailable: no answer, or an answer was lost and another program has written since. The write may
                have taken effect.
        """
        if not isinstance(wanted, Mapping):
            raise InvalidRequest(f"The record is a {type(wanted).__name__}, no dict. Nothing was written.")
        mine = {"S": uuid.uuid4().hex}
        record = {name: typed(name, value) for name, value in wanted.items()} | {_VERSION: mine}
        written = self._item.put(record, **self._unchanged(seen))
        if written.done or (written.item or {}).get(_VERSION) == mine:
            return True
        if written.was_sent_twice:
            # The other program may have read what the first one wrote. Deciding again might count twice.
            raise Unavailable(
                f"The answer to a write of {self._item.label} was lost, and another program has written "
                "since. The write may have taken effect."
            )
        return False

    async def read_async(self) -> dict[str, Any] | None:
        """As `read`, without blocking the event loop."""
        return await asyncio.to_thread(self.read)

    async def write_async(self, seen: Mapping[str, Any] | None, wanted: Mapping[str, Any]) -> bool:
        """As `write`, without blocking the event loop. A cancelled call may have written."""
        return await asyncio.to_thread(self.write, seen, wanted)

    def _unchanged(self, seen: Mapping[str, Any] | None) -> dict[str, Any]:
        """The condition that the record is as it was read."""
        key = {"#key": self._item.key_name}
        if seen is None:
            return {
                "ConditionExpression": "attribute_not_exists(#key)",
                "ExpressionAttributeNames": key,
            }
        if _VERSION not in seen:
            return {
                "ConditionExpression": "attribute_exists(#key) AND attribute_not_exists(#version)",
                "ExpressionAttributeNames": key | {"#version": _VERSION},
            }
        return {
            "ConditionExpression": "#version = :seen",
            "ExpressionAttributeNames": {"#version": _VERSION},
            "ExpressionAttributeValues": {":seen": typed(_VERSION, seen[_VERSION])},
        }


def _waits(tries: int) -> Iterator[float]:
    """The pauses after each try but the last."""
    if not isinstance(tries, int) or tries < 1:
        raise ValueError(f"tries is {tries!r}. Give a whole number, 1 or more.")
    longest = pauses(_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS)
    return (next(longest) for _ in range(tries - 1))


def _next(waits: Iterator[float], tries: int) -> float:
    pause = next(waits, None)
    if pause is None:
        raise RetryLater(
            f"Others changed the record in each of {tries} tries. Nothing was written. Try again later."
        )
    return pause


def _unread(error: Unavailable) -> RetryLater:
    return RetryLater(f"The record could not be read ({error}). Nothing was written.")
