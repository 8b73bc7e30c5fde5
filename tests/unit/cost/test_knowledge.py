"""What a path has fixed decides the Choices on it; what is not certain decides none."""

from __future__ import annotations

from typing import Any

import pytest

from steponce.cost import copies, estimate

from .definitions import END, FAIL, PASS, WRITE, last, machine, map_of, parallel, to

Definition = dict[str, Any]


def says(result: Any, at: str | None = "$.a", **fields: Any) -> Definition:
    return {"Type": "Pass", "Result": result, "ResultPath": at, **fields}


def rule(variable: str, **comparison: Any) -> Definition:
    return {"Variable": variable, **comparison}


def asks(*rules: Definition, **fields: Any) -> Definition:
    """The first rule leads to C, the second to D; the default is E."""
    choices = [{**one, "Next": target} for one, target in zip(rules, "CD", strict=False)]
    return {"Type": "Choice", "Choices": choices, "Default": "E", **fields}


def ends(first: Definition, *between: Definition, question: Definition) -> str:
    """Where a path may end that begins with these states, and then asks."""
    names = [f"S{place}" for place in range(1 + len(between))]
    states = {
        name: to(state, target)
        for name, state, target in zip(names, [first, *between], [*names[1:], "B"], strict=True)
    }
    paths = estimate(machine(**states, B=question, C=END, D=END, E=END)).listed
    return "".join(sorted(path.end for path in paths))


IS_THERE = rule("$.a", IsPresent=True)
ONE = rule("$.a.n", NumericEquals=1)
DECIDED: dict[str, tuple[Any, Definition, str]] = {
    "there": (1, IS_THERE, "C"),
    "null is there": (None, IS_THERE, "C"),
    "not there": ({}, rule("$.a.n", IsPresent=True), "E"),
    "not there, asked for": ({}, rule("$.a.n", IsPresent=False), "C"),
    "a text": ("t", rule("$.a", IsString=True), "C"),
    "no text": (1, rule("$.a", IsString=True), "E"),
    "a number": (1.5, rule("$.a", IsNumeric=True), "C"),
    "true is no number": (True, rule("$.a", IsNumeric=True), "E"),
    "true": (True, rule("$.a", BooleanEquals=True), "C"),
    "null": (None, rule("$.a", IsNull=True), "C"),
    "equal": ({"n": 1}, ONE, "C"),
    "not equal": ({"n": 2}, ONE, "E"),
    "less": (4, rule("$.a", NumericLessThan=5), "C"),
    "not less": (5, rule("$.a", NumericLessThan=5), "E"),
    "at most": (5, rule("$.a", NumericLessThanEquals=5), "C"),
    "more": (6, rule("$.a", NumericGreaterThan=5), "C"),
    "at least": (5, rule("$.a", NumericGreaterThanEquals=5), "C"),
    "the same text": ("t", rule("$.a", StringEquals="t"), "C"),
    "all of it": ({"n": 1}, {"And": [IS_THERE, ONE]}, "C"),
    "not all of it": ({"n": 2}, {"And": [ONE, rule("$.other", IsPresent=True)]}, "E"),
    "one of it": ({"n": 1}, {"Or": [rule("$.other", IsPresent=True), ONE]}, "C"),
    "not": ({"n": 1}, {"Not": ONE}, "E"),
}
OPEN: dict[str, tuple[Any, Definition]] = {
    "another place": (1, rule("$.b", IsPresent=True)),
    "a place in a list": ([1], rule("$.a[0]", NumericEquals=1)),
    "a value around it": (1, rule("$", IsPresent=True)),
    "the context": (1, rule("$$.Execution.Id", IsPresent=True)),
    "another kind": ("1", rule("$.a", NumericEquals=1)),
    "a kind of what is not there": ({}, rule("$.a.n", IsString=True)),
    "a placeholder": ("${Value}", rule("$.a", StringEquals="t")),
    "a placeholder in the rule": ("t", rule("$.a", StringEquals="${Value}")),
    "another comparison": ("t", rule("$.a", StringMatches="*")),
    "a path beside it": (1, rule("$.a", NumericEqualsPath="$.b")),
    "part of it": ({"n": 1}, {"And": [ONE, rule("$.other", IsPresent=True)]}),
}


@pytest.mark.parametrize(("result", "asked", "end"), DECIDED.values(), ids=DECIDED)
def test_a_choice_follows_what_a_pass_has_written(result: Any, asked: Definition, end: str):
    """The other ways are no paths."""
    assert end == ends(says(result), question=asks(asked))


