"""Event patterns: which events they match, and which of them PutRule refuses."""

from __future__ import annotations

import time
from typing import Any

import pytest

from steponce.local.template.event_patterns import InvalidPattern, Pattern


@pytest.mark.parametrize(
    ("condition", "matching", "other"),
    [
        ("paid", ["paid", ["new", "paid"]], ["Paid", None, [], ["new"], {"paid": 1}]),
        (1, [1, 1.0], [True, "1", 2]),
        (True, [True], [1, "true", False]),
        (None, [None, [None]], ["", 0, []]),
        ({"prefix": "eu-"}, ["eu-1", "eu-"], ["EU-1", 1, "us-1"]),
        ({"prefix": {"equals-ignore-case": "Eu-"}}, ["EU-1", "eu-"], ["us-1"]),
        ({"suffix": ".png"}, ["a.png"], ["a.PNG", "png"]),
        ({"suffix": {"equals-ignore-case": ".PNG"}}, ["a.png"], ["png"]),
        ({"equals-ignore-case": "Visa"}, ["visa", "VISA"], ["visa ", None]),
        ({"wildcard": "a*b*c"}, ["abc", "a-b-b-c", "abcbc"], ["ab", "acb", "xabc", "abcx"]),
        ({"wildcard": "ab*ba"}, ["abba", "ab-ba"], ["aba"]),
        ({"wildcard": r"a\*\\*"}, ["a*\\", "a*\\x"], ["ab\\", "a*"]),
        ({"wildcard": "*"}, ["", "x"], [1, None]),
        ({"numeric": ["=", 3.5]}, [3.5], ["3.5", 3]),
        ({"numeric": [">", 0, "<=", 5]}, [5, 0.1], [0, 5.1, True, "1", None]),
        ({"cidr": "10.0.0.0/24"}, ["10.0.0.255"], ["10.0.1.0", "text", 10]),
        ({"cidr": "2001:db8::/32"}, ["2001:db8::1"], ["2001:db9::1", "10.0.0.1"]),
        ({"exists": True}, [None, 0, ""], [[], {}]),
        ({"exists": False}, [[], {}], [None, 0]),
        ({"anything-but": "paid"}, ["new", 1, None, ["paid", "new"]], ["paid", [], ["paid"]]),
        ({"anything-but": [1, 2]}, [3, "1"], [1, 2.0]),
        ({"anything-but": {"prefix": ["a", "b"]}}, ["c", 1], ["a1", "b"]),
        ({"anything-but": {"suffix": "x"}}, ["xy"], ["yx"]),
        ({"anything-but": {"equals-ignore-case": ["Visa"]}}, ["amex"], ["VISA"]),
        ({"anything-but": {"wildcard": "a*c"}}, ["ab"], ["abc"]),
    ],
)
def test_a_condition(condition: Any, matching: list[Any], other: list[Any]):
    """Of a list in the event, one value is enough."""
    pattern = Pattern({"detail": {"it": [condition]}})

    assert [True] * len(matching) == [pattern.matches({"detail": {"it": value}}) for value in matching]
    assert [False] * len(other) == [pattern.matches({"detail": {"it": value}}) for value in other]


