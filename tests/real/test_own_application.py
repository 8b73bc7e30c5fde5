"""docs/own-application.md and several-workflows.md, from an empty folder to three workflows in two stacks."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from steponce import Client, Receipt
from steponce.local.session import isolated_session
from tests.other_stack import BEGIN, names_of_parameters, share
from tests.real.ministack import STACK, Application, deploy, emulator
from tests.real.programs import tools_python
from tests.real.sam import REGION
from tests.real.test_new_application import ORDER, build
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
    share(shop, tmp_path / MAILS, f"{MAILS}-run-once")
    for folder in (shop, tmp_path / MAILS):
        build(folder, tools_python())
    with emulator(tmp_path) as cloud:
        deploy(shop / ".aws-sam" / "build", cloud.url, {})
        given = {name: cloud.outputs[name] for name in names_of_parameters() if name in cloud.outputs}
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
