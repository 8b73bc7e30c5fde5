"""What an envelope carries so that the workflow can count its request."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steponce import RateLimited
from steponce.aws import times
from steponce.errors import InvalidEventTime, InvalidPayload, InvalidRequest, InvalidSetting, MissingKey
from steponce.failure import Failure
from steponce.limits.countable import AHEAD_SECONDS, KEPT_SECONDS
from steponce.limits.record import SET_MEMBERS, Count, key_of, member_of
from steponce.limits.window import Window
from steponce.request.envelope import Envelope
from steponce.request.receipt import Receipt
from steponce.request.settings import RequestRules
from tests.unit.rate_limited import cause_until

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
MIDNIGHT = datetime(2026, 2, 1, tzinfo=UTC)
OUTPUTS = {"KeyPrefix": "shop", "ExpectedSeconds": "300", "RetentionSeconds": "never"}
ANN = {"customer": "ann", "amount": 500}


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """It stands still."""
    monkeypatch.setattr(times, "now", lambda: NOW)


def rules(path: str = "customer", prefix: str = "shop", window: str = "day") -> RequestRules:
    """Of a machine with a limit."""
    return RequestRules(prefix, rate_limit=8, rate_limit_window=window, rate_limit_path=path)


def limit_of(payload: dict[str, Any] = ANN, given: RequestRules | None = None, **options: Any) -> Any:
    """What counts a request."""
    return Envelope.make("order-1", payload, given or rules(), **options).to_dict().get("limit")


def test_a_request_is_counted_where_a_limiter_would_count_it() -> None:
    """In a window of the event's own time, by its lock token, for 40 days."""
    at = MIDNIGHT - timedelta(milliseconds=1) - timedelta(days=3)
    found = limit_of(requested_at=at, lock_token="acme/o-1")
    assert {
        "rule": "8/day/customer",
        "key": key_of("shop", Window.of("day"), "ann", at),
        "who": "ann",
        "windowStart": "2026-01-28T00:00:00.000Z",
        "member": member_of("acme/o-1"),
        "ttl": str(int((MIDNIGHT - timedelta(days=3)).timestamp()) + KEPT_SECONDS + 3_600),
        "resetsAt": "2026-01-29T00:00:00.000Z",
    } == found


def test_without_a_limit_an_envelope_is_as_it_was() -> None:
    """Not a byte more."""
    unlimited = RequestRules("shop", rate_limit_path="customer")
    assert "limit" not in Envelope.make("order-1", {}, unlimited).to_dict()


def test_without_a_time_the_clock_s_window_counts() -> None:
    """And another time can be given to count at."""
    assert "2026-02-01T00:00:00.000Z" == limit_of()["resetsAt"]
    yesterday = NOW - timedelta(days=1)
    assert "2026-01-31T00:00:00.000Z" == limit_of(requested_at=yesterday)["resetsAt"]
    moved = Envelope.make("order-1", ANN, rules(), requested_at=yesterday, count_at=NOW)
    assert moved.limit is not None
    assert ("2026-01-30T12:00:00.000Z", "2026-02-01T00:00:00.000Z") == (
        moved.requestedAt,
        moved.limit["resetsAt"],
    )


@pytest.mark.parametrize("option", ["requested_at", "count_at"])
@pytest.mark.parametrize(
    "at",
    [
        NOW + timedelta(seconds=AHEAD_SECONDS + 1),
        NOW - timedelta(days=1, seconds=KEPT_SECONDS),
        datetime(1, 1, 1, tzinfo=UTC),
    ],
)
def test_a_time_that_no_window_can_count_is_refused(option: str, at: datetime) -> None:
    """Too far in the future, or so old that its counts may be gone; without a limit any time will do."""
    with pytest.raises(InvalidEventTime):
        limit_of(**{option: at})
    Envelope.make("order-1", ANN, RequestRules("shop"), **{option: at})


def test_a_request_that_is_too_old_to_be_counted_says_how_it_can_run() -> None:
    """Its dead letter keeps its time, and would come back each time that it is redriven."""
    with pytest.raises(InvalidEventTime, match="Start the request by hand"):
        limit_of(requested_at=NOW - timedelta(days=1, seconds=KEPT_SECONDS))


def test_a_time_needs_a_zone() -> None:
    """Or nobody knows its window."""
    with pytest.raises(InvalidRequest, match="count_at"):
        limit_of(count_at=datetime(2026, 1, 31))


@pytest.mark.parametrize("at", ["2026-01-31T12:00:00Z", datetime(2026, 1, 31, tzinfo=UTC).date(), 0])
@pytest.mark.parametrize("option", ["requested_at", "count_at"])
def test_a_time_is_a_datetime(option: str, at: Any) -> None:
    """With a limit or without."""
    with pytest.raises(InvalidRequest, match=f"{option} is .* Give a datetime with a zone"):
        limit_of(**{option: at})
    with pytest.raises(InvalidRequest, match=f"{option} is .* Give a datetime with a zone"):
        Envelope.make("order-1", ANN, RequestRules("shop"), **{option: at})


