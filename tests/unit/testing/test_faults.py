"""What can be planned, and what is refused before anything is."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from steponce.testing.faults import FaultRefused, PlannedFaults

TASK = {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "End": True}
INSIDE = {"StartAt": "Pack", "States": {"Pack": TASK, "Rest": {"Type": "Wait", "Seconds": 1, "End": True}}}
ONE = {
    "Buy": TASK,
    "All": {"Type": "Map", "ItemProcessor": INSIDE, "End": True},
    "Old": {"Type": "Map", "Iterator": {"StartAt": "Wrap", "States": {"Wrap": TASK}}, "End": True},
    "Both": {"Type": "Parallel", "Branches": [{"StartAt": "Call", "States": {"Call": TASK}}], "End": True},
}


def plan(name: str, states: dict[str, Any]) -> SimpleNamespace:
    """A state machine of a stack named `shop`."""
    definition = json.dumps({"StartAt": next(iter(states)), "States": states})
    return SimpleNamespace(
        logical_id=f"{name.removeprefix('shop-')}StateMachine",
        name=name,
        arn=f"arn:{name}",
        definition=definition,
    )


@pytest.fixture
def controls() -> Mock:
    """The engine's, where each fault has happened once."""
    return Mock(plan_fault=Mock(return_value="id"), drop_fault=Mock(return_value=1))


@pytest.fixture
def faults(controls: Mock) -> PlannedFaults:
    """On a stack of two machines, each with a task `Buy`."""
    machines = [plan("shop-Orders", ONE), plan("shop-Gifts", {"Buy": TASK, "Give": TASK})]
    stack = Mock(controls=controls, plan=SimpleNamespace(machines=machines))
    stack.name = "shop"
    return PlannedFaults(stack)


@pytest.mark.parametrize("state", ["Pack", "Wrap", "Call"])
def test_tasks_inside_of_other_states_can_have_faults(faults: PlannedFaults, controls: Mock, state: str):
    """A task's name is unique in its machine."""
    faults.lose_answer(state, times=2)

    controls.plan_fault.assert_called_once_with(
        kind="lose answer", machine="arn:shop-Orders", state=state, times=2
    )


@pytest.mark.parametrize("machine", ["GiftsStateMachine", "Gifts", "shop-Gifts", "arn:shop-Gifts"])
def test_a_machine_has_several_names(faults: PlannedFaults, controls: Mock, machine: str):
    """Logical id, name with and without the stack's, and ARN."""
    faults.stop_in("Buy", machine=machine)

    assert "arn:shop-Gifts" == controls.plan_fault.call_args.kwargs["machine"]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (
            ("Buy", "Declined"),
            {},
            r"shop-Gifts, shop-Orders have a task 'Buy' each. Say which one",
        ),
        (
            ("Rest", "Declined"),
            {},
            r"no task 'Rest'. The tasks are: shop-Gifts: Buy, Give; shop-Orders",
        ),
        (
            ("Give", "Declined"),
            {"machine": "Orders"},
            r"no task 'Give'. The tasks are: shop-Orders: Buy",
        ),
        (
            ("Give", "Declined"),
            {"machine": "Gift"},
            r"no state machine 'Gift'. There are: shop-Gifts, ",
        ),
        (("Give", "States.ALL"), {}, r"'States.ALL' is no error that a state can have"),
        (("Give", ""), {}, r"'' is no error that a state can have"),
        (("Give", "Declined"), {"times": 0}, r"times must be a whole number, 1 or more, and is 0"),
        (("Give", "Declined"), {"times": 1.5}, r"times must be a whole number, 1 or more, and is 1.5"),
        (("Give", "Declined"), {"times": "2"}, r"times must be a whole number, 1 or more, and is '2'"),
    ],
)
def test_what_cannot_happen_is_refused(
    faults: PlannedFaults, controls: Mock, arguments: tuple[str, str], options: dict[str, Any], message: str
):
    """The message says what there is, and nothing is planned."""
    with pytest.raises(FaultRefused, match=message):
        faults.fail_state(*arguments, **options)

    controls.plan_fault.assert_not_called()


def test_what_was_not_reached_is_said_in_words(faults: PlannedFaults):
    """Each has happened once; one of them was to happen twice. No fault is left."""
    faults.fail_state("Give", "Declined", times=2)
    faults.stop_in("Give")

    assert ["fail_state('Give', 'Declined') was reached 1 of 2 times"] == faults.drop()
    assert [] == faults.drop()


def test_a_template_without_a_state_machine_is_named_as_one(controls: Mock):
    """It said that there was no state machine None."""
    stack = Mock(controls=controls, plan=SimpleNamespace(machines=[]))
    with pytest.raises(FaultRefused, match=r"^There is no state machine\. There are: none\.$"):
        PlannedFaults(stack).lose_answer("Buy")
