"""
What a path finds, and where a ResultPath puts a result.

AWS reads paths with Jayway's JsonPath. Its README says what is definite: a path without `..`,
`?(<expression>)` and `[<number>, <number>]`. All others, also those with `*` and `:`, find a list.
"""

import json

import pytest

from tests.unit.local.moto_patches.workflows import Workflows, put_task

INPUT = {
    "orders": [{"id": "o-1", "tags": ["a"]}, {"id": "o-2", "tags": []}],
    "one": [{"id": "o-1", "at": {"day": 1}}],
    "grid": [[6, 7], {"m": [8]}],
    "a.b": {"*": {"[0,1]": 9}},
    "null": None,
    "empty": [],
    "nothing": {},
    "text": "x",
    "@type": "order",
    "größe": {"2nd-item": {"3ds": 1, "支払う😀": [2], "20-10": 3}, "x.é": 0},
    "prices": [{"höhe": 2, "name": "x.é"}, {"höhe": 1.5, "name": "x"}],
    "wait": [{"seconds": 0}],
}
FOUND = {
    # Definite: the value, whatever it is.
    "$.orders[0]": INPUT["orders"][0],
    "$.orders[1].id": "o-2",
    "$.orders[-1].id": "o-2",
    "$['orders'][1]['id']": "o-2",
    "$.orders[0].tags": ["a"],
    "$.orders[0].tags[0]": "a",
    "$.orders[1].tags": [],
    "$.one[0].at.day": 1,
    "$.grid[0][1]": 7,
    "$.grid[1].m": [8],
    "$.grid[1]['m'][0]": 8,
    "$['a.b']['*']['[0,1]']": 9,
    '$["a.b"]["*"]': {"[0,1]": 9},
    "$.null": None,
    "$.empty": [],
    "$.@type": "order",
    # Any name may follow a dot.
    "$.größe": INPUT["größe"],
    "$.größe.2nd-item.3ds": 1,
    "$.größe.2nd-item.支払う😀[0]": 2,
    "$.größe['2nd-item'].20-10": 3,
    "$.größe['x.é']": 0,
    # Not definite: a list, also of one value or none.
    "$.orders[*].id": ["o-1", "o-2"],
    "$.one[*].id": ["o-1"],
    "$.one[*].at.day": [1],
    "$.one[0:1].at.day": [1],
    "$.orders[0,1].id": ["o-1", "o-2"],
    "$.orders[*].tags[0]": ["a"],
    "$.orders[?(@.id == 'o-1')].tags": [["a"]],
    "$.orders[?(@.id == 'o-1')].tags[0]": ["a"],
    "$..day": [1],
    "$.one[0].at.*": [1],
    "$.orders[?(@.id == 'o-3')]": [],
    "$.orders[?(@.id == 'o-3')].id": [],
    "$.prices[?(@.höhe > 1.5)].name": ["x.é"],
    "$.prices[?(@.name == 'x.é')].höhe": [2],
    "$.prices[?(@['name'] == 'x')].höhe": [1.5],
    "$..支払う😀": [[2]],
    "$..2nd-item.3ds": [1],
    "$.empty[0,1]": [],
    "$.empty[*].id": [],
    "$.nothing.*": [],
    "$..month": [],
}
ABSENT = [
    "$.orders[2]",
    "$.orders[-3].id",
    "$.orders[0].name",
    "$.one.id",
    "$.text[0]",
    "$.null.id",
    "$.absent[?(@.id == 'o-1')]",
    "$.text[?(@.id == 'o-1')]",
    "$.nothing[0,1]",
]


@pytest.fixture(scope="module")
def workflows(small_stack):
    return Workflows(small_stack)


def output_of(workflows, state):
    """What an execution of this one state ends with."""
    found = workflows.run({"Read": {"Type": "Pass", "End": True, **state}}, INPUT)
    assert "SUCCEEDED" == found["status"], found
    return json.loads(found["output"])


def test_a_definite_path_finds_a_value_and_another_one_a_list(workflows):
    """In the input and in the context object."""
    in_context = {f"{path}.$": f"$$.Execution.Input{path[1:]}" for path in FOUND}
    fields = {"input": {f"{path}.$": path for path in FOUND}, "context": in_context}
    assert {"input": FOUND, "context": FOUND} == output_of(workflows, {"Parameters": fields})


def test_an_intrinsic_function_finds_the_same(workflows):
    """In a call, a path reads as it does alone."""
    calls = {f"{path}.$": f"States.Array({path}, '$.größe')" for path in FOUND}
    found = {path: [value, "$.größe"] for path, value in FOUND.items()}
    assert found == output_of(workflows, {"Parameters": calls})


@pytest.mark.parametrize("path", ABSENT)
def test_a_place_that_is_absent_fails_the_execution(workflows, path):
    """Also where a path would choose from it; the cause names the path."""
    found = workflows.run({"Read": {"Type": "Pass", "Parameters": {"v.$": path}, "End": True}}, INPUT)
    assert "States.Runtime" == found["error"]
    assert f"The JSONPath '{path}' " in found["cause"]
    assert "could not be found in the input" in found["cause"]


def test_every_field_reads_the_same_value(workflows):
    """Input, output, items, results, times and rules."""
    path = "$.orders[1].id"
    echo = {"StartAt": "Echo", "States": {"Echo": {"Type": "Pass", "End": True}}}
    each = {"Type": "Map", "ItemProcessor": echo}
    assert "o-2" == output_of(workflows, {"InputPath": path})
    assert "o-2" == output_of(workflows, {"OutputPath": path})
    assert ["a"] == output_of(workflows, {**each, "ItemsPath": "$.orders[0].tags"})
    assert [] == output_of(workflows, {**each, "ItemsPath": "$.orders[1].tags"})
    assert {"v": "o-1"} == output_of(
        workflows, {**each, "ItemsPath": "$.orders", "ResultSelector": {"v.$": "$[0].id"}}
    )
    assert [{"v": "o-2"}] == output_of(
        workflows, {**each, "ItemsPath": "$.one", "ItemSelector": {"v.$": path}}
    )
    assert INPUT == output_of(workflows, {"Type": "Wait", "SecondsPath": "$.wait[0].seconds"})


