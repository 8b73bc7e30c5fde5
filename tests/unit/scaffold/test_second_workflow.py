"""What an application with a second workflow would make: each has its own way in, and both are watched."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from steponce.local.template.plan import Plan
from steponce.local.template.reader import read_plan
from tests.second_workflow import write

HERE = "arn:aws:states:us-east-1:123456789012:stateMachine"
ORDERS, REFUNDS = f"{HERE}:shop-run-once", f"{HERE}:shop-refunds"


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """The application as docs/several-workflows.md makes it, with HTTP for its second workflow alone."""
    template = write(tmp_path_factory.mktemp("two") / "shop", "shop", "", handed="        HttpAccess: open\n")
    return read_plan(template, stack_name="shop", region="us-east-1")


def machine_of(plan: Plan, function: str) -> str:
    """The state machine that a function serves."""
    (found,) = [one for one in plan.functions if function in (one.name, one.arn)]
    return found.environment["RunOnceStateMachineArn"]


@pytest.mark.parametrize(("output", "arn"), [("Workflow", ORDERS), ("RefundsWorkflow", REFUNDS)])
def test_everything_that_leads_to_a_workflow_serves_its_machine(plan: Plan, output: str, arn: str):
    """The queue, the events, HTTP, and the function that completes what was started by hand."""
    workflow = json.loads(plan.outputs[output])
    queue = workflow["requestsQueueUrl"].rpartition("/")[2]
    (mapping,) = [one for one in plan.deliveries.mappings if one.queue.name == queue]
    (machine,) = [one for one in plan.machines if one.arn == arn]
    states = json.loads(machine.definition)["States"]
    every = [one for api in plan.apis for one in api.routes]
    routes = [machine_of(plan, one.function) for one in every if "/requests" in one.path]

    assert arn == workflow["stateMachineArn"] == machine_of(plan, mapping.function)
    assert arn == machine_of(plan, workflow["startFromEventFunction"])
    assert arn == machine_of(plan, states["PrepareRequest"]["Parameters"]["FunctionName"])
    assert (arn in routes) == bool(workflow["requestsUrl"])
    assert [REFUNDS] * 2 == routes


def test_each_machine_has_work_of_its_own_and_the_installation_s_table(plan: Plan):
    """Only the function of the work differs."""
    states = {one.arn: json.loads(one.definition)["States"] for one in plan.machines}
    works = {arn: one["DoWork"]["Parameters"]["FunctionName"] for arn, one in states.items()}
    tables = {one["AcquireLock"]["Parameters"]["TableName"] for one in states.values()}

    assert {ORDERS, REFUNDS} == works.keys()
    assert ["DoWorkFunction", "RefundFunction"] == [
        works[arn].rpartition("-")[2] for arn in (ORDERS, REFUNDS)
    ]
    assert {plan.outputs["LocksTable"]} == tables


def test_dead_executions_of_both_are_settled_and_messages_come_back_to_their_own_queue(plan: Plan):
    """One rule of the installation names both machines; each workflow resends what is its own."""
    watched = {}
    for rule in plan.deliveries.rules:
        machines = json.loads(rule.pattern or "{}").get("detail", {}).get("stateMachineArn")
        for target in rule.targets if machines else ():
            watched[target.arn.rpartition("function:shop-")[2]] = machines
    queues = {
        machine_of(plan, one.arn): one.environment["RequestsQueueUrl"]
        for one in plan.functions
        if one.name.endswith("FindMissedEndsFunction")
    }

    assert {
        "Steponce-CloseExecutionFunction": [ORDERS, REFUNDS],
        "Steponce-Requests-ResendRequestFunction": [ORDERS],
        "RefundsRequests-ResendRequestFunction": [REFUNDS],
    } == watched
    urls = [json.loads(plan.outputs[name])["requestsQueueUrl"] for name in ("Workflow", "RefundsWorkflow")]
    assert urls == [queues[ORDERS], queues[REFUNDS]]


def test_a_rate_limit_of_the_application_holds_in_both(tmp_path: Path):
    """The copied state machine counts by the limit of the template, so its functions must, too."""
    limit = {"RateLimit": "5", "RateLimitPath": "customerId"}
    template = write(tmp_path / "shop", "shop", "")
    plan = read_plan(template, parameters=limit, stack_name="shop", region="us-east-1")

    for machine in plan.machines:
        states = json.loads(machine.definition)["States"]
        function = states["PrepareRequest"]["Parameters"]["FunctionName"]
        (preparing,) = [one for one in plan.functions if one.arn == function]
        assert states["CountRequest"]["Parameters"]["TableName"] == preparing.environment["LimitsTable"]
        assert '"5/day/customerId"' in machine.definition
        counted = [preparing.environment[name] for name in ("RateLimit", "RateLimitWindow", "RateLimitPath")]
        assert ["5", "day", "customerId"] == counted
    for name in ("Workflow", "RefundsWorkflow"):
        workflow = json.loads(plan.outputs[name])
        assert ("5", "customerId") == (workflow["rateLimit"], workflow["rateLimitPath"])


@pytest.mark.full
def test_the_application_s_own_tests_pass_beside_it(tmp_path: Path):
    """Two machines have each task now, so a planned fault says in which one it happens."""
    write(tmp_path / "shop", "shop", "")
    command = [sys.executable, "-m", "pytest", "--tb=short", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path / "shop", capture_output=True, text=True, timeout=240)

    assert done.returncode == 0, done.stdout
