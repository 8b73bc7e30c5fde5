"""
The size of an item.

When an attribute is written again, moto counts its old value as well. So an answer of 202 KB could be stored
with its step, and the next write of the same attribute was refused. And moto's limit is smaller than AWS's.
"""

from __future__ import annotations

from typing import Any

from moto.dynamodb.exceptions import ItemSizeTooLarge
from moto.dynamodb.models.dynamo_type import DynamoType, LimitedSizeDict
from moto.dynamodb.models.utilities import bytesize

ITEM_LIMIT = 409_600
"""Bytes of an item, its attributes' names included. Source: DynamoDB quotas ("400 KB")."""


def install() -> None:
    """Put this module's patch in place."""
    LimitedSizeDict.__setitem__ = _set


def _set(item: LimitedSizeDict, name: str, value: Any) -> None:
    others = sum(bytesize(other) + _size(held) for other, held in item.items() if other != name)
    if others + bytesize(name) + _size(value) > ITEM_LIMIT:
        raise ItemSizeTooLarge
    dict.__setitem__(item, name, value)


def _size(value: Any) -> int:
    return int(value.size() if isinstance(value, DynamoType) else bytesize(str(value)))
