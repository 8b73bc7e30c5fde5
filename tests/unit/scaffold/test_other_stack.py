"""What an application makes that uses another stack's installation, as docs/several-workflows.md says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from samtranslator.yaml_helper import yaml_parse

from steponce.local.template.reader import read_plan
from steponce.scaffold import application
from steponce.scaffold.application import Choices
from tests.other_stack import names_of_parameters, share
from tests.rules.documents import ROOT, lint_template

REGION = "us-east-1"


def test_both_templates_hand_on_what_there_is_and_no_more(tmp_path: Path):
    """CloudFormation refuses a nested stack that gets a parameter which its template does not have."""
    shop, mails = tmp_path / "shop", tmp_path / "mails"
    for folder in (shop, mails):
        application.init(folder, Choices(folder.name))
    share(shop, mails, "mails-run-once")

    first = read_plan(shop / "template.yaml", stack_name="shop", region=REGION)
    given = {name: first.outputs[name] for name in names_of_parameters() if name in first.outputs}
    second = read_plan(mails / "template.yaml", parameters=given, stack_name="mails", region=REGION)

    workflow = json.loads(second.outputs["Workflow"])
    assert first.outputs["LocksTable"] == workflow["locksTable"]
    assert [workflow["stateMachineArn"]] == [one.arn for one in second.machines]
    assert any(workflow["stateMachineArn"] in json.dumps(one.pattern) for one in first.deliveries.rules)


def with_http(folder: Path, shop: Path) -> Path:
    """An application with an HTTP API that uses the installation of `shop`; its template."""
    application.init(folder, Choices(folder.name, http=True))
    share(shop, folder, f"{folder.name}-run-once")
    page = (ROOT / "docs" / "several-workflows.md").read_text(encoding="utf-8")
    ((parameter, output),) = re.findall(r"With `--http`, add `(.*?)`.*?one more Output: `(.*?)`", page)
    template = folder / "template.yaml"
    text = template.read_text().replace(" Parameters:\n", f" Parameters:\n        {parameter}\n", 1)
    template.write_text(f"{text}  {output}\n")
    return template


def test_the_other_application_has_its_own_http_api(tmp_path: Path):
    """Without the page's two lines its parameter would be one that nothing reads."""
    shop = tmp_path / "shop"
    application.init(shop, Choices("shop"))
    template = with_http(tmp_path / "mails", shop)

    first = read_plan(shop / "template.yaml", stack_name="shop", region=REGION)
    given = {name: first.outputs[name] for name in names_of_parameters() if name in first.outputs}
    second = read_plan(
        template, parameters={**given, "HttpAccess": "open"}, stack_name="mails", region=REGION
    )
    assert second.outputs["RequestsUrl"].startswith("http")


@pytest.mark.full
def test_the_linter_has_nothing_to_say_of_either_template(tmp_path: Path):
    """`sam validate` of a new application runs it, and fails at a warning."""
    shop, mails = tmp_path / "shop", tmp_path / "mails"
    for folder in (shop, mails):
        application.init(folder, Choices(folder.name))
    share(shop, mails, "mails-run-once")
    for folder in (shop, mails):
        lint_template(folder / "template.yaml")


@pytest.mark.full
def test_the_linter_has_nothing_to_say_of_an_application_with_an_http_api(tmp_path: Path):
    """It complains of a parameter that nothing reads."""
    application.init(tmp_path / "shop", Choices("shop"))
    lint_template(with_http(tmp_path / "mails", tmp_path / "shop"))


def test_nothing_that_the_page_s_second_workflow_has_is_left_out_silently(tmp_path: Path):
    """Without the topic it would have no alarms, and with the default rates both would pass AWS's quotas."""
    shop, mails = tmp_path / "shop", tmp_path / "mails"
    for folder in (shop, mails):
        application.init(folder, Choices(folder.name))
    share(shop, mails, "mails-run-once")
    first, second = (yaml_parse((folder / "template.yaml").read_text()) for folder in (shop, mails))

    page = (ROOT / "docs" / "several-workflows.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```yaml\n(  RefundsRequests:.*?)```", page, re.DOTALL)
    beside = yaml_parse(block)["RefundsRequests"]["Properties"]["Parameters"]
    given = second["Resources"]["Requests"]["Properties"]["Parameters"]
    assert beside.keys() - given.keys() == set()
    assert {"Ref": "AlarmsTopicArn"} == given["AlarmsTopicArn"]
    assert set(names_of_parameters()) <= first["Outputs"].keys()


def test_the_waiting_steps_of_both_stacks_are_the_first_one_s(tmp_path: Path):
    """Only that one's Outputs name what `awaiting` and `callback` need, and the page says so."""
    shop, mails = tmp_path / "shop", tmp_path / "mails"
    for folder in (shop, mails):
        application.init(folder, Choices(folder.name))
    share(shop, mails, "mails-run-once")
    first, second = (
        yaml_parse((folder / "template.yaml").read_text())["Outputs"] for folder in (shop, mails)
    )
    page = (ROOT / "docs" / "several-workflows.md").read_text(encoding="utf-8")
    (said,) = [line for line in page.splitlines() if line.startswith("With `--callback`, add")]

    needed = {"AwaitingStepsTable", "ResolveAwaitingStepFunction", "CallbackKey", "CallbacksUrl"}
    assert needed <= first.keys()
    assert set() == needed & second.keys()
    assert "Give `awaiting` and `callback` the name of the first stack" in said
