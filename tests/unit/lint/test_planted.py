"""Every general rule finds what was planted for it, and says nothing about machines that are right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steponce.lint import RULES, lint

from .planted import FAULTS, RIGHT, SPOILT, Fault


@pytest.mark.parametrize("path", [*RIGHT, *SPOILT], ids=lambda path: path.name.partition(".")[0])
def test_a_machine_that_is_right_has_no_findings(path: Path):
    """Neither an error nor a warning: what AWS's guides call right is right."""
    assert () == lint(json.loads(path.read_text())).findings


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.rule}-{fault.what}")
def test_a_planted_fault_is_found(fault: Fault):
    """By its rule. A rule that cannot fail is no rule."""
    found = {finding.rule for finding in lint(fault.planted()).findings}

    assert fault.rule in found
    assert found - {fault.rule} <= COMPANIONS.get(fault.rule, set())


COMPANIONS = {
    "bad-ignore": {"retry-too-large"},
    "missing-target": {"unreachable-state"},
    "retry-repeats-work": {"retry-too-large"},
    "token-without-wait": {"heartbeat-unheard"},
}
"""What else a fault breaks."""


def test_there_are_ten_of_each():
    """As many that are right as there are to plant faults in."""
    assert (10, 10) == (len(RIGHT), len(SPOILT))
    assert {path.name.partition(".")[0] for path in SPOILT} == {fault.machine for fault in FAULTS}


def test_every_general_rule_has_a_planted_fault():
    """No rule goes without proof that it can fail; tests/rules has the faults of the run-once rules."""
    assert {rule.id for rule in RULES if rule.family == "general"} == {fault.rule for fault in FAULTS}


@pytest.mark.parametrize("field", ["Parameters", "Assign"])
def test_a_path_as_text_is_found_in_every_template(field: str):
    """A variable gets its value as a parameter does."""
    state = {"Type": "Pass", field: {"order": {"id": "$.orderId"}}, "End": True}

    (finding,) = lint({"StartAt": "Keep", "States": {"Keep": state}}).findings

    assert ("path-not-marked", "Keep") == (finding.rule, finding.state)
    assert "Call the key 'id.$'" in finding.message


@pytest.mark.parametrize(
    "path", ["$.detail._id.$oid", "$.items[?(@['k'] == 1)].b", "$['a b'].c", "$$.State.Name"]
)
def test_every_form_of_a_path_is_found(path: str):
    """MongoDB's names begin with a dollar, and a filter has blanks and brackets."""
    state = {"Type": "Pass", "Parameters": {"id": path}, "End": True}
    findings = lint({"StartAt": "Keep", "States": {"Keep": state}}).findings
    assert ["path-not-marked"] == [one.rule for one in findings]


@pytest.mark.parametrize("text", ["$.a + $.b", "$.a is free", "$5.00", "States.Format(a) or not"])
def test_text_that_begins_like_a_path_is_none(text: str):
    """As AWS has it, an expression for CDK's evaluator: the key that lint proposed would be refused."""
    state = {"Type": "Pass", "Parameters": {"expression": text}, "End": True}
    assert () == lint({"StartAt": "Keep", "States": {"Keep": state}}).findings


@pytest.mark.parametrize(("given", "found"), [({"lockToken.$": "$.id"}, []), ({}, ["retry-repeats-work"])])
def test_the_start_of_a_request_with_its_lock_token_may_be_repeated(given: dict[str, Any], found: list[str]):
    """Each execution ends with the first one's answer. Whether another machine does so is not known."""
    start = {
        "Type": "Task",
        "Resource": "arn:aws:states:::states:startExecution.sync:2",
        "Parameters": {"StateMachineArn": "${RunOnce}", "Input": {"payload.$": "$"} | given},
        "TimeoutSeconds": 3600,
        "Retry": [{"ErrorEquals": ["States.TaskFailed"], "MaxAttempts": 2}],
        "End": True,
    }

    findings = lint({"StartAt": "Order", "States": {"Order": start}}).findings

    assert found == [one.rule for one in findings if one.rule == "retry-repeats-work"]


GET: dict[str, Any] = {
    "Type": "Task",
    "Resource": "arn:aws:states:::aws-sdk:dynamodb:getItem",
    "Parameters": {"TableName": "t", "Key": {"id": {"S": "1"}}},
    "End": True,
}
UPDATE_IN_JSONATA: dict[str, Any] = {
    "Type": "Task",
    "QueryLanguage": "JSONata",
    "Resource": "arn:aws:states:::dynamodb:updateItem",
    "Arguments": {
        "TableName": "t",
        "Key": {"id": {"S": "1"}},
        "UpdateExpression": "SET a = :a",
        "ExpressionAttributeValues": "{% {':a': {'S': $states.input.a}} %}",
    },
    "End": True,
}
FAIL = {"Type": "Fail", "Error": "States.Renamed", "Cause": "It is known."}


def put(condition: str, names: dict[str, str], values: dict[str, Any]) -> dict[str, Any]:
    """A write under this condition."""
    given = {"TableName": "t", "Item": {"id": {"S": "1"}}, "ConditionExpression": condition}
    placeholders = {"ExpressionAttributeNames": names, "ExpressionAttributeValues": values}
    parameters = given | {key: value for key, value in placeholders.items() if value}
    return {"Type": "Task", "Resource": "arn:aws:states:::dynamodb:putItem", "End": True} | {
        "Parameters": parameters
    }


