"""Function workers: processes that run AWS's own runtime client, each against a Runtime API of its own."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import sys
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from pathlib import Path

from werkzeug.wrappers import Request, Response

from steponce.local.http.server import serve
from steponce.local.runtime.forkserver_process import ForkServerProcess
from steponce.local.session import ACCESS_KEY, SECRET_KEY
from steponce.local.template.plan import FunctionPlan

# Lambda gives an init phase 10 seconds; a laptop that is busy with tests may need longer.
_INIT_SECONDS = 30.0
_RUNTIME = "/2018-06-01/runtime"


@dataclass(frozen=True)
class Answer:
    """How an invocation ended."""

    payload: bytes
    failed: bool = False


@dataclass
class Invocation:
    """One event on its way through a worker."""

    payload: bytes
    request_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    on_taken: Callable[[], None] | None = None
    taken: threading.Event = field(default_factory=threading.Event)
    answer: Future[Answer] = field(default_factory=Future)

    def take(self) -> None:
        """The function's code gets the event now."""
        self.taken.set()
        if self.on_taken:
            self.on_taken()

    def finish(self, answer: Answer) -> None:
        """Set the answer, unless there is one."""
        # A worker that is killed for its time-out may still have answered, or the reverse.
        with contextlib.suppress(InvalidStateError):
            self.answer.set_result(answer)

    def fail(self, error_type: str, message: str) -> None:
        """Answer as Lambda itself does when the function's process is at fault."""
        text = f"RequestId: {self.request_id} Error: {message}"
        self.finish(Answer(json.dumps({"errorType": error_type, "errorMessage": text}).encode(), failed=True))


class Worker:
    """One process of one function, and the Runtime API that it asks for work."""

    def __init__(
        self, plan: FunctionPlan, forkserver: ForkServerProcess, environment: dict[str, str], log: Path
    ):
        self.alive = True
        self._plan = plan
        self._forkserver = forkserver
        self._inbox: queue.SimpleQueue[Invocation | None] = queue.SimpleQueue()
        self._current: Invocation | None = None
        # One thread: a worker asks for one thing at a time.
        self._server = serve(Request.application(self._runtime_api), threaded=False, poll_seconds=0.05)
        address = f"127.0.0.1:{self._server.server_port}"
        order = {
            "folder": plan.folder,
            "handler": plan.handler,
            "log": str(log),
            "environment": {**environment, "AWS_LAMBDA_RUNTIME_API": address},
        }
        self._id = forkserver.start_worker(order, self._ended)

    def invoke(self, payload: bytes, on_taken: Callable[[], None] | None = None) -> Answer:
        """
        Run one event to its end, to the function's time-out or to the end of the process.

        Args:
            on_taken: Called when the function's code gets the event.
        """
        invocation = Invocation(payload, on_taken=on_taken)
        self._current = invocation
        if not self.alive:  # died between two events
            invocation.fail("Runtime.ExitError", "Runtime exited before it took the event")
        self._inbox.put(invocation)
        try:
            if not self._is_taken(invocation):
                return self._give_up(invocation, _INIT_SECONDS)
            return invocation.answer.result(self._plan.timeout_seconds)
        except TimeoutError:
            return self._give_up(invocation, self._plan.timeout_seconds)
        finally:
            self._current = None

    def kill(self) -> None:
        """End the process, whatever it does."""
        self.alive = False
        self._forkserver.kill_worker(self._id)

    def _is_taken(self, invocation: Invocation) -> bool:
        """Wait until the function's code has the event: starting up does not count as running."""
        deadline = time.monotonic() + _INIT_SECONDS
        while not invocation.taken.wait(0.05):
            if invocation.answer.done():
                return True
            if time.monotonic() > deadline:
                return False
        return True

    def _give_up(self, invocation: Invocation, seconds: float) -> Answer:
        invocation.fail("Sandbox.Timedout", f"Task timed out after {seconds:.2f} seconds")
        self.kill()
        return invocation.answer.result()

    def _ended(self, exit_code: int) -> None:
        self.alive = False
        if current := self._current:
            current.fail("Runtime.ExitError", f"Runtime exited {_exit_reason(exit_code)}")
        self._inbox.put(None)
        self._server.shutdown()
        self._server.server_close()

    def _runtime_api(self, request: Request) -> Response:
        action = request.path.removeprefix(_RUNTIME)
        if action == "/invocation/next":
            return self._next()
        current = self._current
        if action == "/init/error":
            self.alive = False
        if current and action == "/init/error":
            current.finish(Answer(request.get_data(), failed=True))
        elif current and action.startswith(f"/invocation/{current.request_id}/"):
            current.finish(Answer(request.get_data(), failed=action.endswith("/error")))
        return Response(status=202)

    def _next(self) -> Response:
        invocation = self._inbox.get()
        if invocation is None:
            return Response(status=410)
        deadline = time.time() + self._plan.timeout_seconds
        invocation.take()
        return Response(
            invocation.payload,
            content_type="application/json",
            headers={
                "Lambda-Runtime-Aws-Request-Id": invocation.request_id,
                "Lambda-Runtime-Deadline-Ms": str(int(deadline * 1000)),
                "Lambda-Runtime-Invoked-Function-Arn": self._plan.arn,
            },
        )


def worker_environment(plan: FunctionPlan, region: str, endpoints: dict[str, str]) -> dict[str, str]:
    """What Lambda sets, what the function's template sets, and nothing of the caller's AWS account."""
    inherited = {key: os.environ[key] for key in ("PATH", "LANG", "TMPDIR") if key in os.environ}
    lambda_sets = {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        "AWS_EXECUTION_ENV": f"AWS_Lambda_python{sys.version_info.major}.{sys.version_info.minor}",
        "AWS_LAMBDA_FUNCTION_NAME": plan.name,
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(plan.memory_mb),
        "AWS_LAMBDA_FUNCTION_TIMEOUT": str(plan.timeout_seconds),
        "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{plan.name}",
        "AWS_LAMBDA_LOG_STREAM_NAME": "local",
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "LAMBDA_TASK_ROOT": plan.folder,
        "_HANDLER": plan.handler,
        "TZ": ":UTC",
        # Everything is on this machine; and macOS may not look for its proxies after a fork.
        "NO_PROXY": "*",
        # No X-Ray daemon runs here.
        "AWS_XRAY_SDK_ENABLED": "false",
        "POWERTOOLS_TRACE_DISABLED": "true",
        **endpoints,
    }
    return {**inherited, **plan.environment, **lambda_sets}


def _exit_reason(exit_code: int) -> str:
    if exit_code == 0:
        return "without providing a reason"
    if exit_code < 0:
        return f"with error: signal: {-exit_code}"
    return f"with error: exit status {exit_code}"
