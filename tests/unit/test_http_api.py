"""What the HTTP API answers: every status and header, and whose request a key means."""

from __future__ import annotations

import base64
import gzip
import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from moto import mock_aws

from steponce import Receipt
from steponce.aws import times
from steponce.errors import (
    InvalidRequestId,
    PayloadMismatch,
    RecordUnreadable,
    RequestNotFound,
    TooManyAttempts,
    Unavailable,
    Unsettled,
)
from steponce.http_api.address import address_of, key_in
from steponce.http_api.callers import PATHS, Callers, CallerUnknown, Scope
from steponce.http_api.callers_requests import Found
from steponce.http_api.headers import idempotency_key, preferred_wait
from steponce.http_api.responses import answer as answer_to_caller
from steponce.locks.reference import Reference
from steponce.locks.results import Results
from steponce.operator.cancel import cancel
from steponce.operator.cancellable import find_running
from steponce.request.strict_json import LONGEST_TEXT
from tests.unit.http_api import DOCUMENT, PAYLOAD, POSTED, READ, Api
from tests.unit.locks.large import bucket, kept, record
from tests.unit.one_machine import TO_WORK, World
from tests.unit.rate_limited import cause_until

DONE = {"status": "COMPLETED", "result": {"chargeId": "ch_1"}}
FAILED = {"status": "FAILED", "error": "CardDeclined", "cause": "The bank declined the card."}
NO_LOCK = {"status": "FAILED", "cause": None, "attempt": 0, "may_run_again": True}

KEYS = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1, max_size=255).filter(
    lambda key: key.strip()
)
BARE_KEYS = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=255).filter(
    lambda key: not key.startswith('"') and "," not in key
)
CALLERS = st.text(min_size=1, max_size=30).filter(lambda caller: caller.strip())


@pytest.fixture
def api() -> Api:
    """The api with a JWT authorizer."""
    return Api()


# -- A request's life ------------------------------------------------------------------------------
def test_a_new_request_is_accepted(api: Api):
    """202, where to ask, and the receipt."""
    answer = api.post()
    assert (202, "/requests/order-1", "false") == (
        answer.status,
        answer.headers["Location"],
        answer.headers["Idempotent-Replayed"],
    )
    assert {"requestId": "order-1", "status": "RUNNING", "replayed": False, "attempt": 0} == answer.body


def test_a_duplicate_of_a_running_request_is_accepted_as_a_replay(api: Api):
    """And starts nothing."""
    api.post()
    answer = api.post()
    assert (202, True, "true") == (
        answer.status,
        answer.body["replayed"],
        answer.headers["Idempotent-Replayed"],
    )
    assert [False, True] == [receipt.duplicate for receipt in api.counted]


@pytest.mark.parametrize(
    ("end", "told"),
    [
        (DONE, {"status": "COMPLETED", "result": {"chargeId": "ch_1"}}),
        (DONE | {"result": None}, {"status": "COMPLETED", "result": None}),
        (FAILED, {"status": "FAILED", "error": "CardDeclined", "cause": "The bank declined the card."}),
        (FAILED | {"error": None, "cause": None}, {"status": "FAILED", "error": None, "cause": None}),
    ],
)
def test_a_finished_request_is_replayed(api: Api, end: dict[str, Any], told: dict[str, Any]):
    """200 with the stored result; an error is an answer as well."""
    api.post()
    api.client.end("acme/order-1", **end)

    answer = api.post()

    assert (200, {"requestId": "order-1", "replayed": True, "attempt": 1} | told) == (
        answer.status,
        answer.body,
    )
    assert (200, {"requestId": "order-1", "replayed": False, "attempt": 1} | told) == (
        (read := api.get("order-1")).status,
        read.body,
    )


def test_a_caller_may_wait_for_the_result(api: Api):
    """200 at once, and not a replay: this call started it."""
    api.client.ends.append(DONE)
    answer = api.post(prefer="wait=10")
    assert (200, False, "wait=10") == (
        answer.status,
        answer.body["replayed"],
        answer.headers["Preference-Applied"],
    )


def test_a_duplicate_that_waits_gets_a_replay(api: Api):
    """The other call started it, though both see its end."""
    api.post()
    api.client.ends.append(DONE)
    assert (200, True) == ((answer := api.post(prefer="wait=10")).status, answer.body["replayed"])


def test_who_started_and_gets_the_answer_of_another_request_gets_a_replay(api: Api):
    """It had the business key, so this call's execution was turned away."""
    api.client.ends.append(DONE | {"duplicate": True})
    answer = api.post(prefer="wait=10")
    assert (200, True, "true") == (
        answer.status,
        answer.body["replayed"],
        answer.headers["Idempotent-Replayed"],
    )


def test_a_wait_counts_from_when_the_call_came_in_and_has_an_end(api: Api):
    """25 seconds at the most, whatever was asked for."""
    answer = api.post(prefer="wait=3600")
    (waited,) = [seconds for method, _, seconds in api.client.asked if method == "wait"]
    assert (202, "wait=25", True) == (
        answer.status,
        answer.headers["Preference-Applied"],
        24 < waited < 25,
    )


