"""Marks and rows belong together, and each rule catches what was planted for it."""

from collections.abc import Callable

import pytest

from . import engines
from .documents import ROOT, rules_of
from .engines import Documents

RULES = rules_of(engines)

ROW = "| `lost-ttl` | DynamoDB Local | deletes nothing | expects it |\n"
MARK = "@pytest.mark.defect(engine='DynamoDB Local', row='lost-ttl')\ndef test_it(): ...\n"

FAULTS: list[tuple[Callable[[Documents], list[str]], Documents]] = [
    (engines.rule_marks_have_rows, Documents("", {"a": MARK})),
    (engines.rule_marks_have_rows, Documents(ROW, {"a": MARK.replace("DynamoDB Local", "ministack")})),
    (engines.rule_marks_have_rows, Documents(ROW, {"a": MARK, "b": MARK.replace("lost-ttl", "lost")})),
    (engines.rule_marks_have_rows, Documents(ROW, {"a": MARK.replace(", row='lost-ttl'", "")})),
    (engines.rule_rows_have_marks, Documents(ROW, {"a": "def test_it(): ..."})),
    (engines.rule_rows_have_marks, Documents(ROW + ROW, {"a": MARK})),
    (engines.rule_engines_are_known, Documents(ROW.replace("DynamoDB Local", "Dynamo"), {})),
    (
        engines.rule_nothing_is_skipped,
        Documents("", {"a": "@pytest.mark.skipif(True, reason='')\ndef f(): ..."}),
    ),
    (engines.rule_nothing_is_skipped, Documents("", {"a": "@pytest.mark.xfail\ndef f(): ..."})),
    (engines.rule_nothing_is_skipped, Documents("", {"a": "def f():\n    pytest.skip('no java')"})),
    (engines.rule_nothing_is_skipped, Documents("", {"a": "boto3 = pytest.importorskip('boto3')"})),
    (engines.rule_nothing_is_skipped, Documents("", {"a": "from pytest import skip"})),
]


@pytest.fixture
def documents() -> Documents:
    """The table and the tests as they are, less this module and the one that makes the mark work."""
    tests = {
        str(path.relative_to(ROOT)): path.read_text()
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if "node_modules" not in path.parts
    }
    del tests["tests/engines.py"]
    return Documents((ROOT / "tests" / "ENGINES.md").read_text(), tests)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_table_and_tests_keep_the_rule(rule: Callable[[Documents], list[str]], documents: Documents) -> None:
    """No complaints about the table or any test."""
    assert [] == rule(documents)


@pytest.mark.parametrize(("rule", "spoilt"), FAULTS, ids=lambda part: getattr(part, "__name__", None))
def test_the_rule_catches_its_planted_fault(
    rule: Callable[[Documents], list[str]], spoilt: Documents
) -> None:
    """A rule that cannot fail is no rule."""
    assert [] != rule(spoilt)


def test_every_rule_has_a_planted_fault() -> None:
    """No rule goes without proof that it can fail."""
    assert set(RULES) == {rule for rule, _ in FAULTS}


def test_a_marked_test_with_its_row_is_right() -> None:
    """The faults are planted in documents that have none of their own."""
    right = Documents(ROW, {"a": MARK})
    assert [] == [complaint for rule in RULES for complaint in rule(right)]


def test_whoever_may_skip_does() -> None:
    """A permission that nobody needs any more would hide the next skip."""
    for path in engines.SKIPPING:
        text = (ROOT / path).read_text()
        assert [] != engines.rule_nothing_is_skipped(Documents("", {f"{path}-": text}))
