"""SAM CLI: build the template, and run what was built in containers, wired to an embedded stack."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from samtranslator.yaml_helper import yaml_parse

from steponce.local.template.reader import read_plan
from tests.ports import free_port
from tests.real.containers import Engine, Image
from tests.real.programs import MACHINE, ROOT, Python, environment, run, stop, tool, wanted_runtime
from tests.rules.documents import REQUESTS
from tests.rules.nesting import in_place
from tests.workflow.relay import Answer, Relay, serve

REGION = "us-east-1"
FUNCTION = "AWS::Serverless::Function"
PATIENCE_SECONDS = 300
"""A container that starts on a busy machine must not look like a function that hangs."""

_SOURCES = ("functions", "src", "statemachines", "monitoring.yaml", "samconfig.toml")
_TEMPLATES = ("template.yaml", "requests.yaml")


@dataclass(frozen=True)
class Build:
    """What `sam build` has made, and for which Python."""

    folder: Path
    python: Python

    @property
    def template(self) -> dict[str, Any]:
        """The built template and the requests' stack in one, with intrinsic functions in their long form."""
        document: dict[str, Any] = self._main
        nested = self.nested(REQUESTS)
        inner = yaml_parse(nested.read_text())
        for resource in inner["Resources"].values():
            if resource["Type"] == FUNCTION:
                code = nested.parent / resource["Properties"]["CodeUri"]
                resource["Properties"]["CodeUri"] = str(code.relative_to(self.folder))
        return in_place(document, REQUESTS, inner)

    @cached_property
    def _main(self) -> dict[str, Any]:
        """The built template as it is."""
        document: dict[str, Any] = yaml_parse((self.folder / "template.yaml").read_text())
        return document

    @property
    def functions(self) -> dict[str, Path]:
        """The folder of each function by its logical id."""
        resources = self.template["Resources"]
        return {
            key: self.folder / resource["Properties"]["CodeUri"]
            for key, resource in resources.items()
            if resource["Type"] == FUNCTION
        }

    def nested(self, logical_id: str) -> Path:
        """The template of a nested stack."""
        return self.folder / str(self._main["Resources"][logical_id]["Properties"]["TemplateURL"])

    @property
    def layer(self) -> Path:
        """The folder of the functions' layer."""
        return self.folder / str(self.template["Resources"]["SteponceLayer"]["Properties"]["ContentUri"])


def build(folder: Path, python: Python) -> Build:
    """Build the template for this machine; where its own Python is lacking, for the given one."""
    source = folder / "source"
    source.mkdir(parents=True)
    for name in _SOURCES:
        (source / name).symlink_to(ROOT / name)
    for name in _TEMPLATES:
        text = (ROOT / name).read_text()
        (source / name).write_text(text.replace(f"python{wanted_runtime()}", python.runtime))
    path = f"{python.path.parent}{os.pathsep}{os.environ['PATH']}"
    command = [tool("sam"), "build", "--build-dir", str(folder / "built"), "--region", REGION]
    command += ["--parameter-overrides", f"Architecture={MACHINE}"]
    run(command, env=environment(PATH=path, RUNTIME=python.runtime), cwd=source)
    return Build(folder / "built", python)


