"""Describes the executions of a request on one state machine, and relates them to its lock records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from steponce.aws import times
from steponce.errors import InvalidRequest, OwnerHidden
from steponce.executions import (
    YOUNG,
    Execution,
    describe_execution,
    execution_arn_of,
    find_lock_token,
    looking_at,
    runs_on,
    unqualified,
)
from steponce.locks.record import Lock
from steponce.locks.results import Results
from steponce.locks.table import Locks
from steponce.request.envelope import check_lock_token
from steponce.request.names import attempt_name, name_of, split_attempt
from steponce.request.settings import RequestRules

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient


class Machine:
    """
    A RunOnce state machine with its lock table.

    Attributes:
        arn: The state machine's ARN, without an alias or a version.
        start_arn: The ARN that StartExecution gets: the machine, or an alias or a version of it.
        sfn: A Step Functions client for it.
        locks: Its lock table.
        rules: The rules by which it makes lock tokens, hashes and times.
        results: The bucket of results that are too large for a record.
    """

    def __init__(
        self, arn: str, sfn: SFNClient, locks: Locks, rules: RequestRules, results: Results | None = None
    ) -> None:
        self.arn = unqualified(arn)
        self.start_arn = arn
        self.sfn = sfn
        self.locks = locks
        self.rules = rules
        self.results = results or Results()

    def holds(self, lock: Lock) -> bool:
        """Whether the owner of a lock is an execution of this machine."""
        return runs_on(self.arn, lock.locked_by)

    def made(self, lock: Lock, request_id: str) -> bool:
        """
        Whether a record is of this id on this machine.

        A guard, or another machine, may have used the same lock token for a request of the same id.
        """
        return lock.request_id == request_id and self.holds(lock)

    def is_alive(self, lock: Lock) -> bool:
        """
        Whether a lock's owner looks alive. An owner that cannot be described, from here or yet, does.

        This is a quick look. The workflow looks closer before it settles a lock.
        """
        try:
            owner = self.owner(lock)
        except OwnerHidden:
            return True
        if owner is None and lock.is_of_an_execution:
            return times.from_text(lock.created) > times.now() - YOUNG
        return is_owner_open(owner, lock)

    def owner(self, lock: Lock) -> Execution | None:
        """
        Describe the execution that a lock names.

        Returns:
            None if Step Functions does not know it: it is too new, or was forgotten.

        Raises:
            OwnerHidden: it cannot be described from here.
            Unavailable: throttled, or no answer; safe to try again.
        """
        if self.holds(lock):
            return self.describe_arn(lock.locked_by)
        with looking_at(lock.locked_by):
            return self.describe_arn(lock.locked_by)

    def attempt_of(self, lock: Lock | None, request_id: str) -> int:
        """The number of the attempt that made a record. 0 if the record is another request's."""
        if lock is None or not self.made(lock, request_id):
            return 0
        name, attempt = split_attempt(lock.execution_name or "")
        return attempt if name == name_of(request_id) else 1

    def recorded_attempt(self, lock: Lock | None, request_id: str, first: Execution | None) -> int:
        """
        Where the search for the newest attempt begins: at the one that has made the record.

        It begins at 1 if the record is another request's, or one of an earlier request with this id: then the
        first attempt began after the record was made.
        """
        if lock is not None and first is not None and first.started > lock.taken_at:
            return 1
        return max(1, self.attempt_of(lock, request_id))

    def lock_token_of(self, name: str, execution_input: Mapping[str, Any]) -> str | None:
        """
        The lock token of an execution, by its input and the rules.

        None if there is none, or if it is no valid one. Its machine has refused such a token, and DynamoDB
        would refuse to look for it.
        """
        try:
            if "lockToken" in execution_input:
                token = execution_input["lockToken"]
            else:
                token = self.rules.lock_token(name, execution_input.get("payload", {}))
            check_lock_token(token)
        except InvalidRequest:
            return None
        return str(token)

    def lock_token_asked_for(self, name: str, execution: Execution) -> str | None:
        """
        The lock token that an attempt has, whatever the rules were when it started.

        Only a first attempt that was started by hand may have none in its input. Then its history has the one
        that its machine made. The rules may have changed since, or this client may not know them.
        """
        given = "lockToken" in execution.input
        asked = None if given else find_lock_token(self.sfn, self.execution_arn(name, 1))
        return asked or self.lock_token_of(name, execution.input)

    def lock_token_of_request(self, request_id: str, first: Execution | None) -> str | None:
        """
        The lock token of a request. All its attempts have the same.

        The next attempt says it if the first is forgotten, or was started by hand and has none.

        Args:
            request_id: As the caller gave it.
            first: Its first attempt. None if Step Functions does not know it.
        """
        name = name_of(request_id)
        token = self.lock_token_of(name, {}) if first is None else self.lock_token_asked_for(name, first)
        following = self.describe(name, 2) if first is None or token is None else None
        if following is None or not is_attempt_of(following, request_id):
            return token
        return self.lock_token_of(name, following.input)

    def token_to_give(self, request_id: str, lock_token: str) -> str | None:
        """The lock token, if a start of this request must name it. None if the id gives the same one."""
        return None if lock_token == self.lock_token_of(name_of(request_id), {}) else lock_token

    def payload_hash_of(self, execution_input: Mapping[str, Any]) -> str | None:
        """The payload hash of an execution, by its input and the rules. None if the rules find none."""
        if "payloadHash" in execution_input:
            return str(execution_input["payloadHash"])
        try:
            return self.rules.payload_hash(execution_input.get("payload", {}))
        except InvalidRequest:
            return None

    def describe(self, name: str, attempt: int) -> Execution | None:
        """Describe one attempt's execution. None if Step Functions does not know it."""
        return self.describe_arn(self.execution_arn(name, attempt))

    def describe_arn(self, execution_arn: str) -> Execution | None:
        """Describe an execution by its ARN. None if Step Functions does not know it."""
        return describe_execution(self.sfn, execution_arn, self.arn)

    def execution_arn(self, name: str, attempt: int) -> str:
        """The ARN of one attempt's execution."""
        return execution_arn_of(self.arn, attempt_name(name, attempt))


def is_attempt_of(execution: Execution, request_id: str, earlier: Execution | None = None) -> bool:
    """
    Whether an execution under the name of a request's attempt is that attempt.

    An execution that was started by hand may have such a name. It is another request.

    Args:
        execution: The one under that name.
        request_id: As the caller gave it.
        earlier: An attempt with a lower number. What was over before it began is of an earlier request.
    """
    if earlier is not None and execution.was_over_at(earlier.started):
        return False
    return execution.input.get("requestId") == request_id


def has_other_token(execution: Execution, lock_token: str) -> bool:
    """Whether an execution was started with another lock token. One by hand may have none in its input."""
    return bool(execution.input.get("lockToken", lock_token) != lock_token)


def is_owner_open(execution: Execution | None, lock: Lock) -> bool:
    """Whether a lock's owner is an open execution, or a guarded call whose lease is not over."""
    if lock.is_leased(times.now_text()):
        return True
    return execution is not None and execution.is_open and execution.owns(lock) is not False
