"""What of other people's templates runs, what is left out, and how that is said."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from steponce.local import TemplateError
from steponce.local.delivery.targets import transformed
from steponce.local.template import support
from steponce.local.template.reader import read_plan
from tests.rules.documents import ROOT

PAGE = (ROOT / "docs" / "testing.md").read_text()
SAM = "Transform: AWS::Serverless-2016-10-31\n"
CODE = "CodeUri: src, Handler: app.handler, Runtime: python3.13"
FUNCTION = "AWS::Serverless::Function"


def function(*properties: str) -> str:
    """A template's function `Fn` with more properties, a line each."""
    lines = "".join(f"      {line}\n" for line in (*CODE.split(", "), *properties))
    return f"\n  Fn:\n    Type: {FUNCTION}\n    Properties:\n{lines}"


RUNS: dict[str, str] = {
    "a function behind an alias": f"""
  Fn: {{Type: {FUNCTION}, Properties: {{{CODE}, AutoPublishAlias: live}}}}
  M:
    Type: AWS::Serverless::StateMachine
    Properties:
      Definition: {{StartAt: P, States: {{P: {{Type: Task, Resource: "${{F}}", End: true}}}}}}
      DefinitionSubstitutions: {{F: !Ref Fn.Alias}}
""",
    "a plain function, and a plain machine in a text": """
  Fn: {Type: AWS::Lambda::Function, Properties: {Code: src, Handler: app.handler, Runtime: python3.13}}
  M:
    Type: AWS::StepFunctions::StateMachine
    Properties:
      StateMachineType: EXPRESS
      DefinitionString: !Join ["", ['{"StartAt": "P", "States": {"P": ', '{"Type": "Pass", "End": true}}}']]
""",
    "a plain machine in a file": """
  M: {Type: AWS::StepFunctions::StateMachine, Properties: {DefinitionS3Location: m.asl.json}}
""",
    "a connector between a simple table and a function": f"""
  T: {{Type: AWS::Serverless::SimpleTable}}
  Fn:
    Type: {FUNCTION}
    Properties: {{{CODE}}}
    Connectors: {{C: {{Properties: {{Destination: {{Id: T}}, Permissions: [Read]}}}}}}
""",
    "conditions, mappings and functions of functions": """
  Q:
    Type: AWS::SQS::Queue
    Properties:
      QueueName: !FindInMap [Names, dev, queue]
      DelaySeconds: { "Fn::Length": [1, 2] }
  Absent: {Type: AWS::Cognito::UserPool, Condition: Never}
""",
}
LEFT_OUT: dict[str, tuple[str, str]] = {
    "a RestApi": (
        f"""
  Fn:
    Type: {FUNCTION}
    Properties: {{{CODE}, Events: {{Get: {{Type: Api, Properties: {{Path: /x, Method: get}}}}}}}}
""",
        "AWS::ApiGateway::RestApi (ServerlessRestApi). It is left out.",
    ),
    "a custom resource": (
        "\n  C: {Type: Custom::Thing, Properties: {ServiceToken: x}}\n",
        "Custom::Thing (C). It is left out.",
    ),
    "another runtime": (
        f"\n  Fn: {{Type: {FUNCTION}, Properties: {{CodeUri: dist, Handler: a.b, Runtime: nodejs22.x}}}}\n",
        "the runtime nodejs22.x. Python functions from a folder run here. Whoever invokes it gets an error.",
    ),
    "an image": (
        f"\n  Fn: {{Type: {FUNCTION}, Properties: {{PackageType: Image}}, Metadata: {{DockerTag: v1}}}}\n",
        "a function from an image. Python functions from a folder run here. "
        "Whoever invokes it gets an error.",
    ),
    "code on S3": (
        f"\n  Fn: {{Type: {FUNCTION}, Properties: {{{CODE.replace('src', 's3://b/k')}}}}}\n",
        "code on S3 or in the template. Python functions from a folder run here. "
        "Whoever invokes it gets an error.",
    ),
    "code in the template": (
        f"\n  Fn: {{Type: {FUNCTION}, Properties: {{{CODE.replace('CodeUri: src', 'InlineCode: pass')}}}}}\n",
        "code on S3 or in the template. Python functions from a folder run here. "
        "Whoever invokes it gets an error.",
    ),
    "a stream": (
        function(
            "Events: {S: {Type: Kinesis, Properties: {Stream: arn:aws:kinesis:x, StartingPosition: LATEST}}}"
        ),
        "an event source other than the template's queues (FnS).",
    ),
    "a topic that mails": (
        "\n  T: {Type: AWS::SNS::Topic, Properties: {Subscription: [{Protocol: email, Endpoint: a@b.c}]}}\n",
        "a subscription by email (T).",
    ),
    "notifications of a bucket": (
        "\n  B: {Type: AWS::S3::Bucket, Properties: {NotificationConfiguration: {}}}\n",
        "notifications of a bucket (B).",
    ),
    "another bus": (
        "\n  R: {Type: AWS::Events::Rule, Properties: {EventBusName: b, EventPattern: {source: [a]}}}\n",
        "a rule on another bus than the default one (R).",
    ),
    "a cron schedule": (
        "\n  R: {Type: AWS::Events::Rule, Properties: {ScheduleExpression: cron(0 8 * * ? *)}}\n",
        "a cron schedule (R). Send its event yourself.",
    ),
    "a rule with a topic as its target": (
        """
  T: {Type: AWS::SNS::Topic}
  R: {Type: AWS::Events::Rule, Properties: {EventPattern: {source: [a]}, Targets: [{Arn: !Ref T, Id: t}]}}
""",
        "the target arn:aws:sns:us-east-1:123456789012:shop-T of a rule (R).",
    ),
    "a nested stack from S3": (
        "\n  N: {Type: AWS::Serverless::Application, Properties: {Location: 'https://s3.example/n.yaml'}}\n",
        "a nested stack from S3 (N). Its outputs are made up.",
    ),
    "no second try": (
        function("EventInvokeConfig: {MaximumRetryAttempts: 0}"),
        "MaximumRetryAttempts (FnEventInvokeConfig). A function that fails runs three times.",
    ),
    "a destination of what succeeded": (
        function(
            "EventInvokeConfig: {DestinationConfig: {OnSuccess: {Type: SQS, Destination: !GetAtt Q.Arn}}}"
        )
        + "  Q: {Type: AWS::SQS::Queue}\n",
        "a destination of what succeeded (FnEventInvokeConfig).",
    ),
    "a topic of what failed": (
        function("EventInvokeConfig: {DestinationConfig: {OnFailure: {Type: SNS, Destination: !Ref T}}}")
        + "  T: {Type: AWS::SNS::Topic}\n",
        "a destination other than a queue (FnEventInvokeConfig).",
    ),
    "routes of SAM in an older form": (
        function(
            "Events:",
            '  A: {Type: HttpApi, Properties: {Path: /a, Method: get, PayloadFormatVersion: "1.0"}}',
            '  B: {Type: HttpApi, Properties: {Path: /b, Method: get, PayloadFormatVersion: "1.0"}}',
        ),
        "a payload in the format 1.0 (ServerlessHttpApi). The function gets 2.0.",
    ),
    "a route to another server": (
        """
  A:
    Type: AWS::ApiGatewayV2::Api
    Properties:
      Body:
        paths:
          /a:
            parameters: []
            get: {x-amazon-apigateway-integration: {type: http_proxy, uri: https://example.org}}
""",
        "an integration without a function (A).",
    ),
    "a function's own dead-letter queue": (
        function("DeadLetterQueue: {Type: SQS, TargetArn: !GetAtt Q.Arn}") + "  Q: {Type: AWS::SQS::Queue}\n",
        "DeadLetterConfig (Fn). Use a destination on failure.",
    ),
    "an older form of an HTTP request": (
        f"""
  Fn: {{Type: {FUNCTION}, Properties: {{{CODE}}}}}
  A: {{Type: AWS::ApiGatewayV2::Api, Properties: {{Name: a, ProtocolType: HTTP}}}}
  I:
    Type: AWS::ApiGatewayV2::Integration
    Properties:
      ApiId: !Ref A
      IntegrationType: AWS_PROXY
      IntegrationUri: !GetAtt Fn.Arn
      PayloadFormatVersion: "1.0"
""",
        "a payload in the format 1.0 (I). The function gets 2.0.",
    ),
    "a route that starts a state machine": (
        """
  A: {Type: AWS::ApiGatewayV2::Api, Properties: {Name: a, ProtocolType: HTTP}}
  I:
    Type: AWS::ApiGatewayV2::Integration
    Properties:
      ApiId: !Ref A
      IntegrationType: AWS_PROXY
      IntegrationSubtype: StepFunctions-StartExecution
      PayloadFormatVersion: "1.0"
""",
        "an integration without a function (I).",
    ),
    "a dynamic reference": (
        "\n  Q: {Type: AWS::SQS::Queue, Properties: {QueueName: '{{resolve:ssm:/queue}}'}}\n",
        "{{resolve:ssm:/queue}}. It stays as it is.",
    ),
    "an import": (
        "\n  Q: {Type: AWS::SQS::Queue, Properties: {QueueName: !ImportValue shared-queue}}\n",
        "Fn::ImportValue. The value of shared-queue is its name here.",
    ),
    "an activity": (
        "\n  A: {Type: AWS::StepFunctions::Activity, Properties: {Name: pack}}\n",
        "AWS::StepFunctions::Activity (A). It is left out.",
    ),
}
INCLUDE = "{'Fn::Transform': {Name: AWS::Include, Parameters: {Location: s3://b/k}}}"
REFUSED: dict[str, tuple[str, str]] = {
    "a loop": (
        "\n  Fn::ForEach::Queues: [Name, [A, B], {'Q${Name}': {Type: AWS::SQS::Queue}}]\n",
        "not supported on the local stack: Fn::ForEach::Queues, or any other macro. Write out what it makes.",
    ),
    "an include": (
        "\n  Fn::Transform: {Name: AWS::Include, Parameters: {Location: s3://b/k}}\n",
        "not supported on the local stack: Fn::Transform, or any other macro. Write out what it makes.",
    ),
    "an unknown function": (
        "\n  Q: {Type: AWS::SQS::Queue, Properties: {Tags: !Cidr [10.0.0.0/8, 2, 8]}}\n",
        "not supported on the local stack: Fn::Cidr. Known: Condition, ",
    ),
    "a definition on S3": (
        "\n  M: {Type: AWS::StepFunctions::StateMachine, Properties: {DefinitionS3Location: {Bucket: b}}}\n",
        "not supported on the local stack: a definition on S3 (M). Name a local file.",
    ),
    "a definition at an address": (
        "\n  M: {Type: AWS::Serverless::StateMachine, Properties: {DefinitionUri: s3://b/m.asl.json}}\n",
        "not supported on the local stack: a definition on S3 (M). Name a local file.",
    ),
    "a definition that a macro makes": (
        f"\n  M: {{Type: AWS::Serverless::StateMachine, Properties: {{Definition: {INCLUDE}}}}}\n",
        "not supported on the local stack: a definition that Fn::Transform makes (M). Name a local file.",
    ),
    "a resource without a type": ("\n  Q: {Properties: {}}\n", "Q is not a resource: it has no Type."),
    "a resource that is none": ("\n  Q: 1\n", "Q is not a resource: it has no Type."),
}
BEFORE = """
Mappings: {Names: {dev: {queue: orders}}}
Conditions: {Never: !Equals [a, b]}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with code and a definition."""
    made = tmp_path_factory.mktemp("shop")
    (made / "src").mkdir()
    (made / "m.asl.json").write_text('{"StartAt": "P", "States": {"P": {"Type": "Pass", "End": true}}}')
    return made


