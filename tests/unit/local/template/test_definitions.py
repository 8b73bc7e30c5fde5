"""What the embedded stack refuses when a state machine is created, which is what AWS refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from steponce.lint.definitions import complaints
from steponce.local import LocalStack
from steponce.local.errors import TemplateError
from steponce.local.template.reader import read_plan

INNER = {"StartAt": "Inner", "States": {"Inner": {"Type": "Succeed"}}}
END: dict[str, Any] = {"Type": "Succeed"}
TASK: dict[str, Any] = {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "End": True}
MAP: dict[str, Any] = {"Type": "Map", "ItemProcessor": INNER, "End": True}
DISTRIBUTED = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}}
BATCH = {"MaxItemsPerBatch": 10}
READ = {"InputType": "JSON", "MaxItems": 10}
JSONATA = {"QueryLanguage": "JSONata"}
TEST = {"Variable": "$.a", "IsPresent": True, "Next": "B"}

ROLE = "arn:aws:iam::123456789012:role/any"
TEMPLATE = """
Transform: AWS::Serverless-2016-10-31
Parameters:
  Answer: { Type: String, Default: B, AllowedValues: [B, C] }
  Size: { Type: String, Default: small, AllowedValues: [small, large] }
Resources:
  Flow:
    Type: AWS::Serverless::StateMachine
    Properties:
      Name: flow
      DefinitionUri: flow.asl.json
      DefinitionSubstitutions: { Answer: !Ref Answer }
