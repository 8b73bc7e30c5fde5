"""
Each condition of a Choice in `run_once` is needed: a record or an envelope that lacks it goes another way.

The rules of `steponce lint` prove that a path is there before it is read. These tests prove where it leads.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.rules.documents import machine
from tests.simulation.definition import choose

HERE = "arn:aws:states:us-east-1:123456789012:execution:steponce-run-once:order-1"
THERE = f"{HERE}--2"
NOW = "2026-01-31T12:00:00.000Z"
FIRST = {"Execution": {"Id": HERE}, "State": {"EnteredTime": NOW}}
AGAIN = {"Execution": {"Id": HERE, "RedriveTime": NOW}, "State": {"EnteredTime": NOW}}
"""`RedriveTime` is there after a redrive only. Source: Step Functions, Context object."""

OURS = {
    "status": {"S": "INPROGRESS"},
    "callId": {"S": "us"},
    "lockedBy": {"S": HERE},
    "payloadHash": {"S": "hash"},
    "attempt": {"N": "1"},
}
RESULT = {"status": {"S": "COMPLETED"}, "result": {"S": "1"}}
FAILURE = {"status": {"S": "FAILED"}, "failure": {"S": "{}"}}
RELEASED = {"status": {"S": "RELEASED"}, "ttl": {"N": "1"}}
OF_POWERTOOLS = {"status": {"S": "COMPLETED"}, "result": {"S": "1"}, "ttl": {"N": "1"}}

ENVELOPE = dict.fromkeys(
    (
        "requestId",
        "lockToken",
        "payload",
        "payloadHash",
        "requestedAt",
        "expectedCompletion",
        "expiresAt",
        "ttl",
        "shard",
        "callId",
    ),
    "given",
)
LIMIT = dict.fromkeys(("key", "who", "windowStart", "member", "ttl", "resetsAt"), "given")


def following(state: str, given: dict[str, Any], context: dict[str, Any] = FIRST, **values: str) -> str:
    """The state that a Choice leads to, with values for its placeholders."""
    text = json.dumps(machine("run_once")["States"][state])
    for name, value in values.items():
        text = text.replace(f"${{{name}}}", value)
    return choose(json.loads(text), given, context)


def held(context: dict[str, Any] = FIRST, refused: str = "none", **record: dict[str, str]) -> str:
    """Where IsLockHeld leads with a record that differs from our own open lock in these attributes."""
    given = {"callId": "us", "payloadHash": "hash", "lock": {"Item": OURS | record}}
    return following("IsLockHeld", given, context, RefusedStatus=refused)


@pytest.mark.parametrize("context", [FIRST, AGAIN], ids=["first", "redriven"])
@pytest.mark.parametrize(
    ("record", "leads_to"),
    [(RESULT, "ReplayResult"), (FAILURE, "ReplayError"), (RELEASED, "IsTriedBefore")],
    ids=["completed", "cancelled", "released"],
)
def test_a_lock_of_our_own_that_was_settled_is_not_worked_with(
    context: dict[str, Any], record: dict[str, Any], leads_to: str
) -> None:
    """AcquireLock's answer was lost, and a person or the monitor was faster than ReadLock."""
    assert leads_to == held(context, **record)


@pytest.mark.parametrize("context", [FIRST, AGAIN], ids=["first", "redriven"])
@pytest.mark.parametrize(
    "record",
    [{"callId": {"S": "of the namesake"}}, {"lockedBy": {"S": THERE}}],
    ids=["a namesake's", "of the execution whose input was copied"],
)
def test_an_open_lock_of_another_is_no_lock_of_our_own(
    context: dict[str, Any], record: dict[str, Any]
) -> None:
    """Execution and callId tell: each alone can come back."""
    assert "CheckOwner" == held(context, **record)


def test_a_completed_record_is_refused_only_with_its_result() -> None:
    """Where WhenCompleted says refuse, as where it says replay: a record that was cut off is unreadable."""
    cut = {"status": {"S": "COMPLETED"}, "callId": {"S": "another"}, "lockedBy": {"S": THERE}}

    assert "DuplicateRefused" == held(refused="COMPLETED", **cut, result={"S": "1"})
    assert "RecordUnreadable" == held(refused="COMPLETED", **cut)


def powertools(refused: str = "none", **record: Any) -> str:
    """Where IsPowertoolsRecord leads with such a record. None leaves an attribute out."""
    item = {name: value for name, value in (OF_POWERTOOLS | record).items() if value is not None}
    return following("IsPowertoolsRecord", {"lock": {"Item": item}}, RefusedStatus=refused)


@pytest.mark.parametrize("name", ["callId", "lockedBy", "attempt"])
def test_a_record_with_an_attribute_of_ours_is_not_powertools_own(name: str) -> None:
    """Whatever its type is: it is a damaged record of ours, and its result may be another payload's."""
    assert "ReplayResult" == powertools()
    assert "RecordUnreadable" == powertools(**{name: {"B": "?"}})