@pytest.mark.parametrize("given", [RequestRules("shop"), None])
def test_a_time_beyond_the_calendar_is_refused(given: RequestRules | None) -> None:
    """It has no text in UTC, with a limit or without."""
    for last, hours in ((datetime.max, -12), (datetime.min, 12)):
        at = last.replace(tzinfo=timezone(timedelta(hours=hours)))
        with pytest.raises(InvalidRequest, match=r"requested_at: The time .* is beyond the calendar"):
            Envelope.make("order-1", ANN, given or rules(), requested_at=at)


def test_a_clock_that_is_a_little_ahead_is_no_reason_to_refuse() -> None:
    """Its own window counts."""
    at = NOW + timedelta(seconds=AHEAD_SECONDS)
    assert (
        "2026-01-31T12:05:00.000Z" == limit_of(given=rules(window="minute"), requested_at=at)["windowStart"]
    )


@pytest.mark.parametrize(
    ("path", "who"),
    [("customer", "ann"), ("amount", "500"), ("[customer, amount]", '["ann",500]'), ("'all'", "all")],
)
def test_a_path_finds_who_is_counted(path: str, who: str) -> None:
    """Text as it is, any other value as JSON; a literal counts everyone together."""
    assert who == limit_of(given=rules(path))["who"]


@pytest.mark.parametrize("payload", [{}, {"customer": None}, {"customer": "  "}, {"customer": []}])
def test_a_request_of_nobody_is_refused(payload: dict[str, Any]) -> None:
    """Before anything is started."""
    with pytest.raises(MissingKey, match="customer"):
        limit_of(payload)


def test_a_user_is_short() -> None:
    """DynamoDB's keys have an end."""
    assert 1_024 == len(limit_of({"customer": "x" * 1_024})["who"])
    with pytest.raises(InvalidPayload, match="customer"):
        limit_of({"customer": "x" * 1_025})


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200).filter(str.strip))
def test_machines_share_no_counts(prefix: str) -> None:
    """Whatever their prefixes are, each key names its own, and fits into DynamoDB's 2,048 bytes."""
    given = limit_of({"customer": "u" * 1_024}, rules(prefix=prefix))
    item: Any = {"limitKey": {"S": given["key"]}, "member": {"S": "counter"}, "limit": {"N": "8"}}
    name = Count.from_item(item).name.removesuffix("/day")
    assert prefix == name.replace("%2F", "/").replace("%25", "%")
    assert len(given["key"].encode()) <= 2_048


def test_a_stack_s_outputs_say_what_the_limit_is() -> None:
    """Its template has parameters of the same names."""
    given = {"RateLimit": "8", "RateLimitWindow": "90", "RateLimitPath": "customer"}
    limit = RequestRules.from_settings(OUTPUTS | given).request_limit()
    assert limit is not None
    assert (8, 90) == (limit.requests, limit.window.seconds)
    assert RequestRules.from_settings(OUTPUTS | {"RateLimit": "0"}).request_limit() is None


@pytest.mark.parametrize(
    "wrong", [{"RateLimitPath": ""}, {"RateLimitWindow": "week"}, {"RateLimitWindow": "0"}]
)
def test_settings_that_give_no_limit_are_refused(wrong: dict[str, str]) -> None:
    """When a function starts, and not at its first request."""
    given = {"RateLimit": "8", "RateLimitWindow": "day", "RateLimitPath": "customer"}
    with pytest.raises(InvalidSetting, match="RateLimit"):
        RequestRules.from_settings(OUTPUTS | given | wrong)


def test_an_execution_that_was_started_by_hand_is_counted() -> None:
    """By its name, or its lock token."""
    made = Envelope.complete("by-hand", {"payload": ANN}, rules())
    assert made.limit is not None
    assert member_of("shop/by-hand") == made.limit["member"]


def test_an_envelope_that_knows_of_no_limit_is_counted() -> None:
    """As it is otherwise: a client may have been made before the limit."""
    sent = Envelope.make(
        "order-1", ANN, RequestRules("shop"), requested_at=NOW - timedelta(days=1), redelivery={"tries": 0}
    )
    completed = Envelope.complete("order-1", sent.to_dict(), rules())
    assert limit_of(requested_at=NOW - timedelta(days=1)) == completed.limit
    same = [field.name for field in fields(Envelope) if field.name != "limit"]
    assert [getattr(sent, name) for name in same] == [getattr(completed, name) for name in same]


def test_rules_without_a_limit_leave_a_whole_envelope_as_it_is() -> None:
    """The function may be deployed a moment before the definition, which then says that nothing counts it."""
    known = Envelope.make("order-1", ANN, RequestRules("shop")), Envelope.make("order-1", ANN, rules())
    for sent in known:
        assert replace(sent, limit=None) == Envelope.complete("o", sent.to_dict(), RequestRules("shop"))


