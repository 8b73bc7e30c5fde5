"""`steponce cost`: what it reads, what it says, and with which exit code it leaves."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from steponce.cli import commands, output
from tests.rules.documents import ROOT
from tests.unit.cli.fakes import Run
from tests.unit.cost.definitions import END, WRITE, choice, last, machine, run_once, to

CUSTOMERS = str(ROOT / "examples" / "customer_record" / "template.yaml")
SMALL = machine(A=choice("B", default="C"), B=to(WRITE, "C"), C=END)
UNKNOWN = machine(A=last({"Type": "Task", "Resource": "arn:aws:states:::ecs:runTask.sync"}))

TEMPLATE = """
Transform: AWS::Serverless-2016-10-31
Parameters:
  Function: { Type: String, Default: "arn:aws:lambda:us-east-1:123456789012:function:f" }
Resources:
  Sam:
    Type: AWS::Serverless::StateMachine
    Properties:
      Name: sam
      DefinitionUri: flow.asl.yaml
      DefinitionSubstitutions: { Function: !Ref Function }
  Plain:
    Type: AWS::StepFunctions::StateMachine
    Properties:
      RoleArn: arn:aws:iam::123456789012:role/r
      Definition: { StartAt: A, States: { A: { Type: Succeed } } }
  Text:
    Type: AWS::StepFunctions::StateMachine
    Properties:
      RoleArn: arn:aws:iam::123456789012:role/r
      DefinitionString: '{"StartAt": "A", "States": {"A": {"Type": "Pass", "End": true}}}'
  Fast:
    Type: AWS::Serverless::StateMachine
    Properties:
      Type: EXPRESS
      Definition: { StartAt: A, States: { A: { Type: Succeed } } }
"""
FLOW = 'StartAt: A\nStates: { A: { Type: Task, Resource: "${Function}", End: true } }\n'


@pytest.fixture
def run(run: Run) -> Run:
    """Run `steponce cost` in a pipe: exit code and the one object."""
    return partial(run, "cost")


@pytest.fixture
def file(tmp_path: Path) -> Callable[[Any], str]:
    """Write a definition to a file."""

    def write(content: Any) -> str:
        path = tmp_path / "flow.asl.json"
        path.write_text(json.dumps(content))
        return str(path)

    return write


@pytest.fixture
def template(tmp_path: Path) -> str:
    (tmp_path / "flow.asl.yaml").write_text(FLOW)
    path = tmp_path / "template.yaml"
    path.write_text(TEMPLATE)
    return str(path)


def message(answer: tuple[int, dict[str, Any]]) -> str:
    code, told = answer
    assert (2, "UsageError") == (code, told["error"]["type"])
    return str(told["error"]["message"])


def test_a_definition_is_priced_path_by_path(run: Run, file: Callable[[Any], str]):
    """With the counts of one request, and the dollars of all."""
    code, told = run(file(SMALL), "--requests", "2e6")

    assert (0, None, 2, 2_000_000) == (code, told["machine"], told["paths"], told["assumptions"]["requests"])
    assert [100.0, 151.25] == [path["dollars"] for path in told["listed"]]
    assert ["A", "B", "C"] == told["dearest"]["states"]
    assert (3, 1, 0, []) == tuple(
        told["dearest"][key] for key in ("transitions", "writes", "lambdaCalls", "notPriced")
    )
    assert (["A", "C"], "C", False) == tuple(told["cheapest"][key] for key in ("states", "end", "fails"))
    assert "Without retries" in told["notes"][0]
    assert "A loop is taken once at most" in told["notes"][1]


def test_the_numbers_follow_the_options(run: Run, file: Callable[[Any], str]):
    """Region and size of the items."""
    _, told = run(file(SMALL), "--region", "eu-central-1", "--item-kb", "3", "--through", "B")

    assert [75 + 3 * 0.7625] == [path["dollars"] for path in told["listed"]]


def test_what_has_no_price_is_listed(run: Run, file: Callable[[Any], str]):
    """It is never silently nothing, and no budget holds with it."""
    gap = [{"state": "A", "call": "ecs:runTask.sync"}]

    code, told = run(file(UNKNOWN))
    bounded, judged = run(file(UNKNOWN), "--budget", "1000")

    assert (0, False, gap, gap) == (code, told["complete"], told["notPriced"], told["dearest"]["notPriced"])
    assert (1, False) == (bounded, judged["withinBudget"])


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--budget", "75.63"], 0),
        (["--budget", "75.62"], 1),
        (["--budget", "50", "--through", "B"], 1),
        ([], 0),
    ],
)
def test_a_budget_is_for_the_dearest_path(
    run: Run, file: Callable[[Any], str], options: list[str], code: int
):
    """Of those that were chosen. The exit code tells CI."""
    found, told = run(file(SMALL), *options)

    assert code == found
    assert told["withinBudget"] is ({0: True, 1: False}[code] if options else None)


def test_too_many_paths_are_merged_and_said_to_be(run: Run, file: Callable[[Any], str]):
    """Into one for each ending and usage; then only the extremes are left."""
    path = file(run_once())
    _, merged = run(path, "--limit", "500")
    _, few = run(path, "--limit", "5")

    assert (True, False) == (merged["merged"], merged["leftOut"])
    assert merged["paths"] == sum(path["paths"] for path in merged["listed"]) > 500
    assert (True, True) == (few["merged"], few["leftOut"])
    assert (merged["cheapest"], merged["dearest"]) == (few["cheapest"], few["dearest"])


def test_a_template_s_machine_is_rendered(run: Run):
    """With its parameters at their defaults; the functions' code need not be there."""
    _, told = run(CUSTOMERS)

    assert ("KeepCustomerStateMachine", 6, True) == (told["machine"], told["paths"], told["complete"])


