"""Rules for the way through a workflow: what leads where, what is there to be read, what ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from steponce import workflow
from steponce.lint.asl import reachable

from .asl import Definition, inner_machines, states, writes

WORK = {"DoWork", "IsConfirmationWanted", "AwaitConfirmation"}
"""States in which the work may be running."""


def edges(definition: Definition) -> dict[str, list[str]]:
    """Which states each state leads to."""
    found = {}
    for name, state in definition["States"].items():
        parts = [state, *state.get("Choices", []), *state.get("Catch", [])]
        found[name] = [part[key] for part in parts for key in ("Next", "Default") if key in part]
    return found


def machines_in(definition: Definition) -> Iterator[Definition]:
    """The machine itself and every one inside of it."""
    yield definition
    for state in definition["States"].values():
        for inner in inner_machines(state):
            yield from machines_in(inner)


def rule_loops_end(definition: Definition) -> list[str]:
    """Every way back passes a Choice that counts."""
    complaints = []
    for machine in machines_in(definition):
        graph = {name: [] if _counts(name, machine) else targets for name, targets in edges(machine).items()}
        for name, targets in graph.items():
            if any(name in reachable(graph, target) for target in targets):
                complaints.append(f"{name} is part of a loop that nothing counts")
    return complaints


def rule_states_are_classified(definition: Definition) -> list[str]:
    """Of each state, settle_owner knows what it means that the holder of a lock died in it."""
    classes = {
        "BEFORE_WORK": workflow.BEFORE_WORK,
        "OUTCOMES": workflow.OUTCOMES,
        "UNWRITTEN": {name for name, state in states(definition) if state.get("Error") in workflow.TOO_LARGE},
        "TAKING_OVER": workflow.TAKING_OVER,
        "WORK": WORK,
        "FAILING": workflow.FAILING,
    }
    complaints = []
    for name in definition["States"]:
        found = [label for label, members in classes.items() if name in members]
        complaints += [f"{name} belongs to {found or 'no class'}"] * (len(found) != 1)
    named = set().union(*classes.values(), workflow.ANSWERING_STATES)
    return complaints + [f"{name} does not exist" for name in named - set(definition["States"])]


def rule_statuses_are_the_packages(definition: Definition) -> list[str]:
    """The workflow writes and compares every status that the package knows, and no other."""
    found = {text for key, text in _texts(definition) if key == "S" and text.isupper()}
    found |= {
        test["StringEquals"]
        for test in _objects(definition)
        if str(test.get("Variable", "")).endswith(".status.S") and "StringEquals" in test
    }
    return [
        f"{name} is a status here or there, not both"
        for name in (found - {"${RefusedStatus}"}) ^ workflow.STATUSES
    ]


def rule_errors_are_the_packages(definition: Definition) -> list[str]:
    """Every error name that the package shares with the workflow is raised or caught there."""
    shared = workflow.RELEASING | workflow.LOCK_HELD | workflow.TOO_LARGE
    shared |= {
        workflow.OUTCOME_UNKNOWN,
        workflow.DUPLICATE_REFUSED,
        workflow.RATE_LIMITED,
        workflow.LIMIT_CHANGED,
    }
    found = {text for key, text in _texts(definition) if key in ("Error", "ErrorEquals")}
    return [f"no state knows the error {name}" for name in shared - found]


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in a definition."""
    if isinstance(value, dict):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _objects(part)


def _texts(definition: Definition) -> Iterator[tuple[str, str]]:
    """Every text in a definition, or in a list of it, under its key."""
    for part in _objects(definition):
        for key, value in part.items():
            yield from (
                (key, text)
                for text in (value if isinstance(value, list) else [value])
                if isinstance(text, str)
            )


def rule_outcomes_are_the_packages(definition: Definition) -> list[str]:
    """Only final errors lead to RecordFinalError, and every other state that writes writes an outcome."""
    complaints = []
    for name in WORK:
        for catcher in definition["States"][name].get("Catch", []):
            if (catcher["Next"] == "RecordFinalError") != (catcher["ErrorEquals"] == ["${FinalErrors}"]):
                complaints.append(f"{catcher['ErrorEquals']} leads to {catcher['Next']}")
    writers = {name for name, _ in writes(definition)} - {"AcquireLock", "TakeOverLock", "ReleaseLock"}
    return complaints + [f"{name} writes an outcome or not?" for name in writers ^ workflow.OUTCOMES]


def _counts(name: str, machine: Definition) -> bool:
    """Whether a Choice lets pass only so often, and every way on from it counts."""
    state = machine["States"][name]
    limits = [rule for rule in state.get("Choices", []) if "NumericLessThan" in rule]
    if not limits or machine["States"].get(state.get("Default"), {}).get("Type") != "Fail":
        return False
    counter, _, field = limits[0]["Variable"].rpartition(".")
    onward = {rule["Next"]: machine["States"][rule["Next"]] for rule in state["Choices"]}
    counting = onward.pop(limits[0]["Next"])
    return (
        counting.get("Parameters") == {f"{field}.$": f"States.MathAdd({counter}.{field}, 1)"}
        and counting.get("ResultPath") == counter
        and all(
            rule.get("Variable") == counter and rule.get("IsPresent") is False
            for rule in state["Choices"]
            if rule not in limits
        )
        and all(state.get("ResultPath") == counter and state.get("Result") for state in onward.values())
    )
