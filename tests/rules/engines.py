"""Rules that keep tests/ENGINES.md and the tests of one mind about what engines get wrong."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

SKIPPING = {
    "tests/e2e/test_callback_page.py": "it needs a browser; CI insists on one by STEPONCE_NEEDS_BROWSER",
}
"""Tests that may be skipped for want of something that is no engine, and what makes sure that they run."""

ENGINES = {"DynamoDB Local", "Step Functions Local", "SAM CLI", "ministack"}

_LEAVING_OUT = {"skip", "skipif", "xfail", "importorskip"}
_ROW = re.compile(r"^\| `([a-z0-9-]+)` \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


@dataclass(frozen=True)
class Documents:
    """The table's text, and the text of every test module by its path."""

    table: str
    tests: Mapping[str, str]


def rule_marks_have_rows(documents: Documents) -> list[str]:
    """A mark names a row that is there, and that row's engine."""
    engines = dict(_rows(documents.table))
    complaints = []
    for path, mark in _marks(documents):
        row, engine = mark.get("row"), mark.get("engine")
        if row not in engines:
            complaints.append(f"{path}: there is no row {row}")
        elif engine != engines[row]:
            complaints.append(f"{path}: row {row} is about {engines[row]}, not {engine}")
    return complaints


def rule_rows_have_marks(documents: Documents) -> list[str]:
    """A row that no test is marked with is no defect that anything depends on; each stands once."""
    rows = [row for row, _ in _rows(documents.table)]
    marked = {mark.get("row") for _, mark in _marks(documents)}
    complaints = [f"row {row} stands {rows.count(row)} times" for row in set(rows) if rows.count(row) > 1]
    return complaints + [f"no test is marked with row {row}" for row in rows if row not in marked]


def rule_engines_are_known(documents: Documents) -> list[str]:
    """A misspelt engine would never be the one that runs."""
    return [f"row {row}: {engine}" for row, engine in _rows(documents.table) if engine not in ENGINES]


def rule_nothing_is_skipped(documents: Documents) -> list[str]:
    """A test that is left out for an engine's sake has a row; for anything else's, a reason here."""
    return [
        f"{path}: {name}"
        for path, text in documents.tests.items()
        if path not in SKIPPING
        for name in _left_out(text)
    ]


def _rows(table: str) -> Iterator[tuple[str, str]]:
    for row, engine, _, _ in _ROW.findall(table):
        yield row, engine.strip()


def _marks(documents: Documents) -> Iterator[tuple[str, dict[str, str]]]:
    for path, text in documents.tests.items():
        for node in _nodes(text):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Attribute(attr="mark"), attr="defect"), keywords=given
                ):
                    yield path, {str(part.arg): ast.unparse(part.value).strip("'") for part in given}


def _left_out(text: str) -> Iterator[str]:
    for node in _nodes(text):
        match node:
            case ast.Attribute(value=ast.Name(id="pytest" | "unittest"), attr=name) if name in _LEAVING_OUT:
                yield ast.unparse(node)
            case ast.Attribute(value=ast.Attribute(attr="mark"), attr=name) if name in _LEAVING_OUT:
                yield ast.unparse(node)
            case ast.ImportFrom(module="pytest", names=names):
                yield from (f"from pytest import {one.name}" for one in names if one.name in _LEAVING_OUT)


@cache
def _nodes(text: str) -> list[ast.AST]:
    """The parts of a module that may be a mark. Most modules have no word of one, and need no reading."""
    if not any(word in text for word in ("defect", *_LEAVING_OUT)):
        return []
    kinds = (ast.Call, ast.Attribute, ast.ImportFrom)
    return [node for node in ast.walk(ast.parse(text)) if isinstance(node, kinds)]
