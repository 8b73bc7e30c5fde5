"""A stack on this machine, deployed from the SAM template itself."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

from steponce.aws.clients import client_of
from steponce.local.controls import Controls
from steponce.local.deploy import Deployment
from steponce.local.engine.instructions import Instructions, api_service
from steponce.local.engine.process import EngineProcess
from steponce.local.errors import LocalStackError
from steponce.local.runtime.functions import function_name as name_of_function
from steponce.local.runtime.functions import log_file
from steponce.local.servers.aws import LocalServers
from steponce.local.session import isolated_session
from steponce.local.template.plan import Deliveries, Plan
from steponce.local.template.reader import read_plan
from steponce.scaffold import sources

if TYPE_CHECKING:
    from steponce.client import Client
    from steponce.guards.guard import Guard
    from steponce.limiter import Limiter

SERVICES = ("states", "dynamodb", "lambda")
_ALWAYS_EMBEDDED = ("aws", "http")
_BOTO3_NAMES = {
    "stepfunctions": "states",
    "dynamodb": "dynamodb",
    "lambda": "lambda",
    "secretsmanager": "aws",
    "events": "aws",
    "sqs": "aws",
    "sns": "aws",
    "s3": "aws",
}

# An address, or what makes one once the addresses of the embedded services are known.
Endpoint = str | Callable[[Mapping[str, str]], str]


class RunningStack:
    """
    A stack that runs, here or in another process: its outputs, and clients for it.

    Attributes:
        name: The stack's name.
        outputs: The template's Outputs.
        endpoints: The addresses of `states`, `dynamodb` and `lambda`; of `http`, the template's first HTTP
            API; and of `aws`, which is all other services that functions may call. The addresses of other
            HTTP APIs are in `outputs`.
    """

    def __init__(
        self,
        *,
        name: str,
        region: str,
        outputs: Mapping[str, str],
        endpoints: Mapping[str, str],
        logs: str | Path,
    ) -> None:
        self.name = name
        self.region = region
        self.outputs = dict(outputs)
        self.endpoints = dict(endpoints)
        self._logs = Path(logs)
        self._clients: dict[str, Any] = {}
        # A session of its own for each client would read botocore's data anew: 0.1 s.
        self._clients_session = self.session()
        self._clients_lock = threading.Lock()

    def session(self) -> boto3.Session:
        """A boto3 session with dummy credentials; it knows nothing of your account."""
        return isolated_session(self.region)

    def boto3(self, service: str) -> Any:
        """A plain boto3 client, safe to share between threads; the error names what services there are."""
        if service not in _BOTO3_NAMES:
            raise LocalStackError(f"The local stack has no {service}. It has: {', '.join(_BOTO3_NAMES)}.")
        self._expect_started()
        with self._clients_lock:
            if service not in self._clients:
                self._clients[service] = self._make_client(service)
            return self._clients[service]

    def client(self, **options: Any) -> Client:
        """A steponce client for this stack; options as for `Client.from_outputs`, like `machine`."""
        from steponce.client import Client

        self._expect_started()
        return Client.from_outputs(self.outputs, session=self.session(), endpoints=self.endpoints, **options)

    def guard(self, **options: Any) -> Guard:
        """A guard on this stack's table; options as for `Guard`."""
        from steponce.guards.guard import Guard

        self._expect_started()
        return Guard.from_outputs(self.outputs, session=self.session(), endpoints=self.endpoints, **options)

    def limiter(self, **options: Any) -> Limiter:
        """A limiter on this stack's table, which `Limits=yes` makes; options as for `Limiter`."""
        from steponce.limiter import Limiter

        self._expect_started()
        return Limiter.from_outputs(self.outputs, session=self.session(), endpoints=self.endpoints, **options)

    def logs(self, function_name: str) -> str:
        """
        What a function, by name or ARN, has written so far; `engine` is the embedded engine itself.

        Raises:
            LocalStackError: there is no such log; the message names those that there are.
        """
        path = log_file(self._logs, name_of_function(function_name))
        try:
            return path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            logs = ", ".join(sorted(log.stem for log in self._logs.glob("*.log"))) or "none"
            raise LocalStackError(
                f"There is no log of {path.stem!r}. There are: {logs}. A Lambda endpoint of another program "
                "keeps the logs of its functions itself."
            ) from None

    def facts(self) -> dict[str, Any]:
        """What another process needs to speak to this stack; JSON."""
        self._expect_started()
        return {
            "name": self.name,
            "region": self.region,
            "pid": os.getpid(),
            "endpoints": self.endpoints,
            "outputs": self.outputs,
            "logs": str(self._logs),
        }

    def _expect_started(self) -> None:
        """Without addresses, a client would call AWS."""
        if not self.endpoints:
            raise LocalStackError("The stack does not run. Use it in a `with` block, or start it.")

    def _make_client(self, service: str) -> Any:
        return client_of(
            self._clients_session,
            service,
            endpoint_url=self.endpoints[_BOTO3_NAMES[service]],
            config=Config(
                max_pool_connections=50,
                read_timeout=960 if service == "lambda" else 60,
                inject_host_prefix=False,  # StartSyncExecution has another host on AWS
            ),
        )


