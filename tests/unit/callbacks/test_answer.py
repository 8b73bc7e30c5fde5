"""What an answer may be, when two are the same, and that no message tells what was in one."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steponce.callbacks.answer import ERROR_LIMIT, OUTPUT_LIMIT, Answer
from steponce.errors import InvalidAnswer, OutputTooLarge
from steponce.request.canonical import MAX_DEPTH
from steponce.workflow import CAUSE_LIMIT, DUPLICATE_REFUSED

PRIVATE = "4242-4242"

NO_OUTCOME = "An answer is a JSON object whose outcome is success, failure or heartbeat."
MALFORMED: list[tuple[Any, str]] = [
    (None, NO_OUTCOME),
    ([], NO_OUTCOME),
    ("success", NO_OUTCOME),
    ({}, NO_OUTCOME),
    ({"output": PRIVATE}, NO_OUTCOME),
    ({"outcome": "Success", "output": PRIVATE}, NO_OUTCOME),
    ({"outcome": None}, NO_OUTCOME),
    ({"outcome": ["success"]}, NO_OUTCOME),
    ({"outcome": {"success": PRIVATE}}, NO_OUTCOME),
    ({"outcome": "success"}, "An answer of success needs an output; null is one."),
    ({"outcome": "success", "result": PRIVATE}, "An answer of success has no field 'result'."),
    ({"outcome": "success", "output": 1, "error": PRIVATE}, "An answer of success has no field 'error'."),
    ({"outcome": "failure", "output": PRIVATE}, "An answer of failure has no field 'output'."),
    ({"outcome": "heartbeat", "output": PRIVATE}, "An answer of heartbeat has no field 'output'."),
    ({"outcome": "heartbeat", "x" * 99: 1}, f"An answer of heartbeat has no field '{'x' * 40}'."),
    ({"outcome": "failure", "error": 0}, "The error is text, or absent."),
    ({"outcome": "failure", "error": [PRIVATE]}, "The error is text, or absent."),
    ({"outcome": "failure", "cause": {"a": PRIVATE}}, "The cause is text, or absent."),
    (
        {"outcome": "failure", "error": f"{PRIVATE}\ud800"},
        "error holds half a character (a lone surrogate). Send whole text.",
    ),
    (
        {"outcome": "failure", "cause": f"{PRIVATE}\ud800"},
        "cause holds half a character (a lone surrogate). Send whole text.",
    ),
    (
        {"outcome": "success", "output": [f"{PRIVATE}\ud800"]},
        "output[0] holds half a character (a lone surrogate). Send whole text.",
    ),
    (
        {"outcome": "success", "output": {"n": 2**53}},
        "output.n is beyond ±(2**53 - 1), where Step Functions would round it. Send it as text.",
    ),
    (
        {"outcome": "success", "output": float("nan")},
        "output is nan, which JSON cannot carry. Send null or text.",
    ),
]

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False, max_value=2.0**53 - 1, min_value=-(2.0**53) + 1)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def success(output: Any) -> Answer:
    """A success, parsed."""
    return Answer.parse({"outcome": "success", "output": output})


def failure(**fields: Any) -> Answer:
    """A failure, parsed."""
    return Answer.parse({"outcome": "failure"} | fields)


def nested(depth: int) -> Any:
    """A list in a list in a list."""
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(("body", "message"), MALFORMED)
def test_a_malformed_answer_is_refused_with_what_is_wrong(body: Any, message: str):
    """Each mistake has its message, and no message quotes a value of the answer."""
    with pytest.raises(InvalidAnswer) as refused:
        Answer.parse(body)

    assert message == str(refused.value)
    assert PRIVATE not in str(refused.value)


def test_an_output_nested_too_deeply_is_malformed():
    """What Python cannot walk is refused, not crashed on."""
    with pytest.raises(InvalidAnswer, match="output is nested too deeply"):
        success(nested(5000))


def test_a_deep_output_that_is_taken_can_be_read_again():
    """No answer gets into the record that cannot get out of it."""
    answer = success(nested(MAX_DEPTH - 1))

    assert answer == Answer.from_json(answer.to_json())
    assert f'{{"outcome":"success","output":{answer.output_json()}}}' == answer.to_json()


@pytest.mark.parametrize(
    ("body", "limit", "name"),
    [
        ({"outcome": "success", "output": "x" * (OUTPUT_LIMIT - 2)}, OUTPUT_LIMIT, "output"),
        ({"outcome": "success", "output": "é" * (OUTPUT_LIMIT // 2 - 1)}, OUTPUT_LIMIT, "output"),
        ({"outcome": "failure", "error": "é" * ERROR_LIMIT}, ERROR_LIMIT, "error"),
        ({"outcome": "failure", "cause": "é" * CAUSE_LIMIT}, CAUSE_LIMIT, "cause"),
    ],
)
def test_the_limits_hold_to_the_byte_and_to_the_character(body: dict[str, Any], limit: int, name: str):
    """An output may have 262,144 bytes, an error 256 characters, a cause 32,768; one more is too large."""
    Answer.parse(body)

    with pytest.raises(OutputTooLarge) as refused:
        Answer.parse(body | {name: body[name] + "x"})

    assert f"The {name} has {limit + 1:,} " in str(refused.value)
    assert "xx" not in str(refused.value)


def test_the_limits_are_those_of_step_functions():
    """The numbers stand in the API's model."""
    assert (262_144, 256, 32_768) == (OUTPUT_LIMIT, ERROR_LIMIT, CAUSE_LIMIT)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (1, 1.0),
        ({"amount": -0.0}, {"amount": 0}),
        ([1e3], [1000]),
        ("é", json.loads('"\\u00e9"')),
    ],
)
def test_answers_that_mean_the_same_are_the_same(one: Any, other: Any):
    """Neither the order of keys nor the spelling of a number or text makes another answer."""
    assert success(one) == success(other)
    assert 1 == len({success(one), success(other)})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (success(1), success("1")),
        (success(1), success(True)),
        (success(0), success(False)),
        (success(None), success({})),
        (success([1, 2]), success([2, 1])),
        (success("\u00e9"), success("e\u0301")),
        (success(None), failure()),
        (failure(), Answer.parse({"outcome": "heartbeat"})),
        (failure(error="x"), failure(cause="x")),
        (failure(error="x"), failure()),
    ],
)
def test_answers_that_mean_something_else_are_not_the_same(one: Answer, other: Answer):
    """Python's equality would take True for 1; JSON does not."""
    assert one != other


