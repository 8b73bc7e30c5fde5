"""An expression that is read once means in every call what moto would read in it."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto.dynamodb.comparisons import ConditionExpressionParser
from moto.dynamodb.models.dynamo_type import DynamoType, Item
from moto.dynamodb.parsing.executors import UpdateExpressionExecutor
from moto.dynamodb.parsing.expressions import UpdateExpressionParser
from moto.dynamodb.parsing.validators import UpdateExpressionValidator, Validator

from steponce.local.moto_patches import expressions


class Table:
    """What a validator asks of its table."""

    table_key_attrs = ("key",)
    attribute_keys = ("key", "day")
    attr = ({"AttributeName": "key", "AttributeType": "S"}, {"AttributeName": "day", "AttributeType": "S"})


NAMES = {"#n": "n", "#new": "new", "#key": "key"}
VALUES = {
    ":one": {"N": "1"},
    ":text": {"S": "x"},
    ":empty": {"S": ""},
    ":list": {"L": [{"N": "7"}]},
    ":map": {"M": {"b": {"N": "2"}}},
    ":set": {"SS": ["b"]},
}
ATTRIBUTES = {
    "key": {"S": "k"},
    "n": {"N": "41"},
    "list": {"L": [{"N": "1"}, {"N": "2"}, {"N": "3"}]},
    "map": {"M": {"b": {"N": "1"}}},
    "set": {"SS": ["a", "b"]},
}


def updated(validate: Any, text: str, attributes: dict[str, Any]) -> dict[str, Any] | tuple[type, str]:
    """The item after the update, or how it was refused. It is read anew, for moto's own way changes it."""
    item = Item(DynamoType({"S": "k"}), None, copy.deepcopy(attributes))
    read = UpdateExpressionParser.make.__wrapped__(text)
    validator = UpdateExpressionValidator(
        read,
        expression_attribute_names=NAMES,
        expression_attribute_values=VALUES,
        item=item,
        table=Table(),
    )
    try:
        validated = validate(validator)
        validated.normalize()
        UpdateExpressionExecutor(validated, item, NAMES).execute()
    except Exception as error:
        return type(error), str(error)
    return {name: value.to_regular_json() for name, value in item.attrs.items()}


@pytest.mark.parametrize("attributes", [ATTRIBUTES, {"key": {"S": "k"}}], ids=["an item", "a new item"])
@pytest.mark.parametrize(
    "text",
    [
        "SET #n = :one, new = :text, other = #n REMOVE map.b, set",
        "SET #n = #n + :one, #new = if_not_exists(#new, :one) - :one",
        "SET #n = if_not_exists(n, :one), copied = if_not_exists(gone, gone)",
        "SET list = list_append(list, :list), list[1] = :one REMOVE list[0], list[2]",
        "SET list = list_append(if_not_exists(list, :list), :list)",
        "SET map.c = :map, map.b = map.b + map.b",
        "SET map.c.d = :one",
        "ADD #n :one, set :set, new :set",
        "DELETE set :set",
        "SET #n = :one ADD other :one REMOVE gone DELETE set :set",
        "SET n = gone",
        "SET n = gone + :one",
        "SET n = :text + :one",
        "SET n = list_append(n, :list)",
        "SET n = :unknown",
        "SET #unknown = :one",
        "SET name = :one",
        "SET #key = :text",
        "SET day = :one",
        "SET day = :empty",
        "SET n = :one, #n = :one",
        "SET map = :map, map.b = :one",
        "SET n = :one SET map = :one",
        "ADD set :text",
        "DELETE n :one",
    ],
)
def test_an_update_does_what_moto_s_own_way_does(text: str, attributes: dict[str, Any]):
    """Also where it is refused: with the same error, in the same words."""
    own = updated(Validator.validate, text, attributes)

    assert [own] * 2 == [updated(UpdateExpressionValidator.validate, text, attributes) for _ in range(2)]


