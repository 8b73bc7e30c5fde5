"""Large results in their bucket: what is read, from where, and what is refused."""

from __future__ import annotations

import copy
import json
import pickle
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.awsrequest import AWSPreparedRequest
from botocore.exceptions import ClientError, ReadTimeoutError
from hypothesis import given
from hypothesis import strategies as st
from moto import mock_aws

from steponce import Receipt
from steponce.aws.clients import CONFIG
from steponce.errors import (
    ResultAltered,
    ResultForbidden,
    ResultGone,
    ResultNotKept,
    ResultUnreadable,
    Unavailable,
)
from steponce.locks import results as locks_results
from steponce.locks.reference import REFERENCE, Kept, Reference
from steponce.locks.results import LARGEST_KEPT, LIFETIMES, Results, carried_bytes, lifetime_days, results_in
from tests.rules.documents import template
from tests.unit.locks.large import BUCKET, KEY, bucket, kept, record
from tests.unit.shared_clients import shared

TEXT = json.dumps({"pages": ["é" * 10]})
DAY = 86_400
NEIGHBOUR = f"{KEY}0"


@pytest.fixture
def results() -> Iterator[Results]:
    """An empty bucket."""
    with mock_aws():
        yield bucket()


class Refusing:
    """An S3 that answers every call with an error."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getattr__(self, _name: str) -> Any:
        def refuse(**_arguments: Any) -> None:
            raise self._error

        return refuse


def refusing(code: str, status: int = 403) -> Results:
    """A bucket that says no."""
    told: Any = {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return Results(BUCKET, lambda: Refusing(ClientError(told, "Operation")))


# -- keeping and reading ---------------------------------------------------------------------------
def test_what_is_kept_is_read(results: Results):
    """The object's body is the result's JSON; the record has where it is and what it is."""
    reference = kept(results, TEXT)

    found = shared("s3").get_object(Bucket=BUCKET, Key=reference.key, VersionId=reference.version)
    assert (TEXT, "application/json") == (found["Body"].read().decode(), found["ContentType"])
    assert {REFERENCE} == set(reference.to_dict())
    assert {"bucket", "key", "version", "sha256", "bytes"} == set(reference.to_dict()[REFERENCE])
    assert json.loads(TEXT) == results.read(record(reference.to_json()))


def test_a_key_names_nobody(results: Results):
    """Lock tokens may hold a customer's name, and a bucket's inventory every key."""
    assert "acme" not in kept(results, TEXT).key


def test_each_keeping_makes_an_object_of_its_own(results: Results):
    """Work that runs twice overwrites nothing that a record may name."""
    first, second = kept(results, TEXT), kept(results, TEXT)

    assert first.key != second.key


def test_a_later_version_changes_nothing(results: Results):
    """The record names the version; a write or a deletion without one makes a new one."""
    reference = kept(results, TEXT)
    shared("s3").put_object(Bucket=BUCKET, Key=reference.key, Body=b"{}")
    shared("s3").delete_object(Bucket=BUCKET, Key=reference.key)

    assert json.loads(TEXT) == results.read(record(reference.to_json()))


def test_what_a_later_state_has_put_beside_it_is_part_of_the_result(results: Results):
    """As it would be of a result that is in the record: a confirmation, say."""
    told = kept(results, TEXT).to_dict() | {"confirmation": {"by": "bank"}}

    assert json.loads(TEXT) | {"confirmation": {"by": "bank"}} == results.read(record(json.dumps(told)))


def test_beside_a_result_that_is_no_object_is_no_place(results: Results):
    """Nothing is dropped in silence."""
    told = kept(results, "[1, 2]").to_dict() | {"confirmation": 1}

    with pytest.raises(ResultUnreadable, match="is no object, so that confirmation"):
        results.read(record(json.dumps(told)))


# -- what is no reference of this record -----------------------------------------------------------
@pytest.mark.parametrize("result", [None, 1, "x", [], {}, {REFERENCE: None}, {REFERENCE: {"bucket": BUCKET}}])
def test_any_other_result_is_itself(results: Results, result: Any):
    """Also one that only looks like a reference."""
    assert result == results.read(record(json.dumps(result)))


def test_a_record_without_a_result_has_none():
    """Nothing is read for it."""
    assert Results().read(record(None)) is None


@pytest.mark.parametrize(("lock_token", "call_id"), [("acme/o-2", "call-1"), ("acme/o-1", "call-2")])
def test_another_record_s_reference_is_a_result_like_any_other(
    results: Results, lock_token: str, call_id: str
):
    """Whoever brings it into a payload or an answer gets back what they brought, and not what is there."""
    told = kept(results, TEXT).to_json()

    assert json.loads(told) == results.read(record(told, lock_token, call_id))


@given(
    st.fixed_dictionaries(
        {
            "bucket": st.text(),
            "key": st.text() | st.just("results/../secrets.json"),
            "version": st.text(),
            "sha256": st.text(),
            "bytes": st.integers(),
        }
    )
)
def test_a_made_up_reference_reads_nothing(told: dict[str, Any]):
    """Its key would have to hold the digests of this very record."""
    forged = {REFERENCE: told}

    assert forged == Results(BUCKET, pytest.fail).read(record(json.dumps(forged)))


@pytest.mark.parametrize(
    "change",
    [
        {"bytes": "1"},
        {"bytes": True},
        {"version": None},
        {"more": 1},
        {"key": "other"},
    ],
)
def test_a_reference_has_one_shape(results: Results, change: dict[str, Any]):
    """Whatever differs is somebody's own result."""
    told = kept(results, TEXT).to_dict()
    told[REFERENCE] |= change

    assert told == results.read(record(json.dumps(told)))


