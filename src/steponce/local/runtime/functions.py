"""The embedded Lambda endpoint: the Invoke API in front of warm worker processes."""

from __future__ import annotations

import json
import logging
import threading
import uuid
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from werkzeug.wrappers import Request, Response

from steponce.local import activity
from steponce.local.runtime import clocks
from steponce.local.runtime.asynchronous import GivenUp, Problem, try_until_done
from steponce.local.runtime.clocks import Clock
from steponce.local.runtime.forkserver_process import ForkServerProcess
from steponce.local.runtime.workers import Answer, Worker, worker_environment
from steponce.local.template.plan import FunctionPlan

_log = logging.getLogger(__name__)

MOST_WORKERS = 8
# A warm worker takes 20 MB; a new one takes a tenth of a second, so that a burst keeps its workers.
_MOST_IDLE = 2
_IDLE_SECONDS = 5.0
_WAIT_SECONDS = 20.0
_PAYLOAD_LIMIT = 6 * 1024 * 1024
_FUNCTIONS = "/2015-03-31/functions/"


class ThrottledError(Exception):
    """All workers of the function stayed busy."""


class Pool:
    """The workers of one function: started when needed, used again while warm."""

    def __init__(
        self, plan: FunctionPlan, forkserver: ForkServerProcess, environment: dict[str, str], log: Path
    ) -> None:
        self.plan = plan
        self._forkserver = forkserver
        self._environment = environment
        self._log = log
        limit = MOST_WORKERS if plan.concurrency is None else min(plan.concurrency, MOST_WORKERS)
        self._free = limit
        self._idle: list[Worker] = []
        self._busy: set[Worker] = set()
        self._changed = threading.Condition()
        self._trims = False

    def invoke(self, payload: bytes, clock: Clock | None = None) -> Answer:
        """
        Run one event; a task's clock stands until its function has it.

        Raises:
            ThrottledError: no worker was free in time, or by then nobody waited for the task any more.
        """
        with clock.stopped() if clock else nullcontext() as go_on:
            worker = self._take(clock)
            try:
                return worker.invoke(payload, go_on)
            finally:
                self._give_back(worker)

    def kill_busy(self) -> None:
        """End every worker that runs."""
        with self._changed:
            busy = list(self._busy)
        for worker in busy:
            worker.kill()

    def _take(self, clock: Clock | None) -> Worker:
        with self._changed:
            waits = self._free == 0
            # A task may wait: it was admitted, and its time-out does not run.
            if not self._changed.wait_for(lambda: self._free > 0, None if clock else _WAIT_SECONDS):
                raise ThrottledError
            if waits and clock and not clock.wanted():
                self._changed.notify()
                raise ThrottledError
            self._free -= 1
            while self._idle:
                worker = self._idle.pop()
                if worker.alive:
                    self._busy.add(worker)
                    return worker
        worker = Worker(self.plan, self._forkserver, self._environment, self._log)
        with self._changed:
            self._busy.add(worker)
        return worker

    def _give_back(self, worker: Worker) -> None:
        with self._changed:
            self._free += 1
            self._busy.discard(worker)
            if worker.alive:
                self._idle.append(worker)
            if len(self._idle) > _MOST_IDLE and not self._trims:
                self._trims = True
                trim = threading.Timer(_IDLE_SECONDS, self._trim)
                trim.daemon = True
                trim.start()
            self._changed.notify()

    def _trim(self) -> None:
        """End those that nobody needs any more; the one used last is at the end."""
        with self._changed:
            self._trims = False
            surplus, self._idle = self._idle[:-_MOST_IDLE], self._idle[-_MOST_IDLE:]
        for worker in surplus:
            worker.kill()


@dataclass(frozen=True)
class RuntimeSettings:
    """What all functions have in common."""

    region: str
    logs: Path
    endpoints: Mapping[str, str]