@pytest.mark.parametrize(
    "error",
    [
        *("States.Timeout", "RetryLater", "LimitChanged", "PayloadMismatch", "RateLimited"),
        *(DUPLICATE_REFUSED, "Cancelled"),
        *("ResultNotKept", "ResultTooLarge", "Function.ResponseSizeTooLarge"),
    ],
)
def test_an_answer_cannot_use_the_workflows_own_error_names(error: str):
    """It would be taken for the refusal of a duplicate, for example, or for work that is done."""
    with pytest.raises(InvalidAnswer, match="Use a name of your own"):
        failure(error=error)


@pytest.mark.parametrize("nothing", [{}, {"error": None}, {"error": ""}, {"error": "", "cause": None}])
def test_an_empty_error_is_no_error(nothing: dict[str, Any]):
    """Step Functions hands an empty text to a Catch for what was not given, so they cannot differ."""
    assert Answer("failure") == failure(**nothing)


@given(json_values)
def test_a_success_survives_its_record(output: Any):
    """What is read from the record is the same answer, and sends the same output."""
    answer = success(output)
    again = Answer.from_json(answer.to_json())

    assert (answer.to_json(), answer.output_json()) == (again.to_json(), again.output_json())


@given(st.none() | st.text(max_size=9), st.none() | st.text(max_size=9))
def test_a_failure_survives_its_record(error: str | None, cause: str | None):
    """Error and cause are read as they were."""
    answer = failure(error=error, cause=cause)

    assert answer == Answer.from_json(answer.to_json())


@pytest.mark.parametrize(
    "foreign",
    [f"1{'0' * 30}", "1e400", '["\\ud800"]', '"\ud800"', '{"n": [1e300]}', "[" * 990 + "]" * 990],
)
def test_an_output_that_came_around_us_can_be_recorded(foreign: str):
    """Whoever holds the token may send what we would refuse; it is recorded, and is like none of ours."""
    answer = Answer.of_output(foreign)

    assert answer == Answer.from_json(answer.to_json()) == Answer.of_output(foreign)
    assert answer != Answer.of_output(f"[{foreign}]")
    assert ["notOnRecord"] == list(answer.output)


@pytest.mark.parametrize("text", ["\ud800", "whole \udfff"])
def test_a_failure_that_came_around_us_can_be_recorded(text: str):
    """Half a character is not lost, and makes no record that cannot be read."""
    answer = Answer("failure", error=text, cause=text)

    assert answer == Answer.from_json(answer.to_json())
    assert answer != failure(error="E")
    answer.to_json().encode()
