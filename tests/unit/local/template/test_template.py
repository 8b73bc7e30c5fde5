"""Reading a SAM template: what it makes, and what is said about one that is wrong."""

import json
from pathlib import Path

import pytest

from steponce.local.errors import TemplateError
from steponce.local.template.intrinsics import Resolver
from steponce.local.template.physical_names import PhysicalNames
from steponce.local.template.reader import read_plan
from steponce.local.template.source import read_source
from steponce.local.template.substitutions import substitute
from tests.conftest import TEMPLATE as WHOLE_TEMPLATE

TEMPLATE = Path(__file__).parents[1] / "fixture" / "template.yaml"
NAMES = PhysicalNames("demo", "us-east-1")
SOURCE = {
    "Parameters": {"Stage": {"Type": "String"}, "Names": {"Type": "CommaDelimitedList"}},
    "Mappings": {"Sizes": {"prod": {"memory": 512}}},
    "Conditions": {
        "IsProd": {"Fn::Equals": [{"Ref": "Stage"}, "prod"]},
        "IsTest": {"Fn::Not": [{"Condition": "IsProd"}]},
        "Both": {"Fn::And": [{"Condition": "IsProd"}, {"Condition": "IsTest"}]},
        "Either": {"Fn::Or": [{"Condition": "IsProd"}, {"Condition": "IsTest"}]},
    },
    "Resources": {
        "Table": {"Type": "AWS::DynamoDB::Table"},
        "Role": {"Type": "AWS::IAM::Role", "Properties": {"RoleName": {"Fn::Sub": "${Stage}-role"}}},
        "Machine": {"Type": "AWS::StepFunctions::StateMachine"},
        "Queue": {"Type": "AWS::SQS::Queue"},
        "Ordered": {"Type": "AWS::SQS::Queue", "Properties": {"FifoQueue": True}},
        "Policy": {"Type": "AWS::IAM::ManagedPolicy"},
        "Api": {"Type": "AWS::ApiGatewayV2::Api", "Properties": {"Name": "another"}},
    },
}


def resolver():
    return Resolver(SOURCE, {"Stage": "prod", "Names": "a, b"}, NAMES)


@pytest.mark.parametrize(
    ("expected", "value"),
    [
        ("prod", {"Ref": "Stage"}),
        (["a", "b"], {"Ref": "Names"}),
        ("demo-Table", {"Ref": "Table"}),
        ("prod-role", {"Ref": "Role"}),
        ("arn:aws:states:us-east-1:123456789012:stateMachine:demo-Machine", {"Ref": "Machine"}),
        ("https://sqs.us-east-1.amazonaws.com/123456789012/demo-Queue", {"Ref": "Queue"}),
        ("https://sqs.us-east-1.amazonaws.com/123456789012/demo-Ordered.fifo", {"Ref": "Ordered"}),
        ("arn:aws:sqs:us-east-1:123456789012:demo-Ordered.fifo", {"Fn::GetAtt": ["Ordered", "Arn"]}),
        ("arn:aws:iam::123456789012:policy/demo-Policy", {"Ref": "Policy"}),
        ("https://demo-Api.execute-api.us-east-1.amazonaws.com", {"Fn::GetAtt": "Api.ApiEndpoint"}),
        ("arn:aws:iam::123456789012:role/prod-role", {"Fn::GetAtt": ["Role", "Arn"]}),
        ("arn:aws:dynamodb:us-east-1:123456789012:table/demo-Table", {"Fn::GetAtt": "Table.Arn"}),
        ("demo-Machine", {"Fn::GetAtt": ["Machine", "Name"]}),
        ("prod/demo/aws/${Kept}", {"Fn::Sub": "${Stage}/${AWS::StackName}/${AWS::Partition}/${!Kept}"}),
        ("demo-Table/x", {"Fn::Sub": ["${Table}/${own}", {"own": "x"}]}),
        ("a-b-prod", {"Fn::Join": ["-", ["a", "b", {"Ref": "Stage"}]]}),
        ("yes", {"Fn::If": ["IsProd", "yes", "no"]}),
        ({"kept": 1}, {"kept": 1, "gone": {"Fn::If": ["IsTest", 2, {"Ref": "AWS::NoValue"}]}}),
        (512, {"Fn::FindInMap": ["Sizes", {"Ref": "Stage"}, "memory"]}),
        ("b", {"Fn::Select": [1, {"Fn::Split": [",", "a,b"]}]}),
        ("us-east-1", {"Ref": "AWS::Region"}),
    ],
)
def test_an_intrinsic_function_answers_as_cloudformation_does(expected, value):
    """Each function once, with what it may hold inside."""
    assert expected == resolver().resolve(value)