@pytest.mark.parametrize("ending", ["", "/../x", "\n", ".json", "/x"])
def test_a_key_is_one_of_ours_to_its_end(results: Results, ending: str):
    """Nothing may follow it."""
    reference = kept(results, TEXT)

    assert Reference.read(replace(reference, key=reference.key + ending).to_dict(), record("1")) == (
        reference if ending == "" else None
    )


@pytest.mark.parametrize(
    ("own", "said"), [(None, "have no bucket"), ("off", "have no bucket"), ("other", "bucket other")]
)
def test_another_bucket_is_never_read(results: Results, own: str | None, said: str):
    """Neither the record nor the work decides what a client reads; the error says how to allow it."""
    told = kept(results, TEXT).to_json()

    with pytest.raises(ResultForbidden, match=f"{said}.*ResultBucket.*{BUCKET}"):
        Results(own, pytest.fail).read(record(told))


# -- what can go wrong -----------------------------------------------------------------------------
@pytest.mark.parametrize("body", [b"{}", TEXT.encode().replace(b"pages", b"forms")])
def test_an_altered_object_is_refused(results: Results, body: bytes):
    """Also one of the same size, under a version that the record names."""
    reference = kept(results, TEXT)
    put = shared("s3").put_object(Bucket=BUCKET, Key=reference.key, Body=body)

    with pytest.raises(ResultAltered, match=r"'acme/o-1'.* is not what was kept"):
        results.read(record(replace(reference, version=put["VersionId"]).to_json()))


def test_a_deleted_version_is_gone(results: Results):
    """The error says which result it was, and that the work is done."""
    reference = kept(results, TEXT)
    shared("s3").delete_object(Bucket=BUCKET, Key=reference.key, VersionId=reference.version)

    with pytest.raises(ResultGone, match=r"'acme/o-1'.* is gone .*do not run it again"):
        results.read(record(reference.to_json()))


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("NoSuchKey", 404, ResultGone),
        ("NoSuchVersion", 404, ResultGone),
        ("NoSuchBucket", 404, ResultGone),
        ("MethodNotAllowed", 405, ResultGone),
        ("AccessDenied", 403, ResultForbidden),
        ("InvalidObjectState", 403, ResultUnreadable),
        ("SlowDown", 503, Unavailable),
        ("InternalError", 500, Unavailable),
    ],
)
def test_each_refusal_of_s3_has_its_error(results: Results, code: str, status: int, kind: type[Exception]):
    """What cannot be had for good is told from what can be asked for again."""
    told = kept(results, TEXT).to_json()

    with pytest.raises(kind) as raised:
        refusing(code, status).read(record(told))

    assert kind is type(raised.value)


def test_an_answer_that_breaks_off_can_be_asked_for_again(results: Results):
    """The time-out of a body is one like any other."""
    told = kept(results, TEXT).to_json()
    broken = Results(BUCKET, lambda: Refusing(ReadTimeoutError(endpoint_url="https://s3")))

    with pytest.raises(Unavailable):
        broken.read(record(told))


def test_a_bucket_without_versions_keeps_nothing():
    """Who writes there again would change a recorded result."""
    with mock_aws(), pytest.raises(ResultNotKept, match="keeps no versions"):
        kept(bucket("plain", versions=False), TEXT)