@pytest.mark.parametrize(
    ("pattern", "event", "matches"),
    [
        ({"a": [1, 2], "b": [3]}, {"a": 2, "b": 3}, True),
        ({"a": [1, 2], "b": [3]}, {"a": 2}, False),
        ({"a": [{"exists": False}, 1]}, {"b": 1}, True),
        ({"a": {"b": [1]}}, {"a.b": 1}, True),
        ({"a": {"b": [1], "c": [2]}}, {"a": [{"b": 1, "c": 2}, {}]}, True),
        ({"a": {"b": [1], "c": [2]}}, {"a": [{"b": 1}, {"c": 2}]}, False),
        ({"a": {"b": [1], "c": {"d": [2]}}}, {"a": [{"b": 1}, {"b": 1, "c": [{}, {"d": 2}]}]}, True),
        ({"a": {"b": [1], "c": {"d": [2], "e": [3]}}}, {"a": [{"b": 1, "c": [{"d": 2}, {"e": 3}]}]}, False),
        ({"a": {"x": [1]}, "b": {"y": [1]}}, {"a": [{}, {"x": 1}], "b": [{"y": 1}]}, True),
        ({"a": [1]}, {"a": [[2], [[1]]]}, True),
        ({"a": {"b": [1], "c": [{"exists": False}]}}, {"a": [{"b": 1}, {"c": 2}]}, True),
        ({"a": {"b": [1], "c": [{"exists": False}]}}, {"a": [{"b": 1, "c": 2}, {}]}, False),
        ({"a": {"b": [{"exists": False}], "c": [1]}}, {"a": [{"b": 2}, {"c": 1}]}, False),
        ({"$or": [{"a": [1]}, {"b": [2]}], "c": [3]}, {"b": 2, "c": 3}, True),
        ({"$or": [{"a": [1]}, {"b": [2]}], "c": [3]}, {"b": 2}, False),
        ({"d": {"$or": [{"a": [1]}, {"b": {"x": [2]}}]}}, {"d": {"b": {"x": 2}}}, True),
        ({"$or": ["text"]}, {"$or": "text"}, True),
    ],
)
def test_several_fields(pattern: dict[str, Any], event: dict[str, Any], matches: bool):
    """All of them match, and those of an array in one of its elements."""
    assert matches is Pattern(pattern).matches(event)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ({}, "'{}' must not be an object without fields"),
        ({"a": {}}, "'a' must not be an object without fields"),
        ({"a": "text"}, "'a' must be an object or a list"),
        ({"a": []}, "'a' must be an object or a list that is not empty"),
        ({"a": [[1]]}, "'a' must list texts, numbers"),
        ({"a": [{}]}, "'a' must have one operator in each object, not none"),
        ({"a": [{"prefix": "a", "suffix": "b"}]}, "not prefix, suffix"),
        ({"a": [{"Prefix": "a"}]}, "has the operator 'Prefix', which does not exist"),
        ({"a": [{"prefix": 1}]}, "gives 'prefix' 1. It takes a text"),
        ({"a": [{"equals-ignore-case": ["a"]}]}, "It takes a text"),
        ({"a": [{"wildcard": "a**b"}]}, r"without \*\*"),
        ({"a": [{"wildcard": "a\\b"}]}, "backslash"),
        ({"a": [{"numeric": [">", 5, "<", 5]}]}, "It takes a comparison and a number"),
        ({"a": [{"numeric": ["<", 5, ">", 1]}]}, "first its bottom"),
        ({"a": [{"numeric": [">", "5"]}]}, "It takes a comparison"),
        ({"a": [{"numeric": [[]]}]}, "It takes a comparison"),
        ({"a": [{"cidr": "10.0.0.0"}]}, "It takes a block"),
        ({"a": [{"cidr": "10.0.0.0/33"}]}, "It takes a block"),
        ({"a": [{"exists": "no"}]}, "It takes true or false"),
        ({"a": [{"anything-but": []}]}, "It takes texts or numbers"),
        ({"a": [{"anything-but": ["a", 1]}]}, "It takes texts or numbers"),
        ({"a": [{"anything-but": [None]}]}, "It takes texts or numbers"),
        ({"a": [{"anything-but": {"numeric": ["=", 1]}}]}, "an object with one of prefix"),
        ({"a": [{"anything-but": {"prefix": ""}}]}, "that is not empty"),
        ({"a": [{"anything-but": {"wildcard": 1}}]}, "and texts"),
        ({"$or": [{"a": [1]}]}, "has the operator 'a'"),
        ({str(i): {"$or": [{"a": [1]}, {"b": [1]}]} for i in range(10)}, "more than 1000 combinations"),
    ],
)
def test_what_putrule_refuses(pattern: dict[str, Any], message: str):
    """The field is named, and what it takes."""
    with pytest.raises(InvalidPattern, match=message):
        Pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "event"),
    [
        (
            {"a": {**{f"f{i}": {"x": [1]} for i in range(30)}, "z": [9]}},
            {"a": {f"f{i}": [{"x": 1}] * 20 for i in range(30)}},
        ),
        (
            {"a": {**{name: [1] for name in "bcdefg"}, "z": [{"exists": False}]}},
            {"a": [dict.fromkeys("bcdefgz", 1)] * 5000},
        ),
        ({"a": [{"wildcard": "*a" * 1000 + "b"}]}, {"a": "a" * 250_000}),
    ],
    ids=["many arrays", "many elements", "many stars"],
)
def test_no_event_takes_long(pattern: dict[str, Any], event: dict[str, Any]):
    """Elements and stars are not tried in all their combinations."""
    began = time.process_time()

    assert not Pattern(pattern).matches(event)
    assert time.process_time() - began < 5
