"""The example events are real: each function has one, and it means what it says."""

import json
from pathlib import Path
from typing import Any

import pytest

from steponce.answer import Answer
from steponce.awaiting import AwaitingStep
from steponce.records import INPROGRESS, Lock
from steponce.request import Envelope, RequestRules

from .documents import EVENTS, FUNCTIONS, ROOT, load_json, machine

RULES = RequestRules(key_prefix="steponce-run-once")


def event(name: str) -> Any:
    """One example event."""
    return load_json(ROOT / "events" / f"{name}.json")


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
        assert "arn:aws" not in text or ":123456789012:" in text
