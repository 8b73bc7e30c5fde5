"""Which services the tasks of the local stack reach, and what their parameters and results look like."""

import json
import re
from pathlib import Path

import pytest

from steponce.local import LocalStackError
from steponce.local.deploy import Deployment
from steponce.local.template.plan import MachinePlan
from tests.patience import eventually
from tests.unit.local.moto_patches.workflows import Workflows, task, waiting_task

PAGE = Path(__file__).parents[4] / "docs" / "local-stack.md"
FEATURES = PAGE.with_name("testing.md").read_text()
ITEM = {"TableName": "small-ItemsTable", "Key": {"id": {"S": "integrations"}}}
CALL = {"FunctionName": "small-MisbehaveFunction"}


@pytest.fixture(scope="module")
def workflows(small_stack):
    return Workflows(small_stack)


@pytest.fixture(scope="module")
def names(workflows):
    """What the tasks are about."""
    stack = workflows.stack
    stack.boto3("s3").create_bucket(Bucket="integrations")
    stack.boto3("secretsmanager").create_secret(Name="integrations", SecretString="hush")
    return {
        "queue": stack.boto3("sqs").create_queue(QueueName="integrations")["QueueUrl"],
        "topic": stack.boto3("sns").create_topic(Name="integrations")["TopicArn"],
        "machine": workflows.make({"Echo": {"Type": "Pass", "End": True}}),
    }


OPTIMIZED = {
    "dynamodb:putItem": ({"TableName": "small-ItemsTable", "Item": {"id": {"S": "integrations"}}}, set()),
    "dynamodb:getItem": (ITEM, set()),
    "dynamodb:updateItem": (
        {
            **ITEM,
            "UpdateExpression": "SET n = :n",
            "ExpressionAttributeValues": {":n": {"N": "1"}},
            "ReturnValues": "ALL_NEW",
        },
        {"Attributes"},
    ),
    "dynamodb:deleteItem": (ITEM, set()),
    "events:putEvents": (
        {"Entries": [{"Source": "test", "DetailType": "tried", "Detail": {"paid": True}}]},
        {"Entries", "FailedEntryCount"},
    ),
    "lambda:invoke": ({**CALL, "Payload": {}}, {"Payload", "StatusCode", "ExecutedVersion"}),
    "sns:publish": ({"TopicArn": "{topic}", "Message": {"paid": True}}, {"MessageId"}),
    "sqs:sendMessage": (
        {
            "QueueUrl": "{queue}",
            "MessageBody": {"paid": True},
            "MessageAttributes": {"kind": {"DataType": "String", "StringValue": "order"}},
        },
        {"MessageId", "MD5OfMessageBody", "MD5OfMessageAttributes"},
    ),
    "states:startExecution": ({"StateMachineArn": "{machine}"}, {"ExecutionArn", "StartDate"}),
    "states:startExecution.sync": ({"StateMachineArn": "{machine}"}, {"Output", "Status"}),
    "states:startExecution.sync:2": ({"StateMachineArn": "{machine}"}, {"Output", "Status"}),
}
SDK = {
    "aws-sdk:dynamodb:getItem": (ITEM, set()),
    "aws-sdk:eventbridge:putEvents": (
        {"Entries": [{"Source": "test", "DetailType": "tried", "Detail": "{}"}]},
        {"Entries", "FailedEntryCount"},
    ),
    "aws-sdk:lambda:invoke": ({**CALL, "Payload": {}}, {"Payload", "StatusCode"}),
    "aws-sdk:s3:putObject": ({"Bucket": "integrations", "Key": "a", "Body": {"paid": True}}, {"ETag"}),
    "aws-sdk:secretsmanager:getSecretValue": ({"SecretId": "integrations"}, {"SecretString", "CreatedDate"}),
    "aws-sdk:sfn:startExecution": ({"StateMachineArn": "{machine}"}, {"ExecutionArn", "StartDate"}),
    "aws-sdk:sns:publish": ({"TopicArn": "{topic}", "Message": "paid"}, {"MessageId"}),
    "aws-sdk:sqs:sendMessage": ({"QueueUrl": "{queue}", "MessageBody": "paid"}, {"MessageId"}),
}
TOKEN = {"token.$": "$$.Task.Token"}
WAITING = {
    "events:putEvents": {"Entries": [{"Source": "test", "DetailType": "asked", "Detail": TOKEN}]},
    "lambda:invoke": {**CALL, "Payload": TOKEN},
    "sns:publish": {"TopicArn": "{topic}", "Message": TOKEN},
    "sqs:sendMessage": {"QueueUrl": "{queue}", "MessageBody": TOKEN},
    "states:startExecution": {"StateMachineArn": "{machine}", "Input": TOKEN},
}