@pytest.mark.parametrize(
    "error",
    [
        Unavailable("x"),
        Unavailable("x", throttled=True),
        RecordUnreadable("m/1", "result", "is no JSON"),
        RequestNotFound("not visible yet"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_is_started_stays_started_when_waiting_fails(api: Api, error: Exception):
    """Neither an outage during the wait nor a damaged record makes it look as if nothing had begun."""
    api.client.raises["wait"] = error
    assert 202 == api.post(prefer="wait=5").status


def test_a_running_duplicate_is_a_conflict_for_whoever_will_not_wait(api: Api):
    """409 with Prefer: wait=0; the first one is a 202 even so."""
    assert 202 == api.post(prefer="wait=0").status
    answer = api.post(prefer="wait=0")
    assert (409, "/requests/order-1", "wait=0", "true") == (
        answer.status,
        answer.headers["Location"],
        answer.headers["Preference-Applied"],
        answer.headers["Idempotent-Replayed"],
    )


@pytest.mark.parametrize("prefer", [None, "wait=0"])
def test_another_payload_outranks_still_running(api: Api, prefer: str | None):
    """422, not 409: sending it again later would not help."""
    api.post(prefer=prefer)
    assert 422 == api.post(payload=PAYLOAD | {"amount": 501}, prefer=prefer).status


def test_another_business_key_under_one_id_is_refused():
    """422 for LockTokenMismatch, too."""
    api = Api(business_key="orderId")
    api.post()
    answer = api.post(payload=PAYLOAD | {"orderId": "2"})
    assert (422, "urn:steponce:problem:key-mismatch") == (answer.status, answer.body["type"])
    assert "under a new key the operation runs again" in answer.body["detail"]


def test_a_mismatch_that_only_the_workflow_finds_is_the_same_mismatch(api: Api):
    """Two keys with one business key may race."""
    api.client.ends.append(NO_LOCK | {"error": "PayloadMismatch", "may_run_again": False})
    answer = api.post(prefer="wait=5")
    assert (422, True) == (answer.status, "An execution was started" in answer.body["detail"])


def test_who_reads_a_mismatch_is_told_that_it_is_not_final(api: Api):
    """A corrected POST gets the answer of the business key's request, and no new attempt."""
    api.post()
    (request_id,) = api.client.tokens
    api.client.end(request_id, **NO_LOCK | {"error": "PayloadMismatch", "may_run_again": False})
    assert "A POST with that payload gets its answer." in api.get("order-1").body["detail"]
    api.client.end(request_id, **FAILED | {"error": "PayloadMismatch"})
    assert "detail" not in api.get("order-1").body  # the work's own error


def test_a_mismatch_with_a_key_that_is_free_again_is_none(api: Api):
    """The same request runs if it is sent again. It was told to use a new key."""
    api.client.ends.append(NO_LOCK | {"error": "PayloadMismatch"})
    assert 503 == api.post(prefer="wait=5").status


def test_who_waits_does_not_get_the_answer_for_another_payload(api: Api):
    """Another call may start it after this one's execution died, so "Nothing was started" would be wrong."""
    api.client.raises["wait"] = PayloadMismatch("order-1 has another payload")
    answer = api.post(prefer="wait=5")
    assert (422, PAYLOAD) == (answer.status, api.client.waited_with)
    assert "payload-mismatch" in answer.body["type"]
    assert "While this call waited" in answer.body["detail"]


def test_who_reads_a_key_names_no_payload(api: Api):
    """A GET has none."""
    api.post()
    assert "wait=5" == api.get("order-1", prefer="wait=5").headers["Preference-Applied"]
    assert api.client.waited_with is None


@pytest.mark.parametrize("attempt", [0, 1])
@pytest.mark.parametrize("error", ["RetryLater", "AlreadyInProgress", "States.Timeout", "ExecutionAborted"])
def test_where_nothing_happened_the_caller_is_asked_to_come_again(api: Api, error: str, attempt: int):
    """503 with Retry-After, since the same request starts the next attempt; a GET only tells."""
    api.client.ends.append(NO_LOCK | {"error": error, "attempt": attempt})
    answer = api.post(prefer="wait=5")
    assert (503, "5", True) == (answer.status, answer.headers["Retry-After"], error in answer.body["detail"])
    assert [False, True] == [answer.body["replayed"], api.post().body["replayed"]]
    read = api.get("order-1")
    assert (200, error, True) == (
        read.status,
        read.body["error"],
        "starts the next attempt" in read.body["detail"],
    )


def test_a_failure_that_waits_for_a_person_may_change(api: Api):
    """Whoever took it for final would miss the result that `locks complete` gives it later."""
    api.client.ends.append(FAILED | {"error": "OutcomeUnknown", "waits_for_person": True})
    for answer in (api.post(prefer="wait=5"), api.post(), api.get("order-1")):
        assert (200, "FAILED", True) == (
            answer.status,
            answer.body["status"],
            answer.body["detail"].startswith("This answer may change. A person decides"),
        )


def test_an_expired_result_is_no_answer_to_a_new_attempt(api: Api):
    """It is all that can be seen if the attempt is not visible for a while."""
    api.client.ends.append(DONE | {"may_run_again": True})
    answer = api.post(prefer="wait=5")
    assert (503, "nothing-happened") == (answer.status, answer.body["type"].rpartition(":")[2])


@pytest.mark.parametrize("error", ["AlreadyInProgress", "LimitChanged", "PayloadMismatch", "RetryLater"])
def test_the_workflows_own_words_from_the_work_are_an_answer(api: Api, error: str):
    """As of work that uses a guard, or of a step after the work: sending it again starts nothing."""
    api.client.ends.append(FAILED | {"error": error})
    answer = api.post(prefer="wait=5")
    assert (200, error, False) == (answer.status, answer.body["error"], "detail" in answer.body)


@pytest.mark.parametrize("states", [("IsRequestPrepared",), TO_WORK], ids=["for good", "in its work"])
def test_who_cancelled_a_request_and_why_is_not_told_to_its_caller(states: tuple[str, ...]):
    """The command asks for the reason that is kept with the record."""
    with mock_aws():
        world = World()
        world.execution("order-1", "RUNNING", *states)
        if states == TO_WORK:
            world.put()
        cancel(world.machine, find_running(world.machine, "order-1"), by="alice", why="on the watch list")
        told = [answer_to_caller(HTTPStatus.OK, "k1", Found(world.client.status("order-1"))).body]
        world.machine.locks.erase(world.lock())
        told += [answer_to_caller(HTTPStatus.OK, "k1", Found(world.client.status("order-1"))).body]

    assert [True, True] == ["A person has cancelled this request." in str(body) for body in told]
    assert [False, False] == ["alice" in str(body) or "watch" in str(body) for body in told]


@pytest.mark.parametrize("window", ["minute", "90"])
def test_a_used_up_rate_limit_says_when_it_resets(window: str, monkeypatch: pytest.MonkeyPatch):
    """In the headers of RFC 9110 and of the IETF draft, and in words."""
    api = Api()
    limit = {"rate_limit": 8, "rate_limit_window": window, "rate_limit_path": "orderId"}
    api.client.rules = replace(api.client.rules, **limit)
    now = times.now()
    monkeypatch.setattr(times, "now", lambda: now)
    resets_at = times.to_text(now + timedelta(seconds=40))
    api.client.ends.append(NO_LOCK | {"error": "RateLimited", "cause": cause_until(resets_at)})
    answer = api.post(prefer="wait=10")
    assert (429, "urn:steponce:problem:rate-limited") == (answer.status, answer.body["type"])
    assert resets_at in answer.body["detail"]
    left = answer.headers["Retry-After"]
    assert "40" == left
    name, seconds = {"minute": ("minute", 60), "90": ("90s", 90)}[window]
    assert f'"{name}";q=8;w={seconds}' == answer.headers["RateLimit-Policy"]
    assert f'"{name}";r=0;t={left}' == answer.headers["RateLimit"]


def test_a_window_that_is_over_lets_the_caller_come_at_once(api: Api):
    """The limit may also be gone by now."""
    cause = cause_until("2026-01-31T12:00:00.000Z")
    api.client.ends.append(NO_LOCK | {"error": "RateLimited", "cause": cause})
    answer = api.post(prefer="wait=10")
    assert (429, "1") == (answer.status, answer.headers["Retry-After"])
    assert [False, True] == [answer.body["replayed"], api.post().body["replayed"]]
    assert "RateLimit" not in answer.headers


def test_a_payload_that_does_not_say_who_is_limited_is_refused():
    """With the path where it would say so."""
    api = Api()
    api.client.rules = replace(api.client.rules, rate_limit=8, rate_limit_path="customer")
    answer = api.post()
    assert (400, True) == (answer.status, "customer" in answer.body["detail"])
    assert 400 == api.post(payload=PAYLOAD | {"customer": "x" * 1_025}).status


def test_an_unsettled_request_counts_as_running(api: Api):
    """202, with the reason, whether starting finds it so or waiting."""
    api.post()
    api.client.raises["wait"] = Unsettled("arn:…")
    waited, read = api.post(prefer="wait=5"), api.get("order-1", prefer="wait=5")
    api.client.raises = {"start": Unsettled("arn:…")}
    started = api.post(prefer="wait=5")

    assert [202, 202, 200] == [waited.status, started.status, read.status]
    assert (True, 409) == (started.body["replayed"], api.post(prefer="wait=0").status)
    for answer in (waited, started, read):
        assert "RUNNING" == answer.body["status"]
        assert "not on record yet" in answer.body["detail"]


def test_a_request_that_is_settled_while_somebody_waits_is_final(api: Api):
    """The monitor may write its end between the wait and the answer."""
    api.post()
    api.client.raises["wait"] = Unsettled("arn:…")
    (request_id,) = api.client.tokens
    api.client.end(request_id, **DONE)

    read = api.get("order-1", prefer="wait=5")

    assert (200, "COMPLETED", None) == (read.status, read.body["status"], read.body.get("detail"))


@pytest.mark.parametrize(
    ("error", "status", "retry_after"),
    [
        (Unavailable("x", throttled=True), 429, "5"),
        (Unavailable("x"), 503, "5"),
        (TooManyAttempts("x"), 409, None),
    ],
)
def test_trouble_has_its_status(api: Api, error: Exception, status: int, retry_after: str | None):
    """What passes by itself says when to come again."""
    api.client.raises["start"] = error
    answer = api.post()
    assert (status, retry_after) == (answer.status, answer.headers.get("Retry-After"))


@pytest.mark.parametrize("asked", ["start", "status"])
def test_a_record_that_nobody_can_read_is_a_documented_problem(api: Api, asked: str):
    """A person must mend it; the caller learns neither the key of the record nor what is in it."""
    api.client.raises[asked] = RecordUnreadable("steponce-run-once/acme/order-1", "attempt", "is 1.5")

    answer = api.post() if asked == "start" else api.get("order-1")

    assert (500, "urn:steponce:problem:record-unreadable") == (answer.status, answer.body["type"])
    assert None is answer.headers.get("Retry-After")
    assert "acme" not in str(answer.body)


@pytest.fixture
def large(api: Api) -> Iterator[tuple[Api, Results]]:
    """A request that is completed, with a result in the bucket."""
    with mock_aws():
        yield api, bucket()


def end_with(api: Api, results: Results, text: str) -> Reference:
    """The caller's request ends, and its result is kept."""
    api.post()
    (token,) = api.client.receipts
    reference = kept(results, text, lock_token=token)
    api.client.receipts[token] = Receipt.from_lock(
        "acme/order-1", record(reference.to_json(), token), results, duplicate=False
    )
    return reference


def test_a_large_result_is_answered_like_any_other(large: tuple[Api, Results]):
    """To whoever started it and to whoever asks; nobody learns where it was kept."""
    api, results = large
    end_with(api, results, '{"pages":"many"}')

    for answer in (api.get("order-1"), api.post(), api.get("order-1", prefer="wait=1")):
        assert (200, {"pages": "many"}) == (answer.status, answer.body["result"])


def test_a_large_result_that_is_gone_has_a_problem_of_its_own(
    large: tuple[Api, Results], caplog: pytest.LogCaptureFixture
):
    """The request is completed; the log names the object, and the answer does not."""
    api, results = large
    reference = end_with(api, results, '{"pages":"many"}')
    results.delete([(reference.key, reference.version)])

    with caplog.at_level(logging.ERROR):
        answer = api.get("order-1")

    assert (500, "urn:steponce:problem:result-unreadable") == (answer.status, answer.body["type"])
    assert "will not run again" in answer.body["detail"]
    assert {"results/", "acme", "large-results"}.isdisjoint(str(answer.body).split())


@pytest.mark.parametrize(
    "text", [json.dumps("x" * 5_999_900), json.dumps('"' * 2_000_000)], ids=["x", "quotes"]
)
def test_a_result_that_no_answer_can_carry_has_a_problem_of_its_own(large: tuple[Api, Results], text: str):
    """Lambda would refuse the answer, and the gateway tell of an internal error."""
    api, results = large
    end_with(api, results, text)

    answer = api.get("order-1")

    assert (500, "urn:steponce:problem:result-too-large") == (answer.status, answer.body["type"])


def test_a_result_far_too_large_is_not_even_read(large: tuple[Api, Results], monkeypatch: pytest.MonkeyPatch):
    """The function has 256 MB of memory."""
    api, results = large
    end_with(api, results, json.dumps("x" * 6_000_000))
    monkeypatch.setattr(results, "fetch", pytest.fail)

    answers = [api.get("order-1"), api.post(prefer="wait=1")]

    assert ["urn:steponce:problem:result-too-large"] * 2 == [answer.body["type"] for answer in answers]


@pytest.mark.parametrize(("throttled", "status"), [(True, 429), (False, 503)])
def test_trouble_in_reading_has_its_status(api: Api, throttled: bool, status: int):
    """The same for GET."""
    api.client.raises["status"] = Unavailable("x", throttled=throttled)
    assert status == api.get("order-1").status


# -- Reading ---------------------------------------------------------------------------------------
def test_an_unknown_request_is_not_found(api: Api):
    """With and without waiting, under any name."""
    unknown = ["order-9", " ", "\ud800", "~", "~!", "é", ".."]
    assert [404] * 2 * len(unknown) == [
        api.get(segment, prefer=prefer).status for segment in unknown for prefer in (None, "wait=1")
    ]


@pytest.mark.parametrize(("path", "told"), [(None, False), ("orderId", True)])
def test_a_request_that_is_not_found_may_have_a_record(path: str | None, told: bool):
    """Where the payload has the business key, and Step Functions has forgotten the execution."""
    detail = Api(business_key=path).get("order-1").body["detail"]
    assert told == ("the same POST finds its record, or starts it" in detail)


def test_only_the_routes_are_there(api: Api):
    """A path that the router does not know is a problem like any other."""
    assert 404 == api.get("a/b").status


def test_a_reader_may_wait(api: Api):
    """And gets the state that it has at the end."""
    api.post()
    assert (200, "RUNNING") == ((read := api.get("order-1", prefer="wait=1")).status, read.body["status"])
    api.client.ends.append(DONE)
    assert "COMPLETED" == api.get("order-1", prefer="wait=1").body["status"]


@pytest.mark.parametrize(("path", "given"), [(None, True), ("orderId", False)])
def test_the_lock_token_is_given_where_it_is_known(path: str | None, given: bool):
    """So that no execution has to be described; with LockTokenPath only its execution knows it."""
    api = Api(business_key=path)
    api.post()
    api.get("order-1")
    (asked,) = [token for method, _, token in api.client.asked if method == "status"]
    assert given == (asked is not None)


# -- What cannot be used ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    "key", [None, "", "   ", '""', '"   "', '"open', "a b", '"a" b', '"a";p=1', '"a", "b"', '"\\n"', "é",
            '"é"', "x" * 256, '"' + "x" * 256 + '"', "a\x00", '"a\tb"', "a\n"]
)  # fmt: skip
def test_a_key_that_is_none_is_refused(api: Api, key: str | None):
    """400, and nothing was started."""
    assert (400, [], []) == (api.post(key).status, api.client.asked, api.counted)


@pytest.mark.parametrize(
    "body", [None, "", "{", "[]", "1", '"x"', "null", '{"a": 1', "[" * 100_000, '{"a":' * 100_000,
             '{"a": NaN}', '{"a": 1e999}', '{"a": 9007199254740993}', '{"a": "\\ud800"}', '{"\\ud800": 1}',
             '{"a": ' + "1" * 5000 + "}", "\ufeff{}"]
)  # fmt: skip
def test_a_body_that_is_no_payload_is_refused(api: Api, body: str | None):
    """400, and nothing was started."""
    assert (400, []) == (api.post(body=body).status, api.client.asked)


@pytest.mark.parametrize("body", ["!", "/w==", base64.b64encode(b"[]").decode()])
def test_a_body_in_base64_that_is_no_payload_is_refused(api: Api, body: str):
    """Not base64, not UTF-8, not an object."""
    assert (400, []) == (api.post(body=body, isBase64Encoded=True).status, api.client.asked)


def test_a_body_may_come_in_base64(api: Api):
    """As the gateway sends what is not declared as text."""
    body = base64.b64encode(json.dumps({"name": "Zoë"}).encode()).decode()
    assert 202 == api.post(body=body, isBase64Encoded=True).status
    assert [{"name": "Zoë"}] == list(api.client.payloads.values())


def test_a_payload_that_is_too_large_is_refused(api: Api):
    """413 from 196,608 bytes on."""
    assert (413, []) == (api.post(payload={"text": "x" * 196_608}).status, api.client.asked)


@pytest.mark.parametrize("payload", [{}, {"orderId": None}, {"orderId": " "}, {"orderId": "x" * 3000}])
def test_a_payload_without_its_business_key_is_refused(payload: dict[str, Any]):
    """400, and nothing was started."""
    api = Api(business_key="orderId")
    assert (400, []) == (api.post(payload=payload).status, api.client.asked)


# -- Whose request it is ---------------------------------------------------------------------------
@pytest.mark.parametrize("path", [None, "orderId"])
def test_two_callers_with_the_same_key_never_meet(path: str | None):
    """Neither by key nor by business key, whatever they send; neither learns of the other."""
    api = Api(business_key=path)
    api.post(caller="acme")
    api.client.end("acme/order-1", **DONE)

    other = api.post(payload=PAYLOAD | {"amount": 1}, caller="globex")

    assert (202, False) == (other.status, other.body["replayed"])
    assert 2 == len(api.client.receipts)
    assert 404 == api.get("order-1", caller="initech").status


def test_a_foreign_request_looks_like_none(api: Api):
    """The same answer to the letter for what is another's and what is nobody's."""
    api.post(caller="acme")
    assert api.get("order-1", caller="globex") == api.get("order-1", caller="initech")


@given(one=CALLERS, other=CALLERS, keys=st.tuples(KEYS, KEYS))
@example(one="a/b", other="a", keys=("c", "b/c"))
@example(one="a%2Fb", other="a/b", keys=("c", "c"))
@example(one="a ", other="a", keys=("c", "c"))
def test_ids_and_lock_tokens_tell_callers_apart(one: str, other: str, keys: tuple[str, str]):
    """Different caller or key, different id; and all of one caller begins with one prefix."""
    api = Api()
    callers = Callers.by_parameters("jwt", "")
    mine, theirs = (callers.scope({"jwt": {"claims": {"sub": caller}}}) for caller in (one, other))
    assert (one == other) == (mine == theirs)
    assert ((one, keys[0]) == (other, keys[1])) == (mine.request_id(keys[0]) == theirs.request_id(keys[1]))
    prefix = mine.rules(api.client.rules).key_prefix + "/"
    assert (one == other) == theirs.rules(api.client.rules).lock_token("n", {}).startswith(prefix)
    assert prefix == f"steponce-run-once/{quote(one, safe='')}/"


NOBODY: list[Any] = [None, {}, {"jwt": None}, {"jwt": {"claims": {}}}, {"lambda": {"sub": "x"}}] + [
    {"jwt": {"claims": {"sub": sub}}} for sub in (None, "", "  ", 5, True, ["acme"], {"a": 1}, "\ud800")
]


@pytest.mark.parametrize("authorizer", NOBODY)
@pytest.mark.parametrize("kind", ["post", "get"])
def test_without_a_caller_nothing_is_started_or_read(api: Api, authorizer: Any, kind: str):
    """403, never the scope that all share."""
    event = json.loads(json.dumps(POSTED if kind == "post" else READ))
    event["requestContext"]["authorizer"] = authorizer
    if authorizer is None:
        del event["requestContext"]["authorizer"]
    assert (403, []) == (api.app.resolve(event, None)["statusCode"], api.client.asked)


@pytest.mark.parametrize(
    "path", ["jwt.claims.tenant", "join('/', [jwt.claims.tenant])", "jwt.(", "jwt.claims"]
)
def test_a_caller_path_that_finds_nobody_lets_nobody_in(path: str):
    """Nor one that is no JMESPath."""
    assert 403 == Api(caller_path=path).post().status


ROLE = "arn:aws:sts::1:assumed-role/Shoppers/CognitoIdentityCredentials"
"""Of each user of a Cognito identity pool."""


@pytest.mark.parametrize(
    ("http_access", "path", "authorizer", "prefix"),
    [
        ("jwt", "", {"jwt": {"claims": {"sub": "shop|acme"}}}, "shop%7Cacme/"),
        ("jwt", "jwt.claims.tenant", {"jwt": {"claims": {"sub": "x", "tenant": "acme"}}}, "acme/"),
        ("iam", "", {"iam": {"userArn": "arn:aws:iam::1:user/Z"}}, "arn%3Aaws%3Aiam%3A%3A1%3Auser%2FZ/"),
        ("iam", "", {"iam": {"userArn": ROLE, "cognitoIdentity": None}}, f"{quote(ROLE, safe='')}/"),
        ("iam", "", {"iam": {"userArn": ROLE, "cognitoIdentity": {"identityId": "eu:1"}}}, "eu%3A1/"),
        ("open", "", {}, ""),
        ("open", "jwt.claims.tenant", {}, ""),
        ("off", "", {}, ""),
    ],
)
def test_the_parameters_say_who_calls(http_access: str, path: str, authorizer: Any, prefix: str):
    """By default the token's subject, the identity in a pool, or the signer's ARN."""
    assert Scope(prefix) == Callers.by_parameters(http_access, path).scope(authorizer)


def test_the_order_of_claims_does_not_make_another_caller():
    """A new token may list them otherwise, and the same POST ran again."""
    callers = Callers.by_parameters("jwt", "join('/', values(jwt.claims))")
    one, other = {"sub": "u-1", "tenant": "acme"}, {"tenant": "acme", "sub": "u-1"}
    assert callers.scope({"jwt": {"claims": one}}) == callers.scope({"jwt": {"claims": other}})


def test_every_mode_that_checks_callers_needs_one():
    """Only an open api, or none, is without."""
    for http_access in PATHS:
        with pytest.raises(CallerUnknown):
            Callers.by_parameters(http_access, "").scope({})


def test_a_caller_whose_name_fits_into_no_lock_token_is_refused_as_such(api: Api):
    """The longest that fits is let in with the longest key; the next one hears that the name is it."""
    assert 202 == api.post(key=f'"{"k" * 255}"', caller="n" * 1_699).status
    assert 403 == api.post(key=f'"{"k" * 255}"', caller="n" * 1_700).status


def test_all_callers_of_an_open_api_share_their_keys():
    """The request id is the key, and the lock token what every other api makes of it."""
    api = Api("open")
    assert 202 == api.post(caller=None).status
    assert [("start", "order-1", "steponce-run-once/order-1")] == api.client.asked


# -- Bodies ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("status", "told", "body"),
    [
        (413, "more than 1,572,864 bytes", '{"text": "' + "x" * LONGEST_TEXT + '"}'),
        (413, "more than the 196,608 bytes", json.dumps({"zeros": [0] * 98_304})),
        (413, "more than the 196,608 bytes", '{"a": [' + "{}," * 100_000 + "{}]}"),
        (400, "nested too deeply", '{"a": ' + "[" * 100_000),
        (400, "nested too deeply", '{"a": ' + "[" * 400 + "]" * 400 + "}"),
        (400, "thousands of digits", '{"a": ' + "1" * 100_000 + "}"),
        (400, "payload.a is inf", '{"a": 1e400}'),
        (400, "payload.a is -inf", '{"a": -1' + "0" * 4000 + ".0}"),
        (400, "the key 'a' twice", '{"a": 1, "a": 2}'),
        (400, "payload.a holds half a character", '{"a": "\\ud800"}'),
        (400, "payload.a is beyond", '{"a": 9007199254740992}'),
        (400, "line 1, column 1", ""),
        (400, "not a JSON object", "[1]"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_body_that_is_no_payload_is_refused_with_a_reason(api: Api, status: int, told: str, body: str):
    """A short one, and nothing is started."""
    answer = api.post(body=body)
    assert (status, True, []) == (answer.status, told in answer.body["detail"], api.client.asked)
    assert len(answer.body["detail"]) < 500


def test_a_body_may_be_written_with_escapes_throughout(api: Api):
    """Six characters for each of the payload's own."""
    text = "x" * 190_000
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in text)
    assert 202 == api.post(body=f'{{"text": "{escaped}"}}').status
    assert {"text": text} == next(iter(api.client.payloads.values()))


@pytest.mark.parametrize("coding", ["gzip", "br", "GZIP", "gzip, identity", "x"])
def test_a_compressed_body_is_refused(api: Api, coding: str):
    """415, and how to send it; nobody unpacks what may be of any size."""
    body = base64.b64encode(gzip.compress(json.dumps(PAYLOAD).encode())).decode()
    answer = api.send(POSTED, {"content-encoding": coding}, "acme", {"body": body, "isBase64Encoded": True})
    assert (415, "identity", []) == (answer.status, answer.headers["Accept-Encoding"], api.client.asked)


@pytest.mark.parametrize("coding", ["identity", " Identity ", ""])
def test_a_body_that_is_not_compressed_may_say_so(api: Api, coding: str):
    """An empty header says nothing."""
    assert 202 == api.send(POSTED, {"content-encoding": coding}, "acme", {}).status


# -- Headers ---------------------------------------------------------------------------------------
@given(key=KEYS)
def test_a_quoted_key_is_what_was_meant(key: str):
    """Quotes and backslashes in it come escaped."""
    escaped = key.replace("\\", "\\\\").replace('"', '\\"')
    assert key == idempotency_key(f' "{escaped}"\t')


@given(key=BARE_KEYS)
def test_a_bare_key_is_the_same_key(key: str):
    """As many clients send it."""
    assert key == idempotency_key(key)


@pytest.mark.parametrize("header", ["k1,k1", "k1, k1", '"k1","k1"', ",k1", 'k1,"k1"'])
def test_two_keys_are_none(api: Api, header: str):
    """API Gateway joins two headers by a comma. A retry that adds the header once more must not run again."""
    answer = api.post(header)

    assert (400, []) == (answer.status, api.client.asked)
    assert "Send it once, and a key that has a comma between double quotes." in answer.body["detail"]


def test_a_key_with_a_comma_is_quoted():
    """So a client that has sent it bare finds its requests under the same key."""
    assert "a,b" == idempotency_key('"a,b"')


@given(header=st.text() | st.text(st.sampled_from('"\\ a;,=\x7f\té')))
def test_a_key_is_well_formed_or_refused(header: str):
    """Whatever comes, nothing else is raised, and what is taken can be read again."""
    try:
        key = idempotency_key(header)
    except InvalidRequestId:
        return
    assert key.isascii()
    assert key.isprintable()
    assert 1 <= len(key) <= 255


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("wait=10", 10),
        ("Wait = 10", 10),
        ('wait="10"', 10),
        ("wait=0", 0),
        ("wait=0000", 0),
        ("wait=00000000000007", 7),
        ("wait=26", 25),
        ("wait=100", 25),
        ("wait=" + "9" * 5000, 25),
        ("respond-async, wait=10", 10),
        ("respond-async; foo=bar, wait=10; baz", 10),
        ('foo="a, wait=3", wait=10', 10),
        ('foo="\\", wait=3", wait=10', 10),
        ("wait=1, wait=2", 1),
        ("wait=x, wait=2", 2),
        ("wait=-1", None),
        ("wait=1.5", None),
        ("wait", None),
        ("wait=", None),
        ("wait=١", None),
        ('wait="10', None),
        ("waiting=10", None),
        ("no-wait=10", None),
    ],
)
def test_a_preferred_wait_is_understood(header: str | None, seconds: int | None):
    """RFC 7240; what is malformed counts for nothing."""
    assert seconds == preferred_wait(header)


