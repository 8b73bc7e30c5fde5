"""AWS takes every definition that the template can give a state machine, and no linter complains of one."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from typing import Any

import pytest
from statelint.linter import Linter

from steponce.lint import lint
from steponce.lint.definitions import complaints
from steponce.request.envelope import Envelope
from steponce.request.settings import RequestRules

from .renderings import definitions_with, each_value_alone, every_definition, parameters_that_matter

PATH = r'"customer\\id"."a/b" || "${x}"'
"""Where the user is, in JMESPath, which has quotes and backslashes as JSON has."""

BY_USER: dict[str, Any] = {"rate_limit_window": "90", "rate_limit_path": PATH}


def test_every_parameter_of_a_definition_is_varied():
    """They are found, not listed: whatever reaches a definition takes part."""
    matter = parameters_that_matter()
    assert {
        "WorkTimeoutSeconds",
        "ConfirmationHeartbeatSeconds",
        "ConfirmationExtensionSeconds",
        "RequestTimeoutSeconds",
        "FinalErrors",
        "WhenCompleted",
        "RateLimit",
    } == set(matter)
    assert ["refuse", "replay"] == sorted(matter["WhenCompleted"])
    assert ["1", "900"] == matter["WorkTimeoutSeconds"]


def test_aws_takes_every_definition():
    """As far as the embedded stack knows what AWS refuses."""
    assert [] == [text for definition in every_definition() for text in complaints(definition)]
    assert len(set(every_definition())) == len(every_definition()) == 2**7


def test_statelint_has_nothing_to_say():
    """Of any definition, about anything."""
    assert [] == [
        text for definition in every_definition() for text in Linter.validate(json.loads(definition))
    ]


def test_our_own_rules_have_nothing_to_say():
    """With each value of each parameter that reaches a definition."""
    assert [] == [found for text in each_value_alone() for found in lint(json.loads(text)).findings]


def test_a_heartbeat_comes_before_its_time_out():
    """Whatever the parameters are: the time-out is the heartbeat and at least a second."""
    for definition in every_definition():
        selected = json.loads(definition)["States"]["DoWork"]["ResultSelector"]
        heartbeat, timeout = (selected[f"confirmation{kind}Seconds.$"] for kind in ("Heartbeat", "Timeout"))
        first, added = (int(number) for number in timeout.replace("'", " ").split() if number.isdecimal())
        assert f"States.MathAdd(States.StringToJson('{first}'), 0)" == heartbeat
        assert added >= 1


def test_a_duplicate_is_refused_only_where_that_is_wanted():
    """The rule before the replay matches a completed record, or none at all."""
    for answer, status in (("replay", "NONE"), ("refuse", "COMPLETED")):
        (definition,) = definitions_with(WhenCompleted=answer)
        for state in ("IsLockHeld", "IsPowertoolsRecord"):
            choices = json.loads(definition)["States"][state]["Choices"]
            (rule,) = [rule for rule in choices if rule["Next"] == "DuplicateRefused"]
            assert status == rule["And"][0]["StringEquals"]


def test_a_request_is_counted_only_where_there_is_a_limit():
    """With a limit every way to the lock passes CountRequest or a verdict; without one no way does."""
    whole = {field.name for field in fields(Envelope)}
    for limit, skips in (("0", True), ("8", False), ("2000", False)):
        (definition,) = definitions_with(RateLimit=limit, RateLimitWindow="90", RateLimitPath=PATH)
        states = json.loads(definition)["States"]
        uncounted, counted = states["IsRequestPrepared"]["Choices"]
        assert ["AcquireLock", "CountRequest"] == [uncounted["Next"], counted["Next"]]
        assert skips == ({test["Variable"].removeprefix("$.") for test in uncounted["And"]} <= whole)
        known = "none" if skips else RequestRules("shop", **BY_USER, rate_limit=int(limit)).limit_rule
        assert {"Variable": "$.limit.rule", "StringEquals": known} in counted["And"]
        unlimited, *verdicts, countable = states["IsRequestCounted"]["Choices"]
        assert skips == (unlimited["Variable"].removeprefix("$.") in whole)
        assert ["AcquireLock", "IsCallerWaiting"] == [one["Next"] for one in verdicts]
        assert "CountRequest" == countable["Next"]
        needed = set(
            re.findall(r"\$\.limit\.\w+", json.dumps([states["CountRequest"], states["RateLimited"]]))
        )
        for rule in (counted, countable):
            assert needed <= {test["Variable"] for test in rule["And"] if test.get("IsPresent")}
        assert "LimitChanged" == states["IsRequestCounted"]["Default"]
        assert {"N": limit} == states["CountRequest"]["Parameters"]["ExpressionAttributeValues"][":limit"]


@pytest.mark.parametrize("seconds", [2_592_000, 31_536_000])
def test_the_whole_request_has_a_time_out(seconds: int):
    """As a number, where a definition in JSON can hold but text."""
    (definition,) = definitions_with(RequestTimeoutSeconds=str(seconds))
    assert seconds == json.loads(definition)["TimeoutSeconds"]


def test_statelint_sees_a_planted_fault():
    """The linter reads what it is given."""
    definition = definitions_with()[0]
    assert '"End": true' in definition
    assert [] != Linter.validate(json.loads(definition.replace('"End": true', '"End": "true"')))
