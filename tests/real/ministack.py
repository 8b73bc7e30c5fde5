"""
The whole application on ministack, an AWS emulator of one process: `sam deploy`, and plain clients.

For wiring only. ministack gets idempotency wrong (a second start with the same name and input is refused),
so nothing about it is concluded here.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator
from samtranslator.yaml_helper import yaml_parse

from steponce import Client
from steponce.local.session import isolated_session
from tests.ports import free_port
from tests.real.programs import MACHINE, ROOT, environment, run, stop, tool
from tests.real.sam import REGION, Build, wait_for

STACK = "steponce"
STREAM = "orders"


@dataclass(frozen=True)
class Application:
    """The deployed stack."""

    url: str
    log: Path

    @cached_property
    def outputs(self) -> dict[str, str]:
        """The stack's outputs."""
        return self.outputs_of(STACK)

    def outputs_of(self, name: str) -> dict[str, str]:
        """Another stack's outputs."""
        stack = self.boto3("cloudformation").describe_stacks(StackName=name)["Stacks"][0]
        return {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}

    @cached_property
    def resources(self) -> dict[str, str]:
        """The physical id of each resource by its logical id, those of nested stacks too."""
        return self._resources_of(STACK)

    def _resources_of(self, stack: str) -> dict[str, str]:
        pages = self.boto3("cloudformation").get_paginator("list_stack_resources")
        found = {}
        for one in [
            one for page in pages.paginate(StackName=stack) for one in page["StackResourceSummaries"]
        ]:
            found[one["LogicalResourceId"]] = one["PhysicalResourceId"]
            if one["ResourceType"] == "AWS::CloudFormation::Stack":
                found |= self._resources_of(one["PhysicalResourceId"])
        return found

    @cached_property
    def template(self) -> dict[str, Any]:
        """The template as CloudFormation has it, the transform done."""
        answer = self.boto3("cloudformation").get_template(StackName=STACK, TemplateStage="Processed")
        body = answer["TemplateBody"]
        return dict(json.loads(body) if isinstance(body, str) else body)

    def boto3(self, service: str) -> Any:
        """A client of any service."""
        return isolated_session(REGION).client(service, endpoint_url=self.url)

    def client(self) -> Client:
        """A steponce client, as a user on AWS makes one."""
        endpoints = {"states": self.url, "dynamodb": self.url, "aws": self.url}
        return Client.from_outputs(self.outputs, session=isolated_session(REGION), endpoints=endpoints)

    def hasten(self) -> None:
        """Let every schedule's time come within a minute."""
        events = self.boto3("events")
        for rule in events.list_rules()["Rules"]:
            if "ScheduleExpression" in rule:
                events.put_rule(Name=rule["Name"], ScheduleExpression="rate(1 minute)")

    def invocations(self, function: str) -> int:
        """How often a function, by its logical id, has run to an end."""
        group = f"/aws/lambda/{self.resources[function]}"
        logs = self.boto3("logs")
        if not logs.describe_log_groups(logGroupNamePrefix=group)["logGroups"]:
            return 0
        pages = logs.get_paginator("filter_log_events").paginate(logGroupName=group)
        return sum(event["message"].startswith("END RequestId") for page in pages for event in page["events"])

    def eventually(self, question: Callable[[], Any], seconds: float = 60) -> Any:
        """Ask again and again until the answer is true."""
        end = time.monotonic() + seconds
        while not (answer := question()):
            assert time.monotonic() < end, f"it has not come true in time\n{self.log.read_text()[-5000:]}"
            time.sleep(0.2)
        return answer


@contextmanager
def emulator(folder: Path) -> Iterator[Application]:
    """Start ministack, and end it after the block."""
    port = free_port()
    url, log = f"http://127.0.0.1:{port}", folder / "ministack.log"
    settings = environment(
        BIND_HOST="127.0.0.1", GATEWAY_PORT=str(port), IOT_MTLS_ENABLED="0", TMPDIR=str(folder)
    )
    with log.open("w") as output:
        process = subprocess.Popen(
            [tool("ministack")], env=environment(**settings), cwd=folder, stdout=output, stderr=output
        )
    try:
        wait_for(port, process, log)
        yield Application(url, log)
    finally:
        stop(process)


@contextmanager
def deployed(build: Build, folder: Path, **parameters: str) -> Iterator[Application]:
    """Deploy the sample onto a ministack of its own."""
    with emulator(folder) as application:
        application.boto3("kinesis").create_stream(StreamName=STREAM, ShardCount=1)
        deploy(build.folder, application.url, {"StreamArn": _stream_arn(application), **parameters})
        application.hasten()
        yield application


def _stream_arn(application: Application) -> str:
    stream = application.boto3("kinesis").describe_stream_summary(StreamName=STREAM)
    return str(stream["StreamDescriptionSummary"]["StreamARN"])


def deploy(built: Path, url: str, parameters: dict[str, str], *, stack: str = STACK) -> None:
    """`sam deploy` of what `sam build` has put into a folder, as far as ministack can take it."""
    template = _without_what_it_cannot_take(built / "template.yaml")
    account = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_ENDPOINT_URL": url}
    command = [tool("sam"), "deploy", "--template-file", str(template)]
    command += ["--config-file", str(ROOT / "samconfig.toml"), "--stack-name", stack]
    command += ["--no-confirm-changeset", "--no-progressbar", "--region", REGION, "--parameter-overrides"]
    command += [f'{key}="{value}"' for key, value in {"Architecture": MACHINE, **parameters}.items()]
    run(command, env=environment(**account), cwd=built)


def _without_what_it_cannot_take(template: Path) -> Path:
    """
    Take metric math and a number from a parameter out of a built template, and out of those that it nests.

    And each function gets its own log group, which tells whose invocation it was.
    """
    document = yaml_parse(template.read_text())
    settings = [document.get("Globals", {}).get("Function", {})]
    for logical_id, resource in list(document["Resources"].items()):
        properties = resource.get("Properties", {})
        settings.append(properties)
        if "Metrics" in properties:
            del document["Resources"][logical_id]
        elif resource["Type"] == "AWS::Lambda::EventSourceMapping":
            properties.pop("ScalingConfig", None)
        elif resource["Type"] == "AWS::CloudFormation::Stack":
            _transform(_without_what_it_cannot_take(template.parent / properties["TemplateURL"]))
    for function in settings:
        function.get("LoggingConfig", {}).pop("LogGroup", None)
    template.write_text(json.dumps(document))
    return template


def _transform(template: Path) -> None:
    """Do SAM's transform in a nested template, which AWS does itself, with its local files as they are."""
    document = yaml_parse(template.read_text())
    if not document.pop("Transform", None):
        return
    for resource in document["Resources"].values():
        properties = resource.get("Properties", {})
        for key in {"CodeUri", "ContentUri"} & properties.keys():
            properties[key] = f"s3://here/{properties[key]}"
    defaults = {name: one.get("Default", STACK) for name, one in document["Parameters"].items()}
    session = isolated_session(REGION)
    document = Translator({}, Parser(), boto_session=session).translate(document, parameter_values=defaults)
    for resource in document["Resources"].values():
        properties = resource.get("Properties", {})
        for key in {"Code", "Content"} & properties.keys():
            properties[key] = properties[key]["S3Key"]
    template.write_text(json.dumps(document))
