"""The installation watches, and answers for, its own state machine and those that it is told of. No other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from steponce.local import TemplateError
from steponce.local.template.intrinsics import Resolver
from steponce.local.template.parameters import parameter_values
from steponce.local.template.physical_names import PhysicalNames

from .documents import template, transformed_template, walk
from .renderings import defaults

HERE = "arn:aws:states:us-east-1:123456789012"
OWN = f"{HERE}:stateMachine:steponce-run-once"
OTHERS = [f"{HERE}:stateMachine:refunds", f"{HERE}:stateMachine:other-stack-run-once"]
WATCHERS = {
    "SettleLocksPolicy": {"states:DescribeExecution", "states:GetExecutionHistory"},
    "ReadItemsPolicy": {"states:GetExecutionHistory"},
    "ResolveAwaitingStepFunction": {
        "states:GetExecutionHistory",
        "states:SendTaskSuccess",
        "states:SendTaskFailure",
        "states:SendTaskHeartbeat",
    },
    "FindOverdueFunction": {"states:SendTaskSuccess", "states:SendTaskFailure"},
}
"""Who may do what to the executions of every machine whose locks are in the table."""


def grants(others: str) -> Iterator[tuple[str, str, list[str]]]:
    """Resource, action and ARNs of each permission on executions, with these other machines."""
    template = transformed_template()
    values = defaults() | {"OtherStateMachines": others}
    resolver = Resolver(template, values, PhysicalNames("steponce", "us-east-1"))
    for name, item in template["Resources"].items():
        for part in walk(item.get("Properties", {})):
            if not isinstance(part, dict) or "Effect" not in part:
                continue
            actions = part["Action"] if isinstance(part["Action"], list) else [part["Action"]]
            states = [action for action in actions if action.startswith("states:")]
            found = resolver.resolve(part["Resource"]) if states else []
            arns = found if isinstance(found, list) else [found]
            yield from ((name.removesuffix("Role"), action, arns) for action in states)


@pytest.mark.parametrize("others", [[], OTHERS[:1], OTHERS], ids=len)
def test_exactly_the_machines_that_are_named_may_be_looked_at(others: list[str]):
    """Every other permission is for the own machine alone; an empty list adds nothing."""
    machines = [OWN, *others]
    named = [arn.replace(":stateMachine:", ":execution:") for arn in machines]
    executions, items = [f"{name}:*" for name in named], [f"{name}/*" for name in named]
    answered = [*machines, *(f"{arn}/*" for arn in machines)]  # an item is an execution of MACHINE/LABEL
    wide: dict[tuple[str, str], list[str]] = {}
    for name, action, arns in grants(",".join(others)):
        if action in WATCHERS.get(name, ()):
            wide.setdefault((name, action), []).extend(arns)
        else:
            assert {OWN, executions[0]} >= set(arns)
    for (name, action), arns in wide.items():
        on_executions = items if name == "ReadItemsPolicy" else executions
        assert (answered if action.startswith("states:SendTask") else on_executions) == arns
    assert {(name, action) for name, actions in WATCHERS.items() for action in actions} == set(wide)


@pytest.mark.parametrize("others", [[], OTHERS], ids=len)
def test_the_rule_reports_dead_executions_of_exactly_these_machines(others: list[str]):
    """A message comes back by the rule of its own workflow only."""
    template = transformed_template()
    values: dict[str, Any] = defaults() | {"OtherStateMachines": ",".join(others)}
    resolver = Resolver(template, values, PhysicalNames("steponce", "us-east-1"))
    pattern = template["Resources"]["CloseExecutionFunctionBadEnd"]["Properties"]["EventPattern"]
    assert [OWN, *others] == resolver.resolve(pattern)["detail"]["stateMachineArn"]


@pytest.mark.parametrize("others", ["", OTHERS[0], ",".join(OTHERS)])
def test_a_list_of_machines_is_taken(others: str):
    """Or none."""
    assert others == parameter_values(template(), {"OtherStateMachines": others})["OtherStateMachines"]


@pytest.mark.parametrize(
    "others", [",", f",{OTHERS[0]}", f"{OTHERS[0]},", ",,".join(OTHERS), ", ".join(OTHERS), "refunds"]
)
def test_a_list_with_what_is_no_machine_is_refused_at_once(others: str):
    """Also with an empty item. IAM takes no policy for it, so the whole stack would be rolled back."""
    with pytest.raises(TemplateError, match="No comma may be at an end"):
        parameter_values(template(), {"OtherStateMachines": others})


def test_whoever_settles_waiting_steps_may_read_the_items_of_distributed_maps():
    """
    The executions of such a Map are not covered by `execution:MACHINE:*`.

    Source: Service Authorization Reference, AWS Step Functions, resource type "labelled execution".
    """
    template = transformed_template()
    names = {
        name.removesuffix("Role")
        for name, item in template["Resources"].items()
        if {"Ref": "ReadItemsPolicy"} in item.get("Properties", {}).get("ManagedPolicyArns", [])
    }
    assert {"ResolveAwaitingStepFunction", "FindOverdueFunction"} == names
