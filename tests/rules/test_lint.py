"""Our own state machines keep the rules of `steponce lint`, which find what is planted in the workflow."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from samtranslator.yaml_helper import yaml_parse

from steponce.cli import commands
from steponce.lint import RULES, Finding, lint
from steponce.lint.machine import read_machine
from steponce.local.template.reader import read_renderings
from steponce.scaffold import workflow

from . import lint_page
from .documents import EXAMPLES, GONE, ROOT, load_json, machine, spoilt
from .run_once_faults import FAULTS
from .test_examples import KEEP_CUSTOMER, OF_THE_SAMPLE_S_WORK, STATES, name, whole_machine

RUN_ONCE = machine("run_once")
"""The workflow as its file has it; do not change it."""

CHECKS = {rule.id: rule.check for rule in RULES}


def findings(definition: Any) -> tuple[Finding, ...]:
    return lint(definition).findings


def test_the_definition_has_no_findings_by_itself() -> None:
    """With its placeholders, as an editor or a commit hook sees it."""
    assert () == findings(machine("run_once"))


@pytest.mark.parametrize("folder", EXAMPLES, ids=name)
def test_no_example_has_findings(folder: Path) -> None:
    """Read from its template."""
    renderings = read_renderings(folder / "template.yaml", stack_name="example", region="us-east-1")
    assert [()] == [findings(json.loads(one.text)) for one in renderings]


@pytest.mark.parametrize("state", STATES, ids=name)
def test_no_state_for_the_work_has_findings(state: Path) -> None:
    """In the place of the sample's work."""
    assert () == findings(whole_machine(state))


def test_a_callback_in_the_place_of_the_work_takes_the_retry_and_the_comment_of_the_page() -> None:
    """work-retry gives both: what one rule advises, the other must not advise away."""
    definition = deepcopy(RUN_ONCE)
    states = definition["States"]
    waits = states.pop("AwaitConfirmation")
    del states["IsConfirmationWanted"], states["DoWork"]["TimeoutSecondsPath"]
    payload = waits["Parameters"]["Payload"]
    for field, seconds in (("timeoutSeconds", 3600), ("heartbeatSeconds", 900)):
        del payload[f"{field}.$"]
        payload[field] = seconds
    said = " ".join((CHECKS["work-retry"].__doc__ or "").split())
    states["DoWork"] |= {name: waits[name] for name in ("Resource", "Parameters", "Retry")}
    states["DoWork"] |= {
        "Comment": re.findall("in its Comment `([^`]+)`", said)[0],
        "TimeoutSeconds": 3600,
        "HeartbeatSeconds": 900,
        "ResultSelector": {"result.$": "$"},
        "Next": "CompleteRequest",
    }

    assert () == findings(definition)


@pytest.mark.parametrize("callback", [False, True])
def test_no_new_application_has_findings(callback: bool) -> None:
    """With a confirmation and without."""
    assert () == findings(json.loads(workflow.definition(callback=callback)))


@pytest.mark.full
@pytest.mark.parametrize(("rule", "faults"), FAULTS)
def test_a_fault_in_the_workflow_is_found(rule: str, faults: dict[str, Any]) -> None:
    """By its rule. A rule that cannot fail is no rule."""
    assert [] == list(CHECKS[rule](read_machine(RUN_ONCE)))
    assert [] != list(CHECKS[rule](read_machine(spoilt(RUN_ONCE, faults))))


def test_every_run_once_rule_has_a_planted_fault() -> None:
    """No rule goes without proof that it can fail; tests/unit/lint has the faults of the others."""
    assert set() == {rule.id for rule in RULES if rule.family == "run-once"} - {rule for rule, _ in FAULTS}


def test_your_states_in_a_parallel_may_read_what_the_work_gets() -> None:
    """A branch sees its Parallel's input, and its paths are checked as those of any machine."""
    ask = {"Type": "Pass", "Parameters": {"order.$": "$.payload", "key.$": "$.lockToken"}, "End": True}
    parallel = {
        "Type": "Parallel",
        "Branches": [{"StartAt": "AskBank", "States": {"AskBank": ask}}],
        "ResultSelector": {"result.$": "$[0]"},
        "ResultPath": "$.work",
        "Next": "CompleteRequest",
    }
    right = spoilt(RUN_ONCE, {"States/DoWork": parallel, "States/ReplayError": GONE})
    wrong = spoilt(right, {"States/DoWork/Branches/0/States/AskBank/Parameters/order.$": "$.order"})
    assert [] == [found for found in findings(right) if found.state == "AskBank"]
    assert ["unguarded-path"] == [found.rule for found in findings(wrong) if found.state == "AskBank"]


