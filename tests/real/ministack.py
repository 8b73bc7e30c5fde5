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
        stack = self.boto3("cloudformation").describe_stacks(StackName=STACK)["Stacks"][0]
        return {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}

    @cached_property
    def resources(self) -> dict[str, str]:
        """The physical id of each resource by its logical id."""
        pages = self.boto3("cloudformation").get_paginator("list_stack_resources")
        return {
            one["LogicalResourceId"]: one["PhysicalResourceId"]
            for page in pages.paginate(StackName=STACK)
            for one in page["StackResourceSummaries"]
        }

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
def deployed(build: Build, folder: Path, **parameters: str) -> Iterator[Application]:
    """Start ministack, deploy onto it, and end it after the block."""
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
        application = Application(url, log)
        application.boto3("kinesis").create_stream(StreamName=STREAM, ShardCount=1)
        _deploy(build, url, {"StreamArn": _stream_arn(application), **parameters})
        application.hasten()
        yield application
    finally:
        stop(process)


def _stream_arn(application: Application) -> str:
    stream = application.boto3("kinesis").describe_stream_summary(StreamName=STREAM)
    return str(stream["StreamDescriptionSummary"]["StreamARN"])


def _deployable(build: Build) -> Path:
    """
    The built template without what ministack cannot take: metric math, and a number from a parameter.

    And each function has its own log group, which tells whose invocation it was.
    """
    document = build.template
    document["Globals"]["Function"]["LoggingConfig"].pop("LogGroup")
    for resource in document["Resources"].values():
        if resource["Type"] == "AWS::Lambda::EventSourceMapping":
            resource["Properties"].pop("ScalingConfig", None)
    _without_metric_math(build.nested("Monitoring"))
    path = build.folder / "ministack.json"
    path.write_text(json.dumps(document))
    return path


def _without_metric_math(path: Path) -> None:
    document = yaml_parse(path.read_text())
    document["Resources"] = {
        logical_id: resource
        for logical_id, resource in document["Resources"].items()
        if "Metrics" not in resource.get("Properties", {})
    }
    path.write_text(json.dumps(document))


def _deploy(build: Build, url: str, parameters: dict[str, str]) -> None:
    account = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_ENDPOINT_URL": url}
    command = [tool("sam"), "deploy", "--template-file", str(_deployable(build))]
    command += ["--config-file", str(ROOT / "samconfig.toml"), "--stack-name", STACK]
    command += ["--no-confirm-changeset", "--no-progressbar", "--region", REGION, "--parameter-overrides"]
    command += [f'{key}="{value}"' for key, value in {"Architecture": MACHINE, **parameters}.items()]
    run(command, env=environment(**account), cwd=build.folder)
