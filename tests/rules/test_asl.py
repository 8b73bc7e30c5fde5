"""Every workflow keeps every rule of asl.py, and every rule catches what was planted for it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from . import asl
from .documents import GONE, MACHINES, instead, load_json, machine, rules_of, spoilt, without

RULES = rules_of(asl)


def lacking(changes: dict[str, Any], place: str) -> dict[str, Any]:
    """The same changes less one."""
    assert place in changes
    return {key: value for key, value in changes.items() if key != place}


CALLBACK = {
    "States/DoWork/Resource": "arn:${Partition}:states:::lambda:invoke.waitForTaskToken",
    "States/DoWork/HeartbeatSeconds": 10,
    "States/DoWork/TimeoutSeconds": 60,
    "States/DoWork/TimeoutSecondsPath": GONE,
}

A_MAP: dict[str, Any] = {
    "Type": "Map",
    "Iterator": {"StartAt": "A", "States": {"A": {"Type": "Pass", "End": True}}},
    "End": True,
}

FAULTS: list[tuple[Callable[..., list[str]], dict[str, Any]]] = [
    (asl.rule_the_machine_ends, {"Comment": "without the parameter"}),
    (asl.rule_the_machine_ends, {"Comment": "with another", "TimeoutSeconds": 31_536_001}),
    (asl.rule_tasks_have_timeouts, {"States/DoWork/TimeoutSecondsPath": GONE}),
    (asl.rule_tasks_have_timeouts, {"States/DoWork/TimeoutSecondsPath": "held.workTimeoutSeconds"}),
    (asl.rule_tasks_have_timeouts, {"States/DoWork/TimeoutSeconds": 60}),
    (asl.rule_tasks_have_timeouts, {"States/CheckOwner/TimeoutSeconds": 99_999_999}),
    (asl.rule_tasks_have_timeouts, CALLBACK | {"States/DoWork/TimeoutSeconds": 2_592_001}),
    (asl.rule_callbacks_have_heartbeats, lacking(CALLBACK, "States/DoWork/HeartbeatSeconds")),
    (asl.rule_error_names_are_known, {"States/DoWork/Catch/2/ErrorEquals": ["States.DataLimitExceded"]}),
    (asl.rule_error_names_are_known, {"States/DoWork/Catch/0/ErrorEquals": ["RetryLatter"]}),
    (asl.rule_error_names_are_known, {"States/CheckOwner/Retry/1/ErrorEquals": ["Unavaliable"]}),
    (asl.rule_error_names_are_known, {"States/DoWork/Catch/1/ErrorEquals": ["${FinalError}"]}),
    (asl.rule_error_names_are_known, {"States/DoWork/Catch/3/ErrorEquals": ["States.Runtime"]}),
    (
        asl.rule_error_names_are_known,
        {"States/AcquireLock/Catch/0/ErrorEquals": without("DynamoDb.ConditionalCheckFailedException")},
    ),
    (
        asl.rule_error_names_are_known,
        {"States/PrepareRequest/Retry/0/ErrorEquals": without("Lambda.SdkClientException")},
    ),
    (asl.rule_retries_are_bounded, {"States/DoWork/Retry/0/MaxAttempts": GONE}),
    (asl.rule_retries_are_bounded, {"States/DoWork/Retry/0/MaxAttempts": 99_999_999}),
    (asl.rule_retries_are_bounded, {"States/DoWork/Retry/0/MaxDelaySeconds": GONE}),
    (asl.rule_retries_are_bounded, {"States/DoWork/Retry/0/JitterStrategy": GONE}),
    (asl.rule_transient_errors_are_retried, {"States/PrepareRequest/Retry": GONE}),
    (
        asl.rule_transient_errors_are_retried,
        {"States/AwaitConfirmation/Retry/1/ErrorEquals": without("Sandbox.Timedout")},
    ),
    (asl.rule_transient_errors_are_retried, {"States/ReadLock/Retry/1/ErrorEquals": ["States.Timeout"]}),
    (
        asl.rule_reserved_words_are_aliased,
        {"States/RecordError/Parameters/UpdateExpression": instead("#status", "status")},
    ),
    (
        asl.rule_reserved_words_are_aliased,
        {"States/CompleteRequest/Parameters/UpdateExpression": instead("#ttl", "ttl")},
    ),
    (asl.rule_the_language_is_old_enough, {"QueryLanguage": "JSONata"}),
    (asl.rule_the_language_is_old_enough, {"States/DoWork/Assign": {"held.$": "$.held"}}),
    (asl.rule_the_language_is_old_enough, {"States/DoWork/Parameters/FunctionName": "{% $states.input %}"}),
    (
        asl.rule_the_language_is_old_enough,
        {"States/CountTry/Parameters/count.$": "States.MathSub($.tries.count, 1)"},
    ),
    (asl.rule_the_language_is_old_enough, {"States/IsOwnerAlive/Choices/0/Assign": {"seen": True}}),
    (asl.rule_the_language_is_old_enough, {"States/RecordError/TimeoutSecond": 10}),
    (asl.rule_the_language_is_old_enough, {"States/RecordError/QueryLanguage": "JSONPath"}),
    (asl.rule_the_language_is_old_enough, {"States/RecordError/Arguments": {}}),
    (asl.rule_the_language_is_old_enough, {"States/RecordError/Output": "x"}),
    (asl.rule_the_language_is_old_enough, {"States/DoWork/Catch/0/Assign": {"seen": True}}),
    (asl.rule_the_language_is_old_enough, {"States/DoWork/Retry/0/Output": {}}),
    (asl.rule_the_language_is_old_enough, {"States/CountTry/Parameters/count.$": "$tries.count"}),
    (
        asl.rule_the_language_is_old_enough,
        {"States/CountTry/Parameters/count.$": "States.MathAdd($tries, 1)"},
    ),
    (asl.rule_the_language_is_old_enough, {"States/Each": A_MAP | {"ItemProcessor": A_MAP["Iterator"]}}),
    (asl.rule_the_language_is_old_enough, {"States/Each": A_MAP | {"ItemSelector": {}}}),
    (asl.rule_the_language_is_old_enough, {"States/Each": A_MAP | {"ItemReader": {}}}),
    (asl.rule_flags_are_no_texts, {"States/ReadLock/Parameters/ConsistentRead": "true"}),
    (asl.rule_failures_say_why, {"States/PayloadMismatch/Cause": GONE}),
    (asl.rule_failures_say_why, {"States/AlreadyInProgress/Error": ""}),
    (asl.rule_failures_say_why, {"States/RequestFailed/CausePath": GONE}),
    (asl.rule_states_are_well_named, {"States/takeover": {"Type": "Pass"}}),
    (asl.rule_states_are_well_named, {"States/RecordTheVeryError": {"Type": "Pass"}}),
    (asl.rule_states_are_well_named, {"States/CheckVerdict": {"Type": "Choice", "Choices": []}}),
    (asl.rule_states_are_well_named, {"States/IsTriedBefore/Type": "Pass"}),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("path", MACHINES, ids=lambda path: path.name)
def test_every_workflow_keeps_the_rule(rule: Callable[..., list[str]], path: Path) -> None:
    """No complaints about any workflow."""
    assert [] == rule(load_json(path))


@pytest.mark.parametrize(("rule", "faults"), FAULTS, ids=lambda part: getattr(part, "__name__", None))
def test_the_rule_catches_its_planted_fault(rule: Callable[..., list[str]], faults: dict[str, Any]) -> None:
    """A rule that cannot fail is no rule."""
    assert [] != rule(spoilt(machine("run_once"), faults))


def test_every_rule_has_a_planted_fault() -> None:
    """No rule goes without proof that it can fail; the one about order has its in test_examples.py."""
    assert set(RULES) - {asl.rule_ordered_writes_never_go_back} == {rule for rule, _ in FAULTS}


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    """JSON parsers keep the second value in silence, and with it a second Catch."""
    twice = tmp_path / "twice.asl.json"
    twice.write_text('{"StartAt": "A", "StartAt": "B"}')
    with pytest.raises(ValueError, match="StartAt"):
        load_json(twice)


def test_a_callback_done_right_keeps_the_rules() -> None:
    """The faults of callbacks are planted in a callback that has none of its own."""
    callback = spoilt(machine("run_once"), CALLBACK)
    assert [] == asl.rule_callbacks_have_heartbeats(callback) + asl.rule_tasks_have_timeouts(callback)


def test_a_map_of_the_old_kind_keeps_the_rule() -> None:
    """The faults of a Map are planted in one that Step Functions Local 2.0 can parse."""
    old = spoilt(machine("run_once"), {"States/Each": A_MAP})
    assert [] == asl.rule_the_language_is_old_enough(old)
