"""What moto would work out again and again is remembered, and is what moto works out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from moto.core.serialize import AttributePickerContext, XFormedAttributePicker
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