@pytest.mark.parametrize(
    ("refused", "record", "leads_to"),
    [
        ("none", {}, "ReplayResult"),
        ("COMPLETED", {}, "DuplicateRefused"),
        ("COMPLETED", {"result": None}, "RecordUnreadable"),
        ("none", {"status": {"S": "INPROGRESS"}}, "AlreadyInProgress"),
        ("none", {"status": {"S": "EXPIRED"}}, "RecordUnreadable"),
    ],
)
def test_a_record_of_powertools_is_replayed_or_refused_when_it_is_completed(
    refused: str, record: dict[str, Any], leads_to: str
) -> None:
    """A result beside another status is none."""
    assert leads_to == powertools(refused, **record)


@pytest.mark.parametrize("missing", [*ENVELOPE, "unlimited"])
def test_an_envelope_that_lacks_a_field_is_prepared(missing: str) -> None:
    """Whatever it lacks: the function knows the rules for all of them."""
    whole = ENVELOPE | {"unlimited": "given"}
    fewer = {name: value for name, value in whole.items() if name != missing}

    assert "AcquireLock" == following("IsRequestPrepared", whole, UnlimitedField="unlimited")
    assert "PrepareRequest" == following("IsRequestPrepared", fewer, UnlimitedField="unlimited")


@pytest.mark.parametrize("missing", [*ENVELOPE, *(f"limit.{name}" for name in ("rule", *LIMIT))])
def test_a_counted_envelope_that_lacks_a_field_is_prepared(missing: str) -> None:
    """CountRequest would read a path that is not there, which nothing catches."""
    limit = LIMIT | {"rule": "three an hour"}
    less = {name: value for name, value in limit.items() if f"limit.{name}" != missing}
    fewer = {name: value for name, value in ENVELOPE.items() if name != missing} | {"limit": less}
    names = {"UnlimitedField": "unlimited", "LimitRule": "three an hour"}

    assert "CountRequest" == following("IsRequestPrepared", ENVELOPE | {"limit": limit}, **names)
    assert "PrepareRequest" == following("IsRequestPrepared", fewer, **names)


@pytest.mark.parametrize("missing", LIMIT)
def test_a_limit_that_lacks_a_field_is_one_of_another_deployment(missing: str) -> None:
    """PrepareRequest was deployed without the limit that the definition has, or the other way round."""
    less = {name: value for name, value in LIMIT.items() if name != missing}

    assert "CountRequest" == following("IsRequestCounted", {"limit": LIMIT}, UnlimitedField="unlimited")
    assert "LimitChanged" == following("IsRequestCounted", {"limit": less}, UnlimitedField="unlimited")


def test_a_takeover_is_confirmed_only_if_the_owner_is_gone() -> None:
    """An owner that was redriven meanwhile may be at work."""
    assert "DoWork" == following("IsTakeoverConfirmed", {"owner": {"verdict": "gone"}})
    assert "HoldLock" == following("IsTakeoverConfirmed", {"owner": {"verdict": "alive"}})


@pytest.mark.parametrize("wanted", [True, False])
def test_a_confirmation_is_awaited_only_if_it_is_wanted(wanted: bool) -> None:
    """A caller may say that it is not."""
    leads_to = following("IsConfirmationWanted", {"payload": {"confirm": wanted}})
    assert ("AwaitConfirmation" if wanted else "CompleteRequest") == leads_to


def test_a_lock_is_tried_for_five_times() -> None:
    """The loop ends, and not before."""
    ways = [following("IsTriedBefore", {"tries": {"count": count}}) for count in range(1, 7)]
    assert ["CountTry"] * 4 + ["LockContended"] * 2 == ways


@pytest.mark.parametrize(
    ("state", "first", "redriven"),
    [
        ("IsLockHeld", "KeepLock", "AlreadyInProgress"),
        ("IsTakeoverConfirmed", "DoWork", "HoldLock"),
    ],
)
def test_a_redriven_execution_does_not_work_with_the_lock_that_it_had(
    state: str, first: str, redriven: str
) -> None:
    """DescribeExecution may show it as ended for a moment. Who settles its lock lets the next one work."""
    given = {
        "callId": "us",
        "payloadHash": "hash",
        "lock": {"Item": OURS},
        "owner": {"verdict": "gone"},
    }

    assert [first, redriven] == [following(state, given, context) for context in (FIRST, AGAIN)]


@pytest.mark.parametrize("verdict", ["idle", "unknown"])
def test_a_redriven_execution_takes_no_lock_over(verdict: str) -> None:
    """It could only be held for a person then. The next request takes it over."""
    ways = [following("IsOwnerAlive", {"owner": {"verdict": verdict}}, context) for context in (FIRST, AGAIN)]
    assert ["TakeOverLock", "AlreadyInProgress"] == ways
