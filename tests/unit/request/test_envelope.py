"""One id, one name, for ever; and an envelope that two sends of one event share."""

import base64
import gzip
import json
import re
from dataclasses import asdict
from datetime import UTC, datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from steponce.aws import times
from steponce.errors import (
    InvalidLockToken,
    InvalidPayload,
    InvalidRequest,
    InvalidRequestId,
    InvalidSetting,
    MissingKey,
    PayloadTooLarge,
)
from steponce.request.canonical import canonical_json, sha256
from steponce.request.envelope import Envelope
from steponce.request.expressions import find
from steponce.request.names import OPEN_SHARDS, attempt_name, name_of, split_attempt
from steponce.request.settings import RequestRules
from steponce.triggers.start_request import StartRequest
from tests.rules.documents import ROOT

RULES = RequestRules(key_prefix="shop")
PAYLOAD = {"orderId": "1", "amount": 500, "card": "tok_visa"}
KEY = "acme/charge/o-12"
SLUG = "order-1--x0123456789abcdef0123456789abcdef"


class Tenant(str):
    """Text that is formatted as another text, as a member of an enumeration may be."""

    __slots__ = ()

    def __format__(self, spec: str) -> str:
        return "Tenant"


PLAIN_IDS = st.from_regex(r"\A[0-9A-Za-z_-]{1,80}\Z")
TRICKY_IDS = st.from_regex(r"\A[a-]{0,3}(--)?(x[0-9a-f]{31,33}|[0-9]{0,7})[ /-]?\Z")
IDS = (st.text() | PLAIN_IDS | TRICKY_IDS).filter(str.strip)
ATTEMPTS = st.integers(1, 999_999)


def is_half(request_id: str) -> bool:
    """Whether a text holds a lone surrogate, which no id may."""
    return bool(re.search("[\ud800-\udfff]", request_id))


@given(IDS, IDS)
@example("order/1", "order-1")
@example("a--2", "a")
@example("é", "e\u0301")
@example("É", "é")
def test_two_ids_never_share_a_name(one: str, other: str) -> None:
    """Names are equal if and only if the ids are."""
    assume(not is_half(one + other))
    assert (one == other) == (name_of(one) == name_of(other))


@given(IDS, IDS, ATTEMPTS, ATTEMPTS)
@example("a", "a--2", 2, 1)
@example("a-", "a", 2, 2)
def test_two_attempts_never_share_a_name(one: str, other: str, first: int, second: int) -> None:
    """No id's name is another id's attempt, nor do attempts of two ids meet."""
    assume(not is_half(one + other))
    same = attempt_name(name_of(one), first) == attempt_name(name_of(other), second)
    assert ((one, first) == (other, second)) == same


@given(IDS, ATTEMPTS)
def test_every_name_is_one_that_step_functions_takes_and_logs(request_id: str, attempt: int) -> None:
    """1-72 characters of the plain ones, so that any attempt fits into 80."""
    assume(not is_half(request_id))
    name = name_of(request_id)
    assert re.fullmatch(r"[0-9A-Za-z_-]{1,72}", name)
    assert re.fullmatch(r"[0-9A-Za-z_-]{1,80}", attempt_name(name, attempt))


@given(IDS, ATTEMPTS)
def test_an_attempt_s_name_tells_its_request_and_number(request_id: str, attempt: int) -> None:
    """What was put together comes apart again."""
    assume(not is_half(request_id))
    name = name_of(request_id)
    assert (name, attempt) == split_attempt(attempt_name(name, attempt))


@given(IDS)
def test_a_name_that_is_made_is_not_one_that_is_taken_as_it_is(request_id: str) -> None:
    """A slug given as an id gets a name of its own."""
    assume(not is_half(request_id))
    name = name_of(request_id)
    assert name == request_id or name_of(name) != name


@pytest.mark.parametrize("request_id", ["order-1", "a", "_", "-", "0" * 72, "order-1-2", "a--b", "a--x12"])
def test_a_plain_id_is_its_name(request_id: str) -> None:
    """People find it where they look."""
    assert request_id == name_of(request_id)


@pytest.mark.parametrize("request_id", ["daily", "daily/eu", "daily--2"])
def test_an_id_of_an_own_kind_of_text_has_the_name_of_its_text(request_id: str) -> None:
    """So that names and keys made of it are those that Step Functions and everybody else see."""
    name = name_of(request_id)

    assert (name, f"{name}--2") == (name_of(Tenant(request_id)), f"{name_of(Tenant(request_id))}--2")