def left_out(folder: Path, resources: str) -> list[str]:
    """What the stack of a template leaves out."""
    path = folder / "template.yaml"
    path.write_text(f"{SAM}{BEFORE}Resources:{resources}")
    return read_plan(path, stack_name="shop", region="us-east-1").left_out


@pytest.mark.parametrize("shape", RUNS)
def test_the_shape_runs_as_it_is(folder: Path, shape: str):
    """Nothing is left out that somebody might miss."""
    assert [] == left_out(folder, RUNS[shape])


@pytest.mark.parametrize("shape", LEFT_OUT)
def test_what_is_left_out_is_named(folder: Path, shape: str):
    """The rest of the template runs."""
    resources, sentence = LEFT_OUT[shape]
    (found,) = left_out(folder, resources)
    assert found.endswith(f"not supported on the local stack: {sentence}")


@pytest.mark.parametrize(
    ("written", "named"),
    [
        ("Mine", ["Mine"]),
        (
            "[AWS::Serverless-2016-10-31, Mine, {Name: AWS::Include, Parameters: {Location: s}}]",
            ["Mine", "AWS::Include"],
        ),
        ("[AWS::LanguageExtensions, AWS::Serverless-2016-10-31]", []),
    ],
)
def test_a_macro_of_the_whole_template_is_named(folder: Path, written: str, named: list[str]):
    """What it would make is not there, and the rest runs."""
    path = folder / "template.yaml"
    path.write_text(f"Transform: {written}\nResources: {{Q: {{Type: AWS::SQS::Queue}}}}\n")
    said = [f"not supported on the local stack: the macro {name}. Write out what it makes." for name in named]
    assert said == read_plan(path, stack_name="shop", region="us-east-1").left_out


