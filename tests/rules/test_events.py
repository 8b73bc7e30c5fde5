"""The example events are real: each function has one, and it means what it says."""

import json
import re
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from samtranslator.yaml_helper import yaml_parse

from steponce.aws import times
from steponce.callbacks.answer import Answer
from steponce.callbacks.step import AwaitingStep
from steponce.locks.record import Lock
from steponce.request.envelope import Envelope
from steponce.request.settings import RequestRules
from steponce.triggers import events, messages
from steponce.triggers.ended import examine
from steponce.triggers.start_request import RequestPaths
from steponce.workflow import INPROGRESS

from .documents import EVENTS, FUNCTIONS, ROOT, load_json, machine, whole_template
from .prose import read

NOON = times.from_text("2026-01-31T12:00:00.000Z")
RULES = RequestRules(key_prefix="steponce-run-once")


def event(name: str) -> Any:
    """One example event."""
    return load_json(ROOT / "events" / f"{name}.json")


def pattern_of(function: str) -> dict[str, Any]:
    """The pattern of the rule that calls a function when an execution ends badly."""
    events_of_it = whole_template()["Resources"][function]["Properties"]["Events"]
    return dict(events_of_it["BadEnd"]["Properties"]["Pattern"])


@pytest.mark.parametrize("path", EVENTS, ids=lambda path: path.name)
def test_the_event_is_an_object(path: Path) -> None:
    """Whoever sends it gets past the JSON parser."""
    assert isinstance(load_json(path), dict)


@pytest.mark.parametrize("folder", FUNCTIONS, ids=lambda folder: folder.name)
def test_the_function_has_an_event(folder: Path) -> None:
    """`sam local invoke` can run every function."""
    assert (ROOT / "events" / f"{folder.name}.json").exists()


def test_the_work_s_event_has_what_the_workflow_sends() -> None:
    """charge_card.json is what DoWork hands over."""
    sent = machine("run_once")["States"]["DoWork"]["Parameters"]["Payload"]
    assert {key.removesuffix(".$") for key in sent} == set(event("charge_card"))


def test_the_owner_s_event_has_what_the_workflow_sends() -> None:
    """check_owner.json holds an open lock, as CheckOwner reads it."""
    sent = machine("run_once")["States"]["CheckOwner"]["Parameters"]["Payload"]
    assert {key.removesuffix(".$") for key in sent} == set(event("check_owner"))
    assert Lock.from_item(event("check_owner")["lock"]).status == INPROGRESS


def test_the_lock_in_the_owner_s_event_has_every_attribute_that_the_workflow_writes() -> None:
    """The example record is a whole one."""
    update = machine("run_once")["States"]["AcquireLock"]["Parameters"]["UpdateExpression"]
    written = {
        part.split()[0]
        for part in update.removeprefix("SET ").partition(" REMOVE")[0].split(", ")
        if "=" in part
    }
    assert written - {"#status"} | {"status", "lockToken"} == set(event("check_owner")["lock"])


def test_the_closing_function_s_event_is_of_the_example_s_execution() -> None:
    """close_execution.json tells of the owner of the example's lock, as its rule lets it pass."""
    told, lock = event("close_execution"), Lock.from_item(event("check_owner")["lock"])
    pattern = pattern_of("CloseExecutionFunction")
    assert [told["source"]] == pattern["source"]
    assert [told["detail-type"]] == pattern["detail-type"]
    assert told["detail"]["status"] in pattern["detail"]["status"]
    envelope = json.loads(told["detail"]["input"])
    assert (lock.locked_by, lock.execution_name) == (told["detail"]["executionArn"], told["detail"]["name"])
    assert (lock.lock_token, lock.call_id) == (envelope["lockToken"], envelope["callId"])
    assert lock.request_id == envelope["requestId"]
    assert set(Envelope.make("order-1", {}, RULES).to_dict()) == set(envelope)


@pytest.mark.parametrize("name", ["find_overdue", "find_missed_ends"])
def test_the_event_of_what_looks_regularly_is_a_schedule_s(name: str) -> None:
    """It is what a rule with a rate sends; the function reads nothing of it."""
    sent = event(name)
    assert ("aws.events", "Scheduled Event", {}) == (sent["source"], sent["detail-type"], sent["detail"])


def test_the_recording_function_s_event_has_what_the_workflow_sends() -> None:
    """record_awaiting_step.json is what AwaitConfirmation hands over, and becomes a step."""
    sent = machine("run_once")["States"]["AwaitConfirmation"]["Parameters"]["Payload"]
    assert {key.removesuffix(".$") for key in sent} == set(event("record_awaiting_step"))
    assert "confirmation" == AwaitingStep.from_event(event("record_awaiting_step")).step


def test_the_resolving_function_s_event_is_an_answer() -> None:
    """resolve_awaiting_step.json names a step and answers it."""
    sent = event("resolve_awaiting_step")
    assert {"awaitingStepId", "answer"} == set(sent)
    assert "success" == Answer.parse(sent["answer"]).outcome


def test_the_preparing_function_s_event_has_what_the_workflow_sends() -> None:
    """prepare_request.json is what PrepareRequest hands over."""
    sent = machine("run_once")["States"]["PrepareRequest"]["Parameters"]["Payload"]
    assert {key.removesuffix(".$") for key in sent} == set(event("prepare_request"))