@pytest.mark.parametrize(
    ("slug", "request_id"),
    [
        ("order-1", "order/1"),
        ("order-1", " order 1 "),
        ("a-2", "a--2"),
        ("id", "é"),
        ("id", "!"),
        ("0" * 37, "0" * 73),
    ],
)
def test_any_other_id_is_a_readable_slug_with_a_hash(slug: str, request_id: str) -> None:
    """The hash is the id's own."""
    assert f"{slug}--x{sha256(request_id)[:32]}" == name_of(request_id)


@pytest.mark.parametrize("request_id", ["", " ", "\t\n", "\u2003", None, 1, b"order-1", ["order-1"]])
def test_a_blank_id_is_refused(request_id: Any) -> None:
    """It names nothing."""
    with pytest.raises(InvalidRequestId, match="empty or not text"):
        name_of(request_id)


def test_an_id_with_half_a_character_is_refused() -> None:
    """It could not be sent."""
    with pytest.raises(InvalidRequestId, match="half a character"):
        name_of("order-\ud800")


@pytest.mark.parametrize("name", ["a--1", "a--0", "a--02", "a--1000000", "a-2", "--2", "a--2-", "a--2\u0661"])
def test_what_is_no_attempt_is_a_name(name: str) -> None:
    """Only our own form counts."""
    assert (name, 1) == split_attempt(name)


@given(st.dictionaries(st.sampled_from("abc"), st.integers(0, 9) | st.text(max_size=3)))
def test_two_sends_of_one_event_differ_in_the_call_and_the_times_from_starting(
    payload: dict[str, Any],
) -> None:
    """Nothing else, or the same request would not be the same."""
    assume(not is_half("".join(map(str, payload.values()))))
    sent = datetime(2026, 1, 31, 12, tzinfo=UTC)
    one = asdict(Envelope.make("order-1", payload, RULES, requested_at=sent))
    other = asdict(Envelope.make("order-1", dict(reversed(payload.items())), RULES, requested_at=sent))
    differing = {field for field in one if one[field] != other[field]}
    assert {"callId"} <= differing <= {"callId", "expectedCompletion", "expiresAt", "ttl"}


def test_one_envelope_is_always_the_same_text() -> None:
    """An SDK's retry sends the same bytes."""
    envelope = Envelope.make("order-1", PAYLOAD, RULES)
    assert envelope.to_json() == envelope.to_json()
    assert canonical_json(json.loads(envelope.to_json())) == envelope.to_json()


def test_an_envelope_has_text_for_all_but_the_payload() -> None:
    """The workflow puts each of them into an attribute of type S, or N as text."""
    envelope = Envelope.make("order-1", PAYLOAD, RULES).to_dict()
    assert PAYLOAD == envelope.pop("payload")
    assert {str} == {type(value) for value in envelope.values()}


@pytest.mark.parametrize("request_id", ["order-1", "o" * 2_048])
def test_the_page_says_what_an_envelope_has_beside_the_payload(request_id: str) -> None:
    """The id is in it, and a message's once more."""
    page = (ROOT / "docs" / "limits-and-costs.md").read_text(encoding="utf-8")
    redelivery = StartRequest(request_id, {}).redelivery

    def ours(ids: int, **options: Any) -> int:
        envelope = Envelope.make(request_id, PAYLOAD, RULES, **options)
        given = len(canonical_json(PAYLOAD)) + len(envelope.lockToken) + ids * len(request_id)
        return len(envelope.to_json()) - given

    assert "payload, lock token, request id and about 330 bytes of ours" in page
    assert "of a message the id once more, and about 40 bytes" in page
    assert 330 == pytest.approx(ours(1), abs=5)
    assert 330 + 40 == pytest.approx(ours(2, redelivery=redelivery), abs=5)


def test_times_count_from_starting_and_from_the_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """An event may have waited two weeks in a queue."""
    monkeypatch.setattr(times, "now", lambda: datetime(2026, 1, 31, 12, tzinfo=UTC))
    rules = RequestRules(key_prefix="shop", expected_seconds=60, retention_seconds=86_400.5)
    envelope = Envelope.make("a", {}, rules, requested_at=datetime(2026, 1, 17, tzinfo=UTC))
    assert "2026-01-17T00:00:00.000Z" == envelope.requestedAt
    assert "2026-01-31T12:01:00.000Z" == envelope.expectedCompletion
    assert "2026-02-01T12:00:00.500Z" == envelope.expiresAt
    assert str(1_770_033_601) == envelope.ttl