@pytest.mark.parametrize(("code", "status"), [("AccessDenied", 403), ("NoSuchBucket", 404)])
def test_what_s3_does_not_take_is_not_kept(code: str, status: int):
    """With what to look at."""
    with pytest.raises(ResultNotKept, match=f"{code}.*s3:PutObject"):
        kept(refusing(code, status), TEXT)


def test_a_bucket_that_cannot_be_one_keeps_nothing():
    """boto3 refuses its name before it asks S3."""
    with pytest.raises(ResultNotKept, match="ParamValidationError"):
        kept(Results("My Bucket", lambda: shared("s3")), TEXT)


def test_a_throttled_write_can_be_made_again(monkeypatch: pytest.MonkeyPatch):
    """Nothing names the object that may be there."""
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)
    with pytest.raises(Unavailable):
        kept(refusing("SlowDown", 503), TEXT)


@pytest.mark.usefixtures("results")
def test_a_write_that_lands_late_makes_no_newer_version_of_the_object(monkeypatch: pytest.MonkeyPatch):
    """The lifecycle deletes older versions after 30 days, and the record may name one for much longer."""
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)
    keys: list[str] = []

    def no_answer_at_first(request: AWSPreparedRequest, **_: Any) -> None:
        keys.append(urlsplit(request.url).path.partition("results/")[2])
        if len(keys) == 1:
            raise ReadTimeoutError(endpoint_url=request.url)

    session = boto3.Session(region_name="us-east-1")
    session.events.register("before-send.s3.PutObject", no_answer_at_first)
    reference = kept(results_in(BUCKET, session, CONFIG, {}), TEXT)
    shared("s3").put_object(Bucket=BUCKET, Key=f"results/{keys[0]}", Body=TEXT.encode())

    versions = shared("s3").list_object_versions(Bucket=BUCKET, Prefix=reference.key)["Versions"]
    assert [(reference.version, True)] == [(one["VersionId"], one["IsLatest"]) for one in versions]


def test_without_a_bucket_nothing_is_kept():
    """The error names the parameter."""
    with pytest.raises(ResultNotKept, match="ResultBucket"):
        kept(Results("off"), TEXT)


def test_a_result_that_nobody_could_read_is_not_kept(results: Results):
    """Everybody who asks has it in memory."""
    with pytest.raises(ResultNotKept, match="52,428,800 are allowed"):
        kept(results, "x" * (LARGEST_KEPT + 1))


# -- lifetimes -------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("seconds", "days"),
    [(1, 40), (10 * DAY, 40), (10 * DAY + 1, 120), (90 * DAY, 120), (3971 * DAY, None), (None, None)],
)
def test_an_object_outlives_its_record(seconds: float | None, days: int | None):
    """By a month, since a record that is settled late is kept longer; where no rule is enough, it stays."""
    assert days == lifetime_days(seconds)


def test_an_object_has_the_tag_of_its_rule(results: Results):
    """One that is to stay has none."""
    s3 = shared("s3")
    tags = [
        s3.get_object_tagging(Bucket=BUCKET, Key=kept(results, TEXT, retention_seconds=seconds).key)["TagSet"]
        for seconds in (90 * DAY, None)
    ]
    assert [[{"Key": "keepDays", "Value": "120"}], []] == tags


def test_the_bucket_s_lifecycle_has_a_rule_for_each_tag():
    """Beside them, what was overwritten or deleted goes after a month: markers alone are no rule for AWS."""
    rules = template()["Resources"]["ResultsBucket"]["Properties"]["LifecycleConfiguration"]["Rules"]
    by_tag = {
        rule["TagFilters"][0]["Value"]: rule["ExpirationInDays"] for rule in rules if "TagFilters" in rule
    }
    assert {str(days): days for days in LIFETIMES} == by_tag
    assert [["keepDays"]] * len(by_tag) == [
        [tag["Key"] for tag in rule["TagFilters"]] for rule in rules if "TagFilters" in rule
    ]
    (other,) = [rule for rule in rules if "TagFilters" not in rule]
    assert {"NoncurrentVersionExpiration", "ExpiredObjectDeleteMarker"} == set(other) - {
        "Id",
        "Status",
        "Prefix",
    }


@pytest.mark.parametrize(("text", "size"), [('"x"', 7), ('"é"', 8), ('{"a":"\\n"}', 17)])
def test_a_result_is_carried_as_json_in_json(text: str, size: int):
    """Quotes and backslashes count twice in the write that records it."""
    assert size == carried_bytes(text)


