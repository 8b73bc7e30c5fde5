"""
Transactions on tables with many items.

To be able to put a table back, moto copies it with all of its items before each transaction: a tenth of a
second for a thousand items. Only the items that the transaction names can change, so only they are copied.
"""

from __future__ import annotations

import copy
import threading
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from moto.dynamodb.models import DynamoDBBackend
from moto.dynamodb.models.dynamo_type import DynamoType
from moto.dynamodb.models.table import Table

Action = dict[str, Any]

_now = threading.local()


def install() -> None:
    """Put this module's patches in place."""
    DynamoDBBackend.transact_write_items = _transact_write_items
    Table.__deepcopy__ = _copy


_original_transact = DynamoDBBackend.transact_write_items


def _transact_write_items(backend: DynamoDBBackend, transact_items: Sequence[dict[str, Action]]) -> None:
    _now.actions = [action for item in transact_items for action in item.values()]
    try:
        _original_transact(backend, transact_items)
    finally:
        del _now.actions


def _copy(table: Table, memo: dict[int, Any]) -> Table:
    actions = getattr(_now, "actions", None)
    clone = memo[id(table)] = copy.copy(table)
    if actions is None or table.stream_shard is not None:  # a stream knows its table
        clone.__dict__.update(copy.deepcopy(table.__dict__, memo))
        return clone
    clone.items = defaultdict(dict, table.items)
    for action in actions:
        if action.get("TableName") == table.name:
            _copy_item(clone, action.get("Key") or action.get("Item") or {}, memo)
    return clone


def _copy_item(clone: Table, key: dict[str, Any], memo: dict[int, Any]) -> None:
    """Give the copy an item of its own, or its own lack of one."""
    if clone.hash_key_attr not in key:  # moto will say so
        return
    first = DynamoType(key[clone.hash_key_attr])
    if first not in clone.items:
        return
    if clone.range_key_attr is None:
        clone.items[first] = copy.deepcopy(clone.items[first], memo)
        return
    clone.items[first] = dict(clone.items[first])
    second = DynamoType(key[clone.range_key_attr]) if clone.range_key_attr in key else None
    if second in clone.items[first]:
        clone.items[first][second] = copy.deepcopy(clone.items[first][second], memo)
