"""Definitions are read whatever is in them: ignores, lines, languages, and what is no definition at all."""

from __future__ import annotations

import copy
import itertools
import json
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

from steponce.lint import lint
from steponce.lint.ignores import Ignore, ignores_in
from steponce.lint.json_or_yaml import Unreadable, read_text
from steponce.lint.lines import line_of
from steponce.lint.machine import read_machine
from steponce.lint.repeating import why_not_repeatable

from .planted import RIGHT, SPOILT

WAITS = {"Type": "Task", "Resource": "arn:aws:states:us-east-1:123456789012:activity:a", "End": True}
MACHINES = [json.loads(path.read_text()) for path in [*RIGHT, *SPOILT]]


def machine(comment: str = "", **states: Any) -> dict[str, Any]:
    return {"Comment": comment, "StartAt": next(iter(states)), "States": states}


@pytest.mark.parametrize(
    "definition",
    [
        machine(A=WAITS | {"Comment": "Slow. lint: ignore task-timeout because a person may take a year."}),
        machine("lint: ignore error-name, task-timeout because both are known", A=WAITS),
        machine(
            P={
                "Type": "Parallel",
                "Branches": [machine(A=WAITS)],
                "End": True,
                "Comment": "lint: ignore task-timeout because it is bounded elsewhere",
            }
        ),
    ],
    ids=["state", "machine", "around"],
)
def test_a_rule_is_ignored_with_a_reason(definition: Any):
    """In the state's Comment, in the machine's, or in that of a state around it."""
    assert () == lint(definition).findings


@pytest.mark.parametrize(
    "comment", ["lint: ignore task-timeout", "lint: ignore task-timeout because", "lint: ignore because slow"]
)
def test_without_a_reason_nothing_is_ignored(comment: str):
    """And the ignore itself is a finding."""
    found = lint(machine(A=WAITS | {"Comment": comment})).findings
    assert {"bad-ignore", "task-timeout"} == {finding.rule for finding in found}


@pytest.mark.parametrize(("outside", "spoken"), [({}, "JSONPath"), ({"QueryLanguage": "JSONata"}, "JSONata")])
def test_a_state_inside_another_is_in_the_language_of_the_machine(outside: dict[str, Any], spoken: str):
    """Whatever the Map or the Parallel is in."""
    each = {"Type": "Map", "QueryLanguage": "JSONata", "ItemProcessor": machine(A=WAITS), "End": True}
    states = {state.name: state for state in read_machine(machine(Each=each) | outside).all_states()}
    assert ("JSONata", spoken) == (states["Each"].language, states["A"].language)


def test_what_an_ignore_says():
    """Several in one Comment, each on its line."""
    comment = "Why.\nlint: ignore a, b because of x.\nlint: ignore c because y"
    assert [Ignore(("a", "b"), "of x"), Ignore(("c",), "y")] == list(ignores_in(comment))


@pytest.mark.parametrize(
    ("text", "name", "line"),
    [
        ('{\n"States": {\n  "Pay": {\n', "Pay", 3),
        ('{"Next": "Pay",\n"States": {"Pay": {}}}', "Pay", 2),
        ("States:\n  Repay:\n    Next: Pay\n  Pay:\n", "Pay", 4),
        ("States:\n  'Pay it': {Type: Pass}\n", "Pay it", 2),
        ("States:\n  Pay:  # now\n", "Pay", 2),
        ('DefinitionString: !Sub |\n  {\n    "Pay" : {', "Pay", 3),
        ('{"Grüße": {}}', "Grüße", 1),
        ("nothing", "Pay", 1),
    ],
)
def test_the_line_of_a_state(text: str, name: str, line: int):
    """In JSON, in YAML, and in a template with either."""
    assert line == line_of(text, name)


JUNK = [
    *("null", "true", "-1", '""', '"$.a"', '"States.ALL"', '"A"', "[]", "{}", "[[]]"),
    *('{"Type": []}', '{"And": [{}]}', '{"Next": {}}', '["States.ALL"]'),
]