@pytest.mark.parametrize("shape", REFUSED)
def test_what_cannot_be_understood_is_refused(folder: Path, shape: str):
    """In a sentence, and not by an error of Python's."""
    resources, sentence = REFUSED[shape]
    with pytest.raises(TemplateError, match=re.escape(sentence)):
        left_out(folder, resources)


@pytest.mark.parametrize(
    ("section", "before", "use"),
    [
        ("Conditions", f"Conditions: {INCLUDE}", "Condition: IsProd"),
        ("Mappings", f"Mappings: {INCLUDE}", "Properties: {QueueName: !FindInMap [Names, dev, queue]}"),
        (
            "Mappings",
            f"Mappings: {{Names: {INCLUDE}}}",
            "Properties: {QueueName: !FindInMap [Names, dev, q]}",
        ),
    ],
)
def test_what_a_macro_may_make_is_not_called_missing(folder: Path, section: str, before: str, use: str):
    """AWS expands it before CloudFormation reads the template. Unless something needs it, the rest runs."""
    path = folder / "template.yaml"
    path.write_text(f"{before}\nResources: {{Q: {{Type: AWS::SQS::Queue}}}}\n")
    assert 1 == len(read_plan(path, stack_name="shop", region="us-east-1").queues)
    path.write_text(f"{before}\nResources: {{Q: {{Type: AWS::SQS::Queue, {use}}}}}\n")
    with pytest.raises(TemplateError, match=f"not supported on the local stack: Fn::Transform in {section}"):
        read_plan(path, stack_name="shop", region="us-east-1")


