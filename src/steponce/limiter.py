"""
A rate limit that counts every request once: at most so many per user and window.

The same request gets the same answer, however often it comes and from wherever. The window is cut from the
event's own time, so that a redelivery after midnight counts for yesterday.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self

import boto3
from botocore.config import Config

from steponce.aws import times
from steponce.aws.clients import stack_outputs, with_defaults
from steponce.aws.forks import own_connections
from steponce.errors import InvalidRequestId, shown
from steponce.limits.countable import KEPT_SECONDS, check_time, check_user, forgotten_at, size_of
from steponce.limits.counters import Counters, Tally
from steponce.limits.record import Counter, key_of, member_of
from steponce.limits.window import Window
from steponce.request.names import shard_of

_MAX_NAME_BYTES = 255
_MAX_LIMITS = 50
_LONGEST_KEPT_SECONDS = 100 * 366 * 86_400


@dataclass(frozen=True)
class Admission:
    """
    The answer to one request. In a condition it is true if the request is admitted.

    Args:
        admitted: Whether the request is within the limit. It is the same whenever the request comes, unless
            a refused one comes again after the limit was raised, or reset.
        counted_before: Whether it was counted already, by an earlier call, or by an earlier try of this one
            whose answer was lost.
        remaining: How many more requests the window takes. Others may count meanwhile. Of a limit in shards:
            how many the request's own shard takes. Of several limits: the smallest.
        resets_at: When the window ends, in UTC. Of several limits: when those that refuse have all ended;
            or, if none does, when the one with the fewest remaining ends.
        refused_by: The limits that are full, each as `<name>/<window>`; empty if the request is admitted.
    """

    admitted: bool
    counted_before: bool
    remaining: int
    resets_at: datetime
    refused_by: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.admitted


class Limiter:
    """
    At most `limit` requests for each user in each window.

    Args:
        table: Name of the table; the stack's Output `LimitsTable`.
        limit: How many requests a window takes, 1 or more. Raising it takes effect at once, in windows that
            have begun too; lowering it refuses no request that was admitted.
        window: `minute`, `hour`, `day`, or whole seconds; in UTC.
        name: Keeps limits on one table apart that count different things. No slash. Limiters of one name and
            window share their counts; other windows of one name do not.
        shards: Into how many parts a user's count is split, for users with more than about 50 requests a
            second. A request belongs to one shard, which has its share of the limit. So there are never more
            than `limit` admitted, but the first refusals come when the fullest shard is full. Another number
            begins new counts.
        kept_seconds: How long after its end the counts of a window are kept, and so how late an event may
            come; 100 years at the most. Limiters that share counts must agree on it.
        session: Your own boto3 session.
        config: Your own botocore config, merged over ours.
        endpoints: Another address for `dynamodb`, as a local stack has.

    One limiter may serve many threads and tasks.

    Raises:
        ValueError: an argument is not as it should be.
    """

    def __init__(
        self,
        table: str,
        *,
        limit: int,
        window: str | int,
        name: str = "requests",
        shards: int = 1,
        kept_seconds: int = KEPT_SECONDS,
        session: boto3.Session | None = None,
        config: Config | None = None,
        endpoints: Mapping[str, str] | None = None,
    ) -> None:
        if not _is_whole(limit, 1):
            raise ValueError(f"The limit {limit!r} is none. Give a whole number, 1 or more.")
        if not _is_whole(shards, 1) or shards > limit:
            raise ValueError(f"A limit of {limit} cannot be kept in {shards!r} shards. Give 1 to {limit}.")
        if not _is_whole(kept_seconds, 0) or kept_seconds > _LONGEST_KEPT_SECONDS:
            raise ValueError(
                f"kept_seconds is {kept_seconds!r}. Give whole seconds, from 0 to {_LONGEST_KEPT_SECONDS}."
            )
        if (
            not (isinstance(name, str) and name.strip())
            or "/" in name
            or len(name.encode()) > _MAX_NAME_BYTES
        ):
            raise ValueError(f"The name {name!r} cannot be one. Give short text without a slash.")
        self.limit = limit
        self.window = Window.of(window)
        self.name = name
        self._table = table
        self._shards = shards
        self._kept = timedelta(seconds=kept_seconds)
        self._counters = Counters(
            own_connections(
                (session or boto3.Session()).client(
                    "dynamodb",
                    config=with_defaults(config),
                    endpoint_url=(endpoints or {}).get("dynamodb"),
                )
            )
        )

    @classmethod
    def from_outputs(cls, outputs: Mapping[str, str], **options: Any) -> Self:
        """
        Make a limiter on a stack's table from the stack's Outputs; options as for a Limiter.

        Raises:
            ValueError: the stack has no Output of such a table; deploy it with `Limits=yes`.
        """
        if "LimitsTable" not in outputs:
            raise ValueError(
                "The stack has no Output LimitsTable. Deploy it with Limits=yes. If it is, delete the "
                "Condition of that Output in its template."
            )
        return cls(outputs["LimitsTable"], **options)

    @classmethod
    def from_stack(cls, stack: str, *, session: boto3.Session | None = None, **options: Any) -> Self:
        """
        Make a limiter on the table of a stack that was deployed on AWS.

        Args:
            stack: The CloudFormation stack's name.
            options: As for a Limiter.

        Raises:
            StackNotFound: there is none of this name, in this account and region.
            ValueError: it has no such table; deploy it with `Limits=yes`.
        """
        session = session or boto3.Session()
        outputs = stack_outputs(session, stack, options.get("config"))
        return cls.from_outputs(outputs, session=session, **options)

    def admit(self, user: str, request_id: str, at: datetime | None = None) -> Admission:
        """
        Count a request, unless it was counted before or the window is full.

        Args:
            user: Who is limited; any text of at most 1,024 bytes.
            request_id: What the request is called whenever it comes: a message id, a lock token; any text.
            at: The event's own time, with a zone. Default: the clock, so that a request that comes again in
                the next window counts there too.

        Raises:
            InvalidEventTime: `at` is over 300 seconds ahead of this clock, or so old that the counts of its
                window may be deleted. Nothing was counted.
            InvalidRequest: the user or the request id cannot be used. Nothing was counted.
            Unavailable: DynamoDB did not answer, or too many others count for this user at once. The same
                call is safe to try again, and counts once.
            RecordUnreadable: something else has written to the counter.
        """
        return admit_all([(self, user)], request_id, at)

    async def admit_async(self, user: str, request_id: str, at: datetime | None = None) -> Admission:
        """As `admit`, without blocking the event loop. A cancelled call may have counted the request."""
        return await asyncio.to_thread(self.admit, user, request_id, at)

    def peek(self, user: str, request_id: str | None = None, at: datetime | None = None) -> Admission:
        """
        Say what `admit` would answer, and count nothing.

        Args:
            user: As for `admit`.
            request_id: As for `admit`. None: any request that was not seen yet; of a limit in shards, one
                whose shard has room, and `remaining` is that of all shards.
            at: As for `admit`.

        Raises:
            As `admit`.
        """
        at = self._time(at)
        member = None if request_id is None else _member(request_id)
        shards = range(self._shards) if member is None else [self._shard(member)]
        tallies = self._counters.look([self._counter(user, at, shard) for shard in shards], member)
        full = all(tally.result == "full" for tally in tallies)
        return Admission(
            admitted=not full,
            counted_before=any(tally.result == "before" for tally in tallies),
            remaining=sum(tally.left for tally in tallies),
            resets_at=self.window.end(at),
            refused_by=(self._full_name,) if full else (),
        )

    async def peek_async(
        self, user: str, request_id: str | None = None, at: datetime | None = None
    ) -> Admission:
        """As `peek`, without blocking the event loop."""
        return await asyncio.to_thread(self.peek, user, request_id, at)

    @property
    def _full_name(self) -> str:
        return f"{self.name}/{self.window.name}"

    def _shard(self, member: str) -> int:
        return int(shard_of(member, self._shards))

    def _counter(self, user: str, at: datetime, shard: int) -> Counter:
        check_user(user)
        share, rest = divmod(self.limit, self._shards)
        return Counter(
            table=self._table,
            key=key_of(self.name, self.window, user, at, f"{shard}/{self._shards}" * (self._shards > 1)),
            who=user,
            start=times.to_text(self.window.start(at)),
            limit=share + (shard < rest),
            ttl=forgotten_at(at, self.window, self._kept),
        )

    def _time(self, at: datetime | None) -> datetime:
        """The event's time, if it can be counted."""
        now = times.now()
        if at is None:
            return now
        check_time(at, now, self.window, self._kept, then="Keep them longer with kept_seconds.")
        return at


