"""
The client: start a request, and ask what became of it.

The lock record is the authority. An execution is described only where no record can answer.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Self

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from steponce import times
from steponce.aws import answering, error_code
from steponce.errors import (
    LockTokenMismatch,
    NotFinished,
    PayloadMismatch,
    RequestFailed,
    RequestNotFound,
    TooManyAttempts,
    Unsettled,
    WaitTimeout,
)
from steponce.owner import Execution, describe_execution
from steponce.receipt import Receipt
from steponce.records import INPROGRESS, Lock, Locks
from steponce.request import Envelope, RequestRules, attempt_name, name_of, split_attempt

MAX_NEW_ATTEMPTS = 100
"""How many names one call of `start` tries before it says that something is wrong."""

NOT_YET_VISIBLE_SECONDS = 2
"""So long `wait` believes that an execution exists which cannot be described yet."""

_CONFIG = Config(retries={"mode": "standard", "max_attempts": 4}, connect_timeout=5, read_timeout=30)
_FOLLOWS_THE_LOCK = frozenset({"AlreadyInProgress", "LockContended"})


class Client:
    """
    Starts requests on one state machine and reads their records.

    Args:
        state_machine_arn: The RunOnce machine; the template's Output `RunOnceStateMachineArn`.
        locks_table: Name of its table; the Output `LocksTable`.
        rules: How it makes lock tokens, hashes and times. Default: the template's defaults.
        session: Your own boto3 session.
        config: Your own botocore config, merged over ours.
        endpoints: Other addresses for `states` and `dynamodb`, as a local stack has.

    Attributes:
        locks: The lock table.
        sfn: The Step Functions client.
    """

    def __init__(
        self,
        state_machine_arn: str,
        locks_table: str,
        *,
        rules: RequestRules | None = None,
        session: boto3.Session | None = None,
        config: Config | None = None,
        endpoints: Mapping[str, str] | None = None,
    ) -> None:
        session = session or boto3.Session()
        config = _CONFIG.merge(config) if config else _CONFIG
        at = endpoints or {}
        self.state_machine_arn = state_machine_arn
        self.rules = rules or RequestRules(key_prefix=state_machine_arn.rpartition(":")[2])
        self.sfn = session.client("stepfunctions", config=config, endpoint_url=at.get("states"))
        self.locks = Locks(
            session.client("dynamodb", config=config, endpoint_url=at.get("dynamodb")), locks_table
        )

    @classmethod
    def from_outputs(cls, outputs: Mapping[str, str], **options: Any) -> Self:
        """Make a client from a stack's Outputs, by name."""
        return cls(
            outputs["RunOnceStateMachineArn"],
            outputs["LocksTable"],
            rules=RequestRules.from_settings(outputs),
            **options,
        )

    @classmethod
    def from_stack(cls, name: str, *, session: boto3.Session | None = None, **options: Any) -> Self:
        """
        Make a client for a stack that was deployed on AWS.

        Args:
            name: The CloudFormation stack's name; its Outputs tell the rest.
        """
        session = session or boto3.Session()
        with answering("CloudFormation"):
            stacks = session.client("cloudformation").describe_stacks(StackName=name)["Stacks"]
        outputs = {output["OutputKey"]: output["OutputValue"] for output in stacks[0].get("Outputs", [])}
        return cls.from_outputs(outputs, session=session, **options)

    def start(
        self,
        request_id: str,
        payload: Mapping[str, Any],
        *,
        lock_token: str | None = None,
        requested_at: datetime | None = None,
        check_owner: bool = False,
    ) -> Receipt:
        """
        Start a request, or find the one already started.

        Args:
            request_id: Any text that is not blank; see `name_of`.
            payload: JSON object; the whole envelope at most 196,608 bytes, since the result travels
                with it in a workflow's 262,144.
            lock_token: The business key. Default: the machine's key prefix, `/` and the request's name.
            requested_at: The event's own time. Default: now.
            check_owner: Ask now whether the lock's owner lives, even before `expectedCompletion`.

        Returns:
            Receipt; `duplicate` says whether this call started nothing. A request that is finished
            comes with its result or error.

        Raises:
            InvalidRequest: the id, key or payload cannot be used; nothing was started.
            PayloadMismatch: the id or key was used with another payload; nothing was started.
            LockTokenMismatch: the id was used with another lock token; nothing was started.
            Unavailable: throttled or no answer; the same call is safe to try again.

        Source: StartExecution API reference (names stay reserved 90 days after closing).
        """
        name = name_of(request_id)
        envelope = Envelope.make(name, payload, self.rules, lock_token=lock_token, requested_at=requested_at)
        attempt = 1
        for _ in range(MAX_NEW_ATTEMPTS):
            if self._start_execution(attempt_name(name, attempt), envelope):
                return Receipt.running(
                    request_id, envelope.lockToken, self._arn(name, attempt), duplicate=False
                )
            found = self._find(request_id, attempt_name(name, attempt), envelope, check_owner=check_owner)
            if isinstance(found, Receipt):
                return found
            attempt = max(attempt, found) + 1
        raise TooManyAttempts(
            f"Request {request_id!r} has had {attempt - 1} attempts, all closed. "
            f"Look at one of them: {self._arn(name, 1)}"
        )

    def status(self, request_id: str, *, lock_token: str | None = None) -> Receipt:
        """
        Say what is known of a request now.

        Args:
            request_id: As it was started.
            lock_token: As it was started; without it, one more call finds it.

        Raises:
            RequestNotFound: it was never started, or its record has expired.
            Unavailable: throttled or no answer; safe to ask again.
        """
        name = name_of(request_id)
        first = None
        if lock_token is None:
            first = describe_execution(self.sfn, self._arn(name, 1))
            if first is None:
                raise _not_found(request_id)
            lock_token = self.lock_token_of(name, first.input)
        lock = self.locks.get(lock_token)
        if lock is None or lock.is_reusable(times.now_text()):
            return self._latest_attempt(request_id, name, lock_token, lock)
        if split_attempt(lock.request_id)[0] == name:
            return Receipt.from_lock(request_id, lock, duplicate=False)
        return self._of_another(request_id, lock, first or describe_execution(self.sfn, self._arn(name, 1)))

    def wait(self, request_id: str, *, timeout_seconds: float = 60, lock_token: str | None = None) -> Receipt:
        """
        Wait until a request is finished. One that ended AlreadyInProgress follows the lock to its end.

        Args:
            request_id: As it was started.
            timeout_seconds: How long to wait.
            lock_token: As it was started; without it, one more call finds it.

        Returns:
            Receipt with status COMPLETED or FAILED.

        Raises:
            WaitTimeout: it still runs. Waiting again does no harm.
            Unsettled: the execution that holds the lock is closed, and how it ended is not on record.
            RequestNotFound, Unavailable: as `status`.
        """
        start = time.monotonic()
        pause, look_at_owner = 0.05, 2.0
        while True:
            passed = time.monotonic() - start
            try:
                receipt = self.status(request_id, lock_token=lock_token)
                if receipt.status != "RUNNING":
                    return receipt
                lock_token = receipt.lock_token
            except RequestNotFound:
                if passed > NOT_YET_VISIBLE_SECONDS:
                    raise
            if passed >= look_at_owner:
                look_at_owner = passed * 2
                self._expect_owner_alive(request_id, lock_token)
            if passed >= timeout_seconds:
                raise WaitTimeout(f"Request {request_id!r} still runs after {timeout_seconds} s. Wait again.")
            time.sleep(min(pause, timeout_seconds - passed))
            pause = min(pause * 1.5, 2.0)

    def result(self, request_id: str, *, lock_token: str | None = None) -> Any:
        """
        The result of a finished request.

        Raises:
            NotFinished: it still runs.
            RequestFailed: it failed; `error` and `cause` say how.
            RequestNotFound, Unavailable: as `status`.
        """
        receipt = self.status(request_id, lock_token=lock_token)
        if receipt.status == "RUNNING":
            raise NotFinished(f"Request {request_id!r} still runs. Wait for it, or ask again later.")
        if receipt.status == "FAILED":
            raise RequestFailed(
                f"Request {request_id!r} failed with {receipt.error}: {receipt.cause}",
                receipt.error,
                receipt.cause,
            )
        return receipt.result

    def _start_execution(self, execution_name: str, envelope: Envelope) -> bool:
        """Start it, unless the name is taken. An SDK's retry of the same bytes gets a 200 for its own."""
        try:
            with answering("Step Functions"):
                self.sfn.start_execution(
                    stateMachineArn=self.state_machine_arn, name=execution_name, input=envelope.to_json()
                )
        except ClientError as error:
            if error_code(error) == "ExecutionAlreadyExists":
                return False
            raise
        return True

    def _find(
        self, request_id: str, execution_name: str, envelope: Envelope, *, check_owner: bool
    ) -> Receipt | int:
        """What answers for a taken name; or, where nothing does any more, the newest known attempt."""
        name, attempt = split_attempt(execution_name)
        lock = self.locks.get(envelope.lockToken)
        if lock is None or lock.is_reusable(times.now_text()):
            return self._find_execution(request_id, name, attempt, envelope, lock)
        self._refuse_mismatch(request_id, envelope, lock.payload_hash)
        overdue = check_owner or lock.expected_completion < times.now_text()
        if lock.status == INPROGRESS and overdue and not self._is_alive(lock):
            return _attempt_of(lock, name)
        return Receipt.from_lock(request_id, lock, duplicate=lock.call_id != envelope.callId)

    def _find_execution(
        self, request_id: str, name: str, attempt: int, envelope: Envelope, lock: Lock | None
    ) -> Receipt | int:
        """No record answers: either the execution has not taken its lock yet, or it is over and done with."""
        arn = self._arn(name, attempt)
        execution = describe_execution(self.sfn, arn)
        if execution is None:
            return Receipt.running(request_id, envelope.lockToken, arn, duplicate=True)
        self._refuse_other_key(request_id, name, envelope, execution)
        mine = execution.input.get("callId") == envelope.callId
        if execution.is_open:
            self._refuse_mismatch(request_id, envelope, self._payload_hash(execution.input))
            return Receipt.running(request_id, envelope.lockToken, arn, duplicate=not mine)
        if mine:
            return Receipt.failed(request_id, envelope.lockToken, arn, execution.failure, duplicate=False)
        return max(attempt, _attempt_of(lock, name))

    def _latest_attempt(self, request_id: str, name: str, lock_token: str, lock: Lock | None) -> Receipt:
        """Nothing holds the key: how did the newest attempt end, or has it not begun?"""
        recorded = _attempt_of(lock, name)
        attempt = max(1, recorded)
        execution = describe_execution(self.sfn, self._arn(name, attempt))
        while newer := describe_execution(self.sfn, self._arn(name, attempt + 1)):
            execution, attempt = newer, attempt + 1
        arn = self._arn(name, attempt)
        if execution is not None and execution.is_open:
            return Receipt.running(request_id, lock_token, arn, duplicate=False)
        if lock is not None and attempt == recorded:
            return Receipt.from_lock(request_id, lock, duplicate=False)
        if execution is None or execution.status == "SUCCEEDED":
            raise _not_found(request_id)
        return Receipt.failed(request_id, lock_token, arn, execution.failure, duplicate=False)

    def _of_another(self, request_id: str, lock: Lock, execution: Execution | None) -> Receipt:
        """The key's record is another request's. It answers for this one, unless this one was turned away."""
        if execution is None:
            raise _not_found(request_id)
        arn = self._arn(name_of(request_id), 1)
        if execution.is_open:
            return Receipt.running(request_id, lock.lock_token, arn, duplicate=False)
        follows = execution.status == "SUCCEEDED" or execution.failure.error in _FOLLOWS_THE_LOCK
        if follows or execution.failure == lock.failure:
            return Receipt.from_lock(request_id, lock, duplicate=True)
        return Receipt.failed(request_id, lock.lock_token, arn, execution.failure, duplicate=False)

    def _expect_owner_alive(self, request_id: str, lock_token: str | None) -> None:
        lock = self.locks.get(lock_token) if lock_token else None
        if lock is None or lock.status != INPROGRESS or self._is_alive(lock):
            return
        if self.locks.get(lock.lock_token) != lock:
            return
        execution = describe_execution(self.sfn, lock.locked_by)
        raise Unsettled(
            f"Request {request_id!r}: the execution {lock.locked_by} is closed "
            f"({execution.failure.error if execution else 'not to be described'}) and left its lock open. "
            "Start the request again with check_owner=True to settle it."
        )

    def _is_alive(self, lock: Lock) -> bool:
        """Whether it looks so; the workflow that a `no` starts looks closer before it settles anything."""
        execution = describe_execution(self.sfn, lock.locked_by)
        if execution is None or execution.input.get("callId", lock.call_id) != lock.call_id:
            return False
        return execution.is_open

    def _refuse_mismatch(self, request_id: str, envelope: Envelope, payload_hash: str | None) -> None:
        if payload_hash != envelope.payloadHash:
            raise PayloadMismatch(
                f"Request {request_id!r} (lock token {envelope.lockToken!r}) was started with another "
                "payload. Send the first payload again, or use a new id."
            )

    def _refuse_other_key(self, request_id: str, name: str, envelope: Envelope, execution: Execution) -> None:
        other = self.lock_token_of(name, execution.input)
        if other == envelope.lockToken:
            return
        lock = self.locks.get(other)
        if execution.is_open or (lock is not None and not lock.is_reusable(times.now_text())):
            raise LockTokenMismatch(
                f"Request {request_id!r} was started with the lock token {other!r}, not "
                f"{envelope.lockToken!r}. Send the first lock token again, or use a new id."
            )

    def lock_token_of(self, name: str, execution_input: Mapping[str, Any]) -> str:
        """The business key that an execution's input gives its request; hand-started ones may lack it."""
        if "lockToken" in execution_input:
            return str(execution_input["lockToken"])
        return self.rules.lock_token(name, execution_input.get("payload", {}))

    def _payload_hash(self, execution_input: Mapping[str, Any]) -> str:
        if "payloadHash" in execution_input:
            return str(execution_input["payloadHash"])
        return self.rules.payload_hash(execution_input.get("payload", {}))

    def _arn(self, name: str, attempt: int) -> str:
        return (
            f"{self.state_machine_arn.replace(':stateMachine:', ':execution:')}:{attempt_name(name, attempt)}"
        )


def _attempt_of(lock: Lock | None, name: str) -> int:
    """The number of the attempt that made this record, if it is one of this request's."""
    if lock is None:
        return 0
    owner, attempt = split_attempt(lock.request_id)
    return attempt if owner == name else 0


def _not_found(request_id: str) -> RequestNotFound:
    return RequestNotFound(
        f"There is no request {request_id!r}, or its record has expired. Start it, or check its id."
    )
