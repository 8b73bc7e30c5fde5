"""A state machine of a template is wrapped in its place: what the template gets, and what stays as it was."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from samtranslator.yaml_helper import yaml_parse

from steponce.cli import commands
from steponce.lint.definitions import complaints
from steponce.local import LocalStack
from steponce.local.template.reader import read_plan
from steponce.scaffold import installation
from steponce.wrap import CannotWrap, source, template_file
from steponce.wrap.into import wrap_into
from steponce.wrap.wrapped import Form
from tests import covering
from tests.machines import machine
from tests.patience import PATIENCE_SECONDS
from tests.rules.documents import lint_template

TEMPLATE = """\
AWSTemplateFormatVersion: "2010-09-09"
Transform: AWS::Serverless-2016-10-31 # as always
Description: The orders of a shop.

Parameters:
  # Of the functions.
  Architecture: { Type: String, Default: x86_64 }
  Table: { Type: String, Default: orders }

Resources:
  # -- The work ------------
  OrdersStateMachine:
    Type: AWS::Serverless::StateMachine
    Properties:
      DefinitionUri: states/orders.asl.json # beside the other one
      DefinitionSubstitutions:
        Table: !Ref Table
      Policies:
        - Version: "2012-10-17"
          Statement:
            - { Effect: Allow, Action: dynamodb:Get*, Resource: !Sub "arn:aws:dynamodb:*:*:table/${Table}" }

  # -- Another -------------
  Express:
    Type: AWS::Serverless::StateMachine
    Properties:
      Type: EXPRESS
      DefinitionUri: states/orders.asl.json
      DefinitionSubstitutions: { Table: t }

Outputs:
  Orders: { Value: !Ref OrdersStateMachine }
"""
NAMED = TEMPLATE.replace("    Properties:\n      Def", "    Properties:\n      Name: orders\n      Def", 1)
WITH_ROLE = NAMED.replace("      Policies:\n", "      Role: !GetAtt OrdersRole.Arn\n      Other:\n").replace(
    "  # -- Another",
    "  OrdersRole:\n    Type: AWS::IAM::Role\n    Properties: { Policies: [] }\n  # -- Another",
)
READS = machine({"Read": {"Type": "Pass", "Parameters": {"from": "${Table}", "id.$": "$.id"}, "End": True}})

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a template, with its definition beside."""

    def write(text: str) -> Path:
        (tmp_path / "states").mkdir(exist_ok=True)
        (tmp_path / "states" / "orders.asl.json").write_text(json.dumps(READS))
        path = tmp_path / "template.yaml"
        path.write_text(text)
        return path

    return write


def changed(path: Path, *options: str) -> dict[str, Any]:
    """The template after the command."""
    assert 0 == commands.run(["wrap", "--into", str(path), "--machine", "OrdersStateMachine", *options])
    found: dict[str, Any] = yaml_parse(path.read_text())
    return found


@pytest.mark.parametrize("options", [[], ["--around"]], ids=["inline", "around"])
def test_what_the_template_says_stays_as_it_was(write: Write, options: list[str]):
    """Comments, order and blanks too; the one line that changes is that of the definition."""
    path = write(NAMED)
    changed(path, *options)
    gone = [line for line in NAMED.splitlines() if line not in path.read_text().splitlines()]
    assert gone == ([] if options else ["      DefinitionUri: states/orders.asl.json # beside the other one"])
    assert "DefinitionUri: states/orders" in path.read_text()


@pytest.mark.full
@pytest.mark.parametrize("options", [[], ["--around"]], ids=["inline", "around"])
def test_the_stack_can_be_made_of_it(write: Write, options: list[str]):
    """Every value is there, the nested stack too, and AWS takes the definitions."""
    path = write(TEMPLATE)
    resources = changed(path, *options)["Resources"]
    plan = read_plan(path, stack_name="shop", region="us-east-1")
    assert [] == [text for one in plan.machines for text in complaints(one.definition)]
    assert {"LocksTable", "RunOnceStateMachineArn", "RequestsQueueUrl"} <= plan.outputs.keys()
    runs = "RunOnceStateMachine" if options else "OrdersStateMachine"
    assert {"Fn::Sub": "${AWS::StackName}-run-once" if options else "${AWS::StackName}-orders"} == resources[
        runs
    ]["Properties"]["Name"]
    assert (
        resources[runs]["Properties"]["Name"]
        == resources["Steponce"]["Properties"]["Parameters"]["StateMachineName"]
    )
    assert (path.parent / installation.FOLDER / "template.yaml").is_file()


