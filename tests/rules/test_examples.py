"""The examples with templates of their own keep every rule that is not about the sample's own parts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from samtranslator.yaml_helper import yaml_parse
from statelint.linter import Linter

from steponce.aws import times
from steponce.lint.definitions import complaints
from steponce.local.template.reader import read_plan
from steponce.locks.claim import Claim
from steponce.request.names import MAX_ATTEMPT
from tests.simulation.definition import evaluate

from . import asl, flow, template
from .documents import EXAMPLES, GONE, ROOT, load_json, machine, rules_of, spoilt
from .prose import read

OF_THE_LOCK = {
    flow.rule_states_are_classified,
    flow.rule_statuses_are_the_packages,
    flow.rule_errors_are_the_packages,
    flow.rule_outcomes_are_the_packages,
}
"""Rules about lock records, which a machine without a lock does not have."""

OF_THE_SAMPLE = {
    template.rule_exceptions_are_used,
    template.rule_names_correspond,
    template.rule_defaults_are_sane,
    template.rule_the_machine_outlasts_its_work,
    template.rule_environments_are_complete,
    template.rule_outputs_tell_the_client,
    template.rule_the_workflow_can_be_another,
}
"""Rules about what template.yaml alone has: its folders, parameters, functions and Outputs."""

MACHINES = [path for folder in EXAMPLES for path in sorted(folder.glob("statemachines/*.asl.json"))]
KEEP_CUSTOMER = ROOT / "examples" / "customer_record" / "statemachines" / "keep_customer.asl.json"
STATES = sorted((ROOT / "examples" / "states").glob("*.asl.json"))
UPDATE_IF_MINE = ROOT / "examples" / "states" / "update_if_mine.asl.json"
OF_THE_SAMPLE_S_WORK = ("IsConfirmationWanted", "AwaitConfirmation", "RecordFinalError")
UPDATE = "States/UpdateCustomer/Parameters"
DELETE = "States/DeleteCustomer/Parameters"


def name(path: Path) -> str:
    """The id of a test of one example."""
    return str(path.relative_to(ROOT / "examples"))


def whole_template(folder: Path) -> dict[str, Any]:
    """An example's template, with the parts that rules look for, and paths as from the root."""
    found = yaml_parse((folder / "template.yaml").read_text())
    for resource in found["Resources"].values():
        if "DefinitionUri" in resource["Properties"]:
            path = folder / resource["Properties"]["DefinitionUri"]
            resource["Properties"]["DefinitionUri"] = str(path.relative_to(ROOT))
    nothing: dict[str, Any] = {"Function": {"Environment": {"Variables": {}}, "Timeout": 3}}
    return {"Parameters": {}, "Conditions": {}, "Globals": nothing, **found}


@pytest.mark.parametrize("path", MACHINES, ids=name)
@pytest.mark.parametrize(
    "rule",
    [rule for module in (asl, flow) for rule in rules_of(module) if rule not in OF_THE_LOCK],
    ids=lambda rule: rule.__name__,
)
def test_every_example_s_workflow_keeps_the_rule(rule: Callable[..., list[str]], path: Path) -> None:
    """No complaints."""
    assert [] == rule(load_json(path))


@pytest.mark.parametrize("folder", EXAMPLES, ids=name)
@pytest.mark.parametrize(
    "rule",
    [rule for rule in rules_of(template) if rule not in OF_THE_SAMPLE],
    ids=lambda rule: rule.__name__,
)
def test_every_example_s_template_keeps_the_rule(rule: Callable[..., list[str]], folder: Path) -> None:
    """No complaints."""
    assert [] == rule(whole_template(folder))


@pytest.mark.parametrize("folder", EXAMPLES, ids=name)
def test_aws_takes_every_definition(folder: Path) -> None:
    """Its substitutions made; no linter has anything to say either."""
    plan = read_plan(folder / "template.yaml", stack_name="example", region="us-east-1")
    assert [] != plan.machines
    for made in plan.machines:
        assert [] == [*complaints(made.definition), *Linter.validate(json.loads(made.definition))]


@pytest.mark.parametrize("folder", EXAMPLES, ids=name)
def test_every_event_matches_the_rule_of_its_template(folder: Path) -> None:
    """Otherwise the example would not be delivered."""
    (pattern,) = (
        event["Properties"]["Pattern"]
        for resource in whole_template(folder)["Resources"].values()
        for event in resource["Properties"].get("Events", {}).values()
    )
    events = [load_json(path) for path in sorted(folder.glob("events/*.json"))]
    assert [] == [event for event in events for key in pattern if event[key] not in pattern[key]]
    assert set(pattern["detail-type"]) == {event["detail-type"] for event in events}


def test_a_tombstone_outlasts_every_late_event() -> None:
    """An older event that comes after it would bring the deleted customer back, by a redrive, too."""
    folder, page = ROOT / "examples" / "customer_record", ROOT / "docs" / "ordered-updates.md"
    event = load_json(folder / "events" / "customer_deleted.json")
    kept = event["detail"]["forgetAt"] - times.from_text(event["time"]).timestamp()
    resources = yaml_parse((folder / "template.yaml").read_text())["Resources"]
    day, redriven = 86_400, 14
    in_queue = resources["DeadEventsQueue"]["Properties"]["MessageRetentionPeriod"] // day
    latest = 1 + in_queue + 1 + redriven
    text = page.read_text(encoding="utf-8")
    assert latest * day <= kept
    assert f"at least {latest} days after the event, {kept / day:.0f} in the example" in text
    said = [resources[name]["Properties"]["AlarmDescription"] for name in ("FailedAlarm", "DeadEventsAlarm")]
    assert [] == [one for one in said if "safe while the tombstones" not in one]