@dataclass
class Sam:
    """`sam local` on one build, in one container engine."""

    build: Build
    engine: Engine
    image: Image

    def wire(self, name: str, endpoints: Mapping[str, str], **parameters: str) -> Path:
        """
        The built template, its functions named and set up as those of an embedded stack.

        `sam local` passes a variable on only if the template has it, so the endpoints go in there.
        """
        document = self.build.template
        plan = read_plan(ROOT / "template.yaml", parameters=parameters, stack_name=name, region=REGION)
        variables = {function.name: function.environment for function in plan.functions}
        for logical_id in self.build.functions:
            properties = document["Resources"][logical_id]["Properties"]
            names = (f"{name}-{logical_id}", f"{name}-{REQUESTS}-{logical_id}")
            (properties["FunctionName"],) = variables.keys() & set(names)
            found = variables[properties["FunctionName"]]
            properties["Timeout"] = PATIENCE_SECONDS
            properties["Environment"] = {"Variables": {**found, **self._seen_from_inside(endpoints)}}
        path = self.build.folder / f"{name}.json"
        path.write_text(json.dumps(document))
        return path

    def with_native_routes(self, template: Path) -> Path:
        """
        The same template, its native HTTP routes told in SAM's way.

        `sam local start-api` reads only SAM's routes as soon as a template has any function of SAM's.
        """
        resources = json.loads(template.read_text())["Resources"]
        for logical_id, resource in list(resources.items()):
            if resource["Type"] == "AWS::ApiGatewayV2::Route":
                method, path = resource["Properties"]["RouteKey"].split()
                route = {"Type": "HttpApi", "Properties": {"Method": method, "Path": path}}
                events = resources[_behind(resource, resources)]["Properties"].setdefault("Events", {})
                events[logical_id] = route
        routed = template.with_suffix(".routes.json")
        routed.write_text(json.dumps(json.loads(template.read_text()) | {"Resources": resources}))
        return routed

    def _seen_from_inside(self, endpoints: Mapping[str, str]) -> dict[str, str]:
        """Servers on 127.0.0.1 have a relay on the bridge's address, which only containers can reach."""
        relays = {url: serve(_passing_on(url), self.engine.host_address) for url in set(endpoints.values())}
        return {
            "AWS_ENDPOINT_URL": relays[endpoints["aws"]],
            "AWS_ENDPOINT_URL_DYNAMODB": relays[endpoints["dynamodb"]],
            "AWS_ENDPOINT_URL_SFN": relays[endpoints["states"]],
        }

    def invoke(self, template: Path, function: str, event: Path) -> Any:
        """
        `sam local invoke`: the function's answer, which may be an error.

        The exit code is 0 whatever the function does, so only the output tells.
        """
        command = [*self._local("invoke", template), "--event", str(event), function]
        output = run(command, env=self._environment(), cwd=template.parent)
        assert output.strip(), f"{function} has not answered"
        return json.loads(output.strip().splitlines()[-1])

    @contextmanager
    def serve(self, what: str, template: Path, *options: str) -> Iterator[str]:
        """`sam local start-lambda` or `start-api`: its address while the block lasts."""
        port = free_port()
        command = [*self._local(what, template), "--port", str(port), *options]
        log = template.with_suffix(f".{what}.log")
        with log.open("w") as output:
            process = subprocess.Popen(
                command, env=self._environment(), cwd=template.parent, stdout=output, stderr=output
            )
        try:
            wait_for(port, process, log)
            yield f"http://127.0.0.1:{port}"
        finally:
            stop(process)

    def _local(self, what: str, template: Path) -> list[str]:
        command = [tool("sam"), "local", what, "--template", str(template), "--region", REGION]
        return [*command, "--parameter-overrides", f"Architecture={MACHINE}", *self.image.options]

    def _environment(self) -> dict[str, str]:
        return environment(**self.engine.environment)


def _behind(route: Mapping[str, Any], resources: Mapping[str, Any]) -> str:
    """The function that a native route leads to."""
    integration = re.fullmatch(r"integrations/\${(\w+)}", route["Properties"]["Target"]["Fn::Sub"])
    assert integration
    uri = resources[integration.group(1)]["Properties"]["IntegrationUri"]["Fn::GetAtt"]
    return str(uri[0] if isinstance(uri, list) else uri.partition(".")[0])


def _passing_on(url: str) -> type[Relay]:
    class PassingOn(Relay):
        def answer(self, body: bytes) -> Answer:
            return self.forward(url, body)

    return PassingOn


def flagging_errors(url: str) -> str:
    """
    A relay in front of `sam local start-lambda` that says, as Lambda does, when an answer is an error.

    It takes an answer of Python's runtime for a result, since that has a requestId in it.
    """

    class Flagging(Relay):
        def answer(self, body: bytes) -> Answer:
            answer = self.forward(url, body)
            if is_error(json.loads(answer.body or b"null")):
                return replace(answer, headers=[*answer.headers, ("X-Amz-Function-Error", "Unhandled")])
            return answer

    return serve(Flagging)


def is_error(answer: Any) -> bool:
    """Whether a function's answer is what Python's runtime makes of an exception."""
    return isinstance(answer, dict) and {"errorMessage", "errorType", "stackTrace"} <= set(answer)


def validate(template: str) -> str:
    """`sam validate --lint` on a template as it is."""
    command = [tool("sam"), "validate", "--lint", "--region", REGION, "--template", template]
    return run(command, env=environment(), cwd=ROOT)


def wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Until a server that was just started takes connections."""
    end = time.monotonic() + 120
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            if process.poll() is not None or time.monotonic() > end:
                pytest.fail(f"{process.args} does not start:\n{log.read_text()[-3000:]}", pytrace=False)
            time.sleep(0.1)
        else:
            return
