"""Follows every path through a machine, and notes which values each state can read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from steponce.lint.asl import as_object, objects
from steponce.lint.facts import (
    OPTIONAL,
    TEXT,
    WHOLE,
    Facts,
    Path,
    below,
    is_there,
    may_be_missing,
    of_template,
    parse,
    paths_in,
    put,
    read_by,
    there,
)
from steponce.lint.findings import Complaint
from steponce.lint.machine import Body, Machine, State
from steponce.lint.protocol import ANSWERS, TOGETHER
from steponce.lint.task_results import answer

FAILURE = there(("Error",), ("Cause",)) | {(WHOLE,)}
"""What a Catch puts into its ResultPath."""

_PATH_FIELDS = ("TimeoutSecondsPath", "HeartbeatSecondsPath", "SecondsPath", "TimestampPath", "ItemsPath")


@dataclass(frozen=True)
class Expectations:
    """
    What counts as missing, and what is known beside the definition.

    Attributes:
        strict: Every path must be there for certain. Else only those count that are known to be missing on
            some way, and a Catch brings Error and Cause.
        answers: What functions answer with, by the name of the state that calls them.
        together: By a path, the paths that are there whenever this one is.
    """

    strict: bool = False
    answers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    together: Mapping[Path, Facts] = field(default_factory=dict)

    def misses(self, text: str, facts: Facts | set[Path], *, is_text: bool = False) -> bool:
        """Whether a path that is read may be missing."""
        path = parse(text)
        if path is None:
            return False
        more = [paths for first, paths in self.together.items() if first in facts]
        known = facts.union(*more) if more else facts
        if self.strict:
            return not is_there((*path, TEXT) if is_text else path, known)
        return may_be_missing(path, known)


OF_LOCKS = Expectations(strict=True, answers=ANSWERS, together=TOGETHER)
"""Of a machine that takes a lock: around its work, every path must be there for certain."""


def missing_reads(machine: Machine, start: Facts, expected: Expectations) -> Iterator[Complaint]:
    """The paths that states read although they may be missing; the message ends with the path."""
    found: dict[str, Facts] = {}
    waiting = {machine.start: start} if machine.start in machine.states else {}
    while waiting:
        name = next(iter(waiting))
        facts = waiting.pop(name)
        known = found.get(name)
        merged = facts if known is None else known & facts
        if merged != known:
            found[name] = merged
            for target, after in _visit(machine, machine.states[name], merged, expected)[1]:
                if target in machine.states:
                    waiting[target] = waiting[target] & after if target in waiting else after
    for name, facts in found.items():
        state = machine.states[name]
        for path in dict.fromkeys(_visit(machine, state, facts, expected)[0]):
            yield Complaint(name, path)
        for inner in machine.inside(state):
            yield from missing_reads(inner, *_inside(state, facts, expected))


def _inside(state: State, facts: Facts, expected: Expectations) -> tuple[Facts, Expectations]:
    """What the first state of a branch or of an item gets."""
    given = _selected(state, facts)
    if state.kind == "Map" and not {"Parameters", "ItemSelector"} & set(state.body):
        given = frozenset()
    if expected.strict and ("lockToken",) in given:
        given |= {(WHOLE,)}  # the envelope, whose fields are known
    return given, Expectations()


def _visit(
    machine: Machine, state: State, facts: Facts, expected: Expectations
) -> tuple[list[str], list[tuple[str, Facts]]]:
    """The missing paths that a state reads, and what is there in the states that may follow."""
    if state.is_jsonata:
        return [], [(target, frozenset()) for target in state.ways]
    missing = [] if _has_path(state, "InputPath", facts, expected) else [str(state.body["InputPath"])]
    given = _below(facts, state.body.get("InputPath", "$"))
    if state.kind == "Choice":
        vain, ways = _choose(state, given, expected)
        return missing + vain, ways
    vain, output = _run(state, facts, given, expected)
    after = [(target, output) for target in state.ways_on]
    raised = _raised_inside(machine, state)
    for catcher in state.catchers:
        known = not expected.strict or set(catcher.errors) <= raised
        failure = FAILURE if known else frozenset()
        after.append((catcher.target, put(facts, _place(catcher.body), failure)))
    return missing + vain, after


def _raised_inside(machine: Machine, state: State) -> set[str]:
    """The errors of Fail states in a Map or a Parallel that have both Error and Cause."""
    inner = [one for part in machine.inside(state) for one in part.all_states()]
    return {
        str(one.body.get("Error"))
        for one in inner
        if one.kind == "Fail" and {"Cause", "CausePath"} & set(one.body)
    }


def _run(state: State, facts: Facts, given: Facts, expected: Expectations) -> tuple[list[str], Facts]:
    """One Task, Pass, Fail …: the missing paths that it reads, and what its output has."""
    body = state.body
    selector = body.get("Parameters", body.get("ItemSelector"))
    texts = [str(body[key]) for key in ("ErrorPath", "CausePath") if key in body]
    read = [*read_by(selector), *(str(body[key]) for key in _PATH_FIELDS if key in body)]
    missing = [path for path in read if expected.misses(path, given)]
    missing += [
        path
        for text in texts
        for path in paths_in(text)
        if expected.misses(path, given, is_text=not text.startswith("States."))
    ]
    result = _result(state, given, expected)
    if "ResultSelector" in body:
        missing += [path for path in read_by(body["ResultSelector"]) if expected.misses(path, result)]
        result = of_template(body["ResultSelector"])
    output = put(facts, _place(body), result)
    if not _has_path(state, "OutputPath", output, expected):
        missing.append(str(body["OutputPath"]))
    return missing, _below(output, body.get("OutputPath", "$"))


def _result(state: State, given: Facts, expected: Expectations) -> Facts:
    """What a state makes of its input, before ResultSelector and ResultPath."""
    if state.kind == "Pass":
        return of_template(state.body["Result"]) if "Result" in state.body else _parameters(state, given)
    if state.kind == "Task":
        known = answer(state)
        if state.name in expected.answers and ("Payload",) in known:
            return known | there(*(("Payload", name) for name in expected.answers[state.name]))
        return known
    if state.kind == "Parallel":
        return frozenset((f"[{place}]",) for place in range(len(objects(state.body.get("Branches")))))
    return frozenset() if state.kind == "Map" else given


def _selected(state: State, facts: Facts) -> Facts:
    return _parameters(state, _below(facts, state.body.get("InputPath", "$")))


def _parameters(state: State, given: Facts) -> Facts:
    for key in ("Parameters", "ItemSelector"):
        if key in state.body:
            return of_template(state.body[key])
    return given


def _choose(state: State, facts: Facts, expected: Expectations) -> tuple[list[str], list[tuple[str, Facts]]]:
    """One Choice: every rule is tried where those before it were false."""
    missing: list[str] = []
    ways: dict[str, tuple[Facts, set[Path]]] = {}
    known = set(facts) | {(*path, OPTIONAL) for rule in state.rules for path in _tested(rule)}
    for rule in state.rules:
        vain, if_true, if_false = _test(rule, known, expected)
        missing += vain
        _lead(ways, str(rule.get("Next")), known, if_true)
        known |= if_false
    if "Default" in state.body:
        _lead(ways, str(state.body["Default"]), known, set())
    return missing, [(target, before | more) for target, (before, more) in ways.items()]


def _lead(
    ways: dict[str, tuple[Facts, set[Path]]], target: str, known: set[Path], more: AbstractSet[Path]
) -> None:
    """
    Note what is there on a way to a state. If several rules lead to it: what is there by each of them.

    What is known only grows from rule to rule, so the later rules know what the first one knew.
    """
    if target not in ways:
        ways[target] = (frozenset(known), set(more))
        return
    of_first = ways[target][1]
    of_first -= {path for path in of_first if path not in known and path not in more}


def _test(
    rule: Body, known: set[Path], expected: Expectations
) -> tuple[list[str], AbstractSet[Path], AbstractSet[Path]]:
    """The missing paths that a test reads, and what is there as well if it is true, and if it is false."""
    if "Not" in rule:
        missing, if_true, if_false = _test(as_object(rule["Not"]), known, expected)
        return missing, if_false, if_true
    if "And" in rule or "Or" in rule:
        return _tests(rule, known, expected)
    text = str(rule.get("Variable", ""))
    path = parse(text)
    if "IsPresent" in rule and path is not None:
        tested = frozenset({(*path, OPTIONAL)})
        found = tested | there(path)
        return ([], found, tested) if rule["IsPresent"] else ([], tested, found)
    read = [text, *(value for key, value in rule.items() if key.endswith("Path") and isinstance(value, str))]
    if_true = {(*path, TEXT)} if rule.get("IsString") and path is not None else set()
    return [one for one in read if expected.misses(one, known)], if_true, frozenset()


def _tests(
    rule: Body, known: set[Path], expected: Expectations
) -> tuple[list[str], AbstractSet[Path], AbstractSet[Path]]:
    """
    As `_test`, of And or Or: each part is tried where those before it were true, or false.

    What the parts add is added to `known` for the next one, and taken out at the end: a copy for each part
    would take time and memory by the square of their number.
    """
    missing: list[str] = []
    going, leaving = set[Path](), set[Path]()
    for place, part in enumerate(objects(rule.get("And", rule.get("Or")))):
        vain, if_true, if_false = _test(part, known, expected)
        on, off = (if_true, if_false) if "And" in rule else (if_false, if_true)
        missing += vain
        leaving = {path for path in leaving if path in going or path in off} if place else set(off)
        new = on - known
        going |= new
        known |= new
    known -= going
    return (missing, going, leaving) if "And" in rule else (missing, leaving, going)


def _tested(rule: Body) -> Iterator[Path]:
    """The paths whose presence a rule tests."""
    for part in [*objects(rule.get("And")), *objects(rule.get("Or")), *objects([rule.get("Not")])]:
        yield from _tested(part)
    path = parse(str(rule.get("Variable", "")))
    if "IsPresent" in rule and path:
        yield path


def _has_path(state: State, key: str, facts: Facts, expected: Expectations) -> bool:
    text = state.body.get(key)
    return not isinstance(text, str) or not expected.misses(text, facts)


def _below(facts: Facts, text: Any) -> Facts:
    """The value that InputPath or OutputPath selects. null selects an empty object."""
    if text is None:
        return frozenset({(WHOLE,)})
    path = parse(str(text))
    if path is None:
        return frozenset()
    return below(facts, path) if path else facts


def _place(body: Body) -> Path | None:
    """Where ResultPath puts the result; None if it drops it."""
    given = body.get("ResultPath", "$")
    return None if given is None else parse(str(given))