@pytest.mark.parametrize(
    "error", ["Lambda.Unknown", "Sandbox.Timedout", "Runtime.ExitError", "Runtime.OutOfMemory"]
)
def test_a_function_that_died_may_have_done_its_work(error: str):
    """It ran out of time or memory, maybe after its effect."""
    retry = [{"ErrorEquals": [error], "MaxAttempts": 2, "MaxDelaySeconds": 5}]
    call = {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "Parameters": {"FunctionName": "f"}}
    state = call | {"TimeoutSeconds": 60, "Retry": retry, "End": True}
    found = lint({"StartAt": "A", "States": {"A": state}}).findings
    assert "retry-repeats-work" in {finding.rule for finding in found}


@pytest.mark.parametrize(
    "state",
    [
        GET | {"Parameters": GET["Parameters"] | {"ConsistentRead": "true"}},
        GET | {"Catch": [{"ErrorEquals": ["States.Renamed"], "Next": "Failed"}]},
        {"Type": "Wait", "SecondsPath": "$.seconds", "End": True},
        put("#0 = :0", {"#0": "a"}, {":0": {"S": "x"}}),
        put("${Condition}", {}, {":a": {"S": "x"}}),
        put("a = :a AND ${Rest}", {}, {":a": {"S": "x"}, ":b": {"S": "x"}}),
        put("a = :${Name}", {}, {":${Name}": {"S": "x"}}),
        GET | {"Catch": [{"ErrorEquals": ["States.${Error}"], "Next": "Failed"}]},
        UPDATE_IN_JSONATA,
    ],
    ids=[
        "a flag as text",
        "an error of a Fail state",
        "a wait",
        "placeholders with digits",
        "an expression that is known later",
        "a part of one",
        "a name",
        "an error",
        "values of an expression",
    ],
)
def test_what_aws_takes_is_no_fault(state: dict[str, Any]):
    """Shapes of AWS's samples that run there."""
    choice = {
        "Type": "Choice",
        "Choices": [{"Variable": "$.a", "IsNull": True, "Next": "Failed"}],
        "Default": "B",
    }
    assert () == lint({"StartAt": "A", "States": {"A": choice, "B": state, "Failed": FAIL}}).findings


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ({"step": "approval"}, "each item of its Map waits under one step name"),
        ({"step.$": "States.Format('approval-{}', $$.Map.Item.Index)"}, "reads the Map's context"),
        ({"step.$": "States.Format('approval-{}', $.index)"}, ""),
        ({"step.$": "$.step"}, ""),
    ],
)
def test_the_items_of_a_map_wait_under_names_that_they_can_read(step: dict[str, str], said: str):
    """A state inside of a Map has no Map in its context object; its ItemSelector does."""
    payload = step | {"callId.$": "$.callId", "taskToken.$": "$$.Task.Token"}
    ask = {
        "Type": "Task",
        "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
        "TimeoutSeconds": 60,
        "Parameters": {"FunctionName": "f", "Payload": payload},
        "End": True,
    }
    items = {
        "Type": "Map",
        "ItemSelector": {"index.$": "$$.Map.Item.Index", "callId.$": "$.callId", "step.$": "$.step"},
        "ItemProcessor": {"StartAt": "Ask", "States": {"Ask": ask}},
        "End": True,
    }
    found = [
        finding.message
        for finding in lint({"StartAt": "All", "States": {"All": items}}).findings
        if finding.rule == "shared-step"
    ]

    assert bool(said) == bool(found)
    assert all(said in text for text in found)


@pytest.mark.parametrize(
    ("call", "error", "advice"),
    [
        ("dynamodb:putItem", "DynamoDB.RequestLimitExceededException", ""),
        ("states:startExecution", "StepFunctions.ExecutionLimitExceeded", ""),
        (
            "aws-sdk:dynamodb:putItem",
            "DynamoDb.InternalServerError",
            "DynamoDb.InternalServerErrorException.",
        ),
        ("states:startExecution", "StepFunctions.ExecutionAlreadyExistsException", ""),
        ("aws-sdk:sfn:startExecution", "Sfn.ExecutionAlreadyExists", "Sfn.ExecutionAlreadyExistsException."),
        ("dynamodb:putItem", "DynamoDB.AmazonDynamoDBException", ""),
    ],
)
def test_step_functions_appends_exception_to_an_error_s_name(call: str, error: str, advice: str):
    """The API's own names of these errors have none. An example of AWS's guide has none, either."""
    state = {"Type": "Task", "Resource": f"arn:aws:states:::{call}", "TimeoutSeconds": 60, "End": True}
    caught = state | {"Catch": [{"ErrorEquals": [error], "Next": "Failed"}]}
    found = [
        finding.message
        for finding in lint({"StartAt": "A", "States": {"A": caught, "Failed": FAIL}}).findings
        if finding.rule == "error-spelling"
    ]

    assert bool(advice) == bool(found)
    assert all(advice in message for message in found)