@given(header=st.text(st.sampled_from('wait=09";, \\x')))
def test_any_prefer_header_is_understood_somehow(header: str):
    """Nothing is raised, and no wait is longer than the gateway's patience."""
    assert preferred_wait(header) in {None, *range(26)}


@given(key=KEYS)
@example(key="..")
@example(key="a/b?c#d%41")
@example(key="~YQ")
def test_a_location_leads_to_its_request(key: str):
    """Also after the gateway has decoded the path, and looked for / and ? in it."""
    api = Api()
    escaped = key.replace("\\", "\\\\").replace('"', '\\"')
    location = api.post(f'"{escaped}"').headers["Location"]
    decoded = unquote(location)
    assert 2 == decoded.count("/")
    assert not set("?#%") & set(decoded)
    assert (200, key) == ((read := api.get(decoded.rpartition("/")[2])).status, read.body["requestId"])


@given(keys=st.tuples(KEYS, KEYS))
def test_no_two_keys_have_one_address(keys: tuple[str, str]):
    """A Location is one request's."""
    assert (keys[0] == keys[1]) == (address_of(keys[0]) == address_of(keys[1]))


@pytest.mark.parametrize("segment", ["~YWJj", "~YS9i=", "~!", "~_w", "abc"])
def test_a_last_part_that_no_location_has_is_the_key_itself(segment: str):
    """`abc` and `a/b` have other Locations, and nobody gets their answers under this one."""
    assert segment == key_in(segment)


