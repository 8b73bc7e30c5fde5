"""What moto would work out again and again is remembered, and is what moto works out."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from moto.core.serialize import AttributePickerContext, BaseJSONSerializer, XFormedAttributePicker
from moto.core.utils import get_service_model
from moto.dynamodb.parsing.ast_nodes import DepthFirstTraverser, Node


def contexts(obj: Any) -> list[AttributePickerContext]:
    """One for each member of a table's description."""
    table = get_service_model("dynamodb").shape_for("TableDescription")
    for shape in table.members.values():
        shape.parent = table
    return [AttributePickerContext(obj, key, shape) for key, shape in table.members.items()]


@pytest.mark.parametrize(
    "obj", [{}, SimpleNamespace(), SimpleNamespace(Meta=None)], ids=["a dict", "an object", "one with Meta"]
)
def test_attributes_are_found_under_the_same_names(obj: Any):
    """The first time, and when they are remembered."""
    picker = XFormedAttributePicker()
    for context in contexts(obj):
        moto_s = list(XFormedAttributePicker.get_possible_keys.__wrapped__(picker, context))
        assert context.key in moto_s
        assert [moto_s] * 2 == [list(picker.get_possible_keys(context)) for _ in range(2)]


class Doubling(DepthFirstTraverser):
    """Puts a node with twice the number in the place of each leaf."""

    def __init__(self) -> None:
        self.questions = 0

    def _processing_map(self) -> dict[type, Any]:
        self.questions += 1
        return {Leaf: lambda leaf: Leaf(leaf.number * 2)}


class Leaf(Node):
    def __init__(self, number: int) -> None:
        super().__init__([])
        self.number = number


class Branch(Node):
    pass


def test_an_expression_is_changed_in_place_and_its_classes_are_asked_for_once():
    """Once for the whole expression, and once more for each node that is processed."""
    tree = Branch([Leaf(1), Branch([Leaf(2), Leaf(3)])])
    doubling = Doubling()

    same = doubling.traverse(tree)

    assert tree is same
    first, branch = tree.children
    assert [2, 4, 6] == [leaf.number for leaf in (first, *branch.children)]
    assert [tree, branch] == [first.parent, branch.children[0].parent]
    assert 1 + 3 == doubling.questions


def test_a_copy_of_an_expression_is_another_tree_of_the_same_leaves():
    """Its validation changes the copy, and the text's own tree stays for the next call."""
    tree = Branch([Leaf(1), Branch([Leaf(2), Leaf(3)])])

    twin = copy.deepcopy(tree)
    Doubling().traverse(twin)

    assert [[2, 4, 6], [1, 2, 3]] == [numbers(twin), numbers(tree)]
    assert [twin, None] == [twin.children[1].parent, twin.parent]


def numbers(tree: Branch) -> list[int]:
    first, branch = tree.children
    return [leaf.number for leaf in (first, *branch.children)]


@pytest.fixture
def table():
    """A table with one key, and what updates it."""
    with mock_aws():
        made = boto3.resource("dynamodb", region_name="eu-west-1").create_table(
            TableName="t",
            KeySchema=[{"AttributeName": "key", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "key", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        yield made


def test_an_item_of_all_types_comes_back_as_it_was_put(table: Any, monkeypatch: pytest.MonkeyPatch):
    """Also within lists and maps; and a value is looked for under its own type only."""
    item = {
        "key": "a",
        "all": [1, None, True, b"bytes", {"n": 2}, [], {}, ""],
        "sets": {"n": {1, 2}, "s": {"a", "b"}, "b": {b"a"}},
    }
    table.put_item(Item=item)
    looked_for = []
    get_value = BaseJSONSerializer.get_value
    monkeypatch.setattr(
        BaseJSONSerializer,
        "get_value",
        lambda serializer, value, key, shape: (
            looked_for.append(key) or get_value(serializer, value, key, shape)
        ),
    )

    assert item == table.get_item(Key={"key": "a"})["Item"]

    assert ["Item", "S", "L", "N"] == looked_for[:4]
    assert 1 == looked_for.count("NULL")


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