@pytest.mark.parametrize(
    "started", [event("prepare_request")["input"], event("hand_started")], ids=["prepare", "hand"]
)
def test_a_hand_started_example_becomes_an_envelope(started: dict[str, Any]) -> None:
    """The examples are accepted."""
    assert "steponce-run-once/order-1" == Envelope.complete("order-1", started, RULES).lockToken


@pytest.mark.parametrize("name", ["start_from_queue", "start_from_fifo_queue", "start_from_topic"])
def test_the_messages_ask_for_the_order(name: str) -> None:
    """Whichever way they came, and at a time of their own."""
    (record,) = event(name)["Records"]
    asked = messages.find_request(
        SQSRecord(record), RequestPaths("messageId", "body"), RequestPaths("id", "detail")
    )
    assert (event("start_order"), NOON) == (asked.payload, asked.requested_at)


def test_the_messages_have_an_id_each() -> None:
    """All of them can be started on one stack."""
    names = ("start_from_queue", "start_from_fifo_queue", "start_from_topic")
    seen = [messages.see(SQSRecord(event(name)["Records"][0])) for name in names]
    assert len(names) == len({one["messageId"] for one in seen})


@pytest.mark.parametrize("name", ["start_from_event", "start_from_schedule", "start_from_stream"])
def test_the_events_ask_for_the_order(name: str) -> None:
    """The bus, the schedule and the stream."""
    (single,) = events.single_events(event(name))
    asked = events.find_request(single, RequestPaths("id", "detail"))
    assert event("start_order") == asked.payload
    assert asked.requested_at is not None
    assert NOON.date() == asked.requested_at.date()


def test_the_bucket_s_event_tells_of_an_object() -> None:
    """Its key is decoded."""
    (single,) = events.single_events(event("start_from_bucket"))
    assert "2026/order é.json" == events.see(single)["detail"]["object"]["key"]


def test_the_resending_function_s_event_is_of_the_order_that_comes_back() -> None:
    """resend_request.json carries what the client would have made of the order, as its rule lets it pass."""
    told = event("resend_request")
    pattern = pattern_of("ResendRequestFunction")
    assert [told["source"]] == pattern["source"]
    assert [told["detail-type"]] == pattern["detail-type"]
    assert told["detail"]["status"] in pattern["detail"]["status"]
    just_now = {"stopDate": times.now().timestamp() * 1_000}
    found = examine(told["detail"] | just_now, Mock(), Mock(get=lambda _token: None))
    assert found is not None
    asked = found.request
    assert (event("start_order"), NOON, "RetryLater") == (asked.payload, asked.requested_at, found.error)
    sent, redelivery = json.loads(told["detail"]["input"]), {"requestId": "order-1", "tries": 0}
    envelope = Envelope.make("order-1", event("start_order"), RULES, redelivery=redelivery)
    assert set(envelope.to_dict()) == set(sent)
    assert (envelope.payloadHash, envelope.shard) == (sent["payloadHash"], sent["shard"])


def test_the_examples_tell_one_story() -> None:
    """One order, one payload, one key in all of them."""
    payload = event("start_order")
    assert payload == event("hand_started")["payload"] == event("charge_card")["payload"]
    assert event("charge_card")["lockToken"] == event("check_owner")["lock"]["lockToken"]["S"]


def test_the_lock_in_the_owner_s_event_is_the_example_s() -> None:
    """Hash and shard are what the client would have made of it."""
    envelope = Envelope.make("order-1", event("start_order"), RULES)
    lock = Lock.from_item(event("check_owner")["lock"])
    assert (envelope.payloadHash, f"INPROGRESS#{envelope.shard}") == (lock.payload_hash, lock.open_status)


def test_no_event_holds_what_only_a_person_would_have() -> None:
    """Account ids are AWS's example, cards are tokens."""
    for path in EVENTS:
        text = json.dumps(load_json(path))
        assert "4242" not in text
        accounts = re.findall(r"arn:aws:(?!s3:)[a-z0-9-]+:[a-z0-9-]*:(\d*):", text)
        assert {"123456789012"} >= set(accounts)


def test_the_page_shows_the_event_that_the_workflow_sends() -> None:
    """People copy the rule, and their functions read these fields."""
    page = read(ROOT / "docs" / "callbacks.md")
    (rule,) = [block for block in page.blocks("yaml") if "AwaitingStepRecorded" in block]
    (detail,) = [json.loads(block) for block in page.blocks("json") if '"link"' in block]
    step = AwaitingStep.from_event(event("record_awaiting_step"))
    sends = (ROOT / "functions" / "record_awaiting_step" / "app.py").read_text()

    assert [*step.public(), "link"] == list(detail)
    (listening,) = yaml_parse(rule)["MailFunction"]["Properties"]["Events"].values()
    pattern = listening["Properties"]["Pattern"]
    assert {"step": [step.step]} == pattern["detail"]
    assert f'"Source": "{pattern["source"][0]}"' in sends
    assert f'"DetailType": "{pattern["detail-type"][0]}"' in sends
