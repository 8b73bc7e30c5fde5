"""The example of CDK in docs/own-application.md, as CDK itself synthesizes it."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from samtranslator.yaml_helper import yaml_parse

from steponce.scaffold import application
from steponce.scaffold.application import Choices
from tests.real.programs import environment, from_npm
from tests.rules.documents import ROOT
from tests.rules.prose import read

OWN_APPLICATION = ROOT / "docs" / "own-application.md"


def test_a_cdk_stack_includes_an_application(tmp_path: Path, record_property: Callable[[str, object], None]):
    """Its function gets what `Client.from_outputs` needs, and what the commands read is in its Outputs."""
    record_property("part", "CDK")
    application.init(tmp_path, Choices("orders"))
    packaged = yaml_parse(
        (tmp_path / "template.yaml").read_text()
    )  # long forms, as `sam package` writes them
    (tmp_path / "packaged.yaml").write_text(json.dumps(packaged))
    (tmp_path / "checkout").mkdir()
    (tmp_path / "checkout" / "app.py").write_text("def handler(event, context): ...\n")
    (tmp_path / "node_modules").symlink_to(from_npm("aws-cdk-lib").parent)
    [program] = read(OWN_APPLICATION).blocks("js")
    (tmp_path / "shop.mjs").write_text(program)

    command = ["node", "shop.mjs"]
    subprocess.run(command, cwd=tmp_path, env=environment(CDK_OUTDIR="out"), check=True)

    template = json.loads((tmp_path / "out" / "Shop.template.json").read_text())
    assert [] == json.loads((tmp_path / "out" / "validation-report.json").read_text())["pluginReports"]
    assert {"RunOnceStateMachineArn", "LocksTable", "Workflow"} <= set(template["Outputs"])
    (function,) = (
        made["Properties"]
        for made in template["Resources"].values()
        if made["Type"] == "AWS::Lambda::Function"
    )
    role = template["Resources"][function["Role"]["Fn::GetAtt"][0]]["Properties"]
    assert of_installation("StartRequestsPolicyArn") in role["ManagedPolicyArns"]
    assert {"Workflow": of_installation("Workflow")} == function["Environment"]["Variables"]
    assert [of_installation("SteponceLayer")] == function["Layers"]


def of_installation(output: str) -> dict[str, list[str]]:
    """An Output of the nested stack, whose template has it."""
    assert output in (ROOT / "template.yaml").read_text()
    return {"Fn::GetAtt": ["Steponce", f"Outputs.{output}"]}
