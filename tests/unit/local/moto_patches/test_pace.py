"""What moto would work out again and again is remembered, and is what moto works out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from moto.core.serialize import AttributePickerContext, BaseJSONSerializer, XFormedAttributePicker
from moto.core.utils import get_service_model


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
