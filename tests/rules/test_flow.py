"""Every workflow keeps every rule of flow.py, and every rule catches what was planted for it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steponce import workflow

from . import flow
from .documents import GONE, MACHINES, load_json, machine, rules_of, spoilt

RULES = [rule for rule in rules_of(flow) if rule.__module__ == flow.__name__]
OF_ANY_MACHINE = [flow.rule_loops_end]

FAULTS: list[tuple[Callable[..., list[str]], dict[str, Any]]] = [
    (flow.rule_statuses_are_the_packages, {"States/IsLockHeld/Choices/4/StringEquals": "FREED"}),
    (
        flow.rule_statuses_are_the_packages,
        {"States/AcquireLock/Parameters/ExpressionAttributeValues/:released/S": "FREED"},
    ),
    (flow.rule_errors_are_the_packages, {"States/LockContended/Error": "LockBusy"}),
    (flow.rule_errors_are_the_packages, {"States/DoWork/Catch/2/ErrorEquals": ["States.DataLimitExceeded"]}),
    (flow.rule_loops_end, {"States/IsOwnerAlive/Choices/0/Next": "ReadLock"}),
    (flow.rule_loops_end, {"States/TakeOverLock/Catch/0/Next": "AcquireLock"}),
    (flow.rule_loops_end, {"States/DoWork/Catch/0/Next": "DoWork"}),
    (flow.rule_loops_end, {"States/IsTriedBefore/Choices/1/NumericLessThan": GONE}),
    (flow.rule_loops_end, {"States/IsTriedBefore/Default": "AcquireLock"}),
    (flow.rule_loops_end, {"States/IsTriedBefore/Choices/1/Next": "AcquireLock"}),
    (flow.rule_loops_end, {"States/IsTriedBefore/Choices/0/Variable": "$.lock.Item"}),
    (flow.rule_loops_end, {"States/CountTry/ResultPath": "$.retries"}),
    (flow.rule_loops_end, {"States/CountTry/Parameters": {"count.$": "$.tries.count"}}),
    (flow.rule_loops_end, {"States/StartCounting/ResultPath": "$.retries"}),
    (flow.rule_states_are_classified, {"States/AskBank": {"Type": "Pass", "Next": "CompleteRequest"}}),
    (flow.rule_states_are_classified, {"States/ConfirmTakeover": GONE}),
    (flow.rule_states_are_classified, {"States/ResultTooLarge/Error": "ResultTooBig"}),
    (flow.rule_outcomes_are_the_packages, {"States/DoWork/Catch/3/Next": "RecordFinalError"}),
    (
        flow.rule_outcomes_are_the_packages,
        {"States/RecordError/Resource": "arn:${Partition}:states:::dynamodb:getItem"},
    ),
]


@pytest.mark.parametrize("rule", OF_ANY_MACHINE, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("path", MACHINES, ids=lambda path: path.name)
def test_every_workflow_keeps_the_rule(rule: Callable[..., list[str]], path: Path) -> None:
    """No complaints about any workflow."""
    assert [] == rule(load_json(path))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_run_once_keeps_the_rule(rule: Callable[..., list[str]]) -> None:
    """The workflow that holds locks keeps those rules too that are about locks."""
    assert [] == rule(machine("run_once"))


@pytest.mark.parametrize(("rule", "faults"), FAULTS, ids=lambda part: getattr(part, "__name__", None))
def test_the_rule_catches_its_planted_fault(rule: Callable[..., list[str]], faults: dict[str, Any]) -> None:
    """A rule that cannot fail is no rule."""
    assert [] != rule(spoilt(machine("run_once"), faults))


def test_every_rule_has_a_planted_fault() -> None:
    """No rule goes without proof that it can fail."""
    assert set(RULES) == {rule for rule, _ in FAULTS}


def test_the_work_cannot_be_called_unstarted(monkeypatch: pytest.MonkeyPatch) -> None:
    """If settle_owner did, a dead owner's work would be run again."""
    monkeypatch.setattr(workflow, "BEFORE_WORK", workflow.BEFORE_WORK | {"DoWork"})
    assert [] != flow.rule_states_are_classified(machine("run_once"))