@given(segment=st.text(max_size=20) | st.text(st.sampled_from("~ab_-AQ==")))
def test_any_last_part_of_a_path_means_some_key(segment: str):
    """At the worst one that nobody has used."""
    assert isinstance(key_in(segment), str)


# -- What is told, and what is not -----------------------------------------------------------------
def test_a_cause_comes_without_what_is_nobody_s_business(api: Api):
    """No stack trace, no ARN, no lock token."""
    trace = json.dumps({"errorMessage": "no such card", "errorType": "ValueError", "stackTrace": ["app.py"]})
    api.post()
    (token,) = api.client.receipts
    causes = {
        trace: "no such card",
        "The execution arn:aws:states:us-east-1:1:execution:m:n died": "The execution … died",
        f"The key {token} is taken": "The key … is taken",
        '{"code": 5}': '{"code": 5}',
        "[" * 5000: "[" * 5000,
    }
    for cause, told in causes.items():
        api.client.end("acme/order-1", **FAILED | {"cause": cause})
        assert told == api.get("order-1").body["cause"] == api.post().body["cause"]


@pytest.mark.parametrize("quoted", [str, repr, json.dumps, partial(json.dumps, ensure_ascii=False)])
def test_a_lock_token_is_not_told_in_whatever_form_an_error_quotes_it(api: Api, quoted: Callable[[str], str]):
    """A backslash, quotes and control characters have other forms in each."""
    api.post()
    token = """acme/'1'"2"\\\x07é"""
    cause = f"The key {quoted(token)} is taken"
    api.client.end("acme/order-1", **FAILED | {"cause": cause, "lock_token": token})
    assert "acme" not in api.get("order-1").body["cause"]


