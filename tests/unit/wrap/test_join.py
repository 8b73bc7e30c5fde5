"""A state machine of an application that has an installation: it joins that one, with triggers of its own."""

from __future__ import annotations

import difflib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from samtranslator.yaml_helper import yaml_parse

from steponce import Client
from steponce.cli import commands
from steponce.local import LocalStack
from steponce.local.template.intrinsics import Resolver
from steponce.local.template.physical_names import PhysicalNames
from steponce.scaffold import application, installation
from steponce.scaffold.application import Choices
from steponce.wrap import CannotWrap
from steponce.wrap.into import wrap_into
from tests import covering
from tests.machines import machine
from tests.patience import PATIENCE_SECONDS
from tests.rules.documents import lint_template
from tests.unit.wrap.conftest import without_package

REFUND = """\
  # -- Refunds ------------
  RefundStateMachine:
    Type: AWS::Serverless::StateMachine
    Properties:
      Name: !Sub "${AWS::StackName}-refund"
      DefinitionUri: statemachines/refund.asl.json
      Policies: [AWSXRayDaemonWriteAccess]

Outputs:"""
DEFINITION = machine({"Refund": {"Type": "Pass", "Parameters": {"refunded.$": "$.amount"}, "End": True}})
OPTIONS = pytest.mark.parametrize("options", [[], ["--around"]], ids=["inline", "around"])


@dataclass(frozen=True)
class Joined:
    """A template before and after the command, and what it nests."""

    before: dict[str, Any]
    after: dict[str, Any]
    installation: dict[str, Any]
    requests: dict[str, Any]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The template of a new application, to which somebody has added a machine."""
    return make(tmp_path / "shop")


@pytest.fixture(
    scope="module",
    params=[
        pytest.param([], id="inline"),
        pytest.param(["--around"], id="around", marks=pytest.mark.full),
    ],
)
def joined(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Joined:
    """An application whose other machine was wrapped, inline or around."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(installation, "files", lambda **_: without_package())
        path = make(tmp_path_factory.mktemp("application") / "shop")
    before = yaml_parse(path.read_text())
    after = changed(path, *request.param)
    folder = path.parent / installation.FOLDER
    nested = [yaml_parse((folder / name).read_text()) for name in ("template.yaml", "requests.yaml")]
    return Joined(before, after, *nested)


def make(folder: Path) -> Path:
    """Write the application."""
    application.init(folder, Choices("shop"))
    template = folder / "template.yaml"
    template.write_text(re.sub(r"^Outputs:", REFUND, template.read_text(), flags=re.MULTILINE))
    (folder / "statemachines" / "refund.asl.json").write_text(json.dumps(DEFINITION))
    return template


def changed(path: Path, *options: str) -> dict[str, Any]:
    """The template after the command."""
    assert 0 == commands.run(["wrap", "--into", str(path), "--machine", "RefundStateMachine", *options])
    found: dict[str, Any] = yaml_parse(path.read_text())
    return found


def is_started(joined: Joined) -> bool:
    """Whether the machine stays as it is, and the workflow starts it."""
    return "RefundStateMachineOnce" in joined.after["Resources"]


def test_the_installation_knows_the_machine(joined: Joined):
    """By its ARN, which is made of its name; and it knows a machine that is started by the workflow."""
    given = dict(joined.after["Resources"]["Steponce"]["Properties"]["Parameters"])
    others = given.pop("OtherStateMachines")
    arn = (
        "arn:${AWS::Partition}:states:${AWS::Region}:${AWS::AccountId}:stateMachine:${AWS::StackName}-refund"
    )
    assert joined.before["Resources"]["Steponce"]["Properties"]["Parameters"] == given
    both = {"Fn::Join": [",", [{"Fn::Sub": f"{arn}-once"}, {"Fn::Sub": arn}]]}
    assert (both if is_started(joined) else {"Fn::Sub": arn}) == others


def test_it_has_triggers_and_an_output_of_its_own(joined: Joined):
    """Every parameter of the nested stack has a value, and every value a parameter."""
    nested, outputs = joined.requests["Parameters"], joined.installation["Outputs"]
    stack = joined.after["Resources"]["RefundStateMachineRequests"]["Properties"]
    assert "steponce-installation/requests.yaml" == stack["TemplateURL"]
    assert stack["Parameters"].keys() <= nested.keys()
    assert {"Ref": "Architecture"} == stack["Parameters"]["Architecture"]
    assert {name for name, one in nested.items() if "Default" not in one} <= stack["Parameters"].keys()
    read = set(re.findall(r"\"Outputs\.(\w+)", json.dumps(stack)))
    assert {"LocksTableArn", "ServiceName"} <= read <= outputs.keys()
    output = joined.after["Outputs"]["RefundStateMachineWorkflow"]["Value"]
    assert {"Fn::GetAtt": ["RefundStateMachineRequests", "Outputs.Workflow"]} == output