@pytest.mark.parametrize(("result", "asked"), OPEN.values(), ids=OPEN)
def test_a_choice_goes_every_way_that_is_not_certain(result: Any, asked: Definition):
    """Rather too many paths than too few."""
    assert "CE" == ends(says(result), question=asks(asked))


def test_rules_are_asked_in_their_order():
    """One that may be true comes before one that is; nothing comes after that."""
    maybe = rule("$.b", IsPresent=True)

    assert "CD" == ends(says({"n": 1}), question=asks(maybe, ONE))
    assert "C" == ends(says({"n": 1}), question=asks(ONE, maybe))
    assert "DE" == ends(says({"n": 2}), question=asks(ONE, maybe))


def test_a_choice_with_another_input_goes_every_way():
    """Its rules ask what its InputPath has left."""
    assert "CE" == ends(says(1), question=asks(rule("$.a", NumericEquals=1), InputPath="$.b"))


def test_a_rule_that_an_earlier_one_includes_is_never_true():
    """What makes the later one true has made the earlier one true."""
    maybe, other = rule("$.b", IsPresent=True), rule("$.c", IsPresent=True)
    start = says({"n": 1})

    assert "CE" == ends(start, question=asks(maybe, {"And": [maybe, other]}))
    assert "CE" == ends(start, question=asks({"And": [other, maybe, ONE]}, {"And": [maybe, other]}))
    assert "CE" == ends(start, question=asks({**maybe, "Comment": "first"}, maybe))
    assert "CDE" == ends(start, question=asks({"And": [maybe, other]}, maybe))
    assert "CDE" == ends(start, question=asks({"Or": [maybe, other]}, maybe))
    random = {"Condition": "{% $random() < 0.5 %}"}
    assert "CDE" == ends(start, question=asks(random, random, QueryLanguage="JSONata"))


def test_a_choice_that_has_no_way_left_keeps_all():
    """The execution fails there, and the path is the beginning of these."""
    question = {"Type": "Choice", "Choices": [{**ONE, "Next": "C"}, {**ONE, "Next": "D"}]}

    assert "CD" == ends(says({"n": 2}), question=question)


BETWEEN: dict[str, tuple[Definition, str]] = {
    "a Wait": ({"Type": "Wait", "Seconds": 1}, "C"),
    "a Task beside it": (WRITE | {"ResultPath": "$.b"}, "C"),
    "a Task that leaves nothing": (WRITE | {"ResultPath": None}, "C"),
    "a Task": (WRITE, "CE"),
    "a Task in its place": (WRITE | {"ResultPath": "$.a"}, "CE"),
    "a Task inside of it": (WRITE | {"ResultPath": "$.a.n"}, "CE"),
    "a Task with another input": (WRITE | {"ResultPath": "$.b", "InputPath": "$.b"}, "CE"),
    "a Task with another output": (WRITE | {"ResultPath": "$.b", "OutputPath": "$.b"}, "CE"),
    "a place that is not read": (WRITE | {"ResultPath": "$.b[0]"}, "CE"),
    "another Pass": (says({"n": 2}), "E"),
    "a Pass for all": (says({"a": {"n": 1}}, "$"), "C"),
    "a Pass without a Result": (PASS, "CE"),
    "Parameters": ({"Type": "Pass", "Parameters": {"n": 2}, "ResultPath": "$.a"}, "E"),
    "Parameters beside a Result": (says({"n": 1}, Parameters={"n": 2}), "CE"),
    "Parameters that are paths": (
        {"Type": "Pass", "Parameters": {"n.$": "$.b", "m": [{"k.$": "$.b"}]}, "ResultPath": "$.a"},
        "CE",
    ),
    "JSONata": ({"Type": "Pass", "QueryLanguage": "JSONata", "Output": {}}, "CE"),
}


def test_a_rule_of_jsonata_may_change_what_there_is():
    """It has an output of its own, beside that of its Choice."""
    rules = [{"Condition": "{% true %}", "Output": {"a": {"n": 2}}, "Next": "B"}]
    choice = {"Type": "Choice", "QueryLanguage": "JSONata", "Choices": rules, "Default": "B"}
    states = {"A": to(says({"n": 1}), "S"), "S": choice, "B": asks(ONE)}

    paths = estimate(machine(**states, C=END, D=END, E=END)).listed
    assert {"C", "E"} == {path.end for path in paths}


