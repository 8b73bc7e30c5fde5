"""The commands for waiting steps, as a shell runs them, against a stack that runs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from steponce.callbacks.links import Keys, verify
from steponce.cli.resolve import resolve
from steponce.errors import InvalidAnswer, OutputTooLarge
from steponce.local import LocalStack
from tests.patience import eventually
from tests.workflow.program import Run

CONFIRMED = {"orderId": "1", "amount": 500, "card": "tok_visa", "confirm": True}

Verdict = tuple[int, str]
Say = Callable[..., Verdict]


def waiting(steponce: Run, order: str) -> list[dict[str, Any]]:
    """What is listed of this order; others wait on the same stack."""
    code, told = steponce("awaiting", "list", "--local")
    assert 0 == code
    return [step for step in told["awaitingSteps"] if step["requestId"] == order]


@pytest.fixture
def step_id(steponce: Run, order: str) -> str:
    """The order has been started, and waits for its confirmation."""
    steponce("start", order, "-", payload=CONFIRMED)
    eventually(lambda: waiting(steponce, order))
    (step,) = waiting(steponce, order)
    return str(step["awaitingStepId"])


@pytest.fixture
def say(steponce: Run, step_id: str) -> Say:
    """Answer the order's step: exit code and verdict."""

    def answer(command: str, *arguments: str, payload: Any = None) -> Verdict:
        code, told = steponce("callback", command, step_id, *arguments, payload=payload)
        assert step_id == told["awaitingStepId"]
        return code, told["verdict"]

    return answer


def test_an_answer_completes_the_request(steponce: Run, order: str, step_id: str, say: Say):
    """Its output is part of the result; the same again is a duplicate, another one a conflict."""
    _, before = steponce("awaiting", "show", step_id)

    assert (0, "accepted") == say("succeed", "-", payload={"ok": True})

    code, receipt = steponce("wait", order)
    assert (0, {"ok": True}) == (code, receipt["result"]["confirmation"])
    assert (0, "duplicate") == say("succeed", "-", payload={"ok": True})
    assert (3, "conflict") == say("succeed")
    assert (3, "conflict") == say("fail", "--error", "Declined")
    assert (1, "late") == say("heartbeat")
    assert [] == waiting(steponce, order)
    after = before | {"status": "ANSWERED", "outcome": "success"}
    assert (0, after) == steponce("awaiting", "show", step_id)


def test_an_answer_can_fail_the_request(steponce: Run, order: str, say: Say):
    """Error and cause are on record, for everyone who asks."""
    assert (0, "accepted") == say("fail", "--error", "NotConfirmed", "--cause", "The bank says no.")

    code, receipt = steponce("wait", order)
    assert (1, "NotConfirmed", "The bank says no.") == (code, receipt["error"], receipt["cause"])
    again = {"error": "NotConfirmed", "cause": "The bank says no."}
    assert (0, "duplicate") == say("fail", "-", payload=again)
    assert (3, "conflict") == say("fail", "-", payload=again | {"cause": "Another one."})


def test_a_heartbeat_settles_nothing(steponce: Run, order: str, say: Say):
    """However many there are, the answer is still to come."""
    assert [(0, "accepted")] * 2 == [say("heartbeat"), say("heartbeat")]
    assert 1 == len(waiting(steponce, order))
    assert (0, "accepted") == say("succeed")
    assert None is steponce("wait", order)[1]["result"]["confirmation"]


def test_an_answer_to_a_stopped_execution_is_late(stack: LocalStack, order: str, steponce: Run, say: Say):
    """Whatever it is, and how often."""
    arn = steponce("status", order)[1]["executionArn"]
    stack.boto3("stepfunctions").stop_execution(executionArn=arn)

    assert [(1, "late")] * 3 == [say("succeed"), say("succeed"), say("fail")]