def test_without_an_event_s_time_the_clock_says_when(monkeypatch: pytest.MonkeyPatch) -> None:
    """A direct call is its own event."""
    monkeypatch.setattr(times, "now", lambda: datetime(2026, 1, 31, 12, tzinfo=UTC))
    assert "2026-01-31T12:00:00.000Z" == Envelope.make("a", {}, RULES).requestedAt


def test_never_is_the_year_9999() -> None:
    """A record that never expires has a time as every other."""
    rules = RequestRules(key_prefix="shop", retention_seconds=None)
    assert "9999-12-31T23:59:59.000Z" == Envelope.make("a", {}, rules).expiresAt


def test_the_default_key_has_the_machine_s_prefix() -> None:
    """Two machines on one table never answer for each other."""
    assert "shop/order-1" == Envelope.make("order-1", {}, RULES).lockToken


def test_a_key_given_explicitly_is_used_as_it_is() -> None:
    """So that two workflows can share it."""
    assert KEY == Envelope.make("order-1", {}, RULES, lock_token=KEY).lockToken


@given(st.text(min_size=1).filter(str.strip))
def test_a_key_has_one_shard(key: str) -> None:
    """Whoever opens the record, its openStatus is the same."""
    assume(not is_half(key))
    shards = {Envelope.make("a", {}, RULES, lock_token=key).shard for _ in range(2)}
    assert shards < {str(shard) for shard in range(OPEN_SHARDS)}
    assert 1 == len(shards)


@pytest.mark.parametrize("key", ["", "  ", 12, b"key", "k" * 2_049, "é" * 1_025])
def test_a_key_that_dynamodb_would_refuse_is_refused_first(key: Any) -> None:
    """Blank, not text, or more than 2,048 bytes."""
    with pytest.raises(InvalidLockToken):
        Envelope.make("a", {}, RULES, lock_token=key)


@pytest.mark.parametrize("key", ["k" * 2_048, "é" * 1_024])
def test_a_key_may_have_2048_bytes(key: str) -> None:
    """As many as DynamoDB allows."""
    assert key == Envelope.make("a", {}, RULES, lock_token=key).lockToken


def test_a_quotation_mark_in_a_key_is_one_byte() -> None:
    """2,048 of them are allowed."""
    assert '"' * 2_048 == Envelope.make("a", {}, RULES, lock_token='"' * 2_048).lockToken


@pytest.mark.parametrize(
    ("expected", "path", "payload"),
    [
        ("shop/7", "order.id", {"order": {"id": "7"}}),
        ("shop/7", "order.id", {"order": {"id": 7}}),
        ("shop/0", "order.id", {"order": {"id": 0}}),
        ('shop/["acme",7]', "[tenant, id]", {"id": 7, "tenant": "acme"}),
        ("shop/7", "powertools_json(body).id", {"body": '{"id": "7"}'}),
    ],
)
def test_the_key_may_be_a_part_of_the_payload(expected: str, path: str, payload: dict[str, Any]) -> None:
    """Found by JMESPath, powertools_json included."""
    rules = RequestRules(key_prefix="shop", lock_token_path=path)
    assert expected == Envelope.make("order-1", payload, rules).lockToken


@pytest.mark.parametrize("payload", [{}, {"id": None}, {"id": ""}, {"id": []}, {"id": {}}])
def test_a_payload_without_its_key_is_refused(payload: dict[str, Any]) -> None:
    """Nothing is not a key."""
    with pytest.raises(MissingKey, match="'id'"):
        Envelope.make("a", payload, RequestRules(key_prefix="shop", lock_token_path="id"))


@pytest.mark.parametrize(
    ("path", "one", "other"),
    [
        ("join('-', [tenant, to_string(id)])", {"tenant": "acme", "id": 7}, {"tenant": "acme", "id": 7.0}),
        ("to_string(order)", {"order": {"id": 7, "of": "acme"}}, {"order": {"of": "acme", "id": 7}}),
        ("of.*.id", {"of": {"a": {"id": 1}, "b": {"id": 2}}}, {"of": {"b": {"id": 2}, "a": {"id": 1}}}),
        ("values(order)", {"order": {"id": 7, "of": "acme"}}, {"order": {"of": "acme", "id": 7}}),
        ("ids[0]", {"ids": ["7", "8"]}, {"ids": ("7", "8")}),
        ("id", {"id": "acme"}, {"id": Tenant("acme")}),
    ],
)
def test_equal_payloads_have_equal_keys(path: str, one: dict[str, Any], other: dict[str, Any]) -> None:
    """Else one operation under two request ids has two lock tokens, and runs twice."""
    rules = RequestRules(key_prefix="shop", lock_token_path=path, payload_hash_path=path)
    first, second = Envelope.make("a", one, rules), Envelope.make("b", other, rules)
    assert (first.lockToken, first.payloadHash) == (second.lockToken, second.payloadHash)


