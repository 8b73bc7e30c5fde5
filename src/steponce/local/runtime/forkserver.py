"""
The process that forks function workers.

It imports once what every function imports, then forks: a worker is there in milliseconds, and
what all of them share is in memory once. It is single-threaded, for only such a process may fork.

It is not multiprocessing's: that one leaves its workers to themselves when the engine is killed, and a thread
in a worker that waits for this gets no turn while the worker is in C code.

It reads one JSON object a line from its standard input (`{"id", "folder", "handler", "log",
"environment"}`, or `{"kill": id}`) and writes `{"id", "exit"}` for each worker that ends. When its input
ends, however that comes about, it kills every worker and goes: nothing outlives the engine.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import json
import os
import select
import signal
import sys
import time
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NoReturn

from steponce.aws.clients import client_of
from steponce.local import stack_time
from steponce.local.runtime.log import WholeLines
from steponce.local.session import isolated_session

# What the layer and the Lambda runtime hold, in the order that costs least. awslambdaric is missing on
# purpose: it reads the worker's environment when it is imported.
_SHARED_MODULES = (
    "boto3",
    "botocore.httpsession",
    "botocore.parsers",
    "botocore.serialize",
    "jmespath",
    "jsonschema",
    "aws_lambda_powertools",
    "aws_lambda_powertools.metrics",
    "aws_lambda_powertools.tracing",
    "aws_lambda_powertools.utilities.typing",
    "aws_xray_sdk.core",  # which a tracer imports when it is made
)

# Whose descriptions, 10 MB of parsed JSON, functions are going to want.
_SHARED_CLIENTS = ("dynamodb", "stepfunctions")


class ForkServer:
    """Forks workers on demand and reports their ends."""

    def __init__(self) -> None:
        self._ids: dict[int, int] = {}
        self._wakeup_read, wakeup_write = os.pipe()
        os.set_blocking(wakeup_write, False)
        # A child's end has to interrupt the wait for the next request.
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)

    def serve(self) -> None:
        """Serve requests until the input ends; then nothing is left."""
        pending = b""
        while True:
            ready, _, _ = select.select([0, self._wakeup_read], [], [])
            if self._wakeup_read in ready:
                os.read(self._wakeup_read, 4096)
                self._reap()
            if 0 in ready:
                read = os.read(0, 65536)
                if not read:
                    break
                *lines, pending = (pending + read).split(b"\n")
                for line in lines:
                    self._obey(json.loads(line))
        self._kill_all()

    def _obey(self, request: dict[str, Any]) -> None:
        if "kill" in request:
            for pid in [pid for pid, worker in self._ids.items() if worker == request["kill"]]:
                os.kill(pid, signal.SIGKILL)
            return
        pid = os.fork()
        if pid == 0:
            run_worker(request)
        self._ids[pid] = request["id"]

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                report = {"id": self._ids.pop(pid, None), "exit": os.waitstatus_to_exitcode(status)}
                os.write(1, json.dumps(report).encode() + b"\n")

    def _kill_all(self) -> None:
        for pid in self._ids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)


def run_worker(request: dict[str, Any]) -> NoReturn:
    """Become a Lambda runtime for one function. Never returns."""
    code = 1
    output = WholeLines(1)
    sys.stdout = TextIOWrapper(output, "utf-8", write_through=True)
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _redirect(request["log"])
        os.environ.clear()
        os.environ.update(request["environment"])
        time.tzset()
        os.chdir(request["folder"])
        sys.path.insert(0, request["folder"])
        sys.dont_write_bytecode = True  # not into the function's own folder
        from awslambdaric import bootstrap
        from awslambdaric.lambda_runtime_client import LambdaRuntimeClient

        bootstrap.run(request["handler"], LambdaRuntimeClient(os.environ["AWS_LAMBDA_RUNTIME_API"]))
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    except BaseException:
        # Whatever the function lets through ends its process, as on Lambda; its log says why.
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(Exception):
            output.finish()
            sys.stderr.flush()
        os._exit(code)


def _redirect(log: str) -> None:
    """Output goes to the function's log, and the pipes to the engine are nobody's but the fork server's."""
    null = os.open(os.devnull, os.O_RDONLY)
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(null, 0)
    os.dup2(target, 1)
    os.dup2(target, 2)
    os.closerange(3, max(null, target) + 16)


def prepare() -> None:
    """Import and load what workers share."""
    os.environ["AWS_XRAY_SDK_ENABLED"] = "false"  # read when the SDK is imported; no daemon runs here
    for module in _SHARED_MODULES:
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    import botocore.session

    # Each boto3 session would parse the services' descriptions anew; they never change.
    botocore.session.create_loader = functools.cache(botocore.session.create_loader)
    for service in _SHARED_CLIENTS:
        client_of(isolated_session("us-east-1"), service)
    gc.collect()
    # What is frozen is never looked at by a worker's collector, so its memory stays shared.
    gc.freeze()


def main() -> None:
    """Prepare, then serve. The argument, if there is one, is the file of the stack's time."""
    prepare()
    for file in sys.argv[1:]:
        stack_time.install(Path(file))
    ForkServer().serve()


if __name__ == "__main__":
    main()