def test_an_execution_that_could_not_write_its_event_rings() -> None:
    """Whether its retries were used up or its time was: the event would be in no queue."""
    resources = yaml_parse((ROOT / "examples" / "customer_record" / "template.yaml").read_text())["Resources"]
    metrics = resources["FailedAlarm"]["Properties"]["Metrics"]
    watched = {m["Id"]: m["MetricStat"]["Metric"]["MetricName"] for m in metrics if "MetricStat" in m}
    assert {"ExecutionsFailed", "ExecutionsTimedOut"} == set(watched.values())
    (rings,) = (m["Expression"] for m in metrics if m.get("ReturnData", True))
    assert rings == " + ".join(f"FILL({name}, 0)" for name in watched)


def test_the_picture_of_the_example_is_the_state_machine_s() -> None:
    """Each arrow is there, and no other."""
    (drawn,) = read(ROOT / "docs" / "ordered-updates.md").blocks("mermaid")
    arrows = re.findall(r"^ +(\w+) -- .* --> (\w+)$", drawn, re.MULTILINE)
    edges = flow.edges(load_json(KEEP_CUSTOMER))
    assert {(begin, end) for begin, ends in edges.items() for end in ends} == set(arrows)


@pytest.mark.parametrize(
    "faults",
    [
        {f"{UPDATE}/ConditionExpression": GONE},
        {f"{UPDATE}/ConditionExpression": lambda text: text.replace("asOf < :at", "asOf <= :at")},
        {f"{DELETE}/ConditionExpression": lambda text: text.replace(" AND writer = :me", "")},
        {f"{UPDATE}/ExpressionAttributeValues/:kind": {"S": "S"}},
        {f"{UPDATE}/ExpressionAttributeValues/:at": {"S.$": "$.time"}},
        {f"{DELETE}/Item/asOf": {"N.$": "States.Format('{}', $.detail.forgetAt)"}},
        {f"{DELETE}/Item/writer": {"S": "me"}},
        {f"{DELETE}/Item/deleted": GONE},
        {f"{UPDATE}/UpdateExpression": lambda text: text.replace(" REMOVE deleted, #ttl", "")},
        {f"{UPDATE}/UpdateExpression": lambda text: text.replace(", writer = :me", "")},
    ],
)
def test_the_rule_of_order_catches_its_planted_fault(faults: dict[str, Any]) -> None:
    """A rule that cannot fail is no rule."""
    assert [] != asl.rule_ordered_writes_never_go_back(spoilt(load_json(KEEP_CUSTOMER), faults))


def whole_machine(state: Path) -> dict[str, Any]:
    """The workflow with an example's state for its work."""
    definition = spoilt(machine("run_once"), {f"States/{gone}": GONE for gone in OF_THE_SAMPLE_S_WORK})
    definition["States"] |= load_json(state)
    return definition


@pytest.mark.parametrize("state", STATES, ids=name)
@pytest.mark.parametrize(
    "rule",
    [
        rule
        for module in (asl, flow)
        for rule in rules_of(module)
        if rule not in OF_THE_LOCK | {asl.rule_error_names_are_known}
    ],
    ids=lambda rule: rule.__name__,
)
def test_every_state_for_the_work_keeps_the_rule(rule: Callable[..., list[str]], state: Path) -> None:
    """In the place of the sample's."""
    assert [] == rule(whole_machine(state))


def test_the_page_has_the_permissions_for_a_machine_that_is_started() -> None:
    """AWS asks for those of the rule by which it hears of the child's end."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    rows = re.findall(r"^\| (`(?:states|events):.*) \| (.*) \|$", page, re.MULTILINE)
    granted = {action: where for actions, where in rows for action in re.findall(r"`(.+?)`", actions)}
    child = {"states:StartExecution", "states:DescribeExecution", "states:StopExecution"}
    assert {*child, "events:PutTargets", "events:PutRule", "events:DescribeRule"} == granted.keys()
    assert ":execution:${YourStateMachine.Name}:*" in granted["states:StopExecution"]
    assert ":rule/StepFunctionsGetEventsForStepFunctionsExecutionRule" in granted["events:PutRule"]


def test_the_state_for_one_write_checks_what_python_checks() -> None:
    """Without the lease, which no execution's lock has; and its error is the SDK integration's."""
    state = load_json(UPDATE_IF_MINE)["DoWork"]
    (check, _) = state["Parameters"]["TransactItems"]
    asked = check["ConditionCheck"]["ConditionExpression"]
    whole = Claim("locks", "key", "call", 1).condition()["ConditionExpression"]
    assert f"{asked} AND (attribute_not_exists(leaseUntil) OR leaseUntil > :now)" == whole
    model = botocore.session.get_session().get_service_model("dynamodb")
    cancelled = model.operation_model("TransactWriteItems").error_shapes
    assert state["Catch"][0]["ErrorEquals"] == [
        f"DynamoDb.{shape.name}" for shape in cancelled if "Canceled" in shape.name
    ]


def test_the_token_of_the_one_write_is_each_attempt_s_own() -> None:
    """And as short as DynamoDB wants it, also of an attempt with many digits."""
    written = load_json(UPDATE_IF_MINE)["DoWork"]["Parameters"]["ClientRequestToken.$"]
    tokens = {
        evaluate(written, {"callId": call_id, "held": {"attempt": attempt}}, {})
        for call_id in ("a" * 32, "b" * 32)
        for attempt in (1, 2, MAX_ATTEMPT)
    }
    assert 6 == len(tokens)
    model = botocore.session.get_session().get_service_model("dynamodb")
    token = model.operation_model("TransactWriteItems").input_shape.members["ClientRequestToken"]
    assert max(map(len, tokens)) <= token.metadata["max"]
