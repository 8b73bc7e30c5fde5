"""
The template's EventBridge rules, and where the events go that their functions failed.

Rules on other buses than the default one are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from steponce.local.errors import TemplateError
from steponce.local.template.event_patterns import InvalidPattern, Pattern
from steponce.local.template.physical_names import EVENT_INVOKE, FUNCTION, RULE
from steponce.local.template.plan import RulePlan, TargetPlan
from steponce.local.template.resources import Resources

_DEFAULT_BUS = "default"

# A text in a template of an input, if need be to its end; or a placeholder outside of all texts.
_TEXT_OR_PLACEHOLDER = re.compile(r'"(?:[^"\\]|\\.)*"?|<[^<>]+>')
_PLACEHOLDER = re.compile(r"<([^<>]+)>")

PREDEFINED = frozenset(
    {
        "aws.events.rule-arn",
        "aws.events.rule-name",
        "aws.events.event.ingestion-time",
        "aws.events.event",
        "aws.events.event.json",
    }
)
"""The variables that an InputTemplate may use without a path."""


def read_rules(resources: Resources) -> list[RulePlan]:
    """The rules that are enabled."""
    found = []
    for _, name, properties in resources.of_kind(RULE):
        bus = str(properties.get("EventBusName", _DEFAULT_BUS)).rpartition("/")[2]
        if bus != _DEFAULT_BUS or properties.get("State") == "DISABLED":
            continue
        found.append(
            RulePlan(
                name=name,
                arn=resources.names.arn(RULE, name),
                pattern=_pattern(name, properties.get("EventPattern")),
                schedule=properties.get("ScheduleExpression"),
                targets=[_target(name, target) for target in properties.get("Targets", [])],
            )
        )
    return found


def _pattern(rule: str, given: object) -> str | None:
    """The pattern as JSON, which a template may have as text as well."""
    if given is None:
        return None
    try:
        pattern = json.loads(given) if isinstance(given, str) else given
    except ValueError:
        raise TemplateError(f"Rule {rule}: the EventPattern is no JSON.") from None
    if not isinstance(pattern, dict):
        raise TemplateError(f"Rule {rule}: the EventPattern is no object.")
    try:
        Pattern(pattern)
    except InvalidPattern as error:
        raise TemplateError(
            f"Rule {rule}: {error.field_name!r} of the EventPattern {error.problem}."
        ) from None
    return json.dumps(pattern)


def _target(rule: str, target: Mapping[str, Any]) -> TargetPlan:
    transformer = target.get("InputTransformer", {})
    if "InputPath" in target:
        transformer = {"InputPathsMap": {"input": target["InputPath"]}, "InputTemplate": "<input>"}
    _expect_json(rule, "Input", target.get("Input"))
    _expect_json(rule, "InputTemplate", transformer.get("InputTemplate"))
    _expect_placeholders(rule, str(target.get("Id")), transformer)
    return TargetPlan(
        arn=str(target["Arn"]),
        constant=target.get("Input"),
        paths=dict(transformer.get("InputPathsMap", {})),
        template=transformer.get("InputTemplate"),
        group_id=target.get("SqsParameters", {}).get("MessageGroupId"),
    )


def _expect_json(rule: str, what: str, text: object) -> None:
    """Refuse an input that PutTargets refuses. The lines of a template may also be texts, each in quotes."""
    if text is None or (isinstance(text, str) and what == "InputTemplate" and text.lstrip()[:1] in '"<'):
        return
    try:
        json.loads(_TEXT_OR_PLACEHOLDER.sub(_without_placeholder, str(text)), strict=False)
    except ValueError:
        raise TemplateError(
            f"Rule {rule}: the {what} of a target is no JSON. Look at the parameters that it is made of."
        ) from None


def _expect_placeholders(rule: str, target: str, transformer: Mapping[str, Any]) -> None:
    """Refuse a placeholder that PutTargets refuses: it has no path and is not predefined."""
    known = PREDEFINED.union(transformer.get("InputPathsMap", {}))
    for name in _PLACEHOLDER.findall(str(transformer.get("InputTemplate", ""))):
        if name not in known:
            raise TemplateError(
                f"Rule {rule}: the InputTemplate of target {target} has the placeholder <{name}>. "
                "Add it to the InputPathsMap, or use a predefined variable."
            )


def _without_placeholder(found: re.Match[str]) -> str:
    return found.group() if found.group().startswith('"') else '""'


def read_destinations(resources: Resources) -> dict[str, str]:
    """By the ARN of a function: the queue that gets the records of invocations that it failed."""
    return {
        resources.names.arn(FUNCTION, str(properties["FunctionName"])): on_failure
        for _, _, properties in resources.of_kind(EVENT_INVOKE)
        if ":sqs:" in (on_failure := _on_failure(properties))
    }


def _on_failure(properties: Mapping[str, Any]) -> str:
    return str(properties.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination", ""))
