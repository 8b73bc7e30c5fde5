"""The stack's tables in moto."""

from __future__ import annotations

from typing import Any

from tests.rules.documents import template

_SCHEMA = ("BillingMode", "KeySchema", "AttributeDefinitions", "GlobalSecondaryIndexes")


def create_table(dynamodb: Any, resource: str, name: str) -> None:
    """Create a table of this name as the template defines this resource, for example LocksTable."""
    properties = template()["Resources"][resource]["Properties"]
    dynamodb.create_table(TableName=name, **{part: properties[part] for part in _SCHEMA})