@pytest.mark.parametrize("separator", [", ", ","])
@pytest.mark.parametrize("first", ["errorMessage", "errorType"])
def test_a_cut_cause_comes_without_its_stack_trace(api: Api, first: str, separator: str):
    """What is left of Lambda's report is no JSON, wherever the cut is."""
    fields = {"errorMessage": 'no "such" cärd\n', "errorType": "ValueError", "stackTrace": ["app.py"] * 3}
    names = sorted(fields, key=lambda name: (name != first, name))
    report = json.dumps({name: fields[name] for name in names}, separators=(separator, ": "))
    api.post()
    message = report.index("no ")
    for end in range(message + 1, len(report)):
        api.client.end("acme/order-1", **FAILED | {"cause": report[:end]})
        told = api.get("order-1").body["cause"]
        assert "app.py" not in told
        assert "errorMessage" not in told
        assert told.startswith("n")


def test_no_problem_quotes_payload_token_or_arn(caplog: pytest.LogCaptureFixture):
    """Nor does a line of the log."""
    caplog.set_level(logging.DEBUG)
    card = "tok_of_nobody"
    api = Api(business_key="order.id")
    good = {"order": {"id": "1"}, "card": card}
    told = [api.post(payload=good)]
    told += [api.post(payload=payload) for payload in ({"card": card}, good | {"card": card * 2}, [card])]
    told += [
        api.post(payload=good | {"order": {"id": card}}),
        api.post(payload={"order": {"id": card * 300}}),
    ]
    told += [
        api.post(body=f'{{"card": {card}'),
        api.post("a b", good),
        api.post(payload=good, caller=None),
    ]
    told += [
        api.post(payload=good | {"x": 2**60, "card": card}),
        api.post(payload={"x": card * 50_000}),
    ]
    api.client.raises["start"] = Unavailable(f"{card} arn:aws:x steponce-run-once/acme")
    told += [api.post(payload=good)]

    assert {202, 400, 403, 422, 503} == {answer.status for answer in told}
    texts = [json.dumps([answer.body, dict(answer.headers)]) for answer in told] + [caplog.text]
    assert "unavailable" in caplog.text
    for word in (card, "arn:", "steponce-run-once", "acme"):
        assert [] == [text for text in texts if word in text]


