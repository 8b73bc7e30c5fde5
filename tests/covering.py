"""
A part of many combinations that covers what they have in common; the rest is marked `full`.

A fault that depends on two things shows in every combination that has both. So a part in which each pair of
values is somewhere finds it as well as the whole product does, with a sixth of the tests.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import pytest

Aspect = Callable[[Any], Hashable]


def part(rows: Iterable[Any], aspects: Sequence[Aspect]) -> set[int]:
    """The numbers of some rows in which each aspect has every value that it has in any row."""
    shown = [{(number, aspect(row)) for number, aspect in enumerate(aspects)} for row in rows]
    missing: set[Any] = set().union(*shown)
    chosen = set()
    while missing:
        best = max(range(len(shown)), key=lambda number: len(shown[number] & missing))
        chosen.add(best)
        missing -= shown[best]
    return chosen


def rows(names: str, given: Mapping[str, Sequence[Any]], aspects: Sequence[Aspect]) -> pytest.MarkDecorator:
    """A `parametrize` of rows by their ids; those that no aspect needs are `full`."""
    wanted = part(given.values(), aspects)
    marks = [() if number in wanted else pytest.mark.full for number in range(len(given))]
    params = [
        pytest.param(*row, id=name, marks=mark)
        for (name, row), mark in zip(given.items(), marks, strict=True)
    ]
    return pytest.mark.parametrize(names, params)


def pairs(**axes: Mapping[str, Any]) -> pytest.MarkDecorator:
    """A `parametrize` of a product; each pair of values of two axes is in a test that is not `full`."""
    product = {
        "-".join(name for name, _ in row): tuple(value for _, value in row)
        for row in itertools.product(*(axis.items() for axis in axes.values()))
    }
    return rows(",".join(axes), product, [_both(*two) for two in itertools.combinations(range(len(axes)), 2)])


def _both(first: int, second: int) -> Aspect:
    return lambda row: (id(row[first]), id(row[second]))  # of the axes' own values, which may be unhashable
