"""Executions that start another, and wait for its end or not."""

import json
from collections import Counter

import pytest

from steponce.local.runtime.functions import MOST_WORKERS
from tests.patience import eventually
from tests.unit.local.moto_patches.workflows import Workflows, lambda_task, task, waiting_task

SYNC = [".sync", ".sync:2"]
ECHO = {"Echo": {"Type": "Pass", "End": True}}
LASTING = {"Wait": {"Type": "Wait", "Seconds": 3600, "End": True}}
DECLINED = {"Fail": {"Type": "Fail", "Error": "CardDeclined", "Cause": "no money"}}
CAUGHT = {"Type": "Pass", "Result": "caught", "End": True}


@pytest.fixture(scope="module")
def workflows(small_stack):
    return Workflows(small_stack)


def start_task(form, machine, others=None, **parameters):
    """A task that starts an execution of this machine."""
    return task(f"states:startExecution{form}", {"StateMachineArn": machine, **parameters}, others or {})


def children(workflows, machine):
    """The executions of a machine, as DescribeExecution has them."""
    found = workflows.sfn.list_executions(stateMachineArn=machine)["executions"]
    return [workflows.described(one["executionArn"]) for one in found]


def child(workflows, machine):
    """The only execution of a machine, once it is there."""
    (found,) = eventually(lambda: children(workflows, machine))
    return found


def is_aborted(workflows, machine, parent):
    """Wait for the end of the parent's only child, which says who ended it."""
    found = eventually(lambda: (one := child(workflows, machine))["status"] != "RUNNING" and one)
    assert ("ABORTED", None) == (found["status"], found.get("error"))
    assert f"[{parent}] which was managing this resource was aborted" in found["cause"]


def test_one_that_is_only_started_is_not_waited_for(workflows):
    """The answer is that of StartExecution, with the time in milliseconds."""
    machine = workflows.make(LASTING)
    found = json.loads(workflows.run({"Start": start_task("", machine, Name="by-hand")})["output"])
    started = child(workflows, machine)
    assert "RUNNING" == started["status"]
    assert found == {
        "ExecutionArn": started["executionArn"],
        "StartDate": round(started["startDate"].timestamp() * 1000),
    }
    workflows.sfn.stop_execution(executionArn=started["executionArn"])


@pytest.mark.parametrize("text", ["é" * 60_000, "\U0001f600" * 30_000, "\ud83d"], ids=["é", "emoji", "half"])
def test_an_input_in_another_alphabet_counts_as_it_is(workflows, text):
    """120,000 bytes, which were 360,000 with an escape for each character. Half a character is taken, too."""
    machine = workflows.make(ECHO)
    parameters = {"StateMachineArn": machine, "Input": {"text": text}}
    found = workflows.run({"Start": task("states:startExecution", parameters, {})})
    assert "SUCCEEDED" == found["status"], found["cause"][:200]
    assert {"text": text} == json.loads(child(workflows, machine)["input"])


def test_an_input_may_hold_an_item_with_a_binary_value(workflows, small_stack):
    """AWS gives it in base64."""
    item = {"id": {"S": "with-binary"}, "photo": {"B": b"hi"}}
    small_stack.boto3("dynamodb").put_item(TableName="small-ItemsTable", Item=item)
    machine = workflows.make(ECHO)
    key = {"TableName": "small-ItemsTable", "Key": {"id": item["id"]}}
    read = {"Read": task("dynamodb:getItem", key, {"Next": "Start"})}
    parameters = {"StateMachineArn": machine, "Input": {"photo.$": "$.Item.photo.B"}}
    workflows.run(read | {"Start": task("states:startExecution", parameters, {})})
    assert {"photo": "aGk="} == json.loads(child(workflows, machine)["input"])


