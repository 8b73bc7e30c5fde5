"""Alarms and dashboard watch what there is, hear what somebody counts, and stand in docs/operations.md."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, get_args

import pytest

from steponce.callbacks.answer import Verdict
from steponce.local.errors import TemplateError
from steponce.triggers.dispositions import COUNTED
from steponce.triggers.sqs import MAX_DELAY_SECONDS

from .documents import FUNCTIONS, GONE, ROOT, monitoring, spoilt, template, transformed_template
from .monitored import DASHBOARD, EVERYTHING, STACK, TOPIC, Document, Nested
from .renderings import defaults
from .template import resources, rule_parameters_are_used

COUNTS = "steponce"
"""The namespace of our own functions' metrics."""

THIRD_RECEIVE_SECONDS = 2 * 180
"""When an answer that comes back is received for the third time. From then on SQS leaves out its age."""

LITERAL = re.compile(r'add_metric\(\s*"(\w+)"')
"""A metric that a function counts by its name."""


def everything(document: Document) -> Nested:
    """The nested stack with all that it can have."""
    return Nested(document, **EVERYTHING)


def rule_every_metric_is_counted(document: Document) -> list[str]:
    """A metric that nobody counts is never above its threshold, and a line in no chart."""
    counted = {name for path in FUNCTIONS for name in LITERAL.findall((path / "app.py").read_text())}
    counted |= set(COUNTED.values()) | {f"Callback{verdict.capitalize()}" for verdict in get_args(Verdict)}
    found = everything(document).metrics()
    return [name for namespace, name, _ in found if namespace == COUNTS and name not in counted]


def rule_what_is_watched_is_there(document: Document) -> list[str]:
    """Each dimension names what the template makes: machine, queues, functions, and their service."""
    nested = everything(document)
    common = template()["Globals"]["Function"]["Environment"]["Variables"]
    parent = transformed_template()
    there = {
        "service": {nested.parent.resolve(common["POWERTOOLS_SERVICE_NAME"])},
        "StateMachineArn": {nested.parent.resolve(parent["Outputs"]["RunOnceStateMachineArn"]["Value"])},
        "QueueName": {
            nested.parent.resolve({"Fn::GetAtt": [name, "QueueName"]})
            for name in resources(parent, "AWS::SQS::Queue")
        },
        "FunctionName": {
            nested.parent.resolve({"Ref": name}) for name in resources(parent, "AWS::Lambda::Function")
        },
        "StreamName": {EVERYTHING["StreamArn"].rpartition("/")[2]},
    }
    return [
        f"{name} is of no {key} {value}"
        for _, name, dimensions in nested.metrics()
        for key, value in dimensions.items()
        if value not in there.get(key, ())
    ]


def rule_dead_letters_ring(document: Document) -> list[str]:
    """Each queue that keeps what went wrong has an alarm of its own."""
    nested = everything(document)
    queues = resources(transformed_template(), "AWS::SQS::Queue")
    kept = [
        nested.parent.resolve({"Fn::GetAtt": [name, "QueueName"]})
        for name in queues
        if name.startswith("Dead") or "DeadLetter" in name
    ]
    heard = [dimensions["QueueName"] for space, _, dimensions in nested.metrics() if space == "AWS/SQS"]
    return [f"{name} has {heard.count(name)} alarms" for name in kept if heard.count(name) != 1]


def rule_a_new_stack_is_silent(document: Document) -> list[str]:
    """An alarm on missing data would ring before there can be any."""
    return [
        f"{name} takes missing data for a fault"
        for name, alarm in everything(document).alarms().items()
        if alarm.get("TreatMissingData") == "breaching"
    ]


def rule_every_alarm_notifies_the_topic(document: Document) -> list[str]:
    """The template says its ARN, and nobody hears of anything else. Faults and silence may both ring."""
    nested = everything(document)
    topic = nested.outputs().get("AlarmsTopicArn")
    return [
        f"{name} notifies {found}"
        for name, alarm in nested.alarms().items()
        if {topic} != (found := {*alarm.get("AlarmActions", []), *alarm.get("InsufficientDataActions", [])})
    ]


def rule_what_is_handed_in_is_what_is_asked_for(document: Document) -> list[str]:
    """CloudFormation refuses a parameter too many or too few, and an empty one that must not be."""
    handed, asked = everything(document).handed, document["Parameters"]
    complaints = [f"{name} is on one side only" for name in sorted(set(handed) ^ set(asked))]
    return complaints + [f"{name} has a default" for name, item in asked.items() if "Default" in item]