"""


def definition(**states: Any) -> dict[str, Any]:
    """A machine that starts with the first of these states."""
    return {"StartAt": next(iter(states)), "States": states}


def choice(rule: dict[str, Any], **more: Any) -> dict[str, Any]:
    return definition(A={"Type": "Choice", "Choices": [rule], "Default": "B", **more}, B=END)


def inside(**config: Any) -> dict[str, Any]:
    return definition(A=MAP | {"ItemProcessor": INNER | {"ProcessorConfig": config}})


def retry(**fields: Any) -> dict[str, Any]:
    return definition(A=TASK | {"Retry": [{"ErrorEquals": ["States.ALL"], **fields}]})


def catch(language: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return definition(A=TASK | language | {"Catch": [{"ErrorEquals": ["X"], "Next": "B", **fields}]}, B=END)


REFUSED: list[tuple[str, Any]] = [
    ("not a JSON object", [1]),
    ("the state machine: States must be", {"StartAt": "A"}),
    ("the state machine: States must be", {"StartAt": "A", "States": {}}),
    ("StartAt must name one", {"StartAt": "B", "States": {"A": END}}),
    ("no field 'Startat'", definition(A=END) | {"Startat": "A"}),
    ("Credentials must be", definition(A=TASK | {"Credentials": {}})),
    ("Credentials must be", definition(A=TASK | {"Credentials": None})),
    ("ResultPath cannot write to a variable", definition(A=TASK | {"ResultPath": "$order"})),
    ("Timestamp must be", definition(A={"Type": "Wait", "Timestamp": "2026-13-01T09:30:00Z", "End": True})),
    ("Label must be", definition(A=MAP | {"Label": ""})),
    ("Label must be", definition(A=MAP | {"Label": "a b"})),
    ("Label must be", definition(A=MAP | {"Label": "x" * 41})),
    ("MaxItemsPerBatch and", definition(A=MAP | {"ItemBatcher": BATCH | {"MaxItemsPerBatchPath": "$.a"}})),
    ("MaxItems and", definition(A=MAP | {"ItemReader": {"ReaderConfig": READ | {"MaxItemsPath": "$.a"}}})),
    ("TimeoutSeconds must be", definition(A=END) | {"TimeoutSeconds": "60"}),
    ("TimeoutSeconds must be", definition(A=END) | {"TimeoutSeconds": 0}),
    ("QueryLanguage must be", definition(A=END) | {"QueryLanguage": "SQL"}),
    ("A: a state must be an object", definition(A=3)),
    ("A: Type must be one of", definition(A={"Type": "Tusk"})),
    ("at most 80 characters", definition(**{"A" * 81: END})),
    ("A: it leads to 'B'", definition(A={"Type": "Pass", "Next": "B"})),
    ("A: it leads to 'B'", definition(A=TASK | {"Catch": [{"ErrorEquals": ["X"], "Next": "B"}]})),
    ("B: the state is not reachable", definition(A=END, B=END)),
    ("B: the state is not reachable", definition(A=END, B={"Type": "Pass", "Next": "B"})),
    (
        "C: the state is not reachable",
        definition(A=END, B={"Type": "Pass", "Next": "C"}, C={"Type": "Pass", "Next": "B"}),
    ),
    ("Inner: 2 states", definition(A={"Type": "Parallel", "Branches": [INNER, INNER], "End": True})),
    ("Inner: 2 states", definition(Inner=MAP)),
    ("Inner: it leads to 'A'", definition(A=MAP | {"ItemProcessor": definition(Inner=MAP | {"Next": "A"})})),
    ("either Next or End", definition(A={"Type": "Pass"})),
    ("either Next or End", definition(A={"Type": "Pass", "End": False})),
    ("either Next or End", definition(A={"Type": "Pass", "End": True, "Next": "B"}, B=END)),
    ("End must be true", definition(A={"Type": "Pass", "End": "true"})),
    ("no field 'End'", choice(TEST, End=True)),
    ("no field 'TimeoutSecs'", definition(A=TASK | {"TimeoutSecs": 3})),
    ("no field 'Arguments'", definition(A=TASK | {"Arguments": {}})),
    (
        "JSONata has no field 'Parameters'",
        definition(A=TASK | {"QueryLanguage": "JSONata", "Parameters": {}}),
    ),
    ("Resource must be an ARN", definition(A={"Type": "Task", "End": True})),
    ("Resource must be an ARN", definition(A=TASK | {"Resource": "lambda"})),
    ("TimeoutSeconds must be", definition(A=TASK | {"TimeoutSeconds": "${Seconds}"})),
    ("TimeoutSeconds must be", definition(A=TASK | {"TimeoutSeconds": 0})),
    ("exclude each other", definition(A=TASK | {"TimeoutSeconds": 3, "TimeoutSecondsPath": "$.a"})),
    ("must be less than", definition(A=TASK | {"TimeoutSeconds": 60, "HeartbeatSeconds": 60})),
    ("InputPath must be a path", definition(A=TASK | {"InputPath": "a"})),
    ("TimeoutSecondsPath must be", definition(A=TASK | {"TimeoutSecondsPath": None})),
    ("cannot write to the context", definition(A=TASK | {"ResultPath": "$$.a"})),
    ("'a.$' must be a path", definition(A=TASK | {"Parameters": {"b": [{"a.$": "text"}]}})),
    ("'a.$' must be a path", definition(A=TASK | {"Parameters": {"a.$": "States.MathSub($.a, 1)"}})),
    ("'a.$' must be a path", definition(A=TASK | {"Parameters": {"a.$": "States.Format('{}', $.a"}})),
    ("'a.$' must be a path", definition(A=TASK | {"ResultSelector": {"a.$": 3}})),
    ("Retry must be a list", definition(A=TASK | {"Retry": {}})),
    ("ErrorEquals must be", definition(A=TASK | {"Retry": [{"MaxAttempts": 1}]})),
    ("ErrorEquals must be", definition(A=TASK | {"Retry": [{"ErrorEquals": []}]})),
    ("States.ALL must stand alone", retry(ErrorEquals=["States.ALL", "X"])),
    (
        "Retry[0]: States.ALL must stand alone",
        definition(A=TASK | {"Retry": [{"ErrorEquals": ["States.ALL"]}, {"ErrorEquals": ["X"]}]}),
    ),
    ("no field 'MaxAttempt'", retry(MaxAttempt=1)),
    ("MaxAttempts must be", retry(MaxAttempts=-1)),
    ("IntervalSeconds must be", retry(IntervalSeconds=0)),
    ("MaxDelaySeconds must be", retry(MaxDelaySeconds=31_622_401)),
    ("BackoffRate must be", retry(BackoffRate=0.5)),
    ("JitterStrategy must be", retry(JitterStrategy="SOME")),
    ("Catch[0]: Next must be", definition(A=TASK | {"Catch": [{"ErrorEquals": ["X"]}]})),
    ("Choices must be a list", definition(A={"Type": "Choice", "Choices": []})),
    ("Choices[0]: Next must be", choice({"Variable": "$.a", "IsPresent": True})),
    ("one comparison", choice(TEST | {"IsNull": True})),
    ("one comparison", choice({"Variable": "$.a", "Equals": 1, "Next": "B"})),
    ("Choices[0].And[0]", choice({"And": [{"Variable": "$.a"}], "Next": "B"})),
    ("And must be a list", choice({"And": [], "Next": "B"})),
    ("Choices[0].Not", choice({"Not": TEST, "Next": "B"})),
    ("IsPresent cannot be 'yes'", choice(TEST | {"IsPresent": "yes"})),
    ("NumericEquals cannot be", choice({"Variable": "$.a", "NumericEquals": "1", "Next": "B"})),
    ("Variable must be a path", choice(TEST | {"Variable": "a"})),
    ("has a Condition", choice(TEST, QueryLanguage="JSONata")),
    ("needs one of Seconds", definition(A={"Type": "Wait", "End": True})),
    ("Seconds must be", definition(A={"Type": "Wait", "Seconds": -1, "End": True})),
    ("needs an ItemProcessor", definition(A={"Type": "Map", "End": True})),
    ("MaxConcurrency must be", definition(A=MAP | {"MaxConcurrency": -1})),
    ("ItemReader must be an object", definition(A=MAP | {"ItemReader": "s3"})),
    ("ItemBatcher must be an object", definition(A=MAP | {"ItemBatcher": 10})),
    ("ProcessorConfig must be", definition(A=MAP | {"ItemProcessor": INNER | {"ProcessorConfig": []}})),
    ("A: Error must be text", definition(A={"Type": "Fail", "Error": {"Ref": "E"}})),
    ("Branches must be a list", definition(A={"Type": "Parallel", "Branches": [], "End": True})),
    ("exclude each other", definition(A={"Type": "Fail", "Error": "x", "ErrorPath": "$.e"})),
    ("Catch[0] in JSONata has no field 'ResultPath'", catch(JSONATA, ResultPath="$.error")),
    ("Catch[0] in JSONPath has no field 'Output'", catch({}, Output="{% $states.errorOutput %}")),
    ("Choices[0] in JSONPath has no field 'Output'", choice(TEST | {"Output": {"a": 1}})),
    ("cannot be JSONPath", definition(A=END | {"QueryLanguage": "JSONPath"}) | JSONATA),
    ("A: Comment must be text", definition(A={"Type": "Succeed", "Comment": 1})),
    ("The state machine: Comment must be text", definition(A=END) | {"Comment": ["a"]}),
    ("InputPath must be a path", definition(A=TASK | {"InputPath": "$.a["})),
    ("'a.$' must be a path", definition(A=TASK | {"Parameters": {"a.$": "$.b[?(@.x > 1]"}})),
    ("ResultPath must name one place", definition(A=TASK | {"ResultPath": "$.a[*]"})),
    ("ResultPath must name one place", definition(A=TASK | {"ResultPath": "$..a"})),
    ("'a.$' and 'a' make one field", definition(A=TASK | {"Parameters": {"b": {"a": 1, "a.$": "$.a"}}})),
    ("StringEqualsPath cannot be", choice({"Variable": "$.a", "StringEqualsPath": "b", "Next": "B"})),
    ("TimestampEquals cannot be", choice({"Variable": "$.a", "TimestampEquals": "2026-11-27", "Next": "B"})),
    ("Timestamp must be a time", definition(A={"Type": "Wait", "Timestamp": "tomorrow", "End": True})),
    (
        "Timestamp must be a time",
        definition(A={"Type": "Wait", "Timestamp": "2026-11-27T09:30:00z", "End": True}),
    ),
    ("Mode must be", inside(Mode="BOTH")),
    ("ExecutionType must be", inside(Mode="DISTRIBUTED")),
    ("ExecutionType must be", inside(Mode="DISTRIBUTED", ExecutionType="FAST")),
    ("Parameters and ItemSelector", definition(A=MAP | {"Parameters": {}, "ItemSelector": {}})),
    ("ToleratedFailureCount must be", definition(A=MAP | {"ToleratedFailureCount": -1})),
    ("ToleratedFailurePercentage must be", definition(A=MAP | {"ToleratedFailurePercentage": 101})),
    ("A: Assign must be an object", definition(A={"Type": "Pass", "Assign": [], "End": True})),
    ("this is 'a.b.$'", definition(A={"Type": "Pass", "Assign": {"a.b.$": "$.a"}, "End": True})),
    ("this is 'states'", catch(JSONATA, Assign={"states": 1})),
    ("this is '1st'", choice({"Condition": "{% true %}", "Assign": {"1st": 1}, "Next": "B"}, **JSONATA)),
    ("Condition must be", choice({"Condition": "$x > 1", "Next": "B"}, **JSONATA)),
    (
        "Output: an expression begins with {%",
        definition(A={"Type": "Pass", "Output": {"a": ["$x %}"]}, "End": True} | JSONATA),
    ),
    (
        "Arguments: an expression begins with {%",
        definition(A=TASK | JSONATA | {"Arguments": {"a": "{% $x }"}}),
    ),
    (
        "Inner: QueryLanguage cannot be JSONPath",
        definition(A=MAP | {"ItemProcessor": definition(Inner=END | {"QueryLanguage": "JSONPath"})})
        | JSONATA,
    ),
]

ACCEPTED: dict[str, Any] = {
    "no Default": definition(A={"Type": "Choice", "Choices": [TEST]}, B=END),
    "a path to the context": choice({"Variable": "$.a", "StringEqualsPath": "$$.Execution.Id", "Next": "B"}),
    "tests in tests": choice({"And": [{"Or": [{"Not": {"Variable": "$.a", "IsNull": True}}]}], "Next": "B"}),
    "no concurrency limit": definition(A=MAP | {"MaxConcurrency": 0}),
    "a distributed map": definition(
        A=MAP
        | {
            "Label": "each",
            "ItemReader": {"Resource": "arn:aws:states:::s3:getObject", "ReaderConfig": {"InputType": "CSV"}},
            "ResultWriter": {"Resource": "arn:aws:states:::s3:putObject", "WriterConfig": {}},
            "ToleratedFailurePercentage": 0.5,
            "ItemProcessor": INNER | DISTRIBUTED,
        }
    ),
    "the old kind of map": definition(A={"Type": "Map", "Iterator": INNER, "Parameters": {}, "End": True}),
    "a map in one execution": inside(Mode="INLINE"),
    "names with brackets and stars": definition(
        A=TASK
        | {"InputPath": "$['a[']", "ResultPath": "$['a*b'][\"c:d\"].c[0]", "Parameters": {"a.$": "$['(']"}}
    ),
    "a time": definition(
        A={"Type": "Wait", "Timestamp": "2026-11-27T09:30:00.5+01:00", "Next": "B"},
        B={"Type": "Wait", "Timestamp": "{% $x %}", "End": True} | JSONATA,
    ),
    "text that is no expression": definition(
        A={
            "Type": "Pass",
            "Output": {"a": "50 %", "b": "{{% x %}}", "c": "{ % }", "d": " {% $x %} "},
            "End": True,
        }
        | JSONATA
    ),
    "whole backoff": retry(BackoffRate=2, IntervalSeconds=1, MaxAttempts=0, Comment="why"),
    "variables": definition(A={"Type": "Pass", "Assign": {"x.$": "$.a"}, "Next": "B"}, B=END),
    "a variable, a filter, a call in a call": definition(
        A=TASK
        | {
            "Parameters": {
                "a.$": "$x.a",
                "b.$": "$..c[?(@.x > 1)]",
                "c.$": "States.Format('it\\'s {} (', States.MathAdd($.a, 1))",
            }
        }
    ),
    "nulls": definition(
        A={"Type": "Pass", "InputPath": None, "OutputPath": None, "ResultPath": None, "End": True}
    ),
    "a Result with its path": definition(A={"Type": "Pass", "Result": 1, "ResultPath": "$.a", "End": True}),
    "a cause that is worked out": definition(A={"Type": "Fail", "CausePath": "States.Format('{}', $.a)"}),
    "a loop without an end": definition(A={"Type": "Pass", "Next": "A"}),
    "JSONata": definition(
        A=TASK
        | {
            "Arguments": {"a": "{% 1 %}"},
            "TimeoutSeconds": "{% 9 %}",
            "HeartbeatSeconds": "{% 3 %}",
            "Output": "{% 1 %}",
        }
    )
    | {"QueryLanguage": "JSONata"},
    "JSONata in one state": choice(
        {"Condition": "{% true %}", "Output": 1, "Next": "B", "Comment": "{% is how it begins"}, **JSONATA
    ),
    "a catcher in JSONPath": catch({}, ResultPath="$.error", Assign={"error.$": "$"}, Comment="why"),
    "a catcher in JSONata": catch(JSONATA, Output="{% $states.errorOutput %}", Assign={"a": 1}),
    "a catcher that discards the error": catch({}, ResultPath=None),
    "each language named where it is spoken": definition(
        A={"Type": "Pass", "Output": 1, "Next": "B"} | JSONATA, B=END | {"QueryLanguage": "JSONPath"}
    )
    | {"QueryLanguage": "JSONPath"},
    "JSONPath in a branch of a Parallel in JSONata": definition(
        A={
            "Type": "Parallel",
            "QueryLanguage": "JSONata",
            "Branches": [definition(Inner=TASK | {"Parameters": {"a.$": "$.a"}})],
            "Output": "{% 1 %}",
            "End": True,
        }
    ),
    "an activity": definition(A=TASK | {"Resource": "arn:aws:states:us-east-1:123456789012:activity:a"}),
    "a role": definition(A=TASK | {"Credentials": {"RoleArn": ROLE}}),
    "a role in JSONata": definition(A={**TASK, **JSONATA, "Credentials": "{% $states.input.credentials %}"}),
    "a role by path": definition(A=TASK | {"Credentials": {"RoleArn.$": "$.role"}}),
    "a label": definition(A=MAP | {"Label": "Orders-2026_" + "x" * 28}),
    "a batch": definition(A=MAP | {"ItemBatcher": BATCH, "ItemReader": {"ReaderConfig": READ}}),
    "result in brackets": definition(A=TASK | {"ResultPath": "$['a b']"}),
}


@pytest.mark.parametrize(("said", "wrong"), REFUSED)
def test_what_aws_refuses_is_refused(said: str, wrong: Any):
    """And the complaint says where it is and what is wrong."""
    found = complaints(json.dumps(wrong))
    assert any(said.lower() in text.lower() for text in found), found


@pytest.mark.parametrize("right", ACCEPTED.values(), ids=ACCEPTED)
def test_what_aws_accepts_is_accepted(right: Any):
    """Also what the embedded engine itself does not run, and what linters take for a mistake."""
    assert [] == complaints(json.dumps(right))


WAITING = {
    "a callback": TASK | {"Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken"},
    "a job": TASK | {"Resource": "arn:aws:states:::states:startExecution.sync:2"},
    "an activity": TASK | {"Resource": "arn:aws:states:us-east-1:123456789012:activity:a"},
    "a distributed Map": MAP | {"ItemProcessor": INNER | DISTRIBUTED},
}


@pytest.mark.parametrize("state", WAITING.values(), ids=WAITING)
def test_what_an_express_workflow_cannot_do_is_refused_there(state: dict[str, Any]):
    """Also in a branch. A Standard workflow can do it. Of a distributed Map's items AWS says nothing."""
    machine = definition(A=state)
    inside = definition(B={"Type": "Parallel", "Branches": [machine], "End": True})
    (said,) = {text for one in (machine, inside) for text in complaints(json.dumps(one), "EXPRESS")}
    assert said.startswith("A: ") if state["Type"] == "Map" else said.startswith("A: Resource: ")
    assert "Express workflow cannot" in said
    assert [] == complaints(json.dumps(machine)) == complaints(json.dumps(inside))

    items = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "EXPRESS"}}
    machine = definition(B=MAP | {"ItemProcessor": machine | items})
    assert [] == complaints(json.dumps(machine))


