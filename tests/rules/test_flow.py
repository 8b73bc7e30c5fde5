"""Every workflow keeps every rule of flow.py, and every rule catches what was planted for it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steponce import workflow

from . import flow
from .documents import GONE, MACHINES, load_json, machine, rules_of, spoilt

RULES = [rule for rule in rules_of(flow) if rule.__module__ == flow.__name__]
OF_ANY_MACHINE = [
    flow.rule_names_are_unique,
    flow.rule_every_state_is_reachable,
    flow.rule_loops_end,
    flow.rule_reads_are_guarded,
]

RESULT_IS_THERE = {"Variable": "$.lock.Item.result.S", "IsPresent": True}
IS_RELEASED = {"Variable": "$.lock.Item.status.S", "StringEquals": "RELEASED", "Next": "IsTriedBefore"}
PARALLEL = {
    "Type": "Parallel",
    "Branches": [{"StartAt": "AcquireLock", "States": {"AcquireLock": {"Type": "Succeed"}}}],
    "Next": "CompleteRequest",
}

FAULTS: list[tuple[Callable[..., list[str]], dict[str, Any]]] = [
    (flow.rule_statuses_are_the_packages, {"States/IsLockHeld/Choices/3/StringEquals": "FREED"}),
    (
        flow.rule_statuses_are_the_packages,
        {"States/AcquireLock/Parameters/ExpressionAttributeValues/:released/S": "FREED"},
    ),
    (flow.rule_errors_are_the_packages, {"States/LockContended/Error": "LockBusy"}),
    (flow.rule_errors_are_the_packages, {"States/DoWork/Catch/2/ErrorEquals": ["States.DataLimitExceeded"]}),
    (flow.rule_names_are_unique, {"States/DoWork": PARALLEL}),
    (flow.rule_every_state_is_reachable, {"States/DoWork/Next": "CompleteRequests"}),
    (flow.rule_every_state_is_reachable, {"States/DoWork/Catch/0/Next": "RecordError"}),
    (flow.rule_every_state_is_reachable, {"States/IsLockHeld/Choices/2/Next": "IsTriedBefore"}),
    (flow.rule_every_state_is_reachable, {"States/AskBank": {"Type": "Succeed"}}),
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
    (flow.rule_reads_are_guarded, {"States/IsLockHeld/Choices/1/Or/0": GONE}),
    (flow.rule_reads_are_guarded, {"States/IsLockHeld/Choices/1/Or/3": GONE}),
    (flow.rule_reads_are_guarded, {"States/IsLockHeld/Choices/1/Next": "IsOwnerAlive"}),
    (flow.rule_reads_are_guarded, {"States/IsLockHeld/Choices/0": IS_RELEASED}),
    (flow.rule_reads_are_guarded, {"States/IsLockHeld/Choices/4/And/2": GONE}),
    (flow.rule_reads_are_guarded, {"States/IsLockHeld/Choices/4/And": lambda tests: tests[::-1]}),
    (flow.rule_reads_are_guarded, {"States/IsLockHeld/Choices/7/And/1": GONE}),
    (
        flow.rule_reads_are_guarded,
        {"States/IsLockHeld/Choices/7": {"Not": RESULT_IS_THERE, "Next": "ReplayResult"}},
    ),
    (flow.rule_reads_are_guarded, {"States/IsLockHeld/Choices/8/And/1": GONE}),
    (flow.rule_reads_are_guarded, {"States/IsPowertoolsRecord/Choices/0/Or/4": GONE}),
    (flow.rule_reads_are_guarded, {"States/IsPowertoolsRecord/Choices/2/And/1": GONE}),
    (flow.rule_reads_are_guarded, {"States/IsTriedBefore/Choices/0": GONE}),
    (flow.rule_reads_are_guarded, {"States/IsErrorNamed/Choices/0/And/0": GONE}),
    (flow.rule_reads_are_guarded, {"States/IsErrorNamed/Choices/0/And/3": GONE}),
    (flow.rule_reads_are_guarded, {"States/IsErrorNamed/Default": "RequestFailed"}),
    (flow.rule_reads_are_guarded, {"States/IsRequestPrepared/Choices/0/And/6": GONE}),
    (flow.rule_reads_are_guarded, {"States/IsRequestPrepared/Default": "AcquireLock"}),
    (flow.rule_reads_are_guarded, {"States/PrepareRequest/OutputPath": GONE}),
    (flow.rule_reads_are_guarded, {"States/AcquireLock/ResultPath": "$.hold"}),
    (flow.rule_reads_are_guarded, {"States/AcquireLock/Parameters/ReturnValues": GONE}),
    (flow.rule_reads_are_guarded, {"States/AcquireLock/Catch/0/ResultPath": GONE}),
    (flow.rule_reads_are_guarded, {"States/DoWork/ResultSelector": {"answer.$": "$.Payload"}}),
    (flow.rule_reads_are_guarded, {"States/DoWork/TimeoutSecondsPath": "$.held.timeoutSeconds"}),
    (flow.rule_reads_are_guarded, {"States/DoWork/Catch/0/ResultPath": GONE}),
    (flow.rule_reads_are_guarded, {"States/DoWork/Catch/3/ResultPath": "$.error"}),
    (flow.rule_reads_are_guarded, {"States/CompleteRequest/OutputPath": "$.work.answer"}),
    (flow.rule_reads_are_guarded, {"States/CheckOwner/ResultSelector/verdict.$": "$.Payload.outcome"}),
    (flow.rule_reads_are_guarded, {"States/CheckOwner/ResultSelector/redriveCount.$": GONE}),
    (flow.rule_reads_are_guarded, {"States/HoldLock/ResultPath": "$"}),
    (flow.rule_states_are_classified, {"States/AskBank": {"Type": "Pass", "Next": "CompleteRequest"}}),
    (flow.rule_states_are_classified, {"States/ConfirmTakeover": GONE}),
    (flow.rule_states_are_classified, {"States/ResultTooLarge/Error": "ResultTooBig"}),
    (flow.rule_classes_agree_with_the_graph, {"States/CompleteRequest/Next": "TakeOverLock"}),
    (flow.rule_classes_agree_with_the_graph, {"States/DoWork/Catch/0/ErrorEquals": ["States.Timeout"]}),
    (flow.rule_classes_agree_with_the_graph, {"States/DoWork/Catch/3/Next": "ReleaseLock"}),
    (flow.rule_classes_agree_with_the_graph, {"States/DoWork/Catch/3/Next": "RecordFinalError"}),
    (
        flow.rule_classes_agree_with_the_graph,
        {"States/RecordError/Resource": "arn:${Partition}:states:::dynamodb:getItem"},
    ),
    (
        flow.rule_classes_agree_with_the_graph,
        {"States/ConfirmTakeover/Parameters/FunctionName": "${ChargeCardFunctionArn}"},
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


def test_your_states_in_a_parallel_may_read_what_the_work_gets() -> None:
    """A branch sees its Parallel's input, and its paths are checked as any other."""
    ask = {"Type": "Pass", "Parameters": {"order.$": "$.payload", "key.$": "$.lockToken"}, "End": True}
    parallel = {
        "Type": "Parallel",
        "Branches": [{"StartAt": "AskBank", "States": {"AskBank": ask}}],
        "ResultSelector": {"result.$": "$[0]"},
        "ResultPath": "$.work",
        "Next": "CompleteRequest",
    }
    right = spoilt(machine("run_once"), {"States/DoWork": parallel, "States/ReplayError": GONE})
    wrong = spoilt(right, {"States/DoWork/Branches/0/States/AskBank/Parameters/order.$": "$.order"})
    assert [] == [text for text in flow.rule_reads_are_guarded(right) if "AskBank" in text]
    assert ["AskBank reads $.order, which may be absent"] == [
        text for text in flow.rule_reads_are_guarded(wrong) if "AskBank" in text
    ]
