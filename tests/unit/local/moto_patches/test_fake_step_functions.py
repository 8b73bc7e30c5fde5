"""The fake Step Functions of the unit tests answers as the embedded engine does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from steponce.local import LocalStack
from tests.fakes.step_functions import MACHINE, PAGE, StepFunctions
from tests.unit.local.moto_patches.workflows import Workflows, waiting_task


class Fake:
    """A fake whose executions wait for one answer, and end with it."""

    def __init__(self) -> None:
        self.sfn = StepFunctions()
        self.machine = MACHINE

    def token(self, arn: str) -> str:
        """The token of the task that the execution waits in."""
        self.sfn.expect_answer(
            arn, f"token of {arn}", lambda _event, _details: self.sfn.close(arn, "SUCCEEDED")
        )
        return f"token of {arn}"


class Engine:
    """The embedded engine with such a state machine."""

    def __init__(self, workflows: Workflows) -> None:
        self.sfn = workflows.sfn
        self.machine = workflows.make({"Wait": waiting_task()})
        self.token = workflows.token


@pytest.fixture(params=["fake", "engine"])
def aws(request: pytest.FixtureRequest) -> Fake | Engine:
    """Either."""
    if request.param == "fake":
        return Fake()
    stack: LocalStack = request.getfixturevalue("small_stack")
    return Engine(Workflows(stack))


def code(call: Any, **arguments: Any) -> str:
    """AWS's name of the error, or `accepted`."""
    try:
        call(**arguments)
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return "accepted"


def start(aws: Fake | Engine, name: str, **given: Any) -> str:
    """Start an execution; its ARN."""
    text = json.dumps(given)
    started = aws.sfn.start_execution(stateMachineArn=aws.machine, name=name, input=text)
    return str(started["executionArn"])


def test_a_name_starts_once(aws: Fake | Engine):
    """The same start gives the open execution again; another input, or a closed execution, is refused."""
    arguments = {"stateMachineArn": aws.machine, "name": "order-1"}
    first = aws.sfn.start_execution(**arguments, input='{"a": 1}')
    again = aws.sfn.start_execution(**arguments, input='{"a": 1}')
    assert [first["executionArn"], first["startDate"]] == [again["executionArn"], again["startDate"]]
    assert "ExecutionAlreadyExists" == code(aws.sfn.start_execution, **arguments, input='{"a": 2}')
    aws.sfn.stop_execution(executionArn=first["executionArn"])
    assert "ExecutionAlreadyExists" == code(aws.sfn.start_execution, **arguments, input='{"a": 1}')


def test_what_cannot_be_started_is_refused(aws: Fake | Engine):
    """By its name, or its machine's."""
    assert "StateMachineDoesNotExist" == code(
        aws.sfn.start_execution, stateMachineArn=f"{aws.machine}-2", name="order-1", input="{}"
    )
    names = {"a b": "InvalidName", "a:b": "InvalidName", "é?": "InvalidName", "x" * 81: "ValidationException"}
    arguments = {"stateMachineArn": aws.machine, "input": "{}"}
    assert names == {name: code(aws.sfn.start_execution, name=name, **arguments) for name in names}


def test_what_was_never_started_is_unknown(aws: Fake | Engine):
    """To every call."""
    arn = start(aws, "order-1") + "-never"
    history = aws.sfn.get_paginator("get_execution_history")
    for call in (aws.sfn.describe_execution, aws.sfn.stop_execution, lambda **a: list(history.paginate(**a))):
        assert "ExecutionDoesNotExist" == code(call, executionArn=arn)