@pytest.mark.parametrize(
    ("machine", "transitions", "calls"), [("Sam", 1, 1), ("sam", 1, 1), ("Plain", 1, 0), ("Text", 1, 0)]
)
def test_one_of_several_machines_is_named(
    run: Run, template: str, machine: str, transitions: int, calls: int
):
    """By its logical id or its name, in each form that a definition has."""
    _, told = run(template, "--machine", machine)

    assert (transitions, calls) == (told["dearest"]["transitions"], told["dearest"]["lambdaCalls"])


def test_a_parameter_reaches_the_definition(run: Run, template: str):
    """Here it is another service."""
    activity = "Function=arn:aws:states:us-east-1:123456789012:activity:by-hand"

    _, told = run(template, "--machine", "Sam", "--parameter", activity)

    assert (0, True) == (told["dearest"]["lambdaCalls"], told["complete"])


def test_a_definition_in_yaml_is_read(run: Run, template: str):
    """Its placeholders stay, and are not priced."""
    _, told = run(str(Path(template).with_name("flow.asl.yaml")))

    assert [{"state": "A", "call": "${Function}"}] == told["notPriced"]


def test_what_cannot_be_priced_says_what_to_give(run: Run, template: str, file: Callable[[Any], str]):
    """And the exit code is that of wrong usage, not that of a budget."""
    flow, coloured = file(SMALL), str(Path(template).with_name("coloured.yaml"))
    Path(coloured).write_text("\x1b[32mStartAt: A\x1b[0m\n")

    assert "us-east-1, us-west-2" in message(run(flow, "--region", "mars-1"))
    assert "us-east-1, us-west-2" in message(run(template, "--region", ""))
    assert "has no state X" in message(run(flow, "--through", "X"))
    assert "go with a template" in message(run(flow, "--machine", "X"))
    assert "Fast, Plain, Sam, Text" in message(run(template))
    assert "Fast, Plain, Sam, Text" in message(run(template, "--machine", "X"))
    assert "Express workflow" in message(run(template, "--machine", "Fast"))
    assert "no parameter X" in message(run(template, "--parameter", "X=1"))
    assert "NAME=VALUE" in message(run(template, "--parameter", "X"))
    assert "cannot be read" in message(run("nowhere.json"))
    assert "is not a template" in message(run(file([1])))
    assert "1: It is not YAML: it has the character U+001B" in message(run(coloured))
    assert "StartAt" in message(run(file({"States": {"A": END}})))
    assert "whole number" in message(run(flow, "--requests", "1.5"))
    assert "dollars, from 0 to" in message(run(flow, "--budget", "much"))
    assert "dollars, from 0 to" in message(run(flow, "--budget", "1e400"))
    assert "item_kb" in message(run(flow, "--item-kb", "nan"))
    assert "requests must be from 1 to" in message(run(flow, "--requests", "1e300"))


def test_people_see_tables(
    file: Callable[[Any], str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """The extremes, the list, what is left out, and the budget."""
    monkeypatch.setattr(output, "for_people", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")

    def shown(*arguments: str) -> str:
        commands.run(["cost", *arguments])
        return capsys.readouterr().out

    small = shown(file(SMALL), "--budget", "75.63")
    unknown = shown(file(UNKNOWN), "--budget", "75")
    path = file(run_once())
    many = shown(path, "--limit", "5", "--budget", "100")
    merged = shown(path, "--limit", "500")

    assert "cheapest  $50.00: A → C" in small
    assert "dearest   $75.63: A → B → C" in small
    assert "Within the budget of $75.63." in small
    assert "other" not in small
    assert "A: ecs:runTask.sync" in unknown
    assert "The budget cannot be checked" in unknown
    assert "too many paths to list" in many
    assert "Over the budget of $100.00." in many
    assert "are one line" in merged