def test_conditions_build_on_each_other():
    """Not, And and Or of other conditions."""
    assert [True, False, False, True] == [
        resolver().condition(name) for name in ("IsProd", "IsTest", "Both", "Either")
    ]


@pytest.mark.parametrize(
    "value", [{"Ref": "Nobody"}, {"Fn::Sub": "${Nobody}"}, {"Fn::GetAtt": ["Nobody", "Arn"]}]
)
def test_a_reference_to_nothing_is_named(value):
    """The message says which name is wrong."""
    with pytest.raises(TemplateError, match="Nobody"):
        resolver().resolve(value)


def plan(**parameters):
    return read_plan(TEMPLATE, parameters=parameters, stack_name="demo", region="us-east-1")


def test_a_plan_has_what_runs_on_a_laptop():
    """Function, table and machine, their references resolved."""
    made = plan()
    assert ["demo-ItemsTable"] == [table.name for table in made.tables]
    assert ["ttl"] == [table.ttl_attribute for table in made.tables]
    function, hasty, _of_another_runtime = made.functions
    assert {"ITEMS_TABLE": "demo-ItemsTable", "GREETING": "hello from demo"} == function.environment
    assert (60, 1) == (function.timeout_seconds, hasty.timeout_seconds)
    (machine,) = made.machines
    assert function.arn in machine.definition
    assert made.outputs["FlowArn"] == machine.arn


def test_a_parameter_changes_the_plan():
    """A conditional resource and its output come with the condition."""
    made = plan(WithExtra="yes", Greeting="goodbye")
    assert ["demo-ItemsTable", "demo-ExtraTable"] == [table.name for table in made.tables]
    assert "demo-ExtraTable" == made.outputs["Extra"]
    assert "goodbye from demo" == made.functions[0].environment["GREETING"]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"Greting": "x"}, "no parameter Greting. It has: Count, Greeting, Least, Suffix, WithExtra"),
        ({"Greeting": "x"}, "Greeting is 'x'; allowed: hello, goodbye"),
        ({"Count": "many"}, "Count is 'many'; allowed: numbers from 1 to 9"),
        ({"Count": "10"}, "Count is '10'; allowed: numbers from 1 to 9"),
        ({"Least": "٣"}, r"Least is '٣'; allowed: numbers from 1\.$"),
        ({"Least": "inf"}, r"Least is 'inf'; allowed: numbers from 1\.$"),
        ({"Least": "0"}, r"Least is '0'; allowed: numbers from 1\.$"),
        ({"Suffix": "A"}, r"Suffix is 'A'; allowed: what matches \[a-z\]\*"),
    ],
)
def test_a_wrong_parameter_is_named(parameters, message):
    """With what would be right."""
    with pytest.raises(TemplateError, match=message):
        plan(**parameters)


def test_a_missing_template_is_named(tmp_path):
    """The path that was looked for is in the message."""
    with pytest.raises(TemplateError, match=r"There is no template .*nowhere\.yaml"):
        read_plan(tmp_path / "nowhere.yaml", stack_name="demo", region="us-east-1")


