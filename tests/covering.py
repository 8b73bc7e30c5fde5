"""
A part of many combinations that covers what they have in common; the rest is `full` and `combination`.

A fault that depends on two things shows in every combination that has both. So a part in which each pair of
values is somewhere finds it as well as the whole product does, with a sixth of the tests.

`make test-all` runs the others, at each push. No other target does.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from typing import Any

import pytest

Aspect = Callable[[Any], Hashable]
COMBINATION = (pytest.mark.full, pytest.mark.combination)


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


def cover(given: Mapping[str, Any], aspects: Sequence[Aspect]) -> set[str]:
    """The ids of such rows."""
    ids = list(given)
    return {ids[number] for number in part(given.values(), aspects)}


def rows(names: str, given: Mapping[str, Sequence[Any]], aspects: Sequence[Aspect]) -> pytest.MarkDecorator:
    """A `parametrize` of rows by their ids; those that no aspect needs are `full` and `combination`."""
    return marked(names, given, cover(given, aspects))


def marked(names: str, given: Mapping[str, Sequence[Any]], wanted: Container[str]) -> pytest.MarkDecorator:
    """A `parametrize` of rows by their ids; those that are not wanted are `full` and `combination`."""
    params = [
        pytest.param(*row, id=name, marks=() if name in wanted else COMBINATION)
        for name, row in given.items()
    ]
    return pytest.mark.parametrize(names, params)


def first(
    few: int,
    names: str | Sequence[str],
    values: Iterable[Any],
    ids: Iterable[str] | Callable[[Any], str | None] | None = None,
) -> pytest.MarkDecorator:
    """A `parametrize` of values that show much the same; those after the first few are `full`."""
    params = [
        value if number < few else pytest.param(*_row(value), marks=pytest.mark.full)
        for number, value in enumerate(values)
    ]
    return pytest.mark.parametrize(names, params, ids=ids)


def pairs(**axes: Mapping[str, Any]) -> pytest.MarkDecorator:
    """A `parametrize` of a product; each pair of values of two axes is in a test that is not `full`."""
    product = {
        "-".join(name for name, _ in row): tuple(value for _, value in row)
        for row in itertools.product(*(axis.items() for axis in axes.values()))
    }
    return rows(",".join(axes), product, [_both(*two) for two in itertools.combinations(range(len(axes)), 2)])


def _both(first: int, second: int) -> Aspect:
    return lambda row: (id(row[first]), id(row[second]))  # of the axes' own values, which may be unhashable


def _row(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)
