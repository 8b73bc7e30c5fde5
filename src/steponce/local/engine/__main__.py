"""
The engine: one child process that serves the embedded endpoints.

Its command line says what to serve. It writes the addresses to standard output as one JSON line, reads one
JSON line of instructions (`Instructions`), and writes `{"ready": true}`. If it fails, it writes a JSON line
with the traceback. When its standard input ends,
because the owner closed it or is dead, it ends with everything it started.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import logging
import os
import select
import shutil
import signal
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from botocore.config import Config
from werkzeug.wrappers import Request

from steponce.local import stack_time
from steponce.local.delivery.http_api import HttpApi
from steponce.local.engine.instructions import ENGINE_LOG, PROBLEM, Instructions, api_service
from steponce.local.http.server import serve, url_of
from steponce.local.runtime.asynchronous import GivenUp
from steponce.local.runtime.forkserver_process import ForkServerProcess
from steponce.local.runtime.functions import LambdaApi, RuntimeSettings
from steponce.local.session import isolated_session

if TYPE_CHECKING:
    import boto3
    from mypy_boto3_lambda import LambdaClient

# The longest that a function may run, and some.
_FUNCTION_SECONDS = 960


def main() -> None:
    """Serve until the standard input ends."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument(
        "--serve", required=True, help="states, dynamodb, lambda, aws, http; separated by commas"
    )
    arguments.add_argument("--logs", required=True, type=Path)
    arguments.add_argument("--forget-logs", action="store_true", help="remove them at the end")
    arguments.add_argument("--apis", type=int, default=1, help="how many HTTP APIs; each has its own address")
    arguments.add_argument("--controls", action="store_true", help="serve a test's: faults, time, quiet")
    options = arguments.parse_args()
    # The terminal's Ctrl-C is for the owner, which then closes our input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.disable(logging.WARNING)
    owner = os.getppid()
    forkserver = None
    # Its name is its own: a folder of kept logs may have other files, also those of another stack.
    clock = options.logs / f"clock-{os.getpid()}" if options.controls else None
    try:
        forkserver = _run(options, set(options.serve.split(",")), owner, clock)
    except Exception:
        traceback.print_exc()
        with contextlib.suppress(OSError):  # the owner may be gone
            _send({PROBLEM: traceback.format_exc()})
    finally:
        if forkserver:
            forkserver.stop()
        if clock:
            clock.unlink(missing_ok=True)
        if options.forget_logs:
            shutil.rmtree(options.logs, ignore_errors=True)
        # Executions may still be waiting in threads; with the owner gone nobody wants their outcome.
        os._exit(0)


def _run(
    options: argparse.Namespace, services: set[str], owner: int, clock: Path | None
) -> ForkServerProcess | None:
    logs = options.logs
    if clock:
        clock.unlink(missing_ok=True)  # of an engine that was killed and had this process id
        stack_time.install(clock)
    forkserver = ForkServerProcess(logs / ENGINE_LOG, clock) if "lambda" in services else None
    functions = LambdaApi(forkserver) if forkserver else None
    addresses: dict[str, str] = {}
    if functions:
        addresses["lambda"] = url_of(serve(Request.application(functions.answer)))
    apis = [HttpApi() for _ in range(options.apis if "http" in services else 0)]
    addresses |= {api_service(number): _address_of(api) for number, api in enumerate(apis)}
    moto_services = services & {"states", "dynamodb", "aws"}
    if moto_services:
        from steponce.local.engine import moto_server

        url = moto_server.start()
        addresses |= dict.fromkeys(moto_services, url)
    if clock:
        from steponce.local.engine.controls import ControlsApi

        addresses["controls"] = url_of(serve(Request.application(ControlsApi(functions).answer)))
    _send(addresses)
    instructions = Instructions.from_json(sys.stdin.readline())
    if functions:
        functions.deploy(
            instructions.functions, RuntimeSettings(instructions.region, logs, instructions.worker_endpoints)
        )
    if moto_services:
        moto_server.route(instructions.interpreter_endpoints, instructions.region)
    session = isolated_session(instructions.region)
    lambda_client = _lambda_client(session, instructions.worker_endpoints["AWS_ENDPOINT_URL_LAMBDA"])
    for api, plan in zip(apis, instructions.apis, strict=False):
        api.deploy(plan.routes, lambda_client)
    if moto_services:
        given_up = _deliver(instructions, session, lambda_client)
        if functions:
            functions.given_up = given_up
    # What is there now stays; no collection has to look at it again.
    gc.freeze()
    _send({"ready": True})
    _wait_for_end(owner)
    return forkserver


def _address_of(api: HttpApi) -> str:
    return url_of(serve(Request.application(api.answer), is_for_people=True))


def _deliver(
    instructions: Instructions, session: boto3.Session, lambda_client: LambdaClient
) -> GivenUp | None:
    from steponce.local.delivery import deliveries

    endpoints = instructions.worker_endpoints
    states = session.client("stepfunctions", endpoint_url=endpoints["AWS_ENDPOINT_URL_SFN"])
    return deliveries.start(
        instructions.deliveries, endpoints["AWS_ENDPOINT_URL"], session, lambda_client, states
    )


def _lambda_client(session: boto3.Session, endpoint: str) -> LambdaClient:
    return session.client(
        "lambda",
        endpoint_url=endpoint,
        config=Config(
            read_timeout=_FUNCTION_SECONDS, retries={"total_max_attempts": 1}, max_pool_connections=50
        ),
    )


def _send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def _wait_for_end(owner: int) -> None:
    """Return when the input ends, or when the owner is gone while a child of its own holds the pipe open."""
    while os.getppid() == owner:
        ready, _, _ = select.select([sys.stdin], [], [], 1.0)
        if ready and not os.read(sys.stdin.fileno(), 4096):
            return


if __name__ == "__main__":
    main()
