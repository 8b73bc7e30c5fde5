"""A template that CloudFormation refuses is refused in words; one that it takes is read."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from steponce.local.errors import TemplateError
from steponce.local.template.plan import Plan
from steponce.local.template.reader import read_plan, read_renderings
from steponce.local.template.rules import PREDEFINED

_QUEUE = "Resources:\n  Q: {Type: AWS::SQS::Queue}\n"
_WITH = "Resources:\n  Q: {Type: AWS::SQS::Queue, Properties: {%s}}\n"
_RULE = "Resources:\n  R: {Type: AWS::Events::Rule, Properties: {Targets: [{Arn: a, Id: b, %s}]}}\n"
_NAMED = "Resources:\n  Q: {Type: AWS::SQS::Queue, Properties: {QueueName: %s}}\n"


def read(tmp_path: Path, text: str) -> Plan:
    """Read a template of this text."""
    path = tmp_path / "template.yaml"
    path.write_text(text)
    return read_plan(path, stack_name="shop", region="us-east-1")


def test_a_date_without_quotes_is_text(tmp_path: Path):
    """CloudFormation knows no dates, and many templates have their version and their policies' so."""
    policy = "{PolicyDocument: {Version: 2012-10-17, Statement: []}}"
    role = f"  R: {{Type: AWS::IAM::Policy, Properties: {policy}}}\n"
    found = read(tmp_path, f"AWSTemplateFormatVersion: 2010-09-09\n{_QUEUE}{role}")
    assert ["shop-Q"] == [queue.name for queue in found.queues]


_TRUE = """
Transform: AWS::Serverless-2016-10-31
Parameters:
  Notify: {Type: String, Default: true, AllowedValues: [true, false]}
Mappings: {Names: {"true": {name: yes-it-is}}}
Rules:
  Known: {Assertions: [{Assert: {"Fn::Contains": [[true, false], !Ref Notify]}}]}
Conditions:
  Notifies: !Equals [!Ref Notify, "true"]
Resources:
  F:
    Type: AWS::Serverless::Function
    Properties: {Runtime: python3.13, Handler: f.f, InlineCode: "", Environment: {Variables: {DEBUG: false}}}
  Q: {Type: AWS::SQS::Queue, Condition: Notifies}
  M:
    Type: AWS::Serverless::StateMachine
    Properties:
      Role: arn:aws:iam::123456789012:role/r
      DefinitionSubstitutions: {Flag: true}
      Definition: {StartAt: S, States: {S: {Type: Pass, Result: "${Flag}", End: true}}}
Outputs:
  Notify: {Value: !Ref Notify}
  Plain: {Value: true}
  Found: {Value: !FindInMap [Names, true, name]}
"""


def test_a_boolean_without_quotes_is_text(tmp_path: Path):
    """CloudFormation writes `true` and `false`. Python's words made a condition turn out the other way."""
    found = read(tmp_path, _TRUE)
    assert {"Notify": "true", "Plain": "true", "Found": "yes-it-is"} == found.outputs
    assert [{"DEBUG": "false"}] == [function.environment for function in found.functions]
    assert ["shop-Q"] == [queue.name for queue in found.queues]
    assert '"Result": "true"' in found.machines[0].definition