def test_json_in_a_text_has_one_form_too() -> None:
    """Its key order is the sender's as well."""
    one, other = ({"body": text} for text in ('{"of":{"id":7,"a":1}}', '{"of":{"a":1.0,"id":7.0}}'))
    expression = "to_string(powertools_json(body).of)"
    assert find(expression, one) == find(expression, other)


def test_a_key_in_a_payload_that_is_nested_too_deeply_is_refused() -> None:
    """As an InvalidPayload, not a RecursionError. The HTTP API asks for the key first."""
    deep: list[Any] = []
    for _ in range(3_000):
        deep = [deep]
    with pytest.raises(InvalidPayload, match="nested too deeply"):
        RequestRules(key_prefix="shop", lock_token_path="id").lock_token("a", {"id": 1, "deep": deep})


@pytest.mark.parametrize("path", ["[tenant, id]", "{tenant: tenant, id: id}"])
def test_a_key_of_nothing_but_nulls_is_refused(path: str) -> None:
    """As Powertools does; else unrelated requests would wait for each other and share results."""
    with pytest.raises(MissingKey):
        Envelope.make("a", {"amount": 1}, RequestRules(key_prefix="shop", lock_token_path=path))


def test_a_hash_of_nothing_but_nulls_is_refused() -> None:
    """Else two different payloads count as one."""
    with pytest.raises(MissingKey):
        RequestRules(key_prefix="shop", payload_hash_path="[tenant, id]").payload_hash({"amount": 1})


def test_equal_payloads_have_equal_hashes() -> None:
    """Key order, spacing, escapes and 1 or 1.0 make no difference."""
    sent = ['{"a": 1, "b": "é"}', '{"b":"\\u00e9","a":1.0}', '{ "b" : "é", "a" : 1e0 }']
    assert {RULES.payload_hash({"a": 1, "b": "é"})} == {RULES.payload_hash(json.loads(text)) for text in sent}


def test_different_payloads_have_different_hashes() -> None:
    """Text is no number, null is not absent, true is not 1."""
    payloads = [{}, {"a": None}, {"a": 1}, {"a": "1"}, {"a": True}, {"a": [1]}, {"A": 1}]
    assert len(payloads) == len({RULES.payload_hash(payload) for payload in payloads})


@pytest.mark.parametrize(
    ("path", "one", "other"),
    [
        ("order", {"order": {"id": 1}, "sentAt": 1}, {"sentAt": 2, "order": {"id": 1}}),
        ("[id, amount]", {"id": 1, "amount": 2, "try": 1}, {"id": 1, "amount": 2, "try": 2}),
        ("powertools_json(body)", {"body": '{"a":1,"b":2}'}, {"body": '{ "b": 2, "a": 1.0 }'}),
        ("powertools_base64(body)", {"body": "eyJhIjoxfQ=="}, {"body": "eyJhIjoxfQ==", "id": 2}),
    ],
)
def test_the_hash_may_be_of_a_part(path: str, one: dict[str, Any], other: dict[str, Any]) -> None:
    """What is not picked may differ."""
    rules = RequestRules(key_prefix="shop", payload_hash_path=path)
    assert rules.payload_hash(one) == rules.payload_hash(other)


def test_the_hash_of_a_part_differs_where_the_part_does() -> None:
    """What is picked may not."""
    rules = RequestRules(key_prefix="shop", payload_hash_path="powertools_json(body)")
    assert rules.payload_hash({"body": '{"a":1}'}) != rules.payload_hash({"body": '{"a":2}'})


def test_a_payload_without_the_part_to_hash_is_refused() -> None:
    """Null is nothing; false, 0 and an empty text are something."""
    rules = RequestRules(key_prefix="shop", payload_hash_path="body")
    with pytest.raises(MissingKey, match="'body'"):
        rules.payload_hash({"body": None})
    assert 3 == len({rules.payload_hash({"body": part}) for part in (False, 0, "")})


@pytest.mark.parametrize("path", ["nosuch(a)", "powertools_json(number)", "length(number)"])
def test_an_expression_that_does_not_work_is_refused(path: str) -> None:
    """An unknown function, a function on the wrong type."""
    with pytest.raises(MissingKey, match="does not work"):
        RequestRules(key_prefix="shop", payload_hash_path=path).payload_hash({"number": 5})


