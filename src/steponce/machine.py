"""One state machine with its lock table: where a request's executions are, and what they tell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from steponce.errors import InvalidRequest
from steponce.locks import Locks
from steponce.owner import Execution, describe_execution
from steponce.records import Lock
from steponce.request import RequestRules, attempt_name, name_by_hand, split_attempt

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
    """

    def __init__(self, arn: str, sfn: SFNClient, locks: Locks, rules: RequestRules) -> None:
        self.arn = arn
        self.sfn = sfn
        self.locks = locks
        self.rules = rules

    def newest(self, name: str, attempt: int) -> tuple[Execution | None, int]:
        """The newest attempt from this one on, and its number."""
        execution = self.describe(name, attempt)
        while newer := self.describe(name, attempt + 1):
            execution, attempt = newer, attempt + 1
        return execution, attempt

    def is_alive(self, lock: Lock) -> bool:
        """
        Whether a lock's owner looks alive.

        The workflow that a `no` starts looks closer before it settles anything.
        """
        execution = self.describe_arn(lock.locked_by)
        if execution is None or execution.input.get("callId", lock.call_id) != lock.call_id:
            return False
        return execution.is_open

    def is_own(self, lock: Lock, name: str) -> bool:
        """Whether a record was made by an attempt of the request of this name."""
        return self.attempt_of(lock, name) > 0

    def attempt_of(self, lock: Lock | None, name: str) -> int:
        """The number of the attempt that made a record; 0 if it is not this request's."""
        if lock is None or not lock.request_id.strip():
            return 0
        owner, attempt = split_attempt(lock.request_id)
        return attempt if name in (owner, name_by_hand(lock.request_id)) else 0

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
        return describe_execution(self.sfn, execution_arn)

    def execution_arn(self, name: str, attempt: int) -> str:
        """The ARN of one attempt's execution."""
        return f"{self.arn.replace(':stateMachine:', ':execution:')}:{attempt_name(name, attempt)}"
