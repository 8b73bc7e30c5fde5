"""Whatever way an execution goes, cost has it among its paths."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from steponce.cost.definition import ways_of_catch, ways_on
from steponce.cost.loops import loops_of
from tests.counting.comparing import all_paths
from tests.counting.drives import Drive

from .definitions import END, WRITE, machine

MOST_STEPS = 30
CHOOSING, WRITING, ENDS = ["C0", "C1"], ["W0", "W1", "W2"], ["Good", "Bad"]
VALUES = [1, 2, "t", {"n": 1}]
ERRORS = ["Late", "Other", None]
"""None is an error without a name, or without a cause."""
RESULT_PATHS = st.sampled_from(["$.a", "$.a", "$.a.Error", None])
COMPARISONS: list[dict[str, Any]] = [
    {"Variable": "$.a", "NumericEquals": 1},
    {"Variable": "$.a", "NumericEquals": 2},
    {"Variable": "$.a.Error", "IsPresent": True},
    {"Variable": "$.a.Error", "IsString": True},
    {"Variable": "$.a.Error", "StringEquals": "Late"},
    {"Variable": "$.a.Cause", "IsString": True},
    {"Variable": "$.a.n", "NumericEquals": 2},
]
RULES = st.one_of(
    st.sampled_from(COMPARISONS),
    st.lists(st.sampled_from(COMPARISONS), min_size=2, max_size=2).map(lambda parts: {"And": parts}),
)
ANYWHERE = st.sampled_from([*WRITING, *ENDS, *ENDS])
TO_A_CHOICE = st.sampled_from(CHOOSING)
CHOICES = st.builds(
    lambda rules, default: {"Type": "Choice", "Choices": rules, "Default": default},
    st.lists(
        st.builds(lambda rule, target: {**rule, "Next": target}, RULES, ANYWHERE),
        min_size=1,
        max_size=3,
    ),
    ANYWHERE,
)
PASSES = st.builds(
    lambda result, at, target: {"Type": "Pass", "Result": result, "ResultPath": at, "Next": target},
    st.sampled_from(VALUES),
    RESULT_PATHS,
    TO_A_CHOICE,
)
COUNTS = st.builds(
    lambda target: {
        "Type": "Pass",
        "Parameters": {"n.$": "States.MathAdd($.a.n, 1)"},
        "ResultPath": "$.a",
        "Next": target,
    },
    TO_A_CHOICE,
)
FAILS = st.builds(
    lambda error, cause: {
        "Type": "Fail",
        **({"Error": error} if error else {}),
        **({"Cause": cause} if cause else {}),
    },
    st.sampled_from(ERRORS),
    st.sampled_from(["late", None]),
)
PARALLELS = st.builds(
    lambda inside, catches, at, target: {
        "Type": "Parallel",
        "Branches": inside,
        "Catch": [{"ErrorEquals": [name], "ResultPath": "$.a", "Next": to} for name, to in catches],
        "ResultPath": at,
        "Next": target,
    },
    st.lists(st.one_of(FAILS, st.just({**WRITE, "End": True})), min_size=1, max_size=2),
    st.one_of(
        st.tuples(st.tuples(st.sampled_from(["Late", "States.ALL"]), TO_A_CHOICE)),
        st.tuples(st.tuples(st.just("Late"), TO_A_CHOICE), st.tuples(st.just("States.ALL"), TO_A_CHOICE)),
    ),
    RESULT_PATHS,
    TO_A_CHOICE,
)
TASKS = st.builds(
    lambda name, at, caught, target: {
        **WRITE,
        "ResultPath": at,
        "Catch": [{"ErrorEquals": [name], "ResultPath": "$.a", "Next": caught}],
        "Next": target,
    },
    st.sampled_from(["Late", "States.ALL"]),
    RESULT_PATHS,
    TO_A_CHOICE,
    ANYWHERE,
)


def named(first: dict[str, Any], *others: dict[str, Any]) -> dict[str, Any]:
    """The machine of these states, those in branches included."""
    states = dict(zip(["Start", *WRITING, *CHOOSING], [{**first, "Next": WRITING[0]}, *others], strict=True))
    for name, state in states.items():
        if "Branches" in state:
            branches = [machine(**{f"{name}I{place}": one}) for place, one in enumerate(state["Branches"])]
            states[name] = {**state, "Branches": branches}
    return machine(**states, **dict.fromkeys(ENDS, END))


MACHINES = st.builds(
    named,
    PASSES,
    st.one_of(COUNTS, PARALLELS),
    *[st.one_of(PASSES, COUNTS, TASKS, PARALLELS)] * 2,
    *[CHOICES] * 2,
)


class StopError(Exception):
    """The execution fails where nothing catches it."""


@given(MACHINES, st.data())
def test_every_execution_takes_a_path_of_cost(definition: dict[str, Any], data: st.DataObject):
    """Also after many rounds of a loop, of which the path has the first and the last."""
    try:
        states = list(execution(definition, data))
    except StopError:
        return
    listed = {path.states for path in all_paths(Drive(json.dumps(definition)))}

    assert folded(definition, states) in listed


def execution(definition: dict[str, Any], data: st.DataObject) -> Iterator[str]:
    """The states that are entered, by an interpreter as simple as these machines."""
    document: Any = data.draw(st.sampled_from([{}, {"a": 1}]), label="input")
    name = definition["StartAt"]
    for _ in range(MOST_STEPS):
        yield name
        state = definition["States"][name]
        if state["Type"] == "Succeed":
            return
        if state["Type"] == "Choice":
            name = next(
                (rule["Next"] for rule in state["Choices"] if is_true(rule, document)), state["Default"]
            )
            continue
        writer, result = state, state.get("Result")
        if "Parameters" in state:
            result = {"n": counted(document)}
        elif state["Type"] in ("Task", "Parallel"):
            inside = [one for branch in state.get("Branches", []) for one in branch["States"].items()]
            yield from (inner for inner, _ in inside)
            result = data.draw(st.sampled_from(VALUES), label=f"result of {name}")
            if errors := [error for one in inside or [(name, state)] for error in failures(*one, data)]:
                result = data.draw(st.sampled_from(errors), label=f"first error in {name}")
                writer = catcher(state, result)
        document = written(document, writer["ResultPath"], result)
        name = writer["Next"]
    raise StopError


def counted(document: Any) -> int:
    value = document.get("a") if isinstance(document, dict) else None
    number = value.get("n") if isinstance(value, dict) else None
    if not isinstance(number, int):
        raise StopError
    return number + 1


def failures(name: str, state: dict[str, Any], data: st.DataObject) -> Iterator[dict[str, Any]]:
    """What a Catch gets of a state, if it fails. Nobody knows what it gets where a Fail says nothing."""
    if state["Type"] == "Fail":
        missing = data.draw(st.sampled_from([{}, {"Error": "", "Cause": ""}, {"Error": None, "Cause": None}]))
        yield {**missing, **{key: state[key] for key in ("Error", "Cause") if key in state}}
    elif data.draw(st.booleans(), label=f"{name} fails"):
        error, cause = data.draw(st.tuples(st.sampled_from(ERRORS), st.sampled_from(["late", None])))
        yield {"Error": error, "Cause": cause}


def catcher(state: dict[str, Any], error: dict[str, Any]) -> dict[str, Any]:
    for one in state["Catch"]:
        if one["ErrorEquals"] in (["States.ALL"], [error.get("Error")]):
            return dict(one)
    raise StopError


def is_true(rule: Mapping[str, Any], document: Any) -> bool:
    if "And" in rule:
        return all(is_true(part, document) for part in rule["And"])
    (comparison,) = set(rule) - {"Variable", "Next"}
    found = [document]
    for name in rule["Variable"].split(".")[1:]:
        found = [one[name] for one in found if isinstance(one, dict) and name in one]
    if comparison == "IsPresent":
        return bool(found) == rule["IsPresent"]
    if not found:
        raise StopError
    (value,) = found
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if comparison.startswith("Is"):
        return isinstance(value, str) if comparison == "IsString" else is_number
    return bool(value == rule[comparison]) and not isinstance(value, bool)


def written(document: Any, path: str | None, result: Any) -> Any:
    if path is None:
        return document
    names = path.split(".")[1:]
    if not names:
        return result
    if not isinstance(document, dict):
        raise StopError
    name, rest = names[0], names[1:]
    inner = written(document.get(name, {}), ".".join(["$", *rest]), result) if rest else result
    return {**document, name: inner}


def folded(definition: dict[str, Any], names: list[str]) -> tuple[str, ...]:
    """Of the rounds of each loop the first and the last, beginning with the outermost loops."""
    states = definition["States"]
    onward = {name: [*ways_on(state), *ways_of_catch(state)] for name, state in states.items()}
    loops = loops_of(definition["StartAt"], onward)
    for name in list(loops):
        inside = [inner for branch in states[name].get("Branches", []) for inner in branch["States"]]
        loops |= dict.fromkeys(inside, loops[name])
    for depth in range(max(map(len, loops.values()))):
        parts = itertools.groupby(names, key=lambda name: loops[name][: depth + 1])
        names = []
        for around, those in parts:
            part = list(those)
            places = [place for place, name in enumerate(part) if around[depth:] == (name,)]
            names += part[: places[1]] + part[places[-1] :] if len(places) > 2 else part
    return tuple(names)