def test_a_stop_ends_an_execution_once(aws: Fake | Engine):
    """The second one changes nothing, and answers when it ended."""
    arn = start(aws, "order-1", a=1)
    assert "RUNNING" == aws.sfn.describe_execution(executionArn=arn)["status"]
    stopped = aws.sfn.stop_execution(executionArn=arn, error="Tired", cause="of waiting")
    again = aws.sfn.stop_execution(executionArn=arn, error="Other", cause="x")
    found = aws.sfn.describe_execution(executionArn=arn)
    assert ("ABORTED", "Tired", "of waiting") == (found["status"], found["error"], found["cause"])
    assert stopped["stopDate"] == again["stopDate"] == found["stopDate"]
    assert ({"a": 1}, "order-1") == (json.loads(found["input"]), found["name"])
    pages = aws.sfn.get_paginator("get_execution_history").paginate(executionArn=arn)
    events = [event["type"] for page in pages for event in page["events"]]
    assert ("ExecutionStarted", "ExecutionAborted") == (events[0], events[-1])


def test_executions_are_listed_by_status_and_newest_first(aws: Fake | Engine):
    """In pages; without a status all of them."""
    arns = [start(aws, f"order-{number}") for number in range(4)]
    aws.sfn.stop_execution(executionArn=arns[1])

    def listed(status: str | None = None) -> list[list[str]]:
        only = {} if status is None else {"statusFilter": status}
        pages = aws.sfn.get_paginator("list_executions").paginate(
            stateMachineArn=aws.machine, **only, PaginationConfig={"PageSize": 2}
        )
        return [[one["executionArn"] for one in page["executions"]] for page in pages]

    assert [[arns[1]]] == listed("ABORTED")
    assert [[arns[3], arns[2]], [arns[0]]] == listed("RUNNING")
    assert [[]] == listed("FAILED")
    assert [[arns[3], arns[2]], [arns[1], arns[0]]] == listed()


def test_a_token_takes_one_answer(aws: Fake | Engine):
    """After heartbeats; what comes later is too late."""
    arn = start(aws, "order-1")
    token = aws.token(arn)
    sfn = aws.sfn
    assert "InvalidToken" == code(sfn.send_task_heartbeat, taskToken="nonsense")
    assert ["accepted"] * 2 == [code(sfn.send_task_heartbeat, taskToken=token) for _ in range(2)]
    assert "accepted" == code(sfn.send_task_success, taskToken=token, output="1")
    late = [
        code(sfn.send_task_success, taskToken=token, output="1"),
        code(sfn.send_task_failure, taskToken=token),
        code(sfn.send_task_heartbeat, taskToken=token),
    ]
    assert ["TaskTimedOut"] * 3 == late


def test_a_stopped_execution_takes_no_answer(aws: Fake | Engine):
    """Its task is over."""
    arn = start(aws, "order-1")
    token = aws.token(arn)
    aws.sfn.stop_execution(executionArn=arn)
    assert "TaskTimedOut" == code(aws.sfn.send_task_success, taskToken=token, output="1")


# -- What only the fake can do -----------------------------------------------------------------------


def test_a_planted_error_is_raised_for_what_it_is_about():
    """Until the fake is healed."""
    sfn = StepFunctions()
    sfn.put("order-1")
    sfn.put("order-2")
    sfn.refuse("describe_execution", "ThrottlingException", about="order-1")
    codes = [code(sfn.describe_execution, executionArn=sfn.arn(f"order-{n}")) for n in (1, 2)]
    assert ["ThrottlingException", "accepted"] == codes
    sfn.heal()
    assert "accepted" == code(sfn.describe_execution, executionArn=sfn.arn("order-1"))
    assert 3 == sfn.calls["describe_execution"]


def test_a_call_whose_answer_is_lost_has_taken_effect():
    """The next one finds it."""
    sfn = StepFunctions()
    sfn.lose_answers("start_execution")
    with pytest.raises(ReadTimeoutError):
        sfn.start_execution(stateMachineArn=MACHINE, name="order-1", input="{}")
    assert ["order-1"] == sfn.names()


def test_a_history_that_lags_lacks_its_newest_events():
    """And comes in small pages."""
    sfn = StepFunctions()
    sfn.put("order-1", *({"id": number} for number in range(2 * PAGE)))
    sfn.shown[sfn.arn("order-1")] = PAGE + 1
    pages = sfn.get_paginator("get_execution_history").paginate(executionArn=sfn.arn("order-1"))
    assert [PAGE, 1] == [len(page["events"]) for page in pages]
