"""
The LimitsTable's records: one counter for each limit, user and window (and shard), and beside a large one an
item for each request.

A counter has one of two forms. Up to SET_MEMBERS requests it holds the digests of the requests themselves, in
a set, and one write counts. Beyond that it holds a number, each request has an item of its own, and one
transaction writes both.

Sets and numbers only grow within a window, so that an answer never changes. The exception is a reset by a
person: it begins a number at 0, and keeps what was counted, so that what was admitted stays admitted.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Self

from steponce.aws import times
from steponce.aws.dynamodb import Attributes, Item
from steponce.errors import RecordUnreadable
from steponce.limits.window import Window
from steponce.locks.record import Intervention, read_interventions
from steponce.locks.table import KEPT_INTERVENTIONS

COUNTER = "counter"
"""The sort key of a counter; a request's own item has its digest there, which is longer."""

SET_MEMBERS = 150
"""
The largest limit that is counted in a set.

An update is billed by the size of the whole item: 1 write unit for each KB begun. With 150 members the item
has 3.5 to 4 KB, so a call costs 4 write units at the most. A transaction of two small items costs 4, too (2
for each item), whatever the limit, and can meet a conflict. So up to here the set is never the dearer form,
and on the average of a window it costs half. With 5,000 members each call would cost over 100.
"""

USERS_INDEX = "CountersOfUsers"
"""By `who` and `windowStart`, which only counters have."""

_DAMAGED = (
    "Another program writes to the table. Correct the attribute there. Do not delete the record: its window "
    "would begin at 0, and count again whom it has admitted."
)

_NO_COUNTER = "Another program writes to the table. Delete the record: nobody is counted in it."

_KEY = re.compile(
    r"(?P<name>[^/]+/(?P<window>[^/]+))/(?P<who>.+)#(?P<start>[0-9:.TZ-]{24})(#(?P<shard>\d+/\d+))?",
    re.DOTALL,
)


@dataclass(frozen=True)
class Counter:
    """
    Which counter is meant, and what is known of it without a read.

    Args:
        table: The table's name.
        key: `<name>/<window>/<who>#<start of the window>`, with a shard `#<number>/<shards>` behind it.
        who: The user, or whatever is limited.
        start: Of the window, as UTC text.
        limit: How many requests it may count.
        ttl: When DynamoDB may delete it; epoch seconds.
    """

    table: str
    key: str
    who: str
    start: str
    limit: int
    ttl: int

    @property
    def item_key(self) -> dict[str, Any]:
        """The key of its record."""
        return {"limitKey": {"S": self.key}, "member": {"S": COUNTER}}


@dataclass(frozen=True)
class Count:
    """
    A counter's record.

    Args:
        key: As the Counter's.
        name: Which limit it is: `<name>/<window>`.
        who: The user.
        start, end: Of its window: the first moment in it, and the first after it.
        shard: Which part of a limit in shards it is: `3/10`.
        limit: As the last counted request had it.
        members: Digests of requests that are counted in the set.
        number: How many are counted, in the form with a number; None in the form with a set.
        forgiven: How many members the set had at the last reset. A workflow goes on adding to the set, up to
            `allowance`: these, and the limit of then. None if there was no reset.
        interventions: What people did to it.
    """

    key: str
    name: str
    who: str
    start: datetime
    end: datetime
    shard: str | None
    limit: int
    members: frozenset[str] = frozenset()
    number: int | None = None
    forgiven: int | None = None
    interventions: tuple[Intervention, ...] = ()

    @classmethod
    def from_item(cls, item: Item) -> Self:
        """
        Read a record.

        Raises:
            RecordUnreadable: something else has written to it.
        """
        read = Attributes(item, "limitKey", _DAMAGED)
        try:
            name, who, start, end, shard = parts_of(read.key)
        except ValueError:
            raise RecordUnreadable(read.key, "limitKey", "is no counter's", _NO_COUNTER) from None
        return cls(
            key=read.key,
            name=name,
            who=who,
            start=start,
            end=end,
            shard=shard,
            limit=read.whole("limit", least=1),
            members=read.optional_texts("members"),
            number=read.optional_whole("count", least=0),
            forgiven=read.optional_whole("forgiven", least=0),
            interventions=read_interventions(read),
        )

    @property
    def counted(self) -> int:
        """How many requests are counted, since the last reset if there was one."""
        if self.number is None:
            return len(self.members)
        by_workflow = 0 if self.forgiven is None else max(0, len(self.members) - self.forgiven)
        return self.number + by_workflow

    def interventions_json(self, *more: Intervention) -> str:
        """The newest interventions, with more of them, as JSON text."""
        kept: Sequence[Intervention] = [*self.interventions, *more][-KEPT_INTERVENTIONS:]
        return json.dumps([asdict(each) for each in kept], ensure_ascii=False)


def key_of(name: str, window: Window, who: str, at: datetime, shard: str = "") -> str:
    """The key of the counter for an event of this time."""
    start = times.to_text(window.start(at))
    return f"{name}/{window.name}/{who}#{start}" + (f"#{shard}" if shard else "")


def parts_of(key: str) -> tuple[str, str, datetime, datetime, str | None]:
    """
    The name, user, start, end and shard that the key of a counter tells.

    Raises:
        ValueError: it is no counter's.
    """
    parts = _KEY.fullmatch(key)
    if parts is None:
        raise ValueError(key)
    start = times.from_text(parts["start"])
    try:
        end = Window.named(parts["window"]).end(start)
    except OverflowError:
        raise ValueError(key) from None
    return parts["name"], parts["who"], start, end, parts["shard"]


def member_of(request_id: str) -> str:
    """The digest by which a counter knows a request: 128 bits of its SHA-256, as 22 characters."""
    digest = hashlib.sha256(request_id.encode()).digest()[:16]
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
