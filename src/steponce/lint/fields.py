"""What one state of a definition may say, by its type and its query language."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from steponce.workflow import LONGEST_TIMEOUT

JSONPATH = "JSONPath"
JSONATA = "JSONata"

_COMMON = {"Type", "Comment", "QueryLanguage"}
_STEP = {"Next", "End", "Assign"}
_OF_TYPE = {
    "Task": _STEP | {"Resource", "Credentials", "Retry", "Catch", "TimeoutSeconds", "HeartbeatSeconds"},
    "Pass": _STEP,
    "Wait": _STEP | {"Seconds", "Timestamp"},
    "Choice": {"Choices", "Default", "Assign"},
    "Succeed": set(),
    "Fail": {"Error", "Cause"},
    "Parallel": _STEP | {"Branches", "Retry", "Catch"},
    "Map": _STEP
    | {"ItemProcessor", "Iterator", "ItemReader", "ItemSelector", "ItemBatcher", "ResultWriter", "Label"}
    | {"Retry", "Catch", "MaxConcurrency", "ToleratedFailureCount", "ToleratedFailurePercentage"},
}
_OUTPUT = {"Output"}
_IN_JSONATA = {
    "Task": _OUTPUT | {"Arguments"},
    "Pass": _OUTPUT,
    "Wait": _OUTPUT,
    "Choice": _OUTPUT,
    "Succeed": _OUTPUT,
    "Fail": set(),
    "Parallel": _OUTPUT | {"Arguments"},
    "Map": _OUTPUT | {"Items"},
}
_PATHS = {"InputPath", "OutputPath"}
_RESULT = _PATHS | {"ResultPath", "Parameters", "ResultSelector"}
_IN_JSONPATH = {
    "Task": _RESULT | {"TimeoutSecondsPath", "HeartbeatSecondsPath"},
    "Pass": _PATHS | {"ResultPath", "Parameters", "Result"},
    "Wait": _PATHS | {"SecondsPath", "TimestampPath"},
    "Choice": _PATHS,
    "Succeed": _PATHS,
    "Fail": {"ErrorPath", "CausePath"},
    "Parallel": _RESULT,
    "Map": _RESULT
    | {"ItemsPath", "MaxConcurrencyPath", "ToleratedFailureCountPath", "ToleratedFailurePercentagePath"},
}
_RETRIER = {
    "ErrorEquals",
    "IntervalSeconds",
    "MaxAttempts",
    "BackoffRate",
    "MaxDelaySeconds",
    "JitterStrategy",
}
_CATCHER = {"ErrorEquals", "Next", "Assign"}
_KINDS = ("String", "Numeric", "Timestamp")
_ORDERS = ("Equals", "LessThan", "GreaterThan", "LessThanEquals", "GreaterThanEquals")
_COMPARISONS = (
    {f"{kind}{order}{end}" for kind in _KINDS for order in _ORDERS for end in ("", "Path")}
    | {"BooleanEquals", "BooleanEqualsPath", "StringMatches"}
    | {f"Is{kind}" for kind in ("Null", "Present", "Numeric", "String", "Boolean", "Timestamp")}
)
_FUNCTIONS = {
    *("Array", "ArrayContains", "ArrayGetItem", "ArrayLength", "ArrayPartition", "ArrayRange", "ArrayUnique"),
    *("Base64Decode", "Base64Encode", "Format", "Hash", "JsonMerge", "JsonToString", "MathAdd", "MathRandom"),
    *("StringSplit", "StringToJson", "UUID"),
}
_TEXT_IN_FUNCTION = re.compile(r"'(?:[^'\\]|\\.)*'?")


def state_complaints(state: dict[str, Any], language: str) -> Iterator[str]:
    """Why AWS would refuse this state, whatever is around it."""
    kind = state.get("Type")
    if not isinstance(kind, str) or kind not in _OF_TYPE:
        yield f"Type must be one of {', '.join(_OF_TYPE)}, and is {kind!r}."
        return
    spoken = _IN_JSONATA if language == JSONATA else _IN_JSONPATH
    for field in sorted(set(state) - _COMMON - _OF_TYPE[kind] - spoken[kind]):
        yield f"a {kind} state in {language} has no field {field!r}."
    yield from _way_on(state, kind)
    yield from _one_of_each(state)
    yield from _handlers(state, language)
    if language != JSONATA:
        yield from _paths(state)
        yield from _templates(state)
    check = _CHECKS.get(kind)
    if check:
        yield from check(state, language)


def _way_on(state: dict[str, Any], kind: str) -> Iterator[str]:
    if "Next" not in _OF_TYPE[kind]:
        return
    ends = state.get("End")
    if "End" in state and not isinstance(ends, bool):
        yield f"End must be true, and is {ends!r}."
    elif ("Next" in state) == (ends is True):
        yield "it needs either Next or End, and not both."
    elif "Next" in state and not isinstance(state["Next"], str):
        yield "Next must be a state's name."


def _one_of_each(state: dict[str, Any]) -> Iterator[str]:
    """A value, or the path to it."""
    for field in sorted(set(state) - {"Result"}):
        if f"{field}Path" in state:
            yield f"{field} and {field}Path exclude each other."


def _handlers(state: dict[str, Any], language: str) -> Iterator[str]:
    catcher = _CATCHER | {"Output" if language == JSONATA else "ResultPath"}
    for key, fields in (("Retry", _RETRIER), ("Catch", catcher)):
        parts = state.get(key, [])
        if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
            yield f"{key} must be a list of objects."
            continue
        for place, part in enumerate(parts):
            where = f"{key}[{place}]"
            for field in sorted(set(part) - fields - {"Comment"}):
                yield f"{where} in {language} has no field {field!r}."
            names = part.get("ErrorEquals")
            if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
                yield f"{where}: ErrorEquals must be a list of names, and not empty."
            if key == "Catch" and not isinstance(part.get("Next"), str):
                yield f"{where}: Next must be a state's name."
            if key == "Retry":
                yield from _retrier(part, where)


def _retrier(retrier: dict[str, Any], where: str) -> Iterator[str]:
    for field, least, most in (
        ("IntervalSeconds", 1, LONGEST_TIMEOUT),
        ("MaxAttempts", 0, LONGEST_TIMEOUT),
        ("MaxDelaySeconds", 1, 31_622_400),
    ):
        if not _is_whole(retrier.get(field, least), least, most):
            given = retrier[field]
            yield f"{where}: {field} must be a whole number from {least} to {most:,}, and is {given!r}."
    rate = retrier.get("BackoffRate", 1)
    if not isinstance(rate, int | float) or isinstance(rate, bool) or rate < 1:
        yield f"{where}: BackoffRate must be a number from 1 on, and is {rate!r}."
    if retrier.get("JitterStrategy", "FULL") not in ("FULL", "NONE"):
        yield f"{where}: JitterStrategy must be FULL or NONE, and is {retrier['JitterStrategy']!r}."


def _paths(state: dict[str, Any]) -> Iterator[str]:
    for field in sorted(state):
        if not field.endswith("Path"):
            continue
        value = state[field]
        if field in ("InputPath", "OutputPath", "ResultPath") and value is None:
            continue
        may_call = field in ("ErrorPath", "CausePath")
        if not isinstance(value, str) or not (value.startswith("$") or (may_call and _is_call(value))):
            yield f"{field} must be a path, which begins with $, and is {value!r}."
        elif field == "ResultPath" and value.startswith("$$"):
            yield "ResultPath cannot write to the context object."


def _templates(state: dict[str, Any]) -> Iterator[str]:
    for key in ("Parameters", "ResultSelector", "ItemSelector", "Assign"):
        for field, value in _marked(state.get(key)):
            if not isinstance(value, str) or not (value.startswith("$") or _is_call(value)):
                yield f"{key}: {field!r} must be a path or a call of an intrinsic function, and is {value!r}."


def _marked(value: Any) -> Iterator[tuple[str, Any]]:
    """The fields of a template that are read at run time."""
    if isinstance(value, list):
        for part in value:
            yield from _marked(part)
    elif isinstance(value, dict):
        for key, part in value.items():
            if key.endswith(".$"):
                yield key, part
            else:
                yield from _marked(part)


def _is_call(text: str) -> bool:
    """Whether it is a call of functions that exist, its parentheses closed."""
    code = _TEXT_IN_FUNCTION.sub("''", text)
    called = re.findall(r"States\.(\w+)\s*\(", code)
    closed = code.count("(") == code.count(")") and "'" not in code.replace("''", "")
    return text.startswith("States.") and code.rstrip().endswith(")") and closed and {*called} <= _FUNCTIONS


def _task(state: dict[str, Any], language: str) -> Iterator[str]:
    resource = state.get("Resource")
    if not isinstance(resource, str) or not resource.startswith("arn:"):
        yield f"Resource must be an ARN, and is {resource!r}."
    for field in ("TimeoutSeconds", "HeartbeatSeconds"):
        value = state.get(field, 1)
        if not _is_whole(value, 1, LONGEST_TIMEOUT) and not _is_expression(value, language):
            yield f"{field} must be a whole number from 1 to {LONGEST_TIMEOUT:,}, and is {value!r}."


def _choice(state: dict[str, Any], language: str) -> Iterator[str]:
    rules = state.get("Choices")
    if not isinstance(rules, list) or not rules or not all(isinstance(rule, dict) for rule in rules):
        yield "Choices must be a list of rules, and not empty."
        return
    if not isinstance(state.get("Default", ""), str):
        yield "Default must be a state's name."
    for place, rule in enumerate(rules):
        where = f"Choices[{place}]"
        if not isinstance(rule.get("Next"), str):
            yield f"{where}: Next must be a state's name."
        rest = {key: part for key, part in rule.items() if key not in ("Next", "Comment", "Assign", "Output")}
        if language != JSONATA and "Output" in rule:
            yield f"{where} in {language} has no field 'Output'."
        if language != JSONATA:
            yield from _test(rest, where)
        elif set(rest) != {"Condition"}:
            yield f"{where}: a rule in {JSONATA} has a Condition, and no test beside it."


def _test(test: Any, where: str) -> Iterator[str]:
    """One test of a rule, with the tests inside."""
    if not isinstance(test, dict):
        yield f"{where}: a test must be an object."
        return
    fields = set(test) - {"Comment"}
    if len(fields) == 1 and fields <= {"And", "Or"}:
        (key,) = fields
        parts = test[key]
        if not isinstance(parts, list) or not parts:
            yield f"{where}: {key} must be a list of tests, and not empty."
            return
        for place, part in enumerate(parts):
            yield from _test(part, f"{where}.{key}[{place}]")
    elif fields == {"Not"}:
        yield from _test(test["Not"], f"{where}.Not")
    elif "Variable" not in fields or len(fields) != 2 or not fields - {"Variable"} <= _COMPARISONS:
        yield f"{where}: a test is And, Or, Not, or a Variable with one comparison, and has {sorted(fields)}."
    else:
        yield from _comparison(test, where)


def _comparison(test: dict[str, Any], where: str) -> Iterator[str]:
    variable = test["Variable"]
    if not isinstance(variable, str) or not variable.startswith("$"):
        yield f"{where}: Variable must be a path, which begins with $, and is {variable!r}."
    (operator,) = set(test) - {"Variable", "Comment"}
    value = test[operator]
    kind: type | tuple[type, ...] = str
    if operator.startswith("Is") or operator == "BooleanEquals":
        kind = bool
    elif operator.startswith("Numeric") and not operator.endswith("Path"):
        kind = (int, float)
    if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
        yield f"{where}: {operator} cannot be {value!r}."


def _wait(state: dict[str, Any], language: str) -> Iterator[str]:
    given = [key for key in ("Seconds", "SecondsPath", "Timestamp", "TimestampPath") if key in state]
    if len(given) != 1:
        yield f"it needs one of Seconds, SecondsPath, Timestamp and TimestampPath, and has {given}."
    seconds = state.get("Seconds", 1)
    if not _is_whole(seconds, 0, LONGEST_TIMEOUT) and not _is_expression(seconds, language):
        yield f"Seconds must be a whole number up to {LONGEST_TIMEOUT:,}, and is {seconds!r}."


def _map(state: dict[str, Any], language: str) -> Iterator[str]:
    inside = [key for key in ("ItemProcessor", "Iterator") if key in state]
    if len(inside) != 1 or not isinstance(state[inside[0]], dict):
        yield f"it needs an ItemProcessor, an object, and has {inside}."
    for field in ("ItemReader", "ItemBatcher", "ResultWriter"):
        if not isinstance(state.get(field, {}), dict):
            yield f"{field} must be an object."
    most = state.get("MaxConcurrency", 0)
    if not _is_whole(most, 0, 2**31 - 1) and not _is_expression(most, language):
        yield f"MaxConcurrency must be a whole number from 0 on, and is {most!r}."


def _parallel(state: dict[str, Any], _language: str) -> Iterator[str]:
    branches = state.get("Branches")
    if not isinstance(branches, list) or not branches or not all(isinstance(one, dict) for one in branches):
        yield "Branches must be a list of state machines, and not empty."


def _fail(state: dict[str, Any], _language: str) -> Iterator[str]:
    for field in ("Error", "Cause"):
        if not isinstance(state.get(field, ""), str):
            yield f"{field} must be text, and is {state[field]!r}."


_CHECKS = {
    "Task": _task,
    "Choice": _choice,
    "Wait": _wait,
    "Map": _map,
    "Parallel": _parallel,
    "Fail": _fail,
}


def _is_whole(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _is_expression(value: Any, language: str) -> bool:
    """Whether JSONata works it out at run time."""
    return language == JSONATA and isinstance(value, str) and value.startswith("{%") and value.endswith("%}")