def test_the_machine_keeps_its_values_and_permissions(write: Write):
    """It gets the workflow's beside; a parameter whose name is taken has another."""
    found = changed(write(NAMED))
    properties = found["Resources"]["OrdersStateMachine"]["Properties"]
    given, policies = properties["DefinitionSubstitutions"], properties["Policies"]
    assert ("orders", {"Ref": "Table"}, "states/orders_once.asl.json") == (
        properties["Name"],
        given["Table"],
        properties["DefinitionUri"],
    )
    assert {"Fn::GetAtt": ["Steponce", "Outputs.LocksTable"]} == given["LocksTable"]
    assert ["dynamodb:Get*"] == [one["Action"] for one in policies[0]["Statement"]]
    assert ["dynamodb:GetItem", "dynamodb:UpdateItem"] == policies[1]["Statement"][0]["Action"]
    assert "logs:" not in json.dumps(policies)
    assert "x86_64" == found["Parameters"]["Architecture"]["Default"]
    stack = found["Resources"]["Steponce"]["Properties"]["Parameters"]
    assert ({"Ref": "SteponceArchitecture"}, "orders") == (stack["Architecture"], stack["StateMachineName"])
    assert {"Ref": "OrdersStateMachine"} == found["Outputs"]["RunOnceStateMachineArn"]["Value"]


@covering.first(
    1,
    "value",
    [
        "!Ref Queue",
        "!GetAtt Queue.Arn",
        "{ Ref: Queue }",
        '!Sub "arn:${AWS::Partition}:states:::sqs:sendMessage.waitForTaskToken"',
        "arn:aws:states:::lambda:invoke.waitForTaskToken",
        '!Sub "arn:aws:states:::lambda:invoke${Pattern}"',
        "!Ref Action",
        "{ 'Fn::Sub': 'arn:aws:states:${AWS::Region}:123456789012:activity:q' }",
    ],
)
def test_an_activity_of_the_template_releases_no_lock(write: Write, value: str):
    """Its worker is outside, and may have had an effect before it answers RetryLater."""
    activity = "  Queue: { Type: AWS::StepFunctions::Activity, Properties: { Name: q } }\n"
    parameter = "  Action: { Type: String, Default: 'arn:aws:states:::sqs:sendMessage.waitForTaskToken' }\n"
    text = NAMED.replace("Table: !Ref Table", f"Worker: {value}", 1)
    text = text.replace("Outputs:", activity + "\nOutputs:").replace(
        "Parameters:\n", f"Parameters:\n{parameter}", 1
    )
    assert "SayRetryLater" not in asking(write(text))["States"]


def asking(path: Path) -> dict[str, Any]:
    """What the template's machine becomes if its one state calls `${Worker}`."""
    asks = machine({"Ask": {"Type": "Task", "Resource": "${Worker}", "TimeoutSeconds": 60, "End": True}})
    (path.parent / "states" / "orders.asl.json").write_text(json.dumps(asks))
    changed(path)
    made: dict[str, Any] = json.loads((path.parent / "states" / "orders_once.asl.json").read_text())
    return made


@covering.first(
    1,
    "value",
    [
        "!GetAtt ReserveFunction.Arn",
        "arn:aws:states:::lambda:invoke",
        "arn:aws:lambda:us-east-1:123456789012:function:states:live",
        "!ImportValue reserve",
    ],
)
def test_a_function_behind_a_placeholder_releases_the_lock(write: Write, value: str):
    """Also one that is called like the service, and what nobody can know."""
    assert (
        "SayRetryLater" in asking(write(NAMED.replace("Table: !Ref Table", f"Worker: {value}", 1)))["States"]
    )


