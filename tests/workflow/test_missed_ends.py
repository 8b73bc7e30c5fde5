"""Status events that are lost, on a running stack: what they were about comes back by the monitor."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from steponce import environment
from steponce.aws import times
from steponce.aws.pace import Pace
from steponce.monitoring.missed_ends import Looked, MissedEnds
from steponce.monitoring.search_position import SearchPosition
from steponce.request.names import name_of
from steponce.triggers.ended import SEARCHED_AFTER
from steponce.triggers.resend import Resender, ResendSettings
from steponce.triggers.written_letters import WrittenLetters
from tests.unit.triggers.world import sqs_record
from tests.workflow.dying import run_function
from tests.workflow.scene import DECLINED, UNREACHABLE, Scene
from tests.workflow.waiting import CONFIRMED, YES, Waiting


def deliver(scene: Scene, payload: Mapping[str, Any], message_id: str, tries: int = 0) -> None:
    """A message arrives at its trigger."""
    resent = {
        "steponceRequestId": {"dataType": "String", "stringValue": json.dumps(message_id)},
        "steponceTries": {"dataType": "Number", "stringValue": str(tries)},
    }
    record = sqs_record(json.dumps(payload), message_id, messageAttributes=resent if tries else {})
    event = {"Records": [record]}
    assert {"batchItemFailures": []} == run_function(scene, "Requests-StartFromQueue", event)


def look(scene: Scene, monkeypatch: pytest.MonkeyPatch, execution_name: str) -> Looked:
    """
    The look of a round that comes when this end is just old enough; what it has done.

    Nothing delivers events on this stack, so all of them are lost, also those of other tests: the look begins
    where this execution did.
    """
    sfn, dynamodb = scene.stack.boto3("stepfunctions"), scene.stack.boto3("dynamodb")
    execution, arn = scene.closed(execution_name), scene.client.state_machine_arn
    letters = WrittenLetters(dynamodb, scene.stack.outputs["LocksTable"])
    place = SearchPosition(dynamodb, scene.stack.outputs["LocksTable"], arn)
    place.move(execution["startDate"])
    settings = scene.stack.outputs | {"ResendTries": "3", "ResendBaseSeconds": "1", "ResendMaxSeconds": "1"}
    resender = Resender.from_settings(scene.stack.boto3("sqs"), environment.read(ResendSettings, settings))
    problems: list[Exception] = []
    with monkeypatch.context() as patch:
        now = execution["stopDate"] + SEARCHED_AFTER + timedelta(milliseconds=2)
        patch.setattr(times, "now", lambda: now)
        looked = MissedEnds(sfn, arn, scene.locks, resender, letters, place).look(
            seconds_left=lambda: 60,
            per_second=1_000,
            pace=Pace(1_000),
            skip=lambda error, _arn: problems.append(error),
        )
    assert ([], 0) == (problems, looked.left)
    return looked


def deliver_again(scene: Scene) -> None:
    """What is in the queue by now arrives at its trigger, which nobody reads for us."""
    sqs, url = scene.stack.boto3("sqs"), scene.stack.outputs["RequestsQueueUrl"]

    def receive() -> Any:
        return sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"], WaitTimeSeconds=1
        ).get("Messages")

    for message in scene.eventually(receive):
        attributes = {
            name: {"dataType": value["DataType"], "stringValue": value["StringValue"]}
            for name, value in message["MessageAttributes"].items()
        }
        record = sqs_record(message["Body"], message["MessageId"], messageAttributes=attributes)
        run_function(scene, "Requests-StartFromQueue", {"Records": [record]})
        sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])


def test_a_request_that_ended_retry_later_comes_back(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    """Once, under its first id, and is charged once."""
    request_id = scene.new_id("lost")
    deliver(scene, UNREACHABLE | {"orderId": request_id}, request_id)
    assert "RetryLater" == scene.closed(request_id)["error"]

    assert Looked(resent=1) == look(scene, monkeypatch, request_id)
    deliver_again(scene)

    assert "COMPLETED" == scene.client.wait(request_id, timeout_seconds=60).status
    assert "SUCCEEDED" == scene.closed(f"{name_of(request_id)}--2")["status"]
    assert Looked() == look(scene, monkeypatch, request_id)
    assert 1 == len(scene.charges(scene.key(request_id)))


def test_a_request_whose_key_was_held_comes_back(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    """It has no record of its own; it is answered by the one that held its key."""
    request_id = scene.new_id("second")
    key = scene.key(request_id)
    first = Waiting.begin(scene, lock_token=key)
    deliver(scene, CONFIRMED, request_id)
    assert "AlreadyInProgress" == scene.closed(request_id)["error"]

    assert Looked(resent=1) == look(scene, monkeypatch, request_id)
    first.answer(YES)
    done = scene.client.wait(first.name, timeout_seconds=60, lock_token=key)
    deliver_again(scene)

    receipt = scene.client.status(request_id, lock_token=key)
    assert ("COMPLETED", done.result) == (receipt.status, receipt.result)
    assert Looked() == look(scene, monkeypatch, request_id)
    assert ([request_id], 1) == (scene.executions(request_id), len(scene.charges(key)))


@pytest.mark.parametrize("another", [False, True], ids=["its own", "another's"])
def test_a_final_answer_is_not_asked_for_again_after_its_record_is_gone(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, another: bool
):
    """The record may expire before the look, and DynamoDB may delete it at any moment from then on."""
    request_id = scene.new_id("declined")
    key, payload = scene.key(request_id), DECLINED | {"orderId": request_id}
    if another:
        first = scene.new_id("first")
        scene.client.start(first, payload, lock_token=key)
        assert "CardDeclined" == scene.closed(first)["error"]
    deliver(scene, payload, request_id)
    assert "CardDeclined" == scene.closed(request_id)["error"]
    lock = scene.locks.get(key)
    assert lock is not None
    assert scene.locks.erase(lock)

    assert Looked() == look(scene, monkeypatch, request_id)


def test_a_message_without_tries_gets_one_letter(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    """From its event, and none from the search."""
    request_id = scene.new_id("tired")
    deliver(scene, UNREACHABLE | {"orderId": request_id}, request_id, tries=17)
    execution = scene.closed(request_id)
    about = {name: execution[name] for name in ("executionArn", "status", "input", "error")}
    stopped = round(execution["stopDate"].timestamp() * 1_000)
    event = {"detail": about | {"stopDate": stopped, "redriveCount": 0}}

    assert {"disposition": "dead-lettered"} == run_function(scene, "Requests-ResendRequest", event)
    assert {"disposition": "left alone"} == run_function(scene, "Requests-ResendRequest", event)
    assert Looked() == look(scene, monkeypatch, request_id)


def test_the_function_looks_as_well(scene: Scene):
    """A round of the schedule lists the executions, and writes down how far it came."""
    told = run_function(scene, "Requests-FindMissedEnds", {})
    assert {"left", "resent", "deadLettered", "skipped", "unreadable"} == told.keys()
    assert (0, 0) == (told["skipped"], told["unreadable"])
    place = SearchPosition(
        scene.stack.boto3("dynamodb"), scene.stack.outputs["LocksTable"], scene.client.state_machine_arn
    )
    assert place.read() is not None