def filled(parameters, names):
    """The parameters with the names in their places."""
    text = json.dumps(parameters)
    for key, value in names.items():
        text = text.replace(f"{{{key}}}", value)
    return json.loads(text)


@pytest.mark.parametrize("resource", [*OPTIMIZED, *SDK])
def test_the_integration_runs(workflows, names, resource):
    """With parameters and results in PascalCase."""
    parameters, expected = (OPTIMIZED | SDK)[resource]
    found = workflows.run({"Try": task(resource, filled(parameters, names), {})})
    assert "SUCCEEDED" == found["status"], found["cause"]
    assert expected <= json.loads(found["output"]).keys()


VALUES = {
    "paid": {"Bool": True},
    "gone": {"Nul": True},
    "tags": {"Ss": ["a"]},
    "sizes": {"Ns": ["1"]},
    "name": {"S": "o-1"},
    "Bool": {"M": {"BOOL": {"Bool": False}, "list": {"L": [{"Bool": True}, {"Nul": True}]}}},
}
ONE_ITEM = {
    "TableName": "small-ItemsTable",
    "KeyConditionExpression": "id = :id",
    "ExpressionAttributeValues": {":id": {"S": "flags"}},
}
READS = {
    "query": (ONE_ITEM, lambda found: found["Items"][0]),
    "getItem": (
        {"TableName": "small-ItemsTable", "Key": {"id": {"S": "flags"}}},
        lambda found: found["Item"],
    ),
    "batchGetItem": (
        {"RequestItems": {"small-ItemsTable": {"Keys": [{"id": {"S": "flags"}}]}}},
        lambda found: found["Responses"]["small-ItemsTable"][0],
    ),
}
PUT = {"TableName": "small-ItemsTable", "Item": {"id": {"S": "flags"}, **VALUES}}
WRITES = {
    "putItem": PUT,
    "transactWriteItems": {"TransactItems": [{"Put": PUT}]},
    "batchWriteItem": {"RequestItems": {"small-ItemsTable": [{"PutRequest": {"Item": PUT["Item"]}}]}},
}


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("write", WRITES)
def test_sdk_integrations_name_the_types_of_values_as_the_sdk_for_java_does(workflows, write, read):
    """`Bool` for `BOOL`, also inside a map or a list; an attribute of such a name keeps it."""
    parameters, item_of = READS[read]
    states = {
        "Write": task(f"aws-sdk:dynamodb:{write}", WRITES[write], {"Next": "Read"}),
        "Read": task(f"aws-sdk:dynamodb:{read}", parameters, {}),
    }
    found = workflows.run(states)
    assert "SUCCEEDED" == found["status"], found["cause"]
    assert PUT["Item"] == item_of(json.loads(found["output"]))


def test_optimized_integrations_name_the_types_of_values_as_dynamodb_does(workflows):
    """Also in an answer."""
    item = {"id": {"S": "flags"}, "paid": {"BOOL": True}, "tags": {"SS": ["a"]}, "gone": {"NULL": True}}
    states = {
        "Write": task("dynamodb:putItem", {"TableName": "small-ItemsTable", "Item": item}, {"Next": "Read"}),
        "Read": task("dynamodb:getItem", READS["getItem"][0], {}),
    }
    assert item == json.loads(workflows.run(states)["output"])["Item"]


@pytest.mark.parametrize("resource", WAITING)
def test_the_integration_waits_for_its_token(workflows, names, resource):
    """What it hands the token to may answer whenever it wants."""
    waiting = task(f"{resource}.waitForTaskToken", filled(WAITING[resource], names), {"TimeoutSeconds": 60})
    arn = workflows.start({"Wait": waiting})
    eventually(lambda: "TaskSubmitted" in workflows.history(arn))
    scheduled = json.dumps(workflows.sfn.get_execution_history(executionArn=arn)["events"], default=str)
    token = re.search(r'token[\\": ]+([^\\"]+)', scheduled)[1]
    workflows.sfn.send_task_success(taskToken=token, output='"answered"')
    assert '"answered"' == workflows.end(arn)["output"]