@covering.first(
    1,
    "name",
    ["&name orders", '&name !Sub "${AWS::StackName}-orders"', "&name !Join [-, [&a orders, *a]]"],
    ids=["text", "function", "list"],
)
def test_an_anchor_at_the_name_is_written_once(write: Write, name: str):
    """The installation gets the name as well. YAML that has an anchor twice is refused."""
    path = write(NAMED.replace("Name: orders", f"Name: {name}") + "  Name: { Value: *name }\n")
    found = changed(path)
    given = found["Resources"]["OrdersStateMachine"]["Properties"]["Name"]
    assert given == found["Outputs"]["Name"]["Value"]
    assert given == found["Resources"]["Steponce"]["Properties"]["Parameters"]["StateMachineName"]


@covering.first(
    1,
    "role",
    [
        "!GetAtt OrdersRole.Arn",
        "!GetAtt [OrdersRole, Arn]",
        "{ Fn::GetAtt: OrdersRole.Arn }",
        '{ "Fn::GetAtt": ["OrdersRole", "Arn"] }',
    ],
)
def test_the_role_of_the_template_gets_the_permissions(write: Write, role: str):
    """Where the machine has one; its other policies stay."""
    path = write(WITH_ROLE.replace("!GetAtt OrdersRole.Arn", role))
    (policy,) = changed(path)["Resources"]["OrdersRole"]["Properties"]["Policies"]
    assert "OrdersStateMachineRunOnce" == policy["PolicyName"]
    assert "lambda:InvokeFunction" in json.dumps(policy)


def test_a_policy_of_the_role_is_not_replaced(write: Write, capsys: pytest.CaptureFixture[str]):
    """IAM keeps one policy of each name."""
    policies = "Policies: [{ PolicyName: OrdersStateMachineRunOnce, PolicyDocument: {} }]"
    text = WITH_ROLE.replace("Policies: []", policies)
    path = write(text)
    assert 2 == commands.run(["wrap", "--into", str(path), "--machine", "OrdersStateMachine"])
    assert "OrdersRole has a policy OrdersStateMachineRunOnce already" in capsys.readouterr().out
    assert text == path.read_text()


@pytest.mark.parametrize(
    "name", ['!Sub "${AWS::StackName}-orders"', "{ Fn::Sub: '${AWS::StackName}-orders' }"]
)
def test_a_name_that_another_machine_has_is_not_given(write: Write, name: str):
    """AWS refuses a second machine of one name."""
    path = write(TEMPLATE.replace("      Type: EXPRESS", f"      Name: {name}\n      Type: EXPRESS"))
    given = changed(path)["Resources"]["OrdersStateMachine"]["Properties"]["Name"]
    assert {"Fn::Sub": "${AWS::StackName}-orders-state-machine"} == given


@pytest.mark.parametrize("name", ["orders.v2", '!Sub "${AWS::StackName}-größe"', '{ "Fn::Sub": "a@${b}" }'])
@pytest.mark.parametrize("options", [[], ["--around"]], ids=["inline", "around"])
def test_a_name_that_no_parameter_takes_is_refused(
    write: Write, name: str, options: list[str], capsys: pytest.CaptureFixture[str]
):
    """AWS takes it for the machine, and would refuse the stack."""
    path = write(text := NAMED.replace("Name: orders", f"Name: {name}"))
    assert 2 == commands.run(["wrap", "--into", str(path), "--machine", "OrdersStateMachine", *options])
    assert "The Name of OrdersStateMachine has " in capsys.readouterr().out
    assert text == path.read_text()


@covering.first(
    1,
    ("machine", "name"),
    [
        ("HTTPAPIOrders", "httpapi-orders"),
        ("Orders2StateMachine", "orders2"),
        ("S3Copy", "s3-copy"),
        (
            "ProcessIncomingCustomerOrdersFromTheWebshopOfTheEast",
            "process-incoming-customer-orders-from-the-webshop",
        ),
    ],
)
def test_a_name_leaves_room_for_the_stack(write: Write, machine: str, name: str):
    """And the command says how much."""
    into = wrap_into(write(TEMPLATE.replace("OrdersStateMachine", machine)), machine, form="inline")
    given = yaml_parse(into.template)["Resources"][machine]["Properties"]["Name"]
    assert {"Fn::Sub": f"${{AWS::StackName}}-{name}"} == given
    assert any(f"so the stack's has at most {79 - len(name)}." in one for one in into.decisions)
    around = wrap_into(write(TEMPLATE.replace("OrdersStateMachine", machine)), machine, form="around")
    assert any("so the stack's has at most 71." in one for one in around.decisions)


