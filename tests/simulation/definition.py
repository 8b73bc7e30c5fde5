"""
Runs the parts of the Amazon States Language that `run_once.asl.json` uses.

It is stricter than the embedded engine where AWS is: a path that finds nothing is `States.Runtime`, which
nothing catches, and so is a number where DynamoDB wants text.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Data = Any
"""JSON."""


class Failed(Exception):
    """A state has failed with an error that a Retry or a Catch may name."""

    def __init__(self, error: str, cause: str = "") -> None:
        super().__init__(error, cause)
        self.error, self.cause = error, cause


_RUNTIME = "States.Runtime"
_WORD = re.compile(r"\s*(?:(States\.\w+)\(|('(?:[^'\\]|\\.)*')|(-?\d+)|(\$\$?[\w.]*)|([,)]))")


def find(path: str, data: Data, context: Data) -> Data:
    """
    What a reference path finds in the state's data, or in the context object.

    Raises:
        Failed: it finds nothing.
    """
    found = context if path.startswith("$$") else data
    for part in path.lstrip("$").split(".")[1:]:
        if not isinstance(found, dict) or part not in found:
            raise Failed(_RUNTIME, f"{path} finds nothing")
        found = found[part]
    return found


def is_present(path: str, data: Data, context: Data) -> bool:
    """Whether a path finds anything."""
    try:
        find(path, data, context)
    except Failed:
        return False
    return True


def put(path: str | None, data: Data, value: Data) -> Data:
    """The data with a value put in at a ResultPath. None drops the value."""
    if path is None:
        return data
    if path == "$":
        return value
    first, _, rest = path.removeprefix("$.").partition(".")
    return {**data, first: put(f"$.{rest}", data.get(first, {}), value) if rest else value}


def evaluate(text: str, data: Data, context: Data) -> Data:
    """The value of a path or of an intrinsic function."""
    words = iter(_WORD.finditer(text))
    return _evaluate(next(words), words, data, context)


def _evaluate(word: re.Match[str], words: Iterator[re.Match[str]], data: Data, context: Data) -> Data:
    function, quoted, number, path, _ = word.groups()
    if function is None:
        if quoted is not None:
            return re.sub(r"\\(.)", r"\1", quoted[1:-1])
        return int(number) if number is not None else find(path, data, context)
    arguments = []
    for part in words:
        if part[5] == ")":
            break
        if part[5] != ",":
            arguments.append(_evaluate(part, words, data, context))
    try:
        return _FUNCTIONS[function](*arguments)
    except (TypeError, ValueError) as error:
        raise Failed("States.IntrinsicFailure", str(error)) from error


def _format(text: str, *values: Data) -> str:
    parts = text.split("{}")
    if len(parts) != len(values) + 1:
        raise ValueError(text)
    told = [value if isinstance(value, str) else json.dumps(value) for value in values]
    return "".join(part + value for part, value in zip(parts, [*told, ""], strict=True))


def _hash(text: str, algorithm: str) -> str:
    return hashlib.new(algorithm, text.encode(), usedforsecurity=False).hexdigest()


_FUNCTIONS: Mapping[str, Callable[..., Data]] = {
    "States.Array": lambda *items: list(items),
    "States.Format": _format,
    "States.Hash": _hash,
    "States.JsonToString": lambda value: json.dumps(value, separators=(",", ":")),
    "States.MathAdd": lambda one, other: one + other,
    "States.StringToJson": json.loads,
}


def render(template: Data, data: Data, context: Data) -> Data:
    """A payload template with its paths and intrinsic functions replaced."""
    if isinstance(template, list):
        return [render(item, data, context) for item in template]
    if not isinstance(template, dict):
        return template
    return {
        name.removesuffix(".$"): evaluate(value, data, context)
        if name.endswith(".$")
        else render(value, data, context)
        for name, value in template.items()
    }


def expect_texts(arguments: Data) -> None:
    """Refuse attribute values that are no texts. In a state, AWS' N and S both take text."""
    if isinstance(arguments, dict):
        for name, value in arguments.items():
            if name in ("N", "S") and not isinstance(value, str):
                raise Failed(_RUNTIME, f"{name} is {value!r}")
            expect_texts(value)


def holds(rule: Mapping[str, Any], data: Data, context: Data) -> bool:
    """Whether a rule of a Choice holds."""
    if "And" in rule:
        return all(holds(one, data, context) for one in rule["And"])
    if "Or" in rule:
        return any(holds(one, data, context) for one in rule["Or"])
    if "Not" in rule:
        return not holds(rule["Not"], data, context)
    variable = rule["Variable"]
    (test,) = rule.keys() - {"Variable", "Next", "Comment"}
    wanted = rule[test]
    if test == "IsPresent":
        return is_present(variable, data, context) == wanted
    value = find(variable, data, context)
    if test.endswith("Path"):
        test, wanted = test.removesuffix("Path"), find(wanted, data, context)
    return _TESTS[test](value, wanted)


_TESTS: Mapping[str, Callable[[Data, Data], bool]] = {
    "BooleanEquals": lambda value, wanted: value is wanted,
    "IsString": lambda value, wanted: isinstance(value, str) == wanted,
    "NumericLessThan": lambda value, wanted: value < wanted,
    "StringEquals": lambda value, wanted: isinstance(value, str) and value == wanted,
    "StringGreaterThan": lambda value, wanted: isinstance(value, str) and value > wanted,
}


def choose(state: Mapping[str, Any], data: Data, context: Data) -> str:
    """The state that a Choice leads to."""
    for rule in state["Choices"]:
        if holds(rule, data, context):
            return str(rule["Next"])
    if "Default" not in state:
        raise Failed("States.NoChoiceMatched")
    return str(state["Default"])


def matches(names: list[str], error: str) -> bool:
    """Whether ErrorEquals names an error. `States.Runtime` is caught by nothing."""
    if error == _RUNTIME:
        return False
    return (
        error in names
        or "States.ALL" in names
        or ("States.TaskFailed" in names and error != "States.Timeout")
    )
