"""Tables of the user's own: other names, and composite keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from aws_lambda_powertools.utilities.idempotency import DynamoDBPersistenceLayer, idempotent_function
from aws_lambda_powertools.utilities.idempotency.exceptions import IdempotencyAlreadyInProgressError
from aws_lambda_powertools.utilities.idempotency.persistence.datarecord import DataRecord
from moto import mock_aws

from steponce import RequestFailed
from steponce.powertools import LocksPersistence
from steponce.workflow import OUTCOME_UNKNOWN
from tests.unit.powertools.world import ORDER, PREFIX, begin, config, finish, items, key_of
from tests.unit.shared_clients import shared

DONE = {"charge": "ch-1"}
KEY = key_of(PREFIX, ORDER)
NAMES = {
    "key_attr": "id",
    "expiry_attr": "expiration",
    "data_attr": "data",
    "validation_key_attr": "validation",
}
COMPOSITE = {"static_pk_value": "shop", "sort_key_attr": "sk"}
"""Powertools' own defaults."""


@pytest.fixture(params=[{}, COMPOSITE], ids=["key", "composite"])
def table(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """An empty table of one of the two kinds; what is said of its key."""
    keys = [("id", "HASH"), *([("sk", "RANGE")] if request.param else [])]
    with mock_aws():
        shared("dynamodb").create_table(
            TableName="mine",
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in keys],
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name, _ in keys],
        )
        yield request.param


def store(table: dict[str, str], **options: Any) -> LocksPersistence:
    """Ours on it."""
    return LocksPersistence("mine", boto3_client=shared("dynamodb"), **NAMES, **table, **options)


def test_the_record_has_the_table_s_names(table: dict[str, str]) -> None:
    """Its key, its expiry and its result are where the table's other readers look for them."""
    finish(store(table), DONE)
    (item,) = items("mine")
    key = {"id": {"S": "shop"}, "sk": {"S": KEY}} if table else {"id": {"S": KEY}}
    assert key == {name: item[name] for name in ("id", "sk") if name in item}
    assert ({"S": '{"charge":"ch-1"}'}, {"S": "COMPLETED"}) == (item["data"], item["status"])
    assert {"N"} == set(item["expiration"])
    assert {"callId", "attempt", "validation", "expiresAt"} <= set(item)
    assert not {"lockToken", "ttl", "result", "payloadHash"} & set(item)


def test_a_call_is_kept_replayed_and_fenced(table: dict[str, str]) -> None:
    """As on the stack's table; hooks see the keys that Powertools' own records have."""
    seen: list[DataRecord] = []
    persistence = store(table, when_outcome_unknown="take-over")
    options = config(response_hook=lambda response, record: seen.append(record) or response)

    @idempotent_function(
        data_keyword_argument="order", key_prefix=PREFIX, config=options, persistence_store=persistence
    )
    def charge(order: Any) -> Any:
        if order is not None and not seen:
            with pytest.raises(IdempotencyAlreadyInProgressError):
                charge(order=order)
        return DONE

    assert [DONE, DONE] == [charge(order=ORDER), charge(order=ORDER)]
    assert [("shop", KEY) if table else (KEY, None)] == [(seen[0].idempotency_key, seen[0].sort_key)]

    (item,) = items("mine")
    over = {"status": {"S": "INPROGRESS"}, "leaseUntil": {"S": "2020-01-01T00:00:00.000Z"}}
    shared("dynamodb").put_item(TableName="mine", Item=item | over)
    assert DONE == charge(order=ORDER)
    (item,) = items("mine")
    assert ("COMPLETED", "2") == (item["status"]["S"], item["attempt"]["N"])


def test_a_record_is_read_by_its_key_there(table: dict[str, str]) -> None:
    """As Powertools asks for one that it does not know; its names are Powertools'."""
    persistence = store(table)
    finish(persistence, DONE)
    persistence.configure(config(), "f", PREFIX)
    found = persistence.get_record(ORDER)
    assert found is not None
    assert ("COMPLETED", DONE) == (found.status, found.response_json_as_dict())
    assert (("shop", KEY) if table else (KEY, None)) == (found.idempotency_key, found.sort_key)


def test_what_timed_out_is_held_there_too(table: dict[str, str]) -> None:
    """The refused write brings the record, under its own names."""
    begin(store(table))
    (item,) = items("mine")
    over = {"leaseUntil": {"S": "2020-01-01T00:00:00.000Z"}}
    shared("dynamodb").put_item(TableName="mine", Item=item | over)
    with pytest.raises(RequestFailed) as failed:
        _status(store(table))
    assert OUTCOME_UNKNOWN == failed.value.error
    assert "FAILED" == items("mine")[0]["status"]["S"]


def _status(persistence: LocksPersistence) -> str:
    """What the next call meets."""

    @idempotent_function(
        data_keyword_argument="order", key_prefix=PREFIX, config=config(), persistence_store=persistence
    )
    def charge(order: Any) -> Any:
        raise AssertionError(order)

    return str(charge(order=ORDER))


def test_records_that_powertools_has_left_there_are_read(table: dict[str, str]) -> None:
    """They have Powertools' default names, which this table has too."""
    theirs = DynamoDBPersistenceLayer("mine", boto3_client=shared("dynamodb"), **table)
    theirs.configure(config(), "f", PREFIX)
    theirs.save_inprogress(ORDER, 1_000)
    with pytest.raises(IdempotencyAlreadyInProgressError):
        _status(store(table))
    theirs.save_success(ORDER, DONE)
    (before,) = items("mine")
    assert str(DONE) == _status(store(table))
    assert [before] == items("mine")


@pytest.mark.parametrize(
    "names",
    [{"key_attr": "id", "sort_key_attr": "id"}, {"data_attr": "status"}, {"expiry_attr": "expiresAt"}],
)
def test_two_attributes_of_one_name_are_refused(names: dict[str, str]) -> None:
    """Before anything is written."""
    with pytest.raises(ValueError, match="Two attributes cannot both be called"):
        LocksPersistence("mine", boto3_client=shared("dynamodb"), **names)