def test_a_workflow_does_not_take_the_name_of_the_machine_that_it_starts(write: Write):
    """Nor its log group."""
    name = "${AWS::StackName}-run-once"
    resources = changed(write(NAMED.replace("Name: orders", f'Name: !Sub "{name}"')), "--around")["Resources"]
    workflow = resources["RunOnceStateMachine"]["Properties"]["Name"]
    assert {"Fn::Sub": "${AWS::StackName}-orders-once"} == workflow
    assert workflow == resources["Steponce"]["Properties"]["Parameters"]["StateMachineName"]
    assert name not in json.dumps(resources["StateLogs"])


def test_a_name_gets_a_number_if_the_others_are_taken(write: Write):
    """The machines that have them may be deployed, and must keep them."""
    head = "  {id}:\n    Type: AWS::StepFunctions::StateMachine\n"
    other = head + "    Properties: {{ StateMachineName: {name} }}\n"
    taken = [
        other.format(id=one, name=f'!Sub "${{AWS::StackName}}-{name}"')
        for one, name in (("One", "orders"), ("Two", "orders-state-machine"))
    ]
    path = write(TEMPLATE.replace("Resources:\n", f"Resources:\n{''.join(taken)}"))
    given = changed(path)["Resources"]["OrdersStateMachine"]["Properties"]["Name"]
    assert {"Fn::Sub": "${AWS::StackName}-orders-state-machine-2"} == given