class LambdaApi:
    """
    Invoke and GetFunction over HTTP, for the functions that `deploy` got.

    Attributes:
        given_up: Told of each event that a function has failed, and whose answer nobody waits for.
    """

    given_up: GivenUp | None = None

    def __init__(self, forkserver: ForkServerProcess) -> None:
        self._forkserver = forkserver
        self._pools: dict[str, Pool] = {}

    def deploy(self, plans: list[FunctionPlan], settings: RuntimeSettings) -> None:
        """Make the functions callable."""
        for plan in plans:
            environment = worker_environment(plan, settings.region, dict(settings.endpoints))
            log = log_file(settings.logs, plan.name)
            log.touch()
            self._pools[plan.name] = Pool(plan, self._forkserver, environment, log)

    def kill_busy(self) -> None:
        """End every function that runs. Its caller gets the error that its runtime has exited."""
        for pool in self._pools.values():
            pool.kill_busy()

    def answer(self, request: Request) -> Response:
        """Answer one HTTP request."""
        response = self._answer(request)
        response.headers["x-amzn-RequestId"] = str(uuid.uuid4())
        return response

    def _answer(self, request: Request) -> Response:
        if not request.path.startswith(_FUNCTIONS):
            return _error(404, "ResourceNotFoundException", f"No such operation: {request.path}")
        name, _, operation = request.path.removeprefix(_FUNCTIONS).partition("/")
        pool = self._pools.get(function_name(unquote(name)))
        if pool is None:
            return _error(404, "ResourceNotFoundException", f"Function not found: {unquote(name)}")
        if request.method == "POST" and operation == "invocations":
            return _invoke(pool, request, self._invoke_unheard)
        if request.method == "GET" and operation in ("", "configuration"):
            return _describe(pool.plan, whole=not operation)
        return _error(404, "ResourceNotFoundException", f"No such operation: {request.method} {operation}")

    def _invoke_unheard(self, pool: Pool, payload: bytes) -> None:
        try:
            problem = try_until_done(lambda: _problem(pool, payload))
            if problem is not None:
                _log.error("%s gave up an event: %s", pool.plan.arn, problem.get("errorType", "it failed"))
                if self.given_up is not None:
                    self.given_up(pool.plan.arn, json.loads(payload), problem)
        finally:
            activity.end()


def function_name(reference: str) -> str:
    """The name in a function's name, partial ARN or ARN, with or without a qualifier."""
    parts = reference.split(":")
    return parts[parts.index("function") + 1] if "function" in parts[:-1] else parts[0]


def log_file(logs: Path, function: str) -> Path:
    """Where a function's output goes."""
    return logs / f"{function}.log"


def _invoke(pool: Pool, request: Request, unheard: Callable[[Pool, bytes], None]) -> Response:
    payload = request.get_data() or b"{}"
    if len(payload) > _PAYLOAD_LIMIT:
        return _error(413, "RequestTooLargeException", f"{len(payload)} byte payload is too large")
    try:
        json.loads(payload)
    except ValueError as error:
        return _error(
            400, "InvalidRequestContentException", f"Could not parse request body into json: {error}"
        )
    if pool.plan.problem:
        return _error(502, "InvalidRuntimeException", pool.plan.problem)
    kind = request.headers.get("X-Amz-Invocation-Type", "RequestResponse")
    if kind == "DryRun":
        return Response(status=204)
    if kind == "Event":
        activity.begin()
        threading.Thread(target=unheard, args=(pool, payload), daemon=True).start()
        return Response(status=202)
    try:
        with activity.counted():
            answer = pool.invoke(payload, clocks.named(request.headers.get(clocks.HEADER)))
    except ThrottledError:
        return _error(429, "TooManyRequestsException", "Rate Exceeded.")
    if len(answer.payload) > _PAYLOAD_LIMIT:
        answer = _too_large(answer)
    headers = {"X-Amz-Executed-Version": "$LATEST"}
    if answer.failed:
        headers["X-Amz-Function-Error"] = "Unhandled"
    return Response(answer.payload, content_type="application/json", headers=headers)


def _problem(pool: Pool, payload: bytes) -> Problem | None:
    """Invoke a function; the answer is what went wrong. Lambda would wait for six hours until it is free."""
    try:
        answer = pool.invoke(payload)
    except ThrottledError:
        return {"errorType": "TooManyRequestsException"}
    return dict(json.loads(answer.payload)) if answer.failed else None


def _too_large(answer: Answer) -> Answer:
    message = f"Response payload size ({len(answer.payload)} bytes) exceeded maximum allowed payload size"
    text = f"{message} ({_PAYLOAD_LIMIT} bytes)."
    error = {"errorType": "Function.ResponseSizeTooLarge", "errorMessage": text}
    return Answer(json.dumps(error).encode(), failed=True)


def _describe(plan: FunctionPlan, *, whole: bool) -> Response:
    configuration = {
        "FunctionName": plan.name,
        "FunctionArn": plan.arn,
        "Handler": plan.handler,
        "Timeout": plan.timeout_seconds,
        "MemorySize": plan.memory_mb,
        "Version": "$LATEST",
        "State": "Active",
    }
    body = {"Configuration": configuration, "Code": {}} if whole else configuration
    return Response(json.dumps(body), content_type="application/json")


def _error(status: int, code: str, message: str) -> Response:
    return Response(
        json.dumps({"Type": "User", "Message": message}),
        status=status,
        content_type="application/json",
        headers={"X-Amzn-ErrorType": code},
    )