@pytest.mark.parametrize(("between", "end"), BETWEEN.values(), ids=BETWEEN)
def test_what_is_known_lasts_as_long_as_it_is_certain(between: Definition, end: str):
    """Until a state may write there, or may leave out what there was."""
    assert end == ends(says({"n": 1}), between, question=asks(ONE))


def caught(errors: list[str], question: Definition, **fields: Any) -> str:
    """Where a path may end after this Catch."""
    catcher = {"ErrorEquals": errors, "ResultPath": "$.why", "Next": "B", **fields}
    task = {**WRITE, "Catch": [catcher], "End": True}
    found = estimate(machine(A=task, B=question, C=END, D=END, E=END)).listed
    return "".join(sorted(path.end for path in found if len(path.states) > 1))


NAMED, HAS_CAUSE = rule("$.why.Error", IsString=True), rule("$.why.Cause", IsString=True)
PLANTED = rule("$.why.Error", StringEquals="Planted")


def test_an_error_that_is_caught_by_its_name_has_a_name():
    """A token may be answered without one, which States.ALL gets. What the cause is nobody knows."""
    assert "C" == caught(["Late"], asks(NAMED))
    assert "CE" == caught(["Late"], asks(HAS_CAUSE))
    assert "C" == caught(["Late"], asks(rule("$.why.Error", StringEquals="Late")))
    assert "E" == caught(["Late"], asks(rule("$.why.Error", StringEquals="Early")))
    assert "CE" == caught(["Late", "Early"], asks(rule("$.why.Error", StringEquals="Late")))
    for unnamed in ("States.ALL", "States.TaskFailed", "${Errors}"):
        assert "CE" == caught(["Late", unnamed], asks(NAMED))
    assert "CE" == caught(["Late"], asks(NAMED), ResultPath=None)
    assert "C" == caught(["Late"], asks(rule("$.Error", IsPresent=True)), ResultPath="$")


def failed(question: Definition, *inside: Definition, names: tuple[str, ...] = ("States.ALL",)) -> str:
    """Where a path may end on which a branch has failed; each branch is one of these states."""
    branches = [machine(**{f"I{place}": state}) for place, state in enumerate(inside)]
    around = parallel(*branches) | {
        "Catch": [{"ErrorEquals": [name], "ResultPath": "$.why", "Next": "B"} for name in names]
    }
    found = estimate(machine(A=last(around), B=question, C=END, D=END, E=END)).listed
    return "".join(sorted(path.end for path in found if "B" in path.states))


def test_what_a_fail_says_is_known_where_it_is_caught():
    """Its Error and its Cause, if they are fixed. AWS does not say what is there if it has none."""
    both = FAIL | {"Cause": "A plan."}

    assert "C" == failed(asks(PLANTED), both) == failed(asks(HAS_CAUSE), both)
    assert "E" == failed(asks(rule("$.why.Error", StringEquals="Other")), both)
    assert "C" == failed(asks(NAMED), FAIL)
    assert "CE" == failed(asks(HAS_CAUSE), FAIL)
    for nameless in ({"Type": "Fail"}, {"Type": "Fail", "ErrorPath": "$.e"}, FAIL | {"Error": "${Name}"}):
        assert "CE" == failed(asks(NAMED), nameless)
    for without_cause in (FAIL | {"CausePath": "$.c"}, FAIL | {"Cause": "${Cause}"}, FAIL | {"Cause": ""}):
        assert "CE" == failed(asks(HAS_CAUSE), without_cause)
    assert "C" == failed(asks(HAS_CAUSE), {"Type": "Fail", "ErrorPath": "$.e", "Cause": "A plan."})


def test_the_first_of_several_failures_is_any_of_them():
    """What is known of all of them is known."""
    other = {"Type": "Fail", "Error": "Other", "Cause": "A plan."}

    assert "C" == failed(asks(NAMED), FAIL, other)
    assert "CE" == failed(asks(PLANTED), FAIL, other) == failed(asks(HAS_CAUSE), FAIL, other)
    assert "CE" == failed(asks(NAMED), FAIL, {"Type": "Fail"})
    assert "CE" == failed(asks(PLANTED), FAIL, last(WRITE)) == failed(asks(NAMED), FAIL, last(WRITE))