def test_a_name_in_brackets_is_guarded_as_well() -> None:
    """Without its guard, the rule for reads complains."""
    guards = "States/IsEventReadable/Choices/0/And"
    unguarded = spoilt(load_json(KEEP_CUSTOMER), {guards: lambda tests: [tests[0], *tests[2:]]})
    assert [] != findings(unguarded)


def test_the_page_has_every_rule_as_its_code_explains_it() -> None:
    """With an anchor for each id; `make lint-page` writes it."""
    text = lint_page.PLACE.read_text(encoding="utf-8")
    assert text == lint_page.in_place(text), "run make lint-page"
    assert {rule.id for rule in RULES} <= set(re.findall(r"^### (.*)$", text, re.MULTILINE))


def test_the_commit_hook_reads_definitions_and_templates() -> None:
    """And runs a command that exists."""
    (hook,) = yaml_parse((ROOT / ".pre-commit-hooks.yaml").read_text())
    files = re.compile(hook["files"])
    right = ["a.asl.json", "b/c.asl.yaml", "template.yaml", "b/template.yml"]
    assert [*right] == [name for name in [*right, "package.json", "my-template.yaml"] if files.search(name)]
    assert hook["entry"].startswith("steponce lint ")
    assert "lint" in commands.steponce.commands


def call(**fields: Any) -> dict[str, Any]:
    """A state that calls a function."""
    resource = "arn:aws:states:::lambda:invoke"
    return {"Type": "Task", "Resource": resource, "Parameters": {"FunctionName": "f"}, **fields}


def with_work(**changes: Any) -> dict[str, Any]:
    """The workflow around work of two Tasks. The first may say that nothing has happened."""
    nothing = {"Type": "Fail", "Error": "NothingHappened", "CausePath": "$.Cause"}
    first = call(Next="Ship", Catch=[{"ErrorEquals": ["RetryLater"], "Next": "SayNothing"}])
    branch = {"StartAt": "Pay", "States": {"Pay": first, "Ship": call(End=True), "SayNothing": nothing}}
    catches = [
        {"ErrorEquals": ["NothingHappened"], "ResultPath": "$.failure", "Next": "ReleaseLock"},
        *RUN_ONCE["States"]["DoWork"]["Catch"][2:],
    ]
    work = {
        "Type": "Parallel",
        "Branches": [branch],
        "ResultSelector": {"result.$": "$[0]"},
        "ResultPath": "$.work",
    }
    whole = spoilt(RUN_ONCE, {"States/DoWork": {**work, "Catch": catches, "Next": "CompleteRequest"}})
    whole["States"] = {
        name: state for name, state in whole["States"].items() if name not in OF_THE_SAMPLE_S_WORK
    }
    return spoilt(whole, {f"States/DoWork/{place}": value for place, value in changes.items()})


RELEASING = {"ErrorEquals": ["RetryLater"], "ResultPath": "$.failure", "Next": "ReleaseLock"}
RETRY = [{"ErrorEquals": ["RetryLater"], "MaxAttempts": 2}]
PAY = "Branches/0/States/Pay"


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        ("work-retry", {"Retry": RETRY}),
        ("release-after-effects", {"Catch/0": RELEASING}),
        ("release-after-effects", {f"{PAY}/Catch/0/ErrorEquals": ["States.ALL"]}),
        ("release-after-effects", {f"{PAY}/Next": "SayNothing", "Branches/0/States/Ship": GONE}),
        ("skipped-completion", {"Next": GONE, "End": True}),
    ],
)
def test_work_of_several_tasks_is_done_once(rule: str, changes: dict[str, Any]) -> None:
    """It has no Retry, and releases the lock only from before its first effect."""
    assert set() == {found.rule for found in findings(with_work())}
    assert {rule} <= {found.rule for found in findings(with_work(**changes))}