class LocalStack(RunningStack):
    """
    A stack on this machine that lives as long as the `with` block.

    Each of the three endpoints is embedded; or a server that runs already, named by `endpoints` or by the
    environment variables STEPONCE_STATES_ENDPOINT, STEPONCE_DYNAMODB_ENDPOINT, STEPONCE_LAMBDA_ENDPOINT; or
    one of AWS's own local servers, which the stack starts where the environment says so: see `servers`.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        name: str,
        region: str,
        endpoints: Mapping[str, Endpoint] | None = None,
        through: Mapping[str, Callable[[str], str]] | None = None,
        logs: str | Path | None = None,
        deliveries: bool = True,
        controls: bool = False,
    ) -> None:
        super().__init__(name=name, region=region, outputs=plan.outputs, endpoints={}, logs=logs or "")
        self._plan = plan
        self._running = _running_endpoints(endpoints or {})
        self._through = _known(through or {})
        self._keep_logs = logs is not None
        self._temporary: Path | None = None
        self._delivers = deliveries
        self._has_controls = controls
        self._engine: EngineProcess | None = None
        self._controls: Controls | None = None
        self._embedded: set[str] = set()
        self._servers: LocalServers | None = None
        self._deployment: Deployment | None = None

    @classmethod
    def from_template(
        cls,
        path: str | Path | None = None,
        *,
        parameters: Mapping[str, str] | None = None,
        name: str = "steponce",
        region: str = "us-east-1",
        endpoints: Mapping[str, Endpoint] | None = None,
        through: Mapping[str, Callable[[str], str]] | None = None,
        logs: str | Path | None = None,
        deliveries: bool = True,
        controls: bool = False,
    ) -> LocalStack:
        """
        A stack from a SAM template; `with` or `start` starts it.

        Args:
            path: The template. Default: `template.yaml` in the current folder; where there is none, the
                sample's, which the package comes with.
            parameters: Values for the template's parameters; the others have their defaults.
            name: The stack's name, which is part of the names of its resources.
            endpoints: Servers that run already, by `states`, `dynamodb` or `lambda`. A function instead of
                an address gets the addresses of the embedded services, for a server that must know them.
            through: For `dynamodb` or `lambda`, a function that gets the endpoint's address and answers
                the one that the workflow is to use: a proxy's. Functions and clients keep the first.
            logs: Where the functions' output goes. Default: a temporary folder, gone when the stack stops.
            deliveries: Whether queues and rules invoke their functions, and schedules fire. Without, only
                what is called runs; the queues and topics are there, and nobody empties them. What comes
                sooner here than on AWS, or not at all: see `delivery`.
            controls: Whether a test can plan faults and move the time: see `controls` of the running stack.

        Raises:
            TemplateError: the template, one of its files or a parameter is not what it must be.
        """
        plan = read_plan(path or sources.template(), parameters=parameters, stack_name=name, region=region)
        return cls(
            plan,
            name=name,
            region=region,
            endpoints=endpoints,
            through=through,
            logs=logs,
            deliveries=deliveries,
            controls=controls,
        )

    @property
    def plan(self) -> Plan:
        """The resources that the stack makes."""
        return self._plan

    @property
    def controls(self) -> Controls:
        """
        A test's hold on the engine.

        Raises:
            LocalStackError: the stack was made without, or does not run.
        """
        if self._controls is None:
            raise LocalStackError("This stack has no controls. Make it with controls=True, and start it.")
        return self._controls

    def has_embedded(self, service: str) -> bool:
        """Whether an endpoint is this stack's own, and no server that others may use."""
        return service in self._embedded

    def expect_embedded(self, *services: str) -> None:
        """
        Make sure that these endpoints are embedded ones.

        Raises:
            LocalStackError: one is another server, which no control reaches.
        """
        if others := sorted({*services} - self._embedded):
            raise LocalStackError(
                f"Faults and the clock need the embedded {' and '.join(others)}, and STEPONCE_"
                f"{others[0].upper()}_… chooses another server. Unset it for these tests."
            )

    @staticmethod
    def attach(facts: Mapping[str, Any]) -> RunningStack:
        """The stack that another process started, from what its `facts` said."""
        keys = ("name", "region", "endpoints", "outputs", "logs")
        return RunningStack(**{key: facts[key] for key in keys})

    def start(self) -> LocalStack:
        """
        Start the embedded parts and deploy.

        Raises:
            LocalStackError: a part does not start, an endpoint does not answer, or nothing can be written.
        """
        if self._engine or self._deployment:
            raise LocalStackError("The stack runs already.")
        self._make_logs()
        try:
            self._start_engine()
            self._deployment = Deployment(self.boto3)
            self._deployment.make(self._plan)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End everything that this stack started, and delete what it made on servers that ran before."""
        if self._deployment and self._running:
            self._deployment.undo()
        if self._servers:
            self._servers.stop()
        if self._engine:
            self._engine.stop()
        self._engine = self._servers = self._deployment = self._controls = None
        self._clients.clear()
        if self._temporary:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._temporary = None

    def __enter__(self) -> LocalStack:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _make_logs(self) -> None:
        try:
            if not self._keep_logs:
                self._logs = self._temporary = Path(tempfile.mkdtemp(prefix="steponce-"))
            self._logs = self._logs.resolve()
            self._logs.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            where = "Give `logs` another one" if self._keep_logs else "Let the variable TMPDIR name one"
            raise LocalStackError(
                f"There is no folder for what the functions write: {error}. {where} that can be written to."
            ) from error

    def _start_engine(self) -> None:
        self._servers = LocalServers(os.environ, self._running)
        embedded = {*SERVICES, *_ALWAYS_EMBEDDED} - set(self._running) - self._servers.services
        self._embedded = embedded
        apis = max(1, len(self._plan.apis))
        self._engine = EngineProcess(
            embedded, self._logs, keep_logs=self._keep_logs, has_controls=self._has_controls, apis=apis
        )
        # The engine starts meanwhile: this is the slowest part of a stack.
        started = self._servers.start_dynamodb(self._logs) if "dynamodb" in self._servers.services else None
        addresses = self._engine.addresses()
        self._controls = Controls(addresses.pop("controls")) if self._has_controls else None
        http = [addresses["http"], *(addresses.pop(api_service(number)) for number in range(1, apis))]
        addresses |= {"dynamodb": started} if started else {}
        given = {key: url if isinstance(url, str) else url(addresses) for key, url in self._running.items()}
        self.endpoints = {**addresses, **given}
        called = {key: self._through.get(key, str)(url) for key, url in self.endpoints.items()}
        if "states" in self._servers.services:
            self.endpoints["states"] = self._servers.start_states(self._logs, self.region, called)
        plan = self._plan.at(http=http, aws=addresses["aws"])
        self.outputs = dict(plan.outputs)
        self._engine.instruct(self._instructions(plan, {"states": self.endpoints["states"], **called}))

    def _instructions(self, plan: Plan, called: dict[str, str]) -> Instructions:
        return Instructions(
            functions=plan.functions,
            apis=plan.apis,
            deliveries=plan.deliveries if self._delivers else Deliveries(),
            region=self.region,
            worker_endpoints=self._worker_endpoints(),
            interpreter_endpoints=called,
        )

    def _worker_endpoints(self) -> dict[str, str]:
        """What functions find in their environment. Nothing of theirs must reach AWS."""
        return {
            "AWS_ENDPOINT_URL": self.endpoints["aws"],
            "AWS_ENDPOINT_URL_DYNAMODB": self.endpoints["dynamodb"],
            "AWS_ENDPOINT_URL_LAMBDA": self.endpoints["lambda"],
            "AWS_ENDPOINT_URL_SFN": self.endpoints["states"],
        }


def _running_endpoints(given: Mapping[str, Endpoint]) -> dict[str, Endpoint]:
    from_environment = {
        service: url
        for service in SERVICES
        if (url := os.environ.get(f"STEPONCE_{service.upper()}_ENDPOINT"))
    }
    return {**from_environment, **_known(given)}


def _known(by_service: Mapping[str, Any]) -> dict[str, Any]:
    if unknown := set(by_service) - set(SERVICES):
        raise LocalStackError(
            f"No such endpoint: {', '.join(sorted(unknown))}. Known: {', '.join(SERVICES)}."
        )
    return dict(by_service)
