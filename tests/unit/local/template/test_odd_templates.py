"""A template that CloudFormation refuses is refused in words; one that it takes is read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from steponce.local.errors import TemplateError
from steponce.local.template.plan import Plan
from steponce.local.template.reader import read_plan, read_renderings

_QUEUE = "Resources:\n  Q: {Type: AWS::SQS::Queue}\n"
_WITH = "Resources:\n  Q: {Type: AWS::SQS::Queue, Properties: {%s}}\n"
_RULE = "Resources:\n  R: {Type: AWS::Events::Rule, Properties: {Targets: [{Arn: a, Id: b, %s}]}}\n"
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


_TRUE = """
Transform: AWS::Serverless-2016-10-31
Parameters:
  Notify: {Type: String, Default: true, AllowedValues: [true, false]}
Conditions:
  Notifies: !Equals [!Ref Notify, "true"]
Resources:
  F:
    Type: AWS::Serverless::Function
    Properties: {Runtime: python3.13, Handler: f.f, InlineCode: "", Environment: {Variables: {DEBUG: false}}}
  Q: {Type: AWS::SQS::Queue, Condition: Notifies}
  M:
    Type: AWS::Serverless::StateMachine
    Properties:
      Role: arn:aws:iam::123456789012:role/r
      DefinitionSubstitutions: {Flag: true}
      Definition: {StartAt: S, States: {S: {Type: Pass, Result: "${Flag}", End: true}}}
Outputs:
  Notify: {Value: !Ref Notify}
  Plain: {Value: true}
"""


def test_a_boolean_without_quotes_is_text(tmp_path: Path):
    """CloudFormation writes `true` and `false`. Python's words made a condition turn out the other way."""
    found = read(tmp_path, _TRUE)
    assert {"Notify": "true", "Plain": "true"} == found.outputs
    assert [{"DEBUG": "false"}] == [function.environment for function in found.functions]
    assert ["shop-Q"] == [queue.name for queue in found.queues]
    assert '"Result": "true"' in found.machines[0].definition


@pytest.mark.parametrize(("value", "queues"), [("true", 1), ("false", 0)])
def test_a_boolean_is_given_as_text(tmp_path: Path, value: str, queues: int):
    """Only what the template names is allowed."""
    path = tmp_path / "template.yaml"
    path.write_text(_TRUE)
    found = read_plan(path, parameters={"Notify": value}, stack_name="shop", region="us-east-1")
    assert (value, queues) == (found.outputs["Notify"], len(found.queues))
    with pytest.raises(TemplateError, match="Notify is 'True'; allowed: true, false"):
        read_plan(path, parameters={"Notify": "True"}, stack_name="shop", region="us-east-1")


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
        (
            _WITH % "VisibilityTimeout: 43201",
            "Q: VisibilityTimeout is '43201'. Give a number from 0 to",
        ),
        (_WITH % "VisibilityTimeout: -1", "Q: VisibilityTimeout is '-1'"),
        (_WITH % "DelaySeconds: soon", "Q: DelaySeconds is 'soon'"),
        (_RULE % "Input: '{a}'", "shop-R: the Input of a target is no JSON"),
        (
            _RULE % 'InputTransformer: {InputTemplate: \'{"a":<b>,"c":{d}}\'}',
            "the InputTemplate .* is no JSON",
        ),
    ],
)
def test_a_wrong_part_is_named(tmp_path: Path, text: str, message: str):
    """Never with an error of Python's own."""
    with pytest.raises(TemplateError, match=message):
        read(tmp_path, text)


def test_a_template_that_nests_itself_is_named_once(tmp_path: Path):
    """Also by way of another one."""
    nests = "Resources:\n  N: {Type: AWS::CloudFormation::Stack, Properties: {TemplateURL: %s}}\n"
    (tmp_path / "other.yaml").write_text(nests % "template.yaml")
    with pytest.raises(TemplateError, match=r"^N: N: N: .*other.yaml is nested in itself\. Nest"):
        read(tmp_path, nests % "other.yaml")


@pytest.mark.parametrize(
    "template", ['{"a":<b>,"c":"<d> \\"<e>\\""}', '[<a>,{"b":[<c>]}]', '"<a>"\n"b"', "<a>"]
)
def test_an_input_may_have_placeholders(tmp_path: Path, template: str):
    """Inside of texts and outside, and the lines may be texts."""
    found = read(tmp_path, _RULE % f"InputTransformer: {{InputTemplate: {json.dumps(template)}}}")
    assert template == found.deliveries.rules[0].targets[0].template


def test_lint_and_cost_refuse_it_too(tmp_path: Path):
    """They read every definition that a template can have."""
    path = tmp_path / "template.yaml"
    path.write_text(f"Parameters:\n  P:\n{_QUEUE}")
    with pytest.raises(TemplateError, match="P is no object"):
        read_renderings(path, stack_name="shop", region="us-east-1")
