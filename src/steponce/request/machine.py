"""One state machine with its lock table: where a request's executions are, and what they tell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from steponce.aws import times
from steponce.errors import InvalidRequest, OwnerHidden
from steponce.executions import Execution, describe_execution, looking_at, runs_on
from steponce.locks.record import Lock
from steponce.locks.results import Results
from steponce.locks.table import Locks
from steponce.request.names import MAX_ATTEMPT, attempt_name, name_of, split_attempt
from steponce.request.settings import RequestRules

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient


class Machine:
    """
    A RunOnce state machine, as its clients see it.

    Attributes:
        arn: Its ARN.
        sfn: A Step Functions client for it.
        locks: Its lock table.
        rules: How it makes lock tokens, hashes and times.
        results: Where the results are that are too large for a record.
    """

    def __init__(
        self, arn: str, sfn: SFNClient, locks: Locks, rules: RequestRules, results: Results | None = None
    ) -> None:
        self.arn = arn
        self.sfn = sfn
        self.locks = locks
        self.rules = rules
        self.results = results or Results()

    def newest(self, name: str, attempt: int) -> tuple[Execution | None, int]:
        """
        The newest attempt from this one on, and its number, by a search that doubles its steps.

        The next number is free. Where older attempts are forgotten and others are not, it is the newest of
        those that follow each other.
        """
        return self.newest_after(name, attempt, self.describe(name, attempt))

    def newest_after(
        self, name: str, attempt: int, execution: Execution | None
    ) -> tuple[Execution | None, int]:
        """As `newest`, where the attempt itself is known already."""
        last, step = attempt, 1
        while last + step <= MAX_ATTEMPT and (found := self.describe(name, last + step)):
            execution, last = found, last + step
            step = last - attempt
        free = min(last + step, MAX_ATTEMPT + 1)
        while free - last > 1:
            middle = (last + free) // 2
            found = self.describe(name, middle)
            if found is None:
                free = middle
            else:
                execution, last = found, middle
        return execution, last

    def holds(self, lock: Lock) -> bool:
        """Whether it is an execution of this machine that has, or had, a lock."""
        return runs_on(self.arn, lock.locked_by)

    def is_alive(self, lock: Lock) -> bool:
        """
        Whether a lock's owner looks alive; one that cannot be asked for from here does.

        The workflow that a `no` starts looks closer before it settles anything.
        """
        try:
            return is_owner_open(self.owner(lock), lock)
        except OwnerHidden:
            return True

    def owner(self, lock: Lock) -> Execution | None:
        """
        The execution that a lock names; None if Step Functions does not know it, any more or yet.

        Raises:
            OwnerHidden: it cannot be asked for from here.
            Unavailable: throttled, or no answer; safe to ask again.
        """
        if self.holds(lock):
            return self.describe_arn(lock.locked_by)
        with looking_at(lock.locked_by):
            return self.describe_arn(lock.locked_by)

    def attempt_of(self, lock: Lock | None, request_id: str) -> int:
        """The number of the attempt that made a record; 0 if it is not this request's."""
        if lock is None or lock.request_id != request_id:
            return 0
        name, attempt = split_attempt(lock.execution_name or "")
        return attempt if name == name_of(request_id) else 1

    def lock_token_of(self, name: str, execution_input: Mapping[str, Any]) -> str | None:
        """The business key that an execution's input gives its request; None where it cannot be told."""
        if "lockToken" in execution_input:
            return str(execution_input["lockToken"])
        try:
            return self.rules.lock_token(name, execution_input.get("payload", {}))
        except InvalidRequest:
            return None

    def payload_hash_of(self, execution_input: Mapping[str, Any]) -> str | None:
        """The hash of an execution's payload; None where there is none."""
        if "payloadHash" in execution_input:
            return str(execution_input["payloadHash"])
        try:
            return self.rules.payload_hash(execution_input.get("payload", {}))
        except InvalidRequest:
            return None

    def describe(self, name: str, attempt: int) -> Execution | None:
        """One attempt's execution; None if Step Functions does not know it, any more or yet."""
        return self.describe_arn(self.execution_arn(name, attempt))

    def describe_arn(self, execution_arn: str) -> Execution | None:
        """The same by ARN."""
        return describe_execution(self.sfn, execution_arn, self.arn)

    def execution_arn(self, name: str, attempt: int) -> str:
        """The ARN of one attempt's execution."""
        return f"{self.arn.replace(':stateMachine:', ':execution:')}:{attempt_name(name, attempt)}"


def is_owner_open(execution: Execution | None, lock: Lock) -> bool:
    """Whether a lock's owner, which was asked for, is an execution that runs; or has a lease that does."""
    if lock.is_leased(times.now_text()):
        return True
    return execution is not None and execution.is_open and execution.owns(lock) is not False