@pytest.mark.parametrize(
    "rule",
    [
        {"Variable": "$.orders[0].id", "StringEquals": "o-1"},
        {"Variable": "$.text", "StringGreaterThanPath": "$.orders[0].id"},
        {"Variable": "$$.Execution.Input.orders[0].id", "StringEqualsPath": "$$.Execution.Input.one[0].id"},
        {"Not": {"Variable": "$.orders[2].id", "IsPresent": True}},
    ],
)
def test_a_choice_compares_the_value(workflows, rule):
    """On either side, in the input and in the context object."""
    choose = {"Type": "Choice", "Choices": [{**rule, "Next": "Right"}], "Default": "Wrong"}
    ends = {name: {"Type": "Pass", "Result": name, "End": True} for name in ("Right", "Wrong")}
    assert '"Right"' == workflows.run({"Choose": choose, **ends}, INPUT)["output"]


@pytest.mark.parametrize("result", [[1, 2], [], ["x"], 7, None, {"a": []}])
def test_a_result_goes_to_an_index_as_it_is(workflows, result):
    """Also a list, which is one value."""
    place = {"Result": result, "OutputPath": "$.orders"}
    assert [INPUT["orders"][0], result] == output_of(workflows, {**place, "ResultPath": "$.orders[1]"})
    with_tags = {"id": "o-2", "tags": result}
    assert with_tags == output_of(workflows, {**place, "ResultPath": "$.orders[1].tags"})[1]


def test_any_name_may_follow_a_dot_in_a_result_path(workflows):
    """Letters of any alphabet, and a digit at the beginning."""
    place = {"Result": 7, "ResultPath": "$.größe.3ds", "OutputPath": "$.größe.3ds"}
    assert 7 == output_of(workflows, place)


CHANGED = {"Type": "Pass", "Result": 7, "End": True}
TASK = {**put_task({"id": {"S": "paths"}}), "ResultSelector": {"paid": True}}
ITEMS = {"StartAt": "Item", "States": {"Item": {**CHANGED, "ResultPath": "$.charge"}}}


@pytest.mark.parametrize("state", [CHANGED, TASK], ids=["Pass", "Task"])
@pytest.mark.parametrize(
    ("path", "payload"),
    [
        ("$.charge", None),
        ("$.order.charge", {"order": None}),
        ("$.orders[0].charge", {"orders": [None]}),
        ("$.charge", "text"),
        ("$.charge", 7),
        ("$.charge", True),
        ("$.order.charge", {"order": []}),
        ("$.order[0]", {"order": "text"}),
        ("$.order[0]", {"order": None}),
        ("$.order[0]", {"order": {"charge": 1}}),
    ],
)
def test_a_result_that_has_no_place_fails_the_execution(workflows, state, path, payload):
    """Over a null it was dropped, and the execution succeeded without it."""
    states = {"Before": {"Type": "Pass", "InputPath": "$.payload", "Next": "Put"}}
    found = workflows.run({**states, "Put": {**state, "ResultPath": path}}, {"payload": payload})
    assert "States.ResultPathMatchFailure" == found["error"]
    assert f"The ResultPath '{path}' cannot be applied" in found["cause"]


def test_the_result_of_an_item_that_is_null_has_no_place(workflows):
    """A Catch takes the error by its name."""
    each = {"Type": "Map", "ItemsPath": "$.items", "ItemProcessor": ITEMS, "End": True}
    catch = [{"ErrorEquals": ["States.ResultPathMatchFailure"], "ResultPath": "$.error", "Next": "Caught"}]
    found = workflows.run(
        {"Each": {**each, "Catch": catch}, "Caught": {"Type": "Pass", "End": True}}, {"items": [{}, None]}
    )
    assert "States.ResultPathMatchFailure" == json.loads(found["output"])["error"]["Error"]


def test_an_error_that_has_no_place_fails_the_execution(workflows):
    """A Catch whose ResultPath goes through a null is no handler."""
    catch = [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.error", "Next": "Caught"}]
    states = {
        "Before": {"Type": "Pass", "InputPath": "$.payload", "Next": "Fails"},
        "Fails": {**TASK, "Parameters": {"TableName": "absent", "Item": {"id": {"S": "x"}}}, "Catch": catch},
        "Caught": {"Type": "Pass", "End": True},
    }
    found = workflows.run(states, {"payload": None})
    assert "States.ResultPathMatchFailure" == found["error"]


@pytest.mark.parametrize(
    ("path", "payload", "expected"),
    [
        ("$", None, 7),
        (None, None, None),
        ("$.a", {"a": None}, {"a": 7}),
        ("$.a.b.c", {}, {"a": {"b": {"c": 7}}}),
        ("$.a[0]", {"a": [None]}, {"a": [7]}),
        ("$['a b']['c.d']", {}, {"a b": {"c.d": 7}}),
        ("$.größe", {"größe": 1}, {"größe": 7}),
    ],
)
def test_a_result_goes_to_a_place_that_is_there_or_can_be_made(workflows, path, payload, expected):
    """A null at the end of the way is replaced."""
    states = {"Before": {"Type": "Pass", "InputPath": "$.payload", "Next": "Put"}}
    found = workflows.run({**states, "Put": {**CHANGED, "ResultPath": path}}, {"payload": payload})
    assert expected == json.loads(found["output"])
