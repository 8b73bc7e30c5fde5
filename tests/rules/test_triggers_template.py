"""What the template says of queues: what can start a request never shares a queue with what cannot."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from steponce.triggers.sqs import MAX_REQUEST_BYTES

from . import documents
from .documents import GONE, transform, walk
from .template import resources

ON_FAILURE = "Resources/StartFromEventFunction/Properties/EventInvokeConfig/DestinationConfig/OnFailure"
LETTERS, FOREIGN = "RequestsDeadLetterQueue", "DeadEventsQueue"
ARN = "Fn::GetAtt"


def failures_of_aws(template: dict[str, Any]) -> list[str]:
    """Where Lambda, EventBridge and Kinesis send what they could not deliver."""
    found = []
    for part in walk(template["Resources"]):
        if not isinstance(part, dict):
            continue
        if "DeadLetterConfig" in part:
            found.append(part["DeadLetterConfig"]["Arn"][ARN][0])
        if "OnFailure" in part:
            found.append(part["OnFailure"]["Destination"][ARN][0])
    return found


def who_may_send(template: dict[str, Any], queue: str) -> dict[str, list[Any]]:
    """The services that a queue's policy lets in, and the ARNs that each has to come from."""
    found: dict[str, list[Any]] = {}
    for properties in resources(template, "AWS::SQS::QueuePolicy").values():
        if properties["Queues"] != [{"Ref": queue}]:
            continue
        for statement in properties["PolicyDocument"]["Statement"]:
            arns = statement["Condition"]["ArnEquals"]["aws:SourceArn"]
            found[statement["Principal"]["Service"]] = arns if isinstance(arns, list) else [arns]
    return found


def foreign_records_have_a_queue_of_their_own(template: dict[str, Any]) -> None:
    assert {FOREIGN} == set(failures_of_aws(template))
    targets = [
        properties["RedrivePolicy"]["deadLetterTargetArn"][ARN][0]
        for kind in ("AWS::SQS::Queue", "AWS::SNS::Subscription")
        for properties in resources(template, kind).values()
        if "RedrivePolicy" in properties
    ]
    assert FOREIGN not in targets
    assert 4 == len(targets)


def rules_are_named_by_their_arns(template: dict[str, Any]) -> None:
    """Generated names are cut, so a prefix would not match the rules of a stack with a long name."""
    rules = {
        name
        for name, properties in resources(transform(template), "AWS::Events::Rule").items()
        if any("DeadLetterConfig" in target for target in properties["Targets"])
    }
    named = who_may_send(template, FOREIGN)["events.amazonaws.com"]
    arns = [one["Fn::If"][1] if "Fn::If" in one else one for one in named]
    assert sorted(rules) == sorted(one[ARN][0] for one in arns)
    for one in named:
        if "Fn::If" in one:
            condition, arn, nothing = one["Fn::If"]
            assert condition == template["Resources"][arn[ARN][0]]["Condition"]
            assert {"Ref": "AWS::NoValue"} == nothing


def the_topic_keeps_what_it_cannot_deliver(template: dict[str, Any]) -> None:
    (subscription,) = resources(template, "AWS::SNS::Subscription").values()
    assert {"deadLetterTargetArn": {ARN: [LETTERS, "Arn"]}} == subscription["RedrivePolicy"]
    assert {"sns.amazonaws.com": [subscription["TopicArn"]]} == who_may_send(template, LETTERS)


def letters_have_room(template: dict[str, Any]) -> None:
    """Two of ten attributes may double inside of a letter, and 24 KiB are ours; a notification trebles."""
    queues = resources(template, "AWS::SQS::Queue")
    for name in ("RequestsQueue", "RequestsFifoQueue"):
        size = queues[name]["MaximumMessageSize"]
        letters = queues[name]["RedrivePolicy"]["deadLetterTargetArn"][ARN][0]
        assert size * 6 // 5 + 24 * 1024 <= queues[letters]["MaximumMessageSize"] == 1_048_576
        assert MAX_REQUEST_BYTES == size >= 3 * 262_144 + 4_096


