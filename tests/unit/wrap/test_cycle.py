"""No machine of a template needs the installation that needs this machine: CloudFormation would refuse it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from samtranslator.yaml_helper import yaml_parse

from steponce.cli import commands
from steponce.wrap import cycle, template_file
from steponce.wrap.errors import CannotWrap
from steponce.wrap.into import wrap_into
from tests import covering
from tests.machines import machine

TEMPLATE = """\
Transform: AWS::Serverless-2016-10-31
Resources:
  Payment:
    Type: AWS::Serverless::StateMachine
    Properties:
      Name: payment
      DefinitionUri: payment.asl.json
  Order:
    Type: AWS::Serverless::StateMachine
    Properties:
      DefinitionUri: order.asl.json
      DefinitionSubstitutions: { PaymentArn: !Ref Payment }
"""
NAMED = TEMPLATE.replace(
    "DefinitionUri: order", 'Name: !Sub "${AWS::StackName}-order"\n      DefinitionUri: order'
)
ARN = "arn:${AWS::Partition}:states:${AWS::Region}:${AWS::AccountId}:stateMachine:${AWS::StackName}-order"
IN_BOTH_ORDERS = covering.first(1, "first", ["Payment", "Order"])


def write(folder: Path, text: str) -> Path:
    """The template, with the two definitions beside."""
    for name, reads in (("payment", "none"), ("order", "${PaymentArn}")):
        states = {"A": {"Type": "Pass", "Parameters": {"starts": reads}, "End": True}}
        (folder / f"{name}.asl.json").write_text(json.dumps(machine(states)))
    path = folder / "template.yaml"
    path.write_text(text)
    return path


def wrapped(path: Path, name: str) -> int:
    """The exit code of the command. Order, which starts the other machine, stays as it is."""
    return commands.run(["wrap", "--into", str(path), "--machine", name, *["--around"] * (name == "Order")])


@IN_BOTH_ORDERS
def test_a_machine_that_starts_another_one_is_known_by_its_name(tmp_path: Path, first: str):
    """The other one needs the installation, which so needs neither."""
    path = write(tmp_path, NAMED)
    for name in (first, "Order" if first == "Payment" else "Payment"):
        assert 0 == wrapped(path, name)
    found: dict[str, Any] = yaml_parse(path.read_text())
    others = found["Resources"]["Steponce"]["Properties"]["Parameters"]["OtherStateMachines"]
    assert {"Fn::Sub": ARN} in others["Fn::Join"][1]


@IN_BOTH_ORDERS
def test_without_a_name_it_is_refused(tmp_path: Path, first: str, capsys: pytest.CaptureFixture[str]):
    """Its ARN is known when it exists. The second of the two is refused, with the way around the cycle."""
    path = write(tmp_path, TEMPLATE)
    assert 0 == wrapped(path, first)
    before = path.read_text()
    capsys.readouterr()
    assert 2 == wrapped(path, "Order" if first == "Payment" else "Payment")
    said = capsys.readouterr().out
    assert "Steponce -> Order -> Payment -> " in said
    assert "Give Order a Name" in said
    assert before == path.read_text()


def test_a_machine_that_needs_nothing_needs_no_name(tmp_path: Path):
    """The installation refers to it, as before."""
    assert wrap_into(write(tmp_path, TEMPLATE), "Payment", form="around")


def test_a_name_that_is_put_together_from_a_list_is_none_to_write(tmp_path: Path):
    """The installation refers to the machine, as to one without a name."""
    path = write(
        tmp_path, TEMPLATE.replace("Name: payment", 'Name: !Sub ["${P}-o", { P: !Ref AWS::Region }]')
    )
    assert 0 == commands.run(["wrap", "--into", str(path), "--machine", "Payment", "--around"])
    found: dict[str, Any] = yaml_parse(path.read_text())
    others = found["Resources"]["Steponce"]["Properties"]["Parameters"]["OtherStateMachines"]
    assert {"Ref": "Payment"} == others


@pytest.mark.parametrize(
    ("resource", "circular"),
    [
        ("{ Properties: { A: !Ref Steponce } }", True),
        ("{ Properties: { A: [{ B: !GetAtt Steponce.Outputs.A }] } }", True),
        ("{ Properties: { A: !GetAtt [Steponce, Outputs.A] } }", True),
        ('{ Properties: { A: !Sub "a ${Steponce.Outputs.A}" } }', True),
        ('{ Properties: { A: !Sub ["${B}", { B: !Ref Steponce }] } }', True),
        ('{ Properties: { A: { "Fn::Sub": ["${Steponce}", { B: b }] } } }', True),
        ("{ Properties: { A: { Ref: Steponce } } }", True),
        ("{ Properties: { A: { Fn::GetAtt: [Steponce, Outputs.A] } } }", True),
        ("{ Properties: { A: !If [C, !Ref Steponce, a] } }", True),
        ("{ DependsOn: Steponce }", True),
        ("{ DependsOn: [Steponce] }", True),
        ('{ Properties: { A: !Sub ["${Steponce}", { Steponce: b }] } }', False),
        ('{ Properties: { A: !Sub "${!Steponce}", B: Steponce, Steponce: !Ref Other } }', False),
        ("{ Properties: { Events: { A: !Ref Steponce } } }", False),
        ("{ Properties: { DeploymentPreference: { Alarms: [!Ref Steponce] } } }", False),
        ("{ Metadata: { A: !Ref Steponce }, Properties: }", False),
        ("{ DependsOn: }", False),
        ("{ DependsOn: [{ A: b }, 5] }", False),
        ('{ Properties: { A: !Sub ["a", ~], B: !Sub ["b", 5] } }', False),
    ],
)
def test_every_form_of_a_reference_is_known(resource: str, circular: bool):
    """Resources that SAM makes of a part need the resource, and not the reverse."""
    text = f"Resources:\n  Steponce: {{ Properties: {{ A: !Ref One }} }}\n  One: {resource}\n"
    template = template_file.read(text)
    if not circular:
        cycle.expect_none(template)
        return
    with pytest.raises(CannotWrap, match="Steponce -> One -> Steponce"):
        cycle.expect_none(template)