@pytest.mark.parametrize("path", ["ceil(number)", "floor(number)"])
def test_an_expression_that_does_not_work_on_infinity_is_refused(path: str) -> None:
    """Python reads 1e400 as infinity. A message with it would come back until its queue gives up."""
    with pytest.raises(MissingKey, match="does not work"):
        find(path, json.loads('{"number": 1e400}'))


def test_a_part_that_is_no_json_is_refused() -> None:
    """As an InvalidRequest, like everything else that is wrong with a request."""
    with pytest.raises(InvalidRequest):
        RequestRules(key_prefix="shop", payload_hash_path="powertools_json(body)").payload_hash({"body": "x"})


def test_a_part_with_a_key_twice_is_refused() -> None:
    """It would have the hash of a request with one of the two amounts."""
    rules = RequestRules(key_prefix="shop", payload_hash_path="powertools_json(body)")
    with pytest.raises(InvalidPayload, match="has the key 'amount' twice"):
        rules.payload_hash({"body": '{"amount": 5, "amount": 900}'})


def test_a_refused_expression_does_not_repeat_the_payload() -> None:
    """Errors end in logs; payloads must not."""
    with pytest.raises(MissingKey) as caught:
        RequestRules(key_prefix="shop", payload_hash_path="length(card)").payload_hash({"card": 4242})
    assert "4242" not in str(caught.value)


@pytest.mark.parametrize("payload", [None, [], "text", 1, [("a", 1)]])
def test_a_payload_is_an_object(payload: Any) -> None:
    """The work's own input."""
    with pytest.raises(InvalidPayload, match="JSON object"):
        Envelope.make("a", payload, RULES)


@pytest.mark.parametrize("redelivery", [[], "text", 1, [("tries", 1)]])
def test_a_redelivery_is_an_object(redelivery: Any) -> None:
    """The re-sender reads its fields."""
    with pytest.raises(InvalidRequest, match=r"redelivery is a .* Give a JSON object"):
        Envelope.make("a", {}, RULES, redelivery=redelivery)


@pytest.mark.parametrize(
    "part", [float("nan"), float("inf"), 2**53, "\ud800", {1: 2}, Decimal("1.1"), datetime.now(UTC), b""]
)
@pytest.mark.parametrize("path", [None, "id"])
def test_a_payload_that_json_cannot_carry_is_refused(part: Any, path: str | None) -> None:
    """Also where only another part of it is hashed."""
    with pytest.raises(InvalidPayload):
        Envelope.make("a", {"id": 1, "x": part}, RequestRules(key_prefix="shop", payload_hash_path=path))


def test_a_payload_may_have_as_many_levels_as_are_documented() -> None:
    """The envelope around it has one of its own."""
    deepest = {"x": json.loads("[" * 299 + "]" * 299)}
    assert deepest == json.loads(Envelope.make("a", deepest, RULES).to_json())["payload"]
    with pytest.raises(InvalidPayload, match=r"^payload is nested .* at most 300 levels"):
        Envelope.make("a", {"x": deepest}, RULES)


def test_a_payload_that_is_nested_too_deeply_is_refused_whatever_is_hashed() -> None:
    """As an InvalidPayload, not a RecursionError."""
    deep: list[Any] = []
    for _ in range(3_000):
        deep = [deep]
    rules = RequestRules(key_prefix="shop", payload_hash_path="id")
    with pytest.raises(InvalidPayload, match="nested too deeply"):
        Envelope.make("a", {"id": 1, "deep": deep}, rules)


def test_a_payload_may_be_any_mapping() -> None:
    """As the type says."""
    envelope = Envelope.make("a", MappingProxyType({"a": 1}), RULES)
    assert {"a": 1} == json.loads(envelope.to_json())["payload"]


def test_an_envelope_may_have_196608_bytes_and_not_one_more() -> None:
    """The result has to fit beside it."""
    fixed = len(Envelope.make("a", {"x": ""}, RULES).to_json().encode())
    room = 196_608 - fixed
    assert 196_608 == len(Envelope.make("a", {"x": "a" * room}, RULES).to_json().encode())
    with pytest.raises(PayloadTooLarge, match="196,609 bytes"):
        Envelope.make("a", {"x": "a" * (room + 1)}, RULES)


def test_bytes_are_counted_not_characters() -> None:
    """Step Functions counts UTF-8."""
    with pytest.raises(PayloadTooLarge):
        Envelope.make("a", {"x": "é" * 100_000}, RULES)


