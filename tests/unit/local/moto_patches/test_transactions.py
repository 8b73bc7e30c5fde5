"""Transactions on the embedded DynamoDB: as on AWS, also where moto would copy a whole table for each."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from moto.dynamodb.models import DynamoDBBackend
from moto.dynamodb.models.dynamo_type import Item
from moto.dynamodb.models.table import Table

from steponce.local.moto_patches import transactions
from tests.unit.shared_clients import shared

KEYS = {"ranged": {"id": {"S": "a"}, "part": {"S": "3"}}, "plain": {"id": {"S": "3"}}}

each_table = pytest.mark.parametrize("table", KEYS)


@pytest.fixture
def dynamodb(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Two tables of 50 items, one with a sort key; the patches go when the test does."""
    monkeypatch.setattr(DynamoDBBackend, "transact_write_items", DynamoDBBackend.transact_write_items)
    monkeypatch.setattr(Table, "__deepcopy__", None, raising=False)
    transactions.install()
    with mock_aws():
        client = shared("dynamodb")
        for table, key in KEYS.items():
            client.create_table(
                TableName=table,
                BillingMode="PAY_PER_REQUEST",
                KeySchema=[
                    {"AttributeName": name, "KeyType": kind}
                    for name, kind in zip(key, ("HASH", "RANGE"), strict=False)
                ],
                AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in key],
            )
            for n in range(50):
                numbered = key | {list(key)[-1]: {"S": str(n)}}
                client.put_item(TableName=table, Item=numbered | {"count": {"N": "1"}})
        yield client


def everything(dynamodb: Any) -> dict[str, list[Any]]:
    """What both tables hold."""
    return {table: dynamodb.scan(TableName=table)["Items"] for table in KEYS}


def add_one(table: str, key: dict[str, Any], expected: str = "1") -> dict[str, Any]:
    """An action that counts on, if the count is as expected."""
    return {
        "Update": {
            "TableName": table,
            "Key": key,
            "UpdateExpression": "SET #c = #c + :one",
            "ConditionExpression": "#c = :expected",
            "ExpressionAttributeNames": {"#c": "count"},
            "ExpressionAttributeValues": {":one": {"N": "1"}, ":expected": {"N": expected}},
        }
    }


@each_table
def test_a_cancelled_transaction_changes_nothing(dynamodb: Any, table: str):
    """What it updated, put and deleted before its condition failed is as it was, in either table."""
    before = everything(dynamodb)
    key = KEYS[table]
    last = list(key)[-1]
    actions = [
        add_one(table, key),
        {"Put": {"TableName": table, "Item": key | {last: {"S": "new"}}}},
        {"Put": {"TableName": "ranged", "Item": {"id": {"S": "new"}, "part": {"S": "1"}}}},
        {"Delete": {"TableName": table, "Key": key | {last: {"S": "4"}}}},
        add_one(table, key | {last: {"S": "5"}}, expected="9"),
    ]
    with pytest.raises(ClientError) as caught:
        dynamodb.transact_write_items(TransactItems=actions)
    codes = [reason["Code"] for reason in caught.value.response["CancellationReasons"]]
    assert ["None"] * 4 + ["ConditionalCheckFailed"] == codes
    assert before == everything(dynamodb)


@each_table
def test_a_transaction_takes_effect(dynamodb: Any, table: str):
    """All of it."""
    key = KEYS[table]
    dynamodb.transact_write_items(TransactItems=[add_one(table, key)])
    dynamodb.transact_write_items(TransactItems=[add_one(table, key, expected="2")])
    assert {"N": "3"} == dynamodb.get_item(TableName=table, Key=key)["Item"]["count"]


@each_table
def test_only_what_a_transaction_names_is_copied(dynamodb: Any, table: str, monkeypatch: pytest.MonkeyPatch):
    """So the time of a transaction does not grow with the table."""
    key, copied = KEYS[table], []
    deepcopy = copy.deepcopy

    def counting(value: Any, memo: dict[int, Any] | None = None) -> Any:
        copied.append(value) if isinstance(value, Item) else None
        return deepcopy(value, memo)

    monkeypatch.setattr(copy, "deepcopy", counting)
    dynamodb.transact_write_items(TransactItems=[add_one(table, key)])
    assert 1 <= len(copied) < 10


def test_a_table_is_still_copied_whole_elsewhere(dynamodb: Any):
    """A backup has items of its own."""
    backup = dynamodb.create_backup(TableName="plain", BackupName="backup")["BackupDetails"]["BackupArn"]
    dynamodb.transact_write_items(TransactItems=[add_one("plain", KEYS["plain"])])
    dynamodb.restore_table_from_backup(TargetTableName="restored", BackupArn=backup)
    assert {"N": "1"} == dynamodb.get_item(TableName="restored", Key=KEYS["plain"])["Item"]["count"]
