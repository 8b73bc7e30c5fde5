"""
What of a template runs on the local stack, and what is left out.

Resources that only permit, log, watch or place others need nothing here. The rest is named in a sentence, for
whoever wonders why nothing happens. docs/testing.md has these lists; a test compares them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from steponce.local.errors import not_supported
from steponce.local.template import physical_names as types
from steponce.local.template.parameters import is_from_ssm
from steponce.local.template.plan import Plan
from steponce.local.template.resources import Resources

REMOTE = ("https://", "http://", "s3://")

RUN = {
    types.BUCKET,
    types.EVENT_INVOKE,
    types.EVENT_SOURCE,
    types.FUNCTION,
    types.HTTP_API,
    types.HTTP_INTEGRATION,
    types.HTTP_ROUTE,
    types.NESTED_STACK,
    types.QUEUE,
    types.RULE,
    types.SECRET,
    types.STATE_MACHINE,
    types.SUBSCRIPTION,
    types.TABLE,
    types.TOPIC,
}
"""The types of resources that the stack makes."""

NEED_NOTHING = (
    "AWS::ApiGateway::Deployment",
    "AWS::ApiGateway::Stage",
    "AWS::ApiGatewayV2::Deployment",
    "AWS::ApiGatewayV2::Stage",
    "AWS::CloudFormation::WaitConditionHandle",
    "AWS::CloudWatch::",
    "AWS::CodeDeploy::",
    "AWS::EC2::",
    "AWS::Events::EventBusPolicy",
    "AWS::IAM::",
    "AWS::KMS::",
    "AWS::Lambda::Alias",
    "AWS::Lambda::LayerVersion",
    "AWS::Lambda::LayerVersionPermission",
    "AWS::Lambda::Permission",
    "AWS::Lambda::Version",
    "AWS::Logs::",
    "AWS::S3::BucketPolicy",
    "AWS::SNS::TopicPolicy",
    "AWS::SQS::QueuePolicy",
    "AWS::XRay::",
)
"""The types, or their prefixes, of resources that are ignored without a note."""

_TRANSFORMS = ("AWS::Serverless-2016-10-31", "AWS::LanguageExtensions")
_DYNAMIC = re.compile(r"\{\{resolve:[^}]*\}\}")
_INTEGRATION = "x-amazon-apigateway-integration"
_CRON = "cron("
_TARGETS = ("lambda", "sqs", "states")


def function_problem(properties: Mapping[str, Any], code: str | None) -> str:
    """Why a function does not run here; empty if it does."""
    runtime = str(properties.get("Runtime", ""))
    if properties.get("PackageType") == "Image":
        return not_supported("a function from an image. Python functions from a folder run here.")
    if runtime and not runtime.startswith("python"):
        return not_supported(f"the runtime {runtime}. Python functions from a folder run here.")
    if code is None or code.startswith(REMOTE):
        return not_supported("code on S3 or in the template. Python functions from a folder run here.")
    return ""


def macros(source: Mapping[str, Any]) -> Iterator[str]:
    """A sentence for each macro in the section Transform of a template that is not executed here."""
    named = source.get("Transform", [])
    for one in named if isinstance(named, list) else [named]:
        name = one.get("Name") if isinstance(one, dict) else one
        if name not in _TRANSFORMS:
            yield not_supported(f"the macro {name}. Write out what it makes.")


def left_out(
    template: Mapping[str, Any],
    resources: Resources,
    plan: Plan,
    is_here: Callable[[str], bool],
    imported: Iterable[str],
) -> Iterator[str]:
    """
    A sentence for each thing that does not run here, and that somebody might miss.

    Args:
        template: After the SAM transform.
        is_here: Whether a nested stack comes from a file, by its logical id.
        imported: The exports of other stacks that the template asks for.
    """
    for logical_id, kind in resources.kinds():
        if kind not in RUN and not kind.startswith(NEED_NOTHING):
            yield not_supported(f"{kind} ({logical_id}). It is left out.")
    for function in plan.functions:
        if function.problem:
            yield f"{function.name}: {function.problem} Whoever invokes it gets an error."
    yield from _substitutions(plan)
    yield from _remote(resources, is_here)
    yield from _deliveries(resources)
    yield from _invocations(resources)
    yield from _integrations(resources)
    for text in sorted({*_DYNAMIC.findall(json.dumps(template))}):
        yield not_supported(f"{text}. It stays as it is.")
    for name, declared in template.get("Parameters", {}).items():
        if is_from_ssm(declared):
            yield not_supported(f"a parameter from SSM ({name}). Give it the value itself.")
    for name in sorted(imported):
        yield not_supported(f"Fn::ImportValue. The value of {name} is its name here.")


def _substitutions(plan: Plan) -> Iterator[str]:
    """Substitutions without a placeholder. AWS takes them."""
    for machine in plan.machines:
        if machine.unused:
            yield f"{machine.logical_id}: the definition never uses {', '.join(machine.unused)}. Misspelt?"


def _remote(resources: Resources, is_here: Callable[[str], bool]) -> Iterator[str]:
    """Nested stacks whose templates are not here."""
    for logical_id, _, _ in resources.of_kind(types.NESTED_STACK):
        if not is_here(logical_id):
            yield not_supported(f"a nested stack from S3 ({logical_id}). Its outputs are made up.")


def _deliveries(resources: Resources) -> Iterator[str]:
    """Event sources that the stack does not deliver."""
    queues = {resources.names.arn(types.QUEUE, name) for _, name, _ in resources.of_kind(types.QUEUE)}
    for logical_id, _, properties in resources.of_kind(types.EVENT_SOURCE):
        if properties.get("EventSourceArn") not in queues:
            yield not_supported(f"an event source other than the template's queues ({logical_id}).")
    inline = [
        (logical_id, one)
        for logical_id, _, properties in resources.of_kind(types.TOPIC)
        for one in properties.get("Subscription", [])
    ]
    apart = [(logical_id, properties) for logical_id, _, properties in resources.of_kind(types.SUBSCRIPTION)]
    for logical_id, properties in [*inline, *apart]:
        if properties.get("Protocol") != "sqs":
            yield not_supported(f"a subscription by {properties.get('Protocol')} ({logical_id}).")
    for logical_id, _, properties in resources.of_kind(types.BUCKET):
        if "NotificationConfiguration" in properties:
            yield not_supported(f"notifications of a bucket ({logical_id}).")
    for logical_id, _, properties in resources.of_kind(types.HTTP_API):
        if "BodyS3Location" in properties:
            yield not_supported(f"the routes of an API whose definition is in a file ({logical_id}).")
    for logical_id, _, properties in resources.of_kind(types.RULE):
        yield from _rule(logical_id, properties)


def _invocations(resources: Resources) -> Iterator[str]:
    """What of an asynchronous invocation is as Lambda has it by default, whatever the template says."""
    for logical_id, _, properties in resources.of_kind(types.EVENT_INVOKE):
        if str(properties.get("MaximumRetryAttempts", 2)) != "2":
            yield not_supported(
                f"MaximumRetryAttempts ({logical_id}). A function that fails runs three times."
            )
        destinations = properties.get("DestinationConfig", {})
        if "OnSuccess" in destinations:
            yield not_supported(f"a destination of what succeeded ({logical_id}).")
        if ":sqs:" not in str(destinations.get("OnFailure", ":sqs:")):
            yield not_supported(f"a destination other than a queue ({logical_id}).")
    for logical_id, _, properties in resources.of_kind(types.FUNCTION):
        if "DeadLetterConfig" in properties:
            yield not_supported(f"DeadLetterConfig ({logical_id}). Use a destination on failure.")


def _integrations(resources: Resources) -> Iterator[str]:
    """What HTTP APIs lead to that does not run here, or gets another event."""
    for logical_id, _, native in resources.of_kind(types.HTTP_INTEGRATION):
        version = native.get("PayloadFormatVersion")
        yield from _integration(
            logical_id, native.get("IntegrationType"), "IntegrationSubtype" in native, version
        )
    for logical_id, _, properties in resources.of_kind(types.HTTP_API):
        sentences = [
            sentence
            for found in _of_body(properties.get("Body", {}))
            for sentence in _integration(
                logical_id,
                found.get("type"),
                "integrationSubtype" in found,
                found.get("payloadFormatVersion"),
            )
        ]
        yield from dict.fromkeys(sentences)


def _of_body(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The integrations of an API that is written in OpenAPI, as SAM writes them."""
    for item in body.get("paths", {}).values():
        for operation in item.values():
            if isinstance(operation, dict) and _INTEGRATION in operation:
                yield operation[_INTEGRATION]


def _integration(logical_id: str, kind: Any, has_subtype: bool, version: Any) -> Iterator[str]:
    if str(kind).lower() != "aws_proxy" or has_subtype:
        yield not_supported(f"an integration without a function ({logical_id}).")
    elif str(version).startswith("1"):
        yield not_supported(f"a payload in the format 1.0 ({logical_id}). The function gets 2.0.")


def _rule(logical_id: str, properties: Mapping[str, Any]) -> Iterator[str]:
    if str(properties.get("EventBusName", "default")).rpartition("/")[2] != "default":
        yield not_supported(f"a rule on another bus than the default one ({logical_id}).")
    if str(properties.get("ScheduleExpression", "")).startswith(_CRON):
        yield not_supported(f"a cron schedule ({logical_id}). Send its event yourself.")
    for target in properties.get("Targets", []):
        service = f"{target.get('Arn')}::".split(":")[2]
        if service not in _TARGETS:
            yield not_supported(f"the target {target.get('Arn')} of a rule ({logical_id}).")
