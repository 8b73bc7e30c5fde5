"""Rules for the way through a workflow: what leads where, what is there to be read, what ends."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any

from steponce import workflow
from steponce.aws import times
from steponce.limits.request_limit import RequestLimit
from steponce.limits.window import Window
from steponce.request.envelope import Envelope

from .asl import Definition, State, inner_machines, states, tasks, writes

Facts = frozenset[str]
"""Paths that are there for certain; `$.failure.Error.(text)` also says of what kind it is."""

ANSWERS = {
    "${PrepareRequestFunctionArn}": {field.name for field in fields(Envelope)},
    "${CheckOwnerFunctionArn}": {"verdict", "redriveCount"},
}
"""What our own functions always answer with."""

LIMIT = set(RequestLimit("n", 1, Window(1)).count_of("u", "t", times.now(), times.now()))
WHOLE = {"$.tries": {"$.tries.count"}, "$.limit": {f"$.limit.{key}" for key in LIMIT}}
"""What is written in one piece, by us, in the same execution: who finds the first finds the others."""

NOT_THE_HOLDER = {
    "IsErrorNamed": "the lock was released or its failure recorded just before, or it is another's",
    "RequestFailed": "as IsErrorNamed",
    "FailedWithoutCause": "as IsErrorNamed",
    "FailedWithoutReason": "as IsErrorNamed",
    "ReplayError": "the lock is another's, and failed",
}
"""States that an execution is never in while a lock in progress is its own, and why."""

WORK = {"DoWork", "IsConfirmationWanted", "AwaitConfirmation"}
"""States in which the work may be running."""


def edges(definition: Definition) -> dict[str, list[str]]:
    """Which states each state leads to."""
    found = {}
    for name, state in definition["States"].items():
        parts = [state, *state.get("Choices", []), *state.get("Catch", [])]
        found[name] = [part[key] for part in parts for key in ("Next", "Default") if key in part]
    return found


def reachable(graph: dict[str, list[str]], start: str) -> set[str]:
    """Every state that a way leads to, the start included."""
    seen, waiting = set(), [start]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += graph.get(name, [])
    return seen


def machines_in(definition: Definition) -> Iterator[Definition]:
    """The machine itself and every one inside of it."""
    yield definition
    for state in definition["States"].values():
        for inner in inner_machines(state):
            yield from machines_in(inner)


def rule_names_are_unique(definition: Definition) -> list[str]:
    """A history tells states by name only, wherever in the machine they are."""
    names = [name for name, _ in states(definition)]
    return [f"{name} stands twice" for name in sorted({name for name in names if names.count(name) > 1})]


def rule_every_state_is_reachable(definition: Definition) -> list[str]:
    """Every target exists, and every state is one."""
    complaints = []
    for machine in machines_in(definition):
        seen = reachable(edges(machine), machine["StartAt"])
        complaints += [f"{name} does not exist" for name in seen - set(machine["States"])]
        complaints += [f"nothing leads to {name}" for name in set(machine["States"]) - seen]
    return complaints


def rule_loops_end(definition: Definition) -> list[str]:
    """Every way back passes a Choice that counts."""
    complaints = []
    for machine in machines_in(definition):
        graph = {name: [] if _counts(name, machine) else targets for name, targets in edges(machine).items()}
        for name, targets in graph.items():
            if any(name in reachable(graph, target) for target in targets):
                complaints.append(f"{name} is part of a loop that nothing counts")
    return complaints


def rule_reads_are_guarded(definition: Definition) -> list[str]:
    """A path that is absent is States.Runtime, which nothing catches; so none may be absent."""
    return _Analysis(definition, frozenset()).complaints


def rule_states_are_classified(definition: Definition) -> list[str]:
    """Of each state, settle_owner knows what it means that the holder of a lock died in it."""
    classes = {
        "BEFORE_WORK": workflow.BEFORE_WORK,
        "OUTCOMES": workflow.OUTCOMES,
        "UNWRITTEN": {name for name, state in states(definition) if state.get("Error") in workflow.TOO_LARGE},
        "TAKING_OVER": workflow.TAKING_OVER,
        "WORK": WORK,
        "NOT_THE_HOLDER": set(NOT_THE_HOLDER),
    }
    complaints = []
    for name in definition["States"]:
        found = [label for label, members in classes.items() if name in members]
        complaints += [f"{name} belongs to {found or 'no class'}"] * (len(found) != 1)
    named = set().union(*classes.values())
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
    shared |= {workflow.OUTCOME_UNKNOWN, workflow.DUPLICATE_REFUSED, workflow.RATE_LIMITED}
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


def rule_classes_agree_with_the_graph(definition: Definition) -> list[str]:
    """Nothing that is called unstarted or merely taking over can come after the work, and so on."""
    graph = edges(definition)
    after_work = set().union(*(reachable(graph, target) for name in WORK for target in graph[name]))
    complaints = [
        f"{name} counts as before the work and follows it"
        for name in (workflow.BEFORE_WORK - {"ReleaseLock"} | workflow.TAKING_OVER | {"DoWork"}) & after_work
    ]
    reasons = {"ReleaseLock": set(workflow.RELEASING), "RecordFinalError": {"${FinalErrors}"}}
    for name in WORK:
        for catcher in definition["States"][name].get("Catch", []):
            allowed = reasons.get(catcher["Next"], set(catcher["ErrorEquals"]))
            if set(catcher["ErrorEquals"]) != allowed:
                complaints.append(f"{catcher['ErrorEquals']} leads to {catcher['Next']}")
    writers = {name for name, _ in writes(definition)} - {"AcquireLock", "TakeOverLock", "ReleaseLock"}
    complaints += [f"{name} writes an outcome or not?" for name in writers ^ workflow.OUTCOMES]
    work = {task["Parameters"].get("FunctionName") for name, task in tasks(definition) if name in WORK}
    for name, task in tasks(definition):
        if name not in WORK and task["Parameters"].get("FunctionName") in work:
            complaints.append(f"{name} runs the work as well")
    return complaints


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


class _Analysis:
    """Follows every way through a machine and notes which paths are there in each state."""

    def __init__(self, machine: Definition, start: Facts) -> None:
        self.complaints: list[str] = []
        self._machine = machine
        self._facts: dict[str, Facts] = {}
        self._settle(machine["StartAt"], start)
        for name, facts in self._facts.items():
            self.complaints += self._visit(name, facts)[0]

    def _settle(self, name: str, facts: Facts) -> None:
        waiting = [(name, facts)]
        while waiting:
            name, facts = waiting.pop()
            known = self._facts.get(name)
            merged = facts if known is None else known & facts
            if merged != known and name in self._machine["States"]:
                self._facts[name] = merged
                waiting += self._visit(name, merged)[1]

    def _visit(self, name: str, facts: Facts) -> tuple[list[str], list[tuple[str, Facts]]]:
        """What the state reads in vain, and what is there in the states that may follow."""
        state = self._machine["States"][name]
        if state["Type"] == "Choice":
            missing, ways = _choose(state, facts)
        else:
            missing, output = _run(state, facts)
            ways = [(state["Next"], output)] if "Next" in state else []
            ways += [
                (catcher["Next"], _put(facts, catcher.get("ResultPath", "$"), frozenset()))
                for catcher in state.get("Catch", [])
            ]
        complaints = [f"{name} reads {path}, which may be absent" for path in missing]
        within = _keys(state["Parameters"]) if "Parameters" in state else facts
        for inner in inner_machines(state):
            complaints += _Analysis(inner, within).complaints
        return complaints, ways


def _run(state: State, facts: Facts) -> tuple[list[str], Facts]:
    """One Task, Pass, Fail …: the paths that it reads in vain, and what its output has."""
    said = [state[key] for key in ("ErrorPath", "CausePath") if key in state]
    text_paths = [path for text in said for path in _paths_of_text(text)]
    read = _paths(state.get("Parameters", state.get("ItemSelector", {}))) + text_paths
    read += [
        state[key]
        for key in ("TimeoutSecondsPath", "HeartbeatSecondsPath", "ItemsPath", "TimestampPath")
        if key in state
    ]
    missing = [path for path in read if not _is_there(path, facts)]
    raw = _raw_result(state, facts)
    if "ResultSelector" in state:
        missing += [path for path in _paths(state["ResultSelector"]) if not _is_there(path, raw)]
        raw = _keys(state["ResultSelector"])
    output = _put(facts, state.get("ResultPath", "$"), raw)
    rest = state.get("OutputPath", "$")
    missing += [rest] * (not _is_there(rest, output))
    return missing, frozenset("$" + path[len(rest) :] for path in output if path.startswith(f"{rest}."))


def _paths_of_text(text: str) -> list[str]:
    """What an ErrorPath or CausePath reads: one path, which must be text, or those in a function."""
    return _paths(text, ".$") if text.startswith("States.") else [f"{text}.(text)"]


def _raw_result(state: State, facts: Facts) -> Facts:
    parameters = state.get("Parameters", {})
    if state["Type"] == "Wait":
        return facts
    if state["Type"] == "Pass":
        if "Result" in state:
            return _keys(state["Result"])
        return _keys(parameters) if "Parameters" in state else facts
    if state["Type"] in ("Parallel", "Map"):
        return frozenset({"$[0]"})
    if state.get("Resource", "").endswith((".sync", ".sync:2")):
        return frozenset({"$.Output"})
    if "Payload" in parameters:
        answer = ANSWERS.get(parameters.get("FunctionName", ""), set())
        return frozenset({"$.Payload", *(f"$.Payload.{key}" for key in answer)})
    if parameters.get("ReturnValues") in ("UPDATED_NEW", "ALL_NEW"):
        attributes = re.findall(r"(\w+) = ", parameters["UpdateExpression"])
        return _there(f"$.Attributes.{name}.{kind}" for name in attributes for kind in "SN")
    return frozenset()


def _choose(state: State, facts: Facts) -> tuple[list[str], list[tuple[str, Facts]]]:
    """One Choice: every rule is tried where those before it were false."""
    missing, ways = [], []
    for rule in state["Choices"]:
        vain, if_true, facts = _test(rule, facts)
        missing += vain
        ways.append((rule["Next"], if_true))
    return missing, ways + [(state["Default"], facts)] * ("Default" in state)


def _test(rule: dict[str, Any], facts: Facts) -> tuple[list[str], Facts, Facts]:
    """The paths that a test reads in vain, and what is there if it is true, and if it is false."""
    if "Not" in rule:
        missing, if_true, if_false = _test(rule["Not"], facts)
        return missing, if_false, if_true
    if "And" in rule or "Or" in rule:
        missing, leaving, going = [], [], facts
        for part in rule.get("And", rule.get("Or")):
            vain, if_true, if_false = _test(part, going)
            going, left = (if_true, if_false) if "And" in rule else (if_false, if_true)
            missing += vain
            leaving.append(left)
        left = frozenset.intersection(*leaving)
        return (missing, going, left) if "And" in rule else (missing, left, going)
    path = rule["Variable"]
    if "IsPresent" in rule:
        found = facts | _there([path])
        return ([], found, facts) if rule["IsPresent"] else ([], facts, found)
    read = [path, *(value for key, value in rule.items() if key.endswith("Path"))]
    if_true = facts | {f"{path}.(text)"} if rule.get("IsString") else facts
    return [path for path in read if not _is_there(path, facts)], if_true, facts


def _put(facts: Facts, place: str | None, result: Facts) -> Facts:
    """What a ResultPath makes of an input and a result."""
    if place is None:
        return facts
    if place == "$":
        return result
    kept = {path for path in facts if path != place and not path.startswith(f"{place}.")}
    return frozenset(kept) | _there([place]) | {place + path[1:] for path in result}


def _there(paths: Iterable[str]) -> Facts:
    """The paths and everything above them; one in brackets, `$['detail-type']`, is a path of one step."""
    return frozenset(path.rsplit(".", up)[0] for path in paths for up in range(max(1, path.count("."))))


def _is_there(path: str, facts: Facts) -> bool:
    whole = {part for first, parts in WHOLE.items() if first in facts for part in parts}
    return path == "$" or path.startswith("$$.") or path in facts or path in whole


def _keys(value: Any) -> Facts:
    """The paths of an object that is made of keys and values."""
    if not isinstance(value, dict):
        return frozenset()
    found = set()
    for key, part in value.items():
        path = f"$.{key.removesuffix('.$')}"
        found |= {path, *(path + inner[1:] for inner in _keys(part))}
    return frozenset(found)


def _paths(value: Any, key: str = "") -> list[str]:
    """Every path that is read in Parameters or a ResultSelector, inside of functions too."""
    if isinstance(value, dict):
        return [path for name, part in value.items() for path in _paths(part, name)]
    if isinstance(value, list):
        return [path for part in value for path in _paths(part, key)]
    if not key.endswith(".$"):
        return []
    return re.findall(r"\$\$?(?:\.\w+)*", re.sub(r"'[^']*'", "", value))
