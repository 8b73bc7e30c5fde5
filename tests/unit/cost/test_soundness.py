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
CHOOSING, WRITING = ["C0", "C1"], ["W0", "W1", "W2"]
VALUES = [1, 2, "t"]
RESULT_PATHS = st.sampled_from(["$.a", "$.a", "$.a.Error", None])
COMPARISONS: list[dict[str, Any]] = [
    {"Variable": "$.a", "NumericEquals": 1},
    {"Variable": "$.a", "NumericEquals": 2},
    {"Variable": "$.a.Error", "IsPresent": True},
    {"Variable": "$.a.Error", "IsString": True},
]
ANYWHERE = st.sampled_from([*WRITING, "End"])
TO_A_CHOICE = st.sampled_from(CHOOSING)
CHOICES = st.builds(
    lambda rules, default: {"Type": "Choice", "Choices": rules, "Default": default},
    st.lists(
        st.builds(lambda rule, target: {**rule, "Next": target}, st.sampled_from(COMPARISONS), ANYWHERE),
        min_size=1,
        max_size=2,
    ),
    ANYWHERE,
)
PASSES = st.builds(
    lambda result, at, target: {"Type": "Pass", "Result": result, "ResultPath": at, "Next": target},
    st.sampled_from(VALUES),
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
MACHINES = st.builds(
    lambda writing, choosing: machine(
        **dict(zip(WRITING, writing, strict=True)), **dict(zip(CHOOSING, choosing, strict=True)), End=END
    ),
    st.lists(st.one_of(PASSES, TASKS), min_size=3, max_size=3),
    st.lists(CHOICES, min_size=2, max_size=2),
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
        if state["Type"] == "Task":
            result = data.draw(st.sampled_from(VALUES), label=f"result of {name}")
            if data.draw(st.booleans(), label=f"{name} fails"):
                writer = state["Catch"][0]
                error = (
                    "Late" if writer["ErrorEquals"] == ["Late"] else data.draw(st.sampled_from([None, "X"]))
                )
                result = {"Error": error, "Cause": None}
        document = written(document, writer["ResultPath"], result)
        name = writer["Next"]
    raise StopError


def is_true(rule: Mapping[str, Any], document: Any) -> bool:
    if "Not" in rule:
        return not is_true(rule["Not"], document)
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
    for depth in range(max(map(len, loops.values()))):
        parts = itertools.groupby(names, key=lambda name: loops[name][: depth + 1])
        names = []
        for around, those in parts:
            part = list(those)
            places = [place for place, name in enumerate(part) if around[depth:] == (name,)]
            names += part[: places[1]] + part[places[-1] :] if len(places) > 2 else part
    return tuple(names)
