"""
Lists requests: from their lock records, and from executions whose request has no record.

The records come first. They are read by a scan of the table, or by the open index if only running requests
are wanted. Executions are left out if their request was among these records. The rest are described, since a
list of executions has only names, and the name of an execution is not always its request's id.

Nothing is written, and nothing is kept but the names of the requests that have a record, up to REMEMBERED.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from steponce.aws import times
from steponce.aws.dynamodb import Item, Skip
from steponce.aws.errors import answering
from steponce.aws.pace import LISTS_PER_SECOND, Pace
from steponce.errors import RecordUnreadable
from steponce.executions import Execution
from steponce.operator.records import open_locks
from steponce.operator.requests import Request, Status, Wanted, id_of, lock_token_of
from steponce.request.machine import Machine
from steponce.request.names import split_attempt
from steponce.workflow import INPROGRESS

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions.type_defs import ExecutionListItemTypeDef

REMEMBERED = 100_000
"""How many requests with a record are remembered. Beyond that more executions are described."""

DESCRIBES_PER_SECOND = 5
"""AWS allows 10 in small regions. Other callers of the account share that."""

_PAGE = 1_000
_FILTERS: dict[Status | None, tuple[str | None, ...]] = {
    None: (None,),
    "RUNNING": ("RUNNING",),
    "COMPLETED": ("SUCCEEDED",),
    "FAILED": ("FAILED", "TIMED_OUT", "ABORTED"),
    "RELEASED": (),
}
"""The statuses by which ListExecutions finds requests of a status. None: all at once."""


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
                self._remember(request.machine, split_attempt(lock.execution_name or "")[0])
            if self._is_wanted(request):
                yield request

    def _unrecorded(self, machine: Machine) -> Iterator[Request]:
        """The requests of a machine's executions that have no record."""
        for one in self._executions(machine):
            arn, started = one["executionArn"], times.to_text(one["startDate"])
            name = split_attempt(one["name"])[0]
            if (machine.arn, name) in self._seen or not self._wanted.spans(started):
                continue
            self._describes.turn(float("inf"))
            execution = machine.describe_arn(arn)
            if execution is None:
                continue
            self._remember(machine.arn, name)
            request = self._request(machine, arn, started, execution)
            if self._is_wanted(request):
                yield request

    def _request(self, machine: Machine, arn: str, started: str, execution: Execution) -> Request:
        """The request of an execution: by its record, if that was written since."""
        token = lock_token_of(machine, arn, execution)
        try:
            lock = machine.locks.get(token) if token else None
        except RecordUnreadable:
            lock = None
        is_its_own = lock is not None and machine.made(lock, id_of(arn, execution))
        if lock is not None and is_its_own and (lock.locked_by == arn or not execution.is_open):
            return Request.from_lock(lock, machine.results)
        return Request.from_execution(machine, arn, started, execution)

    def _executions(self, machine: Machine) -> Iterator[ExecutionListItemTypeDef]:
        """
        A machine's executions by what is wanted, each status from the newest to the first that is too old.

        Source: ListExecutions API reference ("sorted by time, with the most recent execution first").
        """
        for status in _FILTERS[self._wanted.status]:
            for one in self._pages(machine, {} if status is None else {"statusFilter": status}):
                if times.to_text(one["startDate"]) < (self._wanted.since or ""):
                    break
                yield one

    def _pages(self, machine: Machine, given: dict[str, Any]) -> Iterator[ExecutionListItemTypeDef]:
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

    def _remember(self, machine_arn: str, name: str) -> None:
        if len(self._seen) < REMEMBERED:
            self._seen.add((machine_arn, name))