@pytest.mark.parametrize(("value", "queues"), [("true", 1), ("false", 0)])
def test_a_boolean_is_given_as_text(tmp_path: Path, value: str, queues: int):
    """Only what the template names is allowed."""
    path = tmp_path / "template.yaml"
    path.write_text(_TRUE)
    found = read_plan(path, parameters={"Notify": value}, stack_name="shop", region="us-east-1")
    assert (value, queues) == (found.outputs["Notify"], len(found.queues))
    with pytest.raises(TemplateError, match="Notify is 'True'; allowed: true, false"):
        read_plan(path, parameters={"Notify": "True"}, stack_name="shop", region="us-east-1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Resources:\n  Q:\n    Type: AWS::SQS::Queue\n    Properties:\n", "Q: Properties is no object"),
        ("Resources:\n  5: {Type: AWS::SQS::Queue}\n", "the logical id 5 is no text"),
        (f"Parameters: [a]\n{_QUEUE}", "Parameters is no object"),
        (f"Parameters:\n  P:\n{_QUEUE}", "Parameters: P is no object"),
        (f"{_QUEUE}Outputs: {{O: hi}}\n", "Outputs: O is no object"),
        (f"{_QUEUE}Outputs: {{O: {{Description: hi}}}}\n", "Outputs: O has no Value"),
        (_NAMED % "!If [C]", r"Fn::If does not take .*C.*Write it as"),
        (_NAMED % "!Select [9, [a]]", "Fn::Select does not take"),
        (_NAMED % "!GetAtt Q", "Fn::GetAtt does not take"),
        ("Conditions: {C: !Condition D, D: !Condition C}\n" + _NAMED % "!If [C, a, b]", "in a circle"),
        ("Resources:\n  S: {Type: AWS::SNS::Subscription}\n", r"cannot be read.*KeyError: 'Protocol'"),
        (
            "Resources: {A: {Type: AWS::Serverless::Application, Properties: {Location: {Id: x}}}}",
            "not supported on the local stack: an application of a repository",
        ),
        (
            "Resources:\n  M: {Type: AWS::Serverless::StateMachine, Properties: {DefinitionUri: .}}\n",
            "M: DefinitionUri .* is not a file",
        ),
        (
            _WITH % "VisibilityTimeout: 43201",
            "Q: VisibilityTimeout is '43201'. Give a number from 0 to",
        ),
        (_WITH % "VisibilityTimeout: -1", "Q: VisibilityTimeout is '-1'"),
        (_WITH % "DelaySeconds: soon", "Q: DelaySeconds is 'soon'"),
        (_RULE % "Input: '{a}'", "shop-R: the Input of a target is no JSON"),
        (
            _RULE % 'InputTransformer: {InputTemplate: \'{"a":<b>,"c":{d}}\'}',
            "the InputTemplate .* is no JSON",
        ),
        (
            _RULE % "InputTransformer: {InputPathsMap: {k: $.id}, InputTemplate: '\"<k> <notdefined>\"'}",
            "Rule shop-R: the InputTemplate of target b has the placeholder <notdefined>",
        ),
        (
            _RULE % "InputTransformer: {InputTemplate: '{\"a\": <aws.events.event.id>}'}",
            "target b has the placeholder <aws.events.event.id>",
        ),
    ],
)
def test_a_wrong_part_is_named(tmp_path: Path, text: str, message: str):
    """Never with an error of Python's own."""
    with pytest.raises(TemplateError, match=message):
        read(tmp_path, text)


def test_a_template_that_nests_itself_is_named_once(tmp_path: Path):
    """Also by way of another one."""
    nests = "Resources:\n  N: {Type: AWS::CloudFormation::Stack, Properties: {TemplateURL: %s}}\n"
    (tmp_path / "other.yaml").write_text(nests % "template.yaml")
    with pytest.raises(TemplateError, match=r"^N: N: N: .*other.yaml is nested in itself\. Nest"):
        read(tmp_path, nests % "other.yaml")


@pytest.mark.parametrize(
    "template", ['{"a":<b>,"c":"<d> \\"<e>\\""}', '[<a>,{"b":[<c>]}]', '"<a>"\n"b"', "<a>"]
)
def test_an_input_may_have_placeholders(tmp_path: Path, template: str):
    """Inside of texts and outside, and the lines may be texts."""
    paths = dict.fromkeys("abcde", "$.id")
    transformer = json.dumps({"InputPathsMap": paths, "InputTemplate": template})
    found = read(tmp_path, _RULE % f"InputTransformer: {transformer}")
    assert template == found.deliveries.rules[0].targets[0].template


@pytest.mark.parametrize("name", sorted(PREDEFINED))
def test_an_input_may_have_predefined_variables(tmp_path: Path, name: str):
    """They need no InputPathsMap."""
    found = read(tmp_path, _RULE % f"InputTransformer: {{InputTemplate: '<{name}>'}}")
    assert f"<{name}>" == found.deliveries.rules[0].targets[0].template


_PATTERN = "Resources:\n  R: {Type: AWS::Events::Rule, Properties: {Targets: [], EventPattern: %s}}\n"


