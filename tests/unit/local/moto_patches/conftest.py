"""What tests of moto's own answers have in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws


@pytest.fixture
def table() -> Iterator[Any]:
    """A table with one key, and what updates it."""
    with mock_aws():
        yield boto3.resource("dynamodb", region_name="eu-west-1").create_table(
            TableName="t",
            KeySchema=[{"AttributeName": "key", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "key", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
