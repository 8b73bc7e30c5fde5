"""What a rule of a Choice state takes for a time, and for a match."""

import json

import pytest

from tests.unit.local.moto_patches.workflows import Workflows

NOON = "2026-01-01T12:00:00Z"


@pytest.fixture(scope="module")
def workflows(small_stack):
    return Workflows(small_stack)


def holding(workflows, rules, payload=None):
    """Which of the rules, by number, hold for the payload."""
    branches = [
        {
            "StartAt": f"Choose{number}",
            "States": {
                f"Choose{number}": {
                    "Type": "Choice",
                    "Choices": [{**rule, "Next": f"Yes{number}"}],
                    "Default": f"No{number}",
                },
                f"Yes{number}": {"Type": "Pass", "Result": number, "End": True},
                f"No{number}": {"Type": "Pass", "Result": None, "End": True},
            },
        }
        for number, rule in enumerate(rules)
    ]
    found = workflows.run({"All": {"Type": "Parallel", "Branches": branches, "End": True}}, payload)
    assert "SUCCEEDED" == found["status"], found
    return [number for number in json.loads(found["output"]) if number is not None]


def test_a_time_may_have_a_fraction_and_an_offset(workflows):
    """And the same time is equal, however it is written."""
    same = ("2026-01-01T12:00:00.000Z", "2026-01-01T13:30:00+01:30", "2026-01-01T11:00:00.0-01:00", NOON)
    rules = [{"Variable": f"$[{place}]", "TimestampEquals": NOON} for place in range(len(same))]
    rules += [{"Variable": "$[0]", "TimestampEqualsPath": f"$[{place}]"} for place in range(len(same))]
    rules += [{"Variable": f"$[{place}]", "IsTimestamp": True} for place in range(len(same))]
    assert [*range(len(rules))] == holding(workflows, rules, same)


def test_times_are_compared_to_the_fraction(workflows):
    """By each of the operators, with a value and with a path."""
    payload = {"early": "2026-01-01T12:00:00.001Z", "late": "2026-01-01T13:00:00.002+01:00"}
    operators = ("LessThan", "LessThanEquals", "GreaterThan", "GreaterThanEquals")
    rules = [{"Variable": "$.early", f"Timestamp{operator}": payload["late"]} for operator in operators]
    rules += [{"Variable": "$.early", f"Timestamp{operator}Path": "$.late"} for operator in operators]
    rules += [{"Variable": "$.early", "TimestampGreaterThan": NOON}]
    assert [0, 1, 4, 5, 8] == holding(workflows, rules, payload)


def test_the_times_of_the_context_object_are_times(workflows):
    """A choice can ask whether a deadline has passed."""
    payload = {"deadline": "2020-01-01T00:00:00Z"}
    rules = [
        {"Variable": "$$.State.EnteredTime", "TimestampGreaterThanPath": "$.deadline"},
        {"Variable": "$.deadline", "TimestampLessThanPath": "$$.Execution.StartTime"},
        {"Variable": "$$.State.EnteredTime", "IsTimestamp": True},
    ]
    assert [0, 1, 2] == holding(workflows, rules, payload)


def test_another_text_is_no_time(workflows):
    """
    Nor is a number.

    Source: Amazon States Language, Timestamps: RFC 3339, with an uppercase T, and an uppercase Z where no
    offset is given.
    """
    wrong = ["2026-01-01", "2026-01-01T12:00:00", "2026-01-01t12:00:00z", "2026-01-01 12:00:00Z", "", 5, None]
    wrong += ["2026-02-30T12:00:00Z", "2026-01-01T12:00:00+0100", "2026-W01-4T12:00:00Z", "20260101T120000Z"]
    rules = [{"Variable": f"$[{place}]", "IsTimestamp": True} for place in range(len(wrong))]
    rules += [{"Variable": f"$[{place}]", "TimestampLessThan": NOON} for place in range(len(wrong))]
    assert [] == holding(workflows, rules, wrong)


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("log-*.txt", ["log-.txt", "log-a.b.txt", "log-\n.txt"], ["log-1-txt", "Log-1.txt", "log-1.txt "]),
        ("*", ["", "a"], [5, None, ["a"]]),
        ("[urgent]*", ["[urgent] now"], ["u", "urgent"]),
        ("a?c", ["a?c"], ["abc"]),
        ("[!a]", ["[!a]"], ["b"]),
        (r"a\*b", ["a*b"], ["ab", "axb", r"a\*b"]),
        (r"a\\b*", ["a\\b", "a\\bc"], ["ab", r"a\\b"]),
        (r"\\\**", [r"\*", r"\*a"], ["\\", r"\a"]),
    ],
)
def test_only_a_star_matches_anything(workflows, pattern, matching, others):
    """A backslash stands before a star or a backslash that means itself."""
    values = [*matching, *others]
    rules = [{"Variable": f"$[{place}]", "StringMatches": pattern} for place in range(len(values))]
    assert [*range(len(matching))] == holding(workflows, rules, values)


@pytest.mark.parametrize("pattern", [r"a\b*", "a*\\"])
def test_an_open_escape_in_a_pattern_fails_the_execution(workflows, pattern):
    """As it does on AWS."""
    rule = {"Variable": "$.text", "StringMatches": pattern, "Next": "End"}
    choose = {"Type": "Choice", "Choices": [rule], "Default": "End"}
    found = workflows.run({"Choose": choose, "End": {"Type": "Succeed"}}, {"text": "ab"})
    assert "States.Runtime" == found["error"]
    assert "open escape" in found["cause"]