# -- erasing ---------------------------------------------------------------------------------------
def test_every_version_under_a_lock_token_is_deleted(results: Results):
    """Also what no record names any more; the neighbour's stays."""
    mine = kept(results, TEXT)
    kept(results, TEXT, call_id="call-0")
    shared("s3").put_object(Bucket=BUCKET, Key=mine.key, Body=b"{}")
    shared("s3").delete_object(Bucket=BUCKET, Key=mine.key)
    other = kept(results, TEXT, lock_token=NEIGHBOUR)

    found = results.objects(KEY)
    results.delete(found)

    assert 4 == len(found)
    assert [] == results.objects(KEY)
    assert [(other.key, other.version)] == results.objects(NEIGHBOUR)


def test_more_versions_are_deleted_than_s3_takes_at_once(results: Results, monkeypatch: pytest.MonkeyPatch):
    """It takes a thousand in a call, and here two."""
    monkeypatch.setattr(locks_results, "_AT_ONCE", 2)
    for _ in range(5):
        kept(results, TEXT)

    results.delete(results.objects(KEY))

    assert [] == results.objects(KEY)


def test_without_a_bucket_there_is_nothing_to_delete():
    """And nothing is asked."""
    off = Results("off", pytest.fail)
    assert [] == off.objects(KEY)
    off.delete([])


def test_whoever_may_not_delete_hears_what_they_need():
    """S3 refuses the call, or single objects."""

    class Partly:
        def delete_objects(self, **_arguments: Any) -> dict[str, Any]:
            return {"Errors": [{"Key": "k", "Code": "AccessDenied"}]}

    for results in (refusing("AccessDenied"), Results(BUCKET, Partly)):
        with pytest.raises(ResultForbidden, match=r"AccessDenied.*s3:DeleteObjectVersion"):
            results.delete([("k", "v")])


@pytest.mark.parametrize("code", ["ExpiredToken", "TokenRefreshRequired"])
def test_credentials_that_have_expired_are_no_missing_permission(code: str):
    """Whoever logs in again can go on."""
    with pytest.raises(Unavailable, match=f"credentials have expired .*{code}"):
        refusing(code).delete([("k", "v")])


# -- receipts --------------------------------------------------------------------------------------
def test_a_receipt_reads_a_large_result_once_and_when_it_is_asked_for(results: Results):
    """Whoever only wants to know the status waits for no S3."""
    told = record(kept(results, TEXT).to_json())
    receipt = Receipt.from_lock("order-1", told, results, duplicate=False).as_duplicate(True)

    assert (len(TEXT.encode()), True) == (receipt.kept_bytes, receipt.duplicate)
    assert "éé" not in repr(receipt)
    assert json.loads(TEXT) == receipt.result
    assert (None, json.loads(TEXT)) == (receipt.kept_bytes, receipt.to_dict()["result"])


@pytest.mark.parametrize("again", [lambda one: pickle.loads(pickle.dumps(one)), copy.deepcopy])
def test_a_receipt_of_a_large_result_can_be_handed_to_another_process(
    results: Results, again: Callable[[Receipt], Receipt]
):
    """As one of a small result can."""
    told = record(kept(results, TEXT).to_json())
    first = Receipt.from_lock("order-1", told, results, duplicate=False)
    assert copy.copy(first).kept_bytes is not None  # which reads nothing
    receipt = again(first)

    assert (json.loads(TEXT), "order-1") == (receipt.result, receipt.request_id)


def test_a_receipt_whose_result_is_gone_still_tells_the_rest(results: Results):
    """That it is completed, by whom and under which key."""
    reference = kept(results, TEXT)
    shared("s3").delete_object(Bucket=BUCKET, Key=reference.key, VersionId=reference.version)
    receipt = Receipt.from_lock("order-1", record(reference.to_json()), results, duplicate=False)

    assert ("COMPLETED", "acme/o-1") == (receipt.status, receipt.lock_token)
    with pytest.raises(ResultGone):
        _ = receipt.result


def test_a_client_is_made_once():
    made = []
    results = Results(BUCKET, lambda: made.append(1) or object())

    assert results._s3 is results._s3
    assert [1] == made


def test_what_is_not_read_yet_shows_its_address_alone(results: Results):
    """No record with a customer's name in a log."""
    found = results.of(record(kept(results, TEXT).to_json()))
    assert isinstance(found, Kept)
    assert "acme" not in repr(found)