@pytest.mark.parametrize("pattern", ["{source: [shop]}", """'{"source": ["shop"]}'"""])
def test_an_event_pattern_may_be_text(tmp_path: Path, pattern: str):
    """CloudFormation takes JSON as text, too, for instance of a Sub."""
    found = read(tmp_path, _PATTERN % pattern)
    assert {"source": ["shop"]} == json.loads(found.deliveries.rules[0].pattern or "")


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("{source: shop}", "shop-R: 'source' of the EventPattern must be an object or a list"),
        ("{detail: {state: []}}", "'state' of the EventPattern must be"),
        (
            "{detail: {state: [{exists: 1}]}}",
            "shop-R: 'state' of the EventPattern gives 'exists' 1. It takes true or",
        ),
        ("'{source}'", "the EventPattern is no JSON"),
        ("[shop]", "the EventPattern is no object"),
    ],
)
def test_an_event_pattern_that_eventbridge_refuses_is_named(tmp_path: Path, pattern: str, message: str):
    """The engine could not start with it."""
    with pytest.raises(TemplateError, match=message):
        read(tmp_path, _PATTERN % pattern)


_FROM_SSM = """
Parameters:
  T: {Type: AWS::SSM::Parameter::Value<String>, Default: /shop/timeout}
Resources:
  F:
    Type: AWS::Lambda::Function
    Properties: {Runtime: python3.13, Handler: f.f, Code: {ZipFile: ""}, %s}
"""


@pytest.mark.parametrize(
    ("wrong", "value"),
    [
        ("Timeout: !Ref T", "/shop/timeout"),
        ("MemorySize: !ImportValue memory", "memory"),
        ("ReservedConcurrentExecutions: !Ref T", "/shop/timeout"),
    ],
)
def test_a_number_that_is_not_known_here_is_named(tmp_path: Path, wrong: str, value: str):
    """A text stands in for a value of SSM or another stack."""
    message = f"F: {wrong.partition(':')[0]} is '{value}', which is no whole number"
    with pytest.raises(TemplateError, match=message):
        read(tmp_path, _FROM_SSM % wrong)


@pytest.mark.parametrize("kind", ["List<String>", "CommaDelimitedList"])
def test_a_list_from_ssm_is_a_list(tmp_path: Path, kind: str):
    """Its stand-in is one text, or several with commas; a Join joins those and not their letters."""
    parameter = f"Parameters:\n  L: {{Type: AWS::SSM::Parameter::Value<{kind}>, Default: 'a,bc'}}\n"
    found = read(tmp_path, parameter + _NAMED % "!Join ['-', !Ref L]")
    assert ["a-bc"] == [queue.name for queue in found.queues]


def test_lint_and_cost_refuse_it_too(tmp_path: Path):
    """They read every definition that a template can have."""
    path = tmp_path / "template.yaml"
    path.write_text(f"Parameters:\n  P:\n{_QUEUE}")
    with pytest.raises(TemplateError, match="P is no object"):
        read_renderings(path, stack_name="shop", region="us-east-1")


_MACHINE = """
  M:
    Type: AWS::Serverless::StateMachine
    Properties:
      Role: arn:aws:iam::123456789012:role/r
"""


def test_a_substitution_that_no_definition_uses_is_said(tmp_path: Path):
    """CloudFormation takes it. Templates that are copied often have one."""
    flow = "{StartAt: S, States: {S: {Type: Pass, End: true}}}"
    more = f"      DefinitionSubstitutions: {{Table: x, Bucket: y}}\n      Definition: {flow}\n"
    found = read(tmp_path, f"Transform: AWS::Serverless-2016-10-31\nResources:\n{_MACHINE}{more}")
    assert ["M: the definition never uses Bucket, Table. Misspelt?"] == found.left_out
    assert "StartAt" in found.machines[0].definition


