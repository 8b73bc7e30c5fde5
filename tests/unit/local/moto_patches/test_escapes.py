"""A definition means the same, whether its characters are escaped in the JSON or not."""

import json

import pytest

from tests.unit.local.moto_patches.workflows import NUMBERS, Workflows

NAMES = {
    "umlaut": "Prüfe",
    "Japanese": "支払う",
    "beyond the first plane": "Ship \U0001f600",
    "quote": 'Say "hi"',
    "backslash": "a\\b",
    "apostrophe": "it's",
    "slash": "a/b",
    "markup": "<a> & b",
}
"""What is a state, an error and a field."""


@pytest.fixture(scope="module")
def workflows(small_stack):
    return Workflows(small_stack)


def plain(definition):
    """With as few escapes as JSON allows."""
    return json.dumps(definition, ensure_ascii=False)


def escaped(definition):
    """As by json.dumps, by PHP, and by the CDK's languages that also escape what is markup in HTML."""
    text = json.dumps(definition)
    for character in "<>&'":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.replace("/", "\\/")


def machine(name):
    """Catches an error of this name, in states of this name, and reads a field of this name."""
    path = f"$[{json.dumps(name, ensure_ascii=False)}]"
    fail = {"StartAt": "Fail", "States": {"Fail": {"Type": "Fail", "Error": name, "Cause": name}}}
    caught = {"ErrorEquals": [name], "ResultPath": '$["the error"]', "Next": name}
    fields = {
        "state.$": "$$.State.Name",
        "both.$": "States.Format('{} {}', $$.State.Name, $['the error'].Cause)",
        name: name,
        f"{name} too.$": path,
    }
    states = {
        "Try": {"Type": "Parallel", "Branches": [fail], "Catch": [caught], "Next": "Never"},
        name: {"Type": "Pass", "Parameters": fields, "ResultPath": path, "Next": "Choose"},
        "Choose": {
            "Type": "Choice",
            "Choices": [{"Variable": f"{path}[{plain(name)}]", "StringEquals": name, "Next": "Done"}],
            "Default": "Never",
        },
        "Never": {"Type": "Fail"},
        "Done": {"Type": "Succeed"},
    }
    return {"StartAt": "Try", "States": states}


@pytest.mark.parametrize("form", [plain, escaped])
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_names_and_paths_are_the_same_with_and_without_escapes(workflows, name, form):
    """Names of states, of errors and of fields; in the history, too."""
    made = workflows.sfn.create_state_machine(
        name=f"machine-{next(NUMBERS)}",
        definition=form(machine(name)),
        roleArn="arn:aws:iam::123456789012:role/test",
    )
    arn = workflows.sfn.start_execution(
        stateMachineArn=made["stateMachineArn"], input=json.dumps({name: "here"})
    )["executionArn"]
    found = workflows.end(arn)
    assert "SUCCEEDED" == found["status"], found
    expected = {"state": name, "both": f"{name} {name}", name: name, f"{name} too": "here"}
    output = json.loads(found["output"])
    assert {"Error": name, "Cause": name} == output["the error"]
    assert expected == output[name]
    events = workflows.sfn.get_execution_history(executionArn=arn)["events"]
    entered = [
        event["stateEnteredEventDetails"]["name"] for event in events if "stateEnteredEventDetails" in event
    ]
    assert ["Try", "Fail", name, "Choose", "Done"] == entered


def test_half_a_character_and_a_huge_number_are_taken(workflows):
    """As the input of an execution may have them."""
    values = {"half": "\ud83d", "huge": 10**400, "small": 1.10}
    states = {"Write": {"Type": "Pass", "Parameters": values, "End": True}}
    assert values == json.loads(workflows.run(states)["output"])
