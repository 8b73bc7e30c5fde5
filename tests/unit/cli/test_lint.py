"""`steponce lint`: what it reads, what it says, and with which exit code it leaves."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from steponce.cli import commands, output
from steponce.lint import RULES, json_or_yaml
from tests.rules.documents import ROOT
from tests.unit.cli.fakes import Run

RIGHT = {"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}
WAITS = {"Type": "Task", "Resource": "arn:aws:states:us-east-1:123456789012:activity:a", "End": True}
WARNED = {"StartAt": "A", "States": {"A": WAITS}}
WRONG = {"StartAt": "B", "States": {"A": {"Type": "Succeed"}}}

TEMPLATE = """\
Transform: AWS::Serverless-2016-10-31
Globals:
Parameters:
  Answer: { Type: String, Default: Good, AllowedValues: [Good, Bad] }
  Table: { Type: String }
  Seconds: { Type: Number, Default: 5 }
Resources:
  Sam:
    Type: AWS::Serverless::StateMachine
    Properties:
      DefinitionUri: flow.asl.yaml
      DefinitionSubstitutions: { Answer: !Ref Answer, Table: !Ref Table, Seconds: !Ref Seconds, Unused: x }
  Plain:
    Type: AWS::StepFunctions::StateMachine
    Properties:
      RoleArn: arn:aws:iam::123456789012:role/r
      Definition:
        StartAt: Ask
        States:
          Ask:
            Type: Task
            Resource: !Ref Person
            End: true
  Person:
    Type: AWS::StepFunctions::Activity
    Properties: { Name: person }
"""
FLOW = """\
StartAt: Read
States:
  Read:
    Type: Task
    Resource: arn:aws:states:::dynamodb:getItem
    Parameters: { TableName: "${Table}", Key: { id: { S.$: $.id } } }
    TimeoutSeconds: ${Seconds}
    Next: ${Answer}
  Good: { Type: Succeed }
