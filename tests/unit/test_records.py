"""The lock record: how it is read, when it may be taken, and that every write to it is fenced."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from steponce.errors import Unavailable
from steponce.records import COMPLETED, FAILED, INPROGRESS, RELEASED, Failure, Lock, Locks

NOW = "2026-01-31T12:00:00.000Z"
BEFORE, AFTER = "2026-01-31T11:59:59.999Z", "2026-01-31T12:00:00.001Z"
EXPIRES = "2026-05-01T12:00:00.000Z"
KEY = {"lockToken": {"S": "shop/order-1"}}

OPEN = KEY | {
    "status": {"S": INPROGRESS},
    "openStatus": {"S": "INPROGRESS#3"},
    "lockedBy": {"S": "arn:execution:order-1"},
    "callId": {"S": "me"},
    "requestId": {"S": "order-1"},
    "attempt": {"N": "2"},
    "created": {"S": NOW},
    "expectedCompletion": {"S": AFTER},
    "payloadHash": {"S": "ab12"},
    "expiresAt": {"S": EXPIRES},
}
MINE = Lock.from_item(OPEN)


class Table:
    """A real table in moto with one record."""

    def __init__(self) -> None:
        self.dynamodb = boto3.client("dynamodb", region_name="us-east-1")
        self.dynamodb.create_table(
            TableName="locks",
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "lockToken", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "lockToken", "AttributeType": "S"}],
        )
        self.locks = Locks(self.dynamodb, "locks")

    def put(self, **attributes: Any) -> None:
        """Write OPEN with some attributes changed."""
        self.dynamodb.put_item(TableName="locks", Item=OPEN | attributes)

    def item(self) -> dict[str, Any]:
        """The record as it is."""
        return self.dynamodb.get_item(TableName="locks", Key=KEY).get("Item", {})


@pytest.fixture(scope="module")
def aws() -> Iterator[Table]:
    """One table for the module."""
    with mock_aws():
        yield Table()


@pytest.fixture
def table(aws: Table) -> Table:
    """A table with an open lock."""
    aws.put()
    return aws


def test_an_item_reads_as_a_lock() -> None:
    """Attribute by attribute."""
    item = OPEN | {
        "actualCompletion": {"S": NOW},
        "result": {"S": '{"a":1}'},
        "failure": {"S": '{"Error":"CardDeclined","Cause":null}'},
        "ttl": {"N": "1777636800"},
    }
    assert Lock(
        lock_token=KEY["lockToken"]["S"],
        status=INPROGRESS,
        locked_by="arn:execution:order-1",
        call_id="me",
        request_id="order-1",
        attempt=2,
        created=NOW,
        expected_completion=AFTER,
        payload_hash="ab12",
        open_status="INPROGRESS#3",
        actual_completion=NOW,
        result='{"a":1}',
        failure=Failure("CardDeclined", None),
        expires_at=EXPIRES,
        ttl=1_777_636_800,
    ) == Lock.from_item(item)


def test_an_item_of_somebody_else_s_reads_as_a_lock_without_much() -> None:
    """Whatever it lacks or has of another type, reading it does not fail."""
    lock = Lock.from_item(KEY | {"status": {"NULL": True}, "expiration": {"N": "1"}})
    assert ("", "", 0, None, None) == (lock.status, lock.call_id, lock.attempt, lock.result, lock.ttl)


@pytest.mark.parametrize(
    ("expected", "status", "ttl", "expires_at"),
    [
        (True, RELEASED, None, None),
        (True, RELEASED, 1, AFTER),
        (False, INPROGRESS, None, BEFORE),
        (False, INPROGRESS, 1, BEFORE),
        (True, COMPLETED, 1, BEFORE),
        (False, COMPLETED, 1, NOW),
        (False, COMPLETED, 1, AFTER),
        (False, COMPLETED, None, BEFORE),
        (False, COMPLETED, 1, None),
        (True, FAILED, 1, BEFORE),
        (False, FAILED, 1, AFTER),
        (False, FAILED, None, BEFORE),
        (False, "EXPIRED", 1, BEFORE),
        (False, "", None, None),
    ],
)
def test_who_may_take_a_record(expected: bool, status: str, ttl: int | None, expires_at: str | None) -> None:
    """No clock frees a lock in progress, nor a failure that waits for a person."""
    assert expected is replace(MINE, status=status, ttl=ttl, expires_at=expires_at).is_reusable(NOW)


@pytest.mark.parametrize("failure", [Failure("E", "why"), Failure("E", None), Failure(None, None)])
def test_a_failure_reads_as_it_was_written(failure: Failure) -> None:
    """Either part may be missing."""
    assert failure == Failure.from_json(failure.to_json())


@pytest.mark.parametrize("caught", [{}, {"Error": None, "Cause": None}])
def test_a_failure_without_fields_has_neither(caught: dict[str, Any]) -> None:
    """SendTaskFailure may say nothing at all."""
    assert Failure(None, None) == Failure.from_catch(caught)


def test_what_is_written_can_be_read(table: Table) -> None:
    """By its key."""
    assert table.locks.get(MINE.lock_token) == MINE


def test_where_there_is_no_record_there_is_none(table: Table) -> None:
    """Not an empty one."""
    assert table.locks.get("shop/order-2") is None


def test_a_record_is_read_consistently(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older copy might name an owner that has lost the lock."""
    asked: dict[str, Any] = {}
    monkeypatch.setattr(table.dynamodb, "get_item", lambda **options: asked.update(options) or {})
    table.locks.get(MINE.lock_token)
    assert True is asked["ConsistentRead"]


