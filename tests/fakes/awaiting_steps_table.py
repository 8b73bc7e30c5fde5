"""The table of waiting steps in memory, for one record."""

from __future__ import annotations

import re
from functools import cache
from types import CodeType
from typing import Any

from tests.fakes.errors import client_error


class QuickTable:
    """DynamoDB for one record, some hundred times faster than moto; a test holds it against moto."""

    def __init__(self) -> None:
        self.items: dict[str, dict[str, Any]] = {}

    def get_item(self, TableName: str, Key: Any, ConsistentRead: bool) -> dict[str, Any]:
        """A consistent read."""
        assert ConsistentRead, TableName
        item = self.items.get(Key["awaitingStepId"]["S"])
        return {} if item is None else {"Item": dict(item)}

    def update_item(self, **call: Any) -> dict[str, Any]:
        """A conditional update."""
        key, names = call["Key"], call["ExpressionAttributeNames"]
        values = call["ExpressionAttributeValues"]
        item = self.items.get(key["awaitingStepId"]["S"], {})
        plain = {name: next(iter(value.values())) for name, value in (item | values).items()}
        if not eval(_condition(call["ConditionExpression"]), {}, {"has": plain}):  # noqa: S307 - our own text
            raise client_error("ConditionalCheckFailedException")
        sets, _, removed = call["UpdateExpression"].removeprefix("SET ").partition(" REMOVE ")
        new = key | item
        for part in sets.split(", "):
            name, value = part.split(" = ")
            new[names.get(name, name)] = values[value]
        for name in filter(None, removed.split(", ")):
            new.pop(names.get(name, name), None)
        self.items[key["awaitingStepId"]["S"]] = new
        return {"Attributes": dict(new)}


@cache
def _condition(expression: str) -> CodeType:
    """A condition as Python: what is missing compares as unequal, since each starts with the status."""
    text = re.sub(r"attribute_not_exists\((\w+)\)", r"('\1' not in has)", expression)
    text = text.replace("#status", "status").replace(" IN ", " in ").replace(" = ", " == ")
    text = text.replace(" AND ", " and ").replace(" OR ", " or ")
    text = re.sub(r"(?<!['\w:])(:?(?!and\b|or\b|in\b|not\b|has\b)[a-zA-Z]\w*)", r"has.get('\1')", text)
    return compile(text, expression, "eval")
