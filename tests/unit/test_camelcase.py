"""JSON has one style of names: that of the records, envelopes and events."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from steponce.camelcase import json_object


@dataclass(frozen=True)
class Line:
    """One of an order."""

    unit_price: int


@dataclass(frozen=True)
class Order:
    """Something with all that a report has."""

    order_id: str
    paid: bool
    first_line: Line | None
    all_lines: tuple[Line, ...]
    free_text: Any


def test_a_deep_result_stays_as_it_is() -> None:
    """A work's own result may have any depth that can be read. Python counts each level of a walk."""
    deep = json.loads("[" * 800 + "]" * 800)

    assert deep is json_object(Order("o_1", True, None, (), deep))["freeText"]


def test_the_names_are_in_camel_case_at_every_depth() -> None:
    """In dataclasses, and in lists of them."""
    told = json_object(Order("o_1", True, Line(5), (Line(5), Line(6)), None))

    lines = [{"unitPrice": 5}, {"unitPrice": 6}]
    assert {
        "orderId": "o_1",
        "paid": True,
        "firstLine": lines[0],
        "allLines": lines,
        "freeText": None,
    } == told


def test_what_is_json_already_stays_as_it_is() -> None:
    """Payloads, results and answers are their owners'."""
    given = {"unit_price": [{"in_cents": 5}]}

    assert given == json_object(Order("1", False, None, (), given))["freeText"]
