"""Finds and deletes the records of one customer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from secrets import randbelow

from steponce.aws import times
from steponce.aws.dynamodb import Item
from steponce.callbacks.awaiting import STATUS_AND_TRY, AwaitingSteps
from steponce.callbacks.step import ANSWERING, PENDING, AwaitingStep
from steponce.errors import RecordUnreadable, Refused
from steponce.executions import YOUNG, looking_at, machine_of
from steponce.locks.record import Lock
from steponce.locks.reference import REFERENCE
from steponce.locks.reference import Kept as LargeResult
from steponce.locks.table import OWNER_AND_STATUS
from steponce.next_step import NextStep
from steponce.request.machine import Machine
from steponce.workflow import FAILED, INPROGRESS, RELEASED

STAYS = (
    "the executions' histories, for 90 days",
    "logs, as long as they are kept",
    "messages in the queues and the dead-letter queue",
    "requests without a record, such as those that wait for a rate limit",
    "the tables' backups, for 35 days",
    "large results whose records have expired, until the bucket's lifecycle deletes them",
    "what the work keeps itself",
)
"""What `erase` does not delete."""

_NAMED = 3
_LOOKED_AT = 30
_MICROSECONDS = 1_000_000
_OPEN = [{"S": status} for status in (INPROGRESS, PENDING, ANSWERING)]


@dataclass(frozen=True)
class Damaged:
    """
    A record that cannot be read.

    Args:
        error: Names the record and its damaged attribute.
        item: Its key, and the attributes that the delete compares.
        is_step: Whether it is an awaiting step's record, and no lock record.
    """

    error: RecordUnreadable
    item: Item = field(repr=False)
    is_step: bool

    @property
    def may_be_open(self) -> bool:
        """Whether it is on an open index, or its status is an open one."""
        return "openStatus" in self.item or self.item.get("status") in _OPEN


@dataclass(frozen=True)
class Kept:
    """
    The records under one prefix, without results, failures, answers and task tokens.

    `damaged` are the unreadable records that are not open, as far as can be seen. `elsewhere` has the lock
    tokens of records that stay, because their large results are in another bucket than the stack's; with it.
    """

    prefix: str
    locks: list[Lock]
    steps: list[AwaitingStep]
    damaged: list[Damaged]
    elsewhere: dict[str, str]

    def __bool__(self) -> bool:
        return bool(self.locks or self.steps or self.damaged)


def find_kept(machine: Machine, steps: AwaitingSteps, prefix: str) -> Kept:
    """
    Find all records whose lock token begins with a prefix. This scans the whole tables, page by page.

    Args:
        machine: The machine with the lock table.
        steps: The table of awaiting steps.
        prefix: Plain text. `acme` also matches `acme2/o-1`; `acme/` does not.

    Raises:
        Refused: the prefix is blank; or a request under it runs, or waits for an answer or a person; or an
            unreadable record may be open.
        OwnerHidden: an execution that may run may not be looked at.
        Unavailable: no answer; safe to try again.
    """
    if not prefix.strip():
        raise Refused("An empty prefix is everybody's. Give one customer's, like acme/")
    damaged: list[Damaged] = []

    def skip(error: RecordUnreadable, item: Item) -> None:
        known = {"lockToken", "awaitingStepId", *OWNER_AND_STATUS, *STATUS_AND_TRY}
        kept = {name: value for name, value in item.items() if name in known}
        damaged.append(Damaged(error, kept, "awaitingStepId" in item))

    elsewhere: dict[str, str] = {}

    def at_rest(lock: Lock) -> Lock:
        large = machine.results.of(lock) if lock.result and REFERENCE in lock.result else None
        if isinstance(large, LargeResult) and large.reference.bucket != machine.results.bucket:
            elsewhere[lock.lock_token] = large.reference.bucket
        return replace(lock, result=None, failure=None)

    under = machine.locks.under(prefix, skip=skip)
    waits = steps.under(prefix, skip=skip)
    found = Kept(
        prefix,
        sorted(map(at_rest, under), key=_token),
        [replace(one, task_token="", answer=None) for one in waits],
        damaged,
        elsewhere,
    )
    busy = _first(_busy(machine, found))
    if busy:
        more = ", and more" if len(busy) > _NAMED else ""
        raise Refused(
            f"Not everything under {prefix!r} is at rest: {', '.join(text for text, _ in busy[:_NAMED])}"
            f"{more}. Nothing was erased. Wait for it, cancel it, or settle it. Correct in the table what "
            "cannot be read, or delete it there.",
            next_steps=list(dict.fromkeys(step for _, step in busy if step is not None))[:_NAMED],
        )
    return replace(found, locks=[lock for lock in found.locks if lock.lock_token not in elsewhere])


def erase(machine: Machine, steps: AwaitingSteps, kept: Kept) -> int:
    """
    Delete the records that `find_kept` found.

    The fence of each delete: the record's owner and status are still those that were found. So a request that
    started meanwhile keeps its record.

    Large results go before the record that leads to them, so that the same command finds what is left. A
    released record gets another fence before that.

    Returns:
        How many records changed meanwhile, and were not deleted.

    Raises:
        ResultForbidden: the bucket of large results may not be listed, or not deleted from.
        Unavailable: no answer; the same command erases the rest.
    """
    changed = 0
    for step in kept.steps:
        if not steps.erase(step):
            changed += steps.get(step.id) is not None
    for lock in kept.locks:
        if not _erase(machine, lock):
            changed += machine.locks.get(lock.lock_token) is not None
    for one in kept.damaged:
        if one.is_step:
            changed += not steps.erase_unreadable(one.item)
        else:
            objects = machine.results.objects(one.item["lockToken"]["S"])
            if objects and machine.locks.is_unchanged(one.item):
                machine.results.delete(objects)
            changed += not machine.locks.erase_unreadable(one.item)
    return changed


def _erase(machine: Machine, lock: Lock) -> bool:
    """Delete a record, and first what is kept under its lock token. Returns whether the fence held."""
    # Listed first: what a later owner of the lock keeps comes after its record has changed.
    objects = machine.results.objects(lock.lock_token)
    if objects and lock.status == RELEASED:
        # `locks complete` keeps a result before it writes the record, so one of these may be its own.
        mine = replace(lock, created=_time_of_ones_own(lock.created))
        machine.locks.change_fence(lock, mine.created)
        lock = mine
    if objects and machine.locks.reread(lock) is not None:
        machine.results.delete(objects)
    return machine.locks.erase(lock)


def _time_of_ones_own(created: str) -> str:
    """A time in the second after this one. Another eraser's would be another, so its fence is not ours."""
    own = times.after(times.from_text(created), (1 + randbelow(_MICROSECONDS - 1)) / _MICROSECONDS)
    return own.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _token(lock: Lock) -> str:
    return lock.lock_token