def test_a_template_in_json_may_have_escapes(tmp_path):
    """JSON writes a character beyond U+FFFF as two escapes, as CDK does; YAML refuses each of them."""
    topic = {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": "\N{GRINNING FACE}"}}
    (tmp_path / "template.json").write_text(json.dumps({"Resources": {"Topic": topic}}), encoding="ascii")
    assert topic == read_source(tmp_path / "template.json")["Resources"]["Topic"]


@pytest.mark.parametrize(
    ("text", "substitutions", "message"),
    [
        ('{"a": "${Here}"}', {}, "Flow: DefinitionSubstitutions lacks Here"),
        ('{"a": "${Here}"}', {"Here": ["a", "b"]}, "Flow: the substitution Here is no text and"),
        ('{"a": "${Here}"}', {"Here": {"a": 1}}, "Flow: the substitution Here is no text and"),
        ('{"a": "${Here}"}', {"Here": None}, "Flow: the substitution Here is no text and"),
        ('{"a": "${fn-arn}"}', {"fn.arn": "x"}, "Flow: DefinitionSubstitutions lacks fn-arn"),
        ('{"a": "${not a name}"}', {}, "Flow: DefinitionSubstitutions lacks not a name"),
        ('{"a": ["${Here}"]}', {}, "Flow: DefinitionSubstitutions lacks Here"),
        ('{"a": ${Here}}', {}, r"Flow: the definition is not JSON.*\. DefinitionSubstitutions lacks Here"),
        (
            '{"A": {"Type": "Task", "Resource": "arn:${Here}:f"}}',
            {"There": "x"},
            "Flow: DefinitionSubstitutions lacks Here",
        ),
        ('{"a": "${Here}"}', {"Here": "${Here}"}, "Flow: the substitutions hold each other"),
        ('{"a": ${Here}}', {"Here": "text"}, "Flow: the definition is not JSON"),
        ('{"a": "${Here}"}', {"Here": "${There}", "There": "x${Here}"}, "Flow: the substitutions hold each"),
        ('{"a": "${0}"}', {"0": "${0}" * 99_999}, "Flow: the substitutions hold"),
    ],
)
def test_a_substitution_that_does_not_fit_is_named(text, substitutions, message):
    """CloudFormation would deploy it, and the first execution would fail."""
    with pytest.raises(TemplateError, match=message):
        substitute("Flow", text, substitutions)


@pytest.mark.parametrize(
    "text", ["cp ${HOME}/a b", "{% ${'a': 1}.a & $b %}", "${A}${B}", "$${", "${ not a name"]
)
def test_what_looks_like_a_placeholder_inside_of_text_stays(text):
    """A shell's variable and an expression made the whole template unreadable, which AWS takes."""
    definition = json.dumps({"Arguments": {"Command": ["sh", "-c", text]}})
    assert definition == substitute("Flow", definition, {"Here": "x"})
    policy = json.dumps({"A": {"Type": "Pass", "Result": {"Resource": f"arn:aws:s3:::home/{text}"}}})
    assert policy == substitute("Flow", policy, {})
    assert definition == substitute(
        "Flow", f"Arguments: {{Command: [sh, -c, {json.dumps(text)}]}}", {}, is_yaml=True
    )


def test_a_substitution_may_have_any_name():
    """AWS replaces the text of each key, and asks for no alphabet."""
    values = {"fn-arn": "x", "fn.arn": "y", "größe": "z", "AWS::Region": "r"}
    text = '{"a": "${fn-arn} ${fn.arn} ${größe} ${AWS::Region}"}'
    assert '{"a": "x y z r"}' == substitute("Flow", text, values)


@pytest.mark.parametrize("date", ["2030-01-01", "2030-01-01T00:00:00Z", "2030-99-99"])
def test_a_date_in_a_yaml_definition_stays_text(date):
    """As on AWS, and as lint reads it."""
    assert json.dumps({"Timestamp": date}) == substitute("Flow", f"Timestamp: {date}", {}, is_yaml=True)


def test_a_substitution_may_hold_another():
    """AWS replaces until nothing is left to replace."""
    assert '{"a": "a b"}' == substitute("Flow", '{"a": "${Both}"}', {"Both": "a ${B}", "B": "b"})


def test_a_substitution_may_be_a_number():
    """CloudFormation hands each scalar on as text."""
    values = {"Rate": 1.5, "Seconds": 3}
    assert '{"a": [1.5, 3]}' == substitute("Flow", '{"a": [${Rate}, ${Seconds}]}', values)


def test_an_api_may_have_its_definition_in_a_file(tmp_path):
    """SAM puts the file's address in its place before its transform, which takes no path."""
    apis = [
        f"  {kind}: {{Type: AWS::Serverless::{kind}, Properties: {{StageName: p, DefinitionUri: api.yaml}}}}"
        for kind in ("Api", "HttpApi")
    ]
    lines = ["Transform: AWS::Serverless-2016-10-31", "Resources:", "  Q: {Type: AWS::SQS::Queue}", *apis]
    (tmp_path / "template.yaml").write_text("\n".join(lines))

    plan = read_plan(tmp_path / "template.yaml", stack_name="demo", region="us-east-1")

    assert ["demo-Q"] == [queue.name for queue in plan.queues]
    assert {"(Api)", "(HttpApi)"} == {
        word.rstrip(".") for one in plan.left_out for word in one.split() if "Api)" in word
    }


INNER = """
Parameters:
  Greeting: {Type: String, AllowedValues: [hello, goodbye]}
Conditions:
  IsHello: !Equals [!Ref Greeting, hello]
Resources:
  Letters: {Type: AWS::SQS::Queue}
  Bell: {Type: AWS::SNS::Topic, Condition: IsHello}
  BellAlarm: {Type: AWS::CloudWatch::Alarm, Properties: {AlarmActions: [!Ref Bell]}}
Outputs:
  Bell: {Condition: IsHello, Value: !Ref Bell}
  Letters: {Value: !GetAtt Letters.Arn}
"""
OUTER = """
Transform: AWS::Serverless-2016-10-31
Parameters:
  Greeting: {Type: String, Default: hello}
Resources:
  Inner:
    Type: %s
    Properties: {%s: inner.yaml, Parameters: {%s}}
  Elsewhere: {Type: AWS::CloudFormation::Stack, Properties: {TemplateURL: "https://example.com/t.yaml"}}
Outputs:
  Found: {Value: !GetAtt Inner.Outputs.%s}
"""
STACK = ("AWS::CloudFormation::Stack", "TemplateURL")
HANDED = "Greeting: !Ref Greeting"


def plan_of_two(folder, kind=STACK, handed=HANDED, output="Bell", **parameters):
    """The plan of a template that nests another."""
    (folder / "inner.yaml").write_text(INNER)
    (folder / "outer.yaml").write_text(OUTER % (*kind, handed, output))
    return read_plan(folder / "outer.yaml", parameters=parameters, stack_name="demo", region="us-east-1")


@pytest.mark.parametrize("kind", [STACK, ("AWS::Serverless::Application", "Location")])
def test_a_nested_stack_is_made_too(tmp_path, kind):
    """What runs here of it; its names begin with the nested stack's, and the template reads its outputs."""
    made = plan_of_two(tmp_path, kind)
    assert ["demo-Inner-Letters"] == [queue.name for queue in made.queues]
    assert ["demo-Inner-Bell"] == [topic.name for topic in made.topics]
    assert {"Found": "arn:aws:sns:us-east-1:123456789012:demo-Inner-Bell"} == made.outputs


def test_a_nested_stack_gets_the_template_s_parameters(tmp_path):
    """Its conditions depend on them."""
    made = plan_of_two(tmp_path, output="Letters", Greeting="goodbye")
    assert [] == made.topics
    assert {"Found": "arn:aws:sqs:us-east-1:123456789012:demo-Inner-Letters"} == made.outputs


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"Greeting": "goodbye"}, "Inner has no output Bell. It has: Letters"),
        ({"Greeting": "good day"}, "Inner: Parameter Greeting is 'good day'; allowed: hello, goodbye"),
        ({"handed": "Greting: hello"}, "Inner: The template has no parameter Greting. It has: Greeting"),
        ({"handed": ""}, "Inner: Parameter Greeting has no default"),
        ({"handed": "Greeting: [hello, goodbye]"}, "Inner: join the list Greeting to one text"),
        ({"output": "Bells"}, "Inner has no output Bells. It has: Bell, Letters"),
    ],
)
def test_what_does_not_fit_a_nested_stack_is_named(tmp_path, wrong, message):
    """CloudFormation would begin to deploy it, and roll back."""
    with pytest.raises(TemplateError, match=message):
        plan_of_two(tmp_path, **wrong)