def test_an_express_workflow_may_call_and_map():
    """A call that does not wait, and a Map whose items are its own."""
    for state in (TASK, MAP):
        assert [] == complaints(json.dumps(definition(A=state)), "EXPRESS")


def test_a_definition_has_an_end():
    """AWS takes a mebibyte; nothing larger is even parsed."""
    assert "1,048,576 are allowed" in complaints(" " * 1_048_577)[0]
    assert "not JSON" in complaints("{")[0]


@pytest.mark.parametrize(
    "many",
    [
        definition(**{f"S{n}": {"Type": "Pass", "Next": f"S{n + 1}"} for n in range(3_000)}, S3000=END),
        definition(A=TASK | {"Parameters": {"a.$": "States.Format('" + "\\\\" * 100_000}}),
    ],
    ids=["states", "text"],
)
def test_a_large_definition_is_read_in_one_go(many: Any):
    """The time grows as its size does."""
    complaints(json.dumps(many))


def template(folder: Path, **states: Any) -> Path:
    (folder / "flow.asl.json").write_text(json.dumps(definition(**states)))
    (folder / "template.yaml").write_text(TEMPLATE)
    return folder / "template.yaml"


def test_a_template_whose_machine_aws_would_refuse_is_refused(tmp_path: Path):
    """Before anything is created: which machine, which state, and what is wrong."""
    path = template(tmp_path, A={"Type": "Pass", "Comment": "${Answer}", "End": True}, Lost=END)
    with pytest.raises(TemplateError, match="the state machine flow: Lost: the state is not reachable"):
        LocalStack.from_template(path)


