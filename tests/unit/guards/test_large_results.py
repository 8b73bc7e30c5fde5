"""A guard that knows a bucket: results too large for a record go there, by themselves."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from steponce import Guard, NotRecorded
from steponce.errors import ResultForbidden, ResultGone, Unavailable
from steponce.locks.record import Lock
from steponce.locks.results import LARGEST_IN_RECORD, Results
from steponce.locks.table import Locks
from steponce.workflow import COMPLETED, FAILED, INPROGRESS
from tests.fakes.tables import create_table
from tests.unit.locks.large import BUCKET, KEY, bucket
from tests.unit.shared_clients import SharedClients, shared

ORDER = {"orderId": "o-1"}
LARGE = {"pages": "x" * LARGEST_IN_RECORD}


class Bucket:
    """The results of a stack, and its S3, which may refuse the next calls."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self.refusals: dict[str, list[ClientError]] = {}
        self.calls: list[str] = []
        self.meta = shared("s3").meta

    def session(self) -> SharedClients:
        """A session with this S3."""
        return _Session(self)

    def refuse(self, operation: str, code: str, status: int) -> None:
        """Let the next call of an operation fail."""
        told: Any = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
        self.refusals.setdefault(operation, []).append(ClientError(told, operation))

    def __getattr__(self, operation: str) -> Any:
        def call(**arguments: Any) -> Any:
            self.calls.append(operation)
            if self.refusals.get(operation):
                raise self.refusals[operation].pop(0)
            return getattr(shared("s3"), operation)(**arguments)

        return call


class _Session(SharedClients):
    def __init__(self, s3: Bucket) -> None:
        super().__init__("us-east-1")
        self._s3 = s3

    def client(self, service: str, **options: Any) -> Any:
        return self._s3 if service == "s3" else super().client(service, **options)


@pytest.fixture
def large() -> Iterator[Bucket]:
    """A table, and a bucket."""
    with mock_aws():
        create_table(shared("dynamodb"), "LocksTable", "locks")
        yield Bucket(bucket())


def guard_on(large: Bucket, **options: Any) -> Guard:
    """A guard that knows the bucket."""
    return Guard("locks", session=large.session(), result_bucket=BUCKET, **options)


def lock() -> Lock:
    found = Locks(shared("dynamodb"), "locks").get(KEY)
    assert found is not None
    return found


def test_a_large_result_goes_to_the_bucket_and_comes_back(large: Bucket):
    """The caller has it at once, and everybody else gets the same."""
    guard = guard_on(large)
    with guard.begin(KEY, ORDER) as run:
        run.complete(LARGE)
    with guard.begin(KEY, ORDER) as again:
        pass

    assert (LARGE, LARGE, True) == (run.result, again.result, again.replayed)
    assert len(lock().result or "") < 500
    assert LARGE == large.results.read(lock())


def test_a_result_that_fits_never_asks_s3(large: Bucket):
    """Neither writing nor replaying."""
    guard = guard_on(large)
    for _ in range(2):
        with guard.begin(KEY, ORDER) as run:
            if not run.replayed:
                run.complete({"pages": 1})

    assert [] == large.calls


@dataclass
class Statement:
    pages: str


def test_a_decorated_function_s_large_result_has_its_type_again(large: Bucket):
    """What is restored is what was kept."""

    @guard_on(large).idempotent(name="write")
    def write(pages: str) -> Statement:
        return Statement(pages)

    assert Statement(LARGE["pages"]) == write(LARGE["pages"]) == write(LARGE["pages"])
    assert ["put_object", "get_object"] == large.calls


def test_a_completion_whose_answer_was_lost_is_repeated_with_the_same_address(large: Bucket):
    """A second object would be another result, which the record refuses."""
    guard = guard_on(large)
    lost = shared("dynamodb").update_item
    with guard.begin(KEY, ORDER) as run:
        assert run._holder is not None
        run._holder._dynamodb = LosesOneAnswer(lost)
        with pytest.raises(NotRecorded):
            run.complete(LARGE)
        run.complete(LARGE)

    assert (COMPLETED, ["put_object"]) == (lock().status, large.calls)


class LosesOneAnswer:
    """A DynamoDB whose first write is made, and whose answer to it is lost."""

    def __init__(self, update_item: Any) -> None:
        self._update_item = update_item
        self._lost = False

    def update_item(self, **arguments: Any) -> Any:
        answer = self._update_item(**arguments)
        if not self._lost:
            self._lost = True
            raise Unavailable("no answer")
        return answer


def test_a_bucket_that_does_not_answer_lets_complete_be_repeated(
    large: Bucket, monkeypatch: pytest.MonkeyPatch
):
    """The record is in progress, and the result is in the error."""
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)
    for _try in range(3):
        large.refuse("put_object", "SlowDown", 503)
    with guard_on(large).begin(KEY, ORDER) as run:
        with pytest.raises(NotRecorded, match="Complete it again") as raised:
            run.complete(LARGE)
        assert (INPROGRESS, LARGE) == (lock().status, raised.value.result)
        run.complete(LARGE)

    assert COMPLETED == lock().status


@pytest.mark.parametrize("when_outcome_unknown", ["hold", "take-over"])
def test_a_bucket_that_refuses_leaves_the_record_to_a_person(large: Bucket, when_outcome_unknown: Any):
    """The work is done, so nobody takes it over either."""
    large.refuse("put_object", "AccessDenied", 403)
    guard = guard_on(large, when_outcome_unknown=when_outcome_unknown)
    with pytest.raises(NotRecorded, match="AccessDenied") as raised, guard.begin(KEY, ORDER) as run:
        run.complete(LARGE)

    failure = lock().failure
    assert failure is not None
    assert (FAILED, "ResultTooLarge", LARGE) == (lock().status, failure.error, raised.value.result)


def test_without_a_bucket_the_limit_is_the_workflow_s(large: Bucket):
    """The error that there has always been, with the parameter that helps."""
    guard = Guard("locks", session=large.session())
    with pytest.raises(NotRecorded, match=r"262,144 .*ResultBucket"), guard.begin(KEY, ORDER) as run:
        run.complete({"pages": "x" * 262_144})

    assert [] == large.calls


@pytest.mark.parametrize(
    ("code", "status", "kind"), [("NoSuchVersion", 404, ResultGone), ("AccessDenied", 403, ResultForbidden)]
)
def test_a_result_that_cannot_be_had_is_not_worked_for_again(
    large: Bucket, code: str, status: int, kind: type[Exception]
):
    """The caller hears which and why; the record stays an answer."""
    guard = guard_on(large)
    with guard.begin(KEY, ORDER) as run:
        run.complete(LARGE)
    large.refuse("get_object", code, status)

    with pytest.raises(kind), guard.begin(KEY, ORDER):
        pytest.fail("worked again")

    assert COMPLETED == lock().status


def test_a_guard_without_the_bucket_says_where_the_result_is(large: Bucket):
    """It reads nothing from a bucket that nobody has given it."""
    with guard_on(large).begin(KEY, ORDER) as run:
        run.complete(LARGE)
    stranger = Guard("locks", session=large.session())

    with pytest.raises(ResultForbidden, match=BUCKET), stranger.begin(KEY, ORDER):
        pytest.fail("worked again")

    assert ["put_object"] == large.calls


def test_a_result_larger_than_the_bucket_s_limit_is_refused(large: Bucket):
    """And not lost: it is in the error."""
    with pytest.raises(NotRecorded, match="52,428,800"), guard_on(large).begin(KEY, ORDER) as run:
        run.complete(["x" * 26_214_400] * 2)

    assert ([], FAILED) == (large.calls, lock().status)
