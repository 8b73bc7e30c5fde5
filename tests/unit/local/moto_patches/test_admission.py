"""More executions at once than there are workers and slots."""

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from steponce.local import LocalStack
from steponce.local.runtime.functions import MOST_WORKERS
from tests.patience import PATIENCE_SECONDS, eventually
from tests.unit.local.moto_patches.workflows import TEMPLATE, Workflows, lambda_task, waiting_task

MORE = 2 * MOST_WORKERS


@pytest.fixture(scope="module")
def workflows(small_stack):
    return Workflows(small_stack)


class Crowd:
    """Executions of one state machine, started at once."""

    def __init__(self, workflows, states, number, payload=None, **fields):
        self.workflows = workflows
        machine = workflows.make(states, **fields)

        def start(index):
            return workflows.sfn.start_execution(
                stateMachineArn=machine, name=str(index), input=json.dumps(payload or {})
            )["executionArn"]

        with ThreadPoolExecutor(10) as threads:
            self.arns = list(threads.map(start, range(number)))

    def ends(self):
        """How many have ended how."""
        return Counter(self.workflows.end(arn)["status"] for arn in self.arns)

    def have_reached(self, event):
        """Wait until this event is in the history of each."""
        for arn in self.arns:
            eventually(lambda arn=arn: event in self.workflows.history(arn))


def test_a_wait_for_a_worker_is_no_time_of_the_task_or_of_the_state_machine(workflows):
    """Five rounds of a second, where each may take four: in the order of their start, all succeed."""
    states = {"Slow": lambda_task(TimeoutSeconds=4)}
    number = 5 * MOST_WORKERS

    def all_succeed():
        """Not so where this machine is so busy that one took four seconds."""
        crowd = Crowd(workflows, states, number, {"sleep": 1}, TimeoutSeconds=40)
        return {"SUCCEEDED": number} == crowd.ends()

    eventually(all_succeed)


def test_branches_of_one_execution_may_be_more_than_there_are_workers(workflows):
    """They are admitted together; their clocks stand while they wait."""
    branch = {"StartAt": "Slow", "States": {"Slow": lambda_task(TimeoutSeconds=4)}}
    states = {
        "Each": {"Type": "Map", "ItemsPath": "$.items", "ItemProcessor": branch, "End": True},
    }
    items = {"items": [{"sleep": 1}] * 5 * MOST_WORKERS}
    eventually(lambda: "SUCCEEDED" == workflows.run(states, items)["status"])  # a busy machine may be late


def test_branches_within_branches_run_through(workflows):
    """Whoever waits for branches holds no slot, so that as many as there are slots stop nothing."""

    def two_of(branch, name):
        return {"Type": "Parallel", "End": True, "Branches": [branch(f"{name}A"), branch(f"{name}B")]}

    def quick(name):
        return {"StartAt": name, "States": {name: lambda_task(TimeoutSeconds=PATIENCE_SECONDS)}}

    def inner(name):
        return {"StartAt": name, "States": {name: two_of(quick, name)}}

    states = {"Outer": two_of(inner, "Inner")}
    assert {"SUCCEEDED": MORE} == Crowd(workflows, states, MORE).ends()


WAITS = {
    "a token": ({"Waits": waiting_task(TimeoutSeconds=3600)}, {}, "TaskSubmitted"),
    "a Wait state": (
        {"Waits": {"Type": "Wait", "Seconds": 3600, "Next": "Done"}, "Done": {"Type": "Succeed"}},
        {},
        "WaitStateEntered",
    ),
    "another try": (
        {"Waits": lambda_task(Retry=[{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 3600}])},
        {"raise": "no"},
        "TaskFailed",
    ),
}


@pytest.mark.parametrize(("states", "payload", "event"), WAITS.values(), ids=WAITS.keys())
def test_who_waits_for_something_lets_others_run(workflows, states, payload, event):
    """Twice as many wait as there are slots; a new execution runs at once."""
    crowd = Crowd(workflows, states, MORE, payload)
    crowd.have_reached(event)
    assert "SUCCEEDED" == workflows.run({"Quick": lambda_task()})["status"]
    assert all("ExecutionSucceeded" not in workflows.history(arn) for arn in crowd.arns)
    for arn in crowd.arns:
        workflows.sfn.stop_execution(executionArn=arn)


def test_many_that_were_waited_for_come_back(workflows):
    """All tokens are answered at once, and new executions come meanwhile."""
    crowd = Crowd(workflows, {"Waits": waiting_task(TimeoutSeconds=3600)}, MORE)
    tokens = [workflows.token(arn) for arn in crowd.arns]
    with ThreadPoolExecutor(10) as threads:
        answers = threads.map(
            lambda token: workflows.sfn.send_task_success(taskToken=token, output="1"), tokens
        )
        others = Crowd(workflows, {"Quick": lambda_task()}, MORE)
        assert MORE == len(list(answers))
    assert {"SUCCEEDED": MORE} == crowd.ends() == others.ends()


def test_one_that_waits_is_running_and_can_be_stopped(workflows, tmp_path):
    """It has entered no state then, and never does; the ones behind it go on."""
    gate = tmp_path / "gate"
    crowd = Crowd(workflows, {"Slow": lambda_task()}, 2 * MORE, {"until": str(gate)})
    last = workflows.start({"Quick": lambda_task()})
    found = workflows.sfn.describe_execution(executionArn=last)
    assert ("RUNNING", ["ExecutionStarted"]) == (found["status"], workflows.history(last))
    workflows.sfn.stop_execution(executionArn=last, error="Stopped", cause="by hand")
    assert "ABORTED" == workflows.end(last)["status"]
    gate.touch()
    assert {"SUCCEEDED": 2 * MORE} == crowd.ends()
    assert ["ExecutionStarted", "ExecutionAborted"] == workflows.history(last)


def test_dead_workers_keep_nobody_waiting(workflows):
    """Each of many functions ends its process; every one is told, and the next execution runs."""
    crowd = Crowd(workflows, {"Dies": lambda_task()}, 2 * MORE, {"exit": 1})
    assert {"FAILED": 2 * MORE} == crowd.ends()
    assert "SUCCEEDED" == workflows.run({"Quick": lambda_task()})["status"]


@pytest.mark.full
def test_a_stack_ends_while_many_wait():
    """Nothing is waited for, and nothing is left."""
    with LocalStack.from_template(TEMPLATE, name="small", deliveries=False) as stack:
        Crowd(Workflows(stack), {"Slow": lambda_task()}, 200, {"sleep": 1.5})