def test_the_type_of_a_machine_is_looked_at(tmp_path: Path):
    """With each value of a parameter that has AllowedValues."""
    path = template(tmp_path, A=WAITING["a callback"])
    path.write_text(path.read_text().replace("Answer: !Ref Answer", "Size: !Ref Size"))
    read_plan(path, stack_name="x", region="us-east-1")
    path.write_text(path.read_text().replace("Name: flow", "Name: flow\n      Type: !Ref Kind"))
    kinds = "Kind: { Type: String, Default: STANDARD, AllowedValues: [STANDARD, EXPRESS] }"
    path.write_text(path.read_text().replace("Parameters:\n", f"Parameters:\n  {kinds}\n"))
    with pytest.raises(
        TemplateError, match="flow with Kind=EXPRESS: A: Resource: an Express workflow cannot"
    ):
        read_plan(path, stack_name="x", region="us-east-1")


def test_each_choice_of_a_parameter_is_looked_at(tmp_path: Path):
    """A machine that only another choice would break is named with that choice."""
    path = template(tmp_path, A={"Type": "Pass", "Next": "${Answer}"}, B=END)
    with pytest.raises(TemplateError, match="flow with Answer=C: A: it leads to 'C'"):
        read_plan(path, stack_name="x", region="us-east-1")