def test_the_other_values_of_a_boolean_are_tried_as_text(tmp_path: Path):
    """`"Result": False` was no JSON, and the machine was refused."""
    path = tmp_path / "flow.asl.json"
    path.write_text('{"StartAt": "S", "States": {"S": {"Type": "Pass", "Result": ${Flag}, "End": true}}}')
    flag = "Parameters:\n  Flag: {Type: String, Default: true, AllowedValues: [true, false]}\n"
    more = "      DefinitionSubstitutions: {Flag: !Ref Flag}\n      DefinitionUri: flow.asl.json\n"
    found = read(tmp_path, f"Transform: AWS::Serverless-2016-10-31\n{flag}Resources:\n{_MACHINE}{more}")
    assert '"Result": true' in found.machines[0].definition


def test_a_part_of_the_stack_s_id_makes_a_name_unique(tmp_path: Path):
    """It ends in a UUID, which templates split at its hyphens."""
    suffix = "!Select [4, !Split ['-', !Select [2, !Split ['/', !Ref AWS::StackId]]]]"
    queue = f"  Q: {{Type: AWS::SQS::Queue, Properties: {{QueueName: !Join ['-', [jobs, {suffix}]]}}}}\n"
    names = [read(tmp_path, f"Resources:\n{queue}").queues[0].name for _ in range(2)]
    assert names[0] == names[1]
    assert re.fullmatch(r"jobs-[0-9a-f]{12}", names[0])


def test_a_table_has_its_throughput_as_numbers(tmp_path: Path):
    """A parameter gives text. What DynamoDB's own API does not know is left out."""
    throughput = "{ReadCapacityUnits: !Ref Units, WriteCapacityUnits: '5'}"
    key = "[{AttributeName: id, KeyType: HASH}]"
    index = f"{{IndexName: i, KeySchema: {key}, Projection: {{ProjectionType: ALL}}"
    found = read(
        tmp_path,
        "Parameters: {Units: {Type: Number, Default: 7}}\n"
        "Resources:\n"
        "  T:\n"
        "    Type: AWS::DynamoDB::Table\n"
        "    Properties:\n"
        "      AttributeDefinitions: [{AttributeName: id, AttributeType: S}]\n"
        f"      KeySchema: {key}\n"
        f"      ProvisionedThroughput: {throughput}\n"
        f"      GlobalSecondaryIndexes: [{index}, ProvisionedThroughput: {throughput},"
        " ContributorInsightsSpecification: {Enabled: true}}]\n"
        "      StreamSpecification: {StreamViewType: KEYS_ONLY, ResourcePolicy: {PolicyDocument: {}}}\n",
    )
    (table,) = found.tables
    units = {"ReadCapacityUnits": 7, "WriteCapacityUnits": 5}
    (by_index,) = table.arguments["GlobalSecondaryIndexes"]
    assert (units, units) == (table.arguments["ProvisionedThroughput"], by_index["ProvisionedThroughput"])
    assert {"IndexName", "KeySchema", "Projection", "ProvisionedThroughput"} == by_index.keys()
    stream = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
    assert stream == table.arguments["StreamSpecification"]


def test_a_throughput_that_is_not_known_is_named(tmp_path: Path):
    """Nothing here knows a value of SSM."""
    units = "{ReadCapacityUnits: '{{resolve:ssm:/units}}', WriteCapacityUnits: 5}"
    table = f"  T: {{Type: AWS::DynamoDB::Table, Properties: {{ProvisionedThroughput: {units}}}}}\n"
    with pytest.raises(TemplateError, match=r"T: ReadCapacityUnits is .* no whole number"):
        read(tmp_path, f"Resources:\n{table}")


def test_the_code_of_a_function_is_beside_its_template(tmp_path: Path):
    """As for SAM, if the template does not say where."""
    function = "  F: {Type: AWS::Serverless::Function, Properties: {Runtime: python3.13, Handler: f.f}}\n"
    found = read(tmp_path, f"Transform: AWS::Serverless-2016-10-31\nResources:\n{function}")
    assert [(str(tmp_path), "")] == [(one.folder, one.problem) for one in found.functions]


