"""What takes foreign input takes time in proportion to it; and the test that says so can fail."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from math import nan
from typing import Any

import pytest

from steponce.callbacks.answer import Answer
from steponce.callbacks.links import verify
from steponce.cost import estimate
from steponce.cost.loops import loops_of
from steponce.http_api.address import address_of, key_in
from steponce.http_api.headers import idempotency_key, preferred_wait
from steponce.lint import lint
from steponce.lint.lines import line_of
from steponce.report.visits import Visits
from steponce.request.canonical import canonical_json
from steponce.request.envelope import Envelope
from steponce.request.names import name_of, split_attempt
from steponce.request.settings import RequestRules
from steponce.request.strict_json import read_strictly
from steponce.wrap.kept_lines import keep_lines
from tests import covering
from tests.unit.cost.definitions import CALL, END, PASS, choice, machine, to
from tests.unit.growth import is_linear

RULES = RequestRules(key_prefix="shop")
BY_PATHS = RequestRules(key_prefix="shop", lock_token_path="orderId", payload_hash_path="orderId")
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def nested_under(key: str, levels: int) -> Any:
    """An object in an object, and so on, around what cannot be carried."""
    value: Any = nan
    for _ in range(levels):
        value = {key: value}
    return value


def read(text: str | bytes) -> Any:
    """As every trigger reads."""
    return read_strictly(text, "The text")


class TwoKeys:
    """Keys that are there already."""

    def valid(self, **_: float) -> list[str]:
        return ["one", "other"]


def verify_link(query: dict[str, str]) -> object:
    """As the callback links do."""
    return verify(TwoKeys(), "as_1", query)


def visits_of(events: list[dict[str, Any]]) -> object:
    """As `steponce show` does."""
    visits = Visits()
    for event in events:
        visits.add(event)
    return visits.open()


def long_history(size: int) -> list[dict[str, Any]]:
    """A loop: state after state, each with a try and an error."""
    kinds = ("TaskStateEntered", "TaskScheduled", "TaskFailed", "TaskStateExited")
    return [event_of(kinds[number % 4], number + 1, number, "Loop") for number in range(size)]


def many_branches(size: int) -> list[dict[str, Any]]:
    """A Map's iterations side by side, each in a Parallel that is left after an event of its branch."""
    third = size // 3
    entered = [event_of("ParallelStateEntered", number, 0, "Both") for number in range(1, third)]
    within = [event_of("TaskStateEntered", third + number, number, "One") for number in range(1, third)]
    left = [
        event_of("ParallelStateExited", 2 * third + number, third + number, "Both")
        for number in range(1, third)
    ]
    return entered + within + left


def event_of(kind: str, number: int, previous: int, state: str) -> dict[str, Any]:
    """One event of a history."""
    event: dict[str, Any] = {"id": number, "previousEventId": previous, "type": kind, "timestamp": NOW}
    if kind.endswith("Entered"):
        event["stateEnteredEventDetails"] = {"name": state}
    elif kind.endswith("Exited"):
        event["stateExitedEventDetails"] = {"name": state}
    return event


# -- The measure itself: it finds what is planted, and lets the linear pass --------------------------
QUADRATIC = {
    "a pattern": (re.compile(r"\s+$").search, lambda size: " " * size + "x", 4_096),
    "a header's old pattern": (
        re.compile(r'(?:[^,"]|"(?:[^"\\]|\\.)*")+').findall,
        lambda size: '\\"' * size,
        1_024,
    ),
    "a search for every item": (
        lambda values: [values.index(value) for value in values],
        lambda size: list(range(size)),
        2_048,
    ),
}


@covering.first(1, "name", QUADRATIC)
def test_quadratic_growth_is_found(name: str):
    """Planted faults, each caught."""
    run, make, largest = QUADRATIC[name]
    assert not is_linear(run, make, largest)


@pytest.mark.parametrize(
    ("run", "make"),
    [
        (sorted, lambda size: [str(number * 7919 % size) for number in range(size)]),
        (lambda text: text.split(","), lambda size: "ab," * size),
        (re.compile(r"[^ ]+").findall, lambda size: "ab " * size),
    ],
)
def test_growth_in_proportion_passes(run: Any, make: Any):
    """With a logarithm on top, too."""
    assert is_linear(run, make, 200_000)


