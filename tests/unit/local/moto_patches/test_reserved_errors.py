"""The errors that the states language reserves for a Choice and for a distributed Map."""

import json

import pytest

from tests.unit.local.moto_patches.workflows import Workflows

FAILS = {"Type": "Fail", "Error": "Declined", "Cause": "no"}
CHOICE = {
    "Type": "Choice",
    "Choices": [{"Variable": "$.n", "NumericEquals": 1, "Next": "One"}],
}
ONE = {"One": {"Type": "Succeed"}}


@pytest.fixture(scope="module")
def workflows(small_stack):
    return Workflows(small_stack)


def caught(name, state):
    """A state with a Catch of one error, and what follows."""
    catch = [{"ErrorEquals": [name], "Next": "Caught"}]
    return {
        "Work": state | {"Catch": catch, "End": True},
        "Caught": {"Type": "Pass", "Parameters": {"error.$": "$.Error"}, "End": True},
    }


def distributed(states, **fields):
    """A Map whose items are executions of their own on AWS."""
    processor = {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
        "StartAt": next(iter(states)),
        "States": states,
    }
    return {"Type": "Map", "ItemProcessor": processor} | fields


def items():
    """One of three fails."""
    chosen = CHOICE | {"Default": "Declined"}
    chosen["Choices"] = [{"Variable": "$", "NumericLessThan": 3, "Next": "One"}]
    return distributed({"Which": chosen, **ONE, "Declined": FAILS}, ItemsPath="$.items")


def unreadable():
    """The object with the items is not there."""
    reader = {
        "Resource": "arn:aws:states:::s3:getObject",
        "ReaderConfig": {"InputType": "JSON"},
        "Parameters": {"Bucket": "nobody-has-it", "Key": "items.json"},
    }
    return distributed(ONE, ItemReader=reader)


REFUSED = {
    "States.NoChoiceMatched": lambda: {
        "Type": "Parallel",
        "Branches": [{"StartAt": "Which", "States": {"Which": CHOICE, **ONE}}],
    },
    "States.ExceedToleratedFailureThreshold": items,
    "States.ItemReaderFailed": unreadable,
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_reserved_error_is_caught_by_its_name(workflows, name):
    """Each was States.Runtime, which nothing catches, or none at all."""
    given = {"n": 2, "items": [1, 2, 3]}
    found = workflows.run(caught(name, REFUSED[name]()), given)
    assert {"error": name} == json.loads(found["output"])


@pytest.mark.parametrize("name", REFUSED)
def test_a_reserved_error_that_nobody_catches_ends_the_execution(workflows, name):
    """With its own name."""
    state = REFUSED[name]()
    state["End"] = True
    found = workflows.run({"Work": state}, {"n": 2, "items": [1, 2, 3]})
    assert ("FAILED", name) == (found["status"], found.get("error"))
    of_map = ["MapRunFailed", "MapStateFailed"] if state["Type"] == "Map" else ["ParallelStateFailed"]
    assert [*of_map, "ExecutionFailed"] == workflows.history(found["executionArn"])[-len(of_map) - 1 :]


def test_a_path_that_is_absent_in_a_reader_is_caught_by_nothing(workflows):
    """As everywhere else."""
    reader = unreadable()
    reader["ItemReader"]["Parameters"]["Bucket.$"] = "$.bucket"
    del reader["ItemReader"]["Parameters"]["Bucket"]
    found = workflows.run(caught("States.ALL", reader))
    assert ("FAILED", "States.Runtime") == (found["status"], found["error"])


def test_a_choice_alone_ends_its_execution(workflows):
    """It can have no Catch."""
    found = workflows.run({"Which": CHOICE, **ONE}, {"n": 2})
    assert ("FAILED", "States.NoChoiceMatched") == (found["status"], found["error"])


def test_a_distributed_map_whose_items_all_succeed_has_their_outputs(workflows):
    """In their order."""
    found = workflows.run({"Work": items() | {"End": True}}, {"items": [1, 2]})
    assert [1, 2] == json.loads(found["output"])