def test_nobody_waits_under_an_unknown_id(in_a_shell: Run):
    """It is the verdict of an answer, and an error of a question."""
    code, told = in_a_shell("callback", "succeed", "as_nobody")
    assert (1, "unknown") == (code, told["verdict"])
    code, told = in_a_shell("awaiting", "show", "as_nobody")
    assert (1, "StepNotFound") == (code, told["error"]["type"])


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ({"outcome": "perhaps"}, InvalidAnswer),
        ({"outcome": "success"}, InvalidAnswer),
        ({"outcome": "success", "output": "x" * 262_144}, OutputTooLarge),
    ],
    ids=["no outcome", "no output", "too large"],
)
def test_what_the_function_refuses_is_refused_here(
    stack: LocalStack, answer: dict[str, Any], kind: type[Exception]
):
    """The command line refuses it sooner; other callers are refused by the function."""
    function = stack.outputs["ResolveAwaitingStepFunction"]

    with pytest.raises(kind):
        resolve(stack.boto3("lambda"), function, "as_nobody", answer)


def test_a_request_stands_for_its_step(steponce: Run, order: str):
    """Also right after its start, and when the answer is repeated."""
    steponce("start", order, "-", payload=CONFIRMED)

    answers = [steponce("callback", "succeed", order) for _ in range(2)]

    assert [(0, "accepted"), (0, "duplicate")] == [(code, told["verdict"]) for code, told in answers]
    assert answers[0][1]["awaitingStepId"] == steponce("awaiting", "show", order)[1]["awaitingStepId"]


def test_the_story_names_the_command_that_answers(steponce: Run, order: str, step_id: str):
    """It can be pasted, and the story goes on."""
    _, before = steponce("show", order)
    (command,) = (line.removeprefix("steponce ") for line in before["next"])

    assert ["callback", "succeed", step_id] == shlex.split(command)
    assert 0 == steponce(*shlex.split(command))[0]
    steponce("wait", order)

    _, after = steponce("show", order)
    told = [story["attempts"][0]["awaitingSteps"][0] for story in (before, after)]
    assert [("PENDING", None), ("ANSWERED", "success")] == [(one["status"], one["outcome"]) for one in told]
    assert [(step_id, "AwaitConfirmation", "confirmation")] * 2 == [
        (one["awaitingStepId"], one["state"], one["step"]) for one in told
    ]
    assert ["running", "completed"] == [before["diagnosis"], after["diagnosis"]]


def test_the_task_token_is_in_no_answer(stack: LocalStack, steponce: Run, order: str, step_id: str, say: Say):
    """Nor is what somebody else has answered, unless it is asked for."""
    item = stack.boto3("dynamodb").get_item(
        TableName=stack.outputs["AwaitingStepsTable"], Key={"awaitingStepId": {"S": step_id}}
    )["Item"]
    looks = (("awaiting", "list"), ("awaiting", "show", step_id), ("show", order))

    told = [steponce(*look) for look in looks]
    say("succeed", "-", payload="tok_secret")
    steponce("wait", order)
    told += [steponce(*look) for look in looks[:2]]
    steps = steponce("show", order)[1]["attempts"][0]["awaitingSteps"]
    everything = steponce("show", order, "--payload")

    assert item["taskToken"]["S"] not in json.dumps([told, everything])
    assert "tok_secret" not in json.dumps([told, steps])
    answer = everything[1]["attempts"][0]["awaitingSteps"][0]["answer"]
    assert {"outcome": "success", "output": "tok_secret"} == answer


def test_a_link_is_signed_with_the_stacks_key(stack: LocalStack, steponce: Run, step_id: str):
    """It begins where the HTTP API is, and allows every outcome."""
    link = steponce("awaiting", "show", step_id, "--link")[1]["link"]

    keys = Keys(stack.boto3("secretsmanager"), stack.outputs["CallbackKey"])
    query = dict(parse_qsl(urlsplit(link).query))
    assert link.startswith(f"{stack.outputs['CallbacksUrl']}/callbacks/{step_id}?")
    assert {"success", "failure", "heartbeat"} == verify(keys, step_id, query)