# -- What meets foreign text ---------------------------------------------------------------------------
FOREIGN: dict[str, tuple[Any, Any, int]] = {
    "canonical: a long key over a list": (
        canonical_json,
        lambda size: {"k" * size: [0] * (size // 2)},
        196_608,
    ),
    "canonical: a long key over objects": (
        canonical_json,
        lambda size: {"k" * size: [{"a": [0.5]}] * (size // 8)},
        131_072,
    ),
    "canonical: an error at the end": (
        canonical_json,
        lambda size: {"k" * size: [[0]] * (size // 4) + [nan]},
        131_072,
    ),
    "canonical: an error deep down": (
        canonical_json,
        lambda size: nested_under("k" * (size // 256), 256),
        196_608,
    ),
    "canonical: many keys": (
        canonical_json,
        lambda size: {str(number): "é" for number in range(size)},
        16_384,
    ),
    "an envelope": (
        lambda payload: Envelope.make("a", payload, RULES),
        lambda size: {"orderId": "1", "k" * size: [None] * (size // 5)},
        98_304,
    ),
    "a key and a hash by paths": (
        lambda payload: Envelope.make("a", payload, BY_PATHS),
        lambda size: {"orderId": {"a": [[""] * (size // 4), "x"]}},
        131_072,
    ),
    "an input by hand": (
        lambda given: Envelope.complete("a", given, RULES),
        lambda size: {"payload": {"a": "b"}, "x": 1} | {f"unknown-{number}": 1 for number in range(size)},
        16_384,
    ),
    "JSON: numbers": (read, lambda size: "[" + "1," * size + "1]", 98_304),
    "JSON: one number": (read, lambda size: "1" * size, 1_048_576),
    "JSON: a fraction": (read, lambda size: "0." + "1" * size, 1_048_576),
    "JSON: escapes": (read, lambda size: '"' + "\\u00e9" * size, 131_072),
    "JSON: depth": (read, lambda size: "[" * size, 1_048_576),
    "JSON: keys": (
        read,
        lambda size: "{" + ",".join(f'"{number}":1' for number in range(size)) + "}",
        65_536,
    ),
    "JSON: not UTF-8": (read, lambda size: b"\n" * size + b"\xff", 1_048_576),
    "a request id": (name_of, lambda size: "-é" * size, 1_048_576),
    "a request id of marks": (name_of, lambda size: "--2" * size, 1_048_576),
    "an execution's name": (split_attempt, lambda size: "--1" * size, 65_536),
    "an Idempotency-Key": (idempotency_key, lambda size: '"' + '\\"' * size, 65_536),
    "an Idempotency-Key of blanks": (idempotency_key, lambda size: " \t" * size + "x", 65_536),
    "a key's address": (address_of, lambda size: "~." * size, 65_536),
    "a coded address": (key_in, lambda size: "~" + "QQ" * size, 65_536),
    "a link's signature": (verify_link, lambda size: {"signature": "0" * size}, 1_048_576),
    "a link's outcomes": (verify_link, lambda size: {"allow": "success," * size}, 262_144),
    "an answer": (
        Answer.parse,
        lambda size: {"outcome": "success", "output": {"k" * size: [0] * (size // 2)}},
        131_072,
    ),
    "an answer's unknown fields": (
        Answer.parse,
        lambda size: {"outcome": "success"} | {str(number): 1 for number in range(size)},
        65_536,
    ),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_input_costs_time_in_proportion(name: str):
    """Up to the size that a trigger lets in, or more."""
    run, make, largest = FOREIGN[name]
    assert is_linear(run, make, largest)


@pytest.mark.parametrize(
    "part", ['\\"', '"', '",', "\\", 'a"', 'wait="', "wait=1;", ",", ", wait ", " ", '"\\"']
)
@pytest.mark.parametrize("ending", ["", '"', "x", "\\", "\n"])
def test_a_prefer_header_costs_time_in_proportion(part: str, ending: str):
    """The largest is about what a gateway lets through."""
    assert is_linear(preferred_wait, lambda size: (part * size)[:size] + ending, 8_000)


def test_a_long_prefer_header_counts_for_nothing():
    """As what is malformed does."""
    assert 1 == preferred_wait("wait=1;" + "x" * 8_000)
    assert preferred_wait("wait=1;" + "x" * 9_000) is None


def chain(size: int) -> dict[str, Any]:
    """A definition whose states follow each other."""
    return machine(**{f"S{n}": to(PASS, f"S{n + 1}") for n in range(size)}, **{f"S{size}": END})


def calls(size: int) -> dict[str, Any]:
    """A definition whose Tasks and Pass states take turns."""
    states = {f"S{n}": to((PASS, CALL)[n % 2], f"S{n + 1}") for n in range(size)}
    return machine(**states, **{f"S{size}": END})


def ways_of(definition: dict[str, Any]) -> dict[str, list[str]]:
    """Where each state leads."""
    return {name: [state["Next"]] if "Next" in state else [] for name, state in definition["States"].items()}


def fan(size: int) -> dict[str, Any]:
    """A definition that goes one of many ways, each with an end of its own."""
    ways = [f"E{n}" for n in range(size)]
    return machine(Ask=choice(*ways), **dict.fromkeys(ways, END))


def wide(size: int) -> dict[str, Any]:
    """A Parallel of many branches."""
    return machine(All={**END, "Type": "Parallel", "Branches": [chain(1)] * size})


@pytest.mark.full
def test_a_long_definition_is_checked_and_priced_in_proportion():
    """Whoever offers a template to a pipeline does not keep it busy."""
    assert is_linear(lint, chain, 1_024)
    assert is_linear(lint, calls, 2_048)
    assert is_linear(lint, wide, 512)
    assert is_linear(lambda definition: loops_of("S0", ways_of(definition)), chain, 2_048)
    assert is_linear(estimate, fan, 2_048)


def many_tests(size: int) -> dict[str, Any]:
    """A rule that asks for many fields."""
    tests = [{"Variable": f"$.a{n}", "IsPresent": True} for n in range(size)]
    ask = {"Type": "Choice", "Choices": [{"And": tests, "Next": "Done"}], "Default": "Done"}
    return machine(Ask=ask, Done=END)


def many_rules(size: int) -> dict[str, Any]:
    """Many rules that ask for a field each."""
    rules = [{"Variable": f"$.a{n}", "IsPresent": True, "Next": "Done"} for n in range(size)]
    return machine(Ask={"Type": "Choice", "Choices": rules, "Default": "Done"}, Done=END)


def deep_place(size: int) -> dict[str, Any]:
    """A result that is put deep into the input."""
    return machine(Put={**END, "ResultPath": "$" + ".a" * size})


def deep_read(size: int) -> dict[str, Any]:
    """A value that is read from deep in the input."""
    return machine(Read={**END, "Parameters": {"value.$": "$" + ".a" * size}})


@covering.first(2, "make", [many_tests, many_rules, deep_place, deep_read])
def test_a_long_state_is_checked_in_proportion(make: Any):
    """A file of 32 KB took a gigabyte of memory."""
    assert is_linear(lint, make, 4_096)


def lines_of_all(text: str) -> object:
    """As the report of `steponce lint`, with a finding in each state."""
    return [line_of(text, f"S{number}") for number in range(text.count("Pass"))]


TEXTS = {
    "JSON": lambda size: json.dumps(chain(size), indent=2),
    "JSON on one line": lambda size: json.dumps(chain(size)),
    "YAML": lambda size: "States:\n" + "".join(f"  S{n}:\n    Type: Pass\n" for n in range(size)),
    "YAML on one line": lambda size: "{" + "".join(f"S{n}: {{Type: Pass}}, " for n in range(size)) + "}",
    "quotes": lambda size: '"Pass' + '\\"' * size,
    "spaces": lambda size: "Pass {" + " " * size,
    "commas": lambda size: "Pass" + "," * size,
}


@pytest.mark.parametrize("kind", TEXTS)
def test_the_lines_of_many_findings_are_found_in_proportion(kind: str):
    """A long definition with something in each state took ten seconds."""
    assert is_linear(lines_of_all, TEXTS[kind], 4_096)


def template(functions: int, indent: str) -> str:
    """A template whose functions differ by their names alone."""
    lines = [
        f"  Function{n}:\n    Policies:\n{indent}- One\n    Runtime: python3.13" for n in range(functions)
    ]
    return "\n".join(["Resources:", *lines])


@pytest.mark.full
def test_a_long_template_keeps_its_lines_in_time_in_proportion():
    """Its lists are indented in another way than a program would write them."""

    def keep(texts: tuple[str, str]) -> str:
        return keep_lines(*texts, f"{texts[1]}\n  Another:\n    Runtime: python3.13")

    assert is_linear(keep, lambda size: (template(size, "    "), template(size, "      ")), 4_096)


@pytest.mark.parametrize("kind", ["states", "branches"])
def test_a_history_costs_time_in_proportion(kind: str):
    """An execution has three times as many events at the most."""
    make = long_history if kind == "states" else many_branches
    assert is_linear(visits_of, make, 8_192)
