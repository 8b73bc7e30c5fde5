"""The part of a product that `make test` runs has every pair of values in it."""

from __future__ import annotations

import itertools

import pytest

from tests import covering

AXES = {
    "color": {"red": {"r": 1}, "green": {"g": 1}, "blue": {"b": 1}},
    "size": {"small": 1, "large": 2},
    "shape": {"round": ["o"], "square": ["q"], "long": ["l"], "thin": ["t"]},
}


def split(mark: pytest.MarkDecorator) -> tuple[list[str], list[str]]:
    """The ids of the tests that always run, and of those that are `full`."""
    always: list[str] = []
    full: list[str] = []
    for param in mark.args[1]:
        (full if param.marks else always).append(str(param.id))
    return always, full


def test_each_pair_is_in_a_test_that_always_runs():
    """With fewer tests than the product has; and the product is there in full."""
    always, full = split(covering.pairs(**AXES))
    assert sorted("-".join(names) for names in itertools.product(*AXES.values())) == sorted(always + full)
    assert len(always) < 24 / 1.5
    for one, other in itertools.combinations(AXES.values(), 2):
        for pair in itertools.product(one, other):
            assert any(set(pair) <= set(name.split("-")) for name in always), pair


def test_two_axes_are_their_product():
    """Each test is the only one with its pair."""
    assert [] == split(covering.pairs(color=AXES["color"], size=AXES["size"]))[1]


def test_each_value_of_an_aspect_is_in_a_row_that_always_runs():
    """Rows that bring nothing new are full."""
    given = {str(number): (number,) for number in range(9)}
    always, full = split(covering.rows("number", given, [lambda row: row[0] % 3]))
    assert (3, 6) == (len(always), len(full))
    assert {0, 1, 2} == {int(name) % 3 for name in always}
