"""What one state of a definition may say, by its type and its query language."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from steponce.lint.asl import as_object
from steponce.lint.choices import choice_complaints
from steponce.lint.templates import jsonata_complaints, jsonpath_complaints, variable_complaints
from steponce.lint.values import (
    JSONATA,
    is_call,
    is_expression,
    is_path,
    is_single,
    is_timestamp,
    is_whole,
)
from steponce.workflow import LONGEST_TIMEOUT

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


_NOT_IN_LABELS = re.compile(r"[\s?*<>{}\[\]\"#%\\^|~`$&,;:/\x00-\x1f\x7f-\x9f]")
"""Source: the developer guide, Map state in Distributed mode, Label."""


def state_complaints(state: dict[str, Any], language: str) -> Iterator[str]:
    """Why AWS would refuse this state, whatever is around it."""
    kind = state.get("Type")
    if not isinstance(kind, str) or kind not in _OF_TYPE:
        yield f"Type must be one of {', '.join(_OF_TYPE)}, and is {kind!r}."
        return
    spoken = _IN_JSONATA if language == JSONATA else _IN_JSONPATH
    for field in sorted(set(state) - _COMMON - _OF_TYPE[kind] - spoken[kind]):
        yield f"a {kind} state in {language} has no field {field!r}."
    if not isinstance(state.get("Comment", ""), str):
        yield f"Comment must be text, and is {state['Comment']!r}."
    yield from _way_on(state, kind)
    yield from _one_of_each(state)
    yield from _handlers(state, language)
    yield from variable_complaints(state)
    if language == JSONATA:
        yield from jsonata_complaints(state)
    else:
        yield from _paths(state)
        yield from jsonpath_complaints(state)
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
        if not is_whole(retrier.get(field, least), least, most):
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
        if not is_path(value) and not (may_call and isinstance(value, str) and is_call(value)):
            yield f"{field} must be a path, which begins with $, and is {value!r}."
        elif field == "ResultPath" and value.startswith("$$"):
            yield "ResultPath cannot write to the context object."
        elif field == "ResultPath" and value[1:2] not in ("", ".", "["):
            yield f"ResultPath cannot write to a variable, and is {value!r}. Use Assign."
        elif field == "ResultPath" and not is_single(value):
            yield f"ResultPath must name one place, without wildcards and filters, and is {value!r}."


def _task(state: dict[str, Any], language: str) -> Iterator[str]:
    resource = state.get("Resource")
    if not isinstance(resource, str) or not resource.startswith("arn:"):
        yield f"Resource must be an ARN, and is {resource!r}."
    role = state.get("Credentials", {"RoleArn": ""})
    if not is_expression(role, language) and not {"RoleArn", "RoleArn.$"} & as_object(role).keys():
        yield "Credentials must be an object with a RoleArn."
    for field in ("TimeoutSeconds", "HeartbeatSeconds"):
        value = state.get(field, 1)
        if not is_whole(value, 1, LONGEST_TIMEOUT) and not is_expression(value, language):
            yield f"{field} must be a whole number from 1 to {LONGEST_TIMEOUT:,}, and is {value!r}."


def _wait(state: dict[str, Any], language: str) -> Iterator[str]:
    given = [key for key in ("Seconds", "SecondsPath", "Timestamp", "TimestampPath") if key in state]
    if len(given) != 1:
        yield f"it needs one of Seconds, SecondsPath, Timestamp and TimestampPath, and has {given}."
    time = state.get("Timestamp")
    if "Timestamp" in state and not is_timestamp(time) and not is_expression(time, language):
        yield f"Timestamp must be a time as 2026-11-27T09:30:00Z, and is {time!r}."
    seconds = state.get("Seconds", 1)
    if not is_whole(seconds, 0, LONGEST_TIMEOUT) and not is_expression(seconds, language):
        yield f"Seconds must be a whole number up to {LONGEST_TIMEOUT:,}, and is {seconds!r}."


def _map(state: dict[str, Any], language: str) -> Iterator[str]:
    inside = [key for key in ("ItemProcessor", "Iterator") if key in state]
    if len(inside) != 1 or not isinstance(state[inside[0]], dict):
        yield f"it needs an ItemProcessor, an object, and has {inside}."
    else:
        yield from _mode(state[inside[0]].get("ProcessorConfig", {}))
    if {"Parameters", "ItemSelector"} <= set(state):
        yield "Parameters and ItemSelector exclude each other. Parameters is the older name."
    for field in ("ItemReader", "ItemBatcher", "ResultWriter"):
        if not isinstance(state.get(field, {}), dict):
            yield f"{field} must be an object."
    yield from _one_of_each(as_object(state.get("ItemBatcher")))
    yield from _one_of_each(as_object(as_object(state.get("ItemReader")).get("ReaderConfig")))
    label = state.get("Label", "label")
    if not isinstance(label, str) or not 1 <= len(label) <= 40 or _NOT_IN_LABELS.search(label):
        yield f"Label must be text of 1 to 40 characters, without blanks and special ones, and is {label!r}."
    for field in ("MaxConcurrency", "ToleratedFailureCount"):
        most = state.get(field, 0)
        if not is_whole(most, 0, 2**31 - 1) and not is_expression(most, language):
            yield f"{field} must be a whole number from 0 on, and is {most!r}."
    share = state.get("ToleratedFailurePercentage", 0)
    if not _is_share(share) and not is_expression(share, language):
        yield f"ToleratedFailurePercentage must be a number from 0 to 100, and is {share!r}."


def _mode(config: Any) -> Iterator[str]:
    if not isinstance(config, dict):
        yield "ProcessorConfig must be an object."
        return
    mode = config.get("Mode", "INLINE")
    if mode not in ("INLINE", "DISTRIBUTED"):
        yield f"Mode must be INLINE or DISTRIBUTED, and is {mode!r}."
    kind = config.get("ExecutionType")
    if mode == "DISTRIBUTED" and kind not in ("STANDARD", "EXPRESS"):
        yield f"ExecutionType must be STANDARD or EXPRESS in a distributed Map, and is {kind!r}."


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 100


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
    "Choice": choice_complaints,
    "Wait": _wait,
    "Map": _map,
    "Parallel": _parallel,
    "Fail": _fail,
}
