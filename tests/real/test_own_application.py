"""docs/own-application.md and several-workflows.md, from an empty folder to three workflows in two stacks."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from steponce import Client, Receipt
from steponce.local.session import isolated_session
from tests.real.ministack import STACK, Application, deploy, emulator
from tests.real.programs import tools_python
from tests.real.sam import REGION
from tests.real.test_new_application import ORDER, build
from tests.rules.documents import ROOT
from tests.wheel import Installation

pytestmark = pytest.mark.timeout(600)

MAILS = "mails"
PLACES = 'return {"orderId": order["orderId"], "placement": place_order(order, key=work["lockToken"])}'
REFUND = """\
  RefundFunction: # it has been here before steponce
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: functions/refund
      Handler: app.handler
      Runtime: python3.13
      Architectures: [!Ref Architecture]

  RefundStateMachine:
    Type: AWS::Serverless::StateMachine
    Properties:
      Name: !Sub "${AWS::StackName}-refund"
      DefinitionUri: statemachines/refund.asl.json
      DefinitionSubstitutions: { RefundFunctionArn: !GetAtt RefundFunction.Arn }
      Policies: [LambdaInvokePolicy: { FunctionName: !Ref RefundFunction }]

"""
STATES = {
    "FindCharge": {"Type": "Pass", "Result": {"charge": "ch_1"}, "ResultPath": "$.found", "Next": "Refund"},
    "Refund": {
        "Type": "Task",
        "Resource": "arn:aws:states:::lambda:invoke",
        "TimeoutSeconds": 30,
        "Parameters": {"FunctionName": "${RefundFunctionArn}", "Payload": {"charge.$": "$.found.charge"}},
        "ResultSelector": {"refunded.$": "$.Payload"},
        "ResultPath": "$.refund",
        "Next": "Tell",
    },
    "Tell": {"Type": "Pass", "Parameters": {"refunded.$": "$.refund.refunded"}, "End": True},
}
BEGIN = "  # -- steponce itself"


@pytest.mark.usefixtures("on_ministack")
def test_an_application_of_ones_own_from_an_empty_folder(installed: Installation, tmp_path: Path):
    """A function of one's own, a machine that was there before, and a machine of another stack."""
    shop = tmp_path / "shop"
    installed.run(["steponce", "init", "shop"], tmp_path)
    work = shop / "functions" / "do_work" / "app.py"
    assert PLACES in work.read_text()
    work.write_text(work.read_text().replace(PLACES, PLACES.replace("{", '{"by": "us", ', 1)))
    installed.run(["make", "setup"], shop)
    assert "3 passed" in installed.run(["make", "test"], shop)

    add_refunds(shop)
    command = ["steponce", "wrap", "--into", "template.yaml", "--machine", "RefundStateMachine"]
    assert ["Refund"] == json.loads(installed.run(command, shop))["mayRetryLater"]
    with up(installed, shop):
        start = ["steponce", "start", "one", "-", "--wait"]
        ordered = json.loads(installed.run(start, shop, input=json.dumps(ORDER)))
        start += ["--machine", f"{STACK}-refund"]
        refunded = json.loads(installed.run(start, shop, input="{}"))
        known = json.loads(installed.run(["steponce", "requests", "list"], shop))
    assert ("us", "ch_1") == (ordered["result"]["by"], refunded["result"]["refunded"])
    assert {f"{STACK}-run-once/one", f"{STACK}-refund/one"} == {one["lockToken"] for one in known["requests"]}

    installed.run(["steponce", "init", MAILS], tmp_path)
    share(shop, tmp_path / MAILS)
    for folder in (shop, tmp_path / MAILS):
        build(folder, tools_python())
    with emulator(tmp_path) as cloud:
        deploy(shop / ".aws-sam" / "build", cloud.url, {})
        given = {name: cloud.outputs[name] for name in parameters() if name in cloud.outputs}
        deploy(tmp_path / MAILS / ".aws-sam" / "build", cloud.url, given, stack=MAILS)
        client = cloud.client()
        done = [
            ask(client),
            ask(Client.from_outputs(cloud.outputs, machine=f"{STACK}-refund", **options(cloud))),
            ask(Client.from_outputs(cloud.outputs_of(MAILS), **options(cloud))),
        ]
        locks = [client.machine.locks.get(one.lock_token) for one in done]
    assert ["COMPLETED"] * 3 == [one.status for one in done]
    keys = [f"{STACK}-run-once/one", f"{STACK}-refund/one", f"{MAILS}-run-once/one"]
    assert keys == [lock.lock_token for lock in locks if lock]


def add_refunds(folder: Path) -> None:
    """A state machine of three states, as it was before steponce."""
    (folder / "functions" / "refund").mkdir()
    code = "def handler(event, context):\n    return event['charge']\n"
    (folder / "functions" / "refund" / "app.py").write_text(code)
    definition = {"StartAt": "FindCharge", "States": STATES}
    (folder / "statemachines" / "refund.asl.json").write_text(json.dumps(definition))
    template = folder / "template.yaml"
    template.write_text(template.read_text().replace(BEGIN, REFUND + BEGIN))


def share(folder: Path, other: Path) -> None:
    """The page's steps for a workflow in another stack."""
    outputs, nested, given = blocks()
    template = folder / "template.yaml"
    known = re.search(r"OtherStateMachines: !Sub \"(.*)\"", template.read_text())
    assert known
    arn = known[1].replace("${AWS::StackName}-refund", f"{MAILS}-run-once")
    text = template.read_text().replace(known[1], f"{known[1]},{arn}")
    template.write_text(text.rstrip("\n") + "\n" + outputs)

    template = other / "template.yaml"
    text = template.read_text()
    text = text[: text.index(BEGIN)] + nested
    prepares = "Outputs.PrepareRequestFunctionArn"
    text = text.replace(f"!GetAtt Steponce.{prepares}", f"!GetAtt Requests.{prepares}")
    text = text.replace("!GetAtt Steponce.Outputs.", "!Ref ").replace(
        "\nConditions:", f"{given}\nConditions:", 1
    )
    template.write_text(text + "\nOutputs:\n  Workflow: { Value: !GetAtt Requests.Outputs.Workflow }\n")


def blocks() -> tuple[str, str, str]:
    """What the page tells to add: the first stack's Outputs; the other's nested stack, and its parameters."""
    page = (ROOT / "docs" / "several-workflows.md").read_text(encoding="utf-8")
    section = page.partition("\n## A workflow in another stack\n")[2].partition("\n## ")[0]
    outputs, nested, given = re.findall(r"```yaml\n(.*?)```", section, re.DOTALL)
    return outputs, nested, given


def parameters() -> list[str]:
    """The names of the other stack's parameters that are the first one's Outputs."""
    return re.findall(r"^  (\w+):", blocks()[2], re.MULTILINE)


@contextmanager
def up(installed: Installation, folder: Path) -> Iterator[None]:
    """`steponce up` in a folder, until the block ends."""
    command = [installed.program, "up"]
    process = subprocess.Popen(command, cwd=folder, env=installed.environment(), stdout=subprocess.PIPE)
    try:
        assert process.stdout
        assert json.loads(process.stdout.readline())["outputs"]
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate()


def options(cloud: Application) -> dict[str, Any]:
    """Of a client on the emulator."""
    endpoints = {"states": cloud.url, "dynamodb": cloud.url, "aws": cloud.url}
    return {"session": isolated_session(REGION), "endpoints": endpoints}


def ask(client: Client) -> Receipt:
    """Start a request of the same id on whichever machine."""
    client.start("one", ORDER)
    return client.wait("one", timeout_seconds=100)