OPEN_FAILURES = "Resources/OpenFailuresAlarm/Properties"
BODY = "Resources/RequestsDashboard/Properties/DashboardBody/Fn::Sub"
FAULTS: list[tuple[Callable[[Document], list[str]], dict[str, Any]]] = [
    (rule_every_metric_is_counted, {"Resources/SkippedAlarm/Properties/MetricName": "Skiped"}),
    (rule_every_metric_is_counted, {BODY: lambda text: text.replace("Takeovers", "TakeOvers")}),
    (
        rule_what_is_watched_is_there,
        {f"{OPEN_FAILURES}/Dimensions/0/Value": {"Ref": "AWS::StackName"}},  # of the nested stack
    ),
    (
        rule_what_is_watched_is_there,
        {BODY: lambda text: text.replace("${StateMachineArn}", "${MonitorFunctionName}")},
    ),
    (
        rule_dead_letters_ring,
        {"Resources/DeadAnswersAlarm/Properties/Dimensions/0/Value": {"Ref": "MonitorFunctionName"}},
    ),
    (
        rule_a_new_stack_is_silent,
        {"Resources/MonitorSilentAlarm/Properties/TreatMissingData": "breaching"},
    ),
    (
        rule_every_alarm_notifies_the_topic,
        {"Resources/MonitorSilentAlarm/Properties/InsufficientDataActions": GONE},
    ),
    (rule_what_is_handed_in_is_what_is_asked_for, {"Parameters/Stage": {"Type": "String"}}),
    (rule_what_is_handed_in_is_what_is_asked_for, {"Parameters/Dashboard": GONE}),
    (rule_what_is_handed_in_is_what_is_asked_for, {"Parameters/ServiceName/Default": "steponce"}),
    (rule_parameters_are_used, {"Parameters/Stage": {"Type": "String"}}),
]
RULES = list(dict.fromkeys(rule for rule, _ in FAULTS))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_nested_stack_keeps_the_rule(rule: Callable[[Document], list[str]]) -> None:
    """No complaints about monitoring.yaml, as the template hands its values in."""
    assert [] == rule(monitoring())


@pytest.mark.parametrize(("rule", "faults"), FAULTS, ids=lambda part: getattr(part, "__name__", None))
def test_the_rule_catches_its_planted_fault(
    rule: Callable[[Document], list[str]], faults: dict[str, Any]
) -> None:
    """A rule that cannot fail is no rule."""
    assert [] != rule(spoilt(monitoring(), faults))


@pytest.mark.parametrize(
    "fault",
    [
        {f"{OPEN_FAILURES}/AlarmActions/0/Ref": "AlarmTopic"},
        {BODY: lambda text: text.replace("${ServiceName}", "${Service}", 1)},
        {"Conditions/HasDashboard/Fn::Equals/0/Ref": "Dashbord"},
    ],
)
def test_a_misspelt_name_is_found(fault: dict[str, Any]) -> None:
    """Whatever an alarm, the dashboard or a condition refers to is a parameter or a resource."""
    with pytest.raises(TemplateError, match=r"'(AlarmTopic|Service|Dashbord)'"):
        list(everything(spoilt(monitoring(), fault)).metrics())


def test_a_search_for_lost_messages_that_is_not_invoked_is_missed() -> None:
    """It has no errors then, and it counts nothing. Lambda's metric ends, and a new stack has none yet."""
    alarm = everything(monitoring()).alarms()["ResendingSilent"]
    watched = alarm["Namespace"], alarm["MetricName"], alarm["Dimensions"][0]["Value"]

    assert ("AWS/Lambda", "Invocations") == watched[:2]
    assert "FindMissedEndsFunction" in watched[2]
    assert ("missing", "LessThanThreshold", 1) == (
        alarm["TreatMissingData"],
        alarm["ComparisonOperator"],
        alarm["Threshold"],
    )
    assert alarm["InsufficientDataActions"]


def test_nothing_is_made_that_nobody_wants() -> None:
    """Alarms, their topic, those of the FIFO queue and the stream, and the dashboard depend on parameters."""
    usual = Nested(monitoring())
    assert usual.is_made
    assert usual.of_kind(TOPIC)
    assert not usual.of_kind(DASHBOARD)
    more = {"DeadFifoLetters", "FifoMessagesWait", "StreamUnread", "StreamWaits"}
    assert more == set(everything(monitoring()).alarms()) - set(usual.alarms())

    chart = Nested(monitoring(), Alarms="no", Dashboard="yes")
    assert chart.is_made
    assert ({}, {}, {}) == (chart.alarms(), chart.of_kind(TOPIC), chart.outputs())
    assert chart.of_kind(DASHBOARD)

    # CloudFormation makes no empty stack.
    assert not Nested(monitoring(), Alarms="no", Dashboard="no").is_made


@pytest.mark.parametrize(
    ("queue", "longest_delay"),
    [
        ("RequestsQueue", MAX_DELAY_SECONDS),
        ("RequestsFifoQueue", MAX_DELAY_SECONDS),
        ("AnswersQueue", THIRD_RECEIVE_SECONDS),
    ],
)
def test_messages_that_nobody_receives_have_an_alarm(queue: str, longest_delay: int) -> None:
    """It rings after any delay of a message that comes back, and long before the queue forgets messages."""
    nested = everything(monitoring())
    watched = [{"Name": "QueueName", "Value": nested.parent.resolve({"Fn::GetAtt": [queue, "QueueName"]})}]
    ages = [it for it in nested.alarms().values() if it.get("MetricName") == "ApproximateAgeOfOldestMessage"]
    (alarm,) = [it for it in ages if it["Dimensions"] == watched]
    assert longest_delay < alarm["Threshold"] < 86_400