def test_what_somebody_else_writes_meanwhile_stays(
    write: Write, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Another command, or an editor."""
    path = write(NAMED)
    written = source.write

    def write_meanwhile(definition: dict[str, Any]) -> str:
        path.write_text(f"{NAMED}# theirs\n")
        return written(definition)

    monkeypatch.setattr(source, "write", write_meanwhile)
    assert 2 == commands.run(["wrap", "--into", str(path), "--machine", "OrdersStateMachine"])
    assert "has changed meanwhile" in capsys.readouterr().out
    assert f"{NAMED}# theirs\n" == path.read_text()
    assert {"orders.asl.json", "states", "template.yaml"} == {one.name for one in path.parent.rglob("*")}


def test_two_commands_do_not_write_one_template_at_once(write: Write, capsys: pytest.CaptureFixture[str]):
    """Nor does the second one delete what the first has written."""
    path = write(NAMED)
    draft = path.with_name(".template.yaml.steponce-draft")
    draft.write_text("theirs")
    assert 2 == commands.run(["wrap", "--into", str(path), "--machine", "OrdersStateMachine"])
    assert "another command is changing the template" in capsys.readouterr().out
    assert (NAMED, "theirs") == (path.read_text(), draft.read_text())
    draft.unlink()
    assert changed(path)


@pytest.mark.parametrize("form", ["inline", "around"])
def test_the_capability_that_a_nested_stack_needs_is_named(write: Write, form: Form):
    """A samconfig.toml that deployed the template before has CAPABILITY_IAM alone."""
    decisions = wrap_into(write(NAMED), "OrdersStateMachine", form=form).decisions
    assert 1 == sum("CAPABILITY_AUTO_EXPAND" in text for text in decisions)


@pytest.mark.parametrize("options", [[], ["--around"]], ids=["inline", "around"])
def test_the_old_definition_can_be_wrapped_again(write: Write, options: list[str]):
    """By itself, for an upgrade: the template stays, and has a value for each placeholder."""
    path = write(NAMED)
    changed(path, *options)
    wrapped = path.parent / "states" / "orders_once.asl.json"
    first = wrapped.read_text()
    wrapped.write_text("{}")
    assert 0 == commands.run(["wrap", str(path.parent / "states" / "orders.asl.json"), "--force", *options])
    assert first == wrapped.read_text()


def test_a_machine_that_is_started_stays_as_it_is(write: Write):
    """The workflow may start, look at and stop that machine alone."""
    found = changed(write(TEMPLATE), "--around")["Resources"]
    assert yaml_parse(TEMPLATE)["Resources"]["OrdersStateMachine"] == found["OrdersStateMachine"]
    given = found["RunOnceStateMachine"]["Properties"]["DefinitionSubstitutions"]
    assert {"Ref": "OrdersStateMachine"} == given["WorkStateMachineArn"]
    started, watched, _rule, *_ = found["RunOnceRole"]["Properties"]["Policies"][0]["PolicyDocument"][
        "Statement"
    ]
    assert {"Ref": "OrdersStateMachine"} == started["Resource"]
    assert watched["Resource"]["Fn::Sub"].endswith(":execution:${OrdersStateMachine.Name}:*")
    assert {"Ref": "OrdersStateMachine"} == found["Steponce"]["Properties"]["Parameters"][
        "OtherStateMachines"
    ]
    assert "FILL_IN" not in json.dumps(found)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (TEMPLATE.replace("Transform:", "Metadata:"), "no Transform"),
        (TEMPLATE.replace("  OrdersStateMachine:", "  Orders:"), "There are: Orders, Express"),
        (TEMPLATE.replace("Uri: states/orders.asl.json #", "Uri: s3://b/orders #"), "no local file"),
        (TEMPLATE.replace("Express:", "Steponce:"), "leave it, and wrap the definition alone"),
        (TEMPLATE.replace("  Architecture:", "  Steponce:"), "has Steponce under Parameters"),
        (f"{TEMPLATE}Conditions: {{Steponce: !Equals [a, b]}}\n", "has Steponce under Conditions"),
        (TEMPLATE.replace("  Orders: {", "  LocksTable: {"), "has the Outputs LocksTable"),
        (
            TEMPLATE.replace("      Policies:", "      Role: arn:aws:iam::1:role/r\n      Other:"),
            "is not in the template",
        ),
        ("a: [", "is not YAML"),
        ("[]", "no Resources"),
    ],
)
def test_what_cannot_be_changed_is_refused_before_anything_is_written(write: Write, text: str, reason: str):
    """With what to do."""
    path = write(text)
    with pytest.raises(CannotWrap, match=reason):
        wrap_into(path, "OrdersStateMachine", form="inline")
    assert 2 == commands.run(["wrap", "--into", str(path), "--machine", "OrdersStateMachine"])
    assert text == path.read_text()
    assert {"orders.asl.json", "states", "template.yaml"} == {one.name for one in path.parent.rglob("*")}


@pytest.mark.parametrize("options", [[], ["--around"]], ids=["inline", "around"])
@pytest.mark.parametrize(
    "definition", ["{}", '{"StartAt": "A", "States": {"A": {"Type": "Task", "Resource": 5}}}']
)
def test_what_is_no_definition_is_refused(
    write: Write, options: list[str], definition: str, capsys: pytest.CaptureFixture[str]
):
    """With AWS's reasons."""
    path = write(NAMED)
    (path.parent / "states" / "orders.asl.json").write_text(definition)
    assert 2 == commands.run(["wrap", "--into", str(path), "--machine", "OrdersStateMachine", *options])
    assert "would be refused by AWS" in capsys.readouterr().out
    assert NAMED == path.read_text()


def test_a_property_without_a_value_is_none(write: Write):
    """YAML reads it as null."""
    assert changed(write(NAMED.replace("        Table: !Ref Table\n", "", 1)))


@pytest.mark.parametrize("options", [[], ["--around"]], ids=["inline", "around"])
def test_a_machine_under_a_condition_is_refused(
    write: Write, options: list[str], capsys: pytest.CaptureFixture[str]
):
    """Where the condition is false, CloudFormation refuses a reference to the machine."""
    condition = "Conditions: { InProd: !Equals [!Ref Table, orders] }\n\nResources:"
    text = NAMED.replace("Resources:", condition).replace("    Type:", "    Condition: InProd\n    Type:", 1)
    path = write(text)
    assert 2 == commands.run(["wrap", "--into", str(path), "--machine", "OrdersStateMachine", *options])
    assert "OrdersStateMachine is there under the Condition InProd only" in capsys.readouterr().out
    assert text == path.read_text()


def test_an_express_workflow_is_refused(write: Write):
    """Its executions have no names that AWS keeps apart."""
    with pytest.raises(CannotWrap, match="Express is an Express workflow"):
        wrap_into(write(TEMPLATE), "Express", form="around")


def test_a_template_is_wrapped_once(write: Write, capsys: pytest.CaptureFixture[str]):
    """The second time it has the workflow's states."""
    path = write(TEMPLATE)
    text = json.dumps(changed(path), default=str)
    assert 2 == commands.run(["wrap", "--into", str(path), "--machine", "OrdersStateMachine"])
    assert "wrapped already" in capsys.readouterr().out
    assert text == json.dumps(yaml_parse(path.read_text()), default=str)


@pytest.mark.parametrize(
    "options",
    [[], ["--into", "t.yaml"], ["--machine", "M"], ["x.json", "--into", "t.yaml", "--machine", "M"]],
)
def test_a_file_or_a_template_is_needed(options: list[str], capsys: pytest.CaptureFixture[str]):
    """And not both."""
    assert 2 == commands.run(["wrap", *options])
    assert "Give a FILE, or --into" in capsys.readouterr().out


def test_events_that_start_the_machine_are_named(write: Write):
    """What they send is no request."""
    nightly = "Nightly: { Type: Schedule, Properties: { Schedule: rate(1 day) } }"
    events = f"      Events:\n        {nightly}\n      Policies:"
    found = wrap_into(
        write(TEMPLATE.replace("      Policies:", events, 1)), "OrdersStateMachine", form="inline"
    )
    assert any(text.startswith("Nightly: these Events") for text in found.decisions)


@pytest.mark.parametrize("offset", ["", "  "])
def test_lists_are_indented_as_they_were(offset: str):
    """Both styles are usual."""
    text = f"Resources:\n  A:\n    List:\n{offset}    - a # one\n{offset}    - b\n"
    assert text == template_file.write(template_file.read(text), text)


@pytest.mark.parametrize("end", ["\u2028", "\u0085"])
def test_a_text_may_hold_other_ends_of_lines(end: str):
    """Python and YAML see lines there, and the program that writes YAML keeps them in the quotes."""
    text = f"Resources:\n  A:\n    B: 'one{end}two'\n    List:\n    - a   # one\n"
    assert text == template_file.write(template_file.read(text), text)


@covering.first(1, "blanks", [1, 3, 4])
@pytest.mark.parametrize("options", [[], ["--around"]], ids=["inline", "around"])
def test_keys_are_indented_as_they_were(write: Write, options: list[str], blanks: int):
    """The new ones, too, so that the others need not be written anew."""
    head, _, rest = NAMED.partition("      Policies:")
    two = head + rest[rest.index("\n  # -- Another") :]
    text = re.sub("^(  )+", lambda begin: " " * (len(begin[0]) // 2 * blanks), two, flags=re.MULTILINE)
    assert yaml_parse(two) == yaml_parse(text)
    path = write(text)
    changed(path, *options)
    gone = [line for line in text.splitlines() if line not in path.read_text().splitlines()]
    changes = "DefinitionUri: states/orders.asl.json # beside the other one"
    assert ([] if options else [changes]) == [line.strip() for line in gone]
    assert f"\n{' ' * blanks}Steponce:\n{' ' * 2 * blanks}Type: " in path.read_text()


def test_resources_that_are_commented_out_are_read_soon():
    """Each empty line between them doubled the time."""
    text = "#Resources:\n" + "#  A:\n\n" * 40 + "Resources:\n    A: { Type: B }\n"
    assert text == template_file.write(template_file.read(text), text)


@pytest.mark.parametrize("start", ["", "---\n"])
@covering.first(1, "end", ["...\n", "...", "...\n\n"])
def test_the_end_of_a_document_stays_where_it_is(write: Write, start: str, end: str):
    """What is new stands before it, and nothing else is written anew."""
    path = write(text := start + NAMED + end)
    changed(path, "--around")
    assert [] == [line for line in text.splitlines() if line not in path.read_text().splitlines()]
    assert path.read_text().endswith(f"\n{end}")


@covering.first(
    3,
    ("start", "properties"),
    [
        ("---\n", ""),
        ("# The orders.\n--- # begin\n", ""),
        ("%YAML 1.1\n---\n", ""),
        ("\ufeff", ""),
        ("", 'A: TRUE\n      B: ~\n      C: +1\n      D: "\\u00e9"\n      E: 010\n'),
        ("", 'A: one\n        two\n      B: "one\n        two \\\n        three"\n'),
        ("", "A: [N, [a], {'Q${N}': {Type: A::B::C}}]\n"),
        ("", "A: {B: c,\n        D: [e,  f]}\n"),
    ],
    ids=["start", "comment", "directive", "mark", "scalars", "lines", "quotes", "flow"],
)
def test_a_line_that_has_another_form_than_yaml_writes_stays(write: Write, start: str, properties: str):
    """Only what changes is written anew."""
    other = f"  Other:\n    Type: A::B::C\n    Properties:\n      {properties}" if properties else ""
    text = start + NAMED.replace("Resources:\n", f"Resources:\n{other}")
    path = write(text)
    changed(path, "--around")
    now = path.read_text().splitlines()
    assert [] == [line for line in text.splitlines() if line not in now]


def test_lists_that_are_indented_in_two_ways_are_one_template(write: Write):
    """The new lines have one of the two ways."""
    other = "  Other:\n    Type: A::B::C\n    Properties:\n      A:\n      - a\n      B:\n          - b\n"
    before = yaml_parse(text := NAMED.replace("Resources:\n", f"Resources:\n{other}"))["Resources"]["Other"]
    assert before == changed(write(text))["Resources"]["Other"]


@pytest.mark.full
@pytest.mark.parametrize("options", [[], ["--around"]], ids=["inline", "around"])
def test_the_changed_application_runs_requests_once(write: Write, options: list[str]):
    """On the embedded stack, with the nested stack of the installation."""
    path = write(TEMPLATE)
    changed(path, *options)
    with LocalStack.from_template(path, name="shop") as stack:
        client = stack.client()
        for _ in range(2):
            receipt = client.start("order-1", {"id": 7})
            done = client.wait("order-1", timeout_seconds=PATIENCE_SECONDS)
            assert ("COMPLETED", {"from": "orders", "id": 7}) == (done.status, done.result)
        assert receipt.duplicate


@pytest.mark.full
def test_the_price_of_a_wrapped_machine_is_known(write: Write, capsys: pytest.CaptureFixture[str]):
    """A Parallel costs one transition beside its states."""
    path = write(TEMPLATE)
    changed(path)
    capsys.readouterr()
    options = ["--machine", "OrdersStateMachine", "--through", "CompleteRequest"]
    assert 0 == commands.run(["cost", str(path), *options])
    cheapest = json.loads(capsys.readouterr().out)["cheapest"]
    own = ["IsRequestPrepared", "AcquireLock", "DoWork"]
    assert [*own, "Read", "CompleteRequest"] == cheapest["states"]
    assert (5, 2) == (cheapest["transitions"], cheapest["writes"])


def test_the_definition_of_an_older_machine_is_where_it_was(write: Write):
    """Whoever goes back needs it."""
    path = write(TEMPLATE)
    changed(path)
    assert READS == json.loads((path.parent / "states" / "orders.asl.json").read_text())


@pytest.mark.full
@pytest.mark.parametrize("options", [[], ["--around"]], ids=["inline", "around"])
def test_the_linter_has_nothing_to_say_of_the_template(write: Write, options: list[str]):
    """With all that is written into it."""
    path = write(TEMPLATE)
    changed(path, *options)
    lint_template(path)