@pytest.mark.parametrize("form", SYNC)
def test_the_result_is_what_is_known_of_the_child_at_its_end(workflows, form):
    """`.sync` gives input and output as text, `.sync:2` as JSON; both know who started the child."""
    machine = workflows.make(ECHO)
    given = {"paid.$": "$.paid", "AWS_STEP_FUNCTIONS_STARTED_BY_EXECUTION_ID.$": "$$.Execution.Id"}
    parent = workflows.run({"Start": start_task(form, machine, Input=given)}, {"paid": {"EUR": 5}})
    found = json.loads(parent["output"])
    ended = child(workflows, machine)
    expected = {
        "paid": {"EUR": 5},
        "AWS_STEP_FUNCTIONS_STARTED_BY_EXECUTION_ID": parent["executionArn"],
    }
    read = json.loads if form == ".sync" else dict
    assert [expected, expected] == [read(found.pop("Input")), read(found.pop("Output"))]
    assert found == {
        "ExecutionArn": ended["executionArn"],
        "InputDetails": {"Included": True},
        "Name": ended["name"],
        "OutputDetails": {"Included": True},
        "RedriveCount": 0,
        "RedriveStatus": "NOT_REDRIVABLE",
        "RedriveStatusReason": "Execution is SUCCEEDED and cannot be redriven",
        "StartDate": round(ended["startDate"].timestamp() * 1000),
        "StateMachineArn": machine,
        "Status": "SUCCEEDED",
        "StopDate": round(ended["stopDate"].timestamp() * 1000),
    }


@pytest.mark.parametrize("form", SYNC)
def test_a_child_that_fails_fails_its_task(workflows, form):
    """As States.TaskFailed, which States.ALL catches; the cause has the child's error and cause."""
    machine = workflows.make(DECLINED)
    catch = {"Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Tell"}], "Next": "Done"}
    found = workflows.run(
        {
            "Start": start_task(form, machine, catch),
            "Tell": {"Type": "Fail", "ErrorPath": "$.Error", "CausePath": "$.Cause"},
            "Done": CAUGHT,
        }
    )
    assert "States.TaskFailed" == found["error"]
    cause = json.loads(found["cause"])
    assert ("FAILED", "CardDeclined", "no money") == (cause["Status"], cause["Error"], cause["Cause"])
    assert child(workflows, machine)["executionArn"] == cause["ExecutionArn"]


@pytest.mark.parametrize("form", ["", *SYNC])
def test_a_start_that_is_refused_has_the_name_of_the_sdk_s_error(workflows, form):
    """Whichever the form is."""
    machine = workflows.make(ECHO)
    workflows.end(workflows.sfn.start_execution(stateMachineArn=machine, name="taken")["executionArn"])
    taken = workflows.run({"Start": start_task(form, machine, Name="taken")})
    absent = workflows.run({"Start": start_task(form, f"{machine}-absent")})
    assert "StepFunctions.ExecutionAlreadyExistsException" == taken["error"]
    assert "StepFunctions.StateMachineDoesNotExistException" == absent["error"]


def test_a_second_start_of_a_child_that_runs_waits_for_the_same(workflows):
    """Name and input are the same, so StartExecution answers with the one that is there."""
    machine = workflows.make({"Wait": waiting_task(TimeoutSeconds=3600)})
    parents = [
        workflows.start({"Start": start_task(".sync", machine, Name="once", Input={"n": 1})})
        for _ in range(2)
    ]
    other = workflows.run({"Start": start_task(".sync", machine, Name="once", Input={"n": 2})})
    for parent in parents:
        eventually(lambda parent=parent: "TaskSubmitted" in workflows.history(parent))
    token = workflows.token(child(workflows, machine)["executionArn"])
    workflows.sfn.send_task_success(taskToken=token, output="1")
    outputs = [json.loads(workflows.end(parent)["output"]) for parent in parents]
    assert outputs[0] == outputs[1]
    assert "StepFunctions.ExecutionAlreadyExistsException" == other["error"]
    assert "SUCCEEDED" == child(workflows, machine)["status"]


@pytest.mark.parametrize(
    ("others", "fields", "end"),
    [
        ({"TimeoutSeconds": 1}, {}, ("FAILED", "States.Timeout")),
        ({"TimeoutSeconds": 3600, "HeartbeatSeconds": 1}, {}, ("FAILED", "States.Timeout")),
        ({"TimeoutSeconds": 3600}, {"TimeoutSeconds": 1}, ("TIMED_OUT", None)),
    ],
    ids=["task", "heartbeat", "machine"],
)
def test_a_parent_out_of_time_stops_its_child(workflows, others, fields, end):
    """Whichever of its times is over."""

    def gives_up_a_child():
        """None where this machine is so busy that the time was over before there was a child."""
        machine = workflows.make(LASTING)
        parent = workflows.start({"Start": start_task(".sync:2", machine, others)}, **fields)
        found = workflows.end(parent)
        assert end == (found["status"], found.get("error"))
        return children(workflows, machine) and (machine, parent)

    is_aborted(workflows, *eventually(gives_up_a_child))