def test_each_queue_with_a_reader_has_an_alarm_for_its_age() -> None:
    """A mapping that is disabled or lacks permissions receives nothing, and no function fails."""
    nested = everything(monitoring())
    mappings = resources(transformed_template(), "AWS::Lambda::EventSourceMapping").values()
    sources = [mapping["EventSourceArn"] for mapping in mappings]
    read = {source["Fn::GetAtt"][0] for source in sources if "Fn::GetAtt" in source}
    watched = [
        alarm["Dimensions"][0]["Value"]
        for alarm in nested.alarms().values()
        if alarm.get("MetricName") == "ApproximateAgeOfOldestMessage"
    ]
    assert {"AnswersQueue", "RequestsFifoQueue", "RequestsQueue"} == read
    assert {nested.parent.resolve({"Fn::GetAtt": [name, "QueueName"]}) for name in read} == set(watched)


def test_each_queue_keeps_its_messages_as_long_as_it_can() -> None:
    """Time to hear an alarm and to mend its cause. SQS keeps messages for four days by default."""
    queues = resources(transformed_template(), "AWS::SQS::Queue")
    kept = {name: queue.get("MessageRetentionPeriod") for name, queue in queues.items()}
    assert dict.fromkeys(kept, 1_209_600) == kept


def test_records_that_wait_in_the_stream_have_an_alarm() -> None:
    """Long before a stream forgets them, which is a day by default."""
    alarm = everything(monitoring()).alarms()["StreamWaits"]
    assert ("IteratorAge", 3_600_000) == (alarm["MetricName"], alarm["Threshold"])


def test_a_stream_that_nothing_reads_has_an_alarm() -> None:
    """Then no function runs, so the age of its records is not known. Lambda polls a stream each second."""
    alarm = everything(monitoring()).alarms()["StreamUnread"]
    assert ("AWS/Kinesis", "GetRecords.Success") == (alarm["Namespace"], alarm["MetricName"])
    assert ("Sum", "LessThanThreshold", 1) == (
        alarm["Statistic"],
        alarm["ComparisonOperator"],
        alarm["Threshold"],
    )
    assert alarm["AlarmActions"] == alarm["InsufficientDataActions"]
    # While data is missing, CloudWatch looks back by some periods more. So they are short.
    assert (300, 3600) == (alarm["Period"], alarm["Period"] * alarm["EvaluationPeriods"])


def test_an_event_that_gets_no_letter_has_an_alarm() -> None:
    """Lambda drops it: delivery fails without a permission, and of records that are too large for SQS."""
    nested = everything(monitoring())
    alarm = nested.alarms()["EventsLost"]
    starter = nested.parent.resolve({"Ref": "StartFromEventFunction"})
    assert ("DestinationDeliveryFailures", 0) == (alarm["MetricName"], alarm["Threshold"])
    assert [{"Name": "FunctionName", "Value": starter}] == alarm["Dimensions"]


def test_the_dashboard_has_the_stack_s_name() -> None:
    """
    And not that of the nested stack, which CloudFormation makes up.

    A dashboard belongs to no region (PutDashboard: "All dashboards in your account are global, not
    region-specific"), so its name says which one it shows.
    """
    (dashboard,) = everything(monitoring()).of_kind(DASHBOARD).values()
    assert f"{STACK}-requests-us-east-1" == dashboard["DashboardName"]


def test_the_backlog_is_the_parameter_s() -> None:
    """The threshold comes from the template."""
    assert defaults()["BacklogThreshold"] == Nested(monitoring()).alarms()["Backlog"]["Threshold"]


def test_the_operations_page_says_what_each_alarm_means() -> None:
    """In the table of the alarms, with what to run."""
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    section = page.partition("\n## The alarms\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*) \|.*\|.*\|$", section, re.MULTILINE)
    explained = {word for row in rows for word in re.findall(r"`(\w+)`", row)}
    assert set() == set(everything(monitoring()).alarms()) - explained


@pytest.mark.parametrize("metric", ["Skipped", "Unreadable", "MissingTasks", "OpenFailures"])
def test_what_the_monitor_cannot_settle_has_an_alarm(metric: str) -> None:
    """Somebody hears of it within two rounds, long before a lock is overdue by default."""
    (alarm,) = [
        it
        for it in Nested(monitoring()).alarms().values()
        if it.get("MetricName") == metric and "Maximum" in it.values()
    ]
    assert alarm["Period"] * alarm["EvaluationPeriods"] <= 600
    assert template()["Parameters"]["ExpectedSeconds"]["Default"] > 600