def test_the_document_names_what_is_answered_and_nothing_else(api: Api):
    """Every status of each method occurs; what an answer has and the document does not fails at once."""
    answered = {("post", api.post().status), ("get", api.get("order-1").status)}
    api.client.end("acme/order-1", **DONE)
    large = {"text": "x" * 196_608}
    for answer in (
        api.post(),
        api.post("a b"),
        api.post(caller=None),
        api.post(payload={}),
        api.post('"order-2"', large),
    ):
        answered.add(("post", answer.status))
    answered.add(("post", api.send(POSTED, {"content-encoding": "gzip"}, "acme", {}).status))
    api.post('"order-3"')
    answered.add(("post", api.post('"order-3"', prefer="wait=0").status))
    answered |= {("get", api.get("order-9").status), ("get", api.get("order-1", caller=None).status)}
    troubles = [Unavailable("x", throttled=True), Unavailable("x"), RecordUnreadable("key", "ttl", "is x")]
    for trouble in troubles:
        api.client.raises = dict.fromkeys(("start", "status"), trouble)
        answered |= {("post", api.post().status), ("get", api.get("order-1").status)}

    documented = {
        (method, int(status))
        for item in DOCUMENT["paths"].values()
        for method, operation in item.items()
        for status in operation["responses"]
    }
    assert documented == answered


def test_the_examples_are_of_one_caller_and_one_request(api: Api):
    """What the one event starts, the other reads."""
    api.client.ends.append(DONE)
    started, read = api.app.resolve(POSTED, None), api.app.resolve(READ, None)
    assert (200, 200) == (started["statusCode"], read["statusCode"])
    assert json.loads(started["body"]) == json.loads(read["body"])
    assert [PAYLOAD] == list(api.client.payloads.values())


def test_the_receipt_of_a_start_is_counted_once(api: Api):
    """Waiting for the end does not count again; what was refused does not count."""
    api.client.ends.append(DONE)
    api.post(prefer="wait=5")
    api.post(payload={"other": 1})
    api.get("order-1")
    assert [replace(api.counted[0], status="RUNNING")] == api.counted
