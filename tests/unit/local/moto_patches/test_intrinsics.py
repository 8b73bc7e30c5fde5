r"""
Text and paths in a call of an intrinsic function, as AWS reads them.

Source: Reserved characters in intrinsic functions, Step Functions Developer Guide: `\'`, `\{`, `\}` and `\\`
stand for what follows the backslash, and any other backslash is an error when the execution runs.
"""

import json

import pytest
from botocore.exceptions import ClientError

from tests.unit.local.moto_patches.workflows import Workflows

INPUT = {
    "n": 5,
    "o'c": {"a b": {"tab\there": "x"}},
    "detail": {"order-id": 10, "lines": [{"sku": "s-1"}, {"sku": "s-2"}]},
    "grid": [[6, 7], [8, [9]]],
    "said": {"é": "ü\n\U0001f600", "null": 0},
    "template": "{} of $.n",
    "braces": "{}",
    "mail": "Z3LD\r\ntsOf\r\nZQ==\r\n",
}
TEXTS = {
    r"States.Format('it\'s {}', $.n)": "it's 5",
    r"States.Format('{} it\'s', $.n)": "5 it's",
    r"States.Format('\{{}\}', $.n)": "{5}",
    r"States.Format('\{\}{}', $.n)": "{}5",
    r"States.Format('\\{}\\', $.n)": "\\5\\",
    r"States.Format('\\n{}', $.n)": "\\n5",
    r"States.Format('\\\'{}', $.n)": "\\'5",
    "States.Format('\"{}\"\n\té\U0001f600', $.n)": '"5"\n\té\U0001f600',
    "States.Format('{}, {}', $.n, $.braces)": "5, {}",
    "States.Format('')": "",
    "States.Format(\n'{}',\t$.n)": "5",
    "States.Format($.template, $.n)": "5 of $.n",
    r"States.ArrayGetItem(States.Array('it\'s', '\{', '\\', 'a'), 0)": "it's",
    r"States.ArrayGetItem(States.StringSplit('a\\b', '\\'), 1)": "b",
    r"States.Format('{} {}', States.Format('\'{}\'', $.n), '\}')": "'5' }",
    "States.JsonToString($.said)": '{"é":"ü\\n\U0001f600","null":0}',
}
PATHS = {
    "States.Format('{}', $['detail']['order-id'])": "10",
    "States.Format('{}/{}', $.detail['lines'][1].sku, $['detail']['lines'][-1]['sku'])": "s-2/s-2",
    "States.Array($.grid[0][1], $.grid[1][1][0], $.grid[0])": [7, 9, [6, 7]],
    "States.Array($$.Execution.Input['detail']['order-id'])": [10],
    "States.MathAdd(States.ArrayGetItem($['grid'][1], 0), $['grid'][0][0])": 14,
    "States.ArrayLength($['detail']['lines'][?(@.sku == 's-1')])": 1,
    "States.Array($['o\\'c']['a b']['tab\there'])": ["x"],
    "States.Array('][', $['n'], '].[')": ["][", 5, "].["],
}

VALUES = {
    "States.Base64Encode('größe')": "Z3LDtsOfZQ==",
    "States.Base64Decode('Z3LDtsOfZQ==')": "größe",
    "States.Base64Decode($.mail)": "größe",
    "States.ArrayUnique(States.Array($.grid, 1, true, $.grid, 0, false, 1, null, null))": [
        INPUT["grid"],
        1,
        True,
        0,
        False,
        None,
    ],
    "States.ArrayContains(States.Array(1, 2), true)": False,
    "States.ArrayContains($.detail.lines, $.detail.lines[1])": True,
    "States.ArrayRange(9, 1, -3)": [9, 6, 3],
    "States.ArrayRange(1, 9, 2)": [1, 3, 5, 7, 9],
    "States.ArrayRange(2, 1, 1)": [],
}
NO_VALUES = (
    "States.Base64Encode($.n)",
    "States.Base64Decode('Z3L')",
    "States.ArrayUnique($.n)",
    "States.ArrayContains($.n, 1)",
    "States.ArrayRange(1, 9, 0)",
    "States.ArrayRange(1, 1002, 1)",
)


@pytest.fixture(scope="module")
def workflows(small_stack):
    return Workflows(small_stack)


def test_a_backslash_stands_before_a_reserved_character(workflows):
    """Also in a nested call. In what a path reads, no character is reserved."""
    assert list(TEXTS.values()) == answers(workflows, TEXTS)


def test_a_path_in_a_call_is_read_to_its_end(workflows):
    """With all of its steps in brackets, names and indexes."""
    assert list(PATHS.values()) == answers(workflows, PATHS)


def test_values_are_those_of_json(workflows):
    """Text in any alphabet, true that is not 1, and arrays and objects that can be equal."""
    assert list(VALUES.values()) == answers(workflows, VALUES)


@pytest.mark.parametrize("call", NO_VALUES)
def test_a_value_that_a_function_does_not_take_fails_the_execution(workflows, call):
    """And not the engine."""
    found = workflows.run({"Make": {"Type": "Pass", "Parameters": {"made.$": call}, "End": True}}, INPUT)
    assert "FAILED" == found["status"]


def test_numbers_booleans_and_null(workflows):
    """With a fraction, or an exponent. Source: Amazon States Language, Appendix B, States.Array."""
    calls = {
        "States.Array(1.5, -0.25, 1e3, 2, true)": [1.5, -0.25, 1000.0, 2, True],
        "States.Array('null', 2020, $.n,null, $.said.null)": ["null", 2020, 5, None, 0],
        "States.Array($$.Execution.Input.said['null'], null)": [0, None],
    }
    assert list(calls.values()) == answers(workflows, calls)


def answers(workflows, calls):
    """What the calls give, in their order."""
    fields = {f"v{number}.$": call for number, call in enumerate(calls)}
    found = workflows.run({"Read": {"Type": "Pass", "Parameters": fields, "End": True}}, INPUT)
    output = json.loads(found["output"])
    return [output[f"v{number}"] for number in range(len(calls))]


@pytest.mark.parametrize(
    "call",
    [
        r"States.Format('a\qb {}', $.n)",
        r"States.Array('a\n')",
        "States.Format('{ {}', $.n)",
        "States.Format('{} {}', $.n)",
    ],
)
def test_what_is_not_escaped_fails_the_execution(workflows, call):
    """As an open escape does on AWS, and a brace or a value too few."""
    found = workflows.run({"Read": {"Type": "Pass", "Parameters": {"v.$": call}, "End": True}}, INPUT)
    assert ("FAILED", "States.Runtime") == (found["status"], found["error"])


@pytest.mark.parametrize(
    "call",
    [
        "States.Array($.n 5)",
        "States.Array($.n[0)",
        "States.Array($.n])",
        "States.Array($.n",
        "States.Array('a)",
    ],
)
def test_what_cannot_be_read_is_refused(workflows, call):
    """As AWS refuses it, and not read as far as it goes."""
    with pytest.raises(ClientError, match="call of an intrinsic function") as refused:
        workflows.run({"Read": {"Type": "Pass", "Parameters": {"v.$": call}, "End": True}}, INPUT)
    assert "InvalidDefinition" == refused.value.response["Error"]["Code"]