def _first(busy: Iterable[tuple[str, NextStep | None]]) -> list[tuple[str, NextStep | None]]:
    """As much as names more requests than are told. Each further step would cost a DescribeExecution."""
    found = []
    for one in busy:
        found.append(one)
        if len({step for _, step in found}) > _NAMED or len(found) >= _LOOKED_AT:
            break
    return found


def _busy(machine: Machine, kept: Kept) -> Iterator[tuple[str, NextStep | None]]:
    """What runs or waits, and what a person can do about it."""
    for one in kept.damaged:
        if one.may_be_open:
            name, attribute = one.error.key, one.error.attribute
            yield f"the record {name!r} may be open, and its {attribute} cannot be read", None
    for lock in kept.locks:
        look = NextStep("inspect lock", lock.lock_token)
        if lock.status == INPROGRESS:
            yield f"{lock.lock_token!r} is in progress", look
        elif lock.status == FAILED and lock.open_status is not None:
            yield f"{lock.lock_token!r} waits for a person", look
    alive: dict[tuple[str, str], bool] = {}
    for step in kept.steps:
        if step.status not in (PENDING, ANSWERING):
            continue
        owner = step.execution, step.call_id
        if owner not in alive:
            alive[owner] = _may_be_alive(machine, step)
        if alive[owner]:
            text = f"the step {step.step!r} of {step.lock_token!r} waits"
            token = machine.token_to_give(step.request_id, step.lock_token)
            where = machine_of(step.execution)
            yield text, NextStep("cancel request", step.request_id, lock_token=token, machine=where)


def _may_be_alive(machine: Machine, step: AwaitingStep) -> bool:
    """Whether its execution runs. A stopped execution leaves its step open until the step expires."""
    with looking_at(step.execution):
        execution = machine.describe_arn(step.execution)
    if execution is None:
        return times.now() - times.from_text(step.entered_at) < YOUNG
    return execution.is_open and execution.owns(step) is not False
