"""The documents that the rules are about, and how to spoil a copy of one."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import boto3
from samtranslator.yaml_helper import yaml_parse

from .nesting import in_place

ROOT = Path(__file__).parents[2]
MACHINES = sorted((ROOT / "statemachines").glob("*.asl.json"))
EXAMPLES = sorted(path.parent for path in (ROOT / "examples").glob("*/template.yaml"))
FUNCTIONS = sorted(path for path in (ROOT / "functions").iterdir() if (path / "app.py").exists())
EVENTS = sorted((ROOT / "events").glob("*.json"))
MODULES = sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "examples").glob("*.py")])

TEMPLATES = [
    *(ROOT / name for name in ("template.yaml", "requests.yaml", "monitoring.yaml")),
    *(folder / "template.yaml" for folder in EXAMPLES),
]

REQUESTS = "Requests"
"""The nested stack of requests.yaml in the template."""

GONE = object()
"""In a planted fault: the part is left out."""


def lint_template(path: Path) -> None:
    """Run cfn-lint, which is what `sam validate --lint` runs; whatever it has to say is an error."""
    linter = Path(sys.executable).with_name("cfn-lint")
    subprocess.run([linter, "-t", path, "--regions", "us-east-1"], check=True)


def load_json(path: Path) -> Any:
    """Read JSON, and refuse a key that stands twice: only its second value would count."""
    return json.loads(path.read_text(), object_pairs_hook=_no_key_twice)


@cache
def machine(name: str) -> dict[str, Any]:
    """A workflow's definition, as its file has it; do not change it."""
    return load_json(ROOT / "statemachines" / f"{name}.asl.json")


@cache
def template() -> dict[str, Any]:
    """The template, as its file has it; do not change it."""
    return yaml_parse((ROOT / "template.yaml").read_text())


@cache
def requests() -> dict[str, Any]:
    """The template of the nested stack by which requests reach one workflow; do not change it."""
    return yaml_parse((ROOT / "requests.yaml").read_text())


@cache
def whole_template() -> dict[str, Any]:
    """The template with what reaches its workflow, as if that were not nested; do not change it."""
    return in_place(template(), REQUESTS, requests())


def spoilt_template(faults: dict[str, Any]) -> dict[str, Any]:
    """The whole template with faults: what functions have in common is spoilt in all of them."""
    nested = {place for place in faults if set(place.split("/")[1:2]) <= requests()["Resources"].keys()}
    common = {place for place in faults if place.startswith("Globals/")}

    def only(places: set[str]) -> dict[str, Any]:
        return {place: fault for place, fault in faults.items() if place in places}

    main = spoilt(template(), only(set(faults) - nested - common))
    return spoilt(in_place(main, REQUESTS, spoilt(requests(), only(nested))), only(common))


@cache
def monitoring() -> dict[str, Any]:
    """The template of the nested stack with the alarms and the dashboard; do not change it."""
    return yaml_parse((ROOT / "monitoring.yaml").read_text())


@cache
def transformed_template() -> dict[str, Any]:
    """The template as CloudFormation gets it, with the requests' stack in place; do not change it."""
    return transform(whole_template())


def transform(source: dict[str, Any]) -> dict[str, Any]:
    """Do what the SAM transform does, with parameters at their defaults."""
    from samtranslator.parser.parser import Parser  # half a second, in each worker
    from samtranslator.translator.translator import Translator

    source = copy.deepcopy(source)
    defaults = {name: parameter.get("Default", "x") for name, parameter in source["Parameters"].items()}
    for resource in source["Resources"].values():
        for key in ("CodeUri", "ContentUri", "DefinitionUri"):
            if key in resource.get("Properties", {}):
                resource["Properties"][key] = "s3://bucket/key"
    session = boto3.Session(region_name="us-east-1")
    return Translator({}, Parser(), boto_session=session).translate(source, parameter_values=defaults)


def rules_of(module: ModuleType) -> list[Any]:
    """Every rule in a module."""
    return [rule for name, rule in vars(module).items() if name.startswith("rule_")]


def spoilt(document: Any, faults: dict[str, Any]) -> Any:
    """
    A copy of a document with faults in it.

    Args:
        document: JSON, as it is right.
        faults: Where (`AcquireLock/Retry/0/MaxAttempts`) to what: a value, GONE, or a function of the
            value that is there.
    """
    document = copy.deepcopy(document)
    for place, value in faults.items():
        *way, last = [int(step) if step.isdecimal() else step for step in place.split("/")]
        part = document
        for step in way:
            part = part[step]
        if value is GONE:
            del part[last]
        else:
            part[last] = value(part[last]) if callable(value) else value
    return document


def instead(old: str, new: str) -> Callable[[str], str]:
    """A fault that puts one text in the place of another, which must be there."""

    def replace(text: str) -> str:
        assert old in text
        return text.replace(old, new)

    return replace


def without(item: str) -> Callable[[list[str]], list[str]]:
    """A fault that leaves one item out."""
    return lambda items: [other for other in items if other != item]


def walk(value: Any) -> Iterator[Any]:
    """Every object and list inside a JSON value, and the value itself."""
    yield value
    parts: Iterable[Any] = value.values() if isinstance(value, dict) else value
    if isinstance(value, dict | list):
        for part in parts:
            yield from walk(part)


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    twice = {key for key in keys if keys.count(key) > 1}
    if twice:
        raise ValueError(f"these keys stand twice in one object: {sorted(twice)}")
    return dict(pairs)