def test_its_requests_are_completed_by_its_own_settings(joined: Joined):
    """An execution that is started by hand gets its lock token from the function of its own workflow."""
    runs = "RefundStateMachineOnce" if is_started(joined) else "RefundStateMachine"
    given = joined.after["Resources"][runs]["Properties"]["DefinitionSubstitutions"]
    own = {"Fn::GetAtt": ["RefundStateMachineRequests", "Outputs.PrepareRequestFunctionArn"]}
    assert own == given["PrepareRequestFunctionArn"]
    changed = {name: one for name, one in joined.after["Resources"].items() if name.startswith("RefundState")}
    assert 2 == json.dumps(changed).count("Outputs.PrepareRequestFunctionArn")
    assert 2 == json.dumps(changed).count(json.dumps(own))


def test_no_line_changes_but_those_of_the_machine(path: Path):
    """Lists over several lines and blank lines stay as somebody has written them."""
    before = path.read_text()
    changed(path)
    added = [
        line[2:]
        for line in difflib.ndiff(before.splitlines(), path.read_text().splitlines())
        if line.startswith("- ")
    ]
    assert [
        "      DefinitionUri: statemachines/refund.asl.json",
        "      Policies: [AWSXRayDaemonWriteAccess]",
    ] == added


@covering.first(
    1,
    ("now", "before"),
    [("", ""), ("        Limits: !Ref Limits\n", ""), ("Condition: HasLimits", "Condition: HasRateLimit")],
    ids=["now", "earlier version", "earlier version, turned on by hand"],
)
def test_a_rate_limit_needs_the_table_of_the_installation(path: Path, now: str, before: str):
    """An application of an earlier version has its Output only with a limit of its own."""
    path.write_text(path.read_text().replace(now, before) if now else path.read_text())
    decisions = wrap_into(path, "RefundStateMachine", form="inline").decisions
    (said,) = [text for text in decisions if "RefundStateMachineRateLimit is not 0" in text]
    assert "Limits=yes" in said
    assert bool(now) == ("delete the Condition of the Output LimitsTable" in said)


@pytest.mark.full
def test_the_parameter_for_that_table_has_the_name_that_the_template_gives_it(path: Path):
    """A template with a parameter Limits of its own has another for steponce."""
    path.write_text(
        path.read_text().replace("        Limits: !Ref Limits\n", "        Limits: !Ref SteponceLimits\n")
    )
    decisions = wrap_into(path, "RefundStateMachine", form="inline").decisions

    assert any("needs SteponceLimits=yes." in text for text in decisions)


def test_its_parameters_are_its_own_and_each_is_read(joined: Joined):
    """The application's say something of its other workflow, and no other resource changes."""
    before, after = joined.before, joined.after
    added = after["Parameters"].keys() - before["Parameters"].keys()
    text = json.dumps({key: after[key] for key in ("Resources", "Conditions", "Outputs")})
    assert {"RefundStateMachineWorkTimeoutSeconds", "RefundStateMachineRateLimit"} <= added
    assert [] == [name for name in added if f'"{name}"' not in text]
    assert [] == [name for name in added if not name.startswith("RefundStateMachine")]
    assert {"RefundStateMachineHasRateLimit"} == after["Conditions"].keys() - before["Conditions"].keys()
    other = {name for name, one in before["Resources"].items() if after["Resources"][name] != one}
    assert ({"Steponce"} if is_started(joined) else {"Steponce", "RefundStateMachine"}) == other


def test_it_is_named_beside_the_others(path: Path):
    """Those that the installation knows already stay."""
    known = '        OtherStateMachines: "arn:aws:states:us-east-1:123456789012:stateMachine:theirs"\n'
    path.write_text(
        path.read_text().replace("      Parameters: # its", f"      Parameters:\n{known}        # its", 1)
    )
    others = changed(path)["Resources"]["Steponce"]["Properties"]["Parameters"]["OtherStateMachines"][
        "Fn::Join"
    ][1]
    assert ("arn:aws:states:us-east-1:123456789012:stateMachine:theirs", 2) == (others[0], len(others))