def admit_all(
    limits: Sequence[tuple[Limiter, str]], request_id: str, at: datetime | None = None
) -> Admission:
    """
    Count a request at several limits: at all of them, or at none if one is full.

        admit_all([(per_minute, user), (per_day, tenant)], message_id, at=sent_at)

    It is one transaction, which costs twice the writes. A limit that has counted the request before is not
    asked again.

    Args:
        limits: 1 to 50 limiters with the user of each; their tables in one account and region. No counter
            twice.
        request_id: As for `Limiter.admit`.
        at: As for `Limiter.admit`, for all of them.

    Returns:
        One answer for all; `refused_by` says which limits are full.

    Raises:
        ValueError: there are no limits, too many, or one of them twice.
        As `Limiter.admit`.
    """
    if not 1 <= len(limits) <= _MAX_LIMITS:
        raise ValueError(f"{len(limits)} limits cannot be counted at once. Give 1 to {_MAX_LIMITS}.")
    member = _member(request_id)
    at = times.now() if at is None else at
    counters = [limit._counter(user, limit._time(at), limit._shard(member)) for limit, user in limits]
    if len({(counter.table, counter.key) for counter in counters}) < len(counters):
        raise ValueError("One limit is given twice for one user. Give each of them once, or another name.")
    return _answer(limits, limits[0][0]._counters.admit(counters, member), at)


async def admit_all_async(
    limits: Sequence[tuple[Limiter, str]], request_id: str, at: datetime | None = None
) -> Admission:
    """As `admit_all`, without blocking the event loop. A cancelled call may have counted the request."""
    return await asyncio.to_thread(admit_all, limits, request_id, at)


def _answer(limits: Sequence[tuple[Limiter, str]], tallies: Sequence[Tally], at: datetime) -> Admission:
    found = [(limit, tally) for (limit, _), tally in zip(limits, tallies, strict=True)]
    full = [limit for limit, tally in found if tally.result == "full"]
    scarcest, _ = min(found, key=lambda one: one[1].left)
    return Admission(
        admitted=not full,
        counted_before=all(tally.result == "before" for tally in tallies),
        remaining=min(tally.left for tally in tallies),
        resets_at=max(limit.window.end(at) for limit in full or [scarcest]),
        refused_by=tuple(limit._full_name for limit in full),
    )


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _member(request_id: str) -> str:
    if not isinstance(request_id, str) or not request_id.strip() or not size_of(request_id):
        raise InvalidRequestId(
            f"The request id {shown(request_id)} is empty or not text. Give one that names the request."
        )
    return member_of(request_id)