def test_settings_are_the_template_s() -> None:
    """Outputs and environments are texts; empty means not given."""
    settings = {"KeyPrefix": "shop", "RetentionSeconds": "86400", "ExpectedSeconds": "60"}
    assert RequestRules("shop", 60, 86_400) == RequestRules.from_settings(settings)
    more = {"LockTokenPath": "", "PayloadHashPath": "body", "RetentionSeconds": "never"}
    assert RequestRules("shop", 60, None, None, "body") == RequestRules.from_settings(settings | more)


def complete(started_with: Any, name: str = "order-1") -> Envelope:
    """The envelope of an execution that was started by hand."""
    return Envelope.complete(name, started_with, RULES)


def test_a_payload_is_enough_by_hand() -> None:
    """The rest is filled in as the client would."""
    envelope = complete({"payload": PAYLOAD})
    assert ("shop/order-1", PAYLOAD) == (envelope.lockToken, envelope.payload)
    assert RULES.payload_hash(PAYLOAD) == envelope.payloadHash


def test_the_key_and_the_time_may_stand_beside_it() -> None:
    """And are used as they are."""
    envelope = complete({"payload": {}, "lockToken": KEY, "requestedAt": "2026-01-31T14:00:00+02:00"})
    assert (KEY, "2026-01-31T12:00:00.000Z") == (envelope.lockToken, envelope.requestedAt)


@pytest.mark.parametrize(
    "name", ["report--10", "report--2", "inv--1", "inv--0", "a--02", "a--1000000", "ä--3", SLUG]
)
def test_a_name_by_hand_that_ends_like_an_attempt_is_refused(name: str) -> None:
    """`report--10` may be a request or the tenth attempt of `report`, and a slug may be one of any id."""
    with pytest.raises(InvalidRequestId) as caught:
        complete({"payload": PAYLOAD}, name)
    assert f"'{name}' ends as an attempt's does" in str(caught.value)
    assert f"like {name.replace('--', '-')!r}, or give its lockToken" in str(caught.value)
    assert "tok_visa" not in str(caught.value)


def test_a_name_by_hand_that_ends_in_digits_of_another_script_is_taken() -> None:
    """No attempt of ours has such a name."""
    name = "report--\u0662"
    assert name == complete({"payload": {}}, name).requestId


@pytest.mark.parametrize("name", ["report--10", "a---2", "a-----2", "--2", "a--2--3", SLUG])
def test_the_name_by_hand_that_is_advised_is_taken(name: str) -> None:
    """However many hyphens the refused one had."""
    with pytest.raises(InvalidRequestId) as caught:
        complete({"payload": {}}, name)
    advised = str(caught.value).partition("like '")[2].partition("'")[0]
    assert advised == complete({"payload": {}}, advised).requestId


def test_a_name_by_hand_that_ends_like_an_attempt_may_bring_its_key() -> None:
    """Then it is clear what it must not run beside."""
    assert KEY == complete({"payload": {}, "lockToken": KEY}, "order-1--2").lockToken


def test_a_start_by_hand_may_name_the_execution_that_starts_it() -> None:
    """AWS' builders add this name, with which the console links both; the request is the same without it."""
    parent = {"AWS_STEP_FUNCTIONS_STARTED_BY_EXECUTION_ID": "arn:aws:states:us-east-1:1:execution:parent:1"}
    plain, linked = (complete({"payload": PAYLOAD, **more}).to_dict() for more in ({}, parent))
    assert plain.keys() == linked.keys()
    for name in ("requestId", "lockToken", "payload", "payloadHash"):
        assert plain[name] == linked[name]


@pytest.mark.parametrize(
    ("place", "problem", "started_with"),
    [
        ("input", 'required must be ["payload"]', {}),
        ("input", 'type must be "object"', []),
        ("input", 'type must be "object"', None),
        ("input", 'type must be "object"', "text"),
        ("input", "unknown field: 'orderId'", {"payload": {}, "orderId": "1"}),
        ("input", "unknown field: 'callId'", {"payload": {}, "callId": "mine"}),
        ("input.payload", 'type must be "object"', {"payload": "text"}),
        ("input.payload", 'type must be "object"', {"payload": [{}]}),
        ("input.payload", 'type must be "object"', {"payload": None}),
        ("input.lockToken", "minLength must be 1", {"payload": {}, "lockToken": ""}),
        ("input.lockToken", 'type must be "string"', {"payload": {}, "lockToken": 7}),
        ("input.lockToken", "maxLength must be 2048", {"payload": {}, "lockToken": "k" * 2_049}),
        ("input.requestedAt", 'type must be "string"', {"payload": {}, "requestedAt": 1_769_860_800}),
        ("input.requestedAt", "must be 20", {"payload": {}, "requestedAt": "2026-01-31"}),
        ("input.requestedAt", "is no time", {"payload": {}, "requestedAt": "2026-01-31T12:00:00.000"}),
        ("input.requestedAt", "is no time", {"payload": {}, "requestedAt": "the last day of January"}),
    ],
)
def test_a_bad_start_by_hand_says_where_and_what(place: str, problem: str, started_with: Any) -> None:
    """Whoever typed it reads the message in the console."""
    with pytest.raises(InvalidPayload) as caught:
        complete(started_with)
    assert place == str(caught.value).partition(" ")[0].rstrip(":")
    assert problem in str(caught.value)


