"""What work does with a large result: `steponce.results.keep`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from functools import reduce
from typing import Any, NamedTuple

import pytest
from awslambdaric.lambda_runtime_marshaller import to_json
from moto import mock_aws

from steponce import results
from steponce.errors import ResultNotKept, Unavailable
from steponce.locks.reference import REFERENCE
from steponce.locks.results import LARGEST_IN_RECORD, Results
from tests.unit.locks.large import KEY, bucket, record

WORK = {"lockToken": KEY, "callId": "call-1", "attempt": 1, "payload": {}}
LARGE = {"pages": "x" * LARGEST_IN_RECORD}


@pytest.fixture
def large() -> Iterator[Results]:
    """An empty bucket."""
    with mock_aws():
        yield bucket()


def test_a_large_result_is_kept_and_its_address_returned(large: Results):
    """Whoever reads the record gets what the work had."""
    returned = results.keep(LARGE, WORK, large)

    assert [REFERENCE] == list(returned)
    assert LARGE == large.read(record(json.dumps(returned)))


@pytest.mark.parametrize(
    ("result", "payload", "is_kept"),
    [
        ("x" * (LARGEST_IN_RECORD - 8), {}, False),  # {} has two bytes; the text's quotes have six
        ("x" * (LARGEST_IN_RECORD - 7), {}, True),
        ('"' * (LARGEST_IN_RECORD // 4 - 2), {}, False),  # a quote has four: escaped, and both escaped again
        ('"' * (LARGEST_IN_RECORD // 4 - 1), {}, True),
        ("é" * (LARGEST_IN_RECORD // 2), {}, True),
        ([1] * (LARGEST_IN_RECORD // 3 + 1), {}, True),  # Lambda's runtime puts a blank after each comma
        ([1] * (LARGEST_IN_RECORD // 3), {}, False),
        ("x" * 20_000, {"note": "y" * 170_000}, False),
        ("x" * 20_000, {"note": "y" * 180_000}, True),
    ],
    ids=lambda part: "" if isinstance(part, bool) else f"{len(str(part))}",
)
def test_what_the_workflow_can_carry_stays_as_it_is(
    large: Results, result: Any, payload: dict[str, Any], is_kept: bool
):
    """Result and payload travel together, and in the last write the result's quotes count twice."""
    returned = results.keep(result, WORK | {"payload": payload}, large)

    assert is_kept == (returned != result)


def test_a_payload_can_push_out_a_small_result(large: Results):
    """A payload may have 196 KB by itself."""
    returned = results.keep({"a": 1}, WORK | {"payload": {"note": "y" * LARGEST_IN_RECORD}}, large)

    assert [REFERENCE] == list(returned)


def test_without_a_bucket_every_result_stays_as_it_is(monkeypatch: pytest.MonkeyPatch):
    """The workflow says what it says without: ResultTooLarge."""
    assert LARGE is results.keep(LARGE, WORK, Results("off"))
    for value in ("off", "", None):
        results._results.cache_clear()
        monkeypatch.delenv("ResultBucket", raising=False)
        if value is not None:
            monkeypatch.setenv("ResultBucket", value)
        assert LARGE is results.keep(LARGE, WORK)


@pytest.mark.parametrize("result", [{1, 2}, float("nan"), Decimal("1"), {"at": b"x"}], ids=repr)
def test_what_is_no_json_is_left_to_the_function_s_runtime(large: Results, result: Any):
    """The work is done, so nothing is refused here that would have passed without."""
    assert result is results.keep(result, WORK, large)


class Row(NamedTuple):
    """As a driver of a database returns it."""

    city: bytes
    balance: Decimal


@pytest.mark.parametrize("number", ["12.50", "1E+3", "-0.0", "7", "12345678901234567890", "1E-7"])
def test_what_lambda_s_runtime_writes_is_kept_as_a_caller_would_read_it(large: Results, number: str):
    """DynamoDB's resource has Decimals. A small result with them passes, so a large one must."""
    rows = [Row("Köln".encode(), Decimal(number))] * 2
    result = {"rows": rows, "pages": LARGE["pages"]}

    returned = results.keep(result, WORK, large)

    read = large.read(record(json.dumps(returned)))
    assert json.loads(to_json(result)) == read
    assert [{"city": "Köln", "balance": json.loads(number)}] * 2 == read["rows"]


def test_bytes_are_the_json_that_lambda_s_runtime_would_have_sent(large: Results):
    """As a fast encoder makes it: the runtime sends bytes as they are."""
    returned = results.keep(json.dumps(LARGE).encode(), WORK, large)

    assert LARGE == large.read(record(json.dumps(returned)))


DEEP = reduce(lambda inner, _: [inner], range(3_000), LARGE["pages"])


@pytest.mark.parametrize(
    "part",
    [Decimal("NaN"), Decimal("Infinity"), b"\xff", {1, 2}, DEEP, "\ud800"],
    ids=["NaN", "Infinity", "bytes", "a set", "too deep", "half a character"],
)
def test_a_large_result_that_has_no_json_is_left_to_the_runtime_too(large: Results, part: Any):
    """It fails there, and says why."""
    result = LARGE | {"part": [part]}

    assert result is results.keep(result, WORK, large)


def test_work_without_its_lock_is_told_what_is_missing():
    """As in a wrapped machine, whose states get the payload alone."""
    with pytest.raises(
        ResultNotKept, match=r"input has no lockToken and no callId\. Hand on what DoWork gives"
    ):
        results.keep(LARGE, {"payload": {}}, Results("b", object))


def test_a_bucket_that_does_not_answer_is_no_reason_to_work_again():
    """The work is done, and its error is neither RetryLater nor one of the transient ones."""

    class Silent(Results):
        def keep(self, *_: Any, **__: Any) -> Any:
            raise Unavailable("S3 did not answer.")

    with pytest.raises(ResultNotKept, match=r"S3 did not answer\. Do not run it again"):
        results.keep(LARGE, WORK, Silent("b", object))


@pytest.mark.parametrize(("seconds", "tags"), [("7776000", ["120"]), ("never", []), (None, [])])
def test_the_object_lives_as_the_stack_s_records_do(
    large: Results, monkeypatch: pytest.MonkeyPatch, seconds: str | None, tags: list[str]
):
    """By RetentionSeconds; for ever, where nothing says how long."""
    monkeypatch.delenv("RetentionSeconds", raising=False)
    if seconds is not None:
        monkeypatch.setenv("RetentionSeconds", seconds)
    told = results.keep(LARGE, WORK, large)[REFERENCE]

    found = large._s3.get_object_tagging(Bucket=told["bucket"], Key=told["key"])["TagSet"]
    assert tags == [tag["Value"] for tag in found]


def test_a_function_waits_for_no_client_that_it_does_not_need():
    """Neither boto3 nor the client is imported for a small result."""
    script = (
        "import sys; from steponce import results; "
        "assert 1 == results.keep(1, {'lockToken': 'k', 'callId': 'c', 'payload': {}}); "
        "assert not {'boto3', 'steponce.client'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, env={"ResultBucket": "on-a-bucket"})


def test_whoever_imports_the_package_waits_for_no_botocore():
    """Receipts know large results, and prepare_request starts as quickly as before."""
    script = "import sys, steponce; assert 'botocore' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