def test_the_page_lists_the_optimized_integrations():
    """All that run, each with the patterns that it has."""
    rows = re.findall(r"^\| `(\w+:\w+)` \|(.*)\|$", PAGE.read_text(), re.MULTILINE)
    listed = {f"{name}{form}" for name, forms in rows for form in ["", *re.findall(r"`(\..*?)`", forms)]}
    assert {*OPTIMIZED, *(f"{name}.waitForTaskToken" for name in WAITING)} == listed


@pytest.mark.parametrize(
    "resource", ["ecs:runTask", "apigateway:invoke", "http:invoke", "aws-sdk:kms:decrypt"]
)
def test_a_service_that_the_stack_does_not_have_is_named(workflows, resource):
    """And nothing reaches AWS."""
    found = workflows.run({"Try": task(resource, {}, {})})
    assert "States.Runtime" == found["error"]
    called = resource.split(":")[-2]
    assert f"not supported on the local stack: a task that calls {called}." in found["cause"]


@pytest.mark.parametrize("is_plain", [False, True])
def test_a_function_of_another_runtime_fails_the_task_that_calls_it(workflows, is_plain):
    """Under the name that Lambda has for it, also where Resource is the function."""
    state = task("lambda:invoke", {"FunctionName": "small-ForeignFunction"}, {})
    if is_plain:
        state["Resource"] = "arn:aws:lambda:us-east-1:123456789012:function:small-ForeignFunction"
    found = workflows.run({"Try": state})
    assert "Lambda.InvalidRuntimeException" == found["error"]
    assert "not supported on the local stack: the runtime nodejs22.x." in found["cause"]


CATCH_ALL = {"Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Caught"}]}


@pytest.mark.parametrize("is_plain", [False, True])
@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_a_number_that_is_no_json_fails_the_task_that_gets_it(workflows, number, is_plain):
    """It made records that nobody could read. A Catch does not see States.Runtime."""
    state = task("lambda:invoke", {"FunctionName": "small-MisbehaveFunction", "Payload.$": "$"}, CATCH_ALL)
    if is_plain:
        state["Resource"] = "arn:aws:lambda:us-east-1:123456789012:function:small-MisbehaveFunction"
        del state["Parameters"]
    found = workflows.run({"Try": state, "Caught": {"Type": "Pass", "End": True}}, {"number": number})
    assert ("FAILED", "States.Runtime") == (found["status"], found["error"])
    assert f"The value {number} is no JSON." in found["cause"]


NOTHING = {"found.$": "$.nothing"}
WRONG = {"sum.$": "States.MathAdd($.text, 1)"}


@pytest.mark.parametrize("is_plain", [False, True])
@pytest.mark.parametrize(
    "part", [{"Parameters": NOTHING}, {"Parameters": WRONG}, {"ResultSelector": NOTHING}]
)
def test_a_value_that_cannot_be_made_fails_the_execution(workflows, part, is_plain):
    """Where Resource is a function, a Catch took it. With lambda:invoke none did."""
    state = task(
        "lambda:invoke", {"FunctionName": "small-MisbehaveFunction", "Payload": {}}, CATCH_ALL | part
    )
    if is_plain:
        state["Resource"] = "arn:aws:lambda:us-east-1:123456789012:function:small-MisbehaveFunction"
    found = workflows.run({"Try": state, "Caught": {"Type": "Pass", "End": True}}, {"text": "x"})
    assert ("FAILED", "States.Runtime") == (found["status"], found["error"])


@pytest.mark.parametrize("output", ["NaN", '{"a": Infinity}', "1e999", "{"])
def test_an_answer_that_is_no_json_is_refused(workflows, output):
    """The step goes on waiting for one that is."""
    arn = workflows.start({"Wait": waiting_task()})
    token = workflows.token(arn)
    with pytest.raises(workflows.sfn.exceptions.InvalidOutput):
        workflows.sfn.send_task_success(taskToken=token, output=output)
    workflows.sfn.send_task_success(taskToken=token, output="1e3")
    assert "SUCCEEDED" == workflows.end(arn)["status"]


