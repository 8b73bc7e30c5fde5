"""The client: starts requests, waits for them, and returns their status and result."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from datetime import datetime
from math import isnan, nan
from numbers import Real
from typing import Any, Self

import boto3
from botocore.config import Config

from steponce.aws.clients import stack_outputs, with_defaults
from steponce.aws.forks import own_connections
from steponce.errors import (
    InvalidRequest,
    NotFinished,
    RateLimited,
    RequestFailed,
    shown,
)
from steponce.executions import Execution, OpenWork, unqualified
from steponce.locks.record import Lock
from steponce.locks.results import results_in
from steponce.locks.table import Locks
from steponce.next_step import NextStep
from steponce.recovery.owner import unsettled_work
from steponce.request.envelope import Envelope
from steponce.request.lookup import Lookup
from steponce.request.machine import Machine
from steponce.request.receipt import Receipt
from steponce.request.settings import RequestRules
from steponce.request.start import Start
from steponce.request.wait import Wait
from steponce.request.workflows import Workflow, Workflows


class Client:
    """
    Starts requests on one state machine and reads their records.

    Args:
        state_machine_arn: The RunOnce machine; the template's Output `RunOnceStateMachineArn`. It may be the
            ARN of an alias or a version. The caller needs `states:StartExecution` on the state machine's own
            ARN in any case; the condition key `states:StateMachineQualifier` limits it to an alias or a
            version.
        locks_table: The name of its table; the Output `LocksTable`.
        rules: The rules for lock tokens, hashes and times. Default: the template's defaults, whatever the
            stack's parameters are. `from_stack` and `from_outputs` read them.
        session: Your own boto3 session.
        config: Your own botocore config. It overrides the default one.
        endpoints: Other addresses for `states`, `dynamodb` and the rest (`aws`), as a local stack has.
        result_bucket: The bucket of results that are too large for a record; the Output `ResultBucket`. A
            reference to another bucket is never followed.

    Attributes:
        machine: The state machine with its lock table, for lower-level calls.

    Source: Step Functions Developer Guide, "Authorization for versions and aliases".
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
        result_bucket: str | None = None,
    ) -> None:
        session = session or boto3.Session()
        config = with_defaults(config)
        at = endpoints or {}
        sfn = own_connections(session.client("stepfunctions", config=config, endpoint_url=at.get("states")))
        made = session.client("dynamodb", config=config, endpoint_url=at.get("dynamodb"))
        rules = rules or RequestRules(key_prefix=unqualified(state_machine_arn).rpartition(":")[2])
        results = results_in(result_bucket, session, config, at)
        self.machine = Machine(
            state_machine_arn, sfn, Locks(own_connections(made), locks_table), rules, results
        )

    @property
    def state_machine_arn(self) -> str:
        """The ARN of the machine that runs the requests, with the alias or version that was given."""
        return self.machine.start_arn

    @property
    def rules(self) -> RequestRules:
        """The rules for lock tokens, hashes and times."""
        return self.machine.rules

    @classmethod
    def from_outputs(cls, outputs: Mapping[str, str], *, machine: str | None = None, **options: Any) -> Self:
        """
        Make a client from a stack's Outputs, a mapping from names to values.

        Args:
            machine: The name or ARN of the state machine, for a stack with several workflows. Default: the
                stack's own workflow; if it has none, the only one.
            options: As for a Client.

        Raises:
            MachineNotFound: the stack has no such workflow; the message says which it has.
            MachineAmbiguous: the name fits several; or it has several, and none was named.
            InvalidSetting: an Output is missing or malformed.
        """
        workflow = Workflows.from_outputs(outputs).choose(machine)
        return cls(
            workflow.start_arn,
            workflow.setting("LocksTable"),
            rules=workflow.rules(),
            **{"result_bucket": workflow.settings.get("ResultBucket")} | options,
        )

    @classmethod
    def from_stack(
        cls, name: str, *, machine: str | None = None, session: boto3.Session | None = None, **options: Any
    ) -> Self:
        """
        Make a client for a stack that was deployed on AWS.

        Args:
            name: The CloudFormation stack's name. The client reads its Outputs.
            machine: As for `from_outputs`.
            options: As for a Client.

        Raises:
            StackNotFound: this account and region have no stack of this name.
            MachineNotFound, MachineAmbiguous, InvalidSetting: as `from_outputs`.
        """
        session = session or boto3.Session()
        outputs = stack_outputs(session, name, options.get("config"))
        return cls.from_outputs(outputs, machine=machine, session=session, **options)

    def of(self, workflow: Workflow) -> Self:
        """A client of another workflow in the same account and region, by the same connections."""
        other = copy.copy(self)
        here = self.machine
        locks = here.locks.beside(workflow.setting("LocksTable"))
        results = here.results.beside(workflow.settings.get("ResultBucket"))
        other.machine = Machine(workflow.start_arn, here.sfn, locks, workflow.rules(), results)
        return other

    def start(
        self,
        request_id: str,
        payload: Mapping[str, Any],
        *,
        lock_token: str | None = None,
        requested_at: datetime | None = None,
        count_at: datetime | None = None,
        redelivery: Mapping[str, Any] | None = None,
        check_owner: bool = False,
    ) -> Receipt:
        """
        Start a request, or find the one already started.

        Args:
            request_id: Any text that is not blank, of at most 2,048 bytes; see `name_of`.
            payload: JSON object; the whole envelope at most 196,608 bytes, since the result travels
                with it in a workflow's 262,144.
            lock_token: The business key. Default: the machine's key prefix, `/` and the request's name.
            requested_at: The event's own time. Default: now.
            count_at: With a rate limit: the time that decides in which window the request counts. Default:
                `requested_at`. After RateLimited give the error's `resets_at`, or a later time.
            redelivery: For a request that nobody waits for: what a resend needs if the request ends without
                an outcome (RetryLater, AlreadyInProgress). The triggers give it.
            check_owner: Check whether the lock's owner is alive now, even before `expectedCompletion`.

        Returns:
            The receipt. `duplicate` says whether this call started nothing. The receipt of a finished request
            has its result or error.

        Raises:
            InvalidRequest: the id, key or payload cannot be used; nothing was started.
            PayloadMismatch: the id or key was used with another payload; nothing was started.
            LockTokenMismatch: the id was used with another lock token; nothing was started.
            Unavailable: throttled or no answer; or the id was started a moment ago, and that start cannot be
                compared with this one yet. The same call is safe to try again.

        Source: StartExecution API reference (names stay reserved 90 days after closing).
        """
        envelope = Envelope.make(
            request_id,
            payload,
            self.rules,
            lock_token=lock_token,
            requested_at=requested_at,
            count_at=count_at,
            redelivery=redelivery,
        )
        return Start(self.machine, envelope, check_owner=check_owner).run()

    def status(self, request_id: str, *, lock_token: str | None = None) -> Receipt:
        """
        Return what is known about a request now.

        Args:
            request_id: The id that it was started with.
            lock_token: The lock token that it was started with. Without it, one more call finds it.

        Raises:
            RequestNotFound: it was never started, or a moment ago, or its record has expired.
            InvalidRequest: no request can have this lock token.
            Unavailable: throttled or no answer; safe to try again.
        """
        return Lookup(self.machine, request_id, lock_token).run()

    def wait(
        self,
        request_id: str,
        *,
        timeout_seconds: float = 60,
        lock_token: str | None = None,
        payload: Mapping[str, Any] | None = None,
    ) -> Receipt:
        """
        Wait until a request is finished. After AlreadyInProgress it waits for the lock's owner.

        Args:
            request_id: The id that it was started with.
            timeout_seconds: How long to wait. What does not run gets at least two seconds, in which a new
                attempt becomes visible.
            lock_token: The lock token that it was started with. Without it, one more call finds it.
            payload: The payload that it was started with. An execution may end before it has its lock. Then
                somebody else may start the id, or the key, with another payload. With this argument the wait
                refuses an answer for another payload; without it, it returns whatever answer the id has.

        Returns:
            A receipt with the status COMPLETED or FAILED.

        Raises:
            WaitTimeout: it still runs. Waiting again does no harm.
            PayloadMismatch: the id or key is used with another payload by now.
            InvalidRequest: the payload or the time cannot be one.
            Unsettled: the owner of its lock is dead, and its outcome is not on record. An execution that it
                has started for its work, and that still runs, is waited for.
            RequestNotFound, Unavailable: as `status`.
        """
        try:
            seconds = float(timeout_seconds) if isinstance(timeout_seconds, Real) else nan
        except OverflowError:
            seconds = nan
        if isnan(seconds):
            raise InvalidRequest(f"timeout_seconds is {shown(timeout_seconds)}. Give a number of seconds.")
        payload_hash = None if payload is None else self.rules.payload_hash(payload)
        return Wait(self.machine, request_id, timeout_seconds, lock_token, payload_hash, self._work_of).run()

    def result(self, request_id: str, *, lock_token: str | None = None) -> Any:
        """
        Return the result of a finished request.

        Raises:
            NotFinished: it still runs.
            RequestFailed: it failed; the error has its `error` and `cause`.
            RateLimited: its user has had all requests of the window; `resets_at` says when that ends.
            ResultUnreadable: it is completed, and its large result cannot be read from the stack's bucket.
            RequestNotFound, Unavailable: as `status`.
        """
        receipt = self.status(request_id, lock_token=lock_token)
        if receipt.status == "RUNNING":
            raise NotFinished(f"Request {request_id!r} still runs. Wait for it, or ask again later.")
        if receipt.status == "FAILED":
            message = f"Request {request_id!r} failed with {receipt.error}: {receipt.cause}"
            if receipt.resets_at is not None:
                token = self.machine.token_to_give(request_id, receipt.lock_token)
                again = NextStep("start request", request_id, lock_token=token)
                raise RateLimited(message, receipt.cause, receipt.resets_at, next_steps=[again])
            raise RequestFailed(message, receipt.error, receipt.cause)
        return receipt.result

    def _work_of(self, lock: Lock, owner: Execution | None) -> OpenWork | None:
        """What may still run of the work of a dead owner. The rules concern this machine's alone."""
        deployed = self.rules.work_timeout_seconds if self.machine.holds(lock) else None
        return unsettled_work(lock, owner, self.machine.sfn, deployed or 0)