def test_completing_writes_the_result_and_closes_the_record(table: Table) -> None:
    """Off the open index, with a ttl from now on."""
    assert table.locks.complete(MINE, '{"chargeId":"ch_1"}') is True
    item = table.item()
    assert ({"S": COMPLETED}, {"S": '{"chargeId":"ch_1"}'}) == (item["status"], item["result"])
    assert ({"N": "1777636800"}, False) == (item["ttl"], "openStatus" in item)
    assert "actualCompletion" in item


def test_a_final_failure_closes_the_record(table: Table) -> None:
    """It is an answer, and expires as one."""
    assert table.locks.fail(MINE, Failure("CardDeclined", "no"), final=True) is True
    item = table.item()
    assert ({"S": FAILED}, {"N": "1777636800"}) == (item["status"], item["ttl"])
    assert (Failure("CardDeclined", "no"), False) == (Lock.from_item(item).failure, "openStatus" in item)


def test_any_other_failure_stays_open(table: Table) -> None:
    """On its shard of the open index, without a ttl: DynamoDB must not delete what is not settled."""
    assert table.locks.fail(MINE, Failure("ZeroDivisionError", None), final=False) is True
    item = table.item()
    assert ({"S": FAILED}, {"S": "FAILED#3"}) == (item["status"], item["openStatus"])
    assert "ttl" not in item


@pytest.mark.parametrize(
    "change",
    [
        {"callId": {"S": "another"}},
        {"lockedBy": {"S": "arn:execution:order-1--2"}},
        {"status": {"S": COMPLETED}},
        {"status": {"S": FAILED}},
        {"status": {"S": RELEASED}},
    ],
    ids=["another-call", "another-execution", "completed", "failed", "released"],
)
def test_a_late_writer_changes_nothing(table: Table, change: dict[str, Any]) -> None:
    """Once the record says anything else of its owner, no write on its behalf takes effect."""
    table.put(**change)
    assert table.locks.complete(MINE, '"late"') is False
    assert table.locks.fail(MINE, Failure("Late", None), final=True) is False
    assert table.locks.fail(MINE, Failure("Late", None), final=False) is False
    assert OPEN | change == table.item()


def test_a_record_that_is_gone_is_not_made_anew(table: Table) -> None:
    """An update without its condition would write half a record."""
    table.dynamodb.delete_item(TableName="locks", Key=KEY)
    assert table.locks.complete(MINE, '"late"') is False
    assert {} == table.item()


def test_of_two_writers_one_wins(table: Table) -> None:
    """The second sees that it is not in progress any more."""
    assert [True, False] == [table.locks.complete(MINE, '"one"'), table.locks.complete(MINE, '"two"')]
    assert {"S": '"one"'} == table.item()["result"]


class Refusing:
    """DynamoDB that says no."""

    def __init__(self, code: str) -> None:
        self.error = ClientError({"Error": {"Code": code, "Message": "no"}}, "UpdateItem")

    def update_item(self, **_: Any) -> None:
        raise self.error

    def get_item(self, **_: Any) -> None:
        raise self.error


def test_a_throttled_table_is_unavailable() -> None:
    """Not a lost lock."""
    locks = Locks(Refusing("ThrottlingException"), "locks")  # type: ignore[arg-type]
    with pytest.raises(Unavailable):
        locks.complete(MINE, "null")
    with pytest.raises(Unavailable):
        locks.get(MINE.lock_token)


def test_a_missing_permission_is_not_taken_for_a_lost_lock() -> None:
    """It is raised as it is."""
    locks = Locks(Refusing("AccessDeniedException"), "locks")  # type: ignore[arg-type]
    with pytest.raises(ClientError, match="AccessDenied"):
        locks.fail(MINE, Failure(None, None), final=True)
