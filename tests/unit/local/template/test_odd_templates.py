"""A template that CloudFormation refuses is refused in words; one that it takes is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from steponce.local.errors import TemplateError
from steponce.local.template.plan import Plan
from steponce.local.template.reader import read_plan, read_renderings

_QUEUE = "Resources:\n  Q: {Type: AWS::SQS::Queue}\n"
_NAMED = "Resources:\n  Q: {Type: AWS::SQS::Queue, Properties: {QueueName: %s}}\n"


def read(tmp_path: Path, text: str) -> Plan:
    """Read a template of this text."""
    path = tmp_path / "template.yaml"
    path.write_text(text)
    return read_plan(path, stack_name="shop", region="us-east-1")


def test_a_date_without_quotes_is_text(tmp_path: Path):
    """CloudFormation knows no dates, and many templates have their version and their policies' so."""
    policy = "{PolicyDocument: {Version: 2012-10-17, Statement: []}}"
    role = f"  R: {{Type: AWS::IAM::Policy, Properties: {policy}}}\n"
    found = read(tmp_path, f"AWSTemplateFormatVersion: 2010-09-09\n{_QUEUE}{role}")
    assert ["shop-Q"] == [queue.name for queue in found.queues]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Resources:\n  Q:\n    Type: AWS::SQS::Queue\n    Properties:\n", "Q: Properties is no object"),
        ("Resources:\n  5: {Type: AWS::SQS::Queue}\n", "the logical id 5 is no text"),
        (f"Parameters: [a]\n{_QUEUE}", "Parameters is no object"),
        (f"Parameters:\n  P:\n{_QUEUE}", "Parameters: P is no object"),
        (f"{_QUEUE}Outputs: {{O: hi}}\n", "Outputs: O is no object"),
        (f"{_QUEUE}Outputs: {{O: {{Description: hi}}}}\n", "Outputs: O has no Value"),
        (_NAMED % "!If [C]", r"Fn::If does not take .*C.*Write it as"),
        (_NAMED % "!Select [9, [a]]", "Fn::Select does not take"),
        (_NAMED % "!GetAtt Q", "Fn::GetAtt does not take"),
        ("Conditions: {C: !Condition D, D: !Condition C}\n" + _NAMED % "!If [C, a, b]", "in a circle"),
        ("Resources:\n  S: {Type: AWS::SNS::Subscription}\n", r"cannot be read.*KeyError: 'Protocol'"),
        (
            "Resources: {A: {Type: AWS::Serverless::Application, Properties: {Location: {Id: x}}}}",
            "not supported on the local stack: an application of a repository",
        ),
        (
            "Resources:\n  M: {Type: AWS::Serverless::StateMachine, Properties: {DefinitionUri: .}}\n",
            "M: DefinitionUri .* is not a file",
        ),
    ],
)
def test_a_wrong_part_is_named(tmp_path: Path, text: str, message: str):
    """Never with an error of Python's own."""
    with pytest.raises(TemplateError, match=message):
        read(tmp_path, text)


def test_lint_and_cost_refuse_it_too(tmp_path: Path):
    """They read every definition that a template can have."""
    path = tmp_path / "template.yaml"
    path.write_text(f"Parameters:\n  P:\n{_QUEUE}")
    with pytest.raises(TemplateError, match="P is no object"):
        read_renderings(path, stack_name="shop", region="us-east-1")