@pytest.mark.parametrize("attributes", [ATTRIBUTES, {"key": {"S": "k"}}], ids=["an item", "a new item"])
@pytest.mark.parametrize(
    "text",
    [
        "attribute_not_exists(#n) OR #n > :one AND NOT (n = :one)",
        "NOT n = :one AND (map.b <= :one OR list[1] <> :one)",
        "n BETWEEN :one AND #n AND n IN (:one, :text, #n)",
        "contains(set, :text) OR begins_with(key, :text) OR size(list) > :one",
        "attribute_type(n, :text) AND attribute_exists(map.b)",
        "n = :unknown",
        "#unknown = :one",
        "name = :one",
        "((n = :one))",
        "n = = :one",
    ],
)
def test_a_condition_holds_where_moto_s_own_does(text: str, attributes: dict[str, Any]):
    """And uses the same names and values; or is refused with the same error."""
    own = holds(MotosOwn, text, attributes)

    assert [own] * 2 == [holds(ConditionExpressionParser, text, attributes) for _ in range(2)]


class MotosOwn(ConditionExpressionParser):
    """Reads as it did before it was replaced."""

    parse = expressions._Tree.parse
    _make_operand = expressions._Tree._make_operand


def holds(parser: Any, text: str, attributes: dict[str, Any]) -> tuple[object, ...]:
    """Whether the condition holds for the item, and what it has used; or how it was refused."""
    asking = parser(text, NAMES, VALUES)
    try:
        answer = asking.parse().expr(Item(DynamoType({"S": "k"}), None, attributes))
    except Exception as error:
        return type(error), str(error)
    return answer, asking.expr_attr_names_found, asking.expr_attr_values_found


def test_one_text_with_other_values_is_another_update(table: Any):
    """What is remembered of a text has no value and no item in it."""
    for number in (2, 3):
        table.update_item(
            Key={"key": "a"},
            UpdateExpression="SET n = if_not_exists(n, :one) + :more, newest = :more REMOVE gone",
            ConditionExpression="attribute_not_exists(n) OR n < :limit",
            ExpressionAttributeValues={":one": 1, ":more": number, ":limit": 6},
        )
    assert {"key": "a", "n": 6, "newest": 3} == table.get_item(Key={"key": "a"})["Item"]
    with pytest.raises(table.meta.client.exceptions.ConditionalCheckFailedException):
        table.update_item(
            Key={"key": "a"},
            UpdateExpression="SET n = :limit",
            ConditionExpression="attribute_not_exists(n) OR n < :limit",
            ExpressionAttributeValues={":limit": 6},
        )


def test_what_an_update_copies_is_not_the_same_afterwards(table: Any):
    """A list or a map: one that changes leaves the other as it is, in the same update and in later ones."""
    table.put_item(Item={"key": "a", "list1": [1], "map1": {"n": 1}})
    first = "SET list2 = list1, list1[0] = :n, map2 = map1"
    for number, update in enumerate((first, "SET list2[0] = :n, map1.n = :n"), 2):
        values = {":n": number}
        table.update_item(Key={"key": "a"}, UpdateExpression=update, ExpressionAttributeValues=values)
    found = table.get_item(Key={"key": "a"})["Item"]
    assert {"key": "a", "list1": [2], "list2": [3], "map1": {"n": 3}, "map2": {"n": 1}} == found


@pytest.mark.parametrize(
    "wrong", ["SET a = :v SET b = :v", "SET a = :v, a = :v", "SET a.b = :v, a = :v", "SET a = ", "PUT a = :v"]
)
def test_a_wrong_expression_is_refused_each_time(table: Any, wrong: str):
    """Twice the same clause, paths that overlap, and what cannot be read."""
    for _ in range(2):
        with pytest.raises(ClientError, match="ValidationException"):
            table.update_item(
                Key={"key": "a"}, UpdateExpression=wrong, ExpressionAttributeValues={":v": {"x": 1}}
            )
