"""A template's Rules refuse parameters that do not go together, before anything is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from steponce.local.errors import TemplateError
from steponce.local.template.reader import read_plan
from tests.conftest import TEMPLATE

SHOP = """
Parameters:
  Limit: { Type: String, Default: "0" }
  Path: { Type: String, Default: "" }
  Zones: { Type: CommaDelimitedList, Default: "a,b" }
Rules:
  Checked:
    RuleCondition: !Not [!Equals [!Ref Limit, "0"]]
    Assertions:
      - Assert: %s
        AssertDescription: Limit needs what it needs.
Resources:
  Queue: { Type: AWS::SQS::Queue }
"""


def read(tmp_path: Path, assertion: str, **parameters: str) -> None:
    """Read a template with this assertion, which counts if Limit is not 0."""
    path = tmp_path / "template.yaml"
    path.write_text(SHOP % assertion)
    read_plan(path, parameters={"Limit": "1"} | parameters, stack_name="shop", region="us-east-1")


@pytest.mark.parametrize(
    ("assertion", "holds", "fails"),
    [
        ('!Not [!Equals [!Ref Path, ""]]', {"Path": "a"}, {"Path": ""}),
        ('!And [!Equals [!Ref Path, a], !Equals [!Ref Limit, "1"]]', {"Path": "a"}, {"Path": "b"}),
        ('!Or [!Equals [!Ref Path, a], !Equals [!Ref Limit, "2"]]', {"Limit": "2"}, {"Path": "b"}),
        ("!Contains [[a, b], !Ref Path]", {"Path": "b"}, {"Path": "c"}),
        ('{ "Fn::EachMemberEquals": [!Ref Zones, !Ref Path] }', {"Zones": "x,x", "Path": "x"}, {"Path": "a"}),
        ('{ "Fn::EachMemberIn": [!Ref Zones, [a, b, c]] }', {"Zones": "c,a"}, {"Zones": "c,d"}),
    ],
)
def test_a_rule_is_checked_where_its_condition_holds(
    tmp_path: Path, assertion: str, holds: dict[str, str], fails: dict[str, str]
):
    """And the refusal has the rule's own words."""
    read(tmp_path, assertion, **holds)
    read(tmp_path, assertion, **fails | {"Limit": "0"})
    with pytest.raises(TemplateError, match=r"^Rule Checked: Limit needs what it needs\.$"):
        read(tmp_path, assertion, **fails)


def test_a_function_that_the_local_stack_does_not_know_is_named(tmp_path: Path):
    """Instead of being taken as true."""
    with pytest.raises(TemplateError, match="not supported on the local stack: Fn::RefAll in Rules"):
        read(tmp_path, '{ "Fn::RefAll": "AWS::EC2::VPC::Id" }')


@pytest.mark.parametrize(
    "assertion",
    [
        "5",
        "maybe",
        "[]",
        "{}",
        "{ 'Fn::Not': 5 }",
        "{ 'Fn::Not': [5] }",
        "!Equals [a]",
        "!Contains [a, b, c]",
    ],
)
def test_a_malformed_rule_is_refused(tmp_path: Path, assertion: str):
    """In a sentence, and not by an error of Python's."""
    with pytest.raises(TemplateError, match=r"^Rule Checked is malformed|in Rules\. Known: "):
        read(tmp_path, assertion)


@pytest.mark.parametrize(
    ("parameters", "rule"),
    [({"RateLimit": "8"}, "RateLimitKnowsItsUsers"), ({"HttpAccess": "jwt"}, "HttpAccessKnowsItsCallers")],
)
def test_the_rules_of_the_template_hold_here_as_on_aws(parameters: dict[str, str], rule: str):
    """They would be an error of CloudFormation on the first deployment."""
    with pytest.raises(TemplateError, match=f"^Rule {rule}: "):
        read_plan(TEMPLATE, parameters=parameters, stack_name="shop", region="us-east-1")
