"""The size of an item in the embedded DynamoDB: each attribute counts once, and 400 KB are allowed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from moto.dynamodb.models.dynamo_type import LimitedSizeDict

from steponce.local.moto_patches import item_sizes
from tests.fakes.tables import create_table
from tests.unit.shared_clients import shared

KEY = {"lockToken": {"S": "a"}}
REST = len("lockToken") + len("a") + len("text")


@pytest.fixture
def dynamodb(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A table; the patch goes when the test does."""
    monkeypatch.setattr(LimitedSizeDict, "__setitem__", LimitedSizeDict.__setitem__)
    item_sizes.install()
    with mock_aws():
        client = shared("dynamodb")
        create_table(client, "LocksTable", "locks")
        yield client


def write(dynamodb: Any, text: str) -> None:
    """Write the attribute of the one item."""
    dynamodb.update_item(
        TableName="locks",
        Key=KEY,
        UpdateExpression="SET #text = :text",
        ExpressionAttributeNames={"#text": "text"},
        ExpressionAttributeValues={":text": {"S": text}},
    )


def test_a_large_attribute_can_be_written_again(dynamodb: Any):
    """Its old value counted, too, so the second write of an answer of 202 KB was refused."""
    for letter in "ab":
        write(dynamodb, letter * 250_000)
    assert "b" == dynamodb.get_item(TableName="locks", Key=KEY)["Item"]["text"]["S"][0]


def test_an_item_may_have_400_kb(dynamodb: Any):
    """One byte more is refused, and changes nothing."""
    write(dynamodb, "a" * (item_sizes.ITEM_LIMIT - REST))
    with pytest.raises(ClientError, match="Item size"):
        write(dynamodb, "b" * (item_sizes.ITEM_LIMIT - REST + 1))
    assert "a" == dynamodb.get_item(TableName="locks", Key=KEY)["Item"]["text"]["S"][0]