def test_a_bad_start_by_hand_says_what_to_do() -> None:
    """What may stand there, and how a time is written."""
    with pytest.raises(InvalidPayload, match='"payload"'):
        complete({})
    with pytest.raises(InvalidPayload, match="2026-01-31T12:00:00Z"):
        complete({"payload": {}, "requestedAt": "the last day of January"})


def test_an_envelope_without_a_request_id_is_refused() -> None:
    """It is none that a client of today makes, and who it asks for cannot be told."""
    given = Envelope.make("order-1", PAYLOAD, RULES).to_dict()
    del given["requestId"]
    with pytest.raises(InvalidPayload, match=r"has an unknown field: 'callId', .*Start with \{\"payload\""):
        complete(given)


def test_the_envelope_carries_the_id_as_it_was_given() -> None:
    """Its execution's name and its key are made of it."""
    envelope = Envelope.make("order/1 é", PAYLOAD, RULES)
    assert ("order/1 é", f"shop/{name_of('order/1 é')}") == (envelope.requestId, envelope.lockToken)


def test_an_id_counts_against_the_size_of_the_envelope() -> None:
    """So does what its JSON escapes take."""
    room = 196_608 - len(Envelope.make("a", {"x": ""}, RULES, lock_token=KEY).to_json())
    longer = "\x00" * 2_048
    Envelope.make("a", {"x": "a" * room}, RULES, lock_token=KEY)
    Envelope.make(longer, {"x": "a" * (room - 6 * 2_048 + 1)}, RULES, lock_token=KEY)
    with pytest.raises(PayloadTooLarge, match="196,609 bytes"):
        Envelope.make(longer, {"x": "a" * (room - 6 * 2_048 + 2)}, RULES, lock_token=KEY)


def test_a_blank_key_by_hand_is_refused() -> None:
    """The schema cannot say it, the check can."""
    with pytest.raises(InvalidLockToken):
        complete({"payload": {}, "lockToken": "  "})


@pytest.mark.parametrize("lock_token", ["steponce:letter:", "steponce:letter:0"])
def test_a_key_of_another_item_of_the_table_is_refused(lock_token: str) -> None:
    """A request would find the mark of a dead letter instead of its record."""
    with pytest.raises(InvalidLockToken, match="steponce:letter:"):
        Envelope.make("a", {}, RULES, lock_token=lock_token)
    with pytest.raises(InvalidLockToken, match="steponce:letter:"):
        complete({"payload": {}, "lockToken": lock_token})


def test_a_key_prefix_of_another_item_of_the_table_is_refused() -> None:
    """Else every start would say so, and none at the time of the setting."""
    with pytest.raises(InvalidSetting, match=r"KeyPrefix is 'steponce:letter:a'.*Give another one"):
        RequestRules(key_prefix="steponce:letter:a")
    RequestRules(key_prefix="steponce:letter")  # its tokens begin with it and a slash


def test_rules_without_a_shard_are_refused() -> None:
    """Else the first start divides by it."""
    with pytest.raises(InvalidSetting, match=r"OpenShards is 0\. Set it to 1 or more"):
        RequestRules(key_prefix="shop", open_shards=0)


@pytest.mark.parametrize("path", ["order-id", "$.orderId", "orderId.", "order id"])
@pytest.mark.parametrize("name", ["LockTokenPath", "PayloadHashPath", "RateLimitPath"])
def test_a_path_that_works_on_no_payload_is_a_wrong_setting(name: str, path: str) -> None:
    """Each caller would hear that the payload is wrong, and each message would become a dead letter."""
    times = {"KeyPrefix": "shop", "ExpectedSeconds": "60", "RetentionSeconds": "3600"}
    limited = times | {"RateLimit": "5", "RateLimitPath": "user"}
    rules = RequestRules.from_settings(limited | {name: path})  # which operators' commands can use
    with pytest.raises(InvalidSetting, match=f"{name} is '{re.escape(path)}', which is no JMESPath"):
        rules.expect_paths()
    RequestRules.from_settings(times | {"RateLimitPath": path}).expect_paths()  # without a limit unread