"""


@pytest.fixture
def run(run: Run) -> Run:
    """Run `steponce lint` in a pipe: exit code and the one object."""
    return partial(run, "lint")


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., str]:
    """Write a file: text and bytes as they are, anything else as JSON."""

    def write(content: Any, name: str = "flow.asl.json") -> str:
        path = tmp_path / name
        text = content if isinstance(content, str | bytes) else json.dumps(content, indent=2)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return write


def test_a_machine_is_judged_by_each_type_that_it_may_have(run: Run, file: Callable[..., str]):
    """An activity is no fault of a Standard workflow. One definition is read for both."""
    kinds = "  Kind: { Type: String, Default: STANDARD, AllowedValues: [STANDARD, EXPRESS] }\n"
    text = TEMPLATE.replace("Parameters:\n", f"Parameters:\n{kinds}", 1)
    text = text.replace("      RoleArn:", "      StateMachineType: !Ref Kind\n      RoleArn:", 1)
    file(FLOW, "flow.asl.yaml")

    _, told = run(file(text, "template.yaml"), "--parameter", "Answer=Good")

    ((machine, rule, values),) = [
        (one["machine"], one["rule"], one["with"]) for one in told["findings"] if one["severity"] == "error"
    ]
    assert ("Plain", "invalid-definition", {"Kind": "EXPRESS"}) == (machine, rule, values)


@pytest.mark.parametrize(
    ("content", "options", "code"),
    [
        (RIGHT, [], 0),
        (RIGHT, ["--strict"], 0),
        (WARNED, [], 0),
        (WARNED, ["--strict"], 1),
        (WARNED, ["--strict", "--ignore", "task-timeout"], 0),
        (WRONG, [], 1),
    ],
)
def test_the_exit_code_says_whether_there_is_an_error(
    run: Run, file: Callable[..., str], content: Any, options: list[str], code: int
):
    """With --strict, or a warning."""
    assert code == run(file(content), *options)[0]


def test_a_finding_has_its_place(run: Run, file: Callable[..., str]):
    """The file, the line of the state, the rule, and what is wrong."""
    path = file(WARNED)
    _, told = run(path)
    (finding,) = told["findings"]
    assert (path, 4, None, "A") == tuple(finding[key] for key in ("file", "line", "machine", "state"))
    assert ("task-timeout", "warning", {}) == tuple(finding[key] for key in ("rule", "severity", "with"))
    assert finding["message"].startswith("A: it may wait for three years.")
    assert (0, 1, []) == tuple(told[key] for key in ("errors", "warnings", "notes"))


def test_every_machine_of_a_template_is_read_with_every_choice(run: Run, file: Callable[..., str]):
    """What only one choice breaks is told with that choice. A parameter without a default is no trouble."""
    definition, path = file(FLOW, "flow.asl.yaml"), file(TEMPLATE, "template.yaml")

    code, told = run(path)
    found = [
        (one["machine"], Path(one["file"]).name, one["line"], one["rule"], one["with"])
        for one in told["findings"]
    ]

    assert 1 == code
    assert ("Plain", "template.yaml", 20, "task-timeout", {}) in found
    assert ("Sam", "flow.asl.yaml", 3, "missing-target", {"Answer": "Bad"}) in found
    assert Path(definition).exists()
    assert {"missing-target", "unreachable-state", "task-timeout"} == {rule for *_, rule, _ in found}
    assert 0 == run(path, "--parameter", "Answer=Good")[0]


def test_people_read_a_line_for_each(
    file: Callable[..., str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """On a terminal, with the counts below."""
    monkeypatch.setattr(output, "for_people", lambda: True)
    path = file(WARNED)
    assert 0 == commands.run(["lint", path, "--format", "text"])
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{path}:4: warning: A: it may wait")
    assert first.endswith("[task-timeout]")
    assert "0 errors, 1 warning in 1 file." == last


def test_sarif_has_what_its_schema_requires(run: Run, file: Callable[..., str]):
    """Version, driver, rules, and of each result its rule, level, message and place."""
    path = file(WRONG)
    _, log = run(path, "--format", "sarif")
    (done,) = log["runs"]
    driver = done["tool"]["driver"]
    assert ("2.1.0", "steponce") == (log["version"], driver["name"])
    assert {rule.id for rule in RULES} | {"unreadable"} == {rule["id"] for rule in driver["rules"]}
    assert all(rule["shortDescription"]["text"] for rule in driver["rules"])
    (result,) = done["results"]
    assert ("missing-target", "error") == (result["ruleId"], result["level"])
    (place,) = result["locations"]
    assert path == place["physicalLocation"]["artifactLocation"]["uri"]
    assert {"startLine": 1} == place["physicalLocation"]["region"]
    assert "StartAt must name" in result["message"]["text"]


@pytest.mark.parametrize(
    ("name", "text", "line", "said"),
    [
        ("a.asl.json", '{\n  "StartAt":\n}', 3, "not JSON"),
        ("a.asl.json", '{"StartAt": "A", "StartAt": "A", "States": {}}', 1, "'StartAt' stands twice"),
        ("a.asl.yaml", "StartAt: A\nStates:\n  A: {Type: Pass\n", 4, "not YAML"),
        ("a.asl.yaml", "StartAt: A\nStates: {}\nStartAt: B\n", 3, "'StartAt' stands twice"),
        ("a.asl.yaml", "StartAt: A\nStates:\n  A\x1b: {Type: Pass}\n", 3, "U+001B"),
        ("a.asl.json", b'{"StartAt": "A",\n"Comment": "gr\xfc\xdfe"}', 2, "not UTF-8"),
        ("a.asl.json", json.dumps(RIGHT).encode("utf-16"), 1, "not UTF-8"),
        ("a.json", "[]", 1, "not a template"),
        ("template.yaml", TEMPLATE, 1, "does not exist"),
    ],
)
def test_a_broken_file_is_an_error_with_its_line(
    run: Run, file: Callable[..., str], name: str, text: str | bytes, line: int, said: str
):
    """And the other files are read nevertheless."""
    code, told = run(file(text, name), file(WARNED))
    broken, warned = (
        told["findings"] if told["findings"][0]["rule"] == "unreadable" else told["findings"][::-1]
    )
    assert (1, "unreadable", line) == (code, broken["rule"], broken["line"])
    assert said in broken["message"]
    assert "task-timeout" == warned["rule"]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["gone.asl.json"],
        ["--ignore", "task-timeouts"],
        ["--format", "xml"],
        ["--parameter", "A=B"],
        ["--region", ""],
    ],
)
def test_a_wrong_command_is_refused(run: Run, file: Callable[..., str], arguments: list[str]):
    """With what to give instead."""
    given = [*arguments, file(RIGHT)] if arguments and arguments[0].startswith("--") else arguments
    code, told = run(*given)
    assert (2, "UsageError") == (code, told["error"]["type"])


def test_states_in_jsonata_are_told(run: Run, file: Callable[..., str]):
    """Not all rules read them."""
    path = file(RIGHT | {"QueryLanguage": "JSONata"})
    _, told = run(path)
    assert [f"{path}: rules about paths are skipped in 1 state in JSONata: A."] == told["notes"]


def test_yaml_needs_what_reads_it(file: Callable[..., str], monkeypatch: pytest.MonkeyPatch):
    """A definition in JSON does not."""

    def gone(_text: str) -> Any:
        raise ModuleNotFoundError("No module named 'yaml'", name="yaml")

    monkeypatch.setattr(json_or_yaml, "_read_yaml", gone)
    assert 0 == commands.run(["lint", file(RIGHT)])
    assert 4 == commands.run(["lint", file(FLOW, "flow.asl.yaml")])


def test_the_page_quotes_what_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """But for the lines' numbers, which are those of a longer file."""
    page = (ROOT / "docs" / "lint.md").read_text(encoding="utf-8")
    quoted = re.findall(r"```text\n(order.*?)```", page, re.DOTALL)[0].splitlines()
    ask = {"FunctionName": "f", "Payload": {"token.$": "$$.Task.Token"}}
    take = {
        "TableName": "t",
        "Key": {"id": {"S": "1"}},
        "UpdateExpression": "SET stock = :next",
        "ConditionExpression": "attribute_exists(id)",
    }
    states = {
        "AskProvider": {"Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken", "Parameters": ask},
        "TakeOne": {"Resource": "arn:aws:states:::dynamodb:updateItem", "Parameters": take},
    }
    tasks: Any = {name: {"Type": "Task", **state, "End": True} for name, state in states.items()}
    tasks["AskProvider"] = {**tasks["AskProvider"], "Next": "TakeOne"}
    del tasks["AskProvider"]["End"]
    path = tmp_path / "order.asl.json"
    path.write_text(json.dumps({"StartAt": "AskProvider", "States": tasks}, indent=1))
    commands.run(["lint", str(path), "--format", "text"])
    printed = capsys.readouterr().out.replace(f"{tmp_path}/", "")
    assert without_lines(quoted) == without_lines(printed.splitlines())


def without_lines(printed: list[str]) -> list[str]:
    """The findings without the numbers of their lines."""
    return [re.sub(r"json:\d+:", "json:", line) for line in printed]
