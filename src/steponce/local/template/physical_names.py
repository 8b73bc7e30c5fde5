"""
The physical names of a stack's resources: what `Ref` and `Fn::GetAtt` answer.

Names are a function of the stack's name and the logical id alone, so that nothing has to be made
before the rest of the template can be resolved, and so that a circle of references is no problem.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ACCOUNT = "123456789012"
PARTITION = "aws"

BUCKET = "AWS::S3::Bucket"
ALIAS = "AWS::Lambda::Alias"
VERSION = "AWS::Lambda::Version"
ACTIVITY = "AWS::StepFunctions::Activity"
EVENT_INVOKE = "AWS::Lambda::EventInvokeConfig"
EVENT_SOURCE = "AWS::Lambda::EventSourceMapping"
FUNCTION = "AWS::Lambda::Function"
HTTP_API = "AWS::ApiGatewayV2::Api"
HTTP_INTEGRATION = "AWS::ApiGatewayV2::Integration"
HTTP_ROUTE = "AWS::ApiGatewayV2::Route"
MANAGED_POLICY = "AWS::IAM::ManagedPolicy"
NESTED_STACK = "AWS::CloudFormation::Stack"
QUEUE = "AWS::SQS::Queue"
RULE = "AWS::Events::Rule"
SECRET = "AWS::SecretsManager::Secret"  # noqa: S105 - the kind of a resource
STATE_MACHINE = "AWS::StepFunctions::StateMachine"
SUBSCRIPTION = "AWS::SNS::Subscription"
TOPIC = "AWS::SNS::Topic"
TABLE = "AWS::DynamoDB::Table"

# The property that names a resource, where the template chooses the name itself.
_NAME_PROPERTIES = {
    ACTIVITY: "Name",
    BUCKET: "BucketName",
    FUNCTION: "FunctionName",
    STATE_MACHINE: "StateMachineName",
    TABLE: "TableName",
    "AWS::CloudWatch::Alarm": "AlarmName",
    "AWS::CloudWatch::Dashboard": "DashboardName",
    RULE: "Name",
    MANAGED_POLICY: "ManagedPolicyName",
    "AWS::IAM::Role": "RoleName",
    "AWS::Logs::LogGroup": "LogGroupName",
    TOPIC: "TopicName",
    QUEUE: "QueueName",
    SECRET: "Name",
}

_FIFO_PROPERTIES = {QUEUE: "FifoQueue", TOPIC: "FifoTopic"}

# Service, and what comes between the account and the name in an ARN.
_ARN_FORMS = {
    FUNCTION: ("lambda", "function:"),
    STATE_MACHINE: ("states", "stateMachine:"),
    TABLE: ("dynamodb", "table/"),
    "AWS::CloudWatch::Alarm": ("cloudwatch", "alarm:"),
    RULE: ("events", "rule/"),
    MANAGED_POLICY: ("iam", "policy/"),
    "AWS::IAM::Role": ("iam", "role/"),
    "AWS::Logs::LogGroup": ("logs", "log-group:"),
    TOPIC: ("sns", ""),
    QUEUE: ("sqs", ""),
    ACTIVITY: ("states", "activity:"),
}

_REF_IS_ARN = {ACTIVITY, MANAGED_POLICY, STATE_MACHINE, TOPIC}
_GLOBAL_SERVICES = {"iam"}


@dataclass(frozen=True)
class PhysicalNames:
    """Names and ARNs of the resources of one stack."""

    stack: str
    region: str

    def name(self, logical_id: str, kind: str, properties: Mapping[str, Any]) -> str:
        """The resource's own name; `properties` are resolved already."""
        given = properties.get(_NAME_PROPERTIES.get(kind, ""))
        if kind == BUCKET and not given:  # a bucket's name has no capitals
            return f"{self.stack}-{logical_id}".lower()
        # A FIFO queue's name must end so, and so does one that CloudFormation makes up.
        is_fifo = str(properties.get(_FIFO_PROPERTIES.get(kind, ""), "")).lower() == "true"
        return str(given) if given else f"{self.stack}-{logical_id}{'.fifo' if is_fifo else ''}"

    def arn(self, kind: str, name: str) -> str:
        """The resource's ARN."""
        if kind == BUCKET:  # unique in the whole partition
            return f"arn:{PARTITION}:s3:::{name}"
        service, prefix = _ARN_FORMS.get(kind, (kind.split("::")[1].lower(), ""))
        region = "" if service in _GLOBAL_SERVICES else self.region
        return f"arn:{PARTITION}:{service}:{region}:{ACCOUNT}:{prefix}{name}"

    def ref(self, kind: str, name: str) -> str:
        """What `Ref` answers."""
        if kind == QUEUE:
            return f"https://sqs.{self.region}.amazonaws.com/{ACCOUNT}/{name}"
        return self.arn(kind, name) if kind in _REF_IS_ARN else name

    def attribute(self, kind: str, name: str, attribute: str) -> str:
        """What `Fn::GetAtt` answers; an attribute that nothing here can know is name and attribute."""
        if attribute.endswith("Arn"):
            return self.arn(kind, name)
        if attribute.endswith("Name"):
            return name
        if attribute == "QueueUrl":
            return self.ref(kind, name)
        if kind == HTTP_API and attribute == "ApiEndpoint":
            return f"https://{name}.execute-api.{self.region}.amazonaws.com"
        return f"{name}.{attribute}"