WANTED = {"Type": "Pass", "Output": "{% $states.input %}", "End": True}
KEPT = {"Type": "Pass", "Assign": {"kept.$": "$.paid"}, "Next": "Use"}
USED = {"Type": "Pass", "Parameters": {"paid.$": "$kept"}, "End": True}
NOT_RUN = {
    "JSONata": ({"Try": WANTED}, {"QueryLanguage": "JSONata"}),
    "variables (`Assign`)": ({"Try": KEPT, "Use": USED}, {}),
    "activities": ({"Try": {**task("x", {}, {}), "Resource": "arn:aws:states:::activity:pack"}}, {}),
    "`.sync` of other services": ({"Try": task("codebuild:startBuild.sync", {}, {})}, {}),
}
BATCHES = {
    "Resource": "arn:aws:states:::s3:putObject",
    "Parameters": {"Bucket": "integrations", "Prefix": "batches"},
}
WRITTEN = {"Transformation": "NONE", "OutputType": "JSON"}
READER = {
    "Resource": "arn:aws:states:::s3:getObject",
    "Parameters": {"Bucket": "integrations", "Key": "items"},
}
FROM_CSV = {"InputType": "CSV", "CSVHeaderLocation": "FIRST_ROW"}
NOT_CREATED = {
    "`ItemBatcher`": {"ItemBatcher": {"MaxItemsPerBatch": 2}},
    "`ToleratedFailureCount`, `ToleratedFailurePercentage`": {"ToleratedFailurePercentage": 5},
    "`WriterConfig` of a ResultWriter": {"ResultWriter": {**BATCHES, "WriterConfig": WRITTEN}},
    "`CSVDelimiter`": {"ItemReader": {**READER, "ReaderConfig": {**FROM_CSV, "CSVDelimiter": "PIPE"}}},
    "an `InputType` other than `JSON` and `CSV`": {
        "ItemReader": {**READER, "ReaderConfig": {"InputType": "JSONL"}}
    },
}


@pytest.mark.parametrize("feature", NOT_RUN)
def test_a_feature_that_does_not_run_says_so(workflows, feature):
    """The execution fails, and its cause names what it needs."""
    states, fields = NOT_RUN[feature]
    found = workflows.run(states, {"paid": True}, **fields)
    assert "States.Runtime" == found["error"]
    assert "not supported on the local stack: " in found["cause"]


RULES = {
    "a condition": {
        "QueryLanguage": "JSONata",
        "Choices": [{"Condition": "{% $states.input.paid %}", "Next": "Yes"}],
    },
    "a variable on the right": {
        "Choices": [{"Variable": "$.n", "NumericEqualsPath": "$kept", "Next": "Yes"}],
    },
    "a variable that is there": {"Choices": [{"Variable": "$kept", "IsPresent": True, "Next": "Yes"}]},
    "a variable that is not": {"Choices": [{"Variable": "$other", "IsPresent": False, "Next": "Yes"}]},
    "a variable on the left": {"Choices": [{"Variable": "$kept.id", "NumericEquals": 1, "Next": "Yes"}]},
    "a variable in a Not": {
        "Choices": [{"Not": {"Variable": "$kept", "IsNull": True}, "Next": "Yes"}],
    },
}


@pytest.mark.parametrize("has_default", [False, True])
@pytest.mark.parametrize("rule", RULES)
def test_a_rule_that_does_not_run_says_so(workflows, rule, has_default):
    """Nothing catches that, and no other branch is taken."""
    choose = {"Type": "Choice", **RULES[rule], **({"Default": "No"} if has_default else {})}
    branch = {
        "Keep": {"Type": "Pass", "Assign": {"kept": 1}, "Next": "Choose"},
        "Choose": choose,
        "Yes": {"Type": "Succeed"},
        **({"No": {"Type": "Succeed"}} if has_default else {}),
    }
    states = {
        "All": {
            "Type": "Parallel",
            "Branches": [{"StartAt": "Keep", "States": branch}],
            **CATCH_ALL,
            "End": True,
        },
        "Caught": {"Type": "Pass", "End": True},
    }
    found = workflows.run(states, {"n": 1, "paid": True})
    assert ("FAILED", "States.Runtime") == (found["status"], found["error"])
    assert "not supported on the local stack: " in found["cause"]