def no_queue_drops_what_only_looks_alike(template: dict[str, Any]) -> None:
    for properties in resources(template, "AWS::SQS::Queue").values():
        assert properties.get("ContentBasedDeduplication") in (None, False)


def functions_may_write_to_their_destination(template: dict[str, Any]) -> None:
    transformed = transform(template)
    for mapping in resources(transformed, "AWS::Lambda::EventInvokeConfig").values():
        role = f"{mapping['FunctionName']['Ref']}Role"
        text = str(transformed["Resources"][role])
        assert re.search(rf"sqs:SendMessage.*{FOREIGN}", text)


def functions_that_feed_their_own_queue_may_do_so(template: dict[str, Any]) -> None:
    """By default Lambda ends a chain of messages after 16 invocations. ResendTries ends this one."""
    transformed = transform(template)
    feeding = [
        mapping["FunctionName"]["Ref"]
        for mapping in resources(transformed, "AWS::Lambda::EventSourceMapping").values()
        if re.search(
            rf"sqs:SendMessage.*{mapping['EventSourceArn'].get(ARN, ['no queue'])[0]}",
            str(transformed["Resources"][f"{mapping['FunctionName']['Ref']}Role"]),
        )
    ]
    assert ["StartFromQueueFunction"] == feeding
    for name in feeding:
        assert "Allow" == transformed["Resources"][name]["Properties"]["RecursiveLoop"]


RULES: list[tuple[Callable[[dict[str, Any]], None], dict[str, Any]]] = [
    (
        foreign_records_have_a_queue_of_their_own,
        {
            ON_FAILURE: {
                "Type": "SQS",
                "Destination": {ARN: [LETTERS, "Arn"]},
            }
        },
    ),
    (
        rules_are_named_by_their_arns,
        {
            "Resources/DeadEventsQueuePolicy/Properties/PolicyDocument/Statement/0/Condition/ArnEquals": {
                "aws:SourceArn": {ARN: ["ResendRequestFunctionBadEnd", "Arn"]}
            }
        },
    ),
    (
        the_topic_keeps_what_it_cannot_deliver,
        {
            "Resources/RequestsSubscription/Properties/RedrivePolicy": {
                "deadLetterTargetArn": {ARN: [FOREIGN, "Arn"]}
            }
        },
    ),
    (letters_have_room, {"Resources/RequestsQueue/Properties/MaximumMessageSize": 1_048_576}),
    (letters_have_room, {"Resources/RequestsFifoQueue/Properties/MaximumMessageSize": 262_144}),
    (
        no_queue_drops_what_only_looks_alike,
        {"Resources/RequestsFifoQueue/Properties/ContentBasedDeduplication": True},
    ),
    (
        functions_may_write_to_their_destination,
        {
            f"{ON_FAILURE}/Destination": {ARN: [LETTERS, "Arn"]},
            "Resources/StartFromEventFunction/Properties/Policies": GONE,
        },
    ),
    (
        functions_that_feed_their_own_queue_may_do_so,
        {"Resources/StartFromQueueFunction/Properties/RecursiveLoop": "Terminate"},
    ),
]


@pytest.mark.parametrize("rule", dict.fromkeys(rule for rule, _ in RULES), ids=lambda rule: rule.__name__)
def test_the_template_keeps_the_rule(rule: Callable[[dict[str, Any]], None]) -> None:
    """As it is written."""
    rule(documents.whole_template())


@pytest.mark.parametrize(("rule", "faults"), RULES, ids=lambda part: getattr(part, "__name__", None))
def test_the_rule_catches_its_planted_fault(
    rule: Callable[[dict[str, Any]], None], faults: dict[str, Any]
) -> None:
    """A rule that cannot fail is no rule."""
    with pytest.raises(AssertionError):
        rule(documents.spoilt_template(faults))