@pytest.mark.parametrize(("mode", "end"), [("INLINE", "C"), ("DISTRIBUTED", "CE")])
def test_a_distributed_map_has_a_failure_of_its_own(mode: str, end: str):
    """What its executions fail with is in their own histories."""
    each = map_of(machine(I=FAIL), Mode=mode, ExecutionType="STANDARD") | {
        "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.why", "Next": "B"}]
    }
    found = estimate(machine(A=last(each), B=asks(PLANTED), C=END, D=END, E=END)).listed

    assert end == "".join(sorted(path.end for path in found if "B" in path.states))


def test_what_a_catcher_leaves_is_known_to_the_next():
    """States.ALL leaves one error to those after it."""
    too_large = ("States.ALL", "States.DataLimitExceeded")
    branch = last(WRITE) | {"Catch": [{"ErrorEquals": ["States.ALL"], "Next": "X"}]}
    inside = machine(I=branch, X=last(PASS))
    around = parallel(inside) | {
        "Catch": [{"ErrorEquals": [name], "ResultPath": "$.why", "Next": "B"} for name in too_large]
    }
    found = estimate(machine(A=last(around), B=asks(NAMED), C=END, D=END, E=END)).listed

    assert {"A I B C", "A I X B C"} == {" ".join(path.states) for path in found if "B" in path.states}


def test_a_count_is_known():
    """States.MathAdd adds a fixed number to a known one; AWS rounds and refuses others."""

    def added(start: Any, expression: str) -> str:
        count = {"Type": "Pass", "Parameters": {"n.$": expression}, "ResultPath": "$.a"}
        return ends(says(start), count, question=asks(rule("$.a.n", NumericGreaterThanEquals=2)))

    assert "E" == added({"n": 0}, "States.MathAdd($.a.n, 1)")
    assert "C" == added({"n": 1}, "States.MathAdd($.a.n,1)")
    assert "E" == added({"n": 3}, "States.MathAdd($.a.n, -2)")
    for start in ({"n": 1.5}, {"n": True}, {"n": "1"}, {"m": 1}, {"n": 2**31 - 1}, {"n": 2**31}):
        assert "CE" == added(start, "States.MathAdd($.a.n, 1)")
    for expression in ("States.MathAdd($.a.n, $.b)", "States.MathAdd($$.a.n, 1)", "States.MathAdd(1, 1)"):
        assert "CE" == added({"n": 1}, expression)


def test_two_ways_to_one_state_know_what_both_know():
    """Either may have been taken."""
    named = rule("$.why.Error", IsString=True)
    catchers = [
        {"ErrorEquals": [name], "ResultPath": "$.why", "Next": "B"} for name in ("Late", "States.ALL")
    ]
    task = {**WRITE, "Catch": catchers, "End": True}

    found = estimate(machine(A=task, B=asks(named), C=END, D=END, E=FAIL)).listed

    assert {"A", "A B C", "A B E"} == {" ".join(path.states) for path in found}


def test_the_second_round_of_a_loop_stands_for_all_later_ones():
    """What the first one has written decides nothing in it."""
    definition = machine(
        A=to(says({"n": 1}), "B"),
        B=to(WRITE | {"ResultPath": None}, "Q"),
        Q={"Type": "Choice", "Choices": [{**ONE, "Next": "B"}], "Default": "E"},
        E=END,
    )

    assert {"A B Q B Q E"} == {" ".join(path.states) for path in estimate(definition).listed}


def test_too_much_that_could_be_known_is_not(monkeypatch: pytest.MonkeyPatch):
    """Then there are too many paths, and no more work than without it."""
    states: Definition = {}
    for place in range(4):
        states |= {
            f"Q{place}": {
                "Type": "Choice",
                "Choices": [rule(f"$.x{place}", IsPresent=True) | {"Next": f"A{place}"}],
                "Default": f"B{place}",
            },
            f"A{place}": to(says(1, f"$.y{place}"), f"Q{place + 1}"),
            f"B{place}": to(says(2, f"$.y{place}"), f"Q{place + 1}"),
        }
    states["Q4"] = asks({"And": [rule(f"$.y{place}", NumericEquals=1) for place in range(4)]})
    definition = machine(**states, C=END, E=END)

    monkeypatch.setattr(copies, "MOST", 16)
    assert 16 == estimate(definition).paths
    monkeypatch.setattr(copies, "MOST", 0)
    assert 32 == estimate(definition).paths
    monkeypatch.undo()
    assert 16 < estimate(definition).paths <= 32