def test_a_machine_made_later_is_refused_by_the_api(small_stack: LocalStack):
    """CreateStateMachine and UpdateStateMachine answer as AWS does."""
    sfn = small_stack.boto3("stepfunctions")
    right, wrong = (json.dumps(item) for item in (definition(A=END), definition(A=END, Lost=END)))
    with pytest.raises(ClientError) as created:
        sfn.create_state_machine(name="later", definition=wrong, roleArn=ROLE)
    arn = sfn.create_state_machine(name="later", definition=right, roleArn=ROLE)["stateMachineArn"]
    with pytest.raises(ClientError) as updated:
        sfn.update_state_machine(stateMachineArn=arn, definition=wrong)

    waiting = json.dumps(definition(A=WAITING["a callback"]))
    with pytest.raises(ClientError, match="an Express workflow cannot wait"):
        sfn.create_state_machine(name="later", definition=waiting, roleArn=ROLE, type="EXPRESS")

    for refused in (created, updated):
        assert "InvalidDefinition" == refused.value.response["Error"]["Code"]
        assert "Lost: the state is not reachable" in str(refused.value)
    assert right == sfn.describe_state_machine(stateMachineArn=arn)["definition"]
    sfn.update_state_machine(stateMachineArn=arn, roleArn=f"{ROLE}-2")
    sfn.delete_state_machine(stateMachineArn=arn)