@pytest.mark.parametrize("seed", range(60))
def test_no_value_anywhere_breaks_a_rule(seed: int):
    """Wherever machines hold something else than they must, there are findings or none, and no exception."""
    chance = random.Random(seed)
    broken = copy.deepcopy(chance.choice(MACHINES))
    for _ in range(2):
        part, key = chance.choice(list(_places(broken)))
        part[key] = json.loads(chance.choice(JUNK))
    lint(broken)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a JSON value: what it is in, and its key or index there."""
    for key, part in value.items() if isinstance(value, dict) else enumerate(value):
        yield value, key
        if isinstance(part, dict | list):
            yield from _places(part)


@pytest.mark.parametrize(
    "junk",
    [
        *(None, 1, "", [], {}, {"States": []}, {"States": {"A": None}, "StartAt": []}),
        machine(A=WAITS | {"Next": "B"}, B={"Type": "Fail", "Error": {"Ref": "Name"}}),
    ],
)
def test_what_is_no_definition_is_an_error(junk: Any):
    """Not an exception."""
    assert "error" in {finding.severity for finding in lint(junk).findings}


ALIASES = [
    f"{this}: &{this} [{', '.join([f'*{last}'] * 9)}]" for last, this in itertools.pairwise("abcdefgh")
]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 100_000, "more than 200 levels"),
        ("[" * 201 + "]" * 201, "more than 200 levels"),
        ("\n".join(" " * level + "a:" for level in range(600)), "more than 200 levels"),
        ("States: &a\n  A: *a\n", "more than 200 levels"),
        ("\n".join(["a: &a [x, x, x, x, x, x, x, x, x]", *ALIASES]), "more than 1,000,000 values"),
        ('{"States": ' + "9" * 5_000 + "}", "thousands of digits"),
        ("States: " + "9" * 5_000, "thousands of digits"),
        ("States: 0x" + "F" * 5_000, "thousands of digits"),
        ("? [a]\n: b\n", "A key is a list"),
    ],
    ids=["brackets", "lists", "YAML", "cycle", "aliases", "number", "number in YAML", "in hex", "key"],
)
def test_what_no_rule_could_walk_through_is_unreadable(text: str, said: str):
    """The message says why. Python would run out of stack or memory."""
    with pytest.raises(Unreadable, match=said):
        read_text(text)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ('\x1b[32m{"StartAt": "A"}\x1b[0m', 1, "U+001B"),
        ("StartAt: A\nComment: a\x00b\n", 2, "U+0000"),
        ("StartAt: A\x7f\n", 1, "U+007F"),
        ("StartAt: \ufffe\n", 1, "U+FFFE"),
    ],
    ids=["colours", "NUL", "DEL", "U+FFFE"],
)
def test_a_character_that_yaml_has_not_is_named(text: str, line: int, said: str):
    """Nobody can see it."""
    with pytest.raises(Unreadable, match=re.escape(said)) as raised:
        read_text(text)
    assert line == raised.value.line


@pytest.mark.parametrize(
    "value",
    [
        *("!!timestamp 99999-01-01", "!!timestamp 2001-99-01", "!!int x", "!!int ''", "!!bool x", "!!map x"),
        *("!!map [1]", "{!!timestamp 2001-01-01: x}", "{!!binary eA==: x}", r'"\UFFFFFFFF"'),
    ],
)
def test_a_value_is_what_its_tag_says(value: str):
    """PyYAML raises anything else than its own error."""
    with pytest.raises(Unreadable, match="not what its tag says"):
        read_text(f"States: {value}\n")


def test_a_date_in_yaml_is_text():
    """CloudFormation knows no dates."""
    assert {"States": {"2020-01-01": "2020-01-01"}} == read_text("States: {2020-01-01: 2020-01-01}")


@pytest.mark.parametrize(
    ("expression", "grows"),
    [
        ("ADD hits :one", True),
        ("SET a = :b ADD hits :one", True),
        ("SET hits = hits + :one", True),
        ("SET a = :b, #n = if_not_exists(#n, :zero) + :one", True),
        ("SET list = list_append(list, :more)", True),
        ("SET created = if_not_exists(created, :now)", False),
        ("SET a = :a, b = :b REMOVE c", False),
    ],
)
def test_which_updates_make_a_value_from_the_one_before(expression: str, grows: bool):
    """A second one is not the same then."""
    task = {
        "Type": "Task",
        "Resource": "arn:aws:states:::dynamodb:updateItem",
        "Parameters": {"TableName": "t", "Key": {}, "UpdateExpression": expression},
    }
    (state,) = read_machine(machine(A=task)).states.values()
    assert grows == (why_not_repeatable(state) is not None)