@pytest.mark.usefixtures("names")
def test_a_distributed_map_reads_its_items_from_s3(workflows):
    """From a JSON object, as the page says; its iterations are executions of their own on AWS."""
    workflows.stack.boto3("s3").put_object(Bucket="integrations", Key="items.json", Body=b"[1, 2]")
    reader = {
        "Resource": "arn:aws:states:::s3:getObject",
        "ReaderConfig": {"InputType": "JSON"},
        "Parameters": {"Bucket": "integrations", "Key": "items.json"},
    }
    inside = {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
        "StartAt": "Go",
        "States": {"Go": {"Type": "Pass", "End": True}},
    }
    found = workflows.run(
        {"All": {"Type": "Map", "ItemReader": reader, "ItemProcessor": inside, "End": True}}
    )
    assert [1, 2] == json.loads(found["output"])


def test_the_items_of_a_distributed_map_may_be_express(workflows):
    """Here they run as those of STANDARD do. The same words in data stay data."""
    config = {"Mode": "DISTRIBUTED", "ExecutionType": "EXPRESS"}
    go = {"Type": "Pass", "Result": config, "End": True}
    inside = {"ProcessorConfig": config, "StartAt": "Go", "States": {"Go": go}}
    found = workflows.run({"All": {"Type": "Map", "ItemProcessor": inside, "End": True}}, [1])
    assert [config] == json.loads(found["output"])


@pytest.mark.parametrize(
    "fields",
    [
        *NOT_CREATED.values(),
        {"ToleratedFailureCount": 2},
        {"ToleratedFailureCountPath": "$.most"},
        {"ToleratedFailurePercentagePath": "$.most"},
    ],
    ids=[*NOT_CREATED, "count", "path of count", "path of percentage"],
)
def test_a_stack_says_which_definition_its_engine_does_not_take(small_stack, fields):
    """Nothing of AWS's own refusals is left by then."""
    config = {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}
    go = {"Type": "Pass", "End": True}
    inside = {"ProcessorConfig": config, "StartAt": "Go", "States": {"Go": go}}
    states = {"All": {"Type": "Map", "ItemProcessor": inside, "End": True, **fields}}
    plan = MachinePlan(
        "Batches", "batches", "arn", json.dumps({"StartAt": "All", "States": states}), "STANDARD"
    )
    with pytest.raises(LocalStackError, match="not supported on the local stack: the definition of batches"):
        Deployment(small_stack.boto3)._make_machine(plan)


def test_the_page_lists_the_features_that_do_not_run():
    """Each as the tests above try it."""
    table = FEATURES.partition("| feature of the definition | answer |\n| --- | --- |\n")[2]
    rows = re.findall(r"^\| (.*) \| .* \|$", table, re.MULTILINE)
    assert [*NOT_RUN, *NOT_CREATED] == rows


@pytest.mark.parametrize(
    ("resource", "parameters", "error"),
    [
        ("sqs:sendMessage", {"QueueUrl": "{queue}-2", "MessageBody": "x"}, "SQS.QueueDoesNotExistException"),
        ("sns:publish", {"TopicArn": "{topic}-2", "Message": "x"}, "SNS.NotFoundException"),
        (
            "aws-sdk:sfn:startExecution",
            {"StateMachineArn": "{machine}-2"},
            "Sfn.StateMachineDoesNotExistException",
        ),
        ("aws-sdk:s3:getObject", {"Bucket": "integrations", "Key": "b"}, "S3.NoSuchKeyException"),
    ],
)
def test_an_error_has_the_name_of_the_sdk_s_class(workflows, names, resource, parameters, error):
    """With the prefix of the integration."""
    assert error == workflows.run({"Try": task(resource, filled(parameters, names), {})})["error"]


def test_an_event_that_is_refused_fails_its_task(workflows):
    """The cause is the answer of PutEvents as text."""
    entries = [{"Source": "test", "DetailType": "tried", "Detail": "{"}]
    found = workflows.run({"Put": task("events:putEvents", {"Entries": entries}, {})})
    assert "EventBridge.FailedEntry" == found["error"]
    assert 1 == json.loads(found["cause"])["FailedEntryCount"]


def test_times_are_numbers_in_optimized_integrations_and_texts_in_the_others(workflows, names):
    """Milliseconds, and ISO 8601."""
    parameters = filled({"StateMachineArn": "{machine}"}, names)
    started = [
        json.loads(workflows.run({"Start": task(resource, parameters, {})})["output"])["StartDate"]
        for resource in ("states:startExecution", "aws-sdk:sfn:startExecution")
    ]
    assert isinstance(started[0], int)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z", started[1])
