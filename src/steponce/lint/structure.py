"""Rules for the structure of a definition: what AWS refuses, missing targets, endless loops."""

from __future__ import annotations

from steponce.lint.asl import reachable
from steponce.lint.findings import Complaint, Complaints
from steponce.lint.machine import Machine, State
from steponce.lint.rule import Rules

STRUCTURE = Rules("general")


def _refused(machine: Machine, kind: str) -> Complaints:
    for refusal in machine.refusals:
        if refusal.kind == kind:
            yield Complaint(refusal.state, refusal.text)


@STRUCTURE.rule("invalid-definition", "error")
def invalid_definition(machine: Machine) -> Complaints:
    """
    A field that the state does not have, a value that it cannot have, or a field that is missing.

    CreateStateMachine refuses the definition. CloudFormation finds out in the middle of a deployment.

    "You cannot revert a top-level JSONata-based state machine to a mix of JSONata and JSONPath states." So a
    state of a machine in JSONata cannot be in JSONPath.

    "In JSONata States, a Catcher MAY have an 'Output' field", and "in JSONPath States, a Catcher MAY have a
    'ResultPath' field". Likewise only a rule of a Choice in JSONata may have an `Output`.

    Express workflows "do not support Run a Job (.sync) or Wait for Callback (.waitForTaskToken)". Nor do they
    support activities and distributed Maps. The template says whether a workflow is one. So a definition in a
    file of its own counts as Standard.

    Source: [Amazon States Language](https://states-language.net/spec.html); [State machine structure](https://docs.aws.amazon.com/step-functions/latest/dg/statemachine-structure.html).
    """
    yield from _refused(machine, "invalid-definition")


@STRUCTURE.rule("missing-target", "error")
def missing_target(machine: Machine) -> Complaints:
    """
    `StartAt`, `Next` or `Default` names a state that does not exist at the same level.

    A state in a Map or in a branch of a Parallel can only lead to states of the same Map or branch. Correct
    the name. AWS refuses the definition with `MISSING_TRANSITION_TARGET`.
    """
    yield from _refused(machine, "missing-target")


@STRUCTURE.rule("unreachable-state", "error")
def unreachable_state(machine: Machine) -> Complaints:
    """
    The state cannot be reached from `StartAt`.

    Let another state lead to it, or remove it. AWS refuses the definition with `MISSING_TRANSITION_TARGET`.
    """
    yield from _refused(machine, "unreachable-state")


@STRUCTURE.rule("duplicate-name", "error")
def duplicate_name(machine: Machine) -> Complaints:
    """
    Two states have the same name, for example in two branches of a Parallel.

    A state's name "must be unique within the scope of the entire state machine". A history identifies states
    only by name. Rename one of them.

    Source: [Step Functions developer guide, states](https://docs.aws.amazon.com/step-functions/latest/dg/workflow-states.html).
    """
    yield from _refused(machine, "duplicate-name")


@STRUCTURE.rule("states-all-not-last", "error")
def states_all_not_last(machine: Machine) -> Complaints:
    """
    `States.ALL` stands beside other errors, or before another retrier or catcher.

    `States.ALL` "must appear alone in the `ErrorEquals` array and must appear in the last retrier in the
    `Retry` array", and the same holds for `Catch`. AWS refuses the definition. Move it.

    Source: [Handling errors](https://docs.aws.amazon.com/step-functions/latest/dg/concepts-error-handling.html).
    """
    yield from _refused(machine, "states-all-not-last")


@STRUCTURE.rule("endless-loop", "error")
def endless_loop(machine: Machine) -> Complaints:
    """
    States lead to one another, and none of them leads to an end.

    An execution fails when its history has 25,000 events. Add a way out, such as a Choice that counts tries
    or sees that the work is done.

    Source: [Quotas](https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html).
    """
    for one in machine.all():
        back: dict[str, list[str]] = {name: [] for name in one.states}
        for name, targets in one.graph.items():
            for target in targets:
                back[target].append(name)
        ending = reachable(back, *(name for name, state in one.states.items() if _may_end(state, one)))
        reached = reachable(one.graph, one.start) - ending
        stuck = [name for name in one.states if name in reached]
        if stuck:
            others = f" with {', '.join(stuck[1:4])}" if stuck[1:] else ""
            text = f"it is in a loop{others} that never ends. Add a Choice that leads out of it."
            yield Complaint(stuck[0], text)


def _may_end(state: State, machine: Machine) -> bool:
    """A state with a missing target counts as one that ends: other rules report it."""
    leads_on = bool(state.ways) and all(way in machine.states for way in state.ways)
    return state.ends or state.kind == "Fail" or not leads_on


@STRUCTURE.rule("choice-without-default", "warning")
def choice_without_default(machine: Machine) -> Complaints:
    """
    A Choice has no `Default`, and its rules may all be false.

    The execution fails with `States.NoChoiceMatched` then, and a Choice has no Catch. A `Default` that leads
    to a Fail state says what is wrong. Rules that complement each other, such as `IsPresent` true and false,
    need none.

    Source: [Choice state](https://docs.aws.amazon.com/step-functions/latest/dg/state-choice.html): `Default`
    is "Optional, Recommended".
    """
    for state in machine.all_states():
        if state.kind == "Choice" and "Default" not in state.body and not _is_complete(state):
            yield Complaint(state.name, "it has no Default. Add one, which may lead to a Fail state.")


def _is_complete(state: State) -> bool:
    """Whether two of the rules test one condition as true and as false."""
    tests = [
        {key: part for key, part in rule.items() if key not in ("Next", "Comment")} for rule in state.rules
    ]
    negated = [
        test | {key: not part} for test in tests for key, part in test.items() if isinstance(part, bool)
    ]
    opposites = [test["Not"] for test in tests if set(test) == {"Not"}]
    return any(test in tests for test in [*negated, *opposites])
