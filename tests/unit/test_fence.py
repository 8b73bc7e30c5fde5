"""Right before its effect, the work learns whether it still holds the lock."""

from collections import OrderedDict
from dataclasses import replace
from decimal import Decimal
from typing import Any

import boto3
import pytest
from moto import mock_aws

from steponce import fence
from steponce.errors import InvalidRequest, LockLost, RetryLater, Unavailable
from steponce.locks import claim
from steponce.locks.record import Lock
from steponce.locks.table import Locks

KEY = "shop/order-1"
WORK = {
    "lockToken": KEY,
    "callId": "me",
    "attempt": 2,
    "requestId": "order-1",
    "executionName": "order-1",
    "payload": {},
}
MINE = Lock(
    lock_token=KEY,
    status="INPROGRESS",
    locked_by="arn:execution:order-1",
    call_id="me",
    request_id="order-1",
    attempt=2,
    created="2026-01-31T12:00:00.000Z",
    expected_completion="2026-01-31T12:05:00.000Z",
)


class Table:
    """A lock table with one answer."""

    def __init__(self, answer: Lock | Exception | None) -> None:
        self.answer = answer

    def get(self, lock_token: str) -> Lock | None:
        assert KEY == lock_token
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def check(answer: Any) -> None:
    """Ask the fence about WORK."""
    fence.check(WORK, Table(answer))


@pytest.fixture(autouse=True)
def process(monkeypatch: pytest.MonkeyPatch) -> None:
    """One in which no check has passed before."""
    monkeypatch.setattr(claim, "_passed", OrderedDict())


def test_the_holder_may_go_on() -> None:
    """Same call, same attempt, still in progress."""
    assert check(MINE) is None


@pytest.mark.parametrize(
    "lock",
    [
        None,
        replace(MINE, call_id="another"),
        replace(MINE, attempt=3),
        replace(MINE, attempt=1),
        replace(MINE, status="RELEASED"),
        replace(MINE, status="COMPLETED"),
        replace(MINE, status="FAILED"),
    ],
    ids=["gone", "another-call", "higher-attempt", "lower-attempt", "released", "completed", "failed"],
)
def test_whoever_lost_the_lock_must_not_go_on(lock: Lock | None) -> None:
    """Whatever became of the record."""
    with pytest.raises(LockLost, match="Nothing was done"):
        check(lock)


def test_a_table_that_does_not_answer_means_retry_later() -> None:
    """Nothing was done, so the workflow may try again."""
    with pytest.raises(RetryLater, match="DynamoDB said Throttling"):
        check(Unavailable("DynamoDB said Throttling."))


def test_after_a_check_that_has_passed_nothing_says_retry_later() -> None:
    """The work may have had its first effect. The next attempt may still say it: it has begun anew."""
    silent = Unavailable("DynamoDB said Throttling.")
    check(MINE)
    with pytest.raises(Unavailable, match="again"):
        check(silent)
    with pytest.raises(RetryLater):
        fence.check(WORK | {"attempt": 3}, Table(silent))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"lockToken": None}, "lockToken is None"),
        ({"lockToken": {"card": "secret"}}, "lockToken is <dict>"),
        ({"callId": 7}, "callId is 7"),
        ({"attempt": "2"}, "attempt is '2'"),
    ],
)
def test_another_input_than_the_work_s_is_refused(change: dict[str, Any], said: str) -> None:
    """As where a state passes the payload alone. What a field holds may be a part of it."""
    with pytest.raises(InvalidRequest, match=f"{said}.*whole input") as refused:
        fence.check(WORK | change, Table(MINE))
    assert "secret" not in str(refused.value)
    for payload in ({"orderId": "1"}, ["order"], "order", None):
        with pytest.raises(InvalidRequest, match="lockToken is None"):
            fence.check(payload, Table(MINE))


def test_an_input_that_was_kept_in_a_table_is_the_work_s() -> None:
    """boto3's resource makes a Decimal of the attempt."""
    fence.check(WORK | {"attempt": Decimal(2)}, Table(MINE))


def test_any_other_error_stays_what_it_is() -> None:
    """A missing permission is nothing that passes."""
    with pytest.raises(PermissionError):
        check(PermissionError())


def test_without_a_table_the_environment_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the Lambda function, where the template sets LocksTable."""
    with mock_aws():
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        monkeypatch.setenv("LocksTable", "locks")
        boto3.client("dynamodb").create_table(
            TableName="locks",
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "lockToken", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "lockToken", "AttributeType": "S"}],
        )
        fence._locks.cache_clear()
        try:
            with pytest.raises(LockLost):
                fence.check(WORK)
            assert isinstance(fence._locks(), Locks)
        finally:
            fence._locks.cache_clear()
