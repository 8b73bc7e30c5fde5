"""What definitions the template can give a state machine: all values that matter, in every combination."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from steponce.local.template.machines import Machines
from steponce.local.template.physical_names import PhysicalNames
from steponce.local.template.renderings import combinations, that_matter

from .documents import ROOT, template, transformed_template

LISTS = ("CardDeclined", ",".join(f"Error{number}" for number in range(50)))
"""A CommaDelimitedList with one item, and with many."""


def defaults() -> dict[str, str]:
    """Every parameter at its default."""
    return {name: str(declared["Default"]) for name, declared in template()["Parameters"].items()}


def definitions_with(**values: str) -> tuple[str, ...]:
    """The definition of each state machine of the template, its substitutions made."""
    files = {
        name: ROOT / resource["Properties"]["DefinitionUri"]
        for name, resource in template()["Resources"].items()
        if resource["Type"] == "AWS::Serverless::StateMachine"
    }
    machines = Machines(transformed_template(), PhysicalNames("linted", "us-east-1"), files.get)
    return tuple(machine.definition for machine in machines.with_values(defaults() | values))


LIMITS = {"RateLimit": ["0", "999999999"]}
"""Those of numbers whose limits are in a pattern."""


def values_to_try(name: str, declared: Mapping[str, Any]) -> list[str]:
    """Every choice of a parameter, or its limits, or a short list and a long one; else its default."""
    if name in LIMITS:
        return LIMITS[name]
    if "AllowedValues" in declared:
        return [str(choice) for choice in declared["AllowedValues"]]
    if declared["Type"] == "CommaDelimitedList" and declared["Default"]:
        return list(LISTS)
    limits = [declared[key] for key in ("MinValue", "MaxValue") if key in declared]
    return [str(value) for value in limits or [declared["Default"]]]


@cache
def parameters_that_matter() -> dict[str, list[str]]:
    """The parameters that reach a definition, with the values to try."""
    tried = {name: values_to_try(name, declared) for name, declared in template()["Parameters"].items()}
    return that_matter(lambda values: definitions_with(**values), tried)


@cache
def every_definition() -> tuple[str, ...]:
    """One text for each combination."""
    everything = combinations(parameters_that_matter())
    return tuple(definition for values in everything for definition in definitions_with(**values))


def each_value_alone() -> list[str]:
    """The defaults, and each value beside the other parameters' defaults: few, for a linter that is slow."""
    varied = [{name: value} for name, values in parameters_that_matter().items() for value in values]
    return list(dict.fromkeys(text for values in ({}, *varied) for text in definitions_with(**values)))
