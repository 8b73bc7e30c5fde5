"""One installation: its tables, its state machine, and its functions' real code, wired as in the template."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any, Self
from unittest import mock

from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from botocore.exceptions import ClientError, ReadTimeoutError

from steponce import Client
from steponce.aws import times
from steponce.executions import read_input
from steponce.locks.record import Lock
from steponce.locks.table import Locks
from steponce.request.settings import RequestRules
from steponce.triggers import ended
from steponce.triggers.resend import LOCK_TOKEN
from steponce.triggers.starter import Outcome
from tests.fakes.tables import create_table
from tests.simulation.definition import Data, Failed
from tests.simulation.faults import PASSING, Faults
from tests.simulation.machine import MACHINE, Machine
from tests.simulation.queue import Queue
from tests.simulation.turns import Died, Turns
from tests.simulation.wiring import LIMITS, LOCKS, RULES, STEPS, WIRING, Line, functions
from tests.simulation.work import WORK_TIMEOUT_SECONDS
from tests.unit.shared_clients import shared
from tests.unit.triggers.world import Context

LAMBDA_RETRIES_AFTER_SECONDS = (60, 120)
"""Lambda tries an asynchronous invocation twice again."""

LAMBDA_FAILS = ("Lambda.TooManyRequestsException", "Lambda.ServiceException", "States.Timeout")

_SLEEP, _MONOTONIC = time.sleep, time.monotonic
_ENDED_BADLY = {"FAILED", "TIMED_OUT", "ABORTED"}


@dataclass(frozen=True, eq=False)
class End:
    """How an execution ended."""

    given: Mapping[str, Any]
    status: str
    error: str | None
    states: frozenset[str]
    at: datetime

    @classmethod
    def of(cls, execution: Mapping[str, Any], events: list[dict[str, Any]]) -> Self:
        """The end of an execution, by its description and its history."""
        entered = (
            one["stateEnteredEventDetails"]["name"] for one in events if "stateEnteredEventDetails" in one
        )
        return cls(
            read_input(execution["input"]),
            execution["status"],
            execution.get("error"),
            frozenset(entered),
            execution["stopDate"],
        )


@dataclass(frozen=True)
class Delivery:
    """
    What `start_from_queue` did with a message.

    Args:
        payload: What was asked for.
        outcome: What the function says.
        lock: The record at that moment.
        at: When.
    """

    payload: Mapping[str, Any]
    outcome: Outcome
    lock: Lock | None
    at: datetime


class Installation:
    """
    What is deployed, for one schedule.

    Args:
        turns: The actors.
        random: The seed's choices.
        faults: What goes wrong.
        work: Does the work of DoWork.
        when_outcome_unknown: The parameter of this name.
        rules: What the other parameters say.
        definition: The state machine's definition.

    Attributes:
        client: A client of it.
        late_by: How late, in seconds, a report of an end may come.
        ends: How executions ended, also those that Step Functions has forgotten.
        deliveries: What became of each message that was delivered.
        looked_up: The records that were valid when an execution's end was examined, its input, and when.
        surprises: Errors of functions that no fault explains.
    """

    lambda_fails, longest_start = 0.02, 0.0

    def __init__(
        self,
        turns: Turns,
        random: Random,
        faults: Faults,
        work: Callable[[dict[str, Any]], Data],
        *,
        when_outcome_unknown: str = "hold",
        rules: RequestRules = RULES,
        definition: Mapping[str, Any],
    ) -> None:
        self.turns, self.random, self.faults = turns, random, faults
        self.functions = functions(when_outcome_unknown, rules)
        self.late_by = 3_600.0
        self.surprises: list[tuple[str, Exception]] = []
        self.deliveries: list[Delivery] = []
        self.ends: list[End] = []
        self.looked_up: list[tuple[Mapping[str, Any], Lock, datetime]] = []
        service = Line(lambda: self, "dynamodb", mortal=False)
        integrations = {
            "dynamodb:getItem": lambda arguments, _: self._dynamodb(service.get_item, arguments),
            "dynamodb:updateItem": lambda arguments, _: self._dynamodb(service.update_item, arguments),
            "lambda:invoke": self._invoke,
        }
        self._code = {
            "ChargeCardFunction": work,
            "CheckOwnerFunction": lambda event: self.functions["check_owner"].handler(event, Context()),
            "PrepareRequestFunction": lambda event: self.functions["prepare_request"].handler(
                event, Context()
            ),
        }
        self.machine = Machine(turns, random, definition, integrations, self._tell_of_an_end)
        self.queue = Queue(turns, random, faults, self._start_from_queue)
        self.dynamodb = shared("dynamodb")
        self.services = {"dynamodb": self.dynamodb, "stepfunctions": self.machine, "sqs": self.queue}
        create_table(self.dynamodb, "LocksTable", LOCKS)
        create_table(self.dynamodb, "AwaitingStepsTable", STEPS)
        create_table(self.dynamodb, "LimitsTable", LIMITS)
        self.client = Client(MACHINE, LOCKS, rules=rules, session=WIRING)

    @contextmanager
    def present(self) -> Iterator[None]:
        """All functions and clients speak to this installation inside the block, and have its time."""
        with (
            Path(os.devnull).open("w") as nowhere,
            redirect_stdout(nowhere),  # the functions' metrics
            mock.patch.object(WIRING, "present", self),
            mock.patch("steponce.request.names.OPEN_SHARDS", RULES.open_shards),  # else a round reads ten
            mock.patch("steponce.triggers.ended._is_answered", self._noting(ended._is_answered)),
            mock.patch("steponce.aws.times.now", self.turns.clock),
            mock.patch("time.sleep", self._sleep),
            mock.patch("time.monotonic", self._monotonic),
        ):
            yield

    def _noting(self, is_answered: Callable[..., bool | None]) -> Callable[..., bool | None]:
        def note(lock: Lock | None, given: Mapping[str, Any]) -> bool | None:
            if lock is not None and not lock.is_reusable(times.now_text()):
                self.looked_up.append((given, lock, self.turns.now))
            return is_answered(lock, given)

        return note

    def call(self, name: str, event: Any) -> None:
        """Invoke a function as a rule or a schedule does. It may run for a minute."""

        def invoke() -> None:
            try:
                self.functions[name].handler(event, Context())
            except PASSING:
                raise
            except Exception as error:
                self.surprises.append((name, error))
                raise

        self._try(name, invoke, [0, *LAMBDA_RETRIES_AFTER_SECONDS])

    def _try(self, name: str, invoke: Callable[[], None], waits: list[float]) -> None:
        def act() -> None:
            is_done = False
            try:
                invoke()
                is_done = True
            except PASSING as error:
                self.turns.note(f"fails: {type(error).__name__}")
            finally:
                if not is_done and len(waits) > 1:
                    self._try(name, invoke, waits[1:])

        self.turns.spawn(name, act, after=waits[0], seconds=60)

    def _tell_of_an_end(self, arn: str) -> None:
        """EventBridge reports an end that is no success: a little late, and now and then twice or never."""
        execution = self.machine.executions[arn]
        self.ends.append(End.of(execution, self.machine.histories[arn]))
        if execution["status"] not in _ENDED_BADLY:
            return
        told = ("executionArn", "name", "input", "error", "status")
        detail = {name: execution.get(name) for name in told}
        detail["stopDate"] = round(execution["stopDate"].timestamp() * 1000)
        for name in ("close_execution", "resend_request"):
            soon = self.random.expovariate(1)
            whens = {"lost": (), "twice": (soon, 2 * soon), "late": (soon, self.late_by), None: (soon,)}
            fault = self.faults.one_of(("lost", "twice", "late"), 0.1, f"event for {name}")
            for after in whens[fault]:
                self.turns.spawn(
                    f"event for {name}",
                    lambda name=name: self.call(name, {"detail": detail}),
                    after=after,
                )

    def _start_from_queue(self, record: SQSRecord) -> None:
        outcome = self.functions["start_from_queue"].start(record, Context())
        body, attributes = json.loads(record.body), record["messageAttributes"]
        token = (
            json.loads(attributes[LOCK_TOKEN]["stringValue"]) if LOCK_TOKEN in attributes else body["token"]
        )
        lock = Locks(self.dynamodb, LOCKS).get(token)
        self.deliveries.append(Delivery(body.get("payload", body), outcome, lock, self.turns.now))

    def _dynamodb(self, call: Callable[..., Any], arguments: dict[str, Any]) -> Data:
        try:
            answer = call(**arguments)
        except ClientError as error:
            raise Failed(f"DynamoDB.{error.response['Error']['Code']}", str(error)) from error
        except ReadTimeoutError as error:
            raise Failed("DynamoDB.SdkClientException", str(error)) from error
        return {name: value for name, value in answer.items() if name != "ResponseMetadata"}

    def _invoke(self, arguments: dict[str, Any], timeout: float) -> Data:
        """Invoke a function and wait for it. Step Functions may stop waiting, and the function goes on."""
        name = arguments["FunctionName"].rpartition("-")[2]
        payload = json.loads(json.dumps(arguments["Payload"]))
        self.turns.take()
        if (error := self.faults.one_of(LAMBDA_FAILS, self.lambda_fails, name)) is not None:
            return self._lose(error, name, payload, timeout)
        actor = self.turns.actor
        before, actor.deadline = actor.deadline, self.turns.deadline_in(self._seconds(timeout))
        try:
            return {"StatusCode": 200, "Payload": json.loads(json.dumps(self._code[name](payload)))}
        except Died:
            self.turns.go_on_if_alive()
            in_time = self.turns.now <= actor.deadline
            raise Failed("Runtime.ExitError" if in_time else "Sandbox.Timedout") from None
        except Exception as error:
            raise Failed(type(error).__name__, json.dumps({"errorMessage": str(error)})) from error
        finally:
            actor.deadline = before

    def _lose(self, error: str, name: str, payload: Data, timeout: float) -> Data:
        """Lambda throttles the call, or its answer does not arrive."""
        self.turns.note(f"{name}: {error}")
        if error != "Lambda.TooManyRequestsException":
            self.turns.spawn(
                f"abandoned {name}",
                lambda: self._abandoned(name, payload),
                after=self.longest_start and self.random.uniform(0, self.longest_start),
                seconds=self._seconds(timeout),
            )
            self.turns.take(timeout if error == "States.Timeout" else self.random.uniform(0, 10))
        raise Failed(error)

    def _abandoned(self, name: str, payload: Data) -> None:
        try:
            self._code[name](payload)
        except Exception as error:
            self.turns.note(f"raises {type(error).__name__}, which nobody hears")

    def _seconds(self, timeout: float) -> float:
        """A function's own time-out is shorter than its state's."""
        return min(timeout, WORK_TIMEOUT_SECONDS)

    def _sleep(self, seconds: float) -> None:
        if self.turns.is_of_an_actor:
            self.turns.take(seconds)
        else:
            _SLEEP(seconds)

    def _monotonic(self) -> float:
        return self.turns.now.timestamp() if self.turns.is_of_an_actor else _MONOTONIC()