@pytest.mark.parametrize(("kind", "value"), [("CommaDelimitedList", "a, b"), ("List<Number>", "1,2")])
def test_each_value_of_a_list_must_be_allowed(tmp_path: Path, kind: str, value: str):
    """AWS says so of AllowedValues. The whole text was compared."""
    path = tmp_path / "template.yaml"
    path.write_text(f"Parameters: {{L: {{Type: {kind}, AllowedValues: [a, b, 1, 2]}}}}\n{_QUEUE}")
    read_plan(path, parameters={"L": value}, stack_name="shop", region="us-east-1")
    with pytest.raises(TemplateError, match="allowed: a, b, 1, 2"):
        read_plan(path, parameters={"L": f"{value},c"}, stack_name="shop", region="us-east-1")


def test_a_name_in_sub_may_have_blanks_around_it(tmp_path: Path):
    """CloudFormation takes it."""
    found = read(tmp_path, f"{_QUEUE}Outputs: {{Q: {{Value: !Sub '${{ Q.Arn }} ${{!Q }}'}}}}\n")
    assert "arn:aws:sqs:us-east-1:123456789012:shop-Q ${Q }" == found.outputs["Q"]


def test_a_blank_value_is_refused(tmp_path: Path):
    """CloudFormation refuses null. It became the text None."""
    with pytest.raises(TemplateError, match="null, which CloudFormation refuses"):
        read(tmp_path, f"Parameters:\n  P:\n    Type: String\n    Default:\n{_QUEUE}")


def test_any_item_of_a_list_from_ssm_may_be_selected(tmp_path: Path):
    """Its items are not known here, and one text stands in for them."""
    nets = "Parameters:\n  Nets: {Type: AWS::SSM::Parameter::Value<List<String>>, Default: /nets}\n"
    second = "Outputs: {N: {Value: !Select [1, !Ref Nets]}, All: {Value: !Join [' ', !Ref Nets]}}\n"
    assert {"N": "/nets", "All": "/nets"} == read(tmp_path, f"{nets}{_QUEUE}{second}").outputs


_HTTP = """
Transform: AWS::Serverless-2016-10-31
Resources:
  F:
    Type: AWS::Serverless::Function
    Properties: {Runtime: python3.13, Handler: f.f, InlineCode: "", Events: {All: {Type: HttpApi}}}
  Api:
    Type: AWS::ApiGatewayV2::Api
    Properties:
      Body:
        paths:
          /a/{id}:
            summary: One
            parameters: [{name: id, in: path}]
            get:
              x-amazon-apigateway-integration: &f {uri: !Sub "x/functions/${F.Arn}/invocations"}
          /$default:
            x-amazon-apigateway-any-method: {isDefaultRoute: true, x-amazon-apigateway-integration: *f}
"""


def test_routes_are_read_from_any_openapi(tmp_path: Path):
    """SAM's event without a path is the default route; a path item has more keys than methods."""
    found = sorted(route.key for api in read(tmp_path, _HTTP).apis for route in api.routes)
    assert ["$default", "$default", "GET /a/{id}"] == found


def _redriven(*arrows: str) -> str:
    """A template with these queues; `A>B` sends the dead letters of A to B."""
    queues = "Resources:\n"
    for source, _, target in (arrow.partition(">") for arrow in arrows):
        arn = f"!Sub 'arn:aws:sqs:${{AWS::Region}}:${{AWS::AccountId}}:{target}'"
        policy = f"RedrivePolicy: {{maxReceiveCount: 3, deadLetterTargetArn: {arn}}}" if target else ""
        queues += f"  {source}: {{Type: AWS::SQS::Queue, Properties: {{QueueName: {source}, {policy}}}}}\n"
    return queues


def test_each_queue_of_a_chain_is_made_after_its_dead_letter_queue(tmp_path: Path):
    """A dead-letter queue may have one of its own."""
    assert ["C", "B", "A"] == [queue.name for queue in read(tmp_path, _redriven("A>B", "B>C", "C")).queues]


@pytest.mark.parametrize(("arrows", "circle"), [(("A>A",), "A, A"), (("A>B", "B>A"), "A, B, A")])
def test_a_circle_of_dead_letter_queues_is_named(tmp_path: Path, arrows: tuple[str, ...], circle: str):
    """CloudFormation cannot make one either."""
    with pytest.raises(TemplateError, match=f"dead-letter queue of another: {circle}"):
        read(tmp_path, _redriven(*arrows))