@pytest.mark.parametrize(
    "started_with",
    [
        {"payload": "4242"},
        {"payload": ["4242"]},
        {"payload": {}, "card": "4242"},
        {"payload": {"card": Decimal("4242")}},
        {"payload": {"card": float("nan"), "number": "4242"}},
        {"payload": {}, "lockToken": ["4242"]},
        ["4242"],
        "4242",
    ],
    ids=repr,
)
def test_a_bad_start_by_hand_does_not_repeat_the_payload(started_with: Any) -> None:
    """Errors end in logs and in the console; payloads must not."""
    with pytest.raises(InvalidPayload) as caught:
        complete(started_with)
    assert "4242" not in str(caught.value)


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_beyond_the_calendar_is_refused(time: str) -> None:
    """As any other text that is no time."""
    with pytest.raises(InvalidPayload):
        complete({"payload": {}, "requestedAt": time})


@pytest.mark.parametrize("name", ["order.1", "a" * 75, "Bestellung-ä"])
def test_one_id_has_one_key_by_hand_and_by_the_client(name: str) -> None:
    """Else the same request runs twice: once from the console, once from code."""
    by_client, by_hand = Envelope.make(name, {}, RULES), complete({"payload": {}}, name)
    assert (name, by_client.lockToken) == (by_hand.requestId, by_hand.lockToken)


# -- Sizes: what comes from outside may be of any ---------------------------------------------------
def test_a_payload_that_is_too_large_is_refused_before_anything_looks_into_it() -> None:
    """No expression is tried on it, and nothing of it is hashed."""
    rules = RequestRules(key_prefix="shop", lock_token_path="nothing.here", payload_hash_path="nor.here")
    with pytest.raises(PayloadTooLarge, match=r"^payload has more than the 196,608 bytes.*S3"):
        Envelope.make("a", {"x": ["y" * 200_000, object()]}, rules)


def test_a_request_id_may_have_2048_bytes() -> None:
    """Messages, logs and records repeat it."""
    assert name_of("é" * 1024).startswith("id--x")
    with pytest.raises(InvalidRequestId, match=r"2,049 bytes; 2,048 are allowed") as caught:
        name_of("é" * 1024 + "e")
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("request_id", [" " * 100_000, "\ud800" * 100_000, "x" * 100_000])
def test_a_refusal_of_a_long_id_is_short(request_id: str) -> None:
    """It says which id by its beginning."""
    with pytest.raises(InvalidRequestId) as caught:
        name_of(request_id)
    assert len(str(caught.value)) < 2_000


@pytest.mark.parametrize(
    "given",
    [
        {"payload": {}, "requestedAt": "x" * 100_000},
        {"payload": {}} | {f"unknown-{number}": 1 for number in range(10_000)},
    ],
)
def test_a_refusal_of_a_long_input_is_short(given: dict[str, Any]) -> None:
    """A Fail state's cause has 32,768 characters at the most, and a log line not many more."""
    with pytest.raises(InvalidPayload) as caught:
        Envelope.complete("by-hand", given, RULES)
    assert len(str(caught.value)) < 500


def test_an_envelope_is_written_once_and_stays_as_it_is() -> None:
    """Every attempt sends the same bytes, whatever the caller does to the payload meanwhile."""
    payload = {"a": 1}
    envelope = Envelope.make("a", payload, RULES)
    text = envelope.to_json()
    payload["a"] = 2
    assert text == envelope.to_json()
    assert envelope.payloadHash == sha256(canonical_json({"a": 1}))


@pytest.mark.parametrize("part", ["lock_token_path", "payload_hash_path"])
def test_gzip_is_unpacked_no_further_than_a_payload_can_be_long(part: str) -> None:
    """Two hundred megabytes of zeros fit into a payload."""
    rules = RequestRules(key_prefix="shop", **{part: "powertools_base64_gzip(data)"})
    packed = [base64.b64encode(gzip.compress(b"0" * size)).decode() for size in (1_000, 100_000_000)]
    Envelope.make("a", {"data": packed[0]}, rules)
    with pytest.raises(PayloadTooLarge, match="gzip unpacks has more than 1,572,864 bytes"):
        Envelope.make("a", {"data": packed[1]}, rules)
