"""
Lists requests: from their lock records, and from executions whose request has no record.

The records come first. They are read by a scan of the table, or by the open index if only running requests
are wanted. Executions are left out if their request was among these records. Of the rest the newest attempt
of each request is described if its status is wanted, since a list of executions has only names, and the name
of an execution is not always its request's id.

A request has one status, whichever is asked for. A later attempt may have begun since a record became free.
It may wait for the lock, or have ended without it. So a request whose record is free is held back until the
executions are listed.

Nothing is written. Up to REMEMBERED names of requests are kept, as many identities of requests whose
executions may have two names, and as many requests are held back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import filterfalse
from typing import TYPE_CHECKING, Any

from steponce.aws import times
from steponce.aws.dynamodb import Item, Skip
from steponce.aws.errors import answering
from steponce.aws.pace import LISTS_PER_SECOND, Pace
from steponce.errors import RecordUnreadable
from steponce.executions import Execution
from steponce.operator.records import open_locks
from steponce.operator.requests import Request, Wanted, id_of, lock_token_of, status_of
from steponce.request.machine import Machine
from steponce.request.names import is_named_otherwise, split_attempt
from steponce.workflow import INPROGRESS

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions.type_defs import ExecutionListItemTypeDef

REMEMBERED = 100_000
"""
How many requests are remembered, and how many with a free record. Beyond that more executions are described,
and free records are listed as they are.
"""

DESCRIBES_PER_SECOND = 5
"""AWS allows 10 in small regions. Other callers of the account share that."""

_PAGE = 1_000
_RUNNING = {"statusFilter": "RUNNING"}


class Listing:
    """
    Lists the requests of some machines, page by page, each when it is asked for.

    Args:
        machines: The machines, whose tables are read. At least one.
        wanted: Which of their requests.
        only: Whether to leave out what is no execution of these machines, like plain Python's locks.
        skip: Is called with each unreadable record.
    """

    def __init__(self, machines: Sequence[Machine], wanted: Wanted, *, only: bool, skip: Skip) -> None:
        self._machines = machines
        self._wanted = wanted
        self._only = only
        self._skip = skip
        self._seen: set[tuple[str, str]] = set()
        self._free: dict[tuple[str, str], Request] = {}
        self._told: set[tuple[str | None, str, str | None]] = set()
        self._lists, self._describes = Pace(LISTS_PER_SECOND), Pace(DESCRIBES_PER_SECOND)

    def __iter__(self) -> Iterator[Request]:
        """
        Read on.

        Raises:
            Unavailable: no answer; safe to try again.
        """
        for machine in {one.locks.table: one for one in reversed(self._machines)}.values():
            yield from self._recorded(machine)
        if self._wanted.has_executions:
            for machine in self._machines:
                yield from self._unrecorded(machine)
            yield from filter(self._is_wanted, filterfalse(self._is_told, self._free.values()))

    def _recorded(self, machine: Machine) -> Iterator[Request]:
        """The requests whose records are in a machine's table."""
        wanted = self._wanted
        if wanted.status == "RUNNING":
            locks = open_locks(machine, INPROGRESS, skip=self._skip_wanted)
        else:
            # A scan costs the same without a prefix, and then knows which executions have a record.
            prefix = "" if wanted.has_executions else wanted.under
            locks = machine.locks.under(prefix, consistent=False, skip=self._skip_wanted)
        for lock in locks:
            request = Request.from_lock(lock, machine.results)
            if request.machine is not None and wanted.spans(lock.taken_at):
                key = (request.machine, split_attempt(lock.execution_name or "")[0])
                if lock.is_reusable(times.now_text()) and self._may_hold_back(request, key):
                    self._free[key] = request
                    continue
                self._remember(key)
                self._tell(request)
            if self._is_wanted(request):
                yield request

    def _may_hold_back(self, request: Request, key: tuple[str, str]) -> bool:
        """Whether the list of executions will tell if a request whose record is free has begun again."""
        return (
            self._wanted.has_executions
            and (request.lock_token or "").startswith(self._wanted.under)
            and request.machine in {machine.arn for machine in self._machines}
            and key not in self._free
            and len(self._free) < REMEMBERED
        )

    def _unrecorded(self, machine: Machine) -> Iterator[Request]:
        """The requests of executions that no record tells of, each by its newest attempt."""
        for one in self._newest(machine):
            arn = one["executionArn"]
            self._describes.turn(float("inf"))
            execution = machine.describe_arn(arn)
            if execution is None:
                continue
            request = self._request(machine, arn, times.to_text(one["startDate"]), execution)
            key = (machine.arn, split_attempt(one["name"])[0])
            free = self._free.get(key)
            if free and (request.request_id, request.lock_token) == (free.request_id, free.lock_token):
                del self._free[key]
            is_told = self._is_told(request)
            self._tell(request)
            if not is_told and self._is_wanted(request):
                yield request

    def _newest(self, machine: Machine) -> Iterator[ExecutionListItemTypeDef]:
        """The newest attempt of each request that was not seen yet, if it may be wanted."""
        wanted = self._wanted
        if wanted.status == "RELEASED" and machine.arn not in {arn for arn, _ in self._free}:
            return  # only a record says so
        for one in self._executions(machine, _RUNNING if wanted.status == "RUNNING" else {}):
            name, attempt = split_attempt(one["name"])
            if (machine.arn, name) in self._seen:
                continue
            is_wanted = self._may_be_wanted(one, self._free.get((machine.arn, name)))
            if self._is_doubtful(one, is_wanted) and self._has_attempt(machine, name, attempt + 1):
                continue
            self._remember((machine.arn, name))
            if is_wanted:
                yield one

    def _may_be_wanted(self, one: ExecutionListItemTypeDef, free: Request | None) -> bool:
        """Whether the newest attempt of a request may be wanted, or decides whether its free record is."""
        wanted, started = self._wanted, times.to_text(one["startDate"])
        is_wanted = wanted.status in (None, status_of(one["status"])) and wanted.spans(started)
        if free is None:
            return is_wanted
        decides = is_wanted or self._is_wanted(free)
        ended = times.to_text(one["stopDate"]) if "stopDate" in one else None
        return decides and not _tells_of(free, one["executionArn"], started, ended)

    def _is_doubtful(self, one: ExecutionListItemTypeDef, is_wanted: bool) -> bool:
        """
        Whether a newer attempt may not have come before this one in the list, as a newer one began later.

        One that has ended is not in a list of those that run, where an earlier one is that was redriven. And
        nothing is known of requests that cannot be remembered.
        """
        return bool(one.get("redriveCount")) or (is_wanted and len(self._seen) >= REMEMBERED)

    def _has_attempt(self, machine: Machine, name: str, attempt: int) -> bool:
        self._describes.turn(float("inf"))
        return machine.describe(name, attempt) is not None

    def _request(self, machine: Machine, arn: str, started: str, execution: Execution) -> Request:
        """The request of an execution: by its record, unless that is free and an earlier attempt's."""
        token = lock_token_of(machine, arn, execution)
        try:
            lock = machine.locks.get(token) if token else None
        except RecordUnreadable:
            lock = None
        if lock is None or not machine.made(lock, id_of(arn, execution)):
            return Request.from_execution(machine, arn, started, execution)
        request = Request.from_lock(lock, machine.results)
        is_free = lock.is_reusable(times.now_text())
        if is_free and not _tells_of(request, arn, started, execution.closed):
            return Request.from_execution(machine, arn, started, execution)
        return request

    def _executions(self, machine: Machine, given: Mapping[str, str]) -> Iterator[ExecutionListItemTypeDef]:
        """
        A machine's executions from the newest to the first that is too old.

        Source: ListExecutions API reference ("sorted by time, with the most recent execution first").
        """
        for one in self._pages(machine, given):
            if times.to_text(one["startDate"]) < (self._wanted.since or ""):
                return
            yield one

    def _pages(self, machine: Machine, given: Mapping[str, Any]) -> Iterator[ExecutionListItemTypeDef]:
        pages = machine.sfn.get_paginator("list_executions").paginate(
            stateMachineArn=machine.arn, **given, PaginationConfig={"PageSize": _PAGE}
        )
        with answering("Step Functions"):
            self._lists.turn(float("inf"))
            for page in pages:
                yield from page["executions"]
                self._lists.turn(float("inf"))

    def _is_wanted(self, request: Request) -> bool:
        wanted = self._wanted
        return (
            wanted.status in (None, request.status)
            and wanted.spans(request.created or "")
            and (request.lock_token or "").startswith(wanted.under)
            and (not self._only or request.machine in {machine.arn for machine in self._machines})
        )

    def _skip_wanted(self, error: RecordUnreadable, item: Item) -> None:
        if error.key.startswith(self._wanted.under):
            self._skip(error, item)

    def _is_told(self, request: Request) -> bool:
        """Whether an execution or a record has told of a request already, under another name."""
        return _identity(request) in self._told

    def _tell(self, request: Request) -> None:
        """
        Remember a request whose executions may have two names.

        A person may start `order.1` by hand under that name. The client gives it another name.
        """
        if is_named_otherwise(request.request_id) and len(self._told) < REMEMBERED:
            self._told.add(_identity(request))

    def _remember(self, key: tuple[str, str]) -> None:
        if len(self._seen) < REMEMBERED:
            self._seen.add(key)


def _identity(request: Request) -> tuple[str | None, str, str | None]:
    """What two executions of one request share. With another lock token it is another request."""
    return request.machine, request.request_id, request.lock_token


def _tells_of(free: Request, execution_arn: str, started: str, ended: str | None) -> bool:
    """
    Whether a free record has the last word on an execution.

    It has if the execution made it. It also has if the execution ended before the record was settled. An
    execution that began after the record was made did not make it, even under the same ARN: Step Functions
    lets a name be used again 90 days after its execution has ended.

    Args:
        free: The request by its record.
        execution_arn: The execution.
        started, ended: When it began and ended, as UTC text. None if it runs.
    """
    if ended is not None and ended <= (free.finished or ""):
        return True
    return execution_arn == free.locked_by and started <= (free.created or "")
