"""A template that wrap cannot change well is refused in words, and stays as it is."""

from __future__ import annotations

import difflib
import io
import itertools
import json
from pathlib import Path

import pytest

from steponce.cli import commands
from steponce.wrap import CannotWrap
from steponce.wrap.into import wrap_into
from tests import covering
from tests.machines import machine

HEAD = "Transform: AWS::Serverless-2016-10-31\n"
MACHINE = """\
Resources:
  Orders:
    Type: AWS::Serverless::StateMachine
    Properties:
      Name: orders
      DefinitionUri: orders.asl.json
"""
ROLE = "      Role: !GetAtt R.Arn\n  R:\n    Type: AWS::IAM::Role\n"
ANOTHER = "  F:\n    Type: AWS::Serverless::Function\n    Properties: {{Handler: a.b, {}}}\n"
ALIASES = "  a: &a [x]\n" + "".join(
    f"  {this}: &{this} [{', '.join([f'*{last}'] * 9)}]\n" for last, this in itertools.pairwise("abcdefghij")
)


def write(folder: Path, text: str) -> Path:
    """Write a template, with its definition beside."""
    (folder / "orders.asl.json").write_text(json.dumps(machine({"Done": {"Type": "Succeed"}})))
    path = folder / "template.yaml"
    path.write_bytes(text.encode())
    return path


@covering.first(
    3,
    ("text", "message"),
    [
        (f"{HEAD}Parameters: [a]\n{MACHINE}", "Parameters is no object"),
        (f"{HEAD}{MACHINE}  X: hi\n", "X is no object"),
        (f"{HEAD}{MACHINE}  X: " + "[" * 500 + "]" * 500, "nested too deeply"),
        (f"{HEAD}Metadata:\n{ALIASES}{MACHINE}", "more than 1,000,000 values"),
        (
            f"{HEAD}{MACHINE}  X: 2020-13-45\n",
            r"cannot be read: month must be in 1\.\.12.*\. Write it in quotes",
        ),
        (f"{HEAD}{MACHINE}  X: !!int ''\n", "has a value that cannot be read"),
        (f"{HEAD}{MACHINE}  X: !!bool x\n", "has a value that cannot be read"),
        (MACHINE.replace("orders.asl.json", '"a\\0b"').join([HEAD, ""]), "no local file"),
        (f"{HEAD}{MACHINE}  X:\n    Type: A\n    Properties: [a]\n", "X: Properties is no object"),
        (f"{HEAD}{MACHINE}      DefinitionSubstitutions: [a]\n", "DefinitionSubstitutions is no object"),
        (f"{HEAD}{MACHINE}      Type: !Ref T\n", "The Type of Orders is not written out. Write STANDARD"),
        (f"{HEAD}{MACHINE}      Type: !If [A, STANDARD, EXPRESS]\n", "The Type of Orders is not written out"),
        (f"{HEAD}{MACHINE}      Policies: !If [A, [b], [c]]\n", "The Policies of Orders are no plain list"),
        (f"{HEAD}{MACHINE}{ROLE}    Properties: {{Policies: !If [A, [], []]}}\n", "The Policies of R are no"),
    ],
)
def test_a_part_of_another_form_is_refused(tmp_path: Path, text: str, message: str):
    """A statement added to an `!If` would be its fourth argument, which AWS refuses."""
    with pytest.raises(CannotWrap, match=message):
        wrap_into(write(tmp_path, text), "Orders", form="inline")


@pytest.mark.parametrize("start", ["", "\ufeff", "\n"], ids=["", "mark", "blank"])
def test_json_is_refused(tmp_path: Path, start: str, capsys: pytest.CaptureFixture[str]):
    """YAML would be written, which no reader of JSON takes. Nothing is written."""
    properties = {"Name": "orders", "DefinitionUri": "orders.asl.json"}
    resource = {"Type": "AWS::Serverless::StateMachine", "Properties": properties}
    template = {"Transform": HEAD.split()[1], "Resources": {"Orders": resource}}
    path = write(tmp_path, text := start + json.dumps(template))
    assert 2 == commands.run(["wrap", "--into", str(path), "--machine", "Orders"])
    assert "is JSON. Convert it to YAML first, for example with cfn-flip" in capsys.readouterr().out
    assert text == path.read_text()
    assert {path.name, "orders.asl.json"} == {one.name for one in tmp_path.iterdir()}


@covering.first(
    1,
    "text",
    [
        MACHINE.replace("Properties:", "Properties: &p") + "  Other: {Type: A::B::C, Properties: *p}\n",
        MACHINE + "      Policies: &p [AWSLambdaExecute]\n" + ANOTHER.format("Policies: *p"),
        MACHINE + ROLE + "    Properties: &p {Policies: []}\n  O: {Type: AWS::IAM::Role, Properties: *p}\n",
    ],
    ids=["properties", "policies", "role"],
)
def test_what_an_anchor_shares_is_not_changed(tmp_path: Path, text: str):
    """Another resource would get the workflow's definition or its permissions."""
    path = write(tmp_path, HEAD + text)
    with pytest.raises(CannotWrap, match="an anchor of YAML"):
        wrap_into(path, "Orders", form="inline")
    assert wrap_into(path, "Orders", form="around")


@covering.first(
    1,
    "text",
    [
        f"{HEAD}Parameters:\nConditions:\n{MACHINE}Outputs:\n",
        f"{HEAD}{MACHINE}  Fn::ForEach::Q: [N, [a], {{'Q${{N}}': {{Type: AWS::SQS::Queue}}}}]\n",
        f"{HEAD}{MACHINE}{ROLE}",
        f"{HEAD}{MACHINE}{ROLE}    Properties:\n",
    ],
    ids=["sections", "macro", "role", "empty role"],
)
def test_what_is_empty_or_made_by_a_macro_is_no_obstacle(tmp_path: Path, text: str):
    """In YAML, a name without a value is a null."""
    assert "RunOnceStateMachineArn" in wrap_into(write(tmp_path, text), "Orders", form="inline").template


def test_the_ends_of_lines_stay(tmp_path: Path):
    """Otherwise every line of a template from Windows would have changed."""
    path = write(tmp_path, f"{HEAD}{MACHINE}".replace("\n", "\r\n"))
    assert 0 == commands.run(["wrap", "--into", str(path), "--machine", "Orders", "--around"])
    assert path.read_bytes().count(b"\n") == path.read_bytes().count(b"\r\n")


@covering.first(1, ("usual", "other"), [("\n", "\r\n"), ("\r\n", "\n"), ("\n", "\r")])
def test_each_line_has_its_own_end(tmp_path: Path, usual: str, other: str):
    """Two editors may have written one template. What is new ends as most of it does."""
    text = f"{HEAD}# mine\n{MACHINE}{ROLE}".replace("\n", usual)
    for line in ("# mine", "    Type: AWS::Serverless::StateMachine"):
        text = text.replace(line + usual, line + other)
    path = write(tmp_path, text)
    assert 0 == commands.run(["wrap", "--into", str(path), "--machine", "Orders", "--around"])

    after = path.read_bytes().decode()
    added = [line for line in difflib.ndiff(_lines(text), _lines(after)) if line[0] in "+-"]
    assert {"+"} == {line[0] for line in added}
    assert [] == [line for line in added if not line.endswith(usual)]


def _lines(text: str) -> list[str]:
    """With their ends."""
    return io.StringIO(text, newline="").readlines()
