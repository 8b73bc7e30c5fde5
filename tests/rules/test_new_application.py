"""What `steponce init` writes keeps the rules of the sample that it is made of, with every choice."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from samtranslator.yaml_helper import yaml_parse

from steponce.scaffold import application, installation, workflow
from steponce.scaffold.application import Choices

from . import asl, documents, template
from .test_flow import OF_ANY_MACHINE

CHOICES = [Choices("orders"), Choices("orders", callback=True, http=True)]
OF_THE_SAMPLE = {"ChargesTable"}
"""Outputs that belong to the sample's work."""

OF_ANY_TEMPLATE = [
    template.rule_nothing_waits_for_itself,
    template.rule_permissions_are_narrow,
    template.rule_nobody_is_everyone,
    template.rule_managed_policies_are_few,
    template.rule_trust_is_narrow,
    template.rule_machines_are_standard_and_watched,
    template.rule_logs_are_forgotten,
    template.rule_errors_are_joined_as_json,
    template.rule_parameters_are_used,
    template.rule_a_guided_deployment_goes_through,
    template.rule_made_arns_name_our_machines,
]


@pytest.fixture(scope="module", params=CHOICES, ids=["plain", "everything"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new application."""
    place = tmp_path_factory.mktemp("application") / "orders"
    application.init(place, request.param)
    return place


@pytest.fixture(scope="module")
def own(folder: Path) -> dict[str, Any]:
    """Its template."""
    return yaml_parse((folder / "template.yaml").read_text())


@pytest.fixture(scope="module")
def nested(folder: Path) -> dict[str, Any]:
    """The installation's template."""
    return yaml_parse((folder / installation.FOLDER / "template.yaml").read_text())


@pytest.mark.parametrize("rule", [*documents.rules_of(asl), *OF_ANY_MACHINE], ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("callback", [False, True])
def test_the_workflow_keeps_the_rule(rule: Callable[..., list[str]], callback: bool):
    """With a confirmation and without."""
    assert [] == rule(json.loads(workflow.definition(callback=callback)))


@pytest.mark.parametrize("rule", OF_ANY_TEMPLATE, ids=lambda rule: rule.__name__)
def test_the_template_keeps_the_rule(rule: Callable[..., list[str]], own: dict[str, Any]):
    """The parts that the application owns."""
    assert [] == rule(own)


def test_the_installation_has_no_parameter_that_nothing_reads(nested: dict[str, Any]):
    """Those of the workflow and its work are the application's."""
    assert [] == template.rule_parameters_are_used(nested)


def test_the_installation_is_the_sample_without_the_workflow_and_its_work(nested: dict[str, Any]):
    """Every other resource is there, and differs in the name of the state machine alone."""
    sample = documents.template()["Resources"]
    gone = {"RunOnceStateMachine", "RunOnceRole", "StateLogs", "ChargeCardFunction", "ChargesTable"}

    assert sample.keys() - gone == nested["Resources"].keys()
    arn = "arn:${AWS::Partition}:states:${AWS::Region}:${AWS::AccountId}:stateMachine:${StateMachineName}"
    text = json.dumps({key: sample[key] for key in nested["Resources"]})
    text = text.replace(json.dumps({"Ref": "RunOnceStateMachine"}), json.dumps({"Fn::Sub": arn}))
    text = text.replace("${AWS::StackName}-run-once", "${StateMachineName}")
    text = text.replace(
        json.dumps({"Fn::Sub": "${StateMachineName}"}), json.dumps({"Ref": "StateMachineName"})
    )
    assert json.loads(text) == nested["Resources"]


def test_the_workflow_is_given_what_it_needs_and_may_call_it(folder: Path, own: dict[str, Any]):
    """Each placeholder has a value, and each function a permission; nothing is left over."""
    placeholders = set(re.findall(r"\$\{(\w+)\}", (folder / workflow.FILE).read_text()))
    given = own["Resources"]["RunOnceStateMachine"]["Properties"]["DefinitionSubstitutions"]
    (policy,) = own["Resources"]["RunOnceRole"]["Properties"]["Policies"]
    statements = policy["PolicyDocument"]["Statement"]
    (invoke,) = [one for one in statements if one.get("Action") == "lambda:InvokeFunction"]
    (count,) = [one["Fn::If"] for one in statements if "Fn::If" in one]

    assert placeholders == given.keys()
    functions = [value for name, value in given.items() if name.endswith("FunctionArn")]
    assert sorted(map(str, functions)) == sorted(map(str, invoke["Resource"]))
    table = {"Fn::GetAtt": ["Steponce", "Outputs.LimitsTable"]}
    text = "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/${Table}"
    arn = {"Fn::Sub": [text, {"Table": table}]}
    assert {"Fn::If": ["HasRateLimit", table, "none"]} == given["LimitsTable"]
    assert ["HasRateLimit", {"Effect": "Allow", "Action": "dynamodb:UpdateItem", "Resource": arn}] == count[
        :2
    ]
    of_the_sample = documents.template()["Resources"]["RunOnceStateMachine"]["Properties"]
    for name in ("UnlimitedField", "RateLimit", "LimitRule"):
        assert of_the_sample["DefinitionSubstitutions"][name] == given[name]


def test_what_the_application_reads_of_the_installation_is_there(own: dict[str, Any], nested: dict[str, Any]):
    """Without a condition, unless it is chosen or on by default."""
    read = set(re.findall(r"Outputs\.(\w+)", json.dumps(own)))
    unsure = {name for name, output in nested["Outputs"].items() if "Condition" in output}

    assert set() == read - nested["Outputs"].keys()
    limits = "LimitsTable"  # only with a limit, as the test above and the Output say
    assert {"RequestsUrl", "AlarmsTopicArn", limits} >= read & unsure
    assert "HasLimits" == own["Outputs"]["LimitsTable"]["Condition"]
    assert ("RequestsUrl" in read) == ("HttpAccess" in own["Parameters"])
    given = own["Resources"]["Steponce"]["Properties"]["Parameters"]
    assert given.keys() <= nested["Parameters"].keys()


def test_the_table_for_limits_is_found_whenever_it_is_there(own: dict[str, Any], nested: dict[str, Any]):
    """The Output's condition is the installation's own, on the same values."""
    given = own["Resources"]["Steponce"]["Properties"]["Parameters"]
    for name in ("Limits", "RateLimit"):
        assert {"Ref": name} == given[name]
    condition = nested["Outputs"]["LimitsTable"]["Condition"]
    assert condition == own["Outputs"]["LimitsTable"]["Condition"]
    for name in (condition, "HasRateLimit"):
        assert nested["Conditions"][name] == own["Conditions"][name]


def test_the_commands_find_what_they_find_in_the_sample(own: dict[str, Any]):
    """Every Output that does not depend on a parameter which the application leaves at its default."""
    sample = documents.template()["Outputs"]
    wanted = {name for name, output in sample.items() if "Condition" not in output} - OF_THE_SAMPLE

    assert set() == wanted - own["Outputs"].keys()
    assert {"LockTokenPath", "PayloadHashPath", "AlarmsTopicArn"} <= own["Outputs"].keys()


@pytest.mark.parametrize(
    "page", ["README.md", "docs/own-application.md", "docs/wrap.md", "application/*/README.md"]
)
def test_each_page_that_leads_to_a_build_says_what_it_needs(page: str):
    """The Makefile builds the layer, and runs a Python of the functions' version."""
    (path,) = documents.ROOT.glob(page)
    (version,) = set(re.findall(r"python(3\.\d+)", (documents.ROOT / "src" / "Makefile").read_text()))
    needs = f"`sam build` needs make and Python {version} on the `PATH`, or Docker and `--use-container`."
    assert needs in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", ["own-application.md", "results.md"])
def test_the_page_names_each_variable_that_keeping_a_large_result_reads(page: str):
    """A new application has none of them, and without RetentionSeconds no result is ever deleted."""
    text = (documents.ROOT / "src" / "steponce" / "results.py").read_text()
    read = set(re.findall(r'environ\.get\("(\w+)"', text))
    lines = (documents.ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()
    (said,) = [line for line in lines if " variable" in line and "`ResultBucket`" in line]
    outputs = documents.template()["Outputs"]

    assert {"ResultBucket", "RetentionSeconds"} == read == {name for name in outputs if name in read}
    assert [] == [name for name in sorted(read) if f"`{name}`" not in said]