def test_a_nested_template_that_is_not_there_is_named(tmp_path):
    """By its path."""
    outer = tmp_path / "outer.yaml"
    outer.write_text(
        "Resources: {Inner: {Type: AWS::CloudFormation::Stack, Properties: {TemplateURL: x.yml}}}"
    )
    with pytest.raises(TemplateError, match=r"Inner: There is no template .*x\.yml"):
        read_plan(outer, stack_name="demo", region="us-east-1")


@pytest.mark.parametrize("limit", ["-1", "1.5", "many", "1000000000"])
def test_a_rate_limit_that_the_workflow_cannot_count_is_refused(limit: str):
    """The message says what to give, as CloudFormation's does."""
    with pytest.raises(TemplateError, match=rf"RateLimit is '{limit}'.*a whole number up to 999999999"):
        read_plan(WHOLE_TEMPLATE, parameters={"RateLimit": limit}, stack_name="s", region="us-east-1")


@pytest.mark.parametrize(
    "sources", ["aws.states", "com.example,aws.states", "aws.states,aws.s3", "a, aws.states "]
)
def test_events_of_the_executions_themselves_start_no_requests(sources: str):
    """Each request would start two more. The source may stand anywhere in the list."""
    with pytest.raises(TemplateError, match=r"Parameter EventSources is .* Leave out aws\.states\."):
        read_plan(WHOLE_TEMPLATE, parameters={"EventSources": sources}, stack_name="s", region="us-east-1")


@pytest.mark.parametrize("sources", ["", "aws.s3", "com.example, aws.s3", "aws.statesman,com.aws.states"])
def test_events_of_other_sources_start_requests(sources: str):
    """Also of one that is named almost alike."""
    read_plan(WHOLE_TEMPLATE, parameters={"EventSources": sources}, stack_name="s", region="us-east-1")
