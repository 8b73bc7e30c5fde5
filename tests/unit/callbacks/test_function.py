"""The function behind the answers' queue, with its real code: what is no answer is refused with a reason."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from steponce.errors import InvalidAnswer, Unavailable
from tests.unit.callback_links import CallbackLinks
from tests.unit.triggers.world import Context, function, sqs_record

pytestmark = pytest.mark.filterwarnings("error")  # Lambda would write them into the log

SETTINGS = {"AwaitingStepsTable": "steps", "OpenShards": "10", "CallbackKey": "key"}
SECRET = "tok_secret"
OUTPUT = {"outcome": "success", "output": {"note": SECRET}}


class Waiting:
    """One waiting step, and the clients by which the function answers it."""

    def __init__(self) -> None:
        self._links = CallbackLinks()
        self.step_id = self._links.step.id

    def client(self, service: str, **_options: Any) -> Any:
        links = self._links
        return {"dynamodb": links.table, "stepfunctions": links.wait.sfn, "secretsmanager": links.secrets}[
            service
        ]


@pytest.fixture
def waiting() -> Waiting:
    """A step that waits."""
    return Waiting()


@pytest.fixture
def resolver(waiting: Waiting) -> Iterator[Any]:
    """The function, with that step."""
    with function("resolve_awaiting_step", waiting, **SETTINGS) as module:
        yield module


NO_ANSWERS = [
    ([], "names its step"),
    ({}, "names its step"),
    ({"awaitingStepId": 5, "answer": OUTPUT}, "names its step"),
    ({"awaitingStepId": "", "answer": OUTPUT}, "names its step"),
    ({"awaitingStepId": "x" * 3_000, "answer": OUTPUT}, "names its step"),
    ({"awaitingStepId": "\ud800", "answer": OUTPUT}, "names its step"),
    ({"awaitingStepId": ["as_1"], "answer": OUTPUT}, "names its step"),
    ({"awaitingStepId": f"as_{'0' * 40}"}, "An answer is a JSON object"),
    ({"awaitingStepId": f"as_{'0' * 40}", "answer": {"outcome": "success"}}, "needs an output"),
]


@pytest.mark.parametrize(("event", "reason"), NO_ANSWERS)
def test_an_invocation_that_is_no_answer_is_refused_in_words(resolver: Any, event: Any, reason: str):
    """Whoever sent it learns what to send instead."""
    with pytest.raises(InvalidAnswer, match=reason):
        resolver.handler(event, Context())


@pytest.mark.parametrize(
    ("body", "reason"),
    [*((json.dumps(event), reason) for event, reason in NO_ANSWERS), (SECRET, "The message, line 1")],
)
def test_a_message_that_is_no_answer_comes_back_with_its_reason_in_the_log(
    resolver: Any, waiting: Waiting, caplog: pytest.LogCaptureFixture, body: str, reason: str
):
    """SQS lays it aside without a reason, and its neighbour in the batch is answered."""
    good = json.dumps({"awaitingStepId": waiting.step_id, "answer": OUTPUT})
    answer = resolver.handler({"Records": [sqs_record(body, "bad"), sqs_record(good, "good")]}, Context())
    assert {"batchItemFailures": [{"itemIdentifier": "bad"}]} == answer
    told, answered = (vars(line) for line in caplog.records)
    assert ("message returned to the queue", "bad") == (told["message"], told["messageId"])
    assert reason in told["detail"]
    assert ("answered", "accepted") == (answered["message"], answered["verdict"])
    assert SECRET not in str([told, answered])


def test_a_message_that_aws_has_not_answered_comes_back_and_is_logged(
    resolver: Any, waiting: Waiting, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    """It is an answer, so there is nothing to say about it but that."""

    def throttled(*_given: Any) -> None:
        raise Unavailable("DynamoDB said ThrottlingException.")

    monkeypatch.setattr(resolver.callbacks, "resolve", throttled)
    body = json.dumps({"awaitingStepId": waiting.step_id, "answer": OUTPUT})
    answer = resolver.handler({"Records": [sqs_record(body, "m-1")]}, Context())
    assert {"batchItemFailures": [{"itemIdentifier": "m-1"}]} == answer
    assert [("message returned to the queue", "Unavailable")] == [
        (line.message, vars(line)["reason"]) for line in caplog.records
    ]