def test_a_parameter_from_ssm_is_named(folder: Path):
    """Its default is the name of the value, and not the value."""
    path = folder / "template.yaml"
    path.write_text(
        "Parameters: {Size: {Type: 'AWS::SSM::Parameter::Value<String>', Default: /a}}\n"
        "Resources: {Q: {Type: AWS::SQS::Queue}}\n"
    )
    assert [
        "not supported on the local stack: a parameter from SSM (Size). Give it the value itself."
    ] == read_plan(path, stack_name="shop", region="us-east-1").left_out


def test_a_target_gets_the_part_of_the_event_that_inputpath_picks(folder: Path):
    """As a template that is that part and nothing else."""
    path = folder / "template.yaml"
    path.write_text(
        """
Resources:
  Q: {Type: AWS::SQS::Queue}
  R:
    Type: AWS::Events::Rule
    Properties: {EventPattern: {source: [a]}, Targets: [{Arn: !GetAtt Q.Arn, Id: q, InputPath: $.detail}]}
"""
    )
    (rule,) = read_plan(path, stack_name="shop", region="us-east-1").deliveries.rules
    (target,) = rule.targets

    assert ({"input": "$.detail"}, "<input>") == (target.paths, target.template)
    assert '{"a": 1}' == transformed("<input>", {"input": {"a": 1}})


@pytest.mark.parametrize("name", ["template.yaml", "examples/customer_record/template.yaml"])
def test_nothing_of_ours_is_left_out(name: str):
    """With the defaults."""
    assert [] == read_plan(ROOT / name, stack_name="shop", region="us-east-1").left_out


def test_the_page_lists_the_types_that_run_and_those_that_need_nothing():
    """Each of the code's, and no other."""
    part = PAGE.partition("## What runs, and what does not")[2]
    table = part.partition("SAM's own types")[0]
    rows = re.findall(r"^\| (`AWS::.*?) \|", table, re.MULTILINE)
    assert support.RUN == {kind for row in rows for kind in re.findall(r"`(.*?)`", row)}
    line = part.partition("are not missed: ")[2].partition("\n")[0]
    assert [*support.NEED_NOTHING] == re.findall(r"`(.*?)`", line)