@pytest.mark.parametrize("form", SYNC)
def test_a_parent_that_is_stopped_stops_its_child(workflows, form):
    """While it waits."""
    machine = workflows.make(LASTING)
    parent = workflows.start({"Start": start_task(form, machine)})
    eventually(lambda: "TaskSubmitted" in workflows.history(parent))
    workflows.sfn.stop_execution(executionArn=parent)
    is_aborted(workflows, machine, parent)
    assert ["TaskSubmitted", "ExecutionAborted"] == workflows.history(parent)[-2:]


def declines(gate):
    """A task that fails once this file is there."""
    payload = {"until": str(gate), "raise": "no money"}
    return task("lambda:invoke", {"FunctionName": "small-MisbehaveFunction", "Payload": payload}, {})


def parallel(machine, gate):
    """One branch waits for a child, and the other fails."""
    fails = {"StartAt": "Fail", "States": {"Fail": declines(gate)}}
    waits = {"StartAt": "Start", "States": {"Start": start_task(".sync", machine)}}
    return {"Type": "Parallel", "Branches": [waits, fails]}


def iterations(machine, gate):
    """The first iteration waits for a child, and the second fails."""
    is_first = {"Variable": "$.n", "NumericEquals": 1, "Next": "Start"}
    states = {
        "IsFirst": {"Type": "Choice", "Choices": [is_first], "Default": "Fail"},
        "Start": start_task(".sync", machine),
        "Fail": declines(gate),
    }
    return {"Type": "Map", "ItemProcessor": {"StartAt": "IsFirst", "States": states}}


@pytest.mark.parametrize("beside", [parallel, iterations])
def test_a_failure_beside_it_stops_the_child(workflows, tmp_path, beside):
    """The branch or iteration that waits is stopped with the others; the execution goes on."""
    machine = workflows.make(LASTING)
    caught = {"ErrorEquals": ["CardDeclined"], "Next": "Caught"}
    states = {"All": {**beside(machine, tmp_path / "gate"), "End": True, "Catch": [caught]}, "Caught": CAUGHT}
    parent = workflows.start(states, [{"n": 1}, {"n": 2}])
    eventually(lambda: "TaskSubmitted" in workflows.history(parent))
    (tmp_path / "gate").touch()
    is_aborted(workflows, machine, parent)
    assert '"caught"' == workflows.end(parent)["output"]


def test_an_answer_to_the_token_comes_before_the_child_s_end(workflows):
    """The parent goes on with it, and the child is left alone."""
    machine = workflows.make(LASTING)
    given = {"token.$": "$$.Task.Token"}
    parent = workflows.start({"Start": start_task(".sync:2", machine, Input=given)})
    started = child(workflows, machine)
    workflows.sfn.send_task_success(taskToken=json.loads(started["input"])["token"], output='"enough"')
    assert '"enough"' == workflows.end(parent)["output"]
    assert "RUNNING" == child(workflows, machine)["status"]
    workflows.sfn.stop_execution(executionArn=started["executionArn"])


def test_more_parents_than_slots_wait_for_their_children(workflows):
    """Who waits for a child holds no slot, also if the child waits for one of its own."""
    leaf = workflows.make({"Quick": lambda_task()})
    middle = workflows.make({"Start": start_task(".sync:2", leaf)})
    top = workflows.make({"Start": start_task(".sync:2", middle)})
    number = 2 * MOST_WORKERS
    arns = [workflows.sfn.start_execution(stateMachineArn=top)["executionArn"] for _ in range(number)]
    assert {"SUCCEEDED": number} == Counter(workflows.end(arn)["status"] for arn in arns)
    assert number == len(children(workflows, leaf))
