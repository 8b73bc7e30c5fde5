"""Every path through a definition is found, and what it uses is counted."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steponce.cost import Assumptions, CannotPrice, Estimate, Usage, estimate, paths

from .definitions import (
    CALL,
    END,
    FAIL,
    PASS,
    WRITE,
    catch,
    catches,
    choice,
    last,
    machine,
    map_of,
    parallel,
    to,
)

INNER = machine(W=last(WRITE))
INNER_CALL = machine(X=last(CALL))
NAMED_LATER = {"Type": "Fail", "ErrorPath": "$.error"}
NAMELESS = {"Type": "Fail"}
BY_TASKS = catches(B="States.TaskFailed", C="States.ALL")


def ways(definition: dict[str, Any], **options: Any) -> set[str]:
    """The states of each path, as `A B C`."""
    return {" ".join(path.states) for path in estimate(definition, **options).listed}


def usages(definition: dict[str, Any], **assumed: Any) -> dict[str, Usage]:
    found = estimate(definition, assumptions=Assumptions(**assumed))
    return {" ".join(path.states): path.usage for path in found.listed}


ENDS: list[tuple[str, dict[str, Any], set[str]]] = [
    ("Succeed", machine(A=END), {"A"}),
    ("Fail", machine(A=to(PASS, "B"), B=FAIL), {"A B"}),
    ("a Task", machine(A=last(WRITE)), {"A"}),
    ("a Pass", machine(A=last(PASS)), {"A"}),
    ("a Wait", machine(A=last({"Type": "Wait", "Seconds": 1})), {"A"}),
    ("a Parallel", machine(A=last(parallel(INNER, machine(X=END)))), {"A W X"}),
    ("a Map", machine(A=last(map_of(INNER))), {"A W"}),
    ("an Iterator", machine(A=last({"Type": "Map", "Iterator": INNER})), {"A W"}),
]


@pytest.mark.parametrize(("definition", "found"), [end[1:] for end in ENDS], ids=[end[0] for end in ENDS])
def test_a_path_ends_where_the_execution_ends(definition: dict[str, Any], found: set[str]):
    """In each form that a definition has for it."""
    assert found == ways(definition)


ROUTES: list[tuple[str, dict[str, Any], set[str]]] = [
    ("each rule and the default", machine(A=choice("B", default="C"), B=END, C=FAIL), {"A B", "A C"}),
    ("rules to one state are one way", machine(A=choice("B", "B", default="B"), B=END), {"A B"}),
    ("no default", machine(A=choice("B", "C"), B=END, C=END), {"A B", "A C"}),
    ("a Catch", machine(A=to(WRITE | catch("C"), "B"), B=END, C=FAIL), {"A B", "A C"}),
    ("a Catch to the next state", machine(A=to(WRITE | catch("B"), "B"), B=END), {"A B"}),
    ("a Catch and End", machine(A=last(WRITE | catch("B")), B=FAIL), {"A", "A B"}),
    ("a loop", machine(A=to(PASS, "B"), B=choice("A", default="C"), C=END), {"A B C", "A B A B C"}),
    ("a state that is a loop", machine(A=choice("A", default="B"), B=END), {"A B", "A A B"}),
    (
        "two loops, one after the other",
        machine(A=choice("A", default="B"), B=choice("B", default="C"), C=END),
        {"A B C", "A A B C", "A B B C", "A A B B C"},
    ),
    (
        "a loop in a loop, once in each round",
        machine(A=to(PASS, "B"), B=choice("B", "A", default="C"), C=END),
        {
            *("A B C", "A B B C", "A B A B C", "A B B A B C", "A B A B B C", "A B B A B B C"),
        },
    ),
    (
        "a loop that begins in its middle",
        machine(A=choice("B", default="C"), B=choice("C", default="D"), C=to(PASS, "B"), D=END),
        {"A B D", "A B C B D", "A C B D", "A C B C B D"},
    ),
    (
        "branches, each way with each way",
        machine(A=to(parallel(machine(X=choice("Y", default="Z"), Y=END, Z=END), INNER), "B"), B=END),
        {"A X Y W B", "A X Z W B"},
    ),
    (
        "a branch that fails",
        machine(A=to(parallel(machine(X=choice("Y", default="Z"), Y=END, Z=FAIL), INNER), "B"), B=END),
        {"A X Y W B", "A X Z W"},
    ),
    (
        "a branch that fails is caught",
        machine(A=to(parallel(machine(X=FAIL), INNER) | catch("C"), "B"), B=END, C=END),
        {"A X W C"},
    ),
    (
        "a Catch that may not be for this failure",
        machine(A=to(parallel(machine(X=NAMED_LATER)) | catch("C", "Other"), "B"), B=END, C=END),
        {"A X C", "A X"},
    ),
    (
        "a Catch that is not for this failure",
        machine(A=to(parallel(machine(X=FAIL)) | catch("C", "Other"), "B"), B=END, C=END),
        {"A X"},
    ),
    (
        "a failure without a name",
        machine(
            A=to(parallel(machine(X=NAMELESS)) | catches(C="Other", D="States.ALL"), "B"),
            **dict.fromkeys("BCD", END),
        ),
        {"A X D"},
    ),
    (
        "the first Catch that names the failure",
        machine(
            A=to(parallel(machine(X=FAIL)) | catches(B="Other", C="Planted", D="States.ALL"), "B"),
            **dict.fromkeys("BCD", END),
        ),
        {"A X C"},
    ),
    (
        "a Catch with a placeholder may be for it",
        machine(
            A=to(parallel(machine(X=FAIL)) | catches(C="${FinalErrors}", D="States.TaskFailed"), "B"),
            **dict.fromkeys("BCD", END),
        ),
        {"A X C", "A X D"},
    ),
    (
        "a Task inside may fail",
        machine(A=to(map_of(INNER) | catch("C"), "B"), B=END, C=FAIL),
        {"A W B", "A W C"},
    ),
    (
        "a Task beside a Fail may fail first",
        machine(
            A=to(parallel(machine(X=FAIL), machine(W=last(WRITE))), "B") | catches(C="Planted", D="Late"),
            B=END,
            C=END,
            D=END,
        ),
        {"A X W C", "A X W D"},
    ),
    (
        "a Task inside may fail before the others",
        machine(
            A=to(parallel(machine(V=to(CALL, "W"), W=to(WRITE, "X"), X=END)) | catch("C"), "B"), B=END, C=FAIL
        ),
        {"A V W X B", "A V C", "A V W C"},
    ),
    (
        "a Task inside that nothing catches",
        machine(A=to(parallel(machine(V=to(CALL, "W"), W=last(WRITE))), "B"), B=END),
        {"A V W B"},
    ),
    (
        "a Task inside with a Catch of its own",
        machine(
            A=to(
                parallel(machine(V=to(CALL | catch("X", "Declined"), "X"), X=END)) | catch("C"),
                "B",
            ),
            B=END,
            C=FAIL,
        ),
        {"A V X B", "A V C"},
    ),
    (
        "what a Catch further in has taken",
        machine(
            A=to(
                parallel(machine(V=to(CALL | catch("X", "Declined"), "X"), X=END))
                | catches(C="Declined", D="States.ALL"),
                "B",
            ),
            **dict.fromkeys("BCD", END),
        ),
        {"A V X B", "A V D"},
    ),
    (
        "what States.TaskFailed further in leaves",
        machine(
            A=to(
                parallel(machine(V=to(CALL | catch("X", "States.TaskFailed"), "X"), X=END))
                | catches(C="Declined", D="States.Timeout", E="States.ALL"),
                "B",
            ),
            **dict.fromkeys("BCDE", END),
        ),
        {"A V X B", "A V D", "A V E"},
    ),
    (
        "States.TaskFailed takes names of AWS's own",
        machine(
            A=to(parallel(machine(X=FAIL | {"Error": "States.Permissions"})) | BY_TASKS, "B"),
            **dict.fromkeys("BC", END),
        ),
        {"A X B"},
    ),
    (
        "States.TaskFailed takes no time-out",
        machine(
            A=to(parallel(machine(X=FAIL | {"Error": "States.Timeout"})) | BY_TASKS, "B"),
            **dict.fromkeys("BC", END),
        ),
        {"A X C"},
    ),
    (
        "States.TaskFailed may take a missing heartbeat",
        machine(
            A=to(parallel(machine(X=FAIL | {"Error": "States.HeartbeatTimeout"})) | BY_TASKS, "B"),
            **dict.fromkeys("BC", END),
        ),
        {"A X B", "A X C"},
    ),
    (
        "States.BranchFailed may take what fails a branch",
        machine(
            A=to(parallel(machine(X=FAIL)) | catches(B="States.BranchFailed", C="States.ALL"), "B"),
            **dict.fromkeys("BC", END),
        ),
        {"A X B", "A X C"},
    ),
    (
        "a Task two levels inside",
        machine(
            A=to(map_of(machine(P=to(parallel(machine(V=last(CALL))), "X"), X=END)) | catch("C"), "B"),
            B=END,
            C=FAIL,
        ),
        {"A P V X B", "A P V C"},
    ),
    (
        "a result that is too large",
        machine(
            A=to(parallel(machine(X=END)) | catches(C="States.DataLimitExceeded", D="States.ALL"), "B"),
            **dict.fromkeys("BCD", END),
        ),
        {"A X B", "A X C"},
    ),
    (
        "a result of a Task that is too large for any States.ALL",
        machine(
            A=to(
                parallel(machine(V=to(CALL | catch("X"), "X"), X=END))
                | catches(B="Other", C="States.DataLimitExceeded", D="States.ALL"),
                "B",
            ),
            **dict.fromkeys("BCD", END),
        ),
        {"A V X B", "A V X C", "A V C"},
    ),
    (
        "branches of which either may fail",
        machine(
            A=to(parallel(machine(V=to(CALL, "W"), W=END), INNER_CALL) | catch("C"), "B"),
            B=END,
            C=FAIL,
        ),
        {"A V W X B", "A V W X C", "A V X C"},
    ),
    (
        "an item that fails",
        machine(A=last(map_of(machine(X=choice("Y", default="Z"), Y=END, Z=FAIL)))),
        {"A X Y", "A X Z"},
    ),
]


@pytest.mark.parametrize(("definition", "found"), [one[1:] for one in ROUTES], ids=[one[0] for one in ROUTES])
def test_every_way_is_a_path(definition: dict[str, Any], found: set[str]):
    """Choices, Catch, loops once, branches and items."""
    assert found == ways(definition)
    assert len(found) == estimate(definition).paths


def test_one_branch_may_say_an_error_that_another_one_has_caught():
    """The Task can no longer fail with it, but the Fail beside the Task can."""
    caught = machine(T=last(CALL | catch("C", "Planted")), C=END)
    state = last(parallel(machine(F=FAIL), caught) | catch("Z", "Planted"))

    assert {"A F T Z", "A F T C Z"} <= ways(machine(A=state, Z=END))


def test_a_failure_inside_is_named_as_the_end():
    """It is where a person looks."""
    found = estimate(machine(A=last(parallel(machine(X=FAIL), INNER))))

    assert ("X", True) == (found.dearest.end, found.dearest.fails)


def test_every_branch_is_counted():
    """Also beside one that fails."""
    found = usages(machine(A=last(parallel(INNER, machine(X=to(CALL, "Y"), Y=FAIL)))))

    assert {"A W X Y": Usage(transitions=4, writes=1, lambda_calls=1)} == found


@pytest.mark.parametrize(("items", "usage"), [(0, (1, 0)), (1, (3, 1)), (3, (7, 3))])
def test_a_map_is_counted_for_each_item(items: int, usage: tuple[int, int]):
    """AWS bills no transition for an iteration itself."""
    (found,) = usages(machine(A=last(map_of(machine(P=to(PASS, "W"), W=last(WRITE))))), items=items).values()

    assert usage == (found.transitions, found.writes)


def test_a_distributed_map_pays_for_the_start_of_each_child():
    """In batches, where the definition says how large they are."""
    state = last(map_of(INNER, Mode="DISTRIBUTED", ExecutionType="STANDARD"))

    (each,) = usages(machine(A=state), items=10).values()
    (batches,) = usages(machine(A=state | {"ItemBatcher": {"MaxItemsPerBatch": 4}}), items=10).values()

    assert (21, 10) == (each.transitions, each.writes)
    assert (7, 3) == (batches.transitions, batches.writes)


def test_what_a_distributed_map_reads_and_express_children_are_not_priced():
    """Both depend on what they meet."""
    state = last(map_of(INNER, Mode="DISTRIBUTED", ExecutionType="EXPRESS"))
    reader = {"ItemReader": {"Resource": "arn:aws:states:::s3:getObject"}}

    (found,) = usages(machine(A=state | reader), items=10).values()

    assert (11, 10) == (found.transitions, found.writes)
    assert [
        ("A", "ItemReader arn:aws:states:::s3:getObject"),
        ("A", "the duration of Express executions"),
    ] == list(found.not_priced)


@pytest.mark.parametrize(
    "tolerates",
    [
        {"ToleratedFailurePercentage": 5},
        {"ToleratedFailureCountPath": "$.most"},
        {"ToleratedFailureCount": "{% $most %}", "QueryLanguage": "JSONata"},
    ],
)
def test_a_map_that_tolerates_failures_goes_on_after_them(tolerates: dict[str, Any]):
    """Items that fail with a Fail, and those whose Task fails where nothing catches it."""
    items = machine(C=choice("F", default="T"), F=FAIL, T=to(CALL, "U"), U=last(CALL))
    state = to(map_of(items, Mode="DISTRIBUTED", ExecutionType="STANDARD"), "Z")

    assert {"A C F", "A C F Z", "A C T Z", "A C T U Z"} == ways(machine(A=state | tolerates, Z=END))
    assert {"A C F", "A C T U Z"} == ways(machine(A=state | {"ToleratedFailureCount": 0}, Z=END))


def test_reading_the_items_of_a_map_may_fail_and_writing_its_results():
    """Nothing inside needs to fail for that."""
    state = last(map_of(machine(P=last(PASS)), Mode="DISTRIBUTED", ExecutionType="STANDARD"))
    caught = state | catch("Z")

    assert {"A P"} == ways(machine(A=caught, Z=END))
    assert {"A P", "A Z"} == ways(machine(A=caught | {"ItemReader": {}}, Z=END))
    assert {"A P", "A P Z"} == ways(machine(A=caught | {"ResultWriter": {}}, Z=END))
    assert {"A P"} == ways(machine(A=state | {"ItemReader": {}, "ResultWriter": {}}))


def test_retries_are_not_counted():
    """A path is priced without them."""
    retried = WRITE | {"Retry": [{"ErrorEquals": ["States.ALL"], "MaxAttempts": 5}]}

    assert {"A": Usage(transitions=1, writes=1)} == usages(machine(A=last(retried)))


BROKEN: list[tuple[str, dict[str, Any]]] = [
    ("States must be an object", {"StartAt": "A"}),
    ("A: a state must be an object", {"StartAt": "A", "States": {"A": 1}}),
    ("StartAt", {"StartAt": "B", "States": {"A": END}}),
    ("leads to 'B'", machine(A=to(PASS, "B"))),
    ("Give the template", machine(A=to(PASS, "${Next}"))),
    ("its loop has no exit", machine(A=to(PASS, "B"), B=to(PASS, "A"))),
    ("A: Branches must be a list", machine(A=last({"Type": "Parallel"}))),
    ("A: it needs an ItemProcessor", machine(A=last({"Type": "Map"}))),
    ("A: Choices must be a list", machine(A={"Type": "Choice", "Choices": 1})),
    (
        "A: Choices.0.: And must be a list",
        machine(A={"Type": "Choice", "Choices": [{"And": 1, "Next": "A"}]}),
    ),
    ("A: Catch must be a list", machine(A=last(WRITE | {"Catch": ["B"]}))),
    ("ProcessorConfig must", machine(A=last(map_of(INNER | {"ProcessorConfig": "${Config}"})))),
]


@pytest.mark.parametrize(("complaint", "definition"), BROKEN)
def test_what_is_no_definition_is_refused(complaint: str, definition: dict[str, Any]):
    """With what is wrong."""
    with pytest.raises(CannotPrice, match=complaint):
        estimate(definition)


def test_paths_can_be_chosen_by_their_states():
    """By all of those that are named, also by one inside of a branch."""
    definition = machine(
        A=choice("B", default="C"), B=to(PASS, "D"), C=to(parallel(INNER), "D"), D=choice("E", default="F")
    )
    definition["States"] |= {"E": END, "F": FAIL}

    assert {"A B D F"} == ways(definition, through=["B", "F"])
    assert {"A C W D E", "A C W D F"} == ways(definition, through=["W"])
    with pytest.raises(CannotPrice, match="No path goes through B and W"):
        estimate(definition, through=["B", "W"])
    with pytest.raises(CannotPrice, match="has no state G"):
        estimate(definition, through=["G"])


def choices(count: int) -> dict[str, Any]:
    """So many choices between a write, a call and nothing, one after the other."""
    states: dict[str, Any] = {}
    for n in range(count):
        states[f"C{n}"] = choice(f"W{n}", f"F{n}", default=f"C{n + 1}")
        states |= {f"W{n}": to(WRITE, f"C{n + 1}"), f"F{n}": to(CALL, f"C{n + 1}")}
    return machine(**states, **{f"C{count}": END})


def test_too_many_paths_are_merged():
    """Into those that end in one state and use the same."""
    found = estimate(choices(5))

    assert (3**5, True, False) == (found.paths, found.merged, found.left_out)
    assert 3**5 == sum(path.paths for path in found.listed)
    assert 21 == len(found.listed)


def test_more_paths_than_anybody_can_list_are_counted_and_bounded(monkeypatch: pytest.MonkeyPatch):
    """The cheapest and the dearest are the real ones."""
    monkeypatch.setattr(paths, "MOST", 50)

    found = estimate(choices(60), limit=20)

    assert (3**60, True) == (found.paths, found.left_out)
    assert 2 == len(found.listed)
    assert Usage(transitions=61) == found.cheapest.usage
    assert Usage(transitions=121, writes=60) == found.dearest.usage


def test_branches_do_not_multiply_without_bound(monkeypatch: pytest.MonkeyPatch):
    """Each has thousands of ways of its own."""
    monkeypatch.setattr(paths, "MOST", 50)

    found = estimate(machine(A=last(parallel(*[choices(20)] * 3))))

    assert 3**60 == found.paths
    assert Usage(transitions=1 + 3 * 41, writes=60) == found.dearest.usage


def test_loops_that_are_nested_too_deeply_are_refused():
    """Each has three times as many ways as the one around it: no machine has the memory for twenty."""
    names = [f"C{n}" for n in range(20)]
    with pytest.raises(CannotPrice, match="20 loops that are inside of each other"):
        estimate(machine(**dict.fromkeys(names, choice(*names, default="E")), E=END))


@given(st.lists(st.lists(st.integers(1, 3), max_size=3), min_size=1, max_size=7), st.data())
def test_all_paths_are_found_however_many_are_kept(jumps: list[list[int]], data: st.DataObject):
    """Compared with going every way, in definitions without loops."""
    kinds = data.draw(st.lists(st.sampled_from([WRITE, CALL, PASS]), min_size=7, max_size=7))
    names = [f"S{n}" for n in range(len(jumps))]
    states: dict[str, Any] = {}
    for n, (name, steps) in enumerate(zip(names, jumps, strict=True)):
        targets = [names[n + step] for step in steps if n + step < len(names)]
        ways = targets if kinds[n]["Type"] == "Task" else targets[:1]
        caught = catches(**{target: f"For{target}" for target in ways[1:]}) if ways[1:] else {}
        states[name] = to(kinds[n], ways[0]) | caught if ways else last(kinds[n])

    def walk(name: str) -> list[tuple[str, ...]]:
        state = states[name]
        onward = {state.get("Next")} | {one["Next"] for one in state.get("Catch", [])}
        rest = [way for target in onward if target for way in walk(target)]
        return [(name, *way) for way in rest] or [(name,)]

    everything = set(walk(names[0]))
    definition = machine(**states)
    whole = estimate(definition, limit=1_000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "MOST", 1)
        few = estimate(definition, limit=1)

    assert everything == {path.states for path in whole.listed}
    assert len(everything) == whole.paths == few.paths
    assert prices(whole) == prices(few)


def prices(found: Estimate) -> tuple[Decimal, Decimal]:
    return found.cheapest.dollars, found.dearest.dollars