@covering.first(
    1,
    ("kind", "known", "options"),
    [
        ("CommaDelimitedList", '!Join [",", !Ref Others]', []),
        ("CommaDelimitedList", '{ "Fn::Join": [",", { Ref: Others }] }', ["--around"]),
        ("String", "!Ref Others", []),
        ("String", '""', []),
    ],
)
def test_no_empty_text_is_named_beside_it(kind: str, known: str, options: list[str], path: Path):
    """What the application knows of others may come from a parameter, which may be empty."""
    others = f'  Others:\n    Type: {kind}\n    Default: ""\n'
    text = path.read_text().replace("\nParameters:\n", f"\nParameters:\n{others}", 1)
    line = f"      Parameters:\n        OtherStateMachines: {known}\n        # its"
    path.write_text(text.replace("      Parameters: # its", line, 1))
    found = changed(path, *options)

    own = _known(found, "").split(",")
    assert (2 if options else 1) == len(own)
    assert [] == [arn for arn in own if not arn.startswith("arn:")]
    theirs = "arn:aws:states:us-east-1:123456789012:stateMachine:theirs"
    assert ([] if known == '""' else [theirs]) + own == _known(found, theirs).split(",")


def _known(template: dict[str, Any], others: str) -> str:
    """The machines that the installation knows, with these others."""
    values = {name: str(one["Default"]) for name, one in template["Parameters"].items()}
    resolver = Resolver(template, values | {"Others": others}, PhysicalNames("shop", "us-east-1"))
    given = template["Resources"]["Steponce"]["Properties"]["Parameters"]["OtherStateMachines"]
    return str(resolver.resolve(given))


def test_an_installation_that_takes_no_other_is_upgraded_first(path: Path):
    """It is of an earlier version."""
    (path.parent / installation.FOLDER / "requests.yaml").unlink()
    with pytest.raises(CannotWrap, match="Upgrade it first"):
        wrap_into(path, "RefundStateMachine", form="inline")


@pytest.mark.full
def test_the_path_of_an_installation_may_be_written_in_another_way(path: Path):
    """It is the same folder."""
    path.write_text(path.read_text().replace("URL: steponce-in", "URL: ./steponce-in"))
    assert wrap_into(path, "RefundStateMachine", form="inline").installation is None


@pytest.mark.parametrize(
    ("known", "other"),
    [
        ("  Steponce:\n", "  Installation:\n"),
        (f"{installation.FOLDER}/template.yaml", f"{installation.FOLDER}/requests.yaml"),
    ],
    ids=["another name", "a part of it"],
)
def test_an_installation_of_another_kind_is_not_given_up(path: Path, known: str, other: str):
    """Under another name it would be another stack, with empty tables."""
    text = path.read_text()
    assert known in text
    path.write_text(text.replace(known, other))
    with pytest.raises(CannotWrap, match=r"Do not rename it.* Wrap the definition alone"):
        wrap_into(path, "RefundStateMachine", form="inline")


def test_a_name_that_nobody_can_foresee_is_refused(path: Path):
    """The installation is made before the machine."""
    named = path.read_text().replace('Name: !Sub "${AWS::StackName}-refund"', "Name: !GetAtt A.B")
    path.write_text(named)
    with pytest.raises(CannotWrap, match="neither text nor"):
        wrap_into(path, "RefundStateMachine", form="inline")


def test_a_machine_under_a_condition_joins_inline_only(path: Path):
    """The installation knows it by its name. A workflow around it would refer to it."""
    text = path.read_text()
    path.write_text(
        text.replace("  RefundStateMachine:\n", "  RefundStateMachine:\n    Condition: HasRateLimit\n")
    )
    with pytest.raises(CannotWrap, match="under the Condition HasRateLimit"):
        wrap_into(path, "RefundStateMachine", form="around")
    assert wrap_into(path, "RefundStateMachine", form="inline")


@pytest.mark.full
@OPTIONS
def test_both_workflows_run_requests_once(path: Path, options: list[str]):
    """On one installation, each by its own name."""
    changed(path, *options)
    with LocalStack.from_template(path, name="shop") as stack:
        said = json.loads(stack.outputs["RefundStateMachineWorkflow"])
        outputs = {f"{name[0].upper()}{name[1:]}": value for name, value in said.items()}
        outputs["RunOnceStateMachineArn"] = outputs.pop("StateMachineArn")
        client = Client.from_outputs(outputs, session=stack.session(), endpoints=stack.endpoints)
        for _ in range(2):
            receipt = client.start("refund-1", {"amount": 7})
            done = client.wait("refund-1", timeout_seconds=PATIENCE_SECONDS)
            assert ("COMPLETED", {"refunded": 7}) == (done.status, done.result)
        assert receipt.duplicate
        assert ("RUNNING", False) == (
            (other := stack.client().start("refund-1", {"orderId": "1"})).status,
            other.duplicate,
        )


@pytest.mark.full
@pytest.mark.parametrize("options", [[], ["--around"]], ids=["inline", "around"])
def test_the_linter_has_nothing_to_say_of_the_template(path: Path, options: list[str]):
    """With all that is written into it."""
    changed(path, *options)
    lint_template(path)
