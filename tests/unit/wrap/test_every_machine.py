"""Whatever machine is wrapped: AWS takes the result, and nothing of the machine is lost."""

from __future__ import annotations

import json
from functools import cache

import pytest
from statelint.linter import Linter

from steponce import workflow
from steponce.cost import estimate
from steponce.lint import lint
from steponce.lint.asl import machines, reachable, states
from steponce.lint.definitions import complaints
from steponce.scaffold.workflow import definition as definition_of
from steponce.wrap import CannotWrap, Wrapped, source, wrap_around, wrap_inline
from steponce.wrap.machine import edges
from tests.machines import Case
from tests.machines.around import AROUND
from tests.machines.inline import INLINE, ORDER
from tests.rules.documents import ROOT

EVERY = [*INLINE, *AROUND]
REFUSED_INLINE = [case for case in AROUND if case.name != "order, started"]


def name(case: Case) -> str:
    """The id of a machine's test."""
    return case.name


@cache
def wrapped_as(form: str, text: str) -> Wrapped:
    """A text, wrapped once for all tests; do not change it."""
    return wrap_inline(text) if form == "inline" else wrap_around(text)


def wrapped(case: Case) -> Wrapped:
    """The machine, wrapped as it can be."""
    return wrapped_as(case.form, json.dumps(case.definition))


@pytest.mark.parametrize("case", EVERY, ids=name)
def test_aws_takes_what_is_made_of_it(case: Case):
    """With values for the placeholders; no linter has anything to say either."""
    text = source.with_values(wrapped(case).definition)

    assert [] == [*complaints(text), *Linter.validate(json.loads(text))]


@pytest.mark.parametrize("case", INLINE, ids=name)
def test_every_state_of_the_machine_is_there_and_leads_where_it_led(case: Case):
    """Under its name or the one that the answer tells; only what had to change is another."""
    result = wrapped(case)
    (branch,) = result.definition["States"]["DoWork"]["Branches"]
    inside = dict(states(branch))
    before = dict(states(case.definition))

    assert {result.renamed.get(name, name) for name in before} == inside.keys() - {"NothingHappened"}
    assert {state["Type"] for state in before.values()} <= {state["Type"] for state in inside.values()}
    for machine in machines(branch):
        graph = edges(machine)
        assert reachable(graph, machine["StartAt"]) == machine["States"].keys()
    for old, state in before.items():
        new = inside[result.renamed.get(old, old)]
        assert new.get("End") == state.get("End")
        assert new.keys() - {"Catch"} == state.keys() - {"Catch"}


@pytest.mark.parametrize("case", EVERY, ids=name)
def test_the_workflow_around_it_keeps_the_rules(case: Case):
    """It is the one that new applications have."""
    definition = wrapped(case).definition
    assert [] == [one for one in lint(definition).findings if one.severity == "error"]


@pytest.mark.parametrize("case", EVERY, ids=name)
def test_the_workflow_s_own_states_are_those_of_every_application(case: Case):
    """All that is there is unchanged, and what is missing cannot be reached."""
    text = json.dumps(wrapped(case).definition).replace("${SteponcePartition}", "${Partition}")
    usual = json.loads(definition_of(callback=False))["States"]
    found = {key: state for key, state in json.loads(text)["States"].items() if key in usual}
    del found["DoWork"]

    assert found == {key: usual[key] for key in found}
    assert usual.keys() - found.keys() <= {"DoWork", "ReleaseLock", "RecordFinalError"}


@pytest.mark.parametrize("case", INLINE, ids=name)
def test_no_state_of_the_work_is_taken_for_one_of_the_workflow_s(case: Case):
    """Otherwise the owner check would misread where an execution died."""
    (branch,) = wrapped(case).definition["States"]["DoWork"]["Branches"]
    known = workflow.BEFORE_WORK | workflow.TAKING_OVER | workflow.OUTCOMES

    assert {"DoWork"}.isdisjoint(dict(states(branch)))
    assert known.isdisjoint(dict(states(branch)))


@pytest.mark.parametrize("case", REFUSED_INLINE, ids=name)
def test_what_cannot_go_inside_a_parallel_is_refused_with_the_remedy(case: Case):
    """With the state that it is about."""
    with pytest.raises(CannotWrap, match=r"Wrap it with --around"):
        wrap_inline(json.dumps(case.definition))


def test_the_price_of_a_wrapped_machine_is_that_of_its_states_and_the_workflow():
    """Three transitions and two writes beside the machine's own, and one transition for the Parallel."""
    definition = json.loads(source.with_values(wrapped(ORDER).definition))
    way = ["Reserve", "IsPayable", "Charge", "Ship", "Confirm"]
    found = estimate(definition, region="us-east-1", through=["Confirm", "CompleteRequest"]).cheapest

    assert ("IsRequestPrepared", "AcquireLock", "DoWork", *way, "CompleteRequest") == found.states
    assert (3 + 1 + len(way), 2 + 3) == (found.usage.transitions, found.usage.writes)


def test_the_state_that_starts_a_machine_is_the_example():
    """Whoever copies the example gets what the command makes, but for the time that it waits."""
    (example,) = json.loads((ROOT / "examples" / "states" / "start_machine.asl.json").read_text()).values()
    made = dict(wrap_around(json.dumps(ORDER.definition)).definition["States"]["DoWork"])
    made["Resource"] = made["Resource"].replace("SteponcePartition", "Partition")

    assert 3600 + 60 == made.pop("TimeoutSeconds")
    assert "$.held.workTimeoutSeconds" == example.pop("TimeoutSecondsPath")
    assert made.pop("Comment") != example.pop("Comment")
    assert example == made


@pytest.mark.parametrize("case", EVERY, ids=name)
def test_a_wrapped_machine_is_not_wrapped_again(case: Case):
    """In neither form."""
    text = source.write(wrapped(case).definition)
    for again in (wrap_inline, wrap_around):
        with pytest.raises(CannotWrap, match="wrapped already"):
            again(text)