@pytest.mark.parametrize(
    "other", [{"rate_limit": 9}, {"rate_limit_window": "hour"}, {"rate_limit_path": "amount"}]
)
def test_the_workflow_can_tell_that_a_client_knows_another_limit(other: dict[str, Any]) -> None:
    """Whichever part of it has changed since the client was made."""
    assert rules().limit_rule != limit_of(given=replace(rules(), **other))["rule"]


def test_what_exceeds_a_set_is_left_to_the_function() -> None:
    """Without a member the workflow counts nothing itself. The window stays as the client has cut it."""
    large = replace(rules(), rate_limit=SET_MEMBERS + 1)
    sent = Envelope.make("order-1", ANN, large, requested_at=NOW, count_at=NOW - timedelta(days=1))
    assert sent.limit is not None
    assert "member" not in sent.limit
    assert sent == Envelope.complete("order-1", sent.to_dict(), large)
    assert "member" in limit_of(given=replace(rules(), rate_limit=SET_MEMBERS))


def test_a_client_that_knows_a_longer_window_is_counted_in_that_of_its_time() -> None:
    """It was made before the window was changed. Or all its requests of a day would count in one hour."""
    hourly = replace(rules(window="hour"), rate_limit=SET_MEMBERS + 1)
    sent = Envelope.make("order-1", ANN, rules(), requested_at=NOW - timedelta(hours=1))
    counted = Envelope.complete("order-1", sent.to_dict(), hourly).limit or {}
    assert times.to_text(NOW - timedelta(hours=1)) == counted["windowStart"]
    wrong = sent.to_dict() | {"limit": (sent.limit or {}) | {"resetsAt": 7}}
    with pytest.raises(InvalidPayload, match=r"limit\.resetsAt"):
        Envelope.complete("order-1", wrong, hourly)


def test_a_limit_that_its_sender_forged_counts_nothing() -> None:
    """Who is counted, where, and with which verdict: all of it is found anew."""
    forged = {"windowStart": times.to_text(NOW), "who": "bob", "key": "x", "verdict": "counted"}
    sent = Envelope.make("order-1", ANN, rules(), requested_at=NOW)
    assert sent == Envelope.complete("order-1", sent.to_dict() | {"limit": forged}, rules())
    assert sent == Envelope.complete("order-1", sent.to_dict() | {"limit": "none"}, rules())
    with pytest.raises(InvalidRequest):
        Envelope.complete("order-1", sent.to_dict() | {"limit": {"windowStart": 7}}, rules())


@pytest.mark.parametrize(
    "wrong",
    [{"payload": []}, {"redelivery": 5}, {"lockToken": ""}, {"requestedAt": "noon"}, {"requestedAt": 7}],
)
def test_an_envelope_that_is_none_is_refused(wrong: dict[str, Any]) -> None:
    """It was not made by a client."""
    sent = Envelope.make("order-1", ANN, RequestRules("shop")).to_dict()
    with pytest.raises(InvalidRequest):
        Envelope.complete("order-1", sent | wrong, rules())


def test_a_receipt_says_when_the_window_ends() -> None:
    """If the limit has refused the request, and for no other error."""
    cause = cause_until("2026-02-01T00:00:00.000Z")
    failed = {
        error: Receipt.failed(
            "order-1", "shop/order-1", "arn", Failure(error, cause), duplicate=False, is_free=True
        )
        for error in ("RateLimited", "CardDeclined", None)
    }
    assert {"RateLimited": MIDNIGHT, "CardDeclined": None, None: None} == {
        error: receipt.resets_at for error, receipt in failed.items()
    }
    assert Failure("RateLimited", None).resets_at is None
    assert Failure("RateLimited", "By the work, until 2026-02-01T00:00:00.000Z").resets_at is None
    assert "RateLimited" == RateLimited("m", cause, MIDNIGHT).error


def test_work_that_raises_the_same_error_was_not_refused() -> None:
    """As work does that asks another machine, and lets its RateLimited pass. It may have had an effect."""
    said = f"Request 'other' failed with RateLimited: {cause_until('2026-02-01T00:00:00.000Z')}"
    told_by_lambda = json.dumps({"errorMessage": said, "errorType": "RateLimited", "stackTrace": []})
    assert [None, None] == [Failure("RateLimited", cause).resets_at for cause in (told_by_lambda, said)]


def test_an_answer_in_the_words_of_a_refusal_is_none() -> None:
    """As one to a waiting step can be: the request had its lock, and its work may have had an effect."""
    cause = cause_until("2026-02-01T00:00:00.000Z")
    refused = Receipt.failed(
        "order-1", "key", "arn", Failure("RateLimited", cause), duplicate=False, is_free=True
    )
    assert (MIDNIGHT, None) == (refused.resets_at, replace(refused, attempt=1).resets_at)
